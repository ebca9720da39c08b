"""Wake-ups: sent together, outside the transactions they announce, and never needed for anything but speed."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from baton.domain.trust.zone import DefineZone
from baton.infrastructure.background import Supervisor
from baton.infrastructure.postgres.pool import CHANNEL, AppendNotifier, Pool, PostgresAppendListener, dedicated_connection
from baton.infrastructure.postgres.store import PostgresStore
from tests.support.application.command_paths import CommandCaller
from tests.support.domain.world import expect_refusal
from tests.support.infrastructure.database_observer import Connection, rows
from tests.support.waiting import until

END = "the end"


@pytest.fixture
async def listening_connection(database_url: str) -> AsyncIterator[Connection]:
    """A connection that hears every wake-up."""
    async with await dedicated_connection(database_url) as connection:
        await connection.execute(f"LISTEN {CHANNEL}")
        yield connection


async def wake_ups(listening_connection: Connection, count: int | None = None) -> list[str]:
    """The first so many wake-ups, or all of them until the end was announced."""
    payloads = []
    async with asyncio.timeout(60):
        async for notification in listening_connection.notifies():
            payloads.append(notification.payload)
            if notification.payload == END or len(payloads) == count:
                break
    return payloads


async def announce_the_end(owner: Connection) -> None:
    await owner.execute(f"NOTIFY {CHANNEL}, '{END}'")


async def test_an_append_sends_nothing_itself(
    client: CommandCaller, listening_connection: Connection, owner: Connection
) -> None:
    for number in range(3):
        await client.do(DefineZone(name=f"Hutch {number}"), key=f"retry-{number}")
    await announce_the_end(owner)
    assert await wake_ups(listening_connection) == [END]


async def test_no_trigger_or_rule_sends_on_its_behalf(owner: Connection) -> None:
    sending = "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosrc ~* 'notify'"
    assert await rows(owner, sending) == []
    assert await rows(owner, "SELECT tgname FROM pg_trigger WHERE tgrelid = 'events'::regclass AND NOT tgisinternal") == []
    assert await rows(owner, "SELECT rulename FROM pg_rules WHERE schemaname = 'public'") == []


async def test_the_store_tells_its_process_after_the_commit(pool: Pool, owner: Connection) -> None:
    seen: list[int] = []
    announced = asyncio.Event()
    client = CommandCaller(PostgresStore(pool, announced.set))
    await client.do(DefineZone(name="Hutch"))
    assert announced.is_set()
    seen += [row[0] for row in await rows(owner, "SELECT position FROM events")]
    assert len(seen) == 1
    announced.clear()
    with expect_refusal("InvalidZoneNameError"):
        await client.do(DefineZone(name=" "))
    assert not announced.is_set()


async def test_many_appends_are_one_wake_up(database_url: str, listening_connection: Connection, owner: Connection) -> None:
    waker = AppendNotifier(database_url)
    for _ in range(100):
        waker.mark_appended()
    async with Supervisor().supervise("waking", waker.run):
        assert await wake_ups(listening_connection, 1) == [""]
        await announce_the_end(owner)
        assert await wake_ups(listening_connection) == [END]


async def test_every_later_append_is_announced_again(database_url: str, listening_connection: Connection) -> None:
    waker = AppendNotifier(database_url)
    async with Supervisor().supervise("waking", waker.run):
        for _ in range(3):
            waker.mark_appended()
            assert await wake_ups(listening_connection, 1) == [""]


async def test_a_waker_that_lost_its_connection_comes_back(
    database_url: str, listening_connection: Connection, owner: Connection
) -> None:
    waker = AppendNotifier(database_url)
    async with Supervisor().supervise("waking", waker.run):
        waker.mark_appended()
        await wake_ups(listening_connection, 1)
        await terminate(owner, f"NOTIFY {CHANNEL}")

        async def is_announced_again() -> bool:
            waker.mark_appended()
            async for _ in listening_connection.notifies(timeout=0.05, stop_after=1):
                return True
            return False

        await until(is_announced_again)


async def test_a_listener_wakes_everybody_who_waits(database_url: str, owner: Connection) -> None:
    listener = PostgresAppendListener(database_url)
    async with Supervisor().supervise("listening", listener.run):
        waiting = [asyncio.create_task(listener.wait(at_most=60)) for _ in range(3)]

        async def all_woken() -> bool:
            await owner.execute(f"NOTIFY {CHANNEL}")
            return all(task.done() for task in waiting)

        await until(all_woken)


async def test_a_listener_gives_up_waiting_in_time(database_url: str) -> None:
    async with asyncio.timeout(60):
        await PostgresAppendListener(database_url).wait(at_most=0.01)


async def test_a_listener_that_is_cancelled_when_news_comes_stops_waiting(database_url: str, owner: Connection) -> None:
    listener = PostgresAppendListener(database_url)

    async def wait_for_ever() -> None:
        while True:
            await listener.wait(at_most=60)

    async with Supervisor().supervise("listening", listener.run):
        waiting = [asyncio.create_task(wait_for_ever()) for _ in range(200)]
        news = asyncio.create_task(announce_often(owner))
        for task in waiting:  # at any moment between the coming of news and its being known
            await asyncio.sleep(0)
            task.cancel()
        await news
        await asyncio.wait(waiting, timeout=60)
    assert all(task.cancelled() for task in waiting)


async def announce_often(owner: Connection) -> None:
    for _ in range(200):
        await owner.execute(f"NOTIFY {CHANNEL}")


async def terminate(owner: Connection, last_query: str) -> None:
    """End the backends whose last statement was this one."""
    ended = await rows(
        owner,
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND query = %s",
        last_query,
    )
    assert ended == [(True,)]
