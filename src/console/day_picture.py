"""A picture of the hours ahead: a row for each schedule with a mark for each firing, and for each visit with a bar."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

HOURS = 24
WIDTH, LEFT, RIGHT, TOP = 1000, 210, 14, 26
ROW = 26
NAME_LENGTH = 28
MOST_MARKS = 60  # of one row; what fires more often is a pale bar
LABEL_WIDTH = 60  # at the most, so that the first and the last label stay inside


@dataclass(frozen=True)
class DayRow:
    """A row of the picture: its marks, and its bars from one time to another."""

    name: str
    look: str
    marks: tuple[datetime, ...] = ()
    bars: tuple[tuple[datetime, datetime], ...] = ()
    note: str = ""


def beginning_of(now: datetime) -> datetime:
    """Return where the picture begins: the quarter of an hour that is going on, so that it moves four times an hour."""
    return now.replace(minute=now.minute // 15 * 15, second=0, microsecond=0)


def day_picture(rows: Sequence[DayRow], begins: datetime, zone: ZoneInfo, label: str) -> Markup:
    """Return the picture of a day from this time on, on the clock of the facility."""
    height = TOP + ROW * len(rows) + 6
    span = WIDTH - LEFT - RIGHT

    def across(at: datetime) -> float:
        share = (at - begins) / timedelta(hours=HOURS)
        return round(LEFT + min(max(share, 0.0), 1.0) * span, 1)

    parts = []
    for at in full_hours(begins, zone):
        x, midnight = across(at), at.astimezone(zone).hour == 0
        shown = at.astimezone(zone).strftime("%a %d %b" if midnight else "%H:%M")
        parts.append(f'<path class="{"mark" if midnight else "grid"}" d="M{x} {TOP - 6}V{height - 4}"/>')
        inside = min(x, WIDTH - LABEL_WIDTH / 2)
        parts.append(f'<text x="{inside}" y="{TOP - 11}" text-anchor="middle">{escape(shown)}</text>')
    for number, row in enumerate(rows):
        middle = TOP + ROW * number + ROW / 2
        parts.append(f'<path class="grid" d="M{LEFT} {middle}H{WIDTH - RIGHT}"/>')
        name = row.name if len(row.name) <= NAME_LENGTH else row.name[: NAME_LENGTH - 1] + "…"
        parts.append(f'<text class="name" x="{LEFT - 10}" y="{middle + 4}" text-anchor="end">{escape(name)}</text>')
        parts += [
            f'<path class="firing {row.look}" d="M{across(at)} {middle - 6}l5 6l-5 6l-5 -6z"><title>'
            f"{escape(at.astimezone(zone).strftime('%a %H:%M'))}</title></path>"
            for at in row.marks
        ]
        for start, end in row.bars:
            left, width = across(start), max(across(end) - across(start), 2)
            parts.append(
                f'<rect class="firing {row.look}" x="{left}" y="{middle - 6}" width="{round(width, 1)}" height="12" rx="3"/>'
            )
        if row.note:
            parts.append(f'<text class="note" x="{LEFT + 8}" y="{middle - 2}">{escape(row.note)}</text>')
    picture = "".join(parts)
    return Markup(
        f'<svg class="plot day" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">{picture}</svg>'
    )


def interval_text(marks: Sequence[datetime]) -> str:
    """Return how far apart marks are, in words."""
    seconds = (marks[-1] - marks[0]).total_seconds() / (len(marks) - 1)
    return f"{round(seconds)} s" if seconds < 60 else f"{round(seconds / 60)} min"


def full_hours(begins: datetime, zone: ZoneInfo) -> list[datetime]:
    """Return every third hour of the facility's clock within the picture."""
    first = begins.replace(minute=0) + timedelta(hours=1)
    hours = (first + timedelta(hours=number) for number in range(HOURS))
    return [at for at in hours if at.astimezone(zone).hour % 3 == 0]
