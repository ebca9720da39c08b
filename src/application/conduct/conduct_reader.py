"""How conducts are watched: what a reader of the record finds behind the place it has come to, one look at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from baton.application.ports import Authorizer, Caller, Clock, IdGenerator, Store
from baton.application.unit_of_work import UnitOfWork
from baton.domain.operation.conduct.frames import Frame, FrameKind, LedgerRow, Outline, StreamRow, event_frames, frames
from baton.domain.operation.conduct.progress import ConductPhase, WaitingFor
from baton.domain.operation.conduct.views import ConductView, MeasuredObjective, WorkerContact, conduct_view
from baton.domain.operation.procedure.procedure import PendingRequest, Procedure
from baton.domain.shared.ports import Ports

LOOK = 500
"""Rows and events that one look takes; of more, the next look takes the rest."""


@dataclass(frozen=True)
class ConductStatus:
    """What a snapshot is for: everything about a conduct that its frames do not tell."""

    phase: ConductPhase
    waiting_for: WaitingFor | None
    asked: PendingRequest | None
    worker: WorkerContact | None


@dataclass(frozen=True)
class ReadCursor:
    """How far a reader has come: the last frame it knows, and the last event of the stream it has looked at."""

    ordinal: int
    version: int


@dataclass(frozen=True)
class RecordSlice:
    """What one look finds behind a cursor, all of it at one moment."""

    rows: Sequence[LedgerRow]
    events: Sequence[StreamRow]
    bearing: ConductStatus | None
    """None where the conduct is not the latest of its procedure."""


@dataclass(frozen=True)
class ConductPosition:
    """A conduct and the place behind which a reader goes on who learns the rest from a snapshot."""

    outline: Outline
    ordinal: int


class ConductReader(Protocol):
    """The record of conducts as those see it who watch; a look is one statement."""

    async def standing(self, procedure_id: UUID, conduct_id: UUID | None = None) -> ConductPosition | None:
        """A conduct of a procedure, the latest unless another is named; None where there is none."""
        ...

    async def version(self, outline: Outline, ordinal: int) -> int:
        """The last event of the stream that a reader behind an ordinal need not look at."""
        ...

    async def look(self, outline: Outline, cursor: ReadCursor, limit: int) -> RecordSlice:
        """The next rows and events behind a cursor, each at most so many."""
        ...

    async def measured(self, procedure_id: UUID, conduct_id: UUID) -> MeasuredObjective | None:
        """What a loop is judged by, as measured last."""
        ...


@dataclass
class ConductWatch:
    """One reader's view of one conduct."""

    outline: Outline
    cursor: ReadCursor
    limit: int = LOOK
    bearing: ConductStatus | None = None

    def told(self, found: RecordSlice) -> list[Frame]:
        """The frames that a look brings; they count as told, and events of before as looked at."""
        told = frames(self.outline, found.rows, found.events, self.cursor.ordinal, self.limit)
        ordinal = told[-1].ordinal if told else self.cursor.ordinal
        passed = [frame.version for frame in event_frames(self.outline, found.events) if frame.ordinal <= ordinal]
        self.cursor = ReadCursor(ordinal, max([self.cursor.version, *passed]))
        return told


class ConductFeed:
    """Opens views of conducts, and looks through them."""

    def __init__(
        self,
        store: Store,
        authorizer: Authorizer,
        sights: ConductReader,
        clock: Clock,
        new_id: IdGenerator,
        ports: Ports,
    ) -> None:
        self._store = store
        self._authorizer = authorizer
        self._sights = sights
        self._clock = clock
        self._new_id = new_id
        self._ports = ports

    async def view(self, procedure_id: UUID, caller: Caller) -> ConductView:
        """How the latest conduct of a procedure stands; the caller was judged before."""
        async with self._store.snapshot() as session:
            unit = UnitOfWork(session, caller, self._authorizer, self._ports)
            procedure = await unit.target(Procedure.aggregate, procedure_id)
            assert isinstance(procedure, Procedure), "a procedure's stream folds to one"
            return await unit.fulfil(conduct_view(procedure, caller.call(self._clock(), self._new_id())))

    async def latest(self, procedure_id: UUID, *, whole: bool = False) -> ConductWatch | None:
        """A view of the latest conduct from where it stands, or the whole of it; None where there was none."""
        standing = await self._sights.standing(procedure_id)
        return None if standing is None else await self._watch(standing.outline, 0 if whole else standing.ordinal)

    async def behind(self, procedure_id: UUID, conduct_id: UUID, ordinal: int) -> ConductWatch | None:
        """A view of a conduct behind an ordinal; None where the procedure had no such conduct, or no such place in it."""
        standing = await self._sights.standing(procedure_id, conduct_id)
        if standing is None or ordinal > standing.outline.end:
            return None
        return await self._watch(standing.outline, ordinal)

    async def after(self, watch: ConductWatch) -> ConductWatch | None:
        """A view of the whole of a later conduct than the one that was watched to its end; None where there is none."""
        later = await self.latest(watch.outline.procedure_id, whole=True)
        return None if later is None or later.outline.conduct_id == watch.outline.conduct_id else later

    async def look(self, watch: ConductWatch, caller: Caller) -> list[Frame]:
        """What there is to tell by now: what happened and, where frames do not tell it, how the conduct stands."""
        found = await self._sights.look(watch.outline, watch.cursor, watch.limit)
        before, told = watch.cursor.ordinal, watch.told(found)
        if found.bearing in (None, watch.bearing) or (told and told[-1].is_last and watch.bearing is not None):
            return told
        view = await self.view(watch.outline.procedure_id, caller)
        if view.conduct_id != watch.outline.conduct_id:  # a later conduct was opened meanwhile
            return told
        first, watch.bearing = watch.bearing is None, found.bearing
        snapshot = Frame(FrameKind.SNAPSHOT, before if first else watch.cursor.ordinal, view)
        return [snapshot, *told] if first else [*told, snapshot]

    async def _watch(self, outline: Outline, ordinal: int) -> ConductWatch:
        return ConductWatch(outline, ReadCursor(ordinal, await self._sights.version(outline, ordinal)))
