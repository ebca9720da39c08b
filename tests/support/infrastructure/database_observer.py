"""What the server can tell about its connections, and rows written past the service."""

from typing import Any
from uuid import UUID

import psycopg

from baton.infrastructure.postgres.projections import Projector
from tests.support.domain.world import new_id
from tests.support.stored_events import StoredStream, specimens
from tests.support.waiting import until

Connection = psycopg.AsyncConnection[tuple[Any, ...]]

INSERT = """
INSERT INTO events (event_id, stream_type, stream_id, version, event_type, payload, principal_id, command_name,
    correlation_id, occurred_at)
VALUES (%s, %s, %s, %s, %s, json_build_object('name', 'Hutch'), %s, 'Written', %s, clock_timestamp()) RETURNING position
"""


async def value(connection: Connection, query: str, *arguments: Any) -> Any:
    """The one value a query answers."""
    row = await (await connection.execute(query, arguments)).fetchone()
    return row[0] if row else None


async def rows(connection: Connection, query: str, *arguments: Any) -> list[tuple[Any, ...]]:
    return await (await connection.execute(query, arguments)).fetchall()


async def insert_event(
    connection: Connection,
    stream_type: str = "Zone",
    stream_id: UUID | None = None,
    version: int = 1,
    event_type: str = "ZoneDefined",
) -> int:
    """Insert one event in the connection's own transaction; answers its position."""
    id = stream_id or new_id()
    return int(await value(connection, INSERT, new_id(), stream_type, id, version, event_type, new_id(), new_id()))


STORED = """
INSERT INTO events (event_id, stream_type, stream_id, version, event_type, schema_version, payload, principal_id,
    command_name, correlation_id, occurred_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, 'Written', %s, %s)
"""


async def insert_stored_streams(connection: Connection) -> None:
    """Write the stored streams of the event contract: together they have every event class that was ever written."""
    longest: dict[str, StoredStream] = {}
    for stream in specimens():
        id = stream.events[0]["stream_id"]
        if id not in longest or len(longest[id].events) < len(stream.events):
            longest[id] = stream
    async with connection.transaction(), connection.cursor() as cursor:
        for stream in longest.values():
            for one in stream.stored_rows():
                event = (new_id(), stream.stream_type, one.stream_id, one.version, one.event_type, one.schema_version)
                await cursor.execute(STORED, (*event, one.payload, new_id(), new_id(), one.occurred_at))


ADVISORY = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND ((classid::bigint << 32) | objid::bigint) = %s"


async def lock_holders(connection: Connection, key: int) -> list[int]:
    """The backends of this database that hold an advisory lock."""
    here = " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    return [row[0] for row in await rows(connection, f"{ADVISORY}{here} AND granted", key)]


async def lock_waiters(connection: Connection, key: int) -> list[int]:
    """The backends of this database that wait for an advisory lock."""
    here = " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    return [row[0] for row in await rows(connection, f"{ADVISORY}{here} AND NOT granted", key)]


async def until_waiting(connection: Connection, count: int = 1) -> None:
    """Until so many backends of this database wait for a lock of any kind."""
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' "
        "AND pid <> pg_backend_pid()"
    )

    async def are_waiting() -> bool:
        return bool(await value(connection, query) >= count)

    await until(are_waiting)


async def project(url: str, connection: Connection) -> Projector:
    """Bring the projections up to the end of the log."""
    projector = Projector(url)
    while await projector.advance(connection):
        pass
    return projector
