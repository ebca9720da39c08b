"""Presence during a visit, in person or remotely, and the control of its surface."""

from uuid import UUID

from baton.domain.kernel import Call, CursorText, JudgedVerb, LogPosition, Outcome, PageLimit, Query, Verb
from baton.domain.shared.listing import Cursor, Order, Page
from baton.domain.shared.reads import Reads, is_permitted, record_of
from baton.domain.shared.refusals import UnauthorizedError
from baton.domain.shared.writes import Put
from baton.domain.trust.surface import SurfaceControl
from baton.domain.trust.visit import (
    CONTROL_LOCK,
    PRESENT,
    Presence,
    PresenceMode,
    Visit,
    VisitCheckedIn,
    VisitCheckedOut,
    VisitSurfaceControlTaken,
    release_surface,
    visit,
)


@visit.command(
    post="/{visit_id}/presence/open", allowed=PRESENT, state_reason="status_not_eligible", reasons=["status_not_eligible"]
)
class CheckInVisit(Verb[Visit]):
    """Record that somebody is here, in person or remotely: the caller, unless an actor is named."""

    actor_id: UUID | None = None
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
    reasons=["status_not_eligible"],
    lock=CONTROL_LOCK,
)
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
class ListVisitPresence(Query):
    """Who is or was here, in order of check-in; read from the visit's own stream."""

    open: bool | None = None
    limit: PageLimit = 50
    cursor: CursorText | None = None
    order: Order = Order.ASC
    min_position: LogPosition | None = None

    def answer(self, visit: Visit, call: Call) -> Reads[Page[Presence]]:
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
        return Page(tuple(entry for _, entry in shown), cursor)
        yield
