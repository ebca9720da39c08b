"""A procedure: one execution of an episodic task; with a parent run, a phase of that run. It is carried out by hand, or
conducted: then its stream says which conduct is live, the pending request, and the result."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.caution.caution import AcknowledgedCaution
from baton.domain.decision.decision import ConfidenceSource
from baton.domain.kernel import Aggregate, Event, IdSet, State, Value, copy_with
from baton.domain.procedure.touched import TouchedSignals
from baton.domain.recipe.conduct_options import ConductOptions, OnUnknownOutcome, WatchedGates, conduct_options
from baton.domain.recipe.steps import PlainCriterion, Step
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.logbooks import LogbookOpened
from baton.domain.shared.reads import Reads, latest_events
from baton.domain.shared.text import FreeText, MayContainPersonalData, StateReason
from baton.domain.steering import steering
from baton.domain.steering.steering import Point, SteeringAdvice
from baton.domain.step import results
from baton.domain.step.results import ActuationKind, ConductResult, Measured, PlacedStep, ResolvedStep, StepVerdict


class ProcedureStatus(StrEnum):
    DEFINED = "Defined"
    RUNNING = "Running"
    HELD = "Held"
    COMPLETED = "Completed"
    ABORTED = "Aborted"
    TRUNCATED = "Truncated"


PHASES = "phase"  # Look-up kind: the procedures that are phases of a run.
DEFINED, RUNNING, HELD, COMPLETED, ABORTED, TRUNCATED = ProcedureStatus
UNDER_WAY = (RUNNING, HELD)
ENDED = (COMPLETED, ABORTED, TRUNCATED)


class HoldCause(StrEnum):
    OPERATOR = "Operator"
    STEP_FAULT = "StepFault"
    DRIVER_STOOD_DOWN = "DriverStoodDown"  # Who steers a search does not any more.
    SUBMITTER_STOOD_DOWN = "SubmitterStoodDown"  # Who asked for the conduct may not act any more.
    GATE_CLOSED = "GateClosed"  # A gate that is watched closed while the procedure was conducted.
    OUTCOME_UNKNOWN = "OutcomeUnknown"  # Nobody knows whether a step was done, until a person resolves it.


class ConductMode(StrEnum):
    FLAT = "Flat"  # The steps once, from beginning to end.
    CONVERGED = "Converged"  # The steps again and again, until a criterion is met.
    ADVISED = "Advised"  # The steps again and again, where a decider says.


class PendingRequest(StrEnum):
    HOLD = "Hold"
    ABORT = "Abort"


class ConductCommand(StrEnum):
    """The commands that conduct a procedure, by name; `command_name` of a conduct is one of them, or AbortProcedure."""

    CONDUCT = "ConductProcedure"
    CONDUCT_OR_HOLD = "ConductOrHoldProcedure"
    CONDUCT_FROM = "ConductFromProcedure"
    UNTIL_CONVERGED = "ConductUntilConverged"
    UNTIL_ADVISED = "ConductUntilAdvised"
    UNTIL_ADVISED_FROM = "ConductUntilAdvisedFrom"


MODES: Mapping[str, ConductMode] = {
    **dict.fromkeys(ConductCommand, ConductMode.FLAT),
    ConductCommand.UNTIL_CONVERGED: ConductMode.CONVERGED,
    ConductCommand.UNTIL_ADVISED: ConductMode.ADVISED,
    ConductCommand.UNTIL_ADVISED_FROM: ConductMode.ADVISED,
}  # How each command conducts.


@dataclass(frozen=True, kw_only=True)
class Procedure(State):
    """A procedure is one execution of an episodic task, which changes or verifies equipment and logs its steps."""

    name: FreeText
    kind: str
    target_asset_ids: IdSet
    status: ProcedureStatus = DEFINED
    parent_run_id: UUID | None
    capability_id: UUID | None
    recipe_id: UUID | None
    launch_id: UUID | None = None  # The launch that registered it, by itself or as a phase.
    max_consecutive_unconverged_iterations: int | None
    watch: WatchedGates | None = None  # What the registration or the recipe chose; null leaves it to the conduct.
    on_unknown_outcome: OnUnknownOutcome | None = None
    iteration_count: int = 0
    current_iteration_index: int | None = None
    """The index of the open pass, counted from 1."""
    consecutive_unconverged_iterations: int = 0
    """Number of passes in a row that did not converge."""
    activity_logbook_id: UUID | None = None
    """The logbook of the steps that were done."""
    conduct_mode: ConductMode | None = None
    """Whether its steps are conducted once, until they converge, or as a decider advises."""
    judged_asset_ids: IdSet = frozenset()  # Of the latest start or resumption: the targets, and owners of what is written.
    touched: TouchedSignals | None = None  # What its pinned steps write and read.
    options: ConductOptions | None = None  # Of the latest conduct.
    live_conduct_id: UUID | None = None
    last_conduct_id: UUID | None = None
    """The latest conduct."""
    lost: bool = False  # Whether it is Running on the record alone: the engine lost its latest conduct.
    pending_request: PendingRequest | None = None
    hold_lapsed: bool = False  # Whether the latest conduct ended otherwise although a hold was asked for: it came too late.
    hold_cause: HoldCause | None = None
    """What led to the hold."""
    actuation_kind: ActuationKind | None = None
    skipped_count: int = 0  # Steps that were left out when the procedure was taken up.
    unknown_step: PlacedStep | None = None  # The step that keeps a Held procedure from being conducted until it is resolved.
    """The step whose outcome is unknown, and that a person must resolve."""
    resolved_steps: tuple[ResolvedStep, ...] = ()
    skipped_waits: tuple[PlacedStep, ...] = ()
    failure: Annotated[results.Failure | None, MayContainPersonalData()] = None  # Of the latest conduct, if it failed.
    closing_failures: Annotated[tuple[results.Failure, ...], MayContainPersonalData()] = ()
    deviations: Annotated[tuple[results.Deviation, ...], MayContainPersonalData()] = ()  # Likewise.
    registered_at: datetime
    last_status_changed_at: datetime
    last_status_reason: FreeText | None = None
    interrupted_at: datetime | None = None
    started_at: datetime | None = None  # First, by hand or by a conduct.
    ended_at: datetime | None = None

    @property
    def own_launch_id(self) -> UUID | None:
        """The launch that ends with it; that of a phase ends with its run."""
        return self.launch_id if self.parent_run_id is None else None


procedure = Aggregate(Procedure, "/procedures", context="operation")
CautionsInForce = Annotated[tuple[AcknowledgedCaution, ...], MayContainPersonalData()]


class ProcedureRegistered(Event, of=procedure, version=3, upcasters={1: dict, 2: dict}):
    """The procedure was planned, as a phase of its parent run where it has one; since version 2 with conduct options, and
    since version 3 with its launch."""

    name: FreeText
    kind: str
    target_asset_ids: IdSet
    parent_run_id: UUID | None
    capability_id: UUID | None
    recipe_id: UUID | None
    max_consecutive_unconverged_iterations: int | None
    watch: WatchedGates | None = None
    on_unknown_outcome: OnUnknownOutcome | None = None
    launch_id: UUID | None = None


class ProcedureRecipeExpanded(Event, of=procedure, inert=True, version=2, upcasters={1: dict}):
    """What the procedure was registered from was kept, so that the exact steps can be derived again; since version 2 with
    units."""

    recipe_id: UUID
    recipe_version: str | None
    capability_id: UUID
    capability_version: str | None
    bindings: dict[str, Any]
    overridden: tuple[str, ...]
    expander_version: int
    steps_hash: str
    bindings_hash: str
    step_count: int
    binding_units: dict[str, str] = {}  # What the bindings that are written and compared were counted in.


class Convergence(Value):
    """When a loop is done: a captured value, its criterion, and the limit of passes in a row that miss it."""

    capture_name: str
    criterion: PlainCriterion
    max_consecutive_unconverged_iterations: int | None


class ProcedureStepsResolved(Event, of=procedure, inert=True, version=5, upcasters={1: dict, 2: dict, 3: dict, 4: dict}):
    """The steps of a conduct were pinned: it walks these, whatever is versioned afterwards; since version 2 with options,
    since version 3 with units, and since version 5 with digests of Bluesky plans."""

    conduct_id: UUID
    conduct_mode: ConductMode
    resolved_steps: tuple[Step, ...]
    resolved_closing_steps: tuple[Step, ...]
    step_count: int
    steps_hash: str
    convergence: Convergence | None = None
    touched: TouchedSignals | None = None  # Null in pins of version 1.
    watch: WatchedGates = frozenset()  # Pins of version 1 watched nothing.
    on_unknown_outcome: OnUnknownOutcome = OnUnknownOutcome.ABORT
    plan_digests: dict[str, str] = {}  # What each Bluesky plan was when it was pinned, by the name of its action.


class ProcedureSteeringDeclared(Event, of=procedure, inert=True, version=3, upcasters={1: dict, 2: dict}):
    """The design of a steered conduct was declared; since version 2 its decider may be that of an installed package, since
    version 3 it may begin where the request says."""

    objective: steering.SteeringObjective
    objective_capture_name: str
    space: steering.SteeringSpace
    decide: Annotated[steering.Decide, MayContainPersonalData()]
    budget: steering.SteeringBudget | None
    first_point: Point | None = None  # Null where the search begins at the first point of its space.

    @property
    def start_point(self) -> Point:
        """Where the first pass measures."""
        return self.space.first_point if self.first_point is None else self.first_point


class ProcedureStarted(Event, of=procedure, version=2, upcasters={1: dict}):
    """The procedure was begun by hand or, where one is named, by a conduct; since version 2 with its judged assets."""

    conduct_id: UUID | None
    command_name: str | None
    acknowledged_cautions: CautionsInForce = ()  # When a conduct began it; by hand none are acknowledged.
    judged_asset_ids: IdSet | None = None  # Null of version 1, which was judged on the targets.
    touched: TouchedSignals | None = None  # As in the pin, which is not folded; null by hand.
    options: ConductOptions | None = None  # Likewise.


class ProcedureLaunched(Event, of=procedure):
    """The procedure, which an earlier release had registered, continued as a part of this launch."""

    launch_id: UUID


class ProcedureActivitiesLogbookOpened(LogbookOpened, of=procedure):
    """The logbook of what is done step by step was opened."""


class ProcedureIterationStarted(Event, of=procedure):
    """A pass was begun; point and advice are null unless a decider steers it."""

    iteration_index: int
    point: Point | None = None
    advice: Annotated[SteeringAdvice | None, MayContainPersonalData()] = None


class ProcedureAcknowledged(Event, of=procedure, inert=True):
    """Somebody has looked at how its conduct ended."""

    acknowledged_by: UUID


class ProcedureOutcomeRecorded(Event, of=procedure, inert=True):
    """It was recorded what a steered pass measured."""

    iteration_index: int
    point: Point
    measurements: tuple[Measured, ...]
    succeeded: bool
    actuation_kind: ActuationKind | None


class ProcedureAdvised(Event, of=procedure, inert=True):
    """An outside decider gave its advice on a pass."""

    conduct_id: UUID
    iteration_index: int
    advice: Annotated[SteeringAdvice, MayContainPersonalData()]
    advised_by: UUID


class ProcedureIterationEnded(Event, of=procedure):
    """A pass ended; everything after the reason is null unless a decider steered it."""

    iteration_index: int
    converged: bool | None
    reason: FreeText | None
    advised_stop: bool | None = None
    reasoning: FreeText | None = None
    confidence: float | None = None
    confidence_source: ConfidenceSource | None = None
    alternatives: Annotated[tuple[FreeText, ...] | None, MayContainPersonalData()] = None
    model_ref: str | None = None
    advised_next_point: Point | None = None
    advised_by: UUID | None = None
    advice_latency: float | None = None
    discarded: bool = False  # Whether the pass was cut off by no fault of its own and does not count as unconverged.
    measurements: tuple[Measured, ...] | None = None  # Of a pass that was judged by what it captured.


class ProcedureHoldRequested(Event, of=procedure):
    """The live conduct was asked to hold the procedure, which it does at its next step."""

    conduct_id: UUID
    reason: StateReason
    decided_by_decision_id: UUID | None


class ProcedureHeld(Event, of=procedure, version=2, upcasters={1: dict}):
    """The procedure was paused; since version 2 for a closed gate or an unknown outcome too."""

    reason: StateReason
    cause: HoldCause
    decided_by_decision_id: UUID | None
    actuation_kind: ActuationKind | None
    unknown_step: PlacedStep | None = None  # With the cause OutcomeUnknown: the step that a person resolves.


class ProcedureResumed(Event, of=procedure, version=2, upcasters={1: dict}):
    """The procedure was taken up again by hand or, where one is named, by a conduct; since version 2 with options."""

    re_establishment_boundary: int
    conduct_id: UUID | None
    command_name: str | None
    decided_by_decision_id: UUID | None
    max_consecutive_unconverged_iterations: int | None = None  # Where the limit was tightened.
    skipped_count: int = 0  # Steps that were not done and are left out.
    skip_reason: FreeText | None = None
    acknowledged_cautions: CautionsInForce = ()  # When a conduct took it up.
    watch: WatchedGates | None = None  # Where it was changed for what follows.
    on_unknown_outcome: OnUnknownOutcome | None = None  # Likewise.
    judged_asset_ids: IdSet | None = None  # Null of version 1, which was judged on the targets.


class ProcedureStepResolved(Event, of=procedure):
    """A person said whether the step whose outcome is unknown was done."""

    conduct_id: UUID
    iteration_index: int
    step_index: int
    outcome: StepVerdict
    reason: FreeText


class ProcedureWaitSkipped(Event, of=procedure):
    """A person ended the wait of a check as if it had come true."""

    conduct_id: UUID
    iteration_index: int
    step_index: int
    reason: FreeText


class ProcedureAbortRequested(Event, of=procedure, version=2, upcasters={1: dict}):
    """The live conduct was asked to abort; or, with `run_closing`, one of the closing steps alone was opened.

    Since version 2 such an opening says which assets it has to itself.
    """

    conduct_id: UUID
    reason: StateReason
    run_closing: bool
    judged_asset_ids: IdSet | None = None  # Null of version 1, which had the targets, and of a request.


class ProcedureConducted(results.ConductEnded, of=procedure, version=4, upcasters={1: dict, 2: dict, 3: dict}):
    """A conduct of the procedure came to its end, and this came of it; since version 2 with deviations and more facts, since
    version 3 with the rationale of an advice to stop, since version 4 with what its passes measured."""

    result: ConductResult


class ProcedureCompleted(Event, of=procedure):
    """The task was done."""

    actuation_kind: ActuationKind | None
    termination_reason: results.TerminationReason | None


class ProcedureAborted(Event, of=procedure):
    """The procedure was given up."""

    reason: StateReason
    actuation_kind: ActuationKind | None


class ProcedureTruncated(Event, of=procedure):
    """The books were closed on a procedure that had died by itself."""

    reason: StateReason
    interrupted_at: datetime | None


StopEvent = ProcedureHeld | ProcedureCompleted | ProcedureAborted | ProcedureTruncated
PassEvent = ProcedureIterationStarted | ProcedureIterationEnded
VerdictEvent = ProcedureStepResolved | ProcedureWaitSkipped
ConductEvent = PassEvent | VerdictEvent | ProcedureHoldRequested | ProcedureAbortRequested | ProcedureConducted
BeginningEvent = ProcedureLaunched | ProcedureStarted | ProcedureResumed | ProcedureActivitiesLogbookOpened
ProcedureEvent = BeginningEvent | ConductEvent | StopEvent
"""The events that change the state; those that only keep something for a conduct are passed over."""


@procedure.evolve
def evolve(procedure: Procedure, event: ProcedureEvent) -> Procedure:
    match event:
        case ProcedureLaunched():
            return copy_with(procedure, launch_id=event.launch_id)
        case ProcedureStarted():
            started = copy_with(procedure, touched=event.touched, options=event.options)
            return with_status(with_opening(started, event, event.command_name), RUNNING, event)
        case ProcedureResumed():
            skipped_count = procedure.skipped_count + event.skipped_count
            options = None if procedure.options is None else conduct_options(event, procedure.options)
            known = {"skipped_count": skipped_count, "options": options}
            resumed = copy_with(procedure, hold_cause=None, unknown_step=None, **known)
            return with_status(with_opening(resumed, event, event.command_name), RUNNING, event)
        case ProcedureActivitiesLogbookOpened():
            return copy_with(procedure, activity_logbook_id=event.logbook_id)
        case ProcedureIterationStarted():
            return copy_with(procedure, iteration_count=event.iteration_index, current_iteration_index=event.iteration_index)
        case ProcedureIterationEnded():
            streak = streak_after(procedure, event)
            return copy_with(procedure, current_iteration_index=None, consecutive_unconverged_iterations=streak)
        case ProcedureStepResolved():
            resolved = ResolvedStep(**{name: value for name, value in event if name != "reason"})
            return copy_with(procedure, resolved_steps=(*procedure.resolved_steps, resolved))
        case ProcedureWaitSkipped():
            skipped = PlacedStep(**{name: value for name, value in event if name != "reason"})
            return copy_with(procedure, skipped_waits=(*procedure.skipped_waits, skipped))
        case ProcedureHoldRequested():
            return copy_with(procedure, pending_request=procedure.pending_request or PendingRequest.HOLD)
        case ProcedureAbortRequested():
            if event.run_closing:
                return with_opening(procedure, event, None)
            return copy_with(procedure, pending_request=PendingRequest.ABORT)
        case ProcedureConducted():
            conducted = with_kind(procedure, event.result)
            if event.conduct_id != procedure.live_conduct_id:
                return conducted
            shown = {name: getattr(event.result, name) for name in ("failure", "closing_failures", "deviations")}
            lapsed = procedure.pending_request is PendingRequest.HOLD and not event.result.held
            lost = event.result.failure is not None and event.result.failure.error_class == results.CONDUCT_LOST
            over = {"live_conduct_id": None, "pending_request": None, "hold_lapsed": lapsed, "lost": lost}
            return copy_with(conducted, **over, **shown)
        case ProcedureHeld():
            held = copy_with(with_kind(procedure, event), hold_cause=event.cause, unknown_step=event.unknown_step)
            return with_status(held, HELD, event, event.reason)
        case ProcedureCompleted():
            return with_status(with_kind(procedure, event), COMPLETED, event, procedure.last_status_reason)
        case ProcedureAborted():
            ended = copy_with(with_kind(procedure, event), hold_cause=None, unknown_step=None)
            return with_status(ended, ABORTED, event, event.reason)
        case ProcedureTruncated():
            ended = copy_with(procedure, interrupted_at=event.interrupted_at, hold_cause=None, unknown_step=None)
            return with_status(ended, TRUNCATED, event, event.reason)
        case _:
            assert_never(event)


def with_kind(procedure: Procedure, end: ConductResult | ProcedureHeld | ProcedureCompleted | ProcedureAborted) -> Procedure:
    """Return the procedure with what was worked on up to this end taken in."""
    return copy_with(procedure, actuation_kind=results.merged_kind((procedure.actuation_kind, end.actuation_kind)))


def with_opening(
    procedure: Procedure, opened: ProcedureStarted | ProcedureResumed | ProcedureAbortRequested, command_name: str | None
) -> Procedure:
    """Return the procedure with the assets it was judged on, and with this conduct live; by hand there is none."""
    judged = procedure.target_asset_ids if opened.judged_asset_ids is None else opened.judged_asset_ids
    if opened.conduct_id is None:
        return copy_with(procedure, judged_asset_ids=judged)
    mode = procedure.conduct_mode if command_name is None else MODES[command_name]
    ids = {"live_conduct_id": opened.conduct_id, "last_conduct_id": opened.conduct_id}
    return copy_with(procedure, judged_asset_ids=judged, conduct_mode=mode, lost=False, **ids)


def with_status(procedure: Procedure, status: ProcedureStatus, event: Event, reason: str | None = None) -> Procedure:
    """Return the procedure with this status, its time and reason; a status that it has already changes nothing."""
    if status is procedure.status:
        return procedure
    at = event.occurred_at
    started_at = procedure.started_at or (at if status is RUNNING else None)
    times = {"last_status_changed_at": at, "started_at": started_at, "ended_at": at if status in ENDED else None}
    return copy_with(procedure, status=status, last_status_reason=reason, lost=False, **times)


def streak_after(procedure: Procedure, ended: ProcedureIterationEnded) -> int:
    """Return how many passes in a row have not converged; discarded and steered ones do not count."""
    streak = procedure.consecutive_unconverged_iterations
    discarded = ended.discarded or (ended.converged is None and procedure.pending_request is PendingRequest.HOLD)
    if procedure.conduct_mode is ConductMode.ADVISED or discarded:
        return streak
    return 0 if ended.converged else streak + 1


def aborted_by(procedure: Procedure) -> Reads[UUID | None]:
    """Return the principal who asked for the abort of a procedure; None where its conduct aborted it by itself."""
    asked = yield from latest_events(procedure.id, ProcedureAbortRequested, count=1)
    if asked and asked[0].conduct_id == procedure.last_conduct_id:
        return asked[0].caller_id
    ends = yield from latest_events(procedure.id, ProcedureConducted, count=1)
    aborts = yield from latest_events(procedure.id, ProcedureAborted, count=1)
    # A conduct that aborts its procedure records both at once; an abort by hand comes later than the end of any conduct.
    by_hand = [one.caller_id for one in aborts if not ends or ends[0].occurred_at < one.occurred_at]
    return next(iter(by_hand), None)


SUMMARY = (
    "name kind target_asset_ids parent_run_id recipe_id status activity_logbook_id registered_at last_status_changed_at "
    "last_status_reason hold_cause interrupted_at iteration_count lost"
)


class ProcedureSummary(Summary):
    time: ClassVar[str] = "registered_at"
    procedure_id: UUID
    name: str
    kind: str
    target_asset_ids: IdSet
    parent_run_id: UUID | None
    recipe_id: UUID | None
    status: ProcedureStatus
    activity_logbook_id: UUID | None
    registered_at: datetime
    last_status_changed_at: datetime
    last_status_reason: str | None
    hold_cause: HoldCause | None
    interrupted_at: datetime | None
    iteration_count: int
    lost: bool


@procedure.listing(ProcedureSummary)
class ListProcedures(NamedListQuery[ProcedureSummary]):
    """Procedures in order of registration."""

    status: ProcedureStatus | None = None
    kind: Annotated[str, Field(min_length=1, max_length=50)] | None = None
    parent_run_id: UUID | None = None
    target_asset_id: UUID | None = None
    """Only procedures that work on this asset."""
