"""The records that every deployment starts with: checked at every boot, decided like everything else, each written once."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import UUID

from baton.application.ports import Batch, Clock, IdGenerator, Session, Store
from baton.application.unit_of_work import load_state
from baton.domain.access.actor import Actor, ActorKind, ActorProfile, ActorRegistered, monitor_id
from baton.domain.agent.agent import Agent
from baton.domain.agent.seeded_agents import SEEDED, SeededAgent
from baton.domain.equipment.role import ROLE_NAME, Role
from baton.domain.equipment.seeded_roles import SEEDED_ROLES
from baton.domain.facility.facility import Facility, FacilityKind, RegisterFacility
from baton.domain.kernel import NIL, SYSTEM_CONDUIT, Call, Outcome, State
from baton.domain.safety.clearance_template import SEEDED_TITLES, TEMPLATE_CODE, code_key, seeded_template
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.identifiers import FACILITY_CODE
from baton.domain.shared.refusals import Conflict
from baton.domain.shared.text import name_key
from baton.domain.shared.writes import Enlist, Put
from baton.domain.trust import conduit, surface, zone
from baton.domain.trust.policy import POLICIES_BY_SURFACE, Policy, PolicyDefined, PolicyGrantRevoked, policy_key

COMMAND_NAME = "SystemBootstrap"
SYSTEM_ZONE = UUID(int=0x30)
SYSTEM_SURFACES = {
    surface.SYSTEM_HTTP: surface.SurfaceDefined(name="System HTTP", kind=surface.SurfaceKind.HTTP),
    surface.SYSTEM_MCP_STDIO: surface.SurfaceDefined(name="System MCP stdio", kind=surface.SurfaceKind.MCP_STDIO),
    surface.SYSTEM_MCP_STREAMABLE_HTTP: surface.SurfaceDefined(
        name="System MCP streamable HTTP", kind=surface.SurfaceKind.MCP_STREAMABLE_HTTP
    ),
}
BOOTSTRAP_COMMANDS = frozenset(
    (
        *("RegisterActor", "BindActorSubject", "DefineGroup", "AddGroupMember"),
        *("DefinePolicy", "ExtendPolicy", "RevokePolicyGrant"),
        *("ListActors", "GetActor", "ListAgents", "ListGroups", "GetGroup", "ListPolicies", "GetPolicy"),
        *("ListSurfaces", "ListConduits", "ListFacilities"),
    )
)
"""What the first administrator needs to apply a file of groups and policies, by names, and to list people in the groups."""
MONITORS = {
    "SupplyMonitor": frozenset({"ObserveSupplyStatus", "RegisterSupply", "GetSupply", "ListSupplies"}),
    "EnclosureMonitor": frozenset({"ObserveEnclosureStatus", "RegisterEnclosure", "GetEnclosure", "ListEnclosures"}),
}


@dataclass
class Seeds:
    """Writes what is missing, in the order own facility, actors and agents, policies, templates."""

    store: Store
    clock: Clock
    new_id: IdGenerator

    async def plant(
        self,
        *,
        facility_code: str,
        bootstrap_principal_id: UUID | None,
        template_codes: Sequence[str] = tuple(SEEDED_TITLES),
        agents: Sequence[SeededAgent] = tuple(SEEDED.values()),
    ) -> None:
        """Write every seed that is missing."""
        for surface_id, defined in SYSTEM_SURFACES.items():
            await self._begin(surface.Surface, surface_id, [defined])
        await self._begin(zone.Zone, SYSTEM_ZONE, [zone.ZoneDefined(name="System zone")])
        path = conduit.ConduitDefined(name="System conduit", source_zone_id=SYSTEM_ZONE, target_zone_id=SYSTEM_ZONE)
        await self._begin(conduit.Conduit, SYSTEM_CONDUIT, [path, conduit.open_verdict_logbook(self.new_id())])
        await self._facility(facility_code)
        await self._roles()
        for name in MONITORS:
            await self._actor(monitor_id(name), ActorKind.SERVICE_ACCOUNT, name)
        if bootstrap_principal_id is not None:
            await self._actor(bootstrap_principal_id, ActorKind.HUMAN, "Bootstrap administrator")
        for seeded in agents:
            await self._begin(Agent, seeded.id, seeded.begin(self._call(seeded.id)))
        if bootstrap_principal_id is not None:
            await self._policy("Bootstrap administration", bootstrap_principal_id, surface.SYSTEM_HTTP, BOOTSTRAP_COMMANDS)
        for name, commands in MONITORS.items():
            await self._policy(f"{name}, in process", monitor_id(name), NIL, commands)
        for seeded in agents:
            if await load_state(self.store, Agent, seeded.id) is not None:
                await self._agent_policy(seeded)
        await self._templates(facility_code, template_codes)

    async def objections(self, *, bootstrap_principal_id: UUID | None) -> list[str]:
        """Return what enforced authorization lacks to start; nothing, unless the log was tampered with."""
        wanted = {("Surface", id): f"the surface {defined.name}" for id, defined in SYSTEM_SURFACES.items()}
        wanted["Conduit", SYSTEM_CONDUIT] = "the System conduit"
        for name in MONITORS:
            wanted["Actor", monitor_id(name)] = f"the actor {name}"
            wanted["Policy", await self._policy_id(monitor_id(name))] = f"the policy of {name}"
        objections = []
        for seeded in SEEDED.values():
            actor = await load_state(self.store, Actor, seeded.id)
            if actor is not None and actor.kind is not ActorKind.AGENT:
                conflict = f"The id {seeded.id} of the agent {seeded.kind} is held by an actor of kind {actor.kind.value}"
                remedy = "begin with an empty database and another id for that actor, or restore a backup from before it"
                objections.append(f"{conflict}; {remedy}.")
                continue
            wanted["Agent", seeded.id] = f"the agent {seeded.kind}"
            wanted["Policy", await self._policy_id(seeded.id, seeded.list_number)] = f"the policy of {seeded.kind}"
        if bootstrap_principal_id is not None:
            wanted["Policy", await self._policy_id(bootstrap_principal_id)] = "the policy of the bootstrap principal"
        async with self.store.session() as session:
            for (stream_type, id), what in wanted.items():
                if not await session.load(stream_type, [id]):
                    objections.append(f"The log lacks {what}, which policies rest on; restore the database from a backup.")
        return objections

    async def _facility(self, code: str) -> None:
        async with self.store.session() as session:
            if await session.holders(FACILITY_CODE, [code]):
                return
        own = RegisterFacility(code=code, display_name=code, kind=FacilityKind.SITE, parent_id=None)
        await self._decide(Facility, lambda call: own.decide(call, None))

    async def _roles(self) -> None:
        async with self.store.session() as session:
            present = await session.holders(ROLE_NAME, [name_key(role.name) for role in SEEDED_ROLES])
        for role in SEEDED_ROLES:
            if name_key(role.name) not in present:
                await self._decide(Role, role.decide)

    async def _templates(self, facility_code: str, codes: Sequence[str]) -> None:
        by_key = {code_key(facility_code, code): code for code in codes}
        async with self.store.session() as session:
            holder = (await session.holders(FACILITY_CODE, [facility_code])).values()
            own: Facility | None = Facility.aggregate.replay(await session.load(Facility.__name__, list(holder)))
            if own is None or own.kind is not FacilityKind.SITE:
                return
            present = await session.holders(TEMPLATE_CODE, list(by_key))
            batch = Batch(self._call(self.new_id()), COMMAND_NAME)
            for code in [code for key, code in by_key.items() if key not in present]:
                call = replace(batch.call, new_id=self.new_id())
                batch.add(seeded_template(facility_code, code, call), call.new_id, lambda *_: 0, self.new_id)
            if not batch.empty:
                with suppress(Conflict):
                    await session.append(batch)

    async def _decide(self, state: type[State], decide: Callable[[Call], Outcome]) -> None:
        call = self._call(self.new_id())
        await self._begin(state, call.new_id, decide(call))

    async def _actor(self, id: UUID, kind: ActorKind, name: str) -> None:
        now = self.clock()
        profile = ActorProfile(id, name, None, None, None, None, None, created_at=now, updated_at=now)
        await self._begin(ActorRegistered.aggregate.state, id, [ActorRegistered(kind=kind), Put(profile)])

    async def _agent_policy(self, seeded: SeededAgent) -> None:
        name = f"{seeded.kind}, in process, list {seeded.list_number}"
        await self._policy(name, seeded.id, NIL, seeded.commands, seeded.list_number)
        for number in range(1, seeded.list_number):
            await self._revoke(await self._policy_id(seeded.id, number), seeded.id)

    async def _revoke(self, policy_id: UUID, principal_id: UUID) -> None:
        async with self.store.session() as session:
            rows = await session.load(Policy.__name__, [policy_id])
            policy: Policy | None = Policy.aggregate.replay(rows)
            if policy is None or principal_id not in policy.permitted_principal_ids:
                return
            revoked = PolicyGrantRevoked(principal_id=principal_id, revoked_by=NIL, reason="A newer list took its place.")
            await self._append(session, policy_id, [revoked], after=rows[-1].version)

    async def _policy(
        self, name: str, principal_id: UUID, surface_id: UUID, commands: frozenset[str], number: int | None = None
    ) -> None:
        conduit_id, ids = SYSTEM_CONDUIT, frozenset({principal_id})
        defined = PolicyDefined(
            name=name, conduit_id=conduit_id, surface_id=surface_id, permitted_principal_ids=ids, permitted_commands=commands
        )
        enlisted = Enlist(POLICIES_BY_SURFACE, policy_key(conduit_id, surface_id))
        await self._begin(Policy, await self._policy_id(principal_id, number), [defined, enlisted])

    async def _policy_id(self, principal_id: UUID, number: int | None = None) -> UUID:
        async with self.store.session() as session:
            registered = await session.load(ActorRegistered.aggregate.name, [principal_id])
        at = registered[0].occurred_at if registered else self.clock()
        whose = str(principal_id) if number is None else f"{principal_id}:{number}"
        return derived_uuid7(int(at.timestamp() * 1000), "policy", whose)

    async def _begin(self, state: type, id: UUID, outcome: Outcome) -> None:
        async with self.store.session() as session:
            if not await session.load(state.__name__, [id]):
                await self._append(session, id, outcome)

    async def _append(self, session: Session, id: UUID, outcome: Outcome, after: int = 0) -> None:
        batch = Batch(self._call(id), COMMAND_NAME)
        batch.add(outcome, id, lambda *_: after, self.new_id)
        with suppress(Conflict):
            await session.append(batch)

    def _call(self, id: UUID) -> Call:
        return Call(principal_id=NIL, surface_id=NIL, now=self.clock(), new_id=id, correlation_id=self.new_id())
