"""What passes news to a reader that may be slower than they come: the newest wait, and the end behind them."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, Self, TypeVar

T = TypeVar("T")


MOST = 256
"""Items that wait for a reader; of more, the oldest are passed over."""


class LatestQueue(Generic[T]):
    """News for one reader, in order. An item takes the place of an unread one before it that says the same.

    The end comes after the last item, once.
    """

    def __init__(self, alike: Callable[[T, T], bool] = lambda said, item: False) -> None:
        self._alike = alike
        self._unread: deque[T] = deque(maxlen=MOST)
        self._ended = False
        self._failure: Exception | None = None
        self._news = asyncio.Event()

    def put(self, item: T) -> None:
        """Say this next; after the end nothing is said any more."""
        if not self._ended:
            if self._unread and self._alike(self._unread[-1], item):
                self._unread.pop()
            self._unread.append(item)
            self._news.set()

    def end(self, failure: Exception | None = None) -> None:
        """End the news, with this failure if there is one; the first end counts."""
        if not self._ended:
            self._ended, self._failure = True, failure
            self._news.set()

    @property
    def waiting(self) -> bool:
        """Whether an item or the end is there to be read."""
        return self._news.is_set()

    async def arrive(self, within: float | None) -> bool:
        """Wait so many seconds for something to read; answers whether there is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._news.wait()
        return self.waiting

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        await self._news.wait()
        if self._unread:
            item = self._unread.popleft()
            if not self._unread and not self._ended:
                self._news.clear()
            return item
        if self._failure is not None:
            raise self._failure
        raise StopAsyncIteration
