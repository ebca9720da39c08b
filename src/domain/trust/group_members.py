"""Who is listed in a group, and until when there is one. What policies permit a group, its members may do: nobody lists
others in one whose members may do more than they may themselves, takes them off its list, or retires it."""

from collections.abc import Collection
from typing import Annotated, NamedTuple
from uuid import UUID

from baton.domain.access.actor import Actor
from baton.domain.access.group import (
    ACTIVE,
    GROUPS,
    IN_USE,
    Group,
    GroupMemberAdded,
    GroupMemberRemoved,
    GroupRetired,
    group,
)
from baton.domain.kernel import Call, JudgedVerb, Outcome
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.reads import Reads, all_members_of, ask, find_all, permitted_commands, require
from baton.domain.shared.writes import Delist
from baton.domain.trust.authorization import exceeds, own_access
from baton.domain.trust.policy import POLICIES_BY_SURFACE, DefinePolicy, Policy

MAX_MEMBERS = 10_000


class ListingFacts(NamedTuple):
    """What it is judged by whether somebody may list members; there are no policies where none count."""

    policies: Collection[Policy]
    groups_of_caller: frozenset[UUID]


class MembershipCommand(JudgedVerb[Group, ListingFacts]):
    """A command about the members of a group, for who may do everything that they may."""

    def gather(self, group: Group, call: Call) -> Reads[ListingFacts]:
        deployment = yield from ask(DeploymentPort.deployment)
        if not deployment.policies_enforced or DefinePolicy.operation.command_name in (yield from permitted_commands()):
            return ListingFacts((), frozenset())
        policies = yield from find_all(Policy, (yield from all_members_of(POLICIES_BY_SURFACE)))
        return ListingFacts(policies.values(), (yield from own_access()).group_ids)

    def refuse_more_privileged(self, group: Group, call: Call, facts: ListingFacts) -> None:
        """Raise where the members of the group may do what the caller may not."""
        member, caller = (group.id, frozenset({group.id})), (call.principal_id, facts.groups_of_caller)
        if exceeds(facts.policies, member, caller) or (approves(facts.policies, group) and group.id not in caller[1]):
            detail = "Members of this group may do what you may not; ask somebody who may do all of it, or defines policies."
            raise self.cannot("more_privileged", detail)


def approves(policies: Collection[Policy], group: Group) -> bool:
    """Return whether a policy names the members of a group as approvers."""
    return any(policy.approval is not None and group.id in policy.approval.groups for policy in policies)


@group.command(post="/{group_id}/add-member", allowed=[ACTIVE], attempts=3)
class AddGroupMember(MembershipCommand):
    """List an actor as a member, from its next call on; one that is listed already stays so.

    Who defines policies may list anybody; others only where they may themselves do what the group's members may.
    """

    actor_id: UUID
    """The actor who becomes a member."""

    def gather(self, group: Group, call: Call) -> Reads[ListingFacts]:
        yield from require(Actor, self.actor_id)
        return (yield from super().gather(group, call))

    def decide(self, group: Group, call: Call, facts: ListingFacts) -> Outcome:
        if self.actor_id in group.member_ids:
            return []
        self.refuse_more_privileged(group, call, facts)
        if len(group.member_ids) >= MAX_MEMBERS:
            raise self.cannot("too_many", f"A group lists at most {MAX_MEMBERS} actors; define another one, or use a claim.")
        return [GroupMemberAdded(actor_id=self.actor_id)]


@group.command(post="/{group_id}/remove-member", allowed=[ACTIVE], attempts=3, destructive=True)
class RemoveGroupMember(MembershipCommand):
    """Take an actor off the list of members, from its next call on; a claim in its token still makes it one.

    Who defines policies may take anybody off; others only where they may themselves do what the group's members may.
    """

    actor_id: UUID
    """The actor who is a member no longer."""

    def decide(self, group: Group, call: Call, facts: ListingFacts) -> Outcome:
        if self.actor_id not in group.member_ids:
            return []
        self.refuse_more_privileged(group, call, facts)
        return [GroupMemberRemoved(actor_id=self.actor_id)]


@group.command(post="/{group_id}/retire", allowed=[ACTIVE], destructive=True)
class RetireGroup(MembershipCommand):
    """Close the group: what policies permit it, they permit nobody through it any more.

    Who defines policies may retire any group; others only where they may themselves do what its members may.
    """

    reason: Annotated[str, group.text("retire_reason", 500, label="reason", personal=True)] | None = None

    def decide(self, group: Group, call: Call, facts: ListingFacts) -> Outcome:
        self.refuse_more_privileged(group, call, facts)
        return [GroupRetired(reason=self.reason), Delist(GROUPS, IN_USE)]
