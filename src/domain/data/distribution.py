"""A distribution: one byte-identical copy of a dataset on one storage supply. Whether it is still what it claims to be is
found out by attestations; whether it may go is judged by the copies that remain."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, NamedTuple, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.data.dataset import Dataset, DatasetStatus
from baton.domain.data.values import (
    Checksum,
    Content,
    ContentRefusals,
    Encoding,
    GivenByteSize,
    GivenChecksum,
    GivenEncoding,
    GivenUri,
)
from baton.domain.kernel import Aggregate, Call, Event, IdSet, JudgedCreation, JudgedVerb, Outcome, State, Verb, copy_with
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.file_addresses import BELIEVED_COPIES, address_key
from baton.domain.shared.listing import ListQuery, Summary
from baton.domain.shared.monitoring import TriggerSource
from baton.domain.shared.reads import Reads, find_all, members_of, require
from baton.domain.shared.refusals import Conflict, Invalid, NotFound
from baton.domain.shared.text import FreeText
from baton.domain.shared.writes import Also, Claim, Delist, Enlist, Release
from baton.domain.supply.supply import STORAGE, Supply

COPIES = "dataset-distributions"  # Look-up kind: the copies of a dataset that are not Discarded.
PLACES = "distribution-place"  # Claim kind: one copy of a dataset at one place.


class DistributionStatus(StrEnum):
    REGISTERED = "Registered"  # Nobody looked at its bytes yet.
    VERIFIED = "Verified"  # Its bytes were read and are right.
    STALE = "Stale"  # Its bytes are wrong, or somebody says so.
    DISCARDED = "Discarded"


class AccessProtocol(StrEnum):
    HTTPS = "HTTPS"
    GLOBUS = "Globus"
    S3 = "S3"
    POSIX = "POSIX"
    NFS = "NFS"
    OAI_PMH = "OAI_PMH"


GivenAccessProtocol = Annotated[str, Field(min_length=1, max_length=50, description=f"One of {', '.join(AccessProtocol)}.")]
REGISTERED, VERIFIED, STALE, DISCARDED = DistributionStatus
KEPT = (REGISTERED, VERIFIED, STALE)


@dataclass(frozen=True, kw_only=True)
class Distribution(State):
    """A distribution is one byte-identical copy of a dataset on one storage supply."""

    dataset_id: UUID
    supply_id: UUID
    uri: FreeText
    checksum: Checksum
    byte_size: int
    encoding: Encoding
    access_protocol: AccessProtocol
    status: DistributionStatus = REGISTERED
    registered_at: datetime
    registered_by: UUID
    overwritten_distribution_ids: IdSet = frozenset()  # The copies at its address whose other bytes it took the place of.
    """The copies whose other bytes were at its address before; they are Stale."""
    verified_at: datetime | None = None
    verified_by: UUID | None = None
    marked_stale_at: datetime | None = None
    marked_stale_by: UUID | None = None
    stale_reason: FreeText | None = None
    """Why the copy's bytes are not what they should be."""
    overwritten_by_distribution_id: UUID | None = None  # The copy with other bytes that is at its address now.
    """The copy whose other bytes are at its address now, where that is known."""
    stale_trigger: TriggerSource | None = None  # Whether somebody said so, or its bytes were read.
    discarded_at: datetime | None = None
    discarded_by: UUID | None = None
    discard_reason: FreeText | None = None
    """Why the copy was given up."""


distribution = Aggregate(Distribution, "/distributions", context="data")


class DistributionRegistered(Event, of=distribution, version=2, upcasters={1: dict}):
    """A copy of a dataset was made known; since version 2 with the copies whose bytes were at its address."""

    dataset_id: UUID
    supply_id: UUID
    uri: FreeText
    checksum: Checksum
    byte_size: int
    encoding: Encoding
    access_protocol: AccessProtocol
    registered_by: UUID
    overwritten_distribution_ids: IdSet = frozenset()


class DistributionVerified(Event, of=distribution):
    """The copy's bytes were read, and have the checksum they should have."""

    attestation_id: UUID
    verified_by: UUID


class DistributionMarkedStale(Event, of=distribution, version=2, upcasters={1: dict}):
    """The copy's bytes are not what they should be, by an attestation or by somebody's word; since version 2 also because
    those of another copy are at its address."""

    reason: FreeText
    trigger: TriggerSource
    attestation_id: UUID | None
    marked_stale_by: UUID
    overwritten_by_distribution_id: UUID | None = None


class DistributionDiscarded(Event, of=distribution):
    """The copy was given up; its place is free again."""

    reason: FreeText
    discarded_by: UUID


@distribution.evolve
def evolve(
    distribution: Distribution, event: DistributionVerified | DistributionMarkedStale | DistributionDiscarded
) -> Distribution:
    at = event.occurred_at
    match event:
        case DistributionVerified():
            verified = copy_with(distribution, status=VERIFIED, verified_at=at, verified_by=event.verified_by)
            return copy_with(verified, overwritten_by_distribution_id=None)
        case DistributionMarkedStale():
            stale = copy_with(distribution, status=STALE, marked_stale_at=at, marked_stale_by=event.marked_stale_by)
            by = event.overwritten_by_distribution_id
            return copy_with(
                stale, stale_reason=event.reason, overwritten_by_distribution_id=by, stale_trigger=event.trigger
            )
        case DistributionDiscarded():
            discarded = copy_with(distribution, status=DISCARDED, discarded_at=at, discarded_by=event.discarded_by)
            return copy_with(discarded, discard_reason=event.reason)
        case _:
            assert_never(event)


class InvalidDistributionUriError(Invalid, context="data"):
    """A URI needs a scheme that names a place where bytes are."""


class InvalidDistributionChecksumError(Invalid, context="data"):
    """A checksum is `sha256` or `sha256-tree` and 64 lowercase hexadecimal digits."""


class InvalidDistributionByteSizeError(Invalid, context="data"):
    """A size in bytes is 0 or more, and below 2^53."""


class InvalidDistributionEncodingError(Invalid, context="data"):
    """An encoding needs a media type, and at most 16 profiles that are URIs."""


class InvalidAccessProtocolError(Invalid, context="data"):
    """Copies are reached by one of the protocols that the catalog has."""


class DistributionSupplyNotFoundError(NotFound, context="data"):
    """The supply that is said to keep this copy does not exist."""


class DistributionCannotRegisterOnDiscardedDatasetError(Conflict, context="data"):
    """No copies of a Discarded dataset are registered."""


class DistributionCannotRegisterOnNonStorageSupplyError(Conflict, context="data"):
    """Only a supply of the kind Storage keeps copies."""


class DistributionChecksumAlgorithmMismatchError(Conflict, context="data"):
    """A copy is identified by the same kind of checksum as its dataset."""


class DistributionChecksumMismatchError(Conflict, context="data"):
    """A copy has the checksum of its dataset."""


class DistributionByteSizeMismatchError(Conflict, context="data"):
    """A copy is as large as its dataset."""


class DistributionCannotDiscardLastVerifiedError(Conflict, context="data"):
    """The dataset keeps at least one Verified copy elsewhere."""


class Place(NamedTuple):
    """The dataset that is copied, the supply that keeps the copy, and the copies whose bytes were at its address."""

    dataset: Dataset
    supply: Supply
    overwritten: tuple[Distribution, ...]


CONTENT_REFUSALS = ContentRefusals(
    *(InvalidDistributionUriError, InvalidDistributionChecksumError),
    *(InvalidDistributionByteSizeError, InvalidDistributionEncodingError),
)


@distribution.creation(gated=True, refuses=[*CONTENT_REFUSALS, distribution.AlreadyExists])
class RegisterDistribution(JudgedCreation[Place]):
    """Record a copy of a dataset on a storage supply; it has the checksum and size of the dataset."""

    dataset_id: UUID
    supply_id: UUID
    """The storage supply that the copy is on."""
    uri: GivenUri
    checksum: GivenChecksum
    byte_size: GivenByteSize
    encoding: GivenEncoding
    access_protocol: GivenAccessProtocol

    def gather(self, call: Call) -> Reads[Place]:
        dataset = yield from require(Dataset, self.dataset_id)
        supply = yield from require(Supply, self.supply_id, DistributionSupplyNotFoundError)
        return Place(dataset, supply, (yield from other_bytes_at(self.uri.strip(), self.checksum.value)))

    def decide(self, call: Call, place: Place) -> Outcome:
        content = Content.from_given(self.uri, self.checksum, self.byte_size, self.encoding, CONTENT_REFUSALS)
        protocol = checked_protocol(self.access_protocol)
        if place.dataset.status is DatasetStatus.DISCARDED:
            detail = "The dataset is Discarded; copies are registered of one that still counts."
            raise DistributionCannotRegisterOnDiscardedDatasetError(detail, reason="dataset_discarded")
        refuse_other_supply(place.supply)
        refuse_other_bytes(content, place.dataset)
        return [
            *registration(place.dataset.id, place.supply.id, content, protocol, place.overwritten, call),
            *marked_overwritten(place.overwritten, call.new_id, call),
        ]


def checked_protocol(given: str) -> AccessProtocol:
    """Return the protocol of this name, or refuse it."""
    try:
        return AccessProtocol(given)
    except ValueError:
        detail = f"There is no access protocol {given!r}; choose one of {', '.join(AccessProtocol)}."
        raise InvalidAccessProtocolError(detail, reason="unknown_protocol") from None


def refuse_other_supply(supply: Supply) -> None:
    """Refuse a supply that keeps no copies; its status is not looked at."""
    if supply.kind != STORAGE:
        detail = f"The supply is of the kind {supply.kind}; name one of the kind {STORAGE}."
        raise DistributionCannotRegisterOnNonStorageSupplyError(detail, reason="not_storage", facts={"kind": supply.kind})


def refuse_other_bytes(content: Content, dataset: Dataset) -> None:
    """Refuse a copy that does not claim to be the dataset's bytes."""
    if content.checksum.algorithm is not dataset.checksum.algorithm:
        detail = f"The dataset is identified by {dataset.checksum.algorithm}; give the copy's checksum of that kind."
        raise DistributionChecksumAlgorithmMismatchError(detail, reason="other_algorithm")
    if content.checksum.value != dataset.checksum.value:
        detail = "The dataset has another checksum; these bytes are no copy of it."
        raise DistributionChecksumMismatchError(detail, reason="other_checksum")
    if content.byte_size != dataset.byte_size:
        detail = f"The dataset has {dataset.byte_size} bytes; a copy has as many."
        raise DistributionByteSizeMismatchError(detail, reason="other_size", facts={"byte_size": dataset.byte_size})


def other_bytes_at(uri: str, checksum_value: str) -> Reads[tuple[Distribution, ...]]:
    """Return the copies whose bytes are believed to be at an address where now bytes with this checksum are."""
    believed = yield from find_all(Distribution, (yield from members_of(BELIEVED_COPIES, address_key(uri))))
    return tuple(one for one in believed.values() if one.checksum.value != checksum_value)


def marked_overwritten(copies: Iterable[Distribution], by_id: UUID, call: Call) -> tuple[Also, ...]:
    """Return what makes copies Stale whose address has the bytes of another copy now."""
    stale = DistributionMarkedStale(
        reason="Its address has the bytes of another copy now, with another checksum.",
        trigger=TriggerSource.AUTO,
        attestation_id=None,
        marked_stale_by=call.principal_id,
        overwritten_by_distribution_id=by_id,
    )
    return tuple(Also(Distribution, one.id, [stale.model_copy(), no_longer_believed(one)]) for one in copies)


def no_longer_believed(copy: Distribution) -> Delist:
    """Return the write that takes a copy from those whose bytes are believed to be at its address."""
    return Delist(BELIEVED_COPIES, address_key(copy.uri))


def registration(
    dataset_id: UUID,
    supply_id: UUID,
    content: Content,
    protocol: AccessProtocol,
    overwritten: Iterable[Distribution],
    call: Call,
) -> Outcome:
    """Return what records a new copy, at a place where no other copy of the dataset is."""
    detail = "This copy is registered already: same dataset, supply and address; use it, or discard it first."
    taken = distribution.AlreadyExists(detail, reason="place_taken")
    registered = DistributionRegistered(
        **dict(content),
        dataset_id=dataset_id,
        supply_id=supply_id,
        access_protocol=protocol,
        registered_by=call.principal_id,
        overwritten_distribution_ids=frozenset(one.id for one in overwritten),
    )
    return [
        registered,
        Claim(PLACES, place_key(dataset_id, supply_id, content.uri), rival=taken),
        Enlist(COPIES, str(dataset_id)),
        Enlist(BELIEVED_COPIES, address_key(content.uri)),
    ]


def place_key(dataset_id: UUID, supply_id: UUID, uri: str) -> str:
    """Return the key under which two copies are at the same place; addresses may be longer than a key."""
    return content_hash([dataset_id, supply_id, uri])


@distribution.command(post="/{distribution_id}/mark-stale", allowed=KEPT, leads_to=STALE)
class MarkDistributionStale(Verb[Distribution]):
    """Say that a copy's bytes are not what they should be; that is a fact, however many copies are left."""

    reason: Annotated[str, distribution.text("mark_stale_reason", 500, label="reason", personal=True)]

    def decide(self, distribution: Distribution, call: Call) -> Outcome:
        stale = DistributionMarkedStale(
            reason=self.reason, trigger=TriggerSource.OPERATOR, attestation_id=None, marked_stale_by=call.principal_id
        )
        return [stale, no_longer_believed(distribution)]


class Remaining(NamedTuple):
    """The dataset of a copy that is to go, and the other copies of it."""

    dataset: Dataset
    others: tuple[Distribution, ...]


@distribution.command(post="/{distribution_id}/discard", allowed=KEPT, gated=True, destructive=True)
class DiscardDistribution(JudgedVerb[Distribution, Remaining]):
    """Give up a copy; one whose bytes were looked at goes only while another is Verified on another supply.

    Copies of a Discarded dataset go in any case. Nothing here deletes bytes.
    """

    reason: Annotated[str, distribution.text("discard_reason", 500, label="reason", personal=True)]

    def gather(self, distribution: Distribution, call: Call) -> Reads[Remaining]:
        dataset = yield from require(Dataset, distribution.dataset_id)
        copies = yield from copies_of(dataset.id)
        return Remaining(dataset, tuple(one for one in copies if one.id != distribution.id))

    def decide(self, distribution: Distribution, call: Call, remaining: Remaining) -> Outcome:
        needed = distribution.status is not REGISTERED and remaining.dataset.status is not DatasetStatus.DISCARDED
        safe = any(one.status is VERIFIED and one.supply_id != distribution.supply_id for one in remaining.others)
        if needed and not safe:
            detail = "No other supply has a Verified copy of this dataset; attest one elsewhere first."
            raise DistributionCannotDiscardLastVerifiedError(detail, reason="last_verified")
        place = place_key(distribution.dataset_id, distribution.supply_id, distribution.uri)
        return [
            DistributionDiscarded(reason=self.reason, discarded_by=call.principal_id),
            Release(PLACES, place),
            Delist(COPIES, str(distribution.dataset_id)),
            no_longer_believed(distribution),
        ]


def copies_of(dataset_id: UUID) -> Reads[tuple[Distribution, ...]]:
    """Return the copies of a dataset that are not Discarded, in order of their ids."""
    return tuple((yield from find_all(Distribution, (yield from members_of(COPIES, dataset_id)))).values())


GetDistribution = distribution.get(hidden=["created_at", "stale_trigger"])


class DistributionSummary(Summary):
    time: ClassVar[str] = "registered_at"
    distribution_id: UUID
    dataset_id: UUID
    supply_id: UUID
    uri: FreeText
    checksum: Checksum
    byte_size: int
    encoding: Encoding
    access_protocol: AccessProtocol
    status: DistributionStatus
    registered_at: datetime
    registered_by: UUID
    verified_at: datetime | None
    marked_stale_at: datetime | None
    overwritten_by_distribution_id: UUID | None
    discarded_at: datetime | None
    discard_reason: FreeText | None


@distribution.listing(DistributionSummary)
class ListDistributions(ListQuery[DistributionSummary]):
    """Copies in order of registration."""

    filters: ClassVar[dict[str, str]] = {"dataset_ids": "dataset_id"}

    dataset_id: UUID | None = None
    dataset_ids: Annotated[tuple[UUID, ...], Field(max_length=100)] = ()
    """Only copies of these datasets."""
    supply_id: UUID | None = None
    status: DistributionStatus | None = None
    access_protocol: AccessProtocol | None = None
