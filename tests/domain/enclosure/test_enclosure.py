"""Enclosures: names, observations and the contact they leave, and two axes that do not touch."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from baton.domain.access.actor import ActorKind
from baton.domain.enclosure.enclosure import (
    DecommissionEnclosure,
    Enclosure,
    EnclosureContact,
    EnclosurePermitStatus,
    EnclosureSummary,
    GetEnclosure,
    InvalidEnclosureObservationTimeError,
    ListEnclosures,
    ObserveEnclosureStatus,
    RegisterEnclosure,
    enclosure_finding,
    enclosure_key,
    is_fresh,
)
from tests.support.domain.assets import LUMEN, facility_world
from tests.support.domain.world import OPERATOR, World, expect_refusal, new_id

PERMIT = {"source_kind": "ProcessVariable", "source_id": "PSS:HUTCH-B:PERMIT"}
NOBODY = (
    "Only an enclosure's monitor reports its permit, and none is configured for {}; "
    "have an administrator add it to MONITORED_ENCLOSURES."
)
STATUSES = list(EnclosurePermitStatus)


@pytest.fixture
def world() -> World:
    return facility_world()


def registration(**fields: Any) -> RegisterEnclosure:
    return RegisterEnclosure(**{"name": "Imaging hutch B", "facility_code": LUMEN, **fields})


def observation(new_status: str, reason: str = "search complete", **fields: Any) -> ObserveEnclosureStatus:
    return ObserveEnclosureStatus(**{"new_status": new_status, "reason": reason, "monitor_ref": PERMIT, **fields})


def contacted_at(world: World, id: UUID) -> datetime | None:
    row = world.records.get((EnclosureContact, id))
    return row.contacted_at if isinstance(row, EnclosureContact) else None


def observed_enclosure(world: World, *statuses: EnclosurePermitStatus) -> UUID:
    id = world.create(registration())
    for status in statuses:
        world.when(observation(status), on=id)
    return id


def test_an_enclosure_is_registered_unknown(world: World) -> None:
    [event] = world.when(registration(name=" Imaging hutch B "))
    state = world.state(Enclosure, event.stream_id)
    assert (state.name, state.permit_status) == ("Imaging hutch B", EnclosurePermitStatus.UNKNOWN)
    assert (state.registered_at, state.registered_by) == (world.now, OPERATOR)
    assert (state.decommissioned_at, state.decommissioned_by) == (None, None)
    assert contacted_at(world, event.stream_id) is None


FAULTS: list[tuple[str, dict[str, Any]]] = [
    ("EnclosureFacilityNotFoundError", {"facility_code": "nowhere"}),
    ("InvalidEnclosureNameError", {"name": "  "}),
    ("EnclosureAlreadyExistsError", {}),
]


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=[refusal for refusal, _ in FAULTS])
def test_a_registration_is_refused_for_its_first_fault(world: World, number: int) -> None:
    world.create(registration())
    faulty = {name: value for _, fault in FAULTS[number:] for name, value in fault.items()}
    with expect_refusal(FAULTS[number][0]):
        world.create(registration(**faulty))


def test_what_cannot_be_a_facility_code_is_told_from_one_that_nobody_has(world: World) -> None:
    with expect_refusal("InvalidFacilityCodeError"):
        world.create(registration(facility_code="Lumen"))


def test_a_name_is_taken_in_its_facility_while_its_enclosure_is_active(world: World) -> None:
    world.claims["facility-code", "north-ring"] = new_id()
    first = world.create(registration())
    world.create(registration(facility_code="north-ring"))
    world.create(registration(name="imaging hutch b"))
    with expect_refusal("EnclosureAlreadyExistsError", "name_taken"):
        world.create(registration(name=" Imaging hutch B"))
    world.when(DecommissionEnclosure(reason="hutch rebuilt"), on=first)
    assert world.create(registration()) != first


names = st.text(st.sampled_from('ab,:|"\\[]/ lumen-'), min_size=1, max_size=8).map(lambda part: f"x{part}x")
codes = st.sampled_from([LUMEN, "lumen-", "x", "xax"])
named = st.builds(registration, name=names, facility_code=codes)


@given(named, named)
def test_two_enclosures_have_one_key_only_if_they_share_name_and_facility(
    one: RegisterEnclosure, other: RegisterEnclosure
) -> None:
    same = (one.name, one.facility_code) == (other.name, other.facility_code)
    assert (enclosure_key(one) == enclosure_key(other)) == same


@pytest.mark.parametrize("new_status", STATUSES)
@pytest.mark.parametrize("current", STATUSES)
def test_any_permit_status_follows_any_other_as_observed(
    world: World, current: EnclosurePermitStatus, new_status: EnclosurePermitStatus
) -> None:
    id = observed_enclosure(world, current)
    events = world.when(observation(new_status), on=id)
    assert [(event.from_status, event.to_status) for event in events] == (
        [] if new_status is current else [(current, new_status)]
    )
    assert world.state(Enclosure, id).permit_status is new_status
    assert contacted_at(world, id) == world.now


def test_an_observation_is_kept_trimmed_under_the_services_time_and_needs_an_offset_of_the_plants(world: World) -> None:
    id = world.create(registration())
    [event] = world.when(observation("Permitted", " search complete ", observed_at="2001-01-01T00:00:00Z"), on=id)
    assert (event.occurred_at, event.reason) == (world.now, "search complete")  # type: ignore[attr-defined]
    assert contacted_at(world, id) == world.now
    with pytest.raises(ValidationError):
        observation("Permitted", observed_at="2026-10-06T08:00:00")


@pytest.mark.parametrize(("ahead", "is_taken"), [(-3600, True), (0, True), (5, True), (7, False), (86400, False)])
def test_nobody_observed_in_the_future(world: World, ahead: float, is_taken: bool) -> None:
    id = world.create(registration())
    report = observation("Permitted", observed_at=world.now + timedelta(seconds=ahead))
    if is_taken:
        assert len(world.when(report, on=id)) == 1
        return
    with pytest.raises(InvalidEnclosureObservationTimeError) as refused:
        world.when(report, on=id)
    assert (refused.value.status, refused.value.reason) == (400, "in_future")
    assert "clock" in refused.value.detail


@pytest.mark.parametrize(
    ("lifecycle", "new_status", "reason", "source_kind", "refusal"),
    [
        ("Decommissioned", "Unknown", " ", " ", "EnclosureCannotObserveError"),
        ("Active", "Unknown", " ", " ", None),
        ("Active", "Permitted", " ", " ", "InvalidEnclosureReasonError"),
        ("Active", "Permitted", "search complete", " ", "InvalidMonitorRefError"),
        ("Active", "Permitted", "search complete", "pss:1", "InvalidMonitorRefError"),
    ],
)
def test_an_observation_is_judged_in_its_own_order(
    world: World, lifecycle: str, new_status: str, reason: str, source_kind: str, refusal: str | None
) -> None:
    id = world.create(registration())
    if lifecycle == "Decommissioned":
        world.when(DecommissionEnclosure(reason="hutch rebuilt"), on=id)
    reading = observation(new_status, reason, monitor_ref={**PERMIT, "source_kind": source_kind})
    if refusal is None:
        assert world.when(reading, on=id) == []
        assert contacted_at(world, id) == world.now
        return
    with expect_refusal(refusal):
        world.when(reading, on=id)
    assert contacted_at(world, id) is None


def test_observations_are_for_service_accounts_and_no_tool() -> None:
    operation = ObserveEnclosureStatus.operation
    assert (operation.callers, operation.mcp) == ((ActorKind.SERVICE_ACCOUNT,), False)


@pytest.mark.parametrize("current", STATUSES)
def test_decommissioning_keeps_the_permit_status(world: World, current: EnclosurePermitStatus) -> None:
    id = observed_enclosure(world, current)
    [event] = world.when(DecommissionEnclosure(reason=" hutch rebuilt "), on=id)
    state = world.state(Enclosure, id)
    assert (event.reason, state.permit_status) == ("hutch rebuilt", current)  # type: ignore[attr-defined]
    assert (state.decommissioned_at, state.decommissioned_by) == (world.now, OPERATOR)


def test_a_decommissioning_judges_the_lifecycle_before_the_reason(world: World) -> None:
    id = world.create(registration())
    with expect_refusal("InvalidEnclosureReasonError"):
        world.when(DecommissionEnclosure(reason=" "), on=id)
    world.when(DecommissionEnclosure(reason="hutch rebuilt"), on=id)
    with expect_refusal("EnclosureCannotDecommissionError", "decommissioned"):
        world.when(DecommissionEnclosure(reason=" "), on=id)


def test_an_enclosure_shows_the_age_of_its_last_observation(world: World) -> None:
    id = world.create(registration())
    view = world.ask(GetEnclosure(), on=id)
    assert (view.observation_age, view.last_contact_at) == (None, None)
    world.when(observation("Permitted"), on=id)
    at = world.now
    world.now += timedelta(seconds=42.5)
    shown = world.ask(GetEnclosure(), on=id)
    assert (shown.observation_age, shown.last_contact_at) == (42.5, at)


def test_an_enclosure_shows_whether_the_monitor_is_configured_for_it(world: World) -> None:
    id, other = world.create(registration()), world.create(registration(name="Hutch C"))
    world.ports["deployment"].monitored_enclosures = frozenset({enclosure_key(registration())})
    assert [world.ask(GetEnclosure(), on=one).monitored for one in (id, other)] == [True, False]


def test_a_registration_answers_whether_a_monitor_watches_the_enclosure(world: World) -> None:
    world.ports["deployment"].monitored_enclosures = frozenset({enclosure_key(registration())})
    answers = [(world.when(registration(name=name)), world.answer)[1] for name in ("Imaging hutch B", "Hutch C")]
    assert [(one["monitored"], one["remark"]) for one in answers] == [(True, None), (False, NOBODY.format("Hutch C"))]


def test_once_the_monitor_is_not_configured_any_more_everything_says_that_nobody_watches(world: World) -> None:
    id, deployment = world.create(registration()), world.ports["deployment"]
    deployment.monitored_enclosures = frozenset({enclosure_key(registration())})
    world.when(observation("Permitted"), on=id)
    world.when(observation("Unknown", "The monitor stopped.", nothing_read=True), on=id)
    contact = EnclosureContact(id, contacted_at(world, id) or world.now)
    assert world.ask(GetEnclosure(), on=id).remark is None, "the monitor is configured, and will read again"
    deployment.monitored_enclosures = frozenset()
    enclosure = world.state(Enclosure, id)
    assert not is_fresh(enclosure, contact, world.now, deployment)
    assert world.ask(GetEnclosure(), on=id).remark == NOBODY.format(enclosure.name)
    finding = enclosure_finding([id], {id: enclosure}, {id: contact}, world.now, deployment)
    assert finding is not None
    assert "have an administrator add it to MONITORED_ENCLOSURES" in finding.detail
    world.when(observation("NotPermitted"), on=id)
    assert world.ask(GetEnclosure(), on=id).remark is None, "a bridge reports it"


@pytest.mark.parametrize("past", [{"as_of_version": 1}, {"as_of": "2026-10-06T09:00:00Z"}])
def test_the_past_of_an_enclosure_has_no_age(world: World, past: dict[str, Any]) -> None:
    view = world.ask(GetEnclosure(**past), on=observed_enclosure(world, EnclosurePermitStatus.PERMITTED))
    assert "observation_age" not in view.model_dump()


def test_a_row_splits_the_source_at_its_first_colon(world: World) -> None:
    id = world.create(registration())
    row = EnclosureSummary.of(world.state(Enclosure, id)).model_dump()
    last = [name for name in row if name.startswith("last_")]
    assert [row[name] for name in last] == [None] * len(last)
    world.when(observation("NotPermitted", "door opened", observed_at=datetime(2026, 10, 6, tzinfo=UTC)), on=id)
    row = EnclosureSummary.of(world.state(Enclosure, id)).model_dump()
    assert {name: row[name] for name in last} == {
        "last_permit_status_changed_at": world.now,
        "last_permit_status_reason": "door opened",
        "last_trigger": "Monitor",
        "last_source_kind": "ProcessVariable",
        "last_source_id": "PSS:HUTCH-B:PERMIT",
        "last_source_observed_at": datetime(2026, 10, 6, tzinfo=UTC),
    }


def test_the_contacts_of_a_page_are_read_at_once(world: World) -> None:
    seen = observed_enclosure(world, EnclosurePermitStatus.PERMITTED)
    unseen = world.create(registration(name="Imaging hutch C"))
    rows = tuple(EnclosureSummary.of(world.state(Enclosure, id)) for id in (seen, unseen))
    presenting = ListEnclosures().present(rows)
    request = next(presenting)
    assert request.where == {"enclosure_id": (seen, unseen)}
    with pytest.raises(StopIteration) as done:
        presenting.send((EnclosureContact(seen, world.now),))
    assert [(item.enclosure_id, item.last_contact_at) for item in done.value.value] == [(seen, world.now), (unseen, None)]
