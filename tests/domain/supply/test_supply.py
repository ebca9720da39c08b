"""Supplies: their addresses, the verbs of operators, and what a monitor may say."""

import unicodedata
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from baton.domain.equipment.asset_tree import DecommissionAsset
from baton.domain.supply.supply import (
    DegradeSupply,
    DeregisterSupply,
    GetSupply,
    MarkSupplyAvailable,
    MarkSupplyRecovering,
    MarkSupplyUnavailable,
    ObserveSupplyStatus,
    RegisterSupply,
    RestoreSupply,
    Supply,
    SupplyContact,
    SupplyMarkedUnavailable,
    SupplyStatus,
    SupplySummary,
    SupplyVerb,
    address_key,
)
from tests.support.domain.assets import LUMEN, facility_world, root
from tests.support.domain.lifecycle_table import Scene
from tests.support.domain.lifecycles.supply import SUPPLY
from tests.support.domain.world import OPERATOR, World, expect_refusal, new_id
from tests.support.tables import for_each

LEVEL = {"source_kind": "ProcessVariable", "source_id": "LN:DEWAR:LEVEL"}


@pytest.fixture
def world() -> World:
    return facility_world()


def registration(**fields: Any) -> RegisterSupply:
    return RegisterSupply(**{"kind": "cryogen", "name": "Station B nitrogen drop", "facility_code": LUMEN, **fields})


def supply_at(world: World, status: str) -> UUID:
    """A supply that came to a status by its own verbs."""
    id = world.create(registration())
    for name in SUPPLY.ways["status"][status].split():
        world.when(SUPPLY.command(name, Scene()), on=id)
    return id


def observation(new_status: str, reason: str = "level below limit", **source: str) -> ObserveSupplyStatus:
    return ObserveSupplyStatus(new_status=new_status, reason=reason, monitor_ref={**LEVEL, **source})


def test_a_supply_may_belong_to_an_asset_in_any_lifecycle(world: World) -> None:
    beamline = root(world)
    world.when(DecommissionAsset(), on=beamline)
    assert world.state(Supply, world.create(registration(containing_asset_id=beamline))).containing_asset_id == beamline


FAULTS: list[tuple[str, dict[str, Any]]] = [
    ("SupplyFacilityNotFoundError", {"facility_code": "nowhere"}),
    ("SupplyContainingAssetNotFoundError", {"containing_asset_id": new_id()}),
    ("InvalidSupplyKindError", {"kind": "  "}),
    ("InvalidSupplyNameError", {"name": "\t"}),
    ("SupplyAlreadyExistsError", {}),
]


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=[refusal for refusal, _ in FAULTS])
def test_a_registration_is_refused_for_its_first_fault(world: World, number: int) -> None:
    world.create(registration())
    faulty = {name: value for _, fault in FAULTS[number:] for name, value in fault.items()}
    with expect_refusal(FAULTS[number][0]):
        world.create(registration(**faulty))


@pytest.mark.parametrize("code", ["Lumen", "lumen 2", "lümen"])
def test_what_cannot_be_a_facility_code_is_told_from_one_that_nobody_has(world: World, code: str) -> None:
    with expect_refusal("InvalidFacilityCodeError"):
        world.create(registration(facility_code=code))


@for_each(
    "fields", [{"kind": "k" * 51}, {"kind": ""}, {"name": "n" * 201}, {"facility_code": "f" * 33}, {"status": "Available"}]
)
def test_lengths_and_unknown_keys_are_the_edges_business(fields: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        registration(**fields)


def test_an_address_is_taken_while_its_supply_lives(world: World) -> None:
    first = world.create(registration())
    with expect_refusal("SupplyAlreadyExistsError", "address_taken"):
        world.create(registration(name=" Station B nitrogen drop "))
    world.when(DeregisterSupply(reason="line removed"), on=first)
    assert world.create(registration()) != first


def test_any_part_of_an_address_makes_it_another(world: World) -> None:
    world.claims["facility-code", "north-ring"] = new_id()
    beamline, bench = root(world), root(world)
    addresses: list[dict[str, Any]] = [
        {},
        {"kind": "Cryogen"},
        {"name": "station b nitrogen drop"},
        {"facility_code": "north-ring"},
        {"containing_asset_id": beamline},
        {"containing_asset_id": bench},
    ]
    for address in addresses:
        world.create(registration(**address))
    for address in addresses:
        with expect_refusal("SupplyAlreadyExistsError"):
            world.create(registration(**address))


parts = st.text(st.sampled_from('ab,:|"\\[]/ nul\u00e9e\u0301'), min_size=1, max_size=8).map(lambda part: f"x{part}x")
addresses = st.builds(
    registration,
    kind=parts,
    name=parts,
    facility_code=st.sampled_from([LUMEN, "north-ring"]),
    containing_asset_id=st.sampled_from([None, UUID(int=1), UUID(int=2)]),
)


@given(addresses, addresses)
def test_two_addresses_have_one_key_only_if_they_are_one_address(one: RegisterSupply, other: RegisterSupply) -> None:
    def address(supply: RegisterSupply) -> tuple[Any, ...]:
        kind, name = (unicodedata.normalize("NFC", text) for text in (supply.kind, supply.name))
        return kind, name, supply.facility_code, supply.containing_asset_id

    assert (address_key(one) == address_key(other)) == (address(one) == address(other))


def test_a_supply_is_found_by_its_kind_until_it_is_deregistered(world: World) -> None:
    supply = world.create(registration())
    assert world.members["supply-kind", "cryogen"] == {supply}
    world.when(DeregisterSupply(reason="line removed"), on=supply)
    assert world.members["supply-kind", "cryogen"] == set()


@pytest.mark.parametrize(
    ("before", "verb", "event_type"),
    [
        ("Unknown", MarkSupplyAvailable, "SupplyMarkedAvailable"),
        ("Available", DegradeSupply, "SupplyDegraded"),
        ("Degraded", MarkSupplyUnavailable, "SupplyMarkedUnavailable"),
        ("Unavailable", MarkSupplyRecovering, "SupplyMarkedRecovering"),
        ("Recovering", RestoreSupply, "SupplyRestored"),
        ("Unavailable", DeregisterSupply, "SupplyDeregistered"),
    ],
)
def test_a_transition_says_from_where_why_and_by_whom(
    world: World, before: str, verb: type[SupplyVerb], event_type: str
) -> None:
    supply = supply_at(world, before)
    by_hand = {"trigger": "Operator", "triggered_by": OPERATOR, "monitor_ref": None}
    expected = Supply.aggregate.events[event_type](from_status=before, reason="walkdown", **by_hand)
    assert world.when(verb(reason=" walkdown "), on=supply) == [expected]


def test_a_verb_judges_the_status_before_the_reason(world: World) -> None:
    with expect_refusal("SupplyCannotRestoreError", "unknown"):
        world.when(RestoreSupply(reason=" "), on=supply_at(world, "Unknown"))
    world = facility_world()
    with expect_refusal("InvalidSupplyReasonError"):
        world.when(RestoreSupply(reason=" "), on=supply_at(world, "Degraded"))


OBSERVED = {
    "Degraded": ("SupplyDegraded", SUPPLY.verbs["degrade_supply"]),
    "Unavailable": ("SupplyMarkedUnavailable", SUPPLY.verbs["mark_supply_unavailable"]),
    "Recovering": ("SupplyMarkedRecovering", SUPPLY.verbs["mark_supply_recovering"]),
}
"""What is reported when a monitor finds a status, allowed and refused as the operator's verb that leads there."""
STATUSES = [status.value for status in SupplyStatus]


@pytest.mark.parametrize("new_status", STATUSES)
@pytest.mark.parametrize("current", STATUSES)
def test_a_monitor_reports_what_is_worse_and_never_what_is_good(world: World, current: str, new_status: str) -> None:
    supply = supply_at(world, current)
    before = len(world.streams["Supply", supply])
    if new_status not in OBSERVED:
        with expect_refusal("MonitorTriggerNotPermittedError"):
            world.when(observation(new_status), on=supply)
    elif new_status == current:
        assert world.when(observation(new_status), on=supply) == []
    else:
        event_type, verb = OBSERVED[new_status]
        if verb.allows({"status": current}):
            [event] = world.when(observation(new_status), on=supply)
            assert type(event).__name__ == event_type
            assert world.state(Supply, supply).status == new_status
            return
        with expect_refusal(verb.refusal):
            world.when(observation(new_status), on=supply)
    assert len(world.streams["Supply", supply]) == before


def test_an_observation_names_the_monitor_and_its_source(world: World) -> None:
    supply = supply_at(world, "Available")
    world.principal_id = monitor = new_id()
    [event] = world.when(observation("Unavailable", " level low ", source_kind=" ProcessVariable "), on=supply)
    assert event == SupplyMarkedUnavailable(
        from_status="Available",
        reason="level low",
        trigger="Monitor",
        triggered_by=monitor,
        monitor_ref="ProcessVariable:LN:DEWAR:LEVEL",
    )


@pytest.mark.parametrize(
    ("current", "new_status", "reason", "source_kind", "refusal"),
    [
        ("Available", "Available", " ", " ", "MonitorTriggerNotPermittedError"),
        ("Decommissioned", "Decommissioned", " ", " ", "MonitorTriggerNotPermittedError"),
        ("Unavailable", "Unavailable", " ", " ", None),
        ("Unavailable", "Degraded", " ", " ", "SupplyCannotDegradeError"),
        ("Available", "Degraded", " ", " ", "InvalidSupplyReasonError"),
        ("Available", "Degraded", "worn", " ", "InvalidMonitorRefError"),
    ],
)
def test_an_observation_is_judged_in_its_own_order(
    world: World, current: str, new_status: str, reason: str, source_kind: str, refusal: str | None
) -> None:
    supply = supply_at(world, current)
    reading = observation(new_status, reason, source_kind=source_kind)
    if refusal is None:
        assert world.when(reading, on=supply) == []
    else:
        with expect_refusal(refusal):
            world.when(reading, on=supply)


@pytest.mark.parametrize("current", SupplyStatus)
@pytest.mark.parametrize("new_status", ["Unknown", "Recovering"])
def test_the_own_monitors_reading_that_changes_nothing_is_a_contact_alone(
    world: World, current: str, new_status: str
) -> None:
    supply = supply_at(world, current)
    reading = observation(new_status).model_copy(update={"confirms": True})
    events = world.when(reading, on=supply)
    recovers = (current, new_status) == ("Unavailable", "Recovering")
    assert [type(event).__name__ for event in events] == (["SupplyMarkedRecovering"] if recovers else [])
    assert world.records[SupplyContact, supply] == SupplyContact(supply, world.now)
    shown = world.ask(GetSupply(), on=supply)
    assert (shown.status, shown.observation_age) == ("Recovering" if recovers else current, 0)


@pytest.mark.parametrize(
    ("source", "reason"),
    [({"source_kind": " "}, "blank"), ({"source_id": "\n"}, "blank"), ({"source_kind": "epics:ca"}, "colon")],
)
def test_a_source_has_a_kind_without_a_colon_and_an_id(world: World, source: dict[str, str], reason: str) -> None:
    with expect_refusal("InvalidMonitorRefError", reason):
        world.when(observation("Degraded", **source), on=supply_at(world, "Available"))


@for_each(
    "fields",
    [
        {"monitor_ref": None},
        {"monitor_ref": {"source_kind": "k" * 51, "source_id": "i"}},
        {"monitor_ref": {"source_kind": "k", "source_id": "i" * 201}},
        {"monitor_ref": {"source_kind": "", "source_id": "i"}},
        {"monitor_ref": {**LEVEL, "quality": "good"}},
        {"reason": ""},
        {"reason": "r" * 501},
        {"new_status": "Broken"},
        {"trigger": "Operator"},
        {"triggered_by": str(OPERATOR)},
        {"observed_at": "2026-10-06T08:00:00Z"},
    ],
)
def test_an_observation_has_one_form(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ObserveSupplyStatus(**{"new_status": "Degraded", "reason": "worn", "monitor_ref": LEVEL, **fields})


def test_the_last_change_is_listed_once_there_was_one(world: World) -> None:
    supply = world.create(registration())
    row = SupplySummary.of(world.state(Supply, supply))
    assert (row.last_status_changed_at, row.last_status_reason, row.last_trigger) == (None, None, None)
    assert row.registered_at == world.now
    world.when(observation("Degraded"), on=supply)
    row = SupplySummary.of(world.state(Supply, supply))
    assert row.last_status_changed_at == world.now
    assert (row.last_status_reason, row.last_trigger) == ("level below limit", "Monitor")


def test_a_supply_shows_its_monitor_and_when_that_last_reported_it_repeats_included(world: World) -> None:
    supply, other = world.create(registration()), world.create(registration(name="Another"))
    world.ports["deployment"].monitored_supplies = frozenset({address_key(registration())})
    assert [world.ask(GetSupply(), on=one).monitored for one in (supply, other)] == [True, False]
    for _ in range(2):
        world.when(observation("Degraded"), on=supply)
        assert world.ask(GetSupply(), on=supply).last_contact_at == world.now
    assert [type(event).__name__ for event in world.streams["Supply", supply]] == ["SupplyRegistered", "SupplyDegraded"]
    assert "monitored" not in world.ask(GetSupply(as_of_version=1), on=supply).model_dump()
