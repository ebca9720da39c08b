"""The conduct of a run: its phases one after the other, each a conduct of its own, then the end of the run.

It only decides what comes next. What is true is on the record, and every effect is an activity that may be repeated.
"""

from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError, is_cancelled_exception
from temporalio.workflow import ChildWorkflowCancellationType, ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from baton.domain.operation.conduct.progress import ConductPhase
    from baton.domain.run.messages import RUN_FINISH_BY_VERDICT, PhaseJob, PhaseReport, PhaseVerdict, RunConductOrder, RunFinish, RunOutcome
    from baton.workflows.activity_calls import STATE, has_search_attributes, call_waiting_activity, call_short_activity, run_to_completion


@workflow.defn(name="conduct-run")
class ConductRunWorkflow:
    """One conduct of one run."""

    @workflow.init
    def __init__(self, order: RunConductOrder) -> None:
        self._order = order
        self._index = order.phase_index
        self._count = order.phase_count or 0
        self._state = ""

    @workflow.run
    async def run(self, order: RunConductOrder) -> None:
        try:
            outcome, recorded = await self._conduct()
        except BaseException as error:
            if not is_cancelled_exception(error):
                raise
            outcome, recorded = RunOutcome(finish=RunFinish.CANCELLED), False
        if not recorded:
            await run_to_completion(self._end(outcome))
        self._show(ConductPhase.ENDED, outcome.finish.value)

    async def _conduct(self) -> tuple[RunOutcome, bool]:
        """The phases and, where all went well, the end of the run; whether that is on the record already.

        A run that is held although all is done is completed when it goes on.
        """
        count = self._count or await self._shortly("brief_run_conduct", result_type=int | None)
        if count is None:
            return RunOutcome(finish=RunFinish.GONE), True
        self._count = count
        while (outcome := await self._phases()).finish is RunFinish.COMPLETED:
            if await self._end(outcome) is not PhaseVerdict.RUN_HELD:
                return outcome, True
            report = await self._run_resumed()
            if report.verdict is not PhaseVerdict.RUN_RESUMED:
                outcome = RunOutcome(finish=RUN_FINISH_BY_VERDICT[report.verdict])
                break
        return outcome, outcome.finish is RunFinish.GONE

    async def _phases(self) -> RunOutcome:
        """Every phase that is left, until one does not come to its good end."""
        while self._index < self._count:
            self._roll_over()
            report = await self._phase()
            if report.verdict is PhaseVerdict.RUN_HELD:
                report = await self._run_resumed()
                if report.verdict is PhaseVerdict.RUN_RESUMED:
                    continue
            if report.verdict is not PhaseVerdict.COMPLETED:
                return RunOutcome(finish=RUN_FINISH_BY_VERDICT[report.verdict], phase_index=self._index, failure=report.failure)
            self._index += 1
        return RunOutcome(finish=RunFinish.COMPLETED)

    async def _phase(self) -> PhaseReport:
        """One phase, from its opening to its end."""
        self._show(ConductPhase.WALKING, "")
        report = await self._shortly("open_phase", self._index, result_type=PhaseReport)
        if report.verdict is not PhaseVerdict.OPENED:
            return report
        if report.job is not None:
            await self._take_up(report.job)
        return await self._waiting("await_phase", self._index, result_type=PhaseReport)

    async def _take_up(self, job: PhaseJob) -> None:
        """Have the engine conduct a phase that was opened; it goes on whatever becomes of this conduct.

        Where somebody else has started it from the record meanwhile, that is as good.
        """
        known = job.attributes.items() if has_search_attributes() else ()
        attributes = [SearchAttributePair(SearchAttributeKey.for_keyword(name), value) for name, value in known]
        try:
            await workflow.start_child_workflow(
                "conduct",
                job.order,
                id=job.id,
                parent_close_policy=ParentClosePolicy.ABANDON,
                cancellation_type=ChildWorkflowCancellationType.ABANDON,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                search_attributes=TypedSearchAttributes(attributes),
                static_summary=job.summary,
            )
        except WorkflowAlreadyStartedError:
            return

    async def _run_resumed(self) -> PhaseReport:
        """Wait until the run goes on, or is brought to an end."""
        self._show(ConductPhase.WAITING, "waiting for the run to be resumed")
        at = min(self._index, self._count - 1)
        report: PhaseReport = await self._waiting("await_run_resumed", at, result_type=PhaseReport)
        return report

    async def _end(self, outcome: RunOutcome) -> PhaseVerdict:
        verdict: PhaseVerdict = await self._waiting("end_run_conduct", outcome, result_type=PhaseVerdict)
        return verdict

    def _roll_over(self) -> None:
        """Go on in a fresh history when this one has become long; only between two phases."""
        if workflow.info().is_continue_as_new_suggested():
            standing = {"phase_count": self._count, "phase_index": self._index}
            workflow.continue_as_new(self._order.model_copy(update=standing))

    def _show(self, phase: ConductPhase, doing: str) -> None:
        """Tell whoever looks into the engine where the conduct stands."""
        at = f"phase {min(self._index + 1, self._count)}/{self._count}"
        workflow.set_current_details(f"**{phase.value}**: {at}{doing and f', {doing}'}")
        if phase.value != self._state and has_search_attributes():
            self._state = phase.value
            workflow.upsert_search_attributes([STATE.value_set(phase.value)])

    async def _waiting(self, name: str, *given: Any, result_type: Any) -> Any:
        summary = f"phase {min(self._index + 1, self._count)}/{self._count}"
        return await call_waiting_activity(name, [self._order.run_id, self._order.conduct_id, *given], result_type, summary)

    async def _shortly(self, name: str, *given: Any, result_type: Any) -> Any:
        return await call_short_activity(name, [self._order.run_id, self._order.conduct_id, *given], result_type)
