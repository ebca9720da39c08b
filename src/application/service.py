"""The service as its surfaces see it: one entry for commands, one for queries, on every transport."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from uuid import UUID

import structlog

from baton.application.caller import Caller
from baton.application.commands import READ_EVENT_TEXTS, Commands
from baton.application.long_work import AwaitedWork, RecordedWork
from baton.application.ports import Authorizer, CommandResult, Engine, EngineUnavailableError, Store, WorkProgress
from baton.application.queries import Queries, ShownAnswer
from baton.application.telemetry import error_location
from baton.application.unit_of_work import load_row
from baton.domain.access.proposal_content import ProposalContent
from baton.domain.kernel import NIL, Call, Command, Query
from baton.domain.registry import EndedWork, OpenedWork, WokenWork, WorkLink
from baton.domain.shared.dry_run import DryRun
from baton.domain.shared.refusals import Refusal
from baton.domain.trust.authorization import ApprovalRequiredError
from baton.domain.trust.proposal import shown_events
from baton.domain.views.hold_everything import Orders

log = structlog.get_logger()
FIRST_POLL_SECONDS, LONGEST_POLL_SECONDS = 0.03, 0.5  # grows with the time it takes
START_ATTEMPTS = 5  # times that a workflow is started while one that has just ended may still hold its id
ENGINE_WAIT_SECONDS = 0.5  # how long an answer waits for an engine that does not respond
WorkAnswer = Callable[[UUID], Awaitable[Mapping[str, Any] | None]]
ProgressListener = Callable[[WorkProgress], Awaitable[None]]
T = TypeVar("T")


@dataclass(frozen=True)
class Service:
    """Commands and queries; long work is started in the engine and awaited for as long as the caller asks."""

    commands: Commands
    queries: Queries
    authorizer: Authorizer
    engine: Engine
    works: Mapping[str, AwaitedWork]
    stopping: asyncio.Event = field(default_factory=asyncio.Event, kw_only=True)  # set when the process is about to end
    _detached: "set[asyncio.Task[Any]]" = field(default_factory=set, repr=False, kw_only=True)

    async def execute(
        self,
        command: Command,
        caller: Caller,
        *,
        target_id: UUID | None = None,
        key: str | None = None,
        on_progress: ProgressListener | None = None,
    ) -> CommandResult:
        """Execute a command; long work answers when it is done, with a position behind all it recorded, or within `wait`
        seconds with its ids and status 202. A process that stops waits no longer.
        A command that the caller holds only with approval becomes a proposal, also 202: nothing else happened. In process
        nothing is proposed, and what was approved is not proposed again."""
        try:
            result = await self.commands.execute(command, caller, target_id=target_id, key=key)
        except ApprovalRequiredError as needed:
            if caller.surface_id == NIL or caller.approval is not None:
                raise
            result = await self.commands.propose(command, caller, needed, target_id, key)
        if is_proposal(result):
            texts = READ_EVENT_TEXTS in await self.authorizer.permitted_commands(caller)
            return await with_events(result, self.commands.store, texts=texts)
        operation, link = command.operation, command.operation.work
        if isinstance(link, EndedWork):
            await self._run_detached(self._terminate_workflow(f"{link.kinds[0]}:{target_id}", operation.name))
        elif link is not None and result.body is not None:
            work, work_id = await self._linked_work(link, result.body)
            # What makes something answers a repeat as it did at first; what was done to something says that it was before.
            status = 200 if result.replayed and operation.target is not None else result.status
            wait = getattr(command, "wait", 0)
            if operation.opens_work and (wait or not operation.answers_at_once):
                return await self._await_answer(work, link, result, status, wait, on_progress)
            await self._run_detached(self.start_work(work, work_id))
        return result

    async def _linked_work(self, link: WorkLink, ids: Mapping[str, Any]) -> tuple[AwaitedWork, UUID]:
        """Return the work that a command opened or woke: of several kinds, it is that one whose record has it."""
        work_id = UUID(ids["work_id"] if isinstance(link, OpenedWork) else ids["conduct_id"])
        *others, last = (self.works[kind] for kind in link.kinds)
        for work in others:
            if await work.item(work_id) is not None:
                return work, work_id
        return last, work_id

    async def dry_run(self, command: Command, caller: Caller, *, target_id: UUID | None = None) -> DryRun:
        """Return what a command would record and answer; nothing is written, and no work is started."""
        return await self.commands.dry_run(command, caller, target_id=target_id)

    async def execute_each(self, call: Call, orders: Orders, dry_run: bool) -> list[Refusal | None]:
        """Execute commands one after the other, each in a transaction of its own; return the refusal of each, or None.
        Workflows are started once all of it is on record."""
        caller, refusals = Caller.of(call), list[Refusal | None]()
        opened: list[tuple[AwaitedWork, UUID]] = []
        for command, target_id in orders:
            try:
                if dry_run:
                    await self.dry_run(command, caller, target_id=target_id)
                else:
                    result = await self.commands.execute(command, caller, target_id=target_id)
                    link = command.operation.work
                    if isinstance(link, WokenWork) and result.body is not None:
                        opened.append(await self._linked_work(link, result.body))
            except Refusal as refusal:
                refusals.append(refusal)
            else:
                refusals.append(None)
        if opened:
            await self._run_detached(self._start_all(opened))
        return refusals

    async def _start_all(self, opened: Sequence[tuple[AwaitedWork, UUID]]) -> None:
        await asyncio.gather(*(self.start_work(work, work_id) for work, work_id in opened))

    async def ask(self, query: Query[T], caller: Caller, *, target_id: UUID | None = None) -> T:
        return (await self.show(query, caller, target_id=target_id)).answer

    async def show(self, query: Query[T], caller: Caller, *, target_id: UUID | None = None) -> ShownAnswer[T]:
        return await self.queries.show(query, caller, target_id=target_id)

    async def start_work(self, work: RecordedWork, work_id: UUID) -> bool:
        """Start the workflow of recorded work, or tell one that listens of its news; what an unreachable engine misses, the
        worker starts from the record. Return false where a workflow that has just ended still holds the id, so that another
        try is worthwhile."""
        try:
            for _ in range(START_ATTEMPTS):
                job = await work.job(work_id)
                if job is None or await self.engine.start(replace(job, news=work.listens)) or not job.succeeds:
                    return True
                await asyncio.sleep(0.05)
        except EngineUnavailableError:
            log.warning("engine_unavailable", workflow=work.workflow, work_id=str(work_id))
            return True
        return False

    async def _terminate_workflow(self, workflow_id: str, reason: str) -> None:
        """Terminate the workflow of work that the record has given up; the record refuses whatever it still tries."""
        try:
            await self.engine.terminate(workflow_id, reason)
        except EngineUnavailableError:
            log.warning("engine_unavailable", workflow_id=workflow_id)

    async def _run_detached(self, work: Coroutine[object, object, T], wait: float = 0) -> asyncio.Task[T]:
        """Run a coroutine that no request must wait for: after a moment it continues in the background."""
        task = asyncio.create_task(work)
        self._detached.add(task)
        task.add_done_callback(self._log_failure)
        await self._wait(max(wait, ENGINE_WAIT_SECONDS), task)
        return task

    def _log_failure(self, task: asyncio.Task[object]) -> None:
        self._detached.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("engine_call_failed", **error_location(error))

    async def _wait(self, seconds: float, *tasks: asyncio.Task[object]) -> None:
        stopping = asyncio.create_task(self.stopping.wait())
        try:
            await asyncio.wait({stopping, *tasks}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()

    async def _await_answer(
        self,
        work: AwaitedWork,
        link: WorkLink,
        result: CommandResult,
        status: int,
        wait: float,
        on_progress: ProgressListener | None,
    ) -> CommandResult:
        assert result.body is not None, "long work answers with its ids"
        answer: WorkAnswer = getattr(work, link.answer)
        work_id, loop = UUID(result.body["work_id"]), asyncio.get_running_loop()
        deadline, pause, reported = loop.time() + wait, FIRST_POLL_SECONDS, None
        body = await answer(work_id)
        start = None if body is not None else await self._run_detached(self.start_work(work, work_id), wait)
        while body is None and (body := await answer(work_id)) is None:
            if link.asks and (question := await work.question(work_id)) is not None:
                return replace(result, status=202, body={**result.body, "waiting_question": question})
            if loop.time() >= deadline or self.stopping.is_set():
                return replace(result, status=202)
            if on_progress is not None and (progress := await work.progress(work_id)) not in (None, reported):
                assert progress is not None
                await on_progress(progress)
                reported = progress
            if start is not None and start.done() and not start.result():
                start = await self._run_detached(self.start_work(work, work_id), deadline - loop.time())
            await self._wait(min(pause, max(0.0, deadline - loop.time())))
            pause = min(pause * 1.5, LONGEST_POLL_SECONDS)
        position = await self.commands.store.last_position()  # the work has recorded more than its opening
        return replace(result, status=status if body else result.status, body=body or None, position=position)


def is_proposal(result: CommandResult) -> bool:
    """Return whether a command was not carried out but proposed."""
    return result.status == 202 and result.body is not None and "proposal_id" in result.body


async def with_events(result: CommandResult, store: Store, *, texts: bool) -> CommandResult:
    """Return the answer to a proposed command with what it would record; answers that are kept under a key are without."""
    assert result.body is not None, "a proposal is answered with its ids"
    content = await load_row(store, ProposalContent, proposal_id=UUID(result.body["proposal_id"]))
    would = [event.model_dump(mode="json") for event in shown_events(content, texts)]
    return replace(result, body={**result.body, "would": would})
