"""One procedure as it is shown: its state, when it was registered, started, held, resumed and ended, by whom, and the names
of its run and its recipe."""

from datetime import datetime
from typing import Any
from uuid import UUID

from baton.domain.access.references import Acts, ActsByTurns, Reference, acts_of, reference_to
from baton.domain.kernel import TimeTravel
from baton.domain.procedure import procedure as events
from baton.domain.procedure.procedure import Procedure, procedure
from baton.domain.recipe.recipe import recipe
from baton.domain.run.run import run
from baton.domain.shared.reads import Reads


class ProcedureCourse(ActsByTurns):
    """When a procedure was registered, started, last held and resumed, and ended, by whom, its run and its recipe."""

    registered_at: datetime
    registered_by: UUID
    registered_by_name: str | None
    started_at: datetime | None
    started_by: UUID | None
    started_by_name: str | None
    parent_run: Reference | None
    recipe: Reference | None

    @classmethod
    def load(cls, query: TimeTravel, state: Procedure) -> Reads[dict[str, Any]]:
        ends = (events.ProcedureCompleted, events.ProcedureAborted, events.ProcedureTruncated)
        once: Acts = {"registered": (events.ProcedureRegistered,), "started": (events.ProcedureStarted,)}
        by_turns: Acts = {"held": (events.ProcedureHeld,), "resumed": (events.ProcedureResumed,), "ended": ends}
        acts = yield from acts_of(query, state.id, once, by_turns)
        parent_run = yield from reference_to(run, state.parent_run_id)
        return {**acts, "parent_run": parent_run, "recipe": (yield from reference_to(recipe, state.recipe_id))}


procedure.get(hidden=["created_at", "registered_at", "started_at", "ended_at"], also=ProcedureCourse)
