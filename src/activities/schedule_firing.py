"""The effects of a firing: its conduct is opened, and waited for."""

from temporalio import activity

from baton.activities.heartbeats import EngineAttempt, heartbeating, yield_on_shutdown
from baton.application.schedules.firings import Firings
from baton.domain.operation.schedule.messages import DueFiring, FiringVerdict


class ScheduleFiringActivities:
    """Each activity may run again: the streams say what was done already."""

    def __init__(self, firings: Firings) -> None:
        self._firings = firings
        self._attempt = EngineAttempt()

    @activity.defn(name="open_firing")
    async def open(self, due: DueFiring) -> FiringVerdict:
        async with heartbeating():
            return await self._firings.open(due)

    @activity.defn(name="await_firing")
    async def await_end(self, due: DueFiring) -> None:
        await yield_on_shutdown(self._firings.await_end(due, self._attempt))
