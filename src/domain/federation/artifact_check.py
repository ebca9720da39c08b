"""The inbound check: what an artifact of a peer must pass, stage by stage, before anything here may rest on it. Everything
in an artifact is covered by its signature, or equals what is: what cannot be read back to the same bytes is refused."""

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from pydantic import Field, ValidationError

from baton.domain.access.actor import ActorKind
from baton.domain.calibration.calibration import (
    CalibrationStatus,
    InvalidCalibrationValueError,
    InvalidOperatingPointError,
    Source,
)
from baton.domain.calibration.quantities import QUANTITIES, CalibrationQuantity
from baton.domain.facility.facility import Facility
from baton.domain.federation.credential import Credential, CredentialPurpose, KeyPort
from baton.domain.federation.permit import AbiTier, InboundTerms, Permit
from baton.domain.federation.publication import SIGNING_VERSION, bytes_hash, credentials_of
from baton.domain.kernel import Value
from baton.domain.shared.canonical import canonical_json
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.reads import Reads, ask
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.signatures import Signature, SignatureVerdict
from baton.domain.shared.times import Instant

MAX_ARTIFACT_BYTES = 1024 * 1024
SCHEMA_VERSION = 1
ANCHORS = (
    CredentialPurpose.VERIFICATION,
    CredentialPurpose.SIGNING,
)  # The credentials of a peer that its signatures rest on.
UNSIGNED = ("content_hash", "canonical_bytes", "signature_envelope")  # The keys of an artifact beside its terms.

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Stage(StrEnum):
    """The stages of the check, in their order."""

    PAYLOAD_TYPE = "payload_type"
    CONTENT_HASH = "content_hash"
    REQUIRED_RECEIPTS = "required_receipts"
    SIGNATURE = "signature"
    ABI_TIER = "abi_tier"
    EXPIRY = "expiry"
    SIGN_OFF_CHAIN = "sign_off_chain"


class StageOutcome(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"  # There was nothing to check, or an earlier stage failed; with a reason, it could not be run.


class CheckReason(StrEnum):
    """Why a stage failed or could not be run."""

    PAYLOAD_TYPE_NOT_ALLOWED = "payload_type_not_allowed"
    ARTIFACT_KIND_NOT_ALLOWED = "artifact_kind_not_allowed"
    MALFORMED = "malformed"
    NOT_CANONICAL = "not_canonical"
    HASH_MISMATCH = "hash_mismatch"
    TERMS_MISMATCH = "terms_mismatch"
    OTHER_RECEIPT = "other_receipt"
    OTHER_ADDRESSEE = "other_addressee"
    ADDRESSEE_UNKNOWN = "addressee_unknown"
    UNKNOWN_SCHEMA = "unknown_schema"
    UNKNOWN_CANONICALIZATION = "unknown_canonicalization"
    UNKNOWN_SIGNING_VERSION = "unknown_signing_version"
    UNKNOWN_QUANTITY = "unknown_quantity"
    RECEIPTS_MISSING = "receipts_missing"
    OTHER_SOURCE = "other_source"
    FORGED = "forged"
    WRONG_KEY = "wrong_key"
    NO_TRUSTED_KEY = "no_trusted_key"
    KEY_UNAVAILABLE = "key_unavailable"
    BELOW_TIER_FLOOR = "below_tier_floor"
    REMOVED = "removed"
    EXPIRED = "expired"
    NO_SIGN_OFF = "no_sign_off"
    SIGN_OFF_NOT_HUMAN = "sign_off_not_human"


class StageVerdict(Value):
    """How one stage went, and by which cause if it did not pass."""

    stage: Stage
    """The stage."""
    outcome: StageOutcome
    reason: CheckReason | None = None
    """Why the stage did not pass."""


class ReceivedArtifactStatus(StrEnum):
    VERIFIED = "Verified"
    REJECTED = "Rejected"
    UNVERIFIABLE = "Unverifiable"


DECISIVE = (
    (StageOutcome.FAIL, ReceivedArtifactStatus.REJECTED),
    (StageOutcome.SKIP, ReceivedArtifactStatus.UNVERIFIABLE),
)  # What a stage with a reason means for the artifact; a failure counts before a stage that could not be run.


class SourceFacility(Value):
    """The publisher, by the id and the code it has at home."""

    facility_id: UUID
    code: str


class SignOff(Value):
    """One who signed an artifact off."""

    actor_id: UUID
    kind: str


class ArtifactTerms(Value):
    """What an artifact says of itself."""

    receipt_id: UUID
    artifact_kind: str
    payload_type: str
    source_facility: SourceFacility
    peer_facility_id: UUID
    published_at: Instant
    expires_at: Instant
    abi_tier: AbiTier
    sign_off_chain: tuple[SignOff, ...]
    schema_version: int
    canonicalization_version: int


class SignatureEnvelope(Value):
    """The signature over the canonical bytes."""

    kind: str
    signing_version: int
    kid: Sha256
    bytes_hex: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]


class PublishedArtifactForm(ArtifactTerms):
    """An artifact as it is sent."""

    content_hash: Sha256
    canonical_bytes: str
    signature_envelope: SignatureEnvelope


class PublishedRevisionForm(Value):
    """The canonical bytes of a published calibration revision."""

    calibration_id: UUID
    target_id: UUID
    quantity: str
    operating_point: dict[str, Any]
    revision_id: UUID
    value: dict[str, Any]
    status: CalibrationStatus
    source: Source
    established_at: Instant
    established_by: UUID
    decided_by_decision_id: UUID | None
    supersedes_revision_id: UUID | None
    content_hash: Sha256
    terms: ArtifactTerms


class ReadArtifact(NamedTuple):
    """An artifact whose parts agree with each other and with its reference."""

    revision: PublishedRevisionForm
    content: bytes
    signature: Signature


class Unread(NamedTuple):
    """Why an artifact was not read; one that nobody here can read may be read later, by another build or permit."""

    reason: CheckReason
    outcome: StageOutcome = StageOutcome.FAIL


class SignatureFinding(NamedTuple):
    """How the signature stage went, and the credential that the signature rests on where it passed."""

    result: StageVerdict
    credential_id: UUID | None = None


class PassedCheck(NamedTuple):
    """An artifact that passed every stage, and the credential that its signature rests on."""

    stages: tuple[StageVerdict, ...]
    revision: PublishedRevisionForm
    credential_id: UUID


class FailedCheck(NamedTuple):
    """An artifact that is Rejected or Unverifiable, and the stage that decided it."""

    stages: tuple[StageVerdict, ...]
    status: ReceivedArtifactStatus
    stage: Stage
    reason: CheckReason


ArtifactCheck = PassedCheck | FailedCheck


def check_artifact(
    document: bytes, content_hash: str, receipt_id: UUID, permit: Permit, source: Facility, now: datetime
) -> Reads[ArtifactCheck]:
    """Return how a fetched artifact fares under the inbound permit of its publisher."""
    deployment = yield from ask(DeploymentPort.deployment)
    read = read_artifact(document, content_hash, receipt_id, permit)
    if isinstance(read, ReadArtifact):
        read = check_addressee(read, deployment.own_ids_at_peers.get(source.code))
    finding = SignatureFinding(_skip(Stage.SIGNATURE))
    if isinstance(read, ReadArtifact):
        finding = yield from check_signature(read, permit, source, now)
    stages = tuple(until_first_failure(stage_results(document, read, finding.result, permit, now)))
    for outcome, status in DECISIVE:
        for one in stages:
            if one.outcome is outcome and one.reason is not None:
                return FailedCheck(stages, status, one.stage, one.reason)
    assert isinstance(read, ReadArtifact), "what passes was read"
    assert finding.credential_id is not None, "what passes was signed by a trusted key"
    return PassedCheck(stages, read.revision, finding.credential_id)


def check_addressee(read: ReadArtifact, own_id: UUID | None) -> ReadArtifact | Unread:
    """Return an artifact that is addressed to this facility, by the id that it has at the publisher; or why it is not."""
    if own_id is None:
        return Unread(CheckReason.ADDRESSEE_UNKNOWN, StageOutcome.SKIP)
    return read if read.revision.terms.peer_facility_id == own_id else Unread(CheckReason.OTHER_ADDRESSEE)


def signed_content(document: bytes) -> bytes | None:
    """Return the canonical bytes in a fetched artifact, or None where it has none."""
    artifact = read_object(document)
    encoded = None if artifact is None else artifact.get("canonical_bytes")
    try:
        return base64.b64decode(encoded, validate=True) if isinstance(encoded, str) else None
    except ValueError:
        return None


def read_artifact(document: bytes, content_hash: str, receipt_id: UUID, permit: Permit) -> ReadArtifact | Unread:
    """Return an artifact that is what its reference and its own hash say, word for word; or why it is not."""
    envelope, content = read_object(document), signed_content(document)
    if envelope is None or content is None:
        return Unread(CheckReason.MALFORMED)
    if unknown := unknown_form(envelope, permit):
        return Unread(unknown, StageOutcome.SKIP)
    signed = read_object(content)
    try:
        artifact = PublishedArtifactForm.model_validate(envelope)
        revision = PublishedRevisionForm.model_validate(signed)
    except ValidationError:
        return Unread(CheckReason.MALFORMED)
    assert signed is not None, "what has the form of a revision is an object"
    is_canonical = artifact.canonical_bytes == base64.b64encode(content).decode()
    if not (is_canonical and is_canonical_json(envelope, document) and is_canonical_json(signed, content)):
        return Unread(CheckReason.NOT_CANONICAL)
    if not bytes_hash(content) == artifact.content_hash == content_hash:
        return Unread(CheckReason.HASH_MISMATCH)
    outer = {name: value for name, value in envelope.items() if name not in UNSIGNED}
    if canonical_json(outer) != canonical_json(signed["terms"]):
        return Unread(CheckReason.TERMS_MISMATCH)
    if artifact.receipt_id != receipt_id:
        return Unread(CheckReason.OTHER_RECEIPT)
    if revision.quantity not in list(QUANTITIES):
        return Unread(CheckReason.UNKNOWN_QUANTITY, StageOutcome.SKIP)
    if not fits_catalog(revision):
        return Unread(CheckReason.MALFORMED)
    given = artifact.signature_envelope
    return ReadArtifact(revision, content, Signature(envelope_kind=given.kind, kid=given.kid, bytes_hex=given.bytes_hex))


def fits_catalog(revision: PublishedRevisionForm) -> bool:
    """Return whether a revision has the form that its quantity asks for, and could be stored."""
    form = QUANTITIES[CalibrationQuantity(revision.quantity)]
    try:
        form.operating_point.check(revision.operating_point, InvalidOperatingPointError)
        form.value.check(revision.value, InvalidCalibrationValueError)
    except Invalid:
        return False
    return b"\\u0000" not in canonical_json([revision.operating_point, revision.value])


def unknown_form(envelope: Mapping[str, object], permit: Permit) -> CheckReason | None:
    """Return why nobody here can read an artifact of this form, or None."""
    assert isinstance(permit.terms, InboundTerms), "an inbound permit has inbound terms"
    signature = envelope.get("signature_envelope")
    if envelope.get("schema_version") != SCHEMA_VERSION:
        return CheckReason.UNKNOWN_SCHEMA
    if envelope.get("canonicalization_version") not in list(permit.terms.accepted_canonicalization_versions):
        return CheckReason.UNKNOWN_CANONICALIZATION
    if isinstance(signature, dict) and signature.get("signing_version") != SIGNING_VERSION:
        return CheckReason.UNKNOWN_SIGNING_VERSION
    return None


def read_object(document: bytes) -> dict[str, object] | None:
    """Return the JSON object in these bytes, or None where there is none."""
    try:
        found = json.loads(document.decode())
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def is_canonical_json(value: object, document: bytes) -> bool:
    """Return whether these bytes are the one canonical form of a value."""
    try:
        return canonical_json(value) == document
    except (ValueError, RecursionError):
        return False


def check_signature(read: ReadArtifact, permit: Permit, source: Facility, now: datetime) -> Reads[SignatureFinding]:
    """Return whether a trusted key of the publisher signed these bytes: that of a usable credential the permit allows."""
    if read.revision.terms.source_facility.code != source.code:
        return SignatureFinding(_failure(Stage.SIGNATURE, CheckReason.OTHER_SOURCE))
    credentials = yield from credentials_of([permit])
    anchors = trust_anchors(credentials, source, now)
    verdicts: dict[SignatureVerdict, UUID] = {}
    for anchor in anchors:
        verdict = yield from ask(KeyPort.verify_signature, anchor.public_material_ref, read.content, read.signature)
        verdicts.setdefault(verdict, anchor.id)
    if SignatureVerdict.VALID in verdicts:
        passed = StageVerdict(stage=Stage.SIGNATURE, outcome=StageOutcome.PASS)
        return SignatureFinding(passed, verdicts[SignatureVerdict.VALID])
    if SignatureVerdict.FORGED in verdicts:
        return SignatureFinding(_failure(Stage.SIGNATURE, CheckReason.FORGED))
    if SignatureVerdict.UNKNOWN_KEY in verdicts:
        return SignatureFinding(_skip(Stage.SIGNATURE, CheckReason.KEY_UNAVAILABLE))
    return SignatureFinding(_failure(Stage.SIGNATURE, CheckReason.WRONG_KEY if anchors else CheckReason.NO_TRUSTED_KEY))


def trust_anchors(credentials: Mapping[UUID, Credential], source: Facility, now: datetime) -> list[Credential]:
    """Return the usable credentials of a publisher that its signatures may rest on, in order of their ids."""
    found = (credentials[id] for id in sorted(credentials))
    return [one for one in found if one.facility_id == source.id and one.purpose in ANCHORS and one.is_usable(now)]


def stage_results(
    document: bytes, read: ReadArtifact | Unread, signature: StageVerdict, permit: Permit, now: datetime
) -> Iterator[StageVerdict]:
    """Yield how each stage goes; those after what could not be read have nothing to check."""
    assert isinstance(permit.terms, InboundTerms), "an inbound permit has inbound terms"
    said = read_object(document) or {}
    types, kinds = list(permit.allowed_payload_types), list(accepted_kinds(permit))
    type_problem = None if said.get("payload_type") in types else CheckReason.PAYLOAD_TYPE_NOT_ALLOWED
    kind_problem = None if said.get("artifact_kind") in kinds else CheckReason.ARTIFACT_KIND_NOT_ALLOWED
    yield _result(Stage.PAYLOAD_TYPE, type_problem or kind_problem)
    if isinstance(read, Unread):
        yield StageVerdict(stage=Stage.CONTENT_HASH, outcome=read.outcome, reason=read.reason)
    else:
        yield _result(Stage.CONTENT_HASH, None)
    # Artifacts carry no receipts of third parties yet, so a permit that asks for some lets none in.
    asked = permit.terms.required_receipt_kinds
    yield _failure(Stage.REQUIRED_RECEIPTS, CheckReason.RECEIPTS_MISSING) if asked else _skip(Stage.REQUIRED_RECEIPTS)
    yield signature
    if isinstance(read, Unread):
        yield from (_skip(stage) for stage in (Stage.ABI_TIER, Stage.EXPIRY, Stage.SIGN_OFF_CHAIN))
        return
    terms = read.revision.terms
    yield _result(Stage.ABI_TIER, tier_problem(terms.abi_tier, permit.abi_tier_floor))
    yield _result(Stage.EXPIRY, CheckReason.EXPIRED if now >= terms.expires_at else None)
    yield _result(Stage.SIGN_OFF_CHAIN, sign_off_problem(terms.sign_off_chain))


def accepted_kinds(permit: Permit) -> frozenset[str]:
    """Return the kinds of artifact that an inbound permit lets in: those that both it and its terms name."""
    assert isinstance(permit.terms, InboundTerms), "an inbound permit has inbound terms"
    return permit.allowed_artifact_kinds & permit.terms.inbound_allowed_artifact_kinds


def tier_problem(tier: AbiTier, floor: AbiTier) -> CheckReason | None:
    """Return why an artifact of this tier is not taken, or None."""
    if tier is AbiTier.REMOVED:
        return CheckReason.REMOVED
    order = list(AbiTier)
    return CheckReason.BELOW_TIER_FLOOR if order.index(tier) < order.index(floor) else None


def sign_off_problem(chain: tuple[SignOff, ...]) -> CheckReason | None:
    """Return why nobody who may do so has signed off, or None: people sign off, and only they."""
    if not chain:
        return CheckReason.NO_SIGN_OFF
    return None if all(one.kind == ActorKind.HUMAN for one in chain) else CheckReason.SIGN_OFF_NOT_HUMAN


def until_first_failure(results: Iterator[StageVerdict]) -> Iterator[StageVerdict]:
    """Yield results up to the first failure, and the stages after it as skipped."""
    has_failed = False
    for result in results:
        yield _skip(result.stage) if has_failed else result
        has_failed = has_failed or result.outcome is StageOutcome.FAIL


def _result(stage: Stage, problem: CheckReason | None) -> StageVerdict:
    return StageVerdict(stage=stage, outcome=StageOutcome.PASS) if problem is None else _failure(stage, problem)


def _failure(stage: Stage, reason: CheckReason) -> StageVerdict:
    return StageVerdict(stage=stage, outcome=StageOutcome.FAIL, reason=reason)


def _skip(stage: Stage, reason: CheckReason | None = None) -> StageVerdict:
    return StageVerdict(stage=stage, outcome=StageOutcome.SKIP, reason=reason)
