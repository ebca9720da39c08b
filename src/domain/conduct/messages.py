"""The messages that conduct workflows and activities exchange: orders, places, reports and outcomes.
Histories record them, so they stay small and keep their keys; `wire` names a key that differs from its attribute."""

from abc import abstractmethod
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from itertools import islice, takewhile
from typing import Annotated, Any, assert_never
from uuid import UUID, uuid5

from pydantic import ConfigDict, Field

from baton.domain.kernel import Value
from baton.domain.procedure.procedure import ConductMode
from baton.domain.recipe import steps
from baton.domain.recipe.steps import RecipeStep
from baton.domain.start.procedure_start import OBJECTIONS
from baton.domain.step.results import Failure, TerminationReason

MAX_PASSES = 10_000  # the limit of passes of every loop
MAX_REASON_LENGTH = 500
MAX_COMMAND_LENGTH = 200  # characters of a program's command line in labels and failures; the ledger holds all of it
UNEXPECTED_FAILURE = "Something unexpected went wrong; the worker's log has it under this conduct."  # no rule foresees it
INTERRUPTED = "StepInterrupted"  # the error class of a step that came too late to begin
SKIPPED = "skipped"  # the result in the ledger row of a step that a person left out
WRITE_TIMEOUT = 30.0
READ_TIMEOUT = 5.0


def wire(key: str) -> Any:
    """Return the field declaration of an attribute whose key in histories differs from its name."""
    return Field(validation_alias=key, serialization_alias=key)


class Mark(StrEnum):
    """What a ledger row says about its step."""

    IN_FLIGHT = "in_flight"
    OUTCOME = "outcome"
    DEPOSIT = "deposit"
    VERDICT = "verdict"  # what a person said about a step whose outcome is unknown


class Message(Value):
    """A value in a workflow history; unknown keys, which another build may have written, are ignored."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True, serialize_by_alias=True)


class OwnedRequest(Message):
    """The argument of an activity that only one workflow may call."""

    @property
    @abstractmethod
    def workflow_id(self) -> str:
        """Return the id of that workflow."""


class ConductRequest(OwnedRequest):
    """One conduct of a procedure, as the argument of an activity."""

    procedure_id: UUID
    conduct_id: UUID

    @property
    def workflow_id(self) -> str:
        return conduct_workflow_id(self.procedure_id)


class StepPlace(ConductRequest):
    """One step of one conduct: its pass (0 outside passes), its list and its index."""

    iteration_index: int = 0
    closing: bool = False
    step_index: int

    def row_id(self, mark: Mark, attempt: int) -> UUID:
        """Return the id of a ledger row, which is the same for every writer and every repetition."""
        part = "closing" if self.closing else "main"
        return uuid5(self.conduct_id, f"{self.iteration_index}:{part}:{self.step_index}:{mark.value}:{attempt}")


class PlacedRequest(OwnedRequest):
    """A step of a conduct, and where its pass measures."""

    place: StepPlace
    point: dict[str, float | str] | None = None

    @property
    def workflow_id(self) -> str:
        return self.place.workflow_id


class StepRequest(PlacedRequest):
    """The argument of `do_step`."""

    deadline: datetime | None = None  # until when a check waits


class StretchRequest(PlacedRequest):
    """The argument of `do_steps`: so many quick steps from a place on."""

    count: int


class JobRequest(PlacedRequest):
    """The argument of `collect_job`: a compute step whose program was submitted."""

    job_id: str


class StartPassRequest(ConductRequest):
    """The argument of `start_pass`; the count is there for readers of the history."""

    passes: int


class PassRequest(ConductRequest):
    """A pass that was walked to its last step."""

    iteration_index: int


class NextStep(Message):
    """The step that comes next: its label, and how many seconds it may take."""

    label: str
    timeout_seconds: Annotated[float, wire("patience")]
    wait_seconds: Annotated[float | None, wire("waits")] = None  # how long a check waits for its criterion
    stretch_count: int = 1  # how many steps, from this one on, are so quick that one activity does them all


MAX_STRETCH = 200  # quick steps that one activity does at most


def describe_steps(
    listed: Sequence[RecipeStep], index: int, action_timeout: float, compute_timeout: float
) -> NextStep | None:
    """Return label and timeouts of the step at an index, and how many quick steps begin there; None behind the last one."""
    if index >= len(listed):
        return None
    described = describe_step(listed[index], action_timeout, compute_timeout)
    count = sum(1 for _ in takewhile(is_quick, islice(listed, index, index + MAX_STRETCH)))
    if count < 2:
        return described
    seconds = count * (WRITE_TIMEOUT + READ_TIMEOUT)
    return described.model_copy(update={"stretch_count": count, "timeout_seconds": seconds})


def is_quick(step: RecipeStep) -> bool:
    """Return whether a step is over at once, so that others may follow it in the same activity."""
    match step:
        case steps.RecipeSetpointStep() | steps.RecipeCaptureStep() | steps.RecipeCheckStep():
            return not steps.wait_seconds(step)
        case _:
            return False


def describe_step(step: RecipeStep, action_timeout: float, compute_timeout: float) -> NextStep:
    """Return label and timeouts of a step."""
    target = target_of(step)
    match step:
        case steps.RecipeSetpointStep():
            timeout = WRITE_TIMEOUT + READ_TIMEOUT + steps.wait_seconds(step)
            return NextStep(label=f"set {target}", timeout_seconds=timeout)
        case steps.RecipeActionStep():
            return NextStep(label=f"do {target}", timeout_seconds=action_timeout)
        case steps.RecipeCheckStep(timeout=wait):
            return NextStep(label=f"check {target}", timeout_seconds=READ_TIMEOUT + (wait or 0), wait_seconds=wait)
        case steps.RecipeCaptureStep():
            return NextStep(label=f"capture {step.capture_name} from {step.address}", timeout_seconds=READ_TIMEOUT)
        case steps.RecipeComputeStep():
            return NextStep(label=f"compute {step.command[0][:MAX_COMMAND_LENGTH]}", timeout_seconds=compute_timeout)
        case _:
            assert_never(step)


def target_of(step: RecipeStep) -> str:
    """Return what a failure of the step names: an address, an action or a command line."""
    match step:
        case steps.RecipeSetpointStep() | steps.RecipeCheckStep() | steps.RecipeCaptureStep():
            return step.address
        case steps.RecipeActionStep():
            return step.name
        case steps.RecipeComputeStep():
            return " ".join(step.command)[:MAX_COMMAND_LENGTH]
        case _:
            assert_never(step)


class ConductVerdict(StrEnum):
    """What a step, or the record between two steps, says to the conduct."""

    DONE = "done"
    FAILED = "failed"
    HOLD = "hold"  # a person asked for a hold
    ABORT = "abort"  # a person asked for an abort
    RUN_HELD = "run_held"
    RUN_STOPPED = "run_stopped"
    RUN_ABORTED = "run_aborted"
    HALT = "halt"  # an earlier conduct began this acquisition, so it must not run again
    GATE_CLOSED = "gate_closed"  # a gate that is watched has closed; nothing was touched
    STOOD_DOWN = "stood_down"  # the submitter may not act any more; nothing was touched
    DENIED = "denied"  # one permission of the submitter was withdrawn
    GONE = "gone"  # the conduct is not the live one any more; nothing was touched

    @classmethod
    def _missing_(cls, value: object) -> "ConductVerdict | None":
        """Read what earlier builds said about phases."""
        earlier = {"opened": cls.DONE, "completed": cls.DONE, "run_resumed": cls.DONE, "run_ended": cls.RUN_STOPPED}
        return earlier.get(str(value))


class StepReport(Message):
    """The verdict of a step, and the step that follows in its list."""

    verdict: ConductVerdict
    failure: Failure | None = None
    next_step: Annotated[NextStep | None, wire("ahead")] = None
    job_id: str | None = None  # the job of a compute step that was submitted and is to be collected
    done_count: int | None = None  # how many steps of a stretch are done; None where one step was to be done


class ConductStart(Message):
    """What the workflow must know to begin."""

    command_name: str
    mode: ConductMode | None  # None where only the closing steps are walked
    step_count: int
    closing_count: int
    boundary: int = 0
    next_step: Annotated[NextStep | None, wire("ahead")] = None
    closing_step: Annotated[NextStep | None, wire("closing_ahead")] = None  # the first closing step
    loop_step: Annotated[NextStep | None, wire("loop_ahead")] = None  # the first step of every pass
    asks_first: bool = False  # whether the decider is asked before the first pass, because an earlier conduct has measured
    advised_from_outside: bool = False  # whether the conduct waits for a person or agent to advise
    first_point: dict[str, Any] | None = None
    ends_directly: bool = False  # whether nothing is to be closed; earlier builds always asked whether closing may begin
    holds_unknown: bool = False  # whether a step whose outcome is unknown holds the procedure for a person
    ends_locally: bool = False  # whether it ends with a local activity; earlier builds ended with a regular one


class Finish(StrEnum):
    """How the main list ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    FAULTED = "faulted"  # a step failed, and a person looks at it before anything ends
    UNKNOWN = "unknown"  # whether a step had its effect is not known, and a person says
    HELD = "held"
    GATE_CLOSED = "gate_closed"
    ABORTED = "aborted"
    STOPPED = "stopped"  # the parent run was stopped
    HALTED = "halted"
    STOOD_DOWN = "stood_down"  # the submitter, or the driver of the search, does not continue
    DENIED = "denied"  # a command was refused to the submitter; the service ends the conduct itself
    CANCELLED = "cancelled"  # the workflow was cancelled in the engine
    GONE = "gone"

    @classmethod
    def _missing_(cls, value: object) -> "Finish | None":
        """Read what earlier builds said about runs."""
        return cls.STOPPED if value == "ended" else None


class ConductOutcome(Message):
    """The end of the main list, with its reason."""

    finish: Finish
    failure: Failure | None = None
    completed_count: int = 0
    termination_reason: TerminationReason | None = None
    closing_cut_at: int | None = None  # the closing step before which an abort stopped the closing steps


class ConductEnd(ConductRequest):
    """The argument of `begin_closing` and `end_conduct`."""

    outcome: ConductOutcome
    closed: bool = False  # whether the closing steps were walked


class ConductCursor(Message):
    """The position of a conduct between two steps; everything else is on the record."""

    closing: bool = False
    iteration_index: int = 0  # the open pass; 0 between passes, and where there are none
    step_index: int = 0
    next_step: Annotated[NextStep | None, wire("ahead")] = None
    passes: int = 0  # passes that this conduct has begun
    point: dict[str, Any] | None = None  # where this pass measures, or the next one will
    outcome: ConductOutcome | None = None


class ConductOrder(Message):
    """The argument of the conduct workflow: the conduct, its submitter, and its position once it has begun."""

    procedure_id: UUID
    conduct_id: UUID
    principal_id: UUID
    surface_id: UUID
    conduit_id: UUID
    correlation_id: UUID
    start: Annotated[ConductStart | None, wire("briefing")] = None
    cursor: ConductCursor = ConductCursor()
    begins_locally: bool = False  # whether it begins with a local activity; earlier builds began with a regular one


class PassDecision(Message):
    """What is decided at the beginning or the end of a pass: whether it begins, how it ended, where to measure next."""

    verdict: ConductVerdict
    iteration_index: int = 0
    converged: bool | None = None
    stop: bool = False
    point: dict[str, Any] | None = None
    failure: Failure | None = None
    termination_reason: TerminationReason | None = None
    stood_down: bool = False  # said by earlier builds beside another verdict


def conduct_workflow_id(procedure_id: UUID) -> str:
    """Return the id of the workflow that conducts a procedure."""
    return f"conduct:{procedure_id}"


def step_failure(
    step: RecipeStep, step_index: int, error_class: str, message: str, facts: dict[str, Any] | None = None
) -> Failure:
    """Return the failure of a step."""
    failure = Failure(
        step_index=step_index, source_kind=step.kind, target=target_of(step), error_class=error_class, message=message
    )
    return failure.model_copy(update={"facts": facts}) if facts else failure


def interruption(step: RecipeStep, step_index: int, *, begun: bool) -> Failure:
    """Return the failure of a step before which the conduct paused for too long; one that was begun may have had effect."""
    touched = "an attempt at it may have been written; look at the equipment." if begun else "nothing was touched."
    message = f"The conduct stood still for too long to go on unasked; {touched}"
    return step_failure(step, step_index, INTERRUPTED, message)


def lifecycle_failure(target: str, error_class: str, message: str) -> Failure:
    """Return a failure of starting, holding, completing or aborting, which belongs to no step."""
    return Failure(source_kind="lifecycle", target=target, error_class=error_class, message=message)


DRIVER_STOOD_DOWN, SUBMITTER_STOOD_DOWN = "SteeringDriverStoodDown", "SubmitterStoodDown"


def submitter_stood_down(objection: str | None, *, steers: bool) -> Failure:
    """Return the failure of a conduct whose submitter may not act any more; an agent that steers is the search's driver."""
    why = OBJECTIONS.get(objection or "", "The account that asked for this conduct could not act for it")
    message = f"{why}; look at the equipment, and have somebody take it up who may, or abort it."
    return lifecycle_failure("hold", DRIVER_STOOD_DOWN if steers else SUBMITTER_STOOD_DOWN, message)


def reason_of(failure: Failure) -> str:
    """Return a failure as the reason of the hold or abort that it leads to."""
    index = "" if failure.step_index is None else f"[{failure.step_index}]"
    text = f"{failure.source_kind}{index} {failure.target} failed: {failure.error_class}: {failure.message}"
    return text[:MAX_REASON_LENGTH]
