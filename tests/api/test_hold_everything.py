"""Holding everything, over REST: every live run and conduct that the caller may hold, at once and as often as wanted."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from baton.domain.kernel import SYSTEM_CONDUIT
from baton.domain.trust.surface import SYSTEM_HTTP
from tests.support.api.example_reads import history, refusal
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.service import Api, running_api
from tests.support.workflows.conduct_service import PAUSE, ConductService

STEP = {"kind": "setpoint", "address": "bl7:energy", "value": 25}
WHY = {"reason": "somebody is in the hutch"}


@pytest.fixture
async def line(fresh_api: Api) -> Beamline:
    return await beamline(fresh_api)


async def hold(api: Api, **fields: Any) -> dict[str, Any]:
    answer = await api.post("/hold-everything", {**WHY, **fields})
    assert answer.status_code == 200, answer.text
    held: dict[str, Any] = answer.json()
    return held


async def conduct(api: Api, asset_id: str, **fields: Any) -> str:
    """A procedure whose conduct was opened and that no worker has taken up."""
    task = {"name": "Align", "kind": "alignment", "target_asset_ids": [asset_id], **fields}
    procedure = await api.create("/procedures", task)
    accepted = await api.post(f"/procedures/{procedure}/conduct", {"steps": [STEP], "wait": 0})
    assert accepted.status_code == 202, accepted.text
    return procedure


def item(kind: str, id: str, name: str, *, already: bool = False, run_id: str | None = None) -> dict[str, Any]:
    return {"kind": kind, "id": id, "name": name, "already": already, "run_id": run_id}


async def test_every_live_run_and_conduct_is_held_and_a_repeat_says_that_they_are(line: Beamline) -> None:
    run = await line.start_run()
    aligned = await conduct(line.api, line.camera_id)
    by_hand = await line.api.create("/procedures", {"name": "By hand", "kind": "alignment"})
    await line.api.execute(f"/procedures/{by_hand}/start")
    expected = [item("run", run, "Load step 1"), item("procedure", aligned, "Align")]
    assert await hold(line.api) == {"held": expected, "refused": []}
    assert (await line.api.get(f"/runs/{run}")).json()["status"] == "Held"
    assert (await line.api.get(f"/procedures/{aligned}/conduct")).json()["pending_request"] == "Hold"
    assert (await line.api.get(f"/procedures/{by_hand}")).json()["status"] == "Running"
    recorded = [(await history(line.api, path))[-1] for path in (f"/runs/{run}", f"/procedures/{aligned}")]
    assert [(one["event_type"], one["payload"]["reason"], one["command_name"]) for one in recorded] == [
        ("RunHeld", WHY["reason"], "HoldRun"),
        ("ProcedureHoldRequested", WHY["reason"], "HoldProcedure"),
    ]
    again = await hold(line.api)
    assert again == {"held": [{**one, "already": True} for one in expected], "refused": []}
    assert (await history(line.api, f"/runs/{run}"))[-1] == recorded[0]


async def test_a_phase_is_held_with_its_run_and_goes_on_with_it(line: Beamline) -> None:
    run = await line.start_run()
    phase = await conduct(line.api, line.camera_id, parent_run_id=run)
    held = (await hold(line.api))["held"]
    assert held == [item("run", run, "Load step 1"), item("procedure", phase, "Align", run_id=run)]
    shown = (await line.api.get(f"/procedures/{phase}")).json()
    assert (shown["status"], shown["pending_request"]) == ("Running", None)
    assert all(one["already"] for one in (await hold(line.api))["held"])


async def test_only_what_touches_an_asset_its_parts_or_what_it_is_part_of_is_held(line: Beamline) -> None:
    other = await beamline(line.api)
    here, there = await conduct(line.api, line.camera_id), await conduct(line.api, other.camera_id)
    run = await other.start_run()
    assert (await hold(line.api, asset_id=line.rotary_id))["held"] == []
    assert (await hold(line.api, asset_id=line.unit_id))["held"] == [item("procedure", here, "Align")]
    whole = await conduct(line.api, line.unit_id)
    assert (await hold(line.api, asset_id=line.rotary_id))["held"] == [item("procedure", whole, "Align")]
    assert {one["id"] for one in (await hold(line.api))["held"]} == {here, there, whole, run}


async def test_what_is_no_request_holds_nothing(line: Beamline) -> None:
    run = await line.start_run()
    assert refusal(await line.api.post("/hold-everything", {})) == (422, "RequestValidationError")
    assert refusal(await line.api.post("/hold-everything", {"reason": "  "})) == (400, "InvalidRunHoldReasonError")
    unknown = await line.api.post("/hold-everything", {**WHY, "asset_id": str(uuid4())})
    assert refusal(unknown) == (404, "AssetNotFoundError")
    assert (await line.api.get(f"/runs/{run}")).json()["status"] == "Running"


async def test_a_dry_run_says_what_would_be_held_and_holds_nothing(line: Beamline) -> None:
    run = await line.start_run()
    answer = await line.api.post("/hold-everything", WHY, Prefer="handling=dry-run")
    assert answer.status_code == 200, answer.text
    assert answer.json()["answer"] == {"held": [item("run", run, "Load step 1")], "refused": []}
    assert (await line.api.get(f"/runs/{run}")).json()["status"] == "Running"


async def test_a_key_that_is_used_again_is_answered_and_holds_nothing_more(line: Beamline) -> None:
    run = await line.start_run()
    first = await line.api.post("/hold-everything", WHY, Idempotency_Key="hold-1")
    await line.api.execute(f"/runs/{run}/resume")
    again = await line.api.post("/hold-everything", WHY, Idempotency_Key="hold-1")
    assert (again.json(), again.headers["Idempotency-Replayed"]) == (first.json(), "true")
    assert (await line.api.get(f"/runs/{run}")).json()["status"] == "Running"


async def test_what_the_caller_may_not_hold_goes_on_and_is_named(line: Beamline) -> None:
    """A phase is held by itself where its run cannot be."""
    admin, operator = str(uuid4()), str(uuid4())
    run = await line.start_run()
    phase = await conduct(line.api, line.camera_id, parent_run_id=run)
    enforced = {"authorization_mode": "policy", "bootstrap_principal_id": admin}
    async with running_api(line.api.database_url, projecting=False, **enforced) as guarded:
        grant = {"conduit_id": str(SYSTEM_CONDUIT), "surface_id": str(SYSTEM_HTTP), "permitted_principal_ids": [operator]}
        permitted = {"name": "Holding", **grant, "permitted_commands": ["HoldEverything", "HoldProcedure"]}
        assert refusal(await guarded.acting_as(operator).post("/hold-everything", WHY)) == (403, "UnauthorizedError")
        await guarded.acting_as(admin).create("/policies", permitted)
        answer = await hold(guarded.acting_as(operator))
        assert answer["held"] == [item("procedure", phase, "Align")]
        (refused,) = answer["refused"]
        detail = "HoldRun was refused. Your policies do not permit this operation here; ask an administrator for it."
        why = {"code": "UnauthorizedError", "detail": detail, "reason": "command_not_permitted"}
        assert refused == {"kind": "run", "id": run, "name": "Load step 1", **why}
    assert (await line.api.get(f"/runs/{run}")).json()["status"] == "Running"
    assert (await line.api.get(f"/procedures/{phase}")).json()["pending_request"] == "Hold"


async def test_conducts_stop_at_their_next_step(conduct_service: ConductService) -> None:
    opened = [await conduct_service.start_conduct(PAUSE, PAUSE) for _ in range(3)]
    for _ in opened:
        await conduct_service.pauses.wait_until_reached()
    held = await hold(conduct_service.operator)
    assert {UUID(one["id"]) for one in held["held"]} == {procedure_id for procedure_id, _ in opened}
    for _ in opened:
        conduct_service.pauses.end()
    for procedure_id, conduct_id in opened:
        result = await conduct_service.result(conduct_id)
        assert (result["held"], result["completed_count"]) == (True, 1)
        assert (await conduct_service.stack.procedure(procedure_id)).status.value == "Held"
