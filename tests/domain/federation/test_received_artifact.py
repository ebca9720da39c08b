"""Artifacts of peers: what is taken in, which verdict each gets, and how a person makes a value of a peer an own one."""

import json
from datetime import timedelta
from functools import cache
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.access.actor import ActorKind, ActorRegistered
from baton.domain.calibration.calibration import REVISIONS, Calibration
from baton.domain.facility.facility import Facility
from baton.domain.federation.artifact_check import (
    FailedCheck,
    PassedCheck,
    Stage,
    StageOutcome,
    check_artifact,
    signed_content,
)
from baton.domain.federation.credential import RevokeCredential, StartCredentialRotation
from baton.domain.federation.permit import Permit, PermitReceiptRecorded, ResumePermit, RevokePermit, SuspendPermit
from baton.domain.federation.publication import bytes_hash
from baton.domain.federation.received_artifact import (
    AdoptReceivedArtifact,
    ArtifactRejected,
    ArtifactUnverifiable,
    ArtifactVerified,
    GetReceivedArtifactDocument,
    ReceivedArtifact,
    ReceivedArtifactAdopted,
    ReceivedDocument,
    RecheckReceivedArtifact,
)
from baton.domain.kernel import Command, Document
from baton.domain.shared.tasks import Task
from tests.support.domain.artifacts import (
    ADDRESS,
    OTHER_KEY,
    SOURCE,
    Receiver,
    forged_artifact,
    public_material,
    published_artifact,
    receiver,
)
from tests.support.domain.calibrations import rotation_center
from tests.support.domain.peers import INBOUND, credential, permit, site
from tests.support.domain.world import OPERATOR, World, expect_refusal, new_id
from tests.support.tables import for_each

SCITT = {**INBOUND, "required_receipt_kinds": ["scitt"]}
AGENT = [{"actor_id": str(new_id()), "kind": "agent"}]
PERSON = {"actor_id": str(new_id()), "kind": "human"}


def test_a_reference_is_accepted_as_work_and_nothing_is_recorded_yet() -> None:
    beta = receiver()
    id = beta.ask_for(published_artifact())
    [task] = [row for row in beta.world.records.values() if isinstance(row, Task)]
    assert task.request == json.loads(json.dumps({**beta.reference(published_artifact()), "uri": None}, default=str))
    assert task.ids == {"received_artifact_id": str(id)}
    assert beta.world.state(ReceivedArtifact, id) is None
    assert beta.ask_for(published_artifact()) == id, "what one facility published under one receipt is one thing"


def test_what_a_peer_really_publishes_is_verified() -> None:
    beta = receiver()
    artifact = json.loads(published_artifact())
    id, [event] = beta.receive(published_artifact())
    assert isinstance(event, ArtifactVerified)
    assert [(one.stage, one.outcome, one.reason) for one in event.stages] == [
        (stage, "skip" if stage == "required_receipts" else "pass", None) for stage in Stage
    ]
    state = beta.world.state(ReceivedArtifact, id)
    assert (state.status, state.stage, state.reason) == ("Verified", None, None)
    assert (state.permit_id, state.credential_id, state.received_by) == (beta.permit_id, beta.credential_id, OPERATOR)
    assert (state.revision.quantity, state.revision.value) == ("rotation_center", {"center": 1024.5, "uncertainty": 0.3})
    assert beta.world.answer == {"received_artifact_id": str(id), "status": "Verified", "stage": None, "reason": None}
    receipt = beta.world.streams["Permit", beta.permit_id][-1]
    assert isinstance(receipt, PermitReceiptRecorded)
    assert (str(receipt.receipt_id), receipt.content_hash) == (artifact["receipt_id"], artifact["content_hash"])
    assert (receipt.home_stream_type, receipt.home_stream_id) == ("ReceivedArtifact", id)
    assert receipt.home_artifact_id == state.revision.revision_id
    document = beta.world.ask(GetReceivedArtifactDocument(), on=id)
    assert document == Document("application/json", published_artifact())


Verdict = tuple[str, str]
REJECTED: list[tuple[dict[str, Any], dict[str, Any], Verdict]] = [
    ({"allowed_payload_types": ["text/csv"]}, {}, ("payload_type", "payload_type_not_allowed")),
    ({}, {"terms": {"payload_type": "text/csv"}}, ("payload_type", "payload_type_not_allowed")),
    ({}, {"terms": {"payload_type": ["application/json"]}}, ("payload_type", "payload_type_not_allowed")),
    ({}, {"terms": {"artifact_kind": "Plan"}}, ("payload_type", "artifact_kind_not_allowed")),
    ({}, {"outside": {"abi_tier": "Obsolete"}}, ("content_hash", "terms_mismatch")),
    ({}, {"outside": {"expires_at": "2099-01-01T00:00:00Z"}}, ("content_hash", "terms_mismatch")),
    ({}, {"outside": {"sign_off_chain": [PERSON]}}, ("content_hash", "terms_mismatch")),
    ({}, {"outside": {"schema_version": True}}, ("content_hash", "terms_mismatch")),
    ({}, {"outside": {"content_hash": "ab" * 32}}, ("content_hash", "hash_mismatch")),
    ({}, {"outside": {"more": 1}}, ("content_hash", "malformed")),
    ({}, {"outside": {"signature_envelope": None}}, ("content_hash", "malformed")),
    ({}, {"content": {"value": {"center": "far left"}}}, ("content_hash", "malformed")),
    ({}, {"content": {"operating_point": {"energy": 25, "optics_config": "5x\0"}}}, ("content_hash", "malformed")),
    ({}, {"content": {"operator": "Mira Okafor"}}, ("content_hash", "malformed")),
    ({"terms": SCITT}, {}, ("required_receipts", "receipts_missing")),
    ({}, {"terms": {"source_facility": {"facility_id": str(new_id()), "code": "gamma"}}}, ("signature", "other_source")),
    ({}, {"key": OTHER_KEY}, ("signature", "wrong_key")),
    ({}, {"signature": {"bytes_hex": "00" * 64}}, ("signature", "forged")),
    ({}, {"signature": {"kind": "ed25519ph"}}, ("signature", "forged")),
    ({"abi_tier_floor": "Obsolete"}, {}, ("abi_tier", "below_tier_floor")),
    ({}, {"terms": {"abi_tier": "Testing"}}, ("abi_tier", "below_tier_floor")),
    ({"abi_tier_floor": "Testing"}, {"terms": {"abi_tier": "Removed"}}, ("abi_tier", "removed")),
    ({"abi_tier_floor": "Removed"}, {"terms": {"abi_tier": "Removed"}}, ("abi_tier", "removed")),
    ({}, {"terms": {"expires_at": "2026-10-06T08:00:01Z"}}, ("expiry", "expired")),
    ({}, {"terms": {"sign_off_chain": AGENT}}, ("sign_off_chain", "sign_off_not_human")),
    ({}, {"terms": {"sign_off_chain": [PERSON, *AGENT]}}, ("sign_off_chain", "sign_off_not_human")),
    ({}, {"terms": {"sign_off_chain": []}}, ("sign_off_chain", "no_sign_off")),
]


@for_each(("permitted", "forged", "verdict"), REJECTED)
def test_the_first_stage_that_fails_rejects(permitted: dict[str, Any], forged: dict[str, Any], verdict: Verdict) -> None:
    beta = receiver(**permitted)
    base = beta.reference(published_artifact())
    document = forged_artifact(**forged)
    content = signed_content(document)
    assert content is not None
    named = {"receipt_id": base["receipt_id"], "content_hash": bytes_hash(content)}
    id, [event] = beta.receive(document, **named)
    assert isinstance(event, ArtifactRejected)
    assert (event.stage, event.reason) == verdict
    outcomes = [one.outcome for one in event.stages]
    failed = list(Stage).index(event.stage)
    assert outcomes[failed] is StageOutcome.FAIL
    assert set(outcomes[failed + 1 :]) <= {StageOutcome.SKIP}
    assert StageOutcome.FAIL not in outcomes[:failed]
    state = beta.world.state(ReceivedArtifact, id)
    assert (state.status, state.revision, state.credential_id) == ("Rejected", None, None)
    assert not has_receipt(beta)


def has_receipt(beta: Receiver) -> bool:
    return any(isinstance(event, PermitReceiptRecorded) for event in beta.world.streams["Permit", beta.permit_id])


@for_each(
    ("forged", "verdict"),
    [
        ({"terms": {"canonicalization_version": 2}}, ("content_hash", "unknown_canonicalization")),
        ({"terms": {"canonicalization_version": {}}}, ("content_hash", "unknown_canonicalization")),
        ({"terms": {"schema_version": 2}}, ("content_hash", "unknown_schema")),
        ({"signature": {"signing_version": 1}}, ("content_hash", "unknown_signing_version")),
        ({"content": {"quantity": "flux_standard"}}, ("content_hash", "unknown_quantity")),
    ],
)
def test_what_nobody_here_can_read_is_unverifiable(forged: dict[str, Any], verdict: Verdict) -> None:
    beta = receiver()
    id, [event] = beta.receive(forged_artifact(**forged))
    assert isinstance(event, ArtifactUnverifiable)
    assert (event.stage, event.reason) == verdict
    assert StageOutcome.FAIL not in [one.outcome for one in event.stages]
    assert beta.world.state(ReceivedArtifact, id).status == "Unverifiable"
    assert not has_receipt(beta)


def test_a_key_that_cannot_be_had_is_worth_another_check() -> None:
    beta = receiver(key={"public_material_ref": "file://alpha"})
    id, [event] = beta.receive(published_artifact())
    assert isinstance(event, ArtifactUnverifiable)
    assert (event.stage, event.reason) == ("signature", "key_unavailable")
    assert [one.outcome for one in event.stages][-3:] == ["pass", "pass", "pass"]
    [again] = beta.world.when(RecheckReceivedArtifact(), on=id)
    assert isinstance(again, ArtifactUnverifiable)
    beta.world.ports["verify_signature"] = "valid"
    [verified] = beta.world.when(RecheckReceivedArtifact(), on=id)
    assert isinstance(verified, ArtifactVerified)
    assert has_receipt(beta)
    assert beta.world.answer["status"] == "Verified"


def test_what_has_failed_is_rejected_though_another_stage_could_not_be_run() -> None:
    beta = receiver(key={"public_material_ref": None})
    _, [event] = beta.receive(forged_artifact(terms={"sign_off_chain": AGENT}))
    assert isinstance(event, ArtifactRejected)
    assert (event.stage, event.reason) == ("sign_off_chain", "sign_off_not_human")


def test_only_usable_credentials_of_the_publisher_that_the_permit_names_are_trusted() -> None:
    def verdict(beta: Receiver) -> Any:
        _, [event] = beta.receive(published_artifact())
        return getattr(event, "reason", "verified")

    revoked = receiver()
    revoked.world.when(RevokeCredential(), on=revoked.credential_id)
    assert verdict(revoked) == "no_trusted_key"
    expired = receiver(key={"expires_at": revoked.world.now + timedelta(minutes=1)})
    expired.world.now += timedelta(hours=1)
    assert verdict(expired) == "no_trusted_key"
    assert verdict(receiver(key={"purpose": "Encryption"})) == "no_trusted_key"
    assert verdict(receiver(key={"purpose": "Signing"})) == "verified"
    assert verdict(receiver(allowed_credential_ids=[new_id()])) == "no_trusted_key"
    other = receiver()
    foreign = credential(other.world, site(other.world, "gamma"), public_material_ref=public_material())
    other.world.when(RevokePermit(), on=other.permit_id)
    fields = {"direction": "Inbound", "terms": INBOUND, "allowed_credential_ids": [foreign]}
    permit(other.world, other.source_id, **fields)
    assert verdict(other) == "no_trusted_key"


def test_while_a_key_is_rotated_the_current_one_counts() -> None:
    beta = receiver()
    rotation = StartCredentialRotation(new_secret_ref="next", new_public_material_ref=public_material(OTHER_KEY))
    beta.world.when(rotation, on=beta.credential_id)
    _, [event] = beta.receive(published_artifact())
    assert isinstance(event, ArtifactVerified)


@for_each("end", [SuspendPermit(), RevokePermit(), timedelta(days=400)])
def test_nothing_comes_in_without_a_permit_in_force(end: Command | timedelta) -> None:
    beta = receiver()
    if isinstance(end, timedelta):
        beta.world.now += end
    else:
        beta.world.when(end, on=beta.permit_id)
    with expect_refusal("InboundPermitNotActiveError", "no_permit_in_force"):
        beta.ask_for(published_artifact())
    with expect_refusal("InboundPermitNotActiveError"):
        beta.receive(published_artifact())
    assert not [key for key in beta.world.streams if key[0] == "ReceivedArtifact"]


@for_each(
    "fields",
    [
        {"active": False},
        {"allowed_artifact_kinds": ["Plan"]},
        {"terms": {**INBOUND, "inbound_allowed_artifact_kinds": ["Plan"]}},
    ],
)
def test_a_permit_for_something_else_lets_nothing_in(fields: dict[str, Any]) -> None:
    beta = receiver(**fields)
    with expect_refusal("InboundPermitNotActiveError"):
        beta.ask_for(published_artifact())


def test_a_replayed_artifact_is_refused_with_the_one_there_is() -> None:
    beta = receiver()
    id, _ = beta.receive(published_artifact())
    for attempt in (beta.ask_for, beta.receive):
        with expect_refusal("ArtifactAlreadyReceivedError", "already_received") as caught:
            attempt(published_artifact())
        assert caught.value.facts == {"received_artifact_id": str(id)}


def test_a_receipt_that_was_not_verified_is_received_again() -> None:
    beta = receiver()
    base = beta.reference(published_artifact())
    tampered = forged_artifact(signature={"bytes_hex": "00" * 64})
    id, _ = beta.receive(tampered)
    assert beta.world.state(ReceivedArtifact, id).status == "Rejected"
    assert beta.ask_for(published_artifact()) == id
    again, [event] = beta.receive(published_artifact())
    assert (again, type(event)) == (id, ArtifactVerified)
    state = beta.world.state(ReceivedArtifact, id)
    assert (state.status, state.stage, str(state.receipt_id)) == ("Verified", None, base["receipt_id"])
    assert state.received_at < state.checked_at
    [kept] = [row for row in beta.world.records.values() if isinstance(row, ReceivedDocument)]
    assert kept.document.encode() == published_artifact()


def test_a_repeated_attempt_at_the_same_work_records_nothing_more() -> None:
    beta, work_id = receiver(), new_id()
    id, [_] = beta.receive(published_artifact(), work_id)
    answer = beta.world.answer
    again, events = beta.receive(published_artifact(), work_id)
    assert (again, events, beta.world.answer) == (id, [], answer)


def test_an_artifact_is_fetched_from_its_publisher_only() -> None:
    beta = receiver()
    beta.ask_for(published_artifact(), uri=f"{ADDRESS}/exchange/17.json")
    for uri in ("https://elsewhere.example/17.json", f"{ADDRESS}.elsewhere.example/17", "http://alpha.example/17"):
        with expect_refusal("InvalidArtifactUriError"):
            beta.ask_for(published_artifact(), uri=uri)
    beta.world.ports["deployment"].peer_addresses.clear()
    with expect_refusal("PeerNotConfiguredError", "no_address"):
        beta.ask_for(published_artifact())
    with expect_refusal("FacilityNotFoundError"):
        beta.ask_for(published_artifact(), source_facility_id=new_id())


@cache
def facts_of_a_check() -> tuple[World, str, UUID, Permit, Facility]:
    """What is known where the peer's artifact is expected."""
    beta = receiver()
    reference, world = beta.reference(published_artifact()), beta.world
    granted, source = world.state(Permit, beta.permit_id), world.state(Facility, beta.source_id)
    return world, reference["content_hash"], UUID(reference["receipt_id"]), granted, source


def check(document: bytes) -> PassedCheck | FailedCheck:
    """How a document fares that is said to be what the peer published."""
    world, *expected = facts_of_a_check()
    found = world.fulfil(check_artifact(document, *expected, world.now))  # type: ignore[arg-type]
    assert isinstance(found, PassedCheck | FailedCheck)
    return found


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("mask", [0x01, 0x20])
def test_no_artifact_with_a_flipped_bit_is_verified(mask: int, every: int) -> None:
    genuine = published_artifact()
    assert isinstance(check(genuine), PassedCheck)
    for place in range(0, len(genuine), every):
        tampered = bytearray(genuine)
        tampered[place] ^= mask
        assert isinstance(check(bytes(tampered)), FailedCheck), (place, bytes(tampered[place - 20 : place + 20]))


@given(st.data())
def test_no_artifact_that_was_edited_is_verified(data: st.DataObject) -> None:
    genuine = published_artifact()
    start = data.draw(st.integers(0, len(genuine)))
    end = data.draw(st.integers(start, min(len(genuine), start + 40)))
    edited = genuine[:start] + data.draw(st.binary(max_size=40)) + genuine[end:]
    if edited != genuine:
        assert isinstance(check(edited), FailedCheck)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(name=st.sampled_from([*json.loads(published_artifact()), None]), sent=ANYTHING)
def test_whatever_a_peer_sends_gets_a_verdict(name: str | None, sent: Any) -> None:
    genuine = json.loads(published_artifact())
    document = sent if name is None else {**genuine, name: sent}
    if document != genuine:
        assert isinstance(check(json.dumps(document).encode()), FailedCheck)


def test_only_the_canonical_form_of_an_artifact_is_taken() -> None:
    artifact = json.loads(published_artifact())
    repeated = published_artifact().replace(b"{", b'{"abi_tier":"Removed",', 1)
    for document in (json.dumps(artifact).encode(), json.dumps(artifact, indent=1).encode(), repeated):
        failed = check(document)
        assert isinstance(failed, FailedCheck)
        assert (failed.status, failed.stage, failed.reason) == ("Rejected", "content_hash", "not_canonical")


def test_what_is_nested_too_deep_is_malformed() -> None:
    for document in (b"[" * 100_000, b'{"canonical_bytes":' + b"[" * 100_000, b"\xff\xfe{\x00}\x00", b""):
        failed = check(document)
        assert isinstance(failed, FailedCheck)
        assert signed_content(document) is None


def adoptable(beta: Receiver) -> tuple[Any, Any]:
    id, _ = beta.receive(published_artifact())
    return id, rotation_center(beta.world)


def test_a_person_makes_a_verified_value_one_of_an_own_calibration() -> None:
    beta = receiver()
    id, calibration_id = adoptable(beta)
    [event] = beta.world.when(AdoptReceivedArtifact(calibration_id=calibration_id), on=id)
    assert isinstance(event, ReceivedArtifactAdopted)
    [revision] = beta.world.state(Calibration, calibration_id).revisions
    assert beta.world.answer == {"revision_id": str(revision.revision_id)}
    assert (revision.value, revision.status) == ({"center": 1024.5, "uncertainty": 0.3}, "Verified")
    assert (revision.source.kind, revision.source.asserted_by, revision.established_by) == ("Asserted", OPERATOR, OPERATOR)
    assert beta.world.members[REVISIONS, str(revision.revision_id)] == {calibration_id}
    [adoption] = beta.world.state(ReceivedArtifact, id).adoptions
    assert (adoption.calibration_id, adoption.revision_id) == (calibration_id, revision.revision_id)
    with expect_refusal("ReceivedArtifactCannotAdoptError", "already_adopted") as caught:
        beta.world.when(AdoptReceivedArtifact(calibration_id=calibration_id), on=id)
    assert caught.value.facts == {"revision_id": str(revision.revision_id)}
    beta.world.when(AdoptReceivedArtifact(calibration_id=rotation_center(beta.world)), on=id)
    assert len(beta.world.state(ReceivedArtifact, id).adoptions) == 2


def test_a_value_is_adopted_only_for_what_it_was_measured_of() -> None:
    beta = receiver()
    id, _ = adoptable(beta)
    place = {"objective_designation": "5x", "energy": 25}
    pixels = rotation_center(beta.world, quantity="magnification", operating_point=place)
    with expect_refusal("ReceivedArtifactCannotAdoptError", "other_quantity"):
        beta.world.when(AdoptReceivedArtifact(calibration_id=pixels), on=id)
    elsewhere = rotation_center(beta.world, operating_point={"energy": 26, "optics_config": "5x"})
    with expect_refusal("ReceivedArtifactCannotAdoptError", "other_operating_point"):
        beta.world.when(AdoptReceivedArtifact(calibration_id=elsewhere), on=id)
    same = rotation_center(beta.world, operating_point={"optics_config": "5x", "energy": 25.0})
    beta.world.when(AdoptReceivedArtifact(calibration_id=same), on=id)
    with expect_refusal("CalibrationNotFoundError"):
        beta.world.when(AdoptReceivedArtifact(calibration_id=new_id()), on=id)


def test_only_a_person_vouches_for_a_value_of_a_peer() -> None:
    beta = receiver()
    id, calibration_id = adoptable(beta)
    beta.world.principal_id = new_id()
    beta.world.given(beta.world.principal_id, ActorRegistered(kind=ActorKind.AGENT))
    with expect_refusal("ReceivedArtifactCannotAdoptError", "not_a_person"):
        beta.world.when(AdoptReceivedArtifact(calibration_id=calibration_id), on=id)


def test_what_would_not_be_verified_any_more_is_not_adopted() -> None:
    beta = receiver()
    id, calibration_id = adoptable(beta)
    adopt = AdoptReceivedArtifact(calibration_id=calibration_id)
    beta.world.when(SuspendPermit(), on=beta.permit_id)
    with expect_refusal("InboundPermitNotActiveError"):
        beta.world.when(adopt, on=id)
    beta.world.when(ResumePermit(), on=beta.permit_id)
    beta.world.when(RevokeCredential(), on=beta.credential_id)
    with expect_refusal("ReceivedArtifactCannotAdoptError", "no_longer_verified") as caught:
        beta.world.when(adopt, on=id)
    assert caught.value.facts == {"stage": "signature", "cause": "no_trusted_key"}
    assert beta.world.state(Calibration, calibration_id).revisions == ()


def test_an_artifact_for_another_facility_is_rejected() -> None:
    beta = receiver()
    beta.world.ports["deployment"].own_ids_at_peers[SOURCE] = new_id()
    id, _ = beta.receive(published_artifact())
    state = beta.world.state(ReceivedArtifact, id)
    assert (state.status, state.stage, state.reason) == ("Rejected", "content_hash", "other_addressee")


def test_who_does_not_know_its_own_id_at_the_peer_verifies_nothing_of_it() -> None:
    beta = receiver()
    known = dict(beta.world.ports["deployment"].own_ids_at_peers)
    beta.world.ports["deployment"].own_ids_at_peers.clear()
    id, _ = beta.receive(published_artifact())
    state = beta.world.state(ReceivedArtifact, id)
    assert (state.status, state.stage, state.reason) == ("Unverifiable", "content_hash", "addressee_unknown")
    beta.world.ports["deployment"].own_ids_at_peers.update(known)
    beta.world.when(RecheckReceivedArtifact(), on=id)
    assert beta.world.state(ReceivedArtifact, id).status == "Verified"
