"""The integrator's view of an asset."""

from datetime import timedelta

import pytest

from baton.domain.caution.caution import RetireCaution
from baton.domain.equipment.asset_parts import UpdateAssetSettings
from baton.domain.equipment.family import VersionFamily
from baton.domain.recipe.capability import DeprecateCapability
from baton.domain.views.asset_integration import GetAssetIntegrationView
from tests.support.domain.assets import enclosure, facility_world, family, part, root, rotary_schema
from tests.support.domain.cautions import DRIFT, on_asset, register_caution
from tests.support.domain.templates import capability
from tests.support.domain.world import World


@pytest.fixture
def world() -> World:
    return facility_world()


def test_the_integration_view_gathers_what_an_integrator_needs(world: World) -> None:
    hutch, cabinet = sorted([enclosure(world, "Hutch"), enclosure(world, "Cabinet")])
    stage, housing = family(world, "RotaryStage", rotary_schema(), "Rotatable", "Homeable"), family(world, "Housing")
    beamline = root(world, located_in_enclosure_id=cabinet)
    table = part(world, beamline, located_in_enclosure_id=hutch)
    asset_id = part(world, table, family_ids=[stage, housing], located_in_enclosure_id=hutch)
    world.when(UpdateAssetSettings(settings_patch={"max_position": 360}), on=asset_id)
    view = world.ask(GetAssetIntegrationView(), on=asset_id)
    assert view.enclosure_ids == {hutch, cabinet}
    assert [(one.name, sorted(one.affordances)) for one in view.families] == [
        ("Housing", []),
        ("RotaryStage", ["Homeable", "Rotatable"]),
    ]
    assert view.families[1].settings_schema == rotary_schema()
    assert view.settings == {"max_position": 360}
    assert (view.active_cautions, view.applicable_capabilities, view.incomplete) == ((), (), False)
    assert f'"enclosure_ids":["{hutch}","{cabinet}"]' in view.model_dump_json()


def test_the_integration_view_warns_of_everything_in_effect_on_the_asset_itself(world: World) -> None:
    beamline = root(world)
    stage = part(world, beamline)
    expiring = register_caution(world, on_asset(stage), severity="Notice", expires_at=world.now + timedelta(hours=1))
    lasting = register_caution(world, on_asset(stage), severity="Warning", text="x" * 300)
    register_caution(world, on_asset(beamline), propagate_to_children=True)
    world.when(RetireCaution(reason="Resolved"), on=register_caution(world, on_asset(stage)))
    warned = world.ask(GetAssetIntegrationView(), on=stage).active_cautions
    assert [(one.caution_id, one.category, one.severity, one.text) for one in warned] == [
        (lasting, "OperationalWindow", "Warning", "x" * 300),
        (expiring, "OperationalWindow", "Notice", DRIFT),
    ]
    world.now += timedelta(hours=1)
    assert [one.caution_id for one in world.ask(GetAssetIntegrationView(), on=stage).active_cautions] == [lasting]


def test_the_integration_view_offers_the_capabilities_that_the_families_cover_together(world: World) -> None:
    stage, camera = family(world, "RotaryStage", None, "Rotatable"), family(world, "Camera", None, "Imageable")
    required = {
        "tomography": ["Rotatable", "Imageable"],
        "characterization": [],
        "alignment": ["Rotatable"],
        "maintenance": ["Rotatable", "Homeable"],
        "acquisition": ["Imageable"],
    }
    ids = {
        name: capability(world, code=f"baton.capability.{name}", required_affordances=affordances)
        for name, affordances in required.items()
    }
    world.when(DeprecateCapability(), on=ids["acquisition"])
    offered = world.ask(GetAssetIntegrationView(), on=root(world, family_ids=[stage, camera])).applicable_capabilities
    assert [(one.capability_id, one.code, one.name, one.status) for one in offered] == [
        (ids[name], f"baton.capability.{name}", "Acquisition", "Defined")
        for name in ("alignment", "characterization", "tomography")
    ]
    world.when(VersionFamily(version_tag="v2", affordances=[]), on=stage)
    (left,) = world.ask(GetAssetIntegrationView(), on=root(world, family_ids=[stage])).applicable_capabilities
    assert left.capability_id == ids["characterization"]


def test_the_integration_view_says_when_a_family_cannot_be_read(world: World) -> None:
    stage = family(world)
    asset_id = root(world, family_ids=[stage])
    del world.streams["Family", stage]
    assert world.ask(GetAssetIntegrationView(), on=asset_id).incomplete
