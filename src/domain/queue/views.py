"""The views of queues: one with its items and a forecast, all of them, and the items of one."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from baton.domain.access.actor import appearance, names_of
from baton.domain.conduct.estimates import Estimate
from baton.domain.conduct.holds import HoldNow, hold_now
from baton.domain.kernel import Call, CursorText, NamesOnRequest, PageLimit, TimeTravel, Value, values_of
from baton.domain.queue.forecast import ClosedQueueGate, ItemForecast, forecast_queue, item_estimate, running_estimate
from baton.domain.queue.items import Items, QueueItem, QueueItemStatus
from baton.domain.queue.queue import ASSET_QUEUES, OnFailure, Queue, QueueHeld, QueueStatus, queue
from baton.domain.recipe.template_versions import TemplateVersion
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.listing import NamedListQuery, Page, Summary, decode_cursor, encode_cursor, malformed_cursor
from baton.domain.shared.reads import Holders, Reads, find, latest_events
from baton.domain.shared.refusals import InvalidCursorError
from baton.domain.shared.text import FreeText
from baton.domain.target.targets import Target

LAST = 10  # Items that have ended which `get_queue` shows.


class QueueItemView(Value):
    """One thing to conduct, as whom, and what became of it.

    `detail` is the sentence of what blocks, refused or failed it, or why it was removed.
    """

    item_id: UUID
    number: int
    """The number of the item, counted from 1 as they were added."""
    title: FreeText
    target: Target
    """What is conducted: a recipe, or a run on a plan."""
    added_by: UUID
    """The actor as whom it is conducted: who added it, or gave it its target."""
    surface_id: UUID
    conduit_id: UUID
    not_before: datetime | None
    pause_after: bool
    versions: tuple[TemplateVersion, ...]
    """The versions of what its target names, when it was given or confirmed."""
    status: QueueItemStatus
    attempt: int
    """The number of the attempt, counted from 1."""
    run_id: UUID | None
    procedure_id: UUID | None
    code: str | None
    """The class name of what blocks, refused or failed it."""
    detail: FreeText | None
    """What blocks, refused or failed it, or why it was removed, in a sentence."""
    started_at: datetime | None
    ended_at: datetime | None
    estimate: Estimate | None
    """How long it takes, or its rest; null where not known. `get_queue` says it of the first items, the list of all."""


def item_view(item: QueueItem, estimate: Estimate | None = None) -> QueueItemView:
    """Return an item as it is shown."""
    return QueueItemView(**{**dict(item), "target": item.aim, "estimate": estimate})


class QueueNow(AnswerForm):
    """The queue of a beamline at one moment: what runs, what is next, and what would keep that from starting now."""

    queue_id: UUID
    name: FreeText
    status: QueueStatus
    last_status_reason: FreeText | None
    hold: HoldNow | None
    """Why it is held, since when and by whom; null where it is not."""
    waiting_count: int
    """Number of items that wait."""
    running: QueueItemView | None
    """The item under way."""
    next: QueueItemView | None
    """The first item that waits."""
    closed_gates: tuple[ClosedQueueGate, ...]
    """The gates that would refuse the next item now."""


def queue_now(asset_id: UUID, call: Call) -> Reads[QueueNow | None]:
    """Return the queue of an asset as it is now, or None where it has none."""
    holders: dict[str, UUID] = yield Holders(ASSET_QUEUES, (str(asset_id),))
    if (queue := (yield from find(Queue, holders.get(str(asset_id))))) is None:
        return None
    ahead = (yield from forecast_queue(queue, call, count=1, rehearsed=False)) if queue.ahead else ()
    rest = None if queue.running is None else (yield from running_estimate(queue.running, call.now))
    front = {
        "running": None if queue.running is None else item_view(queue.running, rest),
        "next": item_view(queue.ahead[0], ahead[0].estimate) if ahead else None,
        "closed_gates": ahead[0].closed_gates if ahead else (),
    }
    return QueueNow(**values_of(queue, QueueNow) | front | {"hold": (yield from hold_of(queue))})


def hold_of(queue: Queue, **moment: Any) -> Reads[HoldNow | None]:
    """Return why a queue is held, since when and by whom; None where it is not."""
    if queue.status is not QueueStatus.HELD:
        return None
    (held,) = yield from latest_events(queue.id, QueueHeld, count=1, **moment)
    return hold_now(held, held.reason, (yield from names_of([appearance(held)])))


class QueueView(Value):
    """A queue with the items that have not ended, in order, and the last ten that have; its past has no forecast."""

    id: UUID
    name: FreeText
    asset_id: UUID
    """The beamline: a root of the asset tree."""
    on_failure: OnFailure
    status: QueueStatus
    last_status_reason: FreeText | None
    hold: HoldNow | None
    """Why it is held, since when and by whom; null where it is not."""
    item_count: int
    """Number of items that were ever added."""
    items: Annotated[tuple[QueueItemView, ...], Field(description="The running item, then those that wait, in their order.")]
    last_items: Annotated[
        tuple[QueueItemView, ...], Field(description="The last ten items that have ended, the newest first.")
    ]
    forecast: Annotated[
        tuple[ItemForecast, ...], Field(description="What is known now about the first five items that wait.")
    ]
    """What is known now about the first items that wait."""
    queue_id: UUID
    created_at: datetime


@queue.query(get="/{queue_id}", returns=QueueView)
class GetQueue(TimeTravel[QueueView]):
    """One queue, folded from its stream, with a forecast of what comes next."""

    def answer(self, queue: Queue, call: Call) -> Reads[QueueView]:
        forecast = () if self.travels else (yield from forecast_queue(queue, call))
        known = {one.item_id: one.estimate for one in forecast}
        if queue.running is not None and not self.travels:
            known[queue.running.item_id] = yield from running_estimate(queue.running, call.now)
        further = {
            "items": tuple(item_view(item, known.get(item.item_id)) for item in queue.items_left),
            "last_items": tuple(map(item_view, reversed(queue.ended[-LAST:]))),
            "forecast": forecast,
            "hold": (yield from hold_of(queue, as_of=self.as_of, as_of_version=self.as_of_version)),
        }
        return QueueView(**values_of(queue, QueueView) | further)


class QueueOverviewSummary(Summary):
    queue_id: UUID
    name: FreeText
    asset_id: UUID
    status: QueueStatus
    on_failure: OnFailure
    waiting_count: int
    """Number of items that wait."""
    blocked: bool
    """Whether the first item that waits is kept from starting."""
    running_item_id: UUID | None
    """The item under way."""
    created_at: datetime


@queue.listing(QueueOverviewSummary)
class ListQueues(NamedListQuery[QueueOverviewSummary]):
    """Queues in the order they were opened, each with how many items wait and the one under way."""

    asset_id: UUID | None = None
    status: QueueStatus | None = None


@queue.query(get="/{queue_id}/items", returns=Page[QueueItemView])
class ListQueueItems(NamesOnRequest[Page[QueueItemView]]):
    """The items of a queue: the last thousand that have ended, the running one, and those that wait, in order."""

    status: QueueItemStatus | None = None
    """Only items in this state."""
    limit: PageLimit = 50
    cursor: CursorText | None = None

    def answer(self, queue: Queue, call: Call) -> Reads[Page[QueueItemView]]:
        behind = items_behind(queue.items, self.cursor)
        found = tuple(item for item in behind if self.status in (None, item.status))
        shown, more = found[: self.limit], len(found) > self.limit
        estimates: dict[UUID, Estimate | None] = {}
        for item in shown:
            estimates[item.item_id] = yield from item_estimate(item, call)
        views = tuple(item_view(item, estimates[item.item_id]) for item in shown)
        return Page(views, encode_cursor(shown[-1].item_id) if more else None)


def items_behind(items: Items, cursor: str | None) -> Items:
    """Return the items behind the one that a page ended with, wherever that is now."""
    if cursor is None:
        return items
    (written,) = decode_cursor(cursor, 1)
    try:
        last_id = UUID(written)
    except ValueError as error:
        raise malformed_cursor() from error
    for index, item in enumerate(items):
        if item.item_id == last_id:
            return items[index + 1 :]
    raise InvalidCursorError(
        "The item that this page follows is not kept any more; start again without a cursor.", reason="gone"
    )
