"""When calendars fire: what an expression means, that nothing is missed, and how clocks that jump are read."""

from calendar import monthrange
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from baton.domain.schedule.calendar import (
    COLUMNS,
    CronCalendar,
    EveryCalendar,
    check_calendar,
    firings_after,
    next_firings,
    parse_cron,
)
from tests.support.domain.world import expect_refusal
from tests.support.tables import for_each

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Cairo")
NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def cron(*expressions: str) -> CronCalendar:
    return CronCalendar(cron=expressions)


def shown_times(times: Iterable[datetime], zone: str = "UTC") -> list[str]:
    """What the clock of a zone shows at these times."""
    return [f"{time.astimezone(ZoneInfo(zone)):%a %m-%d %H:%M}" for time in times]


@st.composite
def fields(draw: st.DrawFn, low: int, high: int, named: tuple[str, ...]) -> str:
    """One field of an expression, in any form it may have."""
    values = st.integers(low, high)

    def number_or_name(value: int) -> str:
        names = named[value - low : value - low + 1]
        return draw(st.sampled_from([str(value), *names, *(name.upper() for name in names)]))

    def span() -> str:
        first, last = sorted((draw(values), draw(values)))
        return f"{number_or_name(first)}-{number_or_name(last)}"

    def part() -> str:
        match draw(st.sampled_from(["one", "span", "stepped", "every"])):
            case "one":
                return number_or_name(draw(values))
            case "span":
                return span()
            case "stepped":
                return f"{span()}/{draw(st.integers(1, high))}"
        return f"*/{draw(st.integers(1, high))}"

    return "*" if draw(st.booleans()) else ",".join(part() for _ in range(draw(st.integers(1, 3))))


@st.composite
def expressions(draw: st.DrawFn) -> str:
    return " ".join(draw(fields(column.first, column.last, column.names)) for column in COLUMNS)


@cache
def named_by(field: str, number: int, column: int) -> bool:
    """Whether a field names a number; read anew, and in another way than by the rules under test."""
    low, high, names = COLUMNS[column].first, COLUMNS[column].last, COLUMNS[column].names

    def value(text: str) -> int:
        return low + names.index(text.lower()) if text.lower() in names else int(text)

    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = (str(low), "-", str(high)) if span == "*" else span.partition("-")
        bounds = value(first), value(last or first)
        wanted = (number, 7) if column == 4 and number == 0 else (number,)
        if any(bounds[0] <= one <= bounds[1] and (one - bounds[0]) % int(step or 1) == 0 for one in wanted):
            return True
    return False


def matches(expression: str, shown: datetime) -> bool:
    """Whether a clock that shows this is at a minute that the expression names."""
    minute, hour, day, month, weekday = expression.split()
    if not (named_by(minute, shown.minute, 0) and named_by(hour, shown.hour, 1) and named_by(month, shown.month, 3)):
        return False
    of_month, of_week = named_by(day, shown.day, 2), named_by(weekday, shown.isoweekday() % 7, 4)
    if day.startswith("*") or weekday.startswith("*"):
        return of_month and of_week
    return of_month or of_week


def ever_comes(expression: str) -> bool:
    """Whether there is a leap year's day that the expression names; every weekday comes some time."""
    _, _, day, month, weekday = expression.split()
    if not day.startswith("*") and not weekday.startswith("*"):
        return True
    days = [(of, number) for of in range(1, 13) for number in range(1, monthrange(2028, of)[1] + 1)]
    return any(named_by(month, of, 3) and named_by(day, number, 2) for of, number in days)


@given(
    expression=expressions().filter(lambda text: ever_comes(text)),
    zone=st.sampled_from(ZONES),
    after=st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
)
def test_every_firing_is_what_the_expression_names_and_none_is_missed(expression: str, zone: str, after: datetime) -> None:
    check_calendar(cron(expression), zone)
    check_two_days(expression, zone, after)


def check_two_days(expression: str, zone: str, after: datetime) -> None:
    """Compare the firings of two days with a check of each minute."""
    until = after + timedelta(days=2)
    found = list(takewhile(lambda time: time <= until, firings_after(cron(expression), zone, after)))
    first = after.replace(second=0, microsecond=0) + MINUTE
    minutes = (first + number * MINUTE for number in range(int((until - first) / MINUTE) + 1))
    assert found == [time for time in minutes if matches(expression, time.astimezone(ZoneInfo(zone)))]


@for_each("expression", ["20 1,2 * * sun", "*/10 23,0 * * *", "0 0 * * *"])
@for_each(
    ("zone", "change"),
    [
        ("America/St_Johns", datetime(2010, 11, 7, 2, 31)),
        ("America/Havana", datetime(2027, 3, 14, 5)),
        ("Africa/Cairo", datetime(2027, 10, 28, 21)),
        ("Australia/Lord_Howe", datetime(2027, 4, 3, 15)),
        ("Pacific/Apia", datetime(2011, 12, 30, 10)),
    ],
)
def test_clocks_that_jump_at_midnight_by_half_an_hour_or_over_a_day_are_read_right(
    expression: str, zone: str, change: datetime
) -> None:
    check_two_days(expression, zone, change.replace(tzinfo=UTC) - timedelta(hours=25, seconds=17))


@given(after=st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)), every=st.integers(10, 10**7))
def test_intervals_count_from_the_beginning_of_1970(after: datetime, every: int) -> None:
    first, second = islice(firings_after(EveryCalendar(every=every), "UTC", after), 2)
    assert second - first == timedelta(seconds=every)
    assert first.timestamp() % every == 0
    assert timedelta() < first - after <= timedelta(seconds=every)


@for_each(
    ("expression", "shown"),
    [
        ("0 2 * * *", ["Fri 01-01 02:00", "Sat 01-02 02:00", "Sun 01-03 02:00"]),
        ("*/20 0,12 * * *", ["Fri 01-01 00:20", "Fri 01-01 00:40", "Fri 01-01 12:00"]),
        ("30 6 * * mon-fri", ["Fri 01-01 06:30", "Mon 01-04 06:30", "Tue 01-05 06:30"]),
        ("0 0 * * 7", ["Sun 01-03 00:00", "Sun 01-10 00:00", "Sun 01-17 00:00"]),
        ("0 0 * * 5-7", ["Sat 01-02 00:00", "Sun 01-03 00:00", "Fri 01-08 00:00"]),
        ("0 0 1 JAN,jul *", ["Thu 07-01 00:00", "Sat 01-01 00:00", "Sat 07-01 00:00"]),
        # Where both are restricted, a day of the month or one of the week is enough; a step over all restricts nothing.
        ("0 0 13 * 5", ["Fri 01-08 00:00", "Wed 01-13 00:00", "Fri 01-15 00:00"]),
        ("0 0 */2 * 5", ["Fri 01-15 00:00", "Fri 01-29 00:00", "Fri 02-05 00:00"]),
        ("0 0 29 2 *", ["Tue 02-29 00:00", "Sun 02-29 00:00", "Fri 02-29 00:00"]),
    ],
)
def test_an_expression_is_read_as_cron_reads_it(expression: str, shown: list[str]) -> None:
    assert shown_times(next_firings(cron(expression), "UTC", NEW_YEAR, 3)) == shown


def test_several_expressions_fire_when_any_does_and_once_when_two_do() -> None:
    calendar = cron("0 * * * *", "*/30 6 * * *")
    at_five = NEW_YEAR.replace(hour=5)
    assert shown_times(next_firings(calendar, "UTC", at_five, 3)) == [
        "Fri 01-01 06:00",
        "Fri 01-01 06:30",
        "Fri 01-01 07:00",
    ]


@for_each(("zone", "day"), [("Europe/Berlin", datetime(2027, 3, 27, 20)), ("America/New_York", datetime(2027, 3, 14, 2))])
def test_a_time_that_the_clock_skips_is_no_firing(zone: str, day: datetime) -> None:
    found = next_firings(cron("30 1-3 * * *"), zone, day.replace(tzinfo=UTC), 4)
    assert [text[-5:] for text in shown_times(found, zone)] == ["01:30", "03:30", "01:30", "02:30"]


@for_each(
    ("zone", "day", "hour"),
    [("Europe/Berlin", datetime(2027, 10, 30, 20), 2), ("America/New_York", datetime(2027, 11, 7, 2), 1)],
)
def test_a_time_that_the_clock_shows_twice_fires_twice(zone: str, day: datetime, hour: int) -> None:
    found = next_firings(cron(f"30 {hour} * * *"), zone, day.replace(tzinfo=UTC), 3)
    assert found[1] - found[0] == timedelta(hours=1)
    assert found[2] - found[1] == timedelta(days=1)
    assert {text[-5:] for text in shown_times(found, zone)} == {f"0{hour}:30"}


@for_each(
    ("expression", "field"),
    [
        ("0 2 * *", "cron"),
        ("0 0 2 * * *", "cron"),
        ("@daily", "cron"),
        ("", "cron"),
        ("60 * * * *", "minute"),
        ("5/10 * * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("1,,2 * * * *", "minute"),
        ("0 24 * * *", "hour"),
        ("0 ٣ * * *", "hour"),
        ("0 0 0 * *", "day_of_month"),
        ("0 0 L * *", "day_of_month"),
        ("0 0 ? * *", "day_of_month"),
        ("0 0 30 2 *", "day_of_month"),
        ("0 0 31 4,6 *", "day_of_month"),
        ("0 0 * 13 *", "month"),
        ("0 0 * januar *", "month"),
        ("0 0 * * 8", "day_of_week"),
        ("0 0 * * fri-mon", "day_of_week"),
        ("0 0 * * 1#2", "day_of_week"),
    ],
)
def test_what_is_no_five_field_cron_is_refused_and_the_field_is_named(expression: str, field: str) -> None:
    with expect_refusal("InvalidScheduleCalendarError", field) as caught:
        parse_cron(expression)
    assert caught.value.facts["field"] == field


@for_each("zone", ["Mars/Olympus", "europe/berlin", "America", "../etc/passwd", "localtime", "+02:00"])
def test_an_unknown_time_zone_is_refused(zone: str) -> None:
    with expect_refusal("InvalidScheduleCalendarError", "time_zone"):
        check_calendar(cron("0 2 * * *"), zone)


@for_each("expressions", [(), ("0 2 * * *",) * 11])
def test_a_calendar_has_one_to_ten_expressions(expressions: tuple[str, ...]) -> None:
    with expect_refusal("InvalidScheduleCalendarError", "cron"):
        check_calendar(cron(*expressions), "UTC")


@for_each("seconds", [9, 0, -60])
def test_nothing_fires_more_often_than_every_ten_seconds(seconds: int) -> None:
    with expect_refusal("InvalidScheduleCalendarError", "every"):
        check_calendar(EveryCalendar(every=seconds), "UTC")
    check_calendar(EveryCalendar(every=10), "UTC")
