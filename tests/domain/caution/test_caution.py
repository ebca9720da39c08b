"""What a caution says, how it is replaced and retired, and which of them a list shows."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from baton.domain.caution.caution import (
    TARGETED,
    CautionSummary,
    ListCautions,
    RegisterCaution,
    RetireCaution,
    SupersedeCaution,
)
from baton.domain.kernel import Call, instant
from baton.domain.shared.listing import Page, Where
from baton.domain.shared.reads import Rows
from baton.domain.shared.refusals import Refusal
from tests.support.domain.assets import facility_world, part, root
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
from tests.support.tables import for_each

STAGE = new_id()


@pytest.fixture
def world() -> World:
    return World()


def cautions_on(world: World, target_id: UUID) -> set[UUID]:
    """The cautions that look-ups find on an asset."""
    return world.members[TARGETED, f"Asset {target_id}"]


def payloads(world: World, id: UUID) -> list[tuple[str, dict[str, Any]]]:
    return [(type(event).__name__, json.loads(event.payload())) for event in world.streams["Caution", id]]


def test_a_caution_from_its_registration_to_its_retirement(world: World) -> None:
    fields = {"tags": ["rotary"], "expires_at": "2026-12-31T00:00:00Z", "propagate_to_children": True}
    first = register_caution(world, on_asset(STAGE), **fields)
    second = supersede_caution(world, first, on_asset(STAGE), severity="Warning", **fields)
    world.when(RetireCaution(reason="Resolved"), on=second)
    texts = {
        "target": {"kind": "Asset", "id": str(STAGE)},
        "category": "OperationalWindow",
        "text": DRIFT,
        "workaround": WAIT,
        **fields,
        "authored_by": str(OPERATOR),
    }
    once, then, last = (instant(START + timedelta(seconds=seconds)) for seconds in (1, 2, 3))
    parent, child = {"caution_id": str(first)}, {"caution_id": str(second)}
    assert payloads(world, first) == [
        ("CautionRegistered", {**parent, **texts, "severity": "Caution", "parent_id": None, "occurred_at": once}),
        ("CautionSuperseded", {**parent, "superseded_by_caution_id": str(second), "occurred_at": then}),
    ]
    assert payloads(world, second) == [
        ("CautionRegistered", {**child, **texts, "severity": "Warning", "parent_id": str(first), "occurred_at": then}),
        ("CautionRetired", {**child, "reason": "Resolved", "retired_by": str(OPERATOR), "occurred_at": last}),
    ]


@pytest.mark.parametrize("kind", ["Asset", "Procedure", "Recipe", "Plan"])
def test_a_caution_is_about_something_that_exists(world: World, kind: str) -> None:
    target_id = new_id()
    with expect_refusal("CautionTargetNotFoundError") as caught:
        world.create(RegisterCaution(**caution_fields({"kind": kind, "id": target_id})))
    assert caught.value.status == 404
    assert caught.value.detail.startswith(f"There is no {kind.lower()} {target_id}")
    assert cautions_on(world, target_id) == set()


def test_a_caution_is_superseded_on_its_own_target_only(world: World) -> None:
    id = register_caution(world, on_asset(STAGE))
    for other in (on_asset(new_id()), on_procedure(STAGE)):
        with expect_refusal("InvalidCautionSupersedeTargetError", "other_target") as caught:
            supersede_caution(world, id, other)
        assert caught.value.status == 400
        assert caught.value.facts == {"target": {"kind": "Asset", "id": str(STAGE)}}


def test_the_fold_remembers_what_became_of_a_caution(world: World) -> None:
    first = register_caution(world, on_asset(STAGE))
    assert caution_of(world, first).last_status_changed_at is None
    second = supersede_caution(world, first, on_asset(STAGE))
    parent, child = caution_of(world, first), caution_of(world, second)
    assert (parent.status, parent.superseded_by_caution_id, parent.last_status_changed_at) == (
        "Superseded",
        second,
        world.now,
    )
    assert (child.status, child.parent_id, child.registered_at) == ("Active", first, world.now)
    world.when(RetireCaution(reason="NoLongerApplies"), on=second)
    retired = caution_of(world, second)
    assert (retired.status, retired.retired_reason, retired.last_status_changed_at) == (
        "Retired",
        "NoLongerApplies",
        world.now,
    )


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
    assert payloads(world, id)[0][1]["tags"] == ["a", "z"]


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
    with expect_refusal(refusal) as caught:
        register_caution(world, on_asset(STAGE), **fields)
    assert caught.value.status == 400
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
    with expect_refusal("CautionNotFoundError"):
        world.when(SupersedeCaution(**wrong), on=new_id())
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


@for_each(
    "fields",
    [
        {"text": "x" * 2001},
        {"workaround": ""},
        {"tags": ["x" * 51]},
        {"tags": [""]},
        {"severity": "Danger"},
        {"category": "Mood"},
        {"target": {"kind": "Run", "id": STAGE}},
        {"expires_at": "2026-12-31T00:00:00"},
        {"authored_by": STAGE},
        {"parent_id": STAGE},
    ],
)
def test_what_has_the_wrong_form_is_no_caution(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RegisterCaution(**{**caution_fields(on_asset(STAGE)), **fields})


def test_the_longest_texts_are_taken(world: World) -> None:
    longest = {"text": "x" * 2000, "workaround": "y" * 2000, "tags": ["z" * 50]}
    assert len(caution_of(world, register_caution(world, on_asset(STAGE), **longest)).text) == 2000


def test_a_row_shows_the_columns_of_the_list(world: World) -> None:
    id = register_caution(world, on_procedure(STAGE), propagate_to_children=True)
    row = CautionSummary.of(caution_of(world, id))
    assert (row.caution_id, row.target_kind, row.target_id) == (id, "Procedure", STAGE)
    assert list(CautionSummary.item_form().model_fields) == [
        "caution_id",
        "target",
        "category",
        "severity",
        "text",
        "workaround",
        "authored_by",
        "tags",
        "expires_at",
        "propagate_to_children",
        "status",
        "parent_id",
        "superseded_by_caution_id",
        "retired_reason",
        "registered_at",
        "last_status_changed_at",
    ]


def test_only_active_cautions_are_listed_unless_asked_otherwise() -> None:
    assert list(ListCautions().where()) == [Where("status", "in", ("Active",))]
    assert list(ListCautions(status=["Retired", "Active"]).where()) == [Where("status", "in", ("Retired", "Active"))]
    assert list(ListCautions(status=["all"]).where()) == []


def test_every_filter_becomes_a_condition() -> None:
    author = new_id()
    query = ListCautions(
        target_kind="Asset",
        target_id=STAGE,
        category="Wear",
        severity=["Notice", "Warning"],
        status=["all"],
        tag="rotary",
        authored_by=author,
    )
    assert list(query.where()) == [
        Where("target_kind", "is", "Asset"),
        Where("target_id", "is", STAGE),
        Where("category", "is", "Wear"),
        Where("severity", "in", ("Notice", "Warning")),
        Where("tags", "has", "rotary"),
        Where("authored_by", "is", author),
    ]


@for_each(
    ("least", "kept"),
    [("Notice", ("Notice", "Caution", "Warning")), ("Caution", ("Caution", "Warning")), ("Warning", ("Warning",))],
)
def test_a_least_severity_keeps_it_and_every_stronger_one(least: str, kept: tuple[str, ...]) -> None:
    assert list(ListCautions(status=["all"], min_severity=least).where()) == [Where("severity", "in", kept)]


@for_each(
    "filters",
    [
        {"severity": ["Notice"], "min_severity": "Notice"},
        {"status": ["all", "Active"]},
        {"status": []},
        {"status": ["Expired"]},
        {"inherited": True},
        {"inherited": True, "target_kind": "Asset"},
        {"inherited": True, "target_id": STAGE},
        {"inherited": True, "target_kind": "Procedure", "target_id": STAGE},
    ],
)
def test_filters_that_do_not_agree_are_malformed(filters: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ListCautions(**filters)


def conditions(world: World, query: ListCautions) -> tuple[Where, ...]:
    """Return the conditions that a list asks the store with."""
    asked: list[Rows] = []

    def answer_reads() -> Any:
        reads = query.answer(Call(OPERATOR, world.surface_id, world.now, new_id(), new_id()))
        request = next(reads)
        while not isinstance(request, Rows):
            request = reads.send((yield request))
        asked.append(request)
        reads.close()

    world.fulfil(answer_reads())
    return asked[0].where


def test_what_is_in_effect_is_active_and_not_yet_over(world: World) -> None:
    assert conditions(world, ListCautions(status=["all"], in_effect=True)) == (
        Where("status", "is", "Active"),
        Where("expires_at", "after_or_null", world.now),
    )


def test_inherited_cautions_are_those_that_propagate_from_above() -> None:
    world = facility_world()
    beamline = root(world)
    table = part(world, beamline)
    stage = part(world, table)
    query = ListCautions(target_kind="Asset", target_id=stage, inherited=True, status=["all"])
    assert conditions(world, query) == (
        Where("target_kind", "is", "Asset"),
        Where("reaches", "has_any", (str(stage), f"below {beamline}", f"below {table}")),
    )


def test_inheritance_of_an_unknown_asset_is_its_own_cautions(world: World) -> None:
    query = ListCautions(target_kind="Asset", target_id=STAGE, inherited=True, status=["all"])
    assert conditions(world, query)[1] == Where("reaches", "has_any", (str(STAGE),))


def test_a_caution_reaches_below_its_target_only_where_it_propagates(world: World) -> None:
    near, far = (
        register_caution(world, on_asset(STAGE)),
        register_caution(world, on_asset(STAGE), propagate_to_children=True),
    )
    assert caution_of(world, near).reaches == {str(STAGE)}
    assert caution_of(world, far).reaches == {str(STAGE), f"below {STAGE}"}


def test_a_list_answers_the_page_it_was_given(world: World) -> None:
    reads = ListCautions().answer(Call(OPERATOR, world.surface_id, world.now, new_id(), new_id()))
    assert isinstance(next(reads), Rows)
    page: Page[Any] = Page((), None)
    with pytest.raises(StopIteration) as done:
        reads.send(page)
    assert done.value.value is page


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
