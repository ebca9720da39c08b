"""The activities of this build: each stub that workflows call, and what carries it out.
Every activity may run again: the ledger, the streams and the rows say what was done already."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial, wraps
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar, TypeVarTuple, get_type_hints
from uuid import UUID

import structlog
from pydantic import BaseModel
from temporalio import activity
from temporalio.exceptions import ApplicationError

from baton import workflows
from baton.application.agents.model_consultation import BusyError
from baton.application.conduct.heartbeat import keep_beating
from baton.application.long_work import LongWorks, Pace, TaskWork, marked_methods
from baton.domain.conduct.messages import OwnedRequest
from baton.domain.shared.tasks import TaskRequest
from baton.workflows.activity_stubs import STUBS

log = structlog.get_logger()

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")
Activities = list[Callable[..., Any]]
BUSY_DELAY = timedelta(seconds=3)  # before another try where another agent holds the budget lock


def activities_of(owner: object, declared: type | None = None) -> Activities:
    """Return the activities that an object carries out, by the methods that its class declares for them."""
    marks = marked_methods(declared or type(owner)).items()
    return [implement(STUBS[activity], at_pace(pace, getattr(owner, method))) for method, (activity, pace) in marks]


def activities_of_all(works: LongWorks, *others: object) -> Activities:
    """Return the activities of every kind of long work, and of what else carries some out."""
    actors = {id(actor): actor for work in works.values() for actor in work.actors}.values()
    tasks = implement(STUBS["carry_out_task"], at_pace(Pace.SHORT, partial(carry_out_task, works)))
    return [tasks, *(one for owner in (*actors, *others) for one in activities_of(owner))]


def declared_workflows() -> Sequence[type]:
    """Return every workflow of this build; each must be able to replay its recorded histories."""
    modules = [import_module(f"{workflows.__name__}.{module.name}") for module in iter_modules(workflows.__path__)]
    found = (kind for module in modules for kind in vars(module).values() if isinstance(kind, type))
    return tuple({kind: None for kind in found if hasattr(kind, "__temporal_workflow_definition")})


async def carry_out_task(works: LongWorks, request: TaskRequest) -> None:
    """Have a task carried out by the work of its kind."""
    work = works.get(request.kind)
    if not isinstance(work, TaskWork):
        raise ApplicationError("This build has no such kind of task.", type="UnknownTask", non_retryable=True)
    refuse_foreign_workflow(f"{request.kind}:{request.work_id}")
    await yield_on_shutdown(work.run(UUID(request.work_id)))


def implement(
    stub: Callable[[Any, *Arguments], Awaitable[T]], work: Callable[[*Arguments], Awaitable[T]]
) -> Callable[..., Awaitable[T]]:
    """Return the activity that a stub declares, under its name; it refuses workflows that its request does not belong to."""

    @wraps(stub)
    async def run(*arguments: Any) -> T:
        if len(arguments) > 1:  # those of earlier builds, in the order of the request's fields; more are not needed
            request: type[BaseModel] = get_type_hints(stub)["request"]
            arguments = (request.model_validate(dict(zip(request.model_fields, arguments, strict=False))),)
        if arguments and isinstance(arguments[0], OwnedRequest):
            refuse_foreign_workflow(arguments[0].workflow_id)
        try:
            return await work(*arguments)
        except BusyError as busy:  # the engine tries again soon, instead of a wait for the lock here
            raise ApplicationError(str(busy), type="Busy", next_retry_delay=BUSY_DELAY) from None

    del run.__wrapped__  # the engine would take it for a method
    return run


def refuse_foreign_workflow(owner: str) -> None:
    """Fail a workflow under another id than the one that this work belongs to, before anything is touched."""
    called_by = activity.info().workflow_id
    if called_by != owner:
        log.warning("activity_of_a_foreign_workflow", activity=activity.info().activity_type, called_by=called_by)
        detail = "This workflow is not the one that the record has; nothing was touched."
        raise ApplicationError(detail, type="Foreign", non_retryable=True)


class EngineAttempt:
    """The Temporal activity that is running, as the application sees it."""

    def heartbeat(self, place: str | None = None) -> None:
        activity.heartbeat(*([] if place is None else [place]))

    @property
    def is_repeated(self) -> bool:
        return activity.info().attempt > 1

    @property
    def is_cancelled(self) -> bool:
        details = activity.cancellation_details()
        return details is not None and details.cancel_requested

    @property
    def is_abandoned(self) -> bool:
        details = activity.cancellation_details()
        return details is not None and (details.timed_out or details.not_found) and not self.is_cancelled


def at_pace(pace: Pace, work: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., Awaitable[T]]:
    """Return work that shows that it is alive as it was declared to."""
    match pace:
        case Pace.QUICK:
            return work
        case Pace.SHORT:
            return send_heartbeats()(work)
        case Pace.BEATING:
            return lambda request: work(request, EngineAttempt())
        case Pace.WAITING:
            return lambda request: yield_on_shutdown(work(request, EngineAttempt()))


@asynccontextmanager
async def send_heartbeats() -> AsyncIterator[None]:
    """Send heartbeats for work that sends none itself."""
    async with keep_beating(EngineAttempt()):
        yield


async def yield_on_shutdown(waiting: Coroutine[object, object, T]) -> T:
    """Return the result of something that only waits; when the worker stops, leave the wait to another worker at once."""
    work = asyncio.ensure_future(waiting)
    stopping = asyncio.ensure_future(activity.wait_for_worker_shutdown())
    try:
        await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        delay = timedelta(milliseconds=200)
        raise ApplicationError("The worker stops; another one waits on.", type="WorkerStopping", next_retry_delay=delay)
    finally:
        for task in (work, stopping):
            task.cancel()
        await asyncio.gather(work, stopping, return_exceptions=True)
