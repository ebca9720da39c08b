"""Queues on a conduct stack: what they conduct, what is done to them, and what is recorded of it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError

from baton.application.caller import Caller
from baton.application.ports import CommandResult
from baton.application.queues import QueueRunner
from baton.application.reactions import Dispatcher
from baton.application.unit_of_work import load_state
from baton.domain.equipment.asset_tree import RegisterAsset
from baton.domain.queue.items import QueueItem, find_item
from baton.domain.queue.messages import queue_workflow_id
from baton.domain.queue.queue import OpenQueue, Queue
from baton.domain.queue.views import GetQueue, QueueView
from baton.infrastructure.wall_clock import clock, new_id
from tests.support.domain.lifecycle_table import command
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack


@dataclass(frozen=True)
class QueueCase:
    """A queue that was opened."""

    stack: ConductStack
    id: UUID

    @property
    def workflow(self) -> Any:
        return self.stack.client.get_workflow_handle(queue_workflow_id(self.id))

    async def give(self, verb: str, caller: Caller | None = None, **fields: Any) -> CommandResult:
        """Give a command to the queue."""
        who = caller or self.stack.caller
        return await self.stack.runtime.service.execute(command(verb, fields), who, target_id=self.id)

    async def add(self, *targets: dict[str, Any], caller: Caller | None = None, **fields: Any) -> list[UUID]:
        """Add items of these targets, titled by their places, and return their ids."""
        items = [{"title": f"item {place}", "target": target, **fields} for place, target in enumerate(targets)]
        added = await self.give("add_queue_items", caller, items=items)
        return [UUID(id) for id in (added.body or {})["item_ids"]]

    async def state(self) -> Queue:
        queue = await load_state(self.stack.runtime.store, Queue, self.id)
        assert queue is not None
        return queue

    async def item(self, item_id: UUID) -> QueueItem:
        item = find_item((await self.state()).items, item_id)
        assert item is not None
        return item

    async def view(self) -> QueueView:
        view: QueueView = await self.stack.ask(GetQueue(), self.id)
        return view

    async def wait_for(self, item_id: UUID, *statuses: str, limit: float = 60) -> QueueItem:
        """Wait until an item has one of these states, and return it."""

        async def reached_state() -> QueueItem | None:
            item = await self.item(item_id)
            return item if item.status in statuses else None

        item: QueueItem = await until(reached_state, limit)
        return item

    async def wait_until(self, is_so: Callable[[Queue], bool], limit: float = 60) -> Queue:
        """Wait until the queue is so, and return it."""

        async def reached_state() -> Queue | None:
            queue = await self.state()
            return queue if is_so(queue) else None

        queue: Queue = await until(reached_state, limit)
        return queue

    async def wait_until_idle(self, limit: float = 60) -> Queue:
        """Wait until the queue has nothing left to do, and return it."""
        return await self.wait_until(lambda queue: not queue.busy, limit)


async def open_queue(stack: ConductStack, **fields: Any) -> QueueCase:
    """Open the queue of a new beamline."""
    root = await stack.do(RegisterAsset(name=f"Beamline {new_id()}", tier="Unit", facility_code="facility"))
    asked = {"name": "Tonight", "asset_id": (root.body or {})["asset_id"], **fields}
    return QueueCase(stack, UUID(((await stack.do(OpenQueue(**asked))).body or {})["queue_id"]))


@asynccontextmanager
async def reacting_queues(stack: ConductStack) -> AsyncIterator[None]:
    """Tell queues their news while the block lasts; leave none of their workflows behind."""
    runtime = stack.runtime
    subscriber = runtime.works.of(QueueRunner)
    dispatcher = Dispatcher(runtime.store, runtime.engine, clock, new_id, [subscriber], runtime.listener.wait)
    await dispatcher.begin()
    following = asyncio.create_task(dispatcher.run())
    try:
        yield
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        async for found in stack.client.list_workflows("WorkflowType = 'queue'"):
            if found.status is WorkflowExecutionStatus.RUNNING:
                with suppress(RPCError):  # it may end at this moment
                    await stack.client.get_workflow_handle(found.id).terminate()
