"""What every process of the service is made of: the store, the seam, the ports and the service over them."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

import uuid_utils.compat

from baton.application.agents.agent_schedules import AgentSchedules, agent_schedules
from baton.application.agents.ports import LogbookMirror
from baton.application.authorization import PermissiveAuthorizer, PolicyAuthorizer, PrincipalStandings
from baton.application.commands import Commands
from baton.application.conduct.conduct_reader import ConductFeed
from baton.application.conduct.conduct_work import ConductWork
from baton.application.conduct.procedure_conducts import ProcedureConductKind
from baton.application.conduct.run_conducts import RunConductKind
from baton.application.feed import Feed
from baton.application.mint_sweeps import MintSweeps
from baton.application.monitoring.supply_monitor import registration_of
from baton.application.ports import Caller
from baton.application.publications import Publications
from baton.application.queries import Queries
from baton.application.reactions import Dispatcher, ReactionReader
from baton.application.schedules.firings import Firings
from baton.application.schedules.schedule_reconciliation import ScheduleReconciler
from baton.application.seeds import Seeds
from baton.application.service import Service
from baton.application.settings import Settings, TraceExporter
from baton.application.work_items import found_work
from baton.domain.access.actor import Actor, ActorKind, SubjectBinding
from baton.domain.access.edge_queries import ListEvents
from baton.domain.agent.model_ref import ModelRef
from baton.domain.agent.reactions import LoggedEvent, OpenItem, Reaction
from baton.domain.enclosure.enclosure import RegisterEnclosure, name_key
from baton.domain.equipment.values import ExternalIdScheme
from baton.domain.federation.facility import Facility
from baton.domain.kernel import Call
from baton.domain.operation.conduct.actuation import ActuationKind
from baton.domain.operation.conduct.views import MeasuredObjective
from baton.domain.operation.conduct.work_items import WorkFound
from baton.domain.operation.steering.decider_choice import offered
from baton.domain.shared.citation import Citation
from baton.domain.shared.identifiers import FACILITY_CODE
from baton.domain.shared.listing import Page
from baton.domain.shared.ports import Deployment, MintedIdentifier, ProviderFacts
from baton.domain.supply.supply import address_key
from baton.infrastructure.agents import agents_of
from baton.infrastructure.background import Supervisor
from baton.infrastructure.identity.provider_client import ProviderClient
from baton.infrastructure.identity.registry import ProviderRegistry
from baton.infrastructure.llm.configured import ConfiguredModels
from baton.infrastructure.logbook.mirrors import FileMirror
from baton.infrastructure.minting.configured import configured_minter
from baton.infrastructure.postgres.authorization_log import PostgresVerdictLog
from baton.infrastructure.postgres.conduct_progress import PostgresStallRecord
from baton.infrastructure.postgres.conduct_reader import PostgresConductReader
from baton.infrastructure.postgres.idempotency import Pruner
from baton.infrastructure.postgres.leadership import unsettled
from baton.infrastructure.postgres.ledger import PostgresLedger
from baton.infrastructure.postgres.people import PostgresPeople
from baton.infrastructure.postgres.pool import runtime_pool
from baton.infrastructure.postgres.process_reports import ProcessReport, Reporter, running_processes, unled_tasks
from baton.infrastructure.postgres.spending import PostgresSpending
from baton.infrastructure.postgres.store import PostgresStore
from baton.infrastructure.postgres.wake_ups import Listener, Waker
from baton.infrastructure.publishing.publishers import OutboxPublisher
from baton.infrastructure.publishing.signers import KeyDirectorySigner
from baton.infrastructure.temporal.calendars import TemporalCalendars
from baton.infrastructure.temporal.engine import TemporalEngine

if TYPE_CHECKING:
    from baton.infrastructure.telemetry.tracing import Tracing


def clock() -> datetime:
    return datetime.now(UTC)


def new_id() -> UUID:
    return uuid_utils.compat.uuid7()


class BootRefused(Exception):
    """The service must not start; the sentences say why."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__(" ".join(sentences))
        self.sentences = sentences


class Runtime:
    """Opens what a process needs and closes it in order."""

    def __init__(self, settings: Settings, tracing: "Tracing | None" = None, stopping: asyncio.Event | None = None) -> None:
        if settings.database_url is None:
            raise ValueError("DATABASE_URL is not set")
        self.settings = settings
        self.database_url = settings.database_url
        self.tracing = tracing or tracing_of(settings)
        self.supervisor = Supervisor()
        self.pool = runtime_pool(self.database_url, settings.database_pool_size)
        self.waker = Waker(self.database_url)
        self.listener = Listener(self.database_url)
        self.store = PostgresStore(self.pool, self.waker.appended)
        self.verdicts = PostgresVerdictLog(self.pool)
        self.authorizer = (
            PolicyAuthorizer(self.store, self.verdicts) if settings.enforced else PermissiveAuthorizer(PrincipalStandings(self.store))
        )
        self._providers = ProviderClient()
        self.identity = ProviderRegistry(settings.identity_providers, StoredBindings(self.store), self._providers, clock)
        self.models = ConfiguredModels(settings)
        self.minter = configured_minter(settings)
        self.sights = PostgresConductReader(self.store)
        ports = RuntimePorts(self)
        self.feed = Feed(self.store, self.authorizer, ports)
        stale = timedelta(seconds=settings.idempotency_lock_stale_seconds)
        self.commands = Commands(self.store, self.authorizer, clock, new_id, ports, stale)
        self.engine = TemporalEngine(settings, self.tracing)
        self.mint_sweeps = MintSweeps(self.store, self.commands, self.authorizer, clock, new_id, ports)
        self.publications = Publications(
            self.store,
            self.authorizer,
            clock,
            new_id,
            ports,
            KeyDirectorySigner(settings.signing_key_directory),
            OutboxPublisher(settings.publication_outbox),
        )
        self.watching = ConductFeed(self.store, self.authorizer, self.sights, clock, new_id, ports)
        self.conducts, self.run_conducts = (
            ConductWork(kind, self.store, self.commands, PostgresStallRecord(self.store), settings.self_facility_code)
            for kind in (ProcedureConductKind(self.store, self.sights, clock), RunConductKind())
        )
        mirrored = settings.logbook_mirror_directory
        self.logbook_mirror: LogbookMirror | None = None if mirrored is None else FileMirror(mirrored)
        queries = Queries(self.store, self.authorizer, clock, new_id, ports)
        self.agents = agents_of(
            settings,
            self.store,
            self.commands,
            queries,
            self.authorizer,
            ports,
            clock,
            new_id,
            self.models,
            PostgresSpending(self.store),
            PostgresPeople(self.store),
            self.logbook_mirror,
        )
        self.reactions = ReactionReader(self.store, self.engine, self.agents.subscribers)
        works = (self.mint_sweeps, self.publications, self.conducts, self.run_conducts, self.agents.regenerations)
        self.service = Service(
            self.commands,
            queries,
            self.authorizer,
            self.engine,
            {work.workflow: work for work in works},
            stopping=stopping or asyncio.Event(),
        )
        if self.tracing is not None:
            self.service = self.tracing.watching(self.service)
        limit = timedelta(seconds=settings.conduct_restart_limit_seconds)
        self.firings = Firings(self.store, self.commands, self.service, clock, self.conducts, self.run_conducts, limit)
        self.calendars = TemporalCalendars(self.engine.reaching, clock)
        self.ticks = AgentSchedules(self.calendars, agent_schedules(settings))
        self.schedule_keeper = ScheduleReconciler(
            self.store, self.commands, self.calendars, clock, new_id, settings.self_facility_code
        )
        self.monitored = monitored_keys(settings)
        self.own_name: str | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self.pool.open(wait=True, timeout=30)
        if self.tracing is not None:
            self._stack.push_async_callback(asyncio.to_thread, self.tracing.close)
        self._stack.push_async_callback(self.pool.close)
        self._stack.push_async_callback(self._providers.aclose)
        self._stack.push_async_callback(self.models.aclose)
        if self.minter is not None:
            self._stack.push_async_callback(self.minter.aclose)
        tasks = {"verdicts": self.verdicts.run, "waking": self.waker.run, "listening": self.listener.run}
        if life := timedelta(hours=self.settings.idempotency_ttl_hours):
            tasks["pruning"] = Pruner(self.pool, life).run
        for name, run in tasks.items():
            await self._stack.enter_async_context(self.supervisor.supervise(name, run))
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.aclose()

    def reporting(self, kind: str) -> AbstractAsyncContextManager[None]:
        """Let the other processes see how this one fares, for as long as the block lasts."""
        reporter = Reporter(self.database_url, kind, self.supervisor)
        return self.supervisor.supervise("reporting", reporter.run)

    async def fellow_processes(self) -> tuple[list[ProcessReport], list[str]]:
        """The processes of this deployment that run, and the tasks that one of them should lead and none does."""
        async with self.pool.connection() as connection:
            return await running_processes(connection), await unled_tasks(connection)

    async def plant_seeds(self) -> None:
        """Write what every deployment starts with; raises where enforced authorization would have nothing to rest on."""
        seeds = Seeds(self.store, clock, new_id)
        bootstrap = self.settings.bootstrap_principal_id
        await seeds.plant(
            facility_code=self.settings.self_facility_code,
            bootstrap_principal_id=bootstrap,
            template_codes=self.settings.clearance_template_codes,
        )
        await self.dispatcher().begin()
        await self.facility_name(self.settings.self_facility_code)
        if self.settings.enforced and (objections := await seeds.objections(bootstrap_principal_id=bootstrap)):
            raise BootRefused(objections)

    def dispatcher(self) -> Dispatcher:
        """Who leads the subscribers through the log."""
        return Dispatcher(self.store, self.engine, clock, new_id, self.agents.subscribers, self.listener.wait)

    async def unsettled_enclosures(self) -> list[str]:
        """The configured enclosures whose permit was not settled since the monitor started."""
        if not self.settings.monitored_enclosures:
            return []
        async with self.pool.connection() as connection:
            return await unsettled(connection, self.settings.monitored_enclosures)

    async def facility_name(self, code: str) -> str:
        async with self.store.session() as session:
            holder = (await session.holders(FACILITY_CODE, [code])).get(code)
            rows = await session.load(Facility.__name__, [holder]) if holder else ()
        facility: Facility | None = Facility.aggregate.replay(rows)
        self.own_name = facility.display_name if facility else None
        return self.own_name or code


class RuntimePorts:
    """The ports of decisions and answers, fulfilled by what a process has opened."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def deployment(self) -> Deployment:
        runtime, settings = self._runtime, self._runtime.settings
        code = settings.self_facility_code
        return Deployment(
            base_url=settings.public_base_url or "",
            landing_page_template=settings.landing_page_template,
            publisher=settings.facility_publisher or runtime.own_name or await runtime.facility_name(code),
            minted_schemes=frozenset() if runtime.minter is None else runtime.minter.schemes,
            self_facility_code=code,
            enclosure_observation_ttl=timedelta(seconds=settings.enclosure_observation_ttl_seconds),
            deciders=offered(settings.decide_substrates),
            compute_programs=frozenset(settings.compute_programs),
            approved_models_only=settings.require_approved_language_model,
            action_timeout=settings.action_timeout_seconds,
            compute_timeout=settings.compute_timeout_seconds,
            clearance_four_eyes=settings.four_eyes,
            policies_enforced=settings.enforced,
            **runtime.monitored,
        )

    async def identity_provider(self, issuer: str, subject: str) -> ProviderFacts:
        identity = self._runtime.identity
        return ProviderFacts(identity.knows(issuer), identity.binds(issuer, subject))

    async def mint(self, scheme: ExternalIdScheme, suffix: str, metadata: Citation) -> MintedIdentifier:
        assert self._runtime.minter is not None, "without a minter the deployment offers no scheme"
        return await self._runtime.minter.mint(scheme, suffix, metadata)

    async def event_page(self, call: Call, query: ListEvents) -> Page[dict[str, Any]]:
        return await self._runtime.feed.page(Caller.of(call), query)

    async def measured_objective(self, procedure_id: UUID, conduct_id: UUID) -> MeasuredObjective | None:
        return await self._runtime.sights.measured(procedure_id, conduct_id)

    async def actuation_kind(self, conduct_id: UUID) -> ActuationKind | None:
        return (await PostgresLedger(self._runtime.store).tally(conduct_id, 0)).actuation_kind

    async def completed_step_count(self, conduct_id: UUID) -> int:
        return (await PostgresLedger(self._runtime.store).tally(conduct_id, 0, of_pass=True)).completed_count

    async def find_work(self, work_id: UUID) -> WorkFound | None:
        return await found_work(self._runtime.service.works.values(), work_id)

    async def is_model_configured(self, model_ref: ModelRef) -> bool:
        return self._runtime.agents.consulting.configured(model_ref)

    async def subscriber_names(self) -> Sequence[str]:
        return await self._runtime.reactions.subscriber_names()

    async def unprocessed_counts(self, reactions: Sequence[Reaction]) -> Mapping[str, int]:
        return await self._runtime.reactions.unprocessed_counts(reactions)

    async def open_items(self, subscriber_names: Sequence[str]) -> Mapping[str, Sequence[OpenItem] | None]:
        return await self._runtime.reactions.open_items(subscriber_names)

    async def logged_event(self, event_id: UUID, reaction: Reaction) -> LoggedEvent | None:
        return await self._runtime.reactions.logged_event(event_id, reaction)


def monitored_keys(settings: Settings) -> dict[str, frozenset[str]]:
    """What the monitors watch, by the keys under which it is claimed; the settings are the same for every process."""
    code = settings.self_facility_code
    names = (RegisterEnclosure(name=name, facility_code=code) for name in settings.monitored_enclosures)
    return {
        "monitored_enclosures": frozenset(map(name_key, names)),
        "monitored_supplies": frozenset(address_key(registration_of(one, code)) for one in settings.monitored_supplies),
    }


def tracing_of(settings: Settings) -> "Tracing | None":
    """Where traces go, if they are wanted; what makes them is not even loaded otherwise."""
    if settings.trace_exporter is TraceExporter.NONE:
        return None
    from baton.infrastructure.telemetry.tracing import configured_tracing

    return configured_tracing(settings)


class StoredBindings:
    """The token bindings made at run time, read from their rows."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def actor_of(self, issuer: str, subject: str) -> tuple[UUID, ActorKind] | None:
        async with self._store.session() as session:
            rows = await session.records(SubjectBinding, {"issuer": issuer, "subject": subject})
            if not rows:
                return None
            binding: Any = rows[0]
            events = await session.load(Actor.__name__, [binding.actor_id])
        actor: Actor | None = Actor.aggregate.replay(events)
        return (binding.actor_id, actor.kind) if actor else None
