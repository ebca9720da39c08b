"""An executor in memory, for demonstrations and tests: plans that take time, and do nothing."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from baton.application.conduct.actions import NotBegun, Token
from baton.application.conduct.plan_executors import (
    ExecutorCatalogue,
    PlanEnd,
    PlanExecutorBusyError,
    PlanJob,
    PlanPhase,
    PlanRejectedError,
    PlanState,
)
from baton.application.control import Fence, always_open
from baton.domain.recipe.offered_plans import OfferedPlan
from baton.infrastructure.plans.offers import offered_plan

SCHEMA = {
    "type": "object",
    "properties": {"seconds": {"type": "number", "minimum": 0}, "fails": {"type": "boolean"}},
    "additionalProperties": False,
}
DOCSTRING = "Wait for so many seconds, and answer them.\n\nIt touches nothing."


@dataclass
class MemoryRun:
    """One plan that was begun."""

    job: PlanJob
    seconds_left: float
    since: float
    phase: PlanPhase = PlanPhase.RUNNING
    end: PlanEnd | None = None


@dataclass
class MemoryExecutor:
    """Carries out the plan `wait`, one at a time; everything is lost with the process."""

    runs: dict[UUID, MemoryRun] = field(default_factory=dict)
    starts: int = 0

    async def catalogue(self) -> ExecutorCatalogue:
        plans: Mapping[str, OfferedPlan] = {"wait": offered_plan(DOCSTRING, SCHEMA, [DOCSTRING, SCHEMA])}
        return ExecutorCatalogue(version="in memory", environment="in memory", plans=plans)

    async def prepare(self, job: PlanJob) -> Token:
        return {}

    async def submit(self, job: PlanJob, fence: Fence = always_open) -> str:
        if job.plan != "wait":
            raise PlanRejectedError(f"There is no plan {job.plan} here; there is `wait`.")
        if job.key not in self.runs:
            if any(self._now(run).phase is not PlanPhase.ENDED for run in self.runs.values()):
                raise PlanExecutorBusyError("Another plan is carried out; wait for its end.")
            fence()
            self.starts += 1
            self.runs[job.key] = MemoryRun(job, float(job.params.get("seconds", 0)), self._time())
        return str(job.key)

    async def find(self, job: PlanJob) -> str | NotBegun | None:
        return str(job.key) if job.key in self.runs else NotBegun()

    async def state(self, job: PlanJob, job_id: str) -> PlanState:
        if (run := self.runs.get(UUID(job_id))) is None:
            return PlanState(phase=PlanPhase.LOST)
        run = self._now(run)
        message = "The plan was told to fail." if run.end is PlanEnd.FAILED else ""
        return PlanState(phase=run.phase, end=run.end, result=run.job.params.get("seconds", 0), message=message)

    async def pause(self, job: PlanJob, job_id: str) -> bool:
        return self._change(job_id, PlanPhase.RUNNING, PlanPhase.PAUSED)

    async def resume(self, job: PlanJob, job_id: str) -> bool:
        return self._change(job_id, PlanPhase.PAUSED, PlanPhase.RUNNING)

    def _change(self, job_id: str, phase: PlanPhase, wanted: PlanPhase) -> bool:
        """Bring a plan from one phase into another; return whether it was in the first."""
        run = self._now(self.runs[UUID(job_id)])
        is_there = run.phase is phase
        run.phase = wanted if is_there else run.phase
        return is_there

    async def stop(self, job: PlanJob, job_id: str) -> None:
        self._end(job_id, PlanEnd.STOPPED)

    async def abort(self, job: PlanJob, job_id: str, reason: str) -> None:
        self._end(job_id, PlanEnd.ABORTED)

    async def close(self) -> None:
        """Nothing is held open."""

    def _end(self, job_id: str, end: PlanEnd) -> None:
        if (run := self._now(self.runs[UUID(job_id)])).phase is not PlanPhase.ENDED:
            run.phase, run.end = PlanPhase.ENDED, end

    def _now(self, run: MemoryRun) -> MemoryRun:
        """Return the plan as it is by now."""
        now = self._time()
        if run.phase is PlanPhase.RUNNING:
            run.seconds_left -= now - run.since
            if run.seconds_left <= 0:
                run.phase = PlanPhase.ENDED
                run.end = PlanEnd.FAILED if run.job.params.get("fails") else PlanEnd.COMPLETED
        run.since = now
        return run

    @staticmethod
    def _time() -> float:
        return asyncio.get_running_loop().time()
