"""How long the directories of jobs are kept: some time after their conduct has ended, and before that for ever."""

import asyncio
from datetime import timedelta

import structlog

from baton.application.conduct.conduct_work import ConductWork
from baton.application.ports import Clock
from baton.application.telemetry import error_location
from baton.infrastructure.compute.local_process import LocalProcesses

log = structlog.get_logger()

INTERVAL = 600.0
"""Seconds between two looks for directories to remove; the first one comes with the start."""


class JobRetention:
    """Removes the directories of jobs that ended long ago and belong to no live conduct.

    While a conduct is live, what its jobs brought may still have to be collected.
    """

    def __init__(self, compute: LocalProcesses, conducts: ConductWork, clock: Clock, retention: timedelta) -> None:
        self._compute = compute
        self._conducts = conducts
        self._clock = clock
        self._retention = retention

    async def run(self) -> None:
        """Remove what is due again and again, whatever goes wrong meanwhile."""
        while True:
            try:
                await self.sweep()
            except Exception as error:
                log.error("jobs_not_removed", **error_location(error))
            await asyncio.sleep(INTERVAL)

    async def sweep(self) -> None:
        """Remove what is due."""
        ended = await self._compute.ended_before(self._clock() - self._retention)
        for job_id, conduct_id in ended:
            if not await self._conducts.is_live(conduct_id):
                await self._compute.remove(job_id)
