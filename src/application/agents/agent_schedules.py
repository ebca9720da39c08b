"""The turns of agents that look for themselves: kept in the engine while they are on, and taken out while they are not."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from baton.application.schedules.calendars import CalendarEntry, Calendars
from baton.application.settings import Settings
from baton.domain.operation.schedule.calendar import EveryCalendar

SHORTEST_CATCH_UP = 10
"""Seconds for which the engine makes up for what it missed, at least."""


@dataclass(frozen=True)
class AgentSchedule:
    """An agent's turn, and whether it has any."""

    entry: CalendarEntry
    on: bool


def agent_schedules(settings: Settings) -> tuple[AgentSchedule, ...]:
    """The turns of this deployment's agents."""
    return (
        tick("run-supervisor", "supervise-runs", settings.run_supervisor_tick_seconds, settings.run_supervisor_enabled),
        tick(
            "clearance-expirer",
            "expire-clearances",
            settings.clearance_expirer_tick_seconds,
            settings.clearance_expirer_enabled,
        ),
    )


def tick(id: str, workflow: str, seconds: int, on: bool) -> AgentSchedule:
    """A turn every so many seconds; one that is missed for longer is not made up for, the next sees the present."""
    catch_up = max(seconds, SHORTEST_CATCH_UP)
    return AgentSchedule(
        CalendarEntry(id, workflow, EveryCalendar(every=seconds), catchup_window=catch_up, note="A turn of an agent."), on
    )


class AgentSchedules:
    """Keeps the turns of agents in the engine."""

    def __init__(self, calendars: Calendars, ticks: Sequence[AgentSchedule]) -> None:
        self._calendars = calendars
        self._ticks = ticks

    async def keep(self) -> None:
        """Have the engine keep every turn as configured; one that somebody paused there stays paused."""
        for tick in self._ticks:
            view = await self._calendars.look(tick.entry)
            if not tick.on:
                if view is not None:
                    await self._calendars.remove(tick.entry.id)
            elif view is None or not view.as_defined:
                await self._calendars.put(replace(tick.entry, paused=view is not None and view.paused))
