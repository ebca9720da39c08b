"""The views of live work: how far each run and each conduct is, who started it, and what it waits for."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from baton.domain.access.actor import Appearance, Names, appearance, names_of
from baton.domain.conduct.endings import LOST
from baton.domain.conduct.estimates import Estimate, conduct_estimate
from baton.domain.conduct.holds import HoldNow, hold_now
from baton.domain.conduct.live_work import ConductUnderWay, LiveRun, LiveWork, LostProcedure
from baton.domain.conduct.plan_progress import running_plan
from baton.domain.conduct.progress import ConductPhase, RunConductProgress, WaitingFor
from baton.domain.conduct.run_conduct import load_opening, run_estimate
from baton.domain.conduct.views import WorkerContact, heartbeat_silence, progress_text, worker_contact
from baton.domain.kernel import Value
from baton.domain.procedure.procedure import PendingRequest, Procedure
from baton.domain.run.run import BEGINNINGS, HELD, RUNNING, Run, RunBegun, RunHeld, RunStatus
from baton.domain.shared.reads import Reads, find_all, latest_events, records_of
from baton.domain.shared.text import FreeText
from baton.domain.start.procedure_start import resuming_command


class StepNow(Value):
    """The step that a conduct is at, counted from 1, among those of its list."""

    number: int
    """The number of the step, counted from 1."""
    count: int
    """Number of steps in its list."""
    closing: bool
    iteration_index: int | None


class PhaseNow(Value):
    """The phase that a run conducts, counted from 1."""

    procedure_id: UUID
    name: FreeText
    number: int
    """The number of the phase, counted from 1."""
    count: int
    """Number of phases."""


class RunNow(Value):
    """A run that has not ended. Phase, step and estimate are null where the service does not conduct it."""

    run_id: UUID
    name: FreeText
    status: RunStatus
    lost: bool
    witnessed: bool
    plan_id: UUID
    plan_name: str
    """What the plan is called."""
    subject_id: UUID | None
    started_at: datetime
    started_by: UUID
    started_by_name: str | None
    hold: HoldNow | None
    """Why it is held, since when and by whom; null where it is not."""
    conduct_id: UUID | None
    phase: PhaseNow | None
    """The phase that is conducted now."""
    step: StepNow | None
    estimate: Estimate | None


class ConductNow(Value):
    """A procedure that is being conducted, as a phase of a run or by itself, and how far it is."""

    procedure_id: UUID
    name: FreeText
    run_id: UUID | None
    conduct_id: UUID
    command_name: str
    phase: ConductPhase
    step: StepNow | None
    message: str
    waiting_for: WaitingFor | None
    pending_request: PendingRequest | None
    started_at: datetime
    started_by: UUID
    started_by_name: str | None
    worker: WorkerContact
    estimate: Estimate | None


class LostNow(Value):
    """A procedure that is Running on the record alone: the engine does not know of its conduct any more."""

    procedure_id: UUID
    name: FreeText
    run_id: UUID | None
    since: datetime
    message: FreeText
    resumed_by: str
    """The command that takes it up again."""


def lost_now(lost: LostProcedure) -> LostNow:
    """Return a procedure whose conduct was lost as it is shown."""
    one = lost.procedure
    return LostNow(
        procedure_id=one.id,
        name=one.name,
        run_id=one.parent_run_id,
        since=lost.since,
        message=LOST.message,
        resumed_by=resuming_command(one),
    )


def describe_live_work(live: LiveWork, now: datetime) -> Reads[tuple[tuple[RunNow, ...], tuple[ConductNow, ...]]]:
    """Return the live runs and conducts as they are shown, with the names of those who started and held them."""
    run_ids = tuple(one.run.id for one in live.runs)
    rows = (yield from records_of(RunConductProgress, run_id=run_ids)) if run_ids else ()
    beginnings: dict[UUID, RunBeginning] = {}
    for one in live.runs:
        beginnings[one.run.id] = yield from load_beginning(one.run)
    submitters: set[Appearance] = {(one.opened.principal_id, one.opened.surface_id) for one in live.conducts}
    recorders = {appearance(event) for known in beginnings.values() for event in known if event is not None}
    names = yield from names_of(submitters | recorders)
    conducts: dict[UUID, ConductNow] = {}
    for conduct in live.conducts:
        conducts[conduct.procedure.id] = yield from conduct_now(conduct, names, now)
    progress = {row.run_id: row for row in rows}
    runs: list[RunNow] = []
    for one in live.runs:
        row = progress.get(one.run.id)
        conducted = None if row is None or row.conduct_id != one.run.live_conduct_id else row
        runs.append((yield from run_now(one, beginnings[one.run.id], conducted, conducts, names, now)))
    return tuple(runs), tuple(conducts.values())


class RunBeginning(NamedTuple):
    """The start of a run and, where it is held, the hold that it is under."""

    started: RunBegun
    held: RunHeld | None


def load_beginning(run: Run) -> Reads[RunBeginning]:
    """Load who started a run, and who holds it."""
    (started,) = yield from latest_events(run.id, *BEGINNINGS, count=1)
    holds = (yield from latest_events(run.id, RunHeld, count=1)) if run.status is HELD else ()
    return RunBeginning(started, next(iter(holds), None))


def run_now(
    live: LiveRun,
    beginning: RunBeginning,
    progress: RunConductProgress | None,
    conducts: Mapping[UUID, ConductNow],
    names: Names,
    now: datetime,
) -> Reads[RunNow]:
    """Return a live run; its phase is the one that its conduct is at or, where it has none, the one conducted by itself."""
    run, plan = live.run, live.plan
    phase, estimate = None, None
    current = next((one for one in conducts.values() if one.run_id == run.id), None)
    if progress is not None:
        opening = yield from load_opening(run, progress.conduct_id)
        phases = yield from find_all(Procedure, [one.procedure_id for one in opening.phases])
        estimate = yield from run_estimate(run, opening, phases, progress, now)
        if (index := progress.phase_index) is not None:
            at = phases[opening.phases[index].procedure_id]
            phase = PhaseNow(procedure_id=at.id, name=at.name, number=index + 1, count=len(opening.phases))
            current = conducts.get(at.id)
    elif current is not None:
        phase = PhaseNow(procedure_id=current.procedure_id, name=current.name, number=1, count=1)
        estimate = current.estimate
    return RunNow(
        run_id=run.id,
        name=run.name,
        status=run.status,
        lost=run.lost and run.status is RUNNING,
        witnessed=run.witnessed,
        plan_id=plan.id,
        plan_name=plan.name,
        subject_id=run.subject_id,
        started_at=run.created_at,
        started_by=beginning.started.caller_id,
        started_by_name=names[appearance(beginning.started)],
        hold=None if beginning.held is None else hold_now(beginning.held, run.last_hold_reason, names),
        conduct_id=run.live_conduct_id,
        phase=phase,
        step=None if current is None else current.step,
        estimate=estimate,
    )


def conduct_now(live: ConductUnderWay, names: Names, now: datetime) -> Reads[ConductNow]:
    """Return a live conduct as it is shown."""
    procedure, opened, progress = live.procedure, live.opened, live.progress
    silence = heartbeat_silence(progress, now)
    plan, message = (yield from running_plan(progress, now)), progress_text(opened, progress, None, now)
    return ConductNow(
        procedure_id=procedure.id,
        name=procedure.name,
        run_id=procedure.parent_run_id,
        conduct_id=opened.conduct_id,
        command_name=opened.command_name,
        phase=progress.shown_phase,
        step=step_now(live),
        message=message if plan is None else f"{message}, {plan.text}",
        waiting_for=None if progress.waiting_for is None else WaitingFor(progress.waiting_for),
        pending_request=procedure.pending_request,
        started_at=progress.started_at,
        started_by=opened.principal_id,
        started_by_name=names[opened.principal_id, opened.surface_id],
        worker=worker_contact(silence),
        estimate=(yield from conduct_estimate(procedure, progress, now)),
    )


def step_now(live: ConductUnderWay) -> StepNow | None:
    """Return the step that a conduct is at; None where it has not begun or its list has no step."""
    index, closing = live.progress.step_index, live.progress.phase == ConductPhase.CLOSING.value
    count = live.opened.closing_count if closing else live.opened.step_count
    if index is None or not count:
        return None
    number, passes = min(index + 1, count), live.progress.iteration_index
    return StepNow(number=number, count=count, closing=closing, iteration_index=passes)
