"""Recipes whose steps come from a pattern, over REST: drafted, defined, versioned and shown."""

from typing import Any

from tests.support.api.mcp_clients import agent, tool_result
from tests.support.service import Api

GRID: dict[str, Any] = {
    "kind": "grid",
    "axes": [
        {"address": "bl7:table", "start": 0, "stop": 2, "num": 3, "unit": "mm"},
        {"address": "bl7:rotary", "start": 0, "stop": 90, "num": 4},
    ],
    "snaked": True,
    "at_point": [{"kind": "capture", "address": "bl7:diode", "capture_name": "diode_{i}_{j}"}],
    "settle_seconds": 0.2,
    "returns": True,
}


async def test_a_recipe_takes_the_pattern_that_was_drafted(api: Api) -> None:
    answer = await api.post("/recipes/draft-steps", {"pattern": GRID})
    assert answer.status_code == 200, answer.text
    draft = answer.json()
    assert (draft["point_count"], draft["step_count"], len(draft["closing_steps"])) == (12, 2 + 12 * 4 + 2, 2)
    assert draft["touched"] == {"written": ["bl7:rotary", "bl7:table"], "read": ["bl7:diode"]}
    contract = {"name": "Map", "required_affordances": [], "executor_shapes": ["PROCEDURE"]}
    capability_id = await api.create("/capabilities", {"code": "baton.capability.map", **contract})
    recipe_id = await api.create("/recipes", {"name": "Map", "capability_id": capability_id, "pattern": GRID})
    recipe = (await api.get(f"/recipes/{recipe_id}")).json()
    assert (recipe["steps"], recipe["closing_steps"]) == (draft["steps"], draft["closing_steps"])
    assert (recipe["pattern"]["kind"], recipe["pattern"]["axes"][0]["stop"]) == ("grid", 2)
    line = {"kind": "line", "axes": [{"address": "bl7:table", "start": 0, "stop": 1}], "num": 2}
    await api.execute(f"/recipes/{recipe_id}/version", {"version_tag": "2026-Q4", "pattern": line})
    kinds = [version["pattern"]["kind"] for version in (await api.get(f"/recipes/{recipe_id}/versions")).json()["items"]]
    assert kinds == ["grid", "line"]


async def test_what_is_wrong_with_a_pattern_is_named(api: Api) -> None:
    uneven = {"kind": "list", "axes": [{"address": "a", "positions": [1]}, {"address": "b", "positions": [1, 2]}]}
    misshapen = await api.post("/recipes/draft-steps", {"pattern": uneven})
    assert (misshapen.status_code, misshapen.json()["code"]) == (422, "RequestValidationError")
    assert "different numbers of positions" in misshapen.text
    crowded = {**GRID, "axes": [{**axis, "num": 200} for axis in GRID["axes"]]}
    refused = await api.post("/recipes/draft-steps", {"pattern": crowded})
    assert (refused.status_code, refused.json()["code"]) == (422, "ProcedureExpansionOverflowError")


async def test_an_agent_drafts_steps_too(api: Api) -> None:
    async with agent(api, toolset="all") as client:
        draft = await tool_result(client, "draft_steps", pattern=GRID)
    assert draft["point_count"] == 12
