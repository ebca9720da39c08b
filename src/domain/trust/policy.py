"""A policy: an allow-list. It permits each listed principal, and each member of a listed group, each listed command on one
conduit arriving on one surface; at once, or once a second person approves."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Self, assert_never
from uuid import UUID

from pydantic import Field, model_validator

from baton.domain.access.actor import Actor, ActorKind
from baton.domain.access.group import Group
from baton.domain.kernel import (
    NIL,
    Aggregate,
    Call,
    Event,
    IdSet,
    JudgedCreation,
    JudgedVerb,
    Outcome,
    SortedSet,
    State,
    Value,
    Verb,
    copy_with,
)
from baton.domain.registry import REGISTRY
from baton.domain.shared.annotations import Seconds
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.reads import Reads, ask, find_all, require, require_all
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import FreeText
from baton.domain.shared.writes import Answer, Enlist
from baton.domain.trust.conduit import Conduit
from baton.domain.trust.surface import Surface

POLICIES_BY_SURFACE = "policy-of"  # Look-up kind: the policies of one conduit and surface.
DEFAULT_EXPIRY_SECONDS = 86400  # How long a proposal may be approved where its policy does not say.

REGISTRY.permissions |= {"ListPermissionsOfOthers", "ReadEventTexts", "RequestDecisionDebrief", "RecordAgentDecision"}
EXAMINE_SERVICE = "ExamineService"
"""The permission to see what is wrong with the service itself; it names servers, processes and settings."""
REGISTRY.permissions.add(EXAMINE_SERVICE)


class Approval(Value):
    """Who may approve what a policy permits with approval: these principals and the members of these groups, as far as they
    hold the command themselves; and how many seconds they have."""

    principals: Annotated[IdSet, Field(max_length=1000)] = frozenset()
    groups: Annotated[IdSet, Field(max_length=100)] = frozenset()
    expires_after: Annotated[int, Field(strict=True, ge=1, le=31 * 86400), Seconds] = DEFAULT_EXPIRY_SECONDS


@dataclass(frozen=True, kw_only=True)
class Policy(State):
    """A policy permits each listed principal and group each listed command, on one conduit and one surface; where it has an
    approval, only once somebody whom that names approves."""

    name: str
    conduit_id: UUID
    surface_id: UUID
    permitted_principal_ids: SortedSet[UUID]
    listed_commands: SortedSet[str]
    permitted_command_sets: SortedSet[str]
    permitted_group_ids: SortedSet[UUID] = frozenset()
    approval: Approval | None = None

    @property
    def permitted_commands(self) -> SortedSet[str]:
        """The listed commands, and what the named sets hold in this release; with approval, those that can be approved."""
        sets = command_sets()
        named = self.listed_commands.union(*(sets.get(name, frozenset()) for name in self.permitted_command_sets))
        return named if self.approval is None else named & approvable_commands()

    def permits(self, command_name: str) -> bool:
        """Return whether it permits this command, by its name or by a set; a set that is unknown now permits none."""
        named = map(command_sets().get, self.permitted_command_sets)
        listed = command_name in self.listed_commands or any(command_name in commands for commands in named if commands)
        return listed and (self.approval is None or command_name in approvable_commands())

    def names(self, principal_id: UUID, group_ids: frozenset[UUID]) -> bool:
        """Return whether it is about a principal who belongs to these groups."""
        return principal_id in self.permitted_principal_ids or not group_ids.isdisjoint(self.permitted_group_ids)


policy = Aggregate(Policy, "/policies", context="trust")


class PolicyDefined(Event, of=policy, version=2, upcasters={1: dict}):
    """The policy was defined, and counts from the next call on."""

    name: str
    conduit_id: UUID
    surface_id: UUID
    permitted_principal_ids: SortedSet[UUID]
    permitted_commands: SortedSet[str]
    # Those that were listed by name; in older events also those that the named sets held when it was defined.
    permitted_command_sets: SortedSet[str] = frozenset()
    permitted_group_ids: SortedSet[UUID] = frozenset()
    approval: Approval | None = None


class PolicyExtended(Event, of=policy):
    """These principals, groups, commands and sets of commands were added to the policy."""

    permitted_principal_ids: SortedSet[UUID]
    permitted_group_ids: SortedSet[UUID]
    permitted_commands: SortedSet[str]
    permitted_command_sets: SortedSet[str]


class PolicyGrantRevoked(Event, of=policy, version=2, upcasters={1: dict}):
    """A principal, a group, a command or a set of commands was taken out of the policy."""

    principal_id: UUID | None = None
    group_id: UUID | None = None
    command: str | None = None
    command_set: str | None = None
    revoked_by: UUID
    reason: FreeText


@policy.begin
def begin(event: PolicyDefined) -> Policy:
    own = dict(event)
    return Policy(id=event.stream_id, created_at=event.occurred_at, listed_commands=own.pop("permitted_commands"), **own)


@policy.evolve
def evolve(policy: Policy, event: PolicyExtended | PolicyGrantRevoked) -> Policy:
    match event:
        case PolicyExtended():
            return copy_with(
                policy,
                permitted_principal_ids=policy.permitted_principal_ids | event.permitted_principal_ids,
                permitted_group_ids=policy.permitted_group_ids | event.permitted_group_ids,
                listed_commands=policy.listed_commands | event.permitted_commands,
                permitted_command_sets=policy.permitted_command_sets | event.permitted_command_sets,
            )
        case PolicyGrantRevoked():
            return copy_with(
                policy,
                permitted_principal_ids=policy.permitted_principal_ids - {event.principal_id},
                permitted_group_ids=policy.permitted_group_ids - {event.group_id},
                listed_commands=policy.listed_commands - {event.command},
                permitted_command_sets=policy.permitted_command_sets - {event.command_set},
            )
        case _:
            assert_never(event)


class InvalidPolicySurfaceError(Invalid, context="trust", reason="not_in_process"):
    """The nil surface is for in-process callers: only existing agents and service accounts may be permitted on it."""


class InvalidPolicyCommandError(Invalid, context="trust", reason="unknown_command"):
    """A permitted command or command set does not exist."""


class InvalidPolicyApprovalError(Invalid, context="trust"):
    """The approval names nobody, or the policy permits with approval what is no command that could be proposed."""


NOT_ENFORCED = (
    "Policies are recorded and not enforced here: everybody who reaches the service may do everything, until "
    "AUTHORIZATION_MODE is policy."
)


class PolicyRecordedAnswer(AnswerForm):
    """A policy that was recorded, and whether policies are enforced here."""

    policy_id: UUID
    enforced: bool
    remark: str | None


def policies_enforced() -> Reads[bool]:
    """Return whether this deployment enforces policies, or only records them."""
    deployment = yield from ask(DeploymentPort.deployment)
    return deployment.policies_enforced


def recorded_answer(policy_id: UUID, enforced: bool) -> Answer:
    """Return the answer to a change of what a policy permits."""
    answer = PolicyRecordedAnswer(policy_id=policy_id, enforced=enforced, remark=None if enforced else NOT_ENFORCED)
    return Answer(answer.model_dump(mode="json"))


CommandName = Annotated[str, Field(min_length=1, max_length=200)]
Principals = Annotated[SortedSet[UUID], Field(max_length=1000)]
Groups = Annotated[SortedSet[UUID], Field(max_length=100)]
CommandNames = Annotated[SortedSet[CommandName], Field(max_length=1000)]


def require_permitted(surface_id: UUID, principal_ids: frozenset[UUID], group_ids: frozenset[UUID]) -> Reads[None]:
    """Refuse groups that do not exist and, on the nil surface, everybody who is no in-process caller."""
    yield from require_all(Group, group_ids)
    if surface_id != NIL:
        return
    actors = yield from find_all(Actor, principal_ids)
    in_process = {id for id, actor in actors.items() if actor.kind is not ActorKind.HUMAN}
    if strangers := sorted((principal_ids - in_process) | group_ids):
        raise InvalidPolicySurfaceError(
            "The nil surface is for in-process callers; name a surface, or only existing agents and service accounts.",
            facts={"principal_ids": strangers},
        )


@policy.creation(returns=PolicyRecordedAnswer)
class DefinePolicy(JudgedCreation[bool]):
    """Permit principals and groups a set of commands on one conduit and surface; it counts from the next call on.

    Where policies are not enforced, it is recorded only, and the answer says so.

    A command set means what it holds in the release that judges, so that it grows with releases; listed commands do not.
    With `approval` a call becomes a proposal, which somebody whom the approval names and who holds the command approves.
    """

    name: Annotated[str, policy.text("name", 200)]
    conduit_id: UUID
    surface_id: UUID
    permitted_principal_ids: Principals
    permitted_commands: CommandNames
    permitted_command_sets: CommandNames = frozenset()
    permitted_group_ids: Groups = frozenset()
    approval: Approval | None = None

    def gather(self, call: Call) -> Reads[bool]:
        yield from require(Conduit, self.conduit_id)
        if self.surface_id != NIL:
            yield from require(Surface, self.surface_id)
        yield from require_permitted(self.surface_id, self.permitted_principal_ids, self.permitted_group_ids)
        if self.approval is not None:
            yield from require_all(Group, self.approval.groups)
        return (yield from policies_enforced())

    def decide(self, call: Call, enforced: bool) -> Outcome:
        check_command_names(self.permitted_commands, self.permitted_command_sets)
        if self.approval is not None:
            check_approval(self.approval, self.permitted_commands)
        found_by = Enlist(POLICIES_BY_SURFACE, policy_key(self.conduit_id, self.surface_id))
        return [PolicyDefined(**dict(self)), found_by, recorded_answer(call.new_id, enforced)]


def check_approval(approval: Approval, commands: frozenset[str]) -> None:
    """Refuse an approval by nobody, and commands that no approval could let pass."""
    if not (approval.principals or approval.groups):
        raise InvalidPolicyApprovalError(
            "The approval names nobody; give principals or groups who may approve.", reason="nobody"
        )
    if others := sorted(commands - approvable_commands()):
        detail = f"{', '.join(others)}: only commands are permitted with approval; permit these by another policy."
        raise InvalidPolicyApprovalError(detail, reason="not_approvable", facts={"commands": others})


@policy.command(post="/{policy_id}/extend", status=200, returns=PolicyRecordedAnswer, attempts=3)
class ExtendPolicy(JudgedVerb[Policy, bool]):
    """Add principals, groups, commands or sets of commands to a policy; they count from the next call on.

    Where policies are not enforced, they are recorded only, and the answer says so.
    """

    permitted_principal_ids: Principals = frozenset()
    permitted_group_ids: Groups = frozenset()
    permitted_commands: CommandNames = frozenset()
    permitted_command_sets: CommandNames = frozenset()

    @model_validator(mode="after")
    def _adds_something(self) -> Self:
        if not any(dict(self).values()):
            raise ValueError("name at least one principal, group, command or command set to add")
        return self

    def gather(self, policy: Policy, call: Call) -> Reads[bool]:
        yield from require_permitted(policy.surface_id, self.permitted_principal_ids, self.permitted_group_ids)
        return (yield from policies_enforced())

    def decide(self, policy: Policy, call: Call, enforced: bool) -> Outcome:
        check_command_names(self.permitted_commands, self.permitted_command_sets)
        if policy.approval is not None:
            check_approval(policy.approval, self.permitted_commands)
        extended = PolicyExtended(
            permitted_principal_ids=self.permitted_principal_ids - policy.permitted_principal_ids,
            permitted_group_ids=self.permitted_group_ids - policy.permitted_group_ids,
            permitted_commands=self.permitted_commands - policy.listed_commands,
            permitted_command_sets=self.permitted_command_sets - policy.permitted_command_sets,
        )
        answer = recorded_answer(policy.id, enforced)
        return [extended, answer] if any(dict(extended).values()) else [answer]


@policy.command(post="/{policy_id}/revoke-grant", name="revoke_grant", destructive=True)
class RevokePolicyGrant(Verb[Policy]):
    """Take a principal, a group, a command or a set of commands out of a policy, from the next call on."""

    permitted_principal_id: UUID | None = None
    permitted_group_id: UUID | None = None
    permitted_command: CommandName | None = None
    permitted_command_set: CommandName | None = None
    reason: Annotated[str, policy.text("grant_revoke_reason", 500, label="reason", personal=True)]

    @model_validator(mode="after")
    def _names_one_grant(self) -> Self:
        if sum(value is not None for name, value in self if name != "reason") != 1:
            raise ValueError(
                "name one of permitted_principal_id, permitted_group_id, permitted_command and permitted_command_set"
            )
        return self

    def decide(self, policy: Policy, call: Call) -> Outcome:
        held = (
            self.permitted_principal_id in policy.permitted_principal_ids
            or self.permitted_group_id in policy.permitted_group_ids
            or self.permitted_command in policy.listed_commands
            or self.permitted_command_set in policy.permitted_command_sets
        )
        revoked = PolicyGrantRevoked(
            principal_id=self.permitted_principal_id,
            group_id=self.permitted_group_id,
            command=self.permitted_command,
            command_set=self.permitted_command_set,
            revoked_by=call.principal_id,
            reason=self.reason,
        )
        return [revoked] if held else []


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


UNAPPROVABLE = frozenset({"ApproveProposal", "RejectProposal", "WithdrawProposal"})
"""The commands that are not permitted with approval: those that a proposal is settled by."""


def approvable_commands() -> frozenset[str]:
    """Return every command that may be permitted with approval: those that a caller gives, and no query."""
    return _approvable_of(tuple(REGISTRY.operations))


@lru_cache(maxsize=4)
def _approvable_of(operations: tuple[str, ...]) -> frozenset[str]:
    known = map(REGISTRY.operations.__getitem__, operations)
    return frozenset(one.command_name for one in known if one.kind == "command") - UNAPPROVABLE


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


GetPolicy = policy.get(
    *("id", "name", "conduit_id", "surface_id", "permitted_principal_ids", "permitted_group_ids", "permitted_commands"),
    *("permitted_command_sets", "approval"),
)


class PolicySummary(Summary):
    policy_id: UUID
    name: str
    conduit_id: UUID
    surface_id: UUID
    created_at: datetime


@policy.listing(PolicySummary)
class ListPolicies(NamedListQuery[PolicySummary]):
    """Policies in order of definition."""

    conduit_id: UUID | None = None
    surface_id: UUID | None = None
