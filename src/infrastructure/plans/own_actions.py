"""The actions of a worker, as what it keeps of them for the processes that judge steps."""

import inspect
from dataclasses import dataclass

import baton
from baton.application.conduct.actions import declared_signals
from baton.application.conduct.plan_executors import ExecutorCatalogue
from baton.domain.recipe.offered_plans import OfferedPlan
from baton.domain.recipe.step_actions import offered_action
from baton.infrastructure.plugins import ActionRegistry


@dataclass(frozen=True)
class OwnActions:
    """The built-in actions, and those of the packages that are installed beside this worker."""

    actions: ActionRegistry

    async def catalogue(self) -> ExecutorCatalogue:
        """Return every action, with what it declares."""
        return ExecutorCatalogue(
            version=baton.__version__, environment=None, plans=dict(map(self.offer, self.actions.names))
        )

    def offer(self, name: str) -> tuple[str, OfferedPlan]:
        """Return an action by its name."""
        body = self.actions.body_of(name)
        return name, offered_action(declared_signals(body), inspect.getdoc(body))
