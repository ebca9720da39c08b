"""The messages of a firing: what its workflow receives, the ids of everything it makes, how it goes, and its outcome."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from baton.domain.conduct.messages import Message
from baton.domain.kernel import Value
from baton.domain.launch.launch_ids import LaunchIds
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.text import FreeText


class FiringOrder(Message):
    """The argument of a firing's workflow: the schedule and, where a person fired it, by which event and when."""

    schedule_id: UUID
    trigger_id: UUID | None = None
    triggered_at: datetime | None = None
    correlation_id: UUID | None = None


class DueFiring(Message, LaunchIds):
    """One firing: its schedule, when it was due, and when its workflow started."""

    schedule_id: UUID
    scheduled_at: datetime
    started_at: datetime
    trigger_id: UUID | None = None
    correlation_id: UUID | None = None

    @property
    def id(self) -> UUID:
        """Return an id derived from the time it was due, or from the event that triggered it."""
        if self.trigger_id is not None:
            return derived_uuid7(self.trigger_id.int >> 80, str(self.schedule_id), str(self.trigger_id))
        milliseconds = int(self.scheduled_at.timestamp() * 1000)
        return derived_uuid7(milliseconds, str(self.schedule_id), self.scheduled_at.isoformat())


class FiringVerdict(StrEnum):
    """How a firing goes."""

    OPENED = "opened"  # its conduct is on the record, and so is the firing
    REFUSED = "refused"  # it opened nothing, and the record says why
    IDLE = "idle"  # the schedule does not fire now; nothing was touched


class Firing(Value):
    """The outcome of a firing: what it opened, or the refusal."""

    scheduled_at: datetime
    """When the calendar had it fire."""
    run_id: UUID | None = None
    procedure_id: UUID | None = None
    code: str | None = None
    detail: FreeText | None = None
