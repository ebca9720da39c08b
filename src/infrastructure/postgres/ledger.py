"""The ledger and progress rows on PostgreSQL: one statement before a step checks and marks, one after it stores."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.sql import SQL, Identifier
from psycopg.types.json import Jsonb

from baton.application.conduct import ledger
from baton.application.ports import FoldedStanding
from baton.domain.operation.conduct.messages import Mark, StepPlace
from baton.domain.operation.conduct.progress import ABORT_ASKED, HOLD_ASKED, ConductPhase, FilledSlot, RunWait, WaitingFor
from baton.domain.operation.procedure.activity_logbook import Activity
from baton.domain.operation.procedure.procedure import PendingRequest, ProcedureIterationEnded, ProcedureIterationStarted
from baton.domain.run import run as runs
from baton.domain.run.run import RunStatus
from baton.domain.shared.writes import Record
from baton.infrastructure.postgres.statements import entries_adapter, record_adapter
from baton.infrastructure.postgres.store import PostgresStore

STATUS_AFTER = {event.__name__: RunStatus.RUNNING for event in (runs.RunStarted, runs.RunResumed)}  # of a run, by event
STATUS_AFTER |= {event.__name__: status for event, status in runs.ENDINGS.items()}
STATUS_AFTER[runs.RunHeld.__name__] = RunStatus.HELD
REQUESTS = {ABORT_ASKED: PendingRequest.ABORT, HOLD_ASKED: PendingRequest.HOLD}

ENTRIES = Activity.relation
COLUMNS = ", ".join(name for name in Activity.model_fields if name != "recorded_at")
LIVE = "procedure_id = %(procedure_id)s AND conduct_id = %(conduct_id)s AND phase <> 'Ended'"
ASKED = f"""(SELECT kind FROM lookups WHERE kind = ANY(%(asks)s) AND key = %(conduct_id)s::text
AND stream_id = %(procedure_id)s::uuid ORDER BY kind = '{ABORT_ASKED}' DESC LIMIT 1)"""  # an abort counts before a hold
RUN = """(SELECT event_type FROM events WHERE stream_type = 'Run' AND stream_id = %(run)s::uuid
AND event_type = ANY(%(run_events)s) ORDER BY version DESC LIMIT 1)"""
LATEST = "(SELECT max(version) FROM events WHERE stream_type = '{}' AND stream_id = %(principal_id)s::uuid)"
MOVED = f"""(coalesce({LATEST.format("Actor")} > %(actor_version)s::bigint, false)
OR coalesce({LATEST.format("Agent")} > %(agent_version)s::bigint, false))"""
OF_LIST = f"""FROM {ENTRIES}
WHERE conduct_id = %(conduct_id)s AND iteration_index = %(iteration_index)s AND closing = %(closing)s"""
HERE = f"{OF_LIST} AND step_index = %(step_index)s"
PASSED = f"""(EXISTS (SELECT {OF_LIST} AND step_index = %(step_index)s - %(before)s AND mark = 'outcome'
    AND (closing OR payload ->> 'result' <> 'failed'))
AND (%(closing)s OR NOT EXISTS (SELECT {OF_LIST} AND step_index = %(step_index)s - %(before)s AND mark = 'deposit'
    AND payload ->> 'result' = 'failed')))"""
"""Whether the step at the place, or the one before it, has an outcome that lets the walk continue."""
PASS_STARTED, PASS_ENDED = ProcedureIterationStarted.__name__, ProcedureIterationEnded.__name__
IN_PASS = f"""(%(iteration_index)s = 0 OR EXISTS (SELECT FROM (
    SELECT event_type, payload::jsonb AS payload FROM events WHERE stream_type = 'Procedure'
    AND stream_id = %(procedure_id)s::uuid AND event_type IN ('{PASS_STARTED}', '{PASS_ENDED}') ORDER BY version DESC LIMIT 1
) AS last WHERE event_type = '{PASS_STARTED}' AND (payload ->> 'iteration_index')::int = %(iteration_index)s
    AND coalesce(nullif(payload -> 'point', 'null'), '{{}}') = %(point)s::jsonb))"""
"""Whether the pass is the open one, and measures at this point."""
BEGIN = f"""
WITH live AS (SELECT phase, active_at, effect_id, effect_beat_at FROM conduct_progress WHERE {LIVE} FOR NO KEY UPDATE),
found AS (
    SELECT %(judged)s AND NOT coalesce((SELECT phase = 'Closing' FROM live) = %(closing)s
            AND (%(first)s OR {PASSED}) AND {IN_PASS}, false) AS out_of_turn,
        {ASKED} AS asked, {RUN} AS run, {MOVED} AS moved,
        (SELECT active_at FROM live) IS DISTINCT FROM (SELECT active_at FROM conduct_progress WHERE {LIVE}) AS overtaken,
        coalesce((SELECT extract(epoch FROM clock_timestamp() - active_at) > %(pause)s::float8 FROM live), false) AS late,
        %(once)s AND EXISTS (
            SELECT FROM {ENTRIES} WHERE procedure_id = %(procedure_id)s AND step_index = %(step_index)s AND NOT closing
            AND mark IS NOT NULL AND step_kind IN ('action', 'compute') AND conduct_id <> %(conduct_id)s
            AND payload ->> 'result' <> 'skipped'
        ) AS begun,
        (SELECT json_agg(json_build_array(event_id, mark, attempt, payload,
            extract(epoch FROM clock_timestamp() - recorded_at)::float8) ORDER BY attempt) {HERE}) AS rows
),
marked AS (
    INSERT INTO {ENTRIES} ({COLUMNS})
    SELECT {COLUMNS} FROM json_populate_record(NULL::{ENTRIES}, %(marker)s::json)
    WHERE %(marker)s::json IS NOT NULL AND EXISTS (SELECT FROM live) AND EXISTS (
        SELECT FROM found WHERE asked IS NULL AND coalesce(run <> ALL(%(blocks)s::text[]), true) AND NOT late AND NOT begun
        AND (rows IS NULL OR %(again)s) AND NOT overtaken AND NOT moved AND NOT out_of_turn
    ) AND NOT EXISTS (SELECT {HERE} AND mark = 'outcome')
    ON CONFLICT DO NOTHING RETURNING event_id
),
shown AS (
    UPDATE conduct_progress SET phase = CASE WHEN %(closing)s THEN 'Closing' ELSE 'Walking' END, waiting_for = NULL,
        waiting_until = NULL, step_index = %(step_index)s, iteration_index = nullif(%(iteration_index)s, 0),
        heartbeat_at = clock_timestamp(),
        active_at = CASE WHEN EXISTS (SELECT FROM marked) THEN clock_timestamp() ELSE active_at END,
        effect_id = coalesce((SELECT event_id FROM marked), effect_id),
        effect_beat_at = CASE WHEN EXISTS (SELECT FROM marked) THEN clock_timestamp() ELSE effect_beat_at END
    WHERE {LIVE} AND NOT (SELECT out_of_turn FROM found)
)
SELECT EXISTS (SELECT FROM live), out_of_turn, asked, run, late, begun, rows, EXISTS (SELECT FROM marked),
    (SELECT effect_id FROM live), (SELECT extract(epoch FROM clock_timestamp() - effect_beat_at)::float8 FROM live),
    moved, overtaken
FROM found"""
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
HAS_PASSED = f"SELECT {PASSED}"
STORED = f"SELECT payload {HERE} AND mark = %(mark)s"
BEAT = f"""UPDATE conduct_progress SET heartbeat_at = clock_timestamp(),
    effect_beat_at = CASE WHEN effect_id = %(effect)s THEN clock_timestamp() ELSE effect_beat_at END
WHERE {LIVE} RETURNING {ASKED}, {RUN}, {MOVED}"""
CLOSE = f"""UPDATE conduct_progress SET phase = 'Closing', waiting_for = NULL, heartbeat_at = clock_timestamp(),
    step_index = CASE WHEN phase = 'Closing' THEN step_index END
WHERE {LIVE} AND (phase = 'Closing' OR ({ASKED} IS NULL AND NOT coalesce({RUN} = ANY(%(blocks)s), false)))"""
LOOK = f"SELECT {ASKED}, {RUN}, EXISTS (SELECT FROM conduct_progress WHERE {LIVE})"
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
    SELECT event_id, payload ->> 'address' AS address, payload -> 'value' AS value, recorded_at, 0 AS place,
        true AS confirmed FROM {ENTRIES}
    WHERE conduct_id = %(conduct_id)s AND mark = 'outcome' AND step_kind = 'setpoint' AND payload ->> 'result' = 'ok'
    UNION ALL
    SELECT event_id, payload ->> 'address', payload -> 'value', recorded_at, 0, false FROM {ENTRIES} begun
    WHERE conduct_id = %(conduct_id)s AND mark = 'in_flight' AND step_kind = 'setpoint' AND NOT EXISTS (
        SELECT FROM {ENTRIES} ended
        WHERE (ended.conduct_id, ended.iteration_index, ended.closing, ended.step_index)
            = (begun.conduct_id, begun.iteration_index, begun.closing, begun.step_index) AND ended.mark = 'outcome'
        AND (ended.payload ->> 'result' = 'ok' OR (ended.attempt = begun.attempt AND NOT ended.payload ? 'sent'))
    )
    UNION ALL
    SELECT event_id, pair ->> 0, pair -> 1, recorded_at, behind + place, confirmed FROM {ENTRIES},
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
    json_agg(json_build_array(value, event_id) ORDER BY place DESC) FILTER (WHERE confirmed AND recorded_at = confirmed_at),
    json_agg(json_build_array(value, event_id) ORDER BY recorded_at, place)
        FILTER (WHERE NOT confirmed AND recorded_at >= coalesce(confirmed_at, '-infinity'))
FROM dated GROUP BY address ORDER BY min(recorded_at), (array_agg(place ORDER BY recorded_at))[1]"""
"""An attempt at a setpoint may have been written where it has no outcome, or where its own outcome says that it was sent."""
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
        precedence = request.precedence
        values = {
            **request.place.model_dump(),
            **signal_values(request.run_id, may_hold=request.hold_blocks),
            **standing_values(request.submitter),
            "pause": request.longest_pause if request.longest_pause is not None else float("inf"),
            "marker": None if request.marker is None or request.stood_down else row_document(request.marker),
            "point": json.dumps({} if precedence is None else dict(precedence.point)),
        }
        values |= {"blocks": run_events(request.run_blocks), "once": request.once, "again": request.again}
        values |= {"judged": precedence is not None, "first": precedence is None or precedence.first, "before": 1}
        live = overtaken = True
        while live and overtaken:
            (row,) = await self._rows(BEGIN, values)
            live, out_of_turn, asked, run, late, begun, rows, marked, effect_id, silence, moved, overtaken = row
        stored = tuple(ledger.StoredRow(UUID(id), *rest) for id, *rest in rows or ())
        last = next((one.event_id for one in reversed(stored) if one.mark == Mark.IN_FLIGHT), None)
        return ledger.BeginResult(
            live=live,
            out_of_turn=live and out_of_turn,
            asked=REQUESTS.get(asked),
            run=STATUS_AFTER.get(run),
            late=late,
            begun_before=begun,
            stood_down=request.stood_down,
            submitter_moved=moved,
            rows=stored,
            marked=marked,
            silence=silence if last is not None and last == effect_id else None,
        )

    async def has_passed(self, place: StepPlace) -> bool:
        ((passed,),) = await self._rows(HAS_PASSED, {**place.model_dump(), "before": 0})
        return bool(passed)

    async def settle(self, row: Activity) -> Mapping[str, Any]:
        assert row.conduct_id is not None, "a ledger row belongs to a conduct"
        assert row.step_index is not None, "a ledger row has its place"
        place = StepPlace.model_validate(row, from_attributes=True)
        rows = await self._rows(SETTLE, {**place.model_dump(), "row": row_document(row)})
        rows = rows or await self._rows(STORED, {**place.model_dump(), "mark": row.mark})
        payload: Mapping[str, Any] = rows[0][0]
        return payload

    async def beat(
        self, place: StepPlace, effect_id: UUID | None, run_id: UUID | None, submitter: FoldedStanding | None = None
    ) -> ledger.ConductSignals:
        values = {**place.model_dump(), **signal_values(run_id), **standing_values(submitter), "effect": effect_id}
        if not (rows := await self._rows(BEAT, values)):
            return ledger.ConductSignals(False)
        asked, run, moved = rows[0]
        stood_down = submitter is not None and submitter.objection is not None
        return ledger.ConductSignals(True, REQUESTS.get(asked), STATUS_AFTER.get(run), stood_down, submitter_moved=moved)

    async def begin_closing(self, request: ledger.ClosingRequest) -> ledger.ConductSignals:
        values = {"procedure_id": request.procedure_id, "conduct_id": request.conduct_id}
        values |= signal_values(request.run_id, may_hold=request.may_hold) | {"blocks": run_events(request.run_blocks)}
        while True:
            async with self._store.connection(writing=True) as connection:
                if (await connection.execute(CLOSE, values)).rowcount:
                    return ledger.ConductSignals(True)
                row = await (await connection.execute(LOOK, values)).fetchone()
            asked, run, live = row or (None, None, False)
            signals = ledger.ConductSignals(live, REQUESTS.get(asked), STATUS_AFTER.get(run))
            if not live or signals.asked is not None or signals.run in request.run_blocks:
                return signals

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

    async def _rows(self, statement: str, values: Mapping[str, Any]) -> list[Any]:
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


def run_events(statuses: frozenset[RunStatus]) -> list[str]:
    """Return the events after which a run has one of these statuses."""
    return [name for name, status in STATUS_AFTER.items() if status in statuses]


def signal_values(run_id: UUID | None, *, may_hold: bool = True) -> dict[str, Any]:
    return {"asks": list(REQUESTS) if may_hold else [ABORT_ASKED], "run": run_id, "run_events": list(STATUS_AFTER)}


def standing_values(submitter: FoldedStanding | None) -> dict[str, Any]:
    """Return the parameters that the submitter's streams are compared with."""
    return {name: submitter and getattr(submitter, name) for name in ("principal_id", "actor_version", "agent_version")}


def row_document(row: Activity) -> str:
    return entries_adapter(Activity).dump_json([row]).decode()[1:-1]
