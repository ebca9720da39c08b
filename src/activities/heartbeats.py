"""What activities share: who may call them, their heartbeat, and how a waiting one yields when its worker stops."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import wraps
from typing import Any, TypeVar, TypeVarTuple, get_type_hints

import structlog
from pydantic import BaseModel
from temporalio import activity
from temporalio.exceptions import ApplicationError

from baton.application.conduct.heartbeat import HEARTBEAT_SECONDS
from baton.domain.operation.conduct.messages import OwnedRequest

log = structlog.get_logger()

T = TypeVar("T")
Q = TypeVar("Q")
Arguments = TypeVarTuple("Arguments")


def implement(
    stub: Callable[[Any, *Arguments], Awaitable[T]], work: Callable[[*Arguments], Awaitable[T]]
) -> Callable[..., Awaitable[T]]:
    """Return the activity that a stub declares; it refuses every workflow but the one that its request belongs to.

    It has a copy of the stub's definition, hence the name and the types. Positional arguments of earlier builds are joined
    into its one request, which lists its fields in their order; arguments beyond those are not needed any more.
    """

    @wraps(stub)
    async def run(*arguments: Any) -> T:
        if len(arguments) > 1:
            request: type[BaseModel] = get_type_hints(stub)["request"]
            arguments = (request.model_validate(dict(zip(request.model_fields, arguments, strict=False))),)
        if arguments and isinstance(arguments[0], OwnedRequest):
            refuse_foreign_workflow(arguments[0].workflow_id)
        return await work(*arguments)

    del run.__wrapped__  # the engine would take it for a method
    return run


def refuse_foreign_workflow(owner: str) -> None:
    """Fail a workflow under another id than the one that this work belongs to, before anything is touched."""
    called_by = activity.info().workflow_id
    if called_by != owner:
        log.warning("activity_of_a_foreign_workflow", activity=activity.info().activity_type, called_by=called_by)
        raise ApplicationError(
            "This workflow is not the one that the record has; nothing was touched.", type="Foreign", non_retryable=True
        )


class EngineAttempt:
    """The Temporal activity that is running, as the application sees it."""

    def heartbeat(self) -> None:
        activity.heartbeat()

    @property
    def is_cancelled(self) -> bool:
        details = activity.cancellation_details()
        return details is not None and details.cancel_requested

    @property
    def is_abandoned(self) -> bool:
        details = activity.cancellation_details()
        return details is not None and (details.timed_out or details.not_found) and not self.is_cancelled


def until_shutdown(work: Callable[[Q, EngineAttempt], Coroutine[Any, Any, T]]) -> Callable[[Q], Coroutine[Any, Any, T]]:
    """Return work that sends its own heartbeats while it waits, and yields when the worker stops."""
    return lambda request: yield_on_shutdown(work(request, EngineAttempt()))


@asynccontextmanager
async def send_heartbeats() -> AsyncIterator[None]:
    """Send a heartbeat each second for work that sends none itself."""

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
    """Return the result of something that only waits; when the worker stops, leave the wait to another worker at once."""
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
