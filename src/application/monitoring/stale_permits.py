"""Permits that nobody observes any more, whoever reported them: after their time they are recorded as Unknown."""

import asyncio
from datetime import timedelta
from uuid import UUID

import structlog

from baton.application.monitoring.monitors import MonitorAccount
from baton.application.monitoring.permit_monitor import UNKNOWN, unknown
from baton.application.ports import Clock
from baton.application.telemetry import error_location
from baton.domain.enclosure.enclosure import (
    EnclosureLifecycle,
    EnclosureView,
    GetEnclosure,
    ListEnclosures,
    ObserveEnclosureStatus,
)

log = structlog.get_logger()

PAGE = 100
OBSERVATION_AGE = "ObservationAge"


class StalePermits:
    """Looks for Active enclosures whose last observation is too old; one process does so for all."""

    def __init__(self, account: MonitorAccount, clock: Clock, time_to_live: timedelta, interval: float) -> None:
        self._account = account
        self._clock = clock
        self._time_to_live = time_to_live
        self._interval = interval

    async def run(self) -> None:
        """Sweep until cancelled; whoever observes has the first interval to report."""
        while True:
            await asyncio.sleep(self._interval)
            try:
                await self.sweep()
            except Exception as error:
                log.error("permit_sweep_failed", **error_location(error))

    async def sweep(self) -> None:
        """Record Unknown for every enclosure that the list shows to be unobserved and its stream confirms."""
        cursor: str | None = None
        while True:
            query = ListEnclosures(lifecycle=EnclosureLifecycle.ACTIVE, limit=PAGE, cursor=cursor)
            page = await self._account.ask(query)
            for row in page.items:
                age = None if row.last_contact_at is None else (self._clock() - row.last_contact_at).total_seconds()
                if row.permit_status is not UNKNOWN and self._too_old(age):
                    await self._judge(row.enclosure_id)
            if (cursor := page.next_cursor) is None:
                return

    async def _judge(self, id: UUID) -> None:
        enclosure: EnclosureView = await self._account.ask(GetEnclosure(), id)
        age, live = enclosure.observation_age, enclosure.lifecycle is EnclosureLifecycle.ACTIVE
        if live and enclosure.permit_status is not UNKNOWN and self._too_old(age):
            when = "never" if age is None else f"last {age:.0f} s ago"
            observation = unknown(enclosure.name, f"The permit was observed {when}.", OBSERVATION_AGE)
            await self._account.report(
                ObserveEnclosureStatus, id, observation, needless=ObserveEnclosureStatus.Cannot, nothing_read=True
            )

    def _too_old(self, age: float | None) -> bool:
        """Whether an observation of so many seconds ago says nothing; one from the future says as little."""
        return age is None or abs(age) > self._time_to_live.total_seconds()
