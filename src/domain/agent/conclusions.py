"""What language-model agents of every kind have in common: the end of a run, the lease on it, and the conclusion about it.
An agent sees the run as data and concludes once for each end of a run. What keeps it from concluding is recorded as well,
as a choice of its own. The lease that decides which agent of a kind concludes is a marker on the run's own stream, so that
no two agents hold it, whatever engine or machine asks; it does not expire and is never taken over. What an
agent decides is recorded once, under an id derived from its cause, in one append with its model calls."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar
from uuid import UUID, uuid5

from baton.domain.agent.agent import Agent
from baton.domain.agent.prompts import Prompt
from baton.domain.decision import decision as decisions
from baton.domain.decision.decision import AppendInferences, Decision, DecisionRegistered, RegisterDecision, Span
from baton.domain.kernel import NIL, SYSTEM_CONDUIT, Call, Event, JudgedCreation, JudgedVerb, Outcome, Value, instant
from baton.domain.procedure.procedure import Procedure
from baton.domain.run.run import Run, RunAborted, RunCompleted, RunStopped, RunTruncated, run
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.reads import Reads, events_of, find, is_permitted, require
from baton.domain.shared.writes import Answer

RUN_END_EVENTS: tuple[type[Event], ...] = (RunCompleted, RunAborted, RunStopped, RunTruncated)  # The events that end a run.
CONCLUDING_COMMANDS = frozenset({"RequestDecisionDebrief", "RecordAgentDecision", "AppendInferences"})
"""The commands that the agents of every kind need to conclude."""
MAX_PHASES = 50
MAX_CLOSING_FAILURES = 10
MAX_DECIDED_STEPS = 20  # Steps of a phase that people decided about, of each kind.
MAX_DEVIATIONS = 10  # Setpoints of a phase that did not read as written.
MAX_PARAMETERS_LENGTH = 20_000
"""Characters of parameters that a model is shown; of longer ones it is told only how many there are."""


@dataclass(frozen=True)
class RunEnd:
    """The event that ended a run."""

    event_id: UUID
    event: Event

    @property
    def event_type(self) -> str:
        return type(self.event).__name__

    @property
    def occurred_at(self) -> datetime:
        return self.event.occurred_at


@dataclass(frozen=True)
class Material:
    """The facts that a model is shown, and the ids that its answer may refer to."""

    facts: Mapping[str, Any]
    candidates: frozenset[tuple[str, UUID]] = frozenset()
    cautions: frozenset[UUID] = frozenset()


@dataclass(frozen=True)
class Conclusion:
    """The choice that a model's answer contains, with its confidence and reasons."""

    choice: str
    confidence: float
    reasoning: str
    inputs: Mapping[str, Any] = field(default_factory=dict)


class UnusableAnswerError(Exception):
    """A model's answer has the right form and breaks a rule; the rule's name, which is its text, is recorded."""


@dataclass(frozen=True, kw_only=True)
class AgentTask:
    """The work of the agents of one kind when a run has ended."""

    kind: str
    workflow: str
    context: str
    conflicted: str  # The choice of an agent that did not get the lease.
    deferred: str  # The choice where there is no usable answer.
    prompt: Prompt
    commands: frozenset[str]  # The commands that an agent must be permitted before it begins.
    material: Callable[[Run, RunEnd | None], Reads[Material]]
    conclude: Callable[[Mapping[str, Any], Material], Conclusion]

    @property
    def rule(self) -> str:
        return f"agent:{self.kind}:v1"

    def decision(
        self,
        agent_id: UUID,
        inputs: Mapping[str, Any],
        concluded: Conclusion | None = None,
        *,
        instead: str = "",
        reasoning: str | None = None,
        parent_id: UUID | None = None,
    ) -> RegisterDecision:
        """Return the decision of a conclusion, or of the choice made instead of one."""
        own: dict[str, Any] = {"choice": instead, "reasoning": reasoning, "inputs": {**inputs}}
        if concluded is not None:
            source = {"confidence_source": decisions.ConfidenceSource.SELF_REPORTED}
            own = {**vars(concluded), **source, "inputs": {**inputs, **concluded.inputs}}
        return RegisterDecision(decided_by=agent_id, context=self.context, parent_id=parent_id, rule=self.rule, **own)


def conclusion_cause(terminal_event_id: UUID) -> str:
    """Return the cause that the id of a conclusion is derived from, besides the agent."""
    return f"decision:{terminal_event_id}"


def run_facts(run: Run, end: RunEnd | None, phases: tuple[Procedure, ...]) -> dict[str, Any]:
    """Return what a prompt says about a run, without who did what."""
    event: object = None if end is None else end.event
    interrupted_at: datetime | None = getattr(event, "interrupted_at", None)
    return {
        "terminal_event_type": None if end is None else end.event_type,
        "terminal_event_reason": getattr(event, "reason", None),
        "terminal_event_occurred_at": None if end is None else instant(end.occurred_at),
        "run_id": str(run.id),
        "run_name": run.name,
        "run_status": run.status.value,
        "plan_id": str(run.plan_id),
        "subject_id": None if run.subject_id is None else str(run.subject_id),
        "campaign_id": None if run.campaign_id is None else str(run.campaign_id),
        "effective_parameters": bounded_parameters(run.effective_parameters),
        "hold_count": run.hold_count,
        "last_held_at": run.last_held_at and instant(run.last_held_at),
        "last_hold_reason": run.last_hold_reason,
        "adjustment_count": run.adjustment_count,
        "last_adjusted_at": run.last_adjusted_at and instant(run.last_adjusted_at),
        "interrupted_at": interrupted_at and instant(interrupted_at),
        "pinned_calibration_ids": sorted(map(str, run.pinned_calibration_ids)),
        "phases": [phase_facts(phase) for phase in phases[:MAX_PHASES]],
    }


def phase_facts(phase: Procedure) -> dict[str, object]:
    """Return what a prompt says about one procedure of a run."""
    return {
        "procedure_id": str(phase.id),
        "name": phase.name,
        "status": phase.status.value,
        "failure": None if phase.failure is None else phase.failure.model_dump(mode="json"),
        "closing_failures": [one.model_dump(mode="json") for one in phase.closing_failures[:MAX_CLOSING_FAILURES]],
        "deviations": [one.model_dump(mode="json") for one in phase.deviations[:MAX_DEVIATIONS]],
        "iteration_count": phase.iteration_count,
        "skipped_count": phase.skipped_count,
        "skipped_waits": [one.step_index for one in phase.skipped_waits[:MAX_DECIDED_STEPS]],
        "resolved_steps": [
            {"step_index": one.step_index, "outcome": one.outcome.value} for one in phase.resolved_steps[:MAX_DECIDED_STEPS]
        ],
    }


def bounded_parameters(parameters: Mapping[str, object]) -> Mapping[str, object]:
    """Return the parameters, or how many there are where they would fill a prompt."""
    if len(json.dumps(parameters, default=str)) <= MAX_PARAMETERS_LENGTH:
        return parameters
    return {"omitted": f"{len(parameters)} parameters, too long to show"}


class LeaseResult(StrEnum):
    """The result of asking for a lease."""

    HELD = "held"
    LOST = "lost"  # Another agent of the kind has it, which is recorded.
    ENDED = "ended"  # There is nothing to do, or nothing may be done.


class ConclusionOrder(Value):
    """The message that asks an agent to conclude about the end of a run."""

    kind: str
    agent_id: UUID
    run_id: UUID
    terminal_event_id: UUID
    correlation_id: UUID  # That of the request with which the run ended.

    surface_id: ClassVar[UUID] = NIL
    conduit_id: ClassVar[UUID] = SYSTEM_CONDUIT

    @property
    def principal_id(self) -> UUID:
        return self.agent_id


class DecisionDebriefRequested(Event, of=run, inert=True):
    """An agent took the lease on concluding about this end of the run."""

    debriefer_agent_id: UUID
    debriefer_kind: str
    terminal_event_id: UUID


Markers = tuple[DecisionDebriefRequested, ...]


def lease_holder(markers: Markers, kind: str, terminal_event_id: UUID) -> UUID | None:
    """Return the agent of this kind that was first with its marker for this end of a run."""
    scope = (kind, terminal_event_id)
    return next((m.debriefer_agent_id for m in markers if (m.debriefer_kind, m.terminal_event_id) == scope), None)


@run.internal_command()
class RequestDecisionDebrief(JudgedVerb[Run, tuple[Agent, Markers]]):
    """Take the lease as the calling agent, or answer who has it; a repeated request has the same answer."""

    terminal_event_id: UUID

    def gather(self, run: Run, call: Call) -> Reads[tuple[Agent, Markers]]:
        agent = yield from require(Agent, call.principal_id)
        return agent, (yield from events_of(run.id, DecisionDebriefRequested))

    def decide(self, run: Run, call: Call, facts: tuple[Agent, Markers]) -> Outcome:
        agent, markers = facts
        end = self.terminal_event_id
        if (holder := lease_holder(markers, agent.kind, end)) is not None:
            return [Answer({"agent_id": str(holder)})]
        marker = DecisionDebriefRequested(debriefer_agent_id=agent.id, debriefer_kind=agent.kind, terminal_event_id=end)
        return [marker.identify(uuid5(run.id, f"lease:{end}:{agent.id}")), Answer({"agent_id": str(agent.id)})]


def decision_id_of(at: datetime, agent_id: UUID, cause: str) -> UUID:
    """Return the id of what an agent decides for a cause: however often it decides, there is one decision."""
    return derived_uuid7(int(at.timestamp() * 1000), str(agent_id), cause)


def agent_decision_event(choice: RegisterDecision, decision_id: UUID) -> DecisionRegistered:
    """Return the event of an agent's decision, under an id derived from the decision's."""
    return decisions.decision_event(choice).identify(uuid5(decision_id, "event:0"))


@decisions.decision.internal_command(creates=True)
class RecordAgentDecision(JudgedCreation[tuple[bool, bool]]):
    """Register what the calling agent decided, unless it has done so before; the answer says whether its calls are kept."""

    choice: RegisterDecision
    calls: tuple[Span, ...] = ()

    def gather(self, call: Call) -> Reads[tuple[bool, bool]]:
        """Return whether it was registered before, and whether the agent may keep its calls."""
        known = (yield from find(Decision, call.new_id)) is not None
        return known, bool(self.calls) and (yield from is_permitted(AppendInferences.operation.command_name))

    def decide(self, call: Call, facts: tuple[bool, bool]) -> Outcome:
        known, keeps_calls = facts
        assert self.choice.decided_by == call.principal_id, "an agent registers its own decisions"
        answer = Answer({"decision_id": str(call.new_id), "calls_kept": (keeps_calls and not known) or not self.calls})
        if known:
            return [answer]
        inferences = decisions.append_spans(self, self.calls, call.new_id, None, call) if keeps_calls else ()
        return [agent_decision_event(self.choice, call.new_id), *inferences, answer]
