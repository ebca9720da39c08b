"""Points of a conduct as one figure of SVG, for notebooks of either theme: curves over an axis, or the map of a grid."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import TYPE_CHECKING

from baton.client.plotted_points import ChosenColumns, cells_of, chosen_columns, curve_of, unit_of

if TYPE_CHECKING:
    from baton.client.operations import PointFrame

WIDTH, HEIGHT = 620, 300
LEFT, RIGHT, TOP, BOTTOM = 80, 30, 28, 46
SCALE = 70  # On the right of a map, the scale of its shades.
MOST_DOTS, SHADES = 200, 5
STROKES = (("#3d87d1", ""), ("#c2790a", "7 3"), ("#2a9d70", "2 3"), ("#8a8f98", "10 3 2 3"))
"""Colours that are seen on white and on black, and dashes by which the lines are told apart without them."""


def figure_of(points: Sequence["PointFrame"], wanted: str) -> str:
    """Return the figure of points as `x:y` wants it, or as it suits them."""
    chosen = chosen_columns(points, wanted)
    cells = {} if chosen.second is None else cells_of(points, chosen)
    curves = {} if chosen.second is not None else {name: curve_of(points, chosen.x, name) for name in chosen.y}
    drawn = {name: pairs for name, pairs in curves.items() if pairs}
    if not cells and not drawn:
        return "<p>Nothing was measured yet.</p>"
    parts = map_parts(points, chosen, cells) if cells else curve_parts(points, chosen, drawn)
    label = f"{', '.join(drawn or chosen.y[:1])} over {chosen.x or 'points'}"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" aria-label="{escape(label)}" '
        f'style="max-width:100%;height:auto;font:12px system-ui,sans-serif" fill="currentColor">{"".join(parts)}</svg>'
    )


def curve_parts(
    points: Sequence["PointFrame"], chosen: ChosenColumns, curves: Mapping[str, Sequence[tuple[float, float]]]
) -> Iterator[str]:
    """Yield the axes, lines and names of curves."""
    every = [pair for pairs in curves.values() for pair in pairs]
    (left, right), (low, high) = (span_of(min(part), max(part)) for part in zip(*every, strict=True))

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = (x - left) / (right - left), (y - low) / (high - low)
        return round(LEFT + across * (WIDTH - LEFT - RIGHT), 1), round(HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM), 1)

    yield f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="currentColor"/>'
    for value in ticks(left, right):
        yield across_text(place(value, low)[0], value)
    for value in ticks(low, high):
        y = place(left, value)[1]
        yield f'<path d="M{LEFT} {y}H{WIDTH - RIGHT}" stroke="currentColor" stroke-opacity="0.2"/>{up_text(y, value)}'
    named = LEFT
    for (name, pairs), (colour, dashes) in zip(curves.items(), STROKES, strict=False):
        places = [place(*pair) for pair in pairs]
        path = " L".join(f"{x} {y}" for x, y in places)
        yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>'
        if len(places) <= MOST_DOTS:
            yield from (f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places)
        text = f"{name} {pairs[-1][1]:.6g} {unit_of(points, name)}".rstrip()
        yield f'<path d="M{named} 12h24" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>'
        yield f'<text x="{named + 30}" y="16">{escape(text)}</text>'
        named += 46 + 7 * len(text)
    yield axis_name((LEFT + WIDTH - RIGHT) / 2, chosen.x or "point", unit_of(points, chosen.x or ""))


def map_parts(
    points: Sequence["PointFrame"], chosen: ChosenColumns, cells: Mapping[tuple[float, float], float]
) -> Iterator[str]:
    """Yield the places of a map, each the stronger the larger its value, with the scale of the shades."""
    columns, rows = (sorted({place[number] for place in cells}) for number in (0, 1))
    low, high = span_of(min(cells.values()), max(cells.values()))
    wide, tall = (WIDTH - LEFT - SCALE - RIGHT) / len(columns), (HEIGHT - TOP - BOTTOM) / len(rows)
    at = [{value: number for number, value in enumerate(every)} for every in (columns, rows)]
    unit = unit_of(points, chosen.y[0])
    for (x, y), value in cells.items():
        yield rectangle(
            LEFT + at[0][x] * wide, HEIGHT - BOTTOM - (at[1][y] + 1) * tall, wide, tall, (value - low) / (high - low)
        )
    for number in range(0, len(columns), ceil(len(columns) / 8)):
        yield across_text(LEFT + (number + 0.5) * wide, columns[number])
    for number in range(0, len(rows), ceil(len(rows) / 8)):
        yield up_text(HEIGHT - BOTTOM - (number + 0.5) * tall, rows[number])
    beside, step = WIDTH - SCALE - RIGHT + 16, (HEIGHT - TOP - BOTTOM) / SHADES
    for shade in range(SHADES):
        y = HEIGHT - BOTTOM - (shade + 1) * step
        yield rectangle(beside, y, 12, step, (shade + 0.5) / SHADES)
        value = low + (shade + 0.5) / SHADES * (high - low)
        yield f'<text x="{beside + 16}" y="{y + step / 2 + 4:.1f}">{value:.4g}</text>'
    yield f'<text x="{LEFT}" y="16">{escape(f"{chosen.y[0]} {low:.6g} to {high:.6g} {unit}".rstrip())}</text>'
    yield axis_name((LEFT + WIDTH - SCALE - RIGHT) / 2, chosen.x or "", unit_of(points, chosen.x or ""))
    name = f"{chosen.second} ({unit})" if (unit := unit_of(points, chosen.second or "")) else chosen.second or ""
    middle = (TOP + HEIGHT - BOTTOM) / 2
    yield f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">{escape(name)}</text>'


def rectangle(x: float, y: float, wide: float, tall: float, share: float) -> str:
    size = f'x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
    return f'<rect {size} fill="{STROKES[0][0]}" fill-opacity="{0.15 + 0.85 * share:.2f}"/>'


def across_text(x: float, value: float) -> str:
    return f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{value:.6g}</text>'


def up_text(y: float, value: float) -> str:
    return f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:.6g}</text>'


def axis_name(x: float, name: str, unit: str) -> str:
    said = f"{name} ({unit})" if unit else name
    return f'<text x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(said)}</text>'


def span_of(low: float, high: float) -> tuple[float, float]:
    """Return a range that is not empty."""
    return (low, high) if high > low else (low - (abs(low) * 0.05 or 1.0), high + (abs(high) * 0.05 or 1.0))


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers between two."""
    power = 10.0 ** floor(log10((high - low) / count))
    step = power * next(factor for factor in (1, 2, 5, 10) if (high - low) / (power * factor) <= count)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]
