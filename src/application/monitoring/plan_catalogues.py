"""The catalogues of executors of Bluesky plans and of a worker's own actions, kept as rows that steps are judged by."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

import structlog

from baton.application.conduct.actions import ActionRefusedError
from baton.application.conduct.plan_executors import ExecutorCatalogue, PlanExecutorSilentError
from baton.application.ports import Clock, StoreUnavailableError
from baton.domain.recipe.offered_plans import PlanExecutorCatalogue

log = structlog.get_logger()
LOOK_SECONDS = 5.0  # between two looks at whether the environment or the list of an executor has changed
KEEP_SECONDS = 60.0  # after which a catalogue is stored again although nothing has changed
MAX_TROUBLE = 300  # characters


class Catalogued(Protocol):
    """An executor of Bluesky plans, or the actions of a worker."""

    async def catalogue(self) -> ExecutorCatalogue:
        """Return what it offers now."""


class CatalogueStore(Protocol):
    """Keeps the rows of executors."""

    async def put(self, row: PlanExecutorCatalogue) -> None:
        """Store the row of an executor."""

    async def catalogue(self, executor: str) -> PlanExecutorCatalogue | None:
        """Return the stored row of an executor."""


@dataclass(frozen=True)
class PlanCatalogues:
    """Asks every executor what it offers, and stores it."""

    executors: Mapping[str, Catalogued]
    store: CatalogueStore
    clock: Clock
    look_seconds: float = LOOK_SECONDS

    async def run(self) -> None:
        """Ask until cancelled, each executor by itself."""
        async with asyncio.TaskGroup() as tasks:
            for name in self.executors:
                tasks.create_task(self._keep(name))

    async def _keep(self, name: str) -> None:
        kept: PlanExecutorCatalogue | None = None
        while True:
            row = await self.ask(name, kept)
            changed = kept is None or replace(row, asked_at=kept.asked_at, heard_at=kept.heard_at) != kept
            if kept is None or changed or (row.asked_at - kept.asked_at).total_seconds() >= KEEP_SECONDS:
                try:
                    await self.store.put(row)
                    kept = row
                except StoreUnavailableError:
                    kept = None
            await asyncio.sleep(self.look_seconds)

    async def ask(self, name: str, kept: PlanExecutorCatalogue | None = None) -> PlanExecutorCatalogue:
        """Return the row of an executor as it answers now; where it does not, as it was with the trouble."""
        try:
            offered = await self.executors[name].catalogue()
        except (PlanExecutorSilentError, ActionRefusedError) as error:
            return await self._silent_row(name, str(error), kept)
        except Exception as error:  # a catalogue of another form than this release knows
            log.warning("plan_catalogue_unreadable", executor=name, error=f"{type(error).__name__}: {error}"[:MAX_TROUBLE])
            return await self._silent_row(name, f"Its catalogue cannot be read: {type(error).__name__}.", kept)
        now = self.clock()
        return PlanExecutorCatalogue(
            executor=name,
            asked_at=now,
            heard_at=now,
            trouble=None,
            version=offered.version,
            environment=offered.environment,
            plans={plan: one.model_dump(mode="json") for plan, one in offered.plans.items()},
            devices=list(offered.devices),
            activity=offered.activity,
        )

    async def _silent_row(self, name: str, trouble: str, kept: PlanExecutorCatalogue | None) -> PlanExecutorCatalogue:
        known = kept or await self.store.catalogue(name) or never_heard(name, self.clock())
        return replace(known, asked_at=self.clock(), trouble=trouble[:MAX_TROUBLE])


def never_heard(name: str, now: datetime) -> PlanExecutorCatalogue:
    """Return the row of an executor that never answered."""
    return PlanExecutorCatalogue(
        executor=name, asked_at=now, heard_at=None, trouble=None, version=None, environment=None, plans={}, devices=[]
    )
