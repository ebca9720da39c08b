"""A debrief on demand: a person has the debriefer conclude about a run once more, whatever it concluded before.

No lease is asked for and no cap is in the way: somebody chose to spend. What is spent is recorded all the same.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar
from uuid import UUID

from baton.domain.access.actor import Actor
from baton.domain.agent.agent import VERSIONED, Agent
from baton.domain.agent.debrief import DEBRIEF, RUN_DEBRIEFER
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.decision.decision import Decision, DecisionParentNotFoundError
from baton.domain.kernel import Call, JudgedVerb, Outcome, Value
from baton.domain.operation.conduct.conduct import Wait
from baton.domain.run.run import Run, run
from baton.domain.shared.ports import Ports
from baton.domain.shared.reads import Reads, ask, existing, required, required_if_given
from baton.domain.shared.refusals import Conflict, Refusal, UnauthorizedError, Unavailable, kept_form, kept_refusal
from baton.domain.shared.writes import Answer, Put, Record


class DebriefRequestStatus(StrEnum):
    RUNNING = "Running"
    DONE = "Done"
    REFUSED = "Refused"


@dataclass(frozen=True)
class DebriefRequest(Record):
    """A debrief that somebody asked for: by whom it is made, how far it is, and why it was refused if it was."""

    relation: ClassVar[str] = "debrief_requests"
    key: ClassVar[tuple[str, ...]] = ("decision_id",)
    decision_id: UUID
    run_id: UUID
    agent_id: UUID
    parent_decision_id: UUID | None
    principal_id: UUID
    correlation_id: UUID
    accepted_at: datetime
    status: DebriefRequestStatus = DebriefRequestStatus.RUNNING
    refusal: dict[str, Any] | None = None


class DecisionParentAgentMismatchError(Conflict, context="agent"):
    """The decision to go on from is no debrief."""


class DecisionParentRunMismatchError(Conflict, context="agent"):
    """The decision to go on from is about another run."""


class AgentKindMismatchError(Conflict, context="agent"):
    """The agent writes no debriefs."""


class AgentNotSeededError(Conflict, context="agent"):
    """The agent that every deployment starts with is not there."""


class AgentDeactivatedError(Conflict, context="agent"):
    """The agent's actor is deactivated."""


class AgentCannotRegenerateDebriefError(Conflict, context="agent"):
    """The agent is not in service."""


class LanguageModelUnavailableError(Unavailable, context="agent"):
    """The agent's language model is not configured here."""


class Regenerated(Value):
    """The debrief that was written."""

    decision_id: UUID


class RegenerationAccepted(Value):
    """A debrief that is still being written; `get_work` tells how it goes."""

    decision_id: UUID
    work_id: UUID


@dataclass(frozen=True)
class Debriefer:
    """Whoever is to write the debrief, what it goes on from, and whether its model can be asked."""

    agent: Agent | None
    actor: Actor | None
    parent: Decision | None
    model_configured: bool


@run.command(
    post="/{run_id}/regenerate-debrief",
    context="agent",
    status=201,
    returns=Regenerated,
    work="regenerate-debrief",
    accepted=RegenerationAccepted,
    refuses=[UnauthorizedError],
)
class RegenerateRunDebrief(JudgedVerb[Run, Debriefer]):
    """Have a debrief of the run written now, by the usual agent or by the one named."""

    parent_decision_id: UUID | None = None
    agent_id: UUID | None = None
    wait: Wait = 30

    def gather(self, run: Run, call: Call) -> Reads[Debriefer]:
        parent = yield from required_if_given(Decision, self.parent_decision_id, DecisionParentNotFoundError)
        agent = yield from self._agent()
        actor = yield from existing(Actor, None if agent is None else agent.id)
        configured = agent is not None and (yield from ask(Ports.is_model_configured, agent.model_ref))
        return Debriefer(agent, actor, parent, configured)

    def _agent(self) -> Reads[Agent | None]:
        if self.agent_id is not None:
            return (yield from required(Agent, self.agent_id))
        return (yield from existing(Agent, SEEDED[RUN_DEBRIEFER].id))

    def decide(self, run: Run, call: Call, facts: Debriefer) -> Outcome:
        check_parent(facts.parent, run)
        agent = able_debriefer(facts)
        if not facts.model_configured:
            raise LanguageModelUnavailableError(
                f"The model of {agent.name} is not configured here; set its provider's credentials.",
                reason="model_not_configured",
            )
        request = DebriefRequest(
            decision_id=call.new_id,
            run_id=run.id,
            agent_id=agent.id,
            parent_decision_id=self.parent_decision_id,
            principal_id=call.principal_id,
            correlation_id=call.correlation_id,
            accepted_at=call.now,
        )
        ids = {"decision_id": str(call.new_id), "work_id": str(call.new_id)}
        return [Put(request), Answer(ids)]


def able_debriefer(debriefer: Debriefer) -> Agent:
    """The agent that writes the debrief; refused where it cannot, or not now."""
    agent = debriefer.agent
    if agent is None:
        raise AgentNotSeededError(
            f"The log lacks the agent {RUN_DEBRIEFER}; restart the service, which seeds it.", reason="not_seeded"
        )
    if agent.kind != DEBRIEF.kind:
        raise AgentKindMismatchError(
            f"The agent is of kind {agent.kind}, and debriefs are written by agents of kind {DEBRIEF.kind}.",
            reason="other_kind",
        )
    if debriefer.actor is None or not debriefer.actor.active:
        raise AgentDeactivatedError("The agent's actor is deactivated; reactivate it first.", reason="agent_deactivated")
    if agent.status is not VERSIONED:
        raise AgentCannotRegenerateDebriefError(
            f"The agent is {agent.status.value}; version or resume it first.", reason=agent.status.value.lower()
        )
    return agent


def check_parent(parent: Decision | None, run: Run) -> None:
    """Refuse to go on from what is no debrief of this run."""
    if parent is None:
        return
    if parent.context != DEBRIEF.context:
        raise DecisionParentAgentMismatchError(
            f"The parent is of context {parent.context}; name a decision of context {DEBRIEF.context}.",
            reason="other_context",
        )
    if (parent.inputs or {}).get("run_id") != str(run.id):
        raise DecisionParentRunMismatchError(
            "The parent is about another run; name a debrief of this one, or leave it out.", reason="other_run"
        )


def refused(request: DebriefRequest, refusal: Refusal) -> DebriefRequest:
    """The request that came to nothing, and why."""
    return replace(request, status=DebriefRequestStatus.REFUSED, refusal=kept_form(refusal))


def refusal_of(request: DebriefRequest) -> Refusal:
    """Why a request came to nothing."""
    assert request.refusal is not None, "only a refused request says why"
    return kept_refusal(request.refusal, RegenerateRunDebrief.operation.refusals)
