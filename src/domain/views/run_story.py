"""The story of a run: what happened in it and in its phases, oldest first, each as a sentence with its time and author."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from baton.domain.access.actor import Names
from baton.domain.conduct.ends import ABORTED
from baton.domain.kernel import Event
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.procedure import HoldCause
from baton.domain.run import run as runs
from baton.domain.step.results import Failure, StepVerdict

RUN_EVENTS: tuple[type[Event], ...] = (
    *runs.BEGINNINGS,
    *(runs.RunHeld, runs.RunResumed, runs.RunAdjusted, runs.RunConducted, runs.RunWitnessChanged),
    *runs.ENDINGS,
    *(runs.RunConductStarted, runs.RunAcknowledged, runs.RunAddedToCampaign, runs.RunRemovedFromCampaign),
)
PHASE_EVENTS: tuple[type[Event], ...] = (
    *(procedures.ProcedureStarted, procedures.ProcedureResumed, procedures.ProcedureHoldRequested, procedures.ProcedureHeld),
    *(procedures.ProcedureStepResolved, procedures.ProcedureWaitSkipped, procedures.ProcedureAbortRequested),
    *(procedures.ProcedureConducted, procedures.ProcedureCompleted, procedures.ProcedureAborted),
    procedures.ProcedureTruncated,
)
HOLDS: Mapping[HoldCause, str] = {
    HoldCause.OPERATOR: "was held as asked",
    HoldCause.STEP_FAULT: "was held, because a step failed",
    HoldCause.DRIVER_STOOD_DOWN: "was held, because nobody steered the search any more",
    HoldCause.SUBMITTER_STOOD_DOWN: "was held, because the one who asked for it may not act any more",
    HoldCause.GATE_CLOSED: "was held, because a gate closed",
    HoldCause.OUTCOME_UNKNOWN: "was held, because nobody knew whether a step was done",
}


class Look(StrEnum):
    """How a line of the story looks; each look has a sign as well as a colour."""

    PLAIN = "plain"
    GOOD = "good"
    LOOK = "look"
    STOP = "stop"


class Sentence(NamedTuple):
    """What an event says to a reader, and the reason that somebody gave for it."""

    text: str
    look: Look = Look.PLAIN
    reason: str | None = None
    by_somebody: bool = True  # Whether the caller is named: a conduct records its own steps in the name of who asked for it.


@dataclass(frozen=True)
class StoryLine:
    """One thing that happened: when, in which phase, by whom, and why."""

    at: datetime
    text: str
    look: Look
    phase_id: UUID | None
    who: str | None
    reason: str | None
    decision_id: UUID | None


def story_of(run_events: Iterable[Event], phase_events: Iterable[Event], names: Names, *, texts: bool) -> list[StoryLine]:
    """Return the lines of a run's story in order; reasons that are withheld need the permission to read texts."""
    told = [(event, None) for event in run_events] + [(event, event.stream_id) for event in phase_events]
    lines = []
    for event, phase_id in sorted(told, key=lambda one: one[0].occurred_at):
        sentence = sentence_of(event)
        if sentence is None:
            continue
        who = names.get((event.caller_id, event.caller_surface_id)) if sentence.by_somebody else None
        reason = sentence.reason if texts or "reason" not in type(event).withheld else None
        decision_id = getattr(event, "decided_by_decision_id", None)
        lines.append(StoryLine(event.occurred_at, sentence.text, sentence.look, phase_id, who, reason, decision_id))
    return lines


def sentence_of(event: Event) -> Sentence | None:
    """Return what an event says to a reader; None where the story has nothing of it."""
    return run_sentence(event) or phase_sentence(event)


def run_sentence(event: Event) -> Sentence | None:
    """Return what an event of the run says."""
    match event:
        case runs.RunStarted():
            return Sentence("The run passed every gate and began", Look.GOOD)
        case runs.RunWitnessed():
            return Sentence("The run began elsewhere, and was recorded here", Look.GOOD)
        case runs.RunConductStarted(phases=phases):
            return Sentence(f"A conduct of {count_of(len(phases), 'phase')} was opened")
        case runs.RunHeld(reason=reason):
            return Sentence("The run was held", Look.LOOK, reason)
        case runs.RunResumed():
            return Sentence("The run was resumed", Look.GOOD)
        case runs.RunAdjusted(parameters_patch=patch, reason=reason):
            changed = ", ".join(f"{name} to {value}" for name, value in patch.items())
            return Sentence(f"Parameters were changed: {changed}", Look.LOOK, reason)
        case runs.RunConducted(result=result) if result.failure is not None:
            return Sentence("The conduct of the run ended early", Look.STOP, told_failure(result.failure), by_somebody=False)
        case runs.RunCompleted():
            return Sentence("The run was completed", Look.GOOD)
        case runs.RunStopped(reason=reason):
            return Sentence("The run was stopped; what it measured so far is good", Look.LOOK, reason)
        case runs.RunAborted(reason=reason):
            return Sentence("The run was aborted; what it measured is suspect", Look.STOP, reason)
        case runs.RunTruncated(reason=reason):
            return Sentence("The books were closed on the run, which had died by itself", Look.STOP, reason)
        case runs.RunAcknowledged():
            return Sentence("Somebody looked at how the run ended")
        case runs.RunWitnessChanged(change=change):
            return Sentence(f"Its witness reported: {change.value.lower()}", by_somebody=False)
        case runs.RunAddedToCampaign():
            return Sentence("The run joined a campaign")
        case runs.RunRemovedFromCampaign(reason=reason):
            return Sentence("The run was taken out of its campaign", Look.PLAIN, reason)
    return None


def phase_sentence(event: Event) -> Sentence | None:
    """Return what an event of a phase says."""
    match event:
        case procedures.ProcedureStarted():
            return Sentence("began", by_somebody=False)
        case procedures.ProcedureResumed(skipped_count=skipped):
            left_out = f"; {count_of(skipped, 'step')} were left out" if skipped else ""
            return Sentence(f"was taken up again{left_out}", Look.GOOD)
        case procedures.ProcedureHoldRequested(reason=reason):
            return Sentence("was asked to hold at its next step", Look.LOOK, reason)
        case procedures.ProcedureHeld(cause=cause, reason=reason):
            return Sentence(HOLDS[cause], Look.LOOK, reason, by_somebody=False)
        case procedures.ProcedureStepResolved(outcome=outcome, step_index=index, reason=reason):
            said = "done" if outcome is StepVerdict.DONE else "not done"
            return Sentence(f"step {index + 1}, whose outcome was unknown, was declared {said}", Look.LOOK, reason)
        case procedures.ProcedureWaitSkipped(step_index=index, reason=reason):
            return Sentence(f"the wait of step {index + 1} was ended as if it had come true", Look.LOOK, reason)
        case procedures.ProcedureAbortRequested(run_closing=run_closing, reason=reason):
            text = "its closing steps were conducted alone" if run_closing else "was asked to abort"
            return Sentence(text, Look.STOP, reason)
        case procedures.ProcedureConducted(result=result) if result.failure is not None and not result.held:
            if result.failure.error_class == ABORTED.error_class:
                return None
            return Sentence("failed", Look.STOP, told_failure(result.failure), by_somebody=False)
        case procedures.ProcedureCompleted():
            return Sentence("was completed", Look.GOOD, by_somebody=False)
        case procedures.ProcedureAborted(reason=reason):
            return Sentence("was aborted", Look.STOP, reason, by_somebody=False)
        case procedures.ProcedureTruncated(reason=reason):
            return Sentence("was closed, as it had died by itself", Look.STOP, reason)
    return None


def told_failure(failure: Failure) -> str:
    """Return what failed, for a reader: its steps are counted from 1."""
    step = "" if failure.step_index is None else f"Step {failure.step_index + 1}, "
    return f"{step}{failure.target}: {failure.message}"


def count_of(number: int, noun: str) -> str:
    """Return a number of things in words: `1 step`, `3 steps`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class WorkStretch:
    """A time in which something ran or was held; one that has not ended has no end."""

    begins: datetime
    ends: datetime | None
    held: bool


BEGIN: tuple[type[Event], ...] = (
    *runs.BEGINNINGS,
    procedures.ProcedureStarted,
    runs.RunResumed,
    procedures.ProcedureResumed,
)
HOLD: tuple[type[Event], ...] = (runs.RunHeld, procedures.ProcedureHeld)
END: tuple[type[Event], ...] = (
    *runs.ENDINGS,
    procedures.ProcedureCompleted,
    procedures.ProcedureAborted,
    procedures.ProcedureTruncated,
)


def stretches_of(events: Iterable[Event]) -> tuple[WorkStretch, ...]:
    """Return when a run or a phase ran and when it was held, by its own events."""
    stretches: list[WorkStretch] = []
    since, held = None, False
    for event in sorted(events, key=lambda one: one.occurred_at):
        if not isinstance(event, (*BEGIN, *HOLD, *END)):
            continue
        if since is not None and event.occurred_at > since:
            stretches.append(WorkStretch(since, event.occurred_at, held))
        since, held = (None, False) if isinstance(event, END) else (event.occurred_at, isinstance(event, HOLD))
    return (*stretches, *(() if since is None else (WorkStretch(since, None, held),)))
