"""Wake-ups: appends of a process are announced together, outside their transactions, by one dedicated connection.

A NOTIFY inside an append would make all commits wait for one lock; followers poll besides, so a lost wake-up only costs
their poll interval.
"""

import asyncio

from baton.infrastructure.postgres.pool import dedicated

CHANNEL = "baton_log"
COALESCE = 0.02


class Waker:
    """Tells the followers that something was appended, at most once every few milliseconds."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._news = asyncio.Event()

    def appended(self) -> None:
        """Something was appended; whoever follows will be told."""
        self._news.set()

    async def run(self) -> None:
        """Announce news until cancelled; raises when the connection is lost."""
        async with await dedicated(self._url) as connection:
            while True:
                await self._news.wait()
                self._news.clear()
                await connection.execute(f"NOTIFY {CHANNEL}")
                await asyncio.sleep(COALESCE)


class Listener:
    """Hears what is appended anywhere, on one connection outside the pool, for everybody in this process."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._heard = asyncio.Event()

    async def wait(self, at_most: float) -> None:
        """Returns when something was appended, or after so many seconds."""
        try:
            await asyncio.wait_for(self._heard.wait(), at_most)
        except TimeoutError:
            return

    async def run(self) -> None:
        """Listen until cancelled; raises when the connection is lost."""
        async with await dedicated(self._url) as connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            async for _ in connection.notifies():
                heard, self._heard = self._heard, asyncio.Event()
                heard.set()
