"""The event store on PostgreSQL: a command costs two round trips, one to load and one to append everything.

An append is a single statement made of data-modifying parts, so it needs no explicit transaction and nothing of it can
be seen before all of it is.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import fields
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import orjson
import psycopg
import structlog
from psycopg.errors import (
    DataCorrupted,
    DeadlockDetected,
    DivisionByZero,
    IndexCorrupted,
    InternalError_,
    ReadOnlySqlTransaction,
    UniqueViolation,
)
from psycopg.pq import TransactionStatus
from psycopg_pool import PoolTimeout

from baton.application.conflicts import lost_race, other_request, still_in_flight
from baton.application.ports import Batch, Bookmark, EventRow, CommandResult, KeyClaim, Session, StoreUnavailableError
from baton.domain.kernel import StoredEvent
from baton.domain.shared.listing import Cursor, ListQuery, Page, Summary, Where
from baton.domain.shared.writes import Record
from baton.infrastructure.postgres.pool import Connection, Pool
from baton.infrastructure.postgres.statements import (
    AHEAD,
    CLAIM_KEY,
    END,
    ENDLESS,
    EVENT_COLUMNS,
    FOLLOW,
    FOLLOW_ONLY,
    HISTORY,
    LOAD_LATEST,
    LOAD_OF,
    LOAD_PAST,
    LOCATE,
    NEWER,
    PASSED,
    RELEASE_KEY,
    SHORT,
    STORED_KEY,
    append_statements,
    endless_stream,
    long_stream,
    many_streams,
    page_statement,
    record_form,
    short_stream,
)

log = structlog.get_logger()

UNAVAILABLE = (
    *(PoolTimeout, psycopg.OperationalError, psycopg.InterfaceError),
    *(ReadOnlySqlTransaction, InternalError_, DataCorrupted, IndexCorrupted),
)
"""What a database raises that is away, full, read-only or broken, and not a statement that is wrong."""

R = TypeVar("R", bound=Record)


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

    async def enlisted(self, kind: str) -> tuple[UUID, ...]:
        query = "SELECT DISTINCT stream_id FROM lookups WHERE kind = %s ORDER BY stream_id"
        return tuple(row[0] for row in await self._rows(tuple, query, (kind,)))

    async def records(self, record: type[R], where: Mapping[str, Any]) -> tuple[R, ...]:
        names = [column.name for column in fields(record)]  # type: ignore[arg-type]
        tests = [f"{name} = {'ANY(%s)' if isinstance(value, tuple) else '%s'}" for name, value in where.items()]
        among = f" WHERE {' AND '.join(tests)}" if tests else ""
        query = f"SELECT {', '.join(names)} FROM {record.relation}{among} ORDER BY {', '.join(record.key)}"
        values = tuple(list(value) if isinstance(value, tuple) else value for value in where.values())
        form = record_form(record)  # type: ignore[arg-type]
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
        except UNAVAILABLE as error:
            self._purge()
            with suppress(Exception):  # a full disk takes no log line either
                log.error("store_unavailable", error=type(error).__name__)
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

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Session]:
        async with self.connection() as connection, connection.transaction():
            await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield PostgresSession(connection, in_transaction=True)

    async def newer(
        self, stream_type: str, known: Mapping[UUID, int], look_up: tuple[str, str] | None = None
    ) -> Sequence[StoredEvent]:
        kind, key = look_up or (None, None)
        versions = orjson.dumps({str(id): version for id, version in known.items()}).decode()
        async with self.connection() as connection:
            cursor = await connection.execute(NEWER, (versions, kind, key, stream_type), binary=True)
            return list(map(StoredEvent._make, await cursor.fetchall()))

    async def claim_key(self, claim: KeyClaim, stale_before: datetime) -> CommandResult | None:
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


def replay(claim: KeyClaim, command_hash: str, result: str | None, position: int | None) -> CommandResult:
    """The outcome stored under a key, for exactly the same request."""
    if result is None:
        raise still_in_flight()
    if command_hash != claim.fingerprint:
        raise other_request()
    return CommandResult(**orjson.loads(result), position=position or 0, replayed=True)


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
