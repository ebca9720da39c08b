"""The workflow of a run's conduct: its phases one after the other, each a conduct of its own, then the end of the run.
It only decides what comes next. The truth is on the record, and every effect is an activity that may be repeated."""

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError, is_cancelled_exception
from temporalio.workflow import ChildWorkflowCancellationType, ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from baton.domain.conduct import run_messages as messages
    from baton.domain.conduct.ends import ENDS
    from baton.domain.conduct.messages import ConductCursor, ConductStart, Finish
    from baton.domain.conduct.progress import ConductPhase
    from baton.domain.conduct.run_messages import PhaseRequest, RunConductOrder
    from baton.domain.conduct.walk import Action, Walk
    from baton.domain.procedure.procedure import ConductMode
    from baton.workflows import activity_calls
    from baton.workflows.activity_calls import StatusDisplay, call_short_activity, call_waiting_activity
    from baton.workflows.activity_stubs import ActivityStubs as Stubs


@workflow.defn(name="conduct-run")
class ConductRunWorkflow:
    """One conduct of one run."""

    @workflow.init
    def __init__(self, order: RunConductOrder) -> None:
        self._order = order
        self._ids = {"run_id": order.run_id, "conduct_id": order.conduct_id}
        self._walk = phases_from(order.phase_index, order.phase_count or 0)
        self._status = StatusDisplay()

    @workflow.run
    async def run(self, order: RunConductOrder) -> None:
        try:
            if not order.phase_count:
                count = await call_short_activity(Stubs.brief_run_conduct, messages.RunConductRequest(**self._ids))
                if count is None:
                    self._show(ConductPhase.ENDED, ENDS[Finish.GONE].text)
                    return
                self._walk = phases_from(order.phase_index, count)
            while self._walk.is_cancellable:
                await self._act()
        except BaseException as error:
            if not is_cancelled_exception(error):
                raise
            self._walk = self._walk.after_cancellation()
        await activity_calls.run_to_completion(self._finish())

    async def _finish(self) -> None:
        while self._walk.action is not Action.NOTHING:
            await self._act()
        assert self._walk.outcome is not None, "the phases have ended"
        self._show(ConductPhase.ENDED, ENDS[self._walk.outcome.finish].text)

    async def _act(self) -> None:
        """Do what comes next."""
        walk = self._walk
        request = PhaseRequest(**self._ids, phase_index=min(walk.at.step_index, walk.start.step_count - 1))
        match walk.action:
            case Action.DO_STEPS:
                self._roll_over()
                self._show(ConductPhase.WALKING, "")
                report = await call_short_activity(Stubs.open_phase, request)
                if report.job is not None:
                    await self._start_child(report.job)
                self._walk = walk.after_step(report.as_step())
            case Action.COLLECT:
                report = await call_waiting_activity(Stubs.await_phase, request, self._position)
                self._walk = walk.after_step(report.as_step())
            case Action.AWAIT_RUN:
                self._show(ConductPhase.WAITING, "waiting for the run to be resumed")
                report = await call_waiting_activity(Stubs.await_run_resumed, request, self._position)
                self._walk = walk.after_wait(report.verdict)
            case _:
                assert walk.action is Action.END, "phases have neither passes nor closing steps"
                assert walk.outcome is not None, "the phases have ended"
                end = messages.RunConductEnd(**self._ids, outcome=messages.RunOutcome.of(walk.outcome, walk.at.step_index))
                self._walk = walk.after_end(await call_waiting_activity(Stubs.end_run_conduct, end, self._position))

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

    def _roll_over(self) -> None:
        """Continue in a fresh history when this one has become long; only between two phases."""
        if workflow.info().is_continue_as_new_suggested():
            position = {"phase_count": self._walk.start.step_count, "phase_index": self._walk.at.step_index}
            workflow.continue_as_new(self._order.model_copy(update=position))

    @property
    def _position(self) -> str:
        count = self._walk.start.step_count
        return f"phase {min(self._walk.at.step_index + 1, count)}/{count}"

    def _show(self, phase: ConductPhase, activity: str) -> None:
        self._status.show(phase, f"{self._position}{activity and f', {activity}'}")


def phases_from(index: int, count: int) -> Walk:
    """Return the walk over the phases of a run, from this one on."""
    start = ConductStart(command_name="", mode=ConductMode.FLAT, step_count=count, closing_count=0)
    return Walk.go_on(start, ConductCursor(step_index=index), of_run=True)
