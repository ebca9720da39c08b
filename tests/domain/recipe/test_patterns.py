"""Patterns: the flat lists that they become, in which order, with which names, and what is refused."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from baton.domain.recipe.patterns import (
    AnyPattern,
    Pattern,
    PatternSteps,
    axis_positions,
    grid_places,
    pattern_points,
    pattern_steps,
    step_count,
)
from baton.domain.recipe.step_checks import check_captures, read_steps
from baton.domain.recipe.steps import SetpointStep, located_steps, wire_form
from tests.support.domain.flat_field import Raw, capture, check, setpoint
from tests.support.domain.world import expect_refusal
from tests.support.tables import for_each

PATTERN: TypeAdapter[AnyPattern] = TypeAdapter(Pattern)
ADDRESSES = ("bl7:x", "bl7:y", "bl7:z", "bl7:rotary")
ends = st.floats(-1e6, 1e6)


def pattern(kind: str, *axes: Raw, **fields: Any) -> AnyPattern:
    named = [{"address": address, **axis} for address, axis in zip(ADDRESSES, axes, strict=False)]
    return PATTERN.validate_python({"kind": kind, "axes": named, **fields})


def line(num: int = 3, **fields: Any) -> AnyPattern:
    return pattern("line", {"start": 0, "stop": 1, "unit": "mm"}, num=num, **fields)


def grid(*counts: int, **fields: Any) -> AnyPattern:
    return pattern("grid", *({"start": 0, "stop": count - 1, "num": count} for count in counts), **fields)


def positions(drafted: PatternSteps) -> list[tuple[str, Any]]:
    return [(step["address"], step["value"]) for step in wire_form(drafted.steps) if step["kind"] == "setpoint"]


@st.composite
def patterns(draw: st.DrawFn) -> AnyPattern:
    """Any pattern of at most 10,000 steps."""
    kind = draw(st.sampled_from(["line", "grid", "list", "around"]))
    count, num = draw(st.integers(1, 4)), st.integers(2, 4)
    fields: Raw = {"returns": draw(st.booleans()), "settle_seconds": draw(st.sampled_from([0, 0.5]))}
    fields["at_point"] = draw(st.sampled_from([[], [capture("signal_{n}")], [capture("a_{n}"), check()]]))
    if kind == "list":
        length = draw(st.integers(1, 5))
        axes = [{"positions": draw(st.lists(ends, min_size=length, max_size=length))} for _ in range(count)]
    elif kind == "around":
        axes = [{"centre": draw(ends), "span": draw(st.floats(0.1, 10)), "num": draw(num)} for _ in range(count)]
    else:
        counted = {"num": num} if kind == "grid" else {}
        axes = [draw(st.fixed_dictionaries({"start": ends, "stop": ends, **counted})) for _ in range(count)]
        fields |= {"num": draw(num)} if kind == "line" else {}
    fields |= {"snaked": draw(st.booleans())} if kind in ("grid", "around") else {}
    units = draw(st.sampled_from([{}, {"unit": "mm"}, {"verify": {"tolerance": 0.01, "timeout": 20.0}}]))
    return pattern(kind, *({**axis, **units} for axis in axes), **fields)


@given(patterns())
def test_a_pattern_becomes_as_many_valid_steps_as_it_counts(given_pattern: AnyPattern) -> None:
    drafted = pattern_steps(given_pattern)
    assert len(drafted.steps) + len(drafted.closing_steps) == step_count(given_pattern)
    assert read_steps(wire_form(drafted.steps)) == drafted.steps
    check_captures(located_steps(drafted.steps, drafted.closing_steps))


@given(patterns())
def test_every_point_is_visited_once_and_its_axes_are_set_in_order(given_pattern: AnyPattern) -> None:
    points = pattern_points(given_pattern)
    assert len({point.places for point in points}) == len(points)
    addresses = [axis.address for axis in given_pattern.axes]
    wanted = [pair for point in points for pair in zip(addresses, point.positions, strict=True)]
    assert positions(pattern_steps(given_pattern)) == wanted


@given(start=ends, stop=ends, num=st.integers(2, 1000))
def test_both_ends_of_a_line_are_exact_and_nothing_lies_beyond_them(start: float, stop: float, num: int) -> None:
    (found,) = axis_positions(pattern("line", {"start": start, "stop": stop}, num=num))
    assert (len(found), found[0], found[-1]) == (num, start, stop)
    slack = 1e-9 * max(abs(start), abs(stop))
    assert all(min(start, stop) - slack <= one <= max(start, stop) + slack for one in found)


@given(counts=st.lists(st.integers(2, 5), min_size=1, max_size=4))
def test_a_snaked_grid_moves_one_axis_by_one_place_at_a_time(counts: list[int]) -> None:
    snaked = grid_places(counts, snaked=True)
    for one, other in pairwise(snaked):
        assert sum(abs(a - b) for a, b in zip(one, other, strict=True)) == 1
    assert sorted(snaked) == grid_places(counts, snaked=False)


def test_a_grid_goes_through_the_last_axis_first() -> None:
    plain = [point.positions for point in pattern_points(grid(2, 3))]
    assert plain == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    snaked = [point.positions for point in pattern_points(grid(2, 3, snaked=True))]
    assert snaked == [(0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0)]


def test_a_pattern_around_a_position_has_it_in_the_middle() -> None:
    assert axis_positions(pattern("around", {"centre": 5, "span": 2, "num": 3})) == [(4.0, 5.0, 6.0)]


def test_a_line_waits_captures_under_names_of_its_points_and_returns() -> None:
    at_point = [capture("signal_{n}"), check({"__capture__": "signal_{n}"})]
    drafted = pattern_steps(line(2, at_point=at_point, settle_seconds=0.5, returns=True))
    settle = {"kind": "action", "name": "settle", "params": {"seconds": 0.5}}
    x = {"address": "bl7:x", "unit": "mm"}
    assert wire_form(drafted.steps) == [
        {"kind": "capture", "capture_name": "return_i", **x},
        *(setpoint(0.0, **x), settle, capture("signal_1"), check({"__capture__": "signal_1"})),
        *(setpoint(1.0, **x), settle, capture("signal_2"), check({"__capture__": "signal_2"})),
    ]
    assert wire_form(drafted.closing_steps) == [setpoint({"__capture__": "return_i"}, **x)]


def test_captures_are_named_after_the_places_on_the_axes() -> None:
    drafted = pattern_steps(grid(2, 2, snaked=True, at_point=[capture("c_{i}_{j}_{n}")]))
    named = [step["capture_name"] for step in wire_form(drafted.steps) if step["kind"] == "capture"]
    assert named == ["c_1_1_1", "c_1_2_2", "c_2_2_3", "c_2_1_4"]


def test_captures_whose_names_repeat_are_refused_as_in_any_list() -> None:
    drafted = pattern_steps(line(at_point=[capture("signal")]))
    with expect_refusal("DuplicateRecipeCaptureError"):
        check_captures(located_steps(*drafted))


def test_a_pattern_of_too_many_steps_is_refused_before_any_is_written() -> None:
    assert step_count(line(10_000)) == 10_000
    with expect_refusal("ProcedureExpansionOverflowError") as caught:
        pattern_steps(grid(10_000, 10_000, 10_000, 10_000))
    assert caught.value.facts == {"step_count": 4 * 10_000**4, "cap": 10_000}


@for_each(
    ("raw", "words"),
    [
        (
            {"kind": "line", "axes": [{"address": "a", "start": 0, "stop": 1}] * 2, "num": 2},
            "two axes have the same address",
        ),
        (
            {"kind": "list", "axes": [{"address": "a", "positions": [1]}, {"address": "b", "positions": [1, 2]}]},
            "different numbers of positions",
        ),
        ({"kind": "line", "axes": [{"address": "a", "start": 0, "stop": 1}], "num": 1}, "greater than or equal to 2"),
        ({"kind": "line", "axes": [], "num": 2}, "at least 1 item"),
        ({"kind": "spiral", "axes": []}, "'line', 'grid', 'list', 'around'"),
    ],
)
def test_a_misshapen_pattern_is_no_pattern(raw: Raw, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        PATTERN.validate_python(raw)


def test_what_is_verified_at_each_point_is_verified_in_each_step() -> None:
    verify = {"tolerance": 0.01, "address": "bl7:x.RBV", "timeout": 20.0}
    drafted = pattern_steps(pattern("line", {"start": 0, "stop": 1, "verify": verify}, num=2))
    assert [step["verify"] for step in wire_form(drafted.steps)] == [verify, verify]
    assert all(SetpointStep.model_validate(step) for step in wire_form(drafted.steps))
