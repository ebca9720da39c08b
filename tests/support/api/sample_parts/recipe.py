"""A recipe that moves, looks and goes home again, in its second version."""

from typing import Any

from tests.support.service import Api

STEPS: list[dict[str, Any]] = [
    {"kind": "capture", "address": "lum:m102.RBV", "capture_name": "home"},
    {"kind": "setpoint", "address": "lum:m102", "value": 20.0},
    {"kind": "check", "address": "lum:m102.RBV", "criterion": {"kind": "equals", "expected": 20.0}, "timeout": 5},
    {"kind": "action", "name": "settle", "params": {"seconds": 0.5}},
    {"kind": "compute", "command": ["flatstats"], "input_uris": ["file:///flat.h5"], "capture_name": "mean"},
]
CLOSING_STEPS: list[dict[str, Any]] = [{"kind": "setpoint", "address": "lum:m102", "value": {"__capture__": "home"}}]


async def create_samples(api: Api, ids: dict[str, str], mark: str) -> None:
    if "capability_id" not in ids:
        contract = {"name": "Acquisition", "required_affordances": [], "executor_shapes": ["PROCEDURE"]}
        ids["capability_id"] = await api.create("/capabilities", {"code": f"baton.capability.{mark}", **contract})
    realised = {"name": f"Flats {mark}", "capability_id": ids["capability_id"]}
    ids["recipe_id"] = await api.create("/recipes", {**realised, "steps": STEPS})
    renewed = {"version_tag": "2026-Q2", "steps": STEPS, "closing_steps": CLOSING_STEPS}
    await api.execute(f"/recipes/{ids['recipe_id']}/version", renewed)
