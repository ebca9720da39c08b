"""The activities of this build: each stub that workflows call, and what implements it.
Every activity may run again: the ledger, the streams and the rows say what was done already."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import wraps
from typing import Any, TypeVar, TypeVarTuple, get_type_hints
from uuid import UUID

import structlog
from pydantic import BaseModel
from temporalio import activity
from temporalio.exceptions import ApplicationError

from baton.application.agents.model_agents import ModelAgents, Regenerations
from baton.application.agents.model_consultation import BusyError
from baton.application.agents.rule_agents import Expirer, Promoter, RunSupervisor
from baton.application.conduct.conductor import Conductor
from baton.application.conduct.heartbeat import keep_beating
from baton.application.conduct.passes import Passes
from baton.application.conduct.run_conductor import RunConductor
from baton.application.conduct.signal_reader import SignalReader
from baton.application.conduct.step_execution import StepRunner
from baton.application.long_work import TaskWork
from baton.application.mint_sweeps import MintSweeps
from baton.application.proposals import Proposals
from baton.application.publications import Publications
from baton.application.queues import QueueTurns
from baton.application.schedules.firings import Firings
from baton.domain.conduct.messages import OwnedRequest
from baton.domain.shared.tasks import TaskRequest
from baton.workflows import activity_stubs as stubs

log = structlog.get_logger()

T = TypeVar("T")
Q = TypeVar("Q")
Arguments = TypeVarTuple("Arguments")
Activities = list[Callable[..., Any]]


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
        return await work(*arguments)

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


def until_shutdown(
    work: Callable[[Q, EngineAttempt], Coroutine[object, object, T]],
) -> Callable[[Q], Coroutine[Any, Any, T]]:
    """Return work that sends its own heartbeats while it waits, and yields when the worker stops."""
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


@asynccontextmanager
async def retry_when_busy() -> AsyncIterator[None]:
    """Have the engine retry soon where another holds the budget lock, instead of waiting for it here."""
    try:
        yield
    except BusyError as busy:
        raise ApplicationError(str(busy), type="Busy", next_retry_delay=timedelta(seconds=3)) from None


short, budgeted = send_heartbeats(), retry_when_busy()  # as decorators


def conduct_activities(conductor: Conductor, passes: Passes, steps: StepRunner) -> Activities:
    """Return the activities of a procedure's conduct: its steps, and what is recorded between them."""
    attempt, declared = EngineAttempt(), stubs.ConductActivityStubs
    return [
        implement(declared.brief_conduct, short(conductor.brief)),
        implement(declared.do_step, lambda request: steps.do(request, attempt)),
        implement(declared.do_steps, lambda request: steps.do_stretch(request, attempt)),
        implement(declared.collect_job, lambda request: steps.collect(request, attempt)),
        implement(declared.await_run, until_shutdown(conductor.await_run)),
        implement(declared.start_pass, short(passes.start)),
        implement(declared.judge_pass, short(passes.judge)),
        implement(declared.record_outcome, short(passes.record_outcome)),
        implement(declared.advise_pass, until_shutdown(passes.advise)),
        implement(declared.take_up_search, until_shutdown(passes.take_up)),
        implement(declared.begin_closing, short(conductor.begin_closing)),
        implement(declared.end_conduct, short(conductor.end)),
    ]


def run_conduct_activities(conductor: RunConductor) -> Activities:
    """Return the activities of a run's conduct: its phases are opened and awaited, and its end is recorded."""
    declared = stubs.RunConductActivityStubs
    return [
        implement(declared.brief_run_conduct, short(conductor.brief)),
        implement(declared.open_phase, short(conductor.open_phase)),
        implement(declared.await_run_resumed, until_shutdown(conductor.await_run)),
        implement(declared.await_phase, until_shutdown(conductor.await_phase)),
        implement(declared.end_run_conduct, short(conductor.end)),
    ]


def proposal_activities(proposals: Proposals) -> Activities:
    """Return the activity of proposals: what was approved is carried out, and what nobody approved expires."""
    declared = stubs.ProposalActivityStubs
    return [implement(declared.settle_proposal, short(lambda id: proposals.settle(UUID(id))))]


def schedule_firing_activities(firings: Firings) -> Activities:
    """Return the activities of a schedule's firing: its conduct is opened and awaited."""
    declared = stubs.ScheduleFiringActivityStubs
    return [
        implement(declared.open_firing, short(firings.open)),
        implement(declared.await_firing, until_shutdown(firings.await_end)),
    ]


def queue_activities(turns: QueueTurns) -> Activities:
    """Return the activities of a queue: the turn of an item is taken, and its end is awaited."""
    declared = stubs.QueueActivityStubs
    return [
        implement(declared.take_turn, short(turns.take)),
        implement(declared.await_item, until_shutdown(turns.await_end)),
    ]


def signal_activities(reader: SignalReader) -> Activities:
    """Return the activity that reads signals."""
    return [implement(stubs.SignalActivityStubs.read_signals, reader.read)]


def agent_activities(
    models: ModelAgents, regenerations: Regenerations, promoter: Promoter, supervisor: RunSupervisor, expirer: Expirer
) -> Activities:
    """Return the activities of agents: each acts through the command path as its own actor."""
    declared = stubs.AgentActivityStubs
    return [
        implement(declared.take_lease, short(models.take_lease)),
        implement(declared.conclude, short(budgeted(models.conclude))),
        implement(declared.write_up_debrief, short(models.write_up)),
        implement(declared.regenerate_debrief, short(budgeted(lambda id: regenerations.write(UUID(id))))),
        implement(declared.promote_caution, short(promoter.promote)),
        implement(declared.supervise_runs, short(supervisor.look)),
        implement(declared.due_clearances, short(expirer.due)),
        implement(declared.expire_clearance, short(lambda id: expirer.expire(UUID(id)))),
    ]


def mint_sweep_activities(sweeps: MintSweeps) -> Activities:
    """Return the activities of a mint sweep."""

    async def candidates(sweep_id: str) -> list[str]:
        return [str(id) for id in await sweeps.candidates(UUID(sweep_id))]

    declared = stubs.MintSweepActivityStubs
    return [
        implement(declared.mint_sweep_candidates, candidates),
        implement(declared.mint_sweep_asset, lambda request: sweeps.mint(UUID(request.sweep_id), UUID(request.asset_id))),
        implement(declared.mint_sweep_finish, lambda id: sweeps.finish(UUID(id))),
    ]


def calibration_publication_activities(publications: Publications) -> Activities:
    """Return the activities of a calibration's publication."""
    declared = stubs.CalibrationPublicationActivityStubs
    return [
        implement(declared.sign_calibration_publication, lambda id: publications.sign(UUID(id))),
        implement(declared.send_calibration_publication, lambda id: publications.send(UUID(id))),
        implement(declared.record_calibration_publication, lambda id: publications.record(UUID(id))),
    ]


def task_activities(works: Iterable[TaskWork]) -> Activities:
    """Return the activity of tasks, which looks for each in the work of its kind."""
    by_kind = {work.workflow: work for work in works}

    async def carry_out(request: TaskRequest) -> None:
        if (work := by_kind.get(request.kind)) is None:
            raise ApplicationError("This build has no such kind of task.", type="UnknownTask", non_retryable=True)
        refuse_foreign_workflow(f"{request.kind}:{request.work_id}")
        await yield_on_shutdown(work.run(UUID(request.work_id)))

    return [implement(stubs.TaskActivityStubs.carry_out_task, short(carry_out))]
