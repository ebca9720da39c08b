"""Temporal's schedules as the engine's calendars."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

import structlog
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

from baton.application.ports import Clock
from baton.application.schedules.calendars import CalendarEntry, CalendarRefusedError, CalendarView
from baton.domain.operation.schedule.schedule import Overlap
from baton.infrastructure.temporal.attributes import command_for
from baton.infrastructure.temporal.converter import data_converter
from baton.infrastructure.temporal.engine import TASK_QUEUE, TASK_TIMEOUT
from baton.infrastructure.temporal.schedule_specs import spec_of

log = structlog.get_logger()

SHORTEST_WINDOW = 10
"""Seconds of the shortest catch-up window that the server keeps."""
OVERLAPS = {
    Overlap.SKIP: ScheduleOverlapPolicy.SKIP,
    Overlap.BUFFER_ONE: ScheduleOverlapPolicy.BUFFER_ONE,
    Overlap.ALLOW_ALL: ScheduleOverlapPolicy.ALLOW_ALL,
}


class TemporalCalendars:
    """Puts schedules into the server, looks at them and takes them out."""

    def __init__(self, reaching: Callable[[], AbstractAsyncContextManager[Client]], clock: Clock) -> None:
        self._reaching = reaching
        self._clock = clock
        self._knows_attributes = True

    async def put(self, entry: CalendarEntry) -> None:
        async with self._reaching() as client:
            try:
                await self._put(client, entry, entry.attributes)
                self._knows_attributes = self._knows_attributes or bool(entry.attributes)
            except RPCError as error:
                if error.status is not RPCStatusCode.INVALID_ARGUMENT:
                    raise
                await self._put_plainly(client, entry, error)

    async def _put_plainly(self, client: Client, entry: CalendarEntry, refused: RPCError) -> None:
        """Put what cannot be found by its attributes, which is better than nothing."""
        try:
            await self._put(client, entry, {})
        except RPCError as error:
            if error.status is not RPCStatusCode.INVALID_ARGUMENT:
                raise
            raise CalendarRefusedError(f"The engine does not take the calendar {entry.id}: {error.message}") from error
        if self._knows_attributes:
            self._knows_attributes = False
            run = command_for(client.namespace, entry.attributes)
            log.warning("search_attributes_refused", calendar=entry.id, said=refused.message, run=run)

    async def _put(self, client: Client, entry: CalendarEntry, attributes: Mapping[str, str]) -> None:
        def over(known: ScheduleUpdateInput) -> ScheduleUpdate:
            state = known.description.schedule.state
            return ScheduleUpdate(self._schedule(entry.over(state.paused, state.note or ""), attributes))

        try:
            await client.create_schedule(entry.id, self._schedule(entry, attributes))
        except ScheduleAlreadyRunningError:
            await client.get_schedule_handle(entry.id).update(over)

    async def look(self, entry: CalendarEntry) -> CalendarView | None:
        async with self._reaching() as client:
            try:
                described = await client.get_schedule_handle(entry.id).describe()
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return None
                raise
        wanted = self._schedule(entry, entry.attributes if self._knows_attributes else {})
        info = described.info
        return CalendarView(
            as_defined=told(described.schedule) == told(wanted),
            paused=described.schedule.state.paused,
            note=described.schedule.state.note or "",
            missed_count=info.num_actions_missed_catchup_window,
            skipped_count=info.num_actions_skipped_overlap,
            next_times=tuple(info.next_action_times),
        )

    async def remove(self, id: str) -> None:
        async with self._reaching() as client:
            try:
                await client.get_schedule_handle(id).delete()
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise

    async def listed(self, prefix: str) -> Sequence[str]:
        async with self._reaching() as client:
            found = [listing.id async for listing in await client.list_schedules()]
        return sorted(id for id in found if id.startswith(prefix))

    def _schedule(self, entry: CalendarEntry, attributes: Mapping[str, str]) -> Schedule:
        """An entry as the server takes it."""
        pairs = [SearchAttributePair(SearchAttributeKey.for_keyword(name), value) for name, value in attributes.items()]
        return Schedule(
            action=ScheduleActionStartWorkflow(
                entry.workflow,
                args=[] if entry.argument is None else [entry.argument],
                id=entry.workflow_id,
                task_queue=TASK_QUEUE,
                task_timeout=TASK_TIMEOUT,
                typed_search_attributes=TypedSearchAttributes(pairs),
                static_summary=entry.summary,
            ),
            spec=spec_of(entry.calendar, entry.time_zone, entry.jitter, self._clock()),
            policy=SchedulePolicy(
                overlap=OVERLAPS[entry.overlap], catchup_window=timedelta(seconds=max(entry.catchup_window, SHORTEST_WINDOW))
            ),
            state=ScheduleState(note=entry.note, paused=entry.paused),
        )


def told(schedule: Schedule) -> tuple[Any, ...]:
    """What of a schedule is ours to say, in a form in which equal ones are equal; pauses and notes are people's too."""
    action, spec, form = schedule.action, schedule.spec, data_converter.payload_converter
    assert isinstance(action, ScheduleActionStartWorkflow), "the server knows of no other"
    said = [*action.args, *([] if action.static_summary is None else [action.static_summary])]
    payloads = [one if isinstance(one, Payload) else form.to_payload(one) for one in said]
    attributes = {pair.key.name: pair.value for pair in action.typed_search_attributes}
    return (
        (action.workflow, action.id, action.task_queue, action.task_timeout, attributes),
        [payload.data for payload in payloads if payload.data],
        (list(spec.calendars), list(spec.intervals), list(spec.cron_expressions), list(spec.skip)),
        (spec.start_at, spec.end_at, spec.jitter, spec.time_zone_name),
        (schedule.policy.overlap, schedule.policy.catchup_window, schedule.policy.pause_on_failure),
        schedule.state.limited_actions,
    )
