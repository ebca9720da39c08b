"""The engine's calendars: what it starts again and again by itself, put there from the record and never read as one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from baton.domain.operation.schedule.calendar import Calendar
from baton.domain.operation.schedule.schedule import Overlap


class CalendarRefusedError(Exception):
    """The engine does not take a calendar as it is; it is nobody's request that fails, so people read of it in the log."""


@dataclass(frozen=True)
class CalendarEntry:
    """A workflow to be started on a calendar: what the engine is to know of it, all of it."""

    id: str
    workflow: str
    calendar: Calendar
    argument: Any = None
    """What the workflow is told; nothing, where this is None."""
    time_zone: str = "UTC"
    overlap: Overlap = Overlap.SKIP
    catchup_window: int = 60
    """Seconds for which a missed firing is made up for."""
    jitter: int = 0
    paused: bool = False
    note: str = ""
    lifts: frozenset[str] = field(default=frozenset(), compare=False)
    """Notes of the pauses that end where this is not paused; one with any other note is somebody's, and stays."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Search attributes of what is started."""
    summary: str | None = None

    @property
    def workflow_id(self) -> str:
        """What the ids of the started workflows begin with; the engine adds the time."""
        return f"{self.workflow}:{self.id.partition(':')[2] or self.id}"

    def over(self, paused: bool, note: str) -> "CalendarEntry":
        """The entry as it is put where there is one: with a pause that is not ours to end."""
        return replace(self, paused=True, note=note) if paused and not self.paused and note not in self.lifts else self


@dataclass(frozen=True)
class CalendarView:
    """An entry as the engine has it."""

    as_defined: bool
    """Whether it is as it would be put; a pause apart, which is told by itself."""
    paused: bool
    note: str
    """What whoever paused or unpaused it last wrote there."""
    missed_count: int
    """Firings dropped because they were missed for too long, since the entry was made."""
    skipped_count: int
    """Firings skipped because an earlier one still went on."""
    next_times: tuple[datetime, ...]


class Calendars(Protocol):
    """The calendars of the workflow engine. Everything raises EngineUnavailableError."""

    async def put(self, entry: CalendarEntry) -> None:
        """Have the engine keep exactly this, somebody's pause apart, whatever it kept under the id.

        Raises CalendarRefusedError.
        """
        ...

    async def look(self, entry: CalendarEntry) -> CalendarView | None:
        """How the engine has an entry; None where it has none under its id."""
        ...

    async def remove(self, id: str) -> None:
        """Have the engine keep nothing under this id; what it has started goes on."""
        ...

    async def listed(self, prefix: str) -> Sequence[str]:
        """The ids of all entries that begin like this; one that was just put may be missing."""
        ...
