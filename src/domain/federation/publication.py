"""Publishing a revision to a peer facility: the gates before it, the artifact that is sent, and what is recorded. It is long
work: accepted with its receipt fixed, signed, sent and recorded; once sent, whatever happens to the permit meanwhile."""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, NamedTuple
from uuid import UUID

from pydantic import Field

from baton.domain.access.actor import Actor, ActorKind
from baton.domain.calibration import calibration as events
from baton.domain.calibration.calibration import Calibration, CalibrationStatus, Revision, calibration, required_revision
from baton.domain.facility.facility import Facility, own_facility
from baton.domain.federation import permit as federation
from baton.domain.federation.credential import Credential, CredentialPurpose
from baton.domain.federation.permit import Permit, PermitDirection, PermitReceiptRecorded, permit_in_force, permits_of
from baton.domain.kernel import NIL, Call, JudgedVerb, Outcome, Value, instant
from baton.domain.registry import OpenedWork
from baton.domain.shared.canonical import canonical_json, derived_uuid7
from baton.domain.shared.reads import Reads, find, find_all, record_of
from baton.domain.shared.refusals import Conflict, Refusal, UnauthorizedError, kept_form, kept_refusal
from baton.domain.shared.signatures import Signature
from baton.domain.shared.writes import Answer, Put, WorkRecord

ARTIFACT_KIND = "CalibrationRevision"
PAYLOAD_TYPE = "application/json"
SIGNING_VERSION = 2  # 2: the signed bytes hold the terms too; 1: only the revision.
TIERS = {CalibrationStatus.VERIFIED: federation.AbiTier.STABLE, CalibrationStatus.PROVISIONAL: federation.AbiTier.TESTING}


class PublicationStatus(StrEnum):
    RUNNING = "Running"
    SENDING = "Sending"  # The permit let it go: from here on it is recorded once it is sent, whatever becomes of the permit.
    PUBLISHED = "Published"
    REFUSED = "Refused"


UNDER_WAY = (PublicationStatus.RUNNING, PublicationStatus.SENDING)


@dataclass(frozen=True)
class CalibrationPublication(WorkRecord):
    """One revision on its way to one peer: who signed it off, how far it is, and why it was refused if it was."""

    relation: ClassVar[str] = "calibration_publication"
    key: ClassVar[tuple[str, ...]] = ("receipt_id",)
    receipt_id: UUID
    calibration_id: UUID
    revision_id: UUID
    peer_facility_id: UUID
    permit_id: UUID
    principal_id: UUID
    surface_id: UUID
    correlation_id: UUID
    status: PublicationStatus
    accepted_at: datetime
    signature: dict[str, str] | None = None
    published_at: datetime | None = None
    refusal: dict[str, Any] | None = None


class OutboundPermitNotActiveError(Conflict, context="calibration"):
    """No outbound permit in force lets calibration revisions go to this peer."""


class CalibrationPublicationError(Refusal, context="calibration"):
    """The revision could not be signed or sent; nothing left the facility."""

    status = 502


class PublishedRevision(Value):
    """The receipt of a revision that was sent."""

    receipt_id: UUID


class PublicationAccepted(Value):
    """A publication that is still under way; `get_work` tells how it goes."""

    receipt_id: UUID
    work_id: UUID


class PublicationFacts(NamedTuple):
    """What the gates before publishing look at."""

    revision: Revision
    permits: tuple[Permit, ...]
    credentials: Mapping[UUID, Credential]
    own: Facility | None
    caller: Actor | None
    under_way: CalibrationPublication | None


@calibration.command(
    post="/{calibration_id}/revisions/{revision_id}/publish",
    refuses=[CalibrationPublicationError],
    status=201,
    returns=PublishedRevision,
    work=OpenedWork("calibration-publication"),
    accepted=PublicationAccepted,
    lock="calibration-publication",
)
class PublishCalibrationRevision(JudgedVerb[Calibration, PublicationFacts]):
    """Sign a revision and send it to a peer; the caller is the sign-off and must be a person.

    Asked for again while it is under way, it is the same work with the same receipt.
    """

    revision_id: UUID
    """The revision to send."""
    peer_facility_id: UUID
    wait: Annotated[int, Field(ge=0, le=60, description="Seconds to wait for the result.")] = 30

    def gather(self, calibration: Calibration, call: Call) -> Reads[PublicationFacts]:
        revision = required_revision(calibration, self.revision_id)
        permits = yield from permits_of(self.peer_facility_id, PermitDirection.OUTBOUND, ARTIFACT_KIND)
        credentials = yield from credentials_of(permits)
        own = yield from own_facility()
        caller = yield from find(Actor, call.principal_id)
        under_way = None
        if (permit := permit_in_force(permits, call.now)) is not None:
            under_way = yield from record_of(CalibrationPublication, receipt_id=receipt_of(revision, permit))
        return PublicationFacts(revision, permits, credentials, own, caller, under_way)

    def decide(self, calibration: Calibration, call: Call, facts: PublicationFacts) -> Outcome:
        permit = self.pass_gates(facts, call)
        receipt_id = receipt_of(facts.revision, permit)
        ids = Answer({"receipt_id": str(receipt_id), "work_id": str(receipt_id)})
        if facts.under_way is not None and facts.under_way.status in UNDER_WAY:
            return [ids]
        accepted = CalibrationPublication(
            receipt_id=receipt_id,
            calibration_id=calibration.id,
            revision_id=self.revision_id,
            peer_facility_id=self.peer_facility_id,
            permit_id=permit.id,
            principal_id=call.principal_id,
            surface_id=call.surface_id,
            correlation_id=call.correlation_id,
            status=PublicationStatus.RUNNING,
            accepted_at=call.now,
        )
        return [Put(accepted), ids]

    def pass_gates(self, facts: PublicationFacts, call: Call) -> Permit:
        """Return the permit to publish under, or refuse by the first gate before signing that does not let it through."""
        permit = permit_in_force(facts.permits, call.now)
        if permit is None:
            raise no_permit_refusal(self.peer_facility_id)
        self.refuse_unpermitted(permit, TIERS[facts.revision.status])
        for publication in facts.revision.publications:
            if publication.outbound_permit_id == permit.id:
                ids = {"outbound_permit_id": permit.id, "receipt_id": publication.receipt_id}
                detail = "The revision was published under this permit already; a new permit allows it again."
                raise self.cannot("already_published", detail, **ids)
        if facts.caller is None and call.principal_id != NIL:
            detail = "Publishing is signed off by a registered person; ask an administrator to register you as an actor."
            raise UnauthorizedError(detail, reason="unknown_actor")
        if facts.caller is None or facts.caller.kind is not ActorKind.HUMAN:
            detail = "Only a person can sign a publication off; have one publish the revision."
            raise self.cannot("sign_off_not_human", detail)
        if signing_credential(permit, facts.credentials, facts.own, call.now) is None:
            raise self.no_credential_refusal(permit.id)
        return permit

    def refuse_unpermitted(self, permit: Permit, tier: federation.AbiTier) -> None:
        """Refuse what the permit does not let go out: a tier below its floor, or a form that it does not name."""
        ids = {"outbound_permit_id": permit.id}
        if not tier.meets(permit.abi_tier_floor):
            floor = permit.abi_tier_floor
            detail = f"The revision is {tier} and the permit asks for {floor} at least; verify it, or permit its tier."
            raise self.cannot("below_tier_floor", detail, abi_tier=tier, abi_tier_floor=floor, **ids)
        if PAYLOAD_TYPE not in permit.allowed_payload_types:
            detail = f"The permit does not allow {PAYLOAD_TYPE}, which is what is sent; define one that does."
            allowed = sorted(permit.allowed_payload_types)
            raise self.cannot("payload_type_not_allowed", detail, allowed_payload_types=allowed, **ids)

    def no_credential_refusal(self, permit_id: UUID) -> Refusal:
        detail = "The permit allows no valid Signing credential of this facility; register one and permit it."
        return self.cannot("no_signing_credential", detail, outbound_permit_id=permit_id)


def credentials_of(permits: Iterable[Permit]) -> Reads[dict[UUID, Credential]]:
    """Return every credential that one of these permits allows."""
    return (yield from find_all(Credential, sorted({id for permit in permits for id in permit.allowed_credential_ids})))


def signing_credential(
    permit: Permit, credentials: Mapping[UUID, Credential], own: Facility | None, now: datetime
) -> Credential | None:
    """Return the credential to sign with: the usable own Signing credential of lowest id that the permit allows."""
    allowed = (credentials[id] for id in sorted(permit.allowed_credential_ids) if id in credentials)
    wanted = own and (own.id, CredentialPurpose.SIGNING)
    return next((one for one in allowed if (one.facility_id, one.purpose) == wanted and one.is_usable(now)), None)


def no_permit_refusal(peer_facility_id: UUID) -> OutboundPermitNotActiveError:
    """Return the refusal of a publication to a peer that nothing may go to."""
    detail = f"No outbound permit in force lets a {ARTIFACT_KIND} go to this peer; define or activate one first."
    facts = {"peer_facility_id": peer_facility_id}
    return OutboundPermitNotActiveError(detail, reason="no_permit_in_force", facts=facts)


def receipt_of(revision: Revision, permit: Permit) -> UUID:
    """Return the receipt id of a revision under a permit; a repeated request has the same."""
    established = int(revision.established_at.timestamp() * 1000)
    return derived_uuid7(established, "calibration-publication", f"{revision.revision_id}:{permit.id}")


def artifact_terms(
    publication: CalibrationPublication, revision: Revision, permit: Permit, source: Facility
) -> dict[str, object]:
    """Return what an artifact says of itself: what it is, whose, for whom, since when, until when and how settled."""
    assert publication.published_at is not None, "what is signed has its time"
    return {
        "receipt_id": publication.receipt_id,
        "artifact_kind": ARTIFACT_KIND,
        "payload_type": PAYLOAD_TYPE,
        "source_facility": {"facility_id": source.id, "code": source.code},
        "peer_facility_id": publication.peer_facility_id,
        "published_at": instant(publication.published_at),
        "expires_at": instant(permit.expires_at),
        "abi_tier": TIERS[revision.status],
        "sign_off_chain": [{"actor_id": publication.principal_id, "kind": ActorKind.HUMAN}],
        "schema_version": 1,
        "canonicalization_version": 1,
    }


def published_bytes(
    publication: CalibrationPublication, calibration: Calibration, permit: Permit, source: Facility
) -> bytes:
    """Return what is signed and sent of a revision, in canonical form: everything a peer needs to use it, and the terms."""
    revision = required_revision(calibration, publication.revision_id)
    return canonical_json(
        {
            "calibration_id": calibration.id,
            "target_id": calibration.target_id,
            "quantity": calibration.quantity,
            "operating_point": calibration.operating_point,
            "revision_id": revision.revision_id,
            "value": revision.value,
            "status": revision.status,
            "source": revision.source.model_dump(mode="json"),
            "established_at": instant(revision.established_at),
            "established_by": revision.established_by,
            "decided_by_decision_id": revision.decided_by_decision_id,
            "supersedes_revision_id": revision.supersedes_revision_id,
            "content_hash": revision.content_hash,
            "terms": artifact_terms(publication, revision, permit, source),
        }
    )


def with_signature(publication: CalibrationPublication, signature: Signature, at: datetime) -> CalibrationPublication:
    """Return the publication once it is signed; its time is fixed with it, so that a repeat sends the same."""
    return replace(publication, signature=signature.model_dump(), published_at=at)


def signature_of(publication: CalibrationPublication) -> tuple[Signature, datetime]:
    """Return the signature of a signed publication, and its time."""
    assert publication.signature is not None, "only what is signed is sent"
    assert publication.published_at is not None, "what is signed has its time"
    return Signature(**publication.signature), publication.published_at


def with_refusal(publication: CalibrationPublication, refusal: Refusal) -> CalibrationPublication:
    """Return the publication as refused, with the reason."""
    return replace(publication, status=PublicationStatus.REFUSED, refusal=kept_form(refusal))


def refusal_of(publication: CalibrationPublication) -> Refusal:
    """Return why a publication was refused."""
    assert publication.refusal is not None, "only a refused publication says why"
    return kept_refusal(publication.refusal, PublishCalibrationRevision.operation.refusals)


def artifact_bytes(publication: CalibrationPublication, calibration: Calibration, permit: Permit, source: Facility) -> bytes:
    """Return what is sent to the peer, in canonical form: the signed bytes and everything to judge them by."""
    signature, _ = signature_of(publication)
    revision = required_revision(calibration, publication.revision_id)
    content = published_bytes(publication, calibration, permit, source)
    return canonical_json(
        {
            **artifact_terms(publication, revision, permit, source),
            "content_hash": bytes_hash(content),
            "canonical_bytes": base64.b64encode(content).decode(),
            "signature_envelope": {
                "kind": signature.envelope_kind,
                "signing_version": SIGNING_VERSION,
                "kid": signature.kid,
                "bytes_hex": signature.bytes_hex,
            },
        }
    )


def bytes_hash(content: bytes) -> str:
    """Return the SHA-256 of canonical bytes, as a peer recomputes it."""
    return hashlib.sha256(content).hexdigest()


def is_recorded(publication: CalibrationPublication, calibration: Calibration) -> bool:
    """Return whether the calibration's own stream records this publication already."""
    revision = required_revision(calibration, publication.revision_id)
    return any(known.receipt_id == publication.receipt_id for known in revision.publications)


def publication_events(
    publication: CalibrationPublication, calibration: Calibration, permit: Permit, source: Facility, at: datetime
) -> tuple[events.CalibrationRevisionPublished, PermitReceiptRecorded]:
    """Return the events that record a sent revision, on the calibration's stream and on the permit's."""
    signature, published_at = signature_of(publication)
    published = events.CalibrationRevisionPublished(
        revision_id=publication.revision_id,
        peer_facility_id=publication.peer_facility_id,
        outbound_permit_id=publication.permit_id,
        receipt_id=publication.receipt_id,
        signature_envelope_kind=signature.envelope_kind,
        signing_version=SIGNING_VERSION,
        signature_bytes_hex=signature.bytes_hex,
        signature_kid=signature.kid,
        published_at=published_at,
        published_by=publication.principal_id,
    )
    receipt = PermitReceiptRecorded(
        receipt_id=publication.receipt_id,
        content_hash=bytes_hash(published_bytes(publication, calibration, permit, source)),
        home_stream_type=Calibration.__name__,
        home_stream_id=calibration.id,
        home_artifact_id=publication.revision_id,
        recorded_at=at,
    )
    return published, receipt
