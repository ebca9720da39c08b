"""Launches over REST and MCP: one command for everything it takes, answered once, judged as a whole, proposed as a whole."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.domain.target.start_launch import LaunchAccepted
from tests.support.api.approval_service import DECIDING, PROPOSING, ApprovalService, approve, open_approval_service
from tests.support.api.example_reads import cause, history
from tests.support.api.launches import (
    PLAN_LAUNCH,
    RECIPE_LAUNCH,
    launchable_plan,
    launched_types,
    plan_recipe,
    single_recipe,
)
from tests.support.api.mcp_clients import agent, json_of, sentence_of
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.databases import fresh_database
from tests.support.service import Api

DRY_RUN = {"Prefer": "handling=dry-run"}


@pytest.fixture
async def line(api: Api) -> Beamline:
    return await beamline(api)


async def log_end(api: Api) -> int:
    return await api.runtime.store.last_position()


class TestOneCommand:
    async def test_a_plan_is_launched_by_one_request(self, line: Beamline) -> None:
        recipe_id = await plan_recipe(line)
        answer = await line.api.post("/launches", {"plan_id": line.plan_id, "subject_id": line.subject_id})
        assert answer.status_code == 201, answer.text
        launched = answer.json()
        assert set(launched) == LaunchAccepted.model_fields.keys() - {"waiting_question"}
        assert await launched_types(line.api, launched["launch_id"]) == PLAN_LAUNCH
        run = (await line.api.get(f"/runs/{launched['run_id']}")).json()
        assert (run["launch_id"], run["live_conduct_id"]) == (launched["launch_id"], launched["conduct_id"])
        assert run["name"].startswith("Spring block, ")
        (phase,) = launched["procedure_ids"]
        procedure = (await line.api.get(f"/procedures/{phase}")).json()
        assert (procedure["launch_id"], procedure["recipe_id"]) == (launched["launch_id"], recipe_id)
        end = await log_end(line.api)
        listed = (await line.api.get("/runs", launch_id=launched["launch_id"], min_position=end)).json()["items"]
        assert [one["run_id"] for one in listed] == [launched["run_id"]]
        shown = (await line.api.get(f"/launches/{launched['launch_id']}")).json()
        assert (shown["status"], shown["by"], shown["plan_id"]) == ("Begun", "person", line.plan_id)
        (one,) = (await line.api.get("/launches", plan_id=line.plan_id, min_position=end)).json()["items"]
        assert (one["launch_id"], one["run_id"]) == (launched["launch_id"], launched["run_id"])
        work = (await line.api.get(f"/work-items/{launched['work_id']}")).json()
        assert (work["state"], work["ids"]["run_id"]) == ("running", launched["run_id"])

    async def test_a_recipe_is_launched_by_one_request(self, api: Api) -> None:
        recipe_id = await single_recipe(api)
        answer = await api.post("/launches", {"recipe_id": recipe_id})
        assert answer.status_code == 201, answer.text
        assert await launched_types(api, answer.json()["launch_id"]) == RECIPE_LAUNCH
        assert answer.json()["run_id"] is None
        procedure_id = answer.json()["procedure_ids"][0]
        assert (await api.get(f"/procedures/{procedure_id}")).json()["kind"] == "darks"

    async def test_what_a_plan_was_set_up_with_is_launched_by_the_next_request(self, api: Api) -> None:
        mark = uuid4().hex
        steps = [{"kind": "setpoint", "address": f"{mark}:turn", "value": 90.0}]
        devices = [{"name": "Turntable", "address": f"{mark}:turn"}]
        made = await api.post("/plan-setups", {"name": f"Turn {mark}", "devices": devices, "steps": steps})
        assert made.status_code == 201, made.text
        asked = {"recipe_id": made.json()["recipe_id"], "target_asset_ids": made.json()["asset_ids"]}
        answer = await api.post("/launches", asked)
        assert answer.status_code == 201, answer.text
        run = {"name": "Turn", "plan_id": made.json()["plan_id"]}
        gates = (await api.post("/runs/preflight", run)).json()["gates"]
        assert {one["gate"] for one in gates if not one["passed"]} == {"clearance_present", "clearance_active"}

    async def test_the_same_key_twice_answers_the_first(self, api: Api) -> None:
        recipe_id, key = await single_recipe(api), uuid4().hex
        first = await api.post("/launches", {"recipe_id": recipe_id}, Idempotency_Key=key)
        before = await log_end(api)
        second = await api.post("/launches", {"recipe_id": recipe_id}, Idempotency_Key=key)
        assert (first.status_code, second.status_code) == (201, 201)
        assert second.json() == first.json()
        assert second.headers["Idempotency-Replayed"] == "true"
        assert await log_end(api) == before

    async def test_a_launch_ends_in_the_same_append_as_its_run(self, line: Beamline) -> None:
        await plan_recipe(line)
        launched = (await line.api.post("/launches", {"plan_id": line.plan_id})).json()
        await line.api.execute(f"/runs/{launched['run_id']}/stop", {"reason": "enough"})
        shown = (await line.api.get(f"/launches/{launched['launch_id']}")).json()
        assert (shown["status"], shown["outcome"], shown["reason"]) == ("Ended", "Stopped", "enough")
        paths = (f"/launches/{launched['launch_id']}", f"/runs/{launched['run_id']}")
        ended, stopped = [(await history(line.api, path))[-1] for path in paths]
        assert (ended["event_type"], stopped["event_type"]) == ("LaunchEnded", "RunStopped")
        assert ended["transaction_id"] == stopped["transaction_id"]

    async def test_a_caller_who_waits_in_vain_is_told_what_to_wait_for(self, api: Api) -> None:
        answer = await api.post("/launches", {"recipe_id": await single_recipe(api), "wait": 0.1})
        assert (answer.status_code, set(answer.json()) >= {"work_id", "launch_id"}) == (202, True)

    async def test_a_dry_run_tells_all_of_it_and_does_nothing(self, line: Beamline) -> None:
        await plan_recipe(line)
        before = await log_end(line.api)
        told = await line.api.request("POST", "/launches", json={"plan_id": line.plan_id}, headers=DRY_RUN)
        assert told.status_code == 200, told.text
        assert [event["event_type"] for event in told.json()["would"]] == PLAN_LAUNCH
        await line.observe("NotPermitted")
        after = await log_end(line.api)
        refused = await line.api.request("POST", "/launches", json={"plan_id": line.plan_id}, headers=DRY_RUN)
        given = await line.api.post("/launches", {"plan_id": line.plan_id})
        assert cause(refused) == cause(given) == (409, "RunRequiresPermittedEnclosureError", "no_enclosure_permitted")
        assert await log_end(line.api) == after > before

    async def test_a_refusal_of_the_third_part_leaves_nothing(self, line: Beamline) -> None:
        steps: list[Any] = [{"kind": "setpoint", "address": "bl7:energy", "value": 1}]
        asked = [{"recipe_id": await plan_recipe(line), "conduct": {"steps": steps}}]
        before = await log_end(line.api)
        refused = await line.api.post("/launches", {"plan_id": line.plan_id, "phases": asked})
        assert cause(refused) == (409, "RunPhaseMismatchError", "conduct_unfit")
        assert await log_end(line.api) == before

    async def test_of_two_launches_that_want_one_asset_one_wins_and_nothing_is_left_of_the_other(
        self, line: Beamline
    ) -> None:
        asked = {"recipe_id": await single_recipe(line.api), "target_asset_ids": [line.camera_id]}
        answers = await asyncio.gather(*(line.api.post("/launches", asked) for _ in range(6)))
        won = [answer for answer in answers if answer.status_code == 201]
        lost = [cause(answer) for answer in answers if answer.status_code != 201]
        assert len(won) == 1, [answer.text for answer in answers]
        assert set(lost) == {(409, "ProcedureCannotConductError", "asset_in_use")}
        end = await log_end(line.api)
        found = (await line.api.get("/procedures", target_asset_id=line.camera_id, min_position=end)).json()
        assert [one["procedure_id"] for one in found["items"]] == won[0].json()["procedure_ids"]

    async def test_a_choice_of_recipes_is_asked_for_with_their_names(self, line: Beamline) -> None:
        first, second = await plan_recipe(line, "Fast"), await plan_recipe(line, "Slow")
        refused = await line.api.post("/launches", {"plan_id": line.plan_id})
        assert cause(refused) == (409, "LaunchCannotStartError", "recipe_choice_needed")
        assert refused.json()["facts"] == {"candidates": {first: "Fast", second: "Slow"}}
        chosen = await line.api.post("/launches", {"plan_id": line.plan_id, "phases": [{"recipe_id": second}]})
        assert chosen.status_code == 201

    @pytest.mark.parametrize(
        ("asked", "said"),
        [
            ({}, "one of them"),
            ({"plan_id": str(uuid4()), "recipe_id": str(uuid4())}, "one of them"),
            ({"recipe_id": str(uuid4()), "subject_id": str(uuid4())}, "subject_id"),
            ({"recipe_id": str(uuid4()), "arranged": {}}, "arranged"),
        ],
    )
    async def test_what_is_no_launch_is_refused_with_the_field(self, api: Api, asked: dict[str, Any], said: str) -> None:
        refused = await api.post("/launches", asked)
        assert refused.status_code == 422
        assert said in refused.text


class TestOverMcp:
    async def test_it_is_a_tool_of_the_default_toolset_and_says_what_was_started(self, line: Beamline) -> None:
        await plan_recipe(line)
        async with agent(line.api) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert "launch" in tools
            assert "start_run" not in tools
            result = await client.call_tool("launch", {"plan_id": line.plan_id, "name": "Overview"})
            launched = json_of(result)
            assert await launched_types(line.api, launched["launch_id"]) == PLAN_LAUNCH
            assert sentence_of(result).startswith("Launched Overview")


PARTS = ["StartRun", "RegisterProcedureFromRecipe", "ConductRun"]
ISSUED = [
    *("AbortRun", "CompleteRun", "HoldRun", "ConductProcedure", "AbortProcedure", "CompleteProcedure", "HoldProcedure")
]


@pytest.fixture(scope="module")
async def desk(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[ApprovalService]:
    with fresh_database(postgres, template) as url:
        async with open_approval_service(url) as service:
            yield service


@pytest.fixture
async def plan_id(desk: ApprovalService) -> str:
    """A plan in a service that enforces its policies."""
    return await launchable_plan(desk.boss)


async def launcher(desk: ApprovalService, outright: list[str], asking: list[str]) -> Api:
    """A person who may do the ones at once, and the others with the approval of the approver."""
    person = await desk.register(f"Launcher {uuid4()}", *PROPOSING, *outright)
    if asking:
        approval = {"principals": [desk.id_of(desk.approver)]}
        await desk.define_policy("Asking", [desk.id_of(person)], asking, approval=approval)
    return person


class TestPermission:
    async def test_everything_that_is_missing_is_one_refusal(self, desk: ApprovalService, plan_id: str) -> None:
        person = await launcher(desk, ["Launch", "StartRun", "ConductRun", *ISSUED[1:]], [])
        refused = await person.post("/launches", {"plan_id": plan_id})
        assert cause(refused) == (403, "UnauthorizedError", "grants_missing")
        assert refused.json()["facts"] == {"missing": ["AbortRun", "RegisterProcedureFromRecipe"]}

    async def test_the_launch_itself_takes_a_permission_too(self, desk: ApprovalService, plan_id: str) -> None:
        person = await launcher(desk, [*PARTS, *ISSUED], [])
        refused = await person.post("/launches", {"plan_id": plan_id})
        assert cause(refused) == (403, "UnauthorizedError", "command_not_permitted")

    @pytest.mark.parametrize("asking", [["Launch"], ["StartRun"], ["ConductRun"], ["Launch", *PARTS]], ids=" ".join)
    async def test_a_launch_of_which_anything_takes_an_approval_is_one_proposal_for_the_whole(
        self, desk: ApprovalService, plan_id: str, asking: list[str]
    ) -> None:
        await desk.define_policy("Approver", [desk.id_of(desk.approver)], ["Launch", *PARTS])
        outright = [name for name in ("Launch", *PARTS, *ISSUED) if name not in asking]
        person = await launcher(desk, outright, asking)
        proposed = await desk.propose("/launches", {"plan_id": plan_id}, api=person)
        assert [event["event_type"] for event in proposed["would"]] == PLAN_LAUNCH
        end = await log_end(desk.boss)
        assert (await desk.boss.get("/runs", plan_id=plan_id, min_position=end)).json()["items"] == []
        approved = await approve(desk.approver, proposed)
        assert (approved.status_code, approved.json()["status"]) == (200, "CarriedOut"), approved.text
        answer = approved.json()["answer"]
        assert await launched_types(desk.boss, answer["launch_id"]) == PLAN_LAUNCH
        events = await history(desk.boss, f"/runs/{answer['run_id']}")
        assert {event["approved_by"] for event in events} == {desk.id_of(desk.approver)}
        assert {event["principal_id"] for event in events} == {desk.id_of(person)}

    async def test_the_launch_of_a_recipe_on_an_asset_is_proposed_and_carried_out(self, desk: ApprovalService) -> None:
        recipe_id = await single_recipe(desk.boss)
        asset = {"name": f"Stage {uuid4()}", "tier": "Unit", "facility_code": "facility"}
        asset_id = await desk.boss.create("/assets", asset)
        await desk.define_policy("Approver", [desk.id_of(desk.approver)], ["Launch", *PARTS, "ConductProcedure"])
        person = await launcher(desk, ["RegisterProcedureFromRecipe", "ConductProcedure", *ISSUED], ["Launch"])
        asked = {"recipe_id": recipe_id, "target_asset_ids": [asset_id]}
        proposed = await desk.propose("/launches", asked, api=person)
        assert [event["event_type"] for event in proposed["would"]] == RECIPE_LAUNCH
        approved = await approve(desk.approver, proposed)
        assert (approved.status_code, approved.json()["status"]) == (200, "CarriedOut"), approved.text
        assert await launched_types(desk.boss, approved.json()["answer"]["launch_id"]) == RECIPE_LAUNCH

    async def test_an_approval_of_a_launch_is_not_one_of_what_its_conduct_does_later(
        self, desk: ApprovalService, plan_id: str
    ) -> None:
        person = await launcher(desk, ["Launch", *PARTS, *ISSUED[1:]], ["AbortRun"])
        refused = await person.post("/launches", {"plan_id": plan_id})
        assert cause(refused) == (403, "UnauthorizedError", "grants_missing")
        assert refused.json()["facts"] == {"missing": ["AbortRun"]}

    async def test_only_who_holds_every_part_at_once_approves(self, desk: ApprovalService, plan_id: str) -> None:
        person = await launcher(desk, [*PARTS, *ISSUED], ["Launch"])
        other = await desk.register(f"Half {uuid4()}", *DECIDING, "Launch", "StartRun")
        approval = {"principals": [desk.id_of(other)]}
        await desk.define_policy("Other", [desk.id_of(person)], ["Launch"], approval=approval)
        proposed = await desk.propose("/launches", {"plan_id": plan_id}, api=person)
        refused = await approve(other, proposed)
        assert cause(refused) == (403, "ApproverLacksCommandError", "command_not_permitted")

    async def test_whoever_approves_is_named_for_every_part_that_asks(self, desk: ApprovalService, plan_id: str) -> None:
        person = await launcher(desk, ["RegisterProcedureFromRecipe", "ConductRun", *ISSUED], ["Launch"])
        second = {"principals": [desk.id_of(desk.second)]}
        await desk.define_policy("Runs", [desk.id_of(person)], ["StartRun"], approval=second)
        await desk.define_policy("Both", [desk.id_of(desk.approver)], ["Launch", *PARTS])
        proposed = await desk.propose("/launches", {"plan_id": plan_id}, api=person)
        refused = await approve(desk.approver, proposed)
        assert cause(refused) == (403, "NotAnApproverError", "not_named")
