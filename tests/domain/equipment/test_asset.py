"""An asset's two axes, its name, and the fold of its life."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.contexts import REGISTRY
from baton.domain.equipment.asset import (
    ActivateAsset,
    Asset,
    AssetAttachedToFixture,
    AssetCondition,
    AssetDegraded,
    AssetLifecycle,
    AssetRenamed,
    DegradeAsset,
    EnterAssetMaintenance,
    ExitAssetMaintenance,
    FaultAsset,
    RenameAsset,
    RestoreAsset,
    asset,
)
from baton.domain.equipment.asset_external_id import AssignAssetExternalId
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
    UpdateAssetSettings,
)
from baton.domain.equipment.asset_tree import DecommissionAsset, RelocateAsset
from baton.domain.kernel import Command
from baton.domain.shared.refusals import Refusal
from tests.support.domain.assets import asset_of, facility_world, family, fixture, part, root
from tests.support.domain.world import World, expect_refusal, new_id

LIFECYCLE_VERBS = (ActivateAsset, EnterAssetMaintenance, ExitAssetMaintenance, DecommissionAsset)
CONDITION_VERBS = (DegradeAsset, FaultAsset, RestoreAsset)


@pytest.fixture
def world() -> World:
    return facility_world()


def decommissioned_asset(world: World) -> UUID:
    asset_id = root(world)
    world.when(DecommissionAsset(), on=asset_id)
    return asset_id


def verb_of(verb: type[Command]) -> Command:
    return verb(reason="runout above 1 micron") if verb in CONDITION_VERBS else verb()


def test_an_asset_begins_commissioned_and_nominal(world: World) -> None:
    asset = asset_of(world, root(world))
    assert (asset.lifecycle, asset.condition) == (AssetLifecycle.COMMISSIONED, AssetCondition.NOMINAL)
    assert asset.commissioned_at == asset.created_at == world.now


@pytest.mark.parametrize("verb", CONDITION_VERBS)
def test_a_condition_verb_needs_a_reason(world: World, verb: type[Command]) -> None:
    with expect_refusal("InvalidReasonError"):
        world.when(verb(reason="  "), on=root(world))


def test_a_reason_is_stored_trimmed(world: World) -> None:
    assert world.when(DegradeAsset(reason=" runout "), on=root(world)) == [AssetDegraded(reason="runout")]


def test_decommissioning_keeps_the_condition_and_notes_the_time(world: World) -> None:
    asset_id = root(world)
    world.when(FaultAsset(reason="encoder lost"), on=asset_id)
    world.when(DecommissionAsset(), on=asset_id)
    asset = asset_of(world, asset_id)
    assert (asset.condition, asset.decommissioned_at) == (AssetCondition.FAULTED, world.now)


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
    with expect_refusal("AssetCannotAddFamilyError", "decommissioned"):
        world.when(AddAssetFamily(family_id=family(world)), on=asset_id)
    with expect_refusal("AssetCannotAttachToFixtureError", "decommissioned"):
        world.when(AttachAssetToFixture(fixture_id=fixture(world, asset_id)), on=asset_id)


@given(verbs=st.lists(st.sampled_from(LIFECYCLE_VERBS + CONDITION_VERBS), max_size=12))
def test_neither_axis_hears_of_the_other(verbs: list[type[Command]]) -> None:
    def asset_after(kinds: tuple[type[Command], ...]) -> Asset:
        world = facility_world()
        asset_id = root(world)
        for verb in verbs:
            if verb in kinds:
                attempt_verb(world, verb_of(verb), asset_id)
        return asset_of(world, asset_id)

    both = asset_after(LIFECYCLE_VERBS + CONDITION_VERBS)
    assert both.lifecycle is asset_after(LIFECYCLE_VERBS).lifecycle
    assert both.condition is asset_after(CONDITION_VERBS).condition


def attempt_verb(world: World, command: Command, asset_id: UUID) -> None:
    try:
        world.when(command, on=asset_id)
    except Refusal:
        return


NAMES = st.sampled_from(["a", "b", "c"])
SOME_LIFE = st.one_of(
    st.sampled_from(LIFECYCLE_VERBS[:3] + CONDITION_VERBS).map(verb_of),
    st.builds(RenameAsset, name=NAMES),
    st.builds(AddAssetPort, port_name=NAMES, direction=st.sampled_from(["Input", "Output"]), signal_type=NAMES),
    st.builds(RemoveAssetPort, port_name=NAMES),
    st.builds(AddAssetAlternateIdentifier, kind=st.sampled_from(["EPICS_PV", "Other"]), value=NAMES),
    st.builds(RemoveAssetAlternateIdentifier, kind=st.sampled_from(["EPICS_PV", "Other"]), value=NAMES),
    st.builds(AddAssetOwner, name=NAMES),
    st.builds(RemoveAssetOwner, name=NAMES),
    st.builds(UpdateAssetSettings, settings_patch=st.dictionaries(NAMES, st.none() | st.integers(0, 3), max_size=2)),
    st.builds(
        UpdateAssetPartitionRule,
        partition_rule=st.sampled_from([None, {"kind": "Affine", "gain": 2.0}, {"kind": "Aggregation"}]),
    ),
)


@given(life=st.lists(SOME_LIFE, max_size=25), ends=st.booleans())
def test_every_prefix_of_a_life_folds_and_survives_storage(life: list[Command], ends: bool) -> None:
    world = facility_world()
    parent_id = root(world)
    asset_id = part(world, parent_id, family_ids=[family(world, "Anything", {})])
    fixture_id = fixture(world, asset_id)
    world.given(asset_id, AssetAttachedToFixture(fixture_id=fixture_id))
    for command in (*life, DetachAssetFromFixture(fixture_id=fixture_id)):
        attempt_verb(world, command, asset_id)
    if ends:
        world.when(DecommissionAsset(), on=asset_id)
    events = world.streams["Asset", asset_id]
    stored = [asset.decode(type(event).__name__, event.payload(), asset_id, event.occurred_at) for event in events]
    assert stored == events
    for length in range(1, len(events) + 1):
        state = asset.fold(stored[:length])
        assert state is not None
        assert list(state.ports) == sorted(state.ports, key=lambda port: port.name)
        assert len({port.name for port in state.ports}) == len(state.ports)
        assert len({owner.name for owner in state.owners}) == len(state.owners)
        assert len(set(state.alternate_identifiers)) == len(state.alternate_identifiers)


def test_one_asset_shows_every_field_of_its_state(world: World) -> None:
    asset_id = part(world, root(world), alternate_identifiers=[{"kind": "EPICS_PV", "value": "lum:m102"}])
    shown = world.ask(REGISTRY.operations["get_asset"].input(), on=asset_id)
    assert shown.model_dump().keys() == {"asset_id", *asset_of(world, asset_id).__dict__}
    assert '"alternate_identifiers":[{"kind":"EPICS_PV","value":"lum:m102"}]' in shown.model_dump_json()
