"""The event store on PostgreSQL: a command costs two round trips, one to load and one to append everything.

An append is a single statement made of data-modifying parts, so it needs no explicit transaction and nothing of it can
be seen before all of it is.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

import orjson
import psycopg
import structlog
from psycopg.errors import DeadlockDetected, DivisionByZero, UniqueViolation
from psycopg.pq import TransactionStatus
from psycopg.types.json import Jsonb
from psycopg_pool import PoolTimeout
from pydantic import TypeAdapter

from application.ports import Batch, Bookmark, EventRow, Executed, KeyClaim, Session, StoreUnavailableError
from domain.kernel import StoredEvent
from domain.registry import REGISTRY
from domain.shared.listing import Cursor, ListQuery, Order, Page, Summary, Where
from domain.shared.logbooks import Entry
from domain.shared.refusals import ConcurrencyError, IdempotencyClaimLostError, IdempotencyConflictError
from domain.shared.writes import Put, Record
from infrastructure.postgres.pool import Connection, Pool

log = structlog.get_logger()

STREAM_COLUMNS = "stream_id, version, position, event_type, payload::text, occurred_at"
EVENT_COLUMNS = (
    "position, transaction_id::text::bigint, event_id, stream_type, stream_id, version, event_type, schema_version, "
    "payload::text, principal_id, command_name, correlation_id, causation_id, occurred_at, recorded_at"
)
LOAD_OF = (
    f"SELECT {EVENT_COLUMNS} FROM events WHERE stream_type = %s AND stream_id = %s AND event_type = ANY(%s) ORDER BY version"
)
SHORT = 64
"""Streams up to this length are read whole; of longer ones, only what is not overwritten."""
STREAM = "FROM events WHERE stream_type = %s AND stream_id = %s"
ENDLESS = frozenset({"Schedule"})
"""Streams that grow for as long as there is anything to do; an index finds their events by type, as it says."""
LOAD_PAST = (
    f"SELECT {STREAM_COLUMNS} FROM events WHERE stream_type = %(type)s AND stream_id = %(id)s AND version <= "
    "coalesce(%(version)s, (SELECT max(version) FROM events WHERE stream_type = %(type)s AND stream_id = %(id)s "
    "AND occurred_at <= %(time)s), 0) ORDER BY version"
)
LOAD_LATEST = (
    f"SELECT {EVENT_COLUMNS} FROM events WHERE stream_type = %(type)s AND stream_id = %(id)s "
    "AND event_type = ANY(%(types)s) AND version <= coalesce(%(version)s, CASE WHEN %(time)s::timestamptz IS NULL "
    "THEN 2147483647 ELSE (SELECT max(version) FROM events WHERE stream_type = %(type)s AND stream_id = %(id)s "
    "AND occurred_at <= %(time)s) END, 0) ORDER BY version DESC LIMIT %(count)s"
)
HISTORY = (
    f"SELECT {EVENT_COLUMNS} FROM events WHERE stream_type = %s AND stream_id = %s AND version > %s "
    "ORDER BY version LIMIT %s"
)
FOLLOW = (
    f"SELECT {EVENT_COLUMNS} FROM events WHERE (transaction_id, position) > (%s::text::xid8, %s) "
    "AND transaction_id < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY transaction_id, position LIMIT %s"
)
FOLLOW_ONLY = f"""
WITH next AS MATERIALIZED (
    SELECT transaction_id AS tx, position AS at, event_type AS type FROM events
    WHERE (transaction_id, position) > (%s::text::xid8, %s)
    AND transaction_id < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY transaction_id, position LIMIT %s
)
SELECT {EVENT_COLUMNS} FROM events WHERE position IN (
    SELECT at FROM next WHERE type = ANY(%s) UNION (SELECT at FROM next ORDER BY tx DESC, at DESC LIMIT 1)
) ORDER BY transaction_id, position
"""
END = (
    "SELECT transaction_id::text::bigint, position FROM events "
    "WHERE transaction_id < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY transaction_id DESC, position DESC LIMIT 1"
)
AHEAD = (
    "SELECT event_id FROM events WHERE (transaction_id, position) > (%s::text::xid8, %s) AND event_type = ANY(%s) "
    "AND transaction_id < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY transaction_id, position LIMIT %s"
)
NEWER = f"""
WITH known AS (SELECT key::uuid AS id, value::int AS version FROM json_each_text(%s)),
wanted AS (
    SELECT id, version FROM known
    UNION SELECT stream_id, 0 FROM lookups WHERE kind = %s AND key = %s AND stream_id NOT IN (SELECT id FROM known)
)
SELECT {STREAM_COLUMNS.replace("version", "events.version")} FROM wanted
JOIN events ON stream_type = %s AND stream_id = wanted.id AND events.version > wanted.version
ORDER BY stream_id, events.version
"""
EVENT = "(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
APPEND = (
    "INSERT INTO events (event_id, stream_type, stream_id, version, event_type, payload, principal_id, command_name, "
    "correlation_id, causation_id, occurred_at) VALUES {} RETURNING position"
)
CLAIM_KEY = """
INSERT INTO idempotency AS held (principal_id, key, surface_id, command_name, command_hash, locked_at, created_at)
VALUES (%(principal)s, %(key)s, %(surface)s, %(name)s, %(hash)s, %(now)s, %(now)s)
ON CONFLICT (principal_id, key, surface_id) DO UPDATE
SET command_name = excluded.command_name, command_hash = excluded.command_hash, locked_at = excluded.locked_at
WHERE held.locked_at < %(stale)s
RETURNING true
"""
STORED_KEY = (
    "SELECT command_hash, result::text, position FROM idempotency WHERE principal_id = %s AND key = %s AND surface_id = %s"
)
RELEASE_KEY = "DELETE FROM idempotency WHERE principal_id = %s AND key = %s AND surface_id = %s AND locked_at = %s"
LOCATE = "SELECT transaction_id::text::bigint, position FROM events WHERE position <= %s ORDER BY position DESC LIMIT 1"
PASSED = """
SELECT (b.transaction_id, b.position) >= (e.transaction_id, e.position)
FROM bookmarks b, events e WHERE b.follower = %s AND e.position = %s
"""


class PostgresSession:
    """One unit of work on one connection."""

    def __init__(self, connection: Connection, *, in_transaction: bool) -> None:
        self._connection = connection
        self._in_transaction = in_transaction
        self.appended = False

    async def load(self, stream_type: str, ids: Sequence[UUID]) -> Sequence[StoredEvent]:
        if len(ids) == 1:
            rows = await self._rows(StoredEvent, short_stream(stream_type), (stream_type, ids[0]))
            return rows if len(rows) <= SHORT else await self._load_long(stream_type, ids[0])
        return await self._rows(StoredEvent, many_streams(stream_type), (stream_type, list(ids)))

    async def _load_long(self, stream_type: str, id: UUID) -> Sequence[StoredEvent]:
        query = endless_stream(stream_type) if stream_type in ENDLESS else long_stream(stream_type)
        return await self._rows(StoredEvent, query, {"type": stream_type, "id": id})

    async def load_of(self, stream_type: str, id: UUID, event_types: Sequence[str]) -> Sequence[EventRow]:
        return await self._rows(EventRow, LOAD_OF, (stream_type, id, list(event_types)))

    async def load_latest(
        self,
        stream_type: str,
        id: UUID,
        event_types: Sequence[str],
        count: int,
        as_of: datetime | None = None,
        as_of_version: int | None = None,
    ) -> Sequence[EventRow]:
        past = {"type": stream_type, "id": id, "time": as_of, "version": as_of_version}
        return await self._rows(EventRow, LOAD_LATEST, {**past, "types": list(event_types), "count": count})

    async def load_past(
        self, stream_type: str, id: UUID, as_of: datetime | None, as_of_version: int | None
    ) -> Sequence[StoredEvent]:
        past = {"type": stream_type, "id": id, "time": as_of, "version": as_of_version}
        return await self._rows(StoredEvent, LOAD_PAST, past)

    async def history(self, stream_type: str, id: UUID, after_version: int, limit: int) -> Sequence[EventRow]:
        return await self._rows(EventRow, HISTORY, (stream_type, id, after_version, limit))

    async def holders(self, kind: str, keys: Sequence[str]) -> dict[str, UUID]:
        query = "SELECT key, holder_id FROM claims WHERE kind = %s AND key = ANY(%s)"
        return dict(await self._rows(tuple, query, (kind, list(keys))))

    async def members(self, kind: str, *keys: str) -> tuple[UUID, ...]:
        query = "SELECT DISTINCT stream_id FROM lookups WHERE kind = %s AND key = ANY(%s) ORDER BY stream_id"
        return tuple(row[0] for row in await self._rows(tuple, query, (kind, list(keys))))

    async def records(self, record: type[Record], where: Mapping[str, Any]) -> tuple[Record, ...]:
        names = [column.name for column in fields(record)]  # type: ignore[arg-type]
        tests = [f"{name} = {'ANY(%s)' if isinstance(value, tuple) else '%s'}" for name, value in where.items()]
        among = f" WHERE {' AND '.join(tests)}" if tests else ""
        query = f"SELECT {', '.join(names)} FROM {record.relation}{among} ORDER BY {', '.join(record.key)}"
        values = tuple(list(value) if isinstance(value, tuple) else value for value in where.values())
        form = record_form(record)
        return tuple(
            form.validate_python(dict(zip(names, row, strict=True))) for row in await self._rows(tuple, query, values)
        )

    async def page(self, summary: type[Summary], query: ListQuery, where: Sequence[Where]) -> Page[Summary]:
        sql, values, names = page_statement(summary, query, where)
        rows = await self._rows(tuple, sql, values)
        items = tuple(summary.model_construct(**dict(zip(names, row, strict=True))) for row in rows[: query.limit])
        if len(rows) <= query.limit:
            return Page(items, None)
        last = items[-1]
        return Page(items, str(Cursor(order=query.order, time=getattr(last, summary.time), id=getattr(last, names[0]))))

    async def append(self, batch: Batch) -> int | None:
        scrubs, statement, values = append_statements(batch)
        try:
            if scrubs and not self._in_transaction:
                async with self._connection.transaction():
                    return await self._append(scrubs, statement, values)
            return await self._append(scrubs, statement, values)
        except UniqueViolation as violation:
            raise rival_of(batch, violation) from None
        except DeadlockDetected:
            raise lost_race() from None
        except DivisionByZero:
            raise still_in_flight() from None

    async def _append(self, scrubs: Sequence[tuple[str, Any]], statement: str, values: Sequence[Any]) -> int | None:
        for scrub, arguments in scrubs:
            await self._connection.execute(scrub, arguments)
        cursor = await self._connection.execute(statement, values)
        row = await cursor.fetchone()
        self.appended = True
        return row[0] if row else None

    async def _rows(self, shape: Any, query: str, values: Any) -> list[Any]:
        cursor = await self._connection.execute(query, values, binary=True)
        rows = await cursor.fetchall()
        return rows if shape is tuple else list(map(shape._make, rows))


class PostgresStore:
    """The event store and its followers' view of the log."""

    def __init__(self, pool: Pool, appended: Callable[[], None] = lambda: None) -> None:
        self._pool = pool
        self._appended = appended
        self._purging: asyncio.Task[None] | None = None
        self._lent: dict[asyncio.Task[Any] | None, Connection] = {}

    @asynccontextmanager
    async def connection(self, *, writing: bool = False) -> AsyncIterator[Connection]:
        """A connection, the same one for all that a task asks while it holds one.

        Decisions ask the store for more while their session is open. If that took a second connection, as many of them as
        the pool is large would wait for each other. Only what is written beside a transaction has a connection apart.
        """
        task = asyncio.current_task()
        lent = self._lent.get(task)
        if lent is not None and not (writing and lent.info.transaction_status is not TransactionStatus.IDLE):
            yield lent
            return
        try:
            async with self._pool.connection() as connection:
                self._lent[task] = connection
                try:
                    yield connection
                finally:
                    if lent is None:
                        del self._lent[task]
                    else:
                        self._lent[task] = lent
        except (PoolTimeout, psycopg.OperationalError) as error:
            log.error("store_unavailable", error=type(error).__name__)
            self._purge()
            raise StoreUnavailableError(
                "The database cannot be reached; repeat the request, with the same idempotency key, in a few seconds."
            ) from error

    def _purge(self) -> None:
        """Replace connections that died with the server, so that each does not cost a request of its own."""
        if self._purging is None or self._purging.done():
            self._purging = asyncio.create_task(self._pool.check())

    @asynccontextmanager
    async def session(self, lock: str | None = None) -> AsyncIterator[Session]:
        async with self.connection(writing=True) as connection:
            session = PostgresSession(connection, in_transaction=lock is not None)
            if lock is None:
                yield session
            else:
                async with connection.transaction():
                    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (lock,))
                    yield session
        if session.appended:
            self._appended()

    async def newer(
        self, stream_type: str, known: Mapping[UUID, int], look_up: tuple[str, str] | None = None
    ) -> Sequence[StoredEvent]:
        kind, key = look_up or (None, None)
        versions = orjson.dumps({str(id): version for id, version in known.items()}).decode()
        async with self.connection() as connection:
            cursor = await connection.execute(NEWER, (versions, kind, key, stream_type), binary=True)
            return list(map(StoredEvent._make, await cursor.fetchall()))

    async def claim_key(self, claim: KeyClaim, stale_before: datetime) -> Executed | None:
        claimant = {
            "principal": claim.principal_id,
            "key": claim.key,
            "surface": claim.surface_id,
            "name": claim.command_name,
            "hash": claim.fingerprint,
            "now": claim.claimed_at,
            "stale": stale_before,
        }
        async with self.connection(writing=True) as connection:
            for _ in range(3):
                cursor = await connection.execute(CLAIM_KEY, claimant)
                if await cursor.fetchone():
                    return None
                cursor = await connection.execute(STORED_KEY, (claim.principal_id, claim.key, claim.surface_id))
                if (row := await cursor.fetchone()) is not None:
                    return replay(claim, *row)
        raise still_in_flight()

    async def release_key(self, claim: KeyClaim) -> None:
        async with self.connection(writing=True) as connection:
            await connection.execute(RELEASE_KEY, (claim.principal_id, claim.key, claim.surface_id, claim.claimed_at))

    async def follow(self, after: Bookmark, limit: int, only: Sequence[str] | None = None) -> Sequence[EventRow]:
        async with self.connection() as connection:
            if only is None:
                return await follow(connection, after, limit)
            place = (str(after.transaction_id), after.position, limit)
            cursor = await connection.execute(FOLLOW_ONLY, (*place, list(only)), binary=True)
            return list(map(EventRow._make, await cursor.fetchall()))

    async def event(self, event_id: UUID) -> EventRow | None:
        async with self.connection() as connection:
            cursor = await connection.execute(f"SELECT {EVENT_COLUMNS} FROM events WHERE event_id = %s", (event_id,))
            row = await cursor.fetchone()
            return EventRow._make(row) if row else None

    async def locate(self, position: int) -> Bookmark | None:
        async with self.connection() as connection:
            row = await (await connection.execute(LOCATE, (position,))).fetchone()
            return Bookmark(*row) if row else None

    async def end(self) -> Bookmark:
        async with self.connection() as connection:
            row = await (await connection.execute(END)).fetchone()
            return Bookmark(*row) if row else Bookmark(0, 0)

    async def ahead(self, after: Bookmark, only: Sequence[str], limit: int) -> Sequence[UUID]:
        async with self.connection() as connection:
            place = (str(after.transaction_id), after.position)
            cursor = await connection.execute(AHEAD, (*place, list(only), limit), binary=True)
            return [row[0] for row in await cursor.fetchall()]

    async def passed(self, follower: str, position: int) -> bool:
        async with self.connection() as connection:
            row = await (await connection.execute(PASSED, (follower, position))).fetchone()
            return bool(row and row[0])


async def follow(connection: Connection, after: Bookmark, limit: int) -> list[EventRow]:
    """Committed events behind a bookmark: cursor, horizon and rows come from one snapshot."""
    cursor = await connection.execute(FOLLOW, (str(after.transaction_id), after.position, limit), binary=True)
    return list(map(EventRow._make, await cursor.fetchall()))


@cache
def folded_columns(stream_type: str) -> str:
    """The columns a fold needs; the payload of an event that changes no state stays in the database."""
    events = REGISTRY.aggregates[stream_type].events
    inert = ", ".join(f"'{name}'" for name, event in sorted(events.items()) if event.inert)
    payload = f"CASE WHEN event_type IN ({inert}) THEN '{{}}' ELSE payload::text END" if inert else "payload::text"
    return STREAM_COLUMNS.replace("payload::text", payload)


@cache
def short_stream(stream_type: str) -> str:
    return f"SELECT {folded_columns(stream_type)} {STREAM} ORDER BY version LIMIT {SHORT + 1}"


@cache
def many_streams(stream_type: str) -> str:
    where = "stream_type = %s AND stream_id = ANY(%s)"
    return f"SELECT {folded_columns(stream_type)} FROM events WHERE {where} ORDER BY stream_id, version"


@cache
def long_stream(stream_type: str) -> str:
    """The query of a long stream: overwritten events stay in the database."""
    events = REGISTRY.aggregates[stream_type].events
    names = ", ".join(f"'{name}'" for name, event in sorted(events.items()) if event.overwrites)
    stream = "FROM events WHERE stream_type = %(type)s AND stream_id = %(id)s"
    if not names:
        return f"SELECT {folded_columns(stream_type)} {stream} ORDER BY version"
    latest = f"SELECT max(version) {stream} AND event_type IN ({names}) GROUP BY event_type"
    kept = f"(version = 1 OR event_type NOT IN ({names}) OR version IN ({latest}))"
    return f"SELECT {folded_columns(stream_type)} {stream} AND {kept} ORDER BY version"


@cache
def endless_stream(stream_type: str) -> str:
    """The same of a stream whose events an index finds by type: overwritten ones are not even passed over.

    The types are named in the query itself, so that the planner knows that the index serves.
    """
    events = REGISTRY.aggregates[stream_type].events
    stream = f"FROM events WHERE stream_type = '{stream_type}' AND stream_id = %(id)s"
    kept = ", ".join(f"'{name}'" for name, event in sorted(events.items()) if not event.overwrites)
    parts = [f"SELECT {folded_columns(stream_type)} {stream} AND event_type IN ({kept})"]
    for name, event in sorted(events.items()):
        if event.overwrites:
            latest = f"{stream} AND event_type = '{name}' ORDER BY version DESC LIMIT 1"
            parts.append(f"(SELECT {folded_columns(stream_type)} {latest})")
    return f"{' UNION ALL '.join(parts)} ORDER BY version"


def append_statements(batch: Batch) -> tuple[list[tuple[str, Any]], str, list[Any]]:
    """What must be blanked first, and the one statement that writes everything."""
    parts: list[str] = []
    values: list[Any] = []

    def part(name: str, sql: str, arguments: Sequence[Any]) -> None:
        parts.append(f"{name} AS ({sql})")
        values.extend(arguments)

    scrubs = [(scrub, arguments) for drop in batch.drops for scrub, arguments in [scrubbed(drop.record, drop.where)]]
    rows = event_values(batch)
    if rows:
        part("appended", APPEND.format(", ".join([EVENT] * len(rows))), [value for row in rows for value in row])
    for index, (release, holder) in enumerate(batch.releases):
        delete = "DELETE FROM claims WHERE kind = %s AND key = %s AND holder_id = %s"
        part(f"released{index}", delete, (release.kind, release.key, holder))
    for index, (claim, holder) in enumerate(batch.claims):
        part(f"claimed{index}", "INSERT INTO claims VALUES (%s, %s, %s)", (claim.kind, claim.key, holder))
    for index, (enlist, id) in enumerate(batch.enlistments):
        insert = "INSERT INTO lookups VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
        part(f"enlisted{index}", insert, (enlist.kind, enlist.key, id))
    for index, (delist, id) in enumerate(batch.delistments):
        delete = "DELETE FROM lookups WHERE kind = %s AND key = %s AND stream_id = %s"
        part(f"delisted{index}", delete, (delist.kind, delist.key, id))
    for index, put in enumerate(batch.puts):
        part(f"put{index}", *put_statement(put))
    for index, drop in enumerate(batch.drops):
        where = " AND ".join(f"{name} = %s" for name in drop.where)
        part(f"dropped{index}", f"DELETE FROM {drop.record.relation} WHERE {where}", list(drop.where.values()))
    for index, entries in enumerate(batch.entries):
        part(f"entered{index}", *entries_statement(entries))
    answer = "(SELECT max(position) FROM appended)" if rows else "NULL::bigint"
    if batch.outcome is not None:
        part("finished", *outcome_statement(*batch.outcome, appended=bool(rows)))
        answer += ", 1 / (SELECT count(*) FROM finished)"
    return scrubs, f"WITH {', '.join(parts)} SELECT {answer}", values


def event_values(batch: Batch) -> list[tuple[Any, ...]]:
    call = batch.call
    return [
        (
            event_id,
            append.stream_type,
            append.stream_id,
            append.after + index,
            type(event).__name__,
            event.payload(),
            call.principal_id,
            batch.command_name,
            call.correlation_id,
            call.causation_id,
            call.now,
        )
        for append in batch.appends
        for index, (event_id, event) in enumerate(append.events, 1)
    ]


def put_statement(put: Put) -> tuple[str, list[Any]]:
    record = put.record
    names = [column.name for column in fields(record)]  # type: ignore[arg-type]
    insert = f"INSERT INTO {record.relation} ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})"
    if put.rival is None:
        changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in record.key)
        insert += f" ON CONFLICT ({', '.join(record.key)}) DO UPDATE SET {changes}"
    return insert, [column_value(getattr(record, name)) for name in names]


def entries_statement(entries: Sequence[Entry]) -> tuple[str, list[Any]]:
    """Adds rows of one logbook as a single document; the store says when it recorded them."""
    entry = type(entries[0])
    names = ", ".join(name for name in entry.model_fields if name != "recorded_at")
    insert = (
        f"INSERT INTO {entry.relation} ({names}) SELECT {names} FROM json_populate_recordset(NULL::{entry.relation}, %s) "
        "ON CONFLICT DO NOTHING"
    )
    return insert, [entries_form(entry).dump_json(list(entries)).decode()]


@cache
def entries_form(entry: type[Entry]) -> TypeAdapter[list[Entry]]:
    """How rows of one logbook become a document."""
    return TypeAdapter(list[entry])  # type: ignore[valid-type]


@cache
def record_form(record: type[Record]) -> TypeAdapter[Any]:
    """How a row of a relation becomes its record again."""
    return TypeAdapter(record)


def column_value(value: Any) -> Any:
    """A value as its column takes it; lists and objects are JSON."""
    return Jsonb(value, dumps=orjson.dumps) if isinstance(value, dict | list) else value


def scrubbed(record: type[Record], where: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Blank what is about to be deleted, so that no row version committed by this transaction still holds it."""
    blanked = [
        f"{column.name} = {'%s' if column.type is str else 'NULL'}"
        for column in fields(record)  # type: ignore[arg-type]
        if column.name not in (*record.key, *where) and column.type in (str, str | None)
    ]
    if not blanked:
        return "SELECT 1", []
    texts = [""] * sum(change.endswith("%s") for change in blanked)
    tests = " AND ".join(f"{name} = %s" for name in where)
    return f"UPDATE {record.relation} SET {', '.join(blanked)} WHERE {tests}", [*texts, *where.values()]


def outcome_statement(claim: KeyClaim, executed: Executed, *, appended: bool) -> tuple[str, list[Any]]:
    """Stores the answer with the events it stands for, so that a crash cannot leave a command done but forgotten.

    It finds no row where the claim went stale and was taken over; the append then divides by that count and fails.
    """
    position = "coalesce((SELECT max(position) FROM appended), %s)" if appended else "%s"
    update = (
        f"UPDATE idempotency SET result = %s, position = {position}, locked_at = NULL "
        "WHERE principal_id = %s AND key = %s AND surface_id = %s AND locked_at = %s RETURNING true"
    )
    result = orjson.dumps({"status": executed.status, "body": executed.body}).decode()
    return update, [result, executed.position, claim.principal_id, claim.key, claim.surface_id, claim.claimed_at]


def replay(claim: KeyClaim, command_hash: str, result: str | None, position: int | None) -> Executed:
    """The outcome stored under a key, for exactly the same request."""
    if result is None:
        raise still_in_flight()
    if command_hash != claim.fingerprint:
        raise IdempotencyConflictError(
            "This idempotency key was used for another request; take a fresh key for a new request.", reason="other_request"
        )
    return Executed(**orjson.loads(result), position=position or 0, replayed=True)


def still_in_flight() -> IdempotencyClaimLostError:
    return IdempotencyClaimLostError(
        "A request with this idempotency key is still being worked on; repeat it in a second.", reason="in_flight"
    )


def rival_of(batch: Batch, violation: psycopg.errors.UniqueViolation) -> Exception:
    """The refusal that a broken uniqueness rule stands for."""
    constraint, detail = violation.diag.constraint_name, violation.diag.message_detail or ""
    if constraint == "claims_key":
        for claim, _ in batch.claims:
            if f"({claim.kind}, {claim.key})" in detail:
                return claim.rival
    for put in batch.puts:
        if put.rival is not None and constraint == f"{put.record.relation}_pkey":
            return put.rival
    return lost_race()


def lost_race() -> ConcurrencyError:
    return ConcurrencyError(
        "Somebody else changed this record first; read it again and repeat the request.", reason="version_taken"
    )


def page_statement(summary: type[Summary], query: ListQuery, where: Sequence[Where]) -> tuple[str, list[Any], list[str]]:
    """One keyset page, and one row more to know whether another follows."""
    names = list(summary.model_fields)
    shown = [name for name in names if name not in summary.hidden()]
    tests, values = [], []
    for condition in where:
        test, value = TESTS[condition.test]
        tests.append(test.format(condition.column))
        values.append(value(condition.value))
    descending = query.order is Order.DESC
    if (after := query.after()) is not None:
        tests.append(f"({summary.time}, {names[0]}) {'<' if descending else '>'} (%s, %s)")
        values += [after.time, after.id]
    direction = " DESC" if descending else ""
    sql = (
        f"SELECT {', '.join(shown)} FROM {summary.relation}{' WHERE ' if tests else ''}{' AND '.join(tests)} "
        f"ORDER BY {summary.time}{direction}, {names[0]}{direction} LIMIT %s"
    )
    return sql, [*values, query.limit + 1], shown


TESTS: dict[str, tuple[str, Any]] = {
    "is": ("{} = %s", lambda value: value),
    "in": ("{} = ANY(%s)", lambda values: [getattr(value, "value", value) for value in values]),
    "not_in": ("{} <> ALL(%s)", lambda values: list(values)),
    "has": ("{} @> %s", lambda value: [value]),
    "has_any": ("{} && %s", lambda values: [getattr(value, "value", value) for value in values]),
    "contains": ("{} @> %s", lambda value: Jsonb(value)),
    "from": ("{} >= %s", lambda value: value),
    "to": ("{} <= %s", lambda value: value),
    "after": ("{} > %s", lambda value: value),
    "after_or_null": ("({0} IS NULL OR {0} > %s)", lambda value: value),
}
