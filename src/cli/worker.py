"""The worker process: monitors the plant, runs workflows and activities, and starts work the engine does not know of."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import structlog
import uvloop
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import PollerBehaviorSimpleMaximum, UnsandboxedWorkflowRunner, Worker

import baton
from baton.activities.bindings import activities_of_all, declared_workflows
from baton.application.boot_guards import idle_agents
from baton.application.conduct import step_execution
from baton.application.conduct.actions import Actions
from baton.application.conduct.compute import Compute
from baton.application.conduct.conduct_record import ConductRecord, RecordWatch, StepPlans
from baton.application.conduct.conduct_work import ConductWork, ProcedureConductWork, Reconciler, RunConductWork
from baton.application.conduct.conductor import Conductor
from baton.application.conduct.heartbeat import ENGINE_BEAT_SECONDS, Pulse
from baton.application.conduct.ledger import Ledger
from baton.application.conduct.passes import Passes
from baton.application.conduct.run_conductor import RunConductor
from baton.application.conduct.signal_limits import SetpointLimits
from baton.application.conduct.signal_reader import SignalReader
from baton.application.conduct.step_effects import StepEffects
from baton.application.control import Control
from baton.application.long_work import RecordedWork
from baton.application.monitoring import plant_monitors
from baton.application.monitoring.monitors import MonitorAccount, MonitorIntervals
from baton.application.monitoring.observations import ControlObserver, permit_signals, supply_signals
from baton.application.monitoring.plan_catalogues import PlanCatalogues
from baton.application.plant import SIMULATOR_ONLY
from baton.application.ports import EngineUnavailableError, StoreUnavailableError
from baton.application.settings import Settings
from baton.application.telemetry import error_location
from baton.cli.composition.runtime import BootRefused, Runtime
from baton.cli.messages import refuse
from baton.cli.startup import start_garbage_collection, stop_on_signals
from baton.domain.recipe.step_actions import OWN_ACTIONS
from baton.domain.steering.steering import offered_deciders
from baton.infrastructure.compute.job_runner import process_birth
from baton.infrastructure.compute.local_process import AccountUnusableError, JobRetention, LocalProcesses, configured_compute
from baton.infrastructure.control.routes import AdapterMissingError, open_control
from baton.infrastructure.decide.configured import ConfiguredDeciders
from baton.infrastructure.plans.configured import ConfiguredExecutor, configured_executors
from baton.infrastructure.plans.own_actions import OwnActions
from baton.infrastructure.plugins import ActionRegistry, PluginUnusableError, installed_actions, load_named_plugins
from baton.infrastructure.postgres.leadership import (
    MONITOR_LOCK,
    REACTIONS_LOCK,
    SCHEDULES_LOCK,
    Leadership,
    lead,
    mark_settled,
)
from baton.infrastructure.postgres.ledger import PostgresLedger
from baton.infrastructure.postgres.plan_catalogues import PostgresPlanCatalogues
from baton.infrastructure.temporal.attributes import add_missing_attributes
from baton.infrastructure.temporal.engine import TASK_QUEUE, connect, worker_deployment
from baton.infrastructure.temporal.interceptors import CallerInterceptor
from baton.infrastructure.temporal.sdk_logging import configure_sdk_logging
from baton.infrastructure.wall_clock import WallClock, clock, new_id

log = structlog.get_logger()
Running = AbstractAsyncContextManager[None]  # runs in the background while its block lasts
LeaderWork = Callable[[Leadership], Coroutine[Any, Any, None]]

UNSTARTED_WORK_SECONDS = 2.0  # between two starts of work that nobody has begun
COMPARISON_SECONDS = 60.0  # between two comparisons of all live work with the engine
CHANGED_SCHEDULES_SECONDS, ALL_SCHEDULES_SECONDS, UNKNOWN_CALENDARS_SECONDS = 1.0, 10.0, 600.0
"""Intervals of telling the engine of changed schedules, of comparing all, and of removing calendars without a schedule."""
RETRY_SECONDS = 1.0
MAX_ACTIVITIES = 500  # activities at once in this process, including those that wait for people
WORKFLOW_POLLERS = PollerBehaviorSimpleMaximum(2)
ACTIVITY_POLLERS = PollerBehaviorSimpleMaximum(1)  # a suspended worker still draws one activity with each
STICKY_TIMEOUT = timedelta(seconds=1.5)  # of a task for the worker that has the workflow in memory, which may be dead
SHUTDOWN_GRACE = timedelta(seconds=5)  # for activities in progress when it stops; what is cut off is repeated elsewhere


def run_worker(settings: Settings) -> None:
    """Run the worker until SIGTERM or SIGINT."""
    if settings.temporal_address is None:
        refuse("TEMPORAL_ADDRESS is not set; point it at a Temporal server, or use `baton up`, which brings its own.")
    configure_sdk_logging()
    start_garbage_collection()
    try:
        uvloop.run(_run(settings))
    except (AdapterMissingError, AccountUnusableError, BootRefused, PluginUnusableError) as error:
        refuse(str(error))


async def _run(settings: Settings) -> None:
    """Run everything a worker does; work in progress at the end is finished or handed back to the engine."""
    stopping = asyncio.Event()
    stop_on_signals(stopping.set)
    for sentence in idle_agents(settings):
        log.warning("agent_idle", reason=sentence)
    compute, executors = configured_compute(settings), configured_executors(settings.plan_executors)
    own = installed_actions()
    actions = own.with_plans({name: plan for one in executors for name, plan in one.actions.items()})
    load_named_plugins(settings)
    async with (
        Runtime(settings) as runtime,
        runtime.report_process("worker"),
        open_control(settings) as control,
        monitor_in_background(runtime, control),
        reconcile_in_background(runtime),
        react_in_background(runtime),
        remove_jobs_in_background(runtime, compute),
        keep_catalogues_in_background(runtime, executors, own),
    ):
        client = await connect_when_ready(runtime, stopping)
        if client is None:
            return
        if (remedy := await add_missing_attributes(client)) is not None:
            log.warning("search_attributes_missing", run=remedy)
        async with (
            keep_schedules_in_background(runtime),
            open_conduct_engine(runtime, control, actions=actions, compute=compute) as wired,
            build_worker(client, runtime, wired),
        ):
            log.info("worker_ready", task_queue=TASK_QUEUE)
            await stopping.wait()


@dataclass(frozen=True)
class ConductEngine:
    """Everything that the activities of a conduct call."""

    conductor: Conductor
    passes: Passes
    steps: step_execution.StepRunner
    run_conductor: RunConductor
    signals: SignalReader


@asynccontextmanager
async def open_conduct_engine(
    runtime: Runtime,
    control: Control,
    *,
    actions: Actions | None = None,
    compute: Compute | None = None,
    ledger: Ledger | None = None,
) -> AsyncIterator[ConductEngine]:
    """Build what conducts in this process; actions and programs are the configured ones unless others are given."""
    settings = runtime.settings
    action_limit, restart_limit = settings.action_timeout_seconds, settings.conduct_restart_limit_seconds
    limits = step_execution.Limits(action_limit, settings.compute_timeout_seconds, restart_limit)
    compute = compute or configured_compute(settings)
    check_limits = SetpointLimits(control, runtime.commands, new_id).check
    own_actions = actions or installed_actions()
    pulse = Pulse()
    plant = (control, own_actions, WallClock(), settings.control_routes or SIMULATOR_ONLY)
    effects = StepEffects(*plant, action_limit, check_limits, pulse.begin, settings.unit_policy)
    ledger, plans = ledger or PostgresLedger(runtime.store), StepPlans(runtime.store)
    watch = RecordWatch(runtime.commands, clock)
    # The name is unique to this process, on any machine, at any time.
    worker = step_execution.Worker(f"{process_namespace()}/{os.getpid()}/{process_birth(os.getpid())}", is_dead)
    steps = step_execution.StepRunner(ledger, plans, effects, compute, clock, limits, worker, watch)
    record = ConductRecord(runtime.store, runtime.commands)
    conductor = Conductor(runtime.store, record, clock, ledger, plans, steps, watch)
    deciders = ConfiguredDeciders(offered_deciders(settings.decide_substrates), runtime.models.steering_model())
    passes = Passes(runtime.store, record, watch, clock, ledger, plans, deciders)
    conducts = runtime.works.of(ProcedureConductWork), runtime.works.of(RunConductWork)
    run_conductor = RunConductor(runtime.store, runtime.commands, clock, runtime.stalls, *conducts, restart_limit, watch)
    try:
        async with runtime.supervisor.supervise("pulse", pulse.run):
            yield ConductEngine(conductor, passes, steps, run_conductor, SignalReader(control))
    finally:
        await steps.close()
        await compute.close()


def is_dead(name: str) -> bool:
    """Return whether a process of this name is known to have ended; False where it cannot be seen from here."""
    namespace, pid, birth = name.split("/")
    return namespace == process_namespace() and process_birth(pid) != birth


@cache
def process_namespace() -> str:
    """Return the scope of process ids: this boot of this machine, and within it this container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()}:{boot}:{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return f"{socket.gethostname()}:{uuid4()}"


def build_worker(client: Client, runtime: Runtime, wired: ConductEngine) -> Worker:
    """Return a Temporal worker with every workflow and activity of this build."""
    deployment = worker_deployment(runtime.settings)
    others = (wired.conductor, wired.passes, wired.steps, wired.run_conductor, wired.signals)
    return Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=declared_workflows(),
        activities=activities_of_all(runtime.works, *others),
        workflow_runner=UnsandboxedWorkflowRunner(),
        interceptors=[CallerInterceptor()],
        deployment_config=deployment,
        build_id=baton.__version__ if deployment is None else None,  # the SDK would hash every module that is loaded
        graceful_shutdown_timeout=SHUTDOWN_GRACE,
        max_heartbeat_throttle_interval=timedelta(seconds=ENGINE_BEAT_SECONDS),
        workflow_task_poller_behavior=WORKFLOW_POLLERS,
        activity_task_poller_behavior=ACTIVITY_POLLERS,
        sticky_queue_schedule_to_start_timeout=STICKY_TIMEOUT,
        max_concurrent_activities=MAX_ACTIVITIES,
    )


async def connect_when_ready(runtime: Runtime, stopping: asyncio.Event) -> Client | None:
    """Return a client as soon as the server answers and has the namespace; None where the worker stops before."""
    settings = runtime.settings
    logged = ""
    while not stopping.is_set():
        try:
            client = await connect(settings, runtime.tracing)
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))
            return client
        except (EngineUnavailableError, RuntimeError, RPCError) as error:
            if str(error) != logged:
                logged = str(error)
                log.warning("engine_unavailable", address=settings.temporal_address, error=logged)
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_SECONDS):
                    await stopping.wait()
    return None


def monitor_in_background(runtime: Runtime, control: Control, intervals: MonitorIntervals = MonitorIntervals()) -> Running:
    """Monitor the plant while the block lasts, in one worker of all."""
    return lead_in_background(runtime, "monitoring", MONITOR_LOCK, partial(monitor, runtime, control, intervals))


def reconcile_in_background(runtime: Runtime) -> Running:
    """Compare the record with the engine while the block lasts, whether the engine answers or not."""
    return runtime.supervisor.supervise("reconciliation", partial(reconcile, runtime))


def keep_schedules_in_background(runtime: Runtime) -> Running:
    """Keep the engine's calendars as recorded, in one worker of all."""
    return lead_in_background(runtime, "schedules", SCHEDULES_LOCK, partial(keep_schedules, runtime))


def react_in_background(runtime: Runtime) -> Running:
    """Lead every subscriber through the log, in one worker of all."""
    return lead_in_background(runtime, "reactions", REACTIONS_LOCK, lambda _: runtime.dispatcher().run())


def lead_in_background(runtime: Runtime, name: str, lock: int, work: LeaderWork) -> Running:
    """Run some work in the one worker of all that holds the lock."""
    return runtime.supervisor.supervise(name, partial(lead, runtime.database_url, lock, work))


def remove_jobs_in_background(runtime: Runtime, compute: Compute) -> Running:
    """Remove the directories of old jobs, where a retention time is set."""
    hours = runtime.settings.compute_job_retention_hours
    if not isinstance(compute, LocalProcesses) or not hours:
        return nullcontext()
    retention = JobRetention(compute, runtime.works.of(ProcedureConductWork), clock, timedelta(hours=hours))
    return runtime.supervisor.supervise("job retention", retention.run)


@asynccontextmanager
async def keep_catalogues_in_background(
    runtime: Runtime, executors: Sequence[ConfiguredExecutor], actions: ActionRegistry
) -> AsyncIterator[None]:
    """Keep which actions this worker has and what the executors of Bluesky plans offer, while the block lasts; let go of the
    executors behind it."""
    known = {one.settings.name: one.executor for one in executors}
    catalogues = PlanCatalogues({**known, OWN_ACTIONS: OwnActions(actions)}, PostgresPlanCatalogues(runtime.store), clock)
    try:
        async with runtime.supervisor.supervise("plan catalogues", catalogues.run):
            yield
    finally:
        for executor in known.values():
            await executor.close()


async def monitor(runtime: Runtime, control: Control, intervals: MonitorIntervals, leading: Leadership) -> None:
    """Observe what is configured and expire stale permits, as the leader of this session, until cancelled."""
    settings = runtime.settings
    await runtime.plant_seeds()
    account = partial(MonitorAccount, service=runtime.service, store=runtime.store, new_id=new_id, lease=leading.lease)
    time_to_live = timedelta(seconds=settings.enclosure_observation_ttl_seconds)
    facility, supplies, permits = settings.self_facility_code, settings.monitored_supplies, settings.monitored_enclosures
    intervals = intervals.refreshing_within(timedelta(seconds=settings.monitored_permit_ttl_seconds))
    note_settled = partial(mark_settled, leading.connection)
    observer = ControlObserver(control, permit_signals(permits))
    enclosures = account(plant_monitors.ENCLOSURE_MONITOR)
    watch_permits = plant_monitors.EnclosureMonitor(enclosures, observer, facility, permits, note_settled, intervals)
    observer, supplier = ControlObserver(control, supply_signals(supplies)), account(plant_monitors.SUPPLY_MONITOR)
    watch_supplies = plant_monitors.SupplyMonitor(supplier, observer, facility, supplies, intervals)
    sweep = plant_monitors.StalePermits(enclosures, clock, time_to_live, intervals.sweep)
    try:
        async with asyncio.TaskGroup() as tasks:
            for work in (watch_permits.run, watch_supplies.run, sweep.run):
                tasks.create_task(work())
    finally:
        if not leading.is_lost:
            await watch_permits.stop()


async def reconcile(runtime: Runtime) -> None:
    """Start recorded work that the engine may not know of, and at longer intervals compare all live work with it."""
    limit = timedelta(seconds=runtime.settings.conduct_restart_limit_seconds)
    reconciler = Reconciler(runtime.works.all_of(ConductWork), runtime.engine, clock, limit)
    comparison_due = time.monotonic()

    async def pass_once() -> None:
        nonlocal comparison_due
        if time.monotonic() >= comparison_due:
            await reconciler.compare()
            comparison_due = time.monotonic() + COMPARISON_SECONDS
        for work in runtime.works.all_of(RecordedWork):
            await start_unfinished(runtime, work)

    await repeat(pass_once, UNSTARTED_WORK_SECONDS, RETRY_SECONDS, "reconcile_postponed")


async def keep_schedules(runtime: Runtime, leading: Leadership) -> None:
    """Tell the engine of changed schedules, and at longer intervals compare all calendars with the record."""
    keeper = runtime.schedule_reconciler
    tasks = (
        (keeper.reconcile_changed, CHANGED_SCHEDULES_SECONDS),
        (keeper.reconcile_all, ALL_SCHEDULES_SECONDS),
        (runtime.agent_schedules.reconcile, ALL_SCHEDULES_SECONDS),
        (keeper.remove_unknown, UNKNOWN_CALENDARS_SECONDS),
    )

    async def act(task: Callable[[], Awaitable[None]]) -> None:
        leading.check()
        await task()

    async with asyncio.TaskGroup() as group:
        for task, interval in tasks:
            group.create_task(
                repeat(partial(act, task), interval, min(interval, ALL_SCHEDULES_SECONDS), "schedules_not_kept")
            )


async def repeat(task: Callable[[], Awaitable[None]], interval: float, retry_interval: float, failure: str) -> None:
    """Run a task now and after every interval; log where store or engine is unavailable, and retry."""
    while True:
        pause = interval
        try:
            await task()
        except (EngineUnavailableError, StoreUnavailableError) as error:
            log.warning(failure, error=type(error).__name__)
            pause = retry_interval
        await asyncio.sleep(pause)


async def start_unfinished(runtime: Runtime, work: RecordedWork) -> None:
    """Start the unfinished items of one kind of work; an item that cannot be started does not delay the others."""
    for work_id in await work.unfinished_ids():
        try:
            if (job := await work.job(work_id)) is not None:
                await runtime.engine.start(job)
        except (EngineUnavailableError, StoreUnavailableError):
            raise
        except Exception as error:
            log.error("work_not_started", workflow=work.workflow, work_id=str(work_id), **error_location(error))
