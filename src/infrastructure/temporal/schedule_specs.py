"""Calendars in the engine's own terms, so that it fires exactly when the record says.

The engine reads cron in another dialect, so it is given the values that an expression names. It also misreads the clock
around a change of the zone's offset: of an hour that comes twice it leaves out some minutes or fires them once, depending on
the zone. So for the next change that a calendar falls into, the hours around it are taken out of what the engine works out
by itself, and the firings in them are given one by one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import takewhile
from zoneinfo import ZoneInfo

from temporalio.client import ScheduleCalendarSpec, ScheduleIntervalSpec, ScheduleRange, ScheduleSpec

from baton.domain.operation.schedule.calendar import END, Calendar, Cron, CronCalendar, EveryCalendar, firings_after, parsed

ALL_DAYS, ALL_WEEKDAYS = frozenset(range(1, 32)), frozenset(range(7))
HORIZON = timedelta(days=400)
"""How far ahead a change of offset is looked for; there is one within a year, or none is planned."""
AROUND = timedelta(hours=3)
"""What lies within this of a change is given one by one: more than any clock jumps, and an hour to spare. So long a change
that has been still counts as the next."""
STEP = timedelta(minutes=15)
ONCE = timedelta(seconds=1_500_000_000)
"""An interval of the engine so long that of its firings one alone matters; the one before lies in the past."""

Hours = dict[date, frozenset[int]]
"""Hours of the clock, by day."""


def spec_of(calendar: Calendar, time_zone: str, jitter: int, now: datetime) -> ScheduleSpec:
    """What the engine is told of a calendar."""
    drift = timedelta(seconds=jitter) or None
    match calendar:
        case EveryCalendar(every=seconds):
            return ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(seconds=seconds))], jitter=drift)
        case CronCalendar(cron=expressions):
            zone, crons = ZoneInfo(time_zone), [parsed(text) for text in expressions]
            change = next_change(zone, (now - AROUND).replace(minute=0, second=0, microsecond=0))
            doubtful = {} if change is None else hours_around(change, zone)
            boxes = [box for cron in crons for box in boxes_of(cron, now.year)]
            singly: list[datetime] = []
            if change is not None and any(falls_into(box, doubtful) for box in boxes):
                boxes = [rest for box in boxes for rest in without(box, doubtful)]
                singly = firings_in(calendar, zone, change, doubtful)
            return ScheduleSpec(
                calendars=[box.written(now.year) for box in boxes],
                intervals=[only(time) for time in singly],
                jitter=drift,
                time_zone_name=time_zone,
            )


@dataclass(frozen=True)
class Box:
    """Every minute that has one of each of these; the engine's calendars are such."""

    years: frozenset[int]
    months: frozenset[int]
    days: frozenset[int]
    weekdays: frozenset[int]
    hours: frozenset[int]
    minutes: frozenset[int]
    text: str

    def admits(self, day: date) -> bool:
        return (
            day.year in self.years
            and day.month in self.months
            and day.day in self.days
            and day.isoweekday() % 7 in self.weekdays
        )

    def written(self, this_year: int) -> ScheduleCalendarSpec:
        """The box as the engine takes it."""
        return ScheduleCalendarSpec(
            second=(ScheduleRange(0, 0, 1),),
            minute=ranges(self.minutes),
            hour=ranges(self.hours),
            day_of_month=ranges(self.days),
            month=ranges(self.months),
            year=() if self.years == years_from(this_year) else ranges(self.years),
            day_of_week=ranges(self.weekdays),
            comment=self.text,
        )


def years_from(this_year: int) -> frozenset[int]:
    return frozenset(range(this_year, END.year))


def boxes_of(cron: Cron, this_year: int) -> Iterator[Box]:
    """An expression as boxes: two, where a day of the month or one of the week is enough."""
    box = Box(years_from(this_year), cron.months, cron.days, cron.weekdays, cron.hours, cron.minutes, cron.text)
    if cron.either:
        yield replace(box, weekdays=ALL_WEEKDAYS)
        yield replace(box, days=ALL_DAYS)
    else:
        yield box


@lru_cache(256)
def next_change(zone: ZoneInfo, since: datetime) -> datetime | None:
    """When the zone's offset changes next: the first quarter of an hour with another one; None where that is not planned."""
    time, end = since, since + HORIZON
    while time < end:
        if offset(zone, time) != offset(zone, time + timedelta(days=1)):
            while offset(zone, time) == offset(zone, time + STEP):
                time += STEP
            return time + STEP
        time += timedelta(days=1)
    return None


def offset(zone: ZoneInfo, time: datetime) -> timedelta | None:
    return time.astimezone(zone).utcoffset()


def hours_around(change: datetime, zone: ZoneInfo) -> Hours:
    """The hours that the clock shows shortly before and after a change."""
    found: dict[date, set[int]] = {}
    time = change - AROUND
    while time < change + AROUND:
        shown = time.astimezone(zone)
        found.setdefault(shown.date(), set()).add(shown.hour)
        time += STEP
    return {day: frozenset(hours) for day, hours in found.items()}


def falls_into(box: Box, hours: Hours) -> bool:
    """Whether any of these hours is in a box."""
    return any(box.admits(day) and box.hours & of_day for day, of_day in hours.items())


def without(box: Box, hours: Hours) -> list[Box]:
    """A box less these hours, as boxes."""
    boxes = [box]
    for day, of_day in hours.items():
        boxes = [rest for one in boxes for rest in less(one, day, of_day)]
    return boxes


def less(box: Box, day: date, hours: frozenset[int]) -> Iterator[Box]:
    """A box less some hours of one day: other years, other months, other days, other hours."""
    if not (box.admits(day) and box.hours & hours):
        yield box
        return
    year, month = frozenset({day.year}), frozenset({day.month})
    parts = (
        replace(box, years=box.years - year),
        replace(box, years=year, months=box.months - month),
        replace(box, years=year, months=month, days=box.days - {day.day}),
        replace(box, years=year, months=month, days=frozenset({day.day}), hours=box.hours - hours),
    )
    yield from (part for part in parts if part.years and part.months and part.days and part.hours)


def firings_in(calendar: Calendar, zone: ZoneInfo, change: datetime, hours: Hours) -> list[datetime]:
    """Every firing of a calendar in hours around a change."""
    begin, end = change - 2 * AROUND, change + 2 * AROUND
    found = takewhile(lambda time: time < end, firings_after(calendar, zone.key, begin))
    return [time for time in found if (shown := time.astimezone(zone)).hour in hours.get(shown.date(), ())]


def only(time: datetime) -> ScheduleIntervalSpec:
    """One time, as an interval of the engine."""
    return ScheduleIntervalSpec(every=ONCE, offset=(time - datetime.fromtimestamp(0, UTC)) % ONCE)


def ranges(values: Iterable[int]) -> Sequence[ScheduleRange]:
    """Values as the runs they make."""
    found: list[ScheduleRange] = []
    for value in sorted(values):
        if found and value == found[-1].end + 1:
            found[-1] = ScheduleRange(found[-1].start, value, 1)
        else:
            found.append(ScheduleRange(value, value, 1))
    return tuple(found)
