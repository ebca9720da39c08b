"""The walk over a lattice: which points, in which order, and when it ends."""

import math
from itertools import pairwise, product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from baton.domain.steering.steering import SteeringEvidence, SteeringSpace, SteeringVerdict, between, check_advice, grid_walk
from tests.support.domain.searches import (
    CHOICES,
    FOCUS,
    INTERVALS,
    NUMBERS,
    choices,
    evidence,
    interval,
    observation,
    run_search,
    space,
    spaces,
)
from tests.support.tables import for_each


async def walk_grid(within: SteeringSpace, points_per_axis: int, **search: Any) -> list[dict[str, Any]]:
    async def advise(known: SteeringEvidence) -> Any:
        return grid_walk(known, points_per_axis)

    found = await run_search(advise, within, search.pop("measure", lambda _: 1.0), search.pop("passes", 1000), **search)
    return [item.point for item in found]


async def test_a_continuous_axis_has_even_values_with_both_ends() -> None:
    points = await walk_grid(FOCUS, 9)
    assert [point["focus"] for point in points] == [-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2]


async def test_the_first_axis_is_the_slowest() -> None:
    within = space(interval("x", 0, 1), choices("filter", "Al", "Cu"), interval("y", 5, 6))
    expected = [dict(zip(("x", "filter", "y"), values, strict=True)) for values in product((0, 1), ("Al", "Cu"), (5, 6))]
    points = await walk_grid(within, 2)
    assert points == expected
    assert [list(point) for point in points] == [["x", "filter", "y"]] * 8


def test_the_place_on_the_lattice_is_the_number_of_observations_whatever_the_iteration() -> None:
    known = [observation({"focus": -2.0}), observation({"focus": 0.3}, quality="Bad")]
    advice = grid_walk(evidence(FOCUS, known, iteration_index=17), 5)
    assert (advice.next_point, advice.rationale) == ({"focus": 0.0}, "Lattice point 3 of 5.")


async def test_the_walk_stops_when_everything_was_measured() -> None:
    assert len(await walk_grid(FOCUS, 4)) == 4
    advice = grid_walk(evidence(FOCUS, [observation({"focus": 0.0})] * 5), 5)
    assert (advice.verdict, advice.next_point) == (SteeringVerdict.STOP, None)


@for_each(
    ("kind", "measured", "stops"),
    [
        ("Satisfy", 3.0, True),
        ("Satisfy", 3, True),
        ("Satisfy", 3.0000001, False),
        ("Maximize", 3.0, False),
        ("Minimize", 3.0, False),
        ("Explore", 3.0, False),
    ],
)
def test_only_a_target_met_exactly_ends_the_walk_early(kind: str, measured: float, stops: bool) -> None:
    known = evidence(FOCUS, [observation({"focus": -2.0}, measured)], kind, target_value=3.0)
    assert (grid_walk(known, 5).verdict is SteeringVerdict.STOP) == stops


@for_each("fields", [{"quality": "Uncertain"}, {"quality": "Bad"}, {"succeeded": False}])
def test_what_is_not_good_meets_no_target(fields: dict[str, Any]) -> None:
    known = evidence(FOCUS, [observation({"focus": -2.0}, 3.0, **fields)], "Satisfy", target_value=3.0)
    assert grid_walk(known, 5).verdict is SteeringVerdict.MEASURE


async def test_a_target_met_on_the_way_ends_the_walk_there() -> None:
    points = await walk_grid(FOCUS, 9, measure=lambda point: point["focus"] ** 2, kind="Satisfy", target_value=1.0)
    assert [point["focus"] for point in points] == [-2, -1.5, -1]


@given(spaces(st.one_of(INTERVALS, CHOICES)), st.integers(2, 10_000), st.integers(0, 200))
def test_every_point_of_every_walk_is_admissible(within: SteeringSpace, points_per_axis: int, measured: int) -> None:
    known = [observation(within.first_point)] * measured
    advice = grid_walk(evidence(within, known), points_per_axis)
    check_advice(advice, within)
    counts = [len(axis.choices) or points_per_axis for axis in within.axes]
    assert (advice.verdict is SteeringVerdict.STOP) == (measured >= math.prod(counts))
    if measured == 0:
        assert advice.next_point == within.first_point


@given(NUMBERS, NUMBERS, st.lists(st.floats(0, 1), min_size=2, max_size=9))
def test_a_way_has_both_its_ends_and_never_turns_back(lower: float, upper: float, fractions: list[float]) -> None:
    lower, upper = sorted((lower, upper))
    assert (between(lower, upper, 0.0), between(lower, upper, 1.0)) == (lower, upper)
    passed = [between(lower, upper, fraction) for fraction in sorted(fractions)]
    assert all(lower <= value <= upper for value in passed)
    assert all(one <= other for one, other in pairwise(passed))
