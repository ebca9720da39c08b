"""Leader election: work that one process does for all, and what it has settled, for as long as its session lasts; and a row
that every process keeps about itself, so that others see which processes and tasks run."""

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import psycopg
import structlog
import uuid_utils.compat

from baton.application.telemetry import ProcessReport, TaskTrouble, dropped_lines
from baton.infrastructure.background import Supervisor
from baton.infrastructure.postgres.pool import Connection, dedicated_connection

log = structlog.get_logger()

PROJECTIONS_LOCK = 0x6261746F6E02
MONITOR_LOCK = 0x6261746F6E05
REACTIONS_LOCK = 0x6261746F6E06
SCHEDULES_LOCK = 0x6261746F6E08
CHECK_SECONDS = 1.0  # time between two checks of the leader's session, and between two attempts to become leader
ANSWER_SECONDS = 5.0
KEEPALIVE = """SELECT set_config('tcp_keepalives_idle', '5', false), set_config('tcp_keepalives_interval', '2', false),
    set_config('tcp_keepalives_count', '3', false)"""
LOCK_HELD = """SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND (classid::bigint << 32) | objid::bigint = {}"""
SETTLED = "hashtextextended('enclosure settled: ' || {}, 0)"
UNSETTLED = f"""SELECT name FROM unnest(%s::text[]) name
WHERE NOT EXISTS ({LOCK_HELD.format(SETTLED.format("name"))}) ORDER BY 1"""


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


REPORT_SECONDS = 2.0
MAX_SILENCE = timedelta(seconds=10)  # A process that has not reported for so long has ended, or cannot reach the database
RECENT = timedelta(seconds=60)  # how long a restarted task is reported as trouble
RETENTION = timedelta(hours=1)
# The tasks that one process does for all, and the lock that its session holds.
LEADERS = {
    "monitoring": MONITOR_LOCK,
    "reactions": REACTIONS_LOCK,
    "schedules": SCHEDULES_LOCK,
    "projections": PROJECTIONS_LOCK,
}
REPORT = """
INSERT INTO process_reports VALUES (%s, %s, %s, %s, %s, clock_timestamp(), %s::jsonb, %s) ON CONFLICT (process_id) DO UPDATE
SET reported_at = excluded.reported_at, tasks = excluded.tasks, dropped_lines = excluded.dropped_lines"""
RECENT_REPORTS = """SELECT kind, host, pid, tasks, dropped_lines, clock_timestamp() FROM process_reports
WHERE reported_at > clock_timestamp() - %s ORDER BY kind, host, pid"""


class ProcessReporter:
    """Writes the report of this process every few seconds, and deletes it when the process stops."""

    def __init__(self, url: str, kind: str, supervisor: Supervisor) -> None:
        self._url = url
        self._supervisor = supervisor
        self._identity = (uuid_utils.compat.uuid7(), kind, socket.gethostname(), os.getpid(), datetime.now(UTC))

    async def run(self) -> None:
        """Report until cancelled; raise when the connection is lost."""
        async with await dedicated_connection(self._url) as connection:
            old = "DELETE FROM process_reports WHERE reported_at < clock_timestamp() - %s::interval"
            await connection.execute(old, (RETENTION,))
            try:
                while True:
                    tasks = orjson.dumps(self._supervisor.tasks).decode()
                    await connection.execute(REPORT, (*self._identity, tasks, dropped_lines()))
                    await asyncio.sleep(REPORT_SECONDS)
            finally:
                with suppress(psycopg.Error):
                    await connection.execute("DELETE FROM process_reports WHERE process_id = %s", self._identity[:1])


async def running_processes(connection: Connection) -> list[ProcessReport]:
    reports = []
    for kind, host, pid, tasks, dropped, now in await (await connection.execute(RECENT_REPORTS, (MAX_SILENCE,))).fetchall():
        restarts = {name: task["restarts"] for name, task in tasks.items()}
        reports.append(ProcessReport(kind, host, pid, restarts, tuple(_troubles(tasks, now)), dropped))
    return reports


async def unled_tasks(connection: Connection) -> list[str]:
    return [name for name, lock in LEADERS.items() if not await is_led(connection, lock)]


def _troubles(tasks: Mapping[str, Any], now: datetime) -> Iterable[TaskTrouble]:
    for name, task in tasks.items():
        ended_at = task["ended_at"] and datetime.fromisoformat(task["ended_at"])
        if ended_at and (not task["running"] or now - ended_at < RECENT):
            yield TaskTrouble(name, task["restarts"], task["running"], task["because"])
