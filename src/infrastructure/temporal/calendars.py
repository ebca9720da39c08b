"""Calendars of the engine as Temporal's schedules, by which the server fires exactly when the record says (ADR 23). It gets
the values of a cron expression; hours around a change of a zone's offset are cut out, their firings listed one by one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache, partial
from itertools import takewhile
from zoneinfo import ZoneInfo

from temporalio import client as temporal
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, ScheduleCalendarSpec, ScheduleIntervalSpec, ScheduleRange, ScheduleSpec
from temporalio.service import RPCError, RPCStatusCode

from baton.application.ports import CalendarEntry, CalendarRefusedError, CalendarView, Clock
from baton.domain.schedule import calendar as times
from baton.infrastructure.temporal import engine

MIN_CATCHUP_SECONDS = 10  # the shortest catch-up window that the server keeps


class TemporalCalendars:
    def __init__(self, client: Callable[[], AbstractAsyncContextManager[Client]], clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._attributes = engine.AttributeSupport()

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

    async def view(self, entry: CalendarEntry) -> CalendarView | None:
        async with self._client() as client:
            described = None
            with engine.ignore_not_found():
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
            with engine.ignore_not_found():
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
                task_queue=engine.TASK_QUEUE,
                task_timeout=engine.TASK_TIMEOUT,
                typed_search_attributes=engine.typed_attributes(attributes),
                static_summary=entry.summary,
            ),
            spec=schedule_spec(entry.calendar, entry.time_zone, entry.jitter, self._clock()),
            policy=temporal.SchedulePolicy(
                overlap=temporal.ScheduleOverlapPolicy[entry.overlap.name],
                catchup_window=timedelta(seconds=max(entry.catchup_window, MIN_CATCHUP_SECONDS)),
            ),
            state=temporal.ScheduleState(note=entry.note, paused=entry.paused),
        )


def defined_parts(schedule: temporal.Schedule) -> tuple[object, ...]:
    """Return the parts of a schedule that the record defines, comparable; people may change pauses and notes themselves."""
    action, spec, form = schedule.action, schedule.spec, engine.data_converter.payload_converter
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


HORIZON = timedelta(days=400)  # a change of offset comes within a year, or none is planned
STEP = timedelta(minutes=15)
EPOCH = datetime.fromtimestamp(0, UTC)
SINGLE_INTERVAL = timedelta(seconds=1_500_000_000)  # only one of its times is in the relevant future

HoursByDay = dict[date, frozenset[int]]


@dataclass(frozen=True)
class CalendarBox:
    """All minutes that have one of each of these values; a calendar of the server is such a box."""

    years: frozenset[int]
    months: frozenset[int]
    days: frozenset[int]
    weekdays: frozenset[int]
    hours: frozenset[int]
    minutes: frozenset[int]
    text: str

    def overlaps(self, day: date, hours: frozenset[int]) -> bool:
        in_date = day.year in self.years and day.month in self.months and day.day in self.days
        return in_date and day.isoweekday() % 7 in self.weekdays and bool(self.hours & hours)

    def without(self, day: date, hours: frozenset[int]) -> Iterator["CalendarBox"]:
        """Yield boxes that together are this one without some hours of a day: other years, months, days and hours."""
        if not self.overlaps(day, hours):
            yield self
            return
        of_year = replace(self, years=frozenset({day.year}))
        of_month = replace(of_year, months=frozenset({day.month}))
        of_day = replace(of_month, days=frozenset({day.day}))
        if self.years - of_year.years:
            yield replace(self, years=self.years - of_year.years)
        if self.months - of_month.months:
            yield replace(of_year, months=self.months - of_month.months)
        if self.days - of_day.days:
            yield replace(of_month, days=self.days - of_day.days)
        if self.hours - hours:
            yield replace(of_day, hours=self.hours - hours)

    def to_spec(self, this_year: int) -> ScheduleCalendarSpec:
        return ScheduleCalendarSpec(
            second=(ScheduleRange(0, 0, 1),),
            minute=_ranges(self.minutes),
            hour=_ranges(self.hours),
            day_of_month=_ranges(self.days),
            month=_ranges(self.months),
            year=() if self.years == _years_from(this_year) else _ranges(self.years),
            day_of_week=_ranges(self.weekdays),
            comment=self.text,
        )


def schedule_spec(calendar: times.Calendar, time_zone: str, jitter: int, now: datetime) -> ScheduleSpec:
    drift = timedelta(seconds=jitter) or None
    match calendar:
        case times.EveryCalendar(every=seconds):
            return ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(seconds=seconds))], jitter=drift)
        case times.CronCalendar(cron=expressions):
            zone, singles = ZoneInfo(time_zone), list[datetime]()
            boxes = [box for text in expressions for box in _cron_boxes(times.parse_cron(text), now.year)]
            # A change that was a moment ago still counts as the next: its hours are not over yet.
            change = _next_offset_change(zone, (now - times.LARGEST_CLOCK_JUMP).replace(minute=0, second=0, microsecond=0))
            hours = {} if change is None else _hours_around(change, zone)
            if change is not None and any(box.overlaps(*entry) for box in boxes for entry in hours.items()):
                for entry in hours.items():
                    boxes = [rest for box in boxes for rest in box.without(*entry)]
                singles = _firings_in(calendar, zone, change, hours)
            return ScheduleSpec(
                calendars=[box.to_spec(now.year) for box in boxes],
                intervals=[ScheduleIntervalSpec(SINGLE_INTERVAL, (time - EPOCH) % SINGLE_INTERVAL) for time in singles],
                jitter=drift,
                time_zone_name=time_zone,
            )


def _cron_boxes(cron: times.Cron, this_year: int) -> list[CalendarBox]:
    box = CalendarBox(_years_from(this_year), cron.months, cron.days, cron.weekdays, cron.hours, cron.minutes, cron.text)
    if not cron.either:
        return [box]
    return [replace(box, weekdays=frozenset(range(7))), replace(box, days=frozenset(range(1, 32)))]


def _years_from(this_year: int) -> frozenset[int]:
    return frozenset(range(this_year, times.END.year))


@lru_cache(256)
def _next_offset_change(zone: ZoneInfo, since: datetime) -> datetime | None:
    time = since
    while time < since + HORIZON:
        if _offset(zone, time) != _offset(zone, time + times.DAY):
            while _offset(zone, time) == _offset(zone, time + STEP):
                time += STEP
            return time + STEP
        time += times.DAY
    return None


def _offset(zone: ZoneInfo, time: datetime) -> timedelta | None:
    return time.astimezone(zone).utcoffset()


def _hours_around(change: datetime, zone: ZoneInfo) -> HoursByDay:
    found: dict[date, set[int]] = {}
    for step in range(int(2 * times.LARGEST_CLOCK_JUMP / STEP)):
        shown = (change - times.LARGEST_CLOCK_JUMP + step * STEP).astimezone(zone)
        found.setdefault(shown.date(), set()).add(shown.hour)
    return {day: frozenset(hours) for day, hours in found.items()}


def _firings_in(calendar: times.Calendar, zone: ZoneInfo, change: datetime, hours: HoursByDay) -> list[datetime]:
    begin, end = change - 2 * times.LARGEST_CLOCK_JUMP, change + 2 * times.LARGEST_CLOCK_JUMP
    firings = takewhile(lambda time: time < end, times.firings_after(calendar, zone.key, begin))
    return [time for time in firings if (shown := time.astimezone(zone)).hour in hours.get(shown.date(), ())]


def _ranges(values: Iterable[int]) -> tuple[ScheduleRange, ...]:
    found: list[ScheduleRange] = []
    for value in sorted(values):
        if found and value == found[-1].end + 1:
            found[-1] = ScheduleRange(found[-1].start, value, 1)
        else:
            found.append(ScheduleRange(value, value, 1))
    return tuple(found)
