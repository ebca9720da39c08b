"""The effects of a conduct: its steps, and what is put on the record between them."""

from datetime import datetime
from uuid import UUID

from temporalio import activity

from baton.activities.heartbeats import EngineAttempt, heartbeating, yield_on_shutdown, refuse_foreign_workflow
from baton.application.conduct.conduct_plan import ConductPlans
from baton.application.conduct.conduct_work import workflow_id
from baton.application.conduct.conductor import Conductor
from baton.application.conduct.passes import Passes
from baton.application.conduct.step_runner import StepRunner
from baton.domain.operation.conduct.messages import ConductStart, ConductOutcome, StepPlace, StepReport, PassDecision, ConductVerdict
from baton.domain.operation.conduct.results import Failure


class ConductActivities:
    """Each activity may run again: the ledger and the stream say what was done already."""

    def __init__(self, conductor: Conductor, passes: Passes, steps: StepRunner, scores: ConductPlans) -> None:
        self._conductor = conductor
        self._passes = passes
        self._steps = steps
        self._scores = scores
        self._attempt = EngineAttempt()

    @activity.defn(name="brief_conduct")
    async def brief(self, procedure_id: UUID, conduct_id: UUID) -> ConductStart | None:
        refuse_foreign_workflow(workflow_id("conduct", procedure_id))
        async with heartbeating():
            return await self._conductor.brief(procedure_id, conduct_id)

    @activity.defn(name="do_step")
    async def do_step(self, place: StepPlace, point: dict[str, float | str] | None, deadline: datetime | None) -> StepReport:
        refuse_foreign_workflow(workflow_id("conduct", place.procedure_id))
        score = await self._scores.score(place.procedure_id, place.conduct_id)
        if score is None:
            return StepReport(verdict=ConductVerdict.GONE)
        return await self._steps.do(score, place, point or {}, deadline, self._attempt)

    @activity.defn(name="collect_job")
    async def collect_job(self, place: StepPlace, point: dict[str, float | str] | None, job_id: str) -> StepReport:
        refuse_foreign_workflow(workflow_id("conduct", place.procedure_id))
        score = await self._scores.score(place.procedure_id, place.conduct_id)
        if score is None:
            return StepReport(verdict=ConductVerdict.GONE)
        return await self._steps.collect(score, place, point or {}, job_id, self._attempt)

    @activity.defn(name="await_run")
    async def await_run(self, procedure_id: UUID, conduct_id: UUID) -> ConductVerdict:
        refuse_foreign_workflow(workflow_id("conduct", procedure_id))
        return await yield_on_shutdown(self._conductor.await_run(procedure_id, conduct_id, self._attempt))

    @activity.defn(name="start_pass")
    async def start_pass(
        self, procedure_id: UUID, conduct_id: UUID, passes: int, point: dict[str, float | str] | None
    ) -> PassDecision:
        refuse_foreign_workflow(workflow_id("conduct", procedure_id))
        async with heartbeating():
            return await self._passes.start(procedure_id, conduct_id)

    @activity.defn(name="judge_pass")
    async def judge_pass(self, procedure_id: UUID, conduct_id: UUID, iteration_index: int) -> PassDecision:
        refuse_foreign_workflow(workflow_id("conduct", procedure_id))
        async with heartbeating():
            return await self._passes.judge(procedure_id, conduct_id, iteration_index)

    @activity.defn(name="record_outcome")
    async def record_outcome(
        self, procedure_id: UUID, conduct_id: UUID, iteration_index: int, point: dict[str, float | str]
    ) -> PassDecision:
        refuse_foreign_workflow(workflow_id("conduct", procedure_id))
        async with heartbeating():
            return await self._passes.record_outcome(procedure_id, conduct_id, iteration_index)

    @activity.defn(name="advise_pass")
    async def advise_pass(self, procedure_id: UUID, conduct_id: UUID, iteration_index: int, passes: int) -> PassDecision:
        refuse_foreign_workflow(workflow_id("conduct", procedure_id))
        return await yield_on_shutdown(self._passes.advise(procedure_id, conduct_id, iteration_index, self._attempt))

    @activity.defn(name="take_up_search")
    async def take_up_search(self, procedure_id: UUID, conduct_id: UUID) -> PassDecision:
        refuse_foreign_workflow(workflow_id("conduct", procedure_id))
        return await yield_on_shutdown(self._passes.take_up(procedure_id, conduct_id, self._attempt))

    @activity.defn(name="begin_closing")
    async def begin_closing(self, procedure_id: UUID, conduct_id: UUID, outcome: ConductOutcome) -> ConductVerdict:
        refuse_foreign_workflow(workflow_id("conduct", procedure_id))
        async with heartbeating():
            return await self._conductor.begin_closing(procedure_id, conduct_id, outcome)

    @activity.defn(name="end_conduct")
    async def end_conduct(self, procedure_id: UUID, conduct_id: UUID, outcome: ConductOutcome, closed: bool) -> Failure | None:
        refuse_foreign_workflow(workflow_id("conduct", procedure_id))
        async with heartbeating():
            return await self._conductor.end(procedure_id, conduct_id, outcome, closed)
