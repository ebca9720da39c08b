"""The calendars of agents that look at something at regular intervals, kept as the settings have them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from baton.application.long_work import Recurrence, declared_kinds
from baton.application.ports import Calendars
from baton.application.settings import Settings


def agent_schedules(settings: Settings) -> tuple[Recurrence, ...]:
    """Return the calendars of this deployment's agents."""
    return tuple(found for kind in declared_kinds() if (found := kind.recurrence(settings)) is not None)


@dataclass
class AgentSchedules:
    calendars: Calendars
    schedules: Sequence[Recurrence]

    async def reconcile(self) -> None:
        """Make the engine match the settings; a schedule that somebody paused there stays paused."""
        for schedule in self.schedules:
            view = await self.calendars.view(schedule.entry)
            if not schedule.on:
                if view is not None:
                    await self.calendars.remove(schedule.entry.id)
            elif view is None or not view.as_defined:
                await self.calendars.put(replace(schedule.entry, paused=view is not None and view.paused))
