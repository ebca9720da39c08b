"""Projections on PostgreSQL: tables derived from their declarations, kept by one leader, rebuilt while serving.

A projection's table is not migrated: when its declaration changes, it is made anew and filled from the log.
"""

import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from enum import Enum
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin
from uuid import UUID

from baton.application.ports import Bookmark, EventRow
from baton.application.queries import PROJECTIONS
from baton.application.unit_of_work import decode_event
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import Aggregate, State, StoredEvent
from baton.domain.registry import Projection
from baton.domain.shared.listing import ListQuery, Summary, plural_of
from baton.infrastructure.postgres.leadership import elected
from baton.infrastructure.postgres.pool import RUNTIME_ROLE, Connection, dedicated
from baton.infrastructure.postgres.statements import STREAM_COLUMNS
from baton.infrastructure.postgres.store import follow
from baton.infrastructure.postgres.wake_ups import CHANNEL

if TYPE_CHECKING:
    import sqlalchemy

LEADER_LOCK = 0x6261746F6E02
SWAP_LOCK = 0x6261746F6E03
REBUILD_LOCK = 0x6261746F6E04
BATCH = 2000
REMEMBERED_STATES = 50_000
SCALARS = {UUID: "uuid", str: "text", datetime: "timestamptz", bool: "boolean", int: "bigint", float: "double precision"}


def column_type(annotation: Any) -> str:
    """The SQL type of a column."""
    if hasattr(annotation, "__metadata__"):
        return column_type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return column_type(next(part for part in get_args(annotation) if part is not type(None)))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "text"
    if get_origin(annotation) in (frozenset, tuple) and (element := column_type(get_args(annotation)[0])) != "jsonb":
        return f"{element}[]"
    return SCALARS.get(annotation, "jsonb")


def table(summary: type[Summary], name: str) -> list[str]:
    """The statements that make a projection's table and the indexes its list needs."""
    columns = {column: column_type(info.rebuild_annotation()) for column, info in summary.model_fields.items()}
    id_column = next(iter(columns))
    lines = [f"{column} {sql_type}" for column, sql_type in columns.items()]
    statements = [
        f"CREATE TABLE {name} ({', '.join(lines)}, stream_version integer NOT NULL, PRIMARY KEY ({id_column}))",
        f"CREATE INDEX {name}_order ON {name} ({summary.time}, {id_column})",
    ]
    for column in filtered_columns(summary):
        if columns[column].endswith("[]") or columns[column] == "jsonb":
            statements.append(f"CREATE INDEX {name}_{column} ON {name} USING gin ({column})")
        else:
            statements.append(f"CREATE INDEX {name}_{column} ON {name} ({column}, {summary.time}, {id_column})")
    statements.append(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name} TO {RUNTIME_ROLE}")
    return statements


def filtered_columns(summary: type[Summary]) -> list[str]:
    """The columns that the list's own filters ask about; conditions it makes itself use what is there."""
    queries = [
        operation.input
        for operation in REGISTRY
        if issubclass(operation.input, ListQuery) and operation.input.summary is summary
    ]
    wanted = {query.filters.get(name, name) for query in queries for name in (*query.model_fields, *query.indexed)}
    id_column = next(iter(summary.model_fields))
    return [
        column
        for column in summary.model_fields
        if column != id_column and (column in wanted or any(plural_of(name) == column for name in wanted))
    ]


def definition(summary: type[Summary]) -> str:
    """What a projection's rows depend on, as a fingerprint."""
    return hashlib.sha256("\n".join(table(summary, summary.relation)).encode()).hexdigest()


def ensure_projections(connection: "sqlalchemy.Connection") -> None:
    """Make the tables that are missing or were declared differently; the projector fills those with a past."""
    import sqlalchemy

    made = {row.relation: row.definition for row in connection.execute(sqlalchemy.text("SELECT * FROM projections"))}
    empty = connection.execute(sqlalchemy.text("SELECT NOT EXISTS (SELECT FROM events)")).scalar()
    for relation, projection in REGISTRY.projections.items():
        wanted = definition(projection.summary)
        if made.get(relation) == wanted:
            continue
        connection.execute(sqlalchemy.text(f"DROP TABLE IF EXISTS {relation}"))
        for statement in table(projection.summary, relation):
            connection.execute(sqlalchemy.text(statement))
        connection.execute(
            sqlalchemy.text(
                "INSERT INTO projections VALUES (:relation, :definition, CASE WHEN :empty THEN clock_timestamp() END) "
                "ON CONFLICT (relation) DO UPDATE SET definition = excluded.definition, built_at = excluded.built_at"
            ),
            {"relation": relation, "definition": wanted, "empty": empty},
        )
    connection.execute(
        sqlalchemy.text("INSERT INTO bookmarks VALUES (:follower, '0', 0) ON CONFLICT DO NOTHING"), {"follower": PROJECTIONS}
    )


class Projector:
    """Keeps every projection: reads the log as its one leader and writes rows and bookmark together."""

    def __init__(self, url: str, poll: float = 0.1, owner_url: str | None = None) -> None:
        self._url = url
        self._owner_url = owner_url or url
        self._poll = poll
        self._by_type: dict[str, list[Projection]] = {}
        for projection in REGISTRY.projections.values():
            self._by_type.setdefault(projection.aggregate.name, []).append(projection)
        self._states: OrderedDict[tuple[str, UUID], tuple[int, State]] = OrderedDict()

    async def run(self) -> None:
        """Lead when nobody else does, and follow the log until cancelled; raises when the connection is lost."""
        async with await dedicated(self._url) as connection:
            await elected(connection, LEADER_LOCK)
            await connection.execute(f"LISTEN {CHANNEL}")
            self._states.clear()
            await rebuild(self._owner_url, await unbuilt(connection))
            while True:
                if await self.advance(connection) < BATCH:
                    await wait_for_news(connection, self._poll)

    async def advance(self, connection: Connection) -> int:
        """Apply the next batch of the log; answers how many events it held."""
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock_shared(%s)", (SWAP_LOCK,))
            bookmark = await bookmark_of(connection, PROJECTIONS)
            events = await follow(connection, bookmark, BATCH)
            if events:
                await self._apply(connection, events)
                await move_bookmark(connection, PROJECTIONS, Bookmark(events[-1].transaction_id, events[-1].position))
        return len(events)

    async def _apply(self, connection: Connection, events: Sequence[EventRow]) -> None:
        touched: dict[tuple[str, UUID], list[EventRow]] = {}
        for event in events:
            if event.stream_type in self._by_type:
                touched.setdefault((event.stream_type, event.stream_id), []).append(event)
        await self._recall(connection, touched)
        for stream_type, projections in self._by_type.items():
            streams = [key for key in touched if key[0] == stream_type]
            for projection in projections if streams else ():
                await upsert(
                    connection, projection.summary, projection.summary.relation, (self._states[key] for key in streams)
                )
        while len(self._states) > REMEMBERED_STATES:
            self._states.popitem(last=False)

    async def _recall(self, connection: Connection, touched: dict[tuple[str, UUID], list[EventRow]]) -> None:
        """Fold each touched stream on; one that is not remembered from its beginning is read whole."""
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
            async for id, version, state in folded_streams(connection, stream_type, ids):
                self._states[stream_type, id] = (version, state)


async def wait_for_news(connection: Connection, poll: float) -> None:
    """Until somebody appended, or the poll interval passed."""
    async for _ in connection.notifies(timeout=poll, stop_after=1):
        return


async def folded_streams(
    connection: Connection, stream_type: str, ids: Sequence[UUID] | None = None
) -> AsyncIterator[tuple[UUID, int, State]]:
    """Every stream of a type (or these), folded, one after the other."""
    aggregate = REGISTRY.aggregates[stream_type]
    among = "" if ids is None else "AND stream_id = ANY(%s) "
    query = f"SELECT {STREAM_COLUMNS} FROM events WHERE stream_type = %s {among}ORDER BY stream_id, version"
    values: tuple[Any, ...] = (stream_type,) if ids is None else (stream_type, list(ids))
    async with connection.transaction(), connection.cursor("streams", binary=True) as cursor:
        cursor.itersize = 5000
        await cursor.execute(query, values, binary=True)
        stream: list[StoredEvent] = []
        while rows := await cursor.fetchmany(5000):
            for row in map(StoredEvent._make, rows):
                if stream and row.stream_id != stream[0].stream_id:
                    yield folded(aggregate, stream)
                    stream = []
                stream.append(row)
        if stream:
            yield folded(aggregate, stream)


def folded(aggregate: Aggregate[Any], stream: Sequence[StoredEvent]) -> tuple[UUID, int, State]:
    """The id of a stream, how long it is, and the state it leads to."""
    state = aggregate.replay(stream)
    assert state is not None, "a stream that was begun has a state"
    return stream[0].stream_id, stream[-1].version, state


async def upsert(connection: Connection, summary: type[Summary], relation: str, states: Iterable[tuple[int, State]]) -> None:
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
    """Fill these projections anew from the log, as their owner, while the old ones serve; answers how many events."""
    total = 0
    for relation in relations:
        async with await dedicated(url, owner=True) as connection:
            await connection.execute("SELECT pg_advisory_lock(%s)", (REBUILD_LOCK,))
            total += await _rebuild_one(connection, REGISTRY.projections[relation])
    return total


async def _rebuild_one(connection: Connection, projection: Projection) -> int:
    summary, relation = projection.summary, projection.summary.relation
    # No longer than the name it will have: PostgreSQL then cuts the names of its indexes at the same place.
    shadow = relation.replace("proj_", "next_", 1)
    await connection.execute(f"DROP TABLE IF EXISTS {shadow}")
    create, *rest = table(summary, shadow)
    await connection.execute(create)
    row = await (await connection.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text")).fetchone()
    horizon = row[0] if row else "0"
    count = 0
    chunk: list[tuple[int, State]] = []
    async for _, version, state in folded_streams(connection, projection.aggregate.name):
        count += version
        chunk.append((version, state))
        if len(chunk) >= BATCH:
            await upsert(connection, summary, shadow, chunk)
            chunk.clear()
    if chunk:
        await upsert(connection, summary, shadow, chunk)
    for statement in rest:
        await connection.execute(statement)
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (SWAP_LOCK,))
        late = await connection.execute(
            "SELECT DISTINCT stream_id FROM events WHERE stream_type = %s AND transaction_id >= %s::xid8",
            (projection.aggregate.name, horizon),
        )
        ids = [row[0] for row in await late.fetchall()]
        if ids:
            latest = [
                (version, state) async for _, version, state in folded_streams(connection, projection.aggregate.name, ids)
            ]
            await upsert(connection, summary, shadow, latest)
        await connection.execute(f"DROP TABLE {relation}")
        await connection.execute(f"ALTER TABLE {shadow} RENAME TO {relation}")
        await _rename_indexes(connection, relation, shadow)
        await connection.execute("UPDATE projections SET built_at = clock_timestamp() WHERE relation = %s", (relation,))
    return count


async def _rename_indexes(connection: Connection, relation: str, shadow: str) -> None:
    found = await connection.execute("SELECT indexname FROM pg_indexes WHERE tablename = %s", (relation,))
    for (index,) in await found.fetchall():
        await connection.execute(f"ALTER INDEX {index} RENAME TO {index.replace(shadow, relation, 1)}")


async def unbuilt(connection: Connection) -> list[str]:
    """The projections that still have to be filled."""
    found = await connection.execute("SELECT relation FROM projections WHERE built_at IS NULL ORDER BY relation")
    return [row[0] for row in await found.fetchall() if row[0] in REGISTRY.projections]


async def bookmark_of(connection: Connection, follower: str) -> Bookmark:
    """How far a follower has come."""
    query = "SELECT transaction_id::text::bigint, position FROM bookmarks WHERE follower = %s"
    row = await (await connection.execute(query, (follower,))).fetchone()
    return Bookmark(*row) if row else Bookmark(0, 0)


async def move_bookmark(connection: Connection, follower: str, bookmark: Bookmark) -> None:
    await connection.execute(
        "INSERT INTO bookmarks VALUES (%s, %s::text::xid8, %s, clock_timestamp()) ON CONFLICT (follower) DO UPDATE "
        "SET transaction_id = excluded.transaction_id, position = excluded.position, updated_at = excluded.updated_at",
        (follower, str(bookmark.transaction_id), bookmark.position),
    )
