"""Debriefs on demand: whom they are refused to, in which order, and what is put down when one is accepted."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from baton.domain.access.actor import ActorDeactivated
from baton.domain.agent.agent import DeprecateAgent, SuspendAgent
from baton.domain.agent.debrief import (
    RUN_DEBRIEFER,
    AgentKindMismatchError,
    DebriefRequest,
    DebriefRequestStatus,
    RegenerateRunDebrief,
)
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.run.run import AbortRun
from tests.support.domain.agents import (
    definition,
    drafter,
    person,
    register_decision,
    seed_agent,
    set_approved_models,
    versioned_agent,
)
from tests.support.domain.lifecycle_table import command
from tests.support.domain.run_beamline import Beamline, beamline
from tests.support.domain.world import OPERATOR, expect_refusal, new_id

SEEDED_ID = SEEDED[RUN_DEBRIEFER].id


@pytest.fixture
def line() -> Beamline:
    line = beamline()
    set_approved_models(line.world)
    line.world.ports["is_model_configured"] = True
    person(line.world)
    seed_agent(line.world, RUN_DEBRIEFER)
    return line


@pytest.fixture
def run_id(line: Beamline) -> UUID:
    return line.start()


def debrief_decision(line: Beamline, run_id: UUID, context: str = "RunDebrief") -> UUID:
    """A decision about a run, to go on from."""
    return register_decision(line.world, OPERATOR, context, "DataSuspect", inputs={"run_id": str(run_id)})


def request_debrief(line: Beamline, run_id: UUID, **fields: Any) -> DebriefRequest:
    events = line.world.when(RegenerateRunDebrief(**fields), on=run_id)
    assert events == []
    (request,) = [row for row in line.world.records.values() if isinstance(row, DebriefRequest)]
    return request


def test_a_request_is_put_down_with_who_asked_and_who_writes(line: Beamline, run_id: UUID) -> None:
    request = request_debrief(line, run_id)
    call = line.world.call
    assert call is not None
    assert request == DebriefRequest(
        decision_id=call.new_id,
        run_id=run_id,
        agent_id=SEEDED_ID,
        parent_decision_id=None,
        principal_id=OPERATOR,
        correlation_id=call.correlation_id,
        accepted_at=call.now,
        status=DebriefRequestStatus.RUNNING,
    )
    assert line.world.answer == {"decision_id": str(call.new_id), "work_id": str(call.new_id)}


def test_it_goes_on_from_a_debrief_of_the_same_run(line: Beamline, run_id: UUID) -> None:
    parent_id = debrief_decision(line, run_id)
    assert request_debrief(line, run_id, parent_decision_id=parent_id).parent_decision_id == parent_id


def test_another_agent_of_the_kind_writes_where_it_is_named(line: Beamline, run_id: UUID) -> None:
    agent_id = versioned_agent(line.world)
    assert request_debrief(line, run_id, agent_id=agent_id).agent_id == agent_id


@pytest.mark.parametrize("over", [False, True])
def test_it_works_for_any_run(line: Beamline, run_id: UUID, over: bool) -> None:
    if over:
        line.world.when(AbortRun(reason="smoke"), on=run_id)
    before = line.run(run_id)
    request_debrief(line, run_id)
    assert line.run(run_id) == before


def test_the_model_that_is_asked_about_is_the_agents(line: Beamline, run_id: UUID) -> None:
    asked_about: list[Any] = []
    line.world.ports["is_model_configured"] = lambda model_ref: asked_about.append(model_ref) or True
    agent_id = versioned_agent(line.world, model_ref={"provider": "acme", "model": "large-4"})
    request_debrief(line, run_id, agent_id=agent_id)
    assert [(ref.provider, ref.model) for ref in asked_about] == [("acme", "large-4")]


def suspend_agent(line: Beamline, fields: dict[str, Any]) -> None:
    if line.world.streams.get(("Agent", id := fields.get("agent_id", SEEDED_ID))):
        line.world.when(SuspendAgent(reason="Too wordy"), on=id)


REFUSALS: dict[str, Callable[[Beamline, dict[str, Any]], object]] = {
    "DecisionParentNotFoundError": lambda line, fields: fields.update(parent_decision_id=new_id()),
    "AgentNotFoundError": lambda line, fields: fields.update(agent_id=new_id()),
    "DecisionParentAgentMismatchError": lambda line, fields: fields.setdefault(
        "parent_decision_id", debrief_decision(line, new_id(), "RunAbort")
    ),
    "DecisionParentRunMismatchError": lambda line, fields: fields.setdefault(
        "parent_decision_id", debrief_decision(line, new_id())
    ),
    "AgentKindMismatchError": lambda line, fields: fields.setdefault("agent_id", drafter(line.world)),
    "AgentNotSeededError": lambda line, fields: "agent_id" in fields or line.world.streams.pop(("Agent", SEEDED_ID)),
    "AgentDeactivatedError": lambda line, fields: line.world.given(fields.get("agent_id", SEEDED_ID), ActorDeactivated()),
    "AgentCannotRegenerateDebriefError": suspend_agent,
    "LanguageModelUnavailableError": lambda line, fields: line.world.ports.update(is_model_configured=False),
}
"""The refusals in the order they are promised, each with its cause: what is missing, the parent, the agent, its model."""


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("refusal", REFUSALS)
def test_the_first_refusal_in_order_is_the_one_that_is_told(line: Beamline, run_id: UUID, refusal: str, alone: bool) -> None:
    fields: dict[str, Any] = {}
    for cause in [refusal] if alone else list(REFUSALS)[list(REFUSALS).index(refusal) :]:
        REFUSALS[cause](line, fields)
    with expect_refusal(refusal):
        request_debrief(line, run_id, **fields)
    assert not [row for row in line.world.records.values() if isinstance(row, DebriefRequest)]


@pytest.mark.parametrize("status", ["defined", "suspended", "deprecated"])
def test_an_agent_writes_only_while_it_is_in_service(line: Beamline, run_id: UUID, status: str) -> None:
    world = line.world
    agent_id = world.create(command("define_agent", definition())) if status == "defined" else versioned_agent(world)
    if status != "defined":
        world.when(SuspendAgent(reason="why") if status == "suspended" else DeprecateAgent(), on=agent_id)
    with expect_refusal("AgentCannotRegenerateDebriefError", status):
        request_debrief(line, run_id, agent_id=agent_id)


def test_a_refusal_that_came_later_is_kept_and_told_again() -> None:
    request = DebriefRequest(
        decision_id=new_id(),
        run_id=new_id(),
        agent_id=new_id(),
        parent_decision_id=None,
        principal_id=OPERATOR,
        correlation_id=new_id(),
        accepted_at=beamline().world.now,
    )
    came_to_nothing = request.with_refusal(AgentKindMismatchError("It drafts.", reason="other_kind", facts={"kind": "x"}))
    assert came_to_nothing.status is DebriefRequestStatus.REFUSED
    refusal = came_to_nothing.stored_refusal()
    assert isinstance(refusal, AgentKindMismatchError)
    assert (refusal.detail, refusal.reason, refusal.facts) == ("It drafts.", "other_kind", {"kind": "x"})
