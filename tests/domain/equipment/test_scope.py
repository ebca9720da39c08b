"""The scope of gates: bound assets and everything above them, or an error, never less."""

from uuid import UUID

import pytest

from baton.domain.equipment.asset import AssetRelocated
from baton.domain.equipment.asset_tree import MAX_DEPTH, DecommissionAsset, asset_scope
from tests.support.domain.assets import (
    LUMEN,
    enclosure,
    facility_world,
    hanging_chain,
    part,
    requested_reads,
    root,
    run_reads,
)
from tests.support.domain.world import World, expect_refusal, new_id


@pytest.fixture
def world() -> World:
    return facility_world()


def relocate_unchecked(world: World, asset_id: UUID, to_parent_id: UUID | None) -> None:
    """Move an asset as no verb would allow, as damaged data could."""
    nowhere = {"from_parent_id": None, "from_enclosure_id": None, "to_enclosure_id": None}
    world.given(asset_id, AssetRelocated(to_parent_id=to_parent_id, reason="damage", **nowhere))


def test_nothing_bound_is_an_empty_scope_that_asks_nothing(world: World) -> None:
    assert requested_reads(world, asset_scope([])) == []
    scope = run_reads(world, asset_scope([]))
    assert (scope.bound_ids, scope.assets, scope.ancestor_ids) == (frozenset(), {}, frozenset())
    assert (scope.facility_codes, scope.enclosure_ids) == (frozenset(), frozenset())


def test_every_ancestor_of_every_bound_asset_is_in_scope(world: World) -> None:
    world.claims["facility-code", "north-ring"] = new_id()
    beamline, table, rotary = hanging_chain(world, root(world), 2)
    bench, camera = hanging_chain(world, root(world, facility_code="north-ring"), 1)
    sibling = part(world, table)
    scope = run_reads(world, asset_scope([rotary, table, camera]))
    assert scope.bound_ids == {rotary, table, camera}
    assert scope.ancestor_ids == {beamline, bench}
    assert sibling not in scope.assets
    assert scope.facility_codes == {LUMEN, "north-ring"}


def test_an_enclosure_counts_at_whatever_height_it_is_named(world: World) -> None:
    hutch = enclosure(world)
    chain = hanging_chain(world, root(world, located_in_enclosure_id=hutch), MAX_DEPTH)
    for depth, bound in enumerate(chain):
        scope = run_reads(world, asset_scope([bound]))
        assert scope.enclosure_ids == {hutch}
        assert scope.facility_codes == {LUMEN}
        assert len(scope.assets) == depth + 1


def test_the_enclosures_of_a_scope_are_distinct(world: World) -> None:
    hutch, cabinet = enclosure(world, "Hutch"), enclosure(world, "Cabinet")
    beamline = root(world, located_in_enclosure_id=hutch)
    table = part(world, beamline)
    rotary = part(world, table, located_in_enclosure_id=hutch)
    camera = part(world, table, located_in_enclosure_id=cabinet)
    assert run_reads(world, asset_scope([rotary])).enclosure_ids == {hutch}
    assert run_reads(world, asset_scope([rotary, camera])).enclosure_ids == {hutch, cabinet}


def test_a_decommissioned_ancestor_is_in_scope_all_the_same(world: World) -> None:
    hutch = enclosure(world)
    beamline, table, rotary = hanging_chain(world, root(world, located_in_enclosure_id=hutch), 2)
    for id in (rotary, table, beamline):
        world.when(DecommissionAsset(), on=id)
    scope = run_reads(world, asset_scope([rotary]))
    assert scope.assets.keys() == {rotary, table, beamline}
    assert scope.enclosure_ids == {hutch}


def test_a_controller_adds_nothing(world: World) -> None:
    controller = root(world, located_in_enclosure_id=enclosure(world))
    rotary = part(world, root(world), controller_id=controller)
    scope = run_reads(world, asset_scope([rotary]))
    assert controller not in scope.assets
    assert scope.enclosure_ids == frozenset()


def test_unknown_assets_are_named(world: World) -> None:
    unknown = sorted([new_id(), new_id()])
    with expect_refusal("AssetNotFoundError") as refusal:
        run_reads(world, asset_scope([*unknown, root(world)]))
    assert refusal.value.facts == {"missing_ids": [str(id) for id in unknown]}


def test_a_circle_is_an_error(world: World) -> None:
    beamline, table, rotary = hanging_chain(world, root(world), 2)
    relocate_unchecked(world, beamline, rotary)
    for bound in (beamline, table, rotary):
        with expect_refusal("AncestorWalkDepthExceededError"):
            run_reads(world, asset_scope([bound]))


def test_one_damaged_chain_among_good_ones_is_an_error(world: World) -> None:
    good = part(world, root(world))
    alone = root(world)
    relocate_unchecked(world, alone, alone)
    with expect_refusal("AncestorWalkDepthExceededError"):
        run_reads(world, asset_scope([good, alone]))


def test_fifty_levels_are_walked_and_fifty_one_are_an_error(world: World) -> None:
    beamline, *_, deepest = hanging_chain(world, root(world), MAX_DEPTH)
    assert len(run_reads(world, asset_scope([deepest])).assets) == MAX_DEPTH + 1
    relocate_unchecked(world, beamline, root(world))
    with expect_refusal("AncestorWalkDepthExceededError"):
        run_reads(world, asset_scope([deepest]))


def test_a_chain_that_ends_nowhere_is_an_error(world: World) -> None:
    beamline, table = hanging_chain(world, root(world), 1)
    relocate_unchecked(world, beamline, new_id())
    with expect_refusal("AncestorWalkDepthExceededError"):
        run_reads(world, asset_scope([table]))


def test_a_level_is_one_read_however_wide(world: World) -> None:
    beamline = root(world)
    bound = [part(world, part(world, beamline)) for _ in range(20)]
    levels = dict.fromkeys(frozenset(request.ids) for request in requested_reads(world, asset_scope(bound)))
    assert [len(ids) for ids in levels] == [20, 20, 1]
