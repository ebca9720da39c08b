"""Publishing: gates in their order, one receipt for each revision and permit, and an artifact a peer can check."""

import base64
import hashlib
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from baton.domain.access.actor import ActorKind, ActorRegistered
from baton.domain.calibration.calibration import Calibration
from baton.domain.facility.facility import Facility
from baton.domain.federation.credential import Credential, RevokeCredential, StartCredentialRotation
from baton.domain.federation.permit import Permit, RevokePermit, SuspendPermit
from baton.domain.federation.publication import (
    CalibrationPublication,
    CalibrationPublicationError,
    PublicationStatus,
    PublishCalibrationRevision,
    Signature,
    artifact_bytes,
    is_recorded,
    publication_events,
    receipt_of,
    refusal_of,
    signing_credential,
    with_signature,
)
from baton.domain.federation.publication import with_refusal as refused_for
from baton.domain.kernel import NIL
from tests.support.domain.calibrations import append_revision, publishable_revision, publishing_world, rotation_center
from tests.support.domain.peers import IN_A_YEAR, credential, own_id, permit, site
from tests.support.domain.world import OPERATOR, World, expect_refusal, new_id

SIGNATURE = Signature(envelope_kind="ed25519-detached", kid="9f" * 32, bytes_hex="ab" * 64)


@pytest.fixture
def world() -> World:
    return publishing_world()


def own_facility_of(world: World) -> Facility:
    facility: Facility = world.state(Facility, own_id(world))
    return facility


def publication_row(world: World) -> CalibrationPublication:
    [publication] = [record for record in world.records.values() if isinstance(record, CalibrationPublication)]
    return publication


def accept_publication(world: World, **fields: Any) -> tuple[CalibrationPublication, Calibration, Permit]:
    id, publish = publishable_revision(world, **fields)
    world.when(publish, on=id)
    publication = publication_row(world)
    return publication, world.state(Calibration, id), world.state(Permit, publication.permit_id)


def test_a_publication_is_accepted_with_its_receipt_and_asked_for_again_the_same_work(world: World) -> None:
    id, publish = publishable_revision(world)
    assert world.when(publish, on=id) == []
    publication = publication_row(world)
    receipt = str(publication.receipt_id)
    assert world.answer == {"receipt_id": receipt, "work_id": receipt}
    assert publication.receipt_id.version == 7
    assert (publication.status, publication.principal_id, publication.signature) == ("Running", OPERATOR, None)
    assert (publication.calibration_id, publication.revision_id) == (id, publish.revision_id)
    answer = world.answer
    world.when(publish, on=id)
    assert (publication_row(world), world.answer) == (publication, answer)


def test_a_refused_publication_may_be_tried_again_under_the_same_receipt(world: World) -> None:
    publication, calibration, _ = accept_publication(world)
    ended = refused_for(publication, CalibrationPublicationError("The outbox is full; empty it.", reason="sending_failed"))
    world.records[CalibrationPublication, publication.receipt_id] = ended
    publish = PublishCalibrationRevision(revision_id=publication.revision_id, peer_facility_id=publication.peer_facility_id)
    world.when(publish, on=calibration.id)
    assert publication_row(world).receipt_id == publication.receipt_id
    assert (publication_row(world).status, publication_row(world).refusal) == ("Running", None)


def test_a_refusal_is_told_as_it_was_given(world: World) -> None:
    publication, *_ = accept_publication(world)
    given = CalibrationPublicationError("The outbox is full; empty it.", reason="sending_failed", facts={"free": 0})
    stored = refusal_of(refused_for(publication, given))
    assert type(stored) is type(given)
    assert (stored.detail, stored.reason, stored.facts) == (given.detail, given.reason, given.facts)


Trouble = Callable[[World, UUID, PublishCalibrationRevision], PublishCalibrationRevision | None]


def no_revision(world: World, id: UUID, publish: PublishCalibrationRevision) -> PublishCalibrationRevision:
    return PublishCalibrationRevision(revision_id=new_id(), peer_facility_id=publish.peer_facility_id)


def no_permit(world: World, id: UUID, publish: PublishCalibrationRevision) -> None:
    for kind, permit_id in list(world.streams):
        if kind == "Permit" and world.state(Permit, permit_id).status == "Active":
            world.when(SuspendPermit(), on=permit_id)


def published_before(world: World, id: UUID, publish: PublishCalibrationRevision) -> None:
    world.when(publish, on=id)
    publication = with_signature(publication_row(world), SIGNATURE, world.now)
    permit = world.state(Permit, publication.permit_id)
    published, _ = publication_events(publication, world.state(Calibration, id), permit, own_facility_of(world), world.now)
    world.given(id, published)


def no_person(world: World, id: UUID, publish: PublishCalibrationRevision) -> None:
    world.principal_id = new_id()
    world.given(world.principal_id, ActorRegistered(kind=ActorKind.SERVICE_ACCOUNT))


def no_key(world: World, id: UUID, publish: PublishCalibrationRevision) -> None:
    for kind, credential_id in list(world.streams):
        if kind == "Credential":
            world.when(RevokeCredential(), on=credential_id)


GATES: list[tuple[str, str | None, Trouble]] = [
    ("CalibrationRevisionNotFoundError", None, no_revision),
    ("OutboundPermitNotActiveError", "no_permit_in_force", no_permit),
    ("CalibrationCannotPublishRevisionError", "already_published", published_before),
    ("CalibrationCannotPublishRevisionError", "sign_off_not_human", no_person),
    ("CalibrationCannotPublishRevisionError", "no_signing_credential", no_key),
]
"""The gates in their order, each with what closes it."""


ARRANGED = (published_before, no_revision, no_permit, no_person, no_key)
"""What closes gates, in an order in which each can still be done."""


@pytest.mark.parametrize("first", range(len(GATES)), ids=[trouble.__name__ for *_, trouble in GATES])
def test_of_several_closed_gates_the_first_one_is_told(world: World, first: int) -> None:
    id, publish = publishable_revision(world)
    closed = [trouble for _, _, trouble in GATES[first:]]
    for trouble in ARRANGED:
        if trouble in closed:
            publish = trouble(world, id, publish) or publish
    code, reason, _ = GATES[first]
    before = dict(world.records)
    with expect_refusal(code, reason):
        world.when(publish, on=id)
    assert world.records == before


def test_a_principal_that_is_no_actor_is_unauthorized(world: World) -> None:
    id, publish = publishable_revision(world)
    world.principal_id = new_id()
    with expect_refusal("UnauthorizedError"):
        world.when(publish, on=id)
    world.principal_id = NIL
    with expect_refusal("CalibrationCannotPublishRevisionError", "sign_off_not_human"):
        world.when(publish, on=id)


def test_an_unknown_peer_has_no_permit(world: World) -> None:
    id, publish = publishable_revision(world)
    with expect_refusal("OutboundPermitNotActiveError"):
        world.when(PublishCalibrationRevision(revision_id=publish.revision_id, peer_facility_id=new_id()), on=id)


def test_another_permit_allows_the_same_revision_again(world: World) -> None:
    publication, calibration, granted = accept_publication(world)
    id, finished = calibration.id, with_signature(publication, SIGNATURE, world.now)
    published, receipt = publication_events(finished, calibration, granted, own_facility_of(world), world.now)
    world.given(id, published).given(granted.id, receipt)
    publish = PublishCalibrationRevision(revision_id=publication.revision_id, peer_facility_id=publication.peer_facility_id)
    with expect_refusal("CalibrationCannotPublishRevisionError", "already_published") as caught:
        world.when(publish, on=id)
    assert caught.value.facts["receipt_id"] == str(publication.receipt_id)
    key = next(iter(world.state(Permit, publication.permit_id).allowed_credential_ids))
    world.when(RevokePermit(), on=publication.permit_id)
    permit(world, publication.peer_facility_id, allowed_credential_ids=[key], abi_tier_floor="Testing")
    world.when(publish, on=id)
    assert world.answer["receipt_id"] != str(publication.receipt_id)


def chosen_credential(world: World, ids: list[UUID]) -> UUID | None:
    """The credential that a permit of these would sign with."""
    granted = world.state(Permit, permit(world, site(world), allowed_credential_ids=ids))
    credentials = {id: world.state(Credential, id) for kind, id in world.streams if kind == "Credential"}
    found = signing_credential(granted, credentials, world.state(Facility, own_id(world)), world.now)
    return found.id if found else None


def test_the_lowest_usable_own_signing_credential_signs(world: World) -> None:
    first, second = sorted(credential(world, audience=audience) for audience in ("one", "two"))
    ids = [second, first, new_id()]
    assert chosen_credential(world, ids) == first


@pytest.mark.parametrize("flaw", ["revoked", "expired", "foreign", "of another purpose", "not allowed"])
def test_no_other_credential_signs(world: World, flaw: str) -> None:
    fields: dict[str, Any] = {
        "expired": {"expires_at": world.now + timedelta(minutes=1)},
        "foreign": {"facility_id": site(world, "elsewhere")},
        "of another purpose": {"purpose": "SealOnlineSigning"},
    }.get(flaw, {})
    id = credential(world, **fields)
    if flaw == "revoked":
        world.when(RevokeCredential(), on=id)
    world.now += timedelta(minutes=2)
    assert chosen_credential(world, [new_id()] if flaw == "not allowed" else [id]) is None


def test_a_credential_that_is_being_rotated_still_signs(world: World) -> None:
    id = credential(world)
    world.when(StartCredentialRotation(new_secret_ref="file://next"), on=id)
    assert chosen_credential(world, [id]) == id
    assert world.state(Credential, id).secret_ref == "file://calibration"


@pytest.mark.parametrize(
    ("status", "floor", "goes_out"),
    [
        ("Verified", "Testing", True),
        ("Verified", "Stable", True),
        ("Provisional", "Testing", True),
        ("Provisional", "Stable", False),
        ("Verified", "Obsolete", False),
        ("Verified", "Removed", False),
    ],
)
def test_only_what_reaches_the_permits_tier_goes_out(world: World, status: str, floor: str, goes_out: bool) -> None:
    peer = site(world)
    permit_id = permit(world, peer, allowed_credential_ids=[credential(world)], abi_tier_floor=floor)
    id = rotation_center(world)
    publish = PublishCalibrationRevision(revision_id=append_revision(world, id, status=status), peer_facility_id=peer)
    if goes_out:
        world.when(publish, on=id)
        assert publication_row(world).permit_id == permit_id
    else:
        with expect_refusal("CalibrationCannotPublishRevisionError", "below_tier_floor") as caught:
            world.when(publish, on=id)
        tier = "Stable" if status == "Verified" else "Testing"
        expected = {"outbound_permit_id": str(permit_id), "abi_tier": tier, "abi_tier_floor": floor}
        assert caught.value.facts == expected


def test_only_forms_that_the_permit_names_go_out(world: World) -> None:
    peer = site(world)
    fields = {"allowed_payload_types": ["application/x-hdf5", "text/csv"], "abi_tier_floor": "Testing"}
    permit(world, peer, allowed_credential_ids=[credential(world)], **fields)
    id = rotation_center(world)
    publish = PublishCalibrationRevision(revision_id=append_revision(world, id), peer_facility_id=peer)
    with expect_refusal("CalibrationCannotPublishRevisionError", "payload_type_not_allowed") as caught:
        world.when(publish, on=id)
    assert caught.value.facts["allowed_payload_types"] == ["application/x-hdf5", "text/csv"]


def test_a_receipt_belongs_to_one_revision_and_one_permit(world: World) -> None:
    publication, calibration, permitted = accept_publication(world)
    other = append_revision(world, calibration.id)
    state = world.state(Calibration, calibration.id)
    again = receipt_of(state.revision(publication.revision_id), permitted)
    assert again == publication.receipt_id != receipt_of(state.revision(other), permitted)


@pytest.mark.parametrize(("status", "tier"), [("Verified", "Stable"), ("Provisional", "Testing")])
def test_an_artifact_holds_all_a_peer_needs_to_check_it(world: World, status: str, tier: str) -> None:
    publication, calibration, permitted = accept_publication(world, status=status)
    publication = with_signature(publication, SIGNATURE, world.now)
    sent = artifact_bytes(publication, calibration, permitted, own_facility_of(world))
    artifact = json.loads(sent)
    content = base64.b64decode(artifact["canonical_bytes"])
    assert artifact["content_hash"] == hashlib.sha256(content).hexdigest()
    assert (artifact["payload_type"], artifact["abi_tier"], artifact["artifact_kind"]) == (
        "application/json",
        tier,
        "CalibrationRevision",
    )
    assert artifact["signature_envelope"] == {
        "kind": "ed25519-detached",
        "signing_version": 2,
        "kid": SIGNATURE.kid,
        "bytes_hex": SIGNATURE.bytes_hex,
    }
    assert artifact["source_facility"] == {"facility_id": str(own_id(world)), "code": "facility"}
    assert artifact["sign_off_chain"] == [{"actor_id": str(OPERATOR), "kind": "human"}]
    assert (artifact["schema_version"], artifact["canonicalization_version"]) == (1, 1)
    assert artifact["expires_at"] == IN_A_YEAR.isoformat().replace("+00:00", "Z")
    revision = json.loads(content)
    assert revision["value"] == {"center": 1024.5, "uncertainty": 0.3}
    assert (revision["quantity"], revision["operating_point"]) == ("rotation_center", {"energy": 25, "optics_config": "5x"})
    assert revision["content_hash"] == calibration.revisions[0].content_hash
    assert "description" not in revision
    unsigned = ("content_hash", "canonical_bytes", "signature_envelope")
    assert revision["terms"] == {name: value for name, value in artifact.items() if name not in unsigned}
    assert sent == artifact_bytes(publication, calibration, permitted, own_facility_of(world))


def test_both_streams_tell_of_what_was_sent(world: World) -> None:
    publication, calibration, permitted = accept_publication(world)
    publication = with_signature(publication, SIGNATURE, world.now)
    assert not is_recorded(publication, calibration)
    published, receipt = publication_events(publication, calibration, permitted, own_facility_of(world), world.now)
    assert published.model_dump(mode="json") == {
        "revision_id": str(publication.revision_id),
        "peer_facility_id": str(publication.peer_facility_id),
        "outbound_permit_id": str(permitted.id),
        "receipt_id": str(publication.receipt_id),
        "signature_envelope_kind": "ed25519-detached",
        "signing_version": 2,
        "signature_bytes_hex": "ab" * 64,
        "signature_kid": "9f" * 32,
        "published_at": world.now.isoformat().replace("+00:00", "Z"),
        "published_by": str(OPERATOR),
    }
    artifact = json.loads(artifact_bytes(publication, calibration, permitted, own_facility_of(world)))
    assert receipt.model_dump(mode="json") == {
        "receipt_id": str(publication.receipt_id),
        "content_hash": artifact["content_hash"],
        "home_stream_type": "Calibration",
        "home_stream_id": str(calibration.id),
        "home_artifact_id": str(publication.revision_id),
        "recorded_at": world.now.isoformat().replace("+00:00", "Z"),
    }
    after = world.given(calibration.id, published).state(Calibration, calibration.id)
    assert is_recorded(publication, after)
    [kept] = after.revisions[0].publications
    assert (kept.receipt_id, kept.published_by, kept.published_at) == (publication.receipt_id, OPERATOR, world.now)
    assert publication.status is PublicationStatus.RUNNING
