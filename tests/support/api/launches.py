"""What launches are made of over REST: recipes that realise what a plan is for, and what a launch has left on the record."""

from typing import Any
from uuid import uuid4

from tests.support.api.example_reads import history
from tests.support.api.rest_beamline import DEFAULTS, PARAMETERS, Beamline, create_clearance, create_plan
from tests.support.service import Api

STEPS = [{"kind": "setpoint", "address": "bl7:energy", "value": 25}]
PLAN_LAUNCH = [
    *("LaunchRequested", "LaunchBegun", "RunStarted", "ProcedureRegistered", "ProcedureRecipeExpanded"),
    "RunConductStarted",
]
"""The events of the launch of a plan with one phase, in order."""
RECIPE_LAUNCH = [
    *("LaunchRequested", "LaunchBegun", "ProcedureRegistered", "ProcedureRecipeExpanded"),
    *("ProcedureStepsResolved", "ProcedureActivitiesLogbookOpened", "ProcedureStarted"),
]
"""The events of the launch of a recipe, in order."""


async def plan_recipe(line: Beamline, name: str = "Scan") -> str:
    """A recipe that realises what the beamline's plan is for."""
    plan = (await line.api.get(f"/plans/{line.plan_id}")).json()
    method = (await line.api.get(f"/methods/{plan['method_id']}")).json()
    return await line.api.create("/recipes", {"name": name, "capability_id": method["capability_id"], "steps": STEPS})


async def launchable_plan(api: Api) -> str:
    """A plan with one recipe, on a unit that stands in no hutch."""
    unit = await api.create("/assets", {"name": f"Unit {uuid4()}", "tier": "Unit", "facility_code": "facility"})
    await api.execute(f"/assets/{unit}/activate")
    await create_clearance(api, unit)
    plan = await create_plan(api, unit, parameters=PARAMETERS, defaults=DEFAULTS)
    await api.create("/recipes", {"name": "Scan", "capability_id": plan.capability_id, "steps": STEPS})
    return plan.plan_id


async def single_recipe(api: Api, name: str = "Darks") -> str:
    """A recipe that is conducted without a run."""
    capability = {"name": name, "code": f"baton.capability.{uuid4().hex[:8]}.darks", "required_affordances": []}
    capability_id = await api.create("/capabilities", {**capability, "executor_shapes": ["PROCEDURE"]})
    return await api.create("/recipes", {"name": name, "capability_id": capability_id, "steps": STEPS})


async def launched_events(api: Api, launch_id: str) -> list[dict[str, Any]]:
    """Return the events of the transaction of a launch, in the order of the log."""
    (first, *_) = await history(api, f"/launches/{launch_id}")
    page = (await api.get("/events", order="desc", limit=100)).json()
    return [one for one in reversed(page["items"]) if one["transaction_id"] == first["transaction_id"]]


async def launched_types(api: Api, launch_id: str) -> list[str]:
    return [event["event_type"] for event in await launched_events(api, launch_id)]
