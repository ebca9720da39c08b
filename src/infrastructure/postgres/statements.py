"""What the store says to PostgreSQL: how streams are read, how a batch becomes one statement, how a list is paged."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

import orjson
from psycopg.types.json import Jsonb
from pydantic import TypeAdapter

from baton.application.ports import Batch, CommandResult, KeyClaim
from baton.domain.registry import REGISTRY
from baton.domain.shared.listing import ListQuery, Order, Summary, Where
from baton.domain.shared.logbooks import Entry
from baton.domain.shared.writes import Put, Record

STREAM_COLUMNS = "stream_id, version, position, event_type, payload::text, occurred_at"
EVENT_COLUMNS = (
    "position, transaction_id::text::bigint, event_id, stream_type, stream_id, version, event_type, schema_version, "
    "payload::text, principal_id, command_name, correlation_id, causation_id, occurred_at, recorded_at, surface_id"
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
EVENT = "(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
APPEND = (
    "INSERT INTO events (event_id, stream_type, stream_id, version, event_type, payload, principal_id, command_name, "
    "correlation_id, causation_id, occurred_at, surface_id) VALUES {} RETURNING position"
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
            call.surface_id,
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


def outcome_statement(claim: KeyClaim, executed: CommandResult, *, appended: bool) -> tuple[str, list[Any]]:
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
