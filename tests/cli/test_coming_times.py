"""The times that people type: the next time of day on the clock of the machine, also where that clock changes."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from baton.cli.daily.work import coming_time
from tests.support.tables import for_each


@pytest.fixture(autouse=True)
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the clock of this process to one that changes in spring and in autumn."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


def utc(month: int, day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


@for_each(
    ("text", "now", "expected"),
    [
        ("22:00", utc(7, 1, 12), utc(7, 1, 20)),
        ("22:00", utc(7, 1, 20), utc(7, 2, 20)),
        ("22:00", utc(3, 28, 22), utc(3, 29, 20)),
        ("22:00", utc(10, 24, 21), utc(10, 25, 21)),
        ("2026-12-01T06:00", utc(7, 1, 12), utc(12, 1, 5)),
        ("2026-12-01T06:00Z", utc(7, 1, 12), utc(12, 1, 6)),
    ],
)
def test_a_time_is_the_next_one_on_this_clock(text: str, now: datetime, expected: datetime) -> None:
    assert coming_time(text, now) == expected


def test_a_text_that_is_no_time_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        coming_time("tonight", utc(7, 1, 12))
    assert "'tonight' is no time" in capsys.readouterr().err
