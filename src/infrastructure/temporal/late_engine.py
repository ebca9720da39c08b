"""The workflow engine as a process starts with it: the SDK, which takes long to load, is loaded by the first request."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from baton.application.ports import EngineView, Job
from baton.application.settings import Settings
from baton.domain.agent.reactions import OpenItem

if TYPE_CHECKING:
    from temporalio.client import Client

    from baton.infrastructure.telemetry.tracing import Tracing
    from baton.infrastructure.temporal.engine import TemporalEngine

A = TypeVar("A")


class LateEngine:
    """Implements the port by the engine of Temporal."""

    def __init__(self, settings: Settings, tracing: "Tracing | None" = None) -> None:
        self._settings = settings
        self._tracing = tracing
        self._loaded: TemporalEngine | None = None

    async def _engine(self) -> "TemporalEngine":
        if self._loaded is None:
            module = await asyncio.to_thread(import_module, "baton.infrastructure.temporal.engine")
            self._loaded = self._loaded or module.TemporalEngine(self._settings, self._tracing)
        return self._loaded

    async def start(self, job: Job) -> bool:
        return await (await self._engine()).start(job)

    async def view(self, id: str) -> EngineView:
        return await (await self._engine()).view(id)

    async def terminate(self, id: str, reason: str) -> None:
        await (await self._engine()).terminate(id, reason)

    async def answer(self, job: Job, returns: type[A], seconds: float) -> A:
        return await (await self._engine()).answer(job, returns, seconds)

    async def open_items(self, workflows: Sequence[str]) -> Sequence[OpenItem]:
        return await (await self._engine()).open_items(workflows)

    @asynccontextmanager
    async def connected_client(self) -> "AsyncIterator[Client]":
        """Open a client for one request, in bounded time."""
        async with (await self._engine()).connected_client() as client:
            yield client
