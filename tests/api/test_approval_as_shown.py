"""An approval is of what the approver saw: a proposer who changes what the command rests on gets nothing carried out,
neither between the look and the approval nor between the approval and its effect."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID, uuid4

import pytest
from mcp_types import ElicitResult

from baton.application.commands import Commands, PreparedWrite
from baton.application.proposals import Proposals
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.domain.procedure.procedure import Procedure
from baton.domain.run.run import Run
from baton.domain.start.registration import RegisterProcedureFromRecipe
from baton.domain.start.run_start import StartRun
from tests.support.api.approval_service import ApprovalService, approve, open_approval_service
from tests.support.api.example_reads import cause
from tests.support.api.mcp_clients import MCP, agent, json_of, refusal
from tests.support.api.rest_beamline import DEFAULTS, PARAMETERS, create_clearance, create_plan
from tests.support.console.page_source import PageSource
from tests.support.databases import fresh_database
from tests.support.service import Api
from tests.support.waiting import until
from tests.support.workflows.step_json import check, setpoint

STARTING = ["StartRun", "GetRun", "GetPlan"]
CHANGED = (409, "ProposalChangedError", "changed_since")


@dataclass(frozen=True)
class StartProposal:
    """A start that was proposed, on a plan that its proposer may change."""

    service: ApprovalService
    proposer: Api
    plan_id: str
    supply_id: str
    proposal_id: str

    @property
    def approver(self) -> Api:
        return self.service.approver

    @property
    def path(self) -> str:
        return f"/proposals/{self.proposal_id}"

    async def look(self) -> dict[str, Any]:
        """Return what the approver is shown."""
        response = await self.approver.get(self.path)
        assert response.status_code == 200, response.text
        return dict(response.json())

    async def change(self, exposure: float = 999) -> None:
        """Change the plan's default, as the proposer may."""
        body = {"default_parameters_patch": {"exposure": exposure}}
        path = f"/plans/{self.plan_id}/default-parameters"
        response = await self.proposer.request("PATCH", path, json=body)
        assert response.status_code == 204, response.text

    async def approve(self, digest: str, **fields: Any) -> Any:
        return await self.approver.post(f"{self.path}/approve", {"digest": digest, **fields})

    async def runs(self) -> list[Any]:
        """Return what runs of the plan were started with."""
        query = "SELECT payload -> 'effective_parameters' FROM events WHERE stream_type = %s AND payload ->> 'plan_id' = %s"
        async with self.service.boss.runtime.pool.connection() as connection:
            rows = await connection.execute(query, [Run.__name__, self.plan_id])
            return [row[0]["exposure"] for row in await rows.fetchall()]

    async def is_open(self) -> bool:
        shown = await self.look()
        return shown["status"] == "Open" and shown["approved_by"] is None and bool(shown["may_approve"])


@pytest.fixture(scope="module")
async def service(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[ApprovalService]:
    """A service where nothing is carried out unless the test says so."""
    with fresh_database(postgres, template) as url:
        async with open_approval_service(url, settles=False) as service:
            yield service


@pytest.fixture
async def start_proposal(service: ApprovalService) -> StartProposal:
    boss = service.boss
    kind = f"beam_{uuid4().hex[:8]}"
    beam = await boss.create("/supplies", {"kind": kind, "name": f"Beam {uuid4()}", "facility_code": "facility"})
    await boss.execute(f"/supplies/{beam}/mark-available", {"reason": "shutter open"})
    unit = await boss.create("/assets", {"name": f"Unit {uuid4()}", "tier": "Unit", "facility_code": "facility"})
    await boss.execute(f"/assets/{unit}/activate")
    await create_clearance(boss, unit)
    plan = await create_plan(boss, unit, supplies=(kind,), parameters=PARAMETERS, defaults=DEFAULTS)
    proposer = await service.register("Hasty", "UpdatePlanDefaultParameters", "GetProposal")
    approver = service.id_of(service.approver)
    for surface in ({}, {"surface_id": MCP}):
        await service.define_policy("Starts", [approver], STARTING, **surface)
    approval = {"principals": [approver]}
    await service.define_policy("Starts", [service.id_of(proposer)], ["StartRun"], approval=approval)
    answer = await service.propose("/runs", {"name": "Load step", "plan_id": plan.plan_id}, proposer)
    return StartProposal(service, proposer, plan.plan_id, beam, answer["proposal_id"])


def shown_exposure(view: dict[str, Any]) -> Any:
    (started,) = [one for one in view["rehearsal"]["would"] if one["event_type"] == "RunStarted"]
    return started["payload"]["effective_parameters"]["exposure"]


async def test_a_proposed_conduct_has_a_foresight(service: ApprovalService) -> None:
    boss, approver = service.boss, service.id_of(service.approver)
    contract = {"name": "Turn", "required_affordances": [], "executor_shapes": ["PROCEDURE"]}
    capability = await boss.create("/capabilities", {"code": f"baton.capability.t_{uuid4().hex[:8]}", **contract})
    steps = [setpoint("bl7:y", 1.0), setpoint("bl7:y", 4.0), check("bl7:y", 2.0)]
    recipe = await boss.create("/recipes", {"name": "Turn", "capability_id": capability, "steps": steps})
    task = {"name": "Turn", "kind": "turn", "target_asset_ids": []}
    procedure_id = await boss.create(f"/recipes/{recipe}/procedures", task)
    conducting = ["AbortProcedure", "CompleteProcedure", "HoldProcedure"]
    proposer = await service.register("Eager", "GetProposal", *conducting)
    await service.define_policy("Conducts", [approver], ["ConductProcedure", *conducting])
    approval = {"principals": [approver]}
    await service.define_policy("Conducts", [service.id_of(proposer)], ["ConductProcedure"], approval=approval)
    answer = await service.propose(f"/procedures/{procedure_id}/conduct", {"wait": 0}, proposer)
    shown = (await service.approver.get(f"/proposals/{answer['proposal_id']}")).json()
    assert shown["rehearsal"]["refusal"] is None
    foresight = shown["foresight"]
    assert (foresight["verdict"], foresight["farthest"]) == ("stops_at", {"address": "bl7:y", "distance": 3.0, "unit": None})
    assert "It stops at step 2 of Turn" in foresight["message"]
    zone = await service.propose()
    assert (await service.approver.get(f"/proposals/{zone['proposal_id']}")).json()["foresight"] is None


class TestChangedAfterTheLook:
    async def test_over_rest(self, start_proposal: StartProposal) -> None:
        seen = await start_proposal.look()
        assert shown_exposure(seen) == 0.1
        assert (await start_proposal.look())["digest"] == seen["digest"], "a look changes nothing, nor does time"
        await start_proposal.change()
        async with start_proposal.service.settle_meanwhile():
            refused = await start_proposal.approve(seen["digest"])
            assert cause(refused) == CHANGED
            place = "RunStarted.effective_parameters.exposure"
            assert {"place": place, "was": 0.1, "now": 999} in refused.json()["facts"]["differs"]
            assert f"the version of Plan {start_proposal.plan_id}" in refused.text
            assert await start_proposal.is_open()
            assert await start_proposal.runs() == []
            again = await start_proposal.look()
            assert shown_exposure(again) == 999
            approved = await start_proposal.approve(again["digest"])
        assert (approved.status_code, approved.json()["status"]) == (200, "CarriedOut"), approved.text
        assert await start_proposal.runs() == [999]

    async def test_over_mcp(self, start_proposal: StartProposal) -> None:
        seen = await start_proposal.look()
        await start_proposal.change()
        asked: list[str] = []

        async def say_yes(context: Any, params: Any) -> ElicitResult:
            asked.append(params.message)
            return ElicitResult(action="accept", content={"approve": True})

        async with start_proposal.service.settle_meanwhile():
            for ask in (None, say_yes):
                async with agent(start_proposal.approver, ask=ask) as client:
                    arguments = {"proposal_id": start_proposal.proposal_id, "digest": seen["digest"]}
                    refused = json_of(await client.call_tool("approve_proposal", arguments))
                assert (refused["code"], refused["reason"]) == ("ProposalChangedError", "changed_since")
        assert asked == [], "nobody is asked about what would be refused anyhow"
        assert await start_proposal.is_open()
        assert await start_proposal.runs() == []

    async def test_on_the_console(self, start_proposal: StartProposal) -> None:
        page = (await start_proposal.approver.get(f"/console/proposals/{start_proposal.proposal_id}")).text
        found = re.search(r'href="(/console/do/approve_proposal[^"]*)"', page)
        assert found is not None
        shown = dict(parse_qsl(urlsplit(unescape(found[1])).query))
        await start_proposal.change()
        form = PageSource.of((await start_proposal.approver.get("/console/do/approve_proposal", **shown)).text)
        sent = {**shown, "form_token": form.value("form_token")}
        assert form.value("digest") == sent["digest"], "the form sends what the page showed"
        cookies = "; ".join(f"{name}={value}" for name, value in start_proposal.approver.client.cookies.items())
        async with start_proposal.service.settle_meanwhile():
            path = "/console/do/approve_proposal"
            refused = await start_proposal.approver.request("POST", path, data=sent, headers={"cookie": cookies})
        assert refused.status_code == 409, refused.text
        assert "/refusals/ProposalChangedError" in refused.text
        assert "exposure was 0.1 and is 999" in refused.text
        assert await start_proposal.is_open()
        assert await start_proposal.runs() == []

    async def test_the_digest_is_needed_everywhere(self, start_proposal: StartProposal) -> None:
        missing = await start_proposal.approver.post(f"{start_proposal.path}/approve", {})
        assert cause(missing)[:2] == (422, "RequestValidationError")
        assert cause(await start_proposal.approve("not a digest"))[0] == 422
        async with agent(start_proposal.approver) as client:
            refused = await refusal(client, "approve_proposal", proposal_id=start_proposal.proposal_id)
        assert refused["code"] == "RequestValidationError"
        path, about = "/console/do/approve_proposal", start_proposal.proposal_id
        form = (await start_proposal.approver.get(path, proposal_id=about)).text
        assert "open the proposal, and approve it there" in form
        assert await start_proposal.is_open()


class TestChangedAfterTheApproval:
    async def test_nothing_is_carried_out_and_it_can_be_approved_again(self, start_proposal: StartProposal) -> None:
        digest = (await start_proposal.look())["digest"]
        waiting = asyncio.create_task(start_proposal.approve(digest))

        async def is_approved() -> bool:
            return (await start_proposal.look())["approved_by"] is not None

        await until(is_approved)
        await start_proposal.change()
        async with start_proposal.service.settle_meanwhile():
            refused = await waiting
            assert cause(refused) == CHANGED
            assert "exposure was 0.1 and is 999" in refused.json()["detail"]
            assert await start_proposal.is_open()
            assert await start_proposal.runs() == []
            shown = await start_proposal.look()
            assert shown["reason"] is None
            assert {"place": "RunStarted.effective_parameters.exposure", "was": 0.1, "now": 999} in shown["differs"]
            page = (await start_proposal.approver.get(f"/console/proposals/{start_proposal.proposal_id}")).text
            assert "had changed before it was carried out" in page
            approved = await start_proposal.approve(shown["digest"])
        assert approved.json()["status"] == "CarriedOut", approved.text
        assert await start_proposal.runs() == [999]
        history = (await start_proposal.approver.get(f"{start_proposal.path}/history")).json()["items"]
        known = ["ProposalOpened", "ProposalApproved", "ProposalChanged", "ProposalApproved", "ProposalCarriedOut"]
        assert [one["event_type"] for one in history] == known

    async def test_a_change_while_it_is_written_is_found_by_the_append(self, start_proposal: StartProposal) -> None:
        assert StartRun.operation.gated
        approved = await start_proposal.approve((await start_proposal.look())["digest"], wait=0)
        assert approved.status_code == 202, approved.text
        service = start_proposal.service
        left = await settle_intruded(service, start_proposal.proposal_id, start_proposal.change)
        assert left is not None, "it is open, until its time is over"
        assert await start_proposal.runs() == []
        assert await start_proposal.is_open()

    async def test_so_is_one_under_a_command_that_no_gate_judges(self, service: ApprovalService) -> None:
        assert not RegisterProcedureFromRecipe.operation.gated
        boss, approver, name = service.boss, service.approver, f"Darks {uuid4()}"
        shapes = {"required_affordances": [], "executor_shapes": ["PROCEDURE"]}
        task = await boss.create("/capabilities", {"code": f"baton.capability.{uuid4().hex}", "name": "Darks", **shapes})
        recipe_id = await boss.create("/recipes", {"name": "darks", "capability_id": task, "steps": [setpoint("a", 1)]})
        proposer = await service.register("Swift", "VersionRecipe", "GetProposal")
        await service.define_policy("Registers", [service.id_of(approver)], ["RegisterProcedureFromRecipe", "GetRecipe"])
        approval = {"principals": [service.id_of(approver)]}
        people = [service.id_of(proposer)]
        await service.define_policy("Registers", people, ["RegisterProcedureFromRecipe"], approval=approval)
        asked = {"name": name, "kind": "darks"}
        proposal_id = (await service.propose(f"/recipes/{recipe_id}/procedures", asked, proposer))["proposal_id"]
        approved = await approve(approver, {"proposal_id": proposal_id}, wait=0)
        assert approved.status_code == 202, approved.text
        tags = iter(range(100))

        async def version_recipe() -> None:
            body = {"version_tag": f"evil {next(tags)}", "steps": [setpoint("a", 666)]}
            assert (await proposer.post(f"/recipes/{recipe_id}/version", body)).status_code == 204

        assert await settle_intruded(service, proposal_id, version_recipe) is not None
        assert next(tags) == 1, "the change was found when it was written, and then before"
        assert await registered_procedures(boss, name) == []
        shown = (await approver.get(f"/proposals/{proposal_id}")).json()
        assert (shown["status"], shown["approved_by"]) == ("Open", None)
        assert f"the version of Recipe {recipe_id}" in [one["place"] for one in shown["differs"]]
        again = await approve(approver, {"proposal_id": proposal_id}, wait=0)
        assert again.status_code == 202, again.text
        await boss.runtime.proposals.settle(UUID(proposal_id))
        assert len(await registered_procedures(boss, name)) == 1

    async def test_what_is_refused_when_it_is_given_stays_refused(self, start_proposal: StartProposal) -> None:
        approved = await start_proposal.approve((await start_proposal.look())["digest"], wait=0)
        assert approved.status_code == 202, approved.text
        boss = start_proposal.service.boss
        await boss.execute(f"/supplies/{start_proposal.supply_id}/mark-unavailable", {"reason": "beam lost"})
        async with start_proposal.service.settle_meanwhile():
            await until(lambda: is_refused(start_proposal))
        assert await start_proposal.runs() == []


async def settle_intruded(
    service: ApprovalService, proposal_id: str, intrude: Callable[[], Awaitable[None]]
) -> float | None:
    """Carry out what was approved while somebody forestalls its writes: between the comparison and the append."""

    class IntrudedCommands(Commands):
        async def _decide_approved(self, *given: Any) -> PreparedWrite:
            decided = await super()._decide_approved(*given)
            await intrude()
            return decided

    runtime = service.boss.runtime
    commands = IntrudedCommands(**vars(runtime.commands))
    return await Proposals(commands, replace(runtime.service, commands=commands)).settle(UUID(proposal_id))


async def registered_procedures(api: Api, name: str) -> list[UUID]:
    """Return the procedures with this name on the record."""
    query = "SELECT stream_id FROM events WHERE stream_type = %s AND payload ->> 'name' = %s"
    async with api.runtime.pool.connection() as connection:
        rows = await connection.execute(query, [Procedure.__name__, name])
        return [row[0] for row in await rows.fetchall()]


async def is_refused(start_proposal: StartProposal) -> bool:
    return bool((await start_proposal.look())["status"] == "Refused")
