"""What an asset notes of its life, its name, and what is judged before its values."""

from uuid import UUID

import pytest

from baton.domain.equipment.asset import AssetDegraded, AssetRenamed, DegradeAsset, FaultAsset, RenameAsset, RestoreAsset
from baton.domain.equipment.asset_external_id import AssignAssetExternalId
from baton.domain.equipment.asset_parts import (
    AddAssetAlternateIdentifier,
    AddAssetFamily,
    AddAssetOwner,
    AddAssetPort,
    AttachAssetToFixture,
    RemoveAssetAlternateIdentifier,
    RemoveAssetFamily,
    RemoveAssetOwner,
    RemoveAssetPort,
    UpdateAssetPartitionRule,
    UpdateAssetSettings,
)
from baton.domain.equipment.asset_tree import DecommissionAsset, RelocateAsset
from baton.domain.kernel import Command
from tests.support.domain.assets import asset_of, facility_world, root
from tests.support.domain.world import World, expect_refusal, new_id


@pytest.fixture
def world() -> World:
    return facility_world()


def decommissioned_asset(world: World) -> UUID:
    asset_id = root(world)
    world.when(DecommissionAsset(), on=asset_id)
    return asset_id


def test_a_condition_verb_needs_a_reason_and_stores_it_trimmed(world: World) -> None:
    for verb in (DegradeAsset, FaultAsset, RestoreAsset):
        with expect_refusal("InvalidReasonError"):
            world.when(verb(reason="  "), on=root(world))
    assert world.when(DegradeAsset(reason=" runout "), on=root(world)) == [AssetDegraded(reason="runout")]


def test_commissioning_and_decommissioning_note_the_time(world: World) -> None:
    asset_id = root(world)
    asset = asset_of(world, asset_id)
    assert asset.commissioned_at == asset.created_at == world.now
    world.when(DecommissionAsset(), on=asset_id)
    assert asset_of(world, asset_id).decommissioned_at == world.now


def test_renaming_changes_the_name_alone_and_the_same_name_nothing(world: World) -> None:
    asset_id = root(world)
    before = asset_of(world, asset_id)
    assert world.when(RenameAsset(name=" Hexapod "), on=asset_id) == [AssetRenamed(name="Hexapod")]
    after = asset_of(world, asset_id)
    assert {**after.__dict__, "name": before.name} == before.__dict__
    assert world.when(RenameAsset(name="Hexapod"), on=asset_id) == []
    with expect_refusal("InvalidAssetNameError"):
        world.when(RenameAsset(name=" "), on=asset_id)


@pytest.mark.parametrize(
    "command",
    [
        RenameAsset(name=" "),
        RelocateAsset(located_in_enclosure_id=None, reason=" "),
        RemoveAssetFamily(family_id=new_id()),
        UpdateAssetSettings(settings_patch={"speed": 5}),
        AddAssetPort(port_name=" ", direction="Input", signal_type="TTL"),
        RemoveAssetPort(port_name="trigger"),
        AddAssetAlternateIdentifier(kind="EPICS_PV", value=" "),
        RemoveAssetAlternateIdentifier(kind="EPICS_PV", value="lum:m102"),
        AddAssetOwner(name=" "),
        RemoveAssetOwner(name="Lumen Light Source"),
        UpdateAssetPartitionRule(partition_rule={"kind": "Aggregation", "constituent_count": 0}),
        AssignAssetExternalId(external_id_scheme="DOI"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_a_decommissioned_asset_is_changed_no_more(world: World, command: Command) -> None:
    asset_id = decommissioned_asset(world)
    with expect_refusal(command.Cannot, "decommissioned"):
        world.when(command, on=asset_id)


def test_what_is_referred_to_is_sought_before_the_state_is_judged(world: World) -> None:
    asset_id = decommissioned_asset(world)
    with expect_refusal("FamilyNotFoundError"):
        world.when(AddAssetFamily(family_id=new_id()), on=asset_id)
    with expect_refusal("EnclosureNotFoundError"):
        world.when(RelocateAsset(located_in_enclosure_id=new_id(), reason="moved"), on=asset_id)
    with expect_refusal("FixtureNotFoundError"):
        world.when(AttachAssetToFixture(fixture_id=new_id()), on=asset_id)
