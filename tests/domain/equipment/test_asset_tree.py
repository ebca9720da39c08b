"""How assets enter the tree, move in it and leave it, and what is found above and below them."""

from functools import cache
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from baton.domain.equipment.affordance import Affordance
from baton.domain.equipment.asset import ActivateAsset, AssetDecommissioned, AssetRegistered, AssetRelocated, AssetTier
from baton.domain.equipment.asset_parts import AttachAssetToFixture, DetachAssetFromFixture
from baton.domain.equipment.asset_tree import (
    CHILDREN,
    MAX_DEPTH,
    DecommissionAsset,
    GetAssetTree,
    RegisterAsset,
    RelocateAsset,
    affordances_of,
    ancestors_of,
)
from baton.domain.equipment.family import DeprecateFamily
from baton.domain.equipment.model import DeprecateModel
from baton.domain.equipment.mount import UninstallAsset
from baton.domain.shared.refusals import Conflict
from tests.support.domain.assets import (
    LUMEN,
    asset_of,
    enclosure,
    facility_world,
    family,
    fixture,
    hanging_chain,
    install_in_mount,
    model,
    part,
    root,
    run_reads,
)
from tests.support.domain.world import World, expect_refusal, new_id
from tests.support.tables import for_each


@pytest.fixture
def world() -> World:
    return facility_world()


def relocate_asset(world: World, asset_id: UUID, **fields: object) -> None:
    world.when(RelocateAsset(**{"reason": "moved", **fields}), on=asset_id)


def tree_nodes(world: World, asset_id: UUID, **fields: object) -> list[tuple[int, UUID]]:
    return [(node.depth, node.asset_id) for node in world.ask(GetAssetTree(**fields), on=asset_id).nodes]


def test_an_asset_has_exactly_one_anchor(world: World) -> None:
    beamline = root(world)
    with expect_refusal("InvalidAssetParentError", "two_anchors"):
        part(world, beamline, facility_code=LUMEN)
    with expect_refusal("InvalidAssetParentError", "no_anchor"):
        world.create(RegisterAsset(name="Rotary", tier="Device"))


def test_the_facility_must_be_registered_and_its_code_well_formed(world: World) -> None:
    with expect_refusal("AssetFacilityNotFoundError"):
        root(world, facility_code="nowhere")
    with expect_refusal("InvalidFacilityCodeError", "pattern"):
        root(world, facility_code="Lumen")
    with expect_refusal("InvalidFacilityCodeError", "blank"):
        root(world, facility_code="  ")


def test_what_is_missing_is_told_in_the_order_it_was_given(world: World) -> None:
    known, lost = family(world), new_id()
    missing: dict[str, tuple[str, object]] = {
        "AssetParentNotFoundError": ("parent_id", new_id()),
        "AssetFacilityNotFoundError": ("facility_code", "nowhere"),
        "FamilyNotFoundError": ("family_ids", [known, lost]),
        "ModelNotFoundError": ("model_id", new_id()),
        "EnclosureNotFoundError": ("located_in_enclosure_id", new_id()),
    }
    given = dict(missing.values())
    for refusal, (name, _) in missing.items():
        with expect_refusal(refusal) as caught:
            world.create(RegisterAsset(name=" ", tier="Device", **given))
        if name == "family_ids":
            assert caught.value.facts == {"missing_ids": [str(lost)]}
        del given[name]


def test_the_controller_is_not_sought(world: World) -> None:
    controller = new_id()
    assert asset_of(world, root(world, controller_id=controller)).controller_id == controller


def test_a_registration_records_everything_given_sorted(world: World) -> None:
    asset_id = part(
        world,
        root(world),
        name=" Rotary ",
        drawing={"system": "ICMS", "number": " D-17 "},
        alternate_identifiers=[{"kind": "Other", "value": "b"}, {"kind": "EPICS_PV", "value": " lum:m102 "}],
        owners=[{"name": "Zenith"}, {"name": "Lumen", "identifier": "https://ror.org/1", "identifier_type": "ROR"}],
    )
    (event,) = world.streams["Asset", asset_id]
    assert isinstance(event, AssetRegistered)
    assert (event.name, event.tier) == ("Rotary", AssetTier.DEVICE)
    assert event.drawing is not None
    assert (event.drawing.number, event.drawing.revision) == ("D-17", None)
    assert [(one.kind, one.value) for one in event.alternate_identifiers] == [("EPICS_PV", "lum:m102"), ("Other", "b")]
    assert [owner.name for owner in event.owners] == ["Lumen", "Zenith"]


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"name": " "}, "InvalidAssetNameError"),
        ({"drawing": {"system": "EDMS", "number": " "}}, "InvalidDrawingError"),
        ({"drawing": {"system": "EDMS", "number": "1", "revision": " "}}, "InvalidDrawingError"),
        ({"alternate_identifiers": [{"kind": "Other", "value": " "}]}, "InvalidAlternateIdentifierError"),
        ({"alternate_identifiers": [{"kind": "Other", "value": "a"}] * 2}, "InvalidAlternateIdentifierError"),
        ({"owners": [{"name": " "}]}, "InvalidAssetOwnerError"),
        ({"owners": [{"name": "Lumen", "identifier": "1"}]}, "InvalidAssetOwnerError"),
        ({"owners": [{"name": "Lumen", "identifier_type": "ROR"}]}, "InvalidAssetOwnerError"),
        ({"owners": [{"name": "Lumen"}, {"name": " Lumen "}]}, "InvalidAssetOwnerError"),
    ],
)
def test_a_registration_refuses_values_that_are_wrong_in_themselves(
    world: World, fields: dict[str, object], refusal: str
) -> None:
    with expect_refusal(refusal):
        root(world, **fields)


def test_the_families_of_the_model_come_with_it(world: World) -> None:
    stage, axis = family(world, "RotaryStage"), family(world, "PseudoAxis")
    asset_id = root(world, family_ids=[axis], model_id=model(world, stage))
    assert asset_of(world, asset_id).family_ids == {stage, axis}


def test_only_families_the_caller_names_must_not_be_deprecated(world: World) -> None:
    stage = family(world)
    model_id = model(world, stage)
    world.when(DeprecateFamily(), on=stage)
    world.when(DeprecateModel(), on=model_id)
    assert asset_of(world, root(world, model_id=model_id)).family_ids == {stage}
    with expect_refusal("AssetCannotRegisterError", "family_deprecated"):
        root(world, model_id=model_id, family_ids=[stage])


def test_nothing_is_registered_or_moved_below_a_decommissioned_parent(world: World) -> None:
    beamline = root(world)
    retired, rotary = part(world, beamline), part(world, beamline)
    world.when(DecommissionAsset(), on=retired)
    with expect_refusal("AssetCannotRegisterError", "parent_decommissioned"):
        part(world, retired)
    with expect_refusal("AssetCannotRelocateError", "parent_decommissioned"):
        relocate_asset(world, rotary, to_parent_id=retired)


def test_the_tree_is_at_most_fifty_levels_deep(world: World) -> None:
    links = hanging_chain(world, root(world), 50)
    with expect_refusal("AssetCannotRegisterError", "too_deep"):
        part(world, links[-1])
    table = part(world, links[0])
    top = part(world, table)
    bottom = part(world, top)
    with expect_refusal("AssetCannotRelocateError", "too_deep"):
        relocate_asset(world, top, to_parent_id=links[-2])
    relocate_asset(world, top, to_parent_id=links[-3])
    assert tree_nodes(world, bottom, direction="ancestors")[-1] == (MAX_DEPTH, links[0])


def test_relocation_moves_the_parent_the_enclosure_or_both(world: World) -> None:
    beamline = root(world)
    table, rotary = part(world, beamline), part(world, beamline)
    hutch, lab = enclosure(world, "Hutch"), enclosure(world, "Lab")
    relocate_asset(world, rotary, to_parent_id=table)
    relocate_asset(world, rotary, located_in_enclosure_id=hutch)
    relocate_asset(world, rotary, to_parent_id=beamline, located_in_enclosure_id=lab)
    relocate_asset(world, rotary, to_parent_id=beamline, located_in_enclosure_id=None)
    moves = [event for event in world.streams["Asset", rotary] if isinstance(event, AssetRelocated)]
    assert [(move.from_parent_id, move.to_parent_id) for move in moves] == [
        (beamline, table),
        (table, table),
        (table, beamline),
        (beamline, beamline),
    ]
    assert [(move.from_enclosure_id, move.to_enclosure_id) for move in moves] == [
        (None, None),
        (None, hutch),
        (hutch, lab),
        (lab, None),
    ]


def test_a_root_keeps_its_place_and_may_change_its_enclosure(world: World) -> None:
    beamline, hutch = root(world), enclosure(world)
    other = root(world)
    with expect_refusal("AssetCannotRelocateError", "root_has_no_parent"):
        relocate_asset(world, beamline, to_parent_id=other)
    relocate_asset(world, beamline, located_in_enclosure_id=hutch)
    assert asset_of(world, beamline).located_in_enclosure_id == hutch


def test_a_move_must_leave_a_tree_and_change_something(world: World) -> None:
    beamline, table, rotary = hanging_chain(world, root(world), 2)
    for fields, reason in (
        ({"to_parent_id": table}, "self_parent"),
        ({"to_parent_id": rotary}, "cycle"),
        ({"to_parent_id": beamline}, "no_change"),
        ({"located_in_enclosure_id": None}, "no_change"),
    ):
        with expect_refusal("AssetCannotRelocateError", reason):
            relocate_asset(world, table, **fields)
    with expect_refusal("AssetParentNotFoundError"):
        relocate_asset(world, table, to_parent_id=new_id(), located_in_enclosure_id=new_id())
    with expect_refusal("EnclosureNotFoundError"):
        relocate_asset(world, table, to_parent_id=table, located_in_enclosure_id=new_id(), reason=" ")
    with expect_refusal("InvalidReasonError"):
        relocate_asset(world, table, to_parent_id=rotary, reason=" ")


@for_each("fields", [{}, {"to_parent_id": None}, {"to_parent_id": None, "located_in_enclosure_id": None}])
def test_a_relocation_names_a_parent_that_is_not_null_or_an_enclosure(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RelocateAsset(reason="moved", **fields)


def test_decommissioning_asks_for_fixture_mount_and_children_in_this_order(world: World) -> None:
    asset_id = part(world, root(world))
    child = part(world, asset_id)
    world.when(ActivateAsset(), on=asset_id)
    mount_id = install_in_mount(world, asset_id)
    fixture_id = fixture(world, asset_id)
    world.when(AttachAssetToFixture(fixture_id=fixture_id), on=asset_id)
    for reason, key, id, mend in (
        ("fixture_bound", "fixture_id", str(fixture_id), (DetachAssetFromFixture(fixture_id=fixture_id), asset_id)),
        ("installed", "mount_id", str(mount_id), (UninstallAsset(reason="swap"), mount_id)),
        ("active_children", "asset_ids", [str(child)], (DecommissionAsset(), child)),
    ):
        with expect_refusal("AssetCannotDecommissionError", reason) as refusal:
            world.when(DecommissionAsset(), on=asset_id)
        assert refusal.value.facts == {key: id}
        world.when(mend[0], on=mend[1])
    assert world.when(DecommissionAsset(), on=asset_id) == [AssetDecommissioned()]


def test_ancestors_are_found_for_several_assets_at_once_themselves_first(world: World) -> None:
    beamline, table, rotary = hanging_chain(world, root(world), 2)
    camera = part(world, beamline)
    found = run_reads(world, ancestors_of([rotary, camera, new_id()]))
    assert list(found) == [rotary, camera, table, beamline]


def test_an_asset_affords_what_all_its_families_afford_deprecated_ones_included(world: World) -> None:
    stage, camera = family(world, "Stage", None, "Rotatable"), family(world, "Camera", None, "Imageable", "Capturing")
    both, none = root(world, family_ids=[stage, camera]), root(world)
    world.when(DeprecateFamily(), on=stage)
    found = run_reads(world, affordances_of([asset_of(world, both), asset_of(world, none)]))
    assert found == {both: {Affordance.ROTATABLE, Affordance.IMAGEABLE, Affordance.CAPTURING}, none: set()}


def test_the_tree_lists_what_is_below_by_depth_and_id_and_what_is_above(world: World) -> None:
    beamline = root(world)
    table, bench = part(world, beamline, name="Table"), part(world, beamline, name="Bench")
    rotary = part(world, bench)
    camera = part(world, table)
    below = sorted([rotary, camera])
    assert tree_nodes(world, beamline) == [(0, beamline), (1, table), (1, bench), *((2, id) for id in below)]
    assert tree_nodes(world, beamline, max_depth=1) == [(0, beamline), (1, table), (1, bench)]
    assert tree_nodes(world, rotary, direction="ancestors") == [(0, rotary), (1, bench), (2, beamline)]
    assert tree_nodes(world, rotary, direction="ancestors", max_depth=1) == [(0, rotary), (1, bench)]
    node = world.ask(GetAssetTree(), on=rotary).nodes[0]
    assert (node.name, node.parent_id, node.lifecycle) == ("Rotary", bench, "Commissioned")


@cache
def built_chain(depth: int) -> tuple[World, list[UUID]]:
    world = facility_world()
    return world, [*hanging_chain(world, root(world), depth), root(world)]


def copied_chain(depth: int) -> tuple[World, list[UUID]]:
    """A world with a chain of assets and another root, and the assets in it."""
    world, assets = built_chain(depth)
    return world.copy(), assets.copy()


MOVES = st.lists(st.tuples(st.booleans(), st.integers(0, 99), st.integers(0, 99)), max_size=30)


@given(moves=MOVES, depth=st.sampled_from([0, 1, MAX_DEPTH - 3, MAX_DEPTH]))
def test_no_sequence_of_registrations_and_moves_breaks_the_tree(moves: list[tuple[bool, int, int]], depth: int) -> None:
    world, assets = copied_chain(depth)
    for registers, one, other in moves:
        try:
            if registers:
                assets.append(part(world, assets[other % len(assets)]))
            else:
                relocate_asset(world, assets[one % len(assets)], to_parent_id=assets[other % len(assets)])
        except Conflict:
            continue
    parents = {id: asset_of(world, id).parent_id for id in assets}
    for id in assets:
        steps, above = 0, parents[id]
        while above is not None:
            steps, above = steps + 1, parents[above]
            assert steps <= MAX_DEPTH, "an asset stands too deep, or in a circle"
        assert world.members[CHILDREN, str(id)] == {child for child, parent in parents.items() if parent == id}
