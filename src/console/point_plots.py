"""Points of a procedure as pages show them: the curve, map or scatter that fits them, and the latest ones as a table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from markupsafe import Markup

from baton.console.page import Context
from baton.console.page_queries import PageQueries
from baton.console.plots import PlotAxis, Series, heat_map, line_plot, scatter_plot
from baton.console.units import load_units, other_units
from baton.domain.conduct.point_list import ListedPoint, ListProcedurePoints, ProcedurePoints
from baton.domain.conduct.points import Scalar, is_plottable
from baton.domain.recipe.plots import MOST_VALUES, PlotShape
from baton.domain.shared.units import UnitError, convert

MOST_MARKS, SHOWN_POINTS, MOST_DOTS = 2000, 20, 200
PlacedValue = tuple[float, float | None, float]  # Over what, beside what, and the value.
TIME, PASS = "time", "pass"
X, SECOND, Y, UNIT = "x", "over", "y", "unit"  # What an address may say of a plot.


@dataclass(frozen=True)
class Curve:
    """Values of points in one unit over something, as they are drawn."""

    names: tuple[str, ...]
    unit: str | None
    x: PlotAxis
    second: PlotAxis | None
    lines: tuple[tuple[PlacedValue, ...], ...]
    refusal: str | None = None

    @property
    def name(self) -> str:
        return ", ".join(self.names)

    @property
    def values(self) -> Sequence[float]:
        return [value for line in self.lines for _, _, value in line]

    @property
    def label(self) -> str:
        """What it shows, for readers of screens."""
        over = self.x.name if self.second is None else f"{self.x.name} and {self.second.name}"
        latest = [f"{line[-1][2]:.6g}" for line in self.lines if line]
        verb = "are" if len(latest) > 1 else "is"
        said = f"; the latest {verb} {' and '.join(latest)} {self.unit or ''}".rstrip() if latest else ""
        return f"{self.name} over {over}{said}"


async def load_plot(
    queries: PageQueries, procedure_id: UUID, href: str, next_point: dict[str, Any] | None = None
) -> Context:
    """Return the plot of a procedure and the table of its latest points, as the address wants them."""
    found = await queries.ask(ListProcedurePoints, procedure_id, thin=MOST_MARKS)
    names = list(dict.fromkeys(column.name for column in found.values))
    if found.values:
        await load_units()
    curve = curve_of(found, queries.query)
    columns = [*found.axes, *found.values]
    return {
        "curve": curve,
        "plot": None if curve is None else picture_of(found, curve, queries.zone, next_point),
        "points": found,
        "choices": {
            ",".join(several): ", ".join(several) for several in ([found.y, *([name] for name in names)]) if several
        },
        "over": [*(axis.name for axis in found.axes), PASS if found.items and found.items[0].iteration_index else TIME],
        "units": () if curve is None else other_units(own_unit(found, curve.names[0])),
        "columns": columns,
        "rows": [(one, (*one.axes, *one.values)) for one in reversed(found.items[-SHOWN_POINTS:])],
        "href": href,
        "csv_href": f"/console/procedures/{procedure_id}/points.csv",
    }


def own_unit(found: ProcedurePoints, name: str) -> str | None:
    """Return the unit in which a value was measured last."""
    return next((column.unit for column in reversed(found.values) if column.name == name), None)


def chosen_values(found: ProcedurePoints, wanted: str | None) -> Sequence[str]:
    """Return the values that an address names, with commas between, as far as they have the unit of the first; left out,
    those that are suggested."""
    known = {column.name for column in found.values}
    named = [wanted] if wanted in known else [one for one in (wanted or "").split(",") if one in known]
    chosen = dict.fromkeys(named or [one for one in found.y if one in known])
    return [name for name in chosen if own_unit(found, name) == own_unit(found, next(iter(chosen)))][:MOST_VALUES]


def curve_of(found: ProcedurePoints, wanted: Mapping[str, str]) -> Curve | None:
    """Return what is drawn: as the address wants it, else as it is suggested; None where there is nothing to draw."""
    names = chosen_values(found, wanted.get(Y))
    if not names:
        return None
    over = PASS if found.shape is PlotShape.PASSES else TIME
    units = {axis.name: axis.unit for axis in found.axes}
    asked = wanted.get(X)
    x = asked if asked is not None and asked in (*units, TIME, PASS) else found.x or over
    second = found.second if x == found.x and found.shape is not PlotShape.LINE else None
    names, own = names if second is None else names[:1], own_unit(found, names[0])
    lines = [tuple(marks_of(found, name, own, x, second)) for name in names]
    beside = None if second is None else PlotAxis(second, units[second])
    return in_unit(Curve(tuple(names), own, PlotAxis(x, units.get(x)), beside, tuple(lines)), wanted.get(UNIT))


def marks_of(found: ProcedurePoints, name: str, unit: str | None, x: str, second: str | None) -> Iterator[PlacedValue]:
    """Yield where a value was measured, and the value."""
    axes = [axis.name for axis in found.axes]
    column = next(n for n, one in enumerate(found.values) if (one.name, one.unit) == (name, unit))
    for one in found.items:
        across, value = coordinate(one, axes, x), number_of(one.values[column])
        beside = None if second is None else coordinate(one, axes, second)
        if across is not None and value is not None and (second is None or beside is not None):
            yield across, beside, value


def in_unit(curve: Curve, unit: str | None) -> Curve:
    """Return a curve in the unit that an address wants, or with what speaks against it."""
    if unit is None or curve.unit is None or unit == curve.unit:
        return curve
    own = curve.unit
    try:
        lines = tuple(tuple((x, beside, convert(value, own, unit)) for x, beside, value in line) for line in curve.lines)
    except UnitError:
        return replace(curve, refusal=f"What is measured in {own} cannot be shown in {unit}; choose another unit.")
    return replace(curve, unit=unit, lines=lines)


def coordinate(point: ListedPoint, axes: Sequence[str], name: str) -> float | None:
    """Return where a point is along an axis, in time or in passes."""
    if name in axes:
        return number_of(point.axes[axes.index(name)])
    if name == PASS:
        return point.iteration_index
    return point.at.timestamp()


def number_of(value: Scalar) -> float | None:
    return float(value) if isinstance(value, int | float) and is_plottable(value) else None


def picture_of(found: ProcedurePoints, curve: Curve, zone: ZoneInfo, next_point: dict[str, Any] | None = None) -> Markup:
    """Return the picture of a curve: a map of a grid, sampled points of a search, else lines."""
    is_objective, ahead = curve.name == found.objective, next_place(found, next_point)
    best = found.best.value if found.best is not None and is_objective else None
    if curve.second is not None:
        marks = [(x, beside, value) for x, beside, value in curve.lines[0] if beside is not None]
        shown: Any = {"label": curve.label, "x_axis": curve.x, "y_axis": curve.second, "unit": curve.unit}
        if found.shape is PlotShape.GRID:
            block = 1 if found.grid is None else found.grid.block
            return heat_map({(x, beside): value for x, beside, value in marks}, **shown, block=block)
        return scatter_plot(marks, **shown, best=best, ahead=(ahead[0], ahead[1]) if len(ahead) == 2 else None)
    is_search = found.shape is PlotShape.SCATTER
    lines = [tuple((x, value) for x, _, value in line) for line in curve.lines]
    return line_plot(
        [
            Series(name, tuple(sorted(line)) if is_search else line, curve.unit)
            for name, line in zip(curve.names, lines, strict=True)
        ],
        label=curve.label,
        band=None if found.band is None or not is_objective else (found.band.low, found.band.high),
        zone=zone if curve.x.name == TIME else None,
        x_label="" if curve.x.name == TIME else curve.x.label,
        dots=sum(map(len, lines)) <= MOST_DOTS,
        counted=curve.x.name == PASS,
        latest=not is_search,
        best=best,
        ahead=ahead[0] if is_search and len(ahead) == 1 and curve.x.name == found.x else None,
    )


def next_place(found: ProcedurePoints, point: dict[str, Any] | None) -> Sequence[float]:
    """Return where a search measures next, along each of its axes; nothing where that is not known of all."""
    numbers = [one for one in map(number_of, (point or {}).values()) if one is not None]
    return numbers if len(numbers) == len(found.axes) else ()


def csv_heading(plan: ProcedurePoints) -> str:
    """Return the heading of a table of points: every column with its unit."""
    named = [one.name if one.unit is None else f"{one.name} ({one.unit})" for one in (*plan.axes, *plan.values)]
    return csv_line(["at", "pass", "step", *named, "quality"])


def csv_points(page: ProcedurePoints, plan: ProcedurePoints) -> str:
    """Return the points of a page as lines, in the columns of the plan."""
    columns = [(one.name, one.unit) for one in page.values]
    lines = []
    for one in page.items:
        said = dict(zip(columns, one.values, strict=True))
        values = [said.get((column.name, column.unit)) for column in plan.values]
        lines.append(csv_line([one.at, one.iteration_index, one.step_index, *one.axes, *values, one.quality]))
    return "".join(lines)


def csv_line(cells: Sequence[Scalar | datetime]) -> str:
    """Return a line of a table for spreadsheets, in which no text is a formula."""
    return ",".join(map(csv_cell, cells)) + "\r\n"


def csv_cell(value: Scalar | datetime) -> str:
    """Return a cell; a text that a spreadsheet would take for a formula begins with an apostrophe."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return value.isoformat() if isinstance(value, datetime) else str(value)
    text = f"'{value}" if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\r\n') else text
