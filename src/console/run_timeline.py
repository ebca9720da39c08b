"""A picture of a run from its beginning to its end: a row for the run and for each phase, with bars where it ran or was
held."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

from baton.console.display import duration_text
from baton.console.plots import clock_text, time_ticks
from baton.domain.views.run_story import WorkStretch

WIDTH, LEFT, RIGHT, TOP, ROW = 900, 190, 14, 26, 26
NAME_LENGTH = 26
THINNEST = 2.0


@dataclass(frozen=True)
class TimelineRow:
    """A row of the picture: a name, and the stretches in which it ran or was held."""

    name: str
    stretches: Sequence[WorkStretch]


def timeline(rows: Sequence[TimelineRow], begins: datetime, ends: datetime, zone: ZoneInfo, label: str) -> Markup:
    """Return the picture of these rows between two times, on the clock of the facility."""
    first, last = begins.timestamp(), max(ends.timestamp(), begins.timestamp() + 1)
    height, span = TOP + ROW * len(rows) + 6, WIDTH - LEFT - RIGHT

    def across(seconds: float) -> float:
        return round(LEFT + (min(max(seconds, first), last) - first) / (last - first) * span, 1)

    parts = []
    for at in time_ticks(first, last, zone, 6):
        x = across(at)
        text = escape(clock_text(at, last - first, zone))
        parts.append(f'<path class="grid" d="M{x} {TOP - 6}V{height - 4}"/>')
        parts.append(f'<text x="{x}" y="{TOP - 11}" text-anchor="middle">{text}</text>')
    for number, row in enumerate(rows):
        middle = TOP + ROW * number + ROW / 2
        name = row.name if len(row.name) <= NAME_LENGTH else f"{row.name[: NAME_LENGTH - 1]}…"
        parts.append(f'<text class="name" x="{LEFT - 10}" y="{middle + 4}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<path class="grid" d="M{LEFT} {middle}H{WIDTH - RIGHT}"/>')
        for one in row.stretches:
            until = one.ends or ends
            left, width = across(one.begins.timestamp()), across(until.timestamp()) - across(one.begins.timestamp())
            said = f"{'held' if one.held else 'ran'} for {duration_text((until - one.begins).total_seconds())}"
            look, box = ("look", 5) if one.held else ("good", 7)
            parts.append(
                f'<rect class="firing {look}" x="{left}" y="{middle - box}" width="{max(width, THINNEST):.1f}"'
                f' height="{2 * box}" rx="2"><title>{escape(row.name)} {said}</title></rect>'
            )
    picture = "".join(parts)
    return Markup(
        f'<svg class="plot day" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">{picture}</svg>'
    )
