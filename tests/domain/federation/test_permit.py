"""Permits: what may flow to or from a peer, for how long, and which one counts when several match."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from baton.domain.decision.decision import Decision
from baton.domain.facility.facility import DecommissionFacility
from baton.domain.federation.permit import (
    ActivatePermit,
    DefinePermit,
    ListPermits,
    Permit,
    PermitActivated,
    PermitDefined,
    PermitDirection,
    PermitReceiptRecorded,
    PermitResumed,
    PermitRevoked,
    PermitStatus,
    PermitSuspended,
    ResumePermit,
    RevokePermit,
    SuspendPermit,
    permit_in_force,
    permits_of,
)
from tests.support.domain.peers import INBOUND, OUTBOUND, federated_world, own_id, permit, site
from tests.support.domain.world import OPERATOR, START, World, expect_refusal, new_id


@pytest.fixture
def world() -> World:
    return federated_world()


def test_a_permit_is_defined_word_for_word(world: World) -> None:
    peer, credential_id = site(world), new_id()
    definition = DefinePermit.model_validate_json(
        f"""{{"peer_facility_id": "{peer}", "audience": "registry.example", "purpose": "calibration-exchange",
        "direction": "Outbound", "allowed_credential_ids": ["{credential_id}"],
        "allowed_payload_types": ["application/json"], "allowed_artifact_kinds": ["CalibrationRevision"],
        "abi_tier_floor": "Stable", "expires_at": "2027-01-01T00:00:00Z",
        "terms": {{"kind": "Outbound", "scopes": [{{"kind": "beamline", "name": "imaging-1", "qualifier": null}}],
        "read_scope": "ReadAllArtifacts", "onward_action_scope": "MayCacheLocally"}}}}"""
    )
    [event] = world.when(definition)
    assert isinstance(event, PermitDefined)
    payload = event.model_dump(mode="json")
    assert payload == {**definition.model_dump(mode="json"), "defined_by": str(OPERATOR)}
    state = world.state(Permit, event.stream_id)
    assert (state.status, state.defined_at, state.terms_kind) == (PermitStatus.DEFINED, world.now, "Outbound")
    decision = next(world.state(Decision, id) for kind, id in world.streams if kind == "Decision")
    assert (decision.context, decision.choice, decision.decided_by) == ("PermitDefined", str(event.stream_id), OPERATOR)


def test_the_life_of_a_permit(world: World) -> None:
    id = permit(world, site(world), active=False)
    assert world.when(ActivatePermit(), on=id) == [PermitActivated(activated_by=OPERATOR)]
    assert world.when(SuspendPermit(reason="audit"), on=id) == [PermitSuspended(suspended_by=OPERATOR, reason="audit")]
    suspended_at = world.now
    assert not world.state(Permit, id).is_in_force(world.now)
    assert world.when(ResumePermit(), on=id) == [PermitResumed(resumed_by=OPERATOR)]
    assert world.state(Permit, id).is_in_force(world.now)
    assert world.when(RevokePermit(), on=id) == [PermitRevoked(revoked_by=OPERATOR, reason=None)]
    state = world.state(Permit, id)
    assert (state.suspended_at, state.revoked_at) == (suspended_at, world.now)
    assert state.resumed_at == suspended_at + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"allowed_credential_ids": []}, "empty_set"),
        ({"allowed_payload_types": []}, "empty_set"),
        ({"allowed_artifact_kinds": []}, "empty_set"),
        ({"allowed_artifact_kinds": [" "]}, "blank"),
        ({"allowed_payload_types": ["application/json", " "]}, "blank"),
        ({"audience": " "}, "blank"),
        ({"purpose": " "}, "blank"),
        ({"expires_at": START}, "not_in_the_future"),
        ({"terms": INBOUND}, "direction_mismatch"),
        ({"direction": "Inbound"}, "direction_mismatch"),
        ({"terms": {**OUTBOUND, "scopes": []}}, "empty_set"),
        ({"terms": {**OUTBOUND, "scopes": [{"kind": "beamline", "name": " "}]}}, "blank"),
        ({"direction": "Inbound", "terms": {**INBOUND, "inbound_allowed_artifact_kinds": []}}, "empty_set"),
        ({"direction": "Inbound", "terms": {**INBOUND, "accepted_canonicalization_versions": []}}, "empty_set"),
    ],
)
def test_a_permit_that_covers_nothing_is_refused(world: World, fields: dict[str, Any], reason: str) -> None:
    with expect_refusal("InvalidPermitScopeError", reason):
        permit(world, site(world), **fields)


def test_nothing_to_export_is_a_contradiction(world: World) -> None:
    terms = {**OUTBOUND, "read_scope": "ListMetadataOnly", "onward_action_scope": "MayExportOffPlatform"}
    with expect_refusal("PermitScopeCollapseError"):
        permit(world, site(world), terms=terms)


def test_only_canonical_forms_that_can_be_checked_are_accepted(world: World) -> None:
    peer = site(world)
    with expect_refusal("UnsupportedCanonicalizationVersionError") as caught:
        permit(world, peer, direction="Inbound", terms={**INBOUND, "accepted_canonicalization_versions": [1, 2]})
    assert caught.value.facts == {"unsupported": [2]}
    state = world.state(Permit, permit(world, peer, direction="Inbound", terms=INBOUND))
    assert (state.terms.accepted_canonicalization_versions, state.terms.required_receipt_kinds) == ({1}, frozenset())


@pytest.mark.parametrize("fields", [{"abi_tier_floor": "Gold"}, {"terms": {**OUTBOUND, "extra": 1}}, {"expires_at": None}])
def test_the_form_of_a_permit_is_the_edges_business(world: World, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        permit(world, site(world), **fields)


def test_the_peer_is_an_active_site_other_than_the_own_one(world: World) -> None:
    peer = site(world)
    area = site(world, "peer-hall", kind="Area", parent_id=peer)
    with expect_refusal("FacilityNotFoundError"):
        permit(world, new_id(), allowed_artifact_kinds=[])
    for wrong in (own_id(world), area):
        with expect_refusal("PermitRequiresActivePeerError"):
            permit(world, wrong)
    world.when(DecommissionFacility(), on=peer)
    with expect_refusal("PermitRequiresActivePeerError"):
        permit(world, peer)
    with expect_refusal("InvalidPermitScopeError"):
        permit(world, peer, allowed_artifact_kinds=[])


def test_a_grant_is_taken_in_its_direction_until_it_is_revoked(world: World) -> None:
    peer = site(world)
    first = permit(world, peer)
    with expect_refusal("PermitAlreadyExistsError"):
        permit(world, peer, abi_tier_floor="Testing")
    permit(world, peer, purpose="raw-exchange")
    permit(world, peer, direction="Inbound", terms=INBOUND)
    world.when(SuspendPermit(), on=first)
    with expect_refusal("PermitAlreadyExistsError"):
        permit(world, peer)
    world.when(RevokePermit(), on=first)
    assert permit(world, peer) != first


def test_a_receipt_is_audit_only(world: World) -> None:
    id = permit(world, site(world))
    before = world.state(Permit, id)
    receipt = PermitReceiptRecorded(
        receipt_id=new_id(),
        content_hash="0" * 64,
        home_stream_type="Calibration",
        home_stream_id=new_id(),
        home_artifact_id=new_id(),
        recorded_at=START,
    )
    assert world.given(id, receipt).state(Permit, id) == before


def permit_in_force_for(world: World, peer: Any, kind: str = "CalibrationRevision", **moved: Any) -> Any:
    found = world.fulfil(permits_of(peer, PermitDirection.OUTBOUND, kind))
    chosen = permit_in_force(found, world.now + timedelta(**moved))
    return chosen and chosen.id


def test_the_oldest_permit_in_force_counts(world: World) -> None:
    peer = site(world)
    assert permit_in_force_for(world, peer) is None
    older, newer = permit(world, peer), permit(world, peer, purpose="more")
    assert permit_in_force_for(world, peer) == older
    world.when(SuspendPermit(), on=older)
    assert permit_in_force_for(world, peer) == newer
    world.when(ResumePermit(), on=older)
    assert permit_in_force_for(world, peer) == older
    world.when(RevokePermit(), on=older)
    assert permit_in_force_for(world, peer) == newer
    assert permit_in_force_for(world, peer, kind="Edition") is None
    assert permit_in_force_for(world, new_id()) is None


def test_a_permit_is_out_of_force_the_moment_it_expires(world: World) -> None:
    peer = site(world)
    id = permit(world, peer, expires_at=START + timedelta(hours=1))
    state = world.state(Permit, id)
    assert state.is_in_force(state.expires_at - timedelta(microseconds=1))
    assert not state.is_in_force(state.expires_at)
    assert permit_in_force_for(world, peer, hours=1) is None
    assert state.status is PermitStatus.ACTIVE


@given(st.permutations(range(4)))
def test_the_order_of_candidates_does_not_matter(order: list[int]) -> None:
    world = federated_world()
    peer = site(world)
    states = [world.state(Permit, permit(world, peer, purpose=f"purpose {number}")) for number in range(4)]
    assert permit_in_force([states[number] for number in order], world.now) == states[0]


def test_sets_have_one_order_whatever_was_given(world: World) -> None:
    scopes = [{"kind": "beamline", "name": name} for name in ("b", "a", "a")]
    kinds = ["Edition", " CalibrationRevision", "CalibrationRevision"]
    state = world.state(
        Permit, permit(world, site(world), terms={**OUTBOUND, "scopes": scopes}, allowed_artifact_kinds=kinds)
    )
    defined = world.streams["Permit", state.id][0].model_dump(mode="json")
    assert [scope["name"] for scope in defined["terms"]["scopes"]] == ["a", "b"]
    assert defined["allowed_artifact_kinds"] == ["CalibrationRevision", "Edition"]


def test_a_listed_permit_says_what_kind_its_terms_are(world: World) -> None:
    row = ListPermits.summary.of(world.state(Permit, permit(world, site(world)))).model_dump()
    assert (row["terms_kind"], "terms" in row) == ("Outbound", False)
