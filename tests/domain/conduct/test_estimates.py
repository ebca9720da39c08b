"""How long a conduct will take: the sum of its remaining steps, as far as they are known, while the clock runs."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.conduct.estimates import (
    MAX_KEYS,
    ConductWalk,
    Estimate,
    EstimateBasis,
    WalkPosition,
    estimate,
    remaining_text,
    sum_estimates,
    walk_of,
)
from baton.domain.recipe.step_checks import read_steps
from tests.support.tables import for_each
from tests.support.workflows.step_json import action, capture, setpoint

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
SECONDS = st.integers(min_value=0, max_value=100_000).map(lambda thousandths: thousandths / 1000)
KNOWN = st.lists(SECONDS, max_size=8)
TIMES = st.lists(SECONDS | st.none(), max_size=8)


def remaining_seconds(*arguments: Any) -> float:
    found = estimate(*arguments, NOW).remaining_seconds
    assert found is not None
    return found


@given(KNOWN, KNOWN)
def test_the_whole_is_the_sum_of_all_steps_and_closing_steps(steps: list[float], closing: list[float]) -> None:
    found = estimate(steps, closing, WalkPosition(), NOW)
    assert found.remaining_seconds == pytest.approx(sum(steps) + sum(closing), abs=0.001)
    assert (found.basis, found.to_cap) == (EstimateBasis.HISTORY, False)


@given(KNOWN, KNOWN, st.data())
def test_going_on_never_makes_it_longer(steps: list[float], closing: list[float], data: st.DataObject) -> None:
    places = [WalkPosition(index) for index in range(len(steps))]
    places += [WalkPosition(index, closing=True) for index in range(len(closing) + 1)]
    left = [remaining_seconds(steps, closing, place) for place in places]
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0


@given(KNOWN.filter(len), KNOWN, SECONDS)
def test_a_step_under_way_counts_with_what_is_left_of_it_and_never_below_nothing(
    steps: list[float], closing: list[float], elapsed: float
) -> None:
    left = remaining_seconds(steps, closing, WalkPosition(elapsed=elapsed))
    assert left == pytest.approx(max(0.0, steps[0] - elapsed) + sum(steps[1:]) + sum(closing), abs=0.001)


@given(TIMES, TIMES)
def test_the_basis_says_how_many_of_the_remaining_steps_are_known(
    steps: list[float | None], closing: list[float | None]
) -> None:
    found, ahead = estimate(steps, closing, WalkPosition(), NOW), [*steps, *closing]
    unknown = ahead.count(None)
    if not unknown:
        assert found.basis is EstimateBasis.HISTORY
    elif unknown < len(ahead):
        assert found.basis is EstimateBasis.PARTLY
    else:
        assert found == Estimate(basis=EstimateBasis.NONE)


@given(KNOWN, st.integers(0, 50), st.data())
def test_unknown_steps_count_as_nothing(steps: list[float], place: int, data: st.DataObject) -> None:
    index = min(place, len(steps))
    with_gap = [*steps[:index], None, *steps[index:]]
    if steps:
        assert remaining_seconds(with_gap, [], WalkPosition()) == remaining_seconds(steps, [], WalkPosition())


@given(KNOWN, KNOWN, st.integers(0, 100), st.integers(0, 8))
def test_a_loop_is_counted_to_its_cap_and_says_so(
    steps: list[float], closing: list[float], passes_left: int, index: int
) -> None:
    found = estimate(steps, closing, WalkPosition(index, loops=True, passes_left=passes_left), NOW)
    expected = sum(steps[index:]) + passes_left * sum(steps) + sum(closing)
    assert found.remaining_seconds == pytest.approx(expected, abs=0.001)
    assert found.to_cap


@given(KNOWN, KNOWN)
def test_a_loop_without_a_cap_has_no_end_until_it_closes(steps: list[float], closing: list[float]) -> None:
    assert estimate(steps, closing, WalkPosition(loops=True, passes_left=None), NOW) == Estimate(basis=EstimateBasis.NONE)
    at_its_end = WalkPosition(loops=True, closing=True, passes_left=None)
    assert remaining_seconds(steps, closing, at_its_end) == pytest.approx(sum(closing), abs=0.001)


@given(KNOWN, KNOWN, SECONDS, st.integers(0, 100) | st.none())
def test_time_that_runs_out_lets_the_open_pass_end_and_no_other_begin(
    steps: list[float], closing: list[float], seconds_left: float, passes_left: int | None
) -> None:
    at = WalkPosition(loops=True, passes_left=passes_left, seconds_left=seconds_left)
    left = remaining_seconds(steps, closing, at)
    assert left <= max(sum(steps), seconds_left) + sum(closing) + 0.001
    assert left >= sum(steps) + sum(closing) - 0.001


@given(TIMES, TIMES, st.booleans())
def test_it_ends_when_the_remaining_time_is_over_unless_the_clock_stands(
    steps: list[float | None], closing: list[float | None], runs: bool
) -> None:
    found = estimate(steps, closing, WalkPosition(), NOW if runs else None)
    if not runs or found.remaining_seconds is None:
        assert found.ends_at is None
    else:
        assert found.ends_at == NOW + timedelta(seconds=found.remaining_seconds)


@for_each(
    ("parts", "together"),
    [
        ([], Estimate(basis=EstimateBasis.HISTORY, remaining_seconds=0)),
        ([(2.5, "history"), (3, "history")], Estimate(basis=EstimateBasis.HISTORY, remaining_seconds=5.5)),
        ([(2.5, "history"), (3, "partly")], Estimate(basis=EstimateBasis.PARTLY, remaining_seconds=5.5)),
        ([(2.5, "history"), (None, "none")], Estimate(basis=EstimateBasis.PARTLY, remaining_seconds=2.5)),
        ([(0, "history"), (None, "none")], Estimate(basis=EstimateBasis.NONE)),
    ],
)
def test_walks_one_after_the_other_take_as_long_as_all_together(
    parts: list[tuple[float | None, str]], together: Estimate
) -> None:
    estimates = [Estimate(remaining_seconds=left, basis=EstimateBasis(basis)) for left, basis in parts]
    assert sum_estimates(estimates, None) == together
    known = together.remaining_seconds if all(left is not None for left, _ in parts) else None
    ends_at = None if known is None else NOW + timedelta(seconds=known)
    assert sum_estimates(estimates, NOW).ends_at == ends_at, "no end is told while a part still to come is not known at all"


def test_steps_are_known_by_kind_and_target() -> None:
    steps = read_steps([setpoint("a", 1), setpoint("a", 2), capture("a", "n"), action("collect")])
    assert walk_of(steps, ()).keys == (("setpoint", "a"), ("capture", "a"), ("action", "collect"))


def test_the_number_of_keys_is_limited() -> None:
    walk = ConductWalk(tuple(("setpoint", str(index)) for index in range(10_000)), ())
    assert len(walk.keys) == MAX_KEYS


@for_each(
    ("found", "words"),
    [
        (None, None),
        (Estimate(basis=EstimateBasis.NONE), None),
        (Estimate(basis=EstimateBasis.HISTORY, remaining_seconds=0.2), "less than 5 s left"),
        (Estimate(basis=EstimateBasis.PARTLY, remaining_seconds=0.2), None),
        (Estimate(basis=EstimateBasis.HISTORY, remaining_seconds=59), "about 60 s left"),
        (Estimate(basis=EstimateBasis.HISTORY, remaining_seconds=42), "about 40 s left"),
        (Estimate(basis=EstimateBasis.PARTLY, remaining_seconds=200), "more than 3 min left"),
        (Estimate(basis=EstimateBasis.HISTORY, remaining_seconds=8000, to_cap=True), "at most 2 h 13 min left"),
        (Estimate(basis=EstimateBasis.PARTLY, remaining_seconds=8000, to_cap=True), "about 2 h 13 min left"),
    ],
)
def test_words_say_how_sure_it_is(found: Estimate | None, words: str | None) -> None:
    assert remaining_text(found) == words
