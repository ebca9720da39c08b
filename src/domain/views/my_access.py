"""What the caller itself may do, through which groups and policies, and who may do what the caller may not."""

from typing import ClassVar
from uuid import UUID

from baton.domain.access.actor import Actor, ActorKind, names_of
from baton.domain.access.group import Group
from baton.domain.kernel import NIL, Call, IdSet, Query, SortedSet, Value
from baton.domain.registry import REGISTRY, standalone_query
from baton.domain.shared.reads import Reads, find, permitted_commands
from baton.domain.shared.refusals import UnauthorizedError
from baton.domain.trust.authorization import MCP_SURFACES, Access, holder_names, own_access, reachable_commands
from baton.domain.trust.policy import NOT_ENFORCED, CommandName, InvalidPolicyCommandError, Policy, policies_enforced


class OwnGroup(Value):
    """A group that the caller belongs to: it is listed there, or its token says so."""

    group_id: UUID
    name: str
    listed: bool
    """Whether the actor is on the list of members; false where only its token says so."""


class OwnPolicy(Value):
    """A policy that permits the caller something here: by its own name, or through these groups."""

    policy_id: UUID
    name: str
    through_group_ids: IdSet
    """The groups through which it permits the caller something."""
    with_approval: bool
    """Whether a second person must approve each call."""
    commands: SortedSet[str] | None
    """The commands that it permits the caller here; null over MCP, where the lists of all policies have them once."""


class AccessView(Value):
    """Who a caller is, what it can reach at once, what becomes a proposal when it calls it, and through which policies.

    A caller without a token is of no kind and named so; where no policies are enforced, everything is permitted by none.
    """

    principal_id: UUID
    kind: ActorKind | None
    """Whether it is a person, an agent or a service account; null without a token."""
    name: str | None
    """What the caller is called."""
    surface_id: UUID
    permitted_commands: SortedSet[str]
    commands_with_approval: SortedSet[str]
    """The names of the commands that become a proposal when the caller calls them."""
    groups: tuple[OwnGroup, ...]
    """The groups that the caller belongs to."""
    policies: tuple[OwnPolicy, ...]
    """The policies that permit the caller something here."""
    enforced: bool
    remark: str | None


@standalone_query("/me", context="edge", returns=AccessView, open=True)
class GetMyAccess(Query[AccessView]):
    """Who I am to the service, and every command that a call of mine can reach on this surface."""

    personal: ClassVar[bool] = True

    def answer(self, call: Call) -> Reads[AccessView]:
        actor = yield from find(Actor, call.principal_id)
        kind = actor.kind if actor else None
        appearance = (call.principal_id, call.surface_id)
        names = yield from names_of([appearance], own=True)
        permitted, access = (yield from permitted_commands()), (yield from own_access())
        enforced = yield from policies_enforced()
        return AccessView(
            principal_id=call.principal_id,
            kind=kind,
            name=names[appearance],
            surface_id=call.surface_id,
            permitted_commands=reachable_commands(permitted, kind, call.surface_id),
            commands_with_approval=reachable_commands(access.with_approval, kind, call.surface_id),
            groups=tuple(own_group(group, call.principal_id) for group in access.groups),
            policies=tuple(own_policy(policy, access, kind, call) for policy in access.policies),
            enforced=enforced,
            remark=None if enforced else NOT_ENFORCED,
        )


def own_group(group: Group, principal_id: UUID) -> OwnGroup:
    """Return a group as one of its members sees it."""
    return OwnGroup(group_id=group.id, name=group.name, listed=principal_id in group.member_ids)


def own_policy(policy: Policy, access: Access, kind: ActorKind | None, call: Call) -> OwnPolicy:
    """Return a policy as somebody sees it whom it permits something."""
    commands = None
    if call.surface_id not in MCP_SURFACES:
        commands = reachable_commands(policy.permitted_commands, kind, call.surface_id)
    return OwnPolicy(
        policy_id=policy.id,
        name=policy.name,
        through_group_ids=access.group_ids & policy.permitted_group_ids,
        with_approval=policy.approval is not None,
        commands=commands,
    )


class HoldersView(Value):
    """Who may give a command on some surface, by name: people, accounts and groups."""

    command_name: str
    """The permission that the command takes."""
    at_once: tuple[str, ...]
    """The names of those who may give it at once; of groups, with listed members."""
    with_approval: tuple[str, ...]
    """The names of those for whom it becomes a proposal."""
    enforced: bool
    remark: str | None


@standalone_query(
    "/holders", context="edge", returns=HoldersView, open=True, refuses=[InvalidPolicyCommandError, UnauthorizedError]
)
class GetHolders(Query[HoldersView]):
    """The names of those who may give a command; everybody who is signed in may ask."""

    personal: ClassVar[bool] = True
    command_name: CommandName

    def answer(self, call: Call) -> Reads[HoldersView]:
        if self.command_name not in REGISTRY.command_names():
            raise InvalidPolicyCommandError(f"There is no permission {self.command_name}; name one as `/me` lists them.")
        enforced = yield from policies_enforced()
        actor = yield from find(Actor, call.principal_id)
        if enforced and (call.principal_id == NIL or (actor is not None and not actor.active)):
            detail = "Names are for those who are signed in and active; send a token, or ask an administrator."
            raise UnauthorizedError(detail, reason="not_signed_in")
        return HoldersView(
            command_name=self.command_name,
            at_once=(yield from holder_names(self.command_name)),
            with_approval=(yield from holder_names(self.command_name, with_approval=True)),
            enforced=enforced,
            remark=None if enforced else NOT_ENFORCED,
        )
