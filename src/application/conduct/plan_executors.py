"""The port of executors of Bluesky plans, and a plan as an action that can be found again."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, assert_never
from uuid import UUID

from pydantic import JsonValue

from baton.application.conduct.actions import (
    ActionCall,
    ActionFailedError,
    ActionHeld,
    ActionOutcomeUnknown,
    ActionRefusedError,
    ActionResult,
    NotBegun,
    Token,
    Wish,
)
from baton.application.control import Fence, always_open
from baton.domain.recipe.offered_plans import PLAN_PREFIX, OfferedPlan
from baton.domain.step.plan_steps import PlanNews
from baton.domain.step.results import ActuationKind, Measured

POLL_SECONDS = 0.5  # between two looks at a plan
REQUEST_SECONDS = 5.0  # the limit of one request to an executor
MAX_ANSWER_BYTES = 8 * 1024 * 1024
RESUME_SECONDS = 60.0  # how long an executor that refuses to resume a plan is asked again
ABORT_SECONDS = 60.0  # how long an abort waits until the executor says that the plan is over
MAX_MESSAGE = 500  # characters of an executor's message that are kept


class PlanExecutorBusyError(ActionRefusedError):
    """The executor carries out something else; nothing was begun."""


class PlanExecutorUnavailableError(ActionRefusedError):
    """The executor does not answer, or has no environment open; nothing was begun."""


class PlanRejectedError(ActionRefusedError):
    """The executor refuses the plan or its parameters; nothing was begun."""


class PlanChangedError(ActionRefusedError):
    """The plan is another than the one that was pinned; nothing was begun."""


class PlanFailedError(ActionFailedError):
    """The plan ended with an error."""


class PlanEndedElsewhereError(ActionFailedError):
    """Somebody else stopped the plan."""


class PlanOutcomeUnknown(ActionOutcomeUnknown):
    """The plan may have been carried out, and nobody can tell how it ended."""


class PlanExecutorSilentError(Exception):
    """The executor gave no answer in time; what was asked of it may have been done."""


class PlanPhase(StrEnum):
    PENDING = "pending"  # made, and not begun
    RUNNING = "running"
    PAUSED = "paused"
    ENDED = "ended"
    LOST = "lost"  # the executor does not know of it any more


class PlanEnd(StrEnum):
    """How a plan ended, as its executor says."""

    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    ABORTED = "aborted"  # or halted
    INTERRUPTED = "interrupted"  # the executor does not say by what
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class PlanJob:
    """One Bluesky plan with its parameters, the key of its one submission, and what it is found by."""

    key: UUID
    plan: str
    params: Mapping[str, Any]
    token: Token = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PlanState:
    """What an executor says of a plan now."""

    phase: PlanPhase
    end: PlanEnd | None = None
    message: str = ""
    run_uids: tuple[str, ...] = ()
    result: JsonValue = None
    facts: Mapping[str, Any] = field(default_factory=dict)  # what a person needs to look at where the outcome is unknown


@dataclass(frozen=True, kw_only=True)
class ExecutorCatalogue:
    """Everything that an executor offers."""

    version: str | None
    environment: str | None
    plans: Mapping[str, OfferedPlan]
    devices: tuple[str, ...] = ()
    activity: str | None = None  # in words


class PlanExecutor(Protocol):
    """Carries out each submission once. Everything but the first submission of a key may be repeated, in any process. Where
    nothing was begun for certain, methods raise ActionRefusedError; where there was no answer, PlanExecutorSilentError."""

    async def catalogue(self) -> ExecutorCatalogue:
        """Return what the executor offers now."""

    async def prepare(self, job: PlanJob) -> Token:
        """Return what the plan is found by once it is begun; nothing is begun by it."""

    async def submit(self, job: PlanJob, fence: Fence = always_open) -> str:
        """Begin the plan and return the id of its job. The fence is checked right before; where it raises, nothing begins.
        Raises PlanOutcomeUnknown where nobody can tell whether it was begun."""

    async def find(self, job: PlanJob) -> str | NotBegun | None:
        """Return the id of the job begun under the key; NotBegun where it is certain that none was begun and none will be;
        None where nobody can tell."""

    async def state(self, job: PlanJob, job_id: str) -> PlanState:
        """Return how far the job is; of one that ended, how and with what."""

    async def pause(self, job: PlanJob, job_id: str) -> bool:
        """Ask for a pause at the next checkpoint; it may be asked for again. Return whether the request was taken."""

    async def resume(self, job: PlanJob, job_id: str) -> bool:
        """Have a paused plan continue; return whether the request was taken."""

    async def stop(self, job: PlanJob, job_id: str) -> None:
        """Ask for an early end that counts as a success; it may be asked for again."""

    async def abort(self, job: PlanJob, job_id: str, reason: str) -> None:
        """Ask for an end at once; it may be asked for again."""

    async def close(self) -> None:
        """Release everything but the jobs, which continue."""


@dataclass(frozen=True)
class LastRequest:
    """What was asked of an executor last, and whether it said that it took it."""

    wish: Wish
    taken: bool = True


@dataclass(frozen=True)
class PlanAction:
    """A Bluesky plan of an executor, as an action that can be found again."""

    executor_name: str
    plan: str
    executor: PlanExecutor
    simulated: bool
    pauses: bool
    timeout_seconds: float

    @property
    def actuation_kind(self) -> ActuationKind:
        """What it is done on, as the settings of the executor declare."""
        return ActuationKind.SIMULATED if self.simulated else ActuationKind.PHYSICAL

    @property
    def name(self) -> str:
        return f"{PLAN_PREFIX}{self.executor_name}/{self.plan}"

    def job(self, call: ActionCall) -> PlanJob:
        """Return the job of a call."""
        return PlanJob(key=call.key, plan=self.plan, params=call.params, token=call.token)

    def _pauses(self, job: PlanJob) -> bool:
        """Return whether a hold pauses the plan; one without checkpoints would be aborted by it."""
        return self.pauses and job.token.get("checkpoints") is not False

    async def prepare(self, call: ActionCall) -> Token:
        try:
            catalogue = await self.executor.catalogue()
            offered = catalogue.plans.get(self.plan)
            if offered is None:
                raise PlanRejectedError(f"{self.executor_name} does not offer {self.plan}; open its environment.")
            if call.pinned is not None and call.pinned != offered.digest:
                facts = {"pinned": call.pinned, "offered": offered.digest, "plan": self.plan}
                detail = (
                    f"{self.name} is another than the one that was pinned; look at it, and register the procedure again."
                )
                raise PlanChangedError(detail, facts)
            own: Token = {} if offered.checkpoints else {"checkpoints": False}
            return {"environment": catalogue.environment, **await self.executor.prepare(self.job(call)), **own}
        except PlanExecutorSilentError as silent:
            raise PlanExecutorUnavailableError(f"{self.executor_name} does not answer: {silent}") from silent

    async def submit(self, call: ActionCall) -> str:
        return await self.executor.submit(self.job(call), call.fence)

    async def find(self, call: ActionCall) -> str | NotBegun | None:
        try:
            return await self.executor.find(self.job(call))
        except PlanExecutorSilentError:
            return None

    async def resume(self, call: ActionCall, job_id: str) -> None:
        job, give_up_at = self.job(call), asyncio.get_running_loop().time() + RESUME_SECONDS
        while self._pauses(job) and (await self._state(job, job_id)).phase is PlanPhase.PAUSED:
            with suppress(PlanExecutorSilentError):
                if await self.executor.resume(job, job_id) or asyncio.get_running_loop().time() > give_up_at:
                    return  # the wait that follows shows whether it continues
            await call.time.sleep(POLL_SECONDS)

    async def collect(self, call: ActionCall, job_id: str) -> ActionResult:
        job, began_at, asked = self.job(call), call.time.now(), LastRequest(Wish.CONTINUE)
        known, changed_at = PlanState(phase=PlanPhase.RUNNING), began_at
        call.tell(self._news(call, job_id, known, None, changed_at))
        while True:
            state = await self._state(job, job_id)
            changed_at = changed_at if state == known else call.time.now()
            known = state
            call.tell(self._news(call, job_id, state, call.time.now(), changed_at))
            if state.phase is PlanPhase.ENDED:
                return self._result(state, job_id, asked.wish)
            if state.phase in (PlanPhase.LOST, PlanPhase.PENDING):
                raise self._unknown(job, job_id, "The executor does not know of the plan any more", state)
            wish = call.wish()
            if wish is Wish.HOLD and self._pauses(job) and state.phase is PlanPhase.PAUSED:
                raise ActionHeld
            asked = await self._ask(wish, asked, state, job, job_id)
            if (call.time.now() - began_at).total_seconds() > self.timeout_seconds:
                raise self._unknown(job, job_id, f"The plan did not end within {self.timeout_seconds:g} s", state)
            await call.time.sleep(POLL_SECONDS)

    def _news(
        self, call: ActionCall, job_id: str, state: PlanState, answered_at: datetime | None, changed_at: datetime
    ) -> PlanNews:
        """Return what is known of a plan, for those who ask about its step."""
        environment = call.token.get("environment_id") or call.token.get("environment")
        return PlanNews(
            name=self.name,
            key=call.key,
            job_id=job_id,
            environment=None if environment is None else str(environment),
            phase=None if answered_at is None else state.phase.value,
            message=state.message[:MAX_MESSAGE],
            run_uids=state.run_uids,
            answered_at=answered_at,
            changed_at=changed_at,
        )

    async def _ask(self, wish: Wish, asked: LastRequest, state: PlanState, job: PlanJob, job_id: str) -> LastRequest:
        """Ask of the executor what the record wishes; return what was asked of it last. A request that was refused, or not
        answered, may have been taken: an executor under load says no to what it does a moment later."""
        try:
            match wish:
                case Wish.STOP:
                    await self.executor.stop(job, job_id)
                    return LastRequest(Wish.STOP)
                case Wish.HOLD if self._pauses(job) and asked != LastRequest(Wish.HOLD):
                    return LastRequest(Wish.HOLD, taken=await self.executor.pause(job, job_id))
                case Wish.CONTINUE if state.phase is PlanPhase.PAUSED and asked != LastRequest(Wish.CONTINUE):
                    return LastRequest(Wish.CONTINUE, taken=await self.executor.resume(job, job_id))
                case Wish.CONTINUE if asked.wish is Wish.CONTINUE:
                    return LastRequest(Wish.CONTINUE)  # it runs: a later pause is somebody else's
                case Wish.HOLD | Wish.CONTINUE:
                    return asked
                case _:
                    assert_never(wish)
        except PlanExecutorSilentError:
            return LastRequest(wish, taken=False)

    async def stop(self, call: ActionCall, job_id: str) -> None:
        job, give_up_at = self.job(call), asyncio.get_running_loop().time() + ABORT_SECONDS
        state = PlanState(phase=PlanPhase.RUNNING)
        while asyncio.get_running_loop().time() < give_up_at:
            with suppress(PlanExecutorSilentError):
                state = await self.executor.state(job, job_id)
                if state.phase is PlanPhase.ENDED:
                    return
                if state.phase is not PlanPhase.LOST:
                    await self.executor.abort(job, job_id, "The conduct was aborted.")
            await call.time.sleep(POLL_SECONDS)
        raise self._unknown(job, job_id, f"The plan was not seen to end within {ABORT_SECONDS:g} s after the abort", state)

    async def _state(self, job: PlanJob, job_id: str) -> PlanState:
        """Return what the executor says of a plan, however often it must be asked."""
        give_up_at = asyncio.get_running_loop().time() + self.timeout_seconds
        while True:
            try:
                return await self.executor.state(job, job_id)
            except PlanExecutorSilentError as silent:
                if asyncio.get_running_loop().time() >= give_up_at:
                    lost = PlanState(phase=PlanPhase.LOST)
                    raise self._unknown(job, job_id, f"The executor does not answer: {silent}", lost) from silent
                await asyncio.sleep(POLL_SECONDS)

    def _result(self, state: PlanState, job_id: str, asked: Wish) -> ActionResult:
        """Return the result of a plan that ended as it was asked to; raise where it did not."""
        said, facts = state.message[:MAX_MESSAGE], {"executor": self.executor_name, "plan": self.plan, "job_id": job_id}
        match state.end:
            case PlanEnd.COMPLETED:
                pass
            case PlanEnd.FAILED:
                raise PlanFailedError(said or "The plan failed; its executor does not say why.", facts)
            case PlanEnd.STOPPED | PlanEnd.ABORTED | PlanEnd.INTERRUPTED if asked is Wish.STOP:
                pass
            case PlanEnd.STOPPED | PlanEnd.ABORTED:
                detail = f"Somebody ended the plan at {self.executor_name} as {state.end.value}; look there for why."
                raise PlanEndedElsewhereError(f"{detail} {said}".strip()[:MAX_MESSAGE], {**facts, "end": state.end.value})
            case _:
                raise self._unknown(None, job_id, "The executor does not say how the plan ended", state)
        data: dict[str, JsonValue] = {"run_uids": list(state.run_uids), "result": state.result}
        if state.end is not PlanEnd.COMPLETED and state.end is not None:
            data["ended"] = state.end.value
        number = state.result
        if isinstance(number, bool) or not isinstance(number, int | float):
            return ActionResult(data)
        return ActionResult(data, (Measured(name=self.plan, value=number, kind="Scalar", quality="Good"),))

    def _unknown(self, job: PlanJob | None, job_id: str, why: str, state: PlanState) -> PlanOutcomeUnknown:
        """Return the failure of a plan whose outcome nobody knows, with all that a person needs to look."""
        key = {} if job is None else {"key": str(job.key), **job.token}
        said = {"executor_says": state.message[:MAX_MESSAGE], "phase": state.phase.value, "run_uids": list(state.run_uids)}
        facts = {"executor": self.executor_name, "plan": self.plan, "job_id": job_id, **key, **said, **state.facts}
        detail = f"{why}; look at {self.executor_name} and at the equipment, and say whether the plan was carried out."
        return PlanOutcomeUnknown(detail, facts)
