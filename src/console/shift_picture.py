"""A picture of a shift: its runs, its supplies and permits and what else happened, each in a lane of one time axis."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

from baton.console.stretch import Stretch

WIDTH, LEFT, RIGHT, TOP = 1000, 130, 16, 14
ROW, AXIS = 34, 26
BAR, THIN, DOT = 22, 8, 5.5  # heights of bars, and the radius of a mark
NAME_LENGTH = 17
LETTER = 7.0  # width of one, with some room
STEPS = (timedelta(minutes=15), timedelta(hours=1), timedelta(hours=3), timedelta(hours=6), timedelta(days=1))
MOST_TIMES = 13


@dataclass(frozen=True)
class Bar:
    """Something that lasted: from when until when, how it looks, what stands in it, and what it is."""

    begins: datetime
    ends: datetime
    look: str
    title: str
    text: str = ""


@dataclass(frozen=True)
class EventMark:
    """Something that happened at a moment."""

    at: datetime
    look: str
    title: str


@dataclass(frozen=True)
class Lane:
    """A row of the picture; that of a state has thin bars."""

    name: str
    bars: Sequence[Bar] = ()
    marks: Sequence[EventMark] = ()
    thin: bool = False


def shift_picture(lanes: Sequence[Lane], stretch: Stretch, zone: ZoneInfo, label: str) -> Markup:
    """Return the picture of a stretch of time, on the clock of the facility."""
    bottom = TOP + ROW * len(lanes)

    def across(at: datetime) -> float:
        share = (at - stretch.begins) / stretch.length
        return round(LEFT + min(max(share, 0.0), 1.0) * (WIDTH - LEFT - RIGHT), 1)

    parts = []
    for at in shown_times(stretch, zone):
        x, local = across(at), at.astimezone(zone)
        shown = local.strftime("%a %d %b" if (local.hour, local.minute) == (0, 0) else "%H:%M")
        parts.append(f'<path class="grid" d="M{x} {TOP}V{bottom}"/>')
        parts.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{escape(shown)}</text>')
    for number, lane in enumerate(lanes):
        middle = TOP + ROW * number + ROW / 2
        name = lane.name if len(lane.name) <= NAME_LENGTH else lane.name[: NAME_LENGTH - 1] + "…"
        parts.append(f'<text class="name" x="{LEFT - 12}" y="{middle + 4}" text-anchor="end">{escape(name)}</text>')
        height = THIN if lane.thin else BAR
        for bar in lane.bars:
            left, width = across(bar.begins), max(across(bar.ends) - across(bar.begins), 2.0)
            parts.append(
                f'<g class="{bar.look}"><title>{escape(bar.title)}</title><rect class="{"state" if lane.thin else "span"}" '
                f'x="{left}" y="{middle - height / 2}" width="{width:.1f}" height="{height}" rx="{2 if lane.thin else 4}"/>'
            )
            if bar.text and width >= LETTER * (len(bar.text) + 1):
                centre = round(left + width / 2, 1)
                parts.append(
                    f'<text class="inside" x="{centre}" y="{middle + 4}" text-anchor="middle">{escape(bar.text)}</text>'
                )
            parts.append("</g>")
        parts += [
            f'<circle class="firing {mark.look}" cx="{across(mark.at)}" cy="{middle}" r="{DOT}">'
            f"<title>{escape(mark.title)}</title></circle>"
            for mark in lane.marks
        ]
    size = f"0 0 {WIDTH} {bottom + AXIS}"
    return Markup(f'<svg class="plot day" viewBox="{size}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>')


def shown_times(stretch: Stretch, zone: ZoneInfo) -> Iterator[datetime]:
    """Yield the times of the axis: full ones of the facility's clock, as close as there is room for."""
    step = next((one for one in STEPS if stretch.length / one <= MOST_TIMES), STEPS[-1])
    at = stretch.begins.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    while at < stretch.ends:
        if at >= stretch.begins:
            yield at
        at = (at + step).replace(tzinfo=zone)
