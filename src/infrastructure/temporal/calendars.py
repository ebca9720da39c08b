"""Calendars of the engine as Temporal's schedules."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from functools import partial
from typing import Any

from temporalio import client as temporal
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from baton.application.ports import Clock
from baton.application.schedules.calendars import CalendarEntry, CalendarRefusedError, CalendarView
from baton.domain.operation.schedule.schedule import Overlap
from baton.infrastructure.temporal.converter import data_converter
from baton.infrastructure.temporal.engine import (
    TASK_QUEUE,
    TASK_TIMEOUT,
    AttributeSupport,
    ignore_not_found,
    typed_attributes,
)
from baton.infrastructure.temporal.schedule_specs import schedule_spec

MIN_CATCHUP_SECONDS = 10  # the shortest catch-up window that the server keeps
OVERLAPS = {
    Overlap.SKIP: temporal.ScheduleOverlapPolicy.SKIP,
    Overlap.BUFFER_ONE: temporal.ScheduleOverlapPolicy.BUFFER_ONE,
    Overlap.ALLOW_ALL: temporal.ScheduleOverlapPolicy.ALLOW_ALL,
}


class TemporalCalendars:
    def __init__(self, client: Callable[[], AbstractAsyncContextManager[Client]], clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._attributes = AttributeSupport()

    async def put(self, entry: CalendarEntry) -> None:
        async with self._client() as client:
            try:
                send = partial(self._put, client, entry)
                await self._attributes.request(send, entry.attributes, client.namespace, calendar=entry.id)
            except RPCError as error:
                if error.status is not RPCStatusCode.INVALID_ARGUMENT:
                    raise
                raise CalendarRefusedError(f"The engine does not take the calendar {entry.id}: {error.message}") from error

    async def _put(self, client: Client, entry: CalendarEntry, attributes: Mapping[str, str]) -> None:
        def change(known: temporal.ScheduleUpdateInput) -> temporal.ScheduleUpdate:
            state = known.description.schedule.state
            return temporal.ScheduleUpdate(self._schedule(entry.over(state.paused, state.note or ""), attributes))

        try:
            await client.create_schedule(entry.id, self._schedule(entry, attributes))
        except temporal.ScheduleAlreadyRunningError:
            await client.get_schedule_handle(entry.id).update(change)

    async def look(self, entry: CalendarEntry) -> CalendarView | None:
        async with self._client() as client:
            described = None
            with ignore_not_found():
                described = await client.get_schedule_handle(entry.id).describe()
        if described is None:
            return None
        wanted = self._schedule(entry, entry.attributes if self._attributes.accepted else {})
        info = described.info
        return CalendarView(
            as_defined=defined_parts(described.schedule) == defined_parts(wanted),
            paused=described.schedule.state.paused,
            note=described.schedule.state.note or "",
            missed_count=info.num_actions_missed_catchup_window,
            skipped_count=info.num_actions_skipped_overlap,
            next_times=tuple(info.next_action_times),
        )

    async def remove(self, id: str) -> None:
        async with self._client() as client:
            with ignore_not_found():
                await client.get_schedule_handle(id).delete()

    async def list_ids(self, prefix: str) -> Sequence[str]:
        async with self._client() as client:
            found = [listing.id async for listing in await client.list_schedules()]
        return sorted(id for id in found if id.startswith(prefix))

    def _schedule(self, entry: CalendarEntry, attributes: Mapping[str, str]) -> temporal.Schedule:
        return temporal.Schedule(
            action=temporal.ScheduleActionStartWorkflow(
                entry.workflow,
                args=[] if entry.argument is None else [entry.argument],
                id=entry.workflow_id,
                task_queue=TASK_QUEUE,
                task_timeout=TASK_TIMEOUT,
                typed_search_attributes=typed_attributes(attributes),
                static_summary=entry.summary,
            ),
            spec=schedule_spec(entry.calendar, entry.time_zone, entry.jitter, self._clock()),
            policy=temporal.SchedulePolicy(
                overlap=OVERLAPS[entry.overlap],
                catchup_window=timedelta(seconds=max(entry.catchup_window, MIN_CATCHUP_SECONDS)),
            ),
            state=temporal.ScheduleState(note=entry.note, paused=entry.paused),
        )


def defined_parts(schedule: temporal.Schedule) -> tuple[Any, ...]:
    """Return the parts of a schedule that the record defines, comparable; people may change pauses and notes themselves."""
    action, spec, form = schedule.action, schedule.spec, data_converter.payload_converter
    assert isinstance(action, temporal.ScheduleActionStartWorkflow), "schedules start workflows"
    values = [*action.args, *([] if action.static_summary is None else [action.static_summary])]
    payloads = [one if isinstance(one, Payload) else form.to_payload(one) for one in values]
    attributes = {pair.key.name: pair.value for pair in action.typed_search_attributes}
    return (
        (action.workflow, action.id, action.task_queue, action.task_timeout, attributes),
        [payload.data for payload in payloads if payload.data],
        (list(spec.calendars), list(spec.intervals), list(spec.cron_expressions), list(spec.skip)),
        (spec.start_at, spec.end_at, spec.jitter, spec.time_zone_name),
        (schedule.policy.overlap, schedule.policy.catchup_window, schedule.policy.pause_on_failure),
        schedule.state.limited_actions,
    )
