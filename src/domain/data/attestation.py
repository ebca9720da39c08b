"""An attestation: the result of a check of one copy's bytes that the service itself made. Nobody states an outcome: the
service reads the bytes and compares. It is recorded once, together with what follows from it for the copy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, NamedTuple
from uuid import UUID

from pydantic import Field

from baton.domain.data.dataset import Dataset
from baton.domain.data.distribution import (
    COPIES,
    DISCARDED,
    VERIFIED,
    Distribution,
    DistributionMarkedStale,
    DistributionSupplyNotFoundError,
    DistributionVerified,
    distribution,
    marked_overwritten,
    no_longer_believed,
    other_bytes_at,
)
from baton.domain.data.values import ChecksumAlgorithm, GivenWord, scheme_of
from baton.domain.kernel import Aggregate, Call, Event, JudgedCreation, Outcome, State, Value
from baton.domain.registry import OpenedWork
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.file_addresses import BELIEVED_COPIES, address_key
from baton.domain.shared.listing import ListQuery, Summary
from baton.domain.shared.monitoring import TriggerSource
from baton.domain.shared.reads import (
    Reads,
    all_members_of,
    find,
    find_all,
    is_permitted,
    members_of,
    require,
    require_if_given,
)
from baton.domain.shared.refusals import Conflict, Invalid, NotFound, UnauthorizedError
from baton.domain.shared.tasks import Task, Wait, begin_task
from baton.domain.shared.text import FreeText
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Also, Enlist
from baton.domain.supply.supply import Supply

ATTESTATION, SWEEP = "attestation", "attestation-sweep"  # Kinds of tasks.
VERIFIERS = {"file": "PosixChecksum", "http": "HttpRangeChecksum", "https": "HttpRangeChecksum"}
"""How the bytes under a URI of each scheme are read; under others they are not."""
NO_VERIFIER = "None"  # Stands for the verifier of a scheme that has none.
MAX_ERROR_DETAIL = 500
MAX_LISTED = 100  # Copies that the answer of a sweep names.


class AttestationKind(StrEnum):
    CHECKSUM_VERIFIED = "ChecksumVerified"


class AttestationOutcome(StrEnum):
    MATCH = "Match"  # The bytes have the checksum they should have.
    MISMATCH = "Mismatch"  # They have another one.
    UNREACHABLE = "Unreachable"  # They could not be read, which says nothing about them.


class AttestationStatus(StrEnum):
    RECORDED = "Recorded"


MATCH, MISMATCH, UNREACHABLE = AttestationOutcome


class ByteReading(Value):
    """The result of reading bytes: digest and number of all of them, or why they could not be read."""

    verifier_kind: Annotated[str, Field(min_length=1, max_length=64)]
    digest: str | None = None
    byte_size: int | None = None
    error_detail: Annotated[FreeText, Field(min_length=1, max_length=MAX_ERROR_DETAIL)] | None = None


class AttestationEvidence(Value):
    """What a check found: the computed digest, or why there is none."""

    algorithm: ChecksumAlgorithm
    value: str | None
    """The checksum that was computed; null where the bytes could not be read."""
    verifier_supply_id: UUID
    """The storage supply that the bytes were read from."""
    verifier_kind: str
    """What read the bytes."""
    error_detail: FreeText | None
    """Why the bytes could not be read."""


@dataclass(frozen=True, kw_only=True)
class Attestation(State):
    """An attestation is the result of one check of a copy's bytes, made by the service itself."""

    dataset_id: UUID
    distribution_id: UUID
    kind: AttestationKind
    outcome: AttestationOutcome
    evidence: AttestationEvidence
    attested_at: datetime
    attested_by: UUID  # Who asked for the check.
    status: AttestationStatus = AttestationStatus.RECORDED


attestation = Aggregate(Attestation, "/attestations", context="data")


class AttestationRecorded(Event, of=attestation):
    """The service read a copy's bytes, or tried to, and recorded what it found."""

    dataset_id: UUID
    distribution_id: UUID
    kind: AttestationKind
    outcome: AttestationOutcome
    evidence: AttestationEvidence
    attested_by: UUID


class InvalidAttestationKindError(Invalid, context="data"):
    """The service makes checks of the kind ChecksumVerified only."""


class AttestationDistributionNotFoundError(NotFound, context="data"):
    """The copy that is to be checked does not exist."""


class AttestationDistributionDatasetMismatchError(Conflict, context="data"):
    """The copy that is to be checked is one of another dataset."""


class AttestationTreeChecksumNotSupportedError(Conflict, context="data"):
    """The service reads single files; it checks no directory."""


class ChecksumVerifierUnsupportedSchemeError(Conflict, context="data"):
    """The service reads bytes under file:, http: and https: only."""


class AttestationCreated(Value):
    """A check that was made and recorded."""

    attestation_id: UUID


class AttestationAccepted(Value):
    """A check that is still under way; `get_work` tells how it goes."""

    attestation_id: UUID
    work_id: UUID


@attestation.creation(
    work=OpenedWork(ATTESTATION),
    returns=AttestationCreated,
    accepted=AttestationAccepted,
    refuses=[attestation.AlreadyExists],
)
class RecordAttestation(JudgedCreation[Distribution]):
    """Have the service read a copy's bytes, compare their checksum and record the result.

    A Match makes the copy Verified, a Mismatch makes it Stale. Bytes that cannot be read are a result too: it says nothing
    about the copy, which stays as it is.
    """

    dataset_id: UUID
    distribution_id: UUID
    kind: GivenWord = AttestationKind.CHECKSUM_VERIFIED.value
    """What is checked; ChecksumVerified is all there is."""
    wait: Wait = 30

    def gather(self, call: Call) -> Reads[Distribution]:
        yield from require(Dataset, self.dataset_id)
        return (yield from require(Distribution, self.distribution_id, AttestationDistributionNotFoundError))

    def decide(self, call: Call, distribution: Distribution) -> Outcome:
        if self.kind not in list(AttestationKind):
            detail = f"There is no check {self.kind!r}; leave it out, or give {AttestationKind.CHECKSUM_VERIFIED}."
            raise InvalidAttestationKindError(detail, reason="unknown_kind")
        if distribution.dataset_id != self.dataset_id:
            detail = "The copy is one of another dataset; name the dataset that it belongs to."
            facts = {"dataset_id": distribution.dataset_id}
            raise AttestationDistributionDatasetMismatchError(detail, reason="other_dataset", facts=facts)
        refuse_uncheckable(distribution)
        request, ids = {"distribution_id": str(distribution.id)}, {"attestation_id": call.new_id}
        return begin_task(ATTESTATION, call.new_id, request, ids, call)


def refuse_uncheckable(distribution: Distribution) -> None:
    """Refuse a copy whose bytes the service cannot check."""
    if distribution.checksum.algorithm is not ChecksumAlgorithm.SHA256:
        detail = f"The copy is identified by {distribution.checksum.algorithm}; the service checks single files only."
        raise AttestationTreeChecksumNotSupportedError(detail, reason="tree_checksum")
    if (scheme := scheme_of(distribution.uri)) not in VERIFIERS:
        detail = f"Nothing here reads {scheme}: addresses; register a copy under {', '.join(VERIFIERS)} to check it."
        raise ChecksumVerifierUnsupportedSchemeError(detail, reason="unsupported_scheme", facts={"scheme": scheme})


class RecordedCheck(NamedTuple):
    """The copy as it is after it was read, whether this check is recorded already, and what a Match says of other copies."""

    distribution: Distribution
    is_recorded: bool
    overwritten: tuple[Distribution, ...]  # The copies with other bytes that are believed to be at its address.


@attestation.internal_command(creates=True, command_name=RecordAttestation.__name__)
class CompleteAttestation(JudgedCreation[RecordedCheck]):
    """Record what reading a copy's bytes came to, and what follows for the copy, unless that was given up meanwhile."""

    distribution_id: UUID
    reading: ByteReading

    def gather(self, call: Call) -> Reads[RecordedCheck]:
        distribution = yield from require(Distribution, self.distribution_id)
        overwritten = yield from other_bytes_at(distribution.uri, distribution.checksum.value)
        return RecordedCheck(distribution, (yield from find(Attestation, call.new_id)) is not None, overwritten)

    def decide(self, call: Call, check: RecordedCheck) -> Outcome:
        if check.is_recorded:
            raise attestation.AlreadyExists(f"The attestation {call.new_id} exists already.")
        recorded = attestation_of(check.distribution, self.reading, call)
        if check.distribution.status is DISCARDED:
            return [recorded]
        return [recorded, *verdict_on_copies(recorded, check, call)]


def attestation_of(distribution: Distribution, reading: ByteReading, call: Call) -> AttestationRecorded:
    """Return the result of a check: only here a digest is compared, so that none is recorded as a match that is not."""
    outcome = UNREACHABLE
    if reading.digest is not None:
        outcome = MATCH if reading.digest == distribution.checksum.value else MISMATCH
    evidence = AttestationEvidence(
        algorithm=ChecksumAlgorithm.SHA256,
        value=reading.digest,
        verifier_supply_id=distribution.supply_id,
        verifier_kind=reading.verifier_kind,
        error_detail=reading.error_detail if outcome is UNREACHABLE else None,
    )
    return AttestationRecorded(
        dataset_id=distribution.dataset_id,
        distribution_id=distribution.id,
        kind=AttestationKind.CHECKSUM_VERIFIED,
        outcome=outcome,
        evidence=evidence,
        attested_by=call.principal_id,
    )


def verdict_on_copies(recorded: AttestationRecorded, check: RecordedCheck, call: Call) -> tuple[Also, ...]:
    """Return what a check means for the copy and for others at its address; bytes that could not be read mean nothing."""
    copy = check.distribution
    match recorded.outcome:
        case AttestationOutcome.MATCH:
            verified = DistributionVerified(attestation_id=call.new_id, verified_by=call.principal_id)
            believed = Enlist(BELIEVED_COPIES, address_key(copy.uri))
            return Also(Distribution, copy.id, [verified, believed]), *marked_overwritten(check.overwritten, copy.id, call)
        case AttestationOutcome.MISMATCH:
            stale = DistributionMarkedStale(
                reason="The bytes were read, and have another checksum than the dataset.",
                trigger=TriggerSource.AUTO,
                attestation_id=call.new_id,
                marked_stale_by=call.principal_id,
            )
            return (Also(Distribution, copy.id, [stale, no_longer_believed(copy)]),)
        case AttestationOutcome.UNREACHABLE:
            return ()


GetAttestation = attestation.get(hidden=["created_at"])


class AttestationSummary(Summary):
    time: ClassVar[str] = "attested_at"
    attestation_id: UUID
    dataset_id: UUID
    distribution_id: UUID
    kind: AttestationKind
    outcome: AttestationOutcome
    evidence: AttestationEvidence
    attested_at: datetime
    attested_by: UUID


@attestation.listing(AttestationSummary)
class ListAttestations(ListQuery[AttestationSummary]):
    """Attestations in order of their recording."""

    dataset_id: UUID | None = None
    distribution_id: UUID | None = None
    kind: AttestationKind | None = None
    outcome: AttestationOutcome | None = None


class UnmatchedCopy(Value):
    """A copy whose check was no Match."""

    distribution_id: UUID
    attestation_id: UUID
    outcome: AttestationOutcome


class AttestationSweep(Value):
    """What the checks of a sweep came to."""

    sweep_id: UUID
    match_count: int
    """Number of copies whose bytes were as they should be."""
    mismatch_count: int
    """Number of copies whose bytes were not as they should be."""
    unreachable_count: int
    """Number of copies whose bytes could not be read."""
    skipped_count: Annotated[int, Field(description="The number of copies that were given up before their turn.")]
    not_matched: Annotated[
        tuple[UnmatchedCopy, ...], Field(description=f"Those that did not match, each Mismatch first; {MAX_LISTED} at most.")
    ]
    """The copies that did not match."""


class AttestationSweepAccepted(Value):
    """A sweep that is still under way; `get_work` tells how it goes."""

    sweep_id: UUID
    work_id: UUID


@distribution.command(
    post="/attest", status=200, work=OpenedWork(SWEEP), returns=AttestationSweep, accepted=AttestationSweepAccepted
)
class AttestDistributions(JudgedCreation[None]):
    """Check the bytes of many copies one after the other, oldest first: of a dataset, on a supply, or all there are.

    Each check is an attestation like one that is asked for by itself, and needs RecordAttestation too. Copies that the
    service cannot read (directories, schemes without a verifier) and those registered later are not part of it.
    """

    dataset_id: UUID | None = None
    """Only copies of this dataset."""
    supply_id: UUID | None = None
    """Only copies on this storage supply."""
    not_verified_since: Annotated[
        Instant | None, Field(description="Leave out copies that were Verified at this time or later and still are.")
    ] = None
    limit: Annotated[int, Field(ge=1, le=10_000, description="The largest number of copies to check.")] = 1000
    wait: Wait = 30

    def gather(self, call: Call) -> Reads[None]:
        yield from require_if_given(Dataset, self.dataset_id)
        yield from require_if_given(Supply, self.supply_id, DistributionSupplyNotFoundError)
        if not (yield from is_permitted(RecordAttestation.operation.command_name)):
            detail = (
                "Checking copies needs RecordAttestation, which your policies do not permit; ask an administrator for it."
            )
            raise UnauthorizedError(detail, reason="denied")

    def decide(self, call: Call, _: None) -> Outcome:
        request = self.model_dump(mode="json", exclude={"wait"})
        return begin_task(SWEEP, call.new_id, request, {"sweep_id": call.new_id}, call)


def copies_in_scope(sweep: Task) -> Reads[tuple[UUID, ...]]:
    """Return the copies that a sweep may be about, oldest first, by the look-up rows that are written with each copy."""
    scope = AttestDistributions.model_validate(sweep.request)
    if scope.dataset_id is not None:
        return (yield from members_of(COPIES, scope.dataset_id))
    return (yield from all_members_of(COPIES))


def copies_due(sweep: Task, ids: Sequence[UUID]) -> Reads[list[UUID]]:
    """Return those of these copies that a sweep is to check."""
    scope = AttestDistributions.model_validate(sweep.request)
    copies = yield from find_all(Distribution, ids)
    return [id for id, copy in copies.items() if copy.registered_at <= sweep.created_at and _is_due(copy, scope)]


def _is_due(copy: Distribution, scope: AttestDistributions) -> bool:
    """Return whether a sweep is to check this copy."""
    if copy.status is DISCARDED or scope.supply_id not in (None, copy.supply_id):
        return False
    if copy.checksum.algorithm is not ChecksumAlgorithm.SHA256 or scheme_of(copy.uri) not in VERIFIERS:
        return False
    since, verified_at = scope.not_verified_since, copy.verified_at
    return since is None or copy.status is not VERIFIED or verified_at is None or verified_at < since


def swept_attestation_id(sweep: Task, distribution_id: UUID) -> UUID:
    """Return the id of a sweep's attestation of one copy, which every attempt comes to."""
    return derived_uuid7(int(sweep.created_at.timestamp() * 1000), str(sweep.work_id), str(distribution_id))


def find_swept(sweep: Task, distribution_ids: Sequence[UUID]) -> Reads[dict[UUID, Attestation]]:
    """Return the attestations that a sweep has recorded of these copies, by copy."""
    found = yield from find_all(Attestation, [swept_attestation_id(sweep, id) for id in distribution_ids])
    return {recorded.distribution_id: recorded for recorded in found.values()}


def sweep_result(sweep: Task, distribution_count: int, recorded: Mapping[UUID, Attestation]) -> AttestationSweep:
    """Return what the checks of a sweep came to."""
    counts = {outcome: sum(one.outcome is outcome for one in recorded.values()) for outcome in AttestationOutcome}
    others = [one for outcome in (MISMATCH, UNREACHABLE) for one in recorded.values() if one.outcome is outcome]
    return AttestationSweep(
        sweep_id=sweep.work_id,
        match_count=counts[MATCH],
        mismatch_count=counts[MISMATCH],
        unreachable_count=counts[UNREACHABLE],
        skipped_count=distribution_count - len(recorded),
        not_matched=tuple(
            UnmatchedCopy(distribution_id=one.distribution_id, attestation_id=one.id, outcome=one.outcome)
            for one in others[:MAX_LISTED]
        ),
    )
