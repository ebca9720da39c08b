"""The enclosure gate: every enclosure in scope permitted, in service, and observed just now; nothing else passes."""

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import product
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from baton.domain.enclosure.enclosure import (
    DecommissionEnclosure,
    Enclosure,
    EnclosureContact,
    EnclosureLifecycle,
    EnclosurePermitStatus,
    ObserveEnclosureStatus,
    RegisterEnclosure,
    enclosure_finding,
    enclosure_key,
    enclosures_with_contacts,
)
from baton.domain.equipment.asset_tree import MAX_DEPTH, asset_scope
from baton.domain.shared.gates import GateFinding
from baton.domain.shared.reads import Reads
from tests.support.domain.assets import enclosure, facility_world, hanging_chain, part, requested_reads, root, run_reads
from tests.support.domain.world import OPERATOR, START, new_id
from tests.support.tables import for_each

TTL, OWN_TTL = timedelta(seconds=120), timedelta(seconds=10)
NOW = START
PERMITTED, NOT_PERMITTED, UNKNOWN = EnclosurePermitStatus
ACTIVE, DECOMMISSIONED = EnclosureLifecycle
INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True)
class EnclosureCase:
    """One enclosure as the gate may find it; `age` None means no contact, `known` False no such enclosure."""

    permit_status: EnclosurePermitStatus = PERMITTED
    lifecycle: EnclosureLifecycle = ACTIVE
    age: timedelta | None = timedelta(seconds=10)
    known: bool = True


GOOD = EnclosureCase()
BAD = {
    "not permitted": replace(GOOD, permit_status=NOT_PERMITTED),
    "unknown status": replace(GOOD, permit_status=UNKNOWN),
    "decommissioned": replace(GOOD, lifecycle=DECOMMISSIONED),
    "stale": replace(GOOD, age=TTL + INSTANT),
    "from the future": replace(GOOD, age=-TTL - INSTANT),
    "no contact": replace(GOOD, age=None),
    "no such enclosure": EnclosureCase(known=False, age=None),
    "no such enclosure, but a contact": EnclosureCase(known=False),
}


def gate_finding(*cases: EnclosureCase, watched: frozenset[str] = frozenset()) -> tuple[GateFinding | None, list[UUID]]:
    """Return the gate's finding over these enclosures, and their ids."""
    ids = sorted(new_id() for _ in cases)
    enclosures = {
        id: Enclosure(
            id=id,
            created_at=START,
            name=f"Hutch {number}",
            facility_code="lumen",
            permit_status=case.permit_status,
            lifecycle=case.lifecycle,
            registered_at=START,
            registered_by=OPERATOR,
        )
        for number, (id, case) in enumerate(zip(ids, cases, strict=True))
        if case.known
    }
    contacts = {
        id: EnclosureContact(id, NOW - case.age) for id, case in zip(ids, cases, strict=True) if case.age is not None
    }
    return enclosure_finding(ids, enclosures, contacts, NOW, deployment(watched)), ids


def deployment(watched: frozenset[str] = frozenset()) -> Any:
    """Return what the gate asks of a deployment whose own monitor watches these."""
    lifetimes = {"enclosure_observation_ttl": TTL, "monitored_permit_ttl": OWN_TTL}
    return SimpleNamespace(**lifetimes, monitored_enclosures=watched)


@for_each("age", [OWN_TTL + INSTANT, TTL])
def test_what_the_own_monitor_watches_counts_for_ten_seconds_only(age: timedelta) -> None:
    key = enclosure_key(RegisterEnclosure(name="Hutch 0", facility_code="lumen"))
    assert gate_finding(replace(GOOD, age=OWN_TTL), watched=frozenset({key}))[0] is None
    finding, _ = gate_finding(replace(GOOD, age=age), watched=frozenset({key}))
    assert finding is not None
    assert "not within 10 s" in finding.detail
    assert gate_finding(replace(GOOD, age=age))[0] is None, "a bridge outside has longer"


def failing_enclosures(finding: GateFinding | None) -> list[str]:
    assert finding is not None
    return [one["enclosure_id"] for one in finding.facts["enclosures"]]


def test_no_enclosure_is_no_objection() -> None:
    assert gate_finding()[0] is None


@for_each("count", [1, 2, 5])
def test_all_permitted_pass(count: int) -> None:
    assert gate_finding(*[GOOD] * count)[0] is None


@for_each("age", [timedelta(0), TTL, -TTL, timedelta(seconds=-1)])
def test_an_observation_counts_until_it_is_older_than_allowed(age: timedelta) -> None:
    assert gate_finding(replace(GOOD, age=age))[0] is None


@for_each("failing", [*product(BAD, repeat=1), *product(BAD, repeat=2)])
def test_all_failing_is_total_whatever_each_fails_for(failing: tuple[str, ...]) -> None:
    finding, ids = gate_finding(*(BAD[why] for why in failing))
    assert finding is not None
    assert (finding.total, finding.reason) == (True, "no_enclosure_permitted")
    assert failing_enclosures(finding) == [str(id) for id in ids]


@for_each("why", BAD)
@for_each("place", [0, 1, 2])
def test_some_failing_names_those_alone(why: str, place: int) -> None:
    cases = [GOOD, GOOD, GOOD]
    cases[place] = BAD[why]
    finding, ids = gate_finding(*cases)
    assert finding is not None
    assert (finding.total, finding.reason) == (False, "enclosure_not_permitted")
    assert failing_enclosures(finding) == [str(ids[place])]


@for_each(
    ("permit_status", "lifecycle", "age"),
    list(product(EnclosurePermitStatus, EnclosureLifecycle, [None, TTL - INSTANT, TTL + INSTANT])),
)
def test_only_permitted_and_active_and_fresh_together_pass(
    permit_status: EnclosurePermitStatus, lifecycle: EnclosureLifecycle, age: timedelta | None
) -> None:
    finding, _ = gate_finding(EnclosureCase(permit_status, lifecycle, age))
    assert (finding is None) is ((permit_status, lifecycle, age) == (PERMITTED, ACTIVE, TTL - INSTANT))


def test_facts_say_what_is_known_of_each_failing_enclosure() -> None:
    unwatched = {"monitored": False}
    finding, ids = gate_finding(
        replace(GOOD, age=timedelta(seconds=300)), BAD["decommissioned"], BAD["no such enclosure"], GOOD
    )
    assert finding is not None
    known = [("Permitted", "Active", 300.0), ("Permitted", "Decommissioned", 10.0), (None, None, None)]
    assert finding.facts == {
        "enclosures": [
            {"enclosure_id": str(id), "permit_status": status, "lifecycle": lifecycle, "observation_age": age, **unwatched}
            for id, (status, lifecycle, age) in zip(ids[:3], known, strict=True)
        ]
    }


@for_each(
    ("why", "saying"),
    [
        ("not permitted", "Hutch 0 is NotPermitted;"),
        ("unknown status", "Hutch 0 is Unknown;"),
        ("decommissioned", "Hutch 0 is Decommissioned;"),
        ("stale", "Hutch 0 was last observed 120 s ago, not within 120 s;"),
        ("from the future", "Hutch 0 was last observed 120 s ahead of the clock, not within 120 s;"),
        ("no contact", "Hutch 0 has no contact on record;"),
        ("no such enclosure", "is not on record;"),
    ],
)
def test_the_sentence_says_what_the_cause_is(why: str, saying: str) -> None:
    finding, _ = gate_finding(BAD[why])
    assert finding is not None
    assert saying in finding.detail


@for_each("why", ["unknown status", "stale", "no contact"])
def test_a_refusal_says_who_can_report_a_permit_that_nobody_watches(why: str) -> None:
    finding, _ = gate_finding(replace(BAD[why], age=BAD[why].age and TTL * 2))
    assert finding is not None
    assert finding.detail.endswith(
        "; only an enclosure's monitor reports its permit, and none is configured for Hutch 0; have an administrator add it "
        "to MONITORED_ENCLOSURES."
    )


def test_of_an_enclosure_that_is_watched_or_was_just_heard_of_nobody_has_to_configure_anything() -> None:
    key = enclosure_key(RegisterEnclosure(name="Hutch 0", facility_code="lumen"))
    watched, _ = gate_finding(BAD["no contact"], watched=frozenset({key}))
    heard, _ = gate_finding(BAD["not permitted"])
    assert watched is not None
    assert heard is not None
    for finding in (watched, heard):
        assert finding.detail.endswith("; have each secured, and its monitor will report it.")
    assert [one["monitored"] for one in watched.facts["enclosures"]] == [True]


class PermitWorld:
    """A world with a monitor that reads permits."""

    def __init__(self) -> None:
        self.world = facility_world()

    def observe(self, id: UUID, status: str) -> None:
        source = {"source_kind": "ProcessVariable", "source_id": "PSS:PERMIT"}
        self.world.when(ObserveEnclosureStatus(new_status=status, reason="read", monitor_ref=source), on=id)

    def gate_finding_on(self, *bound: UUID) -> GateFinding | None:
        scope = run_reads(self.world, asset_scope(bound))
        enclosures, contacts = run_reads(self.world, enclosures_with_contacts(scope.enclosure_ids))
        return enclosure_finding(scope.enclosure_ids, enclosures, contacts, self.world.now, deployment())


@pytest.fixture
def permit_world() -> PermitWorld:
    return PermitWorld()


def test_nothing_in_scope_is_nothing_to_read(permit_world: PermitWorld) -> None:
    assert requested_reads(permit_world.world, enclosures_with_contacts([])) == []


def test_enclosures_and_contacts_are_two_reads_however_many(permit_world: PermitWorld) -> None:
    ids = [enclosure(permit_world.world, f"Hutch {number}") for number in range(20)]
    assert len(requested_reads(permit_world.world, enclosures_with_contacts(ids))) == 2


def test_what_is_observed_between_the_two_reads_never_opens_the_gate(permit_world: PermitWorld) -> None:
    """An old permit is refused, also if its loss is recorded while it is read."""
    hutch = enclosure(permit_world.world)
    permit_world.observe(hutch, "Permitted")
    permit_world.world.now += TTL + timedelta(seconds=5)

    def interrupted_reads() -> Reads[Any]:
        reads = enclosures_with_contacts([hutch])
        second = reads.send((yield next(reads)))
        permit_world.observe(hutch, "NotPermitted")
        with pytest.raises(StopIteration) as done:
            reads.send((yield second))
        return done.value.value

    enclosures, contacts = run_reads(permit_world.world, interrupted_reads())
    assert enclosure_finding([hutch], enclosures, contacts, permit_world.world.now, deployment()) is not None


def test_an_asset_in_no_enclosure_passes(permit_world: PermitWorld) -> None:
    assert permit_world.gate_finding_on() is None
    assert permit_world.gate_finding_on(part(permit_world.world, root(permit_world.world))) is None


def test_the_enclosure_of_an_ancestor_at_any_height_decides(permit_world: PermitWorld) -> None:
    hutch = enclosure(permit_world.world)
    chain = hanging_chain(permit_world.world, root(permit_world.world, located_in_enclosure_id=hutch), MAX_DEPTH)
    for bound in chain:
        assert failing_enclosures(permit_world.gate_finding_on(bound)) == [str(hutch)]
    permit_world.observe(hutch, "Permitted")
    for bound in chain:
        assert permit_world.gate_finding_on(bound) is None


def test_the_gate_follows_an_enclosure_through_its_life(permit_world: PermitWorld) -> None:
    hutch, neighbour = enclosure(permit_world.world, "Hutch B"), enclosure(permit_world.world, "Hutch C")
    station = part(permit_world.world, root(permit_world.world), located_in_enclosure_id=hutch)
    detector, other = part(permit_world.world, station), part(permit_world.world, station, located_in_enclosure_id=neighbour)
    assert failing_enclosures(permit_world.gate_finding_on(detector)) == [str(hutch)]
    permit_world.observe(hutch, "Permitted")
    assert permit_world.gate_finding_on(detector) is None
    permit_world.observe(neighbour, "NotPermitted")
    mixed = permit_world.gate_finding_on(detector, other)
    assert mixed is not None
    assert (mixed.total, failing_enclosures(mixed)) == (False, [str(neighbour)])
    permit_world.world.now += TTL
    permit_world.observe(neighbour, "Permitted")
    silent = permit_world.gate_finding_on(detector, other)
    assert failing_enclosures(silent) == [str(hutch)]
    permit_world.observe(hutch, "Permitted")
    assert permit_world.gate_finding_on(detector, other) is None
    permit_world.observe(hutch, "Unknown")
    assert failing_enclosures(permit_world.gate_finding_on(detector)) == [str(hutch)]
    permit_world.observe(hutch, "Permitted")
    permit_world.world.when(DecommissionEnclosure(reason="hutch rebuilt"), on=hutch)
    assert failing_enclosures(permit_world.gate_finding_on(detector)) == [str(hutch)]


def test_an_enclosure_that_is_lost_from_the_record_fails(permit_world: PermitWorld) -> None:
    hutch = enclosure(permit_world.world)
    detector = part(permit_world.world, root(permit_world.world), located_in_enclosure_id=hutch)
    permit_world.observe(hutch, "Permitted")
    del permit_world.world.streams["Enclosure", hutch]
    assert failing_enclosures(permit_world.gate_finding_on(detector)) == [str(hutch)]
