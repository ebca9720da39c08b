"""Leadership: work that one process does for all, for as long as its database session lasts.

What the leader has achieved is held in its session too, as advisory locks: it is gone with the session, whatever ended it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import structlog

from baton.infrastructure.postgres.pool import Connection, dedicated

log = structlog.get_logger()

MONITOR_LOCK = 0x6261746F6E05
REACTIONS_LOCK = 0x6261746F6E06
SCHEDULES_LOCK = 0x6261746F6E08
PULSE = 1.0
"""Seconds between two looks at the leader's session, and between two attempts to become leader."""
PATIENCE = 5.0
"""Seconds the server has to answer."""
KEEPALIVE = """
SELECT set_config('tcp_keepalives_idle', '5', false), set_config('tcp_keepalives_interval', '2', false),
    set_config('tcp_keepalives_count', '3', false)
"""
"""Lets the server notice within seconds that the leader's machine is gone, and give its locks to another."""
HELD = """
SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND (classid::bigint << 32) | objid::bigint = {}
"""
SETTLED = "hashtextextended('enclosure settled: ' || {}, 0)"
UNSETTLED = f"SELECT name FROM unnest(%s::text[]) name WHERE NOT EXISTS ({HELD.format(SETTLED.format('name'))}) ORDER BY 1"


async def lead(url: str, lock: int, work: Callable[[Connection], Coroutine[Any, Any, None]]) -> None:
    """Stand for election and do the work while elected; raises when the session is lost, and then the work is ended."""
    async with asyncio.timeout(PATIENCE):
        connection = await dedicated(url)
    async with connection:
        await elected(connection, lock)
        log.info("leading", lock=lock)
        await _while_connected(connection, work(connection))


async def elected(connection: Connection, lock: int) -> None:
    """Until this session holds the lock; a session that waited inside the server would hold back its housekeeping."""
    async with asyncio.timeout(PATIENCE):
        await connection.execute(KEEPALIVE)
    while True:
        async with asyncio.timeout(PATIENCE):
            row = await (await connection.execute("SELECT pg_try_advisory_lock(%s)", (lock,))).fetchone()
        if row and row[0]:
            return
        await asyncio.sleep(PULSE)


async def _while_connected(connection: Connection, work: Coroutine[Any, Any, None]) -> None:
    tasks = {asyncio.create_task(work), asyncio.create_task(_pulse(connection))}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pulse(connection: Connection) -> None:
    """Look after the session until it is lost."""
    while True:
        async with asyncio.timeout(PATIENCE):
            await connection.execute("SELECT 1")
        await asyncio.sleep(PULSE)


async def note_settled(connection: Connection, name: str) -> None:
    """Let everybody know that an enclosure's permit was settled by the leader of this session."""
    await connection.execute(f"SELECT pg_advisory_lock_shared({SETTLED.format('%s::text')})", (name,))


async def unsettled(connection: Connection, names: Iterable[str]) -> list[str]:
    """Those of these enclosures whose permit no living leader has settled."""
    return [row[0] for row in await (await connection.execute(UNSETTLED, (list(names),))).fetchall()]


async def is_led(connection: Connection, lock: int) -> bool:
    """Whether somebody leads."""
    return await (await connection.execute(HELD.format("%s"), (lock,))).fetchone() is not None
