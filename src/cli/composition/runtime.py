"""The runtime of a process: the record, the providers, agents, long work, the service over them; the ports of decisions."""

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID
from zoneinfo import ZoneInfo

from baton.application.agents.agent_client import AgentClient
from baton.application.agents.agent_schedules import AgentSchedules, agent_schedules
from baton.application.agents.model_agents import ModelAgents
from baton.application.agents.model_consultation import BudgetLock, ModelConsultation
from baton.application.authorization import PermissiveAuthorizer, PolicyAuthorizer, PrincipalStatuses
from baton.application.commands import Commands
from baton.application.conduct.conduct_reader import ConductFeed
from baton.application.conduct.conduct_times import ConductTimes
from baton.application.conduct.conduct_work import ProcedureConductWork, RunConductWork
from baton.application.conduct.rehearsals import Rehearsals
from baton.application.conduct.signal_reader import SignalQuestions
from baton.application.conduct.step_lists import StepLists
from baton.application.launches import Launches
from baton.application.long_work import LongWorks
from baton.application.monitoring.plant_monitors import registration_of
from baton.application.plant import SIMULATOR_ONLY
from baton.application.ports import Authorizer, SigningFailedError
from baton.application.proposals import Proposals
from baton.application.queries import Feed, Queries
from baton.application.reactions import Dispatcher, ReactionReader
from baton.application.schedules.schedule_reconciliation import ScheduleReconciler
from baton.application.seeds import Seeds
from baton.application.service import Service
from baton.application.settings import LapsedCalibrations, Settings, TraceExporter
from baton.application.telemetry import ProcessReport
from baton.domain.access.actor import Actor, ActorKind, SubjectBinding
from baton.domain.enclosure.enclosure import RegisterEnclosure, enclosure_key
from baton.domain.facility.facility import Facility
from baton.domain.shared.citation import IdentifierPort
from baton.domain.shared.deployment import Deployment
from baton.domain.shared.identifiers import FACILITY_CODE
from baton.domain.shared.signatures import PublicKey, Signature, SignatureVerdict
from baton.domain.steering.steering import offered_deciders
from baton.domain.supply.supply import address_key
from baton.infrastructure.background import Supervisor
from baton.infrastructure.byte_sources import ByteSources
from baton.infrastructure.catalogues.configured import configured_catalogues
from baton.infrastructure.crates import LocalCrates
from baton.infrastructure.data_files import DataFiles
from baton.infrastructure.identity import ProviderClient, ProviderRegistry
from baton.infrastructure.llm.providers import ConfiguredModels
from baton.infrastructure.minting import configured_minter
from baton.infrastructure.peers import HttpPeerClient
from baton.infrastructure.plugins import PluginUnusableError, installed_actions
from baton.infrastructure.postgres.adoption import refuse_ahead
from baton.infrastructure.postgres.agent_data import PostgresPeople, PostgresSpending
from baton.infrastructure.postgres.authorization_log import PostgresVerdictLog
from baton.infrastructure.postgres.conduct_reader import PostgresConductReader
from baton.infrastructure.postgres.leadership import (
    MonitorTerms,
    ProcessReporter,
    running_processes,
    unled_tasks,
    unsettled_enclosures,
)
from baton.infrastructure.postgres.ledger import PostgresConductProgress
from baton.infrastructure.postgres.lineage import PostgresLineage
from baton.infrastructure.postgres.pool import AppendNotifier, PostgresAppendListener, runtime_pool
from baton.infrastructure.postgres.projections import unbuilt_projections
from baton.infrastructure.postgres.store import PostgresStore, Pruner
from baton.infrastructure.publishing import FileMirror, OutboxPublisher
from baton.infrastructure.scans.previews import LocalPreviews
from baton.infrastructure.scans.reader_process import ReaderProcess
from baton.infrastructure.scans.scan_files import LocalScanFiles
from baton.infrastructure.signing import KeyDirectorySigner, KeyDirectoryVerifier
from baton.infrastructure.tables.reader_process import TableReaderProcess
from baton.infrastructure.temporal.late_engine import LateEngine
from baton.infrastructure.wall_clock import clock, new_id

if TYPE_CHECKING:
    from baton.console.run_reports import RunReports
    from baton.infrastructure.telemetry.tracing import Tracing
    from baton.infrastructure.temporal.calendars import TemporalCalendars


class BootRefused(Exception):
    """The process must not start; the sentences say why."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__(" ".join(sentences))
        self.sentences = sentences


class RuntimeDeployment:
    """The settings of a process, as decisions and answers may know them."""

    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime
        settings, code = runtime.settings, runtime.settings.self_facility_code
        names = (RegisterEnclosure(name=name, facility_code=code) for name in settings.monitored_enclosures)
        supplies = (registration_of(one, code) for one in settings.monitored_supplies)
        # The keys under which they are claimed; they follow from the settings alone.
        self._enclosures = frozenset(map(enclosure_key, names))
        self._supplies = frozenset(map(address_key, supplies))
        routes, writable = settings.control_routes or SIMULATOR_ONLY, settings.control_writes_enabled
        self._routes = tuple(one.model_copy(update={"read_only": one.read_only or not writable}) for one in routes)
        peers = settings.federation_peers.items()
        self._peer_addresses = {code: peer.address for code, peer in peers if peer.address is not None}
        self.own_ids_at_peers = {code: peer.facility_id for code, peer in peers if peer.facility_id is not None}
        self._peer_accounts = {id: code for code, peer in peers for id in peer.accounts}
        self._facility_name: str | None = None

    async def load_facility_name(self) -> str:
        """Read the name of this facility, or its code where it has none yet."""
        code = self._runtime.settings.self_facility_code
        async with self._runtime.store.session() as session:
            holder = (await session.holders(FACILITY_CODE, [code])).get(code)
            rows = await session.load(Facility.__name__, [holder]) if holder else ()
        facility: Facility | None = Facility.aggregate.replay(rows)
        self._facility_name = facility.display_name if facility else None
        return self._facility_name or code

    async def deployment(self) -> Deployment:
        runtime, settings = self._runtime, self._runtime.settings
        return Deployment(
            base_url=settings.public_base_url or "",
            landing_page_templates=settings.address_templates,
            publisher=settings.facility_publisher or self._facility_name or await self.load_facility_name(),
            minted_schemes=frozenset() if runtime.minter is None else runtime.minter.schemes,
            drafts_minted=bool(getattr(runtime.minter, "drafts", False)),
            self_facility_code=settings.self_facility_code,
            enclosure_observation_ttl=timedelta(seconds=settings.enclosure_observation_ttl_seconds),
            monitored_permit_ttl=timedelta(seconds=settings.monitored_permit_ttl_seconds),
            deciders=offered_deciders(settings.decide_substrates),
            compute_programs=frozenset(settings.compute_programs),
            approved_models_only=settings.require_approved_language_model,
            action_timeout=settings.action_timeout_seconds,
            compute_timeout=settings.compute_timeout_seconds,
            clearance_four_eyes=settings.four_eyes,
            policies_enforced=settings.enforced,
            action_signals=runtime.action_signals,
            plan_executors=settings.plan_executors,
            unowned_signals_allowed=settings.unowned_signals_allowed,
            strict_limits=settings.strict_limits,
            planned_outages=settings.planned_outages,
            lapsed_calibrations_refused=settings.lapsed_calibrations is LapsedCalibrations.REFUSE,
            monitored_enclosures=self._enclosures,
            monitored_supplies=self._supplies,
            seal_signatures_required=settings.seal_signatures_required,
            catalogues=frozenset(catalogue.name for catalogue in runtime.catalogues),
            peer_addresses=self._peer_addresses,
            own_ids_at_peers=self.own_ids_at_peers,
            peer_accounts=self._peer_accounts,
            unit_policy=settings.unit_policy,
            witnessed_runs_claim=settings.witnessed_claims,
            control_routes=self._routes,
        )


@dataclass(frozen=True)
class Keys:
    """The keys that this deployment signs with, and those that it can read."""

    signer: KeyDirectorySigner
    verifier: KeyDirectoryVerifier

    async def sign(self, secret_ref: str, content: bytes) -> Signature | None:
        try:
            return await self.signer.sign(secret_ref, content)
        except SigningFailedError:
            return None

    async def verify_signature(
        self, public_material_ref: str | None, content: bytes, signature: Signature
    ) -> SignatureVerdict:
        return await self.verifier.verify(public_material_ref, content, signature)

    async def public_key(self, public_material_ref: str | None) -> PublicKey | None:
        return await self.verifier.public_key(public_material_ref)


@dataclass(frozen=True)
class StoredBindings:
    """Reads the token bindings that were made at run time."""

    store: PostgresStore

    async def actor_of(self, issuer: str, subject: str) -> tuple[UUID, ActorKind] | None:
        async with self.store.session() as session:
            rows = await session.records(SubjectBinding, {"issuer": issuer, "subject": subject})
            if not rows:
                return None
            binding: Any = rows[0]
            events = await session.load(Actor.__name__, [binding.actor_id])
        actor: Actor | None = Actor.aggregate.replay(events)
        return (binding.actor_id, actor.kind) if actor else None


class Runtime:
    """Builds what a process needs, opens it and closes it in order."""

    def __init__(self, settings: Settings, tracing: "Tracing | None" = None, stopping: asyncio.Event | None = None) -> None:
        if settings.database_url is None:
            raise ValueError("DATABASE_URL is not set")
        self.settings = settings
        self.database_url = settings.database_url
        if tracing is None and settings.trace_exporter is not TraceExporter.NONE:
            from baton.infrastructure.telemetry.tracing import configured_tracing  # imported only where it is wanted

            tracing = configured_tracing(settings)
        self.tracing = tracing
        self.facility_code = settings.self_facility_code
        self.supervisor = Supervisor()
        self._open_record()
        self._open_providers()
        self._build_service(stopping or asyncio.Event())
        self._stack = AsyncExitStack()

    def _open_record(self) -> None:
        """Build what reads and writes the record: store, authorizer, ports, commands and queries."""
        self.pool = runtime_pool(self.database_url, self.settings.database_pool_size)
        self.waker = AppendNotifier(self.database_url)
        self.listener = PostgresAppendListener(self.database_url)
        self.store = store = PostgresStore(self.pool, self.waker.mark_appended)
        self.verdicts = PostgresVerdictLog(self.pool)
        self.authorizer: Authorizer = PermissiveAuthorizer(PrincipalStatuses(store))
        if self.settings.enforced:
            self.authorizer = PolicyAuthorizer(store, self.verdicts)
        self.deployment = RuntimeDeployment(self)
        stale = timedelta(seconds=self.settings.idempotency_lock_stale_seconds)
        self.commands: Commands = Commands(store, self.authorizer, clock, new_id, self, stale)
        self.queries: Queries = Queries(store, self.authorizer, clock, new_id, self)
        self.feed = Feed(store, self.authorizer, self)
        self.conduct_reader = self.files = self.plan_steps = self.reliability = PostgresConductReader(store)
        self.stalls = PostgresConductProgress(store)
        self.people, self.spending = PostgresPeople(store), PostgresSpending(store)
        self.client = AgentClient(self.commands)
        self.lineage = PostgresLineage(store)
        self.monitors = MonitorTerms(store)
        self.conduct_times = ConductTimes(store, self.conduct_reader)
        self.step_lists = StepLists(store)
        self.rehearsals = Rehearsals()
        self.conduct_feed = ConductFeed(store, self.authorizer, self.conduct_reader, clock, new_id, self)

    def _open_providers(self) -> None:
        """Build what reaches outside: identity providers, language models, the identifier registry and the engine."""
        settings = self.settings
        self._providers = ProviderClient()
        self.identity = ProviderRegistry(settings.identity_providers, StoredBindings(self.store), self._providers, clock)
        self.models = ConfiguredModels(settings)
        self.data_files = DataFiles(settings.data_roots)
        hosts, budget = settings.verifier_allowed_hosts, settings.verifier_budget_seconds
        self.byte_sources = ByteSources(self.data_files, hosts, budget)
        self.scan_reader = ReaderProcess(settings.scan_reader_memory_bytes, settings.scan_reader_seconds)
        self.table_reader = TableReaderProcess()
        self.crates = LocalCrates(self.data_files)
        self.previews = LocalPreviews(self.data_files, self.scan_reader)
        self.scan_files = LocalScanFiles(self.data_files, self.scan_reader)
        self.catalogues = configured_catalogues(settings, self.data_files)
        keys = settings.signing_key_directory
        self.signer = KeyDirectorySigner(keys)
        self.keys = Keys(self.signer, KeyDirectoryVerifier(keys))
        self.publisher, self.peers = OutboxPublisher(settings.publication_outbox), HttpPeerClient(settings.federation_peers)
        try:
            self.minter = configured_minter(settings)
            self.action_signals = installed_actions().signals
        except PluginUnusableError as error:
            raise BootRefused([str(error)]) from error
        self.engine = LateEngine(settings, self.tracing)
        self.signals = self.units = SignalQuestions(self.engine, new_id)

    def _build_service(self, stopping: asyncio.Event) -> None:
        """Build the service over all long work, which is built from the parts of this process."""
        self.works = works = LongWorks(self)
        service = Service(self.commands, self.queries, self.authorizer, self.engine, works, stopping=stopping)
        self.service = self.orders = service if self.tracing is None else self.tracing.trace_service(service)
        self.reactions = ReactionReader(self.store, self.engine, works.reacting)

    @cached_property
    def agents(self) -> ModelAgents:
        settings, lock = self.settings, BudgetLock(self.commands)
        consultation = ModelConsultation(self.client, self.models, self.spending, self.people, lock)
        directory, target = settings.logbook_mirror_directory, settings.logbook_mirror_target
        mirror = None if directory is None else FileMirror(directory)
        return ModelAgents(self.client, consultation, mirror, target, self.facility_code)

    @cached_property
    def reports(self) -> "RunReports":
        """The writer of reports, whose templates only a process that answers needs."""
        from baton.console.run_reports import RunReports

        return RunReports(self.previews, ZoneInfo(self.settings.facility_time_zone))

    @cached_property
    def launches(self) -> Launches:
        conducts = self.works.of(ProcedureConductWork), self.works.of(RunConductWork)
        return Launches(self.store, self.commands, self.service, *conducts)

    @property
    def proposals(self) -> Proposals:
        return self.works.of(Proposals)

    @property
    def identifiers(self) -> IdentifierPort:
        """The registry that issues identifiers; without one the deployment offers no scheme."""
        assert self.minter is not None, "nobody asks for an identifier that the deployment does not offer"
        return self.minter

    @cached_property
    def calendars(self) -> "TemporalCalendars":
        """The calendars of the engine, which only a worker keeps."""
        from baton.infrastructure.temporal.calendars import TemporalCalendars

        return TemporalCalendars(self.engine.connected_client, clock)

    @cached_property
    def agent_schedules(self) -> AgentSchedules:
        return AgentSchedules(self.calendars, agent_schedules(self.settings))

    @cached_property
    def schedule_reconciler(self) -> ScheduleReconciler:
        return ScheduleReconciler(self.commands, self.calendars, self.settings.self_facility_code)

    async def __aenter__(self) -> Self:
        await self.pool.open(wait=True, timeout=30)
        if self.tracing is not None:
            self._stack.push_async_callback(asyncio.to_thread, self.tracing.close)
        clients = (self._providers, self.peers, self.models, self.byte_sources)
        for close in (self.pool.close, *(client.aclose for client in clients)):
            self._stack.push_async_callback(close)
        self._stack.callback(self.scan_reader.close)
        self._stack.callback(self.table_reader.close)
        for catalogue in self.catalogues:
            self._stack.push_async_callback(catalogue.aclose)
        if self.minter is not None:
            self._stack.push_async_callback(self.minter.aclose)
        tasks = {"verdicts": self.verdicts.run, "waking": self.waker.run, "listening": self.listener.run}
        if life := timedelta(hours=self.settings.idempotency_ttl_hours):
            tasks["pruning"] = Pruner(self.pool, life).run
        for name, run in tasks.items():
            await self._stack.enter_async_context(self.supervisor.supervise(name, run))
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    def report_process(self, kind: str) -> AbstractAsyncContextManager[None]:
        """Report the state of this process to the others while the block lasts."""
        reporter = ProcessReporter(self.database_url, kind, self.supervisor)
        return self.supervisor.supervise("reporting", reporter.run)

    async def fellow_processes(self) -> tuple[list[ProcessReport], list[str]]:
        """Return the running processes of this deployment, and the tasks that one of them should lead and none does."""
        async with self.pool.connection() as connection:
            return await running_processes(connection), await unled_tasks(connection)

    async def plant_seeds(self) -> None:
        """Write the initial records; raise BootRefused where enforced authorization would have no principal to rest on."""
        seeds, settings = Seeds(self.store, clock, new_id), self.settings
        bootstrap, codes = settings.bootstrap_principal_id, settings.clearance_template_codes
        await seeds.plant(facility_code=settings.self_facility_code, bootstrap_principal_id=bootstrap, template_codes=codes)
        await self.dispatcher().begin()
        await self.deployment.load_facility_name()
        if settings.enforced and (objections := await seeds.objections(bootstrap_principal_id=bootstrap)):
            raise BootRefused(objections)

    async def unbuilt_projections(self) -> list[str]:
        """Return the projections that are not built yet; raise where the record came from another cluster meanwhile."""
        async with self.pool.connection() as connection:
            await refuse_ahead(connection)
            return await unbuilt_projections(connection)

    def dispatcher(self) -> Dispatcher:
        """Return the dispatcher that leads the subscribers through the log."""
        return Dispatcher(self.store, self.engine, clock, new_id, self.works.reacting, self.listener.wait)

    async def unsettled_enclosures(self) -> list[str]:
        """Return the configured enclosures whose permit was not settled since the monitor started."""
        if not self.settings.monitored_enclosures:
            return []
        async with self.pool.connection() as connection:
            return await unsettled_enclosures(connection, self.settings.monitored_enclosures)
