"""Supervision of a process's long-running tasks: each is restarted when it ends, until the process stops."""

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

SHORTEST_PAUSE, LONGEST_PAUSE = 0.25, 4.0  # seconds before a restart, doubled each time
CANCEL_AGAIN_SECONDS = 1.0  # after which a task that continues is cancelled again: a library may lose a cancellation


@dataclass
class TaskState:
    running: bool = True
    restarts: int = 0
    ended_at: datetime | None = None
    because: str | None = None  # how it ended last: the type of an exception, or `returned`


class Supervisor:
    """Restarts the tasks of one process, and keeps the state of each."""

    def __init__(self) -> None:
        self.tasks: dict[str, TaskState] = {}

    @asynccontextmanager
    async def supervise(self, name: str, start: Callable[[], Coroutine[object, object, None]]) -> AsyncIterator[None]:
        """Keep a task running inside the block."""
        stopping = asyncio.Event()
        task = asyncio.create_task(self._keep(name, start, stopping), name=name)
        try:
            yield
        finally:
            stopping.set()
            while not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=CANCEL_AGAIN_SECONDS)

    async def _keep(self, name: str, start: Callable[[], Coroutine[object, object, None]], stopping: asyncio.Event) -> None:
        state = self.tasks[name] = TaskState()
        begun, pause = time.monotonic(), 0.0
        while True:
            because, location = "returned", dict[str, Any]()
            try:
                await asyncio.sleep(pause)
                begun, state.running = time.monotonic(), True
                await start()
            except GeneratorExit:
                raise
            except BaseException as error:  # even one that would end the process: only a stop ends this task
                # Nothing of it is kept: its frames may hold a connection that is half open.
                because, location = type(first_cause(error)).__name__, error_location(first_cause(error))
                task = asyncio.current_task()
                while task is not None and task.uncancel():
                    pass
            state.running = False
            if stopping.is_set():
                return
            state.restarts += 1
            state.ended_at = datetime.now(UTC)
            state.because = because
            lived = time.monotonic() - begun
            pause = SHORTEST_PAUSE if lived > LONGEST_PAUSE else min(max(2 * pause, SHORTEST_PAUSE), LONGEST_PAUSE)
            log.error("task_ended", task=name, because=because, starts_again_in=pause, **location)


def first_cause(error: BaseException) -> BaseException:
    """Return the first of the errors that ended a group of tasks."""
    return first_cause(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
