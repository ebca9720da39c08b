"""The authorization rule: whether a caller may give a command, which policies say so, and what it may do at all; and the
questions by which people look it up."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Literal, Self
from uuid import UUID

from baton.domain.access.actor import Actor, ActorKind, names_of
from baton.domain.access.group import ACTIVE, Group
from baton.domain.kernel import NIL, Call, Query, SortedSet, Value
from baton.domain.registry import REGISTRY, Operation
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.reads import OwnAccess, Reads, all_members_of, ask, find_all, is_permitted
from baton.domain.shared.refusals import UnauthorizedError
from baton.domain.trust.conduit import AccessDecision
from baton.domain.trust.policy import EXAMINE_SERVICE, POLICIES_BY_SURFACE, CommandName, Policy, policies_enforced, policy
from baton.domain.trust.surface import SYSTEM_MCP_STDIO, SYSTEM_MCP_STREAMABLE_HTTP

COMPLETING = frozenset({"RecordAgentDecision", "AppendInferences", "AppendRunLogbookEntries"})
"""The commands by which an agent that was suspended meanwhile may complete the work of a lease it holds."""


OF_ONES_OWN = frozenset({"WithdrawProposal"})
"""The commands that take no permission, since their rule lets everybody do this to what is their own alone."""


NAMED_MEMBERS = 10
"""How many members of a group are named where those are named who may give a command."""
APPROVAL_REQUIRED = "approval_required"
MCP_SURFACES = (SYSTEM_MCP_STDIO, SYSTEM_MCP_STREAMABLE_HTTP)
NO_PARTS: Mapping[str, frozenset[UUID]] = MappingProxyType({})


class ApprovalRequiredError(UnauthorizedError, reason=APPROVAL_REQUIRED):
    """The caller holds this command only with approval, and this call cannot become a proposal."""

    policy_ids: tuple[UUID, ...] = ()  # Those that permit it with approval.
    parts: Mapping[str, frozenset[UUID]] = NO_PARTS  # Where it stands for others, those for each of them.

    @classmethod
    def for_command(
        cls, command_name: str, policy_ids: tuple[UUID, ...], parts: Mapping[str, frozenset[UUID]] = NO_PARTS
    ) -> Self:
        """Return the refusal of a command that these policies permit with approval, and of those that it stands for."""
        refusal = cls(f"{command_name} needs the approval of a second person here; call it over REST or MCP to propose it.")
        refusal.policy_ids, refusal.parts = policy_ids, parts
        return refusal


@dataclass(frozen=True)
class AuthzResult:
    """A verdict; on Deny no policy determined it, since nothing permits by default, unless it permits with approval."""

    decision: AccessDecision
    reason: str | None = None
    determining_policies: tuple[UUID, ...] = ()

    @property
    def is_allowed(self) -> bool:
        return self.decision is AccessDecision.ALLOW

    @property
    def needs_approval(self) -> bool:
        return self.reason == APPROVAL_REQUIRED


@dataclass(frozen=True)
class PrincipalStatus:
    """What is known of a principal: its actor, if it has one, and the state of its agent."""

    actor: Actor | None
    agent_versioned: bool = True
    agent_suspended: bool = False

    @property
    def objection(self) -> str | None:
        """Why the principal may not act at all, if so."""
        if self.actor is None:
            return None
        if not self.actor.active:
            return "principal_deactivated"
        return None if self.agent_versioned else "agent_not_versioned"

    def objection_to(self, command_name: str, completing: bool) -> str | None:
        """Return why the principal may not call a command; a suspended agent may complete what it began."""
        lenient = completing and self.agent_suspended and command_name in COMPLETING
        return None if lenient and self.objection == "agent_not_versioned" else self.objection


def deny(reason: str) -> AuthzResult:
    """Return the denial for this reason."""
    return AuthzResult(AccessDecision.DENY, reason)


def judge(
    standing: PrincipalStatus,
    policies: Iterable[Policy],
    principal_id: UUID,
    command_name: str,
    conduit_id: UUID,
    surface_id: UUID,
    *,
    group_ids: frozenset[UUID] = frozenset(),
    approved_under: frozenset[UUID] = frozenset(),
    completing: bool = False,
) -> AuthzResult:
    """Allow when a policy of exactly this conduit and surface lists the command and the principal or one of its groups;
    where all that do ask for an approval, only when one of them is among those under which it was approved."""
    if objection := standing.objection_to(command_name, completing):
        return deny(objection)
    applicable = [policy for policy in policies if policy.conduit_id == conduit_id and policy.surface_id == surface_id]
    if not applicable:
        return deny("no_applicable_policy")
    listing = [policy for policy in applicable if policy.names(principal_id, group_ids)]
    if not listing:
        return deny("principal_not_permitted")
    permitting = [policy for policy in listing if policy.permits(command_name)]
    if not permitting:
        return deny("command_not_permitted")
    outright = [policy for policy in permitting if policy.approval is None]
    if allowing := outright or [policy for policy in permitting if policy.id in approved_under]:
        return AuthzResult(AccessDecision.ALLOW, determining_policies=tuple(sorted(policy.id for policy in allowing)))
    asking = tuple(sorted(policy.id for policy in permitting))
    return AuthzResult(AccessDecision.DENY, APPROVAL_REQUIRED, asking)


def permitted_commands(
    standing: PrincipalStatus,
    policies: Iterable[Policy],
    principal_id: UUID,
    conduit_id: UUID,
    surface_id: UUID,
    *,
    group_ids: frozenset[UUID] = frozenset(),
) -> frozenset[str]:
    """Return every command the principal could call here without approval: the union over the policies that would allow."""
    here = (policy for policy in policies if (policy.conduit_id, policy.surface_id) == (conduit_id, surface_id))
    outright = (policy for policy in here if policy.approval is None)
    return frozenset() if standing.objection else held_commands(outright, principal_id, group_ids)


def held_commands(policies: Iterable[Policy], principal_id: UUID, group_ids: frozenset[UUID]) -> frozenset[str]:
    """Return every command that these policies permit a principal who belongs to these groups, at once or with approval, on
    whatever conduit and surface, active or not."""
    listing = [policy for policy in policies if policy.names(principal_id, group_ids)]
    return frozenset().union(*(policy.permitted_commands for policy in listing))


Holder = tuple[UUID, frozenset[UUID]]  # A principal, and the groups it belongs to.


def exceeds(policies: Collection[Policy], one: Holder, other: Holder) -> bool:
    """Return whether one holds anything that the other does not, or at once what the other holds only with approval."""
    outright = [policy for policy in policies if policy.approval is None]
    return any(held_commands(among, *one) - held_commands(among, *other) for among in (outright, policies))


@dataclass(frozen=True)
class Access:
    """What a caller may do here and why: its groups, and the policies that name it or one of them."""

    groups: tuple[Group, ...]
    policies: tuple[Policy, ...]

    @property
    def group_ids(self) -> frozenset[UUID]:
        """The groups that it belongs to."""
        return frozenset(group.id for group in self.groups)

    @property
    def at_once(self) -> frozenset[str]:
        """The commands that it may give at once."""
        return self._commands(policy for policy in self.policies if policy.approval is None)

    @property
    def with_approval(self) -> frozenset[str]:
        """The commands that become proposals when it gives them."""
        return self._commands(policy for policy in self.policies if policy.approval is not None) - self.at_once

    def _commands(self, policies: Iterable[Policy]) -> frozenset[str]:
        return frozenset().union(*(policy.permitted_commands for policy in policies))


def own_access() -> Reads[Access]:
    """Return what the caller may do on its surface and why; nothing is recorded."""
    found: Access = yield OwnAccess()
    return found


def reachable_commands(permitted: frozenset[str], kind: ActorKind | None, surface_id: UUID) -> frozenset[str]:
    """Return those of the permitted names that a call by this kind of actor on this surface can reach.

    Left out are operations for other kinds of actor, those that this surface does not have, and inner commands.
    """
    if surface_id == NIL:
        return permitted
    reached = {operation.command_name for operation in REGISTRY if is_reachable(operation, kind, surface_id)}
    beside = REGISTRY.permissions - REGISTRY.internal - ({EXAMINE_SERVICE} if surface_id in MCP_SURFACES else set())
    return permitted & (reached | beside)


def is_reachable(operation: Operation, kind: ActorKind | None, surface_id: UUID) -> bool:
    """Return whether a call by this kind of actor on this surface can reach an operation, whatever policies permit."""
    if operation.callers and kind not in operation.callers:
        return False
    return operation.mcp or surface_id not in MCP_SURFACES


class PolicyEvaluation(Value):
    """What a policy would say to a call, and why; it says so to nobody where policies are not enforced."""

    decision: AccessDecision
    """Whether the policy allows the call."""
    reason: str | None
    """Why the policy says so."""
    determining_policies: tuple[UUID, ...]
    enforced: bool


@policy.query(get="/{policy_id}/evaluate", returns=PolicyEvaluation)
class EvaluatePolicy(Query[PolicyEvaluation]):
    """What this one policy would say to a call, enforced or not; for fault-finding, only the seam authorizes.

    Of groups, listed members count; what a token may claim is known only when it calls.
    """

    evaluated_principal_id: UUID
    evaluated_command_name: CommandName
    evaluated_conduit_id: UUID
    evaluated_surface_id: UUID

    def answer(self, policy: Policy, call: Call) -> Reads[PolicyEvaluation]:
        asked = (self.evaluated_principal_id, self.evaluated_command_name)
        place = (self.evaluated_conduit_id, self.evaluated_surface_id)
        groups = yield from listed_groups([policy], self.evaluated_principal_id)
        verdict = judge(PrincipalStatus(actor=None), [policy], *asked, *place, group_ids=groups)
        return PolicyEvaluation(
            decision=verdict.decision,
            reason=verdict.reason,
            determining_policies=verdict.determining_policies,
            enforced=(yield from policies_enforced()),
        )


def listed_groups(policies: Iterable[Policy], principal_id: UUID) -> Reads[frozenset[UUID]]:
    """Return the groups that these policies permit and that list a principal; what its tokens may claim is not known."""
    groups = yield from find_all(Group, {id for policy in policies for id in policy.permitted_group_ids})
    return frozenset(group.id for group in groups.values() if group.has(principal_id, None))


def holder_names(command_name: str, *, with_approval: bool = False) -> Reads[tuple[str, ...]]:
    """Return who may give a command on some surface, at once or with approval, by name: active actors and groups. None where
    no policy is enforced; an id stands for a principal whom no actor stands for."""
    if not (yield from ask(DeploymentPort.deployment)).policies_enforced:
        return ()
    policies = yield from find_all(Policy, (yield from all_members_of(POLICIES_BY_SURFACE)))
    asked = [one for one in policies.values() if (one.approval is not None) is with_approval]
    holding = [one for one in asked if one.surface_id != NIL and one.permits(command_name)]
    ids = {id for policy in holding for id in policy.permitted_principal_ids}
    found = yield from find_all(Group, sorted({id for policy in holding for id in policy.permitted_group_ids}))
    groups = [group for group in found.values() if group.status is ACTIVE]
    listed = {group.id: sorted(group.member_ids)[:NAMED_MEMBERS] for group in groups}
    actors = yield from find_all(Actor, sorted(ids.union(*listed.values())))
    known = yield from names_of(((id, None) for id in actors), own=True)
    names = {id: known[id, None] or str(id) for id, actor in actors.items() if actor.active}
    people = {names[id] for id in ids & names.keys()} | {str(id) for id in ids - actors.keys()}
    members = {group.id: sorted(names[id] for id in listed[group.id] if id in names) for group in groups}
    return (*sorted(people), *sorted(group_label(group, members[group.id]) for group in groups))


def group_label(group: Group, members: list[str]) -> str:
    """Return a group with the names of the members it lists, as far as they are given."""
    more = len(group.member_ids) - NAMED_MEMBERS
    named = ", ".join([*members, *([f"{more} more"] if more > 0 else [])])
    return f"group {group.name}" + (f" ({named})" if named else "")


class PermissionsView(Value):
    """The commands that a policy permits a principal."""

    policy_id: UUID
    evaluated_principal_id: UUID
    evaluated_conduit_id: UUID
    evaluated_surface_id: UUID
    permitted_commands: SortedSet[str]
    incomplete: Literal[False]


@policy.query(get="/{policy_id}/permissions", returns=PermissionsView, refuses=[UnauthorizedError])
class ListPermissions(Query[PermissionsView]):
    """What this one policy permits a principal; other people's need the permission ListPermissionsOfOthers."""

    personal: ClassVar[bool] = True
    evaluated_principal_id: UUID
    evaluated_conduit_id: UUID
    evaluated_surface_id: UUID

    def answer(self, policy: Policy, call: Call) -> Reads[PermissionsView]:
        if self.evaluated_principal_id != call.principal_id and not (yield from is_permitted("ListPermissionsOfOthers")):
            detail = "Reading the permissions of others needs ListPermissionsOfOthers; ask an administrator for it."
            raise UnauthorizedError(detail, reason="permissions_of_others")
        evaluated = dict(self)
        groups = yield from listed_groups([policy], self.evaluated_principal_id)
        commands = permitted_commands(PrincipalStatus(actor=None), [policy], *evaluated.values(), group_ids=groups)
        return PermissionsView(policy_id=policy.id, permitted_commands=commands, incomplete=False, **evaluated)
