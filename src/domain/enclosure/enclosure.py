"""An enclosure: what the upstream interlock reports about one volume it guards, be it a hutch, a cabinet or a vault.
It records and never grants: only an observation changes the permit status, and nothing here opens or bypasses anything.
Its gate: whether every enclosure that some work touches is permitted, and known to be so just now."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, ClassVar, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.access.actor import ActorKind
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
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.canonical import canonical_json
from baton.domain.shared.deployment import Deployment, DeploymentPort
from baton.domain.shared.gates import GateFinding
from baton.domain.shared.identifiers import FacilityCode, check_facility_code, require_facility
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.monitoring import (
    InvalidMonitorRefError,
    MonitorReading,
    TriggerSource,
    age_objection,
    observation_age,
)
from baton.domain.shared.reads import Reads, ask, find_all, record_of, records_of
from baton.domain.shared.refusals import Invalid, NotFound
from baton.domain.shared.text import FreeText, StateReason, Text
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Answer, Claim, Put, Record, Release

NAMES = "enclosure-name"  # Claim kind: the names of Active enclosures, each within its facility.


class EnclosurePermitStatus(StrEnum):
    PERMITTED = "Permitted"
    NOT_PERMITTED = "NotPermitted"
    UNKNOWN = "Unknown"


class EnclosureLifecycle(StrEnum):
    ACTIVE = "Active"
    DECOMMISSIONED = "Decommissioned"


@dataclass(frozen=True, kw_only=True)
class Enclosure(State):
    """An enclosure is one volume that an interlock guards, with what was last observed of its permit."""

    name: str
    facility_code: str
    permit_status: EnclosurePermitStatus = EnclosurePermitStatus.UNKNOWN
    lifecycle: EnclosureLifecycle = EnclosureLifecycle.ACTIVE
    registered_at: datetime
    registered_by: UUID
    last_permit_status_changed_at: datetime | None = None
    """When the interlock's permit last changed."""
    last_permit_status_reason: FreeText | None = None
    """The reason given with the last change of the permit."""
    last_trigger: TriggerSource | None = None
    last_source_kind: str | None = None
    """The kind of source that the last report came from."""
    last_source_id: str | None = None
    """The signal that the last report came from."""
    last_source_observed_at: datetime | None = None
    """When the source of the last report had looked."""
    decommissioned_at: datetime | None = None
    decommissioned_by: UUID | None = None


@dataclass(frozen=True)
class EnclosureContact(Record):
    """When an enclosure's permit was last observed, repeats included; no row, never."""

    relation: ClassVar[str] = "enclosure_contact"
    key: ClassVar[tuple[str, ...]] = ("enclosure_id",)
    enclosure_id: UUID
    contacted_at: datetime


enclosure = Aggregate(Enclosure, "/enclosures", axis="lifecycle", context="enclosure")


class EnclosureRegistered(Event, of=enclosure):
    """The enclosure was made known; its permit status is Unknown until it is observed."""

    name: str
    facility_code: str
    registered_by: UUID


class EnclosurePermitObserved(Event, of=enclosure, overwrites=True):
    """The permit status changed, by what a monitor read or because nobody observes any more."""

    from_status: EnclosurePermitStatus
    to_status: EnclosurePermitStatus
    reason: StateReason
    trigger: TriggerSource
    triggered_by: UUID
    monitor_ref: str
    observed_at: datetime | None


class EnclosureDecommissioned(Event, of=enclosure):
    """The enclosure was retired for good, and its name is free again."""

    reason: FreeText
    triggered_by: UUID


@enclosure.evolve
def evolve(enclosure: Enclosure, event: EnclosurePermitObserved | EnclosureDecommissioned) -> Enclosure:
    match event:
        case EnclosurePermitObserved():
            source_kind, _, source_id = event.monitor_ref.partition(":")
            return copy_with(
                enclosure,
                permit_status=event.to_status,
                last_permit_status_changed_at=event.occurred_at,
                last_permit_status_reason=event.reason,
                last_trigger=event.trigger,
                last_source_kind=source_kind,
                last_source_id=source_id,
                last_source_observed_at=event.observed_at,
            )
        case EnclosureDecommissioned():
            retired = copy_with(enclosure, decommissioned_at=event.occurred_at, decommissioned_by=event.triggered_by)
            return copy_with(retired, lifecycle=EnclosureLifecycle.DECOMMISSIONED)
        case _:
            assert_never(event)


CLOCK_LEAD = timedelta(seconds=5)  # by which the clock of a source may be ahead of the service's


class InvalidEnclosureObservationTimeError(Invalid, context="enclosure"):
    """What a monitor reports was not observed in the future."""


class InvalidEnclosureReasonError(Invalid, context="enclosure"):
    """An observation or a decommissioning needs a reason that is not blank."""


class EnclosureFacilityNotFoundError(NotFound, context="enclosure"):
    """No facility has this code."""


class RegisteredEnclosure(AnswerForm):
    """An enclosure that was registered, and whether the service's own monitor watches it."""

    enclosure_id: UUID
    monitored: bool
    remark: str | None


@enclosure.creation(returns=RegisteredEnclosure)
class RegisterEnclosure(JudgedCreation[Deployment]):
    """Make an interlock-gated volume known; its permit status is Unknown until it is observed."""

    name: Annotated[str, enclosure.text("name", 200)]
    facility_code: FacilityCode

    def gather(self, call: Call) -> Reads[Deployment]:
        yield from require_facility(self.facility_code, EnclosureFacilityNotFoundError)
        return (yield from ask(DeploymentPort.deployment))

    def decide(self, call: Call, deployment: Deployment) -> Outcome:
        check_facility_code(self.facility_code)
        detail = f"An Active enclosure of {self.facility_code} is named {self.name} already; use it or choose another name."
        taken = enclosure.AlreadyExists(detail, reason="name_taken", facts=dict(self))
        registered = EnclosureRegistered(**dict(self), registered_by=call.principal_id)
        monitored = is_monitored(self, deployment)
        remark = None if monitored else f"{unwatched_sentence(self.name)}."
        answer = RegisteredEnclosure(enclosure_id=call.new_id, monitored=monitored, remark=remark)
        return [registered, Claim(NAMES, enclosure_key(self), rival=taken), Answer(answer.model_dump(mode="json"))]


def enclosure_key(named: RegisterEnclosure | Enclosure) -> str:
    """Return the key under which two names in their facilities count as the same; case is kept."""
    return canonical_json((named.facility_code, named.name)).decode()


def is_monitored(named: RegisterEnclosure | Enclosure, deployment: Deployment) -> bool:
    """Return whether the deployment's own monitor watches an enclosure of this name."""
    return enclosure_key(named) in deployment.monitored_enclosures


def unwatched_sentence(names: str) -> str:
    """Return the sentence, without its full stop, about enclosures that nobody watches and about who can change that."""
    cause = f"Only an enclosure's monitor reports its permit, and none is configured for {names}"
    return f"{cause}; have an administrator add it to MONITORED_ENCLOSURES"


@enclosure.command(
    post="/{enclosure_id}/observe-status",
    allowed=[EnclosureLifecycle.ACTIVE],
    verb="Observe",
    refuses=[InvalidMonitorRefError],
    callers=(ActorKind.SERVICE_ACCOUNT,),
    attempts=3,
    mcp=False,
)
class ObserveEnclosureStatus(MonitorReading, Verb[Enclosure]):
    """Report what a monitor reads from the interlock; a repeat is no event, but shows that the reading is current."""

    new_status: EnclosurePermitStatus
    observed_at: Instant | None = None
    nothing_read: Annotated[bool, Internal()] = False  # The service reports Unknown itself, nobody observes: no contact.

    def decide(self, enclosure: Enclosure, call: Call) -> Outcome:
        if self.observed_at is not None and self.observed_at - call.now > CLOCK_LEAD:
            detail = "This was observed in the future; have the source's clock compared with the service's, or leave it out."
            raise InvalidEnclosureObservationTimeError(detail, reason="in_future")
        contact = [] if self.nothing_read else [Put(EnclosureContact(enclosure_id=enclosure.id, contacted_at=call.now))]
        if self.new_status is enclosure.permit_status:
            return contact
        observed = EnclosurePermitObserved(
            from_status=enclosure.permit_status,
            to_status=self.new_status,
            trigger=TriggerSource.MONITOR,
            triggered_by=call.principal_id,
            observed_at=self.observed_at,
            **self.cause(InvalidEnclosureReasonError),
        )
        return [observed, *contact]


@enclosure.command(post="/{enclosure_id}/decommission", allowed=[EnclosureLifecycle.ACTIVE], destructive=True)
class DecommissionEnclosure(Verb[Enclosure]):
    """Retire an enclosure for good: nothing starts in it any more, and its name is free again."""

    reason: Annotated[str, Text(500, InvalidEnclosureReasonError, "reason", personal=True)]

    def decide(self, enclosure: Enclosure, call: Call) -> Outcome:
        decommissioned = EnclosureDecommissioned(reason=self.reason, triggered_by=call.principal_id)
        return [decommissioned, Release(NAMES, enclosure_key(enclosure))]


class PastEnclosureView(Value):
    """An enclosure as it was; contacts have no past, so the age of its observation is not said."""

    id: UUID
    name: str
    facility_code: str
    permit_status: EnclosurePermitStatus
    lifecycle: EnclosureLifecycle
    registered_at: datetime
    registered_by: UUID
    decommissioned_at: datetime | None
    decommissioned_by: UUID | None
    enclosure_id: UUID
    created_at: datetime


class EnclosureView(PastEnclosureView):
    """An enclosure as it is, with the seconds since its permit was last observed; null when it never was.

    Only a monitor reports the permit: `monitored` says whether the service's own is configured to, and `remark`, where
    nobody watches the enclosure, who can change that.
    """

    observation_age: Annotated[float | None, Seconds]
    monitored: bool
    remark: str | None
    last_contact_at: datetime | None


@enclosure.query(get="/{enclosure_id}", returns=EnclosureView | PastEnclosureView)
class GetEnclosure(TimeTravel[PastEnclosureView]):
    """One enclosure, folded from its stream, with the age of its last observation and whether a monitor watches it."""

    def answer(self, enclosure: Enclosure, call: Call) -> Reads[PastEnclosureView]:
        shown = values_of(enclosure, PastEnclosureView)
        if self.travels:
            return PastEnclosureView(**shown)
        contact = yield from record_of(EnclosureContact, enclosure_id=enclosure.id)
        deployment = yield from ask(DeploymentPort.deployment)
        return EnclosureView(
            **shown,
            observation_age=observation_age(contact, call.now),
            monitored=is_monitored(enclosure, deployment),
            remark=watch_remark(enclosure, contact, call.now, deployment),
            last_contact_at=None if contact is None else contact.contacted_at,
        )


class EnclosureSummary(Summary):
    time: ClassVar[str] = "registered_at"
    enclosure_id: UUID
    name: str
    facility_code: str
    lifecycle: EnclosureLifecycle
    permit_status: EnclosurePermitStatus
    registered_at: datetime
    registered_by: UUID
    last_permit_status_changed_at: datetime | None
    last_permit_status_reason: FreeText | None
    last_trigger: TriggerSource | None
    last_source_kind: str | None
    last_source_id: str | None
    last_source_observed_at: datetime | None
    decommissioned_at: datetime | None
    decommissioned_by: UUID | None


class EnclosureItem(EnclosureSummary):
    """A listed enclosure; an old change means no change since, and `last_contact_at` when it was last looked at."""

    last_contact_at: datetime | None


@enclosure.listing(EnclosureSummary, returns=EnclosureItem)
class ListEnclosures(NamedListQuery[EnclosureItem]):
    """Enclosures in order of registration, Decommissioned ones included, with the time of their last observation."""

    lifecycle: EnclosureLifecycle | None = None
    permit_status: EnclosurePermitStatus | None = None
    facility_code: Annotated[str, Field(min_length=1, max_length=32)] | None = None

    def present(self, rows: tuple[Any, ...]) -> Reads[tuple[Any, ...]]:
        contacts = yield from records_of(EnclosureContact, enclosure_id=tuple(row.enclosure_id for row in rows))
        contacted_at = {contact.enclosure_id: contact.contacted_at for contact in contacts}
        return tuple(EnclosureItem(**{**dict(row), "last_contact_at": contacted_at.get(row.enclosure_id)}) for row in rows)


Enclosures = Mapping[UUID, Enclosure]
Contacts = Mapping[UUID, EnclosureContact]


def enclosures_with_contacts(enclosure_ids: Iterable[UUID]) -> Reads[tuple[Enclosures, Contacts]]:
    """Return these enclosures and when each was last observed; what is not on record is left out.
    The contacts come first: whatever is observed between the two reads can then only close the gate, never open it."""
    ids = tuple(sorted(enclosure_ids))
    if not ids:
        return {}, {}
    contacts = yield from records_of(EnclosureContact, enclosure_id=ids)
    enclosures = yield from find_all(Enclosure, ids)
    return enclosures, {contact.enclosure_id: contact for contact in contacts}


def enclosure_finding(
    enclosure_ids: Iterable[UUID], enclosures: Enclosures, contacts: Contacts, now: datetime, deployment: Deployment
) -> GateFinding | None:
    """Return the finding on the enclosures that do not permit work; one that is not on record does not either."""
    ids = sorted(set(enclosure_ids))
    failing = {
        id: why for id in ids if (why := _objection(enclosures.get(id), contacts.get(id), now, deployment)) is not None
    }
    if not failing:
        return None
    named = ", ".join(f"{enclosures[id].name if id in enclosures else id} {why}" for id, why in failing.items())
    total = len(failing) == len(ids)
    retired = [id for id in failing if id not in enclosures or enclosures[id].lifecycle is not EnclosureLifecycle.ACTIVE]
    alone = [
        enclosures[id].name
        for id in failing
        if id not in retired and not is_watched(enclosures[id], contacts.get(id), now, deployment)
    ]
    if retired:
        advice = "relocate the assets in one that is not in service"
    elif alone:
        advice = unwatched_sentence(", ".join(alone))
        advice = advice[0].lower() + advice[1:]
    else:
        advice = "have each secured, and its monitor will report it"
    return GateFinding(
        total=total,
        reason="no_enclosure_permitted" if total else "enclosure_not_permitted",
        detail=f"The interlock does not permit work in {'any' if total else 'every'} enclosure: {named}; {advice}.",
        facts={"enclosures": [_facts(id, enclosures.get(id), contacts.get(id), now, deployment) for id in failing]},
    )


def _objection(
    enclosure: Enclosure | None, contact: EnclosureContact | None, now: datetime, deployment: Deployment
) -> str | None:
    """Return why an enclosure does not pass, or None."""
    if enclosure is None:
        return "is not on record"
    if enclosure.lifecycle is not EnclosureLifecycle.ACTIVE:
        return f"is {enclosure.lifecycle.value}"
    if enclosure.permit_status is not EnclosurePermitStatus.PERMITTED:
        return f"is {enclosure.permit_status.value}"
    return age_objection(contact, now, permit_lifetime(enclosure, deployment))


def is_fresh(enclosure: Enclosure, contact: EnclosureContact | None, now: datetime, deployment: Deployment) -> bool:
    """Return whether an observation is recent enough for work to rest on it, and the status what was observed then."""
    changed_at = enclosure.last_permit_status_changed_at
    if contact is not None and changed_at is not None and contact.contacted_at < changed_at:
        return False  # The service itself recorded Unknown after it: nobody observes any more.
    return age_objection(contact, now, permit_lifetime(enclosure, deployment)) is None


def is_watched(enclosure: Enclosure, contact: EnclosureContact | None, now: datetime, deployment: Deployment) -> bool:
    """Return whether the own monitor watches an enclosure, or a bridge outside has reported it just now."""
    return is_monitored(enclosure, deployment) or is_fresh(enclosure, contact, now, deployment)


def watch_remark(
    enclosure: Enclosure, contact: EnclosureContact | None, now: datetime, deployment: Deployment
) -> str | None:
    """Return the remark on an enclosure in service that nobody watches, or None."""
    alone = enclosure.lifecycle is EnclosureLifecycle.ACTIVE and not is_watched(enclosure, contact, now, deployment)
    return f"{unwatched_sentence(enclosure.name)}." if alone else None


def permit_lifetime(enclosure: Enclosure, deployment: Deployment) -> timedelta:
    """Return how long an observation counts: not long where the deployment's own monitor confirms it every few seconds."""
    own = is_monitored(enclosure, deployment)
    return deployment.monitored_permit_ttl if own else deployment.enclosure_observation_ttl


def _facts(
    id: UUID, enclosure: Enclosure | None, contact: EnclosureContact | None, now: datetime, deployment: Deployment
) -> dict[str, object]:
    return {
        "enclosure_id": str(id),
        "permit_status": enclosure.permit_status.value if enclosure else None,
        "lifecycle": enclosure.lifecycle.value if enclosure else None,
        "observation_age": observation_age(contact, now),
        "monitored": enclosure is not None and is_monitored(enclosure, deployment),
    }
