"""Rehearsals as they are asked for: of a recipe, a procedure, a queue; what would stop them, and what is refused."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.api.test_touched_signals import own_signals, procedure_with
from tests.support.api.mcp_clients import agent, tool_result
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.service import Api
from tests.support.workflows.step_json import capture, captured_value, check, setpoint

ROTARY, CAMERA = "bl7:rot", "bl7:cam1"
SCAN = [setpoint(f"{ROTARY}.VAL", float(angle)) for angle in range(0, 200, 10)]


@pytest.fixture
async def line(fresh_api: Api) -> Beamline:
    """A beamline whose rotary stage and camera own their signals, and whose stage may turn by 180 degrees."""
    found = await beamline(fresh_api)
    await own_signals(found)
    limits = {"address": ROTARY, "low": -180.0, "high": 180.0, "reason": "The cable chain ends there."}
    await found.api.execute(f"/assets/{found.rotary_id}/signal-limits", limits)
    return found


async def rehearse(line: Beamline, **asked: Any) -> dict[str, Any]:
    """The answer to a rehearsal."""
    answer = await line.api.post("/rehearsals", asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def recipe_of(line: Beamline, steps: list[dict[str, Any]]) -> dict[str, Any]:
    """A target that conducts a recipe of these steps."""
    contract = {"code": f"baton.capability.turn_{uuid4().hex[:8]}", "name": "Turn", "required_affordances": []}
    capability = await line.api.create("/capabilities", {**contract, "executor_shapes": ["PROCEDURE"]})
    recipe_id = await line.api.create("/recipes", {"name": "Turn", "capability_id": capability, "steps": steps})
    return {"kind": "ConductRecipe", "recipe_id": recipe_id, "name": "Turn"}


async def test_a_scan_beyond_a_limit_is_stopped_at_the_desk_and_nothing_is_recorded(line: Beamline) -> None:
    target = await recipe_of(line, SCAN)
    before = len((await line.api.get("/events")).json()["items"])
    found = await rehearse(line, target=target, limit=2, first_step=18)
    assert (found["verdict"], found["trouble"]["step_index"]) == ("stops_at", 19)
    assert found["trouble"]["code"] == "SetpointOutOfLimitsError"
    assert [step["step_index"] for step in found["steps"]] == [18, 19]
    assert "It stops at step 19 of Turn" in found["message"]
    assert [(limit["address"], limit["margin"]) for limit in found["limits"]] == [(f"{ROTARY}.VAL", -10.0)]
    (travel,) = found["travel"]
    assert (travel["last"], travel["distance"], travel["moves"]) == (180.0, 180.0, 19)
    assert [one["source"] for one in found["twin"]] == [None]
    assert {one["asset_id"] for one in found["claims"]} == {line.rotary_id}
    assert len((await line.api.get("/events")).json()["items"]) == before


async def test_a_procedure_is_rehearsed_as_it_is_with_what_the_caller_assumes(line: Beamline) -> None:
    steps = [capture(f"{CAMERA}:temperature", "t"), setpoint(ROTARY, captured_value("t")), check("bl7:shutter", 1)]
    procedure_id = await procedure_with(line, steps)
    unsure = await rehearse(line, procedure_id=procedure_id)
    assert (unsure["verdict"], unsure["unknown_signal_count"]) == ("may_stop_at", 3)
    assert [step["verdict"] for step in unsure["steps"]] == ["unknown"] * 3
    sure = await rehearse(line, procedure_id=procedure_id, assume={"t": 20.0, "bl7:shutter": 1})
    assert (sure["verdict"], sure["trouble"]) == ("goes_through", None)
    assert sure["fingerprint"] != unsure["fingerprint"]
    assert (await rehearse(line, procedure_id=procedure_id))["fingerprint"] == unsure["fingerprint"]
    stopped = await rehearse(line, procedure_id=procedure_id, assume={f"{CAMERA}:temperature": 200.0})
    assert stopped["trouble"]["facts"]["value"] == 200.0


async def test_a_scan_that_leaves_a_limit_at_step_312_is_refused_at_the_desk(line: Beamline) -> None:
    angles = [180.0 * number / 311 for number in range(400)]
    found = await rehearse(line, target=await recipe_of(line, [setpoint(f"{ROTARY}.VAL", angle) for angle in angles]))
    assert (found["trouble"]["step_index"], found["trouble"]["verdict"]) == (312, "refused")
    assert found["walked_count"] == 313
    (travel,) = found["travel"]
    assert len(travel["course"]) <= 100
    assert travel["course"][-1] == [311, 180.0]
    assert found["message"].endswith("Nothing is known of the values of 1 of 1 signals.")


async def test_a_recipe_that_writes_to_the_neighbours_shutter_claims_it(line: Beamline) -> None:
    unit = await line.api.create("/assets", {"name": "Next door", "tier": "Unit", "facility_code": "facility"})
    shutter = await line.api.create("/assets", {"name": "Shutter", "tier": "Device", "parent_id": unit})
    await line.api.execute(f"/assets/{shutter}/add-alternate-identifier", {"kind": "EPICS_PV", "value": "bl8:shutter"})
    target = await recipe_of(line, [setpoint("bl8:shutter", 1)])
    queue_id = await line.api.create("/queues", {"name": "Next door", "asset_id": unit})
    items = [{"title": "Open", "target": {**target, "target_asset_ids": [shutter]}}]
    assert (await line.api.post(f"/queues/{queue_id}/add-items", {"items": items})).is_success
    found = await rehearse(line, target=target)
    assert found["claims"] == [{"asset_id": shutter, "procedure_id": None, "wanted_by": [queue_id]}]


async def test_a_check_that_waits_stands_on_the_timeline(line: Beamline) -> None:
    steps = [check("bl7:furnace", 600.0, 5.0, timeout=90.0), setpoint(ROTARY, 1.0)]
    found = await rehearse(line, target=await recipe_of(line, steps), assume={"bl7:furnace": 20.0})
    (wait,) = found["waits"]
    assert (wait["step_index"], wait["seconds"], wait["begins_at"]) == (0, 90.0, found["phases"][0]["begins_at"])


async def test_a_start_loses_the_race_against_new_limits_or_comes_before_them(line: Beamline) -> None:
    for number in range(5):
        procedure_id = await procedure_with(line, [setpoint(ROTARY, float(number))])
        fingerprint = (await rehearse(line, procedure_id=procedure_id))["fingerprint"]
        limits = {"address": ROTARY, "low": -180.0, "high": 180.0 + number + 1, "reason": "It was moved."}
        conducting = {"wait": 0, "fingerprint": fingerprint}
        started, limited = await asyncio.gather(
            line.api.post(f"/procedures/{procedure_id}/conduct", conducting),
            line.api.post(f"/assets/{line.rotary_id}/signal-limits", limits),
        )
        assert limited.is_success
        if started.is_success:
            positions = [int(one.headers["X-Baton-Position"]) for one in (started, limited)]
            assert positions == sorted(positions), "a start that goes through rests on what was rehearsed"
            await line.api.execute(f"/procedures/{procedure_id}/abort", {"reason": "enough"})
            continue
        refused = started.json()
        assert (started.status_code, refused["code"], refused["reason"]) == (409, "RehearsalOutdatedError", "basis_changed")
        assert refused["facts"] == {"changed": ["limits"]}
        assert "the limits of the signals changed" in refused["detail"]


async def test_without_a_worker_now_falls_back_and_says_so(line: Beamline) -> None:
    found = await rehearse(line, target=await recipe_of(line, SCAN[:1]), start_from="now")
    assert [one["error"]["code"] for one in found["twin"]] == ["SignalsUnreadableError"]


async def test_the_items_of_a_queue_are_rehearsed_one_after_the_other_on_one_twin(line: Beamline) -> None:
    first = await recipe_of(line, [setpoint(ROTARY, 5.0)])
    second = await recipe_of(line, [check(ROTARY, 5.0), setpoint(ROTARY, 500.0)])
    third = await recipe_of(line, [check(ROTARY, 5.0)])
    root = (await line.api.get(f"/assets/{line.rotary_id}")).json()["parent_id"]
    queue_id = await line.api.create("/queues", {"name": "Night", "asset_id": root})
    await line.api.execute(f"/queues/{queue_id}/hold", {"reason": "Not yet."})
    items = [{"title": "Turn", "target": target} for target in (first, second, third)]
    answer = await line.api.post(f"/queues/{queue_id}/add-items", {"items": items})
    assert answer.is_success, answer.text
    found = await rehearse(line, queue_id=queue_id)
    verdicts = [(step["phase_index"], step["verdict"]) for step in found["steps"]]
    assert verdicts == [(0, "ok"), (1, "ok"), (1, "refused"), (2, "ok")]
    assert len((await rehearse(line, queue_id=queue_id, items=1))["phases"]) == 1


async def test_the_conditions_of_a_later_start_are_those_of_its_preflight(line: Beamline) -> None:
    at = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    phase = {**await recipe_of(line, SCAN[:2]), "target_asset_ids": [line.rotary_id]}
    plan = {"kind": "ConductPlan", "plan_id": line.plan_id, "name": "Load step 1", "phases": [{**phase}]}
    plan["phases"][0].pop("kind")
    told = (await line.api.post("/runs/preflight", {"name": "Load step 1", "plan_id": line.plan_id, "at": at})).json()
    asked = await rehearse(line, target=plan, at=at, parts=["conditions"])
    names = [{one["condition"]: one["holds_then"] for one in rows} for rows in (asked["conditions"], told["conditions"])]
    assert names[0] == names[1]
    assert (asked["verdict"], asked["fingerprint"], asked["steps"], asked["walked_count"]) == (None, None, [], 0)
    whole = await rehearse(line, target=plan, at=at)
    assert whole["verdict"] == "may_stop_at" or whole["verdict"] == "goes_through"
    assert [one["condition"] for one in whole["conditions"]] == [one["condition"] for one in asked["conditions"]]
    assert (await rehearse(line, target=plan))["conditions"] == []


async def test_recipes_procedures_and_queues_have_conditions_too(line: Beamline) -> None:
    target = {**await recipe_of(line, SCAN[:2]), "target_asset_ids": [line.rotary_id]}
    procedure_id = await procedure_with(line, SCAN[:2])
    queue_id = await line.api.create("/queues", {"name": "Night", "asset_id": line.unit_id})
    await line.api.execute(f"/queues/{queue_id}/hold", {"reason": "Not yet."})
    items = [{"title": "Turn", "target": target}] * 2
    assert (await line.api.post(f"/queues/{queue_id}/add-items", {"items": items})).is_success
    for what in ({"target": target}, {"procedure_id": procedure_id}, {"queue_id": queue_id}):
        found = await rehearse(line, **what, parts=["conditions"])
        rows = [one for one in found["conditions"] if one["condition"] != "queue"]
        names = [one["condition"] for one in rows if one["required"]]
        assert {"assets_ready", "enclosure_permitted", "targets_unclaimed"} <= {*names}, (what, names)
        assert len(names) == len({*names}), "two items that ask for the same have one row"
        assert found["message"].endswith("and the others hold."), found["message"]


async def test_over_mcp_the_first_sentence_says_what_would_stop_it(line: Beamline) -> None:
    target = await recipe_of(line, SCAN)
    async with agent(line.api) as client:
        answer = await client.call_tool("rehearse", {"target": target, "limit": 0})
        assert "It stops at step 19 of Turn" in str(answer.content[0]).split("\\n")[0]
        assert (await tool_result(client, "rehearse", target=target))["verdict"] == "stops_at"


SOON, LATE = (datetime.now(UTC) + timedelta(days=days) for days in (-1, 400))


async def test_what_cannot_be_rehearsed_is_refused(line: Beamline) -> None:
    target = await recipe_of(line, [capture(f"{CAMERA}:t", "t"), setpoint(ROTARY, captured_value("t"))])
    cases: list[tuple[dict[str, Any], int, str, str | None]] = [
        ({"assume": {"bl7:elsewhere": 1}}, 400, "InvalidRehearsalError", "not_touched"),
        ({"assume": {"t": "warm"}}, 400, "InvalidRehearsalError", "wrong_kind"),
        ({"at": SOON.isoformat()}, 400, "InvalidRehearsalError", "past"),
        ({"at": LATE.isoformat()}, 400, "InvalidRehearsalError", "too_far"),
        ({"procedure_id": str(uuid4())}, 422, "RequestValidationError", None),
        ({"target": None, "procedure_id": str(uuid4())}, 404, "ProcedureNotFoundError", None),
    ]
    for asked, status, code, reason in cases:
        answer = await line.api.post("/rehearsals", {"target": target, **asked})
        body = answer.json()
        assert (answer.status_code, body["code"], body.get("reason")) == (status, code, reason), (asked, body)
