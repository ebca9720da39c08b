"""A worker whose log lines nobody takes: it goes on, leads again when its sessions are lost, and the loss is counted."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from baton.cli.doctor.database import examine_processes, remedy_for_unled
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.infrastructure.postgres.leadership import LEADERS, running_processes, unled_tasks
from baton.infrastructure.postgres.pool import Connection, dedicated_connection
from tests.support.forked_commands import forked_command
from tests.support.stack import clean_environment
from tests.support.waiting import until

WORKER_LEADS = [task for task in LEADERS if task != "projections"]
LOSE_SESSIONS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@contextmanager
def running_worker(
    database_url: str, temporal: EmbeddedTemporal, error: int | None, **settings: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """A real worker with this standard error, or with none."""
    environment = clean_environment(DATABASE_URL=database_url, TEMPORAL_ADDRESS=temporal.address, **settings)
    command = [sys.executable, "-m", "baton.cli", "worker"]
    if error is None:
        command = ["sh", "-c", 'exec "$@" 2>&- >&- <&-', "sh", *command]
    process = subprocess.Popen(command, env=environment, stderr=error, stdout=error)
    try:
        yield process
    finally:
        process.terminate()
        assert process.wait(120) == 0


async def is_leading(connection: Connection) -> bool:
    return await unled_tasks(connection) == ["projections"]


@pytest.mark.parametrize("closed_at_start", [False, True])
async def test_a_worker_whose_lines_nobody_reads_leads_again_after_it_lost_its_sessions(
    database_url: str, temporal: EmbeddedTemporal, closed_at_start: bool
) -> None:
    reading, writing = os.pipe()
    async with await dedicated_connection(database_url, owner=True) as connection:
        assert [await remedy_for_unled(connection, task) for task in WORKER_LEADS] == 3 * [
            "start `baton worker`, or `baton up`"
        ]
        with running_worker(database_url, temporal, None if closed_at_start else writing) as process:
            os.close(writing)
            os.close(reading)
            await until(lambda: is_leading(connection))
            await connection.execute(LOSE_SESSIONS)
            await until(lambda: is_troubled(connection))
            await until(lambda: is_leading(connection))
            assert process.poll() is None
            await until(lambda: drops_lines(connection))
            await until(lambda: is_said(connection, "reactions was started again"))
            assert await is_said(connection, f"worker {process.pid} on ")


async def is_troubled(connection: Connection) -> bool:
    return any(process.troubles for process in await running_processes(connection))


async def is_said(connection: Connection, words: str) -> bool:
    return words in (await examine_processes(connection)).sentence


async def drops_lines(connection: Connection) -> bool:
    return any(process.dropped_lines for process in await running_processes(connection))


async def test_a_worker_that_does_not_lead_is_told_from_none(
    database_url: str, temporal: EmbeddedTemporal, tmp_path: Path
) -> None:
    async with await dedicated_connection(database_url, owner=True) as connection:
        await connection.execute("SELECT pg_advisory_lock(%s)", (LEADERS["reactions"],))
        settings = clean_environment(DATABASE_URL=database_url, TEMPORAL_ADDRESS=temporal.address)
        with forked_command(("worker",), settings, tmp_path / "out", tmp_path / "log") as process:
            await until(lambda: running_processes(connection))
            remedy = await remedy_for_unled(connection, "reactions")
        assert remedy.startswith(f"worker {process.pid} on ")
        assert "runs and does not lead, so look again in a moment" in remedy
