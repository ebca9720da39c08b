"""Rehearsals at size: walks of many steps, the conditions of one target and of a long queue, and holds beside rehearsals
that never end."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx

from tests.bench.conducts import percentile
from tests.bench.console import process_of
from tests.support.api.rest_beamline import beamline
from tests.support.service import Api
from tests.support.workflows.step_json import setpoint

if TYPE_CHECKING:
    from tests.bench.__main__ import Bench

WALKS = {1_000: 60, 10_000: 600}
"""The steps of each walk, with the milliseconds of processor time that it may take."""
TARGET_MILLISECONDS, QUEUE_MILLISECONDS, HOLD_MILLISECONDS = 50, 1_000, 100
LOOKS, HOLDS, ITEMS = 20, 200, 50
ADDRESS = "bench:x"


async def measure_rehearsals(bench: "Bench", port: int, client: httpx.AsyncClient) -> None:
    """Measure what rehearsals and conditions cost, and what holds wait beside them."""
    api, few = Api(client, str(client.base_url), "", {}), 10 if bench.quick else 1
    targets = {count: await target_of(api, count) for count in WALKS}
    for count, most in WALKS.items():
        processor, waited = await time_walks(api, port, targets[count], LOOKS // min(few, 4))
        bench.figure(f"rehearsal of {count:,} steps, p50", percentile(waited, 0.5), "ms")
        bench.budget(f"rehearsal of {count:,} steps, processor time (ms)", processor, most, at_least=False)
    await measure_conditions(bench, api)
    alone = await time_holds(api, HOLDS // few)
    rehearsing = asyncio.create_task(rehearse_on(api, targets[10_000]))
    beside = await time_holds(api, HOLDS // few)
    rehearsing.cancel()
    with suppress(asyncio.CancelledError):
        await rehearsing
    bench.figure("hold, p99", percentile(alone, 0.99), "ms")
    bench.budget("hold beside continuous rehearsals, p99 (ms)", percentile(beside, 0.99), HOLD_MILLISECONDS, at_least=False)


async def measure_conditions(bench: "Bench", api: Api) -> None:
    """Ask what one plan, and what fifty items of a queue, would need tonight."""
    line, phase = await beamline(api), await target_of(api, 10)
    phases = [{name: phase[name] for name in ("recipe_id", "name")}]
    plan = {"kind": "ConductPlan", "plan_id": line.plan_id, "name": "Load step", "phases": phases}
    root = (await api.get(f"/assets/{line.rotary_id}")).json()["parent_id"]
    queue_id = await api.create("/queues", {"name": "Night", "asset_id": root})
    items = [{"title": f"Bar {number}", "target": plan} for number in range(ITEMS)]
    assert (await api.post(f"/queues/{queue_id}/add-items", {"items": items})).is_success
    at = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    asked: Mapping[str, tuple[dict[str, Any], int]] = {
        "one target": ({"target": plan}, TARGET_MILLISECONDS),
        f"a queue of {ITEMS}": ({"queue_id": queue_id, "items": ITEMS}, QUEUE_MILLISECONDS),
    }
    for name, (what, most) in asked.items():
        waited = [await time_rehearsal(api, {**what, "at": at, "parts": ["conditions"]}) for _ in range(LOOKS)]
        bench.budget(f"conditions of {name}, p50 (ms)", percentile(waited, 0.5), most, at_least=False)


async def target_of(api: Api, count: int) -> dict[str, Any]:
    """Return a recipe of so many steps as a target."""
    code = f"baton.capability.bench_{uuid4().hex[:8]}"
    contract = {"name": "Turn", "required_affordances": [], "executor_shapes": ["PROCEDURE"]}
    capability = await api.create("/capabilities", {"code": code, **contract})
    steps = [setpoint(ADDRESS, float(number % 100)) for number in range(count)]
    recipe_id = await api.create("/recipes", {"name": "Turn", "capability_id": capability, "steps": steps})
    return {"kind": "ConductRecipe", "recipe_id": recipe_id, "name": "Turn"}


async def time_walks(api: Api, port: int, target: dict[str, Any], looks: int) -> tuple[float, list[float]]:
    """Return the processor time that a walk takes of the API, and how long each is waited for, in milliseconds; what is
    assumed differs each time, so that none is answered from memory."""
    await time_rehearsal(api, {"target": target, "limit": 0})
    before = processor_seconds(port)
    waited = [
        await time_rehearsal(api, {"target": target, "limit": 0, "assume": {ADDRESS: float(number)}})
        for number in range(looks)
    ]
    return (processor_seconds(port) - before) / looks * 1000, waited


async def time_rehearsal(api: Api, asked: dict[str, Any]) -> float:
    """Return how long a rehearsal is waited for, in milliseconds."""
    begun = time.perf_counter()
    answer = await api.post("/rehearsals", asked)
    assert answer.status_code == 200, answer.text
    return (time.perf_counter() - begun) * 1000


async def rehearse_on(api: Api, target: dict[str, Any]) -> None:
    """Rehearse again and again, always something else."""
    number = 0.0
    while True:
        number += 1
        await api.post("/rehearsals", {"target": target, "limit": 0, "assume": {ADDRESS: number}})


async def time_holds(api: Api, count: int) -> list[float]:
    """Return how long each of so many holds takes, in milliseconds."""
    waited = []
    for _ in range(count):
        id = await api.create("/procedures", {"name": "By hand", "kind": "bench"})
        await api.execute(f"/procedures/{id}/start")
        begun = time.perf_counter()
        await api.execute(f"/procedures/{id}/hold", {"reason": "bench"})
        waited.append((time.perf_counter() - begun) * 1000)
    return waited


def processor_seconds(port: int) -> float:
    """Return the processor time that the API on a port has taken."""
    times = process_of(port).cpu_times()
    return float(times.user + times.system)
