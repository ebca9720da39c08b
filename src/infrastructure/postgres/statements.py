"""SQL of the event store: how streams are read, how a batch becomes one statement, and how a list is paged."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb
from pydantic import TypeAdapter

from baton.application.ports import Batch, Bookmark, CommandResult, FactsRead, KeyClaim
from baton.domain.registry import REGISTRY
from baton.domain.shared.gates import GATE_STREAMS
from baton.domain.shared.listing import ListQuery, Order, Summary, Where
from baton.domain.shared.logbooks import Entry
from baton.domain.shared.reads import TextPart
from baton.domain.shared.writes import Enter, Put, Record
from baton.domain.views.event_log import ASSET_NAMING, ListEvents

Statement = tuple[str, Sequence[Any]]  # SQL and the values of its placeholders

STREAM_COLUMNS = "stream_id, version, position, event_type, payload::text, occurred_at, schema_version"
EVENT_COLUMNS = (
    "position, transaction_id::text::bigint, event_id, stream_type, stream_id, version, event_type, schema_version, "
    "payload::text, principal_id, command_name, correlation_id, causation_id, occurred_at, recorded_at, surface_id, "
    "approved_by"
)
SHORT = 64  # streams up to this length are read whole; of longer ones, only what is not overwritten
ENDLESS = frozenset({"Schedule"})  # streams that grow without end; an index finds their events by type
STREAM = "FROM events WHERE stream_type = %s AND stream_id = %s"
NAMED_STREAM = "FROM events WHERE stream_type = %(type)s AND stream_id = %(id)s"
VERSION_AT = f"(SELECT max(version) {NAMED_STREAM} AND occurred_at <= %(time)s)"
COMMITTED = "transaction_id < pg_snapshot_xmin(pg_current_snapshot())"  # nothing in flight comes before
AFTER_BOOKMARK = f"(transaction_id, position) > (%s::text::xid8, %s) AND {COMMITTED}"
COMMIT_ORDER = "events.transaction_id, events.position"
"""With the name of the table: a column that is selected as a number would be ordered by that, without the index."""

LOAD_OF = f"""SELECT {EVENT_COLUMNS} FROM events WHERE stream_type = %s AND stream_id = ANY(%s::uuid[])
AND event_type = ANY(%s) ORDER BY stream_id, version"""
LOAD_PAST = f"SELECT {STREAM_COLUMNS} {NAMED_STREAM} AND version <= coalesce(%(version)s, {VERSION_AT}, 0) ORDER BY version"
LOAD_LATEST = f"""SELECT {EVENT_COLUMNS} {NAMED_STREAM} AND event_type = ANY(%(types)s) AND version <=
    coalesce(%(version)s, CASE WHEN %(time)s::timestamptz IS NULL THEN 2147483647 ELSE {VERSION_AT} END, 0)
ORDER BY version DESC LIMIT %(count)s"""
HISTORY = f"SELECT {EVENT_COLUMNS} {STREAM} AND version > %s ORDER BY version LIMIT %s"
FOLLOW = f"SELECT {EVENT_COLUMNS} FROM events WHERE {AFTER_BOOKMARK} ORDER BY {COMMIT_ORDER} LIMIT %s"
OF_ASSET = f"""position IN (
    SELECT position FROM events WHERE stream_type = 'Asset' AND stream_id = %s UNION SELECT position FROM events
    WHERE event_type IN ({", ".join(f"'{name}'" for name in ASSET_NAMING)}) AND ids_in(payload) @> ARRAY[%s::text]
)"""
AT_TIME = """SELECT transaction_id::text::bigint, position FROM events WHERE recorded_at >= %s
ORDER BY recorded_at, position LIMIT 1"""
PLACES = f"""SELECT transaction_id::text::bigint, position, stream_type, stream_id, version FROM events
WHERE {AFTER_BOOKMARK} ORDER BY {COMMIT_ORDER} LIMIT %s"""
FOLLOW_ONLY = f"""
WITH next AS MATERIALIZED (
    SELECT transaction_id AS tx, position AS at, event_type AS type FROM events
    WHERE {AFTER_BOOKMARK} ORDER BY {COMMIT_ORDER} LIMIT %s
)
SELECT {EVENT_COLUMNS} FROM events WHERE position IN (
    SELECT at FROM next WHERE type = ANY(%s) UNION (SELECT at FROM next ORDER BY tx DESC, at DESC LIMIT 1)
) ORDER BY {COMMIT_ORDER}"""
END = f"""SELECT transaction_id::text::bigint, position FROM events WHERE {COMMITTED}
ORDER BY events.transaction_id DESC, events.position DESC LIMIT 1"""
LAST_POSITION = "SELECT position FROM events ORDER BY transaction_id DESC, position DESC LIMIT 1"
AHEAD = f"""SELECT event_id FROM events WHERE {AFTER_BOOKMARK} AND event_type = ANY(%s)
ORDER BY {COMMIT_ORDER} LIMIT %s"""
NEWER = f"""
WITH known AS (SELECT key::uuid AS id, value::int AS known_version FROM json_each_text(%s)),
wanted AS (
    SELECT id, known_version FROM known
    UNION SELECT stream_id, 0 FROM lookups WHERE kind = %s AND key = %s AND stream_id NOT IN (SELECT id FROM known)
)
SELECT {STREAM_COLUMNS} FROM wanted JOIN events ON stream_type = %s AND stream_id = wanted.id AND version > known_version
ORDER BY stream_id, version"""
DESCENDANTS = """
WITH RECURSIVE below (depth, id) AS (
    SELECT 1, stream_id FROM lookups WHERE kind = %(kind)s AND key = %(key)s
    UNION ALL
    SELECT depth + 1, stream_id FROM below, LATERAL (
        SELECT stream_id FROM lookups WHERE kind = %(kind)s AND key = below.id::text OFFSET 0
    ) AS further WHERE depth < %(max_depth)s
)
SELECT depth, id FROM below ORDER BY depth, id"""
EVENT = f"SELECT {EVENT_COLUMNS} FROM events WHERE event_id = %s"
LOCATE = "SELECT transaction_id::text::bigint, position FROM events WHERE position <= %s ORDER BY position DESC LIMIT 1"
PASSED = """SELECT (b.transaction_id, b.position) >= (e.transaction_id, e.position)
FROM bookmarks b, events e WHERE b.follower = %s AND e.position = %s"""
APPEND = """INSERT INTO events (event_id, stream_type, stream_id, version, event_type, schema_version, payload, principal_id,
    command_name, correlation_id, causation_id, occurred_at, surface_id{}) VALUES {} RETURNING position"""
WAIT_FOR_GATED_COMMAND = "pg_advisory_xact_lock_shared(hashtextextended('gates', 0))"
RELEASE = "DELETE FROM claims WHERE kind = %s AND key = %s AND holder_id = %s"
CLAIM = "INSERT INTO claims VALUES (%s, %s, %s)"
ENLIST = "INSERT INTO lookups VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
DELIST = "DELETE FROM lookups WHERE kind = %s AND key = %s AND stream_id = %s"
CLAIM_KEY = """
INSERT INTO idempotency AS held (principal_id, key, surface_id, command_name, command_hash, locked_at, created_at)
VALUES (%(principal_id)s, %(key)s, %(surface_id)s, %(command_name)s, %(fingerprint)s, %(claimed_at)s, %(claimed_at)s)
ON CONFLICT (principal_id, key, surface_id) DO UPDATE
SET command_name = excluded.command_name, command_hash = excluded.command_hash, locked_at = excluded.locked_at
WHERE held.locked_at < %(stale_before)s RETURNING true"""
KEY = "principal_id = %s AND key = %s AND surface_id = %s"
STORED_KEY = f"SELECT command_hash, result::text, position FROM idempotency WHERE {KEY}"
RELEASE_KEY = f"DELETE FROM idempotency WHERE {KEY} AND locked_at = %s"


def _names(stream_type: str, flag: str, *, having: bool = True) -> list[str]:
    events = REGISTRY.aggregates[stream_type].events
    return sorted(name for name, event in events.items() if getattr(event, flag) is having)


def _quoted_list(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


@cache
def fold_columns(stream_type: str) -> str:
    """Return the columns that a fold needs; the payload of an event that changes no state stays in the database."""
    inert = _quoted_list(_names(stream_type, "inert"))
    payload = f"CASE WHEN event_type IN ({inert}) THEN '{{}}' ELSE payload::text END" if inert else "payload::text"
    return STREAM_COLUMNS.replace("payload::text", payload)


def plain_array(texts: Iterable[str]) -> str:
    """Return an array as the database reads it, of texts that need no quotes; psycopg takes its time for thousands."""
    return f"{{{','.join(texts)}}}"


def id_array(ids: Iterable[UUID]) -> str:
    """Return an array of ids."""
    return plain_array(id.hex for id in ids)


def text_array(texts: Iterable[str]) -> str:
    """Return an array of any texts."""
    return plain_array('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts)


@cache
def short_stream(stream_type: str) -> str:
    """Return the query of a whole stream, and one event more than a short one has."""
    return f"SELECT {fold_columns(stream_type)} {STREAM} ORDER BY version LIMIT {SHORT + 1}"


@cache
def many_streams(stream_type: str) -> str:
    where = "stream_type = %s AND stream_id = ANY(%s::uuid[])"
    return f"SELECT {fold_columns(stream_type)} FROM events WHERE {where} ORDER BY stream_id, version"


@cache
def search(query: ListEvents, bookmark: Bookmark, limit: int) -> Statement:
    """Return the query of the next events in a query's order that its ids ask for."""
    direction, behind = ("DESC", "<") if query.order is Order.DESC else ("ASC", ">")
    conditions = [f"(transaction_id, position) {behind} (%s::text::xid8, %s)", COMMITTED]
    values: list[Any] = [str(bookmark.transaction_id), bookmark.position]
    for column in ("principal_id", "correlation_id"):
        if (id := getattr(query, column)) is not None:
            conditions.append(f"{column} = %s")
            values.append(id)
    if query.asset_id is not None:
        conditions.append(OF_ASSET)
        values += [query.asset_id, str(query.asset_id)]
    order = f"events.transaction_id {direction}, events.position {direction}"
    return f"SELECT {EVENT_COLUMNS} FROM events WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT %s", [*values, limit]


def known_streams(stream_type: str) -> str:
    """Return the query of streams from a version of each on."""
    wanted = "unnest(%s::uuid[], %s::int[]) AS wanted (id, known_version)"
    stream = f"stream_type = '{stream_type}' AND stream_id = id AND version >= known_version"
    return f"SELECT {fold_columns(stream_type)} FROM {wanted} JOIN events ON {stream} ORDER BY stream_id, version"


@cache
def long_stream(stream_type: str) -> str:
    """Return the query of a long stream without its overwritten events."""
    columns, names = fold_columns(stream_type), _quoted_list(_names(stream_type, "overwrites"))
    if not names:
        return f"SELECT {columns} {NAMED_STREAM} ORDER BY version"
    latest = f"SELECT max(version) {NAMED_STREAM} AND event_type IN ({names}) GROUP BY event_type"
    kept = f"(version = 1 OR event_type NOT IN ({names}) OR version IN ({latest}))"
    return f"SELECT {columns} {NAMED_STREAM} AND {kept} ORDER BY version"


@cache
def endless_stream(stream_type: str) -> str:
    """Return the same with the types as literals, so that the planner uses the index that finds events by type."""
    columns = fold_columns(stream_type)
    stream = f"FROM events WHERE stream_type = '{stream_type}' AND stream_id = %(id)s"
    kept = f"SELECT {columns} {stream} AND event_type IN ({_quoted_list(_names(stream_type, 'overwrites', having=False))})"
    newest = "(SELECT {} {} AND event_type = '{}' ORDER BY version DESC LIMIT 1)"
    latest = [newest.format(columns, stream, name) for name in _names(stream_type, "overwrites")]
    return f"{' UNION ALL '.join([kept, *latest])} ORDER BY version"


@cache
def newer_than_rows(summary: type[Summary], stream_type: str) -> str:
    """Return the query of events behind known versions, of streams that are new or whose rows do not show a version yet."""
    wanted = "unnest(%s::uuid[], %s::int[], %s::int[]) AS wanted (id, known_version, reached)"
    shown = f"SELECT FROM {summary.relation} WHERE {next(iter(summary.model_fields))} = id AND stream_version >= reached"
    return (
        f"SELECT {fold_columns(stream_type)} FROM {wanted} "
        f"JOIN events ON stream_type = '{stream_type}' AND stream_id = id AND version > known_version "
        f"WHERE known_version > 0 OR NOT EXISTS ({shown}) ORDER BY stream_id, version"
    )


def append_statement(batch: Batch) -> Statement:
    """Return the one statement that writes everything of a batch and selects its highest position."""
    events = event_values(batch)
    writes: list[Statement] = [
        *((RELEASE, (release.kind, release.key, holder)) for release, holder in batch.releases),
        *((CLAIM, (claim.kind, claim.key, holder)) for claim, holder in batch.claims),
        *((ENLIST, (enlist.kind, enlist.key, id)) for enlist, id in batch.enlistments),
        *((DELIST, (delist.kind, delist.key, id)) for delist, id in batch.delistments),
        *map(put_statement, batch.puts),
        *((f"DELETE FROM {drop.record.relation} {_where(drop.where)}", list(drop.where.values())) for drop in batch.drops),
        *map(entries_statement, batch.entries),
    ]
    parts = [(f"write{number}", statement) for number, statement in enumerate(writes)]
    answer = "NULL::bigint"
    if events:
        placeholders = f"({', '.join(['%s'] * len(events[0]))})"
        approved = "" if batch.call.approved_by is None else ", approved_by"
        sql = APPEND.format(approved, ", ".join([placeholders] * len(events)))
        parts.insert(0, ("appended", (sql, [value for row in events for value in row])))
        answer = "(SELECT max(position) FROM appended)"
    if batch.outcome is not None:
        parts.append(("finished", outcome_statement(*batch.outcome, appended=bool(events))))
        answer += ", require_key_claim(EXISTS (SELECT FROM finished))"
    values = [value for _, (_, values) in parts for value in values]
    if batch.facts is not None:
        answer += ", require_unchanged(%s, %s, %s, %s)"
        values += facts_values(batch.facts, {(append.stream_type, append.stream_id) for append in batch.appends})
    elif any(append.stream_type in GATE_STREAMS for append in batch.appends):
        answer += f", {WAIT_FOR_GATED_COMMAND}"
    if batch.lease is not None:
        answer += ", require_lease(%s, %s)"
        values += batch.lease
    expressions = ", ".join(f"{name} AS ({sql})" for name, (sql, _) in parts)
    return f"WITH {expressions} SELECT {answer}", values


def facts_values(facts: FactsRead, own: Container[tuple[str, UUID]]) -> list[object]:
    """Return what `require_unchanged` compares: the streams that were read, but for the batch's own, and the look-ups. It
    waits for appends that may change them, and later ones wait for the batch to be committed."""
    streams = [read for read in facts.streams if read[:2] not in own]
    members = [{"kind": kind, "keys": keys, "ids": ids} for kind, keys, ids in facts.members]
    return [*([read[place] for read in streams] for place in range(3)), Jsonb(members, dumps=orjson.dumps)]


def event_values(batch: Batch) -> list[tuple[object, ...]]:
    call = batch.call
    caller = (call.principal_id, batch.command_name, call.correlation_id, call.causation_id)
    approval = () if call.approved_by is None else (call.approved_by,)  # the fewer values, the more events in one statement
    envelope = (*caller, call.now, call.surface_id, *approval)
    return [
        (event_id, *stream, version, type(event).__name__, event.schema_version, event.payload(), *envelope)
        for append in batch.appends
        for stream in [(append.stream_type, append.stream_id)]
        for version, (event_id, event) in enumerate(append.events, append.after + 1)
    ]


def put_statement(put: Put) -> Statement:
    """Return the statement that puts a record, over an equal key unless that is a rival's."""
    record = put.record
    names = [column.name for column in fields(record)]  # type: ignore[arg-type]
    insert = f"INSERT INTO {record.relation} ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})"
    if put.rival is None:
        changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in record.key)
        insert += f" ON CONFLICT ({', '.join(record.key)}) DO UPDATE SET {changes}"
    values = (getattr(record, name) for name in names)
    return insert, [Jsonb(value, dumps=orjson.dumps) if isinstance(value, dict | list) else value for value in values]


def entries_statement(enter: Enter) -> Statement:
    """Return the statement that adds rows of one logbook as a single document; the store sets when it recorded them."""
    entry = type(enter.entries[0])
    names = ", ".join(name for name in entry.model_fields if name != "recorded_at")
    rows = f"SELECT {names} FROM json_populate_recordset(NULL::{entry.relation}, %s)"
    insert = f"INSERT INTO {entry.relation} ({names}) {rows}"
    if enter.rival is None:
        insert += " ON CONFLICT DO NOTHING"
    return insert, [entries_adapter(entry).dump_json(list(enter.entries)).decode()]


@cache
def entries_adapter(entry: type[Entry]) -> TypeAdapter[list[Entry]]:
    return TypeAdapter(list[entry])  # type: ignore[valid-type]


@cache
def record_adapter(record: type[Record]) -> TypeAdapter[Any]:
    return TypeAdapter(record)


def scrub_statement(record: type[Record], where: Mapping[str, object]) -> Statement | None:
    """Return what blanks rows before their deletion, so that no committed row version holds their text; None if no text."""
    texts = {
        column.name: "''" if column.type is str else "NULL"
        for column in fields(record)  # type: ignore[arg-type]
        if column.name not in (*record.key, *where) and column.type in (str, str | None)
    }
    if not texts:
        return None
    changes = ", ".join(f"{name} = {blank}" for name, blank in texts.items())
    return f"UPDATE {record.relation} SET {changes} {_where(where)}", list(where.values())


def _where(values: Mapping[str, object]) -> str:
    return f"WHERE {' AND '.join(f'{name} = %s' for name in values)}"


def outcome_statement(claim: KeyClaim, executed: CommandResult, *, appended: bool) -> Statement:
    """Return what stores an answer with its events, so that a crash cannot leave a command done but forgotten. It updates no
    row when the claim went stale and was taken over; `require_key_claim` then raises, and nothing is written."""
    position = "coalesce((SELECT max(position) FROM appended), %s)" if appended else "%s"
    update = f"UPDATE idempotency SET result = %s, position = {position}, locked_at = NULL"
    result = orjson.dumps({"status": executed.status, "body": executed.body}).decode()
    values = [result, executed.position, claim.principal_id, claim.key, claim.surface_id, claim.claimed_at]
    return f"{update} WHERE {KEY} AND locked_at = %s RETURNING true", values


def page_statement(summary: type[Summary], query: ListQuery, where: Sequence[Where]) -> tuple[str, list[Any], list[str]]:
    """Return the query of one keyset page and one row more, its values, and the names of its columns."""
    names = list(summary.model_fields)
    shown = [name for name in names if name not in summary.hidden()]
    conditions, values = [], []
    for condition in where:
        test, convert = TESTS[condition.test]
        conditions.append(test.format(condition.column))
        values.append(convert(condition.value) if convert else condition.value)
    descending = query.order is Order.DESC
    if (after := query.after()) is not None:
        conditions.append(f"({summary.time}, {names[0]}) {'<' if descending else '>'} (%s, %s)")
        values += [after.time, after.id]
    direction = " DESC" if descending else ""
    sql = (
        f"SELECT {', '.join(shown)} FROM {summary.relation}{' WHERE ' if conditions else ''}{' AND '.join(conditions)} "
        f"ORDER BY {summary.time}{direction}, {names[0]}{direction} LIMIT %s"
    )
    return sql, [*values, query.limit + 1], shown


def record_test(name: str, wanted: object) -> str:
    """Return the condition on a column of a mutable relation: equality, any of a tuple, or a part of a text."""
    equality = "{} = ANY(%s)" if isinstance(wanted, tuple) else "{} = %s"
    return (PART if isinstance(wanted, TextPart) else equality).format(name)


def record_value(wanted: object) -> Any:
    """Return the value of such a condition."""
    match wanted:
        case TextPart(text):
            return text
        case tuple():
            return list(wanted)
    return wanted


def _plain_values(values: Any) -> list[Any]:
    return [getattr(value, "value", value) for value in values]


PART = "strpos(lower({}), lower(%s)) > 0"  # Without a pattern, so that no character of the text means something else.
TESTS: dict[str, tuple[str, Callable[[Any], Any] | None]] = {
    "is": ("{} = %s", None),
    "in": ("{} = ANY(%s)", _plain_values),
    "not_in": ("{} <> ALL(%s)", list),
    "has": ("{} @> %s", lambda value: [value]),
    "has_any": ("{} && %s", _plain_values),
    "contains": ("{} @> %s", Jsonb),
    "part": (PART, None),
    "from": ("{} >= %s", None),
    "to": ("{} <= %s", None),
    "before": ("{} < %s", None),
    "after": ("{} > %s", None),
    "after_or_null": ("({0} IS NULL OR {0} > %s)", None),
    "is_null": ("({} IS NULL) = %s", None),
}
