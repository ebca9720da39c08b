"""Planned outages out of an iCalendar file."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from baton.application.settings import Settings
from baton.domain.shared.outages import outages_in

CALENDAR = """BEGIN:VCALENDAR\r
VERSION:2.0\r
BEGIN:VEVENT\r
UID:1\r
SUMMARY:Winter shutdown of the\r
  ring\r
CATEGORIES:photon_beam,shutdown\r
DTSTART:20261220T060000Z\r
DTEND:20270108T060000Z\r
END:VEVENT\r
BEGIN:VEVENT\r
SUMMARY:liquid_nitrogen\r
DTSTART;TZID=Europe/Berlin:20261201T080000\r
DTEND;TZID=Europe/Berlin:20261201T120000\r
END:VEVENT\r
BEGIN:VEVENT\r
SUMMARY:cooling_water\r
DTSTART;VALUE=DATE:20261224\r
DTEND;VALUE=DATE:20261226\r
END:VEVENT\r
BEGIN:VEVENT\r
SUMMARY:without an end\r
DTSTART:20261220T060000Z\r
END:VEVENT\r
END:VCALENDAR\r
"""


def test_events_are_outages_of_their_category_or_else_of_their_summary() -> None:
    assert [(one.kind, one.starts_at, one.ends_at) for one in outages_in(CALENDAR)] == [
        ("photon_beam", datetime(2026, 12, 20, 6, tzinfo=UTC), datetime(2027, 1, 8, 6, tzinfo=UTC)),
        ("liquid_nitrogen", datetime(2026, 12, 1, 7, tzinfo=UTC), datetime(2026, 12, 1, 11, tzinfo=UTC)),
        ("cooling_water", datetime(2026, 12, 24, tzinfo=UTC), datetime(2026, 12, 26, tzinfo=UTC)),
    ]


def test_a_text_that_is_no_calendar_announces_nothing() -> None:
    assert outages_in("photon_beam") == ()


def test_the_setting_names_a_file_or_holds_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "outages.ics"
    file.write_text(CALENDAR)
    listed = '[{"kind": "photon_beam", "starts_at": "2026-12-20T06:00:00Z", "ends_at": "2027-01-08T06:00:00Z"}]'
    for given, count in ((str(file), 3), (listed, 1)):
        monkeypatch.setenv("PLANNED_OUTAGES", given)
        assert len(Settings(app_env="test").planned_outages) == count
    monkeypatch.setenv("PLANNED_OUTAGES", str(tmp_path / "none.ics"))
    with pytest.raises(ValueError, match=r"none\.ics cannot be read"):
        Settings(app_env="test")
