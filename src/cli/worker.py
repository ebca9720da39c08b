"""The worker: monitors the plant, and runs workflows and activities as soon as Temporal answers.

It also starts what the record still owes and the engine does not know of.
"""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import structlog
import uvloop
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker

from activities.calibration_publication import CalibrationPublicationActivities
from activities.conduct import ConductActivities
from activities.mint_sweep import MintSweepActivities
from application.ports import EngineUnavailableError, StoreUnavailableError
from application.reconciling import ConductReconciler
from application.settings import Settings
from cli.processes import configured
from cli.refusing import refuse
from infrastructure.conducting import Conducting, conducting
from infrastructure.control.routes import AdapterMissingError, opened_control
from infrastructure.monitoring import monitoring
from infrastructure.runtime import Runtime, clock, new_id
from infrastructure.temporal.engine import TASK_QUEUE, connect
from workflows.calibration_publication import CalibrationPublicationWorkflow
from workflows.conduct import ConductWorkflow
from workflows.mint_sweep import MintSweepWorkflow

log = structlog.get_logger()

RECONCILE_INTERVAL = 2.0
"""Seconds between two looks for work that nobody has begun."""
COMPARE_INTERVAL = 60.0
"""Seconds between two comparisons of all that is live with the engine; the first one comes with the start."""
RETRY_INTERVAL = 1.0
MOST_ACTIVITIES = 500
"""Activities at once in this process; those that wait for people count too."""
GRACE = timedelta(seconds=5)
"""What activities in progress have to end when the worker is told to stop; what is cut off is repeated elsewhere."""


def main() -> None:
    """Run until told to stop."""
    settings = configured()
    if settings.temporal_address is None:
        refuse("TEMPORAL_ADDRESS is not set; point it at a Temporal server, or use `baton up`, which brings its own.")
    try:
        uvloop.run(run(settings))
    except AdapterMissingError as error:
        refuse(str(error))


async def run(settings: Settings) -> None:
    """The worker until SIGTERM or SIGINT; work in progress is finished or handed back to the engine."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with (
        Runtime(settings) as runtime,
        opened_control(settings) as control,
        monitoring(runtime, control),
        reconciling(runtime),
    ):
        client = await connected(settings, stopping)
        if client is None:
            return
        async with conducting(runtime, control) as wired, worker(client, runtime, wired):
            log.info("worker_ready", task_queue=TASK_QUEUE)
            await stopping.wait()


def worker(client: Client, runtime: Runtime, wired: Conducting) -> Worker:
    """Everything this build can run."""
    sweeps = MintSweepActivities(runtime.mint_sweeps)
    publications = CalibrationPublicationActivities(runtime.publications)
    conducts = ConductActivities(wired.conductor, wired.steps, wired.scores)
    return Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[MintSweepWorkflow, CalibrationPublicationWorkflow, ConductWorkflow],
        activities=[
            *(sweeps.candidates, sweeps.mint, sweeps.finish),
            *(publications.sign, publications.send, publications.record),
            *(conducts.brief, conducts.do_step, conducts.collect_job, conducts.await_run),
            *(conducts.start_pass, conducts.judge_pass, conducts.record_outcome),
            *(conducts.advise_pass, conducts.take_up_search, conducts.begin_closing, conducts.end_conduct),
        ],
        graceful_shutdown_timeout=GRACE,
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        max_concurrent_activities=MOST_ACTIVITIES,
    )


async def connected(settings: Settings, stopping: asyncio.Event) -> Client | None:
    """A client, as soon as the server answers and has our namespace."""
    said = ""
    while not stopping.is_set():
        try:
            client = await connect(settings)
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))
            return client
        except (EngineUnavailableError, RuntimeError, RPCError) as error:
            if (sentence := str(error)) != said:
                log.warning("engine_unavailable", address=settings.temporal_address, error=(said := sentence))
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), RETRY_INTERVAL)
    return None


@asynccontextmanager
async def reconciling(runtime: Runtime) -> AsyncIterator[None]:
    """Compare the record with the engine beside whatever else is done, whether the engine answers or not."""
    task = asyncio.create_task(reconcile(runtime))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def reconcile(runtime: Runtime) -> None:
    """Start what the record says is to be done and the engine may not know of; now and then compare the two as a whole."""
    limit = timedelta(seconds=runtime.settings.conduct_restart_limit_seconds)
    conducts = ConductReconciler(runtime.store, runtime.commands, runtime.engine, clock, new_id, limit)
    due = time.monotonic()
    while True:
        interval = RECONCILE_INTERVAL
        try:
            if time.monotonic() >= due:
                await conducts.compare()
                due = time.monotonic() + COMPARE_INTERVAL
            for work in runtime.service.works.values():
                for work_id in await work.unfinished():
                    if (job := await work.job(work_id)) is not None:
                        await runtime.engine.start(job)
        except (EngineUnavailableError, StoreUnavailableError) as error:
            log.warning("reconcile_postponed", error=type(error).__name__)
            interval = RETRY_INTERVAL
        await asyncio.sleep(interval)


if __name__ == "__main__":
    main()
