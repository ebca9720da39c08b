"""A credential: a facility's pointer to one piece of key or token material, for one audience and one purpose. The secret
itself is never here: a reference says where a signer finds it, and rotation swaps one reference for another."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Protocol, assert_never
from uuid import UUID

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from baton.domain.facility import facility as facilities
from baton.domain.facility.facility import Facility, FacilityKind, audit_decision, facility
from baton.domain.kernel import Aggregate, Call, Event, JudgedCreation, JudgedVerb, Outcome, State, Verb, copy_with
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.listing import ListQuery, Summary
from baton.domain.shared.reads import Reads, require
from baton.domain.shared.refusals import Conflict, Invalid
from baton.domain.shared.signatures import PublicKey, Signature, SignatureVerdict
from baton.domain.shared.text import FreeText, MayContainPersonalData, OptionalReason, Text
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Claim, Release

IDENTITY = "credential-identity"  # Claim kind: the credential of one facility, audience and purpose, until it is revoked.


class CredentialPurpose(StrEnum):
    SIGNING = "Signing"
    VERIFICATION = "Verification"
    AUTHENTICATION = "Authentication"
    ENCRYPTION = "Encryption"
    SEAL_ONLINE_SIGNING = "SealOnlineSigning"
    SEAL_OFFLINE_ROOT = "SealOfflineRoot"


class CredentialStatus(StrEnum):
    ACTIVE = "Active"
    ROTATING = "Rotating"
    REVOKED = "Revoked"


ACTIVE, ROTATING, REVOKED = CredentialStatus


class Withheld(MayContainPersonalData):
    """Marks a pointer into a secret store: nobody's data, but shown to the same few as free text."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema)


SecretRef = Annotated[str, Withheld()]


@dataclass(frozen=True, kw_only=True)
class Credential(State):
    """A credential is a facility's pointer to one piece of key or token material, for one audience and one purpose."""

    facility_id: UUID
    audience: str
    purpose: CredentialPurpose
    secret_ref: str
    public_material_ref: str | None
    expires_at: datetime | None
    rotation_pending_secret_ref: str | None = None
    """Where the secret is kept that is to follow."""
    rotation_pending_public_material_ref: str | None = None
    """Where the public key is kept that is to follow."""
    status: CredentialStatus = ACTIVE
    registered_at: datetime
    registered_by: UUID
    rotation_started_at: datetime | None = None
    """When the rotation was begun."""
    revoked_at: datetime | None = None

    def is_usable(self, now: datetime) -> bool:
        """Return whether the credential may be relied on: neither revoked nor expired; one that is Rotating still goes by
        its current material."""
        return self.status is not REVOKED and not self.is_expired(now)

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and now >= self.expires_at


credential = Aggregate(Credential, "/federation/credentials", context="federation")


class CredentialRegistered(Event, of=credential):
    """It was said where the material is kept; the secret itself stays there."""

    facility_id: UUID
    audience: str
    purpose: CredentialPurpose
    secret_ref: SecretRef
    public_material_ref: str | None
    expires_at: datetime | None
    registered_by: UUID


class CredentialRotationStarted(Event, of=credential):
    """The material that is to follow was named; the current one stays in use."""

    pending_secret_ref: SecretRef
    pending_public_material_ref: str | None
    rotation_started_by: UUID


class CredentialRotationCompleted(Event, of=credential):
    """The material that was to follow came into use."""

    rotation_completed_by: UUID


class CredentialRotationAborted(Event, of=credential):
    """The rotation was given up, and the current material stays in use."""

    rotation_aborted_by: UUID
    reason: FreeText | None


class CredentialRevoked(Event, of=credential):
    """The credential was revoked for good."""

    revoked_by: UUID
    reason: FreeText | None


CredentialEvent = CredentialRotationStarted | CredentialRotationCompleted | CredentialRotationAborted | CredentialRevoked


@credential.evolve
def evolve(credential: Credential, event: CredentialEvent) -> Credential:
    match event:
        case CredentialRotationStarted():
            return copy_with(
                credential,
                status=ROTATING,
                rotation_pending_secret_ref=event.pending_secret_ref,
                rotation_pending_public_material_ref=event.pending_public_material_ref,
                rotation_started_at=event.occurred_at,
            )
        case CredentialRotationCompleted():
            assert credential.rotation_pending_secret_ref is not None, "a rotation has something to rotate to"
            return copy_with(
                without_rotation(credential, ACTIVE),
                secret_ref=credential.rotation_pending_secret_ref,
                public_material_ref=credential.rotation_pending_public_material_ref,
            )
        case CredentialRotationAborted():
            return without_rotation(credential, ACTIVE)
        case CredentialRevoked():
            return copy_with(without_rotation(credential, REVOKED), revoked_at=event.occurred_at)
        case _:
            assert_never(event)


def without_rotation(credential: Credential, status: CredentialStatus) -> Credential:
    """Return the credential in this status, with no rotation pending."""
    return copy_with(credential, status=status, rotation_pending_secret_ref=None, rotation_pending_public_material_ref=None)


class InvalidCredentialSecretRefError(Invalid, context="federation"):
    """A secret reference must not be blank, and rotation leads to another one."""


class InvalidCredentialExpiresAtError(Invalid, context="federation", reason="not_in_the_future"):
    """A credential expires in the future or never."""


class CredentialExpiredError(Conflict, context="federation", reason="expired"):
    """An expired credential is not rotated; revoke it and register a new one."""


SecretRefInput = Annotated[str, Text(2000, InvalidCredentialSecretRefError, "secret reference")]
PublicMaterialRef = Annotated[str, credential.text("public_material_ref", 2000, label="public material reference")]


@credential.creation()
class RegisterCredential(JudgedCreation[Facility]):
    """Say where a facility's key or token for one audience and purpose is kept; the secret itself stays there."""

    facility_id: UUID
    audience: Annotated[str, credential.text("audience", 500)]
    purpose: CredentialPurpose
    secret_ref: SecretRefInput
    public_material_ref: PublicMaterialRef | None = None
    expires_at: Instant | None = None

    def gather(self, call: Call) -> Reads[Facility]:
        return (yield from require(Facility, self.facility_id))

    def decide(self, call: Call, facility: Facility) -> Outcome:
        if self.expires_at is not None and self.expires_at <= call.now:
            detail = "The credential would be expired already; set a later expires_at, or none."
            raise InvalidCredentialExpiresAtError(detail)
        detail = "The facility has a credential for this audience and purpose already; rotate it, or revoke it first."
        taken = credential.AlreadyExists(detail, reason="identity_taken")
        return [
            CredentialRegistered(**dict(self), registered_by=call.principal_id),
            Claim(IDENTITY, identity_key(self.facility_id, self.audience, self.purpose), rival=taken),
            audit_decision(CredentialRegistered, call.new_id, call),
        ]


def identity_key(facility_id: UUID, audience: str, purpose: CredentialPurpose) -> str:
    """Return the key under which two credentials count as the same."""
    return content_hash([facility_id, audience, purpose])


@credential.command(post="/{credential_id}/rotation/start", allowed=[ACTIVE], leads_to=ROTATING)
class StartCredentialRotation(JudgedVerb[Credential, None]):
    """Name the material that is to follow; until the rotation is completed the current one stays in use."""

    new_secret_ref: SecretRefInput
    new_public_material_ref: PublicMaterialRef | None = None

    def gather(self, credential: Credential, call: Call) -> Reads[None]:
        """Refuse an expired credential; that is a matter of its state, so it is judged before the values."""
        if credential.status is ACTIVE and credential.is_expired(call.now):
            detail = "The credential has expired and rotation would not change that; revoke it and register a new one."
            raise CredentialExpiredError(detail)
        return
        yield

    def decide(self, credential: Credential, call: Call, facts: None) -> Outcome:
        if self.new_secret_ref == credential.secret_ref:
            detail = "The new secret reference is the current one; name the material that is to follow."
            raise InvalidCredentialSecretRefError(detail, reason="unchanged")
        return [
            CredentialRotationStarted(
                pending_secret_ref=self.new_secret_ref,
                pending_public_material_ref=self.new_public_material_ref,
                rotation_started_by=call.principal_id,
            )
        ]


@credential.command(
    post="/{credential_id}/rotation/complete", allowed=[ROTATING], leads_to=ACTIVE, records=CredentialRotationCompleted
)
class CompleteCredentialRotation(Verb[Credential]):
    """Use the new material from now on; the expiry stays as it was."""


@credential.command(
    post="/{credential_id}/rotation/abort",
    allowed=[ROTATING],
    leads_to=ACTIVE,
    records=CredentialRotationAborted,
    attempts=3,
)
class AbortCredentialRotation(Verb[Credential]):
    """Stay with the current material."""

    reason: OptionalReason = None


@credential.command(post="/{credential_id}/revoke", allowed=[ACTIVE, ROTATING], destructive=True)
class RevokeCredential(Verb[Credential]):
    """Trust this credential no longer, for good; its facility may register another for the same audience and purpose."""

    reason: OptionalReason = None

    def decide(self, credential: Credential, call: Call) -> Outcome:
        return [
            CredentialRevoked(**dict(self), revoked_by=call.principal_id),
            Release(IDENTITY, identity_key(credential.facility_id, credential.audience, credential.purpose)),
            audit_decision(CredentialRevoked, credential.id, call),
        ]


GetCredential = credential.get(hidden=["created_at"])
COLUMNS = "facility_id audience purpose expires_at status registered_at rotation_started_at revoked_at"


class CredentialSummary(Summary):
    time: ClassVar[str] = "registered_at"
    credential_id: UUID
    facility_id: UUID
    audience: str
    purpose: CredentialPurpose
    expires_at: datetime | None
    status: CredentialStatus
    registered_at: datetime
    rotation_started_at: datetime | None
    revoked_at: datetime | None


@credential.listing(CredentialSummary)
class ListCredentials(ListQuery[CredentialSummary]):
    """Credentials in order of registration, without their references."""

    facility_id: UUID | None = None
    purpose: CredentialPurpose | None = None
    status: CredentialStatus | None = None


class FacilityTrustAnchorCredentialAlreadyPresentError(Conflict, context="federation"):
    """The credential is a trust anchor of this facility already."""


class FacilityTrustAnchorCredentialNotPresentError(Conflict, context="federation"):
    """The credential is no trust anchor of this facility."""


@facility.command(post="/{facility_id}/trust-anchors/add", allowed=[facilities.ACTIVE])
class AddFacilityTrustAnchorCredential(JudgedVerb[Facility, Credential]):
    """Let a Site's seals rest on this credential."""

    credential_id: UUID
    """The credential that the site's seals may rest on."""

    def gather(self, facility: Facility, call: Call) -> Reads[Credential]:
        return (yield from require(Credential, self.credential_id))

    def decide(self, facility: Facility, call: Call, credential: Credential) -> Outcome:
        if facility.kind is FacilityKind.AREA:
            raise self.cannot("area", "An Area has no trust anchors; add the credential to its Site.")
        if self.credential_id in facility.trust_anchor_credential_ids:
            detail = "This credential is a trust anchor of the facility already; nothing to add."
            raise FacilityTrustAnchorCredentialAlreadyPresentError(detail)
        return [facilities.FacilityTrustAnchorCredentialAdded(**dict(self), added_by=call.principal_id)]


@facility.command(post="/{facility_id}/trust-anchors/remove", allowed=[facilities.ACTIVE], destructive=True)
class RemoveFacilityTrustAnchorCredential(Verb[Facility]):
    """Let no new seal rest on this credential; seals that use it already keep it."""

    credential_id: UUID
    """The credential that no new seal may rest on."""
    reason: OptionalReason = None

    def decide(self, facility: Facility, call: Call) -> Outcome:
        if self.credential_id not in facility.trust_anchor_credential_ids:
            detail = "This credential is no trust anchor of the facility; read the facility for the ones it has."
            raise FacilityTrustAnchorCredentialNotPresentError(detail)
        return [facilities.FacilityTrustAnchorCredentialRemoved(**dict(self), removed_by=call.principal_id)]


class KeyPort(Protocol):
    """Signs and verifies with the keys that credentials refer to."""

    async def sign(self, secret_ref: str, content: bytes) -> Signature | None:
        """Return a signature over these bytes, or None where the key is not held here."""

    async def verify_signature(
        self, public_material_ref: str | None, content: bytes, signature: Signature
    ) -> SignatureVerdict:
        """Return what checking a signature over these bytes against a credential's public material finds."""

    async def public_key(self, public_material_ref: str | None) -> PublicKey | None:
        """Return the key that public material stands for, or None where this deployment cannot read it."""
