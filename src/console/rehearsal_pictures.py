"""Pictures of a rehearsal: its procedures and waits as a bar in time, and a line for each axis between its limits, with the
place where it would stop. Colours come from the stylesheet, so that a picture fits both themes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

from baton.console.display import number_text
from baton.console.plots import BOTTOM, LEFT, MARGIN, RIGHT, TOP, WIDTH, clock_text, span_of, ticks, time_ticks

AXIS_HEIGHT, BAR_HEIGHT = 120, 64
BAR_TOP, BAR_BOTTOM = 18, 40
CHARACTER = 7  # the width of one, at most
EDGES = ("lower limit", "upper limit")


@dataclass(frozen=True)
class TimedPart:
    """A stretch of the bar: what is done then, and how it looks."""

    name: str
    begins_at: datetime
    ends_at: datetime
    look: str = "live"


@dataclass(frozen=True)
class AxisCourse:
    """The values of an axis by the number of steps walked, its limits, and where it would stop."""

    address: str
    unit: str | None
    points: Sequence[tuple[float, float]]
    edges: tuple[float | None, float | None] = (None, None)
    stop: tuple[float, float] | None = None


def time_bar(parts: Sequence[TimedPart], lapses: Sequence[tuple[datetime, str]], zone: ZoneInfo, label: str) -> Markup:
    """Return stretches of time as a bar on the facility's clock, with a mark where something lapses that is needed."""
    begins, ends = parts[0].begins_at.timestamp(), max(part.ends_at.timestamp() for part in parts)
    left, right = span_of(begins, ends)

    def across(at: float) -> float:
        return round(LEFT + (at - left) / (right - left) * (WIDTH - LEFT - RIGHT), 1)

    drawn = []
    for part in parts:
        x, end = across(part.begins_at.timestamp()), across(part.ends_at.timestamp())
        size = f'x="{x}" y="{BAR_TOP}" width="{max(2.0, round(end - x, 1))}" height="{BAR_BOTTOM - BAR_TOP}" rx="3"'
        drawn.append(f'<rect class="part {part.look}" {size}><title>{escape(part.name)}</title></rect>')
        if (end - x) > CHARACTER * len(part.name):
            drawn.append(f'<text class="in-part" x="{x + 6}" y="{BAR_BOTTOM - 8}">{escape(part.name)}</text>')
    for at in time_ticks(left, right, zone, 4):
        text = clock_text(at, right - left, zone)
        drawn.append(f'<path class="grid" d="M{across(at)} {BAR_BOTTOM}V{BAR_BOTTOM + 6}"/>')
        drawn.append(f'<text x="{across(at)}" y="{BAR_HEIGHT - 6}" text-anchor="middle">{escape(text)}</text>')
    for lapses_at, what in lapses:
        x = across(lapses_at.timestamp())
        drawn.append(f'<path class="mark" d="M{x} {BAR_TOP - 6}V{BAR_BOTTOM + 6}"/>')
        drawn.append(f'<text x="{x}" y="{BAR_TOP - 7}" text-anchor="middle">{escape(what)}</text>')
    return picture(WIDTH, BAR_HEIGHT, label, drawn)


def axis_picture(axis: AxisCourse, step_count: int) -> Markup:
    """Return the line of an axis over the steps, its limits as edges, and a cross where it would stop."""
    stop = [] if axis.stop is None else [axis.stop]
    ys = [y for _, y in (*axis.points, *stop)] + [edge for edge in axis.edges if edge is not None]
    low, high = span_of(min(ys), max(ys), MARGIN)

    def place(x: float, y: float) -> tuple[float, float]:
        across = x / max(step_count, 1)
        up = (y - low) / (high - low)
        return round(LEFT + across * (WIDTH - LEFT - RIGHT), 1), round(
            AXIS_HEIGHT - BOTTOM - up * (AXIS_HEIGHT - TOP - BOTTOM), 1
        )

    drawn = [f'<path class="axis" d="M{LEFT} {TOP}V{AXIS_HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>']
    for value in ticks(low, high, 2):
        _, y = place(0, value)
        drawn.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{escape(number_text(value))}</text>')
    for edge, name in zip(axis.edges, EDGES, strict=True):
        if edge is not None:
            _, y = place(0, edge)
            drawn.append(
                f'<path class="edge" d="M{LEFT} {y}H{WIDTH - RIGHT}"><title>{name}: {number_text(edge)}</title></path>'
            )
    for value in ticks(0, step_count, 4):
        x, _ = place(value, low)
        drawn.append(f'<text x="{x}" y="{AXIS_HEIGHT - 8}" text-anchor="middle">{escape(number_text(value))}</text>')
    path = steps_path([place(*point) for point in axis.points], place(step_count, low)[0])
    drawn.append(f'<path class="line line-0" d="{path}"/>')
    if axis.stop is not None:
        x, y = place(*axis.stop)
        said = escape(f"would stop: {number_text(axis.stop[1])} {axis.unit or ''}".rstrip())
        drawn.append(f'<path class="stops" d="M{x - 6} {y - 6}l12 12m0 -12l-12 12"><title>{said}</title></path>')
    return picture(WIDTH, AXIS_HEIGHT, axis_label(axis), drawn)


def steps_path(places: Sequence[tuple[float, float]], end: float) -> str:
    """Return the path of a value that stays as it is until it is set again."""
    (x, y), *others = places
    return f"M{x} {y}" + "".join(f"H{x}V{y}" for x, y in others) + f"H{end}"


def axis_label(axis: AxisCourse) -> str:
    """Return what the picture of an axis shows, in words."""
    values, unit = [y for _, y in axis.points], f" {axis.unit}" if axis.unit else ""
    said = f"{axis.address} between {number_text(min(values))} and {number_text(max(values))}{unit}"
    limits = [f"{name} {number_text(edge)}" for edge, name in zip(axis.edges, EDGES, strict=True) if edge is not None]
    stops = "" if axis.stop is None else f"; it would stop at {number_text(axis.stop[1])}{unit}"
    return "; ".join((said, *limits)) + stops


def picture(width: int, height: int, label: str, parts: Sequence[str]) -> Markup:
    """Return a picture of these parts."""
    size = f'viewBox="0 0 {width} {height}"'
    return Markup(f'<svg class="plot" {size} role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>')
