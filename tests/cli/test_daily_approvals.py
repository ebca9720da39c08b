"""Approval at the command line: what is proposed is no failure, and others approve, reject and withdraw it by its id."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from uuid import UUID, uuid4

import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.client import AsyncBaton
from baton.client.operations import ProposalOutcome
from baton.client.refusals import ClientError
from baton.infrastructure.background import Supervisor
from baton.infrastructure.postgres.projections import Projector
from tests.support.api.group_service import GroupService, Person, open_group_service
from tests.support.databases import fresh_database
from tests.support.infrastructure.identity_provider import Issuer
from tests.support.stack import run_baton

PROPOSING = ["GetProposal", "ListProposals", "WithdrawProposal", "GetWork", "ListEvents", "ListActors", "GetActor"]
DECIDING = [*PROPOSING, "ApproveProposal", "RejectProposal"]


@dataclass(frozen=True)
class Terminal:
    """The terminal of somebody who signed in."""

    service: GroupService
    person: Person
    config: Path
    claims: dict[str, Any]

    @property
    def url(self) -> str:
        return self.service.conducts.api.base_url

    @property
    def token(self) -> str:
        return self.service.issuer.token(self.person.subject, **self.claims)

    async def run(self, *arguments: str) -> "CompletedProcess[str]":
        known = {"BATON_URL": self.url, "BATON_TOKEN": self.token, "XDG_CONFIG_HOME": str(self.config)}
        return await asyncio.to_thread(run_baton, *arguments, **known)

    async def lines(self, *arguments: str, code: int = 0) -> list[str]:
        done = await self.run(*arguments)
        assert (done.returncode, done.stderr) == (code, ""), done
        return done.stdout.splitlines()

    async def answer(self, *arguments: str, code: int = 0) -> Any:
        done = await self.run(*arguments, "--json")
        assert done.returncode == code, done
        return json.loads(done.stdout)

    async def propose(self, name: str) -> str:
        return str((await self.answer("call", "define_zone", f"name={name}"))["proposal_id"])


@dataclass(frozen=True)
class Terminals:
    """Somebody who proposes, and somebody who approves by what their token says."""

    proposer: Terminal
    approver: Terminal


@pytest.fixture(scope="module")
async def terminals(
    postgres: EmbeddedPostgres, template: str, temporal: EmbeddedTemporal, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Terminals]:
    config = tmp_path_factory.mktemp("config")
    with fresh_database(postgres, template) as url, Issuer.running_server() as issuer, Issuer.running_server() as other:
        async with (
            open_group_service(url, temporal.address, issuer, other) as service,
            Supervisor().supervise("projections", Projector(url, poll=0.02).run),
        ):
            proposer, approver = await service.register("Noor Haddad"), await service.register("Piet Bos")
            crew, leads = await service.define_group(None, "", proposer), await service.define_group("groups", "leads")
            await service.permit([crew], *PROPOSING)
            await service.permit([leads], *DECIDING, "DefineZone")
            await service.permit([crew], "DefineZone", approval={"groups": [leads]})
            yield Terminals(
                Terminal(service, proposer, config, {}), Terminal(service, approver, config, {"groups": ["leads"]})
            )


async def test_a_command_that_waits_for_approval_is_said_and_no_failure(terminals: Terminals) -> None:
    said, ask = await terminals.proposer.lines("call", "define_zone", f"name=Zone {uuid4()}")
    assert said.startswith("define_zone needs the approval of a second person, and is proposed until ")
    proposal_id = said.rpartition(": ")[2]
    assert ask == f"Ask what becomes of it with: baton call get_work work_id={proposal_id}"
    body = await terminals.proposer.answer("call", "define_zone", f"name=Zone {uuid4()}")
    assert {"proposal_id", "work_id", "expires_at", "would"} <= body.keys()
    assert [one["event_type"] for one in body["would"]] == ["ZoneDefined"]


async def test_what_waits_is_listed_ones_own_first_and_approved_by_its_id(terminals: Terminals) -> None:
    proposal_id = await terminals.proposer.propose(f"Approved {uuid4()}")
    mine = [line for line in await terminals.proposer.lines("proposals") if proposal_id in line]
    theirs = [line for line in await terminals.approver.lines("proposals") if proposal_id in line]
    assert [line.split()[:3] for line in mine] == [["DefineZone", "-", "you"]]
    assert ["Noor Haddad" in line for line in theirs] == [True]
    unasked = await terminals.approver.run("approve", proposal_id)
    assert (unasked.returncode, "Nobody can be asked here" in unasked.stderr) == (2, True), "no terminal, no approval"
    digest = unasked.stderr.partition("--digest ")[2].split()[0].rstrip(",")
    approved = await terminals.approver.lines("approve", proposal_id, "--digest", digest, "--reason", "as discussed")
    assert approved[0].startswith("Approved and carried out: zone_id ")
    assert proposal_id not in str(await terminals.approver.answer("proposals"))
    closed = [one for one in await terminals.approver.answer("proposals", "--all") if one["proposal_id"] == proposal_id]
    assert [one["status"] for one in closed] == ["CarriedOut"]
    again = await terminals.approver.run("approve", proposal_id, "--yes")
    assert (again.returncode, "[carried_out]" in again.stderr) == (1, True)


async def test_what_is_approved_is_what_was_shown(terminals: Terminals) -> None:
    """Another digest than that of what the proposal shows is refused, and nothing is done."""
    name = f"Shown {uuid4()}"
    proposal_id = await terminals.proposer.propose(name)
    refused = await terminals.approver.run("approve", proposal_id, "--digest", "0" * 64)
    assert (refused.returncode, "[changed_since]" in refused.stderr) == (1, True)
    said = await terminals.approver.lines("approve", proposal_id, "--yes")
    assert said[0].startswith("DefineZone, proposed by Noor Haddad, about -: ")
    assert said[1:3] == [f"  name {name}", "It would record ZoneDefined"]
    assert said[-1].startswith("Approved and carried out: zone_id ")


async def test_in_python_what_is_approved_is_what_a_look_showed(terminals: Terminals) -> None:
    proposal_id = UUID(await terminals.proposer.propose(f"Looked at {uuid4()}"))
    async with AsyncBaton(terminals.approver.url, terminals.approver.token) as baton:
        with pytest.raises(ClientError, match="Look at the proposal before you approve it"):
            await baton.proposals[proposal_id].approve()
        shown = await baton.proposals[proposal_id].look()
        outcome = await shown.approve(reason="as discussed")
    assert isinstance(outcome, ProposalOutcome)
    assert outcome.status == "CarriedOut"


async def test_an_approval_whose_command_is_refused_exits_with_one(terminals: Terminals) -> None:
    service = terminals.proposer.service
    leaving = await service.register("Leaving")
    grant = {"permitted_principal_ids": [leaving.id], "approval": {"principals": [terminals.approver.person.id]}}
    policy_id = await service.permit([], "DefineZone", **grant)
    terminal = Terminal(service, leaving, terminals.proposer.config, {})
    proposal_id = await terminal.propose("Never")
    await service.boss.execute(f"/policies/{policy_id}/revoke-grant", {"permitted_principal_id": leaving.id, "reason": "x"})
    said = await terminals.approver.lines("approve", proposal_id, "--yes", code=1)
    assert said[-2].startswith("It would be refused now: DefineZone was refused.")
    assert said[-1].startswith("Approved, and refused when it was given: DefineZone was refused.")


async def test_a_proposal_is_rejected_and_withdrawn_with_a_reason(terminals: Terminals) -> None:
    rejected, withdrawn = [await terminals.proposer.propose(f"Zone {uuid4()}") for _ in range(2)]
    assert (await terminals.approver.run("reject", rejected)).returncode == 2
    assert await terminals.approver.lines("reject", rejected, "--reason", "not tonight") == [f"Rejected: {rejected}"]
    refused = await terminals.approver.run("withdraw", withdrawn, "-m", "mine")
    assert (refused.returncode, "[not_the_proposer]" in refused.stderr) == (1, True)
    done = await terminals.proposer.answer("withdraw", withdrawn, "-m", "a mistake")
    assert done == {"proposal_id": withdrawn, "status": "Withdrawn"}
    assert (await terminals.proposer.answer("call", "get_work", f"work_id={rejected}"))["error"]["detail"].endswith(
        "not tonight"
    )


async def test_who_asks_learns_groups_and_policies(terminals: Terminals) -> None:
    lines = await terminals.proposer.lines("whoami")
    assert lines[0].startswith("Noor Haddad, human, ")
    assert [line.split()[0] for line in lines[2:]] == ["group", "policy", "policy"]
    assert lines[2].endswith(", listed")
    assert any("1 operations with approval through Crew" in line for line in lines[3:])
    assert (await terminals.approver.lines("whoami"))[2].endswith(", by your token")
    known = await terminals.proposer.answer("whoami")
    assert known["commands_with_approval"] == ["DefineZone"]


async def test_a_file_whose_commands_wait_for_approval_says_so_and_is_applied_again(
    terminals: Terminals, tmp_path: Path
) -> None:
    service = terminals.proposer.service
    editor = await service.register("Editor")
    reading = {"permitted_principal_ids": [editor.id], "permitted_command_sets": ["queries"]}
    await service.permit([], "ListEvents", "GetPolicy", **reading)
    approval = {"principals": [terminals.approver.person.id]}
    await service.permit([], "DefineGroup", permitted_principal_ids=[editor.id], approval=approval)
    await service.permit([], "DefineGroup", "AddGroupMember", permitted_principal_ids=[terminals.approver.person.id])
    file, name = tmp_path / "groups.yaml", f"Proposed {uuid4()}"
    file.write_text(f"groups: [{{name: {name}}}]\n")
    terminal = Terminal(service, editor, terminals.proposer.config, {})
    said = await terminal.lines("apply", "-f", str(file), code=1)
    assert said[-1] == "0 of 1 commands were carried out. 1 things are not as the file says."
    assert said[-2].startswith(f"? groups: {name}: define_group waits for approval: ")
    proposal_id = said[-2].rpartition(": ")[2]
    again = await terminal.lines("apply", "-f", str(file), code=1)
    assert again[-2].endswith(proposal_id), "the same command finds its proposal"
    await terminals.approver.lines("approve", proposal_id, "--yes")
    assert await terminal.lines("apply", "-f", str(file)) == ["The record says what the file says."]
