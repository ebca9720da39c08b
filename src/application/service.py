"""The service as its surfaces see it: one way in for commands, one for queries, whatever the transport."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from uuid import UUID

import structlog

from baton.application.commands import Commands
from baton.application.ports import Authorizer, Caller, Engine, EngineUnavailableError, CommandResult, Progress, Work
from baton.application.queries import Queries
from baton.application.telemetry import error_location
from baton.domain.kernel import Command, Query

log = structlog.get_logger()

FIRST_LOOK, LAST_LOOK = 0.02, 0.5
"""Seconds between two looks at work in progress; the longer it takes, the more."""
STARTS = 5
"""Times that a workflow is started, while one that has just come to its end may still be in its way."""
START_INTERVAL = 0.05
A_MOMENT = 0.5
"""Seconds that an answer waits for an engine which does not say anything."""

Told = Callable[[Progress], Awaitable[None]]
T = TypeVar("T")


@dataclass(frozen=True)
class Service:
    """Commands, queries and the seam that judges both; long work is handed to the engine and attended for a while."""

    commands: Commands
    queries: Queries
    authorizer: Authorizer
    engine: Engine
    works: Mapping[str, Work]
    stopping: asyncio.Event = field(default_factory=asyncio.Event, kw_only=True)
    """Set when the process is about to end, so that nobody is kept waiting for long work any more."""
    _going_on: "set[asyncio.Task[Any]]" = field(default_factory=set, repr=False, kw_only=True)

    async def execute(
        self,
        command: Command,
        caller: Caller,
        *,
        target_id: UUID | None = None,
        key: str | None = None,
        told: Told | None = None,
    ) -> CommandResult:
        """Carry out a command; long work answers when it is done, or with its ids when that takes longer than `wait`.

        Done in time it has the operation's own status, under way it is 202, and a repeat of the request gets 200. A process
        that is stopping waits no longer. While it is attended, `told` hears how it goes.
        """
        executed = await self.commands.execute(command, caller, target_id=target_id, key=key)
        operation = command.operation
        if operation.work is not None and executed.body is not None:
            return await self._attend(self.works[operation.work], executed, getattr(command, "wait", 0), told)
        if operation.starts_workflow is not None and executed.body is not None:
            await self._soon(self.wake(self.works[operation.starts_workflow], UUID(executed.body["conduct_id"])))
        if operation.terminates_workflow is not None and target_id is not None:
            await self._soon(self._fell(f"{operation.terminates_workflow}:{target_id}", operation.name))
        return executed

    async def _soon(self, work: Coroutine[Any, Any, T], patience: float = 0) -> asyncio.Task[T]:
        """Have something done that nobody must wait for: after a moment it goes on by itself."""
        task = asyncio.create_task(work)
        self._going_on.add(task)
        task.add_done_callback(self._came_to_its_end)
        await self._wait(max(patience, A_MOMENT), task)
        return task

    async def _wait(self, seconds: float, *tasks: asyncio.Task[Any]) -> None:
        """Wait so long, or until one of these tasks is done or the process is stopping."""
        stopping = asyncio.create_task(self.stopping.wait())
        try:
            await asyncio.wait({stopping, *tasks}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()

    def _came_to_its_end(self, task: asyncio.Task[Any]) -> None:
        """Say so where something failed that perhaps nobody waits for: the record has it, and the worker goes by that."""
        self._going_on.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("engine_not_told", **error_location(error))

    async def ask(self, query: Query, caller: Caller, *, target_id: UUID | None = None) -> Any:
        """Answer a query."""
        return await self.queries.ask(query, caller, target_id=target_id)

    async def wake(self, work: Work, work_id: UUID) -> bool:
        """Have the engine take up what is on the record; what it misses, its worker picks up from there.

        False where what has just come to its end is still in the way, so that it is worth another try.
        """
        try:
            for _ in range(STARTS):
                job = await work.job(work_id)
                if job is None or await self.engine.start(job) or not job.succeeds:
                    return True
                await asyncio.sleep(START_INTERVAL)
        except EngineUnavailableError:
            log.warning("engine_unavailable", workflow=work.workflow, work_id=str(work_id))
            return True
        return False

    async def _fell(self, workflow_id: str, reason: str) -> None:
        """Have the engine drop what the record has given up; whatever it still tries, the record does not let it."""
        try:
            await self.engine.terminate(workflow_id, reason)
        except EngineUnavailableError:
            log.warning("engine_unavailable", workflow_id=workflow_id)

    async def _attend(self, work: Work, executed: CommandResult, wait: float, told: Told | None) -> CommandResult:
        """Wake the engine and wait for the answer."""
        assert executed.body is not None, "long work answers with its ids"
        work_id = UUID(executed.body["work_id"])
        loop = asyncio.get_running_loop()
        deadline, pause, said = loop.time() + wait, FIRST_LOOK, None
        body = await work.answer(work_id)
        waking = None if body is not None else await self._soon(self.wake(work, work_id), wait)
        while body is None and (body := await work.answer(work_id)) is None:
            if loop.time() >= deadline or self.stopping.is_set():
                return replace(executed, status=202)
            if told is not None and (progress := await work.progress(work_id)) not in (None, said):
                assert progress is not None
                await told(progress)
                said = progress
            if waking is not None and waking.done() and not waking.result():
                waking = await self._soon(self.wake(work, work_id), deadline - loop.time())
            await self._wait(min(pause, max(0.0, deadline - loop.time())))
            pause = min(pause * 1.3, LAST_LOOK)
        return replace(executed, status=200 if executed.replayed else executed.status, body=body)
