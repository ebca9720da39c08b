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
from baton.application.conduct.conduct_plan import MAIN_BLOCKS, Score
from baton.application.conduct.heartbeat import (
    GIVES_UP_AFTER,
    SILENT_AFTER,
    Attempt,
    Countermanded,
    UnheardError,
    WriteFence,
    attended,
    finish,
    in_time,
)
from baton.application.conduct.ledger import Crossing, Orders, Precedence, Standing
from baton.application.conduct.program_steps import collection, job_of, submission
from baton.application.conduct.step_effects import Done, Effect, TellingFault, plain
from baton.application.control import ControlError
from baton.application.ports import StoreUnavailableError
from baton.application.telemetry import traced
from baton.domain.operation.conduct.actuation import ActuationKind
from baton.domain.operation.conduct.messages import (
    REASON,
    UNEXPECTED,
    WRITE_TIMEOUT,
    Ahead,
    Mark,
    Place,
    Report,
    Verdict,
    failure_of,
    interrupted,
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
    from baton.application.conduct.step_runner import Steps

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


class Doing:
    """One step being done."""

    def __init__(self, steps: "Steps", score: Score, place: Place, point: Point, attempt: Attempt) -> None:
        self._steps = steps
        self._ledger = steps.ledger
        self._score = score
        self._place = place
        self._point = point
        self._attempt = attempt
        self._fence = WriteFence(steps.silence_clock)
        self._step = score.step(place)
        self.kind = StepKind(self._step.kind)

    async def do(self, deadline: datetime | None) -> Report:
        """Do a step whose effect ends with it."""
        effect = await self._ready(deadline)
        standing = await self._begin(effect)
        if (report := self._obstacle(standing)) is not None:
            return report
        if effect.marked and not standing.marked:
            return await self._lost(effect)
        return await self._done(effect, standing.attempt)

    async def _ready(self, deadline: datetime | None) -> Effect[Done]:
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

    async def _begin(self, effect: Effect[Any]) -> Standing:
        """Mark the step as begun where it may be; one that somebody else may still be doing is waited for."""
        standing = await self._cross(effect)
        while (
            standing.live and not standing.out_of_turn and (lone := standing.lone_marker) is not None and not standing.marked
        ):
            over = self._steps.is_over(lone)
            silent = standing.silence is None or standing.silence >= SILENT_AFTER
            if over or silent:
                if not effect.repeatable or self._obstacle(standing) is not None:
                    break
                if over or lone.age >= WRITE_TIMEOUT:
                    standing = await self._cross(effect, attempt=lone.attempt + 1)
                    continue
            await self._pause()
            standing = await self._cross(effect)
        return standing

    async def _cross(self, effect: Effect[Any], attempt: int = 1) -> Standing:
        """Ask the ledger to mark the step, with the submitter's standing as folded last; where that moved, ask again."""
        while (standing := await self._try_cross(effect, attempt)).submitter_moved:
            await self._steps.submitters.fold(self._score.caller)
        return standing

    async def _try_cross(self, effect: Effect[Any], attempt: int) -> Standing:
        score, main = self._score, not self._place.closing
        waits = self._step.timeout or 0.0 if isinstance(self._step, RecipeCheckStep) else 0.0
        marker = self._row(Mark.IN_FLIGHT, attempt, {**effect.says, "result": "in_flight"}) if effect.marked else None
        crossing = Crossing(
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

    async def _asked(self, crossing: Crossing) -> Standing:
        """What the ledger says to a step; if it lets the step begin, the step was heard of when it asked."""
        asked_at = self._fence.clock()
        standing = await self._ledger.begin(crossing)
        self._fence.confirm(asked_at)
        return standing

    def _obstacle(self, standing: Standing) -> Report | None:
        """What stands in the way of the step, in the order in which it counts."""
        if not standing.live:
            return Report(verdict=Verdict.GONE)
        if standing.out_of_turn:
            return out_of_turn(self._place)
        if (row := standing.outcome) is not None:
            return self._told(row)
        if standing.lone_marker is not None and not standing.marked and self.kind in LOST:
            return None
        if standing.asked is PendingRequest.ABORT:
            return Report(verdict=Verdict.ABORT)
        if standing.run is RunStatus.ABORTED and not self._score.closing_only:
            return Report(verdict=Verdict.RUN_ABORTED)
        if self._place.closing:
            return None
        if standing.asked is PendingRequest.HOLD:
            return Report(verdict=Verdict.HOLD)
        if standing.run not in (None, RunStatus.RUNNING, RunStatus.HELD):
            return Report(verdict=Verdict.RUN_STOPPED)
        if standing.stood_down:
            return Report(verdict=Verdict.STOOD_DOWN)
        if standing.run is RunStatus.HELD:
            return Report(verdict=Verdict.RUN_HELD)
        if standing.late:
            begun = standing.lone_marker is not None
            return Report(verdict=Verdict.FAILED, failure=interrupted(self._step, self._place.step_index, begun=begun))
        if standing.begun_before:
            return Report(verdict=Verdict.HALT)
        return None

    @property
    def _precedence(self) -> Precedence:
        return Precedence(first=self._place.step_index == self._score.first_index(self._place), point=self._point)

    async def _done(self, effect: Effect[Done], attempt: int) -> Report:
        """Have the effect, and settle what came of it."""
        with self._at_work(effect, attempt) as marker:
            done = await self._had(effect, attempt, marker)
            return done if isinstance(done, Report) else self._told(await self._settle(effect, done, attempt))

    async def _had(self, effect: Effect[T], attempt: int, marker: UUID | None) -> T | Report:
        """What the effect brings; where it brings nothing, what came of it instead is settled and told."""
        try:
            return await self._attended(effect.body(), marker)
        except Countermanded as stopped:
            await self._cut_off(effect, attempt, marker)
            return Report(verdict=stopped.verdict)
        except asyncio.CancelledError:
            if self._attempt.called_off:
                await asyncio.shield(self._cut_off(effect, attempt, marker))
            raise
        except (StoreUnavailableError, UnheardError):
            raise
        except Exception as error:
            return self._told(await self._settle(effect, error, attempt))

    async def _cut_off(self, effect: Effect[Any], attempt: int, marker: UUID | None) -> None:
        """Settle a step that was stopped from outside, once nothing of it goes on."""
        withdrawal = asyncio.ensure_future(effect.withdraw())
        await finish(withdrawal, partial(self._beat, marker))
        withdrawal.result()
        fault = StepFault("CancelledError", "The step was stopped because the conduct was aborted.")
        await self._settle(effect, fault, attempt)

    async def submit(self) -> Report:
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
            return await self._lost(effect) if job_id is None else Report(verdict=Verdict.DONE, job_id=job_id)
        with self._at_work(effect, standing.attempt) as marker:
            begun = await self._had(effect, standing.attempt, marker)
            return begun if isinstance(begun, Report) else Report(verdict=Verdict.DONE, job_id=begun)

    async def collect(self, job_id: str) -> Report:
        """Wait for a job and deposit what it brings; neither is done twice."""
        step = self._step
        assert isinstance(step, RecipeComputeStep), "only a program is collected"
        asked = Crossing(place=self._place, marker=None, precedence=self._precedence, hold_blocks=False)
        standing = await self._asked(asked)
        if not standing.live:
            return Report(verdict=Verdict.GONE)
        row = standing.outcome
        if standing.out_of_turn or (row is None and standing.lone_marker is None):
            return out_of_turn(self._place)
        if row is None:
            job = job_of(step, self._place, await self._memory())
            if await self._steps.compute.find(job.submission_key) not in (None, job_id):
                return out_of_turn(self._place)
            effect = collection(self._steps.compute, step, job, job_id)
            brought = await self._had(effect, standing.attempt, None)
            if isinstance(brought, Report):
                return brought
            row = await self._settle(effect, brought, standing.attempt)
        return self._told(row) if row["result"] == "failed" else await self._deposit(step, row)

    async def _deposit(self, step: RecipeComputeStep, row: Mapping[str, Any]) -> Report:
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
        return Report(verdict=Verdict.DONE, ahead=self._following())

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
        return await attended(body, partial(self._beat, marker), self._fence)

    async def _beat(self, marker: UUID | None) -> Orders:
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

    async def _lost(self, effect: Effect[Any]) -> Report:
        """Settle a step of which nobody knows what came of it, and which is not begun again."""
        return self._told(await self._stored(self._outcome(effect.says, StepFault(*LOST[self.kind]), 1, None)))

    async def _settle(self, effect: Effect[Any], came: Done | Exception, attempt: int) -> Mapping[str, Any]:
        """Store what came of the step, and answer what stands."""
        return await self._stored(self._outcome({**effect.says, **effect.left()}, came, attempt, effect.kind()))

    def _outcome(
        self, says: Mapping[str, Any], came: Done | Exception, attempt: int, kind: ActuationKind | None
    ) -> Activity:
        on = {} if kind is None else {"actuation_kind": kind.value}
        if isinstance(came, Done):
            return self._row(Mark.OUTCOME, attempt, {**says, **came.says, **on, "result": "ok"}, came.slot)
        return self._row(Mark.OUTCOME, attempt, {**self._failed(says, came, attempt), **on})

    async def _stored(self, row: Activity) -> Mapping[str, Any]:
        """Store what came of the step. Nobody else knows it, so a store that is away is waited for as long as a restart."""
        loop = asyncio.get_running_loop()
        given_up = loop.time() + self._steps.limits.restart
        while True:
            try:
                return await in_time(self._ledger.settle(row), GIVES_UP_AFTER)
            except (StoreUnavailableError, TimeoutError):
                if loop.time() >= given_up:
                    raise
            await self._pause()

    def _failed(self, says: Mapping[str, Any], error: Exception, attempt: int = 1) -> dict[str, Any]:
        """What a row says of a failure; what nobody foresaw is told in the log, and in general words here.

        Of a write it also names the attempts that may have had their effect.
        """
        more: Mapping[str, Any] = error.says if isinstance(error, TellingFault) else {}
        label = error.label if isinstance(error, StepFault) else type(error).__name__
        message = str(error)
        if not isinstance(error, FORESEEN):
            log.error("step_failed_unexpectedly", conduct_id=str(self._place.conduct_id), **traced(error))
            message = UNEXPECTED
        if self.kind is StepKind.SETPOINT:
            message = doubtful(message, attempt if "sent" in says else attempt - 1)
        told = {"error_class": label, "message": plain(message)[:REASON], "target": target_of(self._step)}
        return {**says, **more, **told, "result": "failed"}

    def _told(self, row: Mapping[str, Any]) -> Report:
        """What a stored row says of the step."""
        if row["result"] == "failed":
            failure = failure_of(self._step, self._place.step_index, row["error_class"], row["message"])
            return Report(verdict=Verdict.FAILED, failure=failure, ahead=self._following())
        return Report(verdict=Verdict.DONE, ahead=self._following())

    def _following(self) -> Ahead | None:
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


def out_of_turn(place: Place) -> Report:
    """The report of a step whose turn the record does not show: nothing is touched, and whoever asked for it ends."""
    log.warning("step_out_of_turn", **place.model_dump(mode="json"))
    return Report(verdict=Verdict.GONE)


def failing(fault: StepFault, says: Mapping[str, Any]) -> Effect[Done]:
    """A step that cannot be made ready: it touches nothing, and fails when its turn comes."""

    async def fail() -> Done:
        raise fault

    return Effect(says, fail, lambda: None, marked=False)


def doubtful(message: str, attempts: int) -> str:
    """A failure with the attempts at its write, so many from the first, of which nobody knows whether they had effect."""
    if not attempts:
        return message
    which = "Attempt 1" if attempts == 1 else f"Attempts 1 to {attempts}"
    return f"{message[: REASON - 100]} {which} may have been written; look at the equipment."


def needs_memory(step: RecipeStep) -> bool:
    """Whether a step refers to what others left, or leaves something itself."""
    if declared_capture(step) is not None or declared_output(step) is not None:
        return True
    return any(isinstance(value, CaptureRef | OutputRef) for _, value in operands(step))
