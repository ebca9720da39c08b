"""The lives of groups, policies and proposals, and of what policies are about, as the specification tabulates them."""

from typing import Any
from uuid import UUID

from baton.domain.access.group import Group
from baton.domain.trust.policy import Policy
from baton.domain.trust.proposal import Proposal, WithdrawProposal
from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb, at, command, reason_fields
from tests.support.domain.proposals import (
    UNCHANGED,
    acting_as,
    approval_policy,
    carry_out,
    define_group,
    expire,
    open_proposal,
    refuse,
    register_actor,
)
from tests.support.domain.world import World, new_id


def group_begins(world: World) -> tuple[UUID, Scene]:
    return define_group(world), Scene(actor_id=register_actor(world))


def one_actor(scene: Scene) -> dict[str, Any]:
    return {"actor_id": scene.actor_id}


GROUP = Lifecycle(
    Group.__name__,
    "define_group",
    group_begins,
    {"status": {"Active": "", "Retired": "retire_group"}},
    {
        "add_group_member": Verb("Active", {}, "GroupCannotAddMemberError", given=one_actor),
        "remove_group_member": Verb(
            "Active", {}, "GroupCannotRemoveMemberError", given=one_actor, before=(("add_group_member", one_actor),)
        ),
        "rename_group": Verb("Active", {}, "GroupCannotRenameError", given=lambda scene: {"name": "Night shift"}),
        "retire_group": Verb("Active", at("Retired"), "GroupCannotRetireError", given=reason_fields),
    },
)


def proposal_begins(world: World) -> tuple[UUID, Scene]:
    scene = Scene(proposer_id=new_id())
    return open_proposal(world, scene.proposer_id, approval_policy(world, scene.proposer_id)), scene


def call_as_proposer(world: World, id: UUID, scene: Scene) -> None:
    world.principal_id = scene.proposer_id


def withdraw(world: World, id: UUID, scene: Scene) -> None:
    with acting_as(world, scene.proposer_id):
        world.when(WithdrawProposal(reason="not needed"), on=id)


PROPOSAL = Lifecycle(
    Proposal.__name__,
    "",
    proposal_begins,
    {
        "status": {
            "Open": "",
            "CarriedOut": "carried_out",
            "Refused": "refused",
            "Rejected": "reject_proposal",
            "Withdrawn": "withdrawn",
            "Expired": "expired",
        }
    },
    {
        "approve_proposal": Verb("Open", {}, "ProposalCannotApproveError", given=lambda scene: {"digest": UNCHANGED.digest}),
        "reject_proposal": Verb("Open", at("Rejected"), "ProposalCannotRejectError", given=reason_fields),
        "withdraw_proposal": Verb(
            "Open", at("Withdrawn"), "ProposalCannotWithdrawError", given=reason_fields, arranged=call_as_proposer
        ),
    },
    from_elsewhere={
        "carried_out": lambda world, id, scene: carry_out(world, id),
        "refused": lambda world, id, scene: refuse(world, id),
        "withdrawn": withdraw,
        "expired": lambda world, id, scene: expire(world, id),
    },
)


def zone_begins(world: World) -> tuple[UUID, Scene]:
    return world.create(command("define_zone", {"name": "Experiment hall"})), Scene()


def conduit_begins(world: World) -> tuple[UUID, Scene]:
    ends = {"source_zone_id": new_id(), "target_zone_id": new_id()}
    return world.create(command("define_conduit", {"name": "Hall network", **ends})), Scene()


def surface_begins(world: World) -> tuple[UUID, Scene]:
    return world.create(command("define_surface", {"name": "Endstation A console", "kind": "HTTP"})), Scene()


def policy_begins(world: World) -> tuple[UUID, Scene]:
    (conduit_id, _), (surface_id, _) = conduit_begins(world), surface_begins(world)
    scene = Scene(principal_id=new_id(), group_id=define_group(world))
    grant = {"conduit_id": conduit_id, "surface_id": surface_id, "permitted_principal_ids": [scene.principal_id, new_id()]}
    return world.create(command("define_policy", {"name": "Crew", **grant, "permitted_commands": ["GetVisit"]})), scene


POLICY = Lifecycle(
    Policy.__name__,
    "define_policy",
    policy_begins,
    {},
    {
        "extend_policy": Verb(given=lambda scene: {"permitted_group_ids": [scene.group_id]}),
        "revoke_grant": Verb(given=lambda scene: {"permitted_principal_id": scene.principal_id, "reason": "over"}),
    },
)

LIVES = (GROUP, PROPOSAL)
STATELESS = (
    Lifecycle("Zone", "define_zone", zone_begins, {}, {}),
    Lifecycle("Conduit", "define_conduit", conduit_begins, {}, {}),
    Lifecycle("Surface", "define_surface", surface_begins, {}, {}),
    POLICY,
)
