"""Families, ports, identifiers, owners, partition rule and fixture of an asset."""

from uuid import UUID

import pytest

from baton.domain.equipment.asset import AssetOwnerAdded, AssetPartitionRuleUpdated, AssetPortAdded, AssetPortRemoved
from baton.domain.equipment.asset_parts import (
    AddAssetAlternateIdentifier,
    AddAssetFamily,
    AddAssetOwner,
    AddAssetPort,
    AttachAssetToFixture,
    DetachAssetFromFixture,
    RemoveAssetAlternateIdentifier,
    RemoveAssetFamily,
    RemoveAssetOwner,
    RemoveAssetPort,
    UpdateAssetPartitionRule,
)
from baton.domain.equipment.family import DeprecateFamily
from baton.domain.equipment.model import AddModelFamily, RemoveModelFamily
from baton.domain.equipment.mount import INSTALLED
from baton.domain.kernel import Command
from tests.support.domain.assets import asset_of, facility_world, family, fixture, model, part, root
from tests.support.domain.world import World, expect_refusal, new_id


@pytest.fixture
def world() -> World:
    return facility_world()


@pytest.fixture
def asset_id(world: World) -> UUID:
    return root(world)


def test_a_family_is_added_once_and_removed_once(world: World, asset_id: UUID) -> None:
    stage = family(world)
    with expect_refusal("AssetCannotRemoveFamilyError", "not_present"):
        world.when(RemoveAssetFamily(family_id=stage), on=asset_id)
    world.when(AddAssetFamily(family_id=stage), on=asset_id)
    with expect_refusal("AssetCannotAddFamilyError", "already_present"):
        world.when(AddAssetFamily(family_id=stage), on=asset_id)
    assert asset_of(world, asset_id).family_ids == {stage}
    world.when(RemoveAssetFamily(family_id=stage), on=asset_id)
    assert asset_of(world, asset_id).family_ids == set()


def test_a_deprecated_family_stays_but_is_not_added(world: World, asset_id: UUID) -> None:
    stage, axis = family(world, "RotaryStage"), family(world, "PseudoAxis")
    world.when(AddAssetFamily(family_id=stage), on=asset_id)
    for deprecated in (stage, axis):
        world.when(DeprecateFamily(), on=deprecated)
    with expect_refusal("AssetCannotAddFamilyError", "family_deprecated"):
        world.when(AddAssetFamily(family_id=axis), on=asset_id)
    assert asset_of(world, asset_id).family_ids == {stage}


def test_only_families_the_model_declares_now_are_kept_from_removal(world: World) -> None:
    stage, axis, extra = (family(world, name) for name in ("RotaryStage", "PseudoAxis", "Housing"))
    model_id = model(world, stage, axis)
    asset_id = root(world, model_id=model_id, family_ids=[extra])
    with expect_refusal("AssetCannotRemoveFamilyError", "declared_by_model"):
        world.when(RemoveAssetFamily(family_id=stage), on=asset_id)
    world.when(RemoveAssetFamily(family_id=extra), on=asset_id)
    world.when(RemoveModelFamily(family_id=stage), on=model_id)
    world.when(RemoveAssetFamily(family_id=stage), on=asset_id)
    world.when(AddModelFamily(family_id=stage), on=model_id)
    assert asset_of(world, asset_id).family_ids == {axis}


def test_a_port_has_a_name_of_its_own_whatever_its_direction(world: World, asset_id: UUID) -> None:
    added = world.when(AddAssetPort(port_name=" trigger ", direction="Input", signal_type=" TTL "), on=asset_id)
    assert added == [AssetPortAdded(port_name="trigger", direction="Input", signal_type="TTL")]
    with expect_refusal("AssetCannotAddPortError", "already_present"):
        world.when(AddAssetPort(port_name="trigger", direction="Output", signal_type="TTL"), on=asset_id)
    world.when(AddAssetPort(port_name="busy", direction="Output", signal_type="TTL"), on=asset_id)
    assert [port.name for port in asset_of(world, asset_id).ports] == ["busy", "trigger"]


def test_a_port_is_removed_by_its_trimmed_name(world: World, asset_id: UUID) -> None:
    world.when(AddAssetPort(port_name="trigger", direction="Input", signal_type="TTL"), on=asset_id)
    assert world.when(RemoveAssetPort(port_name=" trigger "), on=asset_id) == [AssetPortRemoved(port_name="trigger")]
    for name in ("trigger", "  "):
        with expect_refusal("AssetCannotRemovePortError", "not_present"):
            world.when(RemoveAssetPort(port_name=name), on=asset_id)


@pytest.mark.parametrize(
    ("command", "refusal"),
    [
        (AddAssetPort(port_name=" ", direction="Input", signal_type="TTL"), "InvalidAssetPortError"),
        (AddAssetPort(port_name="trigger", direction="Input", signal_type=" "), "InvalidAssetPortError"),
        (AddAssetAlternateIdentifier(kind="Other", value=" "), "InvalidAlternateIdentifierError"),
        (AddAssetOwner(name=" "), "InvalidAssetOwnerError"),
        (AddAssetOwner(name="Lumen", identifier=" ", identifier_type="ROR"), "InvalidAssetOwnerError"),
        (AddAssetOwner(name="Lumen", identifier="1"), "InvalidAssetOwnerError"),
        (AddAssetOwner(name="Lumen", identifier_type="ROR"), "InvalidAssetOwnerError"),
    ],
)
def test_blank_texts_and_half_identifiers_are_refused(world: World, asset_id: UUID, command: Command, refusal: str) -> None:
    with expect_refusal(refusal):
        world.when(command, on=asset_id)


def test_an_identifier_is_one_kind_and_value_and_only_within_one_asset(world: World, asset_id: UUID) -> None:
    other = part(world, asset_id)
    for id in (asset_id, other):
        world.when(AddAssetAlternateIdentifier(kind="SerialNumber", value=" A-0042 "), on=id)
    world.when(AddAssetAlternateIdentifier(kind="InventoryNumber", value="A-0042"), on=asset_id)
    with expect_refusal("AssetCannotAddAlternateIdentifierError", "already_present"):
        world.when(AddAssetAlternateIdentifier(kind="SerialNumber", value="A-0042"), on=asset_id)
    world.when(RemoveAssetAlternateIdentifier(kind="SerialNumber", value=" A-0042 "), on=asset_id)
    with expect_refusal("AssetCannotRemoveAlternateIdentifierError", "not_present"):
        world.when(RemoveAssetAlternateIdentifier(kind="SerialNumber", value="A-0042"), on=asset_id)
    assert [(one.kind, one.value) for one in asset_of(world, asset_id).alternate_identifiers] == [
        ("InventoryNumber", "A-0042")
    ]


def test_owners_have_distinct_names_and_the_last_may_go(world: World, asset_id: UUID) -> None:
    whole = AddAssetOwner(name=" Lumen ", identifier="https://ror.org/1", identifier_type="ROR")
    added = AssetOwnerAdded(name="Lumen", identifier="https://ror.org/1", identifier_type="ROR")
    assert world.when(whole, on=asset_id) == [added]
    with expect_refusal("AssetCannotAddOwnerError", "already_present"):
        world.when(AddAssetOwner(name="Lumen"), on=asset_id)
    world.when(RemoveAssetOwner(name=" Lumen "), on=asset_id)
    with expect_refusal("AssetCannotRemoveOwnerError", "not_present"):
        world.when(RemoveAssetOwner(name="Lumen"), on=asset_id)
    assert asset_of(world, asset_id).owners == ()


def test_a_partition_rule_makes_a_virtual_axis_and_null_unmakes_it(world: World, asset_id: UUID) -> None:
    assert world.when(UpdateAssetPartitionRule(partition_rule=None), on=asset_id) == []
    rule = UpdateAssetPartitionRule(partition_rule={"kind": "Affine", "gain": 2})
    assert world.when(rule, on=asset_id) == [AssetPartitionRuleUpdated(partition_rule=rule.partition_rule)]
    assert world.when(rule, on=asset_id) == []
    assert asset_of(world, asset_id).virtual_axis
    world.when(UpdateAssetPartitionRule(partition_rule=None), on=asset_id)
    assert not asset_of(world, asset_id).virtual_axis
    alone = UpdateAssetPartitionRule(partition_rule={"kind": "CompositePartition", "constituent_count": 1})
    with expect_refusal("InvalidPartitionRuleError", "constituent_count"):
        world.when(alone, on=asset_id)


def test_an_asset_is_attached_to_the_one_fixture_that_binds_it(world: World, asset_id: UUID) -> None:
    stranger, own, second = fixture(world, new_id()), fixture(world, asset_id), fixture(world, asset_id)
    world.claims[INSTALLED, str(asset_id)] = new_id()
    with expect_refusal("AssetCannotAttachToFixtureError", "not_in_bindings"):
        world.when(AttachAssetToFixture(fixture_id=stranger), on=asset_id)
    world.when(AttachAssetToFixture(fixture_id=own), on=asset_id)
    with expect_refusal("AssetCannotAttachToFixtureError", "already_attached"):
        world.when(AttachAssetToFixture(fixture_id=second), on=asset_id)
    with expect_refusal("AssetCannotDetachFromFixtureError", "other_fixture"):
        world.when(DetachAssetFromFixture(fixture_id=second), on=asset_id)
    assert asset_of(world, asset_id).fixture_id == own
    world.when(DetachAssetFromFixture(fixture_id=own), on=asset_id)
    with expect_refusal("AssetCannotDetachFromFixtureError", "not_attached"):
        world.when(DetachAssetFromFixture(fixture_id=own), on=asset_id)


def test_an_asset_that_is_in_no_mount_is_not_attached(world: World, asset_id: UUID) -> None:
    with expect_refusal("AssetCannotAttachToFixtureError", "not_installed"):
        world.when(AttachAssetToFixture(fixture_id=fixture(world, asset_id)), on=asset_id)
