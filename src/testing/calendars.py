"""The engine's calendars in memory: they are kept and shown, and start nothing; whoever has them plays the engine."""

from collections.abc import Sequence
from dataclasses import replace

from baton.application.ports import Clock, EngineUnavailableError
from baton.application.schedules.calendars import CalendarEntry, CalendarView
from baton.domain.operation.schedule.calendar import next_firings

SHOWN = 10


class MemoryCalendars:
    """Entries by id; `entries` and the counts may be changed past the port, as somebody in the engine would."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.reachable = True
        self.entries: dict[str, CalendarEntry] = {}
        self.missed: dict[str, int] = {}
        self.skipped: dict[str, int] = {}

    async def put(self, entry: CalendarEntry) -> None:
        self._reach()
        kept = self.entries.get(entry.id)
        self.entries[entry.id] = entry if kept is None else entry.over(kept.paused, kept.note)

    async def look(self, entry: CalendarEntry) -> CalendarView | None:
        self._reach()
        kept = self.entries.get(entry.id)
        if kept is None:
            return None
        told = replace(entry, paused=kept.paused, note=kept.note)
        return CalendarView(
            as_defined=kept == told,
            paused=kept.paused,
            note=kept.note,
            missed_count=self.missed.get(entry.id, 0),
            skipped_count=self.skipped.get(entry.id, 0),
            next_times=next_firings(kept.calendar, kept.time_zone, self._clock(), SHOWN),
        )

    async def remove(self, id: str) -> None:
        self._reach()
        for kept in (self.entries, self.missed, self.skipped):
            kept.pop(id, None)

    async def listed(self, prefix: str) -> Sequence[str]:
        self._reach()
        return sorted(id for id in self.entries if id.startswith(prefix))

    def _reach(self) -> None:
        if not self.reachable:
            raise EngineUnavailableError("The workflow engine cannot be reached; its calendars are put right later.")
