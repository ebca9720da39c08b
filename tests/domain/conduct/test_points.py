"""Points follow from rows of the ledger: the same for every reader, whatever it reads at a time and however often."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.conduct.frames import LedgerPosition, Outline
from baton.domain.conduct.ledger import PointPlace, PointRow
from baton.domain.conduct.messages import Mark
from baton.domain.conduct.point_list import (
    PointTrack,
    StreamedPoints,
    block_width,
    points_behind,
    streamed_points,
    thin_grid,
)
from baton.domain.conduct.points import PlacedPoint, PointFold, PointPlan, PointValue, Scale, Setting, plan_of
from baton.domain.recipe.plots import PlotShape, RecipePlot
from tests.support.domain.world import World, new_id
from tests.support.workflows.step_json import action, capture, compute, setpoint, steered_value

AT = datetime(2026, 3, 4, 9, tzinfo=UTC)
Steps = Sequence[dict[str, Any]]


def outline_of(steps: Steps, *, loops: bool = False) -> Outline:
    command_name = "ConductUntilConverged" if loops else "ConductProcedure"
    return Outline(new_id(), new_id(), command_name, len(steps), 0, 5)


def rows_of(steps: Steps, iteration_index: int = 0, **values: Any) -> list[PointRow]:
    """Return the rows of a list that went well, where each address reads what it is said to, else its step's index."""
    found = []
    for index, step in enumerate(steps):
        said = {"address": step.get("address"), "value": step.get("value", values.get(step.get("address", ""), index))}
        if step["kind"] in ("action", "compute"):
            measured = {"name": "sum", "value": float(index), "kind": "Scalar", "units": "counts", "quality": "Good"}
            said = {"measurements": [measured]}
        at = AT + timedelta(seconds=index)
        name = step.get("capture_name")
        found.append(PointRow(iteration_index, index, step["kind"], True, at, capture_name=name, **said))
    return found


def fold(steps: Steps, rows: Sequence[PointRow], *, loops: bool = False) -> list[PlacedPoint]:
    """Return the points of a conduct that has ended."""
    points = PointFold(outline_of(steps, loops=loops), plan_of(steps, loops=loops))
    return [*points.take(rows), *points.end_pass()]


def table(points: Sequence[PlacedPoint]) -> list[tuple[Any, ...]]:
    return [(*(axis.value for axis in one.axes), *(value.value for value in one.values.values())) for one in points]


def line(count: int) -> Steps:
    return [step for n in range(count) for step in (setpoint("x", n * 0.5), capture("i0", f"flux_{n}"), action("count"))]


def test_a_line_scan_has_a_point_for_each_setpoint_of_its_axis() -> None:
    steps = [capture("i0", "dark"), setpoint("shutter", 1), *line(3)]
    plan = plan_of(steps, loops=False)
    assert (plan.axes, plan.shape, plan.x) == (("x",), PlotShape.LINE, "x")
    points = fold(steps, [row for row in rows_of(steps) if row.address != "shutter"])
    assert table(points) == [(0.0, 3, 4.0), (0.5, 6, 7.0), (1.0, 9, 10.0)]
    assert [list(one.values) for one in points] == [["flux", "sum"]] * 3


def test_a_grid_keeps_where_the_slow_axis_was_set_last() -> None:
    steps = [
        step
        for y in (0, 1)
        for step in (setpoint("y", y), *(one for x in (0, 1, 2) for one in (setpoint("x", x), action("count"))))
    ]
    plan = plan_of(steps, loops=False)
    assert (plan.shape, plan.x, plan.second, plan.scale) == (PlotShape.GRID, "x", "y", Scale(3, 2))
    assert [place[:2] for place in table(fold(steps, rows_of(steps)))] == [(y, x) for y in (0, 1) for x in (0, 1, 2)]


def test_places_that_are_no_lattice_are_scattered() -> None:
    steps = [step for n in range(4) for step in (setpoint("x", n), setpoint("y", n * n), action("count"))]
    plan = plan_of(steps, loops=False)
    assert (plan.shape, plan.x, plan.second, plan.scale) == (PlotShape.SCATTER, "x", "y", None)


def test_a_shutter_that_opens_at_every_place_is_not_what_is_plotted_against() -> None:
    steps = [
        step
        for n in range(4)
        for step in (setpoint("x", n), setpoint("shutter", 1), action("count"), setpoint("shutter", 0))
    ]
    plan = plan_of(steps, loops=False)
    assert (plan.axes, plan.shape, plan.x) == (("x", "shutter"), PlotShape.LINE, "x")
    assert len(fold(steps, rows_of(steps))) == 4


def test_each_row_of_a_conduct_without_axes_is_a_point_and_each_pass_of_a_loop() -> None:
    steps = [setpoint("a", 1), capture("b", "offset"), capture("c", "width")]
    plan = plan_of(steps, loops=False)
    assert (plan.axes, plan.shape, plan.x) == ((), PlotShape.LINE, None)
    assert table(fold(steps, rows_of(steps)[1:])) == [(1,), (2,)]
    passes = [row for index in (1, 2) for row in rows_of(steps, index)[1:]]
    assert plan_of(steps, loops=True).shape is PlotShape.PASSES
    assert table(fold(steps, passes, loops=True)) == [(1, 2), (1, 2)]


def test_a_search_has_its_steered_signals_as_axes() -> None:
    steps = [setpoint("x", steered_value("focus")), setpoint("y", steered_value("tilt")), capture("b", "sharpness")]
    plan = plan_of(steps, loops=True)
    assert (plan.axes, plan.shape, plan.x, plan.second) == (("x", "y"), PlotShape.SCATTER, "x", "y")


def test_what_failed_or_was_left_out_is_a_gap() -> None:
    steps = line(2)
    rows = rows_of(steps)
    rows[1] = rows[1]._replace(is_done=False, value=None, read_back="nan")
    rows[3] = rows[3]._replace(is_done=False)
    first, second = fold(steps, rows)
    assert (first.values["flux"].value, first.values["flux"].is_finite) == (None, False)
    assert second.axes[0].value is None, "nobody knows where the axis is"


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", float("nan"), float("inf")])
def test_what_is_not_finite_is_a_gap(text: object) -> None:
    steps = [setpoint("x", 0), action("count"), setpoint("x", 1)]
    rows = rows_of(steps)
    rows[1] = rows[1]._replace(measurements=[{"name": "sum", "value": text, "quality": "Good"}])
    (point,) = fold(steps, rows)
    assert (point.values["sum"].value, point.values["sum"].is_finite) == (None, False)


def test_arrays_and_files_are_named_and_not_listed() -> None:
    steps = [setpoint("x", 0), compute("fit"), setpoint("x", 1)]
    rows = rows_of(steps)
    shape = {"kind": "Array", "shape": [2000]}
    measured = [{"name": "profile", "value": shape}, {"name": "roi", "value": [1, 2]}, {"name": "label", "value": "good"}]
    rows[1] = rows[1]._replace(measurements=measured, outputs=["image"])
    (point,) = fold(steps, rows)
    assert (set(point.unlisted), {name: one.value for name, one in point.values.items()}) == (
        {"profile", "roi", "image"},
        {"label": "good"},
    )


def test_captures_of_one_signal_that_differ_by_a_number_are_one_value() -> None:
    names = {"flux_1": "i0", "flux_2": "i0", "before": "i0", "after": "i0", "d1": "one", "d2": "two"}
    plan = plan_of([capture(address, name) for name, address in names.items()], loops=False)
    own = {name: name for name in names}
    assert plan.names == {**own, "flux_1": "flux", "flux_2": "flux"}


def test_a_value_that_is_measured_again_at_a_place_is_another_point_there() -> None:
    steps = [setpoint("x", 0), action("count"), action("count"), setpoint("x", 1)]
    assert table(fold(steps, rows_of(steps))) == [(0, 1.0), (0, 2.0)]


def test_the_end_of_a_pass_closes_its_point_and_leaves_no_axis_to_the_next() -> None:
    steps = [setpoint("x", steered_value("focus")), capture("b", "first"), setpoint("y", steered_value("tilt"))]
    rows = [row for index in (1, 2) for row in rows_of([*steps, capture("b", "last")], index)]
    rows = [row._replace(value=1.0) for row in rows]
    outline = outline_of([*steps, capture("b", "last")], loops=True)
    points = PointFold(outline, plan_of([*steps, capture("b", "last")], loops=True))
    found = [*points.take(rows), *points.end_pass()]
    assert [one.closed_by for one in found if one.step_index == 3] == [
        outline.step(LedgerPosition(False, index, 3), Mark.DEPOSIT) for index in (1, 2)
    ]
    assert [one.axes[1].value is None for one in found] == [True, False, True, False]


def test_reading_begins_at_the_last_setpoint_with_where_the_other_axes_are() -> None:
    steps = [setpoint("y", 0), setpoint("x", 0), action("count"), setpoint("x", 1), action("count"), setpoint("y", 1)]
    plan = plan_of(steps, loops=False)
    assert (plan.start(4), plan.seeds(3)) == (3, (0, 1))
    assert (plan.start(2), plan.seeds(1)) == (1, (0,))
    assert (plan.start(0), plan.seeds(0)) == (0, ())


def random_list(draw: st.DrawFn) -> Steps:
    return random_steps(draw(st.lists(st.sampled_from(["x", "y", "capture", "count"]), min_size=1, max_size=30)))


def random_steps(chosen: Sequence[str]) -> Steps:
    makers = {"capture": lambda n: capture("i0", f"flux_{n}"), "count": lambda n: action("count")}
    return [makers[kind](n) if kind in makers else setpoint(kind, n % 3) for n, kind in enumerate(chosen)]


@given(st.data(), st.booleans())
def test_rows_in_chunks_of_any_size_and_rows_again_give_the_same_points(data: st.DataObject, loops: bool) -> None:
    steps = random_list(data.draw)
    plan = plan_of(steps, loops=loops)
    passes = range(1, 4) if loops else [0]
    rows = [row for index in passes for row in rows_of(steps, index) if row.kind != "setpoint" or row.address in plan.axes]
    whole = fold(steps, rows, loops=loops)
    points = PointFold(outline_of(steps, loops=loops), plan)
    found, rest = [], rows
    while rest:
        count = data.draw(st.integers(1, 8))
        found += points.take(rest[:count])
        found += points.take(rest[:count])
        rest = rest[count:]
    assert [*found, *points.end_pass()] == whole
    assert all(one.ordinal < other.ordinal for one, other in pairwise(whole))
    assert all(one.ordinal < (one.closed_by or 0) <= other.ordinal + 1 for one, other in pairwise(whole))


def scan_list(draw: st.DrawFn) -> Steps:
    """Return a list that sets two axes to several values, and measures now and then."""
    moves = draw(st.lists(st.sampled_from(["x", "y", "capture", "count"]), min_size=1, max_size=30))
    return [setpoint("x", -1), setpoint("y", -1), *random_steps(moves), setpoint("x", 9), setpoint("y", 9), action("count")]


class PointReader:
    """Reads points from rows, as the ledger would."""

    def __init__(self, steps: Steps, rows: Sequence[PointRow], *, loops: bool) -> None:
        self.rows = rows
        self.track = PointTrack(outline_of(steps, loops=loops), plan_of(steps, loops=loops), ())
        self.world = World()
        self.world.ports["point_rows"] = self.point_rows

    def point_rows(self, spans: object, axes: object, place: PointPlace, limit: int) -> list[PointRow]:
        at = place.iteration_index, place.step_index
        seeds = [row for row in self.rows if row.iteration_index == at[0] and row.step_index in place.seeds]
        return [*seeds, *[row for row in self.rows if (row.iteration_index, row.step_index) >= at][:limit]]

    def behind(self, ordinal: int, count: int | None) -> list[PlacedPoint]:
        found: list[PlacedPoint] = self.world.fulfil(points_behind(self.track, ordinal, count))
        return found

    def streamed_points(self, behind: int, upto: int) -> StreamedPoints:
        found: StreamedPoints = self.world.fulfil(streamed_points(self.track, behind, upto))
        return found


@given(st.data(), st.booleans())
def test_reading_may_begin_anywhere(data: st.DataObject, loops: bool) -> None:
    steps = scan_list(data.draw)
    passes = range(1, 3) if loops else [0]
    rows = [row for index in passes for row in rows_of(steps, index)]
    whole = fold(steps, rows, loops=loops)
    reader = PointReader(steps, rows, loops=loops)
    ordinal = data.draw(st.sampled_from([0, *(one.ordinal for one in whole), *(one.closed_by or 0 for one in whole)]))
    rest = [one if one is not whole[-1] else one._replace(closed_by=None) for one in whole if one.ordinal > ordinal]
    assert reader.behind(ordinal, None) == rest
    count = data.draw(st.integers(1, 4))
    assert reader.behind(ordinal, count) == rest[:count]
    upto = data.draw(st.sampled_from([one.closed_by or 0 for one in whole]))
    assert reader.streamed_points(ordinal, upto).closed == [one for one in whole if ordinal < (one.closed_by or 0) <= upto]


def test_a_page_that_begins_in_a_row_of_a_grid_knows_where_the_slow_axis_is() -> None:
    steps = [setpoint("y", 5), setpoint("x", 0), action("count"), setpoint("x", 1), action("count"), setpoint("y", 6)]
    first, second = PointReader(steps, rows_of(steps), loops=False).behind(0, None)
    (read,) = PointReader(steps, rows_of(steps), loops=False).behind(first.ordinal, 1)
    assert (read, [axis.value for axis in read.axes]) == (second, [5, 1])


def test_a_stream_tells_of_the_open_point_unless_more_is_known_than_the_reader_was_told() -> None:
    steps = [setpoint("x", 0), action("count"), setpoint("x", 1), action("count"), setpoint("x", 2)]
    reader = PointReader(steps, rows_of(steps)[:2], loops=False)
    first = outcome_of(reader, 1)
    assert reader.streamed_points(0, first).open == PlacedPoint(
        first, AT + timedelta(seconds=1), 0, 1, (Setting(0),), COUNTED
    )
    reader.rows = rows_of(steps)
    assert reader.streamed_points(0, first) == ([], None)
    closed, still_open = reader.streamed_points(0, outcome_of(reader, 2) + 1)
    assert ([one.ordinal for one in closed], still_open) == ([first], None)


def outcome_of(reader: PointReader, step_index: int) -> int:
    return reader.track.outline.step(LedgerPosition(False, 0, step_index), Mark.OUTCOME)


COUNTED = {"sum": PointValue(1.0, "counts")}


def test_a_recipe_says_what_is_drawn() -> None:
    steps = line(3)
    plan = plan_of(steps, loops=False, plot=RecipePlot(x="x", y=("flux_1",)))
    assert (plan.shape, plan.x, plan.y) == (PlotShape.LINE, "x", ("flux",))
    elsewhere = plan_of(steps, loops=False, plot=RecipePlot(x="gone", y=("flux_1", "flux_2")))
    assert (elsewhere.x, elsewhere.y) == ("x", ("flux",)), "an axis that is not moved is not drawn over"
    alone = plan_of(steps, loops=False, plot=RecipePlot(x="x", y=("flux_1",), kind=PlotShape.GRID))
    assert alone.shape is PlotShape.LINE, "a map takes two axes"


@pytest.mark.parametrize(
    ("plot", "drawn"),
    [
        ({"x": "y"}, (PlotShape.GRID, "y", "x", Scale(2, 3))),
        ({"x": "x", "kind": PlotShape.LINE}, (PlotShape.LINE, "x", None, None)),
        ({"x": "x", "kind": PlotShape.SCATTER}, (PlotShape.SCATTER, "x", "y", Scale(3, 2))),
    ],
)
def test_a_recipe_turns_a_grid_or_draws_it_otherwise(plot: dict[str, Any], drawn: tuple[Any, ...]) -> None:
    steps = [
        step
        for y in (0, 1)
        for step in (setpoint("y", y), *(one for x in (0, 1, 2) for one in (setpoint("x", x), action("count"))))
    ]
    plan = plan_of(steps, loops=False, plot=RecipePlot(y=("sum",), **plot))
    assert (plan.shape, plan.x, plan.second, plan.scale) == drawn


def test_a_thinned_grid_keeps_the_highest_of_each_block_of_a_row() -> None:
    axes = [(y, x) for y in range(40) for x in (range(60) if y % 2 else range(59, -1, -1))]
    points = [
        PlacedPoint(n, AT, 0, n, (Setting(y), Setting(x)), {"flux": PointValue(float((7 * x) % 60))})
        for n, (y, x) in enumerate(axes)
    ]
    plan = PointPlan(("y", "x"), shape=PlotShape.GRID, x="x", second="y", scale=Scale(60, 40))
    width = block_width(Scale(60, 40), 1980)
    assert (width, block_width(Scale(2, 3000), 1980)) == (2, 1)
    kept = thin_grid(points, plan, width, "flux")
    blocks = {(one.axes[0].value, one.axes[1].value // 2) for one in kept}  # type: ignore[operator]
    assert len(blocks) == 40 * 30, "no block is without a mark"
    assert [one for one in kept[:-20] if one.axes[1].value in (2, 3)] == [
        one for one in points[:-20] if one.axes[1].value == 3
    ], "21 is more than 14"
    assert kept[-20:] == points[-20:]
    assert len(kept) <= 2000
