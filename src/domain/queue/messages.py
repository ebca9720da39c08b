"""The messages of a queue's workflow: what it receives, what a turn came to, and the item it waits for."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from baton.domain.conduct.messages import Message, OwnedRequest

QUEUE = "queue"  # the workflow of a queue, and the beginning of its id


def queue_workflow_id(queue_id: UUID) -> str:
    """Return the id of the one workflow of a queue."""
    return f"{QUEUE}:{queue_id}"


class QueueOrder(OwnedRequest):
    """The argument of a queue's workflow, and of its turns."""

    queue_id: UUID

    @property
    def workflow_id(self) -> str:
        return queue_workflow_id(self.queue_id)


class ItemRequest(QueueOrder):
    """One attempt at an item, whose end is waited for."""

    item_id: UUID
    attempt: int


class TurnVerdict(StrEnum):
    """What a turn came to."""

    OPENED = "opened"  # the conduct of an item is open, and its end is to be waited for
    BLOCKED = "blocked"  # the first item cannot start now, and the record says why
    EARLY = "early"  # the first item is not to start yet
    AGAIN = "again"  # something changed; look at the queue again
    IDLE = "idle"  # there is nothing to do


class TurnReport(Message):
    """What a turn came to, with the attempt that was opened or the time that is waited for."""

    verdict: TurnVerdict
    item_id: UUID | None = None
    attempt: int = 1
    until: datetime | None = None
