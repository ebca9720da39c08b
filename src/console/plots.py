"""Plots as SVG, drawn on the server: lines over numbers or times, with axes, units and the latest value. Colours come from
the stylesheet, so that a plot fits both themes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil, floor, log10
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

from baton.console.display import number_text
from baton.domain.shared.thinning import thin

WIDTH, NARROW, HEIGHT, SQUARE = 760, 560, 180, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 14, 26
MOST_POINTS = 2000
MOST_TICKS = 20
TIME_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800)
MOMENT = 30.0  # seconds that are shown on both sides of a single time
MARGIN = 0.06  # of the height, so that no line runs along the edge


@dataclass(frozen=True)
class Series:
    """One line: its points in order, and the unit of its values."""

    name: str
    points: tuple[tuple[float, float], ...]
    unit: str | None = None


def ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Return round numbers between two."""
    if high <= low:
        return [low]
    step = 10 ** floor(log10((high - low) / count))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= count)
    return multiples(step, low, high)


def time_ticks(low: float, high: float, zone: ZoneInfo, count: int = 5) -> list[float]:
    """Return moments between two that are round on the facility's clock."""
    step = next((one for one in TIME_STEPS if (high - low) / one <= count), None)
    if step is None:
        return ticks(low, high, count)
    ahead = datetime.fromtimestamp(low, UTC).astimezone(zone).utcoffset() or timedelta(0)
    shift = ahead.total_seconds()
    return [one - shift for one in multiples(step, low + shift, high + shift)]


def multiples(step: float, low: float, high: float) -> list[float]:
    """Return the multiples of a step between two numbers."""
    first = ceil(low / step - 1e-9)
    found = ((first + number) * step for number in range(MOST_TICKS))
    return [0.0 if abs(one) < step * 1e-9 else one for one in found if one <= high + step * 1e-9]


def line_plot(
    series: Sequence[Series],
    *,
    label: str,
    band: tuple[float, float] | None = None,
    zone: ZoneInfo | None = None,
    marks: Sequence[tuple[float, str]] = (),
    x_label: str = "",
    dots: bool = False,
    counted: bool = False,
    latest: bool = True,
    best: float | None = None,
    width: int = WIDTH,
) -> Markup:
    """Return a plot of lines with the same unit. With a zone, first coordinates are times in seconds since 1970; where they
    are counted, they are whole numbers. A band is the range that is good, marks name moments, the best value is ringed."""
    drawn = [one for one in series if one.points]
    if not drawn:
        return Markup('<p class="empty">Nothing was measured yet.</p>')
    xs = [x for one in drawn for x, _ in one.points]
    ys = [y for one in drawn for _, y in one.points] + list(band or ())
    left, right = span_of(min(xs), max(xs)) if zone is None or max(xs) > min(xs) else (xs[0] - MOMENT, xs[0] + MOMENT)
    low, high = span_of(min(ys), max(ys), MARGIN)

    def place(x: float, y: float) -> tuple[float, float]:
        return round(LEFT + (x - left) / (right - left) * (width - LEFT - RIGHT), 1), round(
            HEIGHT - BOTTOM - (y - low) / (high - low) * (HEIGHT - TOP - BOTTOM), 1
        )

    parts = [f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{width - RIGHT}"/>']
    if band is not None:
        (_, top), (_, bottom) = place(left, band[1]), place(left, band[0])
        parts.insert(
            0, f'<rect class="band" x="{LEFT}" y="{top}" width="{width - LEFT - RIGHT}" height="{round(bottom - top, 1)}"/>'
        )
    for value in ticks(low, high):
        _, y = place(left, value)
        parts.append(f'<path class="grid" d="M{LEFT} {y}H{width - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{escape(number_text(value))}</text>')
    across = ticks(left, right, 5) if zone is None else time_ticks(left, right, zone)
    for value in across:
        if counted and value != int(value):
            continue
        x, _ = place(value, low)
        if x_label and x > width - RIGHT - 8 * len(x_label):
            continue
        text = number_text(value) if zone is None else clock_text(value, right - left, zone)
        x = min(x, round(width - 4 * len(text), 1))  # a label at the edge is shown whole
        parts.append(f'<text x="{x}" y="{HEIGHT - 8}" text-anchor="middle">{escape(text)}</text>')
    for x_at, text in marks:
        x, _ = place(x_at, low)
        parts.append(
            f'<path class="mark" d="M{x} {TOP}V{HEIGHT - BOTTOM}"/><text x="{x + 4}" y="{TOP + 10}">{escape(text)}</text>'
        )
    for number, one in enumerate(drawn):
        places = [place(*point) for point in thin(one.points, MOST_POINTS, lambda point: point[1])]
        path = "M" + " L".join(f"{x} {y}" for x, y in places)
        parts.append(f'<path class="line line-{number % 4}" d="{path}"/>')
        if dots or len(places) == 1:
            parts += [f'<circle class="dot dot-{number % 4}" cx="{x}" cy="{y}" r="3"/>' for x, y in places]
        parts += [
            f'<circle class="best" cx="{x}" cy="{y}" r="7"/>' for x, y in [place(*p) for p in one.points if p[1] == best]
        ]
        if not latest:
            continue
        x, y = place(*one.points[-1])
        text = " ".join(
            part for part in (one.name if len(drawn) > 1 else "", number_text(one.points[-1][1]), one.unit or "") if part
        )
        anchor, beside = ("end", x - 8) if x > width * 0.8 else ("start", x + 8)
        parts.append(f'<circle class="dot dot-{number % 4}" cx="{x}" cy="{y}" r="4"/>')
        above = max(y - 8, 12)
        parts.append(f'<text class="latest" x="{beside}" y="{above}" text-anchor="{anchor}">{escape(text)}</text>')
    if x_label:
        parts.append(f'<text x="{width - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">{escape(x_label)}</text>')
    return Markup(
        f'<svg class="plot" viewBox="0 0 {width} {HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def heat_map(
    cells: Mapping[tuple[float, float], float], *, label: str, x_label: str, y_label: str, unit: str | None
) -> Markup:
    """Return a map of a grid: a rectangle for each place, the darker the larger its value."""
    xs, ys = (sorted({place[number] for place in cells}) for number in (0, 1))
    if not xs:
        return Markup('<p class="empty">Nothing was measured yet.</p>')
    wide, high = (NARROW - LEFT - RIGHT) / len(xs), (SQUARE - TOP - BOTTOM) / len(ys)
    low, top = min(cells.values()), max(cells.values())
    parts = [
        f'<rect class="heat-{heat(value, low, top)}" x="{LEFT + xs.index(x) * wide:.1f}"'
        f' y="{SQUARE - BOTTOM - (ys.index(y) + 1) * high:.1f}" width="{wide:.1f}" height="{high:.1f}">'
        f"<title>{escape(f'{x_label} {x:.6g}, {y_label} {y:.6g}: {value:.6g} {unit or str()}'.rstrip())}</title></rect>"
        for (x, y), value in cells.items()
    ]
    for every, count, size in ((xs, 8, wide), (ys, 8, high)):
        for number in range(0, len(every), ceil(len(every) / count)):
            middle, text = (number + 0.5) * size, escape(number_text(every[number]))
            if every is xs:
                parts.append(f'<text x="{LEFT + middle:.1f}" y="{SQUARE - 8}" text-anchor="middle">{text}</text>')
            else:
                y_at = SQUARE - BOTTOM - middle + 4
                parts.append(f'<text x="{LEFT - 8}" y="{y_at:.1f}" text-anchor="end">{text}</text>')
    return square_svg(parts, label)


def scatter_plot(
    dots: Sequence[tuple[float, float, float]],
    *,
    label: str,
    x_label: str,
    y_label: str,
    unit: str | None,
    best: float | None = None,
    ahead: tuple[float, float] | None = None,
) -> Markup:
    """Return sampled places, the darker the larger what was measured there, the best ringed; the next one is hollow."""
    if not dots:
        return Markup('<p class="empty">Nothing was measured yet.</p>')
    places = [(x, y) for x, y, _ in dots] + ([] if ahead is None else [ahead])
    (left, right), (bottom, top) = (span_of(min(part), max(part), MARGIN) for part in zip(*places, strict=True))
    values = [value for _, _, value in dots]

    def place(x: float, y: float) -> str:
        across, up = (x - left) / (right - left), (y - bottom) / (top - bottom)
        return (
            f'cx="{LEFT + across * (NARROW - LEFT - RIGHT):.1f}" cy="{SQUARE - BOTTOM - up * (SQUARE - TOP - BOTTOM):.1f}"'
        )

    parts = [f'<path class="axis" d="M{LEFT} {TOP}V{SQUARE - BOTTOM}H{NARROW - RIGHT}"/>']
    for x, y, value in dots:
        said = escape(f"{x_label} {x:.6g}, {y_label} {y:.6g}: {value:.6g} {unit or ''}".rstrip())
        shade = heat(value, min(values), max(values))
        parts.append(f'<circle class="heat-{shade}" {place(x, y)} r="5"><title>{said}</title></circle>')
    ringed = next(((x, y) for x, y, value in dots if value == best), None)
    parts += [] if ringed is None else [f'<circle class="best" {place(*ringed)} r="8"/>']
    if ahead is not None:
        parts.append(f'<circle class="ahead" {place(*ahead)} r="6"><title>where it measures next</title></circle>')
    for value in ticks(left, right, 5):
        across = LEFT + (value - left) / (right - left) * (NARROW - LEFT - RIGHT)
        parts.append(f'<text x="{across:.1f}" y="{SQUARE - 8}" text-anchor="middle">{escape(number_text(value))}</text>')
    for value in ticks(bottom, top):
        up = SQUARE - BOTTOM - (value - bottom) / (top - bottom) * (SQUARE - TOP - BOTTOM)
        parts.append(f'<text x="{LEFT - 8}" y="{up + 4:.1f}" text-anchor="end">{escape(number_text(value))}</text>')
    return square_svg(parts, label)


def heat(value: float, low: float, high: float) -> int:
    """Return which of ten shades a value has between the lowest and the highest."""
    return 9 if high <= low else min(9, int((value - low) / (high - low) * 10))


def square_svg(parts: Sequence[str], label: str) -> Markup:
    """Return a square picture of these parts."""
    return Markup(
        f'<svg class="plot" viewBox="0 0 {NARROW} {SQUARE}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def span_of(low: float, high: float, margin: float = 0.0) -> tuple[float, float]:
    """Return a range that is not empty, with a margin on both sides."""
    if high <= low:
        return low - (abs(low) * 0.05 or 1.0), high + (abs(high) * 0.05 or 1.0)
    return low - (high - low) * margin, high + (high - low) * margin


def clock_text(seconds: float, span: float, zone: ZoneInfo) -> str:
    """Return a moment on the facility's clock, as finely as a span of time needs it."""
    at = datetime.fromtimestamp(seconds, UTC).astimezone(zone)
    return at.strftime("%d %b" if span > 3 * 86400 else "%H:%M" if span > 300 else "%H:%M:%S")
