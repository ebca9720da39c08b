"""What language-model agents of every kind have in common: a run that ended, what is asked about it, what is concluded.

An agent sees the run as data and concludes once for each end of a run. Whatever keeps it from concluding is put on record
as well, as a choice of its own.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from baton.domain.agent.prompts import Prompt
from baton.domain.decision.decision import ConfidenceSource, RegisterDecision
from baton.domain.kernel import NIL, SYSTEM_CONDUIT, Event, Value, instant
from baton.domain.operation.conduct.results import Failure
from baton.domain.operation.procedure.procedure import Procedure
from baton.domain.run.run import Run, RunAborted, RunCompleted, RunStopped, RunTruncated
from baton.domain.shared.reads import Reads

TERMINAL: tuple[type[Event], ...] = (RunCompleted, RunAborted, RunStopped, RunTruncated)
"""The events that end a run."""
MOST_PHASES = 50
MOST_CHANNELS = 200
MOST_CLOSING_FAILURES = 10
LONGEST_PARAMETERS = 20_000
"""Characters of parameters that a model is shown; of more, only how many there are."""


@dataclass(frozen=True)
class Terminal:
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
    """What a model is shown, and what its answer may refer to."""

    facts: Mapping[str, Any]
    candidates: frozenset[tuple[str, UUID]] = frozenset()
    cautions: frozenset[UUID] = frozenset()


@dataclass(frozen=True)
class Conclusion:
    """What an answer comes to."""

    choice: str
    confidence: float
    reasoning: str
    inputs: Mapping[str, Any] = field(default_factory=dict)


class UnusableAnswerError(Exception):
    """A model's answer has the right form and breaks a rule all the same; the rule's name is what is put on record."""

    def __init__(self, failure: str) -> None:
        super().__init__(failure)
        self.failure = failure


@dataclass(frozen=True, kw_only=True)
class Task:
    """What agents of one kind do when a run has ended."""

    kind: str
    workflow: str
    context: str
    conflicted: str
    """The choice of whoever did not get the lease."""
    deferred: str
    """The choice where no answer was to be had."""
    prompt: Prompt
    commands: frozenset[str]
    """What an agent must be permitted before it begins."""
    material: "Callable[[Run, Terminal | None], Reads[Material]]"
    conclude: "Callable[[Mapping[str, Any], Material], Conclusion]"

    @property
    def rule(self) -> str:
        return f"agent:{self.kind}:v1"

    def choice(
        self,
        agent_id: UUID,
        inputs: Mapping[str, Any],
        concluded: Conclusion | None = None,
        *,
        instead: str = "",
        reasoning: str | None = None,
        parent_id: UUID | None = None,
    ) -> RegisterDecision:
        """The decision of what was concluded, or of what came instead."""
        return RegisterDecision(
            decided_by=agent_id,
            context=self.context,
            choice=instead if concluded is None else concluded.choice,
            parent_id=parent_id,
            rule=self.rule,
            reasoning=reasoning if concluded is None else concluded.reasoning,
            confidence=None if concluded is None else concluded.confidence,
            confidence_source=None if concluded is None else ConfidenceSource.SELF_REPORTED,
            inputs={**inputs, **({} if concluded is None else concluded.inputs)},
        )


def cause_of(terminal_event_id: UUID) -> str:
    """What the id of a conclusion follows from, besides the agent."""
    return f"decision:{terminal_event_id}"


def run_facts(run: Run, terminal: Terminal | None, phases: tuple[Procedure, ...]) -> dict[str, Any]:
    """What is said of a run to a model; who did what is not."""
    event: Any = None if terminal is None else terminal.event
    interrupted_at = getattr(event, "interrupted_at", None)
    return {
        "terminal_event_type": None if terminal is None else terminal.event_type,
        "terminal_event_reason": getattr(event, "reason", None),
        "terminal_event_occurred_at": None if terminal is None else instant(terminal.occurred_at),
        "run_id": str(run.id),
        "run_name": run.name,
        "run_status": run.status.value,
        "plan_id": str(run.plan_id),
        "subject_id": None if run.subject_id is None else str(run.subject_id),
        "campaign_id": None if run.campaign_id is None else str(run.campaign_id),
        "effective_parameters": bounded(run.effective_parameters),
        "hold_count": run.hold_count,
        "last_held_at": None if run.last_held_at is None else instant(run.last_held_at),
        "last_hold_reason": run.last_hold_reason,
        "adjustment_count": run.adjustment_count,
        "last_adjusted_at": None if run.last_adjusted_at is None else instant(run.last_adjusted_at),
        "interrupted_at": None if interrupted_at is None else instant(interrupted_at),
        "pinned_calibration_ids": sorted(map(str, run.pinned_calibration_ids)),
        "phases": [phase_facts(phase) for phase in phases[:MOST_PHASES]],
    }


def phase_facts(phase: Procedure) -> dict[str, Any]:
    """What is said of one procedure of a run."""
    return {
        "procedure_id": str(phase.id),
        "name": phase.name,
        "status": phase.status.value,
        "failure": None if phase.failure is None else failure_facts(phase.failure),
        "closing_failures": [failure_facts(failure) for failure in phase.closing_failures[:MOST_CLOSING_FAILURES]],
        "iteration_count": phase.iteration_count,
        "skipped_count": phase.skipped_count,
    }


def failure_facts(failure: Failure) -> dict[str, Any]:
    return failure.model_dump(mode="json")


def bounded(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Parameters, or how many there are where they would fill a prompt."""
    if len(json.dumps(parameters, default=str)) <= LONGEST_PARAMETERS:
        return parameters
    return {"omitted": f"{len(parameters)} parameters, too long to show"}


class ConclusionOrder(Value):
    """What an agent is to conclude about: the end of a run."""

    kind: str
    agent_id: UUID
    run_id: UUID
    terminal_event_id: UUID
    correlation_id: UUID
    """That of the request with which the run ended."""

    @property
    def principal_id(self) -> UUID:
        return self.agent_id

    @property
    def surface_id(self) -> UUID:
        return NIL

    @property
    def conduit_id(self) -> UUID:
        return SYSTEM_CONDUIT
