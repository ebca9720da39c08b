"""The points of a procedure: what its conducts measured at each place, page by page or thinned to what a plot can show."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, NamedTuple, get_args
from uuid import UUID

from pydantic import Field

from baton.domain.conduct.frames import Outline
from baton.domain.conduct.ledger import LedgerPort, PointPlace, WalkedSpan
from baton.domain.conduct.points import PlacedPoint, PointFold, PointPlan, PointValue, Scalar, Scale, is_plottable
from baton.domain.conduct.progress import OpenedConduct
from baton.domain.conduct.steered_conduct import best_point
from baton.domain.conduct.step_list import OpeningEvent, StepListPort
from baton.domain.conduct.views import LOOPS
from baton.domain.kernel import Call, Query
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.procedure import ConductMode, Procedure, ProcedureSteeringDeclared, procedure
from baton.domain.recipe.plots import MOST_VALUES, PlotShape
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.reads import Reads, ask, events_of, latest_events, record_of
from baton.domain.shared.thinning import thin
from baton.domain.step.results import BestPoint
from baton.domain.step.step_values import GOOD

ROWS = 3000  # Rows that one statement reads at most.
STREAMED_ROWS = 500
LAST_WHOLE = 20  # Points at the end that thinning leaves as they are.
STEP_LIMIT = 2**31 - 1
Columns = Mapping[tuple[str, str | None], int]  # Values by name and unit, and how many points have a number there.


class PointColumn(AnswerForm):
    """An axis or a value of points; a value that was counted in two units has a column for each."""

    name: str
    """The address of the axis, or the name of the value."""
    unit: str | None = None


class ListedPoint(AnswerForm):
    """What was measured at one place; what was not measured there, or failed, is null."""

    ordinal: int
    """The index of its place in the conduct, which grows and has gaps."""
    at: datetime
    """When it was measured first."""
    iteration_index: int | None
    step_index: int
    axes: tuple[Scalar, ...]
    """What each axis was set to, in the unit of its column."""
    read_back: tuple[Scalar, ...]
    """What each axis then read, in the unit of its column; null where nothing was read."""
    values: tuple[Scalar, ...]
    """What was measured, in the unit of its column."""
    quality: str
    """The quality of the first value that is not Good, else Good."""
    is_open: bool
    """Whether the conduct may still add to it."""


class PointFrame(AnswerForm):
    """What was measured at one place, in the unit beside it: once the conduct adds nothing to it, and before that at most
    once a second."""

    ordinal: int
    """The index of its place in the conduct; a later frame with the same one replaces it."""
    at: datetime
    """When it was measured first."""
    iteration_index: int | None
    step_index: int
    axes: dict[str, Scalar]
    """What each axis was set to, in the unit beside it, by its address."""
    read_back: dict[str, Scalar]
    """What each axis then read, in the unit beside it, by its address."""
    values: dict[str, Scalar]
    """What was measured, in the unit beside it, by its name."""
    units: dict[str, str]
    """The units of axes and values, where they are known."""
    is_open: bool = False
    """Whether the conduct may still add to it."""

    @classmethod
    def of(cls, point: PlacedPoint, plan: PointPlan) -> "PointFrame":
        """Return a point as a stream shows it."""
        axes = dict(zip(plan.axes, point.axes, strict=True))
        units = [(name, one.unit) for name, one in axes.items()] + [(name, one.unit) for name, one in point.values.items()]
        return cls(
            ordinal=point.ordinal,
            at=point.at,
            iteration_index=point.iteration_index or None,
            step_index=point.step_index,
            axes={name: one.value for name, one in axes.items()},
            read_back={name: one.read_back for name, one in axes.items() if one.read_back is not None},
            values={name: one.value for name, one in point.values.items()},
            units={name: unit for name, unit in units if unit is not None},
            is_open=point.closed_by is None,
        )


class PlottedGrid(AnswerForm):
    """How many places a grid has along both of its axes."""

    columns: int
    """Number of places along the axis that changes most often."""
    rows: int
    """Number of places along the other axis."""
    block: int = 1
    """Number of places in a row of which one is listed, the highest, where points are thinned; else 1."""


class PlotBand(AnswerForm):
    """The range that a loop must come into."""

    low: float
    """The lowest good value, in the unit of the objective."""
    high: float
    """The highest good value, in the unit of the objective."""


class ProcedurePoints(AnswerForm):
    """Points of a procedure in columns, and how they are best drawn."""

    procedure_id: UUID
    conduct_id: UUID | None
    axes: tuple[PointColumn, ...]
    """The axes, in the order of the numbers of each point."""
    values: tuple[PointColumn, ...]
    """What was measured, in the order of the numbers of each point."""
    items: tuple[ListedPoint, ...]
    next_after: int | None
    """The index of the place behind which the next page begins; null where nothing is left."""
    shape: PlotShape
    """How they are best drawn: line, grid, scatter or passes."""
    grid: PlottedGrid | None = None
    """The places of a grid along both axes."""
    x: str | None = None
    """The axis to draw them over; null for time or, of passes, their index."""
    second: str | None = None
    """The other axis of a grid or scatter."""
    y: tuple[str, ...] = ()
    """The values to draw, all in one unit."""
    objective: str | None = None
    """The value that a loop or search is judged by."""
    band: PlotBand | None = None
    best: BestPoint | None = None
    """The best that a search has measured, and where."""
    unlisted: tuple[str, ...] = ()
    """Arrays, tables and files that were measured and are not listed."""
    not_finite_count: int = 0
    """Number of values here that were NaN or infinite, and are null."""


class PointTrack(NamedTuple):
    """What points are read by: the shape of the conduct, its plan, and which conduct walked which steps."""

    outline: Outline
    plan: PointPlan
    spans: Sequence[WalkedSpan]

    def place(self, ordinal: int, steps_before: int = 0) -> PointPlace:
        """Return where reading begins for a reader behind an ordinal, or so many steps before: where no point is open."""
        position = self.outline.position(ordinal)
        start = self.plan.start(max(0, position.step_index - steps_before))
        return PointPlace(position.iteration_index, start, self.plan.seeds(start))


@procedure.query(get="/{procedure_id}/points", returns=ProcedurePoints)
class ListProcedurePoints(Query[ProcedurePoints]):
    """What a procedure measured at each place where it set its axes: the curve of a scan, point by point.

    Axes are the signals that its steps set to different values, or that a search steers.
    """

    of_one_moment: ClassVar[bool] = True

    after: Annotated[
        int | None,
        Field(
            ge=0, le=2**53, description="The index of the last place that is known, an `ordinal`; left out, from the first."
        ),
    ] = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 200
    thin: Annotated[
        int | None,
        Field(
            ge=50,
            le=2000,
            description="Number of points that all are thinned to: of each stretch the lowest and the highest.",
        ),
    ] = None
    names: Annotated[
        tuple[str, ...] | None, Field(max_length=50, description="The values that are wanted, by name; left out, all.")
    ] = None

    def answer(self, procedure: Procedure, call: Call) -> Reads[ProcedurePoints]:
        track = yield from track_of(procedure)
        if track is None:
            return ProcedurePoints(procedure_id=procedure.id, conduct_id=None, **NO_POINTS)
        objective = yield from objective_of(procedure, track.plan)
        plan, block = track.plan, 1
        if self.thin is None:
            found = yield from points_behind(track, self.after or 0, self.limit + 1)
            kept = found[: self.limit]
            columns = counted_columns(kept)
        else:
            found = yield from every_point(track, self.after or 0)
            columns = counted_columns(found)
            name = next(iter(drawn_values(plan, objective, columns)), None)
            block = 1 if plan.scale is None or len(found) <= self.thin else block_width(plan.scale, self.thin - LAST_WHOLE)
            kept = thin_points(found, self.thin, name) if block == 1 else thin_grid(found, plan, block, name)
        table = PointTable.of(kept, columns, self.names, is_live=procedure.live_conduct_id is not None)
        band = None if plan.band is None or objective is None else PlotBand(low=plan.band[0], high=plan.band[1])
        return ProcedurePoints(
            procedure_id=procedure.id,
            conduct_id=procedure.last_conduct_id,
            axes=table.axis_columns(plan.axes),
            values=tuple(PointColumn(name=name, unit=unit) for name, unit in table.columns),
            items=table.rows(),
            next_after=kept[-1].ordinal if self.thin is None and len(found) > self.limit else None,
            shape=plan.shape,
            grid=None if plan.scale is None else PlottedGrid(**plan.scale._asdict(), block=block),
            x=plan.x,
            second=plan.second,
            y=tuple(drawn_values(plan, objective, columns)),
            objective=objective,
            band=band,
            best=(yield from best_of(procedure)),
            unlisted=tuple(sorted({name for one in kept for name in one.unlisted})),
            not_finite_count=sum(not value.is_finite for one in kept for value in one.values.values()),
        )


LISTED = tuple(ListedPoint.model_fields)
NO_POINTS: Mapping[str, Any] = {"axes": (), "values": (), "items": (), "next_after": None, "shape": PlotShape.LINE}


def track_of(procedure: Procedure, conduct_id: UUID | None = None) -> Reads[PointTrack | None]:
    """Return what the points of a procedure are read by, up to a conduct; None where it was never conducted."""
    openings: tuple[OpeningEvent, ...] = yield from events_of(procedure.id, *get_args(OpeningEvent))
    conducted = [one for one in openings if one.conduct_id is not None]
    if conduct_id is not None:
        conducted = conducted[: 1 + max((n for n, one in enumerate(conducted) if one.conduct_id == conduct_id), default=-1)]
    if not conducted:
        return None
    opened = yield from record_of(OpenedConduct, conduct_id=conducted[-1].conduct_id)
    assert opened is not None, "a conduct that is on the record was opened"
    outline = Outline(
        procedure.id, opened.conduct_id, opened.command_name, opened.step_count, opened.closing_count, opened_version=0
    )
    plan = yield from ask(StepListPort.point_plan, procedure.id, outline.loops)
    return PointTrack(outline, plan, walked_spans(conducted, loops=outline.loops))


def walked_spans(openings: Iterable[OpeningEvent], *, loops: bool) -> Sequence[WalkedSpan]:
    """Return which conduct walked which steps of the main list, no step twice. Passes are walked from the beginning, and no
    two conducts have the same pass."""
    spans: list[WalkedSpan] = []
    for one in openings:
        first = 0
        if isinstance(one, procedures.ProcedureResumed) and not loops:
            first = max(0, one.re_establishment_boundary - one.skipped_count)
            spans = [span._replace(behind=min(span.behind, first)) for span in spans]
        if one.conduct_id is not None:
            spans.append(WalkedSpan(one.conduct_id, first, STEP_LIMIT))
    return spans


class StreamedPoints(NamedTuple):
    """What a stream tells of points: those that were closed, and the one that may still grow."""

    closed: Sequence[PlacedPoint] = ()
    open: PlacedPoint | None = None


def streamed_points(track: PointTrack, behind: int, upto: int) -> Reads[StreamedPoints]:
    """Return the points that are closed at ordinals behind one and up to another, and the one that is open there."""
    if track.outline.position(behind).closing:
        return StreamedPoints()
    points, place, found = PointFold(track.outline, track.plan), track.place(behind, steps_before=1), list[PlacedPoint]()
    while True:
        rows = yield from ask(LedgerPort.point_rows, track.spans, track.plan.axes, place, STREAMED_ROWS)
        found += points.take(rows)
        if len(rows) < STREAMED_ROWS or (found and (found[-1].closed_by or 0) > upto):
            break
        place = PointPlace(rows[-1].iteration_index, rows[-1].step_index + 1, ())
    if points.end_ordinal <= upto:
        found += points.end_pass()
    closed = [one for one in found if one.closed_by is not None and behind < one.closed_by <= upto]
    is_read = all((one.closed_by or 0) <= upto for one in found)  # nothing is closed that the reader does not know of
    return StreamedPoints(closed, points.open_point if is_read else None)


def every_point(track: PointTrack, ordinal: int) -> Reads[list[PlacedPoint]]:
    """Return all points behind an ordinal; those that are closed are read once in a while."""
    spans = tuple(track.spans)
    known = yield from ask(StepListPort.known_points, spans)
    read = yield from points_behind(track, known[-1].ordinal if known else 0, None)
    if closed := [one for one in read if one.closed_by is not None]:
        yield from ask(StepListPort.keep_points, spans, (*known, *closed))
    return [one for one in (*known, *read) if one.ordinal > ordinal]


def points_behind(track: PointTrack, ordinal: int, count: int | None) -> Reads[list[PlacedPoint]]:
    """Return so many points behind an ordinal, or all; the last of them may be open."""
    points, place, found = PointFold(track.outline, track.plan), track.place(ordinal), list[PlacedPoint]()
    row_count = ROWS if count is None else min(ROWS, track.plan.rows_per_point * (count + 1))
    while not track.outline.position(ordinal).closing:
        rows = yield from ask(LedgerPort.point_rows, track.spans, track.plan.axes, place, row_count)
        found += [one for one in points.take(rows) if one.ordinal > ordinal]
        if count is not None and len(found) >= count:
            return found[:count]
        if len(rows) < row_count:
            break
        place = PointPlace(rows[-1].iteration_index, rows[-1].step_index + 1, ())
    last = points.open_point
    return found if last is None or last.ordinal <= ordinal else [*found, last]


def objective_of(procedure: Procedure, plan: PointPlan) -> Reads[str | None]:
    """Return the name of the value that a loop or search is judged by."""
    if procedure.conduct_mode is ConductMode.ADVISED:
        for design in (yield from latest_events(procedure.id, ProcedureSteeringDeclared, count=1)):
            return value_name(plan, design.objective_capture_name)
    return plan.objective if procedure.conduct_mode in LOOPS else None


def value_name(plan: PointPlan, capture_name: str) -> str:
    """Return the value that a capture belongs to."""
    return plan.names.get(capture_name, capture_name)


def best_of(procedure: Procedure) -> Reads[BestPoint | None]:
    """Return the best that a search has measured."""
    if procedure.conduct_mode is not ConductMode.ADVISED:
        return None
    designs = yield from latest_events(procedure.id, ProcedureSteeringDeclared, count=1)
    outcomes = yield from events_of(procedure.id, procedures.ProcedureOutcomeRecorded)
    return next((best_point(design, outcomes) for design in designs), None)


def thin_points(points: Sequence[PlacedPoint], most: int, name: str | None) -> list[PlacedPoint]:
    """Return at most so many of all points, judged by the value that is drawn; the last twenty are always there."""
    if len(points) <= most:
        return list(points)
    return [*thin(points[:-LAST_WHOLE], most - LAST_WHOLE, lambda point: height_of(point, name)), *points[-LAST_WHOLE:]]


def block_width(scale: Scale, most: int) -> int:
    """Return how many places in a row of a grid must share a mark, so that there are at most so many marks; 1 where the rows
    alone are more."""
    fitting = (width for width in range(2, scale.columns + 1) if scale.rows * -(-scale.columns // width) <= most)
    return next(fitting, 1)


def thin_grid(points: Sequence[PlacedPoint], plan: PointPlan, width: int, name: str | None) -> list[PlacedPoint]:
    """Return the highest point of each block of a grid, in order; the last twenty are always there."""
    fast, slow = (plan.axes.index(axis) for axis in (plan.x or "", plan.second or ""))
    places = {point.axes[fast].value for point in points}
    rank: dict[Scalar, int] = {
        place: number for number, place in enumerate(sorted(one for one in places if isinstance(one, int | float)))
    }
    highest: dict[tuple[Scalar, int], tuple[float, PlacedPoint]] = {}
    for point in points[:-LAST_WHOLE]:
        block = point.axes[slow].value, rank.get(point.axes[fast].value, -1) // width
        height = -math.inf if (found := height_of(point, name)) is None else found
        if block not in highest or height > highest[block][0]:
            highest[block] = height, point
    kept = sorted((point for _, point in highest.values()), key=lambda point: point.ordinal)
    return [*kept, *points[-LAST_WHOLE:]]


def height_of(point: PlacedPoint, name: str | None) -> float | None:
    """Return the value of a point that it is judged by, where that is a number."""
    found = None if name is None else point.values.get(name)
    value = None if found is None else found.value
    return value if isinstance(value, int | float) and is_plottable(value) else None


def counted_columns(points: Iterable[PlacedPoint]) -> Columns:
    """Return each value in each of its units, and how many points have a number there."""
    counts: dict[tuple[str, str | None], int] = {}
    for point in points:
        for name, one in point.values.items():
            counts[name, one.unit] = counts.get((name, one.unit), 0) + is_plottable(one.value)
    return counts


def drawn_values(plan: PointPlan, objective: str | None, columns: Columns) -> Sequence[str]:
    """Return the values to draw: those of the recipe's plot, else the objective, else those that most points have."""
    return plan.y or ([objective] if objective is not None else suggested_values(columns))


def suggested_values(columns: Columns) -> list[str]:
    """Return the numbers that most points have, the first of equals, with others of the same unit that as many have."""
    most = max(columns.values(), default=0)
    if not most:
        return []
    unit = next(unit for (_, unit), count in columns.items() if count == most)
    return [name for (name, own), count in columns.items() if (own, count) == (unit, most)][:MOST_VALUES]


def quality_of(values: Iterable[PointValue | None]) -> str:
    """Return the quality of the first value that is not Good, else Good."""
    for one in values:
        if one is not None and one.quality != GOOD:
            return one.quality
    return GOOD


class PointTable(NamedTuple):
    """Points in columns."""

    points: Sequence[PlacedPoint]
    columns: Sequence[tuple[str, str | None]]
    is_live: bool

    @classmethod
    def of(
        cls, points: Sequence[PlacedPoint], columns: Columns, names: Sequence[str] | None, *, is_live: bool
    ) -> "PointTable":
        """Return a column for each value in each of its units; without one, a value belongs to the first that it has."""
        known = {name for name, unit in columns if unit is not None}
        shown = [(name, unit) for name, unit in columns if unit is not None or name not in known]
        return cls(points, [one for one in shown if names is None or one[0] in names], is_live)

    def rows(self) -> tuple[ListedPoint, ...]:
        """Return the points as they are listed."""
        first = dict(reversed(self.columns))
        cells = [(name, {unit, None} if first[name] == unit else {unit}) for name, unit in self.columns]
        return tuple([self._row(point, cells) for point in self.points])

    def _row(self, point: PlacedPoint, cells: Sequence[tuple[str, set[str | None]]]) -> ListedPoint:
        values = point.values
        found = [values[name] if name in values and values[name].unit in units else None for name, units in cells]
        row = (
            point.ordinal,
            point.at,
            point.iteration_index or None,
            point.step_index,
            tuple([one.value for one in point.axes]),
            tuple([one.read_back for one in point.axes]),
            tuple([None if one is None else one.value for one in found]),
            quality_of(found),
            point.closed_by is None and self.is_live,
        )
        return ListedPoint.of_row(LISTED, row)

    def axis_columns(self, axes: Sequence[str]) -> tuple[PointColumn, ...]:
        """Return the axes with their units, as they were set last."""
        units = [next((p.axes[n].unit for p in reversed(self.points) if p.axes[n].unit), None) for n in range(len(axes))]
        return tuple(PointColumn(name=name, unit=unit) for name, unit in zip(axes, units, strict=True))
