"""A queue for one reader that may be slower than its writer: only the newest items wait."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, Self, TypeVar

T = TypeVar("T")
MOST = 256  # items that wait for a reader; of more, the oldest are dropped


class DroppingQueue(Generic[T]):
    """Items for one reader, in order; an item replaces an unread one before it that is `alike`. The end comes last, once."""

    def __init__(self, alike: Callable[[T, T], bool] = lambda unread, item: False) -> None:
        self._alike = alike
        self._unread: deque[T] = deque(maxlen=MOST)
        self._ended = False
        self._failure: Exception | None = None
        self._readable = asyncio.Event()

    def put(self, item: T) -> None:
        """Add an item; after the end it is dropped."""
        if not self._ended:
            if self._unread and self._alike(self._unread[-1], item):
                self._unread.pop()
            self._unread.append(item)
            self._readable.set()

    def end(self, failure: Exception | None = None) -> None:
        """End the queue, with this failure if there is one; the first end counts."""
        if not self._ended:
            self._ended = True
            self._failure = failure
            self._readable.set()

    @property
    def has_items(self) -> bool:
        """Whether an item or the end is there to be read."""
        return self._readable.is_set()

    async def arrive(self, within: float | None) -> bool:
        """Wait so many seconds for something to read; return whether there is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._readable.wait()
        return self.has_items

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        await self._readable.wait()
        if self._unread:
            item = self._unread.popleft()
            if not self._unread and not self._ended:
                self._readable.clear()
            return item
        if self._failure is not None:
            raise self._failure
        raise StopAsyncIteration
