"""Plots as they are drawn: what a single reading looks like."""

from zoneinfo import ZoneInfo

from baton.console.plots import Series, line_plot


def test_a_single_reading_is_a_dot_within_its_minute() -> None:
    at = 1_800_000_000.0
    drawn = line_plot([Series("energy", ((at, 0.5),))], label="energy", zone=ZoneInfo("UTC"), latest=False)
    assert drawn.count("<circle") == 1
    assert "08:00:00</text>" in drawn
    assert "Jun" not in drawn
