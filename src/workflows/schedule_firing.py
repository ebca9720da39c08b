"""The workflow of a schedule's firing: it opens its conduct and stays until that has ended, so that overlap is seen.
It knows only ids and times; what there is to do is on the record."""

from temporalio import workflow
from temporalio.common import SearchAttributeKey

with workflow.unsafe.imports_passed_through():
    from baton.domain.conduct.progress import ConductPhase
    from baton.domain.schedule.messages import DueFiring, FiringOrder, FiringVerdict
    from baton.workflows.activity_calls import StatusDisplay, call_short_activity, call_waiting_activity
    from baton.workflows.activity_stubs import ActivityStubs as Stubs

SCHEDULED = SearchAttributeKey.for_datetime("TemporalScheduledStartTime")
"""When the calendar called for the workflow, without the jitter that the engine adds."""


@workflow.defn(name="schedule-firing")
class ScheduleFiringWorkflow:
    """One firing of one schedule."""

    @workflow.run
    async def run(self, order: FiringOrder) -> FiringVerdict:
        info, status = workflow.info(), StatusDisplay()
        due = DueFiring(
            schedule_id=order.schedule_id,
            scheduled_at=order.triggered_at or info.typed_search_attributes.get(SCHEDULED) or info.start_time,
            started_at=info.start_time,
            trigger_id=order.trigger_id,
            correlation_id=order.correlation_id,
        )
        verdict = await call_short_activity(Stubs.open_firing, due)
        if verdict is FiringVerdict.OPENED:
            status.show(ConductPhase.WALKING, verdict.value)
            await call_waiting_activity(Stubs.await_firing, due, f"firing of {due.scheduled_at:%Y-%m-%d %H:%M:%S}Z")
        status.show(ConductPhase.ENDED, verdict.value)
        return verdict
