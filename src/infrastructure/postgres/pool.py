"""Database connections of the runtime role, which has no right to change the log, and notifications of appends over them."""

import asyncio
import math
import time
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg_pool import AsyncConnectionPool

RUNTIME_ROLE = "baton_runtime"
RUNTIME_OPTIONS = f"-c role={RUNTIME_ROLE} -c timezone=UTC -c jit=off -c enable_seqscan=off"
"""Every runtime query has its index. Without the last setting, a plan prepared while a table is small reads all of it for
the life of the connection, however large it grows."""
OWNER_OPTIONS = "-c timezone=UTC -c jit=off"

TESTED_AFTER_SECONDS = 1.0  # idle for so long, a connection is tested before it is lent
TIMEOUTS: dict[str, Any] = {"connect_timeout": 5, "tcp_user_timeout": 6000}  # seconds to connect, milliseconds of silence

Connection = psycopg.AsyncConnection[tuple[Any, ...]]
Pool = AsyncConnectionPool[Connection]


def runtime_pool(url: str, size: int) -> Pool:
    options = {"autocommit": True, "prepare_threshold": 0, "options": RUNTIME_OPTIONS, **TIMEOUTS}
    idle = IdleTimes()
    return AsyncConnectionPool(
        url,
        min_size=min(4, size),
        max_size=size,
        open=False,
        kwargs=options,
        configure=_set_up,
        reset=idle.note,
        check=idle.check,
        name="runtime",
        timeout=10,
    )


class IdleTimes:
    """Tests a connection that was idle for a while before it is lent: it may have died with a server that is back by now."""

    def __init__(self) -> None:
        self._returned_at: WeakKeyDictionary[Connection, float] = WeakKeyDictionary()

    async def note(self, connection: Connection) -> None:
        """Note that a connection was given back."""
        self._returned_at[connection] = time.monotonic()

    async def check(self, connection: Connection) -> None:
        """Raise for a connection that was idle and does not answer; the pool then lends another one."""
        if time.monotonic() - self._returned_at.get(connection, -math.inf) > TESTED_AFTER_SECONDS:
            await AsyncConnectionPool.check_connection(connection)


async def dedicated_connection(url: str, *, owner: bool = False) -> Connection:
    """Open a connection outside the pool, for listening, leading and rebuilding."""
    return await psycopg.AsyncConnection.connect(
        url, autocommit=True, options=OWNER_OPTIONS if owner else RUNTIME_OPTIONS, prepare_threshold=None, **TIMEOUTS
    )


async def _set_up(connection: Connection) -> None:
    connection.prepared_max = 300


CHANNEL = "baton_log"
COALESCE_SECONDS = 0.02


class AppendNotifier:
    """Notifies followers of appends, at most once every few milliseconds, and outside their transactions, since a NOTIFY
    inside would make all commits wait for one lock. Followers also poll: a lost notification costs their poll interval."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pending = asyncio.Event()

    def mark_appended(self) -> None:
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
            async with asyncio.timeout(at_most):
                await self._appended.wait()

    async def run(self) -> None:
        """Listen until cancelled; raise when the connection is lost."""
        async with await dedicated_connection(self._url) as connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            async for _ in connection.notifies():
                appended, self._appended = self._appended, asyncio.Event()
                appended.set()
