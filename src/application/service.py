"""The service as its surfaces see it: one way in for commands, one for queries, whatever the transport."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import structlog

from application.commands import Commands
from application.ports import Authorizer, Caller, Engine, EngineUnavailableError, Executed, Work
from application.queries import Queries
from domain.kernel import Command, Query

log = structlog.get_logger()

LOOK_INTERVAL = 0.05


@dataclass(frozen=True)
class Service:
    """Commands, queries and the seam that judges both; long work is handed to the engine and attended for a while."""

    commands: Commands
    queries: Queries
    authorizer: Authorizer
    engine: Engine
    works: Mapping[str, Work]

    async def execute(
        self, command: Command, caller: Caller, *, target_id: UUID | None = None, key: str | None = None
    ) -> Executed:
        """Carry out a command; long work answers when it is done, or with its ids when that takes longer than `wait`.

        Done in time it has the operation's own status, under way it is 202, and a repeat of the request gets 200.
        """
        executed = await self.commands.execute(command, caller, target_id=target_id, key=key)
        if command.operation.work is None or executed.body is None:
            return executed
        return await self._attend(self.works[command.operation.work], executed, getattr(command, "wait", 0))

    async def ask(self, query: Query, caller: Caller, *, target_id: UUID | None = None) -> Any:
        """Answer a query."""
        return await self.queries.ask(query, caller, target_id=target_id)

    async def _attend(self, work: Work, executed: Executed, wait: float) -> Executed:
        """Wake the engine and wait for the answer; what the engine misses, its worker picks up from the record."""
        assert executed.body is not None, "long work answers with its ids"
        work_id = UUID(executed.body["work_id"])
        try:
            await self.engine.start(work.workflow, f"{work.workflow}:{work_id}", str(work_id))
        except EngineUnavailableError:
            log.warning("engine_unavailable", workflow=work.workflow, work_id=str(work_id))
        deadline = asyncio.get_running_loop().time() + wait
        while (body := await work.answer(work_id)) is None:
            if asyncio.get_running_loop().time() >= deadline:
                return replace(executed, status=202)
            await asyncio.sleep(LOOK_INTERVAL)
        return replace(executed, status=200 if executed.replayed else executed.status, body=body)
