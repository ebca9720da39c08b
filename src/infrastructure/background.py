"""The lasting tasks of a process: each is started again when it ends, for whatever reason, until the process stops."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog

from baton.application.telemetry import error_location

log = structlog.get_logger()

SHORTEST_PAUSE, LONGEST_PAUSE = 0.25, 4.0
"""Seconds before a task that ended is started again; twice as long each time, until it has lived for a while."""


@dataclass
class TaskState:
    """How one supervised task fares."""

    running: bool = True
    restarts: int = 0
    ended_at: datetime | None = None
    because: str | None = None
    """What it ended with last: the type of an exception, or `returned`."""


class Supervisor:
    """Starts the lasting tasks of one process again, and knows how each of them fares."""

    def __init__(self) -> None:
        self.tasks: dict[str, TaskState] = {}

    @asynccontextmanager
    async def supervise(self, name: str, start: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
        """Keep a task going for as long as the block lasts."""
        stopping = asyncio.Event()
        task = asyncio.create_task(self._keep(name, start, stopping), name=name)
        try:
            yield
        finally:
            stopping.set()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _keep(self, name: str, start: Callable[[], Coroutine[Any, Any, None]], stopping: asyncio.Event) -> None:
        state = self.tasks[name] = TaskState()
        begun, pause = time.monotonic(), 0.0
        while True:
            because, said = "returned", dict[str, Any]()
            try:
                await asyncio.sleep(pause)
                begun, state.running = time.monotonic(), True
                await start()
            except GeneratorExit:
                raise
            except BaseException as error:  # even one that means to end the process: only a stop ends this task
                # Nothing of it is kept: its frames may hold a connection that is half open.
                because, said = type(first_cause(error)).__name__, error_location(first_cause(error))
                _forget_cancellation()
            state.running = False
            if stopping.is_set():
                return
            state.restarts += 1
            state.ended_at = datetime.now(UTC)
            state.because = because
            lived = time.monotonic() - begun
            pause = SHORTEST_PAUSE if lived > LONGEST_PAUSE else min(max(2 * pause, SHORTEST_PAUSE), LONGEST_PAUSE)
            log.error("task_ended", task=name, because=because, starts_again_in=pause, **said)


def first_cause(error: BaseException) -> BaseException:
    """The first of the failures that ended a group of tasks."""
    return first_cause(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def _forget_cancellation() -> None:
    """Let the current task go on although something cancelled it."""
    task = asyncio.current_task()
    while task is not None and task.uncancel():
        pass
