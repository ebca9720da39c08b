"""When a schedule fires: every so many seconds, or by five-field cron expressions that name minutes of a wall clock.
A time that the clock skips in spring is no firing, and a time that it shows twice in autumn is two (ADR 34)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from heapq import merge
from itertools import groupby, islice, product
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Discriminator, Field, Tag

from baton.domain.kernel import Value
from baton.domain.shared.annotations import Seconds
from baton.domain.shared.refusals import Invalid

MAX_EXPRESSIONS = 10
MIN_INTERVAL_SECONDS = 10
DAY, LONGEST_MONTH = timedelta(days=1), timedelta(days=31)
LARGEST_CLOCK_JUMP = timedelta(hours=3)
END = datetime(2101, 1, 1, tzinfo=UTC)  # No firing is computed from this time on.
LAST_DAYS = dict.fromkeys(range(1, 13), 31) | dict.fromkeys((4, 6, 9, 11), 30) | {2: 29}  # Of each month, in a leap year.


class InvalidScheduleCalendarError(Invalid, context="operation"):
    """The calendar has an expression that is no five-field cron, an interval that is too short, or an unknown time zone."""


class CronCalendar(Value):
    """Cron expressions: minute, hour, day of month, month, day of week. It fires when any of them does."""

    cron: Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=100)]


class EveryCalendar(Value):
    """Every so many seconds, counted from the beginning of 1970 UTC."""

    every: Annotated[int, Field(strict=True, ge=-(2**31), le=2**31 - 1), Seconds]


def _calendar_kind(given: object) -> str:
    """Return which of the two is meant, so that validation errors name that one only."""
    return "every" if isinstance(given, EveryCalendar) or (isinstance(given, dict) and "every" in given) else "cron"


if TYPE_CHECKING:
    Calendar = CronCalendar | EveryCalendar
else:
    Calendar = Annotated[
        Annotated[CronCalendar, Tag("cron")] | Annotated[EveryCalendar, Tag("every")], Discriminator(_calendar_kind)
    ]


@dataclass(frozen=True)
class Column:
    """One of the five fields of an expression."""

    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()  # Names that stand for the values, beginning with the first.

    def values(self, text: str) -> frozenset[int]:
        """Return the values that a field names."""
        if not text:
            raise self.refusal(text, "it is empty")
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
                raise self.refusal(part, "a step follows * or a range")
        if high < low:
            raise self.refusal(part, "a range goes upwards")
        if slash and not (_is_number(step) and 1 <= int(step) <= self.last):
            raise self.refusal(part, f"a step is a number from 1 to {self.last}")
        return range(low, high + 1, int(step) if slash else 1)

    def _value(self, text: str) -> int:
        if text.lower() in self.names:
            return self.first + self.names.index(text.lower())
        if not (_is_number(text) and self.first <= int(text) <= self.last):
            named = f" or {self.names[0]} to {self.names[-1]}" if self.names else ""
            raise self.refusal(text, f"it is a number from {self.first} to {self.last}{named}")
        return int(text)

    def refusal(self, text: str, why: str) -> InvalidScheduleCalendarError:
        """Return the refusal of a field's text."""
        return invalid(self.name, f"The {self.name.replace('_', ' ')} {text!r} is not understood: {why}.", value=text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


COLUMNS = (
    Column("minute", 0, 59),
    Column("hour", 0, 23),
    Column("day_of_month", 1, 31),
    Column("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    Column("day_of_week", 0, 7, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)


@dataclass(frozen=True)
class Cron:
    """The values that a cron expression names; weekdays count from Sunday, which is 0."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool  # Whether a day of the month or a weekday is enough; so it is where both are restricted.

    def admits(self, day: date) -> bool:
        """Return whether the expression names this day."""
        if day.month not in self.months:
            return False
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return of_month or of_week if self.either else of_month and of_week


@lru_cache(1024)
def parse_cron(text: str) -> Cron:
    """Parse a cron expression; refuse, naming the field, what is none."""
    fields = text.split()
    if len(fields) != len(COLUMNS):
        names = ", ".join(column.name.replace("_", " ") for column in COLUMNS)
        raise invalid("cron", f"{text!r} has {len(fields)} fields; give five: {names}.", value=text)
    minutes, hours, days, months, weekdays = (column.values(field) for column, field in zip(COLUMNS, fields, strict=True))
    either = not fields[2].startswith("*") and not fields[4].startswith("*")
    if not either and not any(day <= LAST_DAYS[month] for day in days for month in months):
        raise COLUMNS[2].refusal(fields[2], "no month it names has such a day")
    return Cron(text, minutes, hours, days, months, frozenset(day % 7 for day in weekdays), either)


def invalid(field: str, detail: str, **facts: object) -> InvalidScheduleCalendarError:
    """Return the refusal of a calendar's field."""
    return InvalidScheduleCalendarError(detail, reason=field, facts={"field": field, **facts})


def check_calendar(calendar: Calendar, time_zone: str) -> None:
    """Refuse a calendar whose expressions, interval or time zone are not valid."""
    match calendar:
        case CronCalendar(cron=expressions):
            if not 1 <= len(expressions) <= MAX_EXPRESSIONS:
                raise invalid("cron", f"Give 1 to {MAX_EXPRESSIONS} cron expressions; these are {len(expressions)}.")
            for expression in expressions:
                parse_cron(expression)
        case EveryCalendar(every=seconds):
            if seconds < MIN_INTERVAL_SECONDS:
                detail = f"Every {seconds} s is too often; give {MIN_INTERVAL_SECONDS} seconds or more."
                raise invalid("every", detail, value=seconds)
    if time_zone not in time_zones():
        detail = f"There is no time zone {time_zone!r}; give an IANA name such as Europe/Berlin."
        raise invalid("time_zone", detail, value=time_zone)


@cache
def time_zones() -> frozenset[str]:
    """Return the names of all known time zones."""
    return frozenset(available_timezones()) - {"localtime", "Factory"}  # these mean another zone on another machine


def firings_after(calendar: Calendar, time_zone: str, after: datetime) -> Iterator[datetime]:
    """Yield every time after this one at which a calendar fires, in order and in UTC."""
    if after >= END:
        return iter(())
    match calendar:
        case EveryCalendar(every=seconds):
            time = (int(after.timestamp()) // seconds + 1) * seconds
            return (datetime.fromtimestamp(one, UTC) for one in range(time, int(END.timestamp()), seconds))
        case CronCalendar(cron=expressions):
            zone = ZoneInfo(time_zone)
            firings = merge(*(_cron_firings(parse_cron(text), zone, fold, after) for text in expressions for fold in (0, 1)))
            return (time for time, _ in groupby(firings))


def next_firings(calendar: Calendar, time_zone: str, after: datetime, count: int) -> tuple[datetime, ...]:
    """Return the first few firings after a time."""
    return tuple(islice(firings_after(calendar, time_zone, after), count))


def _cron_firings(cron: Cron, zone: ZoneInfo, fold: int, after: datetime) -> Iterator[datetime]:
    """Yield the firings after a time; of a wall time shown twice, the first for fold 0 and the second for fold 1."""
    earliest = after.astimezone(zone).replace(tzinfo=None) - LARGEST_CLOCK_JUMP
    minutes = list(product(sorted(cron.hours), sorted(cron.minutes)))
    for day in _admitted_days(cron, earliest.date()):
        for hour, minute in minutes:
            shown = datetime(day.year, day.month, day.day, hour, minute, fold=fold)
            if shown < earliest:
                continue
            time = shown.replace(tzinfo=zone).astimezone(UTC)
            is_skipped_by_clock = time.astimezone(zone).replace(tzinfo=None) != shown
            if time > after and not is_skipped_by_clock:
                yield time


def _admitted_days(cron: Cron, day: date) -> Iterator[date]:
    """Yield the days that an expression names, from this one on."""
    while day < END.date():
        if day.month not in cron.months:
            day = (day.replace(day=1) + LONGEST_MONTH).replace(day=1)
            continue
        if cron.admits(day):
            yield day
        day += DAY
