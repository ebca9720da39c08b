"""A workflow engine and its calendars in memory: they keep what is to be run and run nothing."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from baton.application.ports import Clock, EngineUnavailableError, EngineView, Job
from baton.application.schedules.calendars import CalendarEntry, CalendarView
from baton.domain.agent.reactions import OpenItem
from baton.domain.operation.schedule.calendar import next_firings


class MemoryEngine:
    """Jobs by id; one that is open stays so until a test ends it, and an engine that is not `reachable` does nothing."""

    def __init__(self) -> None:
        self.started: list[Job] = []  # every job that was begun, those that have ended too
        self.reachable = True
        self._open: dict[str, EngineView] = {}
        self._begun: dict[str, datetime] = {}

    async def start(self, job: Job) -> bool:
        self._reach()
        if job.id in self._open or (job.once and any(job.id == known.id for known in self.started)):
            return False
        self._open[job.id] = EngineView.OPEN
        self._begun[job.id] = datetime.now(UTC)
        self.started.append(job)
        return True

    async def look(self, id: str) -> EngineView:
        self._reach()
        return self._open.get(id, EngineView.ABSENT)

    async def terminate(self, id: str, reason: str) -> None:
        self._reach()
        self.end(id)

    async def open_items(self, workflows: Sequence[str]) -> Sequence[OpenItem]:
        self._reach()
        return [
            OpenItem(
                event_id=UUID(job.memo["event_id"]),
                workflow_id=job.id,
                started_at=self._begun[job.id],
                attempt=1,
                last_error=None,
            )
            for job in self.started
            if job.workflow in workflows and job.id in self._open and "event_id" in job.memo
        ]

    def end(self, id: str) -> None:
        self._open.pop(id, None)

    def stall(self, id: str) -> None:
        self._open[id] = EngineView.STALLED

    def _reach(self) -> None:
        if not self.reachable:
            raise EngineUnavailableError("The workflow engine cannot be reached; the work is recorded and will start.")


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
        defined = replace(entry, paused=kept.paused, note=kept.note)
        counts = (self.missed.get(entry.id, 0), self.skipped.get(entry.id, 0))
        times = next_firings(kept.calendar, kept.time_zone, self._clock(), 10)
        return CalendarView(kept == defined, kept.paused, kept.note, *counts, times)

    async def remove(self, id: str) -> None:
        self._reach()
        for kept in (self.entries, self.missed, self.skipped):
            kept.pop(id, None)

    async def list_ids(self, prefix: str) -> Sequence[str]:
        self._reach()
        return sorted(id for id in self.entries if id.startswith(prefix))

    def _reach(self) -> None:
        if not self.reachable:
            raise EngineUnavailableError("The workflow engine cannot be reached; its calendars are put right later.")
