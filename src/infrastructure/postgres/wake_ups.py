"""Notifications of appends, sent outside their transactions, since a NOTIFY inside would make all commits wait for one lock.
Followers also poll, so a lost notification only costs their poll interval."""

import asyncio
from contextlib import suppress

from baton.infrastructure.postgres.pool import dedicated_connection

CHANNEL = "baton_log"
COALESCE_SECONDS = 0.02


class AppendNotifier:
    """Notifies followers of appends, at most once every few milliseconds."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pending = asyncio.Event()

    def appended(self) -> None:
        self._pending.set()

    async def run(self) -> None:
        """Announce appends until cancelled; raise when the connection is lost."""
        async with await dedicated_connection(self._url) as connection:
            while True:
                await self._pending.wait()
                self._pending.clear()
                await connection.execute(f"NOTIFY {CHANNEL}")
                await asyncio.sleep(COALESCE_SECONDS)


class PostgresAppendListener:
    """Waits for appends of any process, on one connection for all waiters of this process."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._appended = asyncio.Event()

    async def wait(self, at_most: float) -> None:
        """Return when something was appended, or after so many seconds."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._appended.wait(), at_most)

    async def run(self) -> None:
        """Listen until cancelled; raise when the connection is lost."""
        async with await dedicated_connection(self._url) as connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            async for _ in connection.notifies():
                appended, self._appended = self._appended, asyncio.Event()
                appended.set()
