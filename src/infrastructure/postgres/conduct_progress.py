"""Where conducts stand, kept in their rows while they are live."""

from uuid import UUID

from psycopg.sql import SQL, Identifier
from psycopg.types.json import Jsonb

from baton.domain.run.progress import Waiting
from baton.domain.shared.writes import Record
from baton.infrastructure.postgres.store import PostgresStore

LIVE = "run_id = %(run)s AND conduct_id = %(conduct)s AND phase <> 'Ended'"
NOTE = f"""
UPDATE run_conduct_progress SET phase = CASE WHEN %(waiting)s::jsonb IS NULL THEN 'Walking' ELSE 'Waiting' END,
    phase_index = %(index)s, waiting = %(waiting)s, heartbeat_at = clock_timestamp()
WHERE {LIVE}
"""
STALL = "UPDATE {} SET stalled_at = clock_timestamp() WHERE conduct_id = %s AND phase <> 'Ended'"


class PostgresStallRecord:
    """Says of live conducts that the engine fails with them."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def stalled(self, progress: type[Record], conduct_id: UUID) -> None:
        async with self._store.connection(writing=True) as connection:
            await connection.execute(SQL(STALL).format(Identifier(progress.relation)), (conduct_id,))


class PostgresRunProgress:
    """One statement for each sign of life; a conduct that has ended leaves none."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def note(self, run_id: UUID, conduct_id: UUID, phase_index: int, waiting: Waiting | None) -> None:
        said = None if waiting is None else Jsonb(waiting.model_dump(mode="json"))
        async with self._store.connection(writing=True) as connection:
            await connection.execute(NOTE, {"run": run_id, "conduct": conduct_id, "index": phase_index, "waiting": said})
