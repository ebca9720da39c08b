"""Projections on PostgreSQL: rows kept up to date from the log by one leader, and rebuilt while the old rows serve."""

from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any
from uuid import UUID

from baton.application.ports import Bookmark, EventRow
from baton.application.queries import PROJECTIONS
from baton.application.unit_of_work import decode_event
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import Aggregate, State, StoredEvent
from baton.domain.registry import Projection
from baton.domain.shared.listing import Summary
from baton.infrastructure.postgres.leadership import PROJECTIONS_LOCK, win_election
from baton.infrastructure.postgres.pool import CHANNEL, Connection, dedicated_connection
from baton.infrastructure.postgres.projection_tables import table_statements
from baton.infrastructure.postgres.statements import STREAM_COLUMNS
from baton.infrastructure.postgres.store import follow

SWAP_LOCK = 0x6261746F6E03
REBUILD_LOCK = 0x6261746F6E04
BATCH = 2000
FETCH = 5000
MAX_REMEMBERED_STATES = 50_000

StreamKey = tuple[str, UUID]
VersionedState = tuple[int, State]


class Projector:
    """Keeps every projection: reads the log as its only leader and writes rows and bookmark together."""

    def __init__(self, url: str, poll: float = 0.1, owner_url: str | None = None) -> None:
        self._url = url
        self._owner_url = owner_url or url
        self._poll = poll
        self._by_type: dict[str, list[Projection]] = {}
        for projection in REGISTRY.projections.values():
            self._by_type.setdefault(projection.aggregate.name, []).append(projection)
        self._states: OrderedDict[StreamKey, VersionedState] = OrderedDict()

    async def run(self) -> None:
        """Become leader when nobody else is, and follow the log until cancelled; raise when the connection is lost."""
        async with await dedicated_connection(self._url) as connection:
            await win_election(connection, PROJECTIONS_LOCK)
            await connection.execute(f"LISTEN {CHANNEL}")
            self._states.clear()
            await rebuild(self._owner_url, await unbuilt_projections(connection))
            while True:
                if await self.advance(connection) < BATCH:
                    async for _ in connection.notifies(timeout=self._poll, stop_after=1):
                        pass

    async def advance(self, connection: Connection) -> int:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock_shared(%s)", (SWAP_LOCK,))
            events = await follow(connection, await read_bookmark(connection, PROJECTIONS), BATCH)
            if events:
                await self._apply(connection, events)
                await move_bookmark(connection, PROJECTIONS, Bookmark(events[-1].transaction_id, events[-1].position))
        return len(events)

    async def _apply(self, connection: Connection, events: Sequence[EventRow]) -> None:
        touched: dict[StreamKey, list[EventRow]] = {}
        for event in events:
            if event.stream_type in self._by_type:
                touched.setdefault((event.stream_type, event.stream_id), []).append(event)
        await self._fold(connection, touched)
        for stream_type, projections in self._by_type.items():
            states = [self._states[key] for key in touched if key[0] == stream_type]
            for projection in projections if states else ():
                await upsert_rows(connection, projection.summary, projection.summary.relation, states)
        while len(self._states) > MAX_REMEMBERED_STATES:
            self._states.popitem(last=False)

    async def _fold(self, connection: Connection, touched: dict[StreamKey, list[EventRow]]) -> None:
        """Bring the states of touched streams up to date; a stream whose state is not remembered is read as a whole."""
        unknown: dict[str, list[UUID]] = {}
        for key, events in touched.items():
            version, state = self._states.pop(key, (0, None))
            if events[0].version > version + 1:
                unknown.setdefault(key[0], []).append(key[1])
                continue
            aggregate = REGISTRY.aggregates[key[0]]
            fresh = [event for event in events if event.version > version]
            known = aggregate.fold((decode_event(aggregate, event) for event in fresh), state)
            assert known is not None, "a stream that was begun has a state"
            self._states[key] = (events[-1].version if fresh else version, known)
        for stream_type, ids in unknown.items():
            async for id, version, state in read_states(connection, stream_type, ids):
                self._states[stream_type, id] = (version, state)


async def read_states(
    connection: Connection, stream_type: str, ids: Sequence[UUID] | None = None
) -> AsyncIterator[tuple[UUID, int, State]]:
    aggregate = REGISTRY.aggregates[stream_type]
    among = "" if ids is None else "AND stream_id = ANY(%s) "
    query = f"SELECT {STREAM_COLUMNS} FROM events WHERE stream_type = %s {among}ORDER BY stream_id, version"
    values: tuple[Any, ...] = (stream_type,) if ids is None else (stream_type, list(ids))
    async with connection.transaction(), connection.cursor("streams", binary=True) as cursor:
        cursor.itersize = FETCH
        await cursor.execute(query, values, binary=True)
        stream: list[StoredEvent] = []
        while rows := await cursor.fetchmany(FETCH):
            for row in map(StoredEvent._make, rows):
                if stream and row.stream_id != stream[0].stream_id:
                    yield stream[0].stream_id, stream[-1].version, _state(aggregate, stream)
                    stream = []
                stream.append(row)
        if stream:
            yield stream[0].stream_id, stream[-1].version, _state(aggregate, stream)


def _state(aggregate: Aggregate[Any], stream: Sequence[StoredEvent]) -> State:
    state: State | None = aggregate.replay(stream)
    assert state is not None, "a stream that was begun has a state"
    return state


async def upsert_rows(connection: Connection, summary: type[Summary], relation: str, states: list[VersionedState]) -> None:
    """Write the rows of these states; a row that already shows a later version stays."""
    rows = ",".join(f'{summary.of(state).model_dump_json()[:-1]},"stream_version":{version}}}' for version, state in states)
    names = [*summary.model_fields, "stream_version"]
    changes = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
    await connection.execute(
        f"INSERT INTO {relation} AS kept SELECT * FROM json_populate_recordset(NULL::{relation}, %s) "
        f"ON CONFLICT ({names[0]}) DO UPDATE SET {changes} WHERE kept.stream_version < excluded.stream_version",
        (f"[{rows}]",),
    )


async def rebuild(url: str, relations: Iterable[str]) -> int:
    """Fill these projections again from the log, as their owner, while the old rows serve; return how many events."""
    total = 0
    for relation in relations:
        async with await dedicated_connection(url, owner=True) as connection:
            await connection.execute("SELECT pg_advisory_lock(%s)", (REBUILD_LOCK,))
            total += await _rebuild_one(connection, REGISTRY.projections[relation])
    return total


async def _rebuild_one(connection: Connection, projection: Projection) -> int:
    summary, relation, stream_type = projection.summary, projection.summary.relation, projection.aggregate.name
    # No longer than the name it will have: PostgreSQL then cuts the names of its indexes at the same place.
    shadow = relation.replace("proj_", "next_", 1)
    await connection.execute(f"DROP TABLE IF EXISTS {shadow}")
    create, *indexes_and_grant = table_statements(summary, shadow)
    await connection.execute(create)
    row = await (await connection.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text")).fetchone()
    horizon = row[0] if row else "0"
    count = await _fill(connection, projection, shadow)
    for statement in indexes_and_grant:
        await connection.execute(statement)
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (SWAP_LOCK,))
        late = "SELECT DISTINCT stream_id FROM events WHERE stream_type = %s AND transaction_id >= %s::xid8"
        ids = [row[0] for row in await (await connection.execute(late, (stream_type, horizon))).fetchall()]
        await _fill(connection, projection, shadow, ids)
        await connection.execute(f"DROP TABLE {relation}")
        await connection.execute(f"ALTER TABLE {shadow} RENAME TO {relation}")
        indexes = await connection.execute("SELECT indexname FROM pg_indexes WHERE tablename = %s", (relation,))
        for (index,) in await indexes.fetchall():
            await connection.execute(f"ALTER INDEX {index} RENAME TO {index.replace(shadow, relation, 1)}")
        await connection.execute("UPDATE projections SET built_at = clock_timestamp() WHERE relation = %s", (relation,))
    return count


async def _fill(connection: Connection, projection: Projection, table: str, ids: Sequence[UUID] | None = None) -> int:
    count, chunk = 0, list[VersionedState]()
    async for _, version, state in read_states(connection, projection.aggregate.name, ids):
        count += version
        chunk.append((version, state))
        if len(chunk) >= BATCH:
            await upsert_rows(connection, projection.summary, table, chunk)
            chunk.clear()
    if chunk:
        await upsert_rows(connection, projection.summary, table, chunk)
    return count


async def unbuilt_projections(connection: Connection) -> list[str]:
    rows = await connection.execute("SELECT relation FROM projections WHERE built_at IS NULL ORDER BY relation")
    return [relation for (relation,) in await rows.fetchall() if relation in REGISTRY.projections]


async def read_bookmark(connection: Connection, follower: str) -> Bookmark:
    query = "SELECT transaction_id::text::bigint, position FROM bookmarks WHERE follower = %s"
    row = await (await connection.execute(query, (follower,))).fetchone()
    return Bookmark(*row) if row else Bookmark(0, 0)


async def move_bookmark(connection: Connection, follower: str, bookmark: Bookmark) -> None:
    await connection.execute(
        "INSERT INTO bookmarks VALUES (%s, %s::text::xid8, %s, clock_timestamp()) ON CONFLICT (follower) DO UPDATE "
        "SET transaction_id = excluded.transaction_id, position = excluded.position, updated_at = excluded.updated_at",
        (follower, str(bookmark.transaction_id), bookmark.position),
    )
