"""A schedule on the whole stack, through a power cut: nothing fires twice, what was missed is counted, and grants count."""

import asyncio
import json
import time
from collections import Counter
from datetime import datetime
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any
from uuid import uuid4

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from tests.support.stack import Stack, alive, eventually, running_stack
from tests.support.workflows.step_json import check, setpoint

ADMIN = str(uuid4())
"""Who sets everything up."""
HTTP, CONDUIT = "00000000-0000-0000-0000-000000000020", "00000000-0000-0000-0000-000000000010"
ENVIRONMENT = {"APP_ENV": "test", "AUTHORIZATION_MODE": "policy", "BOOTSTRAP_PRINCIPAL_ID": ADMIN}
CLOSED, OPEN = ({"SIMULATED_SIGNALS": json.dumps({"bl7:shutter": 0, "bl7:gate": gate})} for gate in (0, 1))
"""The plant before and after the power cut: the gate is what conducts wait for."""
EVERY, WINDOW = 10, 10
OUTCOMES = {"ScheduleFired", "ScheduleFiringRefused"}


def acting_as(stack: Stack, principal_id: str) -> None:
    stack.client.headers["X-Principal-Id"] = principal_id


def granted(stack: Stack, principal_id: str) -> str:
    """A policy that lets somebody do everything."""
    everything = {"permitted_commands": [], "permitted_command_sets": ["all"]}
    place = {"conduit_id": CONDUIT, "surface_id": HTTP}
    return stack.create("/policies", {"name": "All", **place, **everything, "permitted_principal_ids": [principal_id]})


def defined(stack: Stack) -> tuple[str, str, str]:
    """A schedule of somebody who was granted all it needs, the policy that grants it, and who that is."""
    acting_as(stack, ADMIN)
    granted(stack, ADMIN)
    keeper = stack.create("/actors", {"name": "Keeper of darks", "kind": "service_account"})
    policy = granted(stack, keeper)
    shapes = {"required_affordances": [], "executor_shapes": ["PROCEDURE"]}
    capability = stack.create("/capabilities", {"code": f"baton.capability.darks_{uuid4().hex}", "name": "Darks", **shapes})
    steps = [setpoint("bl7:shutter", 1), check("bl7:gate", 1, timeout=300)]
    recipe = stack.create("/recipes", {"name": "darks", "capability_id": capability, "steps": steps})
    acting_as(stack, keeper)
    target = {"kind": "ConductRecipe", "recipe_id": recipe, "name": "Darks {fired_at}"}
    asked = {"name": "Darks", "calendar": {"every": EVERY}, "catchup_window": WINDOW, "target": target}
    return stack.create("/schedules", asked), policy, keeper


def outcomes(stack: Stack, schedule_id: str) -> list[dict[str, Any]]:
    """What became of every firing, oldest first; there are few here."""
    page = stack.client.get(f"/schedules/{schedule_id}/history", params={"limit": 100})
    items: list[dict[str, Any]] = page.json()["items"] if page.status_code == 200 else []
    return [item for item in items if item["event_type"] in OUTCOMES]


def conducted(stack: Stack, schedule_id: str) -> list[dict[str, Any]]:
    """The firings that came to something."""
    return [one["payload"] for one in outcomes(stack, schedule_id) if one["event_type"] == "ScheduleFired"]


async def is_kept(stack: Stack, schedule_id: str) -> bool:
    """Whether the engine has been told of a schedule."""
    client = await Client.connect(stack.place("temporal_address"))
    try:
        await client.get_schedule_handle(f"schedule:{schedule_id}").describe()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False
    return True


def trigger(stack: Stack, schedule_id: str) -> None:
    assert stack.client.post(f"/schedules/{schedule_id}/trigger", json={}).status_code == 204


def happened(stack: Stack, procedure_id: str) -> list[str]:
    page = stack.client.get(f"/procedures/{procedure_id}/history", params={"limit": 100})
    return [event["event_type"] for event in page.json()["items"]]


def once_conducted(stack: Stack, procedure_id: str) -> list[str]:
    """All that happened to a procedure, as soon as its conduct has ended."""
    events = happened(stack, procedure_id)
    return events if "ProcedureConducted" in events else []


def seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def test_a_schedule_lives_through_a_power_cut_and_stops_with_its_grant(tmp_path: Path) -> None:
    with running_stack(tmp_path, **ENVIRONMENT, **CLOSED) as stack:
        schedule_id, policy_id, keeper = defined(stack)
        eventually(lambda: asyncio.run(is_kept(stack, schedule_id)), what=stack.said)
        trigger(stack, schedule_id)
        begun = eventually(lambda: conducted(stack, schedule_id), what=stack.said)[0]["procedure_id"]
        eventually(lambda: "ProcedureStarted" in happened(stack, begun), what=stack.said)
        ports, children = stack.ports, stack.children()
        stack.process.kill()
        stack.process.wait()
    eventually(lambda: not any(map(alive, children)))
    dark_at = time.time()
    # By then the next firing of the calendar is missed for longer than the window.
    eventually(lambda: time.time() > ceil(dark_at / EVERY) * EVERY + WINDOW + 1)
    back_at = time.time()
    with running_stack(tmp_path, ports, **ENVIRONMENT, **OPEN) as stack:
        acting_as(stack, keeper)

        def on_time() -> bool:
            times = [seconds(one["scheduled_at"]) for one in conducted(stack, schedule_id)]
            return any(due > back_at and due % EVERY == 0 for due in times)

        eventually(on_time, what=stack.said)

        def missed() -> int:
            return int(stack.client.get(f"/schedules/{schedule_id}").json()["missed_count"])

        assert eventually(missed, what="nothing was counted as missed") >= 1
        acting_as(stack, ADMIN)
        revoked = stack.client.post(
            f"/policies/{policy_id}/revoke-grant", json={"permitted_principal_id": keeper, "reason": "left"}
        )
        assert revoked.status_code == 204, revoked.text
        trigger(stack, schedule_id)
        eventually(lambda: outcomes(stack, schedule_id)[-1]["event_type"] == "ScheduleFiringRefused", what=stack.said)
        shown = stack.client.get(f"/schedules/{schedule_id}").json()
        assert (shown["status"], shown["last_firings"][0]["outcome"]) == ("Active", "UnauthorizedError")
        times = Counter(one["payload"]["scheduled_at"] for one in outcomes(stack, schedule_id))
        assert set(times.values()) == {1}, f"fired twice: {times}"
        procedures = [one["procedure_id"] for one in conducted(stack, schedule_id)]
        position = revoked.headers["X-Baton-Position"]
        listed = stack.client.get("/procedures", params={"kind": "scheduled", "limit": 100, "min_position": position}).json()
        assert sorted(item["procedure_id"] for item in listed["items"]) == sorted(procedures)
        for id in procedures:
            events = eventually(partial(once_conducted, stack, id), what=stack.said)
            assert events.count("ProcedureStarted") == events.count("ProcedureConducted") == 1
