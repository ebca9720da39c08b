"""The words of a firing: what its workflow is told, by which ids all it does is known, and how it goes."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from baton.domain.operation.conduct.messages import Message
from baton.domain.shared.canonical import derived_uuid7


class FiringOrder(Message):
    """What the workflow of a firing is told: the schedule and, where a person fired it, by which event and when."""

    schedule_id: UUID
    trigger_id: UUID | None = None
    triggered_at: datetime | None = None
    correlation_id: UUID | None = None


class DueFiring(Message):
    """One firing: of which schedule, for when, and since when the engine waits for somebody to take it up."""

    schedule_id: UUID
    scheduled_at: datetime
    started_at: datetime
    trigger_id: UUID | None = None
    correlation_id: UUID | None = None

    @property
    def id(self) -> UUID:
        """The same whoever asks, and however often: from the time it was due, or from the event that triggered it."""
        if self.trigger_id is not None:
            return derived_uuid7(self.trigger_id.int >> 80, str(self.schedule_id), str(self.trigger_id))
        return derived_uuid7(self._milliseconds, str(self.schedule_id), self.scheduled_at.isoformat())

    def id_for(self, name: str) -> UUID:
        """The id of something that the firing makes."""
        return derived_uuid7(self.id.int >> 80, str(self.id), name)

    @property
    def run_id(self) -> UUID:
        return self.id_for("run")

    @property
    def conduct_id(self) -> UUID:
        return self.id_for("conduct")

    def procedure_id(self, index: int = 0) -> UUID:
        return self.id_for(f"procedure {index}")

    @property
    def _milliseconds(self) -> int:
        return int(self.scheduled_at.timestamp() * 1000)


class FiringVerdict(StrEnum):
    """How a firing goes."""

    OPENED = "opened"
    """Its conduct is on the record, and so is the firing."""
    REFUSED = "refused"
    """It came to nothing, and the record says why."""
    IDLE = "idle"
    """The schedule does not fire now; nothing was touched."""
