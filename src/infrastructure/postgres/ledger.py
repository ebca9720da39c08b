"""The ledger on PostgreSQL: before a step one statement that looks and marks, after it one that stores."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from baton.application.conduct.ledger import ClosingRequest, BeginRequest, ConductSignals, BeginResult, StoredRow, Tally, tally_rows
from baton.application.ports import FoldedStanding
from baton.domain.kernel import Event
from baton.domain.operation.conduct.messages import Mark, StepPlace
from baton.domain.operation.conduct.progress import ABORT_ASKED, HOLD_ASKED, ConductPhase, FilledSlot, WaitingFor
from baton.domain.operation.procedure.activity_logbook import Activity
from baton.domain.operation.procedure.procedure import PendingRequest, ProcedureIterationEnded, ProcedureIterationStarted
from baton.domain.run import run as runs
from baton.domain.run.run import RunStatus
from baton.infrastructure.postgres.statements import entries_form, record_form
from baton.infrastructure.postgres.store import PostgresStore

RUN_TURNS: dict[type[Event], RunStatus] = {
    runs.RunStarted: RunStatus.RUNNING,
    runs.RunResumed: RunStatus.RUNNING,
    runs.RunHeld: RunStatus.HELD,
    **runs.ENDINGS,
}
"""The events that say where a run stands."""
STATUS_OF = {event.__name__: status for event, status in RUN_TURNS.items()}
REQUESTS = {HOLD_ASKED: PendingRequest.HOLD, ABORT_ASKED: PendingRequest.ABORT}

ENTRIES = Activity.relation
COLUMNS = ", ".join(name for name in Activity.model_fields if name != "recorded_at")
LIVE = "procedure_id = %(procedure)s AND conduct_id = %(conduct)s AND phase <> 'Ended'"
ASKED = (
    "(SELECT min(kind) FROM lookups WHERE kind = ANY(%(asks)s) AND key = %(conduct)s::text "
    "AND stream_id = %(procedure)s::uuid)"
)
RUN = (
    "(SELECT event_type FROM events WHERE stream_type = 'Run' AND stream_id = %(run)s::uuid "
    "AND event_type = ANY(%(turns)s) ORDER BY version DESC LIMIT 1)"
)
LATEST = "(SELECT max(version) FROM events WHERE stream_type = '{}' AND stream_id = %(principal)s::uuid)"
MOVED = (
    f"(coalesce({LATEST.format('Actor')} > %(actor_version)s::bigint, false) "
    f"OR coalesce({LATEST.format('Agent')} > %(agent_version)s::bigint, false))"
)
HERE = (
    f"FROM {ENTRIES} WHERE conduct_id = %(conduct)s AND iteration_index = %(iteration)s AND closing = %(closing)s "
    "AND step_index = %(index)s"
)
OF_LIST = f"FROM {ENTRIES} WHERE conduct_id = %(conduct)s AND iteration_index = %(iteration)s AND closing = %(closing)s"
PASSED = f"""(EXISTS (SELECT {OF_LIST} AND step_index = %(index)s - %(before)s AND mark = 'outcome'
    AND (closing OR payload ->> 'result' <> 'failed'))
AND (%(closing)s OR NOT EXISTS (SELECT {OF_LIST} AND step_index = %(index)s - %(before)s AND mark = 'deposit'
    AND payload ->> 'result' = 'failed')))"""
"""Whether the step at the place, or the one before it, has an outcome that lets the walk go on."""
IN_PASS = """(%(iteration)s = 0 OR EXISTS (SELECT FROM (
    SELECT event_type, payload::jsonb AS said FROM events WHERE stream_type = 'Procedure'
    AND stream_id = %(procedure)s::uuid AND event_type = ANY(%(bounds)s) ORDER BY version DESC LIMIT 1
) AS last WHERE event_type = %(bounds_begin)s AND (said ->> 'iteration_index')::int = %(iteration)s
    AND coalesce(nullif(said -> 'point', 'null'), '{}') = %(point)s::jsonb))"""
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
            SELECT FROM {ENTRIES} WHERE procedure_id = %(procedure)s AND step_index = %(index)s AND NOT closing
            AND mark IS NOT NULL AND step_kind IN ('action', 'compute') AND conduct_id <> %(conduct)s
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
        waiting_until = NULL, step_index = %(index)s, iteration_index = nullif(%(iteration)s, 0),
        heartbeat_at = clock_timestamp(),
        active_at = CASE WHEN EXISTS (SELECT FROM marked) THEN clock_timestamp() ELSE active_at END,
        effect_id = coalesce((SELECT event_id FROM marked), effect_id),
        effect_beat_at = CASE WHEN EXISTS (SELECT FROM marked) THEN clock_timestamp() ELSE effect_beat_at END
    WHERE {LIVE} AND NOT (SELECT out_of_turn FROM found)
)
SELECT EXISTS (SELECT FROM live), out_of_turn, asked, run, late, begun, rows, EXISTS (SELECT FROM marked),
    (SELECT effect_id FROM live), (SELECT extract(epoch FROM clock_timestamp() - effect_beat_at)::float8 FROM live),
    moved, overtaken
FROM found
"""
"""Whoever waited here for another one sees the row as that one left it and everything else as it was before: then it is
overtaken, has marked nothing and looks again."""
SETTLE = f"""
WITH entered AS (
    INSERT INTO {ENTRIES} ({COLUMNS}) SELECT {COLUMNS} FROM json_populate_record(NULL::{ENTRIES}, %(row)s::json)
    ON CONFLICT DO NOTHING RETURNING payload
),
moved AS (
    UPDATE conduct_progress SET active_at = clock_timestamp(), heartbeat_at = clock_timestamp() WHERE {LIVE}
)
SELECT payload FROM entered
"""
HAS_PASSED = f"SELECT {PASSED}"
STANDING = f"SELECT payload {HERE} AND mark = %(mark)s"
BEAT = f"""
UPDATE conduct_progress SET heartbeat_at = clock_timestamp(),
    effect_beat_at = CASE WHEN effect_id = %(effect)s THEN clock_timestamp() ELSE effect_beat_at END
WHERE {LIVE} RETURNING {ASKED}, {RUN}, {MOVED}
"""
CLOSE = f"""
UPDATE conduct_progress SET phase = 'Closing', waiting_for = NULL, heartbeat_at = clock_timestamp(),
    step_index = CASE WHEN phase = 'Closing' THEN step_index END
WHERE {LIVE} AND (phase = 'Closing' OR ({ASKED} IS NULL AND NOT coalesce({RUN} = ANY(%(blocks)s), false)))
"""
LOOK = f"SELECT {ASKED}, {RUN}, EXISTS (SELECT FROM conduct_progress WHERE {LIVE})"
WAIT = f"""
UPDATE conduct_progress SET phase = %(phase)s, waiting_for = %(for)s, waiting_until = %(until)s,
    heartbeat_at = clock_timestamp(), active_at = greatest(active_at, %(since)s::timestamptz)
WHERE {LIVE} AND phase <> 'Closing'
"""
SLOTS = f"""
WITH last AS (
    SELECT CASE WHEN %(iteration)s = 0 THEN
        (SELECT max(iteration_index) FROM {ENTRIES} WHERE conduct_id = %(conduct)s) ELSE %(iteration)s END AS pass
),
filled AS (
    SELECT * FROM conduct_slots WHERE procedure_id = %(procedure)s AND conduct_id = %(conduct)s
        AND iteration_index IN (%(iteration)s, (SELECT pass FROM last))
    UNION ALL
    SELECT * FROM conduct_slots WHERE %(boundary)s > 0 AND procedure_id = %(procedure)s AND conduct_id <> %(conduct)s
        AND NOT closing AND step_index < %(boundary)s
)
SELECT DISTINCT ON (slot, content ? 'artifact') * FROM filled ORDER BY slot, content ? 'artifact', recorded_at DESC
"""
BROUGHT = f"""
SELECT event_id, step_kind, closing, step_index, mark, sampled_at, payload FROM {ENTRIES}
WHERE conduct_id = %(conduct)s AND mark IN ('outcome', 'deposit') AND (closing OR iteration_index = %(iteration)s)
ORDER BY closing, step_index, mark DESC
"""
PASS = f"""
SELECT event_id, step_kind, closing, step_index, mark, sampled_at, payload FROM {ENTRIES}
WHERE conduct_id = %(conduct)s AND iteration_index = %(iteration)s AND NOT closing AND mark IN ('outcome', 'deposit')
ORDER BY step_index, mark DESC
"""
WRITTEN = f"""
WITH sent AS (
    SELECT event_id, payload ->> 'address' AS address, payload -> 'value' AS value, recorded_at, 0 AS place,
        true AS confirmed FROM {ENTRIES}
    WHERE conduct_id = %(conduct)s AND mark = 'outcome' AND step_kind = 'setpoint' AND payload ->> 'result' = 'ok'
    UNION ALL
    SELECT event_id, payload ->> 'address', payload -> 'value', recorded_at, 0, false FROM {ENTRIES} begun
    WHERE conduct_id = %(conduct)s AND mark = 'in_flight' AND step_kind = 'setpoint' AND NOT EXISTS (
        SELECT FROM {ENTRIES} ended
        WHERE (ended.conduct_id, ended.iteration_index, ended.closing, ended.step_index)
            = (begun.conduct_id, begun.iteration_index, begun.closing, begun.step_index) AND ended.mark = 'outcome'
        AND (ended.payload ->> 'result' = 'ok' OR (ended.attempt = begun.attempt AND NOT ended.payload ? 'sent'))
    )
    UNION ALL
    SELECT event_id, pair ->> 0, pair -> 1, recorded_at, behind + place, confirmed FROM {ENTRIES},
        LATERAL (VALUES (payload -> 'writes', 0, true), (payload -> 'unconfirmed', 1000000, false))
            AS told (pairs, behind, confirmed),
        jsonb_array_elements(pairs) WITH ORDINALITY AS write (pair, place)
    WHERE conduct_id = %(conduct)s AND mark = 'outcome' AND step_kind = 'action'
),
dated AS (
    SELECT *, max(recorded_at) FILTER (WHERE confirmed) OVER (PARTITION BY address) AS confirmed_at
    FROM sent WHERE address IS NOT NULL
)
SELECT address,
    json_agg(json_build_array(value, event_id) ORDER BY place DESC) FILTER (WHERE confirmed AND recorded_at = confirmed_at),
    json_agg(json_build_array(value, event_id) ORDER BY recorded_at, place)
        FILTER (WHERE NOT confirmed AND recorded_at >= coalesce(confirmed_at, '-infinity'))
FROM dated GROUP BY address ORDER BY min(recorded_at), (array_agg(place ORDER BY recorded_at))[1]
"""
"""An attempt at a setpoint may have been written where no outcome is known of it, or where its own says that it was sent."""
KINDS = f"""
SELECT DISTINCT payload ->> 'actuation_kind' FROM {ENTRIES}
WHERE conduct_id = %(conduct)s AND NOT closing AND payload ? 'actuation_kind'
"""


class PostgresLedger:
    """One statement for each thing asked of it."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def begin(self, crossing: BeginRequest) -> BeginResult:
        place, precedence = crossing.place, crossing.precedence
        marker = None if crossing.marker is None or crossing.stood_down else document(crossing.marker)
        asked = {
            **where(place),
            "asks": [ABORT_ASKED, HOLD_ASKED] if crossing.hold_blocks else [ABORT_ASKED],
            "run": crossing.run_id,
            "turns": list(STATUS_OF),
            "blocks": turns(crossing.run_blocks),
            "pause": crossing.longest_pause if crossing.longest_pause is not None else float("inf"),
            "once": crossing.once,
            "again": crossing.again,
            "marker": marker,
            **folded(crossing.submitter),
            "judged": precedence is not None,
            "first": precedence is None or precedence.first,
            "before": 1,
            "bounds": [ProcedureIterationStarted.__name__, ProcedureIterationEnded.__name__],
            "bounds_begin": ProcedureIterationStarted.__name__,
            "point": json.dumps({} if precedence is None else dict(precedence.point)),
        }
        while True:
            (row,) = await self._rows(BEGIN, asked)
            live, out_of_turn, request, run, late, begun, rows, marked, effect_id, silence, moved, overtaken = row
            if not (live and overtaken):
                break
        stored = tuple(StoredRow(UUID(id), mark, attempt, payload, age) for id, mark, attempt, payload, age in rows or ())
        last = next((one.event_id for one in reversed(stored) if one.mark == Mark.IN_FLIGHT), None)
        return BeginResult(
            live=live,
            out_of_turn=live and out_of_turn,
            asked=REQUESTS.get(request),
            run=STATUS_OF.get(run),
            late=late,
            begun_before=begun,
            stood_down=crossing.stood_down,
            submitter_moved=moved,
            rows=stored,
            marked=marked,
            silence=silence if last is not None and last == effect_id else None,
        )

    async def has_passed(self, place: StepPlace) -> bool:
        ((passed,),) = await self._rows(HAS_PASSED, {**where(place), "before": 0})
        return bool(passed)

    async def settle(self, row: Activity) -> Mapping[str, Any]:
        assert row.conduct_id is not None, "a ledger row belongs to a conduct"
        assert row.step_index is not None, "a ledger row has its place"
        place = StepPlace(
            procedure_id=row.procedure_id,
            conduct_id=row.conduct_id,
            iteration_index=row.iteration_index or 0,
            closing=bool(row.closing),
            step_index=row.step_index,
        )
        found = await self._rows(SETTLE, {**where(place), "row": document(row)})
        if not found:
            found = await self._rows(STANDING, {**where(place), "mark": row.mark})
        payload: Mapping[str, Any] = found[0][0]
        return payload

    async def beat(
        self, place: StepPlace, effect_id: UUID | None, run_id: UUID | None, submitter: FoldedStanding | None = None
    ) -> ConductSignals:
        found = await self._rows(BEAT, {**where(place), **watched(run_id), **folded(submitter), "effect": effect_id})
        if not found:
            return ConductSignals(False)
        asked, run, moved = found[0]
        lost = submitter is not None and submitter.objection is not None
        return ConductSignals(True, REQUESTS.get(asked), STATUS_OF.get(run), stood_down=lost, submitter_moved=moved)

    async def begin_closing(self, closing: ClosingRequest) -> ConductSignals:
        of = {
            "procedure": closing.procedure_id,
            "conduct": closing.conduct_id,
            **watched(closing.run_id),
            "asks": [ABORT_ASKED, HOLD_ASKED] if closing.may_hold else [ABORT_ASKED],
            "blocks": turns(closing.run_blocks),
        }
        while True:
            async with self._store.connection(writing=True) as connection:
                marked = await connection.execute(CLOSE, of)
                if marked.rowcount:
                    return ConductSignals(True)
                row = await (await connection.execute(LOOK, of)).fetchone()
            asked, run, live = row or (None, None, False)
            orders = ConductSignals(live, REQUESTS.get(asked), STATUS_OF.get(run))
            if not live or orders.asked is not None or orders.run in closing.run_blocks:
                return orders

    async def wait(self, procedure_id: UUID, conduct_id: UUID, waiting_for: WaitingFor, until: datetime | None) -> None:
        said = {"phase": ConductPhase.WAITING.value, "for": waiting_for.value, "until": until, "since": None}
        await self._say(procedure_id, conduct_id, said)

    async def go_on(self, procedure_id: UUID, conduct_id: UUID, since: datetime | None = None) -> None:
        said = {"phase": ConductPhase.WALKING.value, "for": None, "until": None, "since": since}
        await self._say(procedure_id, conduct_id, said)

    async def _say(self, procedure_id: UUID, conduct_id: UUID, said: Mapping[str, Any]) -> None:
        async with self._store.connection(writing=True) as connection:
            await connection.execute(WAIT, {"procedure": procedure_id, "conduct": conduct_id, **said})

    async def slots(self, procedure_id: UUID, conduct_id: UUID, iteration_index: int, boundary: int) -> Sequence[FilledSlot]:
        of = {"procedure": procedure_id, "conduct": conduct_id, "iteration": iteration_index, "boundary": boundary}
        async with self._store.connection() as connection:
            cursor = await connection.execute(SLOTS, of)
            names = [column.name for column in cursor.description or ()]
            form = record_form(FilledSlot)
            return [form.validate_python(dict(zip(names, row, strict=True))) for row in await cursor.fetchall()]

    async def tally(self, conduct_id: UUID, iteration_index: int, *, of_pass: bool = False) -> Tally:
        of = {"conduct": conduct_id, "iteration": iteration_index}
        if of_pass:
            brought = await self._rows(PASS, of)
            return tally_rows(brought, (), [kind for *_, says in brought if (kind := says.get("actuation_kind")) is not None])
        brought = await self._rows(BROUGHT, of)
        written = [
            (address, (confirmed or ())[:1], tried or ()) for address, confirmed, tried in await self._rows(WRITTEN, of)
        ]
        kinds = await self._rows(KINDS, of)
        return tally_rows(brought, written, [kind for (kind,) in kinds])

    async def _rows(self, statement: str, values: Mapping[str, Any]) -> list[Any]:
        async with self._store.connection(writing=True) as connection:
            return await (await connection.execute(statement, values)).fetchall()


def where(place: StepPlace) -> dict[str, Any]:
    """A place as the statements name it."""
    return {
        "procedure": place.procedure_id,
        "conduct": place.conduct_id,
        "iteration": place.iteration_index,
        "closing": place.closing,
        "index": place.step_index,
    }


def turns(statuses: frozenset[RunStatus]) -> list[str]:
    """The events that leave a run in one of these."""
    return [name for name, status in STATUS_OF.items() if status in statuses]


def watched(run_id: UUID | None) -> dict[str, Any]:
    """What the statements ask about requests and the parent run."""
    return {"asks": [ABORT_ASKED, HOLD_ASKED], "run": run_id, "turns": list(STATUS_OF)}


def folded(submitter: FoldedStanding | None) -> dict[str, Any]:
    """What the statements compare the submitter's streams with; nothing where nobody is asked about."""
    if submitter is None:
        return {"principal": None, "actor_version": None, "agent_version": None}
    return {
        "principal": submitter.principal_id,
        "actor_version": submitter.actor_version,
        "agent_version": submitter.agent_version,
    }


def document(row: Activity) -> str:
    """A row as the statements take it."""
    return entries_form(Activity).dump_json([row]).decode()[1:-1]
