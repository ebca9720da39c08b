"""A policy: an allow-list. It permits each listed principal each listed command on one conduit arriving on one surface."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from baton.domain.access.actor import Actor, ActorKind
from baton.domain.kernel import (
    NIL,
    Aggregate,
    Call,
    Event,
    IdSet,
    JudgedCreation,
    Outcome,
    Query,
    SortedSet,
    State,
    Value,
    Verb,
    changed,
)
from baton.domain.registry import REGISTRY
from baton.domain.shared.listing import ListQuery, Summary
from baton.domain.shared.reads import Reads, every, is_permitted, required
from baton.domain.shared.refusals import Invalid, UnauthorizedError
from baton.domain.shared.text import FreeText
from baton.domain.shared.writes import Enlist
from baton.domain.trust.authorization import Standing, judge, permitted_commands
from baton.domain.trust.conduit import AccessDecision, Conduit
from baton.domain.trust.surface import Surface

POLICIES_BY_SURFACE = "policy-of"  # Look-up kind: the policies of one conduit and surface.

REGISTRY.permissions |= {"ListPermissionsOfOthers", "ReadEventTexts", "RequestDecisionDebrief", "RecordAgentDecision"}


@dataclass(frozen=True, kw_only=True)
class Policy(State):
    """A policy permits each listed principal each listed command, on one conduit and one surface."""

    name: str
    conduit_id: UUID
    surface_id: UUID
    permitted_principal_ids: IdSet
    listed_commands: SortedSet[str]
    permitted_command_sets: SortedSet[str]

    @property
    def permitted_commands(self) -> SortedSet[str]:
        """The listed commands, and what the named sets hold in this release."""
        sets = command_sets()
        return self.listed_commands.union(*(sets.get(name, frozenset()) for name in self.permitted_command_sets))

    def permits(self, command_name: str) -> bool:
        """Return whether it permits this command, by its name or by a set; a set that is unknown now permits none."""
        sets = command_sets()
        named = (sets.get(name, frozenset()) for name in self.permitted_command_sets)
        return command_name in self.listed_commands or any(command_name in commands for commands in named)


policy = Aggregate(Policy, "/policies", context="trust")


class PolicyDefined(Event, of=policy):
    """The policy was defined, and counts from the next call on."""

    name: str
    conduit_id: UUID
    surface_id: UUID
    permitted_principal_ids: IdSet
    permitted_commands: SortedSet[str]
    """Those that were listed by name; in older events also those that the named sets held when it was defined."""
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
    return changed(policy, permitted_principal_ids=policy.permitted_principal_ids - {event.principal_id})


class InvalidPolicySurfaceError(Invalid, context="trust"):
    """The nil surface is for in-process callers: only existing agents and service accounts may be permitted on it."""


class InvalidPolicyCommandError(Invalid, context="trust"):
    """A permitted command or command set does not exist."""


CommandName = Annotated[str, Field(min_length=1, max_length=200)]


@policy.creation(essential=True)
class DefinePolicy(JudgedCreation[None]):
    """Permit principals a set of commands on one conduit and surface; it counts from the next call on.

    A command set means what it holds in the release that judges, so that it grows with releases; listed commands do not.
    """

    name: Annotated[str, policy.text("name", 200)]
    conduit_id: UUID
    surface_id: UUID
    permitted_principal_ids: Annotated[IdSet, Field(max_length=1000)]
    permitted_commands: Annotated[SortedSet[CommandName], Field(max_length=1000)]
    permitted_command_sets: Annotated[SortedSet[CommandName], Field(max_length=1000)] = frozenset()

    def gather(self, call: Call) -> Reads[None]:
        yield from required(Conduit, self.conduit_id)
        if self.surface_id != NIL:
            yield from required(Surface, self.surface_id)
            return
        actors = yield from every(Actor, self.permitted_principal_ids)
        in_process = {id for id, actor in actors.items() if actor.kind is not ActorKind.HUMAN}
        if strangers := sorted(self.permitted_principal_ids - in_process):
            raise InvalidPolicySurfaceError(
                "The nil surface is for in-process callers; name a surface, or only existing agents and service accounts.",
                reason="not_in_process",
                facts={"principal_ids": [str(id) for id in strangers]},
            )

    def decide(self, call: Call, facts: None) -> Outcome:
        check_command_names(self.permitted_commands, self.permitted_command_sets)
        lookup = Enlist(POLICIES_BY_SURFACE, policy_key(self.conduit_id, self.surface_id))
        return [PolicyDefined(**dict(self)), lookup]


@policy.command(post="/{policy_id}/revoke-grant", name="revoke_grant", destructive=True)
class RevokePolicyGrant(Verb[Policy]):
    """Take a principal out of a policy, from its next call on; to grant again, define a new policy."""

    permitted_principal_id: UUID
    reason: Annotated[str, policy.text("grant_revoke_reason", 500, label="reason", personal=True)]

    def decide(self, policy: Policy, call: Call) -> Outcome:
        if self.permitted_principal_id not in policy.permitted_principal_ids:
            return []
        return [
            PolicyGrantRevoked(principal_id=self.permitted_principal_id, revoked_by=call.principal_id, reason=self.reason)
        ]


def policy_key(conduit_id: UUID, surface_id: UUID) -> str:
    """Return the look-up key of the policies of this conduit and surface."""
    return f"{conduit_id}/{surface_id}"


def check_command_names(names: frozenset[str], sets: frozenset[str]) -> None:
    """Refuse names of commands and of command sets that this release does not know, all of them at once."""
    unknown = sorted((names - REGISTRY.command_names()) | (sets - command_sets().keys()))
    if unknown:
        raise InvalidPolicyCommandError(
            f"{', '.join(unknown)}: no such command or command set; see the API documentation for the names.",
            reason="unknown_command",
            facts={"unknown": unknown},
        )


ABOUT_OTHERS = frozenset({"GetActorProfile", "GetPolicy", "GetPolicyHistory", "EvaluatePolicy", "ListConduitVerdicts"})
"""The queries that the set `queries` leaves out: contact data and token subjects, and what others are permitted."""


def command_sets() -> Mapping[str, frozenset[str]]:
    """Return every set a policy may name, and what it holds in this release."""
    return _sets_of(tuple(REGISTRY.operations))


@lru_cache(maxsize=4)
def _sets_of(operations: tuple[str, ...]) -> Mapping[str, frozenset[str]]:
    sets: dict[str, set[str]] = {"all": set(REGISTRY.command_names()), "queries": set()}
    for operation in map(REGISTRY.operations.__getitem__, operations):
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
class ListPolicies(ListQuery):
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
            raise UnauthorizedError(
                "Reading the permissions of others needs ListPermissionsOfOthers; ask an administrator for it.",
                reason="permissions_of_others",
            )
        commands = permitted_commands(
            Standing(actor=None), [policy], self.evaluated_principal_id, self.evaluated_conduit_id, self.evaluated_surface_id
        )
        return PermissionsView(policy_id=policy.id, permitted_commands=commands, incomplete=False, **dict(self))
