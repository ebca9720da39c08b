"""A firing of a schedule: it opens its conduct and stays until that has ended, so that firings can tell of one another.

All it knows are ids and times; what it is to do is on the record.
"""

from temporalio import workflow
from temporalio.common import SearchAttributeKey

with workflow.unsafe.imports_passed_through():
    from baton.domain.operation.conduct.progress import ConductPhase
    from baton.domain.operation.schedule.messages import DueFiring, FiringOrder, FiringVerdict
    from baton.workflows.activity_calls import STATE, has_search_attributes, call_waiting_activity, call_short_activity

SCHEDULED = SearchAttributeKey.for_datetime("TemporalScheduledStartTime")
"""Where the engine says for when it started a workflow: the time of the calendar, whatever jitter was added."""


@workflow.defn(name="schedule-firing")
class ScheduleFiringWorkflow:
    """One firing of one schedule."""

    @workflow.run
    async def run(self, order: FiringOrder) -> FiringVerdict:
        due = due_now(order)
        verdict: FiringVerdict = await call_short_activity("open_firing", [due], FiringVerdict)
        if verdict is FiringVerdict.OPENED:
            self._show(ConductPhase.WALKING, verdict)
            await call_waiting_activity("await_firing", [due], None, f"firing of {due.scheduled_at:%Y-%m-%d %H:%M:%S}Z")
        self._show(ConductPhase.ENDED, verdict)
        return verdict

    def _show(self, phase: ConductPhase, verdict: FiringVerdict) -> None:
        """Tell whoever looks into the engine how the firing stands."""
        workflow.set_current_details(f"**{phase.value}**: {verdict.value}")
        if has_search_attributes():
            workflow.upsert_search_attributes([STATE.value_set(phase.value)])


def due_now(order: FiringOrder) -> DueFiring:
    """The firing that this workflow is for."""
    info = workflow.info()
    scheduled_at = order.triggered_at or info.typed_search_attributes.get(SCHEDULED) or info.start_time
    return DueFiring(
        schedule_id=order.schedule_id,
        scheduled_at=scheduled_at,
        started_at=info.start_time,
        trigger_id=order.trigger_id,
        correlation_id=order.correlation_id,
    )
