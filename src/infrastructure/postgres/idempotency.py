"""Forgets finished idempotency keys once nobody will replay them; ones still in flight are never touched."""

import asyncio
from datetime import timedelta

import psycopg
import structlog

from baton.infrastructure.postgres.pool import Pool

log = structlog.get_logger()

PRUNE_INTERVAL = 3600.0


class Pruner:
    """Deletes old outcomes every hour; a life of zero keeps them for ever."""

    def __init__(self, pool: Pool, life: timedelta) -> None:
        self._pool = pool
        self._life = life

    async def run(self) -> None:
        """Prune until cancelled; a failure is tried again next hour."""
        while self._life:
            try:
                await self.prune()
            except (psycopg.Error, TimeoutError) as error:
                log.warning("idempotency_not_pruned", error=type(error).__name__)
            await asyncio.sleep(PRUNE_INTERVAL)

    async def prune(self) -> int:
        """Delete what is older than its life; answers how many."""
        async with self._pool.connection() as connection:
            cursor = await connection.execute(
                "DELETE FROM idempotency WHERE result IS NOT NULL AND created_at < clock_timestamp() - %s", (self._life,)
            )
            return cursor.rowcount
