"""Points of a conduct in a terminal: a curve of braille dots, or of stars where the terminal has none, and plain rows."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from baton.client.operations import PointFrame

WIDTH, HEIGHT = 60, 10
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # Of a braille character, by row and column.
BLANK = 0x2800


def chosen_columns(points: Sequence["PointFrame"], wanted: str) -> tuple[str | None, str | None]:
    """Return what is drawn over what: as `x:y` says, else the first value over the axis that changes most often."""
    axes, values = ([*dict.fromkeys(name for one in points for name in part(one))] for part in (axes_of, values_of))
    changes = {name: sum(one.axes.get(name) != other.axes.get(name) for one, other in pairwise(points)) for name in axes}
    ends = [place for place, letter in enumerate(f"{wanted}:") if letter == ":"]  # addresses have colons, too
    end = next((place for place in ends if wanted[:place] in axes), ends[-2:][0])
    x, y = wanted[:end], wanted[end + 1 :]
    return x or max(changes, key=lambda name: changes[name], default=None), y or next(iter(values), None)


def axes_of(point: "PointFrame") -> Iterable[str]:
    """Return the names of the axes."""
    return point.axes


def values_of(point: "PointFrame") -> Iterable[str]:
    """Return the names of what was measured as a number."""
    return [name for name, value in point.values.items() if is_number(value)]


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value can be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def curve_lines(points: Sequence["PointFrame"], wanted: str, *, braille: bool) -> list[str]:
    """Return the curve of points in lines; none while there is nothing to draw."""
    x, y = chosen_columns(points, wanted)
    pairs = [
        (at if x is not None else number, one.values.get(y or ""))
        for number, one in enumerate(points)
        for at in [one.axes.get(x or "")]
    ]
    drawn = [(float(at), float(value)) for at, value in pairs if is_number(at) and is_number(value)]
    if not drawn:
        return []
    (left, right), (low, high) = ((min(part), max(part)) for part in zip(*drawn, strict=True))
    across, down = (2, 4) if braille else (1, 1)
    marked = {
        (
            round((value - low) / ((high - low) or 1) * (HEIGHT * down - 1)),
            round((at - left) / ((right - left) or 1) * (WIDTH * across - 1)),
        )
        for at, value in drawn
    }
    lines = [line_of(marked, HEIGHT - 1 - row, braille=braille) for row in range(HEIGHT)]
    unit = next((one.units[y] for one in points if y in one.units), "")
    head = f"{y} {low:.6g} to {high:.6g} {unit}".rstrip()
    return [head, *lines, f"{x or 'point'} {left:.6g} to {right:.6g}"]


def line_of(marked: set[tuple[int, int]], row: int, *, braille: bool) -> str:
    """Return one line of a curve, counted from below."""
    if not braille:
        return "".join("*" if (row, column) in marked else " " for column in range(WIDTH)).rstrip()
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
