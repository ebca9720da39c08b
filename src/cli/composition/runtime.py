"""The runtime of a process: the record, the providers, long work and the service over them."""

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from baton.application.agents.subscribers import AgentSchedules, agent_schedules
from baton.application.authorization import PermissiveAuthorizer, PolicyAuthorizer, PrincipalStandings
from baton.application.commands import Commands
from baton.application.conduct.conduct_reader import ConductFeed
from baton.application.conduct.conduct_work import ProcedureConductWork, RunConductWork
from baton.application.feed import Feed
from baton.application.mint_sweeps import MintSweeps
from baton.application.ports import Authorizer
from baton.application.publications import Publications
from baton.application.queries import Queries
from baton.application.reactions import Dispatcher, ReactionReader
from baton.application.schedules.firings import Firings
from baton.application.schedules.schedule_reconciliation import ScheduleReconciler
from baton.application.seeds import Seeds
from baton.application.service import Service
from baton.application.settings import Settings, TraceExporter
from baton.application.telemetry import ProcessReport
from baton.cli.composition.agents import build_agents
from baton.cli.composition.ports import RuntimePorts, StoredBindings
from baton.infrastructure.background import Supervisor
from baton.infrastructure.identity.provider_client import ProviderClient
from baton.infrastructure.identity.registry import ProviderRegistry
from baton.infrastructure.llm.configured import ConfiguredModels
from baton.infrastructure.minting.configured import configured_minter
from baton.infrastructure.plugins import PluginUnusableError
from baton.infrastructure.postgres.authorization_log import PostgresVerdictLog
from baton.infrastructure.postgres.conduct_reader import PostgresConductReader
from baton.infrastructure.postgres.leadership import unsettled_enclosures
from baton.infrastructure.postgres.ledger import PostgresConductProgress
from baton.infrastructure.postgres.pool import runtime_pool
from baton.infrastructure.postgres.process_reports import ProcessReporter, running_processes, unled_tasks
from baton.infrastructure.postgres.projections import unbuilt_projections
from baton.infrastructure.postgres.store import PostgresStore, Pruner
from baton.infrastructure.postgres.wake_ups import AppendNotifier, PostgresAppendListener
from baton.infrastructure.publishing import KeyDirectorySigner, OutboxPublisher
from baton.infrastructure.temporal.calendars import TemporalCalendars
from baton.infrastructure.temporal.engine import TemporalEngine
from baton.infrastructure.wall_clock import clock, new_id

if TYPE_CHECKING:
    from baton.infrastructure.telemetry.tracing import Tracing


class BootRefused(Exception):
    """The process must not start; the sentences say why."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__(" ".join(sentences))
        self.sentences = sentences


class Runtime:
    """Builds what a process needs, opens it and closes it in order."""

    def __init__(self, settings: Settings, tracing: "Tracing | None" = None, stopping: asyncio.Event | None = None) -> None:
        if settings.database_url is None:
            raise ValueError("DATABASE_URL is not set")
        self.settings = settings
        self.database_url = settings.database_url
        self.tracing = tracing or tracing_of(settings)
        self.supervisor = Supervisor()
        self._open_record()
        self._open_providers()
        self._build_long_work()
        self._build_service(stopping or asyncio.Event())
        self._build_schedules()
        self._stack = AsyncExitStack()

    def _open_record(self) -> None:
        """Build what reads and writes the record: store, authorizer, ports, commands and queries."""
        self.pool = runtime_pool(self.database_url, self.settings.database_pool_size)
        self.waker = AppendNotifier(self.database_url)
        self.listener = PostgresAppendListener(self.database_url)
        self.store = store = PostgresStore(self.pool, self.waker.appended)
        self.verdicts = PostgresVerdictLog(self.pool)
        self.authorizer: Authorizer = PermissiveAuthorizer(PrincipalStandings(store))
        if self.settings.enforced:
            self.authorizer = PolicyAuthorizer(store, self.verdicts)
        self.ports = RuntimePorts(self)
        stale = timedelta(seconds=self.settings.idempotency_lock_stale_seconds)
        self.commands = Commands(store, self.authorizer, clock, new_id, self.ports, stale)
        self.queries = Queries(store, self.authorizer, clock, new_id, self.ports)
        self.feed = Feed(store, self.authorizer, self.ports)
        self.conduct_reader = PostgresConductReader(store)
        self.conduct_feed = ConductFeed(store, self.authorizer, self.conduct_reader, clock, new_id, self.ports)

    def _open_providers(self) -> None:
        """Build what reaches outside: identity providers, language models, the identifier registry and the engine."""
        settings = self.settings
        self._providers = ProviderClient()
        self.identity = ProviderRegistry(settings.identity_providers, StoredBindings(self.store), self._providers, clock)
        self.models = ConfiguredModels(settings)
        try:
            self.minter = configured_minter(settings)
        except PluginUnusableError as error:
            raise BootRefused([str(error)]) from error
        self.engine = TemporalEngine(settings, self.tracing)

    def _build_long_work(self) -> None:
        """Build every kind of work that a workflow carries."""
        settings, store, commands = self.settings, self.store, self.commands
        signer, publisher = KeyDirectorySigner(settings.signing_key_directory), OutboxPublisher(settings.publication_outbox)
        self.mint_sweeps = MintSweeps(commands)
        self.publications = Publications(commands, signer, publisher)
        stalls, facility_code = PostgresConductProgress(store), settings.self_facility_code
        self.conducts = ProcedureConductWork(store, commands, stalls, facility_code, self.conduct_reader, clock)
        self.run_conducts = RunConductWork(store, commands, stalls, facility_code)
        self.agents = build_agents(settings, store, commands, self.queries, self.models)
        self.reactions = ReactionReader(store, self.engine, self.agents.subscribers)

    def _build_service(self, stopping: asyncio.Event) -> None:
        works = (self.mint_sweeps, self.publications, self.conducts, self.run_conducts, self.agents.regenerations)
        by_workflow = {work.workflow: work for work in works}
        service = Service(self.commands, self.queries, self.authorizer, self.engine, by_workflow, stopping=stopping)
        self.service = service if self.tracing is None else self.tracing.trace_service(service)

    def _build_schedules(self) -> None:
        settings, store, commands = self.settings, self.store, self.commands
        limit = timedelta(seconds=settings.conduct_restart_limit_seconds)
        self.firings = Firings(store, commands, self.service, clock, self.conducts, self.run_conducts, limit)
        self.calendars = TemporalCalendars(self.engine.connected_client, clock)
        self.agent_schedules = AgentSchedules(self.calendars, agent_schedules(settings))
        self.schedule_reconciler = ScheduleReconciler(commands, self.calendars, settings.self_facility_code)

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
        """Report the state of this process to the others while the block lasts."""
        reporter = ProcessReporter(self.database_url, kind, self.supervisor)
        return self.supervisor.supervise("reporting", reporter.run)

    async def fellow_processes(self) -> tuple[list[ProcessReport], list[str]]:
        """Return the running processes of this deployment, and the tasks that one of them should lead and none does."""
        async with self.pool.connection() as connection:
            return await running_processes(connection), await unled_tasks(connection)

    async def plant_seeds(self) -> None:
        """Write the initial records; raise BootRefused where enforced authorization would have no principal to rest on."""
        seeds = Seeds(self.store, clock, new_id)
        bootstrap = self.settings.bootstrap_principal_id
        await seeds.plant(
            facility_code=self.settings.self_facility_code,
            bootstrap_principal_id=bootstrap,
            template_codes=self.settings.clearance_template_codes,
        )
        await self.dispatcher().begin()
        await self.ports.load_facility_name()
        if self.settings.enforced and (objections := await seeds.objections(bootstrap_principal_id=bootstrap)):
            raise BootRefused(objections)

    async def unbuilt_projections(self) -> list[str]:
        """Return the projections that are not built yet."""
        async with self.pool.connection() as connection:
            return await unbuilt_projections(connection)

    def dispatcher(self) -> Dispatcher:
        """Return the dispatcher that leads the subscribers through the log."""
        return Dispatcher(self.store, self.engine, clock, new_id, self.agents.subscribers, self.listener.wait)

    async def unsettled_enclosures(self) -> list[str]:
        """Return the configured enclosures whose permit was not settled since the monitor started."""
        if not self.settings.monitored_enclosures:
            return []
        async with self.pool.connection() as connection:
            return await unsettled_enclosures(connection, self.settings.monitored_enclosures)


def tracing_of(settings: Settings) -> "Tracing | None":
    """Return the configured tracing, which is imported only where it is wanted."""
    if settings.trace_exporter is TraceExporter.NONE:
        return None
    from baton.infrastructure.telemetry.tracing import configured_tracing

    return configured_tracing(settings)
