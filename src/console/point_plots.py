"""Points of a procedure as pages show them: the curve, map or scatter that fits them, and the latest ones as a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from markupsafe import Markup

from baton.console.page import Context
from baton.console.page_queries import PageQueries
from baton.console.plots import Series, heat_map, line_plot, scatter_plot
from baton.console.units import load_units, other_units
from baton.domain.conduct.point_list import ListedPoint, ListProcedurePoints, ProcedurePoints
from baton.domain.conduct.points import PlotShape, Scalar, is_plottable
from baton.domain.shared.units import UnitError, convert

MOST_MARKS, SHOWN_POINTS = 2000, 20
TIME, PASS = "time", "pass"
X, SECOND, Y, UNIT = "x", "over", "y", "unit"  # What an address may say of a plot.


@dataclass(frozen=True)
class Curve:
    """A value of points over something, as it is drawn."""

    name: str
    unit: str | None
    x: str
    second: str | None
    marks: tuple[tuple[float, float | None, float], ...]  # Over what, beside what, and the value.
    refusal: str | None = None

    @property
    def lowest(self) -> float:
        return min((value for _, _, value in self.marks), default=0.0)

    @property
    def highest(self) -> float:
        return max((value for _, _, value in self.marks), default=0.0)

    @property
    def label(self) -> str:
        """What it shows, for readers of screens."""
        over = self.x if self.second is None else f"{self.x} and {self.second}"
        latest = f"; the latest is {self.marks[-1][2]:.6g} {self.unit or ''}".rstrip() if self.marks else ""
        return f"{self.name} over {over}{latest}"


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
        "names": names,
        "over": [*(axis.name for axis in found.axes), PASS if found.items and found.items[0].iteration_index else TIME],
        "units": () if curve is None else other_units(own_unit(found, curve.name)),
        "columns": columns,
        "rows": [(one, (*one.axes, *one.values)) for one in reversed(found.items[-SHOWN_POINTS:])],
        "href": href,
        "csv_href": f"/console/procedures/{procedure_id}/points.csv",
    }


def own_unit(found: ProcedurePoints, name: str) -> str | None:
    """Return the unit in which a value was measured last."""
    return next((column.unit for column in reversed(found.values) if column.name == name), None)


def curve_of(found: ProcedurePoints, wanted: Any) -> Curve | None:
    """Return what is drawn: as the address wants it, else as it is suggested; None where there is nothing to draw."""
    names = [column.name for column in found.values]
    name = wanted.get(Y) if wanted.get(Y) in names else next(iter(found.y), None)
    if name is None:
        return None
    over = PASS if found.shape is PlotShape.PASSES else TIME
    axes = [axis.name for axis in found.axes]
    x = wanted.get(X) if wanted.get(X) in (*axes, TIME, PASS) else found.x or over
    second = found.second if wanted.get(X) in (None, found.x) and found.shape is not PlotShape.LINE else None
    own = own_unit(found, name)
    marks = [
        (across, beside, height)
        for one in found.items
        if (across := coordinate(one, axes, x)) is not None
        and (height := plotted_value(one, found, name, own)) is not None
        and ((beside := None if second is None else coordinate(one, axes, second)) is not None or second is None)
    ]
    curve = Curve(name, own, x, second, tuple(marks))
    return in_unit(curve, wanted.get(UNIT))


def in_unit(curve: Curve, unit: str | None) -> Curve:
    """Return a curve in the unit that an address wants, or with what speaks against it."""
    if unit is None or curve.unit is None or unit == curve.unit:
        return curve
    try:
        marks = tuple((x, beside, convert(value, curve.unit, unit)) for x, beside, value in curve.marks)
    except UnitError:
        why = f"What is measured in {curve.unit} cannot be shown in {unit}; choose another unit."
        return Curve(curve.name, curve.unit, curve.x, curve.second, curve.marks, why)
    return Curve(curve.name, unit, curve.x, curve.second, marks)


def coordinate(point: ListedPoint, axes: Sequence[str], name: str) -> float | None:
    """Return where a point is along an axis, in time or in passes."""
    if name in axes:
        return number_of(point.axes[axes.index(name)])
    if name == PASS:
        return point.iteration_index
    return point.at.timestamp()


def plotted_value(point: ListedPoint, found: ProcedurePoints, name: str, unit: str | None) -> float | None:
    """Return a value of a point as a number, where it was measured in the unit that is drawn."""
    values = zip(found.values, point.values, strict=True)
    return next((number_of(value) for column, value in values if (column.name, column.unit) == (name, unit)), None)


def number_of(value: Scalar) -> float | None:
    return float(value) if isinstance(value, int | float) and is_plottable(value) else None


def picture_of(found: ProcedurePoints, curve: Curve, zone: ZoneInfo, next_point: dict[str, Any] | None = None) -> Markup:
    """Return the picture of a curve: a map of a grid, sampled points of a search, else a line."""
    best = found.best.value if found.best is not None and curve.name == found.objective else None
    if curve.second is not None and found.shape is PlotShape.GRID:
        cells = {(x, beside): value for x, beside, value in curve.marks if beside is not None}
        return heat_map(cells, label=curve.label, x_label=curve.x, y_label=curve.second, unit=curve.unit)
    if curve.second is not None:
        dots = [(x, beside, value) for x, beside, value in curve.marks if beside is not None]
        ahead = next_place(found, next_point)
        return scatter_plot(
            dots, label=curve.label, x_label=curve.x, y_label=curve.second, unit=curve.unit, best=best, ahead=ahead
        )
    band = None if found.band is None or curve.name != found.objective else (found.band.low, found.band.high)
    points = [(x, value) for x, _, value in curve.marks]
    ordered = tuple(sorted(points) if found.shape is PlotShape.SCATTER else points)
    return line_plot(
        [Series(curve.name, ordered, curve.unit)],
        label=curve.label,
        band=band,
        zone=zone if curve.x == TIME else None,
        x_label="" if curve.x == TIME else curve.x,
        dots=len(points) <= 200,
        counted=curve.x == PASS,
        latest=found.shape is not PlotShape.SCATTER,
        best=best,
    )


def next_place(found: ProcedurePoints, point: dict[str, Any] | None) -> tuple[float, float] | None:
    """Return where a search of two axes measures next."""
    places = [number_of(value) for value in (point or {}).values()]
    numbers = [one for one in places if one is not None]
    return (numbers[0], numbers[1]) if len(numbers) == 2 and len(found.axes) == 2 else None


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
