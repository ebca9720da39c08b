"""Leader election: work that one process does for all, and what it has settled, for as long as its session lasts and it says
every second that it is there; and a row that every process keeps about itself, so that others see which processes and tasks
run."""

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import psycopg
import structlog
import uuid_utils.compat

from baton.application.caller import Lease
from baton.application.conduct.heartbeat import boot_time
from baton.application.ports import LeaseLostError
from baton.application.telemetry import ProcessReport, TaskTrouble, dropped_lines
from baton.infrastructure.background import Supervisor
from baton.infrastructure.postgres.adoption import refuse_ahead
from baton.infrastructure.postgres.pool import Connection, dedicated_connection
from baton.infrastructure.postgres.store import PostgresStore

log = structlog.get_logger()

PROJECTIONS_LOCK = 0x6261746F6E02
MONITOR_LOCK = 0x6261746F6E05
REACTIONS_LOCK = 0x6261746F6E06
SCHEDULES_LOCK = 0x6261746F6E08
CHECK_SECONDS = 1.0  # time between two renewals of a lease, and between two attempts to become leader
LEASE_SECONDS = 4.0  # silence after which a leader is taken for suspended or cut off, by the clock of the database
STOP_SECONDS = LEASE_SECONDS - 1  # silence after which it stops by itself, well before another takes over
ANSWER_SECONDS = 5.0
KEEPALIVE = """SELECT set_config('tcp_keepalives_idle', '5', false), set_config('tcp_keepalives_interval', '2', false),
    set_config('tcp_keepalives_count', '3', false)"""
LOCK_HELD = """SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND (classid::bigint << 32) | objid::bigint = {}"""
SETTLED = "hashtextextended('enclosure settled: ' || {}, 0)"
UNSETTLED = f"""SELECT name FROM unnest(%s::text[]) name
WHERE NOT EXISTS ({LOCK_HELD.format(SETTLED.format("name"))}) ORDER BY 1"""
WIN = """WITH tried AS MATERIALIZED (SELECT pg_try_advisory_lock(%(lock)s) AS won)
INSERT INTO leases AS lease SELECT %(lock)s, 1, pg_backend_pid(), clock_timestamp() FROM tried WHERE won
ON CONFLICT (lock) DO UPDATE SET term = lease.term + 1, backend_pid = excluded.backend_pid, renewed_at = excluded.renewed_at
RETURNING term"""
RENEW = f"""UPDATE leases SET renewed_at = clock_timestamp() WHERE lock = %(lock)s AND term = %(term)s
AND EXISTS ({LOCK_HELD.format("%(lock)s")} AND pid = backend_pid) RETURNING term"""
SILENT = f"""leases WHERE lock = %(lock)s AND renewed_at < clock_timestamp() - interval '{LEASE_SECONDS} s'
AND EXISTS ({LOCK_HELD.format("%(lock)s")} AND pid = backend_pid)"""
MONITOR_TERM = f"SELECT term FROM leases WHERE lock = {MONITOR_LOCK} AND monitor_leads(term) AND NOT EXISTS ({UNSETTLED})"
END_SILENT = f"SELECT pg_terminate_backend(backend_pid, 2000) FROM {SILENT}"
IS_LED = f"SELECT WHERE EXISTS ({LOCK_HELD.format('%(lock)s')}) AND NOT EXISTS (SELECT FROM {SILENT})"


@dataclass
class Leadership:
    """One term of a leader: the session that holds its lock, and its lease."""

    connection: Connection
    lease: Lease
    is_lost: bool = False  # whether session or lease were lost: then another may lead, and have written since
    _heard_at: float = field(default_factory=boot_time)  # when the last renewal that succeeded was sent

    def check(self) -> None:
        """Raise where another process may lead by now; a process that was suspended asks this before anything else."""
        if boot_time() - self._heard_at >= STOP_SECONDS:
            raise LeaseLostError("The lease was not renewed in time.")

    async def keep(self, pulse: Connection) -> None:
        """Renew the lease until cancelled; raise where it is lost, or might be."""
        try:
            while True:
                sent_at = boot_time()
                async with asyncio.timeout(STOP_SECONDS):
                    renewed = await (await pulse.execute(RENEW, self.lease._asdict())).fetchone()
                if renewed is None:
                    raise LeaseLostError("Another process leads now.")
                self._heard_at = sent_at
                await asyncio.sleep(CHECK_SECONDS)
        except Exception:
            self.is_lost = True
            raise


async def lead(url: str, lock: int, work: Callable[[Leadership], Coroutine[object, object, None]]) -> None:
    """Become leader and do the work while leading; end the work and raise when session or lease is lost."""
    async with asyncio.timeout(ANSWER_SECONDS):
        connection = await dedicated_connection(url)
    async with connection:
        await refuse_ahead(connection)
        leadership = await win_election(url, connection, lock)
        log.info("leading", lock=lock, term=leadership.lease.term)
        async with asyncio.timeout(ANSWER_SECONDS):
            pulse = await dedicated_connection(url)  # of its own: the session may be in a long transaction
        async with pulse:
            await _run_first(work(leadership), leadership.keep(pulse))


async def win_election(url: str, connection: Connection, lock: int) -> Leadership:
    """Wait until this session holds the lock, by polling: a session that waits in the server holds back vacuum. A leader
    that fell silent is not waited for: its session is ended."""
    async with asyncio.timeout(ANSWER_SECONDS):
        await connection.execute(KEEPALIVE)
    while True:
        async with asyncio.timeout(ANSWER_SECONDS):
            if (row := await (await connection.execute(WIN, {"lock": lock})).fetchone()) is not None:
                return Leadership(connection, Lease(lock, row[0]))
            silent = await (await connection.execute(f"SELECT FROM {SILENT}", {"lock": lock})).fetchone()
        if silent is None:
            await asyncio.sleep(CHECK_SECONDS)
        else:
            await _end_silent(url, lock)


async def _end_silent(url: str, lock: int) -> None:
    """End the session of a leader that is still silent; only who logged in as it did may, and not as the runtime role."""
    log.warning("leader_silent", lock=lock)
    async with asyncio.timeout(ANSWER_SECONDS), await dedicated_connection(url, owner=True) as connection:
        await connection.execute(END_SILENT, {"lock": lock})


async def _run_first(*works: Coroutine[object, object, None]) -> None:
    """Run these until the first of them ends, and end like it."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def mark_settled(connection: Connection, name: str) -> None:
    await connection.execute(f"SELECT pg_advisory_lock_shared({SETTLED.format('%s::text')})", (name,))


async def unsettled_enclosures(connection: Connection, names: Iterable[str]) -> list[str]:
    return [row[0] for row in await (await connection.execute(UNSETTLED, (list(names),))).fetchall()]


@dataclass(frozen=True)
class MonitorTerms:
    """Reads the terms of monitors."""

    store: PostgresStore

    async def monitor_term(self, enclosure_names: Iterable[str]) -> int | None:
        """Return the term of the monitor that leads, where it has said so of late and has settled these; None otherwise."""
        async with self.store.connection() as connection:
            row = await (await connection.execute(MONITOR_TERM, (list(enclosure_names),))).fetchone()
        return None if row is None else row[0]


async def is_led(connection: Connection, lock: int) -> bool:
    """Return whether a process leads this, and has said so of late."""
    return await (await connection.execute(IS_LED, {"lock": lock})).fetchone() is not None


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
INSERT INTO process_reports VALUES (%s, %s, %s, %s, %s, clock_timestamp(), %s::jsonb, %s, %s)
ON CONFLICT (process_id) DO UPDATE SET reported_at = excluded.reported_at, tasks = excluded.tasks,
    dropped_lines = excluded.dropped_lines, clock_skew = excluded.clock_skew RETURNING clock_timestamp()"""
RECENT_REPORTS = """SELECT kind, host, pid, tasks, dropped_lines, clock_skew, clock_timestamp() FROM process_reports
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
            skew = 0.0
            try:
                while True:
                    tasks, sent_at = orjson.dumps(self._supervisor.tasks).decode(), datetime.now(UTC)
                    told = await connection.execute(REPORT, (*self._identity, tasks, dropped_lines(), skew))
                    ((at,),) = await told.fetchall()
                    skew = clock_skew(sent_at, at, datetime.now(UTC))
                    await asyncio.sleep(REPORT_SECONDS)
            finally:
                with suppress(psycopg.Error):
                    await connection.execute("DELETE FROM process_reports WHERE process_id = %s", self._identity[:1])


def clock_skew(sent_at: datetime, told: datetime, answered_at: datetime) -> float:
    """Return how far a clock that read so before and after an answer is ahead of the one that was told, at the least."""
    ahead, behind = (sent_at - told).total_seconds(), (answered_at - told).total_seconds()
    return max(ahead, 0.0) + min(behind, 0.0)


async def running_processes(connection: Connection) -> list[ProcessReport]:
    reports = []
    for kind, host, pid, tasks, dropped, skew, now in await (
        await connection.execute(RECENT_REPORTS, (MAX_SILENCE,))
    ).fetchall():
        restarts = {name: task["restarts"] for name, task in tasks.items()}
        reports.append(ProcessReport(kind, host, pid, restarts, tuple(_troubles(tasks, now)), dropped, skew))
    return reports


async def unled_tasks(connection: Connection) -> list[str]:
    return [name for name, lock in LEADERS.items() if not await is_led(connection, lock)]


def _troubles(tasks: Mapping[str, Any], now: datetime) -> Iterable[TaskTrouble]:
    for name, task in tasks.items():
        ended_at = task["ended_at"] and datetime.fromisoformat(task["ended_at"])
        if ended_at and (not task["running"] or now - ended_at < RECENT):
            yield TaskTrouble(name, task["restarts"], task["running"], task["because"])
