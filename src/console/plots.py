"""Plots as SVG, drawn on the server: lines over numbers or times, with axes, units and the latest value. Colours come from
the stylesheet, so that a plot fits both themes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import floor, log10
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

from baton.console.display import number_text

WIDTH, HEIGHT = 760, 180
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 14, 26
MOST_POINTS = 800


@dataclass(frozen=True)
class Series:
    """One line: its points in order, and the unit of its values."""

    name: str
    points: tuple[tuple[float, float], ...]
    unit: str | None = None


def thin(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return as many points as a screen can show: of each stretch its lowest and its highest, so that no spike is lost."""
    if len(points) <= MOST_POINTS:
        return list(points)
    size, kept = len(points) / (MOST_POINTS / 2), []
    for number in range(MOST_POINTS // 2):
        part = points[int(number * size) : int((number + 1) * size)]
        if part:
            kept += sorted({min(part, key=lambda one: one[1]), max(part, key=lambda one: one[1])})
    return kept


def ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Return round numbers between two."""
    if high <= low:
        return [low]
    step = 10 ** floor(log10((high - low) / count))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= count)
    first = -(-low // step) * step
    found = []
    while first <= high + step * 1e-9:
        found.append(0.0 if abs(first) < step * 1e-9 else first)
        first += step
    return found


def line_plot(
    series: Sequence[Series],
    *,
    label: str,
    band: tuple[float, float] | None = None,
    zone: ZoneInfo | None = None,
    marks: Sequence[tuple[float, str]] = (),
    x_label: str = "",
    dots: bool = False,
) -> Markup:
    """Return a plot of lines with the same unit. With a zone, first coordinates are times in seconds since 1970; a band is
    the range that is good, marks name moments."""
    drawn = [one for one in series if one.points]
    if not drawn:
        return Markup('<p class="empty">Nothing was measured yet.</p>')
    xs = [x for one in drawn for x, _ in one.points]
    ys = [y for one in drawn for _, y in one.points] + list(band or ())
    (left, right), (low, high) = widened(min(xs), max(xs)), widened(min(ys), max(ys))

    def place(x: float, y: float) -> tuple[float, float]:
        across = LEFT + (x - left) / (right - left) * (WIDTH - LEFT - RIGHT)
        return round(across, 1), round(HEIGHT - BOTTOM - (y - low) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    parts = [f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>']
    if band is not None:
        (_, top), (_, bottom) = place(left, band[1]), place(left, band[0])
        parts.insert(
            0, f'<rect class="band" x="{LEFT}" y="{top}" width="{WIDTH - LEFT - RIGHT}" height="{round(bottom - top, 1)}"/>'
        )
    for value in ticks(low, high):
        _, y = place(left, value)
        parts.append(f'<path class="grid" d="M{LEFT} {y}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{escape(number_text(value))}</text>')
    for value in ticks(left, right, 5):
        x, _ = place(value, low)
        text = number_text(value) if zone is None else clock_text(value, right - left, zone)
        parts.append(f'<text x="{x}" y="{HEIGHT - 8}" text-anchor="middle">{escape(text)}</text>')
    for x_at, text in marks:
        x, _ = place(x_at, low)
        parts.append(
            f'<path class="mark" d="M{x} {TOP}V{HEIGHT - BOTTOM}"/><text x="{x + 4}" y="{TOP + 10}">{escape(text)}</text>'
        )
    for number, one in enumerate(drawn):
        places = [place(*point) for point in thin(one.points)]
        path = "M" + " L".join(f"{x} {y}" for x, y in places)
        parts.append(f'<path class="line line-{number % 4}" d="{path}"/>')
        if dots:
            parts += [f'<circle class="dot dot-{number % 4}" cx="{x}" cy="{y}" r="3"/>' for x, y in places]
        x, y = place(*one.points[-1])
        text = " ".join(
            part for part in (one.name if len(drawn) > 1 else "", number_text(one.points[-1][1]), one.unit or "") if part
        )
        anchor, beside = ("end", x - 8) if x > WIDTH * 0.8 else ("start", x + 8)
        parts.append(f'<circle class="dot dot-{number % 4}" cx="{x}" cy="{y}" r="4"/>')
        above = max(y - 8, 12)
        parts.append(f'<text class="latest" x="{beside}" y="{above}" text-anchor="{anchor}">{escape(text)}</text>')
    if x_label:
        parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - BOTTOM - 6}" text-anchor="end">{escape(x_label)}</text>')
    return Markup(
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def widened(low: float, high: float) -> tuple[float, float]:
    """Return a range that is not empty."""
    if high > low:
        return low, high
    return low - (abs(low) * 0.05 or 1.0), high + (abs(high) * 0.05 or 1.0)


def clock_text(seconds: float, span: float, zone: ZoneInfo) -> str:
    """Return a moment on the facility's clock, as finely as a span of time needs it."""
    at = datetime.fromtimestamp(seconds, UTC).astimezone(zone)
    return at.strftime("%d %b" if span > 3 * 86400 else "%H:%M" if span > 300 else "%H:%M:%S")
