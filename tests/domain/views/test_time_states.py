"""Every second has exactly one state: the seconds of any range add up to it, and a range cut in two has the same sums."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.views.time_states import (
    END,
    StateStretch,
    TimeClaim,
    TimeSpan,
    TimeState,
    complement,
    cut,
    merge_gaps,
    partition,
    union,
)

NOON = datetime(2026, 10, 6, 12, tzinfo=UTC)
STATES = [one for one in TimeState if one is not TimeState.IDLE]


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def span(begins: float, ends: float) -> TimeSpan:
    return TimeSpan(at(begins), at(ends))


def seconds(stretches: Sequence[StateStretch]) -> Counter[TimeState]:
    sums: Counter[TimeState] = Counter()
    for one in stretches:
        sums[one.state] += round(one.span.seconds)
    return sums


spans = st.tuples(st.integers(-50, 150), st.integers(1, 80)).map(lambda drawn: span(drawn[0], drawn[0] + drawn[1]))
open_spans = st.integers(-50, 150).map(lambda begins: TimeSpan(at(begins), END))
claims = st.lists(
    st.builds(TimeClaim, spans | open_spans, st.sampled_from(STATES), st.sampled_from(["a", "b", None])), max_size=25
)


@given(claims, st.integers(0, 60), st.integers(61, 120), st.randoms())
def test_the_seconds_of_any_range_add_up_to_it(drawn: list[TimeClaim], begins: int, ends: int, random: object) -> None:
    stretches = partition(drawn, span(begins, ends))
    assert sum(one.span.seconds for one in stretches) == (ends - begins) * 60
    assert stretches[0].span.begins == at(begins)
    assert stretches[-1].span.ends == at(ends)
    random.shuffle(drawn)  # type: ignore[attr-defined]
    assert seconds(partition(drawn, span(begins, ends))) == seconds(stretches)


@given(claims, st.integers(0, 40), st.integers(41, 80), st.integers(81, 120))
def test_a_range_that_is_cut_in_two_has_the_same_sums(drawn: list[TimeClaim], begins: int, middle: int, ends: int) -> None:
    whole = seconds(partition(drawn, span(begins, ends)))
    assert whole == seconds(partition(drawn, span(begins, middle))) + seconds(partition(drawn, span(middle, ends)))


@given(claims, st.integers(0, 119))
def test_a_second_has_the_first_state_that_claims_it(drawn: list[TimeClaim], minute: int) -> None:
    moment = at(minute + 0.5)
    claiming = [one.state for one in drawn if one.span.begins <= moment < one.span.ends]
    [stretch] = [one for one in partition(drawn, span(0, 120)) if one.span.begins <= moment < one.span.ends]
    assert stretch.state is min(claiming, key=list(TimeState).index, default=TimeState.IDLE)


def test_of_runs_that_overlap_the_longer_one_counts() -> None:
    long, short = TimeClaim(span(0, 60), TimeState.MEASURING, "long"), TimeClaim(span(10, 20), TimeState.MEASURING, "short")
    assert [one.claim for one in partition([short, long], span(0, 60))] == [long]


@given(st.lists(spans, max_size=12))
def test_what_is_claimed_and_what_is_not_are_the_whole_range(drawn: list[TimeSpan]) -> None:
    window = span(0, 100)
    free = complement(drawn, window)
    taken = complement(free, window)
    assert sum(one.seconds for one in (*free, *taken)) == window.seconds
    assert union([*free, *taken]) == [window]


def test_only_scheduled_time_is_counted() -> None:
    stretches = partition([TimeClaim(span(10, 40), TimeState.BEAM)], span(0, 100))
    assert seconds([*cut(stretches, [span(30, 50), span(60, 70)])]) == {TimeState.BEAM: 600, TimeState.IDLE: 1200}


@pytest.mark.parametrize(("gap", "count"), [(0, 3), (60, 2), (600, 1)])
def test_outages_close_together_count_as_one(gap: float, count: int) -> None:
    assert len(merge_gaps([span(0, 5), span(6, 8), span(15, 20)], gap)) == count
