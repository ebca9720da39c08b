"""Temporal schedule specifications of calendars, by which the server fires exactly when the record says (ADR 23). It gets
the values of a cron expression; hours around a change of a zone's offset are cut out, and their firings listed one by
one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import takewhile
from zoneinfo import ZoneInfo

from temporalio.client import ScheduleCalendarSpec, ScheduleIntervalSpec, ScheduleRange, ScheduleSpec

from baton.domain.operation.schedule.calendar import (
    DAY,
    END,
    LARGEST_CLOCK_JUMP,
    Calendar,
    Cron,
    CronCalendar,
    EveryCalendar,
    firings_after,
    parse_cron,
)

HORIZON = timedelta(days=400)  # a change of offset comes within a year, or none is planned
STEP = timedelta(minutes=15)
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


def schedule_spec(calendar: Calendar, time_zone: str, jitter: int, now: datetime) -> ScheduleSpec:
    drift = timedelta(seconds=jitter) or None
    match calendar:
        case EveryCalendar(every=seconds):
            return ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(seconds=seconds))], jitter=drift)
        case CronCalendar(cron=expressions):
            zone, singles = ZoneInfo(time_zone), list[datetime]()
            boxes = [box for text in expressions for box in _cron_boxes(parse_cron(text), now.year)]
            # A change that was a moment ago still counts as the next: its hours are not over yet.
            change = _next_offset_change(zone, (now - LARGEST_CLOCK_JUMP).replace(minute=0, second=0, microsecond=0))
            hours = {} if change is None else _hours_around(change, zone)
            if change is not None and any(box.overlaps(*entry) for box in boxes for entry in hours.items()):
                for entry in hours.items():
                    boxes = [rest for box in boxes for rest in box.without(*entry)]
                singles = _firings_in(calendar, zone, change, hours)
            return ScheduleSpec(
                calendars=[box.to_spec(now.year) for box in boxes],
                intervals=[ScheduleIntervalSpec(SINGLE_INTERVAL, _since_1970(time) % SINGLE_INTERVAL) for time in singles],
                jitter=drift,
                time_zone_name=time_zone,
            )


def _cron_boxes(cron: Cron, this_year: int) -> list[CalendarBox]:
    box = CalendarBox(_years_from(this_year), cron.months, cron.days, cron.weekdays, cron.hours, cron.minutes, cron.text)
    if not cron.either:
        return [box]
    return [replace(box, weekdays=frozenset(range(7))), replace(box, days=frozenset(range(1, 32)))]


def _years_from(this_year: int) -> frozenset[int]:
    return frozenset(range(this_year, END.year))


@lru_cache(256)
def _next_offset_change(zone: ZoneInfo, since: datetime) -> datetime | None:
    time = since
    while time < since + HORIZON:
        if _offset(zone, time) != _offset(zone, time + DAY):
            while _offset(zone, time) == _offset(zone, time + STEP):
                time += STEP
            return time + STEP
        time += DAY
    return None


def _offset(zone: ZoneInfo, time: datetime) -> timedelta | None:
    return time.astimezone(zone).utcoffset()


def _hours_around(change: datetime, zone: ZoneInfo) -> HoursByDay:
    found: dict[date, set[int]] = {}
    for step in range(int(2 * LARGEST_CLOCK_JUMP / STEP)):
        shown = (change - LARGEST_CLOCK_JUMP + step * STEP).astimezone(zone)
        found.setdefault(shown.date(), set()).add(shown.hour)
    return {day: frozenset(hours) for day, hours in found.items()}


def _firings_in(calendar: Calendar, zone: ZoneInfo, change: datetime, hours: HoursByDay) -> list[datetime]:
    begin, end = change - 2 * LARGEST_CLOCK_JUMP, change + 2 * LARGEST_CLOCK_JUMP
    firings = takewhile(lambda time: time < end, firings_after(calendar, zone.key, begin))
    return [time for time in firings if (shown := time.astimezone(zone)).hour in hours.get(shown.date(), ())]


def _since_1970(time: datetime) -> timedelta:
    return time - datetime.fromtimestamp(0, UTC)


def _ranges(values: Iterable[int]) -> tuple[ScheduleRange, ...]:
    found: list[ScheduleRange] = []
    for value in sorted(values):
        if found and value == found[-1].end + 1:
            found[-1] = ScheduleRange(found[-1].start, value, 1)
        else:
            found.append(ScheduleRange(value, value, 1))
    return tuple(found)
