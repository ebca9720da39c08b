"""How the engine's calendars stand to the schedules on record: rows beside the streams, which are the authority."""

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from baton.domain.shared.writes import Record


@dataclass(frozen=True)
class ScheduleChange(Record):
    """A change of a schedule that the engine has not been told of; the latest one stands for all."""

    relation: ClassVar[str] = "schedule_changes"
    key: ClassVar[tuple[str, ...]] = ("schedule_id",)
    schedule_id: UUID
    change_id: UUID


@dataclass(frozen=True)
class ScheduleStanding(Record):
    """What the engine has been told of a schedule and was last seen to say; the keeper writes it, one at a time."""

    relation: ClassVar[str] = "schedule_standings"
    key: ClassVar[tuple[str, ...]] = ("schedule_id",)
    schedule_id: UUID
    removed: bool = False
    """Whether a retired one is gone from the engine."""
    paused: bool = False
    """Whether a pause that was marked as taken over in the engine is on the record."""
    missed_count: int = 0
    """Firings that the engine dropped because they were missed for longer than the catch-up window."""
    skipped_count: int = 0
    """Firings that the engine skipped because an earlier one still went on."""
    missed_seen: int = 0
    """What the engine's own count was last seen at; it begins again where its calendar was made anew."""
    skipped_seen: int = 0
