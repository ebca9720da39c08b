"""Conducts as PostgreSQL shows them to those who watch: one statement for each look, however many rows it brings."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from baton.application.conduct.conduct_reader import ConductStatus, ReadCursor, RecordSlice, ConductPosition
from baton.domain.kernel import Event
from baton.domain.operation.conduct.frames import LedgerRow, Outline, StreamRow
from baton.domain.operation.conduct.messages import MAX_PASSES, Mark
from baton.domain.operation.conduct.progress import ABORT_ASKED, HOLD_ASKED, ConductPhase, WaitingFor
from baton.domain.operation.conduct.views import LOOPS, MeasuredObjective, contact_with
from baton.domain.operation.procedure.activity_logbook import Activity
from baton.domain.operation.procedure.procedure import (
    MODES,
    Procedure,
    ProcedureAbortRequested,
    ProcedureConducted,
    ProcedureIterationEnded,
    ProcedureIterationStarted,
    ProcedureResumed,
    ProcedureStarted,
    ProcedureSteeringDeclared,
    ProcedureStepsResolved,
)
from baton.infrastructure.postgres.ledger import REQUESTS
from baton.infrastructure.postgres.store import PostgresStore

LOOPING = [name for name, mode in MODES.items() if mode in LOOPS]


def names(*events: type[Event]) -> str:
    """Types of events as a statement lists them."""
    return ", ".join(f"'{event.__name__}'" for event in events)


STREAM = "FROM events WHERE stream_type = 'Procedure' AND stream_id = %(procedure)s"
OBJECTIVE = f"""
CASE WHEN command_name = ANY(%(looping)s) THEN coalesce(
    (SELECT payload -> 'convergence' ->> 'capture_name' {STREAM} AND event_type = {names(ProcedureStepsResolved)}
        ORDER BY version LIMIT 1),
    (SELECT payload ->> 'objective_capture_name' {STREAM} AND event_type = {names(ProcedureSteeringDeclared)}
        ORDER BY version LIMIT 1)
) END"""
STANDING = f"""
SELECT conducts.conduct_id, command_name, step_count, closing_count,
    (SELECT version {STREAM} AND event_type IN ({names(ProcedureStarted, ProcedureResumed, ProcedureAbortRequested)})
        AND payload ->> 'conduct_id' = conducts.conduct_id::text ORDER BY version LIMIT 1),
    {OBJECTIVE}, phase, iteration_index, step_index
FROM conducts LEFT JOIN (
    SELECT conduct_id, phase, iteration_index, step_index FROM conduct_progress WHERE procedure_id = %(procedure)s
) latest USING (conduct_id)
WHERE procedure_id = %(procedure)s AND conduct_id = coalesce(
    %(conduct)s::uuid, (SELECT conduct_id FROM conduct_progress WHERE procedure_id = %(procedure)s)
)
"""
PASSED = f"""
SELECT max(version) {STREAM} AND version > %(version)s
AND event_type IN ({names(ProcedureIterationStarted, ProcedureIterationEnded)})
AND (payload ->> 'iteration_index')::int < %(iteration)s
"""
TOLD = (
    "iteration_index, closing, step_index, mark, step_kind, payload ->> 'result' AS result, "
    "coalesce(payload ->> 'target', payload ->> 'address', payload ->> 'name', payload -> 'command' ->> 0, '') AS target, "
    "recorded_at, payload ->> 'error_class' AS error_class, payload ->> 'message' AS message, "
    "payload ->> 'capture_name' AS capture_name, payload -> 'captured_value' AS captured_value"
)
ROWS = f"FROM {Activity.relation} WHERE conduct_id = %(conduct)s AND (mark <> 'in_flight' OR attempt = 1)"
ORDER = "ORDER BY closing, iteration_index, step_index, mark = 'deposit', mark = 'outcome'"
SLOT = "FROM conduct_slots WHERE procedure_id = %(procedure)s AND conduct_id = %(conduct)s AND slot = %(objective)s"
PHASE = """
CASE WHEN phase <> 'Ended' AND stalled_at > coalesce(heartbeat_at, started_at) THEN 'Stalled' ELSE phase END
"""
LOOK = f"""
SELECT
    (SELECT json_agg(told {ORDER}) FROM (
        SELECT * FROM (
            (SELECT {TOLD} {ROWS} AND %(main)s AND NOT closing
                AND (iteration_index, closing, step_index) >= (%(iteration)s, false, %(index)s)
                ORDER BY iteration_index, closing, step_index LIMIT %(limit)s)
            UNION ALL
            (SELECT {TOLD} {ROWS} AND iteration_index = 0 AND closing AND step_index >= %(closing_index)s
                ORDER BY step_index LIMIT %(limit)s)
        ) both_lists {ORDER} LIMIT %(limit)s
    ) told),
    (SELECT json_agg(json_build_array(version, event_type, payload::text, occurred_at, (
        SELECT json_build_array(iteration_index, content -> 'value') {SLOT}
        AND iteration_index = (payload ->> 'iteration_index')::int AND event_type = {names(ProcedureIterationEnded)} LIMIT 1
    )) ORDER BY version) FROM (
        SELECT version, event_type, payload, occurred_at {STREAM} AND version > %(version)s
        AND event_type IN ({names(ProcedureIterationStarted, ProcedureIterationEnded, ProcedureConducted)})
        ORDER BY version LIMIT %(limit)s
    ) happened),
    (SELECT json_build_array({PHASE}, waiting_for, extract(epoch FROM clock_timestamp() - heartbeat_at), (
        SELECT min(kind) FROM lookups WHERE kind IN ('{ABORT_ASKED}', '{HOLD_ASKED}') AND key = %(conduct)s::text
        AND stream_id = %(procedure)s
    )) FROM conduct_progress WHERE procedure_id = %(procedure)s AND conduct_id = %(conduct)s)
"""
MEASURED = f"SELECT iteration_index, content -> 'value' {SLOT} ORDER BY iteration_index DESC LIMIT 1"
REMEMBERED = 1000
"""Conducts of which it is remembered what they are judged by."""


class PostgresConductReader:
    """One statement for each look."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._objectives: dict[UUID, str | None] = {}

    async def standing(self, procedure_id: UUID, conduct_id: UUID | None = None) -> ConductPosition | None:
        row = await self._row(STANDING, {"procedure": procedure_id, "conduct": conduct_id, "looping": LOOPING})
        if row is None:
            return None
        conduct_id, command_name, step_count, closing_count, version, objective, phase, iteration_index, step_index = row
        outline = Outline(
            procedure_id=procedure_id,
            conduct_id=conduct_id,
            command_name=command_name,
            step_count=step_count,
            closing_count=closing_count,
            opened_version=version,
            objective=objective,
        )
        phase = ConductPhase.ENDED if phase is None else ConductPhase(phase)
        return ConductPosition(outline, outline.before(phase, iteration_index, step_index))

    async def version(self, outline: Outline, ordinal: int) -> int:
        if not outline.loops or not ordinal:
            return outline.opened_version
        spot = outline.spot(ordinal)
        asked = {
            "procedure": outline.procedure_id,
            "version": outline.opened_version,
            "iteration": MAX_PASSES + 1 if spot.closing else spot.iteration_index,
        }
        row = await self._row(PASSED, asked)
        return outline.opened_version if row is None or row[0] is None else int(row[0])

    async def look(self, outline: Outline, cursor: ReadCursor, limit: int) -> RecordSlice:
        spot = outline.spot(cursor.ordinal)
        asked = {
            "procedure": outline.procedure_id,
            "conduct": outline.conduct_id,
            "objective": outline.objective,
            "main": not spot.closing,
            "iteration": spot.iteration_index,
            "index": spot.step_index,
            "closing_index": spot.step_index if spot.closing else 0,
            "version": cursor.version,
            "limit": limit,
        }
        row = await self._row(LOOK, asked)
        assert row is not None, "a look has an answer"
        rows, events, bearing = row
        return RecordSlice(
            rows=[ledger_row(told) for told in rows or ()],
            events=[stream_row(outline, *happened) for happened in events or ()],
            bearing=None if bearing is None else bearing_of(*bearing),
        )

    async def measured(self, procedure_id: UUID, conduct_id: UUID) -> MeasuredObjective | None:
        if conduct_id not in self._objectives:
            standing = await self.standing(procedure_id, conduct_id)
            if len(self._objectives) >= REMEMBERED:
                self._objectives.clear()
            self._objectives[conduct_id] = None if standing is None else standing.outline.objective
        objective = self._objectives[conduct_id]
        if objective is None:
            return None
        row = await self._row(MEASURED, {"procedure": procedure_id, "conduct": conduct_id, "objective": objective})
        return None if row is None else MeasuredObjective(name=objective, iteration_index=row[0], value=row[1])

    async def _row(self, statement: str, values: dict[str, Any]) -> tuple[Any, ...] | None:
        async with self._store.connection() as connection:
            return await (await connection.execute(statement, values)).fetchone()


def ledger_row(told: dict[str, Any]) -> LedgerRow:
    """A row of the ledger from its document."""
    return LedgerRow(**{**told, "mark": Mark(told["mark"]), "recorded_at": datetime.fromisoformat(told["recorded_at"])})


def stream_row(
    outline: Outline, version: int, event_type: str, payload: str, occurred_at: str, measured: list[Any] | None
) -> StreamRow:
    """An event of the stream from its document."""
    at = datetime.fromisoformat(occurred_at)
    event: Any = Procedure.aggregate.decode(event_type, payload, outline.procedure_id, at)
    if measured is None or outline.objective is None:
        return StreamRow(version, event)
    iteration_index, value = measured
    measurement = MeasuredObjective(name=outline.objective, iteration_index=iteration_index, value=value)
    return StreamRow(version, event, measurement)


def bearing_of(phase: str, waiting_for: str | None, silence: float | None, asked: str | None) -> ConductStatus:
    """Where a conduct stands, from its document; of one that has ended nothing more is to be heard."""
    stands = ConductPhase(phase)
    if stands is ConductPhase.ENDED:
        return ConductStatus(stands, None, None, None)
    return ConductStatus(
        stands,
        None if waiting_for is None else WaitingFor(waiting_for),
        None if asked is None else REQUESTS[asked],
        contact_with(None if silence is None else timedelta(seconds=silence)),
    )
