"""A conduct as people and agents see it from outside: how it stands, what it would take, and the work under its id."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.start.procedure_start import needed_grants
from baton.domain.trust.surface import SYSTEM_MCP_STREAMABLE_HTTP
from tests.support.api.mcp_clients import agent, refusal
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP
from tests.support.domain.peers import grant
from tests.support.service import Api
from tests.support.workflows.conduct_service import PAUSE, ConductService, open_conduct_service
from tests.support.workflows.step_json import capture, check, criterion, setpoint

ADMIN = uuid4()
REPEATS = 15


async def conduct_of(conduct_service: ConductService, procedure_id: UUID) -> dict[str, Any]:
    shown: dict[str, Any] = (await conduct_service.operator.get(f"/procedures/{procedure_id}/conduct")).json()
    return shown


REPEATS = 15


async def test_a_procedure_that_was_never_conducted_has_no_conduct(conduct_service: ConductService) -> None:
    seen = await conduct_of(conduct_service, await conduct_service.stack.register_procedure())
    assert (seen["conduct_id"], seen["phase"], seen["result"]) == (None, None, None)


async def test_a_conduct_is_seen_at_its_step_with_its_worker_and_later_with_its_result(
    conduct_service: ConductService,
) -> None:
    procedure_id, conduct_id = await conduct_service.start_conduct(setpoint("a", 3), check("a", 3), PAUSE, capture("b", "n"))
    await conduct_service.pauses.wait_until_reached()
    seen = await conduct_of(conduct_service, procedure_id)
    assert (seen["conduct_id"], seen["command_name"]) == (str(conduct_id), "ConductProcedure")
    assert (seen["phase"], seen["step_index"], seen["step_count"], seen["message"]) == ("Walking", 2, 4, "step 3 of 4")
    assert (seen["worker"], seen["result"], seen["pending_request"]) == ("heard", None, None)
    assert 0 <= seen["silence"] < 6
    assert (await conduct_service.operator.post(f"/procedures/{procedure_id}/hold", {"reason": "lunch"})).status_code == 202
    seen = await conduct_of(conduct_service, procedure_id)
    assert (seen["pending_request"], seen["pending"]["request"]) == ("Hold", "Hold")
    assert seen["pending"]["step"] == {"step_index": 2, "closing": False, "kind": "action", "label": "do pause"}
    assert seen["pending"]["since"] < seen["pending"]["until"]
    assert "waits for do pause, until" in seen["message"]
    conduct_service.pauses.end()
    result = await conduct_service.result(conduct_id)
    seen = await conduct_of(conduct_service, procedure_id)
    assert (seen["phase"], seen["worker"], seen["silence"], seen["pending_request"]) == ("Ended", None, None, None)
    assert seen["result"] == result
    assert (result["held"], seen["status"]) == (True, "Held")


async def test_what_is_seen_of_a_conduct_is_of_one_moment(conduct_service: ConductService) -> None:
    """Polled as tightly as possible around its end, it is never Ended and Running, and has a result where it has ended."""
    for _ in range(5):
        procedure_id, _ = await conduct_service.start_conduct(*[setpoint("a", value) for value in range(5)])

        async def watch(procedure_id: UUID = procedure_id) -> set[tuple[Any, ...]]:
            seen: set[tuple[Any, ...]] = set()
            while not seen or not any(phase == "Ended" for phase, *_ in seen):
                view = await conduct_of(conduct_service, procedure_id)
                seen.add((view["phase"], view["status"], view["result"] is not None))
            return seen

        seen = set.union(*await asyncio.gather(*(watch() for _ in range(6))))
        assert {one for one in seen if one[0] == "Ended"} == {("Ended", "Completed", True)}
        assert {one[1:] for one in seen if one[0] != "Ended"} <= {("Running", False)}


async def test_a_conduct_that_nobody_works_on_is_not_said_to_run(conduct_service: ConductService) -> None:
    await conduct_service.stack.stop_worker()
    try:
        procedure_id, _ = await conduct_service.start_conduct(setpoint("a", 1))
        seen = await conduct_of(conduct_service, procedure_id)
        assert (seen["phase"], seen["worker"], seen["message"]) == (
            "Opened",
            "awaited",
            "waiting for a worker to take it up",
        )
    finally:
        await conduct_service.stack.start_worker()


async def test_a_loop_shows_what_it_measured_last(conduct_service: ConductService) -> None:
    steps = [capture("b", "offset"), PAUSE]
    loop = {"convergence_capture_name": "offset", "criterion": criterion(1.5, 0.1)}
    procedure_id, conduct_id = await conduct_service.start_conduct(*steps, how="converge", **loop)
    await conduct_service.pauses.wait_until_reached()
    seen = await conduct_of(conduct_service, procedure_id)
    assert seen["measurement"] == {"name": "offset", "value": 1.5, "iteration_index": 1}
    assert seen["message"] == "iteration 1, step 2 of 2, offset 1.5 in iteration 1"
    conduct_service.pauses.end()
    assert (await conduct_service.result(conduct_id))["succeeded"]


async def test_a_preflight_says_what_the_conduct_would_say(conduct_service: ConductService) -> None:
    asset = await conduct_service.api.create("/assets", {"name": "Stage", "tier": "Unit", "facility_code": "facility"})
    first, second = [UUID(await register_procedure(conduct_service.operator, asset)) for _ in "12"]
    clear = (await conduct_service.operator.get(f"/procedures/{second}/preflight")).json()
    assert clear["passed"]
    conduct_id = await conduct_service.conduct(first, steps=[PAUSE])
    await conduct_service.pauses.wait_until_reached()
    barred = (await conduct_service.operator.get(f"/procedures/{second}/preflight")).json()
    (shut,) = [gate for gate in barred["gates"] if not gate["passed"]]
    refused = (await conduct_service.operator.post(f"/procedures/{second}/conduct", {"steps": [], "wait": 0})).json()
    assert (shut["code"], shut["reason"], shut["detail"]) == (refused["code"], refused["reason"], refused["detail"])
    assert shut["facts"] == refused["facts"]
    assert shut["facts"]["conduct_id"] == str(conduct_id)
    conduct_service.pauses.end()
    await conduct_service.result(conduct_id)
    assert (await conduct_service.operator.get(f"/procedures/{second}/preflight")).json()["passed"]


async def register_procedure(api: Api, asset: str) -> str:
    return await api.create("/procedures", {"name": "Centre", "kind": "alignment", "target_asset_ids": [asset]})


async def read_work_item(api: Api, work_id: Any) -> dict[str, Any]:
    answer = await api.get(f"/work-items/{work_id}")
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def test_a_conduct_is_read_again_under_its_work_id(conduct_service: ConductService) -> None:
    procedure_id, conduct_id = await conduct_service.start_conduct(PAUSE)
    await conduct_service.pauses.wait_until_reached()
    running = await read_work_item(conduct_service.operator, conduct_id)
    ids = {"procedure_id": str(procedure_id), "conduct_id": str(conduct_id), "work_id": str(conduct_id)}
    assert running == {
        "work_id": str(conduct_id),
        "state": "running",
        "ids": ids,
        "message": running["message"],
        "answer": None,
        "error": None,
    }
    assert running["message"].startswith("step 1 of 1")
    conduct_service.pauses.end()
    result = await conduct_service.result(conduct_id)
    done = await read_work_item(conduct_service.operator, conduct_id)
    assert (done["state"], done["ids"], done["answer"], done["error"]) == ("done", ids, result, None)


async def test_a_mint_sweep_is_read_again_under_its_work_id(conduct_service: ConductService) -> None:
    swept = await conduct_service.operator.post("/assets/mint-missing-external-ids", {"wait": 0, "facility_code": "nowhere"})
    work_id = swept.json().get("work_id") or swept.json()["sweep_id"]  # it may be over before the answer
    answer = await conduct_service.result(UUID(work_id))
    assert (answer["sweep_id"], answer["status"]) == (work_id, "Finished")


async def test_work_that_was_refused_on_its_way_has_the_body_of_the_refusal(conduct_service: ConductService) -> None:
    api = conduct_service.api
    mira = await api.create("/actors", {"name": "Mira Okafor"})
    publish, asked = await publication(api, mira)
    accepted = await api.acting_as(mira).post(publish, {**asked, "wait": 0})
    seen = await conduct_service.wait_until_over(UUID(accepted.json()["work_id"]), api.acting_as(mira))
    assert (seen["state"], seen["answer"]) == ("failed", None)
    refused = await api.acting_as(mira).post(publish, {**asked, "wait": 30})
    assert refused.status_code >= 400
    assert seen["error"]["code"] == refused.json()["code"]
    assert (seen["error"]["detail"], seen["error"]["reason"]) == (refused.json()["detail"], refused.json()["reason"])
    assert seen["error"]["correlation_id"] == accepted.headers["X-Correlation-Id"]
    for _ in range(REPEATS):  # each comes while the workflow of the one before is still ending
        again = await api.acting_as(mira).post(publish, {**asked, "wait": 20})
        assert (again.status_code, again.json().get("code")) == (refused.status_code, refused.json()["code"])


async def publication(api: Api, mira: str) -> tuple[str, dict[str, str]]:
    """The address at which a revision is published to a peer, on a deployment that has no key to sign it with."""
    peer = await api.create("/federation/facilities", {"code": "beta-source", "display_name": "Beta", "kind": "Site"})
    point = {"energy": 25, "optics_config": "5x"}
    target = {"target_id": str(uuid4()), "quantity": "rotation_center", "operating_point": point}
    calibration = await api.create("/calibrations", target)
    source = {"kind": "Asserted", "asserted_by": mira}
    value = {"value": {"center": 1024.72}, "status": "Verified", "source": source}
    revision = await api.create(f"/calibrations/{calibration}/revisions", value)
    own = (await own_facility(api))["facility_id"]
    signing = {"facility_id": own, "audience": "registry.example", "purpose": "Signing", "secret_ref": "file://calibration"}
    credential = await api.create("/federation/credentials", signing)
    permit_id = await api.create("/federation/permits", grant(peer, credential))
    await api.execute(f"/federation/permits/{permit_id}/activate")
    return f"/calibrations/{calibration}/revisions/{revision}/publish", {"peer_facility_id": peer}


async def own_facility(api: Api) -> dict[str, Any]:
    """The facility that the deployment is of, from the log: no projector runs here."""
    events = (await api.get("/events", stream_type="Facility", limit=100)).json()["items"]
    own: dict[str, Any] = next(event["payload"] for event in events if event["payload"].get("code") == "facility")
    return own


async def test_nothing_is_read_under_an_id_that_no_work_has(conduct_service: ConductService) -> None:
    missing = await conduct_service.operator.get(f"/work-items/{uuid4()}")
    assert (missing.status_code, missing.json()["code"], missing.json()["context"]) == (
        404,
        "WorkNotFoundError",
        "operation",
    )


async def test_work_is_read_by_its_submitter_and_by_those_who_may_read_what_it_is_about(
    database_url: str, temporal: EmbeddedTemporal
) -> None:
    enforced = {"authorization_mode": "policy", "bootstrap_principal_id": str(ADMIN)}
    async with open_conduct_service(database_url, temporal.address, service=enforced) as conduct_service:
        admin = conduct_service.api.acting_as(ADMIN)
        colleague, outsider = str(uuid4()), str(uuid4())
        operator = await admin.create("/actors", {"name": "Mira Okafor"})
        for principal, commands in (
            (operator, [*needed_grants("ConductProcedure"), "GetWork", "PreflightProcedure"]),
            (colleague, ["GetWork", "GetProcedure"]),
            (outsider, ["GetWork"]),
        ):
            grant = {"name": "Grant", "conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
            await admin.create(
                "/policies", {**grant, "permitted_commands": commands, "permitted_principal_ids": [principal]}
            )
        mira, procedure_id = conduct_service.api.acting_as(operator), await conduct_service.stack.register_procedure()
        opened = await mira.post(f"/procedures/{procedure_id}/conduct", {"wait": 0, "steps": [setpoint("a", 1)]})
        conduct_id = UUID(opened.json()["conduct_id"])
        mine = await read_work_item(mira, conduct_id)
        assert mine["ids"] == (await read_work_item(conduct_service.api.acting_as(colleague), conduct_id))["ids"]
        hidden = await conduct_service.api.acting_as(outsider).get(f"/work-items/{conduct_id}")
        assert (hidden.status_code, hidden.json()["code"]) == (404, "WorkNotFoundError")
        stranger = await conduct_service.api.acting_as(uuid4()).get(f"/work-items/{conduct_id}")
        assert stranger.status_code == 403


async def test_a_conduct_that_its_submitter_may_not_end_is_not_opened_and_preflight_says_so(
    database_url: str, temporal: EmbeddedTemporal
) -> None:
    enforced = {"authorization_mode": "policy", "bootstrap_principal_id": str(ADMIN)}
    async with open_conduct_service(database_url, temporal.address, service=enforced) as conduct_service:
        admin = conduct_service.api.acting_as(ADMIN)
        operator = await admin.create("/actors", {"name": "Mira Okafor"})
        grant = {"name": "Grant", "conduit_id": SYSTEM_CONDUIT, "permitted_principal_ids": [operator]}
        lacking = ["AbortProcedure", "HoldProcedure"]
        commands = ["PreflightProcedure", *(name for name in needed_grants("ConductProcedure") if name not in lacking)]
        for surface_id in (SYSTEM_HTTP, str(SYSTEM_MCP_STREAMABLE_HTTP)):
            await admin.create("/policies", {**grant, "surface_id": surface_id, "permitted_commands": commands})
        mira, procedure_id = conduct_service.api.acting_as(operator), await conduct_service.stack.register_procedure()
        asked = {"steps": [setpoint("a", 1)]}
        refused = await mira.post(f"/procedures/{procedure_id}/conduct", asked)
        assert refused.status_code == 403
        body = refused.json()
        assert (body["code"], body["reason"], body["facts"]) == ("UnauthorizedError", "grants_missing", {"missing": lacking})
        preflight = (await mira.get(f"/procedures/{procedure_id}/preflight")).json()
        said = {one["command"]: one["refused_by"] for one in preflight["commands"]}
        assert (said["conduct_procedure"], preflight["passed"]) == ("grants_present", False)
        (gate,) = (one for one in preflight["gates"] if "conduct_procedure" in one["asked_by"] and not one["passed"])
        assert (gate["code"], gate["detail"], gate["facts"]) == (body["code"], body["detail"], body["facts"])
        assert await conduct_service.stack.event_types(procedure_id) == ["ProcedureRegistered"]
        async with agent(mira) as client:
            over_mcp = await refusal(client, "conduct_procedure", procedure_id=str(procedure_id), **asked)
        assert (over_mcp["reason"], over_mcp["facts"]) == ("grants_missing", {"missing": lacking})
