"""Points follow from rows of the ledger: the same for every reader, whatever it reads at a time and however often."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.conduct.frames import LedgerPosition, Outline
from baton.domain.conduct.ledger import PointRow
from baton.domain.conduct.messages import Mark
from baton.domain.conduct.points import PlacedPoint, PlotShape, PointFold, PointPlan, Scale, plan_of
from tests.support.domain.world import new_id
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
    assert [one.closed_by for one in found if one.position.step_index == 3] == [
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
    kinds = st.sampled_from(["x", "y", "capture", "count"])
    chosen = draw(st.lists(kinds, min_size=1, max_size=30))
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


@given(st.data(), st.booleans())
def test_reading_may_begin_before_any_point(data: st.DataObject, loops: bool) -> None:
    steps = random_list(data.draw)
    plan: PointPlan = plan_of(steps, loops=loops)
    rows = [row for row in rows_of(steps, int(loops)) if row.kind != "setpoint" or row.address in plan.axes]
    whole = fold(steps, rows, loops=loops)
    if not whole or (loops and not plan.axes):
        return
    point = data.draw(st.sampled_from(whole))
    start = plan.start(point.position.step_index)
    seeds = set(plan.seeds(start))
    read = [row for row in rows if row.step_index >= start or row.step_index in seeds]
    later = [one for one in fold(steps, read, loops=loops) if one.ordinal >= point.ordinal]
    assert later == whole[whole.index(point) :]
