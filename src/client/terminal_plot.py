"""Points of a conduct in a terminal: a curve of braille dots, or of stars where the terminal has none, a map of shades, and
plain rows."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from baton.client.plotted_points import ChosenColumns, cells_of, chosen_columns, curve_of, is_number, unit_of

if TYPE_CHECKING:
    from baton.client.operations import PointFrame

WIDTH, HEIGHT = 60, 10
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # Of a braille character, by row and column.
BLANK = 0x2800
MARKS = "ox+*"  # Of several curves, one for each; as many as there may be.
SHADES, PLAIN_SHADES = "░▒▓█", ".:*#"


def curve_lines(points: Sequence["PointFrame"], wanted: str, *, braille: bool) -> list[str]:
    """Return the curves of points in lines, or their map; none while there is nothing to draw."""
    chosen = chosen_columns(points, wanted)
    if chosen.second is not None:
        return map_lines(points, chosen, blocks=braille)
    curves = {name: pairs for name in chosen.y if (pairs := curve_of(points, chosen.x, name))}
    if not curves:
        return []
    every = [pair for pairs in curves.values() for pair in pairs]
    (left, right), (low, high) = ((min(part), max(part)) for part in zip(*every, strict=True))
    dotted = braille and len(curves) == 1  # dots of several curves cannot be told apart
    across, down = (2, 4) if dotted else (1, 1)
    marked = {
        (
            round((value - low) / ((high - low) or 1) * (HEIGHT * down - 1)),
            round((at - left) / ((right - left) or 1) * (WIDTH * across - 1)),
        ): mark
        for mark, pairs in zip(MARKS if len(curves) > 1 else "*", curves.values(), strict=False)
        for at, value in pairs
    }
    lines = [line_of(marked, HEIGHT - 1 - row, braille=dotted) for row in range(HEIGHT)]
    named = [f"{mark} {name}" for mark, name in zip(MARKS, curves, strict=False)] if len(curves) > 1 else [*curves]
    head = f"{', '.join(named)} {low:.6g} to {high:.6g} {unit_of(points, next(iter(curves)))}".rstrip()
    foot = f"{chosen.x or 'point'} {left:.6g} to {right:.6g} {unit_of(points, chosen.x or '')}".rstrip()
    return [head, *lines, foot]


def map_lines(points: Sequence["PointFrame"], chosen: ChosenColumns, *, blocks: bool) -> list[str]:
    """Return a map of a grid: a shade for each place, the stronger the larger what was measured there."""
    cells = cells_of(points, chosen)
    if not cells:
        return []
    name, low, high = chosen.y[0], min(cells.values()), max(cells.values())
    columns, rows = (sorted({place[number] for place in cells}) for number in (0, 1))
    shades, wide = SHADES if blocks else PLAIN_SHADES, max(1, min(4, WIDTH // len(columns)))

    def shade(value: float | None) -> str:
        if value is None:
            return " " * wide
        return shades[min(len(shades) - 1, int((value - low) / ((high - low) or 1) * len(shades)))] * wide

    lines = ["".join(shade(cells.get((column, row))) for column in columns).rstrip() for row in reversed(rows)]
    head = f"{name} {low:.6g} ({shades[0]}) to {high:.6g} ({shades[-1]}) {unit_of(points, name)}".rstrip()
    ends = [
        f"{axis} {every[0]:.6g} to {every[-1]:.6g} {unit_of(points, axis or '')}".rstrip()
        for axis, every in ((chosen.x, columns), (chosen.second, rows))
    ]
    return [head, *lines, f"{ends[0]} across, {ends[1]} up"]


def line_of(marked: Mapping[tuple[int, int], str], row: int, *, braille: bool) -> str:
    """Return one line of a curve, counted from below."""
    if not braille:
        return "".join(marked.get((row, column), " ") for column in range(WIDTH)).rstrip()
    cells = [
        sum(DOTS[3 - up][right] for up in range(4) for right in range(2) if (4 * row + up, 2 * column + right) in marked)
        for column in range(WIDTH)
    ]
    return "".join(chr(BLANK + cell) for cell in cells)


def row_line(point: "PointFrame") -> str:
    """Return a point as one line."""
    told = [*point.axes.items(), *point.values.items()]
    parts = [
        f"{name} {f'{value:.6g}' if is_number(value) else value} {point.units.get(name, '')}".rstrip()
        for name, value in told
    ]
    return "  ".join([f"{point.at:%H:%M:%S}", *parts])
