"""How conducts are watched: what a reader of the record finds after the place it has reached, one read at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from baton.application.caller import Caller
from baton.application.ports import Authorizer, Clock, IdGenerator, Store
from baton.application.unit_of_work import UnitOfWork
from baton.domain.conduct.estimates import Estimate, StepDuration, StepKey, conduct_estimate
from baton.domain.conduct.frames import (
    FrameKind,
    LedgerRow,
    Outline,
    StepFrame,
    StreamFrame,
    StreamRow,
    event_frames,
    frames,
)
from baton.domain.conduct.ledger import LedgerPort
from baton.domain.conduct.point_list import PointFrame, PointTrack, streamed_points, track_of
from baton.domain.conduct.points import PlacedPoint
from baton.domain.conduct.progress import ConductPhase, ConductProgress, WaitingFor
from baton.domain.conduct.views import ConductView, WorkerContact, conduct_view
from baton.domain.data.procedure_files import FilePort
from baton.domain.ports import Ports
from baton.domain.procedure.activity_logbook import StepKind
from baton.domain.procedure.procedure import PendingRequest, Procedure

MAX_ROWS = 500  # rows and events that one read takes; the next read takes the rest
ESTIMATE_INTERVAL = timedelta(seconds=10)  # after which a reader gets a fresh estimate, in a snapshot
OPEN_POINT_INTERVAL = timedelta(seconds=1)  # after which a reader is told again of the point that may still grow


@dataclass(frozen=True)
class ConductStatus:
    """What a snapshot is for: everything about a conduct that its frames do not show."""

    phase: ConductPhase
    waiting_for: WaitingFor | None
    asked: PendingRequest | None
    worker: WorkerContact | None


@dataclass(frozen=True)
class ReadCursor:
    """How far a reader is: the last frame it knows, and the last event of the stream it has seen."""

    ordinal: int
    version: int


@dataclass(frozen=True)
class RecordSlice:
    """What one read finds after a cursor, all of it at one moment."""

    rows: Sequence[LedgerRow]
    events: Sequence[StreamRow]
    status: ConductStatus | None  # None where the conduct is not the latest of its procedure


@dataclass(frozen=True)
class ConductPosition:
    """A conduct, and the ordinal after which a reader continues who takes the rest from a snapshot."""

    outline: Outline
    ordinal: int


class ConductReader(LedgerPort, FilePort, Protocol):
    """The record of conducts as watchers read it; each read is one statement."""

    async def position(self, procedure_id: UUID, conduct_id: UUID | None = None) -> ConductPosition | None:
        """Return a conduct of a procedure, the latest unless another is named; None where there is none."""

    async def version(self, outline: Outline, ordinal: int) -> int:
        """Return the last event of the stream that a reader after an ordinal need not read."""

    async def read(self, outline: Outline, cursor: ReadCursor, limit: int) -> RecordSlice:
        """Return the next rows and events after a cursor, at most so many of each."""

    async def read_durations(self, keys: Sequence[StepKey]) -> Mapping[StepKey, StepDuration]:
        """Return how long steps of these kinds on these targets took lately; what was never done is left out."""


@dataclass
class ConductWatch:
    """One reader's view of one conduct."""

    outline: Outline
    cursor: ReadCursor
    limit: int = MAX_ROWS
    status: ConductStatus | None = None
    track: PointTrack | None = None  # None until points are first looked for
    open_point: PlacedPoint | None = None  # as it was read last
    told_point: PlacedPoint | None = None  # as the reader was told last
    next_open_at: datetime | None = None  # before which nothing is told of an open point
    next_estimate_at: datetime | None = None  # None where the last snapshot had no estimate

    def take_frames(self, found: RecordSlice) -> list[StreamFrame]:
        """Return the frames of a read, and move the cursor behind them and the events before them."""
        taken = frames(self.outline, found.rows, found.events, self.cursor.ordinal, self.limit)
        ordinal = taken[-1].ordinal if taken else self.cursor.ordinal
        passed = [frame.version for frame in event_frames(self.outline, found.events) if frame.ordinal <= ordinal]
        self.cursor = ReadCursor(ordinal, max([self.cursor.version, *passed]))
        return taken

    def open_frame(self, now: datetime) -> StreamFrame | None:
        """Return the frame of the open point where it has grown, at most once a second; its place is that of the frame
        before it."""
        point, is_early = self.open_point, self.next_open_at is not None and now < self.next_open_at
        if self.track is None or point is None or point == self.told_point or is_early:
            return None
        self.told_point, self.next_open_at = point, now + OPEN_POINT_INTERVAL
        return StreamFrame(FrameKind.POINT, self.cursor.ordinal, PointFrame.of(point, self.track.plan))


@dataclass(frozen=True)
class ConductFeed:
    """Opens views of conducts, and reads through them."""

    store: Store
    authorizer: Authorizer
    reader: ConductReader
    clock: Clock
    new_id: IdGenerator
    ports: Ports
    estimate_interval: timedelta = ESTIMATE_INTERVAL

    async def view(self, procedure_id: UUID, caller: Caller) -> ConductView:
        """Return the latest conduct of a procedure; the caller was authorized before."""
        async with self.store.snapshot() as session:
            unit = UnitOfWork(session, caller, self.authorizer, self.ports)
            procedure = await unit.target(Procedure.aggregate, procedure_id)
            assert isinstance(procedure, Procedure), "a procedure's stream folds to one"
            return await unit.fulfil(conduct_view(procedure, caller.call(self.clock(), self.new_id())))

    async def estimate(self, procedure_id: UUID, progress: ConductProgress) -> Estimate | None:
        """Return how long the latest conduct of a procedure will still take, by its progress; None where nothing follows."""
        async with self.store.session() as session:
            unit = UnitOfWork(session, Caller.system(progress.conduct_id), self.authorizer, self.ports)
            procedure = await unit.target(Procedure.aggregate, procedure_id)
            assert isinstance(procedure, Procedure), "a procedure's stream folds to one"
            return await unit.fulfil(conduct_estimate(procedure, progress, self.clock()))

    async def latest(self, procedure_id: UUID, *, whole: bool = False) -> ConductWatch | None:
        """Return a view of the latest conduct from where it is, or the whole of it; None where there was none."""
        position = await self.reader.position(procedure_id)
        return None if position is None else await self._watch(position.outline, 0 if whole else position.ordinal)

    async def behind(self, procedure_id: UUID, conduct_id: UUID, ordinal: int) -> ConductWatch | None:
        """Return a view of a conduct after an ordinal; None where there is no such conduct, or no such place in it."""
        position = await self.reader.position(procedure_id, conduct_id)
        if position is None or ordinal > position.outline.end:
            return None
        return await self._watch(position.outline, ordinal)

    async def after(self, watch: ConductWatch) -> ConductWatch | None:
        """Return a view of the whole of a later conduct than the watched one; None where there is none."""
        later = await self.latest(watch.outline.procedure_id, whole=True)
        return None if later is None or later.outline.conduct_id == watch.outline.conduct_id else later

    async def poll(self, watch: ConductWatch, caller: Caller) -> list[StreamFrame]:
        """Return the new frames and, where they do not show how the conduct is or its estimate is old, a snapshot."""
        found = await self.reader.read(watch.outline, watch.cursor, watch.limit)
        before, taken = watch.cursor.ordinal, watch.take_frames(found)
        if taken:
            taken = await self._with_points(watch, before, taken)
        now, due = self.clock(), watch.next_estimate_at
        if (grown := watch.open_frame(now)) is not None:
            taken = [*taken, grown]
        unchanged = found.status == watch.status and (due is None or now < due)
        if found.status is None or unchanged or (taken and taken[-1].is_last and watch.status is not None):
            return taken
        view = await self.view(watch.outline.procedure_id, caller)
        if view.conduct_id != watch.outline.conduct_id:  # a later conduct was opened meanwhile
            return taken
        first, watch.status = watch.status is None, found.status
        watch.next_estimate_at = None if view.estimate is None else now + self.estimate_interval
        snapshot = StreamFrame(FrameKind.SNAPSHOT, before if first else watch.cursor.ordinal, view)
        return [snapshot, *taken] if first else [*taken, snapshot]

    async def _with_points(self, watch: ConductWatch, before: int, taken: list[StreamFrame]) -> list[StreamFrame]:
        """Return frames with the points that their steps have closed, each behind the frame of that step."""
        last = taken[-1]
        if isinstance(last.data, StepFrame) and last.data.kind == StepKind.SETPOINT and last.data.state != "started":
            watch.cursor = replace(watch.cursor, ordinal=last.ordinal + 1)  # where a product would be told
        async with self.store.session() as session:
            unit = UnitOfWork(session, Caller.system(watch.outline.conduct_id), self.authorizer, self.ports)
            if watch.track is None:
                procedure = await unit.target(Procedure.aggregate, watch.outline.procedure_id)
                assert isinstance(procedure, Procedure), "a procedure's stream folds to one"
                watch.track = await unit.fulfil(track_of(procedure, watch.outline.conduct_id))
            if watch.track is None:
                return taken
            closed, watch.open_point = await unit.fulfil(streamed_points(watch.track, before, watch.cursor.ordinal))
        plan = watch.track.plan
        told = [StreamFrame(FrameKind.POINT, one.closed_by or 0, PointFrame.of(one, plan)) for one in closed]
        return sorted((*taken, *told), key=lambda frame: (frame.ordinal, frame.kind is FrameKind.POINT))

    async def _watch(self, outline: Outline, ordinal: int) -> ConductWatch:
        return ConductWatch(outline, ReadCursor(ordinal, await self.reader.version(outline, ordinal)))
