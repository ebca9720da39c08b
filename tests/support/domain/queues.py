"""Verbs to arrange queues with: a queue of a beamline, items in it, and what becomes of them."""

from typing import Any
from uuid import UUID

from baton.domain.queue.item_records import BlockQueueItem, EndQueueItem, RefuseQueueItem, StartQueueItem
from baton.domain.queue.items import QueueItem, find_item
from baton.domain.queue.queue import AddQueueItems, OpenQueue, Queue
from tests.support.domain.assets import root
from tests.support.domain.conducts import Raw
from tests.support.domain.schedules import darks, recipe
from tests.support.domain.world import World

CLOSED = {"code": "RunSupplyCoverageMismatchError", "detail": "The beam is away; wait for it."}


def open_queue(world: World, **fields: Any) -> UUID:
    """Open the queue of a beamline, a new one by default, and return its id."""
    return world.create(OpenQueue(**{"name": "Tonight", "asset_id": fields.pop("asset_id", None) or root(world), **fields}))


def add_items(world: World, id: UUID, *titles: str, target: Raw | None = None, **fields: Any) -> tuple[UUID, ...]:
    """Add items of these titles (all of them darks, by default) and return their ids."""
    before = fields.pop("before_item_id", None)
    aim = target or darks(recipe(world))
    world.when(
        AddQueueItems(items=[{"title": title, "target": aim, **fields} for title in titles], before_item_id=before), on=id
    )
    return tuple(UUID(item_id) for item_id in world.answer["item_ids"])


def queue_of(world: World, id: UUID) -> Queue:
    state: Queue = world.state(Queue, id)
    return state


def item_of(world: World, id: UUID, item_id: UUID) -> QueueItem:
    item = find_item(queue_of(world, id).items, item_id)
    assert item is not None, "the queue has it"
    return item


def titles_of(world: World, id: UUID) -> list[str]:
    """Return the titles of the items that have not ended, in order."""
    return [item.title for item in queue_of(world, id).items_left]


def attempt_of(world: World, id: UUID, item_id: UUID) -> dict[str, Any]:
    return {"item_id": item_id, "attempt": item_of(world, id, item_id).attempt}


def start_item(world: World, id: UUID, item_id: UUID) -> None:
    world.when(StartQueueItem(**attempt_of(world, id, item_id)), on=id)


def block_item(world: World, id: UUID, item_id: UUID, **why: Any) -> None:
    world.when(BlockQueueItem(**attempt_of(world, id, item_id), **{**CLOSED, **why}), on=id)


def refuse_item(world: World, id: UUID, item_id: UUID, **why: Any) -> None:
    refused = {"code": "UnauthorizedError", "detail": "Its author may not do this any more.", **why}
    world.when(RefuseQueueItem(**attempt_of(world, id, item_id), **refused), on=id)


def end_item(world: World, id: UUID, item_id: UUID, **failure: Any) -> None:
    """End a running item: completed, or failed where a code is given."""
    world.when(EndQueueItem(**attempt_of(world, id, item_id), **failure), on=id)
