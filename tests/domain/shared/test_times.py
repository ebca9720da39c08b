"""Moments as inputs: one spelling rule, one stored form."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from baton.domain.shared.times import Instant
from tests.support.tables import for_each


class Request(BaseModel):
    at: Instant


def parse_time(text: str) -> datetime:
    return Request.model_validate_json(f'{{"at": "{text}"}}', strict=True).at


offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(datetime(2, 1, 1), datetime(9999, 12, 30), timezones=offsets))
def test_a_moment_is_the_same_whatever_its_offset(time: datetime) -> None:
    assert parse_time(time.isoformat()) == time
    assert parse_time(time.isoformat()).tzinfo is UTC
    assert Request(at=time).at == time


@for_each("text", ["2026-10-06T08:00:00Z", "2026-10-06t08:00:00z", "2026-10-06 10:00+02:00"])
def test_a_moment_may_be_spelled_in_several_ways(text: str) -> None:
    assert parse_time(text) == datetime(2026, 10, 6, 8, tzinfo=UTC)


@for_each(
    "text",
    ["2026-10-06T08:00:00", "2026-10-06", "1780000000", "1.78e9", "20261006T080000Z", "2026-13-06T08:00:00Z", "now", ""],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        parse_time(text)


@for_each("text", ["0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"])
def test_a_year_that_utc_cannot_write_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="within the years 1 to 9999"):
        parse_time(text)


def test_a_number_is_no_moment() -> None:
    with pytest.raises(ValidationError):
        Request.model_validate_json('{"at": 1780000000}', strict=True)
