"""The executors of Bluesky plans that the settings name, and their plans as actions."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from baton.application.conduct.plan_executors import PlanAction, PlanExecutor
from baton.application.plan_settings import PlanExecutorKind, PlanExecutorSettings
from baton.domain.recipe.offered_plans import PLAN_PREFIX
from baton.domain.step.plan_steps import PausePolicy
from baton.infrastructure.plugins import PLAN_EXECUTORS


@dataclass(frozen=True)
class ConfiguredExecutor:
    """An executor with its settings."""

    settings: PlanExecutorSettings
    executor: PlanExecutor

    @property
    def actions(self) -> Mapping[str, PlanAction]:
        """The plans that steps may have carried out, by the names of their actions."""
        settings, by_itself = self.settings, self.settings.kind != PlanExecutorKind.BLUEAPI
        pauses = by_itself if settings.pause is None else settings.pause is PausePolicy.NATIVE
        return {
            f"{PLAN_PREFIX}{settings.name}/{plan}": PlanAction(
                settings.name, plan, self.executor, settings.simulated, pauses, seconds
            )
            for plan, seconds in settings.timeouts.items()
        }


def configured_executors(settings: Iterable[PlanExecutorSettings]) -> tuple[ConfiguredExecutor, ...]:
    """Return the executors that the settings name; raise PluginUnusableError where one cannot be made."""
    return tuple(ConfiguredExecutor(one, make_executor(one)) for one in settings)


def make_executor(settings: PlanExecutorSettings) -> PlanExecutor:
    """Return the executor of its settings; the library that it needs is loaded here."""
    match settings.kind:
        case PlanExecutorKind.QUEUESERVER:
            from baton.infrastructure.plans.queueserver import Queueserver

            key = credentials(settings)
            own = {"exclusive": settings.exclusive, "opens": settings.open_environment}
            return Queueserver(settings.address, public_key=key, user_group=settings.user_group, **own)
        case PlanExecutorKind.BLUEAPI:
            from baton.infrastructure.plans.blueapi import Blueapi

            return Blueapi(settings.address, token=credentials(settings), session=settings.session)
        case PlanExecutorKind.IN_MEMORY:
            from baton.infrastructure.plans.in_memory import MemoryExecutor

            return MemoryExecutor()
        case name:
            return PLAN_EXECUTORS.make(name, settings.address)


def credentials(settings: PlanExecutorSettings) -> str | None:
    """Return the token or key of an executor: the variable that is named holds it, or the name of a file that does."""
    if settings.credentials_env is None or not (value := os.environ.get(settings.credentials_env)):
        return None
    return Path(value).read_text().strip() if value.startswith("/") else value
