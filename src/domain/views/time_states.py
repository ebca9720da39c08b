"""Where the time of a beamline went: every second has exactly one state, the first that something claims it for. The sweep
is pure, so that the seconds of any range add up to it, and a range that is cut in two has the same sums."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

BEGINNING, END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class TimeState(StrEnum):
    MEASURING = "measuring"  # A run is Running and, where it is conducted, a phase of it walks.
    PREPARING = "preparing"  # A conduct without a run walks.
    BEAM = "beam"  # No photon beam in scope is Available or Degraded.
    EQUIPMENT = "equipment"  # Work waits, and an asset is Faulted or in Maintenance; or a step failed lately.
    SERVICE = "service"  # The engine lost a conduct, and nobody has settled that.
    GATE = "gate"  # The head of the queue is Blocked, or work is held by a gate.
    PERSON = "person"  # Work is held by somebody or waits for a verdict or an approval, or a supply is Recovering.
    HANDLING = "handling"  # A hutch is not Permitted.
    IDLE = "idle"


class Counts(StrEnum):
    """What a second in a state counts as."""

    USED = "used"
    LOST = "lost"
    NEITHER = "neither"


COUNTS_AS = {
    **dict.fromkeys((TimeState.MEASURING, TimeState.PREPARING), Counts.USED),
    **dict.fromkeys((TimeState.BEAM, TimeState.EQUIPMENT, TimeState.SERVICE, TimeState.GATE, TimeState.PERSON), Counts.LOST),
    **dict.fromkeys((TimeState.HANDLING, TimeState.IDLE), Counts.NEITHER),
}
RANK = {state: rank for rank, state in enumerate(TimeState)}


class TimeSpan(NamedTuple):
    """A time from its beginning until before its end."""

    begins: datetime
    ends: datetime

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.ends - self.begins).total_seconds()


@dataclass(frozen=True)
class TimeClaim:
    """Something that gives a stretch of time a state: what it is due to, and the thing that it leads to."""

    span: TimeSpan
    state: TimeState
    cause: str | None = None  # In a word: the name of a supply or an asset, the code of a gate.
    kind: str | None = None  # The aggregate of the thing.
    id: UUID | None = None
    plan_id: UUID | None = None

    @property
    def precedence(self) -> tuple[int, float, str]:
        """Its place among claims on the same second: the first state, of equals the longer claim."""
        return RANK[self.state], -self.span.seconds, f"{self.cause} {self.id} {self.span.begins.isoformat()}"


@dataclass(frozen=True)
class StateStretch:
    """A part of a range with one state, and the claim that it has it from; none where it is idle."""

    span: TimeSpan
    claim: TimeClaim | None

    @property
    def state(self) -> TimeState:
        return TimeState.IDLE if self.claim is None else self.claim.state


def partition(claims: Iterable[TimeClaim], range: TimeSpan) -> list[StateStretch]:
    """Return the stretches of a range in order, each as long as one claim has it."""
    meeting = [one for one in claims if one.span.begins < range.ends and one.span.ends > range.begins]
    starts = sorted(meeting, key=lambda one: one.span.begins)
    edges = {range.begins, range.ends}
    edges |= {at for one in meeting for at in one.span if range.begins < at < range.ends}
    stretches: list[StateStretch] = []
    open_claims: list[tuple[tuple[int, float, str], int, TimeClaim]] = []
    number, ordered = 0, sorted(edges)
    for begins, ends in pairwise(ordered):
        while number < len(starts) and starts[number].span.begins <= begins:
            heapq.heappush(open_claims, (starts[number].precedence, number, starts[number]))
            number += 1
        while open_claims and open_claims[0][2].span.ends <= begins:
            heapq.heappop(open_claims)
        claim = open_claims[0][2] if open_claims else None
        if stretches and stretches[-1].claim is claim:
            stretches[-1] = StateStretch(TimeSpan(stretches[-1].span.begins, ends), claim)
        else:
            stretches.append(StateStretch(TimeSpan(begins, ends), claim))
    return stretches


def cut(stretches: Iterable[StateStretch], windows: Sequence[TimeSpan]) -> Iterator[StateStretch]:
    """Yield the parts of stretches that lie in any of these windows, which do not overlap."""
    for one in stretches:
        for part in intersect([one.span], windows):
            yield StateStretch(part, one.claim)


def intersect(spans: Sequence[TimeSpan], others: Sequence[TimeSpan]) -> list[TimeSpan]:
    """Return where both of these have time; the spans of each are in order and do not overlap."""
    found, left, right = list[TimeSpan](), 0, 0
    while left < len(spans) and right < len(others):
        begins, ends = max(spans[left].begins, others[right].begins), min(spans[left].ends, others[right].ends)
        if begins < ends:
            found.append(TimeSpan(begins, ends))
        if spans[left].ends <= others[right].ends:
            left += 1
        else:
            right += 1
    return found


def union(spans: Iterable[TimeSpan]) -> list[TimeSpan]:
    """Return where any of these has time, in order."""
    found: list[TimeSpan] = []
    for one in sorted(spans):
        if found and one.begins <= found[-1].ends:
            found[-1] = TimeSpan(found[-1].begins, max(found[-1].ends, one.ends))
        elif one.begins < one.ends:
            found.append(one)
    return found


def complement(spans: Iterable[TimeSpan], range: TimeSpan) -> list[TimeSpan]:
    """Return where none of these has time within a range."""
    found, at = list[TimeSpan](), range.begins
    for one in union(spans):
        if one.ends <= range.begins or one.begins >= range.ends:
            continue
        if one.begins > at:
            found.append(TimeSpan(at, one.begins))
        at = max(at, one.ends)
    return [*found, *([TimeSpan(at, range.ends)] if at < range.ends else [])]


def merge_gaps(spans: Iterable[TimeSpan], seconds: float) -> list[TimeSpan]:
    """Return spans with those that lie at most so far apart counted as one."""
    found: list[TimeSpan] = []
    for one in union(spans):
        if found and (one.begins - found[-1].ends).total_seconds() <= seconds:
            found[-1] = TimeSpan(found[-1].begins, one.ends)
        else:
            found.append(one)
    return found
