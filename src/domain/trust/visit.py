"""A visit: a team's allotted time on one surface under one policy, who is present during it, and who drives the surface."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self, assert_never
from uuid import UUID

from pydantic import Field, model_validator

from baton.domain import kernel
from baton.domain.kernel import Aggregate, Call, Event, JudgedCreation, JudgedVerb, Outcome, State, Value, Verb, copy_with
from baton.domain.shared.identifiers import trimmed_refs
from baton.domain.shared.listing import Cursor, ListQuery, Order, Page, Summary, Where
from baton.domain.shared.reads import Reads, is_permitted, record_of, require_if_given
from baton.domain.shared.refusals import Conflict, Invalid, NotFound, UnauthorizedError
from baton.domain.shared.text import FreeText
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Drop, Put
from baton.domain.trust.surface import SurfaceControl

CONTROL_LOCK = "surface-control"


class VisitStatus(StrEnum):
    PLANNED = "Planned"
    ARRIVED = "Arrived"
    IN_PROGRESS = "InProgress"
    ON_HOLD = "OnHold"
    COMPLETED = "Completed"
    CANCELLED = "Cancelled"
    ABORTED = "Aborted"
    VOIDED = "Voided"


PLANNED, ARRIVED, IN_PROGRESS, ON_HOLD, *TERMINAL = VisitStatus
PRESENT = (ARRIVED, IN_PROGRESS, ON_HOLD)
ELIGIBLE: dict[str, Any] = {"allowed": PRESENT, "state_reason": "status_not_eligible", "reasons": ["status_not_eligible"]}


class VisitType(StrEnum):
    USER = "user"
    COMMISSIONING = "commissioning"
    MAINTENANCE = "maintenance"
    CALIBRATION = "calibration"
    STAFF = "staff"


class PresenceMode(StrEnum):
    PHYSICAL = "physical"
    REMOTE = "remote"


class Presence(Value):
    """Somebody's stay during a visit; without an end they are still here."""

    actor_id: UUID
    mode: PresenceMode
    check_in_at: datetime
    """When the person came."""
    check_out_at: datetime | None = None
    """When the person left; null while still here."""

    @property
    def place(self) -> tuple[datetime, UUID]:
        """Its place in the order of check-in."""
        return self.check_in_at, self.actor_id


@dataclass(frozen=True, kw_only=True)
class Visit(State):
    """A visit is a team's allotted time on one surface under one policy."""

    policy_id: UUID
    surface_id: UUID
    type: VisitType
    planned_start_at: datetime
    planned_end_at: datetime
    parent_id: UUID | None
    external_refs: dict[str, str]
    status: VisitStatus = PLANNED
    last_status_reason: FreeText | None = None
    presence_entries: tuple[Presence, ...] = ()
    """Who was here, from when to when."""
    arrived_at: datetime | None = None
    """When the team arrived."""
    started_at: datetime | None = None
    completed_at: datetime | None = None

    def is_present(self, actor_id: UUID) -> bool:
        """Return whether an actor is checked in."""
        return any(entry.actor_id == actor_id and entry.check_out_at is None for entry in self.presence_entries)


visit = Aggregate(Visit, "/visits", context="trust")


class VisitRegistered(Event, of=visit):
    """The visit was planned."""

    policy_id: UUID
    surface_id: UUID
    type: VisitType
    planned_start_at: datetime
    planned_end_at: datetime
    parent_id: UUID | None
    external_refs: dict[str, str]


class VisitArrived(Event, of=visit, leads_to=ARRIVED, dates="arrived_at"):
    """The team arrived."""


class VisitStarted(Event, of=visit, leads_to=IN_PROGRESS, dates="started_at"):
    """The session began."""


class VisitHeld(Event, of=visit):
    """The whole session was paused."""

    reason: FreeText


class VisitResumed(Event, of=visit, leads_to=IN_PROGRESS):
    """The session continued after a hold."""


class VisitCompleted(Event, of=visit):
    """The session ended as planned."""


class VisitCancelled(Event, of=visit):
    """The session was called off before it started."""

    reason: FreeText


class VisitAborted(Event, of=visit):
    """The session was stopped after it had started."""

    reason: FreeText


class VisitVoided(Event, of=visit):
    """The visit was struck out, since it should never have been registered."""

    reason: FreeText


class VisitCheckedIn(Event, of=visit):
    """Somebody was here from then on, in person or remotely."""

    actor_id: UUID
    mode: PresenceMode


class VisitCheckedOut(Event, of=visit):
    """Somebody left."""

    actor_id: UUID


class VisitSurfaceControlTaken(Event, of=visit, inert=True):
    """The visit began to drive its surface."""

    surface_id: UUID


class VisitSurfaceControlReleased(Event, of=visit, inert=True):
    """The visit stopped driving its surface."""

    surface_id: UUID


ENDS: Mapping[type[Event], VisitStatus] = dict(
    zip((VisitCompleted, VisitCancelled, VisitAborted, VisitVoided), TERMINAL, strict=True)
)  # The status that each ending leads to; those who were still present leave with it.
VisitEvent = VisitHeld | VisitCompleted | VisitCancelled | VisitAborted | VisitVoided | VisitCheckedIn | VisitCheckedOut


@visit.evolve
def evolve(visit: Visit, event: VisitEvent) -> Visit:
    match event:
        case VisitHeld():
            return copy_with(visit, status=ON_HOLD, last_status_reason=event.reason)
        case VisitCompleted() | VisitCancelled() | VisitAborted() | VisitVoided():
            reason = visit.last_status_reason if isinstance(event, VisitCompleted) else event.reason
            left = check_out(visit, event.occurred_at)
            return copy_with(left, status=ENDS[type(event)], completed_at=event.occurred_at, last_status_reason=reason)
        case VisitCheckedIn():
            entry = Presence(actor_id=event.actor_id, mode=event.mode, check_in_at=event.occurred_at)
            return copy_with(visit, presence_entries=(*visit.presence_entries, entry))
        case VisitCheckedOut():
            return check_out(visit, event.occurred_at, event.actor_id)
        case _:
            assert_never(event)


def check_out(visit: Visit, at: datetime, actor_id: UUID | None = None) -> Visit:
    """Return the visit with one actor's open presence closed, or everybody's."""
    entries = tuple(
        entry.model_copy(update={"check_out_at": at})
        if entry.check_out_at is None and actor_id in (None, entry.actor_id)
        else entry
        for entry in visit.presence_entries
    )
    return copy_with(visit, presence_entries=entries)


class InvalidVisitPlannedPeriodError(Invalid, context="trust"):
    """A visit must end after it starts."""


class InvalidVisitExternalRefError(Invalid, context="trust"):
    """An external reference has a scheme of 1 to 50 and a value of 1 to 200 characters, neither of them blank."""


class VisitParentNotFoundError(NotFound, context="trust"):
    """The parent visit does not exist."""


class VisitParentMismatchedSurfaceError(Conflict, context="trust"):
    """A nested visit must be on its parent's surface."""


Reason = Annotated[str, visit.text("reason", 500, personal=True)]


@visit.creation()
class RegisterVisit(JudgedCreation[Visit | None]):
    """Plan a team's time on a surface."""

    policy_id: UUID
    """The policy under which the team works."""
    surface_id: UUID
    """The surface that the team gets: the arrival point of its calls, such as a console."""
    type: VisitType
    """What the time is for."""
    planned_start_at: Instant
    planned_end_at: Instant
    parent_id: UUID | None = None
    """The visit that this one is part of."""
    external_refs: Annotated[dict[str, str], Field(max_length=100)] = {}

    def gather(self, call: Call) -> Reads[Visit | None]:
        return (yield from require_if_given(Visit, self.parent_id, VisitParentNotFoundError))

    def decide(self, call: Call, parent: Visit | None) -> Outcome:
        if self.planned_end_at <= self.planned_start_at:
            raise InvalidVisitPlannedPeriodError("The visit ends before it starts; set a later planned_end_at.")
        refs = trimmed_refs(self.external_refs, InvalidVisitExternalRefError)
        if parent is not None and parent.surface_id != self.surface_id:
            detail = "The parent visit is on another surface; nest visits on one surface only."
            raise VisitParentMismatchedSurfaceError(detail, facts={"parent_surface_id": parent.surface_id})
        return [VisitRegistered(**self.model_dump(exclude={"external_refs"}), external_refs=refs)]


@visit.command(post="/{visit_id}/record-arrival", allowed=[PLANNED], verb="Arrive", records=VisitArrived)
class RecordVisitArrival(Verb[Visit]):
    """Record that the team has arrived."""


@visit.command(post="/{visit_id}/start", allowed=[ARRIVED], records=VisitStarted)
class StartVisit(Verb[Visit]):
    """Begin the session."""


@visit.command(post="/{visit_id}/hold", allowed=[IN_PROGRESS], leads_to=ON_HOLD, attempts=3, records=VisitHeld)
class HoldVisit(Verb[Visit]):
    """Pause the whole session: beam dump, fault, safety, long break."""

    reason: Reason


@visit.command(post="/{visit_id}/resume", allowed=[ON_HOLD], records=VisitResumed)
class ResumeVisit(Verb[Visit]):
    """Go on after a hold; sessions never resume by themselves."""


class VisitEnding(JudgedVerb[Visit, bool]):
    """A verb that ends the visit and gives up the surface it drives."""

    ending: ClassVar[type[Event]]

    def gather(self, visit: Visit, call: Call) -> Reads[bool]:
        control = yield from record_of(SurfaceControl, surface_id=visit.surface_id)
        return control is not None and control.visit_id == visit.id

    def decide(self, visit: Visit, call: Call, drives: bool) -> Outcome:
        return [self.ending(**dict(self)), *(release_surface(visit) if drives else ())]


@visit.command(
    post="/{visit_id}/complete", allowed=[IN_PROGRESS, ON_HOLD], leads_to=VisitStatus.COMPLETED, lock=CONTROL_LOCK
)
class CompleteVisit(VisitEnding):
    """End the session as planned."""

    ending = VisitCompleted


class ReasonedVisitEnding(VisitEnding):
    """An end that takes a reason."""

    reason: Reason


@visit.command(post="/{visit_id}/cancel", allowed=[PLANNED, ARRIVED], lock=CONTROL_LOCK, destructive=True)
class CancelVisit(ReasonedVisitEnding):
    """Call the session off before it starts."""

    ending = VisitCancelled


@visit.command(post="/{visit_id}/abort", allowed=[IN_PROGRESS, ON_HOLD], lock=CONTROL_LOCK, attempts=3, destructive=True)
class AbortVisit(ReasonedVisitEnding):
    """Stop a session that has started."""

    ending = VisitAborted


@visit.command(post="/{visit_id}/void", allowed=[PLANNED, *PRESENT], lock=CONTROL_LOCK, destructive=True)
class VoidVisit(ReasonedVisitEnding):
    """Strike out a visit that should never have been registered."""

    ending = VisitVoided


def release_surface(visit: Visit) -> Outcome:
    """Return the release of the surface that a visit drives."""
    control = {"surface_id": visit.surface_id, "visit_id": visit.id}
    return [VisitSurfaceControlReleased(surface_id=visit.surface_id), Drop(SurfaceControl, control)]


GetVisit = visit.get()
COLUMNS = (
    "policy_id surface_id type status planned_start_at planned_end_at parent_id external_refs created_at arrived_at "
    "started_at completed_at last_status_reason"
)


class VisitSummary(Summary):
    visit_id: UUID
    policy_id: UUID
    surface_id: UUID
    type: VisitType
    status: VisitStatus
    planned_start_at: datetime
    planned_end_at: datetime
    parent_id: UUID | None
    external_refs: dict[str, str]
    created_at: datetime
    arrived_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    last_status_reason: FreeText | None


@visit.listing(VisitSummary)
class ListVisits(ListQuery[VisitSummary]):
    """Visits in order of registration."""

    indexed: ClassVar[tuple[str, ...]] = ("external_refs", "planned_end_at")
    status: VisitStatus | None = None
    type: tuple[VisitType, ...] = ()
    surface_id: UUID | None = None
    policy_id: UUID | None = None
    parent_id: UUID | None = None
    external_ref_scheme: Annotated[str, Field(min_length=1, max_length=50)] | None = None
    external_ref_value: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    planned_from: Instant | None = None
    planned_to: Instant | None = None

    @model_validator(mode="after")
    def _reference_is_whole(self) -> Self:
        if (self.external_ref_scheme is None) != (self.external_ref_value is None):
            raise ValueError("give external_ref_scheme and external_ref_value together")
        return self

    def where(self) -> Iterator[Where]:
        yield from super().where()
        if self.external_ref_scheme is not None:
            yield Where("external_refs", "contains", {self.external_ref_scheme: self.external_ref_value})
        if self.planned_from is not None:
            yield Where("planned_end_at", "from", self.planned_from)
        if self.planned_to is not None:
            yield Where("planned_start_at", "to", self.planned_to)


@visit.command(post="/{visit_id}/presence/open", **ELIGIBLE)
class CheckInVisit(Verb[Visit]):
    """Record that somebody is here, in person or remotely: the caller, unless an actor is named."""

    actor_id: UUID | None = None
    """Who comes; the caller, when not given."""
    mode: PresenceMode

    def decide(self, visit: Visit, call: Call) -> Outcome:
        actor_id = self.actor_id or call.principal_id
        if visit.is_present(actor_id):
            raise self.cannot("already_checked_in", "This actor is checked in already; check out first.")
        return [VisitCheckedIn(actor_id=actor_id, mode=self.mode)]


@visit.command(post="/{visit_id}/presence/close")
class CheckOutVisit(Verb[Visit]):
    """Record that somebody leaves: the caller, unless an actor is named."""

    actor_id: UUID | None = None
    """Who leaves; the caller, when not given."""

    def decide(self, visit: Visit, call: Call) -> Outcome:
        actor_id = self.actor_id or call.principal_id
        if not visit.is_present(actor_id):
            raise self.cannot("not_checked_in", "This actor is not checked in; nothing to close.")
        return [VisitCheckedOut(actor_id=actor_id)]


class ControlCommand(JudgedVerb[Visit, SurfaceControl | None]):
    """A verb about driving the visit's own surface; the caller needs it on that surface too."""

    surface_id: UUID

    def gather(self, visit: Visit, call: Call) -> Reads[SurfaceControl | None]:
        if self.surface_id != call.surface_id and not (yield from is_permitted(type(self).__name__, self.surface_id)):
            detail = "You need this permission on the surface you want to drive too; ask an administrator for it."
            raise UnauthorizedError(detail, reason="surface_not_permitted")
        if self.surface_id != visit.surface_id:
            raise self.cannot("surface_mismatch", "This visit is on another surface; name the visit's own.")
        return (yield from record_of(SurfaceControl, surface_id=self.surface_id))


@visit.command(post="/{visit_id}/surface-control/take", verb="TakeControl", lock=CONTROL_LOCK, **ELIGIBLE)
class TakeControlOfSurface(ControlCommand):
    """Drive the surface, if it is free or driven by this visit or its parent."""

    def decide(self, visit: Visit, call: Call, control: SurfaceControl | None) -> Outcome:
        if control is not None and control.visit_id not in (visit.id, visit.parent_id):
            raise self.cannot("not_descendant", "Another visit drives this surface; wait until it is released.")
        taken = SurfaceControl(surface_id=self.surface_id, visit_id=visit.id, since_at=call.now)
        return [VisitSurfaceControlTaken(surface_id=self.surface_id), Put(taken)]


@visit.command(post="/{visit_id}/surface-control/release", verb="ReleaseControl", lock=CONTROL_LOCK)
class ReleaseControlOfSurface(ControlCommand):
    """Stop driving the surface; nobody gets it back by this."""

    def decide(self, visit: Visit, call: Call, control: SurfaceControl | None) -> Outcome:
        if control is None or control.visit_id != visit.id:
            raise self.cannot("not_holder", "This visit does not drive the surface; nothing to release.")
        return release_surface(visit)


@visit.query(get="/{visit_id}/presence", returns=Page[Presence])
class ListVisitPresence(kernel.Query[Page[Presence]]):
    """Who is or was here, in order of check-in; read from the visit's own stream."""

    open: bool | None = None
    limit: kernel.PageLimit = 50
    cursor: kernel.CursorText | None = None
    order: Order = Order.ASC
    min_position: kernel.LogPosition | None = None

    def answer(self, visit: Visit, call: Call) -> Reads[Page[Presence]]:
        after = Cursor.parse(self.cursor, self.order) if self.cursor else None
        descending = self.order is Order.DESC
        entries = [entry for entry in visit.presence_entries if self.open in (None, entry.check_out_at is None)]
        entries.sort(key=lambda entry: entry.place, reverse=descending)
        if after is not None:
            mark = (after.time, after.id)
            entries = [one for one in entries if (one.place < mark if descending else one.place > mark)]
        shown = tuple(entries[: self.limit])
        if len(entries) <= self.limit:
            return Page(shown, None)
        return Page(shown, str(Cursor(order=self.order, time=shown[-1].check_in_at, id=shown[-1].actor_id)))
        yield
