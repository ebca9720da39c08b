"""A queue: what is to be conducted next at a beamline, in order, each item as the principal that added it. Its stream is the
authority; a workflow of the engine follows it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Self, assert_never
from uuid import UUID

from pydantic import Field, model_validator

from baton.domain.equipment.asset import DECOMMISSIONED, Asset
from baton.domain.equipment.asset_tree import refuse_part
from baton.domain.kernel import (
    Aggregate,
    Call,
    Command,
    Event,
    JudgedCreation,
    JudgedVerb,
    Outcome,
    State,
    Value,
    Verb,
    copy_with,
    omittable,
)
from baton.domain.launch.launch import StoredTarget
from baton.domain.queue import items as queue_items
from baton.domain.queue.items import (
    MAX_REMAINING,
    InvalidQueueItemTargetError,
    Items,
    QueueItem,
    QueueItemStatus,
    QueueTarget,
)
from baton.domain.recipe.template_versions import ContentHash, TemplateVersion
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.reads import Reads, require
from baton.domain.shared.refusals import Conflict, NotFound
from baton.domain.shared.text import FreeText, StateReason
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Answer, Claim, Delist, Enlist, Release
from baton.domain.target.target_checks import TargetSources, check_target, confirmed_versions, load_sources
from baton.domain.target.targets import stored_target

ASSET_QUEUES = "asset-queue"  # Claim kind: the queue of an asset that is not retired.
BUSY_QUEUES = "queue-busy"  # Look-up kind: the queues that have something to do.
BLOCKED_QUEUES = "queue-blocked"  # Look-up kind: the queues whose first item is blocked.
MAX_ADDED = 500  # Items that are added at a time.
ATTEMPTS = 3  # How often a command is decided again while the queue changes under it.


class QueueStatus(StrEnum):
    ACTIVE = "Active"
    HELD = "Held"
    RETIRED = "Retired"


ACTIVE, HELD, RETIRED = QueueStatus


class OnFailure(StrEnum):
    """What an item that fails or is refused leads to: the queue is held, or it continues with the next one."""

    HOLD = "hold"
    CONTINUE = "continue"


@dataclass(frozen=True, kw_only=True)
class Queue(State):
    """A queue conducts its items one after the other, each as the principal that added it."""

    name: FreeText
    asset_id: UUID
    on_failure: OnFailure
    status: QueueStatus = ACTIVE
    last_status_reason: FreeText | None = None
    ended: Items = ()  # The items that have ended and are kept, the last one at the end.
    running: QueueItem | None = None
    ahead: Items = ()  # The items that wait, in their order; only the first can be blocked.
    item_count: int = 0  # How many were ever added.

    @property
    def items_left(self) -> Items:
        """The running item, then those that wait, in their order."""
        return self.ahead if self.running is None else (self.running, *self.ahead)

    @property
    def items(self) -> Items:
        """Every item that is kept: those that have ended, as they ended, the running one, and those that wait."""
        return (*self.ended, *self.items_left)

    @property
    def running_item_id(self) -> UUID | None:
        return None if self.running is None else self.running.item_id

    @property
    def waiting_count(self) -> int:
        return len(self.ahead)

    @property
    def blocked(self) -> bool:
        """Whether the first of the items that wait is blocked."""
        return any(item.status is queue_items.BLOCKED for item in self.ahead[:1])

    @property
    def busy(self) -> bool:
        """Whether there is something to do: an item is under way, or one waits and the queue is not held."""
        return self.running is not None or (self.status is ACTIVE and bool(self.ahead))


queue = Aggregate(Queue, "/queues", context="operation")


class QueueOpened(Event, of=queue):
    """The queue was opened, and conducts what is added to it."""

    name: FreeText
    asset_id: UUID
    on_failure: OnFailure


class AddedItem(Value):
    """An item as it was added."""

    item_id: UUID
    number: int
    title: FreeText
    target: StoredTarget
    added_by: UUID
    surface_id: UUID
    conduit_id: UUID
    not_before: datetime | None
    pause_after: bool
    versions: tuple[TemplateVersion, ...] = ()  # Of what the target names; none in items from before they were kept.


class QueueItemsAdded(Event, of=queue, version=2, upcasters={1: dict}):
    """Items were added, before another one or at the end."""

    items: tuple[AddedItem, ...]
    before_item_id: UUID | None


class QueueItemMoved(Event, of=queue):
    """An item that waits was moved before another one, or to the end."""

    item_id: UUID
    before_item_id: UUID | None


class QueueItemEdited(Event, of=queue, version=2, upcasters={1: dict}):
    """An item that waits was changed to this; `added_by` is as whom it is conducted."""

    item_id: UUID
    title: FreeText
    target: StoredTarget
    added_by: UUID
    surface_id: UUID
    conduit_id: UUID
    not_before: datetime | None
    pause_after: bool
    versions: tuple[TemplateVersion, ...] = ()


class QueueItemRemoved(Event, of=queue):
    """An item that waited was taken out."""

    item_id: UUID
    reason: FreeText


class QueueItemStarted(Event, of=queue):
    """An item had its turn: its run or procedure is opened under this id."""

    item_id: UUID
    attempt: int
    run_id: UUID | None
    procedure_id: UUID | None


class QueueItemBlocked(Event, of=queue):
    """The first item cannot start now, by this refusal, which may pass; `attempt` is the one to be made next."""

    item_id: UUID
    attempt: int
    code: str
    detail: StateReason


class QueueItemRefused(Event, of=queue):
    """An item was refused, by this refusal."""

    item_id: UUID
    code: str
    detail: StateReason


class QueueItemCompleted(Event, of=queue):
    """The run or procedure of an item was completed."""

    item_id: UUID


class QueueItemStopped(Event, of=queue):
    """The run or procedure of an item was ended early, as somebody asked."""

    item_id: UUID
    code: str
    detail: StateReason


class QueueItemFailed(Event, of=queue):
    """The run or procedure of an item ended otherwise, and nobody asked for that."""

    item_id: UUID
    code: str
    detail: StateReason


class QueueHeld(Event, of=queue):
    """The queue was kept from starting items until somebody resumes it; `item_id` is the item that it was held for."""

    reason: StateReason
    item_id: UUID | None = None


class QueueResumed(Event, of=queue):
    """The queue was let start items again."""

    reason: FreeText | None = None


class QueueRetired(Event, of=queue):
    """The queue was closed for good; what waited was taken out."""

    reason: StateReason


ItemEnd = QueueItemRemoved | QueueItemRefused | QueueItemCompleted | QueueItemStopped | QueueItemFailed
ItemEvent = QueueItemsAdded | QueueItemMoved | QueueItemEdited | QueueItemStarted | QueueItemBlocked | ItemEnd
QueueEvent = ItemEvent | QueueHeld | QueueResumed | QueueRetired


@queue.evolve
def evolve(queue: Queue, event: QueueEvent) -> Queue:
    match event:
        case QueueHeld():
            return copy_with(queue, status=HELD, last_status_reason=event.reason)
        case QueueResumed():
            return copy_with(queue, status=ACTIVE, last_status_reason=event.reason)
        case QueueRetired():
            removed = {"status": queue_items.REMOVED, "code": None, "detail": event.reason, "ended_at": event.occurred_at}
            ended = queue_items.append_ended(queue.ended, *(item.with_values(**removed) for item in queue.ahead))
            return copy_with(queue, status=RETIRED, last_status_reason=event.reason, ended=ended, ahead=())
        case QueueItemsAdded():
            added = tuple(QueueItem(**dict(item)) for item in event.items)
            ahead = queue_items.insert_items(queue.ahead, added, event.before_item_id)
            return copy_with(queue, ahead=ahead, item_count=queue.item_count + len(added))
        case QueueItemMoved():
            return copy_with(queue, ahead=queue_items.move_item(queue.ahead, event.item_id, event.before_item_id))
        case QueueItemEdited():
            return copy_with(queue, ahead=queue_items.replace_item(queue.ahead, edited_item(queue, event)))
        case QueueItemStarted():
            ids = {"attempt": event.attempt, "run_id": event.run_id, "procedure_id": event.procedure_id}
            now = {"status": queue_items.RUNNING, "code": None, "detail": None, "started_at": event.occurred_at}
            started = remaining_item(queue, event.item_id).with_values(**ids, **now)
            return copy_with(queue, running=started, ahead=queue_items.without_item(queue.ahead, event.item_id))
        case QueueItemBlocked():
            nothing = {"run_id": None, "procedure_id": None, "started_at": None}
            why = {"status": queue_items.BLOCKED, "code": event.code, "detail": event.detail}
            blocked = remaining_item(queue, event.item_id).with_values(attempt=event.attempt, **nothing, **why)
            rest = without_item(queue, event.item_id)
            return copy_with(rest, ahead=(blocked, *rest.ahead))
        case QueueItemRemoved():
            return with_ended(queue, event, queue_items.REMOVED, None, event.reason)
        case QueueItemRefused():
            return with_ended(queue, event, queue_items.REFUSED, event.code, event.detail)
        case QueueItemStopped():
            return with_ended(queue, event, queue_items.STOPPED, event.code, event.detail)
        case QueueItemFailed():
            return with_ended(queue, event, queue_items.FAILED, event.code, event.detail)
        case QueueItemCompleted():
            return with_ended(queue, event, queue_items.COMPLETED, None, None)
        case _:
            assert_never(event)


def remaining_item(queue: Queue, item_id: UUID) -> QueueItem:
    """Return an item that has not ended."""
    item = queue_items.find_item(queue.items_left, item_id)
    assert item is not None, "what something becomes of has not ended"
    return item


def without_item(queue: Queue, item_id: UUID) -> Queue:
    """Return the queue without an item that has not ended."""
    if queue.running is not None and queue.running.item_id == item_id:
        return copy_with(queue, running=None)
    return copy_with(queue, ahead=queue_items.without_item(queue.ahead, item_id))


def with_ended(queue: Queue, event: ItemEnd, status: QueueItemStatus, code: str | None, detail: str | None) -> Queue:
    """Return the queue after an item has ended so."""
    end = {"status": status, "code": code, "detail": detail, "ended_at": event.occurred_at}
    item = remaining_item(queue, event.item_id).with_values(**end)
    return copy_with(without_item(queue, event.item_id), ended=queue_items.append_ended(queue.ended, item))


def edited_item(queue: Queue, event: QueueItemEdited) -> QueueItem:
    """Return an item as it was edited; one that has something else to do, or at another time, is not blocked."""
    item, values = remaining_item(queue, event.item_id), {name: value for name, value in event if name != "item_id"}
    judged_anew = (item.target, item.not_before, item.versions) != (event.target, event.not_before, event.versions)
    return (item.as_waiting() if judged_anew else item).with_values(**values)


def record(queue: Queue, call: Call, *events: Event) -> list[Any]:
    """Return events of a queue with the look-up entries by which it is found while it is busy, or blocked."""
    after = queue.aggregate.fold([event.stamp(queue.id, call.now) for event in events], queue)
    assert after is not None, "what has a state keeps one"
    return [*events, *entries(BUSY_QUEUES, queue, after, "busy"), *entries(BLOCKED_QUEUES, queue, after, "blocked")]


def entries(kind: str, before: Queue, after: Queue, flag: str) -> list[Enlist | Delist]:
    """Return the entry by which a queue becomes findable under a kind of look-up, or stops to be."""
    was, is_now = getattr(before, flag), getattr(after, flag)
    key = str(before.asset_id)
    return [] if was == is_now else [Enlist(kind, key) if is_now else Delist(kind, key)]


class AssetHasQueueError(Conflict, context="operation", reason="queue_open"):
    """The asset has a queue already; one asset has one that is not retired."""


class QueueItemNotFoundError(NotFound, context="operation"):
    """The queue has no item with this id."""


class QueueItemWithdrawnError(Conflict, context="operation", passing=True):
    """The queue was held before the item had opened its conduct."""


Name = Annotated[str, queue.text("name", 200, personal=True)]
Title = Annotated[str, queue.text("item_title", 200, label="title", personal=True)]
ItemId = Annotated[UUID, Field(description="The item of the queue.")]


@queue.creation(refuses=[queue.AlreadyExists])
class OpenQueue(JudgedCreation[Asset]):
    """Open the queue of a beamline: what is added to it is conducted in order, each item as who added it."""

    name: Name
    asset_id: UUID
    """The beamline: a root of the asset tree."""
    on_failure: OnFailure = OnFailure.HOLD

    def gather(self, call: Call) -> Reads[Asset]:
        asset = yield from require(Asset, self.asset_id)
        yield from refuse_part(asset, "open the queue of that root")
        return asset

    def decide(self, call: Call, asset: Asset) -> Outcome:
        if asset.lifecycle is DECOMMISSIONED:
            raise self.cannot("asset_decommissioned", f"{asset.name} is Decommissioned; open the queue of another asset.")
        rival = AssetHasQueueError(f"{asset.name} has a queue already; add to it, or retire it first.")
        return [QueueOpened(**dict(self)), Claim(ASSET_QUEUES, str(self.asset_id), rival)]


def require_item(queue: Queue, item_id: UUID) -> QueueItem:
    """Return an item of the queue; refuse with 404 where it has none with this id."""
    if (item := queue_items.find_item(queue.items, item_id)) is None:
        detail = f"The queue has no item {item_id}; list_queue_items shows those that it has."
        raise QueueItemNotFoundError(detail, facts={"item_id": item_id})
    return item


def refuse_begun(command: Command, item: QueueItem) -> None:
    """Refuse a command on an item that does not wait any more."""
    detail = f"The item is {item.status.value}; only one that waits can be changed, moved, or have others before it."
    match item.status:
        case QueueItemStatus.WAITING | QueueItemStatus.BLOCKED:
            return
        case QueueItemStatus.RUNNING:
            raise command.cannot("running", detail, item_id=item.item_id)
        case QueueItemStatus.COMPLETED:
            raise command.cannot("completed", detail, item_id=item.item_id)
        case QueueItemStatus.STOPPED:
            raise command.cannot("stopped", detail, item_id=item.item_id)
        case QueueItemStatus.FAILED:
            raise command.cannot("failed", detail, item_id=item.item_id)
        case QueueItemStatus.REFUSED:
            raise command.cannot("refused", detail, item_id=item.item_id)
        case QueueItemStatus.REMOVED:
            raise command.cannot("removed", detail, item_id=item.item_id)
        case _:
            assert_never(item.status)


class NewQueueItem(Value):
    """Something to conduct in its turn; `not_before` a time, and with `pause_after` the queue is held behind it."""

    title: Title
    """What people call the item."""
    target: QueueTarget
    """What to conduct: a recipe, or a run on a plan."""
    not_before: Instant | None = None
    pause_after: bool = False


class QueueItemsAddedAnswer(AnswerForm):
    """The ids of the items, in the order they were given."""

    item_ids: tuple[UUID, ...]
    """The items of the queue."""


@queue.command(
    post="/{queue_id}/add-items", allowed=[ACTIVE, HELD], status=200, returns=QueueItemsAddedAnswer, attempts=ATTEMPTS
)
class AddQueueItems(JudgedVerb[Queue, TargetSources]):
    """Add items at the end or before one that waits, all or none; each is conducted as the caller of this command."""

    items: Annotated[tuple[NewQueueItem, ...], Field(min_length=1, max_length=MAX_ADDED)]
    """The items to add, in their order."""
    before_item_id: Annotated[UUID | None, Field(description="The item to stand before; left out, at the end.")] = None

    def gather(self, queue: Queue, call: Call) -> Reads[TargetSources]:
        sources = yield from load_sources([item.target for item in self.items])
        if self.before_item_id is not None:
            require_item(queue, self.before_item_id)
        return sources

    def decide(self, queue: Queue, call: Call, sources: TargetSources) -> Outcome:
        if self.before_item_id is not None:
            refuse_begun(self, require_item(queue, self.before_item_id))
        for item in self.items:
            check_target(item.target, sources, call, InvalidQueueItemTargetError)
        if (count := len(queue.items_left) + len(self.items)) > MAX_REMAINING:
            detail = f"A queue has at most {MAX_REMAINING} items that have not ended, and these would be {count}; add fewer."
            raise self.cannot("too_many", detail, count=count)
        by: dict[str, Any] = {"added_by": call.principal_id, "surface_id": call.surface_id, "conduit_id": call.conduit_id}
        added = tuple(
            AddedItem(
                **{**dict(item), "target": stored_target(item.target)},
                **by,
                versions=sources.versions(item.target),
                item_id=call.id_for(f"item {index}"),
                number=queue.item_count + index + 1,
            )
            for index, item in enumerate(self.items)
        )
        event = QueueItemsAdded(items=added, before_item_id=self.before_item_id)
        answer = QueueItemsAddedAnswer(item_ids=tuple(item.item_id for item in added))
        return [*record(queue, call, event), Answer(answer.model_dump(mode="json"))]


@queue.command(post="/{queue_id}/move-item", allowed=[ACTIVE, HELD], attempts=ATTEMPTS)
class MoveQueueItem(JudgedVerb[Queue, QueueItem]):
    """Move an item that waits before another one that waits, or to the end."""

    item_id: ItemId
    before_item_id: Annotated[UUID | None, Field(description="The item to stand before; null for the end.")] = None

    def gather(self, queue: Queue, call: Call) -> Reads[QueueItem]:
        item = require_item(queue, self.item_id)
        if self.before_item_id is not None:
            require_item(queue, self.before_item_id)
        return item
        yield

    def decide(self, queue: Queue, call: Call, item: QueueItem) -> Outcome:
        refuse_begun(self, item)
        if self.before_item_id is not None:
            refuse_begun(self, require_item(queue, self.before_item_id))
        if queue_items.move_item(queue.ahead, self.item_id, self.before_item_id) == queue.ahead:
            return []
        return record(queue, call, QueueItemMoved(**dict(self)))


@queue.command(post="/{queue_id}/edit-item", allowed=[ACTIVE, HELD], attempts=ATTEMPTS)
class EditQueueItem(JudgedVerb[Queue, TargetSources]):
    """Change an item that waits; with another target it is conducted as the caller of this command.

    A key left out keeps what is; a null `not_before` lets it start in its turn. Where the recipe, plan, practice or method
    of its target is another version than when it was added, the item waits until somebody confirms the present one by
    `confirmed_digest`, as whom it is conducted then, or gives it a target.
    """

    item_id: ItemId
    title: Title = omittable()
    target: QueueTarget = omittable()
    """What to conduct instead: a recipe, or a run on a plan."""
    not_before: Instant | None = omittable()
    pause_after: bool = omittable()
    confirmed_digest: ContentHash = omittable()
    """Confirms the present version of its target, by what the gate target_unchanged shows."""

    @model_validator(mode="after")
    def _check_change_given(self) -> Self:
        if not self.changes:
            raise ValueError("give at least one of title, target, not_before, pause_after and confirmed_digest")
        if {"target", "confirmed_digest"} <= self.changes:
            raise ValueError("give a target, or confirm the present version of the one that the item has")
        return self

    @property
    def changes(self) -> set[str]:
        """The names of what is to be changed."""
        return self.model_fields_set - {"item_id"}

    def gather(self, queue: Queue, call: Call) -> Reads[TargetSources]:
        item = require_item(queue, self.item_id)
        confirmed = [item.aim] if "confirmed_digest" in self.changes else []
        return (yield from load_sources([self.target] if "target" in self.changes else confirmed))

    def decide(self, queue: Queue, call: Call, sources: TargetSources) -> Outcome:
        item = require_item(queue, self.item_id)
        refuse_begun(self, item)
        kept = {name: getattr(item, name) for name in QueueItemEdited.model_fields}
        changed = {name: getattr(self, name) for name in self.changes - {"confirmed_digest"}}
        by = {"added_by": call.principal_id, "surface_id": call.surface_id, "conduit_id": call.conduit_id}
        if "target" in self.changes:
            check_target(self.target, sources, call, InvalidQueueItemTargetError)
            changed |= {"target": stored_target(self.target), "versions": sources.versions(self.target), **by}
        if "confirmed_digest" in self.changes:
            changed |= {"versions": confirmed_versions(self, self.confirmed_digest, sources.versions(item.aim)), **by}
        if all(kept[name] == value for name, value in changed.items()):
            return []
        return record(queue, call, QueueItemEdited(**{**kept, **changed}))


@queue.command(post="/{queue_id}/remove-item", allowed=[ACTIVE, HELD], attempts=ATTEMPTS, destructive=True)
class RemoveQueueItem(JudgedVerb[Queue, QueueItem]):
    """Take an item out that waits; it is not conducted."""

    item_id: ItemId
    reason: Annotated[str, queue.text("remove_reason", 500, label="reason", personal=True)]

    def gather(self, queue: Queue, call: Call) -> Reads[QueueItem]:
        return require_item(queue, self.item_id)
        yield

    def decide(self, queue: Queue, call: Call, item: QueueItem) -> Outcome:
        refuse_begun(self, item)
        return record(queue, call, QueueItemRemoved(**dict(self)))


@queue.command(post="/{queue_id}/hold", allowed=[ACTIVE], leads_to=HELD, attempts=ATTEMPTS)
class HoldQueue(Verb[Queue]):
    """Start no more items until somebody resumes; the one under way is not touched."""

    reason: Annotated[str, queue.text("hold_reason", 500, label="reason", personal=True)]

    def decide(self, queue: Queue, call: Call) -> Outcome:
        return record(queue, call, QueueHeld(reason=self.reason))


@queue.command(post="/{queue_id}/resume", allowed=[HELD], leads_to=ACTIVE, attempts=ATTEMPTS)
class ResumeQueue(Verb[Queue]):
    """Start items again, with the first that waits; what failed is not repeated."""

    reason: Annotated[str, queue.text("resume_reason", 500, label="reason", personal=True)] | None = None

    def decide(self, queue: Queue, call: Call) -> Outcome:
        return record(queue, call, QueueResumed(reason=self.reason))


@queue.command(post="/{queue_id}/retire", allowed=[ACTIVE, HELD], attempts=ATTEMPTS, destructive=True)
class RetireQueue(Verb[Queue]):
    """Close the queue for good: what waits is removed, what is under way continues."""

    reason: Annotated[str, queue.text("retire_reason", 500, label="reason", personal=True)]

    def decide(self, queue: Queue, call: Call) -> Outcome:
        return [*record(queue, call, QueueRetired(reason=self.reason)), Release(ASSET_QUEUES, str(queue.asset_id))]
