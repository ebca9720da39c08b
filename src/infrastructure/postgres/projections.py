"""Projections on PostgreSQL: rows kept up to date from the log by one leader, and rebuilt while the old rows serve."""

from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from baton.application.ports import Bookmark
from baton.application.queries import PROJECTIONS
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import State, StoredEvent
from baton.domain.registry import Projection
from baton.domain.shared.listing import Summary
from baton.infrastructure.postgres.leadership import PROJECTIONS_LOCK, Leadership, lead
from baton.infrastructure.postgres.pool import CHANNEL, Connection, dedicated_connection
from baton.infrastructure.postgres.projection_tables import table_statements
from baton.infrastructure.postgres.statements import PLACES, fold_columns, newer_than_rows

SWAP_LOCK = 0x6261746F6E03
REBUILD_LOCK = 0x6261746F6E04
BATCH = 2000
FETCH = 5000
MAX_REMEMBERED_STATES = 50_000

StreamKey = tuple[str, UUID]
VersionedState = tuple[int, State]
NEW_STREAM = (0, None)  # what is known of a stream that was not read yet


class EventPlace(NamedTuple):
    """Where an event is in the log and in its stream."""

    transaction_id: int
    position: int
    stream_type: str
    stream_id: UUID
    version: int


class Projector:
    """Keeps every projection: reads the log as its only leader and writes rows and bookmark together."""

    def __init__(self, url: str, poll: float = 0.1, owner_url: str | None = None) -> None:
        self._url = url
        self._owner_url = owner_url or url
        self._poll = poll
        self._summaries = {projection.aggregate.name: projection.summary for projection in REGISTRY.projections.values()}
        self._states: OrderedDict[StreamKey, VersionedState] = OrderedDict()

    async def run(self) -> None:
        """Become leader when nobody else is, and follow the log until cancelled; raise when the connection is lost."""
        await lead(self._url, PROJECTIONS_LOCK, self._follow)

    async def _follow(self, leading: Leadership) -> None:
        connection = leading.connection
        await connection.execute(f"LISTEN {CHANNEL}")
        self._states.clear()
        await rebuild(self._owner_url, await unbuilt_projections(connection))
        while True:
            if await self.advance(connection) < BATCH:
                async for _ in connection.notifies(timeout=self._poll, stop_after=1):
                    pass

    async def advance(self, connection: Connection) -> int:
        """Apply the next events of the log, and return how many there were."""
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock_shared(%s)", (SWAP_LOCK,))
            places = await read_places(connection, await read_bookmark(connection, PROJECTIONS), BATCH)
            reached = reached_versions(place for place in places if place.stream_type in self._summaries)
            folded = {name: await self._fold(connection, name, versions) for name, versions in reached.items()}
            # From its first write on, a transaction holds back all followers of the log: everything is folded before it.
            for name, states in folded.items():
                await upsert_rows(connection, self._summaries[name], self._summaries[name].relation, states)
            if places:
                await move_bookmark(connection, PROJECTIONS, Bookmark(places[-1].transaction_id, places[-1].position))
        self._remember(folded)
        return len(places)

    async def _fold(self, connection: Connection, stream_type: str, reached: Mapping[UUID, int]) -> list[VersionedState]:
        """Return the present states of the streams whose rows do not show these versions yet."""
        known = {id: self._states.get((stream_type, id), NEW_STREAM) for id in reached}
        wanted = {id: version for id, version in reached.items() if known[id][0] < version}
        if not wanted:
            return []
        query = newer_than_rows(self._summaries[stream_type], stream_type)
        values = (list(wanted), [known[id][0] for id in wanted], list(wanted.values()))
        return [found async for found in fold_streams(connection, stream_type, query, values, known)]

    def _remember(self, folded: Mapping[str, Sequence[VersionedState]]) -> None:
        """Keep the states whose rows are written; those that were folded longest ago are forgotten."""
        for name, states in folded.items():
            for version, state in states:
                self._states[name, state.id] = (version, state)
                self._states.move_to_end((name, state.id))
        while len(self._states) > MAX_REMEMBERED_STATES:
            self._states.popitem(last=False)


def reached_versions(places: Iterable[EventPlace]) -> dict[str, dict[UUID, int]]:
    """Return the highest version among these events, by type and id of their streams."""
    reached: dict[str, dict[UUID, int]] = {}
    for place in places:
        versions = reached.setdefault(place.stream_type, {})
        versions[place.stream_id] = max(place.version, versions.get(place.stream_id, 0))
    return reached


async def read_places(connection: Connection, after: Bookmark, limit: int) -> list[EventPlace]:
    """Return where the next committed events are; horizon and rows are of one snapshot."""
    cursor = await connection.execute(PLACES, (str(after.transaction_id), after.position, limit), binary=True)
    return list(map(EventPlace._make, await cursor.fetchall()))


async def read_states(
    connection: Connection, stream_type: str, ids: Sequence[UUID] | None = None
) -> AsyncIterator[VersionedState]:
    """Yield the states of these streams of a type, or of all of them."""
    among = "" if ids is None else "AND stream_id = ANY(%s) "
    query = f"SELECT {fold_columns(stream_type)} FROM events WHERE stream_type = %s {among}ORDER BY stream_id, version"
    values: tuple[Any, ...] = (stream_type,) if ids is None else (stream_type, list(ids))
    async for found in fold_streams(connection, stream_type, query, values):
        yield found


async def fold_streams(
    connection: Connection,
    stream_type: str,
    query: str,
    values: Sequence[Any],
    known: Mapping[UUID, tuple[int, State | None]] = MappingProxyType({}),
) -> AsyncIterator[VersionedState]:
    """Yield the state of each stream that a query reads, folded on from what is known of it."""
    aggregate = REGISTRY.aggregates[stream_type]

    def fold_stream(stream: Sequence[StoredEvent]) -> VersionedState:
        state: State | None = aggregate.replay(stream, known.get(stream[0].stream_id, NEW_STREAM)[1])
        assert state is not None, "a stream that was begun has a state"
        return stream[-1].version, state

    async with connection.transaction(), connection.cursor("streams", binary=True) as cursor:
        cursor.itersize = FETCH
        await cursor.execute(query, values, binary=True)
        stream: list[StoredEvent] = []
        while rows := await cursor.fetchmany(FETCH):
            for row in map(StoredEvent._make, rows):
                if stream and row.stream_id != stream[0].stream_id:
                    yield fold_stream(stream)
                    stream = []
                stream.append(row)
        if stream:
            yield fold_stream(stream)


async def upsert_rows(
    connection: Connection, summary: type[Summary], relation: str, states: Sequence[VersionedState]
) -> None:
    """Write the rows of these states; a row that already shows a later version stays."""
    names = [*summary.model_fields, "stream_version"]
    changes = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
    statement = (
        f"INSERT INTO {relation} AS kept SELECT * FROM json_populate_recordset(NULL::{relation}, %s) "
        f"ON CONFLICT ({names[0]}) DO UPDATE SET {changes} WHERE kept.stream_version < excluded.stream_version"
    )
    for start in range(0, len(states), BATCH):
        some = states[start : start + BATCH]
        rows = ",".join(
            f'{summary.of(state).model_dump_json()[:-1]},"stream_version":{version}}}' for version, state in some
        )
        await connection.execute(statement, (f"[{rows}]",))


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
    async for version, state in read_states(connection, projection.aggregate.name, ids):
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
