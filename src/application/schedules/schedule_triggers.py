"""Triggers of schedules, as the log's followers react to them: each has its firing started, once."""

from collections.abc import Sequence

from baton.application.ports import EventRow, Job, Store
from baton.application.reactions import started_by
from baton.application.record_reader import require_state
from baton.application.schedules.schedule_reconciliation import FIRING, attributes_of, summary_of
from baton.domain.kernel import Event
from baton.domain.operation.schedule.messages import FiringOrder
from baton.domain.operation.schedule.schedule import Schedule, ScheduleTriggered


class ScheduleTriggers:
    """Starts the firings that people ask for."""

    name = "schedule_triggers"
    workflows: tuple[str, ...] = (FIRING,)
    events: tuple[type[Event], ...] = (ScheduleTriggered,)

    def __init__(self, store: Store, facility_code: str) -> None:
        self._store = store
        self._facility_code = facility_code

    async def enabled(self) -> bool:
        return True

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        schedule = await require_state(self._store, Schedule, event.stream_id)
        order = FiringOrder(
            schedule_id=event.stream_id,
            trigger_id=event.event_id,
            triggered_at=event.occurred_at,
            correlation_id=event.correlation_id,
        )
        id, summary = f"schedule-trigger:{event.event_id}", summary_of(schedule)
        attributes = attributes_of(schedule, self._facility_code)
        return [Job(FIRING, id, order, attributes, summary, once=True, memo=started_by(event))]
