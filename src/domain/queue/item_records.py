"""What the service records about the item whose turn it is: that it started, is blocked, was refused, or has ended. Each may
be repeated: what is on record already, or is overtaken, changes nothing."""

import re
from uuid import UUID

from baton.domain.conduct.progress import OpenedConduct, OpenedRunConduct
from baton.domain.kernel import Call, Command, Event, JudgedVerb, Outcome, Verb
from baton.domain.launch.launch import LaunchOrigin
from baton.domain.queue import queue as queues
from baton.domain.queue.items import BLOCKED, RUNNING, QueueItem, find_item
from baton.domain.queue.queue import ACTIVE, RETIRED, OnFailure, Queue, queue, record
from baton.domain.shared.reads import Reads, record_of
from baton.domain.shared.writes import Record
from baton.domain.target.half_begun import HalfBegun, load_half_begun
from baton.domain.target.start_launch import ArrangedLaunch
from baton.domain.target.targets import ConductPlan, with_filled_names

MAX_DETAIL = 500  # Characters of a sentence that are kept.


class ItemRecord(Command):
    """Something about one attempt at an item."""

    item_id: UUID
    attempt: int

    def find(self, queue: Queue) -> QueueItem | None:
        """Return the item while this is the attempt at it that counts and it has not ended; None where it is overtaken."""
        item = find_item(queue.items_left, self.item_id)
        return item if item is not None and item.attempt == self.attempt else None


def arranged_item(queue: Queue, item: QueueItem) -> ArrangedLaunch:
    """Return what an item launches, with its names filled in."""
    return ArrangedLaunch(
        target=with_filled_names(item.aim, item.started_at or queue.created_at, item.number),
        versions=item.versions,
        by=LaunchOrigin.QUEUE_ITEM,
        queue_id=queue.id,
        item_id=item.item_id,
    )


def without_ages(detail: str | None) -> str:
    """Return a sentence without the seconds in it: it says the same while only something gets older."""
    return re.sub(r"\b\d+ s\b", "s", detail or "")


def hold_behind(queue: Queue, item: QueueItem, detail: str | None) -> list[Event]:
    """Return the hold of a queue behind an item: because it failed with this sentence, or somebody is to look after it."""
    if queue.status is not ACTIVE or not (item.pause_after or (detail is not None and queue.on_failure is OnFailure.HOLD)):
        return []
    reason = f"Paused behind {item.title}." if detail is None else f"{item.title}: {detail}"
    return [queues.QueueHeld(reason=reason[:MAX_DETAIL], item_id=item.item_id)]


@queue.internal_command()
class StartQueueItem(ItemRecord, Verb[Queue]):
    """Record that the turn of the first item has come, under which ids it is opened; refuse one whose turn it is not."""

    def decide(self, queue: Queue, call: Call) -> Outcome:
        item = self.find(queue)
        if item is not None and item.status is RUNNING:
            return []
        early = item is not None and item.not_before is not None and item.not_before > call.now
        if item is None or early or queue.status is not ACTIVE or queue.items_left[0] is not item:
            raise self.cannot("not_next", "The turn of this item has not come; look at the queue again.")
        runs = isinstance(item.aim, ConductPlan)
        ids = {"run_id": item.launch.run_id if runs else None, "procedure_id": None if runs else item.launch.procedure_id()}
        return record(queue, call, queues.QueueItemStarted(item_id=item.item_id, attempt=item.attempt, **ids))


class RefusalRecord(ItemRecord, JudgedVerb[Queue, HalfBegun | None]):
    """A refusal of an item. What an earlier release has begun of it is aborted in the same transaction; one whose conduct is
    open after all, by another process, is left alone. What is begun meanwhile has it decided again."""

    code: str
    detail: str

    def gather(self, queue: Queue, call: Call) -> Reads[HalfBegun | None]:
        """Return what there is of the attempt, or None where its conduct is open."""
        item = self.find(queue)
        if item is None or item.status is not RUNNING:
            return HalfBegun(made=False, ends=())
        row = OpenedConduct if item.run_id is None else OpenedRunConduct
        opened: Record | None = yield from record_of(row, conduct_id=item.launch.conduct_id)
        reason = f"The queue {queue.name} did not conduct it: {self.detail}"[:MAX_DETAIL]
        begun = yield from load_half_begun(item.launch, item.aim, reason, call)
        return begun if opened is None else None


@queue.internal_command(gated=True)
class BlockQueueItem(RefusalRecord):
    """Record what keeps the first item from starting and may pass; one that had been started waits again, unless the queue
    is retired. Its next attempt has other ids where this one has made something."""

    def decide(self, queue: Queue, call: Call, begun: HalfBegun | None) -> Outcome:
        item, detail = self.find(queue), self.detail[:MAX_DETAIL]
        if item is None or begun is None or queue.items_left[0] is not item:
            return []
        if item.status is BLOCKED and item.code == self.code and without_ages(item.detail) == without_ages(detail):
            return []
        why = {"code": self.code, "detail": detail}
        outcome: Event = queues.QueueItemBlocked(item_id=item.item_id, attempt=item.attempt + begun.made, **why)
        if queue.status is RETIRED:
            reason = f"The queue was retired before it could start: {detail}"[:MAX_DETAIL]
            outcome = queues.QueueItemRemoved(item_id=item.item_id, reason=reason)
        return [*record(queue, call, outcome), *begun.ends]


@queue.internal_command(gated=True)
class RefuseQueueItem(RefusalRecord):
    """Record that an item was refused for good, and its launch with it; hold the queue where that is wanted."""

    def decide(self, queue: Queue, call: Call, begun: HalfBegun | None) -> Outcome:
        item, detail = self.find(queue), self.detail[:MAX_DETAIL]
        if item is None or begun is None:
            return []
        refused = queues.QueueItemRefused(item_id=item.item_id, code=self.code, detail=detail)
        launch = arranged_item(queue, item).refusal_record(item.launch.id, item.added_by, self.code, detail)
        return [*record(queue, call, refused, *hold_behind(queue, item, detail)), *begun.ends, launch]


@queue.internal_command()
class EndQueueItem(ItemRecord, Verb[Queue]):
    """Record that the run or procedure of an item has ended: completed, or otherwise by this code and sentence, because
    somebody asked for it or by itself. In both cases the queue is held where that is wanted: somebody is to look first."""

    code: str | None = None
    detail: str | None = None
    asked: bool = False

    def decide(self, queue: Queue, call: Call) -> Outcome:
        item = self.find(queue)
        if item is None or item.status is not RUNNING:
            return []
        if self.code is None:
            completed = queues.QueueItemCompleted(item_id=item.item_id)
            return record(queue, call, completed, *hold_behind(queue, item, None))
        detail = (self.detail or self.code)[:MAX_DETAIL]
        kind = queues.QueueItemStopped if self.asked else queues.QueueItemFailed
        ended = kind(item_id=item.item_id, code=self.code, detail=detail)
        return record(queue, call, ended, *hold_behind(queue, item, detail))
