"""Agents at work in memory: seeded as in every deployment, under policies, on runs that have ended, with scripted models."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from baton.application.agents.agent_client import AgentClient
from baton.application.agents.model_agents import ModelAgents, Regenerations
from baton.application.agents.model_consultation import BudgetLock, ModelConsultation
from baton.application.authorization import PolicyAuthorizer
from baton.application.caller import Caller
from baton.application.ports import Batch, CommandResult, EventRow, Spending, StoreUnavailableError
from baton.application.seeds import Seeds
from baton.application.unit_of_work import decode_event
from baton.domain.access.actor import DeactivateActor
from baton.domain.agent.agent import DefineAgent, SuspendAgent, UpdateAgentBudget, VersionAgent
from baton.domain.agent.conclusions import AgentTask, ConclusionOrder
from baton.domain.agent.debrief import DEBRIEF
from baton.domain.agent.language_model import DefineLanguageModel, ModelRef
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.decision.decision import Decision
from baton.domain.enclosure.enclosure import ObserveEnclosureStatus
from baton.domain.kernel import NIL, SYSTEM_CONDUIT, Command, Event
from baton.domain.recipe.method import DefineMethod
from baton.domain.recipe.plan import DefinePlan, UpdatePlanDefaultParameters
from baton.domain.recipe.practice import DefinePractice
from baton.domain.run.run import AbortRun, Run
from baton.domain.shared.refusals import ConcurrencyError
from baton.domain.start.run_start import StartRun
from baton.domain.supply.supply import MarkSupplyAvailable, RegisterSupply
from baton.domain.trust.policy import DefinePolicy, Policy, RevokePolicyGrant
from baton.testing.ports import MemoryPeople, MemorySpending, ScriptedModel
from baton.testing.store import MemoryStore, MemoryVerdictLog
from tests.support.application.command_paths import CommandCaller, HandSetClock
from tests.support.application.store_and_world import store_of_world, world_ports
from tests.support.domain.assets import LUMEN
from tests.support.domain.language_models import entry
from tests.support.domain.run_beamline import DEFAULTS, SEARCHED, Beamline, beamline
from tests.support.domain.templates import acquisition
from tests.support.domain.world import new_id
from tests.support.infrastructure.memory_adapters import MemoryMirror

NARRATIVE = (
    "The scan was ended for a fault.\n\nSynopsis: one load step. What should have happened: all projections. "
    "What happened: the encoder went offline. Why they differ: the stage lost its position."
)
LARGE = ModelRef(provider="acme", model="large-4")
VERDICT = {"choice": "EquipmentAbort", "confidence": 0.88, "reasoning": NARRATIVE}
NO_ACTION = {
    "choice": "NoAction",
    "confidence": 0.9,
    "reasoning": "Nothing that happened in this run is likely to happen again.",
    "proposed_caution": None,
}


@dataclass
class SingleModel:
    """One model behind every reference, which can be switched off."""

    model: ScriptedModel
    ref: ModelRef = LARGE
    on: bool = True

    def resolve(self, ref: ModelRef) -> ModelRef:
        return self.ref if ref.provider == "setting" else ref

    def provider(self, ref: ModelRef) -> ScriptedModel | None:
        return self.model if self.on else None


class ContendedStore(MemoryStore):
    """A store in which others come between reading and writing, as on a real one; `conflicts` counts who came too late."""

    def __init__(self) -> None:
        super().__init__()
        self.conflicts = 0
        self.away = 0
        """So many appends to come find the store away."""

    @asynccontextmanager
    async def session(self, lock: str | None = None) -> AsyncIterator[Any]:
        async with super().session(lock) as session:
            yield YieldingSession(session, self)


class YieldingSession:
    """A session that lets others go first before it looks what happened, and before it appends."""

    def __init__(self, session: Any, store: ContendedStore) -> None:
        self._session = session
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def load_of(self, *asked: Any) -> Any:
        await asyncio.sleep(0)
        return await self._session.load_of(*asked)

    async def append(self, batch: Batch) -> int | None:
        await asyncio.sleep(0)
        if self._store.away:
            self._store.away -= 1
            raise StoreUnavailableError("The database cannot be reached.")
        try:
            position: int | None = await self._session.append(batch)
            return position
        except ConcurrencyError:
            self._store.conflicts += 1
            raise


@dataclass
class MemoryAgents:
    """Everything that agents act with, and what came of it."""

    line: Beamline
    store: ContendedStore
    clock: HandSetClock
    models: SingleModel
    mirror: MemoryMirror = field(default_factory=MemoryMirror)

    spending: Spending | None = None

    def __post_init__(self) -> None:
        authorizer = PolicyAuthorizer(self.store, MemoryVerdictLog(self.store))
        ports = world_ports(self.line.world)
        self.people = CommandCaller(self.store, authorizer, Caller.system(new_id()), ports, self.clock)
        self.client = AgentClient(self.people.commands)
        spending, people = self.spending or MemorySpending(self.store), MemoryPeople(self.store)
        lock = BudgetLock(self.people.commands)
        self.consultation = ModelConsultation(self.client, self.models, spending, people, lock)
        self.agents = ModelAgents(self.client, self.consultation, self.mirror, None, "own-site")
        self.regenerations = Regenerations(self.people.commands, self.agents)

    async def do(self, command: Command, on: UUID | None = None) -> CommandResult:
        return await self.people.do(command, on)

    async def end_run(self, how: Command | None = None) -> EventRow:
        """A run that has just ended: the event that ended it."""
        run_id = await self.people.create(StartRun(**self.line.request))
        await self.do(how or AbortRun(reason="rotary stage encoder offline"), run_id)
        return self.store.streams[Run.__name__, run_id][-1]

    async def rival(self, task: AgentTask = DEBRIEF, **fields: Any) -> UUID:
        """Another agent of a kind, in service and permitted."""
        definition = DefineAgent(
            kind=task.kind,
            name="Rival",
            version="2.0.0",
            model_ref=LARGE,
            **{"prompt_template_id": task.prompt.id, **fields},
        )
        agent_id = await self.people.create(definition)
        await self.do(VersionAgent(), agent_id)
        await self.do(in_process_policy(agent_id, task.commands))
        return agent_id

    async def line_kept_permitted(self) -> None:
        """The hutch is observed anew, as its monitor does all the time."""
        await self.do(ObserveEnclosureStatus(new_status="Permitted", **SEARCHED), self.line.enclosure_id)

    async def plan_without_beam(self) -> UUID:
        """A plan on the camera alone, by a method that needs no supplies."""
        hutch = self.line.hutch
        technique = DefineMethod(name="dark_field", capability_id=hutch.capability_id, parameters_schema=acquisition())
        method_id = await self.people.create(technique)
        adopted = DefinePractice(name="Dark field", method_id=method_id, site_id=hutch.site_id)
        practice_id = await self.people.create(adopted)
        plan_id = await self.people.create(DefinePlan(name="Darks", practice_id=practice_id, asset_ids=[hutch.camera]))
        await self.do(UpdatePlanDefaultParameters(default_parameters_patch=DEFAULTS), plan_id)
        return plan_id

    async def another_beam(self, known: bool = True) -> UUID:
        """Another supply of beam at the facility, which somebody has looked at unless not."""
        supply_id = await self.people.create(RegisterSupply(kind="photon_beam", name="Branch", facility_code=LUMEN))
        if known:
            await self.do(MarkSupplyAvailable(reason="looked"), supply_id)
        return supply_id

    async def permit(self, agent_id: UUID, commands: frozenset[str]) -> None:
        await self.do(in_process_policy(agent_id, commands))

    async def revoke_all(self, agent_id: UUID) -> None:
        """Take an agent out of every policy."""
        for name, id in list(self.store.streams):
            policy: Any = self.store.state((name, id))
            if isinstance(policy, Policy) and agent_id in policy.permitted_principal_ids:
                await self.do(RevokePolicyGrant(permitted_principal_id=agent_id, reason="a test"), id)

    def events(self, run_id: UUID) -> list[Event]:
        """What happened to a run."""
        return [decode_event(Run.aggregate, row) for row in self.store.streams[Run.__name__, run_id]]

    async def suspend(self, agent_id: UUID) -> None:
        await self.do(SuspendAgent(reason="it talks too much"), agent_id)

    async def deactivate(self, agent_id: UUID) -> None:
        await self.do(DeactivateActor(), agent_id)

    async def cap(self, agent_id: UUID, cost: float | None = None, tokens: int | None = None) -> None:
        await self.do(UpdateAgentBudget(monthly_cost_cap=cost, daily_token_cap=tokens), agent_id)

    async def price(self, **fields: Any) -> None:
        await self.do(DefineLanguageModel(**entry(**fields)))

    def decision(self, decision_id: UUID) -> Decision | None:
        found: Any = self.store.state((Decision.__name__, decision_id))
        return found

    def decisions(self) -> list[Decision]:
        found = [self.store.state(key) for key in self.store.streams if key[0] == Decision.__name__]
        return [one for one in found if isinstance(one, Decision)]

    def happened_to(self, run_id: UUID) -> list[str]:
        return [row.event_type for row in self.store.streams[Run.__name__, run_id]]


def in_process_policy(agent_id: UUID, commands: frozenset[str]) -> DefinePolicy:
    """What permits an agent these commands in process."""
    return DefinePolicy(
        name="In process",
        conduit_id=SYSTEM_CONDUIT,
        surface_id=NIL,
        permitted_principal_ids=frozenset({agent_id}),
        permitted_commands=commands,
    )


async def memory_agents(*answers: Any, line: Beamline | None = None) -> MemoryAgents:
    """A facility with its seeded agents, whose model gives these answers."""
    line = line or beamline()
    line.world.ports["deployment"].approved_models_only = False
    clock = HandSetClock(line.world.now)
    made = MemoryAgents(line, store_of_world(line.world, ContendedStore), clock, SingleModel(ScriptedModel(*answers)))
    await Seeds(made.store, clock, new_id).plant(facility_code="own-site", bootstrap_principal_id=None)
    return made


def order(event: EventRow, agent_id: UUID | None = None, task: AgentTask = DEBRIEF) -> ConclusionOrder:
    """What an agent is to do about the end of a run; the seeded one, where none is named."""
    return ConclusionOrder(
        kind=task.kind,
        agent_id=agent_id or SEEDED[task.kind].id,
        run_id=event.stream_id,
        terminal_event_id=event.event_id,
        correlation_id=event.correlation_id,
    )
