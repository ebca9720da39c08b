"""Queues and approvals at speed: how soon the next item starts, what a long queue costs, what a permission through a group
costs, and how soon what was approved is done."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx

from baton.domain.kernel import SYSTEM_CONDUIT
from baton.domain.trust.surface import SYSTEM_HTTP
from tests.bench.conducts import SET
from tests.support.service import Api
from tests.support.waiting import until

ITEMS, QUEUES, LONG, PROPOSALS = 100, 5, 1_000, 50
ADDED_AT_ONCE = 500
ADMINISTRATOR = str(uuid4())
ENFORCING = {"APP_ENV": "test", "AUTHORIZATION_MODE": "policy", "BOOTSTRAP_PRINCIPAL_ID": ADMINISTRATOR}


@dataclass(frozen=True)
class Crew:
    """Who calls: somebody who may do everything, one who is permitted by name, one through a group, one with approval."""

    administrator: Api
    by_name: Api
    by_group: Api
    with_approval: Api


async def employ_crew(client: httpx.AsyncClient) -> Crew:
    """Register everybody, with the policies that permit them to define zones."""
    administrator = Api(client, str(client.base_url), "", {"X-Principal-Id": ADMINISTRATOR})
    here = {"conduit_id": str(SYSTEM_CONDUIT), "surface_id": str(SYSTEM_HTTP)}
    everything = {"permitted_principal_ids": [ADMINISTRATOR], "permitted_command_sets": ["all"], "permitted_commands": []}
    await administrator.create("/policies", {"name": "Everything", **here, **everything})
    ids = [await administrator.create("/actors", {"name": name}) for name in ("Name", "Group", "Approval")]
    group_id = await administrator.create("/groups", {"name": "Beamline scientists"})
    await administrator.execute(f"/groups/{group_id}/add-member", {"actor_id": ids[1]})
    approval = {"principals": [ADMINISTRATOR]}
    for whom in (
        {"permitted_principal_ids": [ids[0]]},
        {"permitted_principal_ids": [], "permitted_group_ids": [group_id]},
        {"permitted_principal_ids": [ids[2]], "approval": approval},
    ):
        await administrator.create("/policies", {"name": "Zones", **here, "permitted_commands": ["DefineZone"], **whom})
    return Crew(administrator, *map(administrator.acting_as, ids))


async def measure_proposals(crew: Crew, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds until each of so many commands was a proposal, and from its approval until it was carried out."""
    proposed, done = [], []
    for _ in range(count):
        started = time.perf_counter()
        answer = await crew.with_approval.post("/zones", {"name": "Hutch"})
        assert answer.status_code == 202, answer.text
        proposed.append((time.perf_counter() - started) * 1000)
        started = time.perf_counter()
        path = f"/proposals/{answer.json()['proposal_id']}"
        digest = (await crew.administrator.get(path)).json()["digest"]
        approved = await crew.administrator.post(f"{path}/approve", {"digest": digest, "wait": 30})
        assert approved.status_code == 200, approved.text
        done.append((time.perf_counter() - started) * 1000)
    return proposed, done


async def open_queue(api: Api, name: str) -> str:
    """Open the queue of a beamline of its own."""
    root = await api.create("/assets", {"name": name, "tier": "Unit", "facility_code": "facility"})
    return await api.create("/queues", {"name": name, "asset_id": root})


async def define_scan(api: Api) -> dict[str, Any]:
    """Return what an item conducts: a recipe of one step."""
    shapes = {"required_affordances": [], "executor_shapes": ["PROCEDURE"]}
    code = f"baton.capability.bench_{time.time_ns()}"
    capability = await api.create("/capabilities", {"code": code, "name": "Bench", **shapes})
    recipe = await api.create("/recipes", {"name": "bench", "capability_id": capability, "steps": [SET]})
    return {"kind": "ConductRecipe", "recipe_id": recipe, "name": "Scan {count}"}


async def add_items(api: Api, queue_id: str, target: dict[str, Any], count: int) -> float:
    """Add so many items, as many at a time as may be; return the milliseconds."""
    started = time.perf_counter()
    for begin in range(0, count, ADDED_AT_ONCE):
        numbers = range(begin, min(count, begin + ADDED_AT_ONCE))
        items = [{"title": f"item {number}", "target": target} for number in numbers]
        assert (await api.post(f"/queues/{queue_id}/add-items", {"items": items})).status_code == 200
    return (time.perf_counter() - started) * 1000


async def measure_items(api: Api, queues: int, count: int) -> float:
    """Items a second that so many queues with so many items each complete."""
    target = await define_scan(api)
    ids = [await open_queue(api, f"Line {number}") for number in range(queues)]

    async def is_done(queue_id: str) -> bool:
        return not (await api.get(f"/queues/{queue_id}")).json()["items"]

    started = time.perf_counter()
    for queue_id in ids:
        await add_items(api, queue_id, target, count)
    await asyncio.gather(*(until(lambda of=id: is_done(of), within=600, longest_pause=0.2) for id in ids))  # type: ignore[misc]
    seconds = time.perf_counter() - started
    for queue_id in ids:
        page = (await api.get(f"/queues/{queue_id}/items", limit=count)).json()["items"]
        assert [item["status"] for item in page] == ["Completed"] * count, page
    return queues * count / seconds


async def measure_long_queue(api: Api, count: int) -> dict[str, float]:
    """Milliseconds for what people do with a queue of so many items that wait; the middle one of ten each."""
    target = await define_scan(api)
    queue_id = await open_queue(api, "Long")
    await api.execute(f"/queues/{queue_id}/hold", {"reason": "bench"})
    adding = await add_items(api, queue_id, target, count)
    view = (await api.get(f"/queues/{queue_id}")).json()
    ids = [item["item_id"] for item in view["items"]]
    body = {"item_id": ids[-1], "before_item_id": ids[0]}
    rest = f"/queues/{queue_id}"
    return {
        f"{count:,} items added": adding,
        "shown, with its forecast": await median(lambda: api.get(rest)),
        "a page of its items": await median(lambda: api.get(f"{rest}/items", limit=50)),
        "the last item moved to the front": await median(lambda: api.post(f"{rest}/move-item", body)),
        "an item edited": await median(lambda: api.post(f"{rest}/edit-item", {"item_id": ids[5], "title": "other"})),
    }


async def median(ask: Any) -> float:
    """Return the median of the milliseconds that ten requests take."""
    times = []
    for _ in range(10):
        started = time.perf_counter()
        answer = await ask()
        times.append((time.perf_counter() - started) * 1000)
        assert answer.status_code < 300, answer.text
    return sorted(times)[len(times) // 2]
