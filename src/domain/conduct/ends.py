"""How conducts end: one table from the way in which the walk ended to what that leads to, for procedures and for runs.
The workflow, the conductors and the views all read it here."""

from enum import Enum, auto
from typing import NamedTuple

from baton.domain.conduct.messages import (
    INTERRUPTED,
    UNEXPECTED_FAILURE,
    ConductOutcome,
    ConductVerdict,
    Finish,
    lifecycle_failure,
)
from baton.domain.procedure.procedure import ConductCommand, HoldCause
from baton.domain.step.results import Failure

UNSETTLED = "The next step was begun by an earlier conduct and is not repeated; settle it by hand first."
UNKNOWN_OUTCOMES = ("ActionOutcomeUnknown", "ComputeOutcomeUnknown", "PlanOutcomeUnknown")
"""The error classes of steps that may have had their effect."""
NOT_BEGUN = ("PlanExecutorBusyError", "PlanExecutorUnavailableError")
"""The error classes of steps that an executor did not take, so that nothing was begun."""


class EndEffect(Enum):
    """What an end does to the procedure or run."""

    COMPLETE = auto()
    HOLD = auto()
    ABORT = auto()
    STAY = auto()  # its status stays, and a person settles what is left
    NOTHING = auto()  # another conduct has it, or none


class End(NamedTuple):
    """What one way to end leads to."""

    leads_to: EndEffect
    text: str  # how the engine's pages say it
    closes: bool = False  # whether the closing steps are walked: only at a real end
    cause: HoldCause | None = None
    by_service: bool = False  # whether the service itself ends it, because the submitter may not or did not ask for it
    failure: Failure | None = None  # what the result says where no step failed


HELD = lifecycle_failure("hold", "ProcedureHeldByOperator", "The procedure was held as asked.")
ABORTED = lifecycle_failure("abort", "ProcedureAborted", "The conduct was aborted as asked.")
STOPPED = lifecycle_failure("abort", "RunStopped", "The parent run was stopped.")
CANCELLED = lifecycle_failure("abort", "CancelledError", "The conduct was cancelled in the engine.")
HALTED = lifecycle_failure("hold", "AcquisitionResumeRequiresOperator", UNSETTLED)

ENDS: dict[Finish, End] = {
    Finish.COMPLETED: End(EndEffect.COMPLETE, "completed", closes=True),
    Finish.FAILED: End(EndEffect.ABORT, "aborted, because a step failed", closes=True),
    Finish.FAULTED: End(EndEffect.HOLD, "held, because a step failed", cause=HoldCause.STEP_FAULT),
    Finish.UNKNOWN: End(
        EndEffect.HOLD, "held, because nobody knows whether a step was done", cause=HoldCause.OUTCOME_UNKNOWN
    ),
    Finish.HELD: End(EndEffect.HOLD, "held as asked", cause=HoldCause.OPERATOR, failure=HELD),
    Finish.GATE_CLOSED: End(
        EndEffect.HOLD, "held, because a watched gate has closed", cause=HoldCause.GATE_CLOSED, by_service=True
    ),
    Finish.STOOD_DOWN: End(
        EndEffect.HOLD,
        "held, because its submitter may not act any more",
        cause=HoldCause.SUBMITTER_STOOD_DOWN,
        by_service=True,
    ),
    Finish.ABORTED: End(EndEffect.ABORT, "aborted as asked", failure=ABORTED),
    Finish.STOPPED: End(EndEffect.ABORT, "aborted, because the run was ended", closes=True, failure=STOPPED),
    Finish.DENIED: End(EndEffect.ABORT, "aborted, because its submitter lacks a permission", closes=True, by_service=True),
    Finish.CANCELLED: End(EndEffect.ABORT, "aborted, because it was cancelled in the engine", failure=CANCELLED),
    Finish.HALTED: End(EndEffect.STAY, "halted before an acquisition that is not repeated", by_service=True, failure=HALTED),
    Finish.GONE: End(EndEffect.NOTHING, "over, for another conduct or none has it"),
}

FINISHES: dict[ConductVerdict, Finish] = {
    ConductVerdict.FAILED: Finish.FAILED,
    ConductVerdict.HOLD: Finish.HELD,
    ConductVerdict.ABORT: Finish.ABORTED,
    ConductVerdict.RUN_STOPPED: Finish.STOPPED,
    ConductVerdict.RUN_ABORTED: Finish.ABORTED,
    ConductVerdict.HALT: Finish.HALTED,
    ConductVerdict.GATE_CLOSED: Finish.GATE_CLOSED,
    ConductVerdict.STOOD_DOWN: Finish.STOOD_DOWN,
    ConductVerdict.DENIED: Finish.DENIED,
    ConductVerdict.GONE: Finish.GONE,
}  # How the walk ends at each verdict after which it does not continue.


def finish_after(verdict: ConductVerdict, failure: Failure | None, command_name: str, *, holds_unknown: bool) -> Finish:
    """Return how a walk ends at a verdict; a failed step may leave the procedure Held for a person instead of Aborted."""
    if verdict is not ConductVerdict.FAILED or failure is None:
        return FINISHES[verdict]
    if failure.error_class in UNKNOWN_OUTCOMES:
        return Finish.UNKNOWN if holds_unknown else Finish.FAILED
    holds_faults = command_name == ConductCommand.CONDUCT_OR_HOLD and failure.message != UNEXPECTED_FAILURE
    held = failure.source_kind in ("setpoint", "check") or failure.error_class in (INTERRUPTED, *NOT_BEGUN)
    return Finish.FAULTED if holds_faults and held else Finish.FAILED


def finish_denied(finish: Finish) -> Finish:
    """Return how a walk ends whose submitter may not end it so; an abort or a cancellation walks no closing steps."""
    return finish if finish in (Finish.ABORTED, Finish.CANCELLED) else Finish.DENIED


def failure_of_end(outcome: ConductOutcome) -> Failure | None:
    """Return what failed, or why it ended otherwise than completed."""
    return outcome.failure or ENDS[outcome.finish].failure
