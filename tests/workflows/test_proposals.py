"""Proposals on a real engine: what was approved is carried out once, no matter who dies in between, and by no other way."""

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from baton.application.agents.agent_client import AgentClient
from baton.application.caller import Caller
from baton.application.ports import CommandResult
from baton.application.proposals import Proposals
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.cli.worker import react_in_background, reconcile_in_background
from baton.domain.access.actor import Actor, RegisterActor
from baton.domain.agent.agent import DefineAgent, VersionAgent
from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.endings import HoldProcedure
from baton.domain.conduct.work_items import GetWork
from baton.domain.kernel import NIL
from baton.domain.procedure.procedure import Procedure
from baton.domain.shared.refusals import ConcurrencyError, UnauthorizedError
from baton.domain.trust.authorization import ApprovalRequiredError
from baton.domain.trust.proposal import Proposal, ProposalStatus, RejectProposal, WithdrawProposal
from baton.domain.views.hold_everything import HoldEverything
from baton.infrastructure.postgres.store import Pruner
from baton.infrastructure.wall_clock import new_id
from tests.support.domain.world import expect_refusal
from tests.support.waiting import until
from tests.support.workflows import proposal_cases
from tests.support.workflows.conduct_stack import ConductStack
from tests.support.workflows.enforcing_stack import open_enforcing_stack
from tests.support.workflows.proposal_cases import DyingProposals, ProcessDied, ProposalCase, zone
from tests.support.workflows.schedule_cases import load_state, wait_for_procedure
from tests.support.workflows.step_json import check, setpoint

ENDING = ("CompleteProcedure", "HoldProcedure", "AbortProcedure")


@pytest.fixture(scope="module")
async def stack(database: str, temporal: EmbeddedTemporal) -> AsyncIterator[ConductStack]:
    async with open_enforcing_stack(database, temporal.address) as stack:
        yield stack


@pytest.fixture
async def case(stack: ConductStack) -> ProposalCase:
    """Somebody who defines zones with approval."""
    return await proposal_cases.case(stack)


@pytest.fixture
async def without_worker(stack: ConductStack) -> AsyncIterator[None]:
    """No worker, until the test starts one."""
    await stack.stop_worker()
    yield
    await stack.stop_worker()
    await stack.start_worker()


async def finished_history(stack: ConductStack, proposal_id: UUID) -> str:
    """Return all that the engine keeps of a proposal's latest workflow, once it has ended, with its payloads decoded."""
    handle = stack.client.get_workflow_handle(f"proposal:{proposal_id}")
    await handle.result()
    text = (await handle.fetch_history()).to_json()
    told = [base64.b64decode(data).decode() for data in re.findall(r'"data":\s*"([^"]*)"', text)]
    return text + json.dumps(told) + str(await (await handle.describe()).memo())


class TestFromApprovalToEffect:
    async def test_the_worker_carries_out_what_was_approved(self, case: ProposalCase) -> None:
        command = zone()
        proposal_id = await case.propose(command)
        assert await case.zones(command.name) == []
        approved = await case.approve(proposal_id)
        assert (approved.status, (approved.body or {})["status"]) == (200, "CarriedOut"), approved
        (event,) = await case.zones(command.name)
        assert (event.principal_id, event.approved_by) == (case.proposer.principal_id, case.approver.principal_id)
        assert (event.causation_id, str(event.stream_id)) == (proposal_id, (approved.body or {})["answer"]["zone_id"])
        await finished_history(case.stack, proposal_id)

    async def test_one_that_nobody_approves_expires_by_itself(self, stack: ConductStack) -> None:
        case = await proposal_cases.case(stack, expires_after=6)
        command = zone()
        async with react_in_background(stack.runtime):
            proposal_id = await case.propose(command)
            await case.wait_for(proposal_id, "Expired")
        assert "timerFired" in (await finished_history(stack, proposal_id))
        with expect_refusal("ProposalCannotApproveError", "expired"):
            await case.approve(proposal_id)
        assert await case.zones(command.name) == []

    @pytest.mark.parametrize("how", ["reject", "withdraw"])
    async def test_what_is_closed_is_not_waited_for(self, case: ProposalCase, how: str) -> None:
        async with react_in_background(case.stack.runtime):
            proposal_id = await case.propose(zone())
            await until(lambda: is_waiting(case.stack, proposal_id))
            if how == "reject":
                await case.give(RejectProposal(reason="not tonight"), case.approver, proposal_id)
            else:
                await case.permit(case.proposer, "WithdrawProposal")
                await case.give(WithdrawProposal(reason="a mistake"), case.proposer, proposal_id)
            await finished_history(case.stack, proposal_id)

    @pytest.mark.usefixtures("without_worker")
    async def test_an_approval_without_a_worker_is_answered_and_carried_out_later(self, case: ProposalCase) -> None:
        command = zone()
        proposal_id = await case.propose(command)
        approved = await case.approve(proposal_id, wait=1)
        assert (approved.status, approved.body) == (202, {"proposal_id": str(proposal_id), "work_id": str(proposal_id)})
        state = await case.state(proposal_id)
        assert (state.status, state.approved_by) == (ProposalStatus.OPEN, case.approver.principal_id)
        with expect_refusal("ProposalCannotApproveError", "approved"):
            await case.approve(proposal_id)
        assert await case.zones(command.name) == []
        await case.stack.start_worker()
        await case.wait_for(proposal_id, "CarriedOut")
        assert len(await case.zones(command.name)) == 1

    @pytest.mark.usefixtures("without_worker")
    async def test_what_the_engine_never_heard_of_is_found_on_the_record(self, case: ProposalCase) -> None:
        command = zone()
        proposal_id = await case.propose(command)
        await case.approve(proposal_id, wait=0)
        await case.stack.client.get_workflow_handle(f"proposal:{proposal_id}").terminate()
        await case.stack.start_worker()
        async with reconcile_in_background(case.stack.runtime):
            await case.wait_for(proposal_id, "CarriedOut")
        assert len(await case.zones(command.name)) == 1


async def is_waiting(stack: ConductStack, proposal_id: UUID) -> bool:
    """Tell whether the workflow of a proposal waits for somebody to decide."""
    try:
        history = await stack.client.get_workflow_handle(f"proposal:{proposal_id}").fetch_history()
    except Exception:  # it is not started yet
        return False
    return any(event.HasField("timer_started_event_attributes") for event in history.events)


class TestOnce:
    @pytest.mark.usefixtures("without_worker")
    async def test_what_was_done_and_not_recorded_is_recorded_and_not_done_again(self, case: ProposalCase) -> None:
        command, runtime = zone(), case.stack.runtime
        proposal_id = await case.propose(command)
        await case.approve(proposal_id, wait=0)
        for _ in range(2):
            with pytest.raises(ProcessDied):
                await DyingProposals(runtime.commands, runtime.service).settle(proposal_id)
        assert len(await case.zones(command.name)) == 1
        assert (await case.state(proposal_id)).status is ProposalStatus.OPEN
        await case.stack.start_worker()
        await case.wait_for(proposal_id, "CarriedOut")
        (event,) = await case.zones(command.name)
        found = await runtime.service.ask(GetWork(work_id=proposal_id), case.proposer)
        assert found.answer == {"zone_id": str(event.stream_id)}

    @pytest.mark.usefixtures("without_worker")
    async def test_an_outcome_is_not_forgotten_before_it_is_recorded(self, case: ProposalCase) -> None:
        """Answers under the keys of callers are deleted after a day; a worker may be away for longer."""
        command, runtime = zone(), case.stack.runtime
        proposal_id = await case.propose(command, key=f"mine-{new_id()}")
        await case.approve(proposal_id, wait=0)
        with pytest.raises(ProcessDied):
            await DyingProposals(runtime.commands, runtime.service).settle(proposal_id)
        async with runtime.pool.connection() as connection:
            await connection.execute("UPDATE idempotency SET created_at = created_at - interval '40 days'")
        assert await Pruner(runtime.pool, timedelta(hours=24)).prune() >= 1
        await case.stack.start_worker()
        await case.wait_for(proposal_id, "CarriedOut")
        assert len(await case.zones(command.name)) == 1

    @pytest.mark.usefixtures("without_worker")
    async def test_as_many_as_like_may_settle_it(self, case: ProposalCase) -> None:
        command, proposals = zone(), case.stack.runtime.proposals
        proposal_id = await case.propose(command)
        await case.approve(proposal_id, wait=0)
        await asyncio.gather(*(proposals.settle(proposal_id) for _ in range(6)), return_exceptions=True)
        await proposals.settle(proposal_id)
        assert (await case.state(proposal_id)).status is ProposalStatus.CARRIED_OUT, "no loser of the race records a refusal"
        assert len(await case.zones(command.name)) == 1

    @pytest.mark.usefixtures("without_worker")
    async def test_a_lost_race_is_no_refusal(self, case: ProposalCase) -> None:
        class BusyService:
            async def execute(self, *given: Any, **named: Any) -> CommandResult:
                raise ConcurrencyError("Somebody else was first.")

        command, commands = zone(), case.stack.runtime.commands
        proposal_id = await case.propose(command)
        await case.approve(proposal_id, wait=0)
        busy: Any = BusyService()
        with pytest.raises(ConcurrencyError):
            await Proposals(commands, busy).settle(proposal_id)
        assert (await case.state(proposal_id)).status is ProposalStatus.OPEN
        await case.stack.runtime.proposals.settle(proposal_id)
        assert len(await case.zones(command.name)) == 1


class TestWhoseApproval:
    @pytest.mark.usefixtures("without_worker")
    async def test_an_approval_counts_for_the_policies_that_name_the_approver(self, case: ProposalCase) -> None:
        """Another policy asks for the approval of another one; what this one approved is not carried out by that."""
        second = await proposal_cases.register(case.stack, "Second approver", *proposal_cases.PERMITTED, "DefineZone")
        await case.permit(case.proposer, "DefineZone", approval={"principals": [second.principal_id]})
        command = zone()
        proposal_id = await case.propose(command)
        await case.approve(proposal_id, wait=0)
        await case.revoke()
        before = await open_proposals(case.stack)
        await case.stack.runtime.proposals.settle(proposal_id)
        state = await case.state(proposal_id)
        assert (state.status, state.code) == (ProposalStatus.REFUSED, "ApprovalRequiredError")
        assert await case.zones(command.name) == []
        assert await open_proposals(case.stack) == before - {proposal_id}, "and it is not proposed anew"
        refused = await case.stack.runtime.service.ask(GetWork(work_id=proposal_id), case.proposer)
        assert (refused.state, refused.error.code) == ("failed", "ApprovalRequiredError")

    async def test_one_approval_of_several_is_enough_while_its_policy_permits(self, case: ProposalCase) -> None:
        second = await proposal_cases.register(case.stack, "Second approver", *proposal_cases.PERMITTED, "DefineZone")
        await case.permit(case.proposer, "DefineZone", approval={"principals": [second.principal_id]})
        command = zone()
        assert ((await case.approve(await case.propose(command))).body or {})["status"] == "CarriedOut"
        assert len(await case.zones(command.name)) == 1


async def open_proposals(stack: ConductStack) -> set[UUID]:
    async with stack.runtime.store.session() as session:
        return set(await session.all_members("proposal-open"))


class TestLongWork:
    async def test_a_conduct_that_was_approved_runs_as_its_proposer(self, stack: ConductStack) -> None:
        case = await proposal_cases.case(stack, "ConductProcedure", outright=ENDING)
        procedure_id = await stack.register_procedure()
        proposal_id = await case.propose(ConductProcedure(steps=[setpoint("a", 5)], wait=30), procedure_id)
        approved = await case.approve(proposal_id)
        assert (approved.body or {})["status"] == "CarriedOut", approved
        assert (approved.body or {})["answer"]["procedure_id"] == str(procedure_id)
        await wait_for_procedure(stack, procedure_id, "Completed")
        async with stack.runtime.store.session() as session:
            rows = await session.history(Procedure.__name__, procedure_id, 1, 100)
        by = {(row.principal_id, row.approved_by) for row in rows}
        proposer, approver = case.proposer.principal_id, case.approver.principal_id
        assert by == {(proposer, approver), (proposer, None)}, "the opening was approved, and its end was permitted"
        assert (rows[-1].event_type, rows[-1].approved_by) == ("ProcedureCompleted", None)

    async def test_a_conduct_is_not_opened_by_who_may_end_it_only_with_approval(self, stack: ConductStack) -> None:
        case = await proposal_cases.case(stack, "CompleteProcedure", outright=("ConductProcedure", *ENDING[1:]))
        procedure_id = await stack.register_procedure()
        with expect_refusal(UnauthorizedError, "grants_missing") as caught:
            await case.give(ConductProcedure(steps=[setpoint("a", 1)]), case.proposer, procedure_id)
        assert caught.value.facts == {"missing": ["CompleteProcedure"]}
        assert (await load_state(stack, Procedure, procedure_id)).status == "Defined"

    async def test_nor_does_the_approval_of_a_conduct_lend_its_end(self, stack: ConductStack) -> None:
        case = await proposal_cases.case(stack, "ConductProcedure", "CompleteProcedure", outright=ENDING[1:])
        procedure_id = await stack.register_procedure()
        with expect_refusal(UnauthorizedError, "grants_missing"):
            await case.propose(ConductProcedure(steps=[setpoint("a", 1)]), procedure_id)


class TestNoOtherWay:
    async def test_holding_everything_lends_no_approval_of_a_hold(self, stack: ConductStack) -> None:
        """Holding everything holds each conduct as the proposer, who may hold none without an approval of its own."""
        await stack.plant.write("gate", 0)
        case = await proposal_cases.case(stack, "HoldEverything", "HoldProcedure")
        conducting = await proposal_cases.register(stack, "Operator", "ConductProcedure", *ENDING)
        procedure_id = await stack.register_procedure()
        steps = [setpoint("a", 1), check("gate", 1, timeout=120)]
        await case.give(ConductProcedure(steps=steps, wait=0), conducting, procedure_id)
        approved = await case.approve(await case.propose(HoldEverything(reason="smoke")))
        answer = (approved.body or {})["answer"]
        assert [(one["id"], one["code"]) for one in answer["refused"]] == [(str(procedure_id), "ApprovalRequiredError")]
        assert answer["held"] == []
        held = await case.approve(await case.propose(HoldProcedure(reason="smoke"), procedure_id))
        assert (held.body or {})["status"] == "CarriedOut", held
        await stack.plant.write("gate", 1)
        await wait_for_procedure(stack, procedure_id, "Held")

    async def test_an_agent_in_process_is_refused_and_proposes_nothing(self, stack: ConductStack) -> None:
        case = await proposal_cases.case(stack)
        model = {"provider": "deterministic", "model": "own"}
        defined = await stack.do(DefineAgent(kind="Other", name="Steerer", version="1", model_ref=model))
        agent_id = UUID((defined.body or {})["agent_id"])
        await stack.do(VersionAgent(), agent_id)
        agent = Caller(agent_id, NIL, new_id())
        await case.permit(agent, "DefineZone", surface_id=NIL, approval={"principals": [case.approver.principal_id]})
        before = await open_proposals(stack)
        for give in (case.give, AgentClient(stack.runtime.commands).execute):
            with expect_refusal(ApprovalRequiredError, "approval_required"):
                await give(zone(), agent)
        assert await open_proposals(stack) == before

    async def test_a_command_given_beside_the_service_is_refused(self, case: ProposalCase) -> None:
        with expect_refusal(ApprovalRequiredError, "approval_required"):
            await case.stack.runtime.commands.execute(zone(), case.proposer)


class TestWhatTheEngineKnows:
    async def test_histories_hold_ids_only(self, stack: ConductStack) -> None:
        case = await proposal_cases.case(stack, "RegisterActor")
        async with react_in_background(stack.runtime):
            proposal_id = await case.propose(RegisterActor(name="Mira Okafor", email="mira@secret.example.org"))
            await until(lambda: is_waiting(stack, proposal_id))
            await case.approve(proposal_id)
        told = await finished_history(stack, proposal_id)
        assert str(proposal_id) in told
        for text in ("Mira", "secret", "RegisterActor", str(case.proposer.principal_id), str(case.approver.principal_id)):
            assert text not in told

    @pytest.mark.usefixtures("without_worker")
    async def test_a_request_that_a_release_cannot_read_is_refused_and_not_quoted(self, stack: ConductStack) -> None:
        case = await proposal_cases.case(stack, "RegisterActor")
        proposal_id = await case.propose(RegisterActor(name="Mira Okafor", email="mira@secret.example.org"))
        request = json.dumps({"name": 7, "email": "mira@secret.example.org"})
        async with stack.runtime.pool.connection() as connection:
            query = "UPDATE proposal_contents SET request = %s WHERE proposal_id = %s"
            await connection.execute(query, [request, proposal_id])
        await case.approve(proposal_id, wait=0)
        await stack.start_worker()
        refused = await case.wait_for(proposal_id, "Refused")
        assert refused.code == "ProposalNotCarriedOutError"
        assert "secret" not in await finished_history(stack, proposal_id)
        async with stack.runtime.store.session() as session:
            rows = await session.history(Proposal.__name__, proposal_id, 0, 100)
        assert "secret" not in str(rows)
        assert await case.events_about(Actor, "Mira") == []
