"""The effects of conducting a run: its phases are opened and waited for, and its end is put on the record."""

from uuid import UUID

from temporalio import activity

from baton.activities.heartbeats import EngineAttempt, heartbeating, yield_on_shutdown, refuse_foreign_workflow
from baton.application.conduct.conduct_work import workflow_id
from baton.application.conduct.run_conductor import RunConductor
from baton.domain.run.messages import PhaseReport, PhaseVerdict, RunOutcome


class RunConductActivities:
    """Each activity may run again: the streams say what was done already."""

    def __init__(self, conductor: RunConductor) -> None:
        self._conductor = conductor
        self._attempt = EngineAttempt()

    @activity.defn(name="brief_run_conduct")
    async def brief(self, run_id: UUID, conduct_id: UUID) -> int | None:
        refuse_foreign_workflow(workflow_id("conduct-run", run_id))
        async with heartbeating():
            return await self._conductor.brief(run_id, conduct_id)

    @activity.defn(name="open_phase")
    async def open_phase(self, run_id: UUID, conduct_id: UUID, index: int) -> PhaseReport:
        refuse_foreign_workflow(workflow_id("conduct-run", run_id))
        async with heartbeating():
            return await self._conductor.open_phase(run_id, conduct_id, index)

    @activity.defn(name="await_run_resumed")
    async def await_run(self, run_id: UUID, conduct_id: UUID, index: int) -> PhaseReport:
        refuse_foreign_workflow(workflow_id("conduct-run", run_id))
        return await yield_on_shutdown(self._conductor.await_run(run_id, conduct_id, index, self._attempt))

    @activity.defn(name="await_phase")
    async def await_phase(self, run_id: UUID, conduct_id: UUID, index: int) -> PhaseReport:
        refuse_foreign_workflow(workflow_id("conduct-run", run_id))
        return await yield_on_shutdown(self._conductor.await_phase(run_id, conduct_id, index, self._attempt))

    @activity.defn(name="end_run_conduct")
    async def end(self, run_id: UUID, conduct_id: UUID, outcome: RunOutcome) -> PhaseVerdict:
        refuse_foreign_workflow(workflow_id("conduct-run", run_id))
        async with heartbeating():
            return await self._conductor.end(run_id, conduct_id, outcome, self._attempt)
