"""A permit: a directional grant for one flow of data with one peer facility. It governs what leaves the facility or comes
in, as policies govern commands inside it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.facility.facility import Facility, FacilityKind, FacilityStatus, audit_decision, own_facility
from baton.domain.kernel import Aggregate, Call, Event, IdSet, JudgedCreation, Outcome, SortedSet, State, Value, Verb
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.listing import ListQuery, Summary
from baton.domain.shared.reads import Reads, find_all, members_of, require
from baton.domain.shared.refusals import Conflict, Invalid
from baton.domain.shared.text import FreeText, OptionalReason, Text
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Claim, Delist, Enlist, Release

GRANT = "permit-grant"  # Claim kind: the permit of one peer, audience, purpose and direction, until it is revoked.
FLOWS = "permit-flow"  # Look-up kind: the permits of one peer, direction and artifact kind that are not revoked.
CANONICALIZATION_VERSIONS = frozenset({1})  # The canonical forms this service can check; 1 is the JSON it writes itself.


class PermitDirection(StrEnum):
    OUTBOUND = "Outbound"
    INBOUND = "Inbound"


class PermitStatus(StrEnum):
    DEFINED = "Defined"
    ACTIVE = "Active"
    SUSPENDED = "Suspended"
    REVOKED = "Revoked"


DEFINED, ACTIVE, SUSPENDED, REVOKED = PermitStatus


class AbiTier(StrEnum):
    """How settled an artifact is, from the least to the most."""

    TESTING = "Testing"
    STABLE = "Stable"
    OBSOLETE = "Obsolete"
    REMOVED = "Removed"

    def meets(self, floor: "AbiTier") -> bool:
        """Return whether an artifact of this tier is honoured where this is the lowest one; what was removed never is."""
        order = list(AbiTier)
        return self is not AbiTier.REMOVED and order.index(self) >= order.index(floor)


class ReadScope(StrEnum):
    LIST_METADATA_ONLY = "ListMetadataOnly"
    READ_ALL_ARTIFACTS = "ReadAllArtifacts"
    READ_BY_ABI_TIER_MINIMUM = "ReadByAbiTierMinimum"


class OnwardActionScope(StrEnum):
    READ_ONLY = "ReadOnly"
    MAY_CACHE_LOCALLY = "MayCacheLocally"
    MAY_REPUBLISH_TO_OWN_PEERS = "MayRepublishToOwnPeers"
    MAY_EXPORT_OFF_PLATFORM = "MayExportOffPlatform"


class ReceiptKind(StrEnum):
    SCITT = "scitt"
    REKOR_SCT = "rekor_sct"
    TS_AUTHORITY = "ts_authority"


class InvalidPermitScopeError(Invalid, context="federation"):
    """A permit names what it covers: no empty set, no blank member, terms of its direction, an expiry in the future."""


class PermitScopeCollapseError(Invalid, context="federation"):
    """A peer that may only list metadata has nothing to export."""


class UnsupportedCanonicalizationVersionError(Invalid, context="federation"):
    """The terms accept a canonical form that this service cannot check."""


class PermitRequiresActivePeerError(Conflict, context="federation"):
    """The peer of a permit is an Active Site other than the own one."""


def _scope(length: int, label: str) -> Text:
    return Text(length, InvalidPermitScopeError, label)


class PermitScope(Value):
    """One part of the facility that a peer may read."""

    kind: Annotated[str, _scope(100, "scope kind")]
    """What kind of part it is."""
    name: Annotated[str, _scope(200, "scope name")]
    qualifier: Annotated[str, _scope(200, "scope qualifier")] | None = None

    def __str__(self) -> str:
        return f"{self.kind}\0{self.name}\0{self.qualifier or ''}"


ArtifactKinds = Annotated[SortedSet[Annotated[str, _scope(100, "artifact kind")]], Field(max_length=100)]
PayloadTypes = Annotated[SortedSet[Annotated[str, _scope(200, "payload type")]], Field(max_length=100)]


class OutboundTerms(Value):
    """What this facility lets the peer read, and do with what it read."""

    kind: Literal[PermitDirection.OUTBOUND]
    scopes: Annotated[SortedSet[PermitScope], Field(max_length=100)]
    read_scope: ReadScope
    onward_action_scope: OnwardActionScope


class InboundTerms(Value):
    """What this facility accepts from the peer, and which proofs it asks for."""

    kind: Literal[PermitDirection.INBOUND]
    inbound_allowed_artifact_kinds: ArtifactKinds
    accepted_canonicalization_versions: Annotated[SortedSet[int], Field(max_length=100)] = CANONICALIZATION_VERSIONS
    required_receipt_kinds: SortedSet[ReceiptKind] = frozenset()
    publisher_grant_correlation_handle: Annotated[str, _scope(500, "correlation handle")] | None = None


Terms = Annotated[OutboundTerms | InboundTerms, Field(discriminator="kind")]


@dataclass(frozen=True, kw_only=True)
class Permit(State):
    """A permit is a directional grant for one flow of data with one peer facility."""

    peer_facility_id: UUID
    audience: str
    purpose: str
    direction: PermitDirection
    """Whether data flows to the peer (Outbound) or from it (Inbound)."""
    allowed_credential_ids: IdSet
    allowed_payload_types: SortedSet[str]
    allowed_artifact_kinds: SortedSet[str]
    abi_tier_floor: AbiTier
    expires_at: datetime
    terms: Terms
    status: PermitStatus = DEFINED
    defined_at: datetime
    defined_by: UUID
    activated_at: datetime | None = None
    suspended_at: datetime | None = None
    resumed_at: datetime | None = None
    revoked_at: datetime | None = None

    @property
    def terms_kind(self) -> PermitDirection:
        return self.terms.kind

    def is_in_force(self, now: datetime) -> bool:
        """Return whether anything may flow under this permit; expiry counts though it changes no status."""
        return self.status is ACTIVE and now < self.expires_at


permit = Aggregate(Permit, "/federation/permits", context="federation")


class PermitDefined(Event, of=permit):
    """It was set down what may flow; that counts once the permit is activated."""

    peer_facility_id: UUID
    audience: str
    purpose: str
    direction: PermitDirection
    allowed_credential_ids: IdSet
    allowed_payload_types: SortedSet[str]
    allowed_artifact_kinds: SortedSet[str]
    abi_tier_floor: AbiTier
    expires_at: datetime
    terms: Terms
    defined_by: UUID


class PermitActivated(Event, of=permit, leads_to=ACTIVE, dates="activated_at"):
    """The permit was put in force."""

    activated_by: UUID


class PermitSuspended(Event, of=permit, leads_to=SUSPENDED, dates="suspended_at"):
    """The flow was stopped until a person resumes it."""

    suspended_by: UUID
    reason: FreeText | None


class PermitResumed(Event, of=permit, leads_to=ACTIVE, dates="resumed_at"):
    """Data was let flow again."""

    resumed_by: UUID


class PermitRevoked(Event, of=permit, leads_to=REVOKED, dates="revoked_at"):
    """The permit was ended for good."""

    revoked_by: UUID
    reason: FreeText | None


class PermitReceiptRecorded(Event, of=permit, inert=True):
    """Something was sent under this permit, or received and verified."""

    receipt_id: UUID
    content_hash: str
    home_stream_type: str
    home_stream_id: UUID
    home_artifact_id: UUID
    recorded_at: datetime


@permit.creation()
class DefinePermit(JudgedCreation[tuple[Facility, Facility | None]]):
    """Set down what may flow to or from a peer, until when and under which credentials; it counts once activated."""

    peer_facility_id: UUID
    audience: Annotated[str, _scope(500, "audience")]
    purpose: Annotated[str, _scope(100, "purpose")]
    direction: PermitDirection
    """Whether data flows to the peer (Outbound) or from it (Inbound)."""
    allowed_credential_ids: Annotated[IdSet, Field(max_length=100)]
    allowed_payload_types: PayloadTypes
    allowed_artifact_kinds: ArtifactKinds
    abi_tier_floor: AbiTier
    expires_at: Instant
    terms: Terms

    def gather(self, call: Call) -> Reads[tuple[Facility, Facility | None]]:
        peer = yield from require(Facility, self.peer_facility_id)
        return peer, (yield from own_facility())

    def decide(self, call: Call, facts: tuple[Facility, Facility | None]) -> Outcome:
        peer, own = facts
        self.check_scope(call)
        check_terms(self.terms)
        if peer == own or peer.kind is not FacilityKind.SITE or peer.status is not FacilityStatus.ACTIVE:
            raise PermitRequiresActivePeerError(
                "A permit is for an Active Site other than the own one; name such a peer.",
                reason="own_facility" if peer == own else "not_an_active_site",
                facts={"kind": peer.kind, "status": peer.status},
            )
        detail = "The peer has a permit for this audience, purpose and direction already; use that one, or revoke it first."
        taken = permit.AlreadyExists(detail, reason="grant_taken")
        return [
            PermitDefined(**dict(self), defined_by=call.principal_id),
            Claim(GRANT, grant_key(self), rival=taken),
            *(Enlist(FLOWS, key) for key in flow_keys(self)),
            audit_decision(PermitDefined, call.new_id, call),
        ]

    def check_scope(self, call: Call) -> None:
        """Refuse a permit that covers nothing, ends at once, or whose terms are of the other direction."""
        for name in ("allowed_credential_ids", "allowed_payload_types", "allowed_artifact_kinds"):
            check_named(name, getattr(self, name))
        if self.expires_at <= call.now:
            detail = "The permit would be expired already; set a later expires_at."
            raise InvalidPermitScopeError(detail, reason="not_in_the_future")
        if self.terms.kind is not self.direction:
            detail = f"The direction is {self.direction} and the terms are {self.terms.kind}; make them agree."
            raise InvalidPermitScopeError(detail, reason="direction_mismatch")


def check_terms(terms: OutboundTerms | InboundTerms) -> None:
    """Refuse terms that cover nothing, contradict themselves, or rest on a form nobody here can check."""
    match terms:
        case OutboundTerms():
            check_named("terms.scopes", terms.scopes)
            exports = terms.onward_action_scope is OnwardActionScope.MAY_EXPORT_OFF_PLATFORM
            if exports and terms.read_scope is ReadScope.LIST_METADATA_ONLY:
                raise PermitScopeCollapseError(
                    "A peer that may only list metadata has nothing to export; widen read_scope or narrow "
                    "onward_action_scope."
                )
        case InboundTerms():
            check_named("terms.inbound_allowed_artifact_kinds", terms.inbound_allowed_artifact_kinds)
            check_named("terms.accepted_canonicalization_versions", terms.accepted_canonicalization_versions)
            if unknown := sorted(terms.accepted_canonicalization_versions - CANONICALIZATION_VERSIONS):
                known = ", ".join(map(str, sorted(CANONICALIZATION_VERSIONS)))
                detail = f"Canonical form {unknown[0]} cannot be checked here; accept only {known}."
                raise UnsupportedCanonicalizationVersionError(detail, facts={"unsupported": unknown})
        case _:
            assert_never(terms)


def check_named(name: str, members: Iterable[object]) -> None:
    """Refuse an empty set: a permit has no wildcard."""
    if not members:
        detail = f"{name} is empty and there is no wildcard; name what the permit covers."
        raise InvalidPermitScopeError(detail, reason="empty_set", facts={"path": name})


def grant_key(grant: DefinePermit | Permit) -> str:
    """Return the key under which two permits count as the same."""
    return content_hash([grant.peer_facility_id, grant.audience, grant.purpose, grant.direction])


def flow_keys(grant: DefinePermit | Permit) -> list[str]:
    """Return the look-up keys of the flows that a permit covers."""
    return [flow_key(grant.peer_facility_id, grant.direction, kind) for kind in sorted(grant.allowed_artifact_kinds)]


def flow_key(peer_facility_id: UUID, direction: PermitDirection, artifact_kind: str) -> str:
    return f"{peer_facility_id}/{direction}/{artifact_kind}"


def permits_of(peer_facility_id: UUID, direction: PermitDirection, artifact_kind: str) -> Reads[tuple[Permit, ...]]:
    """Return every permit that was defined for this flow and is not revoked, whether in force or not."""
    found = yield from find_all(Permit, (yield from members_of(FLOWS, flow_key(peer_facility_id, direction, artifact_kind))))
    return tuple(found.values())


def permit_in_force(permits: Iterable[Permit], now: datetime) -> Permit | None:
    """Return the permit to go by: the oldest of those in force."""
    in_force = (permit for permit in permits if permit.is_in_force(now))
    return min(in_force, key=lambda permit: (permit.defined_at, permit.id), default=None)


@permit.command(post="/{permit_id}/activate", allowed=[DEFINED], records=PermitActivated)
class ActivatePermit(Verb[Permit]):
    """Put the permit in force."""


@permit.command(post="/{permit_id}/suspend", allowed=[ACTIVE], records=PermitSuspended)
class SuspendPermit(Verb[Permit]):
    """Let nothing flow for now; only a person's resume ends it."""

    reason: OptionalReason = None


@permit.command(post="/{permit_id}/resume", allowed=[SUSPENDED], records=PermitResumed)
class ResumePermit(Verb[Permit]):
    """Let data flow again."""


@permit.command(post="/{permit_id}/revoke", allowed=[DEFINED, ACTIVE, SUSPENDED], destructive=True)
class RevokePermit(Verb[Permit]):
    """End the permit for good; the same peer, audience and purpose may be granted again."""

    reason: OptionalReason = None

    def decide(self, permit: Permit, call: Call) -> Outcome:
        return [
            PermitRevoked(**dict(self), revoked_by=call.principal_id),
            Release(GRANT, grant_key(permit)),
            *(Delist(FLOWS, key) for key in flow_keys(permit)),
        ]


GetPermit = permit.get(hidden=["created_at"])
COLUMNS = (
    "peer_facility_id audience purpose direction allowed_credential_ids allowed_payload_types allowed_artifact_kinds "
    "abi_tier_floor expires_at terms_kind status defined_at defined_by activated_at suspended_at resumed_at revoked_at"
)


class PermitSummary(Summary):
    time: ClassVar[str] = "defined_at"
    permit_id: UUID
    peer_facility_id: UUID
    audience: str
    purpose: str
    direction: PermitDirection
    allowed_credential_ids: IdSet
    allowed_payload_types: SortedSet[str]
    allowed_artifact_kinds: SortedSet[str]
    abi_tier_floor: AbiTier
    expires_at: datetime
    terms_kind: PermitDirection
    """The direction that the terms are for."""
    status: PermitStatus
    defined_at: datetime
    defined_by: UUID
    activated_at: datetime | None
    suspended_at: datetime | None
    resumed_at: datetime | None
    revoked_at: datetime | None


@permit.listing(PermitSummary)
class ListPermits(ListQuery[PermitSummary]):
    """Permits in order of definition."""

    direction: PermitDirection | None = None
    """Only permits for data to peers (Outbound) or from them (Inbound)."""
    status: PermitStatus | None = None
    peer_facility_id: UUID | None = None
