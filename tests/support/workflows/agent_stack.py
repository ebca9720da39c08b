"""A facility whose agents are at work: API, worker and followers in this process, on a real database and engine."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from baton.application.language_models import ModelProvider, Models
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.cli.worker import build_worker, open_conduct_engine, react_in_background
from baton.domain.agent.language_model import ModelRef
from baton.domain.agent.seeded_agents import SEEDED
from baton.infrastructure.control.routes import open_control
from baton.infrastructure.temporal.engine import TemporalEngine, connect
from tests.support.service import Api, running_api
from tests.support.waiting import until

DEBRIEFER, DRAFTER, SUPERVISOR, PROMOTER, EXPIRER = (
    str(SEEDED[kind].id)
    for kind in ("RunDebriefer", "CautionDrafter", "RunSupervisor", "CautionPromoter", "ClearanceExpirer")
)


AGENT_WORKFLOWS = (
    *("debrief", "draft-caution", "regenerate-debrief", "promote-caution"),
    *("supervise-runs", "expire-clearances", "expire-clearance"),
)


@dataclass(frozen=True)
class ConstantModel:
    """One model behind every reference."""

    model: ModelProvider

    def resolve(self, ref: ModelRef) -> ModelRef:
        return ref

    def provider(self, ref: ModelRef) -> ModelProvider:
        return self.model


def constant_models(model: ModelProvider) -> Models:
    return ConstantModel(model)


@dataclass
class AgentStack:
    """What people see of agents at work, and how a worker comes and goes."""

    api: Api
    settings: Settings
    models: Models | None = None
    _working: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start_worker(self) -> Runtime:
        """Start a worker, with the models of this test where it has any."""
        self._working = AsyncExitStack()
        runtime = await self._working.enter_async_context(Runtime(self.settings))
        if self.models is not None:
            runtime.agents.consultation.models = self.models
        control = await self._working.enter_async_context(open_control(self.settings))
        wired = await self._working.enter_async_context(open_conduct_engine(runtime, control))
        await self._working.enter_async_context(build_worker(await connect(self.settings), runtime, wired))
        await self._working.enter_async_context(react_in_background(runtime))
        return runtime

    async def stop_worker(self) -> None:
        await self._working.aclose()

    async def decisions(self, count: int = 1, **filters: Any) -> list[dict[str, Any]]:
        """The decisions there are, as soon as there are so many."""
        found: list[dict[str, Any]] = []

        async def has_enough() -> bool:
            page = await self.api.get("/decisions", limit=100, **filters)
            assert page.status_code == 200, page.text
            found[:] = page.json()["items"]
            return len(found) >= count

        await until(has_enough, within=60)
        return [await self.read(f"/decisions/{row['decision_id']}") for row in found]

    async def read(self, path: str, **parameters: Any) -> Any:
        answer = await self.api.get(path, **parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def logbook(self, run_id: str, count: int = 1) -> list[dict[str, Any]]:
        """What was written about a run, as soon as there is so much."""
        found: list[dict[str, Any]] = []

        async def has_enough() -> bool:
            found[:] = (await self.read(f"/runs/{run_id}/logbook"))["items"]
            return len(found) >= count

        await until(has_enough, within=60)
        return found

    async def has_status(self, path: str, status: str) -> bool:
        return bool((await self.read(path))["status"] == status)

    async def events(self, path: str) -> list[dict[str, Any]]:
        """What happened to something, oldest first."""
        items: list[dict[str, Any]] = (await self.read(f"{path}/history", limit=100))["items"]
        return items


@asynccontextmanager
async def agent_stack(
    database_url: str, temporal_address: str, *, models: Models | None = None, working: bool = True, **settings: Any
) -> AsyncIterator[AgentStack]:
    """A facility with its agents, and a worker unless not wanted."""
    async with running_api(database_url, temporal_address=temporal_address, **settings) as api:
        chosen = Settings(database_url=database_url, temporal_address=temporal_address, app_env="test", **settings)
        made = AgentStack(api, chosen, models)
        if working:
            await made.start_worker()
        try:
            yield made
        finally:
            await made.stop_worker()
            await terminate_left_workflows(chosen)


async def terminate_left_workflows(settings: Settings) -> None:
    """Others use the engine too, on other databases: what is still open here would trouble them."""
    engine = TemporalEngine(settings)
    for item in await engine.open_items(AGENT_WORKFLOWS):
        await engine.terminate(item.workflow_id, "the test is over")
