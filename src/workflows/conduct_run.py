"""The workflow of a run's conduct: its phases one after the other, each a conduct of its own, then the end of the run.
It only decides what comes next. The truth is on the record, and every effect is an activity that may be repeated."""

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError, is_cancelled_exception
from temporalio.workflow import ChildWorkflowCancellationType, ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from baton.domain.operation.conduct.progress import ConductPhase
    from baton.domain.run import messages
    from baton.domain.run.messages import PhaseReport, PhaseRequest, PhaseVerdict, RunConductOrder, RunFinish, RunOutcome
    from baton.workflows import activity_calls
    from baton.workflows.activity_calls import StatusDisplay, call_short_activity, call_waiting_activity
    from baton.workflows.activity_stubs import RunConductActivityStubs as Stubs


@workflow.defn(name="conduct-run")
class ConductRunWorkflow:
    """One conduct of one run."""

    @workflow.init
    def __init__(self, order: RunConductOrder) -> None:
        self._order = order
        self._ids = {"run_id": order.run_id, "conduct_id": order.conduct_id}
        self._index = order.phase_index
        self._count = order.phase_count or 0
        self._status = StatusDisplay()

    @workflow.run
    async def run(self, order: RunConductOrder) -> None:
        try:
            outcome, recorded = await self._conduct()
        except BaseException as error:
            if not is_cancelled_exception(error):
                raise
            outcome, recorded = RunOutcome(finish=RunFinish.CANCELLED), False
        if not recorded:
            await activity_calls.run_to_completion(self._end(outcome))
        self._show(ConductPhase.ENDED, outcome.finish.value)

    async def _conduct(self) -> tuple[RunOutcome, bool]:
        """Conduct the phases and, where all are completed, end the run; return also whether the end is on the record."""
        if not self._count:
            count = await call_short_activity(Stubs.brief_run_conduct, messages.RunConductRequest(**self._ids))
            if count is None:
                return RunOutcome(finish=RunFinish.GONE), True
            self._count = count
        while (outcome := await self._conduct_phases()).finish is RunFinish.COMPLETED:  # also when held after the last phase
            if await self._end(outcome) is not PhaseVerdict.RUN_HELD:
                return outcome, True
            report = await self._await_run_resumed()
            if report.verdict is not PhaseVerdict.RUN_RESUMED:
                outcome = RunOutcome(finish=messages.RUN_FINISH_BY_VERDICT[report.verdict])
                break
        return outcome, outcome.finish is RunFinish.GONE

    async def _conduct_phases(self) -> RunOutcome:
        """Conduct the phases that are left, until one is not completed."""
        while self._index < self._count:
            self._roll_over()
            report = await self._conduct_phase()
            if report.verdict is PhaseVerdict.RUN_HELD:
                report = await self._await_run_resumed()
                if report.verdict is PhaseVerdict.RUN_RESUMED:
                    continue
            if report.verdict is not PhaseVerdict.COMPLETED:
                finish = messages.RUN_FINISH_BY_VERDICT[report.verdict]
                return RunOutcome(finish=finish, phase_index=self._index, failure=report.failure)
            self._index += 1
        return RunOutcome(finish=RunFinish.COMPLETED)

    async def _conduct_phase(self) -> PhaseReport:
        """Open one phase and wait for its end."""
        self._show(ConductPhase.WALKING, "")
        request = PhaseRequest(**self._ids, phase_index=self._index)
        report = await call_short_activity(Stubs.open_phase, request)
        if report.verdict is not PhaseVerdict.OPENED:
            return report
        if report.job is not None:
            await self._start_child(report.job)
        return await call_waiting_activity(Stubs.await_phase, request, self._position)

    async def _start_child(self, job: messages.PhaseJob) -> None:
        """Start the workflow of a phase, unless it was started from the record meanwhile; it outlives this one."""
        known = job.attributes.items() if activity_calls.has_search_attributes() else ()
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

    async def _await_run_resumed(self) -> PhaseReport:
        """Wait until the run is resumed or ended."""
        self._show(ConductPhase.WAITING, "waiting for the run to be resumed")
        request = PhaseRequest(**self._ids, phase_index=min(self._index, self._count - 1))
        return await call_waiting_activity(Stubs.await_run_resumed, request, self._position)

    async def _end(self, outcome: RunOutcome) -> PhaseVerdict:
        request = messages.RunConductEnd(**self._ids, outcome=outcome)
        return await call_waiting_activity(Stubs.end_run_conduct, request, self._position)

    def _roll_over(self) -> None:
        """Continue in a fresh history when this one has become long; only between two phases."""
        if workflow.info().is_continue_as_new_suggested():
            position = {"phase_count": self._count, "phase_index": self._index}
            workflow.continue_as_new(self._order.model_copy(update=position))

    @property
    def _position(self) -> str:
        return f"phase {min(self._index + 1, self._count)}/{self._count}"

    def _show(self, phase: ConductPhase, activity: str) -> None:
        self._status.show(phase, f"{self._position}{activity and f', {activity}'}")
