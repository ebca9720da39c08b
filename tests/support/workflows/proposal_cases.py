"""Proposals on a conduct stack: who proposes and who approves, in a service that enforces policies."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from baton.application.caller import Caller
from baton.application.ports import CommandResult, EventRow
from baton.application.proposals import Proposals
from baton.domain.access.actor import RegisterActor
from baton.domain.kernel import SYSTEM_CONDUIT, Command
from baton.domain.trust.policy import DefinePolicy, RevokePolicyGrant
from baton.domain.trust.proposal import ApproveProposal, Proposal
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.domain.trust.zone import DefineZone, Zone
from baton.infrastructure.wall_clock import new_id
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack
from tests.support.workflows.run_cases import PLANT
from tests.support.workflows.schedule_cases import load_state

PERMITTED = ("ApproveProposal", "RejectProposal", "GetProposal", "GetWork", "ReadEventTexts")
SIGNALS: dict[str, Any] = {**PLANT}


class ProcessDied(Exception):
    """The process ended here."""


class DyingProposals(Proposals):
    """Proposals in a process that dies after the effect, before it is on record."""

    async def _record(self, command: Command, proposal: Proposal) -> None:
        raise ProcessDied


@dataclass
class ProposalCase:
    """A proposer and an approver on a conduct stack."""

    stack: ConductStack
    proposer: Caller
    approver: Caller
    policy_id: UUID  # which permits the proposer with approval

    async def propose(self, command: Command, on: UUID | None = None, **options: Any) -> UUID:
        """Give a command that becomes a proposal, and return its id."""
        proposed = await self.give(command, self.proposer, on, **options)
        assert (proposed.status, "would" in (proposed.body or {})) == (202, True), proposed
        return UUID((proposed.body or {})["proposal_id"])

    async def approve(self, proposal_id: UUID, wait: int = 30, digest: str | None = None) -> CommandResult:
        """Approve a proposal as it is now, or as it was under this digest."""
        shown = digest or await self.look(proposal_id)
        return await self.give(ApproveProposal(digest=shown, wait=wait), self.approver, proposal_id)

    async def look(self, proposal_id: UUID) -> str:
        """Return the digest of what a proposal shows now."""
        return (await self.stack.runtime.proposals.examine_proposal(await self.state(proposal_id))).digest

    async def give(self, command: Command, caller: Caller, on: UUID | None = None, **options: Any) -> CommandResult:
        return await self.stack.runtime.service.execute(command, caller, target_id=on, **options)

    async def state(self, proposal_id: UUID) -> Proposal:
        found: Proposal = await load_state(self.stack, Proposal, proposal_id)
        return found

    async def wait_for(self, proposal_id: UUID, status: str) -> Proposal:
        """Return a proposal as soon as it has this status."""

        async def state_reached() -> Proposal | None:
            found = await self.state(proposal_id)
            return found if found.status == status else None

        found: Proposal = await until(state_reached)
        return found

    async def events_about(self, state: type[Any], text: str) -> list[EventRow]:
        """Return the first events of the streams of a kind whose payload has this text."""
        query = "SELECT stream_id FROM events WHERE stream_type = %s AND version = 1 AND payload::text LIKE %s"
        async with self.stack.runtime.pool.connection() as connection:
            rows = await (await connection.execute(query, [state.__name__, f"%{text}%"])).fetchall()
        async with self.stack.runtime.store.session() as session:
            return [(await session.history(state.__name__, id, 0, 1))[0] for (id,) in rows]

    async def zones(self, name: str) -> list[EventRow]:
        """Return how often a zone of this name was defined."""
        return await self.events_about(Zone, name)

    async def revoke(self, policy_id: UUID | None = None) -> None:
        """Take the grant with approval from the proposer."""
        revoked = RevokePolicyGrant(permitted_principal_id=self.proposer.principal_id, reason="has left")
        await self.stack.do(revoked, policy_id or self.policy_id)

    def permit(self, caller: Caller, *commands: str, **more: Any) -> Any:
        return define_policy(self.stack, caller.principal_id, *commands, **more)


def zone() -> DefineZone:
    return DefineZone(name=f"Zone {new_id()}")


async def define_policy(stack: ConductStack, principal_id: UUID, *commands: str, **more: Any) -> UUID:
    """Permit somebody these commands, and return the policy."""
    place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
    grant = {"permitted_principal_ids": [principal_id], "permitted_commands": sorted(commands)}
    made = await stack.do(DefinePolicy(name="Crew", **{**place, **grant, **more}))
    return UUID((made.body or {})["policy_id"])


async def register(stack: ConductStack, name: str, *commands: str) -> Caller:
    """Register somebody who holds these commands, and return them as a caller."""
    id = UUID(((await stack.do(RegisterActor(name=name))).body or {})["actor_id"])
    await define_policy(stack, id, *commands)
    return Caller(id, SYSTEM_HTTP, new_id())


async def case(stack: ConductStack, *commands: str, outright: tuple[str, ...] = (), **approval: Any) -> ProposalCase:
    """Return a proposer who holds these commands with approval and others outright, and an approver who holds them all."""
    asked = commands or ("DefineZone",)
    proposer = await register(stack, "Proposer", *PERMITTED, *outright)
    approver = await register(stack, "Approver", *PERMITTED, *asked)
    named = {"principals": [approver.principal_id], **approval}
    policy_id = await define_policy(stack, proposer.principal_id, *asked, approval=named)
    return ProposalCase(stack, proposer, approver, policy_id)
