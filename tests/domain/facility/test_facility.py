"""Facilities: codes that are never given again, sites and their areas, trust anchors."""

from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.domain.facility.facility import (
    DecommissionFacility,
    Facility,
    FacilityDecommissioned,
    FacilityKind,
    FacilityStatus,
    FacilityTrustAnchorCredentialAdded,
    RegisterFacility,
)
from baton.domain.federation.credential import AddFacilityTrustAnchorCredential, RemoveFacilityTrustAnchorCredential
from tests.support.domain.peers import credential
from tests.support.domain.world import OPERATOR, World, expect_refusal, new_id
from tests.support.tables import for_each


@pytest.fixture
def world() -> World:
    return World()


def site(world: World, code: str = "lumen", **fields: Any) -> UUID:
    return world.create(RegisterFacility(code=code, display_name="Lumen Light Source", kind="Site", **fields))


def area(world: World, parent_id: UUID | None, code: str = "lumen-hall-2") -> UUID:
    return world.create(RegisterFacility(code=code, display_name="Hall 2", kind="Area", parent_id=parent_id))


def test_a_peer_is_registered_by_code_and_answered_with_its_id(world: World) -> None:
    registration = RegisterFacility(code="peer-lightsource", display_name="Peer Light Source", kind="Site", parent_id=None)
    [event] = world.when(registration)
    assert world.answer == {"facility_id": str(event.stream_id), "code": "peer-lightsource"}
    state = world.state(Facility, event.stream_id)
    assert (state.kind, state.status, state.parent_id) == (FacilityKind.SITE, FacilityStatus.ACTIVE, None)
    assert (state.registered_by, state.registered_at) == (OPERATOR, world.now)
    assert (state.decommissioned_by, state.decommissioned_at) == (None, None)


@pytest.mark.parametrize("code", ["Lumen", "lumen_2", "lumen 2", "lümen", "lumen."])
def test_a_code_has_lower_case_letters_digits_and_hyphens_only(world: World, code: str) -> None:
    with expect_refusal("InvalidFacilityCodeError"):
        site(world, code)


@for_each("code", ["", "l" * 33])
def test_the_length_of_a_code_is_the_edges_business(code: str) -> None:
    with pytest.raises(ValidationError):
        RegisterFacility(code=code, display_name="Lumen", kind="Site")


def test_a_code_is_taken_for_ever(world: World) -> None:
    first = site(world)
    with expect_refusal("FacilityAlreadyExistsError"):
        site(world, " lumen ")
    world.when(DecommissionFacility(), on=first)
    with expect_refusal("FacilityAlreadyExistsError"):
        site(world)
    assert world.claims["facility-code", "lumen"] == first


def test_a_facility_needs_a_display_name(world: World) -> None:
    with expect_refusal("InvalidFacilityNameError"):
        world.create(RegisterFacility(code="lumen", display_name="  ", kind="Site"))


def test_sites_stand_alone_and_areas_belong_to_a_site(world: World) -> None:
    lumen = site(world)
    hall = area(world, lumen)
    assert world.state(Facility, hall).parent_id == lumen
    with expect_refusal("FacilitySiteCannotHaveParentError"):
        site(world, "other", parent_id=lumen)
    with expect_refusal("FacilityAreaMustHaveParentError"):
        area(world, None, "hall-3")
    with expect_refusal("FacilityParentNotFoundError"):
        area(world, new_id(), "A bad code")
    with expect_refusal("FacilityAreaParentMustBeSiteError") as caught:
        area(world, hall, "hall-3")
    assert caught.value.facts == {"site_id": str(lumen)}


def test_other_identifiers_are_kept_once_each_in_order(world: World) -> None:
    given = [
        {"kind": "Other", "value": " grid.7 "},
        {"kind": "InventoryNumber", "value": "9"},
        {"kind": "Other", "value": "grid.7"},
    ]
    state = world.state(Facility, site(world, alternate_identifiers=given))
    assert [(i.kind, i.value) for i in state.alternate_identifiers] == [("InventoryNumber", "9"), ("Other", "grid.7")]
    with expect_refusal("InvalidFacilityIdentifierError"):
        site(world, "other", alternate_identifiers=[{"kind": "Other", "value": " "}])
    with pytest.raises(ValidationError):
        site(world, "other", alternate_identifiers=[{"kind": "EPICS_PV", "value": "lum:m1"}])


def test_a_site_rests_on_trust_anchors_that_are_added_and_removed_once_and_an_area_does_not(world: World) -> None:
    lumen = site(world)
    anchor = credential(world, lumen)
    [added] = world.when(AddFacilityTrustAnchorCredential(credential_id=anchor), on=lumen)
    assert added == FacilityTrustAnchorCredentialAdded(credential_id=anchor, added_by=OPERATOR)
    assert world.state(Facility, lumen).trust_anchor_credential_ids == {anchor}
    with expect_refusal("FacilityTrustAnchorCredentialAlreadyPresentError"):
        world.when(AddFacilityTrustAnchorCredential(credential_id=anchor), on=lumen)
    with expect_refusal("FacilityCannotAddTrustAnchorCredentialError", "area"):
        world.when(AddFacilityTrustAnchorCredential(credential_id=anchor), on=area(world, lumen))
    removal = RemoveFacilityTrustAnchorCredential(credential_id=anchor, reason="key ceremony")
    [removed] = world.when(removal, on=lumen)
    assert (removed.removed_by, removed.reason) == (OPERATOR, "key ceremony")
    assert world.state(Facility, lumen).trust_anchor_credential_ids == frozenset()
    with expect_refusal("FacilityTrustAnchorCredentialNotPresentError"):
        world.when(removal, on=lumen)


def test_a_credential_is_looked_for_before_the_state(world: World) -> None:
    lumen = site(world)
    world.when(DecommissionFacility(), on=lumen)
    with expect_refusal("CredentialNotFoundError"):
        world.when(AddFacilityTrustAnchorCredential(credential_id=new_id()), on=lumen)


def test_a_decommissioned_facility_says_by_whom_when_and_why(world: World) -> None:
    lumen = site(world)
    with expect_refusal("InvalidReasonError", "blank"):
        world.when(DecommissionFacility(reason=" "), on=lumen)
    [event] = world.when(DecommissionFacility(reason="closed"), on=lumen)
    assert event == FacilityDecommissioned(decommissioned_by=OPERATOR, reason="closed")
    state = world.state(Facility, lumen)
    assert (state.decommissioned_by, state.decommissioned_at) == (OPERATOR, world.now)
    [event] = world.when(DecommissionFacility(), on=site(world, "other"))
    assert event.reason is None
