"""The worker: monitors the plant, and runs workflows and activities as soon as Temporal answers.

It also starts what the record still owes and the engine does not know of.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from datetime import timedelta
from functools import partial
from typing import Any

import structlog
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from baton.activities.agents import AgentActivities
from baton.activities.calibration_publication import CalibrationPublicationActivities
from baton.activities.conduct import ConductActivities
from baton.activities.conduct_run import RunConductActivities
from baton.activities.mint_sweep import MintSweepActivities
from baton.activities.schedule_firing import ScheduleFiringActivities
from baton.application.boot_guards import idle_agents
from baton.application.conduct.compute import Compute
from baton.application.conduct.reconciliation import Reconciler
from baton.application.ports import EngineUnavailableError, StoreUnavailableError, Work
from baton.application.settings import Settings
from baton.application.telemetry import error_location
from baton.cli.processes import when_told
from baton.infrastructure.compute.configured import configured_compute
from baton.infrastructure.compute.local_process import LocalProcesses
from baton.infrastructure.compute.retention import JobRetention
from baton.infrastructure.conducting import Conducting, conducting
from baton.infrastructure.control.routes import open_control
from baton.infrastructure.monitoring import monitoring
from baton.infrastructure.postgres.leadership import REACTIONS_LOCK, SCHEDULES_LOCK, lead
from baton.infrastructure.postgres.pool import Connection
from baton.infrastructure.runtime import Runtime, clock
from baton.infrastructure.temporal.attributes import add_missing
from baton.infrastructure.temporal.engine import TASK_QUEUE, connect
from baton.infrastructure.temporal.interceptors import CallerCarrier
from baton.infrastructure.temporal.versioning import deployment_of
from baton.workflows.agent_conclusions import DebriefWorkflow, DraftCautionWorkflow, RegenerateDebriefWorkflow
from baton.workflows.calibration_publication import CalibrationPublicationWorkflow
from baton.workflows.conduct import ConductWorkflow
from baton.workflows.conduct_run import ConductRunWorkflow
from baton.workflows.mint_sweep import MintSweepWorkflow
from baton.workflows.rule_agents import (
    ExpireClearancesWorkflow,
    ExpireClearanceWorkflow,
    PromoteCautionWorkflow,
    SuperviseRunsWorkflow,
)
from baton.workflows.schedule_firing import ScheduleFiringWorkflow

log = structlog.get_logger()

WORKFLOWS = (
    *(MintSweepWorkflow, CalibrationPublicationWorkflow, ConductWorkflow, ConductRunWorkflow, ScheduleFiringWorkflow),
    *(DebriefWorkflow, DraftCautionWorkflow, RegenerateDebriefWorkflow),
    *(PromoteCautionWorkflow, SuperviseRunsWorkflow, ExpireClearancesWorkflow, ExpireClearanceWorkflow),
)
"""Every kind; of each there are recorded histories that it must be able to replay."""
RECONCILE_INTERVAL = 2.0
"""Seconds between two looks for work that nobody has begun."""
COMPARE_INTERVAL = 60.0
"""Seconds between two comparisons of all that is live with the engine; the first one comes with the start."""
CHANGES_INTERVAL = 1.0
"""Seconds between two looks for schedules that were changed on the record."""
SCHEDULES_INTERVAL = 10.0
"""Seconds between two comparisons of all schedules with the engine's calendars."""
UNKNOWN_INTERVAL = 600.0
"""Seconds between two looks for calendars of schedules that are not on record; the first one comes with the start."""
RETRY_INTERVAL = 1.0
MOST_ACTIVITIES = 500
"""Activities at once in this process; those that wait for people count too."""
STICKY = timedelta(seconds=1.5)
"""How long a workflow waits for the worker that has it in memory, which may be dead; then any other takes it."""
GRACE = timedelta(seconds=5)
"""What activities in progress have to end when the worker is told to stop; what is cut off is repeated elsewhere."""


async def run(settings: Settings) -> None:
    """The worker until SIGTERM or SIGINT; work in progress is finished or handed back to the engine."""
    stopping = asyncio.Event()
    when_told(stopping.set)
    for sentence in idle_agents(settings):
        log.warning("agent_idle", said=sentence)
    compute = configured_compute(settings)
    async with (
        Runtime(settings) as runtime,
        runtime.reporting("worker"),
        open_control(settings) as control,
        monitoring(runtime, control),
        reconciling(runtime),
        reacting(runtime),
        removing_jobs(runtime, compute),
    ):
        client = await connected(runtime, stopping)
        if client is None:
            return
        if (remedy := await add_missing(client)) is not None:
            log.warning("search_attributes_missing", run=remedy)
        async with (
            keeping_schedules(runtime),
            conducting(runtime, control, compute=compute) as wired,
            worker(client, runtime, wired),
        ):
            log.info("worker_ready", task_queue=TASK_QUEUE)
            await stopping.wait()


def worker(client: Client, runtime: Runtime, wired: Conducting) -> Worker:
    """Everything this build can run."""
    sweeps = MintSweepActivities(runtime.mint_sweeps)
    publications = CalibrationPublicationActivities(runtime.publications)
    conducts = ConductActivities(wired.conductor, wired.passes, wired.steps, wired.scores)
    runs = RunConductActivities(wired.run_conductor)
    own = runtime.agents
    agents = AgentActivities(own.models, own.regenerations, own.promoter, own.supervisor, own.expirer)
    firings = ScheduleFiringActivities(runtime.firings)
    return Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=WORKFLOWS,
        activities=[
            *(sweeps.candidates, sweeps.mint, sweeps.finish),
            *(publications.sign, publications.send, publications.record),
            *(conducts.brief, conducts.do_step, conducts.collect_job, conducts.await_run),
            *(conducts.start_pass, conducts.judge_pass, conducts.record_outcome),
            *(conducts.advise_pass, conducts.take_up_search, conducts.begin_closing, conducts.end_conduct),
            *(runs.brief, runs.open_phase, runs.await_run, runs.await_phase, runs.end),
            *(agents.take_lease, agents.conclude, agents.write_up, agents.regenerate),
            *(agents.promote, agents.supervise, agents.due, agents.expire),
            *(firings.open, firings.await_end),
        ],
        workflow_runner=UnsandboxedWorkflowRunner(),
        interceptors=[CallerCarrier()],
        deployment_config=deployment_of(runtime.settings),
        graceful_shutdown_timeout=GRACE,
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        sticky_queue_schedule_to_start_timeout=STICKY,
        max_concurrent_activities=MOST_ACTIVITIES,
    )


async def connected(runtime: Runtime, stopping: asyncio.Event) -> Client | None:
    """A client, as soon as the server answers and has our namespace."""
    settings = runtime.settings
    said = ""
    while not stopping.is_set():
        try:
            client = await connect(settings, runtime.tracing)
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))
            return client
        except (EngineUnavailableError, RuntimeError, RPCError) as error:
            if (sentence := str(error)) != said:
                log.warning("engine_unavailable", address=settings.temporal_address, error=(said := sentence))
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), RETRY_INTERVAL)
    return None


def reconciling(runtime: Runtime) -> AbstractAsyncContextManager[None]:
    """Compare the record with the engine beside whatever else is done, whether the engine answers or not."""
    return runtime.supervisor.supervise("reconciliation", partial(reconcile, runtime))


def keeping_schedules(runtime: Runtime) -> AbstractAsyncContextManager[None]:
    """Keep the engine's calendars as the record says, in one worker of all."""
    return leading(runtime, "schedules", SCHEDULES_LOCK, lambda _: keep_schedules(runtime))


def reacting(runtime: Runtime) -> AbstractAsyncContextManager[None]:
    """Lead every subscriber through the log, in one worker of all."""
    return leading(runtime, "reactions", REACTIONS_LOCK, lambda _: runtime.dispatcher().run())


def leading(
    runtime: Runtime, name: str, lock: int, work: Callable[[Connection], Coroutine[Any, Any, None]]
) -> AbstractAsyncContextManager[None]:
    """Do something as the one worker of all whose turn it is."""
    return runtime.supervisor.supervise(name, partial(lead, runtime.database_url, lock, work))


def removing_jobs(runtime: Runtime, compute: Compute) -> AbstractAsyncContextManager[None]:
    """Remove the directories of jobs that nobody needs any more, where they are kept for a time only."""
    hours = runtime.settings.compute_job_retention_hours
    if not isinstance(compute, LocalProcesses) or not hours:
        return nullcontext()
    retention = JobRetention(compute, runtime.conducts, clock, timedelta(hours=hours))
    return runtime.supervisor.supervise("job retention", retention.run)


async def reconcile(runtime: Runtime) -> None:
    """Start what the record says is to be done and the engine may not know of; now and then compare the two as a whole."""
    limit = timedelta(seconds=runtime.settings.conduct_restart_limit_seconds)
    reconciler = Reconciler([runtime.conducts, runtime.run_conducts], runtime.engine, clock, limit)
    due = time.monotonic()
    while True:
        interval = RECONCILE_INTERVAL
        try:
            if time.monotonic() >= due:
                await reconciler.compare()
                due = time.monotonic() + COMPARE_INTERVAL
            for work in runtime.service.works.values():
                await start_unfinished(runtime, work)
        except (EngineUnavailableError, StoreUnavailableError) as error:
            log.warning("reconcile_postponed", error=type(error).__name__)
            interval = RETRY_INTERVAL
        await asyncio.sleep(interval)


async def keep_schedules(runtime: Runtime) -> None:
    """Tell the engine each second what was changed, and beside that compare all it has with the record."""
    keeper = runtime.schedule_keeper
    async with asyncio.TaskGroup() as group:
        group.create_task(again(keeper.keep_changed, CHANGES_INTERVAL))
        group.create_task(again(keeper.keep_all, SCHEDULES_INTERVAL))
        group.create_task(again(runtime.ticks.keep, SCHEDULES_INTERVAL))
        group.create_task(again(keeper.remove_unknown, UNKNOWN_INTERVAL))


async def again(keep: Callable[[], Awaitable[None]], interval: float) -> None:
    """Keep calendars now and after every interval; where that could not be done, soon again."""
    while True:
        pause = interval
        try:
            await keep()
        except (EngineUnavailableError, StoreUnavailableError) as error:
            log.warning("schedules_not_kept", error=type(error).__name__)
            pause = min(interval, SCHEDULES_INTERVAL)
        await asyncio.sleep(pause)


async def start_unfinished(runtime: Runtime, work: Work) -> None:
    """Start what is owed of one kind of work; a piece that cannot be started does not keep the others waiting."""
    for work_id in await work.unfinished():
        try:
            if (job := await work.job(work_id)) is not None:
                await runtime.engine.start(job)
        except (EngineUnavailableError, StoreUnavailableError):
            raise
        except Exception as error:
            log.error("work_not_started", workflow=work.workflow, work_id=str(work_id), **error_location(error))
