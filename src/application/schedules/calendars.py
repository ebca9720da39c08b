"""The port of the engine's calendars: what the engine starts again and again by itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from baton.domain.operation.schedule.calendar import Calendar
from baton.domain.operation.schedule.schedule import Overlap


class CalendarRefusedError(Exception):
    """The engine refuses a calendar; no request fails by it, so people read of it in the log."""


@dataclass(frozen=True)
class CalendarEntry:
    """A workflow to be started on a calendar, with everything the engine is to know of it."""

    id: str
    workflow: str
    calendar: Calendar
    argument: Any = None  # the workflow's argument; none where this is None
    time_zone: str = "UTC"
    overlap: Overlap = Overlap.SKIP
    catchup_window: int = 60  # seconds for which a missed firing is made up for
    jitter: int = 0
    paused: bool = False
    note: str = ""
    lifts: frozenset[str] = field(default=frozenset(), compare=False)
    """Notes of the pauses that end where this is not paused; one with any other note is somebody's, and stays."""
    attributes: Mapping[str, str] = field(default_factory=dict)  # search attributes of what is started
    summary: str | None = None

    @property
    def workflow_id(self) -> str:
        """Return the prefix of the started workflows' ids; the engine adds the time."""
        return f"{self.workflow}:{self.id.partition(':')[2] or self.id}"

    def over(self, paused: bool, note: str) -> "CalendarEntry":
        """Return the entry as it replaces an existing one: with a pause that is not ours to end."""
        return replace(self, paused=True, note=note) if paused and not self.paused and note not in self.lifts else self


@dataclass(frozen=True)
class CalendarView:
    as_defined: bool  # whether it is as it would be put, apart from a pause
    paused: bool
    note: str  # the note of the last pause or unpause
    missed_count: int  # firings dropped because they were missed for too long, since the entry was made
    skipped_count: int  # firings skipped because an earlier one still went on
    next_times: tuple[datetime, ...]


class Calendars(Protocol):
    """The calendars of the workflow engine. Everything raises EngineUnavailableError."""

    async def put(self, entry: CalendarEntry) -> None:
        """Put exactly this entry into the engine, apart from somebody's pause; raise CalendarRefusedError."""

    async def look(self, entry: CalendarEntry) -> CalendarView | None:
        """Return the state of an entry; None where the engine has none under its id."""

    async def remove(self, id: str) -> None:
        """Remove the entry under this id; what it has started goes on."""

    async def list_ids(self, prefix: str) -> Sequence[str]:
        """Return the ids of all entries that begin like this; one that was just put may be missing."""
