"""The event store on PostgreSQL: a command costs two round trips, one to load and one to append everything. An append is a
single statement made of data-modifying parts, so it needs no explicit transaction and becomes visible as a whole."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar
from uuid import UUID

import orjson
import psycopg
import structlog
from psycopg import errors
from psycopg.pq import TransactionStatus
from psycopg_pool import PoolTimeout

from baton.application import ports
from baton.application.fold_cache import FoldCache
from baton.application.ports import NOTHING_KNOWN, Batch, Bookmark, CommandResult, EventRow, KeyClaim, Session
from baton.domain.kernel import StoredEvent
from baton.domain.shared.listing import Cursor, ListQuery, Page, Summary, Where
from baton.domain.shared.reads import LatestEvents
from baton.domain.shared.writes import Record
from baton.domain.views.event_log import ListEvents
from baton.infrastructure.postgres import statements as sql
from baton.infrastructure.postgres.pool import Connection, Pool

log = structlog.get_logger()

UNAVAILABLE = (
    *(PoolTimeout, psycopg.OperationalError, psycopg.InterfaceError),
    *(errors.ReadOnlySqlTransaction, errors.InternalError_, errors.DataCorrupted, errors.IndexCorrupted),
)  # What is raised when the database is away, full, read-only or broken, rather than a statement wrong.

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class LentConnection:
    store: "PostgresStore"
    task: asyncio.Task[Any] | None
    connection: Connection


_lent: ContextVar[LentConnection | None] = ContextVar("lent", default=None)


class PostgresSession:
    def __init__(self, connection: Connection, folds: FoldCache, *, in_transaction: bool) -> None:
        self.folds = folds
        self._connection = connection
        self._in_transaction = in_transaction
        self.appended = False

    async def load(
        self, stream_type: str, ids: Sequence[UUID], known: Mapping[UUID, int] = NOTHING_KNOWN
    ) -> Sequence[StoredEvent]:
        if known:
            versions = sql.plain_array(str(known.get(id, 1)) for id in ids)
            return await self._rows(StoredEvent, sql.known_streams(stream_type), (sql.id_array(ids), versions))
        if len(ids) != 1:
            return await self._rows(StoredEvent, sql.many_streams(stream_type), (stream_type, sql.id_array(ids)))
        rows = await self._rows(StoredEvent, sql.short_stream(stream_type), (stream_type, ids[0]))
        if len(rows) <= sql.SHORT:
            return rows
        query = sql.endless_stream(stream_type) if stream_type in sql.ENDLESS else sql.long_stream(stream_type)
        return await self._rows(StoredEvent, query, {"type": stream_type, "id": ids[0]})

    async def load_of(self, stream_type: str, ids: Sequence[UUID], event_types: Sequence[str]) -> Sequence[EventRow]:
        return await self._rows(EventRow, sql.LOAD_OF, (stream_type, sql.id_array(ids), list(event_types)))

    async def load_latest(self, wanted: LatestEvents) -> Sequence[EventRow]:
        past = {"type": wanted.state.__name__, "id": wanted.id, "time": wanted.as_of, "version": wanted.as_of_version}
        among = {"types": [event.__name__ for event in wanted.events], "count": wanted.count}
        return await self._rows(EventRow, sql.LOAD_LATEST, past | among)

    async def load_past(
        self, stream_type: str, id: UUID, as_of: datetime | None, as_of_version: int | None
    ) -> Sequence[StoredEvent]:
        past = {"type": stream_type, "id": id, "time": as_of, "version": as_of_version}
        return await self._rows(StoredEvent, sql.LOAD_PAST, past)

    async def history(self, stream_type: str, id: UUID, after_version: int, limit: int) -> Sequence[EventRow]:
        return await self._rows(EventRow, sql.HISTORY, (stream_type, id, after_version, limit))

    async def holders(self, kind: str, keys: Sequence[str]) -> dict[str, UUID]:
        query = "SELECT key, holder_id FROM claims WHERE kind = %s AND key = ANY(%s::text[])"
        return dict(await self._rows(tuple, query, (kind, sql.text_array(keys))))

    async def all_holders(self, kind: str) -> tuple[UUID, ...]:
        query = "SELECT DISTINCT holder_id FROM claims WHERE kind = %s ORDER BY holder_id"
        return tuple(row[0] for row in await self._rows(tuple, query, (kind,)))

    async def members(self, kind: str, keys: Sequence[str]) -> dict[str, tuple[UUID, ...]]:
        query = "SELECT key, stream_id FROM lookups WHERE kind = %s AND key = ANY(%s::text[]) ORDER BY key, stream_id"
        rows = await self._rows(tuple, query, (kind, sql.text_array(keys)))
        return {key: tuple(id for _, id in of_key) for key, of_key in groupby(rows, key=itemgetter(0))}

    async def all_members(self, kind: str) -> tuple[UUID, ...]:
        query = "SELECT DISTINCT stream_id FROM lookups WHERE kind = %s ORDER BY stream_id"
        return tuple(row[0] for row in await self._rows(tuple, query, (kind,)))

    async def descendants(self, kind: str, id: UUID, max_depth: int) -> tuple[tuple[UUID, ...], ...]:
        rows = await self._rows(tuple, sql.DESCENDANTS, {"kind": kind, "key": str(id), "max_depth": max_depth})
        return tuple(tuple(id for _, id in level) for _, level in groupby(rows, key=itemgetter(0)))

    async def records(self, record: type[R], where: Mapping[str, object]) -> tuple[R, ...]:
        names = [column.name for column in fields(record)]  # type: ignore[arg-type]
        condition = f" WHERE {' AND '.join(sql.record_test(*one) for one in where.items())}" if where else ""
        query = f"SELECT {', '.join(names)} FROM {record.relation}{condition} ORDER BY {', '.join(record.key)}"
        values = tuple(map(sql.record_value, where.values()))
        adapter = sql.record_adapter(record)  # type: ignore[arg-type]
        rows = await self._rows(tuple, query, values)
        return tuple(adapter.validate_python(dict(zip(names, row, strict=True))) for row in rows)

    async def page(self, summary: type[Summary], query: ListQuery, where: Sequence[Where]) -> Page[Summary]:
        statement, values, names = sql.page_statement(summary, query, where)
        rows = await self._rows(tuple, statement, values)
        items = tuple(summary.of_row(names, row) for row in rows[: query.limit])
        if len(rows) <= query.limit:
            return Page(items, None)
        last = items[-1]
        return Page(items, str(Cursor(order=query.order, time=getattr(last, summary.time), id=getattr(last, names[0]))))

    async def append(self, batch: Batch) -> int | None:
        scrubs = [scrub for drop in batch.drops if (scrub := sql.scrub_statement(drop.record, drop.where)) is not None]
        append = sql.append_statement(batch)
        try:
            if scrubs and not self._in_transaction:
                async with self._connection.transaction():
                    return await self._append(scrubs, append)
            return await self._append(scrubs, append)
        except errors.UniqueViolation as violation:
            raise conflict_refusal(batch, violation) from None
        except errors.DeadlockDetected:
            raise ports.lost_race() from None
        except errors.SerializationFailure:  # raised by require_unchanged
            raise ports.changed_facts() from None
        except errors.NoDataFound:  # raised by require_key_claim
            raise ports.still_in_flight() from None
        except errors.ObjectNotInPrerequisiteState:  # raised by require_lease
            raise ports.LeaseLostError from None

    async def _append(self, scrubs: Sequence[sql.Statement], append: sql.Statement) -> int | None:
        for scrub in scrubs:
            await self._connection.execute(*scrub)
        row = await (await self._connection.execute(*append)).fetchone()
        self.appended = True
        return row[0] if row else None

    async def _rows(self, shape: Any, query: str, values: Any) -> list[Any]:
        rows = await (await self._connection.execute(query, values, binary=True)).fetchall()
        return rows if shape is tuple else list(map(shape._make, rows))


class PostgresStore:
    """The event store and its followers' view of the log."""

    def __init__(self, pool: Pool, appended: Callable[[], None] = lambda: None) -> None:
        self._pool = pool
        self._appended = appended
        self._folds = FoldCache()
        self._purging: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def connection(self, *, writing: bool = False) -> AsyncIterator[Connection]:
        """Open a connection: the same one for everything that a task does while it holds one, or tasks that need a second
        one would wait for each other. Only writes beside a transaction get a connection of their own."""
        previous, task = _lent.get(), asyncio.current_task()
        if previous is not None and previous.store is self and previous.task is task:
            busy = previous.connection.info.transaction_status is not TransactionStatus.IDLE
            if not (writing and busy):
                yield previous.connection
                return
        try:
            async with self._pool.connection() as connection:
                _lent.set(LentConnection(self, task, connection))
                try:
                    yield connection
                finally:
                    _lent.set(previous)
        except UNAVAILABLE as error:
            self._purge()
            with suppress(Exception):  # a full disk takes no log line either
                log.error("store_unavailable", error=type(error).__name__)
            detail = "The database cannot be reached; repeat the request, with the same idempotency key, in a few seconds."
            raise ports.StoreUnavailableError(detail) from error

    def _purge(self) -> None:
        """Replace connections that died with the server, so that not each of them costs a request."""
        if self._purging is None or self._purging.done():
            self._purging = asyncio.create_task(self._pool.check())

    @asynccontextmanager
    async def session(self, lock: str | None = None) -> AsyncIterator[Session]:
        async with self.connection(writing=True) as connection:
            session = PostgresSession(connection, self._folds, in_transaction=lock is not None)
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
            yield PostgresSession(connection, self._folds, in_transaction=True)

    async def newer(
        self, stream_type: str, known: Mapping[UUID, int], look_up: tuple[str, str] | None = None
    ) -> Sequence[StoredEvent]:
        kind, key = look_up or (None, None)
        versions = orjson.dumps({str(id): version for id, version in known.items()}).decode()
        rows = await self._rows(sql.NEWER, (versions, kind, key, stream_type))
        return list(map(StoredEvent._make, rows))

    async def claim_key(self, claim: KeyClaim, stale_before: datetime) -> CommandResult | None:
        async with self.connection(writing=True) as connection:
            for _ in range(3):
                cursor = await connection.execute(sql.CLAIM_KEY, {**vars(claim), "stale_before": stale_before})
                if await cursor.fetchone():
                    return None
                cursor = await connection.execute(sql.STORED_KEY, (claim.principal_id, claim.key, claim.surface_id))
                if (row := await cursor.fetchone()) is not None:
                    return stored_outcome(claim, *row)
        raise ports.still_in_flight()

    async def release_key(self, claim: KeyClaim) -> None:
        async with self.connection(writing=True) as connection:
            key = (claim.principal_id, claim.key, claim.surface_id, claim.claimed_at)
            await connection.execute(sql.RELEASE_KEY, key)

    async def follow(self, after: Bookmark, limit: int, only: Sequence[str] | None = None) -> Sequence[EventRow]:
        if only is None:
            async with self.connection() as connection:
                return await follow(connection, after, limit)
        rows = await self._rows(sql.FOLLOW_ONLY, (str(after.transaction_id), after.position, limit, list(only)))
        return list(map(EventRow._make, rows))

    async def search(self, query: ListEvents, bookmark: Bookmark, limit: int) -> Sequence[EventRow]:
        return list(map(EventRow._make, await self._rows(*sql.search(query, bookmark, limit))))

    async def at_time(self, time: datetime) -> Bookmark | None:
        rows = await self._rows(sql.AT_TIME, (time,))
        return Bookmark(*rows[0]) if rows else None

    async def event(self, event_id: UUID) -> EventRow | None:
        rows = await self._rows(sql.EVENT, (event_id,))
        return EventRow._make(rows[0]) if rows else None

    async def locate(self, position: int) -> Bookmark | None:
        rows = await self._rows(sql.LOCATE, (position,))
        return Bookmark(*rows[0]) if rows else None

    async def end(self) -> Bookmark:
        rows = await self._rows(sql.END)
        return Bookmark(*rows[0]) if rows else Bookmark(0, 0)

    async def last_position(self) -> int:
        rows = await self._rows(sql.LAST_POSITION)
        return int(rows[0][0]) if rows else 0

    async def ahead(self, after: Bookmark, only: Sequence[str], limit: int) -> Sequence[UUID]:
        rows = await self._rows(sql.AHEAD, (str(after.transaction_id), after.position, list(only), limit))
        return [row[0] for row in rows]

    async def has_passed(self, follower: str, position: int) -> bool:
        rows = await self._rows(sql.PASSED, (follower, position))
        return bool(rows and rows[0][0])

    async def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        async with self.connection() as connection:
            return await (await connection.execute(query, values, binary=True)).fetchall()


async def follow(connection: Connection, after: Bookmark, limit: int) -> list[EventRow]:
    """Return committed events after a bookmark; bookmark, horizon and rows are of one snapshot."""
    cursor = await connection.execute(sql.FOLLOW, (str(after.transaction_id), after.position, limit), binary=True)
    return list(map(EventRow._make, await cursor.fetchall()))


def stored_outcome(claim: KeyClaim, command_hash: str, result: str | None, position: int | None) -> CommandResult:
    """Return the outcome stored under a key; refuse another request, and one that is still in flight."""
    if result is None:
        raise ports.still_in_flight()
    if command_hash != claim.fingerprint:
        raise ports.other_request()
    return CommandResult(**orjson.loads(result), position=position or 0, replayed=True)


def conflict_refusal(batch: Batch, violation: errors.UniqueViolation) -> Exception:
    constraint, detail = violation.diag.constraint_name, violation.diag.message_detail or ""
    if constraint == "claims_key":
        for claim, _ in batch.claims:
            if f"({claim.kind}, {claim.key})" in detail:
                return claim.rival
    for put in batch.puts:
        if put.rival is not None and constraint == f"{put.record.relation}_pkey":
            return put.rival
    for enter in batch.entries:
        if enter.rival is not None and violation.diag.table_name == enter.entries[0].relation:
            return enter.rival
    return ports.lost_race()


PRUNE_SECONDS = 3600.0


class Pruner:
    """Deletes old outcomes every hour; a lifetime of zero keeps them for ever. Those under keys that no surface takes, which
    have a tab, are kept: by them an approved command is carried out once, however late that is on record."""

    def __init__(self, pool: Pool, lifetime: timedelta) -> None:
        self._pool = pool
        self._lifetime = lifetime

    async def run(self) -> None:
        """Prune until cancelled; retry a failure after an hour."""
        while self._lifetime:
            try:
                await self.prune()
            except (psycopg.Error, TimeoutError) as error:
                log.warning("idempotency_not_pruned", error=type(error).__name__)
            await asyncio.sleep(PRUNE_SECONDS)

    async def prune(self) -> int:
        async with self._pool.connection() as connection:
            query = """DELETE FROM idempotency
                WHERE result IS NOT NULL AND created_at < clock_timestamp() - %s AND position(E'\\t' IN key) = 0"""
            return (await connection.execute(query, (self._lifetime,))).rowcount
