"""The watch over channels that are followed, where a library does not say in time that one is lost."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from baton.application.control import ControlError, ControlNotConnectedError
from baton.application.dropping_queue import DroppingQueue

PROBE_SECONDS = 1.0  # how long a channel that is followed is not asked for


class LossWatch:
    """Probes each channel that somebody follows, and ends the queues of all its followers where it is lost."""

    def __init__(self, probe: Callable[[str], Awaitable[object]], every: float = PROBE_SECONDS) -> None:
        self._probe = probe
        self._every = every
        self._queues: dict[str, list[tuple[str, DroppingQueue[Any]]]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @contextmanager
    def add_follower(self, channel: str, address: str, queue: DroppingQueue[Any]) -> Iterator[None]:
        """Watch a channel for one follower of an address on it."""
        follower = (address, queue)
        self._queues.setdefault(channel, []).append(follower)
        if channel not in self._tasks:
            self._tasks[channel] = asyncio.create_task(self._watch(channel))
        try:
            yield
        finally:
            followers = self._queues[channel]
            followers.remove(follower)
            if not followers:
                del self._queues[channel]
                if (task := self._tasks.pop(channel, None)) is not None:
                    task.cancel()

    async def close(self) -> None:
        """End the watch over every channel."""
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _watch(self, channel: str) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                await self._probe(channel)
            except ControlError as loss:
                for address, queue in self._queues.get(channel, ()):
                    failure = ControlNotConnectedError(f"{address} is not connected.")
                    failure.__cause__ = loss
                    queue.end(failure)
