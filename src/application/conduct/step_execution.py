"""How a step of a conduct is done: the ledger before, the effect, and the ledger after.

A step may be begun any number of times. What the ledger shows decides what a repetition does: an outcome is answered as it
stands, an absolute setpoint is written again, an action or a submission that may have had its effect is not.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, assert_never
from uuid import UUID

import structlog
from pydantic import TypeAdapter

from baton.application.conduct.actions import ActionRefusedError, ActionTimeoutError, UnknownActionError
from baton.application.conduct.compute import ComputeError, ComputeOutcomeUnknown
from baton.application.conduct.conduct_plan import MAIN_BLOCKS, ConductPlan
from baton.application.conduct.heartbeat import (
    STOP_AFTER_SECONDS,
    LOST_AFTER_SECONDS,
    Attempt,
    StoppedByRecord,
    HeartbeatLost,
    WriteFence,
    run_with_heartbeat,
    wait_for_end,
    run_within,
)
from baton.application.conduct.ledger import BeginRequest, ConductSignals, Precedence, BeginResult
from baton.application.conduct.program_steps import collection, job_of, submission
from baton.application.conduct.step_effects import EffectResult, Effect, DetailedFault, plain
from baton.application.control import ControlError
from baton.application.ports import StoreUnavailableError
from baton.application.telemetry import error_location
from baton.domain.operation.conduct.actuation import ActuationKind
from baton.domain.operation.conduct.messages import (
    MAX_REASON_LENGTH,
    UNEXPECTED_FAILURE,
    WRITE_TIMEOUT,
    NextStep,
    Mark,
    StepPlace,
    StepReport,
    ConductVerdict,
    step_failure,
    interruption,
    target_of,
)
from baton.domain.operation.conduct.results import Artifact, Measured
from baton.domain.operation.conduct.step_values import Memory, StepFault, deposited
from baton.domain.operation.procedure.activity_logbook import Activity, StepKind
from baton.domain.operation.procedure.procedure import PendingRequest
from baton.domain.operation.steering.steering import Point
from baton.domain.recipe.references import declared_capture, declared_output, operands
from baton.domain.recipe.sentinels import CaptureRef, OutputRef
from baton.domain.recipe.steps import (
    RecipeActionStep,
    RecipeCaptureStep,
    RecipeCheckStep,
    RecipeComputeStep,
    RecipeSetpointStep,
    RecipeStep,
)
from baton.domain.run.run import RunStatus

if TYPE_CHECKING:
    from baton.application.conduct.step_runner import StepRunner

log = structlog.get_logger()

T = TypeVar("T")

LOOK_INTERVAL = 0.25
"""Seconds between two looks at the ledger while somebody else may still be doing the step."""
LOST = {
    StepKind.ACTION: (
        "ActionOutcomeUnknown",
        "The worker was lost while it did this; look at the equipment before doing it again.",
    ),
    StepKind.COMPUTE: (
        ComputeOutcomeUnknown.__name__,
        "The worker was lost while it submitted this, and no job is known of; it may have run.",
    ),
}
FORESEEN = (StepFault, ControlError, ComputeError, ActionRefusedError, ActionTimeoutError, UnknownActionError)
"""What the ports and our own rules fail with; anything else is a fault of a program."""
MEASUREMENTS: TypeAdapter[tuple[Measured, ...]] = TypeAdapter(tuple[Measured, ...])
ARTIFACTS: TypeAdapter[tuple[Artifact, ...]] = TypeAdapter(tuple[Artifact, ...])


class StepExecution:
    """One step being done."""

    def __init__(self, steps: "StepRunner", score: ConductPlan, place: StepPlace, point: Point, attempt: Attempt) -> None:
        self._steps = steps
        self._ledger = steps.ledger
        self._score = score
        self._place = place
        self._point = point
        self._attempt = attempt
        self._fence = WriteFence(steps.silence_clock)
        self._step = score.step(place)
        self.kind = StepKind(self._step.kind)

    async def do(self, deadline: datetime | None) -> StepReport:
        """Do a step whose effect ends with it."""
        effect = await self._ready(deadline)
        standing = await self._begin(effect)
        if (report := self._obstacle(standing)) is not None:
            return report
        if effect.marked and not standing.marked:
            return await self._lost(effect)
        return await self._done(effect, standing.attempt)

    async def _ready(self, deadline: datetime | None) -> Effect[EffectResult]:
        """The step with everything resolved; what cannot be resolved fails when it comes to be done."""
        step, effects = self._step, self._steps.effects
        memory = await self._memory()
        try:
            match step:
                case RecipeSetpointStep():
                    return effects.setpoint(step, memory, self._fence.check)
                case RecipeActionStep():
                    return effects.action(step, self._fence.check)
                case RecipeCheckStep():
                    return effects.check(step, memory, deadline)
                case RecipeCaptureStep():
                    return effects.capture(step, memory)
                case RecipeComputeStep():
                    raise AssertionError("a program is submitted and collected")
                case _:
                    assert_never(step)
        except StepFault as fault:
            return failing(fault, {"target": target_of(step)})

    async def _begin(self, effect: Effect[Any]) -> BeginResult:
        """Mark the step as begun where it may be; one that somebody else may still be doing is waited for."""
        standing = await self._cross(effect)
        while (
            standing.live and not standing.out_of_turn and (lone := standing.lone_marker) is not None and not standing.marked
        ):
            over = self._steps.is_over(lone)
            silent = standing.silence is None or standing.silence >= LOST_AFTER_SECONDS
            if over or silent:
                if not effect.repeatable or self._obstacle(standing) is not None:
                    break
                if over or lone.age >= WRITE_TIMEOUT:
                    standing = await self._cross(effect, attempt=lone.attempt + 1)
                    continue
            await self._pause()
            standing = await self._cross(effect)
        return standing

    async def _cross(self, effect: Effect[Any], attempt: int = 1) -> BeginResult:
        """Ask the ledger to mark the step, with the submitter's standing as folded last; where that moved, ask again."""
        while (standing := await self._try_cross(effect, attempt)).submitter_moved:
            await self._steps.submitters.fold(self._score.caller)
        return standing

    async def _try_cross(self, effect: Effect[Any], attempt: int) -> BeginResult:
        score, main = self._score, not self._place.closing
        waits = self._step.timeout or 0.0 if isinstance(self._step, RecipeCheckStep) else 0.0
        marker = self._row(Mark.IN_FLIGHT, attempt, {**effect.says, "result": "in_flight"}) if effect.marked else None
        crossing = BeginRequest(
            place=self._place,
            marker=marker,
            precedence=self._precedence,
            run_id=score.run_id,
            run_blocks=MAIN_BLOCKS if main else score.closing_blocks,
            hold_blocks=main,
            longest_pause=self._steps.limits.restart + waits if main else None,
            once=score.resumed and main and self.kind in (StepKind.ACTION, StepKind.COMPUTE),
            again=attempt > 1,
            submitter=await self._steps.submitters.standing(score.caller) if main else None,
        )
        if marker is None:
            return await self._asked(crossing)
        self._steps.at_work[marker.event_id] += 1
        marked = False
        try:
            standing = await self._asked(crossing)
            marked = standing.marked
        finally:
            if not marked:
                self._steps.leave(marker.event_id)
        return standing

    async def _asked(self, crossing: BeginRequest) -> BeginResult:
        """What the ledger says to a step; if it lets the step begin, the step was heard of when it asked."""
        asked_at = self._fence.clock()
        standing = await self._ledger.begin(crossing)
        self._fence.confirm(asked_at)
        return standing

    def _obstacle(self, standing: BeginResult) -> StepReport | None:
        """What stands in the way of the step, in the order in which it counts."""
        if not standing.live:
            return StepReport(verdict=ConductVerdict.GONE)
        if standing.out_of_turn:
            return out_of_turn(self._place)
        if (row := standing.outcome) is not None:
            return self._told(row)
        if standing.lone_marker is not None and not standing.marked and self.kind in LOST:
            return None
        if standing.asked is PendingRequest.ABORT:
            return StepReport(verdict=ConductVerdict.ABORT)
        if standing.run is RunStatus.ABORTED and not self._score.closing_only:
            return StepReport(verdict=ConductVerdict.RUN_ABORTED)
        if self._place.closing:
            return None
        if standing.asked is PendingRequest.HOLD:
            return StepReport(verdict=ConductVerdict.HOLD)
        if standing.run not in (None, RunStatus.RUNNING, RunStatus.HELD):
            return StepReport(verdict=ConductVerdict.RUN_STOPPED)
        if standing.stood_down:
            return StepReport(verdict=ConductVerdict.STOOD_DOWN)
        if standing.run is RunStatus.HELD:
            return StepReport(verdict=ConductVerdict.RUN_HELD)
        if standing.late:
            begun = standing.lone_marker is not None
            return StepReport(verdict=ConductVerdict.FAILED, failure=interruption(self._step, self._place.step_index, begun=begun))
        if standing.begun_before:
            return StepReport(verdict=ConductVerdict.HALT)
        return None

    @property
    def _precedence(self) -> Precedence:
        return Precedence(first=self._place.step_index == self._score.first_index(self._place), point=self._point)

    async def _done(self, effect: Effect[EffectResult], attempt: int) -> StepReport:
        """Have the effect, and settle what came of it."""
        with self._at_work(effect, attempt) as marker:
            done = await self._had(effect, attempt, marker)
            return done if isinstance(done, StepReport) else self._told(await self._settle(effect, done, attempt))

    async def _had(self, effect: Effect[T], attempt: int, marker: UUID | None) -> T | StepReport:
        """What the effect brings; where it brings nothing, what came of it instead is settled and told."""
        try:
            return await self._attended(effect.body(), marker)
        except StoppedByRecord as stopped:
            await self._cut_off(effect, attempt, marker)
            return StepReport(verdict=stopped.verdict)
        except asyncio.CancelledError:
            if self._attempt.called_off:
                await asyncio.shield(self._cut_off(effect, attempt, marker))
            raise
        except (StoreUnavailableError, HeartbeatLost):
            raise
        except Exception as error:
            return self._told(await self._settle(effect, error, attempt))

    async def _cut_off(self, effect: Effect[Any], attempt: int, marker: UUID | None) -> None:
        """Settle a step that was stopped from outside, once nothing of it goes on."""
        withdrawal = asyncio.ensure_future(effect.withdraw())
        await wait_for_end(withdrawal, partial(self._beat, marker))
        withdrawal.result()
        fault = StepFault("CancelledError", "The step was stopped because the conduct was aborted.")
        await self._settle(effect, fault, attempt)

    async def submit(self) -> StepReport:
        """Have a program begun, once, and answer its job."""
        step, compute = self._step, self._steps.compute
        assert isinstance(step, RecipeComputeStep), "only a program is submitted"
        try:
            job = job_of(step, self._place, await self._memory())
        except StepFault as fault:
            unready = failing(fault, {})
            return self._obstacle(await self._cross(unready)) or await self._done(unready, 1)
        effect = submission(compute, step, job, self._fence.check)
        standing = await self._begin(effect)
        if (report := self._obstacle(standing)) is not None:
            return report
        if not standing.marked:
            job_id = await compute.find(job.submission_key)
            return await self._lost(effect) if job_id is None else StepReport(verdict=ConductVerdict.DONE, job_id=job_id)
        with self._at_work(effect, standing.attempt) as marker:
            begun = await self._had(effect, standing.attempt, marker)
            return begun if isinstance(begun, StepReport) else StepReport(verdict=ConductVerdict.DONE, job_id=begun)

    async def collect(self, job_id: str) -> StepReport:
        """Wait for a job and deposit what it brings; neither is done twice."""
        step = self._step
        assert isinstance(step, RecipeComputeStep), "only a program is collected"
        asked = BeginRequest(place=self._place, marker=None, precedence=self._precedence, hold_blocks=False)
        standing = await self._asked(asked)
        if not standing.live:
            return StepReport(verdict=ConductVerdict.GONE)
        row = standing.outcome
        if standing.out_of_turn or (row is None and standing.lone_marker is None):
            return out_of_turn(self._place)
        if row is None:
            job = job_of(step, self._place, await self._memory())
            if await self._steps.compute.find(job.submission_key) not in (None, job_id):
                return out_of_turn(self._place)
            effect = collection(self._steps.compute, step, job, job_id)
            brought = await self._had(effect, standing.attempt, None)
            if isinstance(brought, StepReport):
                return brought
            row = await self._settle(effect, brought, standing.attempt)
        return self._told(row) if row["result"] == "failed" else await self._deposit(step, row)

    async def _deposit(self, step: RecipeComputeStep, row: Mapping[str, Any]) -> StepReport:
        """Leave what the program brought for later steps."""
        measurements = MEASUREMENTS.validate_python(row.get("measurements", ()))
        artifacts = ARTIFACTS.validate_python(row.get("artifacts", ()))
        try:
            left = deposited(step, measurements, artifacts, await self._memory())
        except StepFault as fault:
            told = await self._ledger.settle(self._row(Mark.DEPOSIT, 1, self._failed({}, fault)))
            return self._told(told)
        if left is not None:
            slot = step.capture_name or step.output_ref_name
            await self._ledger.settle(self._row(Mark.DEPOSIT, 1, {**left, "result": "ok"}, slot))
        return StepReport(verdict=ConductVerdict.DONE, next_step=self._following())

    async def _memory(self) -> Memory:
        """What the steps before have left; read only for a step that asks."""
        if not needs_memory(self._step):
            return Memory(coordinates=self._point)
        place, score = self._place, self._score
        rows = await self._ledger.slots(place.procedure_id, place.conduct_id, place.iteration_index, score.boundary)
        mine = (place.closing, place.step_index)
        others = [row for row in rows if (row.conduct_id, (row.closing, row.step_index)) != (place.conduct_id, mine)]
        return Memory(
            captures={row.slot: row.content["value"] for row in others if "value" in row.content},
            outputs={
                row.slot: Artifact(**row.content["artifact"])
                for row in others
                if "artifact" in row.content and row.closing == place.closing
            },
            coordinates=self._point,
        )

    async def _attended(self, body: Coroutine[Any, Any, T], marker: UUID | None) -> T:
        return await run_with_heartbeat(body, partial(self._beat, marker), self._fence)

    async def _beat(self, marker: UUID | None) -> ConductSignals:
        self._attempt.alive()
        return await self._ledger.beat(self._place, marker, self._score.run_id)

    @contextmanager
    def _at_work(self, effect: Effect[Any], attempt: int) -> Iterator[UUID | None]:
        """The row that marks the effect as begun, if any; left once what came of it is stored, or is not going to be."""
        marker = self._place.row_id(Mark.IN_FLIGHT, attempt) if effect.marked else None
        try:
            yield marker
        finally:
            if marker is not None:
                self._steps.leave(marker)

    async def _pause(self) -> None:
        self._attempt.alive()
        await asyncio.sleep(LOOK_INTERVAL)

    async def _lost(self, effect: Effect[Any]) -> StepReport:
        """Settle a step of which nobody knows what came of it, and which is not begun again."""
        return self._told(await self._stored(self._outcome(effect.says, StepFault(*LOST[self.kind]), 1, None)))

    async def _settle(self, effect: Effect[Any], came: EffectResult | Exception, attempt: int) -> Mapping[str, Any]:
        """Store what came of the step, and answer what stands."""
        return await self._stored(self._outcome({**effect.says, **effect.left()}, came, attempt, effect.kind()))

    def _outcome(
        self, says: Mapping[str, Any], came: EffectResult | Exception, attempt: int, kind: ActuationKind | None
    ) -> Activity:
        on = {} if kind is None else {"actuation_kind": kind.value}
        if isinstance(came, EffectResult):
            return self._row(Mark.OUTCOME, attempt, {**says, **came.says, **on, "result": "ok"}, came.slot)
        return self._row(Mark.OUTCOME, attempt, {**self._failed(says, came, attempt), **on})

    async def _stored(self, row: Activity) -> Mapping[str, Any]:
        """Store what came of the step. Nobody else knows it, so a store that is away is waited for as long as a restart."""
        loop = asyncio.get_running_loop()
        given_up = loop.time() + self._steps.limits.restart
        while True:
            try:
                return await run_within(self._ledger.settle(row), STOP_AFTER_SECONDS)
            except (StoreUnavailableError, TimeoutError):
                if loop.time() >= given_up:
                    raise
            await self._pause()

    def _failed(self, says: Mapping[str, Any], error: Exception, attempt: int = 1) -> dict[str, Any]:
        """What a row says of a failure; what nobody foresaw is told in the log, and in general words here.

        Of a write it also names the attempts that may have had their effect.
        """
        more: Mapping[str, Any] = error.says if isinstance(error, DetailedFault) else {}
        label = error.label if isinstance(error, StepFault) else type(error).__name__
        message = str(error)
        if not isinstance(error, FORESEEN):
            log.error("step_failed_unexpectedly", conduct_id=str(self._place.conduct_id), **error_location(error))
            message = UNEXPECTED_FAILURE
        if self.kind is StepKind.SETPOINT:
            message = doubtful(message, attempt if "sent" in says else attempt - 1)
        told = {"error_class": label, "message": plain(message)[:MAX_REASON_LENGTH], "target": target_of(self._step)}
        return {**says, **more, **told, "result": "failed"}

    def _told(self, row: Mapping[str, Any]) -> StepReport:
        """What a stored row says of the step."""
        if row["result"] == "failed":
            failure = step_failure(self._step, self._place.step_index, row["error_class"], row["message"])
            return StepReport(verdict=ConductVerdict.FAILED, failure=failure, next_step=self._following())
        return StepReport(verdict=ConductVerdict.DONE, next_step=self._following())

    def _following(self) -> NextStep | None:
        return self._steps.ahead(self._score.after(self._place))

    def _row(self, mark: Mark, attempt: int, says: Mapping[str, Any], slot: str | None = None) -> Activity:
        place, now = self._place, self._steps.clock()
        payload = {
            **says,
            "step_index": place.step_index,
            "conduct_id": str(place.conduct_id),
            "attempt": attempt,
            **({"iteration_index": place.iteration_index} if place.iteration_index else {}),
            **({"closing": True} if place.closing else {}),
            **({"worker": self._steps.worker.name} if mark is Mark.IN_FLIGHT else {}),
        }
        return Activity(
            event_id=place.row_id(mark, attempt),
            logbook_id=self._score.logbook_id,
            actor_id=self._score.caller.principal_id,
            command_name=self._score.command_name,
            correlation_id=self._score.caller.correlation_id,
            causation_id=place.conduct_id,
            occurred_at=now,
            procedure_id=place.procedure_id,
            step_kind=self.kind.value,
            payload=payload,
            sampled_at=now,
            conduct_id=place.conduct_id,
            iteration_index=place.iteration_index,
            closing=place.closing,
            step_index=place.step_index,
            mark=mark.value,
            attempt=attempt,
            slot=slot,
        )


def out_of_turn(place: StepPlace) -> StepReport:
    """The report of a step whose turn the record does not show: nothing is touched, and whoever asked for it ends."""
    log.warning("step_out_of_turn", **place.model_dump(mode="json"))
    return StepReport(verdict=ConductVerdict.GONE)


def failing(fault: StepFault, says: Mapping[str, Any]) -> Effect[EffectResult]:
    """A step that cannot be made ready: it touches nothing, and fails when its turn comes."""

    async def fail() -> EffectResult:
        raise fault

    return Effect(says, fail, lambda: None, marked=False)


def doubtful(message: str, attempts: int) -> str:
    """A failure with the attempts at its write, so many from the first, of which nobody knows whether they had effect."""
    if not attempts:
        return message
    which = "Attempt 1" if attempts == 1 else f"Attempts 1 to {attempts}"
    return f"{message[: MAX_REASON_LENGTH - 100]} {which} may have been written; look at the equipment."


def needs_memory(step: RecipeStep) -> bool:
    """Whether a step refers to what others left, or leaves something itself."""
    if declared_capture(step) is not None or declared_output(step) is not None:
        return True
    return any(isinstance(value, CaptureRef | OutputRef) for _, value in operands(step))
