"""Whoever launches a plan, and through whatever: one transaction leaves the same events, and one run."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from baton.application.queues import QueueRunner
from baton.application.schedules.firings import Firings
from baton.client import Baton
from baton.domain.queue.messages import QueueOrder, TurnVerdict
from baton.domain.schedule.messages import DueFiring, FiringVerdict
from baton.infrastructure.wall_clock import clock
from tests.support.api.example_reads import history
from tests.support.api.launches import PLAN_LAUNCH, launched_events
from tests.support.api.mcp_clients import agent, tool_result
from tests.support.cli.daily_service import PLAN, RECIPE, UNIT, DailyService
from tests.support.console.page_source import PageSource
from tests.support.waiting import until

NAME, EXPOSURE = "Overview", 0.02
SENT = {"name": NAME, "parameters": {"exposure": EXPOSURE}}


@dataclass(frozen=True)
class Bench:
    """A service, and the ids of what is launched there."""

    daily: DailyService
    plan_id: str
    recipe_id: str
    unit_id: str
    camera_ids: list[str]

    @property
    def target(self) -> dict[str, Any]:
        """The plan as a queue and a schedule have it."""
        phase = {"recipe_id": self.recipe_id, "name": RECIPE, "procedure_kind": "scan", "target_asset_ids": self.camera_ids}
        asked = {"plan_id": self.plan_id, "name": NAME, "override_parameters": {"exposure": EXPOSURE}}
        return {"kind": "ConductPlan", **asked, "phases": [phase]}


@pytest.fixture
async def bench(daily_service: DailyService) -> AsyncIterator[Bench]:
    """The bench; what was launched is aborted afterwards."""
    api = daily_service.api
    (plan,) = (await api.get("/plans", name=PLAN)).json()["items"]
    (recipe,) = (await api.get("/recipes", name=RECIPE)).json()["items"]
    (unit,) = (await api.get("/assets", name=UNIT)).json()["items"]
    assets = (await api.get(f"/plans/{plan['plan_id']}")).json()["asset_ids"]
    yield Bench(daily_service, plan["plan_id"], recipe["recipe_id"], unit["asset_id"], assets)
    end = await api.runtime.store.last_position()
    for run in (await api.get("/runs", status="Running", min_position=end)).json()["items"]:
        await api.execute(f"/runs/{run['run_id']}/abort", {"reason": "seen"})
        daily_service.pauses.end()

    async def is_over() -> bool:
        """Whether nothing that was launched keeps an asset from the next launch."""
        end = await api.runtime.store.last_position()
        running = (await api.get("/procedures", status="Running", min_position=end)).json()["items"]
        return not [one for one in running if one["parent_run_id"]]

    await until(is_over, 300)


async def by_rest(bench: Bench) -> str:
    return await bench.daily.api.create("/launches", {"plan_id": bench.plan_id, **SENT})


async def by_mcp(bench: Bench) -> str:
    async with agent(bench.daily.api) as client:
        return str((await tool_result(client, "launch", plan_id=bench.plan_id, **SENT))["launch_id"])


async def by_client(bench: Bench) -> str:
    def start() -> Any:
        with Baton(bench.daily.url) as client:
            return client.plans[PLAN].start(name=NAME, exposure=EXPOSURE).row.launch_id

    return str(await asyncio.to_thread(start))


async def by_shell(bench: Bench) -> str:
    started = await bench.daily.answer("run", PLAN, "--name", NAME, "-p", f"exposure={EXPOSURE}")
    return str((await bench.daily.api.get(f"/runs/{started['id']}")).json()["launch_id"])


async def by_console(bench: Bench) -> str:
    api, path = bench.daily.api, f"/console/start/plans/{bench.plan_id}"
    page = PageSource.of((await api.get(path)).text)
    form = {"form_token": page.value("form_token"), "_key": page.value("_key"), "_do": "start", "name": NAME}
    answer = await api.request("POST", path, data={**form, "parameters.exposure": str(EXPOSURE)})
    assert answer.status_code == 303, answer.text
    address = answer.headers["location"].partition("?")[0].removeprefix("/console")
    return str((await api.get(address)).json()["launch_id"])


async def by_queue(bench: Bench) -> str:
    api, turns = bench.daily.api, bench.daily.stack.runtime.works.of(QueueRunner)
    queue_id = await api.create("/queues", {"name": "Tonight", "asset_id": bench.unit_id})
    added = await api.post(f"/queues/{queue_id}/add-items", {"items": [{"title": NAME, "target": bench.target}]})
    report = await turns.start_next(QueueOrder(queue_id=UUID(queue_id)))
    assert report.verdict is TurnVerdict.OPENED
    end = await api.runtime.store.last_position()
    (launch,) = (await api.get("/launches", queue_id=queue_id, min_position=end)).json()["items"]
    assert (launch["by"], launch["item_id"]) == ("queue_item", added.json()["item_ids"][0])
    return str(launch["launch_id"])


async def by_schedule(bench: Bench) -> str:
    api, firings = bench.daily.api, bench.daily.stack.runtime.works.of(Firings)
    yearly = {"cron": ["0 3 1 1 *"]}
    schedule_id = await api.create("/schedules", {"name": "Yearly", "calendar": yearly, "target": bench.target})
    due = DueFiring(schedule_id=UUID(schedule_id), scheduled_at=clock().replace(microsecond=0), started_at=clock())
    assert await firings.open(due) is FiringVerdict.OPENED
    shown = (await api.get(f"/launches/{due.id}")).json()
    assert (shown["by"], shown["schedule_id"]) == ("schedule", schedule_id)
    return str(due.id)


WAYS: dict[str, Callable[[Bench], Awaitable[str]]] = {
    "REST": by_rest,
    "MCP": by_mcp,
    "client": by_client,
    "shell": by_shell,
    "console": by_console,
    "queue": by_queue,
    "schedule": by_schedule,
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_launch_leaves_the_same_events_whatever_it_comes_by(bench: Bench, way: str) -> None:
    api = bench.daily.api
    launch_id = await WAYS[way](bench)
    events = await launched_events(api, launch_id)
    assert [event["event_type"] for event in events] == PLAN_LAUNCH
    assert {event["command_name"] for event in events} == {"Launch"}
    (started,) = [event["payload"] for event in events if event["event_type"] == "RunStarted"]
    assert (started["name"], started["launch_id"]) == (NAME, launch_id)
    assert (started["effective_parameters"], started["plan_id"]) == ({"exposure": EXPOSURE}, bench.plan_id)
    (registered,) = [event["payload"] for event in events if event["event_type"] == "ProcedureRegistered"]
    assert (registered["name"], registered["kind"], registered["target_asset_ids"]) == (RECIPE, "scan", bench.camera_ids)
    (conduct,) = [event["payload"] for event in events if event["event_type"] == "RunConductStarted"]
    assert [phase["conduct"] for phase in conduct["phases"]] == [{"command": "conduct_procedure", "steps": []}]
    (requested, begun) = await history(api, f"/launches/{launch_id}")
    assert requested["payload"]["target"]["phases"][0]["recipe_id"] == bench.recipe_id
    assert begun["payload"]["run_id"] == started["run_id"]
