"""What an agent may spend by itself: caps against calendar windows, the monthly one first."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import example, given
from hypothesis import strategies as st

from baton.domain.agent.agent import (
    Budget,
    ReachedCap,
    SpentAmounts,
    day_start,
    month_start,
    next_day,
    next_month,
    reached_cap,
)
from tests.support.tables import for_each

MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
NOON = datetime(2026, 10, 6, 12, 30, 15, 250_000, tzinfo=UTC)


def budget(monthly: float | None = None, daily: int | None = None) -> Budget:
    return Budget(monthly_cost_cap=monthly, daily_token_cap=daily)


@given(MOMENTS)
def test_windows_are_those_of_the_calendar_half_open_and_without_a_gap(at: datetime) -> None:
    for begin, end in ((month_start, next_month), (day_start, next_day)):
        assert begin(at) <= at < end(at)
        assert begin(begin(at)) == begin(at)
        assert begin(end(at)) == end(at)
        assert begin(end(at) - timedelta(microseconds=1)) == begin(at)
    assert (month_start(at).year, month_start(at).month, month_start(at).day) == (at.year, at.month, 1)
    following = (at.year + at.month // 12, at.month % 12 + 1, 1)
    assert (next_month(at).year, next_month(at).month, next_month(at).day) == following
    assert day_start(at).date() == at.date()
    assert next_day(at) - day_start(at) == timedelta(days=1)


@for_each(
    ("at", "month", "following"),
    [
        ("2026-01-31T23:59:59.999999+00:00", "2026-01-01", "2026-02-01"),
        ("2026-02-01T00:00:00+00:00", "2026-02-01", "2026-03-01"),
        ("2028-02-29T12:00:00+00:00", "2028-02-01", "2028-03-01"),
        ("2026-12-31T23:59:59+00:00", "2026-12-01", "2027-01-01"),
        ("2026-10-31T23:30:00-02:00", "2026-11-01", "2026-12-01"),
    ],
)
def test_months_end_where_they_end_in_utc(at: str, month: str, following: str) -> None:
    moment = datetime.fromisoformat(at)
    assert month_start(moment) == datetime.fromisoformat(month).replace(tzinfo=UTC)
    assert next_month(moment) == datetime.fromisoformat(following).replace(tzinfo=UTC)


@given(MOMENTS, st.integers(-14, 14))
def test_where_the_clock_stands_elsewhere_does_not_matter(at: datetime, hours: int) -> None:
    elsewhere = at.astimezone(timezone(timedelta(hours=hours)))
    assert (month_start(elsewhere), day_start(elsewhere)) == (month_start(at), day_start(at))


def test_without_a_budget_there_is_no_limit() -> None:
    assert reached_cap(None, SpentAmounts(1e12, 10**12), NOON) is None


def test_a_cap_is_reached_when_as_much_was_spent() -> None:
    assert reached_cap(budget(monthly=40.0), SpentAmounts(39.99, 10**12), NOON) is None
    assert reached_cap(budget(monthly=40.0), SpentAmounts(40.0, 0), NOON) == ReachedCap(
        "monthly_cost_cap", 40.0, 40.0, datetime(2026, 10, 1, tzinfo=UTC)
    )
    assert reached_cap(budget(daily=200), SpentAmounts(1e12, 199), NOON) is None
    assert reached_cap(budget(daily=200), SpentAmounts(0.0, 200), NOON) == ReachedCap(
        "daily_token_cap", 200, 200, datetime(2026, 10, 6, tzinfo=UTC)
    )


def test_the_monthly_cap_is_named_before_the_daily_one() -> None:
    both = budget(monthly=40.0, daily=200)
    spent = {(m, d): reached_cap(both, SpentAmounts(m, d), NOON) for m in (0.0, 40.0) for d in (0, 200)}
    assert spent[0.0, 0] is None
    assert {key: reached.cap_kind for key, reached in spent.items() if reached} == {
        (40.0, 0): "monthly_cost_cap",
        (0.0, 200): "daily_token_cap",
        (40.0, 200): "monthly_cost_cap",
    }


@example(0.0, None, 0.0, 0)
@example(None, 0, 0.0, 0)
@given(st.none() | st.floats(0, 100), st.none() | st.integers(0, 100), st.floats(0, 100), st.integers(0, 100))
def test_a_call_is_refused_exactly_where_a_cap_is_reached(
    monthly: float | None, daily: int | None, cost: float, tokens: int
) -> None:
    reached = reached_cap(budget(monthly, daily), SpentAmounts(cost, tokens), NOON)
    refused = (monthly is not None and cost >= monthly) or (daily is not None and tokens >= daily)
    assert (reached is not None) == refused


def test_what_is_put_on_record_names_the_cap_and_its_window() -> None:
    reached = reached_cap(budget(monthly=40.0), SpentAmounts(41.5, 0), NOON)
    assert reached is not None
    assert reached.facts() == {
        "cap_kind": "monthly_cost_cap",
        "cap_value": 40.0,
        "spent": 41.5,
        "window_start": "2026-10-01T00:00:00Z",
    }
