"""How agents put decisions on record: once for each cause, with the calls behind them in the same append."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.agent.conclusions import RecordAgentDecision, conclusion_cause, decision_id_of
from baton.domain.decision.decision import ConfidenceSource, Inference, RegisterDecision, Span
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.logbooks import LogbookKind
from tests.support.domain.agents import agent_world, decision_of, versioned_agent
from tests.support.domain.world import OPERATOR, START, World, expect_refusal, new_id

CAUSE = conclusion_cause(new_id())


@pytest.fixture
def world() -> World:
    world = agent_world()
    world.principal_id = versioned_agent(world)
    return world


def choice(world: World, **fields: Any) -> RegisterDecision:
    defaults = {"context": "RunDebrief", "choice": "NominalCompletion", "confidence": 0.9, "reasoning": "It went well."}
    return RegisterDecision(**{"decided_by": world.principal_id, **defaults, **fields})


def own_id(world: World) -> UUID:
    return decision_id_of(START, world.principal_id, CAUSE)


def call_of(decision_id: UUID, **fields: Any) -> Span:
    spent = {"input_tokens": 1200, "output_tokens": 300, "cost": 0.0081}
    asked = {"operation_name": "chat", "provider_name": "acme", "request_model": "large-4"}
    return Span(**{"event_id": uuid5(decision_id, "inference:0"), "occurred_at": START, **asked, **spent, **fields})


def record_decision(world: World, *calls: Span, **fields: Any) -> list[Any]:
    return world.when(RecordAgentDecision(choice=choice(world, **fields), calls=calls), opening=own_id(world))


def test_an_id_follows_from_time_agent_and_cause() -> None:
    agent_id, other = new_id(), new_id()
    id = decision_id_of(START, agent_id, CAUSE)
    assert id == decision_id_of(START, agent_id, CAUSE)
    assert len({id, decision_id_of(START, other, CAUSE), decision_id_of(START, agent_id, conclusion_cause(new_id()))}) == 3
    assert id == derived_uuid7(int(START.timestamp()) * 1000, str(agent_id), CAUSE)


@given(st.datetimes(min_value=START.replace(tzinfo=None), timezones=st.just(UTC)))
def test_an_id_is_of_version_7_and_has_the_time_of_its_cause(at: datetime) -> None:
    id = decision_id_of(at, OPERATOR, CAUSE)
    assert id.version == 7
    assert abs((id.int >> 80) - at.timestamp() * 1000) <= 1


def test_the_cause_of_a_conclusion_is_the_end_of_the_run() -> None:
    assert conclusion_cause(UUID(int=7)) == "decision:00000000-0000-0000-0000-000000000007"


def test_a_decision_is_registered_under_an_event_id_of_its_own(world: World) -> None:
    (event,) = record_decision(world)
    assert (event.stream_id, event.own_id) == (own_id(world), uuid5(own_id(world), "event:0"))
    decision = decision_of(world, own_id(world))
    assert (decision.decided_by, decision.choice, decision.decided_at) == (
        world.principal_id,
        "NominalCompletion",
        world.now,
    )
    assert world.answer == {"decision_id": str(own_id(world)), "calls_kept": True}


def test_a_repeat_writes_nothing_and_answers_that_its_calls_were_not_kept_again(world: World) -> None:
    record_decision(world, call_of(own_id(world)))
    before, answer = dict(world.entries), world.answer
    assert answer["calls_kept"]
    assert record_decision(world, call_of(own_id(world)), choice="DataSuspect") == []
    assert world.answer == {**answer, "calls_kept": False}
    assert world.entries == before
    assert decision_of(world, own_id(world)).choice == "NominalCompletion"


def test_two_agents_decide_about_one_cause_side_by_side(world: World) -> None:
    record_decision(world)
    first = own_id(world)
    world.principal_id = versioned_agent(world, name="Third debriefer")
    record_decision(world, choice="DebriefConflicted", confidence=None)
    assert {decision_of(world, id).choice for id in (first, own_id(world))} == {"NominalCompletion", "DebriefConflicted"}


def test_the_calls_behind_it_are_kept_with_it(world: World) -> None:
    id = own_id(world)
    events = record_decision(world, call_of(id), choice="DebriefDeferred", confidence=None)
    assert [type(event).__name__ for event in events] == ["DecisionRegistered", "DecisionLogbookOpened"]
    decision = decision_of(world, id)
    (row,) = world.entries.values()
    assert isinstance(row, Inference)
    assert row.logbook_id == decision.logbooks[LogbookKind.INFERENCE]
    assert (row.decision_id, row.event_id, row.actor_id) == (id, uuid5(id, "inference:0"), world.principal_id)
    assert (row.occurred_at, row.input_tokens, row.output_tokens, row.cost) == (START, 1200, 300, 0.0081)


def test_no_logbook_is_opened_where_no_call_was_made(world: World) -> None:
    record_decision(world)
    assert decision_of(world, own_id(world)).logbooks == {}


def test_an_agent_that_may_not_keep_its_calls_decides_all_the_same(world: World) -> None:
    world.denied.add("AppendInferences")
    record_decision(world, call_of(own_id(world)))
    assert world.entries == {}
    assert decision_of(world, own_id(world)).logbooks == {}
    assert world.answer == {"decision_id": str(own_id(world)), "calls_kept": False}


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"context": " "}, "InvalidDecisionContextError"),
        ({"choice": " "}, "InvalidDecisionChoiceError"),
        ({"confidence": 1.01}, "InvalidDecisionConfidenceError"),
        ({"inputs": {f"key {number}": number for number in range(65)}}, "InvalidDecisionInputsError"),
    ],
)
def test_an_agents_decision_obeys_the_rules_of_every_decision(world: World, fields: dict[str, Any], refusal: str) -> None:
    with expect_refusal(refusal):
        record_decision(world, **fields)


def test_nobody_records_a_decision_in_another_name(world: World) -> None:
    with pytest.raises(AssertionError):
        record_decision(world, decided_by=new_id())


def test_no_surface_has_what_agents_record_with() -> None:
    assert RecordAgentDecision.operation.command_name == "RecordAgentDecision"
    assert RecordAgentDecision.operation not in RecordAgentDecision.operation.aggregate.operations  # type: ignore[union-attr]


def test_a_confidence_comes_with_its_source_where_it_is_the_models_own(world: World) -> None:
    record_decision(world, confidence_source="self_reported")
    assert decision_of(world, own_id(world)).confidence_source is ConfidenceSource.SELF_REPORTED
