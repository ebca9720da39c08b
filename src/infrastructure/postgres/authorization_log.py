"""The verdict log: one row for each answer of authorization, written in batches after the calls."""

import asyncio
from collections import deque
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import psycopg
import structlog
import uuid_utils.compat

from baton.application.caller import Caller
from baton.domain.trust.authorization import AuthzResult
from baton.domain.trust.conduit import Conduit
from baton.infrastructure.postgres.pool import Pool

log = structlog.get_logger()

FLUSH_SECONDS = 0.05
MAX_PENDING = 100_000
INSERT = """
INSERT INTO entries_conduit_verdicts (event_id, conduit_id, logbook_id, actor_id, command_name, decision, reason, surface_id,
    determining_policies, correlation_id, causation_id, occurred_at)
SELECT event_id, conduit_id, logbook_id, actor_id, command_name, decision, reason, surface_id, determining_policies,
    correlation_id, causation_id, occurred_at
FROM json_populate_recordset(NULL::entries_conduit_verdicts, %s) ON CONFLICT DO NOTHING"""
LOGBOOKS = """SELECT stream_id, payload ->> 'logbook_id' FROM events
WHERE stream_type = %s AND event_type = 'ConduitLogbookOpened'"""


class PostgresVerdictLog:
    """Collects verdicts and writes them together; a failure is logged and never changes a decision."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._pending: deque[dict[str, Any]] = deque(maxlen=MAX_PENDING)
        self._logbooks: dict[UUID, str] = {}

    def record(self, caller: Caller, surface_id: UUID, command_name: str, result: AuthzResult) -> None:
        entry = {"event_id": uuid_utils.compat.uuid7(), "command_name": command_name, "occurred_at": datetime.now(UTC)}
        origin = {"conduit_id": caller.conduit_id, "actor_id": caller.principal_id, "surface_id": surface_id}
        work = {"correlation_id": caller.correlation_id, "causation_id": caller.causation_id}
        verdict = {"decision": result.decision.value, "reason": result.reason}
        policies = {"determining_policies": result.determining_policies}
        self._pending.append({**entry, **origin, **work, **verdict, **policies})

    async def run(self) -> None:
        try:
            while True:
                await asyncio.sleep(FLUSH_SECONDS)
                await self.flush()
        finally:
            await self.flush()

    async def flush(self) -> None:
        if not self._pending:
            return
        verdicts = [self._pending.popleft() for _ in range(len(self._pending))]
        try:
            async with self._pool.connection() as connection:
                if any(verdict["conduit_id"] not in self._logbooks for verdict in verdicts):
                    rows = await (await connection.execute(LOGBOOKS, (Conduit.__name__,))).fetchall()
                    self._logbooks = dict(rows)
                known = [
                    {**verdict, "logbook_id": self._logbooks[verdict["conduit_id"]]}
                    for verdict in verdicts
                    if verdict["conduit_id"] in self._logbooks
                ]
                if len(known) < len(verdicts):
                    log.warning("verdicts_without_logbook", count=len(verdicts) - len(known))
                await connection.execute(INSERT, (orjson.dumps(known).decode(),))
        except asyncio.CancelledError:
            self._pending.extendleft(reversed(verdicts))
            raise
        except (psycopg.Error, TimeoutError) as error:
            log.error("verdicts_not_written", count=len(verdicts), error=type(error).__name__)
