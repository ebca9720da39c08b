"""Lasting tasks: one that ends is started again, however it ended, and how it fares is known."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from baton.infrastructure.background import Supervisor
from baton.infrastructure.postgres.leadership import (
    REACTIONS_LOCK,
    ProcessReporter,
    is_led,
    lead,
    running_processes,
    unled_tasks,
)
from baton.infrastructure.postgres.pool import Connection, dedicated_connection
from tests.support.fast_clock import LoopTime, skipping_time
from tests.support.waiting import until


@pytest.fixture
async def skipped_time() -> AsyncIterator[LoopTime]:
    """Time that passes as soon as nobody does anything else: the pauses before restarts are not waited for."""
    with skipping_time(asyncio.get_running_loop()) as time:
        yield time


class FailsOnce:
    """A task that ends in one way at first and then goes on."""

    def __init__(self, end: BaseException | None) -> None:
        self._end = end
        self.starts = 0

    async def run(self) -> None:
        self.starts += 1
        if self.starts == 1:
            if self._end is not None:
                raise self._end
            return
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("end", "because"),
    [
        (None, "returned"),
        (OSError(28, "No space left on device"), "OSError"),
        (SystemExit(1), "SystemExit"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (asyncio.CancelledError(), "CancelledError"),
        (ExceptionGroup("several", [ExceptionGroup("inner", [ValueError()]), KeyError()]), "ValueError"),
    ],
    ids=repr,
)
@pytest.mark.usefixtures("skipped_time")
async def test_a_task_is_started_again_however_it_ended(end: BaseException | None, because: str) -> None:
    supervisor, task = Supervisor(), FailsOnce(end)
    async with supervisor.supervise("something", task.run):
        await until(lambda: task.starts == 2)
        state = supervisor.tasks["something"]
        assert (state.running, state.restarts, state.because) == (True, 1, because)
    assert not state.running


@pytest.mark.usefixtures("skipped_time")
async def test_a_task_that_somebody_cancels_goes_on_and_one_that_is_stopped_does_not() -> None:
    supervisor, task = Supervisor(), FailsOnce(None)
    async with supervisor.supervise("something", task.run):
        for starts in (2, 3):
            await until(lambda starts=starts: task.starts == starts)  # type: ignore[misc]
            [kept] = [running for running in asyncio.all_tasks() if running.get_name() == "something"]
            kept.cancel()
        await until(lambda: task.starts == 4)
    await asyncio.sleep(0)
    assert task.starts == 4


@pytest.mark.usefixtures("skipped_time")
async def test_a_task_that_loses_a_cancellation_is_stopped_all_the_same() -> None:
    cancellations, begun = 0, asyncio.Event()

    async def lose_cancellations() -> None:
        nonlocal cancellations
        begun.set()
        while cancellations < 3:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancellations += 1

    async with asyncio.timeout(60), Supervisor().supervise("something", lose_cancellations):
        await begun.wait()
    assert cancellations == 3


@pytest.mark.usefixtures("skipped_time")
async def test_a_task_that_keeps_failing_is_started_at_longer_and_longer_intervals() -> None:
    times: list[float] = []

    async def fail() -> None:
        times.append(asyncio.get_running_loop().time())
        raise RuntimeError

    async with Supervisor().supervise("something", fail):
        await until(lambda: len(times) == 4)
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses[0] >= 0.25
    assert pauses[2] >= 0.9


async def test_an_error_while_a_task_is_stopped_reaches_nobody() -> None:
    begun = asyncio.Event()

    async def work() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            raise OSError("gone")

    async with Supervisor().supervise("something", work):
        await begun.wait()


async def test_a_leader_whose_session_is_killed_leads_again(database_url: str) -> None:
    async def work(_: Connection) -> None:
        await asyncio.Event().wait()

    async with await dedicated_connection(database_url, owner=True) as owner:

        async def is_led_now() -> bool:
            return await is_led(owner, REACTIONS_LOCK)

        supervisor = Supervisor()
        async with supervisor.supervise("reactions", lambda: lead(database_url, REACTIONS_LOCK, work)):
            await until(is_led_now)
            await owner.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid() "
                "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            await until(lambda: supervisor.tasks["reactions"].restarts)
            await until(is_led_now)


async def test_processes_see_each_other_and_how_their_tasks_fare(database_url: str) -> None:
    supervisor, task = Supervisor(), FailsOnce(psycopg.OperationalError())
    async with await dedicated_connection(database_url) as connection:
        async with (
            supervisor.supervise("reactions", task.run),
            supervisor.supervise("reporting", ProcessReporter(database_url, "worker", supervisor).run),
        ):

            async def reported_processes() -> Any:
                found = await running_processes(connection)
                return found if found and found[0].troubles else None

            [process] = await until(reported_processes)
            assert process.kind == "worker"
            [trouble] = process.troubles
            assert (trouble.task, trouble.restarts, trouble.because) == ("reactions", 1, "OperationalError")
            assert await unled_tasks(connection) == ["monitoring", "reactions", "schedules", "projections"]
        assert await running_processes(connection) == []


async def test_a_connection_that_was_being_opened_is_closed_when_its_task_stops() -> None:
    """Or PostgreSQL waits for its other end for a minute, and nobody can drop a database meanwhile."""
    opened, closed = asyncio.Event(), asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.set()
        while await reader.read(1024):
            pass
        closed.set()
        writer.close()

    async with await asyncio.start_server(say_nothing, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]

        async def connect() -> None:
            await psycopg.AsyncConnection.connect(f"host=127.0.0.1 port={port} user=baton dbname=baton sslmode=disable")

        async with Supervisor().supervise("connecting", connect):
            await opened.wait()
        async with asyncio.timeout(60):
            await closed.wait()
