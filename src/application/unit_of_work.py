"""A unit of work fulfils what decisions and answers ask to know, and remembers which versions it has seen; and the reads of
the record outside any decision: states, events, rows, and streams that are polled."""

import asyncio
from collections.abc import Sequence
from typing import Any, Generic, NoReturn, TypeVar, cast
from uuid import UUID

from baton.application.ports import Authorizer, Caller, EventRow, Session, Store
from baton.domain.kernel import Aggregate, Event, State, StoredEvent
from baton.domain.shared import reads
from baton.domain.shared.ports import Ports
from baton.domain.shared.reads import Read, Reads, Streams
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.writes import Record

T = TypeVar("T")
S = TypeVar("S", bound=State)
E = TypeVar("E", bound=Event)
R = TypeVar("R", bound=Record)


class UnitOfWork:
    """The reads of one command or query; each stream is loaded once."""

    def __init__(self, session: Session, caller: Caller, authorizer: Authorizer, ports: Ports) -> None:
        self.session = session
        self.position = 0
        self._caller = caller
        self._authorizer = authorizer
        self._ports = ports
        self._states: dict[tuple[str, UUID], State | None] = {}
        self._versions: dict[tuple[str, UUID], int] = {}

    def version(self, stream_type: str, id: UUID) -> int:
        """Return the last version seen of a stream; 0 for one that is new or was not read."""
        return self._versions.get((stream_type, id), 0)

    async def target(self, aggregate: Aggregate[Any], id: UUID) -> State:
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
            case reads.PastEvents(of, id, events):
                rows = await self.session.load_of(of.__name__, id, [event.__name__ for event in events])
                return tuple(decode_event(of.aggregate, row) for row in rows)
            case reads.LatestEvents(of):
                return tuple(decode_event(of.aggregate, row) for row in await self.session.load_latest(request))
            case reads.Holders(kind, keys):
                return await self.session.holders(kind, keys)
            case reads.Members(kind, keys):
                return await self.session.members(kind, *keys)
            case reads.AllMembers(kind):
                return await self.session.all_members(kind)
            case reads.Records(record, where):
                return await self.session.records(record, where)
            case reads.Rows(summary, query, where):
                return await self.session.page(summary, query, where)
            case reads.Permission(command_name, surface_id):
                return (await self._authorizer.authorize(self._caller, command_name, surface_id)).allowed
            case reads.Grants(command_names):
                standing = await self._authorizer.read_standing(self._caller)
                permitted = await self._authorizer.permitted_commands(self._caller)
                return standing.objection, tuple(name for name in command_names if name not in permitted)
            case reads.PermittedCommands():
                return await self._authorizer.permitted_commands(self._caller)
            case reads.AskPort(method, arguments):
                return await getattr(self._ports, method.__name__)(*arguments)
            case reads.RunInThread(function, arguments):
                return await asyncio.to_thread(function, *arguments)

    async def _streams(self, request: Streams) -> dict[UUID, State]:
        aggregate = request.state.aggregate
        if unread := [id for id in request.ids if (aggregate.name, id) not in self._states]:
            by_stream: dict[UUID, list[StoredEvent]] = {id: [] for id in unread}
            for row in await self.session.load(aggregate.name, unread):
                by_stream[row.stream_id].append(row)
            for id, stream in by_stream.items():
                self._states[aggregate.name, id] = aggregate.replay(stream)
                if stream:
                    self._versions[aggregate.name, id] = stream[-1].version
                    self.position = max(self.position, stream[-1].position)
        return {id: state for id in request.ids if (state := self._states[aggregate.name, id]) is not None}


def decode_event(aggregate: Aggregate[Any], row: StoredEvent | EventRow) -> Event:
    """Return the event in a stored row, under its id where the row has it."""
    event = aggregate.decode(row.event_type, row.payload, row.stream_id, row.occurred_at, row.schema_version)
    return event.attribute(row.event_id, row.principal_id) if isinstance(row, EventRow) else event


def refuse_missing(aggregate: Aggregate[Any], id: UUID) -> NoReturn:
    """Refuse: there is no such aggregate."""
    detail = f"There is no {aggregate.label} {id}; check the id or list what exists."
    raise aggregate.NotFound(aggregate.absences.get(id, detail))


async def load_state(store: Store, state: type[S], id: UUID) -> S | None:
    """Return an aggregate's present state; None where there is none."""
    async with store.session() as session:
        rows = await session.load(state.aggregate.name, [id])
    return cast("S | None", state.aggregate.replay(rows))


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
        return await session.load_of(events[0].aggregate.name, id, [event.__name__ for event in events])


async def load_row(store: Store, record: type[R], **where: Any) -> R | None:
    """Return the row with these values; None where there is none."""
    async with store.session() as session:
        rows = await session.records(record, where)
    return rows[0] if rows else None


class StreamWatch(Generic[S]):
    """A stream that is polled; only newer events are read each time."""

    def __init__(self, store: Store, state: type[S], id: UUID) -> None:
        self._store = store
        self._id = id
        self._aggregate: Any = state.aggregate
        self._state: S | None = None
        self._version = 0
        self._pause = 0.05

    async def look(self) -> S:
        """Return the present state."""
        if self._state is None:
            async with self._store.session() as session:
                rows = await session.load(self._aggregate.name, [self._id])
            self._state = self._aggregate.replay(rows)
            assert self._state is not None, "what is watched exists"
        else:
            rows = await self._store.newer(self._aggregate.name, {self._id: self._version})
            for row in rows:
                if not self._aggregate.events[row.event_type].inert:
                    self._state = self._aggregate.after(self._state, decode_event(self._aggregate, row))
        self._version = rows[-1].version if rows else self._version
        return self._state

    async def wait(self) -> None:
        """Wait before another look, longer each time, up to a second."""
        await asyncio.sleep(self._pause)
        self._pause = min(self._pause * 1.5, 1.0)
