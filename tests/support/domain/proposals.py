"""Verbs to arrange proposals with: a policy that permits with approval, what is proposed under it, and what comes of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

from baton.domain.access.actor import ActorKind, ActorRegistered
from baton.domain.access.group import DefineGroup
from baton.domain.kernel import SYSTEM_CONDUIT
from baton.domain.trust.conduit import ConduitDefined
from baton.domain.trust.group_members import AddGroupMember
from baton.domain.trust.policy import Approval, DefinePolicy
from baton.domain.trust.proposal import ApproveProposal, ExpireProposal, OpenProposal, Proposal, RecordProposalOutcome
from baton.domain.trust.proposal_basis import ProposalBasis
from baton.domain.trust.surface import SYSTEM_HTTP, SurfaceDefined, SurfaceKind
from tests.support.domain.world import OPERATOR, World, new_id

UNCHANGED = ProposalBasis("AddGroupMember", None)
"""What a proposal of these tests would do, at every look."""
GONE = {"code": "GroupNotFoundError", "reason": None, "detail": "There is no such group.", "facts": {}}


def define_group(world: World, **fields: Any) -> UUID:
    """Define a group (of operators, by default) and return its id."""
    return world.create(DefineGroup(**{"name": "Operators", **fields}))


def register_actor(world: World) -> UUID:
    """Register a person and return their id."""
    id = new_id()
    world.given(id, ActorRegistered(kind=ActorKind.HUMAN))
    return id


@contextmanager
def acting_as(world: World, principal_id: UUID) -> Iterator[None]:
    """Let somebody else call for a while."""
    before, world.principal_id = world.principal_id, principal_id
    yield
    world.principal_id = before


def approval_policy(world: World, proposer_id: UUID, *approver_ids: UUID, **fields: Any) -> UUID:
    """Permit somebody to add members to groups once one of these approves (the operator, by default)."""
    if ("Conduit", SYSTEM_CONDUIT) not in world.streams:
        world.given(SYSTEM_CONDUIT, ConduitDefined(name="System", source_zone_id=new_id(), target_zone_id=new_id()))
        world.given(SYSTEM_HTTP, SurfaceDefined(name="System HTTP", kind=SurfaceKind.HTTP))
    place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP, "permitted_principal_ids": [proposer_id]}
    approval = Approval(principals=frozenset(approver_ids or (OPERATOR,)))
    asked = {"name": "Crew", **place, "permitted_commands": ["AddGroupMember"], "approval": approval}
    return world.create(DefinePolicy(**{**asked, **fields}))


def open_proposal(world: World, proposer_id: UUID, *policy_ids: UUID) -> UUID:
    """Propose to add somebody to a group, and return the proposal's id."""
    group_id, actor_id = define_group(world), register_actor(world)
    command = AddGroupMember(actor_id=actor_id)
    opening = OpenProposal(
        command_name=type(command).__name__,
        target_id=group_id,
        request=command.model_dump(mode="json"),
        would=[],
        policy_ids=frozenset(policy_ids),
        digest=UNCHANGED.digest,
    )
    world.ports["examine_proposal"] = UNCHANGED
    with acting_as(world, proposer_id):
        return world.create(opening)


def proposal_of(world: World, id: UUID) -> Proposal:
    state: Proposal = world.state(Proposal, id)
    return state


def carry_out(world: World, id: UUID) -> None:
    """Approve a proposal whose command then succeeds."""
    world.when(ApproveProposal(digest=UNCHANGED.digest), on=id)
    world.when(RecordProposalOutcome(status=204), on=id)


def refuse(world: World, id: UUID) -> None:
    """Approve a proposal whose command is then refused."""
    world.when(ApproveProposal(digest=UNCHANGED.digest), on=id)
    world.when(RecordProposalOutcome(refusal=GONE), on=id)


def expire(world: World, id: UUID) -> None:
    """Let the time to approve pass."""
    world.now = proposal_of(world, id).expires_at + timedelta(seconds=1)
    world.when(ExpireProposal(), on=id)
