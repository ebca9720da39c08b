"""The debrief of a run: a verdict on how it went, and the narrative for its logbook; written at its end, or on demand.
On demand no lease is asked for and no cap is in the way: somebody chose to spend. What is spent is recorded all the same."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from baton.domain.access.actor import Actor, seeded_id
from baton.domain.agent.agent import VERSIONED, Agent, AgentPort
from baton.domain.agent.conclusions import CONCLUDING_COMMANDS, AgentTask, Conclusion, Material, RunEnd, run_facts
from baton.domain.agent.prompts import RUN_DEBRIEF, DebriefAnswer, DebriefChoice
from baton.domain.conduct.conduct import Wait
from baton.domain.conduct.ledger import LedgerPort
from baton.domain.conduct.progress import OpenedConduct
from baton.domain.data.procedure_files import files_of
from baton.domain.decision.decision import Decision, DecisionParentNotFoundError
from baton.domain.kernel import Call, JudgedVerb, Outcome, Value, instant
from baton.domain.procedure.procedure import Procedure
from baton.domain.registry import OpenedWork
from baton.domain.run.logbooks import Channel
from baton.domain.run.run import Run, phases_of, run
from baton.domain.shared.reads import Reads, ask, find, records_of, require, require_if_given
from baton.domain.shared.refusals import Conflict, Refusal, UnauthorizedError, Unavailable, kept_form, kept_refusal
from baton.domain.shared.writes import Answer, Put, WorkRecord

MAX_CHANNELS = 200
MAX_FILES = 20  # of each phase
RUN_DEBRIEFER = "RunDebriefer"
RUN_DEBRIEFER_ID = seeded_id(1)


def debrief_material(run: Run, end: RunEnd | None) -> Reads[Material]:
    """Return the run with its phases and what it recorded."""
    phases = yield from phases_of(run)
    channels = yield from records_of(Channel, run_id=run.id)
    facts = run_facts(run, end, phases)
    for phase, told in zip(phases, facts["phases"], strict=False):  # of more phases than that, nothing is told
        told |= yield from work_facts(phase)
    return Material({**facts, "channels": list(map(channel_facts, channels[:MAX_CHANNELS]))})


def work_facts(phase: Procedure) -> Reads[dict[str, Any]]:
    """Return what a prompt says about the work on one phase: images, workers that were replaced, and files."""
    conducts = yield from records_of(OpenedConduct, procedure_id=phase.id)
    files = yield from files_of(phase.id)
    return {
        "image_count": (yield from ask(LedgerPort.image_count, phase.id)),
        "takeover_count": sum(conduct.takeover_count for conduct in conducts),
        "files": [{"name": file.name, "byte_size": file.byte_size} for file in files[:MAX_FILES]],
        "file_count": len(files),
    }


def channel_facts(channel: Channel) -> dict[str, Any]:
    """Return what a prompt says about a channel."""
    times = {name: instant(getattr(channel, name)) for name in ("first_recorded_at", "latest_recorded_at")}
    names = ("channel_name", "count", *times, "latest_value", "units", "simulated")
    return {name: times.get(name, getattr(channel, name)) for name in names}


def conclude_debrief(answer: Mapping[str, object], material: Material) -> Conclusion:
    """Return the conclusion of a model's answer."""
    debrief = DebriefAnswer.model_validate(dict(answer))
    return Conclusion(debrief.choice.value, debrief.confidence, debrief.reasoning)


DEBRIEF = AgentTask(
    kind=RUN_DEBRIEFER,
    workflow="debrief",
    context="RunDebrief",
    conflicted="DebriefConflicted",
    deferred="DebriefDeferred",
    prompt=RUN_DEBRIEF,
    commands=CONCLUDING_COMMANDS | {"AppendRunLogbookEntries", "GetRun", "ListProcedures", "ListRunChannels"},
    material=debrief_material,
    conclude=conclude_debrief,
)


def narrative_of(decision: Decision) -> str | None:
    """Return the text for the logbook, or None where no verdict was reached."""
    is_verdict = decision.context == DEBRIEF.context and decision.choice in set(DebriefChoice)
    return decision.reasoning if is_verdict else None


class DebriefRequestStatus(StrEnum):
    RUNNING = "Running"
    DONE = "Done"
    REFUSED = "Refused"


@dataclass(frozen=True)
class DebriefRequest(WorkRecord):
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

    def with_refusal(self, refusal: Refusal) -> "DebriefRequest":
        """Return the request as it ended without a debrief, and why."""
        return replace(self, status=DebriefRequestStatus.REFUSED, refusal=kept_form(refusal))

    def stored_refusal(self) -> Refusal:
        """Return why a refused request ended without a debrief."""
        assert self.refusal is not None, "only a refused request says why"
        return kept_refusal(self.refusal, RegenerateRunDebrief.operation.refusals)


class DecisionParentAgentMismatchError(Conflict, context="agent", reason="other_context"):
    """The decision to go on from is no debrief."""


class DecisionParentRunMismatchError(Conflict, context="agent", reason="other_run"):
    """The decision to go on from is about another run."""


class AgentKindMismatchError(Conflict, context="agent", reason="other_kind"):
    """The agent writes no debriefs."""


class AgentNotSeededError(Conflict, context="agent", reason="not_seeded"):
    """The agent that every deployment starts with is not there."""


class AgentDeactivatedError(Conflict, context="agent", reason="agent_deactivated"):
    """The agent's actor is deactivated."""


class AgentCannotRegenerateDebriefError(Conflict, context="agent"):
    """The agent is not in service."""


class LanguageModelUnavailableError(Unavailable, context="agent", reason="model_not_configured"):
    """The agent's language model is not configured here."""


class RegeneratedDebrief(Value):
    """The debrief that was written."""

    decision_id: UUID


class RegenerationAccepted(Value):
    """A debrief that is still being written; `get_work` tells how it goes."""

    decision_id: UUID
    work_id: UUID


class Debriefer(NamedTuple):
    """The agent that is to write the debrief, the decision it continues from, and whether its model can be asked."""

    agent: Agent | None
    actor: Actor | None
    parent: Decision | None
    model_configured: bool


@run.command(
    post="/{run_id}/regenerate-debrief",
    context="agent",
    status=201,
    returns=RegeneratedDebrief,
    work=OpenedWork("regenerate-debrief"),
    accepted=RegenerationAccepted,
    refuses=[UnauthorizedError],
)
class RegenerateRunDebrief(JudgedVerb[Run, Debriefer]):
    """Have a debrief of the run written now, by the usual agent or by the one named."""

    parent_decision_id: UUID | None = None
    agent_id: UUID | None = None
    """The agent that is to write; the usual one, when not given."""
    wait: Wait = 30

    def gather(self, run: Run, call: Call) -> Reads[Debriefer]:
        parent = yield from require_if_given(Decision, self.parent_decision_id, DecisionParentNotFoundError)
        if self.agent_id is None:
            agent = yield from find(Agent, RUN_DEBRIEFER_ID)
        else:
            agent = yield from require(Agent, self.agent_id)
        actor = yield from find(Actor, None if agent is None else agent.id)
        configured = agent is not None and (yield from ask(AgentPort.is_model_configured, agent.model_ref))
        return Debriefer(agent, actor, parent, configured)

    def decide(self, run: Run, call: Call, facts: Debriefer) -> Outcome:
        if facts.parent is not None:
            check_parent(facts.parent, run)
        agent = require_able_agent(facts)
        if not facts.model_configured:
            detail = f"The model of {agent.name} is not configured here; set its provider's credentials."
            raise LanguageModelUnavailableError(detail)
        caller = (call.principal_id, call.correlation_id, call.now)
        request = DebriefRequest(call.new_id, run.id, agent.id, self.parent_decision_id, *caller)
        return [Put(request), Answer(dict.fromkeys(RegenerationAccepted.model_fields, str(call.new_id)))]


def require_able_agent(debriefer: Debriefer) -> Agent:
    """Return the agent that writes the debrief; refuse one that cannot, or not now."""
    agent = debriefer.agent
    if agent is None:
        raise AgentNotSeededError(f"The log lacks the agent {RUN_DEBRIEFER}; restart the service, which seeds it.")
    if agent.kind != DEBRIEF.kind:
        detail = f"The agent is of kind {agent.kind}, and debriefs are written by agents of kind {DEBRIEF.kind}."
        raise AgentKindMismatchError(detail)
    if debriefer.actor is None or not debriefer.actor.active:
        raise AgentDeactivatedError("The agent's actor is deactivated; reactivate it first.")
    if agent.status is not VERSIONED:
        detail = f"The agent is {agent.status.value}; version or resume it first."
        raise AgentCannotRegenerateDebriefError(detail, reason=agent.status.value.lower())
    return agent


def check_parent(parent: Decision, run: Run) -> None:
    """Refuse to go on from a decision that is no debrief of this run."""
    if parent.context != DEBRIEF.context:
        detail = f"The parent is of context {parent.context}; name a decision of context {DEBRIEF.context}."
        raise DecisionParentAgentMismatchError(detail)
    if (parent.inputs or {}).get("run_id") != str(run.id):
        raise DecisionParentRunMismatchError("The parent is about another run; name a debrief of this one, or leave it out.")
