"""The points of a conduct: what it measured at each place where it set its axes. They follow from rows of the ledger alone,
so that every reader, take-over and repetition has the same ones."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from baton.domain.conduct.frames import MOMENTS, PER_STEP, LedgerPosition, Outline
from baton.domain.conduct.ledger import PointRow
from baton.domain.conduct.messages import Mark
from baton.domain.procedure.activity_logbook import StepKind
from baton.domain.recipe.plots import Listed, PlotShape, RecipePlot, value_names
from baton.domain.recipe.steps import is_finite
from baton.domain.step.step_values import GOOD

Scalar = int | float | str | bool | None
SCALARS = (int, float, str)
NOT_FINITE = frozenset({"nan", "inf", "-inf"})  # What a row of the ledger holds in place of such a number.
SETPOINT, CAPTURE = StepKind.SETPOINT.value, StepKind.CAPTURE.value
MEASURING = frozenset({StepKind.CAPTURE.value, StepKind.COMPUTE.value, StepKind.ACTION.value})
STEERING = "__steering__"


class Scale(NamedTuple):
    """How many places a grid has along its fastest axis and along the other one."""

    columns: int
    rows: int


class Setting(NamedTuple):
    """Where an axis is: what it was set to and what was read back, both in the unit of its signal."""

    value: Scalar = None
    read_back: Scalar = None
    unit: str | None = None


NOT_SET = Setting()


class PointValue(NamedTuple):
    """A value of a point; a gap has none."""

    value: Scalar
    unit: str | None = None
    quality: str = GOOD
    is_finite: bool = True  # Whether it is no NaN and no infinity, which are gaps.


class PlacedPoint(NamedTuple):
    """What a conduct measured at one place."""

    ordinal: int  # That of its first row.
    at: datetime
    iteration_index: int
    step_index: int
    axes: tuple[Setting, ...]
    values: Mapping[str, PointValue]
    unlisted: frozenset[str] = frozenset()  # Arrays, tables and files.
    closed_by: int | None = None  # The ordinal of what closed it; None while it is open.


@dataclass(frozen=True)
class PointPlan:
    """What a pinned list says of its points: the axes, where each is set, and the names of its values."""

    axes: tuple[str, ...] = ()
    set_at: tuple[tuple[int, ...], ...] = ()  # By axis, the indexes of its setpoints.
    rows_per_point: int = 1  # How many rows a point usually has.
    names: Mapping[str, str] = field(default_factory=dict)  # Of captures, the names of the values that they belong to.
    shape: PlotShape = PlotShape.LINE
    x: str | None = None
    second: str | None = None  # The other axis of a grid or scatter.
    y: tuple[str, ...] = ()  # The values that the recipe wants to be drawn.
    scale: Scale | None = None
    objective: str | None = None  # The value that a loop is judged by.
    band: tuple[float, float] | None = None  # What that must come into.

    def start(self, index: int) -> int:
        """Return the step, at an index or before it, at which no point is open."""
        alone = not self.axes and self.shape is PlotShape.LINE  # Each row is a point of its own.
        return max((one for places in self.set_at for one in places if one <= index), default=index if alone else 0)

    def seeds(self, start: int) -> tuple[int, ...]:
        """Return the steps before a start that have set the axes last."""
        last = (max((one for one in places if one < start), default=None) for places in self.set_at)
        return tuple(sorted(one for one in last if one is not None))


def plan_of(
    steps: Sequence[Listed], *, loops: bool, convergence: Mapping[str, Any] | None = None, plot: RecipePlot | None = None
) -> PointPlan:
    """Return what a list of steps says of its points, the convergence of a loop of what it is judged by, and the recipe of
    what is drawn."""
    setpoints = [(index, step) for index, step in enumerate(steps) if step["kind"] == SETPOINT]
    values: dict[str, dict[str, Any]] = {}
    for _, step in setpoints:
        values.setdefault(step["address"], {})[repr(step["value"])] = step["value"]
    steered = {address: any(map(is_steered, found.values())) for address, found in values.items()}
    axes = tuple(address for address, found in values.items() if len(found) > 1 or steered[address])
    set_at = tuple(tuple(index for index, step in setpoints if step["address"] == axis) for axis in axes)
    places = planned_places(steps, axes)
    row_count = sum(map(len, set_at)) + sum(step["kind"] in MEASURING for step in steps)
    rows_per_point = math.ceil(row_count / len(places)) if places else 1
    plan = PointPlan(axes, set_at, rows_per_point, value_names(steps))
    if convergence is not None:
        name = convergence["capture_name"]
        plan = replace(plan, objective=plan.names.get(name, name), band=band_of(convergence["criterion"]))
    found = steered_plan(plan, [axis for axis in axes if steered[axis]]) if loops else suggested_plan(plan, places)
    return found if plot is None else wanted_plan(found, plot)


def wanted_plan(plan: PointPlan, plot: RecipePlot) -> PointPlan:
    """Return a plan as the recipe wants it to be drawn; over an axis that is not moved here, as it is suggested anyway."""
    plan = replace(plan, y=tuple(dict.fromkeys(plan.names.get(name, name) for name in plot.y)))
    if plot.x not in plan.axes:
        return plan
    is_known = plot.x in (plan.x, plan.second)
    scale = None if plan.scale is None or not is_known else plan.scale
    if scale is not None and plot.x == plan.second:
        scale = Scale(scale.rows, scale.columns)
    beside = next((one for one in (plan.second, plan.x) if one not in (None, plot.x)), None)
    suggested = plan.shape if is_known else PlotShape.LINE
    shape = plot.kind or suggested
    if shape in (PlotShape.LINE, PlotShape.PASSES):
        beside = scale = None
    elif beside is None and shape is PlotShape.GRID:
        shape = suggested  # a map takes two axes
    return replace(plan, shape=shape, x=plot.x, second=beside, scale=scale)


def band_of(criterion: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the range of the numbers that meet a criterion; None where it is none."""
    expected, tolerance = criterion["expected"], criterion.get("tolerance")
    return None if tolerance is None else (expected - tolerance, expected + tolerance)


def is_steered(value: object) -> bool:
    """Return whether a decider says what a setpoint is set to."""
    return isinstance(value, Mapping) and STEERING in value


def planned_places(steps: Iterable[Listed], axes: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return where a list measures: for each place what the axes are set to."""
    places: list[tuple[Any, ...]] = []
    at: dict[str, Any] = {}
    moved = False
    for step in steps:
        if step["kind"] == SETPOINT and step["address"] in axes:
            at[step["address"]], moved = step["value"], True
        elif step["kind"] in MEASURING and moved:
            places.append(tuple(at.get(axis) for axis in axes))
            moved = False
    return places


def steered_plan(plan: PointPlan, steered: Sequence[str]) -> PointPlan:
    """Return the suggestion for a loop or a search: a search along one or two axes shows where it measured."""
    if not steered:
        return replace(plan, shape=PlotShape.PASSES)
    return replace(plan, shape=PlotShape.SCATTER, x=steered[0], second=steered[1] if len(steered) > 1 else None)


def suggested_plan(plan: PointPlan, places: Sequence[tuple[Any, ...]]) -> PointPlan:
    """Return the suggestion for a list that is walked once: over the axis that changes most often, of equals the first."""
    changes = [sum(one[number] != other[number] for one, other in pairwise(places)) for number in range(len(plan.axes))]
    moving = [number for number, count in enumerate(changes) if count]
    if not moving:
        return replace(plan, x=plan.axes[0] if plan.axes else None)
    fast = max(moving, key=lambda number: (changes[number], -number))
    if len(moving) != 2:
        return replace(plan, x=plan.axes[fast])
    slow = next(number for number in moving if number != fast)
    scale = grid_scale([(one[fast], one[slow]) for one in places])
    shape = PlotShape.SCATTER if scale is None else PlotShape.GRID
    return replace(plan, shape=shape, x=plan.axes[fast], second=plan.axes[slow], scale=scale)


def grid_scale(places: Sequence[tuple[Any, Any]]) -> Scale | None:
    """Return how many places lie along either axis, where every place of the lattice is there; None where some are not."""
    if not all(is_plottable(value) for place in places for value in place):
        return None
    columns, rows = ({place[number] for place in places} for number in (0, 1))
    full = len(columns) > 1 and len(rows) > 1 and len(set(places)) == len(columns) * len(rows)
    return Scale(len(columns), len(rows)) if full else None


def is_plottable(value: object) -> bool:
    """Return whether a value can be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool) and is_finite(value)


@dataclass
class OpenPoint:
    """A point that still collects values."""

    ordinal: int
    at: datetime
    iteration_index: int
    step_index: int
    values: dict[str, PointValue]
    unlisted: set[str]


class PointFold:
    """Folds rows of the ledger, in the order of their places, to points; a row that it has seen changes nothing.

    An axis is where the same pass has set it: what an earlier pass has left is not carried into the next.
    """

    def __init__(self, outline: Outline, plan: PointPlan) -> None:
        self._outline, self._plan = outline, plan
        self._place = (-1, -1)  # The pass and the step of the row that it took last.
        self._first = 0  # The ordinal of the first step of that pass.
        self._axes: dict[str, Setting] = {}
        self._open: OpenPoint | None = None

    def take(self, rows: Iterable[PointRow]) -> list[PlacedPoint]:
        """Take rows, and return the points that they close."""
        closed: list[PlacedPoint] = []
        for row in rows:
            place = row.iteration_index, row.step_index
            if place <= self._place:
                continue
            if row.iteration_index != self._place[0]:
                closed += self.end_pass()
                self._first = self._outline.step(LedgerPosition(False, row.iteration_index, 0), Mark.IN_FLIGHT)
            self._place = place
            if row.kind == SETPOINT:
                closed += self._close(row.step_index)
                self._axes[row.address or ""] = setting_of(row)
            elif self._axes or not self._plan.axes:
                closed += self._measure(row)
        return closed

    @property
    def end_ordinal(self) -> int:
        """The ordinal at which the end of the pass closes a point."""
        last = LedgerPosition(False, max(0, self._place[0]), self._outline.step_count - 1)
        return self._outline.step(last, Mark.DEPOSIT)

    def end_pass(self) -> Sequence[PlacedPoint]:
        """Return the open point, which the end of its pass closes."""
        closed = self._close(self._outline.step_count - 1)
        self._axes = {}
        return closed

    @property
    def open_point(self) -> PlacedPoint | None:
        """The point that still collects values, if there is one."""
        if self._open is None:
            return None
        return self._point_of(replace(self._open, values={**self._open.values}), None)

    def _measure(self, row: PointRow) -> Sequence[PlacedPoint]:
        values, unlisted = values_in(row, self._plan.names)
        closed: Sequence[PlacedPoint] = ()
        if self._open is not None and not values.keys().isdisjoint(self._open.values):
            closed = self._close(row.step_index)  # it is measured again where it was measured before
        if self._open is None:
            ordinal = self._ordinal(row.step_index, Mark.OUTCOME)
            self._open = OpenPoint(ordinal, row.recorded_at, *self._place, values, unlisted)
        else:
            self._open.values |= values
            self._open.unlisted |= unlisted
        if not self._plan.axes and not self._outline.loops:
            return self._close(row.step_index)
        return closed

    def _close(self, step_index: int) -> Sequence[PlacedPoint]:
        if self._open is None:
            return ()
        closed, self._open = self._open, None
        return (self._point_of(closed, self._ordinal(step_index, Mark.DEPOSIT)),)

    def _ordinal(self, step_index: int, mark: Mark) -> int:
        return self._first + PER_STEP * step_index + MOMENTS[mark]

    def _point_of(self, point: OpenPoint, closed_by: int | None) -> PlacedPoint:
        axes = tuple([self._axes.get(axis, NOT_SET) for axis in self._plan.axes])
        place = point.ordinal, point.at, point.iteration_index, point.step_index
        return PlacedPoint(*place, axes, point.values, frozenset(point.unlisted), closed_by)


def setting_of(row: PointRow) -> Setting:
    """Return where a setpoint left its axis; a gap where it failed or was left out."""
    return Setting(scalar_of(row.value), scalar_of(row.read_back), row.unit) if row.is_done else Setting()


def values_in(row: PointRow, names: Mapping[str, str]) -> tuple[dict[str, PointValue], set[str]]:
    """Return the values that a row measured, and the names of those that are listed nowhere: arrays, tables and files."""
    values: dict[str, PointValue] = {}
    unlisted = set(row.outputs)
    if row.kind == CAPTURE:
        name = row.capture_name or row.address or ""
        value = scalar_of(row.value) if row.is_done else None
        values[names.get(name, name)] = PointValue(value, row.unit, row.quality or GOOD, not is_not_finite(row.read_back))
    for item in row.measurements:
        name = names.get(item["name"], item["name"])
        if isinstance(item["value"], list | tuple | Mapping):
            unlisted.add(name)
        else:
            found, quality = item["value"], item.get("quality", GOOD)
            values[name] = PointValue(scalar_of(found), item.get("units"), quality, not is_not_finite(found))
    return values, unlisted


def scalar_of(value: object) -> Scalar:
    """Return a value of a row; NaN and the infinities are gaps, and so is what is no scalar."""
    return value if isinstance(value, SCALARS) and not is_not_finite(value) else None


def is_not_finite(value: object) -> bool:
    """Return whether a value is NaN or an infinity, as a number or as a row of the ledger holds it."""
    return value in NOT_FINITE if isinstance(value, str) else isinstance(value, float) and not math.isfinite(value)
