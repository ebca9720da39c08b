"""Leader election: work that one process does for all, and what it has settled, for as long as its session lasts."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import structlog

from baton.infrastructure.postgres.pool import Connection, dedicated_connection

log = structlog.get_logger()

PROJECTIONS_LOCK = 0x6261746F6E02
MONITOR_LOCK = 0x6261746F6E05
REACTIONS_LOCK = 0x6261746F6E06
SCHEDULES_LOCK = 0x6261746F6E08
CHECK_SECONDS = 1.0  # time between two checks of the leader's session, and between two attempts to become leader
ANSWER_SECONDS = 5.0
KEEPALIVE = """
SELECT set_config('tcp_keepalives_idle', '5', false), set_config('tcp_keepalives_interval', '2', false),
    set_config('tcp_keepalives_count', '3', false)
"""
LOCK_HELD = """
SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND (classid::bigint << 32) | objid::bigint = {}
"""
SETTLED = "hashtextextended('enclosure settled: ' || {}, 0)"
UNSETTLED = (
    f"SELECT name FROM unnest(%s::text[]) name WHERE NOT EXISTS ({LOCK_HELD.format(SETTLED.format('name'))}) ORDER BY 1"
)


async def lead(url: str, lock: int, work: Callable[[Connection], Coroutine[Any, Any, None]]) -> None:
    """Become leader and do the work while leading; end the work and raise when the session is lost."""
    async with asyncio.timeout(ANSWER_SECONDS):
        connection = await dedicated_connection(url)
    async with connection:
        await win_election(connection, lock)
        log.info("leading", lock=lock)
        await _run_while_connected(connection, work(connection))


async def win_election(connection: Connection, lock: int) -> None:
    """Wait until this session holds the lock, by polling: a session that waits in the server holds back vacuum."""
    async with asyncio.timeout(ANSWER_SECONDS):
        await connection.execute(KEEPALIVE)
    while True:
        async with asyncio.timeout(ANSWER_SECONDS):
            row = await (await connection.execute("SELECT pg_try_advisory_lock(%s)", (lock,))).fetchone()
        if row and row[0]:
            return
        await asyncio.sleep(CHECK_SECONDS)


async def _run_while_connected(connection: Connection, work: Coroutine[Any, Any, None]) -> None:
    tasks = {asyncio.create_task(work), asyncio.create_task(_check_session(connection))}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _check_session(connection: Connection) -> None:
    while True:
        async with asyncio.timeout(ANSWER_SECONDS):
            await connection.execute("SELECT 1")
        await asyncio.sleep(CHECK_SECONDS)


async def mark_settled(connection: Connection, name: str) -> None:
    await connection.execute(f"SELECT pg_advisory_lock_shared({SETTLED.format('%s::text')})", (name,))


async def unsettled_enclosures(connection: Connection, names: Iterable[str]) -> list[str]:
    return [row[0] for row in await (await connection.execute(UNSETTLED, (list(names),))).fetchall()]


async def is_led(connection: Connection, lock: int) -> bool:
    return await (await connection.execute(LOCK_HELD.format("%s"), (lock,))).fetchone() is not None
