"""Several processes that could monitor: one does, and another goes on when it is gone."""

from contextlib import AsyncExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from baton.cli.worker import monitor_in_background
from baton.domain.start.run_start import StartRun
from baton.infrastructure.control.simulator import Simulator
from baton.infrastructure.postgres.leadership import MONITOR_LOCK
from tests.support.application.monitored_plant import (
    HUTCH,
    PERMIT,
    QUICK,
    SYSTEM,
    DatabaseRecord,
    MonitoredRecord,
    good,
    monitored_service,
    running_service,
)
from tests.support.domain.world import expect_refusal
from tests.support.waiting import until
from tests.support.workflows.run_cases import build_run_stack

HELD = (
    "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND (classid::bigint << 32) | objid::bigint = %s "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@pytest.fixture
def plants() -> list[Simulator]:
    """The same plant as two processes see it."""
    return [Simulator({PERMIT: 1}), Simulator({PERMIT: 1})]


async def test_one_of_two_processes_observes(database_url: str, plants: list[Simulator]) -> None:
    async with monitored_service(database_url, plants[0]) as record, monitored_service(database_url, plants[1]):
        await until(lambda: _shows(record, "Permitted"))
        assert sum(plant.subscriptions(PERMIT) for plant in plants) == 1
        assert len(await record.execute(HELD, MONITOR_LOCK)) == 1


async def test_the_other_goes_on_when_the_leader_stops(database_url: str, plants: list[Simulator]) -> None:
    async with running_service(database_url) as record, AsyncExitStack() as leader:
        await leader.enter_async_context(monitored_service(database_url, plants[0]))
        await until(lambda: _shows(record, "Permitted"))
        async with monitored_service(database_url, plants[1]):
            assert plants[1].subscriptions(PERMIT) == 0
            await leader.aclose()
            await until(lambda: _shows(record, "Permitted", "Unknown", "Permitted"))
            assert (plants[0].subscriptions(PERMIT), plants[1].subscriptions(PERMIT)) == (0, 1)


async def test_a_leader_that_lost_its_session_has_no_say_any_more(database_url: str, plants: list[Simulator]) -> None:
    async with running_service(database_url) as record, monitored_service(database_url, plants[0]):
        await until(lambda: _shows(record, "Permitted"))
        async with monitored_service(database_url, plants[1]):
            ((leader,),) = await record.execute(HELD, MONITOR_LOCK)
            await record.execute("SELECT pg_terminate_backend(%s)", leader)
            await until(lambda: _led_by_another(record, leader))
            await until(lambda: sum(plant.subscriptions(PERMIT) for plant in plants) == 1)
            for plant in plants:
                plant.set_reading(PERMIT, good(0))
            await until(lambda: _shows(record, "Permitted", "NotPermitted"))


async def test_what_the_database_missed_is_recorded_when_it_is_back(database_url: str, plants: list[Simulator]) -> None:
    async with monitored_service(database_url, plants[0]) as record:
        await until(lambda: _shows(record, "Permitted"))
        await record.execute("ALTER TABLE enclosure_contact RENAME TO away")
        with capture_logs() as lines:
            plants[0].set_reading(PERMIT, good(0))
            await until(lambda: any(line["event"] == "observation_failed" for line in lines))
        await record.execute("ALTER TABLE away RENAME TO enclosure_contact")
        await until(lambda: _shows(record, "Permitted", "NotPermitted"))


async def test_the_leader_sweeps_with_nothing_configured(database_url: str) -> None:
    often = replace(QUICK, sweep=0.05)
    async with monitored_service(database_url, Simulator(), often, monitored_enclosures={}) as record:
        await record.add_bridged_enclosure("Vault", age=1000)
        await record.project()
        await until(lambda: _shows(record, "Permitted", "Unknown", name="Vault"))


async def test_a_sweep_does_not_believe_a_list_that_is_behind(database_url: str) -> None:
    async with running_service(database_url) as record:
        unknown = await record.add_bridged_enclosure("Vault", age=1000)
        fresh = await record.add_bridged_enclosure("Cabinet", age=1000)
        await record.project()
        await record.observe(unknown, "Unknown")
        await record.age_contact(unknown, 1000)
        await record.observe(fresh, "Permitted")
        contact = await record.contact("Vault")
        await record.sweep()
        assert await record.contact("Vault") == contact, "there was nothing to report"
        assert await record.permits("Cabinet") == ["Permitted"]


async def test_a_supply_that_nobody_confirms_any_more_keeps_runs_from_starting(database_url: str) -> None:
    ring = {"name": "Beam", "kind": "photon_beam", "signal": "SR:CURRENT"}
    rules = [{"status": "Unavailable", "below": 10}, {"status": "Recovering", "above": 50}]
    configured = {"monitored_enclosures": {}, "monitored_supplies": [{**ring, "readings": rules}]}
    async with running_service(database_url, **configured) as record:
        stack: Any = SimpleNamespace(do=lambda command, on=None: record.service.execute(command, SYSTEM, target_id=on))
        floor = await build_run_stack(stack)
        start = StartRun(name="Load step", plan_id=floor.plan_id)
        with expect_refusal("RunSupplyCoverageMismatchError", "not_confirmed"):
            await record.do(start)
        async with monitor_in_background(record.runtime, Simulator({"SR:CURRENT": 100}), QUICK):
            await until(lambda: record.supply_contact(name="Beam", kind="photon_beam"))
            assert await record.do(start)
        earlier = "UPDATE supply_contact SET contacted_at = contacted_at - interval '11 s' WHERE supply_id = %s"
        await record.execute(earlier, floor.supply_id)
        with expect_refusal("RunSupplyCoverageMismatchError", "not_confirmed"):
            await record.do(start)


async def _led_by_another(record: DatabaseRecord, than: int) -> bool:
    leaders = [pid for (pid,) in await record.execute(HELD, MONITOR_LOCK)]
    return bool(leaders) and leaders != [than]


async def _shows(record: MonitoredRecord, *statuses: str, name: str = HUTCH) -> bool:
    return await record.permits(name) == list(statuses)
