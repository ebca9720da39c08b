"""The ledger and progress rows on PostgreSQL: one statement before a step checks and marks, one after it stores."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any
from uuid import UUID

import orjson
from psycopg.sql import SQL, Identifier
from psycopg.types.json import Jsonb

from baton.application.conduct import ledger
from baton.domain.conduct.messages import Mark, StepPlace
from baton.domain.conduct.plan_progress import PlacedPlanNews
from baton.domain.conduct.progress import ConductPhase, FilledSlot, RunWait, WaitingFor
from baton.domain.procedure.activity_logbook import Activity
from baton.domain.shared.writes import Record
from baton.infrastructure.postgres.statements import entries_adapter, record_adapter
from baton.infrastructure.postgres.store import PostgresStore

ENTRIES = Activity.relation
COLUMNS = ", ".join(name for name in Activity.model_fields if name != "recorded_at")
LIVE = "procedure_id = %(procedure_id)s AND conduct_id = %(conduct_id)s AND phase <> 'Ended'"
MOVED = """EXISTS (SELECT FROM json_to_recordset(%(watched)s::json) AS read (type text, id uuid, version int)
JOIN events ON stream_type = type AND stream_id = id AND events.version > read.version)"""
"""Whether a stream that is watched has a newer version than was read."""
OF_LIST = f"""FROM {ENTRIES}
WHERE conduct_id = %(conduct_id)s AND iteration_index = %(iteration_index)s AND closing = %(closing)s"""
HERE = f"{OF_LIST} AND step_index = %(step_index)s"
PASSED = f"""coalesce((SELECT bool_or(mark = 'outcome') AND bool_and(closing OR payload ->> 'result' <> 'failed') {OF_LIST}
AND step_index = %(step_index)s - %(before)s AND mark IN ('outcome', 'deposit')), false)"""
"""Whether the step at the place, or the one before it, has an outcome that lets the walk continue."""
BEGIN = f"""
WITH settled AS (
    INSERT INTO {ENTRIES} ({COLUMNS}) SELECT {COLUMNS} FROM json_populate_record(NULL::{ENTRIES}, %(row)s::json)
    WHERE %(row)s::json IS NOT NULL ON CONFLICT DO NOTHING RETURNING payload
),
live AS (SELECT phase, active_at, effect_id, effect_beat_at FROM conduct_progress WHERE {LIVE} FOR NO KEY UPDATE),
found AS (
    SELECT %(judged)s AND NOT coalesce((SELECT phase = 'Closing' FROM live) = %(closing)s
            AND (%(first)s OR %(follows)s AND EXISTS (TABLE settled) OR {PASSED}), false) AS out_of_turn,
        {MOVED} OR NOT monitor_leads(%(monitor)s) AS moved,
        (SELECT active_at FROM live) IS DISTINCT FROM (SELECT active_at FROM conduct_progress WHERE {LIVE}) AS overtaken,
        coalesce((SELECT extract(epoch FROM clock_timestamp() - active_at) > %(pause)s::float8 FROM live), false) AS late,
        (SELECT json_agg(json_build_array(event_id, mark, attempt, payload,
            extract(epoch FROM clock_timestamp() - recorded_at)::float8) ORDER BY attempt) {HERE}) AS rows
),
marked AS (
    INSERT INTO {ENTRIES} ({COLUMNS})
    SELECT {COLUMNS} FROM json_populate_record(NULL::{ENTRIES}, %(marker)s::json)
    WHERE %(marker)s::json IS NOT NULL AND EXISTS (TABLE live) AND EXISTS (
        SELECT FROM found WHERE NOT late AND (rows IS NULL OR %(again)s) AND NOT overtaken AND NOT moved AND NOT out_of_turn
    ) AND NOT EXISTS (SELECT {HERE} AND mark = 'outcome')
    ON CONFLICT DO NOTHING RETURNING event_id
),
shown AS (
    UPDATE conduct_progress SET phase = CASE WHEN %(closing)s THEN 'Closing' ELSE 'Walking' END, waiting_for = NULL,
        waiting_until = NULL, step_index = %(step_index)s, iteration_index = nullif(%(iteration_index)s, 0),
        heartbeat_at = clock_timestamp(),
        active_at = CASE WHEN EXISTS (TABLE marked) THEN clock_timestamp() ELSE active_at END,
        effect_id = coalesce((SELECT event_id FROM marked), effect_id),
        effect_beat_at = CASE WHEN EXISTS (TABLE marked) THEN clock_timestamp() ELSE effect_beat_at END
    WHERE {LIVE} AND NOT (SELECT out_of_turn FROM found)
)
SELECT EXISTS (TABLE live), out_of_turn, late, rows, EXISTS (TABLE marked),
    (SELECT effect_id FROM live), (SELECT extract(epoch FROM clock_timestamp() - effect_beat_at)::float8 FROM live),
    moved, overtaken, (SELECT payload FROM settled)
FROM found"""
BEGIN = " ".join(BEGIN.split())  # the driver parses longer statements again each time
"""A statement that waited for the lock sees the locked row as the other left it, but everything else as it was before: then
it is overtaken, has marked nothing and must run again."""
SETTLE = f"""
WITH entered AS (
    INSERT INTO {ENTRIES} ({COLUMNS}) SELECT {COLUMNS} FROM json_populate_record(NULL::{ENTRIES}, %(row)s::json)
    ON CONFLICT DO NOTHING RETURNING payload
),
moved AS (
    UPDATE conduct_progress SET active_at = clock_timestamp(), heartbeat_at = clock_timestamp() WHERE {LIVE}
)
SELECT payload FROM entered"""
PASSED_STEPS = f"""SELECT step_index {OF_LIST} AND step_index >= %(step_index)s AND step_index < %(step_index)s + %(count)s
AND mark IN ('outcome', 'deposit') GROUP BY step_index
HAVING bool_or(mark = 'outcome') AND bool_and(closing OR payload ->> 'result' <> 'failed') ORDER BY step_index"""
HAS_PASSED = f"SELECT {PASSED}"
COUNT_TAKEOVER = """UPDATE conducts SET takeover_count = takeover_count + 1
WHERE conduct_id = %(conduct_id)s RETURNING conduct_id"""
BEGUN_BEFORE = f"""SELECT EXISTS (
    SELECT FROM {ENTRIES} begun WHERE procedure_id = %(procedure_id)s AND step_index = %(step_index)s AND NOT closing
    AND mark IS NOT NULL AND step_kind IN ('action', 'compute') AND conduct_id <> %(conduct_id)s
    AND payload ->> 'result' <> 'skipped' AND NOT EXISTS (
        SELECT FROM {ENTRIES} verdict WHERE (verdict.mark = 'verdict' AND verdict.payload ->> 'result' = 'not_done'
            OR verdict.mark = 'outcome' AND verdict.payload ->> 'begun' = 'false')
        AND (verdict.conduct_id, verdict.iteration_index, verdict.closing, verdict.step_index)
            = (begun.conduct_id, begun.iteration_index, begun.closing, begun.step_index)
    )
)"""
LEFT_UNDER_WAY = f"""SELECT payload FROM {ENTRIES} begun WHERE procedure_id = %(procedure_id)s
AND step_index = %(step_index)s AND NOT closing AND mark = 'in_flight' AND step_kind = 'action'
AND conduct_id <> %(conduct_id)s AND NOT EXISTS (
    SELECT FROM {ENTRIES} said WHERE said.mark IN ('outcome', 'verdict')
    AND (said.conduct_id, said.iteration_index, said.closing, said.step_index)
        = (begun.conduct_id, begun.iteration_index, begun.closing, begun.step_index)
) ORDER BY recorded_at DESC LIMIT 1"""
STORED = f"SELECT payload {HERE} AND mark = %(mark)s"
BEAT = f"""UPDATE conduct_progress SET heartbeat_at = clock_timestamp(), plan_step = coalesce(%(news)s::json, plan_step),
    effect_beat_at = CASE WHEN effect_id = %(effect)s THEN clock_timestamp() ELSE effect_beat_at END
WHERE {LIVE} RETURNING {MOVED}"""
CLOSE = f"""UPDATE conduct_progress SET phase = 'Closing', waiting_for = NULL, heartbeat_at = clock_timestamp(),
    step_index = CASE WHEN phase = 'Closing' THEN step_index END
WHERE {LIVE} AND (phase = 'Closing' OR (%(may)s AND NOT {MOVED}))"""
IS_LIVE = f"SELECT EXISTS (SELECT FROM conduct_progress WHERE {LIVE})"
WAIT = f"""UPDATE conduct_progress SET phase = %(phase)s, waiting_for = %(for)s, waiting_until = %(until)s,
    heartbeat_at = clock_timestamp(), active_at = greatest(active_at, %(since)s::timestamptz)
WHERE {LIVE} AND phase <> 'Closing' RETURNING phase"""
SLOTS = f"""
WITH last AS (
    SELECT CASE WHEN %(iteration_index)s = 0 THEN
        (SELECT max(iteration_index) FROM {ENTRIES} WHERE conduct_id = %(conduct_id)s) ELSE %(iteration_index)s END AS pass
),
filled AS (
    SELECT * FROM conduct_slots WHERE procedure_id = %(procedure_id)s AND conduct_id = %(conduct_id)s
        AND iteration_index IN (%(iteration_index)s, (SELECT pass FROM last))
    UNION ALL
    SELECT * FROM conduct_slots WHERE %(boundary)s > 0 AND procedure_id = %(procedure_id)s AND conduct_id <> %(conduct_id)s
        AND NOT closing AND step_index < %(boundary)s
)
SELECT DISTINCT ON (slot, content ? 'artifact') * FROM filled ORDER BY slot, content ? 'artifact', recorded_at DESC"""
OUTCOMES = f"""
SELECT {", ".join(ledger.OutcomeRow._fields)} FROM {ENTRIES}
WHERE conduct_id = %(conduct_id)s AND mark IN ('outcome', 'deposit') AND {{}} ORDER BY closing, step_index, mark = 'deposit'
"""
ALL_OUTCOMES = OUTCOMES.format("(closing OR iteration_index = %(iteration_index)s)")
PASS_OUTCOMES = OUTCOMES.format("iteration_index = %(iteration_index)s AND NOT closing")
WRITTEN = f"""
WITH sent AS (
    SELECT event_id, payload ->> 'address' AS address,
        coalesce(payload #> '{{converted,value}}', payload -> 'value') AS value, recorded_at, 0 AS place,
        true AS confirmed, (payload -> 'post_reading')
            || jsonb_strip_nulls(jsonb_build_object('address', payload #> '{{verify,address}}')) AS reading FROM {ENTRIES}
    WHERE conduct_id = %(conduct_id)s AND mark = 'outcome' AND step_kind = 'setpoint'
        AND (payload ->> 'result' = 'ok' OR payload ? 'confirmed')
    UNION ALL
    SELECT event_id, payload ->> 'address', CASE WHEN payload ? 'unit'
        THEN to_jsonb(concat(payload ->> 'value', ' ', payload ->> 'unit')) ELSE payload -> 'value' END,
        recorded_at, 0, false, NULL FROM {ENTRIES} begun
    WHERE conduct_id = %(conduct_id)s AND mark = 'in_flight' AND step_kind = 'setpoint' AND NOT EXISTS (
        SELECT FROM {ENTRIES} ended
        WHERE (ended.conduct_id, ended.iteration_index, ended.closing, ended.step_index)
            = (begun.conduct_id, begun.iteration_index, begun.closing, begun.step_index) AND ended.mark = 'outcome'
        AND (ended.payload ->> 'result' = 'ok' OR (ended.attempt = begun.attempt AND NOT ended.payload ? 'sent'))
    )
    UNION ALL
    SELECT event_id, pair ->> 0, pair -> 1, recorded_at, behind + place, confirmed, NULL FROM {ENTRIES},
        LATERAL (VALUES (payload -> 'writes', 0, true), (payload -> 'unconfirmed', 1000000, false))
            AS sent (pairs, behind, confirmed),
        jsonb_array_elements(pairs) WITH ORDINALITY AS write (pair, place)
    WHERE conduct_id = %(conduct_id)s AND mark = 'outcome' AND step_kind = 'action'
),
dated AS (
    SELECT *, max(recorded_at) FILTER (WHERE confirmed) OVER (PARTITION BY address) AS confirmed_at
    FROM sent WHERE address IS NOT NULL
)
SELECT address,
    json_agg(json_build_array(value, event_id, reading) ORDER BY place DESC)
        FILTER (WHERE confirmed AND recorded_at = confirmed_at),
    json_agg(json_build_array(value, event_id, reading) ORDER BY recorded_at, place)
        FILTER (WHERE NOT confirmed AND recorded_at >= coalesce(confirmed_at, '-infinity'))
FROM dated GROUP BY address ORDER BY min(recorded_at), (array_agg(place ORDER BY recorded_at))[1]"""
"""An attempt at a setpoint may have been written where it has no outcome, or where its own outcome says that it was sent.
What it was sent as is known from its outcome; before, it is given with the unit that the step counts in."""
KINDS = f"""SELECT DISTINCT payload ->> 'actuation_kind' FROM {ENTRIES}
WHERE conduct_id = %(conduct_id)s AND NOT closing AND payload ? 'actuation_kind'"""
NOTE = """UPDATE run_conduct_progress SET phase = CASE WHEN %(waiting)s::jsonb IS NULL THEN 'Walking' ELSE 'Waiting' END,
    phase_index = %(index)s, waiting = %(waiting)s, heartbeat_at = clock_timestamp()
WHERE run_id = %(run)s AND conduct_id = %(conduct)s AND phase <> 'Ended'"""
STALL = "UPDATE {} SET stalled_at = clock_timestamp() WHERE conduct_id = %s AND phase <> 'Ended'"


class PostgresLedger:
    """Answers each request with one statement."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def begin(self, request: ledger.BeginRequest) -> ledger.BeginResult:
        values, result = begin_values(request), None
        while result is None:
            result = begin_result((await self._rows(BEGIN, values))[0])
        return result

    async def settle_and_begin(
        self, row: Activity, request: ledger.BeginRequest
    ) -> tuple[Mapping[str, Any], ledger.BeginResult]:
        (found,) = await self._rows(BEGIN, begin_values(request, row))
        settled, result = found[-1], begin_result(found)
        if result is None or (settled is None and result.out_of_turn):  # what another has stored meanwhile was not seen
            result = await self.begin(request)
        return settled if settled is not None else await self._stored_payload(row), result

    async def was_begun_before(self, place: StepPlace) -> bool:
        ((begun,),) = await self._rows(BEGUN_BEFORE, place.model_dump())
        return bool(begun)

    async def left_under_way(self, place: StepPlace) -> Mapping[str, Any] | None:
        rows = await self._rows(LEFT_UNDER_WAY, place.model_dump())
        return rows[0][0] if rows else None

    async def count_takeover(self, conduct_id: UUID) -> None:
        await self._rows(COUNT_TAKEOVER, {"conduct_id": conduct_id})

    async def passed_count(self, place: StepPlace, count: int) -> int:
        rows = await self._rows(PASSED_STEPS, {**place.model_dump(), "count": count})
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1][0], enumerate(rows, place.step_index)))

    async def has_passed(self, place: StepPlace) -> bool:
        ((passed,),) = await self._rows(HAS_PASSED, {**place.model_dump(), "before": 0})
        return bool(passed)

    async def settle(self, row: Activity) -> Mapping[str, Any]:
        rows = await self._rows(SETTLE, settle_values(row))
        payload: Mapping[str, object] = rows[0][0] if rows else await self._stored_payload(row)
        return payload

    async def _stored_payload(self, row: Activity) -> Mapping[str, Any]:
        """Return what was stored before for the same mark at the same place."""
        ((payload,),) = await self._rows(STORED, {**settle_values(row), "mark": row.mark})
        found: Mapping[str, object] = payload
        return found

    async def beat(
        self,
        place: StepPlace,
        effect_id: UUID | None,
        watched: ledger.StreamVersions = (),
        news: PlacedPlanNews | None = None,
    ) -> ledger.BeatReply:
        told = None if news is None else news.model_dump_json()
        rows = await self._rows(BEAT, {**place.model_dump(), **watch_values(watched), "effect": effect_id, "news": told})
        return ledger.BeatReply(True, rows[0][0]) if rows else ledger.BeatReply(False)

    async def begin_closing(
        self, procedure_id: UUID, conduct_id: UUID, watched: ledger.StreamVersions | None = ()
    ) -> ledger.BeatReply:
        values = {"procedure_id": procedure_id, "conduct_id": conduct_id, **watch_values(watched or ())}
        values["may"] = watched is not None
        async with self._store.connection(writing=True) as connection:
            if (await connection.execute(CLOSE, values)).rowcount:
                return ledger.BeatReply(True)
            row = await (await connection.execute(IS_LIVE, values)).fetchone()
        return ledger.BeatReply(bool(row and row[0]), moved=True)

    async def mark_waiting(
        self, procedure_id: UUID, conduct_id: UUID, waiting_for: WaitingFor, until: datetime | None
    ) -> None:
        values = {"phase": ConductPhase.WAITING.value, "for": waiting_for.value, "until": until, "since": None}
        await self._rows(WAIT, {"procedure_id": procedure_id, "conduct_id": conduct_id, **values})

    async def mark_walking(self, procedure_id: UUID, conduct_id: UUID, since: datetime | None = None) -> None:
        values = {"phase": ConductPhase.WALKING.value, "for": None, "until": None, "since": since}
        await self._rows(WAIT, {"procedure_id": procedure_id, "conduct_id": conduct_id, **values})

    async def slots(self, procedure_id: UUID, conduct_id: UUID, iteration_index: int, boundary: int) -> Sequence[FilledSlot]:
        values = {"procedure_id": procedure_id, "conduct_id": conduct_id, "iteration_index": iteration_index}
        async with self._store.connection() as connection:
            cursor = await connection.execute(SLOTS, {**values, "boundary": boundary})
            names = [column.name for column in cursor.description or ()]
            adapter = record_adapter(FilledSlot)
            return [adapter.validate_python(dict(zip(names, row, strict=True))) for row in await cursor.fetchall()]

    async def tally(self, conduct_id: UUID, iteration_index: int, *, of_pass: bool = False) -> ledger.Tally:
        values = {"conduct_id": conduct_id, "iteration_index": iteration_index}
        rows = [ledger.OutcomeRow(*row) for row in await self._rows(PASS_OUTCOMES if of_pass else ALL_OUTCOMES, values)]
        if of_pass:
            kinds = [row.payload["actuation_kind"] for row in rows if row.payload.get("actuation_kind") is not None]
            return ledger.tally_rows(rows, (), kinds)
        written = [(address, (known or ())[:1], tried or ()) for address, known, tried in await self._rows(WRITTEN, values)]
        return ledger.tally_rows(rows, written, [kind for (kind,) in await self._rows(KINDS, values)])

    async def _rows(self, statement: str, values: Mapping[str, object]) -> list[Any]:
        async with self._store.connection(writing=True) as connection:
            return await (await connection.execute(statement, values)).fetchall()


class PostgresConductProgress:
    """Updates the progress rows of live conducts: where those of runs are, and with which the engine fails."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def mark_stalled(self, progress: type[Record], conduct_id: UUID) -> None:
        async with self._store.connection(writing=True) as connection:
            await connection.execute(SQL(STALL).format(Identifier(progress.relation)), (conduct_id,))

    async def note(self, run_id: UUID, conduct_id: UUID, phase_index: int, waiting: RunWait | None) -> None:
        detail = None if waiting is None else Jsonb(waiting.model_dump(mode="json"))
        async with self._store.connection(writing=True) as connection:
            await connection.execute(NOTE, {"run": run_id, "conduct": conduct_id, "index": phase_index, "waiting": detail})


def begin_values(request: ledger.BeginRequest, settled: Activity | None = None) -> dict[str, Any]:
    """Return the values of BEGIN, with the outcome of the step before where that is settled too; no step is late then."""
    pause = request.longest_pause if settled is None else None
    return {
        **request.place.model_dump(),
        **watch_values(request.watched),
        "monitor": request.monitor_term,
        "pause": pause if pause is not None else float("inf"),
        "marker": None if request.marker is None else row_document(request.marker),
        "row": None if settled is None else row_document(settled),
        "follows": settled is not None and lets_follow(settled, request.place),
        "again": request.again,
        "judged": request.first is not None,
        "first": request.first is not False,
        "before": 1,
    }


def lets_follow(settled: Activity, place: StepPlace) -> bool:
    """Return whether an outcome is that of the step before a place, and lets the walk continue there."""
    before = place.model_copy(update={"step_index": place.step_index - 1})
    of_before = StepPlace.model_validate(settled, from_attributes=True) == before
    return of_before and (place.closing or settled.payload["result"] != "failed")


def begin_result(row: Any) -> ledger.BeginResult | None:
    """Return what BEGIN answered; None where it was overtaken and must run again."""
    live, out_of_turn, late, rows, marked, effect_id, silence, moved, overtaken, _ = row
    if live and overtaken:
        return None
    stored = tuple(ledger.StoredRow(UUID(id), *rest) for id, *rest in rows or ())
    last = next((one.event_id for one in reversed(stored) if one.mark == Mark.IN_FLIGHT), None)
    return ledger.BeginResult(
        live=live,
        moved=moved,
        out_of_turn=live and out_of_turn,
        late=late,
        rows=stored,
        marked=marked,
        silence=silence if last is not None and last == effect_id else None,
    )


def settle_values(row: Activity) -> dict[str, Any]:
    """Return the values of SETTLE."""
    assert row.conduct_id is not None, "a ledger row belongs to a conduct"
    assert row.step_index is not None, "a ledger row has its place"
    return {**StepPlace.model_validate(row, from_attributes=True).model_dump(), "row": row_document(row)}


def watch_values(watched: ledger.StreamVersions) -> dict[str, Any]:
    """Return the streams that are watched, as one document."""
    document = orjson.dumps([{"type": name, "id": id, "version": version} for name, id, version in watched])
    return {"watched": document.decode()}


def row_document(row: Activity) -> str:
    return entries_adapter(Activity).dump_json([row]).decode()[1:-1]
