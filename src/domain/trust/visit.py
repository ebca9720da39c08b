"""A visit: a team's allotted time on one surface under one policy: who is here, for what, until when, and who drives."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self, assert_never
from uuid import UUID

from pydantic import Field, model_validator

from domain.kernel import (
    Aggregate,
    Call,
    Command,
    CursorText,
    Event,
    LogPosition,
    Outcome,
    PageLimit,
    Query,
    State,
    Value,
    changed,
)
from domain.shared.identifiers import trimmed_refs
from domain.shared.listing import Cursor, ListQuery, Order, Page, Summary, Where
from domain.shared.reads import Reads, permitted, record_of, required_if_given
from domain.shared.refusals import Conflict, Invalid, NotFound, UnauthorizedError
from domain.shared.text import FreeText, Text
from domain.shared.times import Instant
from domain.shared.writes import Drop, Put
from domain.trust.surface import SurfaceControl

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


class VisitType(StrEnum):
    USER = "user"
    COMMISSIONING = "commissioning"
    MAINTENANCE = "maintenance"
    CALIBRATION = "calibration"
    STAFF = "staff"


class PresenceMode(StrEnum):
    PHYSICAL = "physical"
    REMOTE = "remote"


@dataclass(frozen=True, kw_only=True)
class Presence:
    actor_id: UUID
    mode: PresenceMode
    check_in_at: datetime
    check_out_at: datetime | None = None


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
    arrived_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None

    def present(self, actor_id: UUID) -> bool:
        return any(entry.actor_id == actor_id and entry.check_out_at is None for entry in self.presence_entries)


visit = Aggregate(Visit, "/visits")


class VisitRegistered(Event, of=visit):
    """The visit was planned."""

    policy_id: UUID
    surface_id: UUID
    type: VisitType
    planned_start_at: datetime
    planned_end_at: datetime
    parent_id: UUID | None
    external_refs: dict[str, str]


class VisitArrived(Event, of=visit):
    """The team arrived."""


class VisitStarted(Event, of=visit):
    """The session began."""


class VisitHeld(Event, of=visit):
    """The whole session was paused."""

    reason: FreeText


class VisitResumed(Event, of=visit):
    """The session went on after a hold."""


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


class VisitSurfaceControlTaken(Event, of=visit):
    """The visit began to drive its surface."""

    surface_id: UUID


class VisitSurfaceControlReleased(Event, of=visit):
    """The visit stopped driving its surface."""

    surface_id: UUID


VisitEvent = (
    VisitArrived
    | VisitStarted
    | VisitHeld
    | VisitResumed
    | VisitCompleted
    | VisitCancelled
    | VisitAborted
    | VisitVoided
    | VisitCheckedIn
    | VisitCheckedOut
    | VisitSurfaceControlTaken
    | VisitSurfaceControlReleased
)


@visit.begin
def begin(event: VisitRegistered) -> Visit:
    return Visit(id=event.stream_id, created_at=event.occurred_at, **dict(event))


@visit.evolve
def evolve(visit: Visit, event: VisitEvent) -> Visit:
    match event:
        case VisitArrived():
            return changed(visit, status=ARRIVED, arrived_at=event.occurred_at)
        case VisitStarted():
            return changed(visit, status=IN_PROGRESS, started_at=event.occurred_at)
        case VisitHeld():
            return changed(visit, status=ON_HOLD, last_status_reason=event.reason)
        case VisitResumed():
            return changed(visit, status=IN_PROGRESS)
        case VisitCompleted():
            return ended(visit, VisitStatus.COMPLETED, event.occurred_at, visit.last_status_reason)
        case VisitCancelled():
            return ended(visit, VisitStatus.CANCELLED, event.occurred_at, event.reason)
        case VisitAborted():
            return ended(visit, VisitStatus.ABORTED, event.occurred_at, event.reason)
        case VisitVoided():
            return ended(visit, VisitStatus.VOIDED, event.occurred_at, event.reason)
        case VisitCheckedIn():
            entry = Presence(actor_id=event.actor_id, mode=event.mode, check_in_at=event.occurred_at)
            return changed(visit, presence_entries=(*visit.presence_entries, entry))
        case VisitCheckedOut():
            return checked_out(visit, event.occurred_at, event.actor_id)
        case VisitSurfaceControlTaken() | VisitSurfaceControlReleased():
            return visit
        case _:
            assert_never(event)


def ended(visit: Visit, status: VisitStatus, at: datetime, reason: str | None) -> Visit:
    """A visit that reached a terminal status; whoever was still here left with it."""
    return changed(checked_out(visit, at), status=status, completed_at=at, last_status_reason=reason)


def checked_out(visit: Visit, at: datetime, actor_id: UUID | None = None) -> Visit:
    """The visit with one actor's open presence closed, or everybody's."""
    entries = tuple(
        changed(entry, check_out_at=at) if entry.check_out_at is None and actor_id in (None, entry.actor_id) else entry
        for entry in visit.presence_entries
    )
    return changed(visit, presence_entries=entries)


class InvalidVisitPlannedPeriodError(Invalid):
    """A visit must end after it starts."""


class InvalidVisitExternalRefError(Invalid):
    """An external reference has a scheme of 1 to 50 and a value of 1 to 200 characters, neither of them blank."""


class InvalidVisitReasonError(Invalid):
    """This verb needs a reason that is not blank."""


class VisitParentNotFoundError(NotFound):
    """The parent visit does not exist."""


class VisitParentMismatchedSurfaceError(Conflict):
    """A nested visit must be on its parent's surface."""


Reason = Annotated[str, Text(500, InvalidVisitReasonError, "reason", personal=True)]


@visit.creation(
    refuses=[
        InvalidVisitPlannedPeriodError,
        InvalidVisitExternalRefError,
        VisitParentNotFoundError,
        VisitParentMismatchedSurfaceError,
    ]
)
class RegisterVisit(Command):
    """Plan a team's time on a surface."""

    policy_id: UUID
    surface_id: UUID
    type: VisitType
    planned_start_at: Instant
    planned_end_at: Instant
    parent_id: UUID | None = None
    external_refs: Annotated[dict[str, str], Field(max_length=100)] = {}

    def gather(self, call: Call) -> Reads[Visit | None]:
        return (yield from required_if_given(Visit, self.parent_id, VisitParentNotFoundError))

    def decide(self, call: Call, parent: Visit | None) -> Outcome:
        if self.planned_end_at <= self.planned_start_at:
            raise InvalidVisitPlannedPeriodError("The visit ends before it starts; set a later planned_end_at.")
        refs = trimmed_refs(self.external_refs, InvalidVisitExternalRefError)
        if parent is not None and parent.surface_id != self.surface_id:
            raise VisitParentMismatchedSurfaceError(
                "The parent visit is on another surface; nest visits on one surface only.",
                facts={"parent_surface_id": str(parent.surface_id)},
            )
        return [VisitRegistered(**self.model_dump(exclude={"external_refs"}), external_refs=refs)]


@visit.command(post="/{visit_id}/record-arrival", allowed=[PLANNED], verb="Arrive")
class RecordVisitArrival(Command):
    """Record that the team has arrived."""

    def decide(self, visit: Visit, call: Call) -> Outcome:
        return [VisitArrived()]


@visit.command(post="/{visit_id}/start", allowed=[ARRIVED])
class StartVisit(Command):
    """Begin the session."""

    def decide(self, visit: Visit, call: Call) -> Outcome:
        return [VisitStarted()]


@visit.command(post="/{visit_id}/hold", allowed=[IN_PROGRESS], attempts=3)
class HoldVisit(Command):
    """Pause the whole session: beam dump, fault, safety, long break."""

    reason: Reason

    def decide(self, visit: Visit, call: Call) -> Outcome:
        return [VisitHeld(reason=self.reason)]


@visit.command(post="/{visit_id}/resume", allowed=[ON_HOLD])
class ResumeVisit(Command):
    """Go on after a hold; sessions never resume by themselves."""

    def decide(self, visit: Visit, call: Call) -> Outcome:
        return [VisitResumed()]


class EndingCommand(Command):
    """A verb that ends the visit and gives up the surface it drives."""

    def gather(self, visit: Visit, call: Call) -> Reads[bool]:
        control = yield from record_of(SurfaceControl, surface_id=visit.surface_id)
        return control is not None and control.visit_id == visit.id

    def decide(self, visit: Visit, call: Call, drives: bool) -> Outcome:
        return [self.ending(), *(released(visit) if drives else ())]

    def ending(self) -> Event:
        raise TypeError("an ending command names its event")


@visit.command(post="/{visit_id}/complete", allowed=[IN_PROGRESS, ON_HOLD], lock=CONTROL_LOCK)
class CompleteVisit(EndingCommand):
    """End the session as planned."""

    def ending(self) -> Event:
        return VisitCompleted()


class ReasonedEnding(EndingCommand):
    reason: Reason


@visit.command(post="/{visit_id}/cancel", allowed=[PLANNED, ARRIVED], lock=CONTROL_LOCK, destructive=True)
class CancelVisit(ReasonedEnding):
    """Call the session off before it starts."""

    def ending(self) -> Event:
        return VisitCancelled(reason=self.reason)


@visit.command(post="/{visit_id}/abort", allowed=[IN_PROGRESS, ON_HOLD], lock=CONTROL_LOCK, attempts=3, destructive=True)
class AbortVisit(ReasonedEnding):
    """Stop a session that has started."""

    def ending(self) -> Event:
        return VisitAborted(reason=self.reason)


@visit.command(
    post="/{visit_id}/void", allowed=[PLANNED, ARRIVED, IN_PROGRESS, ON_HOLD], lock=CONTROL_LOCK, destructive=True
)
class VoidVisit(ReasonedEnding):
    """Strike out a visit that should never have been registered."""

    def ending(self) -> Event:
        return VisitVoided(reason=self.reason)


@visit.command(
    post="/{visit_id}/presence/open",
    allowed=PRESENT,
    state_reason="status_not_eligible",
    reasons=["status_not_eligible", "already_checked_in"],
)
class CheckInVisit(Command):
    """Record that somebody is here, in person or remotely: the caller, unless an actor is named."""

    actor_id: UUID | None = None
    mode: PresenceMode

    def decide(self, visit: Visit, call: Call) -> Outcome:
        actor_id = self.actor_id or call.principal_id
        if visit.present(actor_id):
            raise self.cannot("already_checked_in", "This actor is checked in already; check out first.")
        return [VisitCheckedIn(actor_id=actor_id, mode=self.mode)]


@visit.command(post="/{visit_id}/presence/close", reasons=["not_checked_in"])
class CheckOutVisit(Command):
    """Record that somebody leaves: the caller, unless an actor is named."""

    actor_id: UUID | None = None

    def decide(self, visit: Visit, call: Call) -> Outcome:
        actor_id = self.actor_id or call.principal_id
        if not visit.present(actor_id):
            raise self.cannot("not_checked_in", "This actor is not checked in; nothing to close.")
        return [VisitCheckedOut(actor_id=actor_id)]


class ControlCommand(Command):
    """A verb about driving the visit's own surface; the caller needs it on that surface too."""

    surface_id: UUID

    def gather(self, visit: Visit, call: Call) -> Reads[SurfaceControl | None]:
        if self.surface_id != call.surface_id and not (yield from permitted(type(self).__name__, self.surface_id)):
            raise UnauthorizedError(
                "You need this permission on the surface you want to drive too; ask an administrator for it.",
                reason="surface_not_permitted",
            )
        if self.surface_id != visit.surface_id:
            raise self.cannot("surface_mismatch", "This visit is on another surface; name the visit's own.")
        return (yield from record_of(SurfaceControl, surface_id=self.surface_id))


@visit.command(
    post="/{visit_id}/surface-control/take",
    allowed=PRESENT,
    state_reason="status_not_eligible",
    verb="TakeControl",
    reasons=["surface_mismatch", "status_not_eligible", "not_descendant"],
    refuses=[UnauthorizedError],
    lock=CONTROL_LOCK,
)
class TakeControlOfSurface(ControlCommand):
    """Drive the surface, if it is free or driven by this visit or its parent."""

    def decide(self, visit: Visit, call: Call, control: SurfaceControl | None) -> Outcome:
        if control is not None and control.visit_id not in (visit.id, visit.parent_id):
            raise self.cannot("not_descendant", "Another visit drives this surface; wait until it is released.")
        taken = SurfaceControl(surface_id=self.surface_id, visit_id=visit.id, since_at=call.now)
        return [VisitSurfaceControlTaken(surface_id=self.surface_id), Put(taken)]


@visit.command(
    post="/{visit_id}/surface-control/release",
    verb="ReleaseControl",
    reasons=["surface_mismatch", "not_holder"],
    refuses=[UnauthorizedError],
    lock=CONTROL_LOCK,
)
class ReleaseControlOfSurface(ControlCommand):
    """Stop driving the surface; nobody gets it back by this."""

    def decide(self, visit: Visit, call: Call, control: SurfaceControl | None) -> Outcome:
        if control is None or control.visit_id != visit.id:
            raise self.cannot("not_holder", "This visit does not drive the surface; nothing to release.")
        return released(visit)


def released(visit: Visit) -> Outcome:
    """The visit gives up its surface."""
    return [
        VisitSurfaceControlReleased(surface_id=visit.surface_id),
        Drop(SurfaceControl, {"surface_id": visit.surface_id, "visit_id": visit.id}),
    ]


visit.get()


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
class ListVisits(ListQuery):
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


class PresenceRow(Value):
    actor_id: UUID
    mode: PresenceMode
    check_in_at: datetime
    check_out_at: datetime | None


@visit.query(get="/{visit_id}/presence", returns=Page[PresenceRow])
class ListVisitPresence(Query):
    """Who is or was here, in order of check-in; read from the visit's own stream."""

    open: bool | None = None
    limit: PageLimit = 50
    cursor: CursorText | None = None
    order: Order = Order.ASC
    min_position: LogPosition | None = None

    def answer(self, visit: Visit, call: Call) -> Reads[Page[Any]]:
        after = Cursor.parse(self.cursor, self.order) if self.cursor else None
        keyed = [
            ((entry.check_in_at, entry.actor_id), entry)
            for entry in visit.presence_entries
            if self.open in (None, entry.check_out_at is None)
        ]
        keyed.sort(key=lambda pair: pair[0], reverse=self.order is Order.DESC)
        if after is not None:
            mark = (after.time, after.id)
            keyed = [pair for pair in keyed if (pair[0] < mark if self.order is Order.DESC else pair[0] > mark)]
        shown, more = keyed[: self.limit], len(keyed) > self.limit
        cursor = str(Cursor(order=self.order, time=shown[-1][0][0], id=shown[-1][0][1])) if more else None
        return Page(tuple(PresenceRow(**entry.__dict__) for _, entry in shown), cursor)
        yield
