"""Process reports: a row that every process keeps about itself, so that others see which processes and tasks run."""

import asyncio
import os
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import psycopg
import uuid_utils.compat

from baton.application.log_stream import dropped_lines
from baton.application.telemetry import ProcessReport, TaskTrouble
from baton.infrastructure.background import Supervisor
from baton.infrastructure.postgres.leadership import MONITOR_LOCK, PROJECTIONS_LOCK, REACTIONS_LOCK, SCHEDULES_LOCK, is_led
from baton.infrastructure.postgres.pool import Connection, dedicated_connection

REPORT_SECONDS = 2.0
MAX_SILENCE = timedelta(seconds=10)  # A process that has not reported for so long has ended, or cannot reach the database
RECENT = timedelta(seconds=60)  # how long a restarted task is reported as trouble
RETENTION = timedelta(hours=1)
LEADERS: Mapping[str, int] = {
    "monitoring": MONITOR_LOCK,
    "reactions": REACTIONS_LOCK,
    "schedules": SCHEDULES_LOCK,
    "projections": PROJECTIONS_LOCK,
}  # The tasks that one process does for all, and the lock that its session holds.
REPORT = """
INSERT INTO process_reports VALUES (%s, %s, %s, %s, %s, clock_timestamp(), %s::jsonb, %s) ON CONFLICT (process_id) DO UPDATE
SET reported_at = excluded.reported_at, tasks = excluded.tasks, dropped_lines = excluded.dropped_lines
"""
RECENT_REPORTS = """
SELECT kind, host, pid, tasks, dropped_lines, clock_timestamp() FROM process_reports
WHERE reported_at > clock_timestamp() - %s ORDER BY kind, host, pid
"""


class ProcessReporter:
    """Writes the report of this process every few seconds, and deletes it when the process stops."""

    def __init__(self, url: str, kind: str, supervisor: Supervisor) -> None:
        self._url = url
        self._identity = (uuid_utils.compat.uuid7(), kind, socket.gethostname(), os.getpid(), datetime.now(UTC))
        self._supervisor = supervisor

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
