"""A conduct stack and the service on a real socket beside it, on one database."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from baton.application.control import Control, Timekeeper
from baton.infrastructure.plugins import BUILT_IN, ActionRegistry
from baton.infrastructure.postgres.ledger import PostgresLedger
from tests.support.service import Api, running_api
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import OPERATOR, ConductStack, open_conduct_stack
from tests.support.workflows.step_json import action

SIGNALS = {"a": 0, "b": 1.5, "c": 0}
PAUSE = action("pause")
"""A step that lasts until the test lets it end."""


@dataclass
class PausingAction:
    """An action that waits; how many have begun, and how many may end."""

    begun: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    may_end: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def __call__(self, control: Control, time: Timekeeper, params: Mapping[str, Any]) -> Mapping[str, Any]:
        self.begun.release()
        await self.may_end.acquire()
        return {}

    async def wait_until_reached(self) -> None:
        """Return when a step waits."""
        async with asyncio.timeout(60):
            await self.begun.acquire()

    def end(self) -> None:
        """Let one step that waits, or will, come to its end."""
        self.may_end.release()


@dataclass(frozen=True)
class ConductService:
    """A conduct stack, and what the service shows of it over REST."""

    stack: ConductStack
    api: Api
    pauses: PausingAction

    @property
    def operator(self) -> Api:
        """The service as the operator of the conduct stack."""
        return self.api.acting_as(OPERATOR)

    async def start_conduct(self, *steps: Any, how: str = "conduct", **fields: Any) -> tuple[UUID, UUID]:
        """Open a conduct of these steps over REST without waiting, and return its procedure and its id."""
        procedure_id = await self.stack.register_procedure()
        return procedure_id, await self.conduct(procedure_id, how, steps=list(steps), **fields)

    async def conduct(self, procedure_id: UUID, how: str = "conduct", **fields: Any) -> UUID:
        accepted = await self.operator.post(f"/procedures/{procedure_id}/{how}", {"wait": 0, **fields})
        assert accepted.status_code in (200, 202), accepted.text
        return UUID(accepted.json()["conduct_id"])

    async def wait_until_over(self, work_id: UUID, api: Api | None = None) -> dict[str, Any]:
        """Return long work as its submitter reads it, as soon as it is over."""

        async def ended_work() -> dict[str, Any] | None:
            work: dict[str, Any] = (await (api or self.operator).get(f"/work-items/{work_id}")).json()
            return None if work["state"] == "running" else work

        work: dict[str, Any] = await until(ended_work)
        return work

    async def result(self, work_id: UUID) -> Any:
        """Return the answer of long work, as soon as it is over."""
        return (await self.wait_until_over(work_id))["answer"]

    async def mark_walking(self, procedure_id: UUID, conduct_id: UUID) -> None:
        """Record a sign of life of a worker that then does nothing."""
        await PostgresLedger(self.stack.runtime.store).mark_walking(procedure_id, conduct_id)

    async def age_heartbeat(self, procedure_id: UUID, seconds: int) -> None:
        """Make the last heartbeat of a conduct older by so many seconds."""
        async with self.stack.runtime.pool.connection() as connection:
            await connection.execute(
                "UPDATE conduct_progress SET heartbeat_at = heartbeat_at - make_interval(secs => %s) "
                "WHERE procedure_id = %s",
                [seconds, procedure_id],
            )


@asynccontextmanager
async def open_conduct_service(
    database_url: str, temporal_address: str, *, service: Mapping[str, Any] | None = None, **stack: Any
) -> AsyncIterator[ConductService]:
    """A conduct service until the end of the block; `service` are settings of the API, the others those of the stack."""
    pauses = PausingAction()
    furniture = {"simulated_signals": SIGNALS, "actions": ActionRegistry({**BUILT_IN, "pause": pauses}), **stack}
    async with (
        open_conduct_stack(database_url, temporal_address, **furniture) as conduct_stack,
        running_api(database_url, projecting=False, temporal_address=temporal_address, **(service or {})) as api,
    ):
        yield ConductService(conduct_stack, api, pauses)
