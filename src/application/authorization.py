"""The two authorizers: a permissive one for development, and one by policies folded from their streams."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from baton.application.caller import Caller
from baton.application.ports import JudgedPrincipal, Store, VerdictLog
from baton.application.unit_of_work import decode_event
from baton.domain.access.actor import Actor, ActorKind
from baton.domain.access.group import ACTIVE, GROUPS, IN_USE, Group
from baton.domain.agent.agent import Agent, AgentStatus
from baton.domain.kernel import NIL, SYSTEM_CONDUIT, Aggregate
from baton.domain.registry import REGISTRY
from baton.domain.trust import authorization as rules
from baton.domain.trust.authorization import Access, AuthzResult, PrincipalStatus
from baton.domain.trust.conduit import AccessDecision
from baton.domain.trust.policy import POLICIES_BY_SURFACE, Policy, policy_key

ALLOWED = AuthzResult(AccessDecision.ALLOW)


class PrincipalStatuses:
    """The standing of principals by the very latest event; folds are kept between calls and only newer events are read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[tuple[str, UUID], tuple[int, object]] = {}

    async def of(self, principal_id: UUID) -> PrincipalStatus:
        """Return whether a principal is active, and an agent in service."""
        actor: Actor | None = await self._latest(Actor.aggregate, principal_id)
        if actor is None or actor.kind is not ActorKind.AGENT:
            return PrincipalStatus(actor)
        agent: Agent | None = await self._latest(Agent.aggregate, principal_id)
        status = None if agent is None else agent.status
        return PrincipalStatus(actor, status is AgentStatus.VERSIONED, status is AgentStatus.SUSPENDED)

    async def standing_of(self, principal_id: UUID, *, known_only: bool) -> JudgedPrincipal:
        """Return why a principal may not act, if so, with the versions read; `known_only` objects to strangers too."""
        standing = await self.of(principal_id)
        unknown = "principal_unknown" if known_only and standing.actor is None else None
        is_agent = standing.actor is not None and standing.actor.kind is ActorKind.AGENT
        agent_version = self._version(Agent.aggregate, principal_id) if is_agent else None
        actor_version = self._version(Actor.aggregate, principal_id)
        return JudgedPrincipal(principal_id, standing.objection or unknown, actor_version, agent_version)

    def _version(self, aggregate: Aggregate, id: UUID) -> int:
        return self._known.get((aggregate.name, id), (0, None))[0]

    async def _latest(self, aggregate: Aggregate, id: UUID) -> Any:
        key = (aggregate.name, id)
        version, state = self._known.get(key, (0, None))
        for row in await self._store.newer(aggregate.name, {id: version}):
            state = aggregate.after(state, decode_event(aggregate, row))
            self._known[key] = (row.version, state)
        return state


class PermissiveAuthorizer:
    """Allows everything and records nothing, for development and tests; a deactivated agent or monitor stays denied."""

    def __init__(self, standings: PrincipalStatuses | None = None) -> None:
        self._standings = standings

    async def authorize(self, caller: Caller, command_name: str, surface_id: UUID | None = None) -> AuthzResult:
        surface_id = caller.surface_id if surface_id is None else surface_id
        if self._standings is None or surface_id != NIL or caller.principal_id == NIL:
            return ALLOWED
        standing = await self._standings.of(caller.principal_id)
        objection = standing.objection_to(command_name, caller.completing)
        return ALLOWED if objection is None else rules.deny(objection)

    async def permitted_commands(self, caller: Caller) -> frozenset[str]:
        return REGISTRY.command_names()

    async def access(self, caller: Caller) -> Access:
        return Access((), ())

    async def proven_groups(self, caller: Caller) -> frozenset[UUID]:
        return frozenset()

    async def read_principal_status(self, caller: Caller) -> JudgedPrincipal:
        if self._standings is None or caller.principal_id == NIL:
            return JudgedPrincipal(caller.principal_id)
        return await self._standings.standing_of(caller.principal_id, known_only=False)


class PolicyAuthorizer:
    """Judges by the policies of the caller's conduit and surface, folded up to the very latest event. Folds are kept and
    only newer events read, so a revocation counts at once and a call costs two or three small queries."""

    def __init__(self, store: Store, verdicts: VerdictLog) -> None:
        self._store = store
        self._verdicts = verdicts
        self._standings = PrincipalStatuses(store)
        self._policies: dict[str, dict[UUID, tuple[int, Policy]]] = {}
        self._groups: dict[UUID, tuple[int, Group]] = {}

    async def authorize(self, caller: Caller, command_name: str, surface_id: UUID | None = None) -> AuthzResult:
        surface_id = caller.surface_id if surface_id is None else surface_id
        if is_system(caller, surface_id):
            return ALLOWED
        who, conduit_id, approval = caller.principal_id, caller.conduit_id, caller.approval
        standing, policies = await self._standings.of(who), await self._applicable(conduit_id, surface_id)
        groups = await self._groups_of(caller, policies)
        if command_name in rules.OF_ONES_OWN and standing.objection is None:
            result = ALLOWED
        else:
            result = rules.judge(
                *(standing, policies, who, command_name, conduit_id, surface_id),
                group_ids=groups,
                approved_under=frozenset() if approval is None else approval.policies_for(command_name),
                completing=caller.completing,
            )
        self._verdicts.record(caller, surface_id, command_name, result)
        return result

    async def permitted_commands(self, caller: Caller) -> frozenset[str]:
        if is_system(caller, caller.surface_id):
            return REGISTRY.command_names()
        standing, place = await self._standings.of(caller.principal_id), (caller.conduit_id, caller.surface_id)
        policies = await self._applicable(*place)
        groups = await self._groups_of(caller, policies)
        return rules.permitted_commands(standing, policies, caller.principal_id, *place, group_ids=groups)

    async def access(self, caller: Caller) -> Access:
        standing = await self._standings.of(caller.principal_id)
        if standing.objection or is_system(caller, caller.surface_id):
            return Access((), ())
        groups = [group for group in await self._known_groups() if is_member(caller, group)]
        ids = frozenset(group.id for group in groups)
        here = await self._applicable(caller.conduit_id, caller.surface_id)
        return Access(tuple(groups), tuple(policy for policy in here if policy.names(caller.principal_id, ids)))

    async def read_principal_status(self, caller: Caller) -> JudgedPrincipal:
        if is_system(caller, caller.surface_id):
            return JudgedPrincipal(caller.principal_id)
        return await self._standings.standing_of(caller.principal_id, known_only=True)

    async def _applicable(self, conduit_id: UUID, surface_id: UUID) -> list[Policy]:
        key = policy_key(conduit_id, surface_id)
        known = self._policies.get(key, {})
        versions = {id: version for id, (version, _) in known.items()}
        for row in await self._store.newer(Policy.__name__, versions, (POLICIES_BY_SURFACE, key)):
            version, policy = known.get(row.stream_id, (0, None))
            if row.version == version + 1:
                known[row.stream_id] = (row.version, Policy.aggregate.after(policy, decode_event(Policy.aggregate, row)))
        if known:  # callers name surfaces that do not exist; nothing is kept of those
            self._policies.setdefault(key, known)
        return [policy for _, policy in known.values()]

    async def proven_groups(self, caller: Caller) -> frozenset[UUID]:
        if caller.claims is None:
            return caller.proven_group_ids
        told = (group for group in await self._known_groups() if group.claim and group.claim.is_in(caller.claims))
        return frozenset(group.id for group in told if group.status is ACTIVE)

    async def _groups_of(self, caller: Caller, policies: Iterable[Policy]) -> frozenset[UUID]:
        """Return the groups of a caller among those that policies permit; none are looked up where none are permitted."""
        if not any(policy.permitted_group_ids for policy in policies):
            return frozenset()
        return frozenset(group.id for group in await self._known_groups() if is_member(caller, group))

    async def _known_groups(self) -> list[Group]:
        versions = {id: version for id, (version, _) in self._groups.items()}
        for row in await self._store.newer(Group.__name__, versions, (GROUPS, IN_USE)):
            version, group = self._groups.get(row.stream_id, (0, None))
            if row.version == version + 1:
                self._groups[row.stream_id] = (row.version, Group.aggregate.after(group, decode_event(Group.aggregate, row)))
        return [group for _, group in self._groups.values()]


def is_member(caller: Caller, group: Group) -> bool:
    """Return whether a caller belongs to a group: it is listed, its token says so, or said so when it began this."""
    proven = group.id in caller.proven_group_ids and group.status is ACTIVE
    return proven or group.has(caller.principal_id, caller.claims)


def is_system(caller: Caller, surface_id: UUID) -> bool:
    """Return whether the service itself is calling; no transport can form this combination."""
    return caller.principal_id == NIL and surface_id == NIL and caller.conduit_id == SYSTEM_CONDUIT
