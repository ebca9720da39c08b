"""The record of conducts for watchers, on PostgreSQL: one statement for each read, however many rows it returns."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson

from baton.application.conduct.conduct_reader import ConductPosition, ConductStatus, ReadCursor, RecordSlice
from baton.application.conduct.conduct_record import OPENINGS
from baton.domain.conduct.estimates import StepDuration, StepKey
from baton.domain.conduct.frames import LedgerRow, Outline, StreamRow
from baton.domain.conduct.ledger import LedgerPart, ListPlace, MeasuredObjective, PointPlace, PointRow, StepRow, WalkedSpan
from baton.domain.conduct.messages import MAX_PASSES, Mark
from baton.domain.conduct.progress import ABORT_ASKED, HOLD_ASKED, ConductPhase, WaitingFor
from baton.domain.conduct.twin import LastValue
from baton.domain.conduct.views import LOOPS, worker_contact
from baton.domain.data.procedure_files import FileRow
from baton.domain.kernel import Event
from baton.domain.procedure import procedure
from baton.domain.procedure.activity_logbook import Activity
from baton.domain.step.plan_steps import SubmittedPlan
from baton.domain.step.results import ActuationKind
from baton.domain.views.step_reliability import TriedStep
from baton.infrastructure.postgres.ledger import PostgresLedger
from baton.infrastructure.postgres.store import PostgresStore

REQUESTS = {ABORT_ASKED: procedure.PendingRequest.ABORT, HOLD_ASKED: procedure.PendingRequest.HOLD}
PASS_BOUNDS = (procedure.ProcedureIterationStarted, procedure.ProcedureIterationEnded)
LOOPING = [name for name, mode in procedure.MODES.items() if mode in LOOPS]


def event_names(*events: type[Event]) -> str:
    return ", ".join(f"'{event.__name__}'" for event in events)


STREAM = "FROM events WHERE stream_type = 'Procedure' AND stream_id = %(procedure)s"
OBJECTIVE = f"""
CASE WHEN command_name = ANY(%(looping)s) THEN coalesce(
    (SELECT payload -> 'convergence' ->> 'capture_name' {STREAM}
        AND event_type = {event_names(procedure.ProcedureStepsResolved)} ORDER BY version LIMIT 1),
    (SELECT payload ->> 'objective_capture_name' {STREAM}
        AND event_type = {event_names(procedure.ProcedureSteeringDeclared)} ORDER BY version LIMIT 1)
) END"""
POSITION = f"""
SELECT conducts.conduct_id, command_name, step_count, closing_count,
    (SELECT version {STREAM} AND event_type IN ({event_names(*OPENINGS)})
        AND payload ->> 'conduct_id' = conducts.conduct_id::text ORDER BY version LIMIT 1),
    {OBJECTIVE}, phase, iteration_index, step_index
FROM conducts LEFT JOIN (
    SELECT conduct_id, phase, iteration_index, step_index FROM conduct_progress WHERE procedure_id = %(procedure)s
) latest USING (conduct_id)
WHERE procedure_id = %(procedure)s AND conduct_id = coalesce(
    %(conduct)s::uuid, (SELECT conduct_id FROM conduct_progress WHERE procedure_id = %(procedure)s)
)
"""
PASSED = f"""SELECT max(version) {STREAM} AND version > %(version)s
AND event_type IN ({event_names(*PASS_BOUNDS)})
AND (payload ->> 'iteration_index')::int < %(iteration)s"""
ROW_COLUMNS = (
    "iteration_index, closing, step_index, mark, step_kind, "
    "CASE WHEN payload ? 'skipped' THEN 'skipped' ELSE payload ->> 'result' END AS result, "
    "coalesce(payload ->> 'target', payload ->> 'address', payload ->> 'name', payload -> 'command' ->> 0, '') AS target, "
    "recorded_at, payload ->> 'error_class' AS error_class, payload ->> 'message' AS message, "
    "payload ->> 'capture_name' AS capture_name, payload -> 'captured_value' AS captured_value"
)
IMAGES = f"""
SELECT coalesce(sum(CASE WHEN step_kind = 'action' THEN
    coalesce((said ->> 'events')::numeric, coalesce((said ->> 'points')::numeric, 1) * (said ->> 'repetitions')::numeric, 0)
ELSE 1 END), 0)::bigint
FROM (
    SELECT step_kind, payload -> 'result_data' AS said FROM {Activity.relation}
    WHERE procedure_id = %(procedure)s AND mark = 'outcome' AND payload ->> 'result' = 'ok' AND (step_kind = 'action'
        OR (step_kind = 'setpoint' AND payload ->> 'address' LIKE '%%:Acquire' AND payload -> 'value' <> '0'))
) done"""
FILE_ROWS = f"""
SELECT {", ".join(FileRow._fields)} FROM {Activity.relation}
WHERE procedure_id = %(procedure)s AND payload ->> 'result' = 'ok' AND (
    (mark = 'outcome' AND (payload -> 'artifacts' <> '[]' OR payload -> 'result_data' ?| ARRAY['uri', 'uris']))
    OR (mark = 'deposit' AND payload ? 'artifact')
)
ORDER BY recorded_at, mark = 'deposit'"""
SHOWN = "mark <> 'verdict' AND (mark <> 'in_flight' OR attempt = 1)"
ROWS = f"FROM {Activity.relation} WHERE conduct_id = %(conduct)s AND {SHOWN}"
ORDER = "ORDER BY closing, iteration_index, step_index, mark = 'deposit', mark = 'outcome'"
SLOT = "FROM conduct_slots WHERE procedure_id = %(procedure)s AND conduct_id = %(conduct)s AND slot = %(objective)s"
PHASE = "CASE WHEN phase <> 'Ended' AND stalled_at > coalesce(heartbeat_at, started_at) THEN 'Stalled' ELSE phase END"
READ = f"""
SELECT
    (SELECT json_agg(found {ORDER}) FROM (
        SELECT * FROM (
            (SELECT {ROW_COLUMNS} {ROWS} AND %(main)s AND NOT closing
                AND (iteration_index, closing, step_index) >= (%(iteration)s, false, %(index)s)
                ORDER BY iteration_index, closing, step_index LIMIT %(limit)s)
            UNION ALL
            (SELECT {ROW_COLUMNS} {ROWS} AND iteration_index = 0 AND closing AND step_index >= %(closing_index)s
                ORDER BY step_index LIMIT %(limit)s)
        ) both_lists {ORDER} LIMIT %(limit)s
    ) found),
    (SELECT json_agg(json_build_array(version, event_type, schema_version, payload::text, occurred_at, (
        SELECT json_build_array(iteration_index, content -> 'value') {SLOT}
        AND iteration_index = (payload ->> 'iteration_index')::int
        AND event_type = {event_names(procedure.ProcedureIterationEnded)} LIMIT 1
    )) ORDER BY version) FROM (
        SELECT version, event_type, schema_version, payload, occurred_at {STREAM} AND version > %(version)s
        AND event_type IN ({event_names(*PASS_BOUNDS, procedure.ProcedureConducted)})
        ORDER BY version LIMIT %(limit)s
    ) happened),
    (SELECT json_build_array({PHASE}, waiting_for, extract(epoch FROM clock_timestamp() - heartbeat_at), (
        SELECT kind FROM lookups WHERE kind IN ('{ABORT_ASKED}', '{HOLD_ASKED}') AND key = %(conduct)s::text
        AND stream_id = %(procedure)s ORDER BY kind = '{ABORT_ASKED}' DESC LIMIT 1
    )) FROM conduct_progress WHERE procedure_id = %(procedure)s AND conduct_id = %(conduct)s)"""
MEASURED = f"SELECT iteration_index, content -> 'value' {SLOT} ORDER BY iteration_index DESC LIMIT 1"
DURATIONS = f"""
SELECT kind, target, count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds),
    percentile_cont(0.9) WITHIN GROUP (ORDER BY seconds)
FROM unnest(%(kinds)s::text[], %(targets)s::text[]) AS wanted (kind, target), LATERAL (
    SELECT (payload ->> 'seconds')::float8 AS seconds FROM {Activity.relation}
    WHERE step_kind = kind AND payload ->> 'target' = target
        AND mark = 'outcome' AND payload ->> 'result' = 'ok' AND payload ? 'seconds'
    ORDER BY recorded_at DESC LIMIT %(count)s
) AS taken GROUP BY kind, target"""
"""The condition on the outcomes is that of the index by which they are found."""
LAST_VALUES = f"""
SELECT DISTINCT ON (address) address, kind, payload, recorded_at
FROM unnest(%(addresses)s::text[]) AS wanted (address),
unnest(ARRAY['setpoint', 'check', 'capture']) AS kinds (kind), LATERAL (
    SELECT payload, recorded_at FROM {Activity.relation}
    WHERE step_kind = kind AND payload ->> 'target' = address
        AND mark = 'outcome' AND payload ->> 'result' = 'ok' AND payload ? 'seconds'
    ORDER BY recorded_at DESC LIMIT 1
) AS taken ORDER BY address, recorded_at DESC"""
TRIED = f"""
WITH tries AS (
    SELECT step_kind, coalesce(payload ->> 'target', '') AS target, payload ->> 'result' = 'failed' AS failed,
        coalesce(payload ->> 'error_class', 'Unknown') AS code, (payload ->> 'seconds')::float8 AS seconds, attempt,
        coalesce((payload ->> 'deviates')::boolean, false) AS deviates, recorded_at
    FROM {Activity.relation} WHERE mark = 'outcome' AND recorded_at >= %(begins)s AND recorded_at < %(ends)s
    AND (%(kind)s::text IS NULL OR step_kind = %(kind)s)
    AND (%(target)s::text IS NULL OR payload ->> 'target' = %(target)s)
    AND (%(assets)s::uuid[] IS NULL OR procedure_id IN (
        SELECT procedure_id FROM proj_operation_procedure_summary WHERE target_asset_ids && %(assets)s::uuid[]
    ))
), middles AS (
    SELECT step_kind, target, percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS middle
    FROM tries GROUP BY step_kind, target
), halved AS (
    SELECT *, ntile(2) OVER (PARTITION BY step_kind, target ORDER BY recorded_at) AS half
    FROM tries JOIN middles USING (step_kind, target)
)
SELECT step_kind, target, count(*), coalesce(array_agg(code) FILTER (WHERE failed), '{{}}'),
    count(*) FILTER (WHERE attempt > 1), count(*) FILTER (WHERE deviates),
    percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds), percentile_cont(0.9) WITHIN GROUP (ORDER BY seconds),
    percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FILTER (WHERE half = 1),
    percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FILTER (WHERE half = 2),
    coalesce(sum(CASE WHEN failed THEN seconds ELSE greatest(seconds - middle, 0) END), 0)
FROM halved GROUP BY step_kind, target"""
OF_LIST = f"""FROM {Activity.relation} entries WHERE entries.conduct_id = walked.conduct_id
AND iteration_index = %(iteration)s AND closing = %(closing)s"""
PART = f"""
SELECT walked.conduct_id, reached.step_index,
    (SELECT array_agg(step_index) {OF_LIST} AND %(closing)s AND mark = 'outcome' AND payload ->> 'result' = 'failed'),
    (SELECT json_agg(json_build_array(step_index, mark, attempt, event_id, recorded_at, payload)
        ORDER BY step_index, recorded_at) {OF_LIST}
        AND (step_index = reached.step_index OR step_index >= %(first)s AND step_index < %(behind)s))
FROM unnest(%(conducts)s::uuid[]) WITH ORDINALITY AS walked (conduct_id, place),
LATERAL (SELECT step_index {OF_LIST} ORDER BY step_index DESC LIMIT 1) AS reached
ORDER BY walked.place"""
COMPLETED = f"""
SELECT count(*) FROM (
    SELECT FROM {Activity.relation} WHERE conduct_id = %(conduct)s AND iteration_index = 0 AND NOT closing
        AND mark IN ('outcome', 'deposit') GROUP BY step_index
    HAVING bool_or(payload ->> 'result' = 'ok') AND NOT bool_or(payload ->> 'result' = 'failed')
) done"""
POINT_COLUMNS = """json_build_array(iteration_index, step_index, step_kind,
payload ->> 'result' = 'ok' AND NOT payload ? 'skipped', recorded_at, payload -> 'address',
CASE WHEN step_kind = 'capture' THEN payload -> 'captured_value'
    ELSE coalesce(payload #> '{converted,value}', payload -> 'value') END,
CASE WHEN step_kind = 'capture' THEN coalesce(payload -> 'captured_unit', payload #> '{reading,units}')
    ELSE coalesce(payload #> '{converted,unit}', payload #> '{post_reading,units}', payload -> 'unit') END,
CASE WHEN step_kind = 'capture' THEN payload #> '{reading,value}' ELSE payload #> '{post_reading,value}' END,
payload #> '{reading,quality}', payload -> 'capture_name', payload -> 'measurements', payload -> 'artifacts') AS told"""
OF_SPAN = "conduct_id = span.conduct_id AND NOT closing AND mark = 'outcome'"
WALKED = "step_index >= span.first AND step_index < span.behind"
POINT_ROWS = f"""
SELECT json_agg(told)::text FROM (SELECT told
FROM unnest(%(conducts)s::uuid[], %(firsts)s::int[], %(behinds)s::int[]) AS span (conduct_id, first, behind),
LATERAL (
    (SELECT {POINT_COLUMNS}, iteration_index, step_index FROM unnest(%(seeds)s::int[]) AS seed, {Activity.relation}
        WHERE {OF_SPAN} AND iteration_index = %(iteration)s AND step_index = seed AND {WALKED})
    UNION ALL
    (SELECT {POINT_COLUMNS}, iteration_index, step_index FROM {Activity.relation} WHERE {OF_SPAN} AND {WALKED}
        AND (iteration_index, closing, step_index) >= (%(iteration)s, false, %(index)s)
        AND (CASE step_kind WHEN 'setpoint' THEN payload ->> 'address' = ANY(%(axes)s::text[])
            WHEN 'capture' THEN true ELSE payload ? 'measurements' END)
        ORDER BY iteration_index, closing, step_index LIMIT %(limit)s)
) AS read ORDER BY iteration_index, step_index LIMIT %(limit)s + cardinality(%(seeds)s::int[])) AS found"""
COUNTED_OUTCOMES = 100  # the last outcomes of a kind of step on a target that its durations are taken from
MAX_CACHED_OBJECTIVES = 1000  # conducts whose objective is cached

PLAN_STEP = """(SELECT procedure_id, payload ->> 'submission_key' FROM entries_procedure_activities
WHERE mark = 'in_flight' AND payload ->> 'submission_key' = %(key)s LIMIT 1)
UNION ALL (SELECT procedure_id, payload ->> 'submission_key' FROM entries_procedure_activities
WHERE mark = 'in_flight' AND payload #>> '{token,task_id}' = %(task)s LIMIT 1)
LIMIT 1"""


class PostgresConductReader:
    """Answers each read with one statement."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._objectives: dict[UUID, str | None] = {}

    async def position(self, procedure_id: UUID, conduct_id: UUID | None = None) -> ConductPosition | None:
        row = await self._row(POSITION, {"procedure": procedure_id, "conduct": conduct_id, "looping": LOOPING})
        if row is None:
            return None
        *fields, phase, iteration_index, step_index = row
        outline = Outline(procedure_id, *fields)
        phase = ConductPhase.ENDED if phase is None else ConductPhase(phase)
        return ConductPosition(outline, outline.before(phase, iteration_index, step_index))

    async def version(self, outline: Outline, ordinal: int) -> int:
        if not outline.loops or not ordinal:
            return outline.opened_version
        spot = outline.position(ordinal)
        index = MAX_PASSES + 1 if spot.closing else spot.iteration_index
        values = {"procedure": outline.procedure_id, "version": outline.opened_version, "iteration": index}
        row = await self._row(PASSED, values)
        return outline.opened_version if row is None or row[0] is None else int(row[0])

    async def read(self, outline: Outline, cursor: ReadCursor, limit: int) -> RecordSlice:
        spot = outline.position(cursor.ordinal)
        place = {"main": not spot.closing, "iteration": spot.iteration_index, "index": spot.step_index}
        after = {"closing_index": spot.step_index if spot.closing else 0, "version": cursor.version, "limit": limit}
        conduct = {"procedure": outline.procedure_id, "conduct": outline.conduct_id, "objective": outline.objective}
        row = await self._row(READ, {**conduct, **place, **after})
        assert row is not None, "the statement returns a row"
        rows, events, status = row
        seen = [stream_row(outline, happened) for happened in events or ()]
        return RecordSlice([*map(ledger_row, rows or ())], seen, None if status is None else status_of(*status))

    async def measured_objective(self, procedure_id: UUID, conduct_id: UUID) -> MeasuredObjective | None:
        if conduct_id not in self._objectives:
            position = await self.position(procedure_id, conduct_id)
            if len(self._objectives) >= MAX_CACHED_OBJECTIVES:
                self._objectives.clear()
            self._objectives[conduct_id] = None if position is None else position.outline.objective
        objective = self._objectives[conduct_id]
        if objective is None:
            return None
        row = await self._row(MEASURED, {"procedure": procedure_id, "conduct": conduct_id, "objective": objective})
        return None if row is None else MeasuredObjective(name=objective, iteration_index=row[0], value=row[1])

    async def image_count(self, procedure_id: UUID) -> int:
        row = await self._row(IMAGES, {"procedure": procedure_id})
        return 0 if row is None else int(row[0])

    async def completed_step_count(self, conduct_id: UUID) -> int:
        row = await self._row(COMPLETED, {"conduct": conduct_id})
        return 0 if row is None else int(row[0])

    async def actuation_kind(self, conduct_id: UUID) -> ActuationKind | None:
        return (await PostgresLedger(self._store).tally(conduct_id, 0)).actuation_kind

    async def file_rows(self, procedure_id: UUID) -> Sequence[FileRow]:
        async with self._store.connection() as connection:
            rows = await (await connection.execute(FILE_ROWS, {"procedure": procedure_id})).fetchall()
        return [FileRow(*row) for row in rows]

    async def submitted_plan(self, submission_key: str | None, task_id: str | None) -> SubmittedPlan | None:
        row = await self._row(PLAN_STEP, {"key": submission_key, "task": task_id})
        return None if row is None else SubmittedPlan(row[0], UUID(row[1]))

    async def ledger_part(self, conduct_ids: Sequence[UUID], place: ListPlace) -> LedgerPart:
        span = {"first": place.first, "behind": place.first + place.limit}
        values = {"conducts": list(conduct_ids), "iteration": place.iteration_index, "closing": place.closing, **span}
        async with self._store.connection() as connection:
            found = await (await connection.execute(PART, values)).fetchall()
        reached = {conduct_id: step_index for conduct_id, step_index, _, _ in found}
        failed = found[-1][2] or () if found else ()
        return LedgerPart([step_row(id, row) for id, _, _, rows in found for row in rows or ()], reached, failed)

    async def point_rows(
        self, spans: Sequence[WalkedSpan], axes: Sequence[str], place: PointPlace, limit: int
    ) -> Sequence[PointRow]:
        conducts, firsts, behinds = ([*column] for column in zip(*spans, strict=True)) if spans else ([], [], [])
        walked = {"conducts": conducts, "firsts": firsts, "behinds": behinds, "axes": list(axes), "limit": limit}
        start = {"iteration": place.iteration_index, "index": place.step_index, "seeds": list(place.seeds)}
        row = await self._row(POINT_ROWS, {**walked, **start})
        return [] if row is None or row[0] is None else [*map(point_row, orjson.loads(row[0]))]

    async def read_durations(self, keys: Sequence[StepKey]) -> Mapping[StepKey, StepDuration]:
        kinds, targets = [kind for kind, _ in keys], [target for _, target in keys]
        async with self._store.connection() as connection:
            values = {"kinds": kinds, "targets": targets, "count": COUNTED_OUTCOMES}
            rows = await (await connection.execute(DURATIONS, values)).fetchall()
        return {(kind, target): StepDuration(*figures) for kind, target, *figures in rows}

    async def tried_steps(
        self, begins: datetime, ends: datetime, asset_ids: Sequence[UUID] | None, kind: str | None, target: str | None
    ) -> Sequence[TriedStep]:
        assets = None if asset_ids is None else list(asset_ids)
        values = {"begins": begins, "ends": ends, "assets": assets, "kind": kind, "target": target}
        async with self._store.connection() as connection:
            rows = await (await connection.execute(TRIED, values)).fetchall()
        return [TriedStep(*row) for row in rows]

    async def last_values(self, addresses: Sequence[str]) -> Mapping[str, LastValue]:
        async with self._store.connection() as connection:
            rows = await (await connection.execute(LAST_VALUES, {"addresses": list(addresses)})).fetchall()
        found = {address: last_value(kind, payload, at) for address, kind, payload, at in rows}
        return {address: value for address, value in found.items() if value is not None}

    async def _row(self, statement: str, values: dict[str, object]) -> tuple[Any, ...] | None:
        async with self._store.connection() as connection:
            return await (await connection.execute(statement, values)).fetchone()


def last_value(kind: str, payload: Mapping[str, Any], at: datetime) -> LastValue | None:
    """Return the value that the outcome of a step leaves of its signal; None where it is too large to be kept."""
    verify = payload.get("verify")
    elsewhere = isinstance(verify, Mapping) and verify.get("address") is not None
    reading = payload.get("reading") if kind != "setpoint" else None if elsewhere else payload.get("post_reading")
    if reading is not None:
        found = LastValue(reading["value"], reading.get("units"), True, at)
    elif (converted := payload.get("converted")) is not None:
        found = LastValue(converted["value"], converted["unit"], True, at)
    else:
        found = LastValue(payload.get("value"), None, False, at)
    return None if found.value is None or isinstance(found.value, Mapping) else found


def step_row(conduct_id: UUID, row: list[Any]) -> StepRow:
    step_index, mark, attempt, event_id, recorded_at, payload = row
    return StepRow(conduct_id, step_index, mark, attempt, UUID(event_id), datetime.fromisoformat(recorded_at), payload)


def point_row(told: list[Any]) -> PointRow:
    """Return a row of points as the statement answers it: its fields in their order."""
    *said, measurements, artifacts = told
    said[4] = datetime.fromisoformat(said[4])
    outputs = [artifact["uri"].rpartition("/")[2] for artifact in artifacts] if artifacts else ()
    return PointRow._make((*said, measurements or (), outputs))


def ledger_row(row: dict[str, Any]) -> LedgerRow:
    return LedgerRow(**{**row, "mark": Mark(row["mark"]), "recorded_at": datetime.fromisoformat(row["recorded_at"])})


def stream_row(outline: Outline, happened: list[Any]) -> StreamRow:
    version, event_type, schema_version, payload, occurred_at, measured = happened
    at = datetime.fromisoformat(occurred_at)
    event: Any = procedure.Procedure.aggregate.decode(event_type, payload, outline.procedure_id, at, schema_version)
    if measured is None or outline.objective is None:
        return StreamRow(version, event)
    objective = MeasuredObjective(name=outline.objective, iteration_index=measured[0], value=measured[1])
    return StreamRow(version, event, objective)


def status_of(phase: str, waiting_for: str | None, silence: float | None, asked: str | None) -> ConductStatus:
    """Return the status of a conduct from its document; an ended one has nothing but its phase."""
    if phase == ConductPhase.ENDED:
        return ConductStatus(ConductPhase.ENDED, None, None, None)
    return ConductStatus(
        ConductPhase(phase),
        None if waiting_for is None else WaitingFor(waiting_for),
        None if asked is None else REQUESTS[asked],
        worker_contact(None if silence is None else timedelta(seconds=silence)),
    )
