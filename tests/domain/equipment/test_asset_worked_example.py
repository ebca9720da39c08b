"""One rotary stage of a tomography beamline, from its family to its retirement."""

from baton.domain.equipment.asset import (
    ActivateAsset,
    AssetCondition,
    AssetLifecycle,
    DegradeAsset,
    EnterAssetMaintenance,
    ExitAssetMaintenance,
    FaultAsset,
    RestoreAsset,
)
from baton.domain.equipment.asset_external_id import GetAssetPidinst
from baton.domain.equipment.asset_parts import UpdateAssetSettings
from baton.domain.equipment.asset_tree import DecommissionAsset, GetAssetTree
from baton.domain.equipment.family import VersionFamily
from baton.domain.equipment.mount import UninstallAsset
from tests.support.domain.assets import (
    LUMEN,
    RADIAN,
    asset_of,
    enclosure,
    facility_world,
    family,
    install_in_mount,
    model,
    part,
    root,
    rotary_schema,
)
from tests.support.domain.world import expect_refusal

AFFORDANCES = ["Rotatable", "Homeable", "Limitable", "Marking", "Leading", "Reportable"]


def test_the_life_of_a_rotary_stage() -> None:
    world = facility_world()
    rotary_stage = family(world, "RotaryStage", rotary_schema(), *AFFORDANCES)
    acme = model(world, rotary_stage)

    tomography = root(world, name="Tomography", tier="Unit", facility_code=LUMEN)
    with expect_refusal("InvalidAssetParentError"):
        root(world, parent_id=tomography)
    rotary = part(
        world,
        tomography,
        model_id=acme,
        located_in_enclosure_id=enclosure(world),
        alternate_identifiers=[{"kind": "EPICS_PV", "value": "lum:m102"}],
        owners=[{"name": "Lumen Light Source"}],
    )
    assert asset_of(world, rotary).family_ids == {rotary_stage}

    world.when(ActivateAsset(), on=rotary)
    with expect_refusal("AssetCannotActivateError", "active"):
        world.when(ActivateAsset(), on=rotary)

    first = {"min_position": -360, "max_position": 360, "serial_number": "A-0042"}
    world.when(UpdateAssetSettings(settings_patch=first), on=rotary)
    with expect_refusal("InvalidAssetSettingsError"):
        world.when(UpdateAssetSettings(settings_patch={"speed": 5}), on=rotary)
    in_radian = rotary_schema()
    in_radian["properties"]["max_position"]["unit"] = RADIAN
    world.when(VersionFamily(version_tag="2", affordances=AFFORDANCES, settings_schema=in_radian), on=rotary_stage)
    with expect_refusal("InvalidAssetSettingsError", "unit_changed") as refusal:
        world.when(UpdateAssetSettings(settings_patch={"min_position": -180}), on=rotary)
    assert refusal.value.facts == {"keys": ["max_position"]}
    world.when(UpdateAssetSettings(settings_patch={"min_position": -180, "max_position": 6.28}), on=rotary)

    mount = install_in_mount(world, rotary)
    world.when(DegradeAsset(reason="runout above 1 micron"), on=rotary)
    degraded = asset_of(world, rotary)
    assert (degraded.lifecycle, degraded.condition) == (AssetLifecycle.ACTIVE, AssetCondition.DEGRADED)
    for step in (EnterAssetMaintenance(), ExitAssetMaintenance(), RestoreAsset(reason="bearing replaced")):
        world.when(step, on=rotary)

    (start, below) = world.ask(GetAssetTree(), on=tomography).nodes
    assert (start.asset_id, start.depth, below.asset_id, below.depth) == (tomography, 0, rotary, 1)
    assert world.ask(GetAssetPidinst(), on=rotary).identifier.scheme == "URN"

    with expect_refusal("AssetCannotDecommissionError", "installed"):
        world.when(DecommissionAsset(), on=rotary)
    world.when(UninstallAsset(reason="end of life"), on=mount)
    world.when(DecommissionAsset(), on=rotary)
    with expect_refusal("AssetCannotUpdateSettingsError", "decommissioned"):
        world.when(UpdateAssetSettings(settings_patch={"max_position": 3.14}), on=rotary)
    world.when(FaultAsset(reason="seized"), on=rotary)
    assert asset_of(world, rotary).condition is AssetCondition.FAULTED
