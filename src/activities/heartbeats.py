"""What every activity needs to say while it goes on, and how one that only waits is handed on."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError

from baton.application.conduct.heartbeat import HEARTBEAT_SECONDS

log = structlog.get_logger()

T = TypeVar("T")


def refuse_foreign_workflow(*owners: str) -> None:
    """Touch nothing for a workflow under another id than those that this work belongs to; such a workflow fails."""
    called_by = activity.info().workflow_id
    if called_by not in owners:
        log.warning("activity_of_a_foreign_workflow", activity=activity.info().activity_type, called_by=called_by)
        raise ApplicationError(
            "This workflow is not the one that the record has; nothing was touched.", type="Foreign", non_retryable=True
        )


class EngineAttempt:
    """An activity of the engine as the work sees it."""

    def alive(self) -> None:
        activity.heartbeat()

    @property
    def called_off(self) -> bool:
        details = activity.cancellation_details()
        return details is not None and details.cancel_requested

    @property
    def given_up(self) -> bool:
        details = activity.cancellation_details()
        return details is not None and (details.timed_out or details.not_found) and not self.called_off


@asynccontextmanager
async def heartbeating() -> AsyncIterator[None]:
    """Let the engine know each second that something goes on which gives no sign of life by itself."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            activity.heartbeat()

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()


async def yield_on_shutdown(waiting: Coroutine[Any, Any, T]) -> T:
    """The result of something that only waits; a worker that is told to stop hands it on at once."""
    work = asyncio.ensure_future(waiting)
    stopping = asyncio.ensure_future(activity.wait_for_worker_shutdown())
    try:
        await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        raise ApplicationError(
            "The worker stops; another one waits on.", type="WorkerStopping", next_retry_delay=timedelta(milliseconds=200)
        )
    finally:
        for task in (work, stopping):
            task.cancel()
        await asyncio.gather(work, stopping, return_exceptions=True)
