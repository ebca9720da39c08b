"""The beam: when it counts as lost, by which event, and since when."""

from datetime import datetime
from itertools import combinations_with_replacement
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from baton.domain.equipment.asset_tree import AssetScope, asset_scope
from baton.domain.kernel import Event
from baton.domain.supply.coverage import PHOTON_BEAM, Outage, is_beam_lost, outage_in, takes_beam_away
from baton.domain.supply.supply import (
    DegradeSupply,
    DeregisterSupply,
    MarkSupplyAvailable,
    MarkSupplyRecovering,
    MarkSupplyUnavailable,
    RegisterSupply,
    RestoreSupply,
    Supply,
    SupplyStatus,
    SupplyVerb,
)
from tests.support.domain.assets import LUMEN, facility_world, part, root
from tests.support.domain.world import START, new_id
from tests.support.tables import for_each

AVAILABLE, DEGRADED = SupplyStatus.AVAILABLE, SupplyStatus.DEGRADED
UNAVAILABLE, RECOVERING, UNKNOWN = SupplyStatus.UNAVAILABLE, SupplyStatus.RECOVERING, SupplyStatus.UNKNOWN


class Ring:
    """A beamline with as many beams as a test asks for."""

    def __init__(self) -> None:
        self.world = facility_world()
        self.beamline = root(self.world)
        self.station = part(self.world, self.beamline)
        self.scope: AssetScope = self.world.fulfil(asset_scope([self.station]))

    def beam(self, *verbs: type[SupplyVerb], kind: str = PHOTON_BEAM, asset_id: UUID | None = None) -> UUID:
        address = {"kind": kind, "name": f"Beam {len(self.world.streams)}", "facility_code": LUMEN}
        id = self.world.create(RegisterSupply(**address, containing_asset_id=asset_id))
        for verb in verbs:
            self.mark(id, verb)
        return id

    def mark(self, id: UUID, verb: type[SupplyVerb]) -> Event:
        (event,) = self.world.when(verb(reason="as read"), on=id)
        return event

    def outage(self) -> Outage | None:
        found: Outage | None = self.world.fulfil(outage_in(self.scope, LUMEN))
        return found

    def outage_event_id(self) -> UUID | None:
        outage = self.outage()
        return None if outage is None else outage.event_id


@pytest.fixture
def ring() -> Ring:
    return Ring()


def supply(status: SupplyStatus, kind: str = PHOTON_BEAM) -> Supply:
    named = {"kind": kind, "name": "Beam", "facility_code": LUMEN, "containing_asset_id": None}
    return Supply(id=new_id(), created_at=START, registered_at=START, status=status, **named)


@for_each("count", [0, 1, 2, 3])
def test_the_beam_is_lost_where_nothing_provides_it_and_something_is_out(count: int) -> None:
    for statuses in combinations_with_replacement(SupplyStatus, count):
        lost = not {AVAILABLE, DEGRADED} & set(statuses) and bool({UNAVAILABLE, RECOVERING} & set(statuses))
        assert is_beam_lost(map(supply, statuses)) == lost, statuses


def test_supplies_of_other_kinds_say_nothing_about_the_beam() -> None:
    assert not is_beam_lost([supply(UNAVAILABLE, "cryogen")])
    assert is_beam_lost([supply(UNAVAILABLE), supply(AVAILABLE, "cryogen")])


def test_where_nothing_is_registered_nothing_is_lost(ring: Ring) -> None:
    assert ring.outage() is None
    ring.beam(MarkSupplyUnavailable, kind="cryogen")
    ring.beam()
    assert ring.outage() is None


def test_the_outage_is_the_event_that_took_the_last_beam_away(ring: Ring) -> None:
    one, other = ring.beam(MarkSupplyAvailable), ring.beam(MarkSupplyAvailable)
    ring.mark(one, MarkSupplyUnavailable)
    assert ring.outage() is None
    last = ring.mark(other, MarkSupplyUnavailable)
    outage = ring.outage()
    assert outage is not None
    assert (outage.event_id, outage.since) == (last.stored_id, last.occurred_at)
    names = [ring.world.state(Supply, id).name for id in sorted((one, other))]
    assert outage.detail == f"{names[0]} is Unavailable, {names[1]} is Unavailable"


def test_the_outage_stays_the_same_while_supplies_only_recover(ring: Ring) -> None:
    one, other = ring.beam(MarkSupplyAvailable), ring.beam(MarkSupplyAvailable)
    ring.mark(one, MarkSupplyUnavailable)
    last = ring.mark(other, MarkSupplyUnavailable)
    for id, verb in (
        (one, MarkSupplyRecovering),
        (one, MarkSupplyUnavailable),
        (other, MarkSupplyRecovering),
        (one, MarkSupplyRecovering),
    ):
        ring.mark(id, verb)
        assert ring.outage_event_id() == last.stored_id
    ring.beam(MarkSupplyUnavailable)
    ring.beam()
    assert ring.outage_event_id() == last.stored_id


def test_only_beams_in_scope_count(ring: Ring) -> None:
    elsewhere = root(ring.world, name="Other beamline")
    ring.beam(MarkSupplyAvailable, asset_id=elsewhere)
    own = ring.beam(MarkSupplyAvailable, asset_id=ring.beamline)
    last = ring.mark(own, MarkSupplyUnavailable)
    ring.beam(MarkSupplyAvailable, MarkSupplyUnavailable, asset_id=elsewhere)
    assert ring.outage_event_id() == last.stored_id


def test_a_beam_that_was_given_up_says_nothing_more(ring: Ring) -> None:
    gone = ring.beam(MarkSupplyAvailable, MarkSupplyUnavailable)
    assert ring.outage() is not None
    ring.mark(gone, DeregisterSupply)
    assert ring.outage() is None


@pytest.mark.parametrize(
    ("before", "verb", "expected"),
    [
        ([MarkSupplyAvailable], MarkSupplyUnavailable, True),
        ([DegradeSupply], MarkSupplyUnavailable, True),
        ([MarkSupplyAvailable], DeregisterSupply, True),
        ([MarkSupplyAvailable], DegradeSupply, False),
        ([], MarkSupplyUnavailable, False),
        ([MarkSupplyUnavailable], MarkSupplyRecovering, False),
        ([MarkSupplyUnavailable, MarkSupplyRecovering], MarkSupplyUnavailable, False),
        ([MarkSupplyUnavailable, MarkSupplyRecovering], RestoreSupply, False),
        ([], MarkSupplyAvailable, False),
    ],
)
def test_what_takes_a_beam_away(ring: Ring, before: list[Any], verb: type[SupplyVerb], expected: bool) -> None:
    event: Any = ring.mark(ring.beam(*before), verb)
    assert takes_beam_away(event) == expected


BOTH_LOST = [(0, AVAILABLE), (1, AVAILABLE), (1, DEGRADED), (0, UNAVAILABLE), (1, UNAVAILABLE)]
LIVES = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(SupplyStatus)), max_size=25)
WAYS: dict[tuple[SupplyStatus, SupplyStatus], type[SupplyVerb]] = {
    (UNKNOWN, AVAILABLE): MarkSupplyAvailable,
    (UNAVAILABLE, RECOVERING): MarkSupplyRecovering,
    **{(now, DEGRADED): DegradeSupply for now in (UNKNOWN, AVAILABLE, RECOVERING)},
    **{(now, UNAVAILABLE): MarkSupplyUnavailable for now in (UNKNOWN, AVAILABLE, DEGRADED, RECOVERING)},
    **{(now, AVAILABLE): RestoreSupply for now in (RECOVERING, DEGRADED)},
}


@settings(max_examples=2 * settings().max_examples)
@example([*BOTH_LOST, (0, RECOVERING), (0, AVAILABLE), (0, UNAVAILABLE)])
@example([*BOTH_LOST, (1, RECOVERING), (1, DEGRADED), (1, UNAVAILABLE)])
@example([(0, UNAVAILABLE), (0, RECOVERING), (1, UNAVAILABLE)])
@given(LIVES)
def test_an_outage_is_the_one_that_a_constant_observer_saw_begin(life: list[tuple[int, SupplyStatus]]) -> None:
    """The rule looks back; a watcher that never slept must have seen the same event take the last beam away."""
    ring = Ring()
    beams = [ring.beam() for _ in range(3)]
    statuses = [UNKNOWN] * 3
    lost_with: tuple[UUID | None, datetime] | None = None
    for number, wanted in life:
        verb = WAYS.get((statuses[number], wanted))
        if verb is None:
            continue
        provided = bool({AVAILABLE, DEGRADED} & set(statuses))
        event = ring.mark(beams[number], verb)
        statuses[number] = wanted
        provides = bool({AVAILABLE, DEGRADED} & set(statuses))
        if provides:
            lost_with = None
        elif lost_with is None and (provided or UNAVAILABLE in statuses):
            lost_with = (event.stored_id, event.occurred_at)
        outage = ring.outage()
        assert (None if outage is None else (outage.event_id, outage.since)) == lost_with


def test_a_beam_that_is_retired_while_it_provides_is_taken_away_too(ring: Ring) -> None:
    one, other = ring.beam(MarkSupplyAvailable), ring.beam(MarkSupplyAvailable)
    ring.mark(one, MarkSupplyUnavailable)
    last = ring.mark(other, DeregisterSupply)
    assert ring.outage_event_id() == last.stored_id
    ring.beam(MarkSupplyUnavailable)
    assert ring.outage_event_id() == last.stored_id
