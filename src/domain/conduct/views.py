"""The view of a conduct: its progress, its worker's heartbeat, and its result.
Nothing here says that a conduct runs, only when its worker was last heard of."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, ClassVar
from uuid import UUID

from pydantic import Field

from baton.domain.conduct.conduct import options_of
from baton.domain.conduct.estimates import AT_A_STEP, Estimate, conduct_estimate
from baton.domain.conduct.holds import HoldNow, hold_of_procedure
from baton.domain.conduct.ledger import LedgerPort, MeasuredObjective
from baton.domain.conduct.messages import describe_step
from baton.domain.conduct.plan_progress import PlanStepView, running_plan, unknown_plan
from baton.domain.conduct.progress import ConductPhase, ConductProgress, OpenedConduct, WaitingFor
from baton.domain.kernel import Call, Event, Query
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.procedure import ConductMode, PendingRequest, Procedure, ProcedureStatus, procedure
from baton.domain.recipe.conduct_options import ConductOptions
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.reads import Reads, ask, events_of, latest_events, record_of
from baton.domain.step.plan_steps import plan_name, plan_timeout
from baton.domain.step.results import ConductResult

LOST_AFTER = timedelta(seconds=4)  # A worker with two heartbeats a second counts as lost after this silence.
LOOPS = frozenset({ConductMode.CONVERGED, ConductMode.ADVISED})


class WorkerContact(StrEnum):
    AWAITED = "awaited"  # No worker has taken the conduct up.
    HEARD = "heard"
    LOST = "lost"
    """Nothing was heard of its worker for longer than one can be silent; another one takes over, if there is any."""


class StepInProgress(AnswerForm):
    """The step that a conduct is at."""

    step_index: int
    closing: bool
    kind: str
    """Which kind of step it is."""
    label: str  # What it does, in words.
    """What the step does, in a few words."""


class PendingRequestView(AnswerForm):
    """A request that a live conduct has not served yet: since when, which step it waits for, and how long at the most."""

    request: PendingRequest
    """What was asked: hold or abort."""
    since: datetime
    """Since when it has been pending."""
    step: StepInProgress | None = None  # Null while the conduct is between two steps.
    until: Annotated[
        datetime | None,
        Field(
            description="When the step is over at the latest, by its own time-out. Null for an abort, which stops the step, "
            "and where its worker is not heard of."
        ),
    ] = None
    """Until when at the latest."""


class ConductView(AnswerForm):
    """The latest conduct of a procedure; `conduct_id` is null where there was none, `result` while it has not ended."""

    procedure_id: UUID
    status: ProcedureStatus
    hold: HoldNow | None = None
    """Why the procedure is held, since when and by whom; null where it is not."""
    message: str  # Its progress in words.
    conduct_id: UUID | None = None
    command_name: str | None = None
    phase: ConductPhase | None = None
    waiting_for: WaitingFor | None = None
    waiting_until: datetime | None = None
    """Until when it waits at the latest."""
    step_index: int | None = None
    step_count: int | None = None
    closing_count: int | None = None
    iteration_index: int | None = None
    started_at: datetime | None = None
    heartbeat_at: datetime | None = None
    worker: WorkerContact | None = None
    silence: Annotated[
        float | None,
        Field(
            description="Seconds since the worker was heard of, while the conduct has not ended.",
            json_schema_extra={"unit": {"system": "udunits", "code": "s"}},
        ),
    ] = None
    """Seconds since the worker was heard of."""
    pending_request: PendingRequest | None = None
    pending: PendingRequestView | None = None  # What the pending request waits for.
    takeover_count: Annotated[
        int, Field(description="The number of times that it was taken up again, since its worker was lost or failed.")
    ] = 0
    """Number of times that another worker took it up."""
    hold_lapsed: Annotated[bool, Field(description="Whether a hold was asked for that came too late to be served.")] = False
    measurement: MeasuredObjective | None = None
    """What the latest pass measured of what the loop is judged by."""
    options: ConductOptions | None = None
    estimate: Annotated[
        Estimate | None,
        Field(description="How long the rest takes, or taking it up again where it is held. Null where nothing follows."),
    ] = None
    plan_step: Annotated[
        PlanStepView | None,
        Field(
            description="The Bluesky plan that its step waits for, or whose outcome is unknown. Null where there is none."
        ),
    ] = None
    result: ConductResult | None = None


def conduct_view(procedure: Procedure, call: Call) -> Reads[ConductView]:
    """Return the view of the latest conduct of a procedure."""
    progress = yield from record_of(ConductProgress, procedure_id=procedure.id)
    opened = None if progress is None else (yield from record_of(OpenedConduct, conduct_id=progress.conduct_id))
    hold = yield from hold_of_procedure(procedure)
    if progress is None or opened is None:
        return ConductView(procedure_id=procedure.id, status=procedure.status, hold=hold, message="never conducted")
    measured: MeasuredObjective | None = None
    if procedure.conduct_mode in LOOPS:
        measured = yield from ask(LedgerPort.measured_objective, procedure.id, opened.conduct_id)
    live = progress.phase != ConductPhase.ENDED.value
    ends = () if live else (yield from events_of(procedure.id, procedures.ProcedureConducted))
    result = next((one.result for one in reversed(ends) if one.conduct_id == opened.conduct_id), None)
    silence = heartbeat_silence(progress, call.now)
    asked = procedure.pending_request if live and procedure.live_conduct_id == opened.conduct_id else None
    pending = None if asked is None else (yield from pending_view(procedure, progress, asked, call.now))
    plan = yield from (running_plan(progress, call.now) if live else unknown_plan(procedure))
    message = progress_text(opened, progress, measured, call.now) if result is None else ending_text(result)
    if live and plan is not None:
        message += f", {plan.text}"
    if not live and procedure.hold_lapsed:
        message += "; a hold that was asked for came too late"
    return ConductView(
        procedure_id=procedure.id,
        status=procedure.status,
        hold=hold,
        message=message if pending is None else f"{message}, {pending_text(pending)}",
        conduct_id=opened.conduct_id,
        command_name=opened.command_name,
        phase=progress.shown_phase,
        waiting_for=None if progress.waiting_for is None else WaitingFor(progress.waiting_for),
        waiting_until=progress.waiting_until if progress.waiting_for is not None else None,
        step_count=opened.step_count,
        closing_count=opened.closing_count,
        **{name: getattr(progress, name) for name in ("step_index", "iteration_index", "started_at", "heartbeat_at")},
        worker=worker_contact(silence) if live else None,
        silence=None if silence is None or not live else silence.total_seconds(),
        pending_request=asked,
        pending=pending,
        takeover_count=opened.takeover_count,
        hold_lapsed=not live and procedure.hold_lapsed,
        measurement=measured,
        options=options_of(procedure),
        plan_step=plan,
        estimate=(yield from conduct_estimate(procedure, progress, call.now)),
        result=result,
    )


REQUESTS: dict[PendingRequest, type[Event]] = {
    PendingRequest.HOLD: procedures.ProcedureHoldRequested,
    PendingRequest.ABORT: procedures.ProcedureAbortRequested,
}


def pending_view(
    procedure: Procedure, progress: ConductProgress, request: PendingRequest, now: datetime
) -> Reads[PendingRequestView]:
    """Return what a request to the live conduct waits for."""
    (asked,) = yield from latest_events(procedure.id, REQUESTS[request], count=1)
    return (yield from pending_since(asked.occurred_at, request, procedure, progress, now))


def pending_since(
    since: datetime, request: PendingRequest, procedure: Procedure, progress: ConductProgress, now: datetime
) -> Reads[PendingRequestView]:
    """Return what a request of this time waits for; the current step began when something was last done."""
    pins = yield from latest_events(procedure.id, procedures.ProcedureStepsResolved, count=1)
    closing, index = progress.phase == ConductPhase.CLOSING.value, progress.step_index
    steps = [step for pin in pins for step in (pin.resolved_closing_steps if closing else pin.resolved_steps)]
    if progress.shown_phase not in AT_A_STEP or index is None or index >= len(steps):
        return PendingRequestView(request=request, since=since)
    step = steps[index]
    deployment = yield from ask(DeploymentPort.deployment)
    longest = deployment.action_timeout
    if (name := plan_name(step)) is not None:
        longest = plan_timeout(deployment.plan_executors, name, longest)
    ahead = describe_step(step, longest, deployment.compute_timeout)
    at = StepInProgress(step_index=index, closing=closing, kind=step.kind, label=ahead.label)
    heard = worker_contact(heartbeat_silence(progress, now)) is WorkerContact.HEARD
    end = progress.active_at + timedelta(seconds=ahead.timeout_seconds)
    until = end if heard and request is PendingRequest.HOLD else None
    return PendingRequestView(request=request, since=since, step=at, until=until)


def pending_text(pending: PendingRequestView) -> str:
    """Return what a pending request waits for, in words."""
    words = f"asked to {pending.request.value.lower()} at {pending.since:%H:%M:%S} UTC"
    if pending.step is None:
        return words
    until = "" if pending.until is None else f", until {pending.until:%H:%M:%S} UTC at the latest"
    return f"{words}, waits for {pending.step.label}{until}"


def may_be_conducted(view: ConductView) -> bool:
    """Return whether a procedure that never was conducted may still be."""
    return view.status in (ProcedureStatus.DEFINED, *procedures.UNDER_WAY)


def heartbeat_silence(progress: ConductProgress, now: datetime) -> timedelta | None:
    """Return the time since the last heartbeat, or None where no worker has begun."""
    return None if progress.heartbeat_at is None else max(timedelta(0), now - progress.heartbeat_at)


def worker_contact(silence: timedelta | None) -> WorkerContact:
    """Return the state of the worker after a silence."""
    if silence is None:
        return WorkerContact.AWAITED
    return WorkerContact.LOST if silence > LOST_AFTER else WorkerContact.HEARD


def progress_text(opened: OpenedConduct, progress: ConductProgress, latest: MeasuredObjective | None, now: datetime) -> str:
    """Return the progress of a conduct in words."""
    silence = heartbeat_silence(progress, now)
    if progress.phase == ConductPhase.OPENED.value:
        return "waiting for a worker to take it up"
    parts = [f"iteration {progress.iteration_index}"] if progress.iteration_index is not None else []
    parts.append(step_text(opened, progress))
    if latest is not None:
        parts.append(f"{latest.name} {latest.value:.6g} in iteration {latest.iteration_index}")
    if silence is not None and worker_contact(silence) is WorkerContact.LOST:
        parts.append(f"worker lost {silence.total_seconds():.0f} s ago")
    return ", ".join(parts)


def step_text(opened: OpenedConduct, progress: ConductProgress) -> str:
    """Return the step of a conduct, or what it waits for, in words."""
    match progress.waiting_for:
        case WaitingFor.RUN.value:
            return "waiting for its run to be resumed"
        case WaitingFor.ADVICE.value:
            return "waiting for advice"
    if progress.shown_phase is ConductPhase.STALLED:
        return "stalled in the engine"
    closing = progress.phase == ConductPhase.CLOSING.value
    at, count = progress.step_index or 0, opened.closing_count if closing else opened.step_count
    if closing and not count:
        return "coming to its end"
    return f"{'closing step' if closing else 'step'} {min(at + 1, count)} of {count}"


def ending_text(result: ConductResult) -> str:
    """Return how a conduct ended, in words."""
    if result.failure is None:
        return "succeeded"
    how = "held" if result.held else "halted" if result.acquisition_halt else "failed"
    return f"{how}: {result.failure.message}"


@procedure.query(get="/{procedure_id}/conduct", returns=ConductView)
class GetProcedureConduct(Query[ConductView]):
    """The progress of the latest conduct of a procedure, when its worker was last heard of, and its result."""

    of_one_moment: ClassVar[bool] = True

    def answer(self, procedure: Procedure, call: Call) -> Reads[ConductView]:
        return (yield from conduct_view(procedure, call))


@procedure.query(get="/{procedure_id}/conduct/stream", mcp=False)
class StreamProcedureConduct(GetProcedureConduct):
    """The latest conduct of a procedure as it continues (server-sent events); resumable without loss or repeat.

    Frames: `snapshot` (what `get_procedure_conduct` answers: first, again whenever the conduct waits, is asked for
    something or its worker falls silent, and every ten seconds to renew the estimate), `step`, `iteration`, `point` (what
    was measured at a place), and one of `held`, `halted` or `ended`, which closes the stream. The id of a frame is
    `conduct_id:ordinal`; give it as `Last-Event-ID` to go on behind it. To the id of a last frame, as long as no other
    conduct was opened, the answer is 204: there is nothing to come.
    """
