"""The whole stack killed at one moment and started again: what was done is there, what was lost is known, work goes on."""

import json
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from math import ceil
from typing import Any
from uuid import uuid4

import httpx
import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from tests.support.api.rest_beamline import Beamline, beamline, bring_into_force
from tests.support.service import Api
from tests.support.stack import Stack, eventually, is_alive, running_stack
from tests.support.waiting import until
from tests.support.workflows.agent_stack import EXPIRER, SUPERVISOR
from tests.support.workflows.step_json import check, setpoint

HUTCH = "Imaging hutch B"
ROUTES = [{"prefix": prefix, "substrate": "in_memory", "simulated": True} for prefix in ("PSS:", "bl7:")]
SETTINGS = {
    "CONTROL_ROUTES": json.dumps(ROUTES),
    "MONITORED_ENCLOSURES": json.dumps({HUTCH: "PSS:B"}),
    "RUN_SUPERVISOR_ENABLED": "true",
    "RUN_SUPERVISOR_TICK_SECONDS": "1",
    "CLEARANCE_EXPIRER_TICK_SECONDS": "1",
}
PLANT_BEFORE = {"SIMULATED_SIGNALS": json.dumps({"PSS:B": 1, "bl7:shutter": 0, "bl7:gate": 0})}
PLANT_AFTER = {"SIMULATED_SIGNALS": json.dumps({"bl7:shutter": 0, "bl7:gate": 1})}
"""The gate is what conducts of the schedule wait for; after the power cut nobody reads the permit of the hutch."""
TIMEOUT_SECONDS = 60
SCHEDULE_SECONDS, CATCHUP_SECONDS = 10, 10
FIRING_OUTCOMES = {"ScheduleFired", "ScheduleFiringRefused"}

pytestmark = pytest.mark.timeout(300)


@dataclass(frozen=True)
class PowerCut:
    """The stack that was started after the power cut, and what was known before it."""

    stack: Stack
    first_output: str
    ports: list[int]
    actor_id: str
    position: int
    hutch_when_ready: dict[str, Any]
    beamline: Beamline
    aborted_run_id: str
    schedule_id: str
    back_at: float


@pytest.fixture(scope="module")
async def power_cut(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PowerCut]:
    directory = tmp_path_factory.mktemp("power_cut")
    stack = Stack(directory, {**SETTINGS, **PLANT_BEFORE})
    try:
        for piece in ("postgres", "api", "worker"):
            stack.kill(piece)
        stack.wait_until_ready()
        assert stack.client.get("/readyz").status_code == 200
        actor_id = stack.create("/actors", {"name": "Mira Okafor"})
        hutch = eventually(lambda: find_hutch(stack), what=stack.output)
        assert hutch["permit_status"] == "Permitted"
        async with open_api(stack) as api:
            line, run_id = await let_agents_act_through_kills(stack, api)
        schedule_id = await start_schedule(stack)
        position, ports, children = newest_position(stack), stack.ports, stack.children()
        first_output = stack.output()
        cut_power(stack)
    finally:
        stack.remove()
    eventually(lambda: not any(map(is_alive, children)), what="a killed parent takes everybody with it")
    dark_at = time.time()
    # By then the next firing of the calendar is missed for longer than it may be caught up.
    eventually(lambda: time.time() > ceil(dark_at / SCHEDULE_SECONDS) * SCHEDULE_SECONDS + CATCHUP_SECONDS + 1)
    back_at = time.time()
    with running_stack(directory, ports, **SETTINGS, **PLANT_AFTER) as stack:
        hutch |= stack.client.get(f"/enclosures/{hutch['enclosure_id']}").json()
        yield PowerCut(stack, first_output, ports, actor_id, position, hutch, line, run_id, schedule_id, back_at)


@asynccontextmanager
async def open_api(stack: Stack) -> AsyncIterator[Api]:
    """The stack's API for helpers that await their answers."""
    async with httpx.AsyncClient(base_url=stack.address("url"), timeout=30, verify=False) as client:
        yield Api(client, stack.address("url"), "", {})


def cut_power(stack: Stack) -> None:
    """Kill the worker before it can say goodbye, and the process that started everything before it can start another."""
    worker = stack.piece("worker")
    os.kill(stack.process.pid, signal.SIGSTOP)
    worker.kill()
    stack.process.kill()
    stack.process.join()


def find_hutch(stack: Stack) -> dict[str, Any]:
    """The row of the monitored hutch as soon as it is listed, until then an empty one."""
    items = stack.client.get("/enclosures").json()["items"]
    return next((item for item in items if item["name"] == HUTCH), {})


def newest_position(stack: Stack) -> int:
    """The log position of a command just given."""
    answer = stack.client.post("/actors", json={"name": "Probe"})
    return int(answer.headers["X-Baton-Position"])


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


async def read(api: Api, path: str, **parameters: Any) -> Any:
    answer = await api.get(path, **parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def has_status(api: Api, path: str, status: str) -> bool:
    return bool((await read(api, path))["status"] == status)


async def list_decisions(api: Api, context: str) -> list[tuple[str, str]]:
    """Who decided what in a context."""
    return [(row["decided_by"], row["choice"]) for row in (await read(api, "/decisions", context=context))["items"]]


async def are_decided(api: Api, context: str, expected: list[tuple[str, str]]) -> bool:
    """Whether a context lists exactly these decisions; lists come a moment behind the record."""
    return await list_decisions(api, context) == expected


async def let_agents_act_through_kills(stack: Stack, api: Api) -> tuple[Beamline, str]:
    """A beamline with a run that an agent held while its worker and the engine were killed, and that was then aborted."""
    line = await beamline(api)
    template = await api.create("/clearance-templates", {"code": "S", "title": "S", "facility_code": "facility"})
    await api.execute(f"/clearance-templates/{template}/activate")
    run_id = await line.start_run()
    stack.piece("worker").kill()
    stack.piece("temporal").kill()
    end = (datetime.now(UTC) + timedelta(seconds=3)).isoformat()
    form = {"template_id": template, "facility_code": "facility", "title": "Short", "valid_until": end}
    clearance = await api.create("/clearances", {**form, "bindings": [{"kind": "Asset", "id": line.unit_id}]})
    await bring_into_force(api, clearance)
    await api.execute(f"/supplies/{line.supply_id}/mark-unavailable", {"reason": "beam dump"})
    await until(lambda: has_status(api, f"/runs/{run_id}", "Held"), TIMEOUT_SECONDS)
    await until(lambda: has_status(api, f"/clearances/{clearance}", "Expired"), TIMEOUT_SECONDS)
    await until(lambda: list_decisions(api, "ClearanceExpiry"), TIMEOUT_SECONDS)
    await api.execute(f"/supplies/{line.supply_id}/mark-recovering", {"reason": "refill"})
    await api.execute(f"/supplies/{line.supply_id}/restore", {"reason": "stored beam"})
    await api.execute(f"/runs/{run_id}/resume")
    await api.execute(f"/runs/{run_id}/abort", {"reason": "rotary stage encoder offline"})
    return line, run_id


async def start_schedule(stack: Stack) -> str:
    """Define a schedule, and have its first conduct wait for the gate."""
    shapes = {"required_affordances": [], "executor_shapes": ["PROCEDURE"]}
    capability = stack.create("/capabilities", {"code": f"baton.capability.darks_{uuid4().hex}", "name": "Darks", **shapes})
    steps = [setpoint("bl7:shutter", 1), check("bl7:gate", 1, timeout=300)]
    recipe = stack.create("/recipes", {"name": "darks", "capability_id": capability, "steps": steps})
    target = {"kind": "ConductRecipe", "recipe_id": recipe, "name": "Darks {fired_at}"}
    calendar = {"calendar": {"every": SCHEDULE_SECONDS}, "catchup_window": CATCHUP_SECONDS}
    schedule_id = stack.create("/schedules", {"name": "Darks", **calendar, "target": target})
    await until(lambda: is_in_engine(stack, schedule_id), TIMEOUT_SECONDS)
    assert stack.client.post(f"/schedules/{schedule_id}/trigger", json={}).status_code == 204
    procedure_id = eventually(lambda: list_firings(stack, schedule_id), what=stack.output)[0]["procedure_id"]
    eventually(lambda: "ProcedureStarted" in event_types(stack, procedure_id), what=stack.output)
    return schedule_id


async def is_in_engine(stack: Stack, schedule_id: str) -> bool:
    """Whether the engine has the calendar of a schedule."""
    client = await Client.connect(stack.address("temporal_address"))
    try:
        await client.get_schedule_handle(f"schedule:{schedule_id}").describe()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False
    return True


def list_outcomes(stack: Stack, schedule_id: str) -> list[dict[str, Any]]:
    """What became of every firing, oldest first; there are few here."""
    page = stack.client.get(f"/schedules/{schedule_id}/history", params={"limit": 100})
    items: list[dict[str, Any]] = page.json()["items"] if page.status_code == 200 else []
    return [item for item in items if item["event_type"] in FIRING_OUTCOMES]


def list_firings(stack: Stack, schedule_id: str) -> list[dict[str, Any]]:
    """The firings that came to something."""
    return [one["payload"] for one in list_outcomes(stack, schedule_id) if one["event_type"] == "ScheduleFired"]


def event_types(stack: Stack, procedure_id: str) -> list[str]:
    """The types of everything that happened to a procedure."""
    page = stack.client.get(f"/procedures/{procedure_id}/history", params={"limit": 100})
    return [event["event_type"] for event in page.json()["items"]]


def event_types_of_ended(stack: Stack, procedure_id: str) -> list[str]:
    """The types of everything that happened to a procedure as soon as its conduct has ended, until then nothing."""
    types = event_types(stack, procedure_id)
    return types if "ProcedureConducted" in types else []


def test_pieces_that_are_killed_while_everything_comes_up_are_started_again(power_cut: PowerCut) -> None:
    assert "(killed by SIGKILL" in power_cut.first_output
    assert "ready in" in power_cut.first_output


def test_what_was_done_is_there_and_numbers_go_on(power_cut: PowerCut) -> None:
    stack = power_cut.stack
    assert stack.ports == power_cut.ports
    assert stack.client.get(f"/actors/{power_cut.actor_id}").json()["name"] == "Mira Okafor"
    assert newest_position(stack) > power_cut.position
    listed = stack.client.get("/actors", params={"min_position": power_cut.position}).json()["items"]
    assert power_cut.actor_id in [actor["actor_id"] for actor in listed]


def test_it_was_ready_only_when_the_lost_permit_was_unknown(power_cut: PowerCut) -> None:
    hutch = power_cut.hutch_when_ready
    assert (hutch["permit_status"], hutch["lifecycle"]) == ("Unknown", "Active")
    history = power_cut.stack.client.get(f"/enclosures/{hutch['enclosure_id']}/history").json()["items"]
    assert [event["payload"].get("to_status") for event in history] == [None, "Permitted", "Unknown"]


async def test_agents_go_on_with_no_memory_of_their_own(power_cut: PowerCut) -> None:
    run_id = power_cut.aborted_run_id
    async with open_api(power_cut.stack) as api:
        line = replace(power_cut.beamline, api=api, monitor=replace(power_cut.beamline.monitor, client=api.client))
        await line.observe("Permitted")
        second = await line.start_run()
        await until(lambda: list_decisions(api, "RunDebrief"), TIMEOUT_SECONDS)
        await api.execute(f"/supplies/{line.supply_id}/mark-unavailable", {"reason": "another dump"})
        await until(lambda: has_status(api, f"/runs/{second}", "Held"), TIMEOUT_SECONDS)
        await until(lambda: are_decided(api, "RunSupervision", [(SUPERVISOR, "Hold")] * 2), TIMEOUT_SECONDS)
        await until(lambda: are_decided(api, "ClearanceExpiry", [(EXPIRER, "Expire")]), TIMEOUT_SECONDS)
        assert len(await list_decisions(api, "RunDebrief")) == 1
        assert await has_status(api, f"/runs/{run_id}", "Aborted")


def test_a_schedule_goes_on_counts_what_it_missed_and_fires_nothing_twice(power_cut: PowerCut) -> None:
    stack, schedule_id = power_cut.stack, power_cut.schedule_id

    def fired_on_time() -> bool:
        times = [datetime.fromisoformat(one["scheduled_at"]).timestamp() for one in list_firings(stack, schedule_id)]
        return any(due > power_cut.back_at and due % SCHEDULE_SECONDS == 0 for due in times)

    def missed_count() -> int:
        return int(stack.client.get(f"/schedules/{schedule_id}").json()["missed_count"])

    eventually(fired_on_time, what=stack.output)
    assert eventually(missed_count, what="nothing was counted as missed") >= 1
    held = stack.client.post(f"/schedules/{schedule_id}/hold", json={"reason": "seen enough"})
    assert held.status_code == 204, held.text

    def procedure_ids() -> list[str]:
        """The procedures of all firings, once those are all the scheduled procedures there are."""
        fired = sorted(one["procedure_id"] for one in list_firings(stack, schedule_id))
        asked = {"kind": "scheduled", "limit": 100, "min_position": held.headers["X-Baton-Position"]}
        listed = stack.client.get("/procedures", params=asked).json()["items"]
        return fired if sorted(item["procedure_id"] for item in listed) == fired else []

    for id in eventually(procedure_ids, what=stack.output):
        types = eventually(partial(event_types_of_ended, stack, id), what=stack.output)
        assert types.count("ProcedureStarted") == types.count("ProcedureConducted") == 1
    times = Counter(one["payload"]["scheduled_at"] for one in list_outcomes(stack, schedule_id))
    assert set(times.values()) == {1}, f"fired twice: {times}"


def test_it_stops_in_order_and_leaves_nobody_behind(power_cut: PowerCut) -> None:
    stack = power_cut.stack
    assert stack.end(signal.SIGTERM) == []
    assert stack.process.exitcode == 0
    assert stack.output().splitlines()[-1] == "stopping"
    assert [port for port in power_cut.ports if not is_free(port)] == []
    assert not (stack.directory / "stack.json").exists()
