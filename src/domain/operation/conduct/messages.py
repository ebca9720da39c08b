"""How a conduct walks: the place of a step, what it reports, and what each outcome of the steps leads to.

These are the words that the conductor and those who do the steps exchange; all of them are small, whatever the steps hold.
"""

from enum import StrEnum
from typing import Any, assert_never
from uuid import UUID, uuid5

from pydantic import ConfigDict

from baton.domain.kernel import Value
from baton.domain.operation.conduct.results import Failure, SourceKind, TerminationReason
from baton.domain.operation.procedure.procedure import ConductMode
from baton.domain.recipe.steps import (
    RecipeActionStep,
    RecipeCaptureStep,
    RecipeCheckStep,
    RecipeComputeStep,
    RecipeSetpointStep,
    RecipeStep,
)

CEILING = 10_000
"""Passes that no loop goes beyond."""
REASON = 500
"""Characters of a reason that are kept."""
COMMAND_LINE = 200
"""Characters of a program's command line by which it is told of; the whole of it is in the ledger."""
UNEXPECTED = "Something unexpected went wrong; the worker's log has it under this conduct."
"""What is told of a failure that nobody foresaw."""
INTERRUPTED = "StepInterrupted"
"""The failure of a step that came too late to be begun."""
SKIPPED = "skipped"
"""The result of a step that somebody had left out."""
WRITE_TIMEOUT = 30.0
READ_TIMEOUT = 5.0


class Mark(StrEnum):
    """What a row of the ledger says of its step."""

    IN_FLIGHT = "in_flight"
    OUTCOME = "outcome"
    DEPOSIT = "deposit"


class Message(Value):
    """What travels between the conductor and those who act for it; one of another build may say more than is understood."""

    model_config = ConfigDict(extra="ignore")


class Place(Message):
    """One step of one conduct: in which pass (0 where there are none), in which list, at which index."""

    procedure_id: UUID
    conduct_id: UUID
    iteration_index: int = 0
    closing: bool = False
    step_index: int

    def row_id(self, mark: Mark, attempt: int) -> UUID:
        """The id of a ledger row: the same whoever writes it, and however often."""
        part = "closing" if self.closing else "main"
        return uuid5(self.conduct_id, f"{self.iteration_index}:{part}:{self.step_index}:{mark.value}:{attempt}")


class Ahead(Message):
    """The step that comes next: what to call it, and how many seconds it may take by its own account."""

    label: str
    patience: float
    waits: float | None = None
    """Seconds that it waits for something to come true."""


def ahead_of(step: RecipeStep, action_timeout: float, compute_timeout: float) -> Ahead:
    """What there is to know of a step before it begins."""
    target = target_of(step)
    match step:
        case RecipeSetpointStep():
            return Ahead(label=f"set {target}", patience=WRITE_TIMEOUT + READ_TIMEOUT)
        case RecipeActionStep():
            return Ahead(label=f"do {target}", patience=action_timeout)
        case RecipeCheckStep():
            return Ahead(label=f"check {target}", patience=READ_TIMEOUT + (step.timeout or 0), waits=step.timeout)
        case RecipeCaptureStep():
            return Ahead(label=f"capture {step.capture_name} from {step.address}", patience=READ_TIMEOUT)
        case RecipeComputeStep():
            return Ahead(label=f"compute {step.command[0][:COMMAND_LINE]}", patience=compute_timeout)
        case _:
            assert_never(step)


def target_of(step: RecipeStep) -> str:
    """What a failure of this step is told of: an address, an action, or a command line."""
    match step:
        case RecipeSetpointStep() | RecipeCheckStep() | RecipeCaptureStep():
            return step.address
        case RecipeActionStep():
            return step.name
        case RecipeComputeStep():
            return " ".join(step.command)[:COMMAND_LINE]
        case _:
            assert_never(step)


class Verdict(StrEnum):
    """What a step, or whatever stands between two steps, tells the conductor."""

    DONE = "done"
    FAILED = "failed"
    HOLD = "hold"
    """Somebody asked for a hold."""
    ABORT = "abort"
    """Somebody asked for an abort."""
    RUN_HELD = "run_held"
    RUN_STOPPED = "run_stopped"
    RUN_ABORTED = "run_aborted"
    HALT = "halt"
    """An acquisition that an earlier conduct began must not be done again."""
    STOOD_DOWN = "stood_down"
    """The submitter may not act any more; nothing was touched."""
    GONE = "gone"
    """The conduct is not the live one any more; nothing was touched."""


class Report(Message):
    """What came of a step, and what comes next in its list."""

    verdict: Verdict
    failure: Failure | None = None
    ahead: Ahead | None = None
    job_id: str | None = None
    """The job of a compute step that was submitted and is to be waited for."""


class Briefing(Message):
    """What a conductor must know to begin."""

    command_name: str
    mode: ConductMode | None
    """None where only the closing steps are walked."""
    step_count: int
    closing_count: int
    boundary: int = 0
    ahead: Ahead | None = None
    closing_ahead: Ahead | None = None
    loop_ahead: Ahead | None = None
    """The first step of every pass."""
    asks_first: bool = False
    """Whether the decider is asked before the first pass, because something was measured before."""
    advised_from_outside: bool = False
    """Whether somebody else is waited for to advise."""
    first_point: dict[str, Any] | None = None


class Finish(StrEnum):
    """How the main list came to its end."""

    COMPLETED = "completed"
    FAILED = "failed"
    HELD = "held"
    ABORTED = "aborted"
    STOPPED = "stopped"
    """The parent run was stopped."""
    HALTED = "halted"
    STOOD_DOWN = "stood_down"
    """Who asked for the conduct, or steered its search, does not go on with it any more."""
    CANCELLED = "cancelled"
    """The engine was told to cancel the conduct."""
    GONE = "gone"


class Outcome(Message):
    """The end of the main list, with what there is to say of it."""

    finish: Finish
    failure: Failure | None = None
    completed_count: int = 0
    termination_reason: TerminationReason | None = None
    denied: bool = False
    """Whether an inner command was refused to the submitter; the service then ends the conduct itself."""
    closing_cut_at: int | None = None
    """The closing step before which an abort stopped the walk."""


class Cursor(Message):
    """Where a conduct stands between two steps; everything else is on the record."""

    closing: bool = False
    iteration_index: int = 0
    """The pass that is open; 0 between passes, and where there are none."""
    step_index: int = 0
    ahead: Ahead | None = None
    passes: int = 0
    """Passes that this conduct has begun."""
    point: dict[str, Any] | None = None
    """Where the pass measures, or the next one will."""
    outcome: Outcome | None = None


class ConductOrder(Message):
    """What a conductor is told: which conduct, on whose behalf, and where it stands if it has begun."""

    procedure_id: UUID
    conduct_id: UUID
    principal_id: UUID
    surface_id: UUID
    conduit_id: UUID
    correlation_id: UUID
    briefing: Briefing | None = None
    cursor: Cursor = Cursor()


class Turn(Message):
    """What stands at the beginning or the end of a pass: whether it begins, how it ended, where to measure next."""

    verdict: Verdict
    iteration_index: int = 0
    converged: bool | None = None
    stop: bool = False
    point: dict[str, Any] | None = None
    failure: Failure | None = None
    termination_reason: TerminationReason | None = None
    stood_down: bool = False
    denied: bool = False


ENDS: dict[Verdict, Finish] = {
    Verdict.FAILED: Finish.FAILED,
    Verdict.HOLD: Finish.HELD,
    Verdict.ABORT: Finish.ABORTED,
    Verdict.RUN_STOPPED: Finish.STOPPED,
    Verdict.RUN_ABORTED: Finish.ABORTED,
    Verdict.HALT: Finish.HALTED,
    Verdict.STOOD_DOWN: Finish.STOOD_DOWN,
    Verdict.GONE: Finish.GONE,
}
"""Where a walk ends that does not go on."""


def holds(command_name: str, failure: Failure | None) -> bool:
    """Whether a failure leaves the procedure Held for a person instead of Aborted."""
    if command_name != "ConductOrHoldProcedure" or failure is None or failure.message == UNEXPECTED:
        return False
    return failure.source_kind in ("setpoint", "check") or failure.error_class == INTERRUPTED


def closes(command_name: str, outcome: Outcome) -> bool:
    """Whether the closing steps are walked: only at a real end, never on a hold, a halt or a cancellation."""
    if outcome.denied and outcome.finish not in (Finish.ABORTED, Finish.CANCELLED):
        return True
    match outcome.finish:
        case Finish.COMPLETED | Finish.STOPPED:
            return True
        case Finish.FAILED:
            return not holds(command_name, outcome.failure)
        case Finish.HELD | Finish.ABORTED | Finish.HALTED | Finish.STOOD_DOWN | Finish.CANCELLED | Finish.GONE:
            return False
        case _:
            assert_never(outcome.finish)


def failure_of(step: RecipeStep, step_index: int, error_class: str, message: str) -> Failure:
    """The failure of a step."""
    kind: SourceKind = step.kind
    return Failure(step_index=step_index, source_kind=kind, target=target_of(step), error_class=error_class, message=message)


def interrupted(step: RecipeStep, step_index: int, *, begun: bool) -> Failure:
    """The failure of a step before which the conduct stood still for too long; one that was begun may have had effect."""
    touched = "an attempt at it may have been written; look at the equipment." if begun else "nothing was touched."
    message = f"The conduct stood still for too long to go on unasked; {touched}"
    return failure_of(step, step_index, INTERRUPTED, message)


def lifecycle(target: str, error_class: str, message: str) -> Failure:
    """A failure of no step: of starting, holding, completing or aborting."""
    return Failure(source_kind="lifecycle", target=target, error_class=error_class, message=message)


OBJECTIONS = {
    "principal_deactivated": "The account that asked for this conduct is deactivated",
    "agent_not_versioned": "The agent that asked for this conduct is not in service",
    "principal_unknown": "The account that asked for this conduct is not on record",
}
"""What is said of each reason for which a principal may not act at all."""
DRIVER_STOOD_DOWN, SUBMITTER_STOOD_DOWN = "SteeringDriverStoodDown", "SubmitterStoodDown"


def submitter_stood_down(objection: str | None, *, steers: bool) -> Failure:
    """The failure of a conduct whose submitter may not act any more; an agent that steers is the search's driver."""
    why = OBJECTIONS.get(objection or "", "The account that asked for this conduct could not act for it")
    message = f"{why}; look at the equipment, and have somebody take it up who may, or abort it."
    return lifecycle("hold", DRIVER_STOOD_DOWN if steers else SUBMITTER_STOOD_DOWN, message)


def reason_of(failure: Failure) -> str:
    """A failure as the reason of what it leads to."""
    index = "" if failure.step_index is None else f"[{failure.step_index}]"
    text = f"{failure.source_kind}{index} {failure.target} failed: {failure.error_class}: {failure.message}"
    return text[:REASON]
