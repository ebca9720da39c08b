"""A facility: the identity of this site, of its areas, and of every peer. Inside this context a facility goes by its id;
every other context names it by its code, which is unique for ever."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.decision.decision import Decision, DecisionRegistered
from baton.domain.kernel import Aggregate, Call, Event, IdSet, JudgedCreation, Outcome, State, Value, Verb, copy_with
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.identifiers import FACILITY_CODE, FacilityCode, check_facility_code
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.reads import Reads, ask, find, holder_of, require_if_given
from baton.domain.shared.refusals import Conflict, Invalid, NotFound
from baton.domain.shared.text import FreeText, OptionalReason, Text
from baton.domain.shared.writes import Also, Answer, Claim


class FacilityKind(StrEnum):
    SITE = "Site"
    AREA = "Area"


class FacilityStatus(StrEnum):
    ACTIVE = "Active"
    DECOMMISSIONED = "Decommissioned"


ACTIVE, DECOMMISSIONED = FacilityStatus


class FacilityIdentifierKind(StrEnum):
    SERIAL_NUMBER = "SerialNumber"
    INVENTORY_NUMBER = "InventoryNumber"
    OTHER = "Other"


class InvalidFacilityIdentifierError(Invalid, context="federation"):
    """An alternate identifier of a facility needs a value that is not blank."""


class FacilityIdentifier(Value):
    """Another name a facility goes by."""

    kind: FacilityIdentifierKind
    value: Annotated[str, Text(200, InvalidFacilityIdentifierError, "identifier value")]


@dataclass(frozen=True, kw_only=True)
class Facility(State):
    """A facility is the identity of this site, of one of its areas or of a peer."""

    code: str
    """The code of the facility, unique for ever."""
    display_name: FreeText
    kind: FacilityKind
    parent_id: UUID | None
    trust_anchor_credential_ids: IdSet = frozenset()
    """The credentials that the site's seals rest on."""
    alternate_identifiers: tuple[FacilityIdentifier, ...]
    status: FacilityStatus = ACTIVE
    registered_at: datetime
    registered_by: UUID
    decommissioned_at: datetime | None = None
    decommissioned_by: UUID | None = None


facility = Aggregate(Facility, "/federation/facilities", context="federation")


class FacilityRegistered(Event, of=facility):
    """The facility was made known, and its code was taken for ever."""

    code: str
    display_name: FreeText
    kind: FacilityKind
    parent_id: UUID | None
    alternate_identifiers: tuple[FacilityIdentifier, ...]
    registered_by: UUID


class FacilityTrustAnchorCredentialAdded(Event, of=facility):
    """The Site's seals were let rest on this credential."""

    credential_id: UUID
    added_by: UUID


class FacilityTrustAnchorCredentialRemoved(Event, of=facility):
    """No new seal of the Site rests on this credential from then on."""

    credential_id: UUID
    removed_by: UUID
    reason: FreeText | None


class FacilityDecommissioned(Event, of=facility):
    """The facility was closed; its code stays its own."""

    decommissioned_by: UUID
    reason: FreeText | None


FacilityEvent = FacilityTrustAnchorCredentialAdded | FacilityTrustAnchorCredentialRemoved | FacilityDecommissioned


@facility.evolve
def evolve(facility: Facility, event: FacilityEvent) -> Facility:
    match event:
        case FacilityTrustAnchorCredentialAdded(credential_id=id):
            return copy_with(facility, trust_anchor_credential_ids=facility.trust_anchor_credential_ids | {id})
        case FacilityTrustAnchorCredentialRemoved(credential_id=id):
            return copy_with(facility, trust_anchor_credential_ids=facility.trust_anchor_credential_ids - {id})
        case FacilityDecommissioned():
            at, by = event.occurred_at, event.decommissioned_by
            return copy_with(facility, status=DECOMMISSIONED, decommissioned_at=at, decommissioned_by=by)
        case _:
            assert_never(event)


class FacilitySiteCannotHaveParentError(Invalid, context="federation"):
    """A Site stands alone; only an Area has a parent."""


class FacilityAreaMustHaveParentError(Invalid, context="federation"):
    """An Area belongs to a Site and must name it."""


class FacilityParentNotFoundError(NotFound, context="federation"):
    """The parent facility does not exist."""


class FacilityAreaParentMustBeSiteError(Conflict, context="federation"):
    """The parent of an Area is a Site, never another Area."""


class RegisteredFacility(Value):
    """A new facility by both its names."""

    facility_id: UUID
    code: str


@facility.creation(returns=RegisteredFacility)
class RegisterFacility(JudgedCreation[Facility | None]):
    """Make a site, one of its areas or a peer known; its code is taken for ever."""

    code: FacilityCode
    """The code of the facility; it is taken for ever."""
    display_name: Annotated[str, facility.text("name", 200, label="display name", personal=True)]
    kind: FacilityKind
    """Whether it is a whole Site or an Area of one."""
    parent_id: UUID | None = None
    """The site that the area belongs to."""
    alternate_identifiers: Annotated[tuple[FacilityIdentifier, ...], Field(max_length=100)] = ()

    def gather(self, call: Call) -> Reads[Facility | None]:
        return (yield from require_if_given(Facility, self.parent_id, FacilityParentNotFoundError))

    def decide(self, call: Call, parent: Facility | None) -> Outcome:
        check_facility_code(self.code)
        if self.kind is FacilityKind.SITE and parent is not None:
            raise FacilitySiteCannotHaveParentError("A Site has no parent; leave parent_id out or register an Area.")
        if self.kind is FacilityKind.AREA and parent is None:
            raise FacilityAreaMustHaveParentError("An Area belongs to a Site; name it in parent_id.")
        if parent is not None and parent.kind is not FacilityKind.SITE:
            detail = "The parent is an Area itself; name the Site it belongs to."
            raise FacilityAreaParentMustBeSiteError(detail, facts={"site_id": parent.parent_id})
        detail = f"The code {self.code} belongs to a facility already and stays with it for ever; choose another one."
        taken = facility.AlreadyExists(detail, reason="code_taken", facts={"code": self.code})
        identifiers = sorted(set(self.alternate_identifiers), key=lambda identifier: (identifier.kind, identifier.value))
        own = {**dict(self), "alternate_identifiers": identifiers}
        return [
            FacilityRegistered(**own, registered_by=call.principal_id),
            Claim(FACILITY_CODE, self.code, rival=taken),
            Answer({"facility_id": str(call.new_id), "code": self.code}),
        ]


@facility.command(post="/{facility_id}/decommission", allowed=[ACTIVE], records=FacilityDecommissioned, destructive=True)
class DecommissionFacility(Verb[Facility]):
    """Close a facility; its code stays its own, and what was recorded under it stays valid."""

    reason: OptionalReason = None


GetFacility = facility.get(hidden=["created_at"])
COLUMNS = "code display_name kind parent_id status registered_at decommissioned_at"


class FacilitySummary(Summary):
    time: ClassVar[str] = "registered_at"
    facility_id: UUID
    code: str
    display_name: FreeText
    kind: FacilityKind
    parent_id: UUID | None
    status: FacilityStatus
    registered_at: datetime
    decommissioned_at: datetime | None


@facility.listing(FacilitySummary)
class ListFacilities(NamedListQuery[FacilitySummary]):
    """Facilities in order of registration."""

    kind: FacilityKind | None = None
    status: FacilityStatus | None = None
    parent_id: UUID | None = None
    code: Annotated[str, Field(min_length=1, max_length=32)] | None = None


def own_facility() -> Reads[Facility | None]:
    """Return the facility this deployment serves."""
    deployment = yield from ask(DeploymentPort.deployment)
    return (yield from find(Facility, (yield from holder_of(FACILITY_CODE, deployment.self_facility_code))))


def audit_decision(event: type[Event], id: UUID, call: Call) -> Also:
    """Return the decision that is recorded with an event that makes or ends trust: who chose it and what it is about."""
    registered = DecisionRegistered(decided_by=call.principal_id, context=event.__name__, choice=str(id))
    return Also(Decision, call.id_for(f"decision {event.__name__}"), [registered])
