"""A conduct is judged by what it touches: gates, claims, ownership and limits of the signals that its steps write."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.service import Api, running_api
from tests.support.workflows.step_json import action, capture, check, setpoint

ROTARY, CAMERA = "bl7:rot", "bl7:cam1"
WRITING = [setpoint(f"{ROTARY}.VAL", 5.0)]
READING = [capture(f"{ROTARY}.RBV", "angle")]
WAYS = {"targets": (True, READING), "signals": (False, WRITING), "both": (True, WRITING)}
"""How a procedure comes to be judged on the rotary stage: declared as its target, written to, or both."""


async def own_signals(line: Beamline) -> None:
    for asset_id, value in ((line.rotary_id, ROTARY), (line.camera_id, CAMERA)):
        await line.api.execute(f"/assets/{asset_id}/add-alternate-identifier", {"kind": "EPICS_PV", "value": value})


@pytest.fixture
async def line(fresh_api: Api) -> Beamline:
    """A beamline whose rotary stage and camera own their signals."""
    found = await beamline(fresh_api)
    await own_signals(found)
    return found


async def procedure_with(
    line: Beamline, steps: list[dict[str, Any]], *targets: str, closing: tuple[dict[str, Any], ...] = (), **task: Any
) -> str:
    """A procedure from a recipe of these steps."""
    contract = {"code": f"baton.capability.turn_{uuid4().hex[:8]}", "name": "Turn", "required_affordances": []}
    capability = await line.api.create("/capabilities", {**contract, "executor_shapes": ["PROCEDURE"]})
    recipe = {"name": "Turn", "capability_id": capability, "steps": steps, "closing_steps": closing}
    recipe_id = await line.api.create("/recipes", recipe)
    task = {"name": "Turn", "kind": "turn", "target_asset_ids": targets, **task}
    return await line.api.create(f"/recipes/{recipe_id}/procedures", task)


async def conduct(line: Beamline, procedure_id: str, command: str = "conduct", **body: Any) -> httpx.Response:
    return await line.api.post(f"/procedures/{procedure_id}/{command}", {"wait": 0, **body})


async def preflight(line: Beamline, procedure_id: str) -> dict[str, Any]:
    answer: dict[str, Any] = (await line.api.get(f"/procedures/{procedure_id}/preflight")).json()
    return answer


def cause(answer: httpx.Response) -> tuple[int, str, str | None]:
    body = answer.json()
    return answer.status_code, body["code"], body["reason"]


async def assert_refused(line: Beamline, procedure_id: str, code: str, reason: str | None = None) -> dict[str, Any]:
    """The conduct is refused by this, the preflight says exactly so, and nothing is written."""
    checked = await preflight(line, procedure_id)
    answer = await conduct(line, procedure_id)
    body = answer.json()
    assert answer.status_code == 409, body
    assert body["code"] == code, body
    assert reason in (None, body["reason"])
    (verdict,) = (one for one in checked["commands"] if one["command"] == "conduct_procedure")
    assert not verdict["passed"]
    refused = [one for one in checked["gates"] if one["gate"] == verdict["refused_by"]]
    (gate,) = (one for one in refused if "conduct_procedure" in one["asked_by"])
    assert [gate[name] for name in ("code", "reason", "detail")] == [body[name] for name in ("code", "reason", "detail")]
    shown = (await line.api.get(f"/procedures/{procedure_id}")).json()
    assert (shown["status"], shown["live_conduct_id"], shown["touched"]) == ("Defined", None, None)
    return body


async def fault(line: Beamline) -> None:
    await line.api.execute(f"/assets/{line.rotary_id}/fault", {"reason": "bearing"})


async def maintain(line: Beamline) -> None:
    await line.api.execute(f"/assets/{line.rotary_id}/enter-maintenance")


async def open_hutch(line: Beamline) -> None:
    await line.observe("NotPermitted")


CLOSING: dict[str, tuple[Callable[[Beamline], Awaitable[None]], str, str]] = {
    "assets_ready, faulted": (fault, "ProcedureAssetNotReadyError", "asset_faulted"),
    "assets_ready, in maintenance": (maintain, "ProcedureAssetNotReadyError", "asset_in_maintenance"),
    "enclosures_permitted": (open_hutch, "ProcedureRequiresPermittedEnclosureError", "no_enclosure_permitted"),
}


@pytest.mark.parametrize("gate", CLOSING)
async def test_a_gate_is_judged_on_targets_on_what_is_written_and_on_both(line: Beamline, gate: str) -> None:
    close, code, reason = CLOSING[gate]
    procedures = [
        await procedure_with(line, steps, *([line.rotary_id] if declared else [])) for declared, steps in WAYS.values()
    ]
    assert all([(await preflight(line, id))["passed"] for id in procedures])
    await close(line)
    for id in procedures:
        await assert_refused(line, id, code, reason)
    assert (await conduct(line, await procedure_with(line, READING))).status_code == 202, "who only reads is not gated"
    by_hand = await line.api.post(f"/procedures/{procedures[1]}/start")
    assert by_hand.status_code == 204, "by hand nothing is known of what will be written"


async def lose_beam(line: Beamline) -> None:
    await line.api.execute(f"/supplies/{line.supply_id}/mark-unavailable", {"reason": "dump"})


async def end_clearances(line: Beamline) -> None:
    for one in (await line.api.get("/clearances")).json()["items"]:
        await line.api.execute(f"/clearances/{one['clearance_id']}/expire", {"reason": "over"})


PHASE_GATES: dict[str, tuple[Callable[[Beamline], Awaitable[None]], str, str]] = {
    "supplies_available": (lose_beam, "ProcedureSupplyCoverageMismatchError", "no_supply_available"),
    "clearance_in_force": (end_clearances, "ProcedureClearanceCoverageMismatchError", "no_clearance_in_force"),
}


@pytest.mark.parametrize("gate", PHASE_GATES)
async def test_a_gate_of_the_parent_run_is_judged_for_every_phase(line: Beamline, gate: str) -> None:
    close, code, reason = PHASE_GATES[gate]
    run = await line.start_run()
    procedures = [
        await procedure_with(line, steps, *([line.rotary_id] if declared else []), parent_run_id=run)
        for declared, steps in WAYS.values()
    ]
    assert all([(await preflight(line, id))["passed"] for id in procedures])
    await close(line)
    for id in procedures:
        await assert_refused(line, id, code, reason)


async def test_a_decommissioned_asset_refuses_as_a_target_and_owns_nothing(line: Beamline) -> None:
    target = await procedure_with(line, READING, line.camera_id)
    signals = await procedure_with(line, [setpoint(f"{CAMERA}:AcquireTime", 1)])
    assert (await preflight(line, signals))["judged_asset_ids"] == [line.camera_id]
    await line.api.execute(f"/assets/{line.camera_id}/decommission")
    await assert_refused(line, target, "ProcedureAssetDecommissionedError", "asset_decommissioned")
    checked = await preflight(line, signals)
    assert (checked["passed"], checked["judged_asset_ids"]) == (True, [])
    (owned,) = (one for one in checked["gates"] if one["gate"] == "signals_owned")
    assert f"{CAMERA}:AcquireTime" in owned["detail"]


async def test_of_two_conducts_on_one_motor_that_neither_declares_the_second_is_refused(line: Beamline) -> None:
    first, second = await procedure_with(line, WRITING), await procedure_with(line, WRITING)
    opened = await conduct(line, first)
    assert opened.status_code == 202, opened.text
    shown = (await line.api.get(f"/procedures/{first}")).json()
    assert shown["judged_asset_ids"] == [line.rotary_id]
    assert shown["touched"] == {"written": [f"{ROTARY}.VAL"], "read": []}
    body = await assert_refused(line, second, "ProcedureCannotConductError", "asset_in_use")
    assert (body["facts"]["asset_id"], body["facts"]["procedure_id"]) == (line.rotary_id, first)
    reader = await procedure_with(line, READING)
    assert (await conduct(line, reader)).status_code == 202, "who only reads has nothing to itself"
    asked = await line.api.post(f"/procedures/{first}/abort", {"reason": "enough"})
    assert asked.status_code == 202, asked.text


async def test_everything_that_steps_touch_is_shown_closing_steps_included(line: Beamline) -> None:
    steps = [
        *(setpoint(ROTARY, 1), check(f"{ROTARY}.RBV", 1), capture("bl7:current", "beam")),
        action("stream", detector=CAMERA, dwell=0.1, events=3),
        action("bake", heater="bl7:heater"),
    ]
    id = await procedure_with(line, steps, closing=(setpoint("bl7:shutter", 0),))
    checked = await preflight(line, id)
    written = ["action:bake", "bl7:HDF1", CAMERA, ROTARY, "bl7:shutter"]
    assert checked["touched"] == {"written": written, "read": ["bl7:current", f"{ROTARY}.RBV"]}
    assert checked["judged_asset_ids"] == sorted([line.rotary_id, line.camera_id])
    assert checked["passed"]
    (owned,) = (one for one in checked["gates"] if one["gate"] == "signals_owned")
    assert owned["detail"] == "No asset in service owns action:bake, bl7:HDF1, bl7:shutter; this deployment allows that."
    assert (await conduct(line, id)).status_code == 202
    shown = (await line.api.get(f"/procedures/{id}")).json()
    assert (shown["touched"], shown["judged_asset_ids"]) == (checked["touched"], checked["judged_asset_ids"])


async def test_unowned_signals_are_refused_where_the_deployment_says_so(database_url: str) -> None:
    async with running_api(database_url, unowned_signals="refuse") as api:
        line = await beamline(api)
        await own_signals(line)
        id = await procedure_with(line, [*WRITING, setpoint("bl7:shutter", 1), action("bake")])
        body = await assert_refused(line, id, "ProcedureTouchesUnownedSignalError", "unowned_signals")
        assert body["facts"] == {"addresses": ["action:bake", "bl7:shutter"]}
        owned = await procedure_with(line, WRITING)
        assert (await conduct(line, owned)).status_code == 202
        reader = await procedure_with(line, [capture("bl7:current", "beam")])
        assert (await conduct(line, reader)).status_code == 202, "what is only read needs no owner"


async def test_a_setpoint_outside_the_limits_of_its_owner_is_refused_before_anything_moves(line: Beamline) -> None:
    id = await procedure_with(line, [setpoint(ROTARY, 5.0), setpoint(f"{ROTARY}.VAL", 200.0)])
    limits = {"address": ROTARY, "low": -90, "high": 90, "reason": "cables"}
    await line.api.execute(f"/assets/{line.rotary_id}/signal-limits", limits)
    body = await assert_refused(line, id, "ProcedureSetpointOutOfLimitsError", "out_of_limits")
    place = {"list": "steps", "step_index": 1}
    assert body["facts"] == {"address": f"{ROTARY}.VAL", "value": 200.0, "low": -90.0, "high": 90.0, "step": place}
    await line.api.execute(f"/assets/{line.rotary_id}/signal-limits", {**limits, "high": 200})
    assert (await conduct(line, id)).status_code == 202


async def test_a_search_beyond_the_limits_is_refused(line: Beamline) -> None:
    steps = [setpoint(ROTARY, {"__steering__": "angle"}), capture(f"{ROTARY}.RBV", "found")]
    id = await procedure_with(line, steps)
    limits = {"address": f"{ROTARY}.VAL", "low": 0, "reason": "stop"}
    await line.api.execute(f"/assets/{line.rotary_id}/signal-limits", limits)
    search: dict[str, Any] = {
        "objective": {"kind": "Explore"},
        "objective_capture_name": "found",
        "decide": {"substrate": "caller"},
    }
    axis = {"name": "angle", "lower": -1.0, "upper": 1.0}
    beyond = await conduct(line, id, "steering/conduct", **search, space={"axes": [axis]})
    assert cause(beyond) == (400, "InvalidSearchSpaceError", "outside_limits")
    assert (beyond.json()["facts"]["axis"], beyond.json()["facts"]["whose"]) == ("angle", "owners")
    within = await conduct(line, id, "steering/conduct", **search, space={"axes": [{**axis, "lower": 0.0}]})
    assert within.status_code == 202, within.text


async def test_a_run_is_not_conducted_with_a_phase_that_may_never_write_what_it_would(line: Beamline) -> None:
    run = await line.start_run()
    beyond = await procedure_with(line, [setpoint(ROTARY, 200.0)], parent_run_id=run)
    limits = {"address": ROTARY, "high": 90, "reason": "cables"}
    await line.api.execute(f"/assets/{line.rotary_id}/signal-limits", limits)
    refused = await line.api.post(f"/runs/{run}/conduct", {"procedure_ids": [beyond], "wait": 0})
    assert cause(refused) == (409, "RunPhaseMismatchError", "conduct_unfit")
    assert refused.json()["facts"]["cause"]["code"] == "ProcedureSetpointOutOfLimitsError"
    within = await procedure_with(line, WRITING, parent_run_id=run)
    await fault(line)
    accepted = await line.api.post(f"/runs/{run}/conduct", {"procedure_ids": [within], "wait": 0})
    assert accepted.status_code == 202, "its gates are judged when its turn comes"


async def test_cautions_on_owners_of_what_is_written_are_acknowledged(line: Beamline) -> None:
    note = {
        "target": {"kind": "Asset", "id": line.rotary_id},
        "category": "Wear",
        "severity": "Warning",
        "text": "slips below 2 deg",
        "workaround": "approach from above",
    }
    caution = await line.api.create("/cautions", note)
    for steps, met in ((WRITING, [caution]), (READING, [])):
        accepted = (await conduct(line, await procedure_with(line, steps))).json()
        assert [one["caution_id"] for one in accepted["acknowledged_cautions"]] == met
