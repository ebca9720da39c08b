"""Plots as SVG, drawn on the server: lines over numbers or times, with axes, units and the latest value. Colours come from
the stylesheet, so that a plot fits both themes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil, floor, log10
from typing import NamedTuple
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

from baton.console.display import number_text
from baton.domain.shared.thinning import thin

WIDTH, NARROW, HEIGHT, SQUARE = 760, 560, 180, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 14, 26
SIDE, FOOT, SCALE = 84, 44, 84  # of pictures with two named axes: left, below, and the scale of their shades on the right
LETTER = 7  # pixels of a letter, about
SHADES = 10
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


class PlotAxis(NamedTuple):
    """An axis of a picture, with the unit of its numbers."""

    name: str
    unit: str | None = None

    @property
    def label(self) -> str:
        return self.name if self.unit is None else f"{self.name} ({self.unit})"


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
    ahead: float | None = None,
    width: int = WIDTH,
) -> Markup:
    """Return a plot of lines with the same unit. With a zone, first coordinates are times in seconds since 1970; where they
    are counted, they are whole numbers. A band is the range that is good, marks name moments, the best value is ringed, and
    where it is measured next is a broken line."""
    drawn = [one for one in series if one.points]
    if not drawn:
        return Markup('<p class="empty">Nothing was measured yet.</p>')
    xs = [x for one in drawn for x, _ in one.points] + ([] if ahead is None else [ahead])
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
    if ahead is not None:
        x, _ = place(ahead, low)
        where = "<title>where it measures next</title>"
        parts.append(f'<path class="ahead" d="M{x} {TOP}V{HEIGHT - BOTTOM}">{where}</path>')
    named = LEFT  # Where the next name of several is written.
    for number, one in enumerate(drawn):
        places = [place(*point) for point in thin(one.points, MOST_POINTS, lambda point: point[1])]
        path = "M" + " L".join(f"{x} {y}" for x, y in places)
        parts.append(f'<path class="line line-{number % 4}" d="{path}"/>')
        if dots or len(places) == 1:
            parts += [f'<circle class="dot dot-{number % 4}" cx="{x}" cy="{y}" r="3"/>' for x, y in places]
        parts += [
            f'<circle class="best" cx="{x}" cy="{y}" r="7"/>' for x, y in [place(*p) for p in one.points if p[1] == best]
        ]
        x, y = place(*one.points[-1])
        text = f"{number_text(one.points[-1][1])} {one.unit or ''}".rstrip() if latest else ""
        if len(drawn) > 1:
            name = f"{one.name} {text}".rstrip()
            parts.append(f'<path class="line line-{number % 4}" d="M{named} 6h22"/>')
            parts.append(f'<text class="latest" x="{named + 28}" y="10">{escape(name)}</text>')
            named += 44 + LETTER * len(name)
        elif latest:
            anchor, beside = ("end", x - 8) if x > width * 0.8 else ("start", x + 8)
            above = max(y - 8, 12)
            parts.append(f'<text class="latest" x="{beside}" y="{above}" text-anchor="{anchor}">{escape(text)}</text>')
        if latest:
            parts.append(f'<circle class="dot dot-{number % 4}" cx="{x}" cy="{y}" r="4"/>')
    if x_label:
        parts.append(f'<text x="{width - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">{escape(x_label)}</text>')
    return Markup(
        f'<svg class="plot" viewBox="0 0 {width} {HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def heat_map(
    cells: Mapping[tuple[float, float], float],
    *,
    label: str,
    x_axis: PlotAxis,
    y_axis: PlotAxis,
    unit: str | None,
    block: int = 1,
) -> Markup:
    """Return a map of a grid: a rectangle for each place, the stronger the larger its value. A block of so many places in a
    row is drawn as its highest."""
    if not cells:
        return Markup('<p class="empty">Nothing was measured yet.</p>')
    if block > 1:
        cells = in_blocks(cells, block)
    xs, ys = (sorted({place[number] for place in cells}) for number in (0, 1))
    wide, high = (NARROW - SIDE - SCALE) / len(xs), (SQUARE - TOP - FOOT) / len(ys)
    columns, rows = ({value: number for number, value in enumerate(every)} for every in (xs, ys))
    low, top = min(cells.values()), max(cells.values())
    lefts = [round(SIDE + number * wide, 1) for number in range(len(xs) + 1)]  # edges that neighbours share
    tops = [round(SQUARE - FOOT - number * high, 1) for number in range(len(ys) + 1)]
    parts = [
        f'<rect class="heat-{heat(value, low, top)}" x="{lefts[columns[x]]}" y="{tops[rows[y] + 1]}"'
        f' width="{lefts[columns[x] + 1] - lefts[columns[x]]:.1f}" height="{tops[rows[y]] - tops[rows[y] + 1]:.1f}">'
        f"<title>{escape(place_text(x_axis, x, y_axis, y, value, unit))}</title></rect>"
        for (x, y), value in cells.items()
    ]
    for every, count, size in ((xs, 8, wide), (ys, 8, high)):
        for number in range(0, len(every), ceil(len(every) / count)):
            middle, text = (number + 0.5) * size, number_text(every[number])
            parts.append(across_tick(SIDE + middle, text) if every is xs else up_tick(SQUARE - FOOT - middle, text))
    return square_svg([*parts, *shade_scale(low, top, unit)], label, x_axis, y_axis)


def in_blocks(cells: Mapping[tuple[float, float], float], width: int) -> dict[tuple[float, float], float]:
    """Return the highest value of each block of so many places in a row, at the first of them."""
    columns = sorted({x for x, _ in cells})
    first = {x: columns[number - number % width] for number, x in enumerate(columns)}
    found: dict[tuple[float, float], float] = {}
    for (x, y), value in cells.items():
        place = first[x], y
        found[place] = max(value, found.get(place, value))
    return found


def scatter_plot(
    dots: Sequence[tuple[float, float, float]],
    *,
    label: str,
    x_axis: PlotAxis,
    y_axis: PlotAxis,
    unit: str | None,
    best: float | None = None,
    ahead: tuple[float, float] | None = None,
) -> Markup:
    """Return sampled places, the stronger the larger what was measured there, the best ringed; the next one is hollow."""
    if not dots:
        return Markup('<p class="empty">Nothing was measured yet.</p>')
    places = [(x, y) for x, y, _ in dots] + ([] if ahead is None else [ahead])
    (left, right), (bottom, top) = (span_of(min(part), max(part), MARGIN) for part in zip(*places, strict=True))
    low, high = min(value for _, _, value in dots), max(value for _, _, value in dots)

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = (x - left) / (right - left), (y - bottom) / (top - bottom)
        return round(SIDE + across * (NARROW - SIDE - SCALE), 1), round(SQUARE - FOOT - up * (SQUARE - TOP - FOOT), 1)

    def circle(name: str, x: float, y: float, radius: int, title: str = "") -> str:
        at_x, at_y = place(x, y)
        return f'<circle class="{name}" cx="{at_x}" cy="{at_y}" r="{radius}"><title>{escape(title)}</title></circle>'

    parts = [f'<path class="axis" d="M{SIDE} {TOP}V{SQUARE - FOOT}H{NARROW - SCALE}"/>']
    for x, y, value in dots:
        said = place_text(x_axis, x, y_axis, y, value, unit)
        parts.append(circle(f"heat-{heat(value, low, high)}", x, y, 5, said))
    ringed = next(((x, y) for x, y, value in dots if value == best), None)
    parts += [] if ringed is None else [circle("best", *ringed, 8, "the best so far")]
    parts += [] if ahead is None else [circle("ahead", *ahead, 6, "where it measures next")]
    parts += [across_tick(place(value, bottom)[0], number_text(value)) for value in ticks(left, right, 5)]
    parts += [up_tick(place(left, value)[1], number_text(value)) for value in ticks(bottom, top)]
    return square_svg([*parts, *shade_scale(low, high, unit)], label, x_axis, y_axis)


def place_text(x_axis: PlotAxis, x: float, y_axis: PlotAxis, y: float, value: float, unit: str | None) -> str:
    """Return what was measured at a place, in words."""
    return f"{x_axis.name} {x:.6g}, {y_axis.name} {y:.6g}: {value:.6g} {unit or ''}".rstrip()


def across_tick(x: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{SQUARE - FOOT + 16}" text-anchor="middle">{escape(text)}</text>'


def up_tick(y: float, text: str) -> str:
    return f'<text x="{SIDE - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>'


def shade_scale(low: float, high: float, unit: str | None) -> list[str]:
    """Return the scale of the shades: which values they are for, the largest above."""
    left, tall = NARROW - SCALE + 14, (SQUARE - TOP - FOOT) / SHADES
    if high <= low:
        return []
    tops = [SQUARE - FOOT - (shade + 1) * tall for shade in range(SHADES)]
    parts = [
        f'<rect class="heat-{shade}" x="{left}" y="{y:.1f}" width="12" height="{tall:.1f}"/>' for shade, y in enumerate(tops)
    ]
    ends = ((high, TOP + 10), ((low + high) / 2, (TOP + SQUARE - FOOT) / 2 + 4), (low, SQUARE - FOOT))
    parts += [f'<text x="{left + 16}" y="{y:.1f}">{escape(number_text(float(f"{value:.3g}")))}</text>' for value, y in ends]
    return [*parts, f'<text x="{left}" y="{SQUARE - FOOT + 16}">{escape(unit or "")}</text>']


def heat(value: float, low: float, high: float) -> int:
    """Return which of ten shades a value has between the lowest and the highest."""
    return SHADES - 1 if high <= low else min(SHADES - 1, int((value - low) / (high - low) * SHADES))


def square_svg(parts: Sequence[str], label: str, x_axis: PlotAxis, y_axis: PlotAxis) -> Markup:
    """Return a square picture of these parts, with the names of its axes."""
    x, y = (SIDE + NARROW - SCALE) / 2, (TOP + SQUARE - FOOT) / 2
    names = (
        f'<text x="{x}" y="{SQUARE - 6}" text-anchor="middle">{escape(x_axis.label)}</text>'
        f'<text transform="translate(14 {y}) rotate(-90)" text-anchor="middle">{escape(y_axis.label)}</text>'
    )
    return Markup(
        f'<svg class="plot" viewBox="0 0 {NARROW} {SQUARE}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}{names}</svg>"
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
