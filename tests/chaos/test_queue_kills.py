"""A queue while every kind of process is killed, one after the other: order kept, nothing twice, nothing lost."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import cycle, groupby
from pathlib import Path
from typing import Any

import httpx
import pytest

from baton.infrastructure.control.simulator import EntryKind
from tests.support.api.rest_beamline import create_clearance, create_plan
from tests.support.service import Api
from tests.support.stack import Stack, eventually, running_stack
from tests.support.workflows.step_json import setpoint

PIECES = ("worker", "api", "temporal", "postgres", "projector")
COUNT = len(PIECES) + 1
ROUTES = [{"prefix": "bl7:", "substrate": "in_memory", "simulated": True}]
MOTOR = "bl7:motor"
TIMEOUT_SECONDS = 400

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """What was done to the plant, noted outside the service."""
    return tmp_path / "journal"


@pytest.fixture
def stack(tmp_path: Path, journal: Path) -> Iterator[Stack]:
    plant = {"SIMULATED_SIGNALS": json.dumps({MOTOR: 0}), "SIMULATION_JOURNAL": str(journal)}
    with running_stack(tmp_path / "stack", CONTROL_ROUTES=json.dumps(ROUTES), **plant) as stack:
        yield stack


@asynccontextmanager
async def open_api(stack: Stack) -> AsyncIterator[Api]:
    async with httpx.AsyncClient(base_url=stack.address("url"), timeout=30, verify=False) as client:
        yield Api(client, stack.address("url"), "", {})


def written_numbers(journal: Path) -> list[int]:
    """Return what the motor was sent to, in order; a step that was repeated at once counts once."""
    lines = journal.read_text().splitlines() if journal.exists() else []
    entries = [json.loads(line) for line in lines if line.endswith("}")]
    values = [entry["value"] for entry in entries if entry["kind"] == EntryKind.WRITE and entry["address"] == MOTOR]
    return [int(value) for value, _ in groupby(values)]


@pytest.mark.parametrize("count", [COUNT, pytest.param(4 * COUNT, marks=pytest.mark.soak)])
async def test_items_are_conducted_in_order_and_once_whatever_is_killed(stack: Stack, journal: Path, count: int) -> None:
    async with open_api(stack) as api:
        root = await api.create("/assets", {"name": "Tomography", "tier": "Unit", "facility_code": "facility"})
        camera = await api.create("/assets", {"name": "Camera", "tier": "Device", "parent_id": root})
        await create_clearance(api, root)
        plan_id = (await create_plan(api, camera)).plan_id
        targets = [await target_of(api, plan_id, number) for number in range(1, count + 1)]
        queue_id = await api.create("/queues", {"name": "Tonight", "asset_id": root})
    items = [{"title": f"item {number}", "target": target} for number, target in enumerate(targets, start=1)]
    added = stack.client.post(f"/queues/{queue_id}/add-items", json={"items": items}).json()["item_ids"]
    for number, piece in zip(range(1, count), cycle(PIECES), strict=False):
        eventually(lambda number=number: len(written_numbers(journal)) >= number, TIMEOUT_SECONDS, stack.output)  # type: ignore[misc]
        stack.kill(piece)
    view = eventually(lambda: ended_view(stack, queue_id), TIMEOUT_SECONDS, lambda: describe(stack, queue_id))
    listed = stack.client.get(f"/queues/{queue_id}/items", params={"limit": 100}).json()["items"]
    assert [(item["item_id"], item["status"], item["attempt"]) for item in listed] == [(id, "Completed", 1) for id in added]
    assert written_numbers(journal) == list(range(1, count + 1))
    assert view["status"] == "Active"
    opened = [item["run_id"] or item["procedure_id"] for item in listed]
    assert len(set(opened)) == count
    runs = stack.client.get("/runs", params={"limit": 100}).json()["items"]
    assert {run["run_id"] for run in runs} == {item["run_id"] for item in listed if item["run_id"]}
    kinds = {"kind": "queued", "limit": 100}
    assert len(stack.client.get("/procedures", params=kinds).json()["items"]) == count, "one each, phases of runs included"


async def target_of(api: Api, plan_id: str, number: int) -> dict[str, Any]:
    """Return an item's target: every other one is a run."""
    shapes = {"required_affordances": [], "executor_shapes": ["PROCEDURE"]}
    code = f"baton.capability.move-{number}"
    capability = await api.create("/capabilities", {"code": code, "name": "Move", **shapes})
    steps = [setpoint(MOTOR, number)]
    recipe_id = await api.create("/recipes", {"name": f"move {number}", "capability_id": capability, "steps": steps})
    if number % 2:
        return {"kind": "ConductRecipe", "recipe_id": recipe_id, "name": f"Move {number}"}
    phases = [{"recipe_id": recipe_id, "name": f"Move {number}"}]
    return {"kind": "ConductPlan", "plan_id": plan_id, "name": f"Survey {number}", "phases": phases}


def ended_view(stack: Stack, queue_id: str) -> dict[str, Any] | None:
    """Return the queue once nothing waits in it; None before, and while nobody answers."""
    try:
        answer = stack.client.get(f"/queues/{queue_id}")
    except httpx.HTTPError:
        return None
    view: dict[str, Any] = answer.json() if answer.status_code == 200 else {"items": [None]}
    return None if view["items"] else view


def describe(stack: Stack, queue_id: str) -> str:
    return f"{stack.client.get(f'/queues/{queue_id}').text}\n{stack.output()}"
