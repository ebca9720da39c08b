"""The service for a whole module of tests: on a database of its own, and in a thread of its own for clients that block."""

import asyncio
import itertools
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.support.service import Api, running_api

T = TypeVar("T")
TIMEOUT_SECONDS = 60
_numbers = itertools.count(1)


@dataclass(frozen=True)
class ModuleService:
    """A running service and the loop it runs in."""

    api: Api
    loop: asyncio.AbstractEventLoop
    stopping: asyncio.Event

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of asynchronous work, waited for from another thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(TIMEOUT_SECONDS)


@contextmanager
def running_module_service(database_url: str, **settings: Any) -> Iterator[ModuleService]:
    """The service until the block ends."""
    started: Future[ModuleService] = Future()

    async def serve() -> None:
        async with running_api(database_url, **settings) as api:
            service = ModuleService(api, asyncio.get_running_loop(), asyncio.Event())
            started.set_result(service)
            await service.stopping.wait()

    def main() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=main, name="served")
    thread.start()
    service = started.result(TIMEOUT_SECONDS)
    try:
        yield service
    finally:
        service.loop.call_soon_threadsafe(service.stopping.set)
        thread.join(TIMEOUT_SECONDS)
        assert not thread.is_alive(), "the service did not stop"
