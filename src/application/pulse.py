"""Work that is heard of while it goes on, and that hears what the record says to it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

from application.ledger import Orders
from application.ports import StoreUnavailableError
from domain.operation.procedure import PendingRequest
from domain.run.run import RunStatus

T = TypeVar("T")

INTERVAL = 1.0
"""Seconds between two signs of life."""
SILENT_AFTER = 6.0
"""Seconds after which whoever does a step counts as lost."""
GIVES_UP_AFTER = SILENT_AFTER / 2
"""Seconds without a sign of life after which work stops itself, well before anybody takes it for lost."""


class Attempt(Protocol):
    """One try at a piece of work, which the engine may cancel and have tried again."""

    def alive(self) -> None:
        """Let the engine know that the try goes on."""
        ...

    @property
    def called_off(self) -> bool:
        """Whether the work is not wanted any more; otherwise a cancelled try is followed by another one."""
        ...

    @property
    def given_up(self) -> bool:
        """Whether the engine has only lost sight of this try, and has another one made."""
        ...


class Perseverance:
    """Sees work through of which the engine has lost sight: what another try finds begun, it waits for."""

    def __init__(self) -> None:
        self._unseen: set[asyncio.Task[Any]] = set()

    async def see_through(self, work: Coroutine[Any, Any, T], attempt: Attempt) -> T:
        """The result of work that is cancelled only if it is not wanted any more, or this process stops."""
        task = asyncio.create_task(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if attempt.given_up:
                self._unseen.add(task)
                task.add_done_callback(self._seen)
            else:
                task.cancel()
                await asyncio.wait({task})
            raise

    async def close(self) -> None:
        """Stop what still goes on."""
        unseen = list(self._unseen)
        for task in unseen:
            task.cancel()
        await asyncio.gather(*unseen, return_exceptions=True)

    def _seen(self, task: "asyncio.Task[Any]") -> None:
        self._unseen.discard(task)
        if not task.cancelled():
            task.exception()  # the try that follows finds what came of it, or that nothing did


class Countermanded(Exception):
    """The record told the work to stop: an abort was asked for, or the conduct is not live any more."""

    def __init__(self, orders: Orders) -> None:
        super().__init__("the record told the work to stop")
        self.orders = orders


class UnheardError(Exception):
    """No sign of life could be given for too long, so the work stopped itself; somebody else may take it up."""


def stops(orders: Orders) -> bool:
    """Whether orders end work at once: an abort does, a hold waits for the end of the step."""
    return not orders.live or orders.asked is PendingRequest.ABORT or orders.run is RunStatus.ABORTED


async def attended(body: Coroutine[Any, Any, T], beat: Callable[[], Awaitable[Orders]]) -> T:
    """The result of a body, with a sign of life each second; stopped by the record, or by the lack of any sign."""
    loop = asyncio.get_running_loop()
    work = asyncio.ensure_future(body)
    heard = loop.time()
    try:
        while True:
            done, _ = await asyncio.wait({work}, timeout=INTERVAL)
            if done:
                return work.result()
            try:
                async with asyncio.timeout(max(0.1, heard + GIVES_UP_AFTER - loop.time())):
                    orders = await beat()
            except (StoreUnavailableError, TimeoutError):
                orders = None
            if work.done():
                return work.result()
            if orders is not None and loop.time() - heard <= SILENT_AFTER:
                heard = loop.time()
                if stops(orders):
                    raise Countermanded(orders)
            elif loop.time() - heard >= GIVES_UP_AFTER:
                raise UnheardError("The database could not be told that the step goes on, so it was stopped.")
    finally:
        if not work.done():
            work.cancel()
            await asyncio.wait({work})
