"""Several processes that could monitor: one does, and another goes on when it is gone."""

from contextlib import AsyncExitStack

import pytest

from baton.infrastructure.control.simulator import Simulator
from baton.infrastructure.postgres.leadership import MONITOR_LOCK
from tests.support.application.monitored_plant import PERMIT, MonitoredRecord, good, monitored, running
from tests.support.waiting import until

HELD = (
    "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND (classid::bigint << 32) | objid::bigint = %s "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@pytest.fixture
def plants() -> list[Simulator]:
    """The same plant as two processes see it."""
    return [Simulator({PERMIT: 1}), Simulator({PERMIT: 1})]


async def test_one_of_two_processes_observes(database_url: str, plants: list[Simulator]) -> None:
    async with monitored(database_url, plants[0]) as record, monitored(database_url, plants[1]):
        await until(lambda: _shows(record, "Permitted"))
        assert sum(plant.subscriptions(PERMIT) for plant in plants) == 1
        assert len(await record.execute(HELD, MONITOR_LOCK)) == 1


async def test_the_other_goes_on_when_the_leader_stops(database_url: str, plants: list[Simulator]) -> None:
    async with running(database_url) as record, AsyncExitStack() as leader:
        await leader.enter_async_context(monitored(database_url, plants[0]))
        await until(lambda: _shows(record, "Permitted"))
        async with monitored(database_url, plants[1]):
            assert plants[1].subscriptions(PERMIT) == 0
            await leader.aclose()
            await until(lambda: _shows(record, "Permitted", "Unknown", "Permitted"))
            assert (plants[0].subscriptions(PERMIT), plants[1].subscriptions(PERMIT)) == (0, 1)


async def test_a_leader_that_lost_its_session_has_no_say_any_more(database_url: str, plants: list[Simulator]) -> None:
    async with running(database_url) as record, monitored(database_url, plants[0]):
        await until(lambda: _shows(record, "Permitted"))
        async with monitored(database_url, plants[1]):
            ((leader,),) = await record.execute(HELD, MONITOR_LOCK)
            await record.execute("SELECT pg_terminate_backend(%s)", leader)
            await until(lambda: _led_by_another(record, leader))
            await until(lambda: sum(plant.subscriptions(PERMIT) for plant in plants) == 1)
            for plant in plants:
                plant.set_reading(PERMIT, good(0))
            await until(lambda: _shows(record, "Permitted", "NotPermitted"))


async def _led_by_another(record: MonitoredRecord, than: int) -> bool:
    leaders = [pid for (pid,) in await record.execute(HELD, MONITOR_LOCK)]
    return bool(leaders) and leaders != [than]


async def _shows(record: MonitoredRecord, *statuses: str) -> bool:
    return await record.permits() == list(statuses)
