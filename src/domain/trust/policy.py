"""A policy: an allow-list. It permits each listed principal each listed command on one conduit arriving on one surface.
The authorization rule is here too: whether a principal may call a command, and which policies say so."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from baton.domain.access.actor import Actor, ActorKind
from baton.domain.kernel import NIL, Aggregate, Call, Event, JudgedCreation, Outcome, Query, SortedSet, State, Value, Verb
from baton.domain.registry import REGISTRY, Operation
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.reads import Reads, find_all, is_permitted, require
from baton.domain.shared.refusals import Invalid, UnauthorizedError
from baton.domain.shared.text import FreeText
from baton.domain.shared.writes import Enlist
from baton.domain.trust.conduit import AccessDecision, Conduit
from baton.domain.trust.surface import SYSTEM_MCP_STDIO, SYSTEM_MCP_STREAMABLE_HTTP, Surface

POLICIES_BY_SURFACE = "policy-of"  # Look-up kind: the policies of one conduit and surface.

REGISTRY.permissions |= {"ListPermissionsOfOthers", "ReadEventTexts", "RequestDecisionDebrief", "RecordAgentDecision"}
EXAMINE_SERVICE = "ExamineService"
"""The permission to see what is wrong with the service itself; it names servers, processes and settings."""
REGISTRY.permissions.add(EXAMINE_SERVICE)


@dataclass(frozen=True, kw_only=True)
class Policy(State):
    """A policy permits each listed principal each listed command, on one conduit and one surface."""

    name: str
    conduit_id: UUID
    surface_id: UUID
    permitted_principal_ids: SortedSet[UUID]
    listed_commands: SortedSet[str]
    permitted_command_sets: SortedSet[str]

    @property
    def permitted_commands(self) -> SortedSet[str]:
        """The listed commands, and what the named sets hold in this release."""
        sets = command_sets()
        return self.listed_commands.union(*(sets.get(name, frozenset()) for name in self.permitted_command_sets))

    def permits(self, command_name: str) -> bool:
        """Return whether it permits this command, by its name or by a set; a set that is unknown now permits none."""
        named = map(command_sets().get, self.permitted_command_sets)
        return command_name in self.listed_commands or any(command_name in commands for commands in named if commands)


policy = Aggregate(Policy, "/policies", context="trust")


class PolicyDefined(Event, of=policy):
    """The policy was defined, and counts from the next call on."""

    name: str
    conduit_id: UUID
    surface_id: UUID
    permitted_principal_ids: SortedSet[UUID]
    permitted_commands: SortedSet[str]
    # Those that were listed by name; in older events also those that the named sets held when it was defined.
    permitted_command_sets: SortedSet[str] = frozenset()


class PolicyGrantRevoked(Event, of=policy):
    """A principal was taken out of the policy."""

    principal_id: UUID
    revoked_by: UUID
    reason: FreeText


@policy.begin
def begin(event: PolicyDefined) -> Policy:
    own = dict(event)
    return Policy(id=event.stream_id, created_at=event.occurred_at, listed_commands=own.pop("permitted_commands"), **own)


@policy.evolve
def evolve(policy: Policy, event: PolicyGrantRevoked) -> Policy:
    return replace(policy, permitted_principal_ids=policy.permitted_principal_ids - {event.principal_id})


class InvalidPolicySurfaceError(Invalid, context="trust", reason="not_in_process"):
    """The nil surface is for in-process callers: only existing agents and service accounts may be permitted on it."""


class InvalidPolicyCommandError(Invalid, context="trust", reason="unknown_command"):
    """A permitted command or command set does not exist."""


CommandName = Annotated[str, Field(min_length=1, max_length=200)]


@policy.creation()
class DefinePolicy(JudgedCreation[None]):
    """Permit principals a set of commands on one conduit and surface; it counts from the next call on.

    A command set means what it holds in the release that judges, so that it grows with releases; listed commands do not.
    """

    name: Annotated[str, policy.text("name", 200)]
    conduit_id: UUID
    surface_id: UUID
    permitted_principal_ids: Annotated[SortedSet[UUID], Field(max_length=1000)]
    permitted_commands: Annotated[SortedSet[CommandName], Field(max_length=1000)]
    permitted_command_sets: Annotated[SortedSet[CommandName], Field(max_length=1000)] = frozenset()

    def gather(self, call: Call) -> Reads[None]:
        yield from require(Conduit, self.conduit_id)
        if self.surface_id != NIL:
            yield from require(Surface, self.surface_id)
            return
        actors = yield from find_all(Actor, self.permitted_principal_ids)
        in_process = {id for id, actor in actors.items() if actor.kind is not ActorKind.HUMAN}
        if strangers := sorted(self.permitted_principal_ids - in_process):
            raise InvalidPolicySurfaceError(
                "The nil surface is for in-process callers; name a surface, or only existing agents and service accounts.",
                facts={"principal_ids": strangers},
            )

    def decide(self, call: Call, facts: None) -> Outcome:
        check_command_names(self.permitted_commands, self.permitted_command_sets)
        return [PolicyDefined(**dict(self)), Enlist(POLICIES_BY_SURFACE, policy_key(self.conduit_id, self.surface_id))]


@policy.command(post="/{policy_id}/revoke-grant", name="revoke_grant", destructive=True)
class RevokePolicyGrant(Verb[Policy]):
    """Take a principal out of a policy, from its next call on; to grant again, define a new policy."""

    permitted_principal_id: UUID
    reason: Annotated[str, policy.text("grant_revoke_reason", 500, label="reason", personal=True)]

    def decide(self, policy: Policy, call: Call) -> Outcome:
        principal_id = self.permitted_principal_id
        if principal_id not in policy.permitted_principal_ids:
            return []
        return [PolicyGrantRevoked(principal_id=principal_id, revoked_by=call.principal_id, reason=self.reason)]


def policy_key(conduit_id: UUID, surface_id: UUID) -> str:
    """Return the look-up key of the policies of this conduit and surface."""
    return f"{conduit_id}/{surface_id}"


def check_command_names(names: frozenset[str], sets: frozenset[str]) -> None:
    """Refuse names of commands and of command sets that this release does not know, all of them at once."""
    if unknown := sorted((names - REGISTRY.command_names()) | (sets - command_sets().keys())):
        detail = f"{', '.join(unknown)}: no such command or command set; see the API documentation for the names."
        raise InvalidPolicyCommandError(detail, facts={"unknown": unknown})


ABOUT_OTHERS = frozenset({"GetActorProfile", "GetPolicy", "GetPolicyHistory", "EvaluatePolicy", "ListConduitVerdicts"})
"""The queries that the set `queries` leaves out: contact data and token subjects, and what others are permitted."""


OF_THE_PLANT = frozenset({"ReadSignals"})
"""The queries that only `all` holds, and a policy that names them: they reach into the control system."""


def command_sets() -> Mapping[str, frozenset[str]]:
    """Return every set a policy may name, and what it holds in this release."""
    return _sets_of(tuple(REGISTRY.operations))


@lru_cache(maxsize=4)
def _sets_of(operations: tuple[str, ...]) -> Mapping[str, frozenset[str]]:
    sets: dict[str, set[str]] = {"all": set(REGISTRY.command_names()), "queries": set()}
    for operation in map(REGISTRY.operations.__getitem__, operations):
        if operation.command_name in OF_THE_PLANT:
            continue
        family = "commands" if operation.kind == "command" else "queries"
        sets.setdefault(f"{operation.context}.{family}", set()).add(operation.command_name)
        if operation.kind == "query":
            sets["queries"].add(operation.command_name)
    sets["queries"] -= ABOUT_OTHERS
    return {name: frozenset(members) for name, members in sets.items()}


policy.get(
    "id", "name", "conduit_id", "surface_id", "permitted_principal_ids", "permitted_commands", "permitted_command_sets"
)


@policy.listing(Summary.from_state(policy, "name conduit_id surface_id created_at"))
class ListPolicies(NamedListQuery):
    """Policies in order of definition."""

    conduit_id: UUID | None = None
    surface_id: UUID | None = None


class PolicyEvaluation(Value):
    """What a policy would say to a call, and why."""

    decision: AccessDecision
    reason: str | None
    determining_policies: tuple[UUID, ...]


@policy.query(get="/{policy_id}/evaluate", returns=PolicyEvaluation)
class EvaluatePolicy(Query):
    """What this one policy would say to a call; for fault-finding, only the seam authorizes."""

    evaluated_principal_id: UUID
    evaluated_command_name: CommandName
    evaluated_conduit_id: UUID
    evaluated_surface_id: UUID

    def answer(self, policy: Policy, call: Call) -> Reads[PolicyEvaluation]:
        asked = (self.evaluated_principal_id, self.evaluated_command_name)
        verdict = judge(Standing(actor=None), [policy], *asked, self.evaluated_conduit_id, self.evaluated_surface_id)
        return PolicyEvaluation(**vars(verdict))
        yield


class PermissionsView(Value):
    """The commands that a policy permits a principal."""

    policy_id: UUID
    evaluated_principal_id: UUID
    evaluated_conduit_id: UUID
    evaluated_surface_id: UUID
    permitted_commands: SortedSet[str]
    incomplete: Literal[False]


@policy.query(get="/{policy_id}/permissions", returns=PermissionsView, refuses=[UnauthorizedError])
class ListPermissions(Query):
    """What this one policy permits a principal; other people's need the permission ListPermissionsOfOthers."""

    evaluated_principal_id: UUID
    evaluated_conduit_id: UUID
    evaluated_surface_id: UUID

    def answer(self, policy: Policy, call: Call) -> Reads[PermissionsView]:
        if self.evaluated_principal_id != call.principal_id and not (yield from is_permitted("ListPermissionsOfOthers")):
            detail = "Reading the permissions of others needs ListPermissionsOfOthers; ask an administrator for it."
            raise UnauthorizedError(detail, reason="permissions_of_others")
        evaluated = dict(self)
        commands = permitted_commands(Standing(actor=None), [policy], *evaluated.values())
        return PermissionsView(policy_id=policy.id, permitted_commands=commands, incomplete=False, **evaluated)


COMPLETING = frozenset({"RecordAgentDecision", "AppendInferences", "AppendRunLogbookEntries"})
"""The commands by which an agent that was suspended meanwhile may complete the work of a lease it holds."""


@dataclass(frozen=True)
class AuthzResult:
    """A verdict; on Deny no policy determined it, since nothing permits by default."""

    decision: AccessDecision
    reason: str | None = None
    determining_policies: tuple[UUID, ...] = ()

    @property
    def allowed(self) -> bool:
        return self.decision is AccessDecision.ALLOW


@dataclass(frozen=True)
class Standing:
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
    standing: Standing,
    policies: Iterable[Policy],
    principal_id: UUID,
    command_name: str,
    conduit_id: UUID,
    surface_id: UUID,
    *,
    completing: bool = False,
) -> AuthzResult:
    """Allow when a policy of exactly this conduit and surface lists the principal and the command."""
    if objection := standing.objection_to(command_name, completing):
        return deny(objection)
    applicable = [policy for policy in policies if policy.conduit_id == conduit_id and policy.surface_id == surface_id]
    if not applicable:
        return deny("no_applicable_policy")
    listing = [policy for policy in applicable if principal_id in policy.permitted_principal_ids]
    if not listing:
        return deny("principal_not_permitted")
    permitting = [policy.id for policy in listing if policy.permits(command_name)]
    if not permitting:
        return deny("command_not_permitted")
    return AuthzResult(AccessDecision.ALLOW, determining_policies=tuple(sorted(permitting)))


def permitted_commands(
    standing: Standing, policies: Iterable[Policy], principal_id: UUID, conduit_id: UUID, surface_id: UUID
) -> frozenset[str]:
    """Return every command the principal could call here: the union over the policies that would allow."""
    here = (policy for policy in policies if (policy.conduit_id, policy.surface_id) == (conduit_id, surface_id))
    return frozenset() if standing.objection else held_commands(here, principal_id)


def held_commands(policies: Iterable[Policy], principal_id: UUID) -> frozenset[str]:
    """Return every command that these policies permit a principal, on whatever conduit and surface, active or not."""
    listing = [policy for policy in policies if principal_id in policy.permitted_principal_ids]
    return frozenset().union(*(policy.permitted_commands for policy in listing))


def reachable_commands(permitted: frozenset[str], kind: ActorKind | None, surface_id: UUID) -> frozenset[str]:
    """Return those of the permitted names that a call by this kind of actor on this surface can reach.

    Left out are operations for other kinds of actor, those that this surface does not have, and inner commands.
    """
    if surface_id == NIL:
        return permitted
    reached = {operation.command_name for operation in REGISTRY if is_reachable(operation, kind, surface_id)}
    return permitted & (reached | (REGISTRY.permissions - REGISTRY.inner))


def is_reachable(operation: Operation, kind: ActorKind | None, surface_id: UUID) -> bool:
    """Return whether a call by this kind of actor on this surface can reach an operation, whatever policies permit."""
    if operation.callers and kind not in operation.callers:
        return False
    return operation.mcp or surface_id not in (SYSTEM_MCP_STDIO, SYSTEM_MCP_STREAMABLE_HTTP)
