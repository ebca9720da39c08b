"""A unit of work fulfils what decisions and answers ask to know, and remembers which versions it has seen; and the reads of
the record outside any decision: states, events, rows, and streams that are polled."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Generic, NoReturn, TypeVar, cast
from uuid import UUID

from baton.application.caller import Caller
from baton.application.fold_cache import FoldedStream
from baton.application.ports import Authorizer, EventRow, FactsRead, Session, Store
from baton.application.supposed_writes import SupposedWrites
from baton.domain.kernel import Aggregate, Event, State, StoredEvent
from baton.domain.ports import Ports, method_of
from baton.domain.shared import reads
from baton.domain.shared.reads import Read, Reads, Streams
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.writes import Record

T = TypeVar("T")
S = TypeVar("S", bound=State)
E = TypeVar("E", bound=Event)
R = TypeVar("R", bound=Record)


class UnitOfWork:
    """The reads of one command or query; each stream is loaded once. What a decision supposes to be written is read as if it
    were; the versions and facts are those of the store."""

    def __init__(self, session: Session, caller: Caller, authorizer: Authorizer, ports: Ports) -> None:
        self.session = session
        self.position = 0
        self.ports = ports
        self._caller = caller
        self._authorizer = authorizer
        self._states: dict[tuple[str, UUID], State | None] = {}
        self._versions: dict[tuple[str, UUID], int] = {}
        self._members: list[tuple[str, Sequence[str], Sequence[UUID]]] = []
        self._supposed = SupposedWrites()

    def version(self, stream_type: str, id: UUID) -> int:
        """Return the last version seen of a stream; 0 for one that is new or was not read."""
        return self._versions.get((stream_type, id), 0)

    @property
    def versions(self) -> tuple[tuple[str, UUID, int], ...]:
        """Return every stream that was read, with its type, its id and its last version; 0 where there was none."""
        return tuple((name, id, self._versions.get((name, id), 0)) for name, id in self._states)

    @property
    def facts(self) -> FactsRead:
        """Return everything that was read and can change."""
        return FactsRead(self.versions, tuple(self._members))

    def begin_decision(self) -> None:
        """Suppose nothing any more: a decision that is made again does not see what the one before it would have written."""
        self._supposed = SupposedWrites()

    async def target(self, aggregate: Aggregate, id: UUID) -> State:
        """Return the state a command is about; refuse with 404 where there is none."""
        states = await self._streams(Streams(aggregate.state, (id,)))
        return states.get(id) or refuse_missing(aggregate, id)

    async def fulfil(self, generator: Reads[T]) -> T:
        """Run a generator of reads to its result."""
        try:
            request = next(generator)
            while True:
                try:
                    answer = await self._read(request)
                except Refusal as refusal:
                    request = generator.throw(refusal)
                else:
                    request = generator.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result

    async def _read(self, request: Read) -> Any:
        match request:
            case Streams():
                return await self._streams(request)
            case reads.PastEvents(of, ids, events):
                rows = await self.session.load_of(of.__name__, ids, [event.__name__ for event in events])
                stored = tuple(decode_event(of.aggregate, row) for row in rows)
                return (*stored, *(one for id in ids for one in self._supposed.events((of.__name__, id), events)))
            case reads.LatestEvents(of, id, events, count):
                rows = await self.session.load_latest(request)
                newer = reversed(self._supposed.events((of.__name__, id), events))
                return (*newer, *(decode_event(of.aggregate, row) for row in rows))[:count]
            case reads.Holders(kind, keys):
                return self._supposed.holders(kind, keys, await self.session.holders(kind, keys))
            case reads.AllHolders(kind):
                return await self.session.all_holders(kind)
            case reads.Members(kind, keys):
                members = await self.session.members(kind, keys)
                self._members.append((kind, keys, sorted({id for ids in members.values() for id in ids})))
                return self._supposed.members(kind, keys, members)
            case reads.AllMembers(kind):
                return await self.session.all_members(kind)
            case reads.Descendants(kind, id, max_depth):
                return await self.session.descendants(kind, id, max_depth)
            case reads.Records(record, where):
                return await self.session.records(record, where)
            case reads.Rows(summary, query, where):
                return await self.session.page(summary, query, where)
            case reads.Permission(command_name, surface_id):
                return (await self._authorizer.authorize(self._caller, command_name, surface_id)).is_allowed
            case reads.Grants(command_names):
                standing = await self._authorizer.read_principal_status(self._caller)
                permitted = await self._authorizer.permitted_commands(self._caller)
                return standing.objection, tuple(name for name in command_names if name not in permitted)
            case reads.PermittedCommands():
                return await self._authorizer.permitted_commands(self._caller)
            case reads.OwnAccess():
                return await self._authorizer.access(self._caller)
            case reads.AskPort(method, arguments):
                return await method_of(self.ports, method)(*arguments)
            case reads.RunInThread(function, arguments):
                return await asyncio.to_thread(function, *arguments)
            case reads.Suppose(also, at):
                return self._supposed.add(also, at, self._states.get)

    async def _streams(self, request: Streams) -> dict[UUID, State]:
        aggregate = request.state.aggregate
        known, supposed, name = self._states, self._supposed.states, aggregate.name
        if unread := [id for id in request.ids if (name, id) not in known and (name, id) not in supposed]:
            streams = await load_streams(self.session, aggregate, unread)
            for id in unread:
                stream = streams.get(id)
                self._states[aggregate.name, id] = stream and stream.state
                if stream is not None:
                    self._versions[aggregate.name, id] = stream.version
                    self.position = max(self.position, stream.position)
        found = {id: supposed.get((name, id)) or known.get((name, id)) for id in request.ids}
        return {id: state for id, state in found.items() if state is not None}


async def load_streams(session: Session, aggregate: Aggregate, ids: Sequence[UUID]) -> dict[UUID, FoldedStream]:
    """Return the present states of the streams that exist, by id; of one that is kept, what was not seen before is read."""
    known = session.folds.find(aggregate.name, ids)
    rows = by_stream(await session.load(aggregate.name, ids, {id: kept.version for id, kept in known.items()}))
    if unlike := [id for id, kept in known.items() if not kept.precedes(rows.get(id, ()))]:  # a restored database, or a past
        rows |= by_stream(await session.load(aggregate.name, unlike))
        known = {id: kept for id, kept in known.items() if id not in unlike}
    folded: dict[UUID, FoldedStream] = {}
    for id, stream in rows.items():
        kept, last = known.get(id), stream[-1]
        if kept is not None and len(stream) == 1:
            folded[id] = kept
        else:
            state: Any = aggregate.replay(stream) if kept is None else aggregate.replay(stream[1:], kept.state)
            largest = max(kept.largest if kept else 0, *(len(row.payload) for row in stream))
            folded[id] = FoldedStream(state, last.version, last.position, last.occurred_at, largest)
        session.folds.keep(aggregate.name, folded[id], among=len(ids))
    return folded


def by_stream(rows: Iterable[StoredEvent]) -> dict[UUID, list[StoredEvent]]:
    """Return events in their order, by the id of their stream."""
    streams: dict[UUID, list[StoredEvent]] = {}
    for row in rows:
        streams.setdefault(row.stream_id, []).append(row)
    return streams


def decode_event(aggregate: Aggregate, row: StoredEvent | EventRow) -> Event:
    """Return the event in a stored row, under its id where the row has it."""
    event = aggregate.decode(row.event_type, row.payload, row.stream_id, row.occurred_at, row.schema_version)
    return event.attribute(row.event_id, row.principal_id, row.surface_id) if isinstance(row, EventRow) else event


def refuse_missing(aggregate: Aggregate, id: UUID) -> NoReturn:
    """Refuse: there is no such aggregate."""
    detail = f"There is no {aggregate.label} {id}; check the id or list what exists."
    raise aggregate.NotFound(aggregate.absences.get(id, detail))


async def load_state(store: Store, state: type[S], id: UUID) -> S | None:
    """Return an aggregate's present state; None where there is none."""
    async with store.session() as session:
        streams = await load_streams(session, state.aggregate, [id])
    return cast("S", streams[id].state) if id in streams else None


async def require_state(store: Store, state: type[S], id: UUID) -> S:
    """Return the present state of an aggregate that exists."""
    known = await load_state(store, state, id)
    assert known is not None, "what is worked on is on record"
    return known


async def load_events(store: Store, id: UUID, *events: type[E]) -> list[E]:
    """Return the events of these types on one stream, oldest first."""
    return [cast("E", decode_event(events[0].aggregate, row)) for row in await load_event_rows(store, id, *events)]


async def load_event_rows(store: Store, id: UUID, *events: type[Event]) -> Sequence[EventRow]:
    """Return the stored events of these types on one stream with their envelopes, oldest first."""
    async with store.session() as session:
        return await session.load_of(events[0].aggregate.name, (id,), [event.__name__ for event in events])


async def load_row(store: Store, record: type[R], **where: object) -> R | None:
    """Return the row with these values; None where there is none."""
    async with store.session() as session:
        rows = await session.records(record, where)
    return rows[0] if rows else None


class StreamWatch(Generic[S]):
    """A stream that is polled, less often the longer it takes."""

    def __init__(self, store: Store, state: type[S], id: UUID) -> None:
        self._store = store
        self._stream = state, id
        self._pause = 0.05

    async def poll(self) -> S:
        """Return the present state."""
        return await require_state(self._store, *self._stream)

    async def wait(self) -> None:
        """Wait before another look, longer each time, up to a second."""
        await asyncio.sleep(self._pause)
        self._pause = min(self._pause * 1.5, 1.0)
