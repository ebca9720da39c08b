"""What every process says of itself in the database, so that others see which run and how their tasks fare."""

import asyncio
import os
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import psycopg
import uuid_utils.compat

from baton.application.log_stream import dropped_lines
from baton.infrastructure.background import Supervisor
from baton.infrastructure.postgres.leadership import MONITOR_LOCK, REACTIONS_LOCK, SCHEDULES_LOCK, is_led
from baton.infrastructure.postgres.pool import Connection, dedicated
from baton.infrastructure.postgres.projections import LEADER_LOCK

INTERVAL = 2.0
"""Seconds between two reports of a process."""
SILENT = timedelta(seconds=10)
"""A process that has not reported for so long does not run any more, or cannot reach the database."""
RECENT = timedelta(seconds=60)
"""How long a task that was started again is spoken of."""
FORGOTTEN = timedelta(hours=1)
LEADERS: Mapping[str, int] = {
    "monitoring": MONITOR_LOCK,
    "reactions": REACTIONS_LOCK,
    "schedules": SCHEDULES_LOCK,
    "projections": LEADER_LOCK,
}
"""The tasks that one process does for all, and the lock that its session holds meanwhile."""
REPORT = """
INSERT INTO process_reports VALUES (%s, %s, %s, %s, %s, clock_timestamp(), %s::jsonb, %s) ON CONFLICT (process_id) DO UPDATE
SET reported_at = excluded.reported_at, tasks = excluded.tasks, dropped_lines = excluded.dropped_lines
"""
REPORTED = """
SELECT kind, host, pid, tasks, dropped_lines, clock_timestamp() FROM process_reports
WHERE reported_at > clock_timestamp() - %s ORDER BY kind, host, pid
"""


@dataclass(frozen=True)
class TaskTrouble:
    """A task that ended lately, or waits to be started again."""

    task: str
    restarts: int
    running: bool
    because: str | None


@dataclass(frozen=True)
class ProcessReport:
    """What a running process last said of itself."""

    kind: str
    host: str
    pid: int
    restarts: Mapping[str, int]
    """How often each task was started again."""
    troubles: tuple[TaskTrouble, ...]
    dropped_lines: int

    @property
    def name(self) -> str:
        return f"{self.kind} {self.pid} on {self.host}"


class Reporter:
    """Writes down how this process fares, every few seconds, and takes its line away when it stops."""

    def __init__(self, url: str, kind: str, supervisor: Supervisor) -> None:
        self._url = url
        self._identity = (uuid_utils.compat.uuid7(), kind, socket.gethostname(), os.getpid(), datetime.now(UTC))
        self._supervisor = supervisor

    async def run(self) -> None:
        """Report until cancelled; raises when the connection is lost."""
        async with await dedicated(self._url) as connection:
            await connection.execute(
                "DELETE FROM process_reports WHERE reported_at < clock_timestamp() - %s::interval", (FORGOTTEN,)
            )
            try:
                while True:
                    tasks = orjson.dumps(self._supervisor.tasks).decode()
                    await connection.execute(REPORT, (*self._identity, tasks, dropped_lines()))
                    await asyncio.sleep(INTERVAL)
            finally:
                with suppress(psycopg.Error):
                    await connection.execute("DELETE FROM process_reports WHERE process_id = %s", self._identity[:1])


async def running_processes(connection: Connection) -> list[ProcessReport]:
    """The processes that have reported lately."""
    rows = await (await connection.execute(REPORTED, (SILENT,))).fetchall()
    return [
        ProcessReport(
            *(kind, host, pid),
            {name: task["restarts"] for name, task in tasks.items()},
            tuple(_troubles(tasks, now)),
            dropped,
        )
        for kind, host, pid, tasks, dropped, now in rows
    ]


async def unled_tasks(connection: Connection) -> list[str]:
    """The tasks that one process should do for all, and none does."""
    return [name for name, lock in LEADERS.items() if not await is_led(connection, lock)]


def _troubles(tasks: Mapping[str, Any], now: datetime) -> Iterable[TaskTrouble]:
    for name, task in tasks.items():
        ended_at = task["ended_at"] and datetime.fromisoformat(task["ended_at"])
        if ended_at and (not task["running"] or now - ended_at < RECENT):
            yield TaskTrouble(name, task["restarts"], task["running"], task["because"])
