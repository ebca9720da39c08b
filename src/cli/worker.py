"""The worker: connects to Temporal, registers workflows and activities, runs, and starts what the record still owes."""

import asyncio
import signal
from contextlib import suppress

import structlog
import uvloop
from temporalio.client import Client
from temporalio.worker import Worker

from activities.mint_sweep import MintSweepActivities
from application.ports import EngineUnavailableError
from application.settings import Settings
from application.telemetry import configure_logging
from cli.refusing import refuse_objections
from infrastructure.runtime import Runtime
from infrastructure.temporal.engine import TASK_QUEUE, connect
from workflows.mint_sweep import MintSweepWorkflow

log = structlog.get_logger()

RECONCILE_INTERVAL = 30.0


def main() -> None:
    """Run until told to stop."""
    settings = Settings()
    configure_logging(settings.log_level)
    refuse_objections(settings)
    uvloop.run(run(settings))


async def run(settings: Settings) -> None:
    """The worker until SIGTERM or SIGINT; work in progress is handed back to the engine."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with Runtime(settings) as runtime:
        client = await connected(settings, stopping)
        if client is None:
            return
        async with worker(client, runtime):
            log.info("worker_ready", task_queue=TASK_QUEUE)
            reconciling = asyncio.create_task(reconcile(runtime))
            await stopping.wait()
            reconciling.cancel()
            with suppress(asyncio.CancelledError):
                await reconciling


def worker(client: Client, runtime: Runtime) -> Worker:
    """Everything this build can run."""
    sweeps = MintSweepActivities(runtime.mint_sweeps)
    return Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[MintSweepWorkflow],
        activities=[sweeps.candidates, sweeps.mint, sweeps.finish],
    )


async def connected(settings: Settings, stopping: asyncio.Event) -> Client | None:
    """A client, as soon as the server answers."""
    while not stopping.is_set():
        try:
            return await connect(settings)
        except (EngineUnavailableError, RuntimeError) as error:
            log.warning("engine_unavailable", error=type(error).__name__)
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), 1)
    return None


async def reconcile(runtime: Runtime) -> None:
    """Start what the record says is running and the engine may not know of."""
    while True:
        try:
            for work_id in await runtime.mint_sweeps.unfinished():
                workflow = runtime.mint_sweeps.workflow
                await runtime.engine.start(workflow, f"{workflow}:{work_id}", str(work_id))
        except EngineUnavailableError:
            log.warning("reconcile_postponed")
        await asyncio.sleep(RECONCILE_INTERVAL)


if __name__ == "__main__":
    main()
