"""What every deployment starts with: looked after at every boot, each written once, never written again.

Seeds go through the same decisions and the same store as everything else, as the service itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID

from baton.application.commands import add_outcome
from baton.application.ports import Batch, Clock, IdGenerator, Store, StreamAppend
from baton.application.record_reader import load_state
from baton.domain.access.actor import Actor, ActorKind, ActorProfile, ActorRegistered
from baton.domain.access.seeded_actors import monitor_id
from baton.domain.agent.agent import Agent
from baton.domain.agent.seeded_agents import SEEDED, SeededAgent
from baton.domain.equipment.catalog import SEEDED_ROLES
from baton.domain.equipment.role import ROLE_NAME, Role
from baton.domain.federation.facility import Facility, FacilityKind, RegisterFacility
from baton.domain.kernel import NIL, SYSTEM_CONDUIT, Call, Outcome, State
from baton.domain.safety.clearance_template import SEEDED_TITLES, TEMPLATE_CODE, code_key, seeded_template
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.identifiers import FACILITY_CODE
from baton.domain.shared.refusals import Conflict
from baton.domain.shared.text import name_key
from baton.domain.shared.writes import Enlist, Put
from baton.domain.trust.conduit import Conduit, ConduitDefined, opened_logbook
from baton.domain.trust.policy import LISTENERS, Policy, PolicyDefined, PolicyGrantRevoked, look_up_key
from baton.domain.trust.surface import (
    SYSTEM_HTTP,
    SYSTEM_MCP_STDIO,
    SYSTEM_MCP_STREAMABLE_HTTP,
    Surface,
    SurfaceDefined,
    SurfaceKind,
)
from baton.domain.trust.zone import Zone, ZoneDefined

COMMAND_NAME = "SystemBootstrap"
SYSTEM_ZONE = UUID(int=0x30)
SYSTEM_SURFACES = {
    SYSTEM_HTTP: SurfaceDefined(name="System HTTP", kind=SurfaceKind.HTTP),
    SYSTEM_MCP_STDIO: SurfaceDefined(name="System MCP stdio", kind=SurfaceKind.MCP_STDIO),
    SYSTEM_MCP_STREAMABLE_HTTP: SurfaceDefined(name="System MCP streamable HTTP", kind=SurfaceKind.MCP_STREAMABLE_HTTP),
}
BOOTSTRAP_COMMANDS = frozenset({"DefinePolicy", "RegisterActor", "RevokePolicyGrant"})
MONITORS = {
    "SupplyMonitor": frozenset({"ObserveSupplyStatus", "RegisterSupply", "GetSupply", "ListSupplies"}),
    "EnclosureMonitor": frozenset({"ObserveEnclosureStatus", "RegisterEnclosure", "GetEnclosure", "ListEnclosures"}),
}


class Seeds:
    """Writes what is missing, in the order own facility, actors and agents, policies, templates."""

    def __init__(self, store: Store, clock: Clock, new_id: IdGenerator) -> None:
        self._store = store
        self._clock = clock
        self._new_id = new_id

    async def plant(
        self,
        *,
        facility_code: str,
        bootstrap_principal_id: UUID | None,
        template_codes: Sequence[str] = tuple(SEEDED_TITLES),
        agents: Sequence[SeededAgent] = tuple(SEEDED.values()),
    ) -> None:
        """Look after every seed."""
        for surface_id, defined in SYSTEM_SURFACES.items():
            await self._begin(Surface, surface_id, [defined])
        await self._begin(Zone, SYSTEM_ZONE, [ZoneDefined(name="System zone")])
        conduit = ConduitDefined(name="System conduit", source_zone_id=SYSTEM_ZONE, target_zone_id=SYSTEM_ZONE)
        await self._begin(Conduit, SYSTEM_CONDUIT, [conduit, opened_logbook(self._new_id())])
        await self._facility(facility_code)
        await self._roles()
        for name in MONITORS:
            await self._actor(monitor_id(name), ActorKind.SERVICE_ACCOUNT, name)
        if bootstrap_principal_id is not None:
            await self._actor(bootstrap_principal_id, ActorKind.HUMAN, "Bootstrap administrator")
        for seeded in agents:
            await self._begin(Agent, seeded.id, seeded.begun(self._call(seeded.id)))
        if bootstrap_principal_id is not None:
            await self._policy("Bootstrap administration", bootstrap_principal_id, SYSTEM_HTTP, BOOTSTRAP_COMMANDS)
        for name, commands in MONITORS.items():
            await self._policy(f"{name}, in process", monitor_id(name), NIL, commands)
        for seeded in agents:
            if await self._begun(Agent, seeded.id):
                await self._agent_policy(seeded)
        await self._templates(facility_code, template_codes)

    async def objections(self, *, bootstrap_principal_id: UUID | None) -> list[str]:
        """What enforced authorization cannot start without; nothing, unless the log was tampered with."""
        wanted = {
            **{("Surface", id): f"the surface {defined.name}" for id, defined in SYSTEM_SURFACES.items()},
            ("Conduit", SYSTEM_CONDUIT): "the System conduit",
        }
        for name in MONITORS:
            wanted["Actor", monitor_id(name)] = f"the actor {name}"
            wanted["Policy", await self._policy_id(monitor_id(name))] = f"the policy of {name}"
        objections, intruders = [], await self._intruders()
        for seeded in SEEDED.values():
            if (kind := intruders.get(seeded.id)) is not None:
                objections.append(
                    f"The id {seeded.id} of the agent {seeded.kind} is held by an actor of kind {kind.value}; "
                    "begin with an empty database and another id for that actor, or restore a backup from before it."
                )
                continue
            wanted["Agent", seeded.id] = f"the agent {seeded.kind}"
            wanted["Policy", await self._policy_id(seeded.id, seeded.list_number)] = f"the policy of {seeded.kind}"
        if bootstrap_principal_id is not None:
            wanted["Policy", await self._policy_id(bootstrap_principal_id)] = "the policy of the bootstrap principal"
        async with self._store.session() as session:
            for (stream_type, id), what in wanted.items():
                if not await session.load(stream_type, [id]):
                    objections.append(f"The log lacks {what}, which policies rest on; restore the database from a backup.")
        return objections

    async def _intruders(self) -> dict[UUID, ActorKind]:
        """Whoever has the id of an agent and is none."""
        actors = [await load_state(self._store, Actor, seeded.id) for seeded in SEEDED.values()]
        return {actor.id: actor.kind for actor in actors if actor is not None and actor.kind is not ActorKind.AGENT}

    async def _facility(self, code: str) -> None:
        async with self._store.session() as session:
            if await session.holders(FACILITY_CODE, [code]):
                return
        own = RegisterFacility(code=code, display_name=code, kind=FacilityKind.SITE, parent_id=None)
        await self._decided(Facility, lambda call: own.decide(call, None))

    async def _roles(self) -> None:
        async with self._store.session() as session:
            present = await session.holders(ROLE_NAME, [name_key(role.name) for role in SEEDED_ROLES])
        for role in SEEDED_ROLES:
            if name_key(role.name) not in present:
                await self._decided(Role, role.decide)

    async def _templates(self, facility_code: str, codes: Sequence[str]) -> None:
        """The safety forms of the own site that nobody holds the code of, in one append; an Area has none of its own."""
        by_key = {code_key(facility_code, code): code for code in codes}
        async with self._store.session() as session:
            holder = (await session.holders(FACILITY_CODE, [facility_code])).values()
            own: Facility | None = Facility.aggregate.replay(await session.load(Facility.__name__, list(holder)))
            if own is None or own.kind is not FacilityKind.SITE:
                return
            present = await session.holders(TEMPLATE_CODE, list(by_key))
            missing = [code for key, code in by_key.items() if key not in present]
            if not missing:
                return
            batch = Batch(self._call(self._new_id()), COMMAND_NAME)
            for code in missing:
                call = replace(batch.call, new_id=self._new_id())
                add_outcome(batch, seeded_template(facility_code, code, call), call.new_id, nothing_before, self._new_id)
            try:
                await session.append(batch)
            except Conflict:
                return

    async def _decided(self, state: type[State], decide: Callable[[Call], Outcome]) -> None:
        """Begin a stream as its own decision says."""
        call = self._call(self._new_id())
        await self._begin(state, call.new_id, decide(call))

    async def _actor(self, id: UUID, kind: ActorKind, name: str) -> None:
        now = self._clock()
        profile = ActorProfile(id, name, None, None, None, None, None, created_at=now, updated_at=now)
        await self._begin(ActorRegistered.aggregate.state, id, [ActorRegistered(kind=kind), Put(profile)])

    async def _agent_policy(self, seeded: SeededAgent) -> None:
        """The policy of an agent's newest list of commands, which takes the place of those of older lists."""
        name = f"{seeded.kind}, in process, list {seeded.list_number}"
        await self._policy(name, seeded.id, NIL, seeded.commands, seeded.list_number)
        for number in range(1, seeded.list_number):
            await self._revoke(await self._policy_id(seeded.id, number), seeded.id)

    async def _revoke(self, policy_id: UUID, principal_id: UUID) -> None:
        async with self._store.session() as session:
            rows = await session.load(Policy.__name__, [policy_id])
            policy: Policy | None = Policy.aggregate.replay(rows)
            if policy is None or principal_id not in policy.permitted_principal_ids:
                return
            call = self._call(self._new_id())
            revoked = PolicyGrantRevoked(principal_id=principal_id, revoked_by=NIL, reason="A newer list took its place.")
            once = (self._new_id(), revoked.stamped(policy_id, call.now))
            try:
                await session.append(
                    Batch(call, COMMAND_NAME, [StreamAppend(Policy.__name__, policy_id, rows[-1].version, [once])])
                )
            except Conflict:
                return

    async def _policy(
        self, name: str, principal_id: UUID, surface_id: UUID, commands: frozenset[str], number: int | None = None
    ) -> None:
        """A policy whose id derives from its principal, so that it is written once and never comes back."""
        defined = PolicyDefined(
            name=name,
            conduit_id=SYSTEM_CONDUIT,
            surface_id=surface_id,
            permitted_principal_ids=frozenset({principal_id}),
            permitted_commands=commands,
        )
        enlisted = Enlist(LISTENERS, look_up_key(SYSTEM_CONDUIT, surface_id))
        await self._begin(Policy, await self._policy_id(principal_id, number), [defined, enlisted])

    async def _policy_id(self, principal_id: UUID, number: int | None = None) -> UUID:
        """The id of a principal's seeded policy: derived from its registration, so that every boot finds the same."""
        async with self._store.session() as session:
            registered = await session.load(ActorRegistered.aggregate.name, [principal_id])
        at = registered[0].occurred_at if registered else self._clock()
        whose = str(principal_id) if number is None else f"{principal_id}:{number}"
        return derived_uuid7(int(at.timestamp() * 1000), "policy", whose)

    async def _begun(self, state: type, id: UUID) -> bool:
        async with self._store.session() as session:
            return bool(await session.load(state.__name__, [id]))

    async def _begin(self, state: type, id: UUID, outcome: Outcome) -> None:
        """Begin a stream unless it exists; a rival process that is faster wins."""
        async with self._store.session() as session:
            if await session.load(state.__name__, [id]):
                return
            batch = Batch(self._call(id), COMMAND_NAME)
            add_outcome(batch, outcome, id, nothing_before, self._new_id)
            try:
                await session.append(batch)
            except Conflict:
                return

    def _call(self, id: UUID) -> Call:
        return Call(principal_id=NIL, surface_id=NIL, now=self._clock(), new_id=id, correlation_id=self._new_id())


def nothing_before(stream_type: str, id: UUID) -> int:
    """The version that a seed finds of the stream it begins."""
    return 0
