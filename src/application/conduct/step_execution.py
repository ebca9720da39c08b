"""How a worker runs the steps of conducts: the ledger before, the effect, and the ledger after. A step may be begun any
number of times. What the ledger shows decides what a repetition does: an outcome is returned as it is, an absolute setpoint
is written again, an action or a submission that may have had its effect is not."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import structlog

from baton.application.conduct import heartbeat, ledger, step_effects
from baton.application.conduct.actions import ActionRefusedError, ActionTimeoutError, UnknownActionError
from baton.application.conduct.compute import Compute, ComputeError, ComputeOutcomeUnknown
from baton.application.conduct.conduct_record import CLOSING_BLOCKS, MAIN_BLOCKS, StepPlan, StepPlans, Submitters
from baton.application.conduct.ledger import BeginRequest, BeginResult, ConductSignals, Ledger, Precedence, StoredRow
from baton.application.conduct.step_effects import Effect, EffectResult, plain
from baton.application.control import ControlError
from baton.application.ports import Clock, StoreUnavailableError
from baton.application.telemetry import error_location
from baton.domain.operation.conduct import messages
from baton.domain.operation.conduct.messages import ConductVerdict, Mark, PlacedRequest, StepPlace, StepReport, target_of
from baton.domain.operation.conduct.results import Artifact
from baton.domain.operation.conduct.step_values import Memory, StepFault, deposit_of
from baton.domain.operation.procedure.activity_logbook import Activity, StepKind
from baton.domain.operation.steering.steering import Point
from baton.domain.recipe.steps import RecipeCheckStep, RecipeComputeStep, RecipeStep

log = structlog.get_logger()
T = TypeVar("T")
LEDGER_POLL_SECONDS = 0.25  # the pause between two reads of the ledger while another worker may still run the step
ACTION_LOST = "The worker was lost while it did this; look at the equipment before doing it again."
SUBMISSION_LOST = "The worker was lost while it submitted this, and no job is known of; it may have run."
OUTCOME_UNKNOWN = {
    StepKind.ACTION: ("ActionOutcomeUnknown", ACTION_LOST),
    StepKind.COMPUTE: (ComputeOutcomeUnknown.__name__, SUBMISSION_LOST),
}  # the failure of a step that may have had its effect and is not begun again
# the errors of the ports and of our own rules; any other is a fault of a program
FORESEEN = (StepFault, ControlError, ComputeError, ActionRefusedError, ActionTimeoutError, UnknownActionError)


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
    submitters: Submitters
    silence_clock: Callable[[], float] = heartbeat.boot_time  # also counts while the machine is suspended
    at_work: Counter[UUID] = field(default_factory=Counter)  # `in_flight` rows whose effects run here, or will once written
    _shield: heartbeat.ActivityShield = field(default_factory=heartbeat.ActivityShield)

    def is_over(self, marker: StoredRow) -> bool:
        """Return whether no worker can be running what this row says was begun."""
        by = marker.payload["worker"]
        return marker.event_id not in self.at_work if by == self.worker.name else self.worker.is_dead(by)

    def leave(self, marker: UUID) -> None:
        """Count one attempt less at what this row says was begun."""
        self.at_work[marker] -= 1
        if not self.at_work[marker]:
            del self.at_work[marker]

    def describe(self, step: RecipeStep | None) -> messages.NextStep | None:
        """Return label and timeouts of a step."""
        return None if step is None else messages.describe_step(step, self.limits.action, self.limits.compute)

    async def do(self, request: messages.StepRequest, attempt: heartbeat.Attempt) -> StepReport:
        """Run one step of a pass at its point; a program is only submitted. Where there is no such step, do nothing."""
        if (plan := await self.plans.load(request.place)) is None:
            return StepReport(verdict=ConductVerdict.GONE)
        if not plan.has(request.place):
            return out_of_turn(request.place)
        execution = StepExecution(self, plan, request, attempt)
        work = execution.submit() if execution.kind is StepKind.COMPUTE else execution.run(request.deadline)
        return await self._shield.run(work, attempt)

    async def collect(self, request: messages.JobRequest, attempt: heartbeat.Attempt) -> StepReport:
        """Wait for a program that was submitted, and deposit its results."""
        if (plan := await self.plans.load(request.place)) is None:
            return StepReport(verdict=ConductVerdict.GONE)
        if not plan.has(request.place) or plan.step(request.place).kind != StepKind.COMPUTE.value:
            return out_of_turn(request.place)
        return await self._shield.run(StepExecution(self, plan, request, attempt).collect(request.job_id), attempt)

    async def close(self) -> None:
        """Stop what still runs although the engine has abandoned it."""
        await self._shield.close()


class StepExecution:
    """One execution of one step."""

    def __init__(self, runner: StepRunner, plan: StepPlan, request: PlacedRequest, attempt: heartbeat.Attempt) -> None:
        self._runner = runner
        self._ledger = runner.ledger
        self._plan = plan
        self._attempt = attempt
        self._place = request.place
        self._step = plan.step(request.place)
        self._point: Point = request.point or {}
        self._fence = heartbeat.WriteFence(runner.silence_clock)
        self.kind = StepKind(self._step.kind)

    async def run(self, deadline: datetime | None) -> StepReport:
        """Run a step whose effect ends with it."""
        try:
            effect = self._runner.effects.prepare(self._step, await self._memory(), self._fence.check, deadline)
        except StepFault as fault:  # what cannot be resolved fails when it is run
            effect = step_effects.failing_effect(fault, {"target": target_of(self._step)})
        result = await self._begin(effect)
        if (report := self._blocking_report(result)) is not None:
            return report
        if effect.marked and not result.marked:
            return await self._settle_unknown(effect)
        return await self._run_and_settle(effect, result.attempt)

    async def _begin(self, effect: Effect[Any]) -> BeginResult:
        """Mark the step as begun where it may begin; wait while another worker may still run it."""
        result = await self._try_begin(effect)
        while result.live and (lone := result.lone_marker) is not None and not result.marked:
            over = self._runner.is_over(lone)
            if over or result.silence is None or result.silence >= heartbeat.LOST_AFTER_SECONDS:
                if not effect.repeatable or self._blocking_report(result) is not None:
                    break
                if over or lone.age >= messages.WRITE_TIMEOUT:
                    result = await self._try_begin(effect, attempt=lone.attempt + 1)
                    continue
            await self._pause()
            result = await self._try_begin(effect)
        return result

    async def _try_begin(self, effect: Effect[Any], attempt: int = 1) -> BeginResult:
        """Ask the ledger to mark the step; ask again where the submitter's standing has changed since it was folded."""
        plan, main, restart = self._plan, not self._place.closing, self._runner.limits.restart
        wait = self._step.timeout or 0.0 if isinstance(self._step, RecipeCheckStep) else 0.0
        marker = self._row(Mark.IN_FLIGHT, attempt, {**effect.says, "result": "in_flight"}) if effect.marked else None
        request = BeginRequest(
            place=self._place,
            marker=marker,
            precedence=self._precedence,
            run_id=None if plan.closing_only else plan.run_id,
            run_blocks=MAIN_BLOCKS if main else CLOSING_BLOCKS,
            hold_blocks=main,
            longest_pause=restart + wait if main else None,
            once=plan.is_resumed and main and self.kind in OUTCOME_UNKNOWN,
            again=attempt > 1,
            submitter=await self._runner.submitters.read_standing(plan.caller) if main else None,
        )
        while (result := await self._send(request)).submitter_moved:
            request = replace(request, submitter=await self._runner.submitters.fold(plan.caller))
        return result

    async def _send(self, request: BeginRequest) -> BeginResult:
        """Return the ledger's answer, which counts as a heartbeat of now; a step that may be marked meanwhile is at work."""
        asked_at, marked = self._fence.clock(), False
        if request.marker is not None:
            self._runner.at_work[request.marker.event_id] += 1
        try:
            result = await self._ledger.begin(request)
            marked = result.marked
        finally:
            if request.marker is not None and not marked:
                self._runner.leave(request.marker.event_id)
        self._fence.confirm(asked_at)
        return result

    def _blocking_report(self, result: BeginResult) -> StepReport | None:
        """Return what blocks the step, the gravest first; only an abort or a failed precondition blocks a closing step."""
        if not result.live:
            return StepReport(verdict=ConductVerdict.GONE)
        if result.out_of_turn:
            return out_of_turn(self._place)
        if (row := result.outcome) is not None:
            return self._report(row)
        if result.lone_marker is not None and not result.marked and self.kind in OUTCOME_UNKNOWN:
            return None
        verdict, aborts = result.verdict, (ConductVerdict.ABORT, ConductVerdict.RUN_ABORTED)
        if verdict is not None and (verdict in aborts or not self._place.closing):
            return StepReport(verdict=verdict)
        if self._place.closing:
            return None
        if result.late:
            failure = messages.interruption(self._step, self._place.step_index, begun=result.lone_marker is not None)
            return StepReport(verdict=ConductVerdict.FAILED, failure=failure)
        return StepReport(verdict=ConductVerdict.HALT) if result.begun_before else None

    @property
    def _precedence(self) -> Precedence:
        return Precedence(first=self._place.step_index == self._plan.first_index(self._place), point=self._point)

    async def _run_and_settle(self, effect: Effect[EffectResult], attempt: int) -> StepReport:
        """Run the effect, and store its outcome."""
        with self._at_work(effect, attempt) as marker:
            result = await self._run_effect(effect, attempt, marker)
            return result if isinstance(result, StepReport) else self._report(await self._settle(effect, result, attempt))

    async def _run_effect(self, effect: Effect[T], attempt: int, marker: UUID | None) -> T | StepReport:
        """Return the result of the effect; where it fails or is stopped, store that and return the report."""
        try:
            return await heartbeat.run_with_heartbeat(effect.body(), partial(self._beat, marker), self._fence)
        except heartbeat.StoppedByRecord as stopped:
            await self._cut_off(effect, attempt, marker)
            return StepReport(verdict=stopped.verdict)
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
        withdrawal.result()
        fault = StepFault("CancelledError", "The step was stopped because the conduct was aborted.")
        await self._settle(effect, fault, attempt)

    async def submit(self) -> StepReport:
        """Submit a program, once, and report its job."""
        step, compute = self._step, self._runner.compute
        assert isinstance(step, RecipeComputeStep), "only a program is submitted"
        try:
            job = step_effects.job_of(step, self._place, await self._memory())
        except StepFault as fault:
            failing = step_effects.failing_effect(fault, {})
            return self._blocking_report(await self._try_begin(failing)) or await self._run_and_settle(failing, 1)
        effect = step_effects.submission(compute, step, job, self._fence.check)
        result = await self._begin(effect)
        if (report := self._blocking_report(result)) is not None:
            return report
        if not result.marked:
            if (job_id := await compute.find(job.submission_key)) is None:
                return await self._settle_unknown(effect)
            return StepReport(verdict=ConductVerdict.DONE, job_id=job_id)
        with self._at_work(effect, result.attempt) as marker:
            begun = await self._run_effect(effect, result.attempt, marker)
            return begun if isinstance(begun, StepReport) else StepReport(verdict=ConductVerdict.DONE, job_id=begun)

    async def collect(self, job_id: str) -> StepReport:
        """Wait for a job and deposit its results; neither is done twice."""
        step, compute = self._step, self._runner.compute
        assert isinstance(step, RecipeComputeStep), "only a program is collected"
        request = BeginRequest(place=self._place, marker=None, precedence=self._precedence, hold_blocks=False)
        result = await self._send(request)
        if not result.live:
            return StepReport(verdict=ConductVerdict.GONE)
        row = result.outcome
        if result.out_of_turn or (row is None and result.lone_marker is None):
            return out_of_turn(self._place)
        if row is None:
            job = step_effects.job_of(step, self._place, await self._memory())
            if await compute.find(job.submission_key) not in (None, job_id):
                return out_of_turn(self._place)
            effect = step_effects.collection(compute, step, job, job_id)
            collected = await self._run_effect(effect, result.attempt, None)
            if isinstance(collected, StepReport):
                return collected
            row = await self._settle(effect, collected, result.attempt)
        return self._report(row) if row["result"] == "failed" else await self._deposit(step, row)

    async def _deposit(self, step: RecipeComputeStep, row: Mapping[str, Any]) -> StepReport:
        """Store the results of a program for later steps."""
        try:
            deposit = deposit_of(step, ledger.measurements_in(row), ledger.artifacts_in(row), await self._memory())
        except StepFault as fault:
            return self._report(await self._ledger.settle(self._row(Mark.DEPOSIT, 1, self._failure_payload({}, fault))))
        if deposit is not None:
            slot = step.capture_name or step.output_ref_name
            await self._ledger.settle(self._row(Mark.DEPOSIT, 1, {**deposit, "result": "ok"}, slot))
        return StepReport(verdict=ConductVerdict.DONE, next_step=self._next_step)

    async def _memory(self) -> Memory:
        """Return what the steps before have left; it is read only for a step that refers to it."""
        if not step_effects.needs_memory(self._step):
            return Memory(coordinates=self._point)
        place = self._place
        rows = await self._ledger.slots(place.procedure_id, place.conduct_id, place.iteration_index, self._plan.boundary)
        mine = (place.conduct_id, place.closing, place.step_index)
        others = [row for row in rows if (row.conduct_id, row.closing, row.step_index) != mine]
        captures = {row.slot: row.content["value"] for row in others if "value" in row.content}
        written = [row for row in others if "artifact" in row.content and row.closing == place.closing]
        outputs = {row.slot: Artifact(**row.content["artifact"]) for row in written}
        return Memory(captures=captures, outputs=outputs, coordinates=self._point)

    async def _beat(self, marker: UUID | None) -> ConductSignals:
        self._attempt.heartbeat()
        return await self._ledger.beat(self._place, marker, self._plan.run_id)

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
        # it is known nowhere else, so a store that is away is waited for as long as for a restart
        says, kind, slot = {**effect.says, **effect.remains()}, effect.kind(), None
        if isinstance(result, EffectResult):
            says, slot = {**says, **result.says, "result": "ok"}, result.slot
        else:
            says = self._failure_payload(says, result, attempt)
        row = self._row(Mark.OUTCOME, attempt, says if kind is None else {**says, "actuation_kind": kind.value}, slot)
        time = asyncio.get_running_loop().time
        deadline = time() + self._runner.limits.restart
        while True:
            try:
                return await heartbeat.run_within(self._ledger.settle(row), heartbeat.STOP_AFTER_SECONDS)
            except (StoreUnavailableError, TimeoutError):
                if time() >= deadline:
                    raise
            await self._pause()

    def _failure_payload(self, says: Mapping[str, Any], error: Exception, attempt: int = 1) -> dict[str, Any]:
        """Return what a row says about a failure; an unforeseen one is logged, and described in general words here."""
        # for a write it also names the attempts that may have had their effect
        more: Mapping[str, Any] = error.says if isinstance(error, step_effects.DetailedFault) else {}
        label = error.label if isinstance(error, StepFault) else type(error).__name__
        message = str(error)
        if not isinstance(error, FORESEEN):
            log.error("step_failed_unexpectedly", conduct_id=str(self._place.conduct_id), **error_location(error))
            message = messages.UNEXPECTED_FAILURE
        if self.kind is StepKind.SETPOINT:
            message = name_doubtful_attempts(message, attempt if "sent" in says else attempt - 1)
        detail = plain(message)[: messages.MAX_REASON_LENGTH]
        failure = {"error_class": label, "message": detail, "target": target_of(self._step)}
        return {**says, **more, **failure, "result": "failed"}

    def _report(self, row: Mapping[str, Any]) -> StepReport:
        """Return the report of a stored row."""
        if row["result"] == "failed":
            failure = messages.step_failure(self._step, self._place.step_index, row["error_class"], row["message"])
            return StepReport(verdict=ConductVerdict.FAILED, failure=failure, next_step=self._next_step)
        return StepReport(verdict=ConductVerdict.DONE, next_step=self._next_step)

    @property
    def _next_step(self) -> messages.NextStep | None:
        return self._runner.describe(self._plan.after(self._place))

    def _row(self, mark: Mark, attempt: int, says: Mapping[str, Any], slot: str | None = None) -> Activity:
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
