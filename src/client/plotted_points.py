"""Points of a conduct as they are drawn: which values over which axis, and the numbers of a curve or a map."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

if TYPE_CHECKING:
    from baton.client.operations import PointFrame

MOST_VALUES = 4  # of one plot
MOST_COLUMNS, MOST_ROWS = 60, 60  # of a map


class ChosenColumns(NamedTuple):
    """What is drawn over what."""

    x: str | None
    y: Sequence[str]
    second: str | None = None  # The other axis of a map.


def chosen_columns(points: Sequence["PointFrame"], wanted: str) -> ChosenColumns:
    """Return what is drawn over what: as `x:y` says, where `y` may be several with commas between, else the number that most
    points have, with others of its unit, over the axis that changes most often; beside the other one on a grid."""
    axes = [*dict.fromkeys(name for one in points for name in one.axes)]
    counts = Counter(name for one in points for name, value in one.values.items() if is_number(value))
    changes = {name: sum(one.axes.get(name) != other.axes.get(name) for one, other in pairwise(points)) for name in axes}
    ends = [place for place, letter in enumerate(f"{wanted}:") if letter == ":"]  # addresses have colons, too
    end = next((place for place in ends if wanted[:place] in axes), ends[-2:][0])
    x, y = wanted[:end], wanted[end + 1 :]
    named = [y] if y in counts else [one for one in y.split(",") if one in counts]
    names = named or suggested_values(points, counts)
    fast = max(changes, key=lambda name: changes[name], default=None)
    moving = [name for name, count in changes.items() if count]
    second = next((name for name in moving if name != fast), None) if not x and len(moving) == 2 else None
    if fast is not None and second is not None and is_grid(points, fast, second):
        return ChosenColumns(fast, names[:1], second)
    return ChosenColumns(x or fast, names)


def suggested_values(points: Sequence["PointFrame"], counts: Mapping[str, int]) -> list[str]:
    """Return the numbers that most points have, the first of equals, with others of the same unit that as many have."""
    units = {name: unit for one in points for name, unit in one.units.items()}
    most = max(counts.values(), default=0)
    names = [name for name, count in counts.items() if count == most]
    return [name for name in names if units.get(name) == units.get(names[0])][:MOST_VALUES]


def is_grid(points: Sequence["PointFrame"], x: str, y: str) -> bool:
    """Return whether places are on a lattice that can be shown: more of them than along either axis."""
    places = {(one.axes.get(x), one.axes.get(y)) for one in points}
    columns, rows = ({place[number] for place in places} for number in (0, 1))
    numbers = all(map(is_number, [*columns, *rows]))
    return (
        numbers and len(columns) <= MOST_COLUMNS and len(rows) <= MOST_ROWS and len(places) > max(len(columns), len(rows), 2)
    )


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value can be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def curve_of(points: Sequence["PointFrame"], x: str | None, name: str) -> list[tuple[float, float]]:
    """Return where a value was measured, or as which point, and the value."""
    pairs = [(number if x is None else one.axes.get(x), one.values.get(name)) for number, one in enumerate(points)]
    return [(float(at), float(value)) for at, value in pairs if is_number(at) and is_number(value)]


def unit_of(points: Sequence["PointFrame"], name: str) -> str:
    """Return the unit of an axis or a value, as it was told last."""
    return next((one.units[name] for one in reversed(points) if name in one.units), "")


def cells_of(points: Sequence["PointFrame"], chosen: ChosenColumns) -> dict[tuple[float, float], float]:
    """Return what was measured at each place of a map; the last where that was several times."""
    name = next(iter(chosen.y), "")
    rows = [(one.axes.get(chosen.x or ""), one.axes.get(chosen.second or ""), one.values.get(name)) for one in points]
    return {
        (float(at), float(beside)): float(value)
        for at, beside, value in rows
        if is_number(at) and is_number(beside) and is_number(value)
    }
