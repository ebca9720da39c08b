"""A unit that changes under stored parameters, over REST: what was written in seconds is not run in milliseconds."""

from typing import Any

from baton.domain.shared.schema import DIALECT
from tests.support.api.rest_beamline import create_clearance, create_plan
from tests.support.service import Api

DEFAULTS = {"dwell": 0.1, "repetitions": 20}


def acquisition(unit: str) -> dict[str, Any]:
    dwell = {"type": "number", "minimum": 0.0001, "maximum": 1000, "unit": {"system": "udunits", "code": unit}}
    return {
        "$schema": DIALECT,
        "type": "object",
        "properties": {"dwell": dwell, "repetitions": {"type": "integer", "minimum": 1}},
        "required": ["dwell", "repetitions"],
        "additionalProperties": False,
        "unevaluatedProperties": False,
    }


async def test_a_default_in_the_old_unit_must_be_set_again(api: Api) -> None:
    beamline = await api.create("/assets", {"name": "Tomography", "tier": "Unit", "facility_code": "facility"})
    await create_clearance(api, beamline)
    plan = await create_plan(api, beamline, parameters=acquisition("s"), defaults=DEFAULTS)
    defaults = f"/plans/{plan.plan_id}/default-parameters"
    dropped = await api.request("PATCH", defaults, json={"default_parameters_patch": {"repetitions": None}})
    assert (dropped.status_code, dropped.json()["code"]) == (400, "InvalidPlanDefaultParametersError")
    run = {"name": "Flats", "plan_id": plan.plan_id}
    before = await api.post("/runs", run)
    assert before.json()["effective_parameters"] == DEFAULTS

    contract = {"required_affordances": [], "executor_shapes": ["METHOD"], "description": None}
    tagged = {"version_tag": "2026-Q2", "parameters_schema": acquisition("ms")}
    await api.execute(f"/capabilities/{plan.capability_id}/version", {**contract, **tagged})
    await api.execute(f"/methods/{plan.method_id}/version", tagged)

    other = await api.request("PATCH", defaults, json={"default_parameters_patch": {"repetitions": 30}})
    stale = await api.post("/runs", run)
    running = f"/runs/{before.json()['run_id']}"
    adjusted = await api.post(f"{running}/adjust", {"parameters_patch": {"repetitions": 30}, "reason": "more flats"})
    for refused, code in (
        (other, "InvalidPlanDefaultParametersError"),
        (stale, "InvalidRunParametersError"),
        (adjusted, "InvalidRunParametersError"),
    ):
        body = refused.json()
        assert (refused.status_code, body["code"], body["reason"]) == (400, code, "unit_changed")
        assert body["facts"] == {"keys": ["dwell"]}

    said = await api.post("/runs", {**run, "override_parameters": {"dwell": 100}})
    assert said.status_code == 201
    assert said.json()["effective_parameters"] == {"dwell": 100, "repetitions": 20}
    await api.execute(f"{running}/adjust", {"parameters_patch": {"dwell": 100, "repetitions": 30}, "reason": "restated"})
    await api.execute(f"{running}/adjust", {"parameters_patch": {"repetitions": 40}, "reason": "more flats"})
    assert (await api.get(running)).json()["effective_parameters"] == {"dwell": 100, "repetitions": 40}


async def test_who_could_provide_what_a_binding_lacks_is_found_in_the_lists(api: Api) -> None:
    beamline = await api.create("/assets", {"name": "Tomography", "tier": "Unit", "facility_code": "facility"})
    plan = await create_plan(api, beamline)
    contract = {"required_affordances": ["Homeable", "Imageable", "Rotatable"], "executor_shapes": ["METHOD"]}
    tagged = {"version_tag": "2026-Q2", "parameters_schema": None, "description": None}
    await api.execute(f"/capabilities/{plan.capability_id}/version", {**contract, **tagged})
    turning = {"name": f"Rotary stage {plan.plan_id}", "affordances": ["Homeable", "Rotatable"]}
    family = await api.create("/families", turning)
    stage = await api.create("/assets", {"name": "Stage", "tier": "Device", "parent_id": beamline, "family_ids": [family]})
    position = await api.execute(f"/assets/{stage}/activate")

    practice = (await api.get(f"/plans/{plan.plan_id}")).json()["practice_id"]
    asked = {"practice_id": practice, "asset_ids": [beamline], "min_position": position}
    inspection = (await api.post("/plans/inspect-binding", asked)).json()
    assert inspection["binding_status"] == "MissingAffordances"
    found = {one["affordance"]: one["candidates"] for one in inspection["missing_affordance_candidates"]}
    by_family = {"contributing_family_ids": [family], "condition": "Nominal", "lifecycle": "Active"}
    expected = {"asset_id": stage, "asset_name": "Stage", **by_family}
    assert list(found) == ["Homeable", "Imageable", "Rotatable"]
    assert [expected in candidates for candidates in found.values()] == [True, False, True]
