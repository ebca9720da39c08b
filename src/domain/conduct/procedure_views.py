"""One procedure as it is shown: its state, when it was registered, started, held, resumed and ended, by whom, and the names
of its run and its recipe."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self
from uuid import UUID

from baton.domain.access.references import Acts, ActsByTurns, Reference, acts_of, reference_to
from baton.domain.kernel import TimeTravel
from baton.domain.procedure import procedure as events
from baton.domain.procedure.procedure import Procedure, procedure
from baton.domain.recipe.recipe import recipe
from baton.domain.run.run import run
from baton.domain.shared.reads import Reads


@dataclass(frozen=True, kw_only=True)
class ProcedureView(ActsByTurns, Procedure):
    """A procedure with when it was registered, started, held, resumed and ended, by whom, its run and its recipe."""

    registered_at: datetime
    registered_by: UUID
    registered_by_name: str | None
    started_at: datetime | None
    started_by: UUID | None
    started_by_name: str | None
    parent_run: Reference | None
    recipe: Reference | None

    @classmethod
    def load(cls, query: TimeTravel[Self], state: Procedure) -> Reads[Self]:
        ends = (events.ProcedureCompleted, events.ProcedureAborted, events.ProcedureTruncated)
        once: Acts = {"registered": (events.ProcedureRegistered,), "started": (events.ProcedureStarted,)}
        by_turns: Acts = {"held": (events.ProcedureHeld,), "resumed": (events.ProcedureResumed,), "ended": ends}
        acts = yield from acts_of(query, state.id, once, by_turns)
        parent_run = yield from reference_to(run, state.parent_run_id)
        return cls.of(state, **acts, parent_run=parent_run, recipe=(yield from reference_to(recipe, state.recipe_id)))


GetProcedure = procedure.get(hidden=["created_at"], view=ProcedureView)
