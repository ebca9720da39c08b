"""The effects of agents: each acts through the command path as its own actor, and may be repeated."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID

from temporalio import activity
from temporalio.exceptions import ApplicationError

from baton.activities.heartbeats import heartbeating
from baton.application.agents.expirer import Expirer
from baton.application.agents.model_agents import LeaseResult, ModelAgents
from baton.application.agents.model_consultation import BusyError
from baton.application.agents.promoter import Promoter
from baton.application.agents.regenerations import Regenerations
from baton.application.agents.supervisor import Supervisor
from baton.domain.agent.conclusions import ConclusionOrder
from baton.domain.agent.expiry import DuePage
from baton.domain.agent.promotion import ProposalOrder

AGAIN = timedelta(seconds=3)
"""After this long somebody whose turn it was not comes again."""


@asynccontextmanager
async def retry_when_busy() -> AsyncIterator[None]:
    """Have the engine try again where it was not somebody's turn; meanwhile nobody is kept waiting for it."""
    try:
        yield
    except BusyError as busy:
        raise ApplicationError(str(busy), type="Busy", next_retry_delay=AGAIN) from None


class AgentActivities:
    """What the workflows of agents call."""

    def __init__(
        self, models: ModelAgents, regenerations: Regenerations, promoter: Promoter, supervisor: Supervisor, expirer: Expirer
    ) -> None:
        self._models = models
        self._regenerations = regenerations
        self._promoter = promoter
        self._supervisor = supervisor
        self._expirer = expirer

    @activity.defn(name="take_lease")
    async def take_lease(self, order: ConclusionOrder) -> LeaseResult:
        async with heartbeating():
            return await self._models.take_lease(order)

    @activity.defn(name="conclude")
    async def conclude(self, order: ConclusionOrder) -> bool:
        async with heartbeating(), retry_when_busy():
            return await self._models.conclude(order)

    @activity.defn(name="write_up_debrief")
    async def write_up(self, order: ConclusionOrder) -> None:
        async with heartbeating():
            await self._models.write_up(order)

    @activity.defn(name="regenerate_debrief")
    async def regenerate(self, decision_id: str) -> None:
        async with heartbeating(), retry_when_busy():
            await self._regenerations.write(UUID(decision_id))

    @activity.defn(name="promote_caution")
    async def promote(self, order: ProposalOrder) -> None:
        async with heartbeating():
            await self._promoter.promote(order)

    @activity.defn(name="supervise_runs")
    async def supervise(self) -> None:
        async with heartbeating():
            await self._supervisor.look()

    @activity.defn(name="due_clearances")
    async def due(self, after: str | None) -> DuePage:
        async with heartbeating():
            return await self._expirer.due(after)

    @activity.defn(name="expire_clearance")
    async def expire(self, clearance_id: str) -> None:
        async with heartbeating():
            await self._expirer.expire(UUID(clearance_id))
