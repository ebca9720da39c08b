"""How a worker runs the steps of conducts: the ledger before, the effect, and the ledger after. A step may be begun any
number of times. What the ledger shows decides what a repetition does: an outcome is returned as it is, an absolute setpoint
is written again, an action or a submission that may have had its effect is not."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import structlog

from baton.application.conduct import heartbeat, ledger, step_effects
from baton.application.conduct.actions import (
    ActionFailedError,
    ActionHeld,
    ActionOutcomeUnknown,
    ActionRefusedError,
    ActionTimeoutError,
    NotBegun,
    UnknownActionError,
    Wish,
)
from baton.application.conduct.compute import Compute, ComputeError, ComputeOutcomeUnknown
from baton.application.conduct.conduct_record import RecordWatch, StepPlan, StepPlans
from baton.application.conduct.ledger import BeginRequest, BeginResult, Ledger, StoredRow
from baton.application.conduct.step_effects import Effect, EffectResult
from baton.application.conduct.submissions import SubmittedAction, SubmittedProgram, SubmittedWork
from baton.application.control import ControlError
from baton.application.long_work import Pace, carries_out
from baton.application.ports import Clock, StoreUnavailableError
from baton.application.telemetry import error_location
from baton.domain.conduct import messages
from baton.domain.conduct.messages import ConductVerdict, Mark, PlacedRequest, StepPlace, StepReport, target_of
from baton.domain.conduct.plan_progress import PlacedPlanNews
from baton.domain.conduct.signals import ConductSignals
from baton.domain.procedure.activity_logbook import Activity, StepKind
from baton.domain.recipe.steps import RecipeActionStep, RecipeComputeStep, RecipeStep, wait_seconds
from baton.domain.steering.steering import Point
from baton.domain.step.plain_values import plain
from baton.domain.step.plan_steps import PlanNews
from baton.domain.step.results import Artifact, PlacedStep
from baton.domain.step.step_values import Memory, StepFault, deposit_of

log = structlog.get_logger()
T = TypeVar("T")
STRETCH_SECONDS = 2.0  # after which a stretch ends with the step that it is at
UNCONFIRMED_SECONDS = 5.0  # how long a step waits until somebody confirms the permit again; then the conduct is held
LEDGER_POLL_SECONDS = 0.25  # the pause between two reads of the ledger while another worker may still run the step
ACTION_LOST = "The worker was lost while it did this; look at the equipment before doing it again."
SUBMISSION_LOST = "The worker was lost while it submitted this, and no job is known of; it may have run."
OUTCOME_UNKNOWN = {
    StepKind.ACTION: (ActionOutcomeUnknown.__name__, ACTION_LOST),
    StepKind.COMPUTE: (ComputeOutcomeUnknown.__name__, SUBMISSION_LOST),
}  # the failure of a step that may have had its effect and is not begun again
ABORTS = (ConductVerdict.ABORT, ConductVerdict.RUN_ABORTED)
CUT_OFF = "CancelledError"  # the error class of a step that was stopped from outside
# the errors of the ports and of our own rules; any other is a fault of a program
FORESEEN = (
    *(StepFault, ControlError, ComputeError, ActionRefusedError, ActionTimeoutError, UnknownActionError),
    *(ActionFailedError, ActionOutcomeUnknown),
)
WISHES = {
    ConductVerdict.HOLD: Wish.HOLD,
    ConductVerdict.RUN_HELD: Wish.HOLD,
    ConductVerdict.RUN_STOPPED: Wish.STOP,
}  # what is wished of an action under way, by what the record says


@dataclass(frozen=True)
class Limits:
    """How long things may take, in seconds."""

    action: float
    compute: float
    restart: float


@dataclass(frozen=True)
class Worker:
    """The name of this worker, and how to tell whether another one is dead for certain."""

    name: str
    is_dead: Callable[[str], bool]


@dataclass(frozen=True)
class StepRunner:
    """Runs the steps of conducts."""

    ledger: Ledger
    plans: StepPlans
    effects: step_effects.StepEffects
    compute: Compute
    clock: Clock
    limits: Limits
    worker: Worker
    watch: RecordWatch
    silence_clock: Callable[[], float] = heartbeat.boot_time  # also counts while the machine is suspended
    at_work: Counter[UUID] = field(default_factory=Counter)  # `in_flight` rows whose effects run here, or will once written
    _shield: heartbeat.ActivityShield = field(default_factory=heartbeat.ActivityShield)

    def is_own(self, marker: StoredRow) -> bool:
        """Return whether this very process began what the row says."""
        return bool(marker.payload["worker"] == self.worker.name)

    def is_over(self, marker: StoredRow) -> bool:
        """Return whether no worker can be running what this row says was begun."""
        return marker.event_id not in self.at_work if self.is_own(marker) else self.worker.is_dead(marker.payload["worker"])

    def leave(self, marker: UUID) -> None:
        """Count one attempt less at what this row says was begun."""
        self.at_work[marker] -= 1
        if not self.at_work[marker]:
            del self.at_work[marker]

    def describe(self, steps: Sequence[RecipeStep], index: int = 0) -> messages.NextStep | None:
        """Return label and timeouts of the step at an index, and the length of the stretch that begins there."""
        action = self.effects.findable_action(steps[index]) if index < len(steps) else None
        own: float | None = getattr(action, "timeout_seconds", None)
        return messages.describe_steps(steps, index, own or self.limits.action, self.limits.compute)

    @carries_out("do_step", Pace.BEATING)
    async def do(self, request: messages.StepRequest, attempt: heartbeat.Attempt) -> StepReport:
        """Run one step of a pass at its point; a program, or an action that can be found again, is only submitted. Where
        there is no such step, do nothing."""
        if (plan := await self._plan_of(request.place, attempt)) is None:
            return StepReport(verdict=ConductVerdict.GONE)
        if not plan.has(request.place):
            return out_of_turn(request.place)
        execution = StepExecution(self, plan, request, attempt)
        work = execution.submit() if self.is_submitted(plan.step(request.place)) else execution.run(request.deadline)
        return self._with_next(plan, request.place, await self._shield.run(work, attempt))

    def is_submitted(self, step: RecipeStep) -> bool:
        """Return whether a step begins work that another activity collects."""
        return isinstance(step, RecipeComputeStep) or self.effects.findable_action(step) is not None

    async def _plan_of(self, place: StepPlace, attempt: heartbeat.Attempt) -> StepPlan | None:
        """Return the steps of a live conduct, and count an attempt that is not the first one."""
        plan = await self.plans.load(place)
        if plan is not None and attempt.is_repeated:
            await self.ledger.count_takeover(place.conduct_id)
        return plan

    def _with_next(self, plan: StepPlan, place: StepPlace, report: StepReport) -> StepReport:
        """Return the report of a step that has ended with the step, or stretch of steps, that follows."""
        if report.verdict not in (ConductVerdict.DONE, ConductVerdict.FAILED) or report.job_id is not None:
            return report
        return report.model_copy(update={"next_step": self.describe(plan.list_of(place), place.step_index + 1)})

    @carries_out("do_steps", Pace.BEATING)
    async def do_stretch(self, request: messages.StretchRequest, attempt: heartbeat.Attempt) -> StepReport:
        """Run quick steps one after the other until one does not end well, all are done, or it takes long."""
        if (plan := await self._plan_of(request.place, attempt)) is None:
            return StepReport(verdict=ConductVerdict.GONE)
        return await self._shield.run(self._do_stretch(plan, request, attempt), attempt)

    async def _do_stretch(self, plan: StepPlan, request: messages.StretchRequest, attempt: heartbeat.Attempt) -> StepReport:
        async with heartbeat.keep_beating(attempt) as beats:
            first, count, deadline = request.place.step_index, request.count, self.silence_clock() + STRETCH_SECONDS
            passing = (ConductVerdict.DONE, ConductVerdict.FAILED) if request.place.closing else (ConductVerdict.DONE,)
            done_count, before = 0, None
            if attempt.is_repeated:
                done_count = min(count - 1, await self.ledger.passed_count(request.place, count))
            try:
                while True:
                    place = request.place.model_copy(update={"step_index": first + done_count})
                    if not plan.has(place) or not messages.is_quick(plan.step(place)):
                        return out_of_turn(place)
                    beats.place = f"step {place.step_index + 1}"
                    step = messages.StepRequest(place=place, point=request.point)
                    execution = StepExecution(self, plan, step, attempt, before)
                    last = done_count + 1 == count or self.silence_clock() >= deadline
                    report = await execution.run(None, settles=last)
                    if before is not None and before.counted is not None and before.counted.verdict not in passing:
                        return before.counted.model_copy(update={"done_count": done_count - 1})
                    before = execution.unsettled
                    done_count += report.verdict in passing
                    if last or report.verdict not in passing:
                        ahead = self.describe(plan.list_of(place), first + done_count)
                        return report.model_copy(update={"done_count": done_count, "next_step": ahead})
            finally:
                if before is not None:
                    await asyncio.shield(before.store())

    @carries_out("collect_job", Pace.BEATING)
    async def collect(self, request: messages.JobRequest, attempt: heartbeat.Attempt) -> StepReport:
        """Wait for a program or an action that was submitted, and deposit its results."""
        if (plan := await self._plan_of(request.place, attempt)) is None:
            return StepReport(verdict=ConductVerdict.GONE)
        if not plan.has(request.place) or not self.is_submitted(plan.step(request.place)):
            return out_of_turn(request.place)
        work = StepExecution(self, plan, request, attempt).collect(request.job_id)
        return self._with_next(plan, request.place, await self._shield.run(work, attempt))

    async def close(self) -> None:
        """Stop what still runs although the engine has abandoned it."""
        await self._shield.close()


@dataclass
class UnsettledOutcome:
    """An outcome that is stored when the next step of a stretch begins."""

    row: Activity
    _store: Callable[[Activity], Awaitable[Mapping[str, Any]]]
    _leave: Callable[[], None]
    _report: Callable[[Mapping[str, Any]], StepReport]
    counted: StepReport | None = None  # the report of what is stored, which may be the outcome of another worker

    def leave(self, stored: Mapping[str, object]) -> None:
        """Note that an outcome is stored."""
        if self.counted is None:
            self.counted = self._report(stored)
            self._leave()

    async def store(self) -> None:
        """Store the outcome by itself, unless one is stored already."""
        if self.counted is None:
            self.leave(await self._store(self.row))


class StepExecution:
    """One execution of one step; in a stretch, the outcome of the step before it is stored when this one begins."""

    def __init__(
        self,
        runner: StepRunner,
        plan: StepPlan,
        request: PlacedRequest,
        attempt: heartbeat.Attempt,
        before: UnsettledOutcome | None = None,
    ) -> None:
        self._runner = runner
        self._ledger = runner.ledger
        self._plan = plan
        self._attempt = attempt
        self._place = request.place
        self._step = plan.step(request.place)
        self._point: Point = request.point or {}
        self._fence = heartbeat.WriteFence(runner.silence_clock)
        self._before = before
        self._signals = ConductSignals()
        self._was_begun_before = False  # by an earlier conduct, whose acquisition is not repeated
        self._takes_over = False  # whether it continues what an earlier conduct left under way
        self._found_id: str | None = None  # the id of that, where it was begun
        self._wish = Wish.CONTINUE  # what the record asks of an action under way
        self._news: PlacedPlanNews | None = None  # what was last heard of a plan that is waited for
        self.kind = StepKind(self._step.kind)
        self.unsettled: UnsettledOutcome | None = None
        self._began_at: float | None = None  # when the effect began, by the clock that silence is measured with

    async def run(self, deadline: datetime | None, *, settles: bool = True) -> StepReport:
        """Run a step whose effect ends with it; a good outcome may be left to be settled with the step after it."""
        try:
            effect = self._runner.effects.prepare(self._step, await self._memory(), self._fence.check, deadline)
        except StepFault as fault:  # what cannot be resolved fails when it is run
            effect = step_effects.failing_effect(fault, {"target": target_of(self._step)})
        result = await self._begin(effect)
        if (report := self._blocking_report(result)) is not None:
            return await self._hold_run(report)
        if effect.marked and not result.marked:
            return await self._settle_unknown(effect)
        return await self._run_and_settle(effect, result.attempt, settles=settles)

    async def _hold_run(self, report: StepReport) -> StepReport:
        """Hold the run where a gate has closed to a phase of it, and wait for that like for any hold of the run."""
        if report.verdict is not ConductVerdict.GATE_CLOSED or self._plan.run_id is None:
            return report
        assert report.failure is not None, "a closed gate says why"
        await self._runner.watch.hold_run(self._plan, report.failure)
        return StepReport(verdict=ConductVerdict.RUN_HELD)

    async def _begin(self, effect: Effect[Any]) -> BeginResult:
        """Mark the step as begun where it may begin; wait a little while nobody confirms the permit that it rests on."""
        give_up_at = self._runner.silence_clock() + UNCONFIRMED_SECONDS
        result = await self._begin_in_turn(effect)
        while self._awaits_confirmation(result) and self._runner.silence_clock() < give_up_at:
            await self._pause()
            result = await self._begin_in_turn(effect)
        return result

    def _awaits_confirmation(self, result: BeginResult) -> bool:
        report = self._blocking_report(result)
        closed = report is not None and report.verdict is ConductVerdict.GATE_CLOSED
        return closed and self._signals.is_unconfirmed

    async def _begin_in_turn(self, effect: Effect[object]) -> BeginResult:
        """Mark the step as begun where it may begin; wait while another worker may still run it."""
        result = await self._try_begin(effect)
        while result.live and (lone := result.lone_marker) is not None and not result.marked:
            silent = result.silence is None or result.silence >= heartbeat.LOST_AFTER_SECONDS
            if self._runner.is_over(lone) or (silent and not self._runner.is_own(lone)):
                if not effect.repeatable or self._blocking_report(result) is not None:
                    break
                result = await self._try_begin(effect, attempt=lone.attempt + 1)
                continue
            await self._pause()
            result = await self._try_begin(effect)
        return result

    async def _try_begin(self, effect: Effect[Any], attempt: int = 1) -> BeginResult:
        """Ask the ledger to mark the step, unless the record says otherwise."""
        marker = self._row(Mark.IN_FLIGHT, attempt, {**effect.says, "result": "in_flight"}) if effect.marked else None
        pause = None if self._place.closing else self._runner.limits.restart + wait_seconds(self._step)
        if self._resumes and not self._takes_over and self.kind in OUTCOME_UNKNOWN:
            self._was_begun_before = await self._ledger.was_begun_before(self._place)
        return await self._ask(None if self._was_begun_before else marker, again=attempt > 1, longest_pause=pause)

    async def _ask(self, marker: Activity | None, *, again: bool = False, longest_pause: float | None = None) -> BeginResult:
        """Return the ledger's answer together with what the record says; ask again where that was outdated."""
        plan, place = self._plan, self._place
        watched = await self._runner.watch.poll(plan)
        while True:
            self._signals = watched.signals
            request = BeginRequest(
                place=place,
                marker=marker if self._verdict is None and self._is_in_pass else None,
                first=place.step_index == plan.first_index(place),
                watched=watched.versions,
                monitor_term=watched.signals.monitor_term,
                longest_pause=longest_pause,
                again=again,
            )
            if not (result := await self._send(request)).moved:
                return result
            watched = await self._runner.watch.read(plan)

    @property
    def _resumes(self) -> bool:
        """Return whether an earlier conduct may have begun this step."""
        return self._plan.is_resumed and not self._place.closing

    @property
    def _is_in_pass(self) -> bool:
        """Return whether the step's pass is the open one, and measures where it is said to."""
        return not self._place.iteration_index or self._signals.open_pass == (self._place.iteration_index, self._point)

    @property
    def _verdict(self) -> ConductVerdict | None:
        """Return what the record says against the step; only an abort counts against a closing step."""
        verdict = self._signals.verdict
        return verdict if not self._place.closing or verdict in ABORTS else None

    async def _send(self, request: BeginRequest) -> BeginResult:
        """Return the ledger's answer, which counts as a heartbeat of now; a step that may be marked meanwhile is at work."""
        asked_at, marked = self._fence.clock(), False
        if request.marker is not None:
            self._runner.at_work[request.marker.event_id] += 1
        try:
            result = await self._ask_to_begin(request)
            marked = result.marked
        finally:
            if request.marker is not None and not marked:
                self._runner.leave(request.marker.event_id)
        self._fence.confirm(asked_at)
        return result

    async def _ask_to_begin(self, request: BeginRequest) -> BeginResult:
        """Begin the step, in one transaction with the outcome of the step before it where that is not stored yet."""
        before, self._before = self._before, None
        if before is None:
            return await self._ledger.begin(request)
        try:
            stored, result = await self._ledger.settle_and_begin(before.row, request)
        except StoreUnavailableError:
            await before.store()
            raise
        before.leave(stored)
        return result

    def _blocking_report(self, result: BeginResult) -> StepReport | None:
        """Return what blocks the step, the gravest first; only an abort or a failed precondition blocks a closing step."""
        if not result.live:
            return StepReport(verdict=ConductVerdict.GONE)
        if result.out_of_turn or not self._is_in_pass:
            return out_of_turn(self._place)
        if (row := result.outcome) is not None:
            return self._report(row)
        if result.lone_marker is not None and not result.marked and self.kind in OUTCOME_UNKNOWN:
            return None
        if (verdict := self._verdict) is not None:
            gate = self._signals.closed_gate if verdict is ConductVerdict.GATE_CLOSED else None
            return StepReport(verdict=verdict, failure=gate)
        if self._place.closing:
            return None
        if result.late:
            failure = messages.interruption(self._step, self._place.step_index, begun=result.lone_marker is not None)
            return StepReport(verdict=ConductVerdict.FAILED, failure=failure)
        return StepReport(verdict=ConductVerdict.HALT) if self._was_begun_before else None

    async def _run_and_settle(self, effect: Effect[EffectResult], attempt: int, *, settles: bool = True) -> StepReport:
        """Run the effect, and store its outcome."""
        with self._at_work(effect, attempt) as marker:
            result = await self._run_effect(effect, attempt, marker)
            if isinstance(result, StepReport):
                return result
            row = self._outcome_row(effect, result, attempt)
            if settles:
                return self._report(await self._store(row))
            leave = partial(self._runner.leave, marker) if marker is not None else lambda: None
            if marker is not None:
                self._runner.at_work[marker] += 1
            self.unsettled = UnsettledOutcome(row, self._store, leave, self._report)
            return self._report(row.payload)

    async def _look(self, effect: Effect[T], attempt: int = 1) -> T | StepReport:
        """Return the result of what comes before the effect of the step, or behind it, and leaves its fence as it is."""
        return await self._run_effect(effect, attempt, None, self._fence.without_writes())

    async def _run_effect(
        self, effect: Effect[T], attempt: int, marker: UUID | None, fence: heartbeat.WriteFence | None = None
    ) -> T | StepReport:
        """Return the result of the effect; where it fails or is stopped, store that and return the report."""
        if self._began_at is None and fence is None:
            self._began_at = self._runner.silence_clock()
        try:
            return await heartbeat.run_with_heartbeat(effect.body(), partial(self._beat, marker), fence or self._fence)
        except heartbeat.StoppedByRecord as stopped:
            await self._cut_off(effect, attempt, marker)
            return StepReport(verdict=stopped.verdict)
        except ActionHeld:
            verdict = self._signals.verdict
            assert verdict is not None, "the record has said that it is held"
            return StepReport(verdict=verdict)
        except heartbeat.WaitSkipped as skipped:
            return self._report(await self._settle(effect, skipped, attempt))  # the ledger has its outcome already
        except asyncio.CancelledError:
            if self._attempt.is_cancelled:
                await asyncio.shield(self._cut_off(effect, attempt, marker))
            raise
        except (StoreUnavailableError, heartbeat.HeartbeatLost):
            raise
        except Exception as error:
            return self._report(await self._settle(effect, error, attempt))

    async def _cut_off(self, effect: Effect[Any], attempt: int, marker: UUID | None) -> None:
        """Withdraw an effect that was stopped from outside, and store that as its outcome."""
        withdrawal = asyncio.ensure_future(effect.withdraw())
        await heartbeat.wait_for_end(withdrawal, partial(self._beat, marker))
        fault: Exception = StepFault(CUT_OFF, "The step was stopped because the conduct was aborted.")
        try:
            withdrawal.result()
        except ActionOutcomeUnknown as unknown:
            fault = unknown
        await self._settle(effect, fault, attempt)

    async def submit(self) -> StepReport:
        """Begin a program or an action that can be found again, once, and report its job."""
        try:
            work = await self._submission()
        except StepFault as fault:
            failing = step_effects.failing_effect(fault, {})
            report = self._blocking_report(await self._try_begin(failing))
            return await self._run_and_settle(failing, 1) if report is None else await self._hold_run(report)
        if isinstance(work, SubmittedAction) and self._resumes:
            if isinstance(taken := await self._take_over(work), StepReport):
                return taken
            work = taken
        if work.needs_token and not self._takes_over:
            if isinstance(prepared := await self._prepare(work), StepReport):
                return prepared
            work = prepared
        return await self._submit(work)

    async def _submit(self, work: SubmittedWork) -> StepReport:
        """Begin the work where the ledger has no row of it; find it where there is one."""
        effect = work.submission()
        result = await self._begin(effect)
        if (report := self._blocking_report(result)) is not None:
            return await self._hold_run(report)
        if not result.marked:
            marker = result.lone_marker
            assert marker is not None, "nothing blocks the step, and it was begun before"
            begun = work.as_begun(marker.payload)
            if isinstance(found := await self._look(begun.search(), result.attempt), NotBegun):
                work = begun.with_token(found.token)
                effect = work.submission()
                result = await self._try_begin(effect, attempt=marker.attempt + 1)
                if not result.marked:
                    return await self._settle_unknown(effect)
            elif found is None:
                return await self._settle_unknown(begun.submission())
            else:
                return found if isinstance(found, StepReport) else await self._resume(begun, found)
        with self._at_work(effect, result.attempt) as row_id:
            if self._found_id is not None:
                return await self._resume(work, self._found_id)
            job_id = await self._run_effect(effect, result.attempt, row_id)
            return job_id if isinstance(job_id, StepReport) else StepReport(verdict=ConductVerdict.DONE, job_id=job_id)

    async def _submission(self) -> SubmittedWork:
        """Return what the step submits with everything resolved; raise StepFault where that fails."""
        step, place, fence, effects = self._step, self._place, self._fence.check, self._runner.effects
        if isinstance(step, RecipeComputeStep):
            job = step_effects.job_of(step, place, await self._memory())
            return SubmittedProgram(self._runner.compute, step, job, fence)
        action = effects.findable_action(step)
        assert isinstance(step, RecipeActionStep), "only programs and actions are submitted"
        assert action is not None, "only an action that can be found again is submitted"
        pinned = self._plan.plan_digests.get(step.name)
        call = effects.action_call(step, place, fence)
        call = replace(call, wish=lambda: self._wish, pinned=pinned, tell=self._keep_news)
        return SubmittedAction(action, step, call, effects.routes)

    def _keep_news(self, news: PlanNews) -> None:
        """Keep what was heard of a plan for the next heartbeat."""
        place = self._place
        self._news = PlacedPlanNews(
            conduct_id=place.conduct_id,
            iteration_index=place.iteration_index,
            closing=place.closing,
            step_index=place.step_index,
            **dict(news),
        )

    async def _prepare(self, work: SubmittedWork) -> SubmittedWork | StepReport:
        """Return the work with the token that it is found by, which is made before anything may begin."""
        result = await self._ask(None)
        if (report := self._blocking_report(result)) is not None:
            return await self._hold_run(report)
        if result.lone_marker is not None:
            return work  # the row of its beginning has the token
        token = await self._look(work.preparation())
        return token if isinstance(token, StepReport) else work.with_token(token)

    async def _take_over(self, work: SubmittedWork) -> SubmittedWork | StepReport:
        """Return the work as an earlier conduct has left it under way, where it is found; else as it is."""
        if (marker := await self._ledger.left_under_way(self._place)) is None:
            return work
        begun = work.as_begun(marker)
        await self._ask(None)  # which confirms that this worker is heard
        match await self._look(begun.search()):
            case StepReport() as report:
                return report
            case NotBegun(token):
                self._takes_over = True
                return begun.with_token(token)
            case None:
                return work
            case found:
                self._takes_over, self._found_id = True, found
                return begun

    async def _resume(self, work: SubmittedWork, job_id: str) -> StepReport:
        """Report the job of work that was found, which continues where it was paused for a hold that is over."""
        resumption = work.resumption(job_id) if self._verdict is None else None
        if resumption is not None and isinstance(report := await self._look(resumption), StepReport):
            return report
        return StepReport(verdict=ConductVerdict.DONE, job_id=job_id)

    async def collect(self, job_id: str) -> StepReport:
        """Wait for a job and deposit its results; neither is done twice."""
        result = await self._ask(None)
        if not result.live:
            return StepReport(verdict=ConductVerdict.GONE)
        row = result.outcome
        if result.out_of_turn or not self._is_in_pass or (row is None and result.lone_marker is None):
            return out_of_turn(self._place)
        if row is None:
            assert result.lone_marker is not None, "it was begun"
            marker, work = result.lone_marker, await self._submission()
            work = work.as_begun(marker.payload)
            self._began_at = self._runner.silence_clock() - marker.age
            if isinstance(work, SubmittedProgram) and await work.search().body() not in (None, job_id):
                return out_of_turn(self._place)
            effect = work.collection(job_id)
            self._hear(self._signals)
            collected = await self._run_effect(effect, result.attempt, None)
            if isinstance(collected, StepReport):
                return collected
            row = await self._settle(effect, collected, result.attempt)
        if row["result"] == "failed" or not isinstance(self._step, RecipeComputeStep):
            return self._report(row)
        return await self._deposit(self._step, row)

    async def _deposit(self, step: RecipeComputeStep, row: Mapping[str, object]) -> StepReport:
        """Store the results of a program for later steps."""
        try:
            deposit = deposit_of(step, ledger.measurements_in(row), ledger.artifacts_in(row), await self._memory())
        except StepFault as fault:
            return self._report(await self._ledger.settle(self._row(Mark.DEPOSIT, 1, self._failure_payload({}, fault))))
        if deposit is not None:
            slot = step.capture_name or step.output_ref_name
            await self._ledger.settle(self._row(Mark.DEPOSIT, 1, {**deposit, "result": "ok"}, slot))
        return StepReport(verdict=ConductVerdict.DONE)

    async def _memory(self) -> Memory:
        """Return what the steps before have left; it is read only for a step that refers to it."""
        if not step_effects.needs_memory(self._step):
            return Memory(coordinates=self._point)
        if self._before is not None:
            await self._before.store()
        place = self._place
        rows = await self._ledger.slots(place.procedure_id, place.conduct_id, place.iteration_index, self._plan.boundary)
        mine = (place.conduct_id, place.closing, place.step_index)
        others = [row for row in rows if (row.conduct_id, row.closing, row.step_index) != mine]
        captures = {row.slot: row.content["value"] for row in others if "value" in row.content}
        written = [row for row in others if "artifact" in row.content and row.closing == place.closing]
        outputs = {row.slot: Artifact(**row.content["artifact"]) for row in written}
        return Memory(captures=captures, outputs=outputs, coordinates=self._point)

    async def _beat(self, marker: UUID | None) -> ConductSignals:
        self._attempt.heartbeat(f"step {self._place.step_index + 1}")
        signals = await self._runner.watch.beat(self._ledger, self._plan, self._place, marker, self._news)
        if self.kind is StepKind.CHECK and not self._place.closing:
            at = self._place.model_dump(include=set(PlacedStep.model_fields))
            if PlacedStep(**at) in signals.skipped_waits:
                raise heartbeat.WaitSkipped
        self._hear(signals)
        return signals

    def _hear(self, signals: ConductSignals) -> None:
        """Keep what the record says for an action under way; only an abort concerns closing steps."""
        if signals.live:
            self._signals = signals
            self._wish = Wish.CONTINUE if self._verdict is None else WISHES.get(self._verdict, Wish.CONTINUE)

    @contextmanager
    def _at_work(self, effect: Effect[Any], attempt: int) -> Iterator[UUID | None]:
        """Yield the row that marks the effect as begun, if any; leave it once the outcome is stored, or never will be."""
        marker = self._place.row_id(Mark.IN_FLIGHT, attempt) if effect.marked else None
        try:
            yield marker
        finally:
            if marker is not None:
                self._runner.leave(marker)

    async def _pause(self) -> None:
        self._attempt.heartbeat()
        await asyncio.sleep(LEDGER_POLL_SECONDS)

    async def _settle_unknown(self, effect: Effect[Any]) -> StepReport:
        """Store that the outcome of a step which is not begun again is unknown."""
        fault = StepFault(*OUTCOME_UNKNOWN[self.kind])
        return self._report(await self._settle(step_effects.failing_effect(fault, effect.says), fault, 1))

    async def _settle(self, effect: Effect[Any], result: EffectResult | Exception, attempt: int) -> Mapping[str, Any]:
        """Store the outcome of the step, and return the one that counts."""
        return await self._store(self._outcome_row(effect, result, attempt))

    def _outcome_row(self, effect: Effect[Any], result: EffectResult | Exception, attempt: int) -> Activity:
        says, kind, slot = {**effect.says, **effect.remains(), "target": target_of(self._step)}, effect.kind(), None
        if self._began_at is not None:
            says["seconds"] = round(self._runner.silence_clock() - self._began_at, 6)
        if isinstance(result, EffectResult):
            says, slot = {**says, **result.says, "result": "ok"}, result.slot
        else:
            says = self._failure_payload(says, result, attempt)
        return self._row(Mark.OUTCOME, attempt, says if kind is None else {**says, "actuation_kind": kind.value}, slot)

    async def _store(self, row: Activity) -> Mapping[str, Any]:
        """Store an outcome, which is known nowhere else: a store that is away is waited for as long as for a restart."""
        time = asyncio.get_running_loop().time
        deadline = time() + self._runner.limits.restart
        while True:
            try:
                return await heartbeat.run_within(self._ledger.settle(row), heartbeat.STOP_AFTER_SECONDS)
            except (StoreUnavailableError, TimeoutError):
                if time() >= deadline:
                    raise
            await self._pause()

    def _failure_payload(self, says: Mapping[str, object], error: Exception, attempt: int = 1) -> dict[str, Any]:
        """Return what a row says about a failure; an unforeseen one is logged, and described in general words here."""
        # for a write it also names the attempts that may have had their effect
        more: Mapping[str, object] = error.says if isinstance(error, step_effects.DetailedFault) else {}
        label = error.label if isinstance(error, StepFault) else type(error).__name__
        message = str(error)
        if not isinstance(error, FORESEEN):
            log.error("step_failed_unexpectedly", conduct_id=str(self._place.conduct_id), **error_location(error))
            message = messages.UNEXPECTED_FAILURE
        if self.kind is StepKind.SETPOINT:
            message = name_doubtful_attempts(message, attempt if "sent" in says else attempt - 1)
        detail = plain(message)[: messages.MAX_REASON_LENGTH]
        failure: dict[str, Any] = {"error_class": label, "message": detail, "target": target_of(self._step)}
        if isinstance(error, ActionRefusedError):
            failure["begun"] = False
        if facts := getattr(error, "facts", None):
            failure["facts"] = plain(facts)
        return {**says, **more, **failure, "result": "failed"}

    def _report(self, row: Mapping[str, Any]) -> StepReport:
        """Return the report of a stored row; of a step that an abort cut off, that abort, also where its report was lost."""
        if row["result"] == "failed":
            if row["error_class"] == CUT_OFF and (verdict := self._signals.verdict) in ABORTS:
                return StepReport(verdict=verdict)
            said = (row["error_class"], row["message"], row.get("facts"))
            failure = messages.step_failure(self._step, self._place.step_index, *said)
            return StepReport(verdict=ConductVerdict.FAILED, failure=failure)
        return StepReport(verdict=ConductVerdict.DONE)

    def _row(self, mark: Mark, attempt: int, says: Mapping[str, object], slot: str | None = None) -> Activity:
        place, now = self._place, self._runner.clock()
        payload = {**says, "step_index": place.step_index, "conduct_id": str(place.conduct_id), "attempt": attempt}
        payload |= {"iteration_index": place.iteration_index} if place.iteration_index else {}
        payload |= {"closing": True} if place.closing else {}
        payload |= {"worker": self._runner.worker.name} if mark is Mark.IN_FLIGHT else {}
        return Activity(
            event_id=place.row_id(mark, attempt),
            logbook_id=self._plan.logbook_id,
            actor_id=self._plan.caller.principal_id,
            command_name=self._plan.command_name,
            correlation_id=self._plan.caller.correlation_id,
            causation_id=place.conduct_id,
            occurred_at=now,
            step_kind=self.kind.value,
            payload=payload,
            sampled_at=now,
            mark=mark.value,
            attempt=attempt,
            slot=slot,
            **place.model_dump(),
        )


def out_of_turn(place: StepPlace) -> StepReport:
    """Report a step whose turn the record does not show: nothing is touched, and the workflow that asked ends."""
    log.warning("step_out_of_turn", **place.model_dump(mode="json"))
    return StepReport(verdict=ConductVerdict.GONE)


def name_doubtful_attempts(message: str, attempts: int) -> str:
    """Return a failure with the attempts at its write, so many from the first, that may have had their effect."""
    if not attempts:
        return message
    which = "Attempt 1" if attempts == 1 else f"Attempts 1 to {attempts}"
    return f"{message[: messages.MAX_REASON_LENGTH - 100]} {which} may have been written; look at the equipment."
