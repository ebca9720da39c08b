"""One process leads, for as long as its session lasts; what it achieved is known to all, and gone with it."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

import psycopg
import pytest
from structlog.testing import capture_logs

from baton.application.conduct.heartbeat import boot_time
from baton.application.ports import LeaseLostError
from baton.infrastructure.background import Supervisor
from baton.infrastructure.postgres import leadership
from baton.infrastructure.postgres.leadership import (
    STOP_SECONDS,
    Leadership,
    is_led,
    lead,
    mark_settled,
    unsettled_enclosures,
    win_election,
)
from baton.infrastructure.postgres.pool import dedicated_connection
from tests.support.infrastructure.database_observer import Connection, lock_holders, value
from tests.support.waiting import until

LOCK = 0x77


@pytest.fixture(autouse=True)
def _quick_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leadership, "CHECK_SECONDS", 0.05)


class Work:
    """Something only one process may do at a time."""

    def __init__(self, note: str | None = None) -> None:
        self.note = note
        self.terms: list[Leadership] = []
        self.working = 0

    async def __call__(self, leading: Leadership) -> None:
        self.terms.append(leading)
        self.working += 1
        try:
            if self.note is not None:
                await mark_settled(leading.connection, self.note)
            await asyncio.Event().wait()
        finally:
            self.working -= 1


def running_candidate(url: str, work: Callable[[Leadership], object]) -> AbstractAsyncContextManager[None]:
    """A process that stands for election."""
    return Supervisor().supervise("leading", lambda: lead(url, LOCK, work))  # type: ignore[arg-type]


async def test_one_leads_and_the_next_takes_over_when_it_leaves(database_url: str, owner: Connection) -> None:
    first, second = Work(), Work()
    async with running_candidate(database_url, first):
        await until(lambda: first.working)
        assert await is_led(owner, LOCK)
        async with running_candidate(database_url, second):
            await until(lambda: _sessions(owner, 2))
            assert second.working == 0
            await until(lambda: _terminate_leader(owner, LOCK))
            await until(lambda: first.working + second.working == 1)

    async def is_free() -> bool:
        return not await is_led(owner, LOCK)

    await until(is_free)  # the server notices a moment later that a session has ended


async def test_who_waits_holds_nothing_back(database_url: str, owner: Connection) -> None:
    async with running_candidate(database_url, Work()), running_candidate(database_url, Work()):
        await until(lambda: _sessions(owner, 2))
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        assert await value(owner, waiting) == 0


async def test_a_lost_session_ends_the_work_and_another_begins(database_url: str, owner: Connection) -> None:
    work = Work()
    async with running_candidate(database_url, work):
        await until(lambda: work.working)
        await _terminate_leader(owner, LOCK)
        await until(lambda: len(work.terms) == 2 and work.working == 1)


async def test_a_leader_that_is_silent_is_followed_by_another_whose_term_is_the_next(
    database_url: str, owner: Connection
) -> None:
    async with await dedicated_connection(database_url) as suspended:
        silent = await win_election(database_url, suspended, LOCK)
        work = Work()
        async with running_candidate(database_url, work):
            await until(lambda: _sessions(owner, 2))
            assert await is_led(owner, LOCK), "it has just begun"
            await owner.execute("UPDATE leases SET renewed_at = renewed_at - interval '1 hour'")
            await until(lambda: work.working)
            assert [leading.lease.term for leading in work.terms] == [silent.lease.term + 1]
            assert await is_led(owner, LOCK)
            with pytest.raises(psycopg.OperationalError):
                await suspended.execute("SELECT 1")


async def test_nobody_leads_whose_leader_is_silent_and_has_no_successor(database_url: str, owner: Connection) -> None:
    async with await dedicated_connection(database_url) as suspended:
        await win_election(database_url, suspended, LOCK)
        assert await is_led(owner, LOCK)
        await owner.execute("UPDATE leases SET renewed_at = renewed_at - interval '5 s'")
        assert not await is_led(owner, LOCK)


async def test_work_ends_when_the_term_is_over_although_its_session_lasts(database_url: str, owner: Connection) -> None:
    work = Work()
    async with running_candidate(database_url, work):
        await until(lambda: work.working)
        await owner.execute("UPDATE leases SET term = term + 1")
        await until(lambda: len(work.terms) == 2 and work.working == 1)


async def test_who_was_suspended_knows_before_it_has_asked_anybody(database_url: str) -> None:
    async with await dedicated_connection(database_url) as connection:
        leading = await win_election(database_url, connection, LOCK)
        leading.check()
        with pytest.raises(LeaseLostError):
            replace(leading, _heard_at=boot_time() - STOP_SECONDS).check()


async def test_work_that_fails_is_logged_and_begun_again(database_url: str) -> None:
    attempts: list[Leadership] = []

    async def work(leading: Leadership) -> None:
        attempts.append(leading)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail())

    async def fail() -> None:
        raise RuntimeError("bug")

    with capture_logs() as lines:
        async with running_candidate(database_url, work):
            await until(lambda: len(attempts) == 2)
    assert [line["error"] for line in lines if line["event"] == "task_ended"][:1] == ["RuntimeError"]


async def test_what_is_settled_is_known_by_name_and_gone_with_the_session(database_url: str, owner: Connection) -> None:
    work = Work(note="Hutch B")
    async with running_candidate(database_url, work):
        await until(lambda: _is_settled(owner, "Hutch B"))
        assert await unsettled_enclosures(owner, ["Hutch C", "Hutch B", "Hutch A"]) == ["Hutch A", "Hutch C"]
    await until(lambda: _is_unsettled(owner, "Hutch B"))


async def test_the_runtime_role_can_see_what_is_settled(database_url: str) -> None:
    async with await dedicated_connection(database_url) as leader, await dedicated_connection(database_url) as reader:
        await mark_settled(leader, "Hutch B")
        assert await unsettled_enclosures(reader, ["Hutch B"]) == []


async def _sessions(owner: Connection, count: int) -> bool:
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    return bool(await value(owner, query) >= count)


async def _terminate_leader(owner: Connection, lock: int) -> bool:
    for pid in await lock_holders(owner, lock):
        return bool(await value(owner, "SELECT pg_terminate_backend(%s)", pid))
    return False


async def _is_settled(owner: Connection, name: str) -> bool:
    return await unsettled_enclosures(owner, [name]) == []


async def _is_unsettled(owner: Connection, name: str) -> bool:
    return await unsettled_enclosures(owner, [name]) == [name]
