"""A seal: the one freshness pointer of a facility, which says what head of its published records is the newest. An online
key signs the pointer; an offline root, which this service never signs with, vouches for each new online key."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, NamedTuple, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.facility.facility import Facility, audit_decision
from baton.domain.federation import credential as credentials
from baton.domain.federation.credential import Credential, CredentialPurpose, KeyPort
from baton.domain.kernel import (
    Aggregate,
    Call,
    Event,
    JudgedCreation,
    JudgedVerb,
    Outcome,
    Query,
    State,
    Value,
    Verb,
    copy_with,
)
from baton.domain.shared.canonical import canonical_json
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.listing import ListQuery, Summary
from baton.domain.shared.reads import Reads, ask, find, find_all, require
from baton.domain.shared.refusals import Conflict, Invalid, Refusal
from baton.domain.shared.signatures import Signature, SignatureVerdict
from baton.domain.shared.text import FreeText, OptionalReason

HEAD_HASH = re.compile("[0-9a-f]{64}")
LARGEST = 2**53 - 1  # The largest integer that every reader of canonical JSON reads as the same number.


class SealStatus(StrEnum):
    LIVE = "Live"
    REPUBLISHING = "Republishing"


LIVE, REPUBLISHING = SealStatus


class SealSignature(Value):
    """A detached Ed25519 signature: the SHA-256 of the raw public key that checks it, and its 64 bytes."""

    kid: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """The SHA-256 of the raw public key that checks the signature, as 64 hex digits."""
    bytes_hex: Annotated[str, Field(pattern="^[0-9a-f]{128}$")]

    @property
    def detached_signature(self) -> Signature:
        return Signature(kid=self.kid, bytes_hex=self.bytes_hex)


class SealPointer(Value):
    """What the online key signs: which head of its published records is a facility's newest."""

    facility_id: UUID
    head_hash: str
    """The SHA-256 of the head of the published records."""
    sequence_number: int
    purpose: Literal["seal-pointer"] = "seal-pointer"
    version: Literal[1] = 1


class SealKeyChange(Value):
    """What the offline root signs: which key signs a facility's pointers from the next one on."""

    facility_id: UUID
    previous_online_credential_id: UUID
    """The credential of the key that signed before."""
    new_online_credential_id: UUID
    new_online_kid: str | None
    """The SHA-256 of the public key that signs from now on."""
    sequence_number: int
    purpose: Literal["seal-online-key"] = "seal-online-key"
    version: Literal[1] = 1


def canonical_bytes(content: SealPointer | SealKeyChange) -> bytes:
    """Return the bytes that are signed: the canonical JSON of all keys."""
    return canonical_json(content.model_dump(mode="json"))


@dataclass(frozen=True, kw_only=True)
class Seal(State):
    """A seal is the freshness pointer of one facility, and the keys that vouch for it."""

    online_credential_id: UUID
    offline_credential_id: UUID
    current_head_hash: str | None = None
    """The SHA-256 of the newest head of the published records."""
    current_sequence_number: int = 0
    """The number of the newest pointer; each is higher than the last."""
    status: SealStatus = LIVE
    initialized_at: datetime
    initialized_by: UUID
    last_signed_at: datetime | None = None
    """When the pointer was last signed."""
    last_signed_by: UUID | None = None
    """The actor who had the pointer signed last."""
    signature: SealSignature | None = None
    signing_credential_id: UUID | None = None  # The online credential at the time of the current pointer.
    key_change: SealKeyChange | None = None
    signed_by_offline_root: bool | None = None
    offline_signature: SealSignature | None = None

    @property
    def facility_id(self) -> UUID:
        return self.id

    @property
    def signed(self) -> bool:
        return self.signature is not None

    @property
    def kid(self) -> str | None:
        return None if self.signature is None else self.signature.kid

    @property
    def pointer(self) -> SealPointer | None:
        """The current pointer; None before the first one."""
        return (
            None
            if self.current_head_hash is None
            else pointer_of(self, self.current_head_hash, self.current_sequence_number)
        )


seal = Aggregate(Seal, "/federation/seals", context="federation", id_name="facility_id")


def pointer_of(seal: Seal, head_hash: str, sequence_number: int) -> SealPointer:
    """Return the pointer of a seal's facility to this head."""
    return SealPointer(facility_id=seal.id, head_hash=head_hash, sequence_number=sequence_number)


def key_change_of(seal: Seal, new_online_credential_id: UUID, new_online_kid: str | None) -> SealKeyChange:
    """Return the change of a seal's online key to that of this credential; its sequence number ties it to this moment."""
    return SealKeyChange(
        facility_id=seal.id,
        previous_online_credential_id=seal.online_credential_id,
        new_online_credential_id=new_online_credential_id,
        new_online_kid=new_online_kid,
        sequence_number=seal.current_sequence_number,
    )


class SealInitialized(Event, of=seal):
    """It was said which keys vouch for a facility's pointer."""

    online_credential_id: UUID
    offline_credential_id: UUID
    initialized_by: UUID


class SealPointerSigned(Event, of=seal):
    """A newer head of the facility's published records was vouched for."""

    head_hash: str
    sequence_number: int
    signed_at: datetime
    signed_by: UUID
    signature: SealSignature | None


class SealOnlineKeyRotated(Event, of=seal):
    """Another key signs the facility's pointers from then on."""

    new_online_credential_id: UUID
    new_online_kid: str | None
    signed_by_offline_root: bool
    offline_signature: SealSignature | None
    rotated_by: UUID


class SealRepublishingStarted(Event, of=seal, leads_to=REPUBLISHING):
    """The facility began to publish its records again; readers may defer their trust."""

    started_by: UUID
    reason: FreeText | None


class SealRepublishingCompleted(Event, of=seal):
    """The records are published again, under a new head or under the one there was."""

    new_head_hash: str | None
    new_sequence_number: int | None
    completed_by: UUID
    signature: SealSignature | None


SealEvent = SealPointerSigned | SealOnlineKeyRotated | SealRepublishingCompleted


@seal.evolve
def evolve(seal: Seal, event: SealEvent) -> Seal:
    match event:
        case SealPointerSigned():
            return with_pointer(
                seal, event.head_hash, event.sequence_number, event.signature, event.signed_at, event.signed_by
            )
        case SealOnlineKeyRotated():
            return copy_with(
                seal,
                online_credential_id=event.new_online_credential_id,
                key_change=key_change_of(seal, event.new_online_credential_id, event.new_online_kid),
                signed_by_offline_root=event.signed_by_offline_root,
                offline_signature=event.offline_signature,
            )
        case SealRepublishingCompleted():
            live = copy_with(seal, status=LIVE)
            if event.new_head_hash is None or event.new_sequence_number is None:
                return live
            return with_pointer(
                live, event.new_head_hash, event.new_sequence_number, event.signature, event.occurred_at, event.completed_by
            )
        case _:
            assert_never(event)


def with_pointer(
    seal: Seal, head_hash: str, sequence_number: int, signature: SealSignature | None, at: datetime, by: UUID
) -> Seal:
    """Return the seal with a newer pointer, signed by its present online key or by none."""
    return copy_with(
        seal,
        current_head_hash=head_hash,
        current_sequence_number=sequence_number,
        signature=signature,
        signing_credential_id=seal.online_credential_id,
        last_signed_at=at,
        last_signed_by=by,
    )


class InvalidSealHeadHashError(Invalid, context="federation"):
    """A head is a SHA-256 in 64 lowercase hex digits, and comes with its sequence number."""


class SealKeyCollisionError(Conflict, context="federation"):
    """The online key and the offline root of a seal are never the same."""


class SealKeyPurposeMismatchError(Conflict, context="federation"):
    """A seal's online credential is for SealOnlineSigning, its offline one for SealOfflineRoot."""


class SealCredentialNotTrustAnchorError(Conflict, context="federation"):
    """The credentials of a seal are trust anchors of its facility."""


class SealRequiresActiveCredentialError(Conflict, context="federation"):
    """Only an Active, unexpired credential is placed in a seal."""


class SealSequenceNumberRegressionError(Conflict, context="federation", reason="not_newer"):
    """A pointer is newer than the current one: its sequence number is greater."""


class SealPointerForgedError(Conflict, context="federation", reason="forged"):
    """The signature names the seal's online key, which did not sign this pointer."""


class SealKeyMismatchError(Conflict, context="federation", reason="wrong_key"):
    """The signature of a pointer is by another key than the seal's online key."""


class SealRotationNotSignedError(Conflict, context="federation"):
    """The offline root did not sign this change of the online key."""


class SealFacts(NamedTuple):
    """A facility, and the credentials that its seal is to rest on."""

    facility: Facility
    online: Credential
    offline: Credential


@seal.creation(stream_id_field="facility_id", gated=True)
class InitializeSeal(JudgedCreation[SealFacts]):
    """Say which two keys vouch for a facility's pointer: an online one that signs it, an offline root above that."""

    facility_id: UUID
    online_credential_id: UUID
    offline_credential_id: UUID

    def gather(self, call: Call) -> Reads[SealFacts]:
        """Refuse a second seal and one key for both before anything else is looked for."""
        if (yield from find(Seal, self.facility_id)) is not None:
            detail = "This facility has a seal already; rotate its online key instead."
            raise seal.AlreadyExists(detail, reason="already_sealed")
        refuse_one_key(self.online_credential_id, self.offline_credential_id)
        facility = yield from require(Facility, self.facility_id)
        online = yield from require(Credential, self.online_credential_id)
        return SealFacts(facility, online, (yield from require(Credential, self.offline_credential_id)))

    def decide(self, call: Call, facts: SealFacts) -> Outcome:
        refuse_unfit(facts, facts.online, facts.offline, now=call.now)
        fields = {"online_credential_id": self.online_credential_id, "offline_credential_id": self.offline_credential_id}
        return [
            SealInitialized(**fields, initialized_by=call.principal_id),
            audit_decision(SealInitialized, self.facility_id, call),
        ]


def refuse_one_key(online_credential_id: UUID, offline_credential_id: UUID) -> None:
    """Refuse one credential in both places."""
    if online_credential_id == offline_credential_id:
        detail = "The online credential and the offline root are one and the same; name another for one of them."
        raise SealKeyCollisionError(detail, reason="same_credential")


def refuse_unfit(facts: SealFacts, *placed: Credential, now: datetime) -> None:
    """Refuse credentials that may not be placed in the facility's seal, by the first rule that one of them breaks."""
    places = {facts.online.id: CredentialPurpose.SEAL_ONLINE_SIGNING, facts.offline.id: CredentialPurpose.SEAL_OFFLINE_ROOT}
    for one in placed:
        if one.purpose is not places[one.id]:
            detail = f"The credential {one.id} is for {one.purpose}; name one for {places[one.id]}."
            raise SealKeyPurposeMismatchError(detail, facts={"credential_id": one.id, "purpose": one.purpose})
    for one in placed:
        if one.id not in facts.facility.trust_anchor_credential_ids:
            detail = f"The credential {one.id} is no trust anchor of the facility; add it to its trust anchors first."
            raise SealCredentialNotTrustAnchorError(detail, facts={"credential_id": one.id})
    for one in placed:
        if one.status is not credentials.ACTIVE or one.is_expired(now):
            standing = "Expired" if one.status is credentials.ACTIVE else one.status
            detail = f"The credential {one.id} is {standing}; only an Active, unexpired one is placed in a seal."
            raise SealRequiresActiveCredentialError(detail, reason=standing.lower(), facts={"credential_id": one.id})
    if share_key(facts.online, facts.offline):
        detail = "Both credentials lead to the same key; register one of them with a key of its own."
        raise SealKeyCollisionError(detail, reason="same_key")


def share_key(one: Credential, other: Credential) -> bool:
    """Return whether two credentials lead to the same key, as far as their references show."""
    public = one.public_material_ref is not None and one.public_material_ref == other.public_material_ref
    return one.secret_ref == other.secret_ref or public


SequenceNumber = Annotated[int, Field(ge=1, le=LARGEST)]
HeadHash = Annotated[str, Field(min_length=1, max_length=64)]


class PointerProof(NamedTuple):
    """What vouches for a new pointer: the online credential, the signature if there is one, and what checking it found."""

    credential: Credential
    signature: SealSignature | None = None
    verdict: SignatureVerdict | None = None
    required: bool = False


def prove_pointer(seal: Seal, pointer: SealPointer | None, given: SealSignature | None, call: Call) -> Reads[PointerProof]:
    """Return what vouches for a pointer: the signature that came with it, or else one by the online key if that is here."""
    found = yield from find_all(Credential, (seal.online_credential_id, seal.offline_credential_id))
    online, offline = found[seal.online_credential_id], found[seal.offline_credential_id]
    if pointer is None or pointer_refusal(seal, pointer) is not None or not online.is_usable(call.now):
        return PointerProof(online)
    required, content = (yield from ask(DeploymentPort.deployment)).seal_signatures_required, canonical_bytes(pointer)
    if given is not None:
        verdict = yield from ask(KeyPort.verify_signature, online.public_material_ref, content, given.detached_signature)
        return PointerProof(online, given, verdict, required)
    made = None if share_key(online, offline) else (yield from ask(KeyPort.sign, online.secret_ref, content))
    if made is None:
        return PointerProof(online, required=required)
    verdict = yield from ask(KeyPort.verify_signature, online.public_material_ref, content, made)
    if verdict is SignatureVerdict.UNKNOWN_KEY:  # The key itself is here, so that its public half is missing proves nothing.
        verdict = SignatureVerdict.VALID
    return PointerProof(online, SealSignature(kid=made.kid, bytes_hex=made.bytes_hex), verdict, required)


def pointer_refusal(seal: Seal, pointer: SealPointer) -> Refusal | None:
    """Return why a seal does not take this pointer, by whatever signature; None where it would."""
    if HEAD_HASH.fullmatch(pointer.head_hash) is None:
        detail = "The head is no SHA-256; give it as 64 lowercase hex digits."
        return InvalidSealHeadHashError(detail, reason="not_sha256")
    if pointer.sequence_number <= seal.current_sequence_number:
        detail = f"The seal stands at {seal.current_sequence_number}; sign a pointer with a greater sequence number."
        facts = {"current_sequence_number": seal.current_sequence_number}
        return SealSequenceNumberRegressionError(detail, facts=facts)
    return None


def refuse_unproven(seal: Seal, pointer: SealPointer, proof: PointerProof, now: datetime) -> None:
    """Refuse a pointer that is not newer, whose key may not sign, or that its signature does not vouch for."""
    if (refusal := pointer_refusal(seal, pointer)) is not None:
        raise refusal
    facts = {"online_credential_id": seal.online_credential_id}
    if proof.credential.status is credentials.REVOKED:
        detail = "The online credential is revoked; rotate the seal to another one."
        raise SignSealPointer.Cannot(detail, reason="credential_revoked", facts=facts)
    if proof.credential.is_expired(now):
        detail = "The online credential has expired; rotate the seal to another one."
        raise SignSealPointer.Cannot(detail, reason="credential_expired", facts=facts)
    match proof.verdict:
        case SignatureVerdict.VALID:
            return
        case None if proof.required:
            detail = (
                "Pointers are taken only with a signature here, and the online key is not held here; send its signature."
            )
            raise SignSealPointer.Cannot(detail, reason="no_signature", facts=facts)
        case None:
            return
        case SignatureVerdict.FORGED:
            detail = "The online key did not sign this pointer; sign its canonical bytes as docs/federation.md has them."
            raise SealPointerForgedError(detail, facts=facts)
        case SignatureVerdict.WRONG_KEY:
            detail = "The signature is by another key than the online credential's; sign with that one, or rotate the seal."
            raise SealKeyMismatchError(detail, facts=facts)
        case SignatureVerdict.UNKNOWN_KEY:
            detail = "The online credential has no public key that can be read here; rotate it to one that has."
            raise SignSealPointer.Cannot(detail, reason="no_public_material", facts=facts)
        case _:
            assert_never(proof.verdict)


@seal.command(
    post="/{facility_id}/pointer/sign",
    allowed=[LIVE],
    verb="Sign",
    reasons=("credential_revoked", "credential_expired", "no_signature", "no_public_material"),
    gated=True,
)
class SignSealPointer(JudgedVerb[Seal, PointerProof]):
    """Vouch for a newer head of the facility's published records, by the given signature or by the online key held here."""

    new_head_hash: HeadHash
    new_sequence_number: SequenceNumber
    signature: SealSignature | None = None

    def gather(self, seal: Seal, call: Call) -> Reads[PointerProof]:
        pointer = pointer_of(seal, self.new_head_hash, self.new_sequence_number)
        return (yield from prove_pointer(seal, pointer if seal.status is LIVE else None, self.signature, call))

    def decide(self, seal: Seal, call: Call, proof: PointerProof) -> Outcome:
        refuse_unproven(seal, pointer_of(seal, self.new_head_hash, self.new_sequence_number), proof, call.now)
        return [
            SealPointerSigned(
                head_hash=self.new_head_hash,
                sequence_number=self.new_sequence_number,
                signed_at=call.now,
                signed_by=call.principal_id,
                signature=proof.signature,
            )
        ]


class KeyChangeFacts(NamedTuple):
    """What a change of the online key is judged by."""

    keys: SealFacts
    new_online_kid: str | None
    verdict: SignatureVerdict | None
    required: bool


@seal.command(post="/{facility_id}/online-key/rotate", allowed=[LIVE], verb="Rotate", gated=True)
class RotateSealOnlineKey(JudgedVerb[Seal, KeyChangeFacts]):
    """Let another key sign the facility's pointers; the offline root vouches for it."""

    new_online_credential_id: UUID
    signed_by_offline_root: bool
    offline_signature: SealSignature | None = None

    def gather(self, seal: Seal, call: Call) -> Reads[KeyChangeFacts]:
        facility = yield from require(Facility, seal.id)
        online = yield from require(Credential, self.new_online_credential_id)
        offline = yield from require(Credential, seal.offline_credential_id)
        key = yield from ask(KeyPort.public_key, online.public_material_ref)
        kid, verdict = None if key is None else key.kid, None
        if self.offline_signature is not None:
            content = canonical_bytes(key_change_of(seal, online.id, kid))
            asked = (offline.public_material_ref, content, self.offline_signature.detached_signature)
            verdict = yield from ask(KeyPort.verify_signature, *asked)
        required = (yield from ask(DeploymentPort.deployment)).seal_signatures_required
        return KeyChangeFacts(SealFacts(facility, online, offline), kid, verdict, required)

    def decide(self, seal: Seal, call: Call, facts: KeyChangeFacts) -> Outcome:
        if self.new_online_credential_id == seal.online_credential_id:
            raise self.cannot("same_credential", "This is the seal's online credential already; name the one that follows.")
        refuse_one_key(self.new_online_credential_id, seal.offline_credential_id)
        refuse_unfit(facts.keys, facts.keys.online, now=call.now)
        self.refuse_unsigned(facts)
        return [
            SealOnlineKeyRotated(
                new_online_credential_id=self.new_online_credential_id,
                new_online_kid=facts.new_online_kid,
                signed_by_offline_root=self.signed_by_offline_root,
                offline_signature=self.offline_signature,
                rotated_by=call.principal_id,
            ),
            audit_decision(SealOnlineKeyRotated, seal.id, call),
        ]

    def refuse_unsigned(self, facts: KeyChangeFacts) -> None:
        """Refuse a change that the offline root did not sign: any bad signature, and none where one is required."""
        match facts.verdict:
            case SignatureVerdict.VALID if self.signed_by_offline_root or not facts.required:
                return
            case None if not facts.required:
                return
            case SignatureVerdict.VALID | None:
                detail = (
                    "A new online key is taken only with the offline root's signature here; send it, and say that it signed."
                )
                raise SealRotationNotSignedError(detail, reason="not_signed")
            case SignatureVerdict.FORGED:
                detail = (
                    "The offline root did not sign this change; sign its canonical bytes as docs/federation.md has them."
                )
                raise SealRotationNotSignedError(detail, reason="forged")
            case SignatureVerdict.WRONG_KEY:
                detail = "The signature is by another key than the offline root's; have the root sign the change."
                raise SealRotationNotSignedError(detail, reason="wrong_key")
            case SignatureVerdict.UNKNOWN_KEY:
                detail = "The offline credential has no public key that can be read here; rotate it to one that has."
                raise SealRotationNotSignedError(detail, reason="no_public_material")
            case _:
                assert_never(facts.verdict)


@seal.command(post="/{facility_id}/republishing/start", allowed=[LIVE], records=SealRepublishingStarted)
class StartSealRepublishing(Verb[Seal]):
    """Say that the facility publishes its records again; no pointer is signed and no key rotated until that is completed."""

    reason: OptionalReason = None


@seal.command(post="/{facility_id}/republishing/complete", allowed=[REPUBLISHING], leads_to=LIVE, gated=True)
class CompleteSealRepublishing(JudgedVerb[Seal, PointerProof]):
    """Say that the records are published again, under a new head and sequence number or, without both, as they were."""

    new_head_hash: HeadHash | None = None
    new_sequence_number: SequenceNumber | None = None
    signature: SealSignature | None = None

    def pointer(self, seal: Seal) -> SealPointer | None:
        """Return the pointer to the new head; None where half of it or all is missing."""
        if self.new_head_hash is None or self.new_sequence_number is None:
            return None
        return pointer_of(seal, self.new_head_hash, self.new_sequence_number)

    def gather(self, seal: Seal, call: Call) -> Reads[PointerProof]:
        pointer = self.pointer(seal) if seal.status is REPUBLISHING else None
        return (yield from prove_pointer(seal, pointer, self.signature, call))

    def decide(self, seal: Seal, call: Call, proof: PointerProof) -> Outcome:
        if (pointer := self.pointer(seal)) is not None:
            refuse_unproven(seal, pointer, proof, call.now)
        elif (self.new_head_hash, self.new_sequence_number, self.signature) != (None, None, None):
            detail = "A new head comes with its hash and its sequence number; give both, or none and no signature."
            raise InvalidSealHeadHashError(detail, reason="half_a_pointer")
        elif seal.current_head_hash is None:
            detail = "There is no head to stay with yet; give the first one with its sequence number."
            raise InvalidSealHeadHashError(detail, reason="no_head")
        return [
            SealRepublishingCompleted(
                new_head_hash=self.new_head_hash,
                new_sequence_number=self.new_sequence_number,
                completed_by=call.principal_id,
                signature=proof.signature,
            )
        ]


COLUMNS = (
    "online_credential_id offline_credential_id current_head_hash current_sequence_number status initialized_at "
    "initialized_by last_signed_at last_signed_by signed kid"
)
GetSeal = seal.get("facility_id", *COLUMNS.split(), "signature", "key_change", "signed_by_offline_root", "offline_signature")


class SealSummary(Summary):
    time: ClassVar[str] = "initialized_at"
    facility_id: UUID
    online_credential_id: UUID
    offline_credential_id: UUID
    current_head_hash: str | None
    current_sequence_number: int
    status: SealStatus
    initialized_at: datetime
    initialized_by: UUID
    last_signed_at: datetime | None
    last_signed_by: UUID | None
    signed: bool
    kid: str | None


@seal.listing(SealSummary)
class ListSeals(ListQuery[SealSummary]):
    """Seals in order of initialization."""

    status: SealStatus | None = None


class SealKeyRole(StrEnum):
    ONLINE = "Online"  # Signs the pointers from now on.
    OFFLINE_ROOT = "OfflineRoot"  # Vouches for each new online key.
    FORMER_ONLINE = "FormerOnline"  # Signed the current pointer, before the online key was rotated.


class SealKey(Value):
    """A key of a seal; `kid` and `public_material` are null where this service cannot read the public half."""

    role: SealKeyRole
    """Which of the seal's keys it is."""
    credential_id: UUID
    kid: str | None
    public_material: str | None
    """The public key."""


class SignedSealPointer(Value):
    """A facility's pointer with everything that a peer checks it by: what was signed, the signatures and the public keys."""

    facility_id: UUID
    status: SealStatus
    pointer: SealPointer | None
    """The newest pointer."""
    pointer_bytes: str | None
    """The bytes of the pointer that were signed."""
    signed: bool
    signature: SealSignature | None
    key_change: SealKeyChange | None
    key_change_bytes: str | None
    """The bytes of the key change that were signed."""
    signed_by_offline_root: bool | None
    offline_signature: SealSignature | None
    public_keys: tuple[SealKey, ...]
    """The keys to check the signatures with."""


@seal.query(get="/{facility_id}/pointer", returns=SignedSealPointer)
class GetSealPointer(Query[SignedSealPointer]):
    """The current pointer of a facility for its peers: the signed bytes, the signatures, and the keys to check them with."""

    def answer(self, seal: Seal, call: Call) -> Reads[SignedSealPointer]:
        roles = {SealKeyRole.ONLINE: seal.online_credential_id, SealKeyRole.OFFLINE_ROOT: seal.offline_credential_id}
        if seal.signing_credential_id not in (None, seal.online_credential_id):
            roles[SealKeyRole.FORMER_ONLINE] = seal.signing_credential_id
        found = yield from find_all(Credential, roles.values())
        keys = []
        for role, id in roles.items():
            key = yield from ask(KeyPort.public_key, found[id].public_material_ref)
            kid, material = (None, None) if key is None else (key.kid, key.public_material)
            keys.append(SealKey(role=role, credential_id=id, kid=kid, public_material=material))
        pointer, change = seal.pointer, seal.key_change
        return SignedSealPointer(
            facility_id=seal.id,
            status=seal.status,
            pointer=pointer,
            pointer_bytes=None if pointer is None else canonical_bytes(pointer).decode(),
            signed=seal.signed,
            signature=seal.signature,
            key_change=change,
            key_change_bytes=None if change is None else canonical_bytes(change).decode(),
            signed_by_offline_root=seal.signed_by_offline_root,
            offline_signature=seal.offline_signature,
            public_keys=tuple(keys),
        )
