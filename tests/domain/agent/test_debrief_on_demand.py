"""Debriefs on demand: whom they are refused to, in which order, and what is put down when one is accepted."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

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
from tests.support.tables import for_each

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


@for_each("wait", [-1, 61, "long"])
def test_one_waits_up_to_a_minute(wait: Any) -> None:
    with pytest.raises(ValidationError):
        RegenerateRunDebrief(wait=wait)
    assert RegenerateRunDebrief().wait == 30


Break = Callable[[Beamline, UUID, dict[str, Any]], None]


def no_parent(line: Beamline, run_id: UUID, fields: dict[str, Any]) -> None:
    fields["parent_decision_id"] = new_id()


def no_agent(line: Beamline, run_id: UUID, fields: dict[str, Any]) -> None:
    fields["agent_id"] = new_id()


def parent_of_another_context(line: Beamline, run_id: UUID, fields: dict[str, Any]) -> None:
    fields.setdefault("parent_decision_id", debrief_decision(line, new_id(), "RunAbort"))


def parent_of_another_run(line: Beamline, run_id: UUID, fields: dict[str, Any]) -> None:
    fields.setdefault("parent_decision_id", debrief_decision(line, new_id()))


def agent_of_another_kind(line: Beamline, run_id: UUID, fields: dict[str, Any]) -> None:
    fields.setdefault("agent_id", drafter(line.world))


def agent_gone(line: Beamline, run_id: UUID, fields: dict[str, Any]) -> None:
    if "agent_id" not in fields:
        del line.world.streams["Agent", SEEDED_ID]


def agent_deactivated(line: Beamline, run_id: UUID, fields: dict[str, Any]) -> None:
    line.world.given(fields.get("agent_id", SEEDED_ID), ActorDeactivated())


def agent_suspended(line: Beamline, run_id: UUID, fields: dict[str, Any]) -> None:
    if line.world.streams.get(("Agent", id := fields.get("agent_id", SEEDED_ID))):
        line.world.when(SuspendAgent(reason="Too wordy"), on=id)


def model_missing(line: Beamline, run_id: UUID, fields: dict[str, Any]) -> None:
    line.world.ports["is_model_configured"] = False


REFUSALS: dict[str, Break] = {
    "DecisionParentNotFoundError": no_parent,
    "AgentNotFoundError": no_agent,
    "DecisionParentAgentMismatchError": parent_of_another_context,
    "DecisionParentRunMismatchError": parent_of_another_run,
    "AgentKindMismatchError": agent_of_another_kind,
    "AgentNotSeededError": agent_gone,
    "AgentDeactivatedError": agent_deactivated,
    "AgentCannotRegenerateDebriefError": agent_suspended,
    "LanguageModelUnavailableError": model_missing,
}
"""The refusals in the order they are promised: what is missing, the parent, the agent, its model."""
STATUSES = {"DecisionParentNotFoundError": 404, "AgentNotFoundError": 404, "LanguageModelUnavailableError": 503}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_each_refusal_by_itself(line: Beamline, run_id: UUID, refusal: str) -> None:
    fields: dict[str, Any] = {}
    REFUSALS[refusal](line, run_id, fields)
    with expect_refusal(refusal) as caught:
        request_debrief(line, run_id, **fields)
    assert caught.value.status == STATUSES.get(refusal, 409)
    assert not [row for row in line.world.records.values() if isinstance(row, DebriefRequest)]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_the_first_refusal_in_order_is_the_one_that_is_told(line: Beamline, run_id: UUID, refusal: str) -> None:
    fields: dict[str, Any] = {}
    order = list(REFUSALS)
    for later in order[order.index(refusal) :]:
        REFUSALS[later](line, run_id, fields)
    with expect_refusal(refusal):
        request_debrief(line, run_id, **fields)


def test_a_run_that_nobody_knows_comes_before_everything(line: Beamline) -> None:
    with expect_refusal("RunNotFoundError"):
        line.world.when(RegenerateRunDebrief(parent_decision_id=new_id(), agent_id=new_id()), on=new_id())


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
