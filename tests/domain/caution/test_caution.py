"""What a caution says, and how it is replaced and retired."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from baton.domain.caution.caution import TARGETED, ListCautions, RegisterCaution, RetireCaution, SupersedeCaution
from baton.domain.kernel import Call
from baton.domain.shared.listing import Where
from baton.domain.shared.reads import Rows, Streams
from baton.domain.shared.refusals import Refusal
from tests.support.domain.cautions import (
    DRIFT,
    WAIT,
    caution_fields,
    caution_of,
    on_asset,
    on_procedure,
    register_caution,
    supersede_caution,
)
from tests.support.domain.world import OPERATOR, START, World, expect_refusal, new_id

STAGE = new_id()


@pytest.fixture
def world() -> World:
    return World()


def cautions_on(world: World, target_id: UUID) -> set[UUID]:
    """The cautions that look-ups find on an asset."""
    return world.members[TARGETED, f"Asset {target_id}"]


@pytest.mark.parametrize("kind", ["Asset", "Procedure", "Recipe", "Plan"])
def test_a_caution_is_about_something_that_exists(world: World, kind: str) -> None:
    target_id = new_id()
    with expect_refusal("CautionTargetNotFoundError") as caught:
        world.create(RegisterCaution(**caution_fields({"kind": kind, "id": target_id})))
    assert caught.value.detail.startswith(f"There is no {kind.lower()} {target_id}")
    assert cautions_on(world, target_id) == set()


def test_a_caution_is_superseded_on_its_own_target_only(world: World) -> None:
    id = register_caution(world, on_asset(STAGE))
    for other in (on_asset(new_id()), on_procedure(STAGE)):
        with expect_refusal("InvalidCautionSupersedeTargetError", "other_target") as caught:
            supersede_caution(world, id, other)
        assert caught.value.facts == {"target": {"kind": "Asset", "id": str(STAGE)}}


def test_the_fold_remembers_what_became_of_a_caution(world: World) -> None:
    first = register_caution(world, on_asset(STAGE))
    assert caution_of(world, first).last_status_changed_at is None
    second = supersede_caution(world, first, on_asset(STAGE))
    parent, child = caution_of(world, first), caution_of(world, second)
    assert (parent.superseded_by_caution_id, parent.last_status_changed_at) == (second, world.now)
    assert (child.status, child.parent_id, child.registered_at) == ("Active", first, world.now)
    world.when(RetireCaution(reason="NoLongerApplies"), on=second)
    retired = caution_of(world, second)
    assert (retired.retired_reason, retired.last_status_changed_at) == ("NoLongerApplies", world.now)


def test_nothing_is_copied_from_the_caution_that_is_superseded(world: World) -> None:
    first = register_caution(world, on_asset(STAGE), tags=["rotary"], propagate_to_children=True)
    world.principal_id = new_id()
    child = caution_of(world, supersede_caution(world, first, on_asset(STAGE), text="Drift is gone"))
    assert (child.text, child.tags, child.propagate_to_children) == ("Drift is gone", frozenset(), False)
    assert child.authored_by == world.principal_id


def test_only_active_cautions_are_found_by_their_target(world: World) -> None:
    first, other = register_caution(world, on_asset(STAGE)), register_caution(world, on_asset(new_id()))
    assert cautions_on(world, STAGE) == {first}
    second = supersede_caution(world, first, on_asset(STAGE))
    assert cautions_on(world, STAGE) == {second}
    world.when(RetireCaution(reason="WrongTarget"), on=second)
    assert cautions_on(world, STAGE) == set()
    assert cautions_on(world, caution_of(world, other).target.id) == {other}


def test_texts_are_kept_trimmed_and_tags_as_a_sorted_set(world: World) -> None:
    id = register_caution(world, on_asset(STAGE), text=f" {DRIFT} ", tags=[" z", "a", "z ", "a"])
    assert caution_of(world, id).text == DRIFT
    assert json.loads(world.streams["Caution", id][0].payload())["tags"] == ["a", "z"]


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"text": "  "}, "InvalidCautionTextError"),
        ({"workaround": "\t"}, "InvalidCautionWorkaroundError"),
        ({"tags": ["rotary", " "]}, "InvalidCautionTagError"),
        ({"expires_at": START}, "InvalidCautionExpiresAtError"),
    ],
)
def test_a_caution_is_refused_for_each_of_its_values(world: World, fields: dict[str, Any], refusal: str) -> None:
    with expect_refusal(refusal):
        register_caution(world, on_asset(STAGE), **fields)
    first = register_caution(world, on_asset(STAGE))
    with expect_refusal(refusal):
        supersede_caution(world, first, on_asset(STAGE), **fields)


def test_a_caution_expires_strictly_after_now(world: World) -> None:
    decided = world.now + timedelta(seconds=1)
    with expect_refusal("InvalidCautionExpiresAtError", "past"):
        register_caution(world, on_asset(STAGE), expires_at=decided)
    expiry = world.now + timedelta(seconds=1, microseconds=1)
    assert caution_of(world, register_caution(world, on_asset(STAGE), expires_at=expiry)).expires_at == expiry


def test_superseding_is_judged_in_its_order(world: World) -> None:
    wrong = caution_fields(on_asset(new_id()), text=" ", workaround=" ", tags=[" "], expires_at=START)
    gone, active = register_caution(world, on_asset(STAGE)), register_caution(world, on_asset(STAGE))
    world.when(RetireCaution(reason="Resolved"), on=gone)
    with expect_refusal("CautionCannotSupersedeError", "retired"):
        world.when(SupersedeCaution(**wrong), on=gone)
    corrections = [
        ("InvalidCautionTextError", "text", DRIFT),
        ("InvalidCautionWorkaroundError", "workaround", WAIT),
        ("InvalidCautionTagError", "tags", ["rotary"]),
        ("InvalidCautionExpiresAtError", "expires_at", None),
        ("InvalidCautionSupersedeTargetError", "target", on_asset(STAGE)),
    ]
    for refusal, field, correction in corrections:
        with expect_refusal(refusal):
            world.when(SupersedeCaution(**wrong), on=active)
        wrong[field] = correction
    world.when(SupersedeCaution(**wrong), on=active)


def test_a_time_has_an_offset_and_inheritance_a_kind_and_an_asset(world: World) -> None:
    with pytest.raises(ValidationError):
        RegisterCaution(**caution_fields(on_asset(STAGE), expires_at="2026-12-31T00:00:00"))
    with pytest.raises(ValidationError):
        ListCautions(inherited=True, target_id=STAGE)
    query = ListCautions(target_kind="Asset", target_id=STAGE, inherited=True, status=["all"])
    reads = query.answer(Call(OPERATOR, world.surface_id, world.now, new_id(), new_id()))
    assert isinstance(next(reads), Streams)
    listed = reads.send({})
    assert isinstance(listed, Rows)
    assert Where("reaches", "has_any", (str(STAGE),)) in listed.where, "an unknown asset has its own cautions alone"


@given(st.lists(st.tuples(st.sampled_from(["register", "supersede", "retire"]), st.integers(0, 9)), max_size=20))
def test_look_ups_find_exactly_the_active_cautions(steps: list[tuple[str, int]]) -> None:
    world, known = World(), [new_id()]
    for verb, number in steps:
        id = known[number % len(known)]
        try:
            match verb:
                case "register":
                    known.append(register_caution(world, on_asset(STAGE)))
                case "supersede":
                    known.append(supersede_caution(world, id, on_asset(STAGE)))
                case "retire":
                    world.when(RetireCaution(reason="Resolved"), on=id)
        except Refusal:
            continue
    active = {id for name, id in world.streams if name == "Caution" and caution_of(world, id).status == "Active"}
    assert cautions_on(world, STAGE) == active
    assert {id for name, id in world.streams if name == "Caution"} == set(known[1:])
