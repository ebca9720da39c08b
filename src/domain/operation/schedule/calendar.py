"""When a schedule fires: five-field cron expressions in a time zone, or every so many seconds.

A cron expression names minutes of the clock on the wall. Every minute at which that clock shows what the expression names
is a firing: one that the clock skips in spring is none, and one that it shows twice in autumn is two.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache
from heapq import merge
from itertools import groupby, islice
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Discriminator, Field, Tag

from baton.domain.kernel import Value
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.units import Seconds

MOST_EXPRESSIONS = 10
SHORTEST = 10
"""Seconds between two firings, at least."""
MINUTE, HOUR, DAY, LONGEST_MONTH = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1), timedelta(days=31)
MIDNIGHT = time()
END = datetime(2101, 1, 1, tzinfo=UTC)
"""Nothing is looked for behind this."""
OF_THE_MACHINE = frozenset({"localtime", "Factory"})
"""Names that mean another zone on another machine."""
LAST_DAYS = dict.fromkeys(range(1, 13), 31) | dict.fromkeys((4, 6, 9, 11), 30) | {2: 29}
"""The last day of each month, in a leap year."""


class InvalidScheduleCalendarError(Invalid, context="operation"):
    """The calendar has an expression that is no five-field cron, an interval that is too short, or an unknown time zone."""


class CronCalendar(Value):
    """Cron expressions: minute, hour, day of month, month, day of week. It fires when any of them does."""

    cron: Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=100)]


class EveryCalendar(Value):
    """Every so many seconds, counted from the beginning of 1970 UTC."""

    every: Annotated[int, Field(strict=True, ge=-(2**31), le=2**31 - 1), Seconds]


def _form_of(given: Any) -> str:
    """Which of the two is meant, so that what is wrong with it is told of that one alone."""
    return "every" if isinstance(given, EveryCalendar) or (isinstance(given, dict) and "every" in given) else "cron"


if TYPE_CHECKING:
    Calendar = CronCalendar | EveryCalendar
else:
    Calendar = Annotated[
        Annotated[CronCalendar, Tag("cron")] | Annotated[EveryCalendar, Tag("every")], Discriminator(_form_of)
    ]


@dataclass(frozen=True)
class Column:
    """One of the five fields of an expression."""

    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()
    """What values may be called, from the first on."""

    def values(self, text: str) -> frozenset[int]:
        """The values that a field names; 7 is Sunday as 0 is."""
        if not text:
            raise self.wrong(text, "it is empty")
        return frozenset(value for part in text.split(",") for value in self._part(part))

    def _part(self, part: str) -> range:
        span, slash, step = part.partition("/")
        if span == "*":
            low, high = self.first, self.last
        else:
            begins, dash, ends = span.partition("-")
            low = self._value(begins)
            high = self._value(ends) if dash else low
            if slash and not dash:
                raise self.wrong(part, "a step follows * or a range")
        if high < low:
            raise self.wrong(part, "a range goes upwards")
        if slash and not (_is_number(step) and 1 <= int(step) <= self.last):
            raise self.wrong(part, f"a step is a number from 1 to {self.last}")
        return range(low, high + 1, int(step) if slash else 1)

    def _value(self, text: str) -> int:
        if text.lower() in self.names:
            return self.first + self.names.index(text.lower())
        if not (_is_number(text) and self.first <= int(text) <= self.last):
            named = f" or {self.names[0]} to {self.names[-1]}" if self.names else ""
            raise self.wrong(text, f"it is a number from {self.first} to {self.last}{named}")
        return int(text)

    def wrong(self, text: str, why: str) -> InvalidScheduleCalendarError:
        """The refusal of a field."""
        label = self.name.replace("_", " ")
        return invalid(self.name, f"The {label} {text!r} is not understood: {why}.", value=text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
COLUMNS = (
    Column("minute", 0, 59),
    Column("hour", 0, 23),
    Column("day_of_month", 1, 31),
    Column("month", 1, 12, MONTHS),
    Column("day_of_week", 0, 7, WEEKDAYS),
)


@dataclass(frozen=True)
class Cron:
    """A cron expression as the values it names; days of the week count from Sunday, which is 0."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool
    """Whether a day of the month or one of the week is enough: so it is where both are restricted."""

    def admits(self, day: date) -> bool:
        """Whether it fires on a day at all."""
        if day.month not in self.months:
            return False
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return of_month or of_week if self.either else of_month and of_week

    def shows(self, time: datetime) -> bool:
        """Whether a clock that shows this fires."""
        return time.minute in self.minutes and time.hour in self.hours and self.admits(time.date())

    @property
    def ever(self) -> bool:
        """Whether there is a day on which it fires; 30 February is none."""
        return self.either or any(day <= LAST_DAYS[month] for day in self.days for month in self.months)


@lru_cache(1024)
def parsed(text: str) -> Cron:
    """A cron expression; refused, naming the field, where it is none."""
    fields = text.split()
    if len(fields) != len(COLUMNS):
        names = ", ".join(column.name.replace("_", " ") for column in COLUMNS)
        raise invalid("cron", f"{text!r} has {len(fields)} fields; give five: {names}.", value=text)
    minutes, hours, days, months, weekdays = (column.values(field) for column, field in zip(COLUMNS, fields, strict=True))
    either = not fields[2].startswith("*") and not fields[4].startswith("*")
    cron = Cron(text, minutes, hours, days, months, frozenset(day % 7 for day in weekdays), either)
    if not cron.ever:
        raise COLUMNS[2].wrong(fields[2], "no month it names has such a day")
    return cron


def invalid(field: str, detail: str, **facts: object) -> InvalidScheduleCalendarError:
    """The refusal of a calendar, naming what is wrong with it."""
    return InvalidScheduleCalendarError(detail, reason=field, facts={"field": field, **facts})


def check_calendar(calendar: Calendar, time_zone: str) -> None:
    """Refuse a calendar that does not say when, or not where."""
    match calendar:
        case CronCalendar(cron=expressions):
            if not 1 <= len(expressions) <= MOST_EXPRESSIONS:
                raise invalid("cron", f"Give 1 to {MOST_EXPRESSIONS} cron expressions; these are {len(expressions)}.")
            for expression in expressions:
                parsed(expression)
        case EveryCalendar(every=seconds):
            if seconds < SHORTEST:
                raise invalid("every", f"Every {seconds} s is too often; give {SHORTEST} seconds or more.", value=seconds)
    if time_zone not in time_zones():
        raise invalid(
            "time_zone", f"There is no time zone {time_zone!r}; give an IANA name such as Europe/Berlin.", value=time_zone
        )


@cache
def time_zones() -> frozenset[str]:
    """The names of all time zones there are."""
    return frozenset(available_timezones()) - OF_THE_MACHINE


def firings_after(calendar: Calendar, time_zone: str, after: datetime) -> Iterator[datetime]:
    """Every time at which a calendar fires behind a moment, in order and in UTC."""
    if after >= END:
        return iter(())
    match calendar:
        case EveryCalendar(every=seconds):
            return _intervals(seconds, after)
        case CronCalendar(cron=expressions):
            zone = ZoneInfo(time_zone)
            every = merge(*(_cron_firings(parsed(text), zone, after) for text in expressions))
            return (time for time, _ in groupby(every))


def next_firings(calendar: Calendar, time_zone: str, after: datetime, count: int) -> tuple[datetime, ...]:
    """The first few of them."""
    return tuple(islice(firings_after(calendar, time_zone, after), count))


def _intervals(seconds: int, after: datetime) -> Iterator[datetime]:
    time = datetime.fromtimestamp((int(after.timestamp()) // seconds + 1) * seconds, UTC)
    while time < END:
        yield time
        time += timedelta(seconds=seconds)


def _cron_firings(cron: Cron, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Walk from minute to minute, and past days and hours in which nothing fires."""
    time = after.astimezone(UTC).replace(second=0, microsecond=0) + MINUTE
    while time < END:
        shown = time.astimezone(zone)
        if not cron.admits(shown.date()):
            if (day := _next_day(cron, shown.date())) is None:
                return
            time = datetime.combine(day, MIDNIGHT, zone).astimezone(UTC)
        elif shown.hour not in cron.hours:
            time = _past_hour(time, shown, zone)
        else:
            if shown.minute in cron.minutes:
                yield time
            time += MINUTE


def _next_day(cron: Cron, day: date) -> date | None:
    """The first day behind this one on which something fires."""
    day += DAY
    while day < END.date():
        if cron.admits(day):
            return day
        day = day + DAY if day.month in cron.months else (day.replace(day=1) + LONGEST_MONTH).replace(day=1)
    return None


def _past_hour(time: datetime, shown: datetime, zone: ZoneInfo) -> datetime:
    """Behind the hour that the clock shows; a minute further, where the clock jumps on the way."""
    end = time + HOUR - timedelta(minutes=shown.minute)
    steady = (end - MINUTE).astimezone(zone).utcoffset() == shown.utcoffset()
    return end if steady else time + MINUTE
