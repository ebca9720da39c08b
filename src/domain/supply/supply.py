"""A supply: a continuous resource that runs draw on, be it beam, cryogen, vacuum, power, gas or compute.
The hardware that delivers it is an asset. A monitor may report it worse; only a person declares it good."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import Field

from baton.domain.access.actor import ActorKind
from baton.domain.equipment.asset import Asset
from baton.domain.kernel import (
    Aggregate,
    Call,
    Event,
    JudgedCreation,
    Outcome,
    State,
    TimeTravel,
    Value,
    Verb,
    copy_with,
    values_of,
)
from baton.domain.registry import Internal
from baton.domain.shared.annotations import Seconds
from baton.domain.shared.canonical import canonical_json
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.identifiers import FacilityCode, check_facility_code, require_facility
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.monitoring import InvalidMonitorRefError, MonitorReading, TriggerSource, observation_age
from baton.domain.shared.reads import Reads, ask, record_of, require_if_given
from baton.domain.shared.refusals import Invalid, NotFound
from baton.domain.shared.text import FreeText, StateReason, Text
from baton.domain.shared.writes import Claim, Delist, Enlist, Put, Record, Release

ADDRESSES = "supply-address"  # Claim kind: the addresses of supplies that are not Decommissioned.
KINDS = "supply-kind"  # Look-up kind: the supplies of one kind that are not Decommissioned.
FORMER = "supply-former-kind"  # Look-up kind: the supplies of one kind that are Decommissioned.
STORAGE = "Storage"  # The kind of supply that keeps copies of datasets.


class SupplyStatus(StrEnum):
    UNKNOWN = "Unknown"
    AVAILABLE = "Available"
    DEGRADED = "Degraded"
    UNAVAILABLE = "Unavailable"
    RECOVERING = "Recovering"
    DECOMMISSIONED = "Decommissioned"


UNKNOWN, AVAILABLE, DEGRADED, UNAVAILABLE, RECOVERING, DECOMMISSIONED = SupplyStatus


@dataclass(frozen=True, kw_only=True)
class Supply(State):
    """A supply is a continuous resource that runs draw on, be it beam, cryogen, vacuum, power, gas or compute."""

    kind: str
    name: str
    facility_code: str
    containing_asset_id: UUID | None
    status: SupplyStatus = UNKNOWN
    registered_at: datetime
    last_status_changed_at: datetime | None = None
    last_status_reason: FreeText | None = None
    last_trigger: TriggerSource | None = None


@dataclass(frozen=True)
class SupplyContact(Record):
    """When a monitor last observed a supply, repeats and readings without fault included; no row, never."""

    relation: ClassVar[str] = "supply_contact"
    key: ClassVar[tuple[str, ...]] = ("supply_id",)
    supply_id: UUID
    contacted_at: datetime


supply = Aggregate(Supply, "/supplies", context="supply")


class SupplyRegistered(Event, of=supply):
    """The resource was made known; its status is Unknown until somebody looks."""

    kind: str
    name: str
    facility_code: str
    containing_asset_id: UUID | None
    trigger: TriggerSource
    triggered_by: UUID


class SupplyTransition(Event):
    """A change of status: from where, why, and who or what brought it about."""

    to_status: ClassVar[SupplyStatus]
    from_status: SupplyStatus
    reason: StateReason
    trigger: TriggerSource
    triggered_by: UUID
    monitor_ref: str | None = None

    def __init_subclass__(cls, to: SupplyStatus, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.to_status = to


class SupplyMarkedAvailable(SupplyTransition, of=supply, to=AVAILABLE):
    """Somebody looked, and the resource was there."""


class SupplyDegraded(SupplyTransition, of=supply, to=DEGRADED, overwrites=True):
    """The resource was there, but not as it should be."""


class SupplyMarkedUnavailable(SupplyTransition, of=supply, to=UNAVAILABLE, overwrites=True):
    """The resource was not there."""


class SupplyMarkedRecovering(SupplyTransition, of=supply, to=RECOVERING, overwrites=True):
    """The resource was coming back."""


class SupplyRestored(SupplyTransition, of=supply, to=AVAILABLE, overwrites=True):
    """The resource was there again as it should be."""


class SupplyDeregistered(SupplyTransition, of=supply, to=DECOMMISSIONED):
    """The supply was retired for good, and its address is free again."""


@supply.evolve
def evolve(supply: Supply, event: SupplyTransition) -> Supply:
    supply = copy_with(supply, last_status_reason=event.reason, last_trigger=event.trigger)
    return copy_with(supply, status=event.to_status, last_status_changed_at=event.occurred_at)


class InvalidSupplyReasonError(Invalid, context="supply"):
    """A change of status needs a reason that is not blank."""


class SupplyFacilityNotFoundError(NotFound, context="supply"):
    """No facility has this code."""


class SupplyContainingAssetNotFoundError(NotFound, context="supply"):
    """The asset this supply is said to belong to does not exist."""


class MonitorTriggerNotPermittedError(Invalid, context="supply"):
    """A monitor may report a supply degraded, unavailable or recovering; anything better is a person's word."""


@supply.creation()
class RegisterSupply(JudgedCreation[None]):
    """Make a resource known, of a whole facility or of one asset; its status is Unknown until somebody looks."""

    kind: Annotated[str, supply.text("kind", 50)]
    """What is supplied, such as photon_beam; methods ask for supplies by this word."""
    name: Annotated[str, supply.text("name", 200)]
    facility_code: FacilityCode
    containing_asset_id: UUID | None = None

    def gather(self, call: Call) -> Reads[None]:
        yield from require_facility(self.facility_code, SupplyFacilityNotFoundError)
        yield from require_if_given(Asset, self.containing_asset_id, SupplyContainingAssetNotFoundError)

    def decide(self, call: Call, facts: None) -> Outcome:
        check_facility_code(self.facility_code)
        detail = f"A live supply of kind {self.kind} is named {self.name} there already; use it or choose another name."
        taken = supply.AlreadyExists(detail, reason="address_taken", facts=dict(self))
        return [
            SupplyRegistered(**dict(self), trigger=TriggerSource.OPERATOR, triggered_by=call.principal_id),
            Claim(ADDRESSES, address_key(self), rival=taken),
            Enlist(KINDS, self.kind),
        ]


def address_key(addressed: RegisterSupply | Supply) -> str:
    """Return the key under which two addresses count as the same; no text in one part can pass for another part."""
    parts = (addressed.facility_code, addressed.containing_asset_id, addressed.kind, addressed.name)
    return canonical_json(parts).decode()


class SupplyVerb(Verb[Supply]):
    """An operator's report on a supply, with its reason."""

    records: ClassVar[type[SupplyTransition]]
    reason: Annotated[str, Text(500, InvalidSupplyReasonError, "reason", personal=True)]

    def __init_subclass__(cls, records: type[SupplyTransition], **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.records = records

    def decide(self, supply: Supply, call: Call) -> Outcome:
        return [self.transition(supply, call, TriggerSource.OPERATOR, reason=self.reason)]

    @classmethod
    def transition(cls, supply: Supply, call: Call, trigger: TriggerSource, **cause: str) -> SupplyTransition:
        """Return the event of this verb, brought about by the caller."""
        return cls.records(from_status=supply.status, trigger=trigger, triggered_by=call.principal_id, **cause)


@supply.command(post="/{supply_id}/mark-available", allowed=[UNKNOWN], leads_to=AVAILABLE)
class MarkSupplyAvailable(SupplyVerb, records=SupplyMarkedAvailable):
    """Record that somebody looked, and the resource is there."""


@supply.command(post="/{supply_id}/degrade", allowed=[UNKNOWN, AVAILABLE, RECOVERING], leads_to=DEGRADED)
class DegradeSupply(SupplyVerb, records=SupplyDegraded):
    """Record that the resource is there, but not as it should be: no run starts on it, a held one may resume."""


@supply.command(
    post="/{supply_id}/mark-unavailable", allowed=[UNKNOWN, AVAILABLE, DEGRADED, RECOVERING], leads_to=UNAVAILABLE
)
class MarkSupplyUnavailable(SupplyVerb, records=SupplyMarkedUnavailable):
    """Record that the resource is not there."""


@supply.command(post="/{supply_id}/mark-recovering", allowed=[UNAVAILABLE], leads_to=RECOVERING)
class MarkSupplyRecovering(SupplyVerb, records=SupplyMarkedRecovering):
    """Record that the resource is coming back; restore it once it is stable."""


@supply.command(post="/{supply_id}/restore", allowed=[RECOVERING, DEGRADED], leads_to=AVAILABLE)
class RestoreSupply(SupplyVerb, records=SupplyRestored):
    """Record that the resource is there again as it should be."""


@supply.command(
    post="/{supply_id}/deregister", allowed=[UNKNOWN, AVAILABLE, DEGRADED, UNAVAILABLE, RECOVERING], destructive=True
)
class DeregisterSupply(SupplyVerb, records=SupplyDeregistered):
    """Retire a supply for good; its address is free again."""

    def decide(self, supply: Supply, call: Call) -> Outcome:
        retired = self.transition(supply, call, TriggerSource.OPERATOR, reason=self.reason)
        release = Release(ADDRESSES, address_key(supply))
        return [retired, release, Delist(KINDS, supply.kind), Enlist(FORMER, supply.kind)]


MONITORED: dict[SupplyStatus, type[SupplyVerb]] = {
    DEGRADED: DegradeSupply,
    UNAVAILABLE: MarkSupplyUnavailable,
    RECOVERING: MarkSupplyRecovering,
}  # What a monitor may report, and the operator's verb that says the same.


@supply.command(
    post="/{supply_id}/observe-status",
    refuses=[*(verb.Cannot for verb in MONITORED.values()), InvalidMonitorRefError],
    callers=(ActorKind.SERVICE_ACCOUNT,),
    attempts=3,
    mcp=False,
)
class ObserveSupplyStatus(MonitorReading, Verb[Supply]):
    """Report what a monitor reads from the plant; a repeat is no event, but shows that the monitor is there."""

    new_status: SupplyStatus
    confirms: Annotated[bool, Internal()] = False  # The service's own monitor reads it: what changes nothing is a contact.

    def decide(self, supply: Supply, call: Call) -> Outcome:
        contact = Put(SupplyContact(supply_id=supply.id, contacted_at=call.now))
        if self.confirms and self._changes_nothing(supply):
            return [contact]
        verb = MONITORED.get(self.new_status)
        if verb is None:
            wanted, allowed = self.new_status.value, ", ".join(MONITORED)
            detail = f"A monitor cannot make a supply {wanted}; report {allowed}, and leave the rest to an operator."
            raise MonitorTriggerNotPermittedError(detail, reason=self.new_status.lower())
        if self.new_status is supply.status:
            return [contact]
        verb.operation.check(verb(reason=self.reason), supply)
        cause = self.cause(InvalidSupplyReasonError)
        return [verb.transition(supply, call, TriggerSource.MONITOR, **cause), contact]

    def _changes_nothing(self, supply: Supply) -> bool:
        """Return whether the reading says nothing of the status, or is clear where nothing was out."""
        return self.new_status is UNKNOWN or (self.new_status is RECOVERING and supply.status is not UNAVAILABLE)


class PastSupplyView(Value):
    """A supply as it was, and why; contacts have no past, so nothing is said of its monitor."""

    id: UUID
    kind: str
    name: str
    facility_code: str
    containing_asset_id: UUID | None
    status: SupplyStatus
    last_status_changed_at: datetime | None
    last_status_reason: FreeText | None
    last_trigger: TriggerSource | None
    supply_id: UUID
    created_at: datetime


class SupplyView(PastSupplyView):
    """A supply as it is, with the seconds since a monitor last observed it; null when none ever did.

    `monitored` says whether the service's own is configured to.
    """

    observation_age: Annotated[float | None, Seconds]
    monitored: bool
    last_contact_at: datetime | None


@supply.query(get="/{supply_id}", returns=SupplyView | PastSupplyView)
class GetSupply(TimeTravel[PastSupplyView]):
    """One supply, folded from its stream, with the age of its last observation and whether a monitor watches it."""

    def answer(self, supply: Supply, call: Call) -> Reads[PastSupplyView]:
        shown = values_of(supply, PastSupplyView)
        if self.travels:
            return PastSupplyView(**shown)
        contact = yield from record_of(SupplyContact, supply_id=supply.id)
        deployment = yield from ask(DeploymentPort.deployment)
        return SupplyView(
            **shown,
            observation_age=observation_age(contact, call.now),
            monitored=address_key(supply) in deployment.monitored_supplies,
            last_contact_at=None if contact is None else contact.contacted_at,
        )


class SupplySummary(Summary):
    time: ClassVar[str] = "registered_at"
    supply_id: UUID
    kind: str
    name: str
    facility_code: str
    containing_asset_id: UUID | None
    status: SupplyStatus
    registered_at: datetime
    last_status_changed_at: datetime | None
    last_status_reason: FreeText | None
    last_trigger: TriggerSource | None


@supply.listing(SupplySummary)
class ListSupplies(NamedListQuery[SupplySummary]):
    """Supplies in order of registration, Decommissioned ones included."""

    facility_code: Annotated[str, Field(min_length=1, max_length=32)] | None = None
    containing_asset_id: UUID | None = None
    kind: Annotated[str, Field(min_length=1, max_length=50)] | None = None
    status: SupplyStatus | None = None
