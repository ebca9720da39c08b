"""Decisions: who may file one in whose name, what a correction points at, and what is added later."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from baton.domain.access.actor import ActorKind, ActorRegistered, DeactivateActor, RegisterActor
from baton.domain.decision.decision import (
    AppendInferences,
    ConfidenceBand,
    Decision,
    DecisionLogbookOpened,
    DecisionRated,
    DecisionRegistered,
    RateDecision,
    RegisterDecision,
    confidence_band_of,
)
from baton.domain.registry import REGISTRY
from tests.support.domain.world import OPERATOR, START, World, expect_refusal, new_id
from tests.support.tables import for_each


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def anna(world: World) -> UUID:
    return world.create(RegisterActor(name="Anna Reis"))


def register_decision(world: World, decider: UUID, **fields: Any) -> UUID:
    return world.create(RegisterDecision(**{"decided_by": decider, "context": "RunAbort", "choice": "abort", **fields}))


def agent(world: World, id: UUID) -> UUID:
    world.given(id, ActorRegistered(kind=ActorKind.AGENT))
    return id


def span(**fields: Any) -> dict[str, Any]:
    given = {"event_id": new_id(), "occurred_at": START, "operation_name": "chat", "provider_name": "acme"}
    return {**given, "request_model": "m-1", **fields}


def test_the_worked_example(world: World, anna: UUID) -> None:
    lead = world.create(RegisterActor(name="Lead"))
    first = {
        "decided_by": anna,
        "context": "RunAbort",
        "choice": "abort scan, sample drifted",
        "rule": "iso17025:7.1.3:simple_acceptance",
        "confidence": 0.9,
        "confidence_source": "human",
        "alternatives": ["hold", "stop", "abort"],
        "inputs": {"drift": 0.042},
    }
    (event,) = world.when(RegisterDecision(**first))
    assert isinstance(event, DecisionRegistered)
    assert event.model_dump(mode="json") == {
        **first,
        "decided_by": str(anna),
        "parent_id": None,
        "override_kind": None,
        "reasoning": None,
        "reasoning_signature": None,
    }
    register_decision(world, lead, choice="keep partial data", parent_id=event.stream_id, override_kind="exception")
    with expect_refusal("OverrideKindRequiresParentError") as caught:
        register_decision(world, lead, context="X", choice="y", override_kind="appeal")
    assert caught.value.detail == "An override of kind appeal concerns an earlier decision; name it in parent_id."
    one = span(input_tokens=1800, output_tokens=310)
    world.when(AppendInferences(entries=[one]), on=event.stream_id)
    assert world.answer == {"event_count": 1}


def test_who_decided_must_be_known_but_need_not_be_active(world: World, anna: UUID) -> None:
    with expect_refusal("DeciderActorNotFoundError"):
        register_decision(world, new_id())
    world.when(DeactivateActor(), on=anna)
    register_decision(world, anna)


def test_nobody_files_a_decision_in_an_agents_name(world: World) -> None:
    other = agent(world, new_id())
    with expect_refusal("InvalidActorKindForDecisionError"):
        register_decision(world, other)
    register_decision(world, agent(world, OPERATOR))


def test_references_are_refused_before_values(world: World, anna: UUID) -> None:
    with expect_refusal("DeciderActorNotFoundError"):
        register_decision(world, new_id(), parent_id=new_id(), context="  ")
    with expect_refusal("DecisionParentNotFoundError"):
        register_decision(world, anna, parent_id=new_id(), context="  ")
    with expect_refusal("InvalidDecisionContextError"):
        register_decision(world, anna, context="  ", confidence=2)


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"context": " "}, "InvalidDecisionContextError"),
        ({"choice": " "}, "InvalidDecisionChoiceError"),
        ({"rule": " "}, "InvalidDecisionRuleError"),
        ({"confidence": -0.01}, "InvalidDecisionConfidenceError"),
        ({"confidence": 1.01}, "InvalidDecisionConfidenceError"),
        ({"alternatives": ["hold", " "]}, "InvalidDecisionAlternativesError"),
        ({"alternatives": ["x"] * 33}, "InvalidDecisionAlternativesError"),
        ({"inputs": {str(n): n for n in range(65)}}, "InvalidDecisionInputsError"),
        ({"inputs": {"": 1}}, "InvalidDecisionInputsError"),
        ({"inputs": {"k" * 101: 1}}, "InvalidDecisionInputsError"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_values_are_refused_by_their_own_class(world: World, anna: UUID, fields: dict[str, Any], refusal: str) -> None:
    with expect_refusal(refusal):
        register_decision(world, anna, **fields)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_json_cannot_write_never_get_in(anna: UUID, number: float) -> None:
    choice = {"decided_by": anna, "context": "RunAbort", "choice": "abort"}
    for field in ({"confidence": number}, {"inputs": {"deep": [{"er": number}]}}):
        with pytest.raises(ValidationError):
            RegisterDecision(**choice, **field)


def test_blank_reasoning_and_signature_count_as_missing(world: World, anna: UUID) -> None:
    made = world.state(Decision, register_decision(world, anna, reasoning="  ", reasoning_signature=""))
    assert (made.reasoning, made.reasoning_signature) == (None, None)


@for_each(
    ("confidence", "word"),
    [
        *((0, "Low"), (0.2999, "Low"), (0.3, "Medium"), (0.6999, "Medium")),
        *((0.7, "High"), (0.9499, "High"), (0.95, "Certain"), (1, "Certain")),
    ],
)
def test_confidence_has_a_word(confidence: float, word: str) -> None:
    assert confidence_band_of(confidence) is ConfidenceBand(word)


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_confidence_is_never_a_lower_band(one: float, other: float) -> None:
    order = list(ConfidenceBand)
    assert order.index(confidence_band_of(min(one, other))) <= order.index(confidence_band_of(max(one, other)))


def test_the_view_shows_the_band_and_the_latest_rating_of_each_actor(world: World, anna: UUID) -> None:
    made = register_decision(world, anna, confidence=0.9)
    world.when(RateDecision(rating="misleading"), on=made)
    (event,) = world.when(RateDecision(rating="useful", comment="it was the drift"), on=made)
    assert isinstance(event, DecisionRated)
    assert (event.rated_by, event.confidence_at_rating) == (OPERATOR, 0.9)
    view = world.ask(REGISTRY.operations["get_decision"].input(), on=made)
    assert view.confidence_band is ConfidenceBand.HIGH
    assert {id: rating.rating.value for id, rating in view.ratings.items()} == {OPERATOR: "useful"}


def test_an_older_rating_never_replaces_a_newer_one(world: World, anna: UUID) -> None:
    made = register_decision(world, anna)
    rated = {"comment": None, "rated_by": anna, "confidence_at_rating": None}
    world.given(made, DecisionRated(rating="useful", rated_at=START + timedelta(hours=1), **rated))
    world.given(made, DecisionRated(rating="ignored", rated_at=START, **rated))
    assert world.state(Decision, made).ratings[anna].rating.value == "useful"


def test_a_comment_may_be_left_out_but_not_be_blank(world: World, anna: UUID) -> None:
    made = register_decision(world, anna)
    with expect_refusal("InvalidDecisionRatingCommentError"):
        world.when(RateDecision(rating="useful", comment=" "), on=made)


def test_the_first_append_opens_the_logbook_and_later_ones_reuse_it(world: World, anna: UUID) -> None:
    made = register_decision(world, anna)
    (opened,) = world.when(AppendInferences(entries=[span()]), on=made)
    assert isinstance(opened, DecisionLogbookOpened)
    assert opened.kind == "inference"
    assert opened.schema_["fields"]["input_tokens"] == {"type": "int"}
    assert world.when(AppendInferences(entries=[span(), span()]), on=made) == []
    assert {row.logbook_id for row in world.entries.values()} == {opened.logbook_id}
    assert len(world.entries) == 3


def test_a_repeated_entry_is_kept_once_and_still_counted(world: World, anna: UUID) -> None:
    made, one = register_decision(world, anna), span()
    world.when(AppendInferences(entries=[one, one]), on=made)
    assert world.answer == {"event_count": 2}
    world.when(AppendInferences(entries=[one]), on=made)
    assert len(world.entries) == 1
