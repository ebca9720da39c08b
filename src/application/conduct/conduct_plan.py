"""The score of a conduct: its steps and everything about it that does not change while it is conducted."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from baton.application.conduct.conduct_work import submitter
from baton.application.ports import Caller, Store
from baton.application.unit_of_work import decode_event
from baton.domain.operation.conduct.conduct import tighter
from baton.domain.operation.conduct.messages import StepPlace
from baton.domain.operation.conduct.progress import OpenedConduct
from baton.domain.operation.procedure.procedure import (
    ConductMode,
    Convergence,
    Procedure,
    ProcedureAbortRequested,
    ProcedureIterationStarted,
    ProcedureResumed,
    ProcedureStarted,
    ProcedureSteeringDeclared,
    ProcedureStepsResolved,
)
from baton.domain.recipe.steps import RecipeStep
from baton.domain.run.run import RunStatus

REMEMBERED_STEPS = 200_000
"""Steps of all remembered scores together."""
REMEMBERED = 1_000
MAIN_BLOCKS = frozenset(RunStatus) - {RunStatus.RUNNING}
CLOSING_BLOCKS = frozenset({RunStatus.ABORTED})
"""What of the parent run keeps steps from being done."""
OPENINGS = (ProcedureStarted, ProcedureResumed, ProcedureAbortRequested)


@dataclass(frozen=True)
class ConductPlan:
    """What one conduct plays."""

    procedure_id: UUID
    conduct_id: UUID
    command_name: str
    mode: ConductMode | None
    """None where only the closing steps are played."""
    steps: tuple[RecipeStep, ...]
    closing_steps: tuple[RecipeStep, ...]
    boundary: int
    """The first step of the main list that is walked."""
    stated_boundary: int | None
    """What the opening says of where an earlier conduct is taken up; None where none is."""
    skipped_count: int
    """Steps that its opening leaves out."""
    convergence: Convergence | None
    steering: ProcedureSteeringDeclared | None
    iterations_before: int
    """Passes that were begun before this conduct was opened."""
    run_id: UUID | None
    logbook_id: UUID
    caller: Caller
    """Whoever asked for it: every command it gives is authorized as theirs."""
    started_at: datetime

    @property
    def weight(self) -> int:
        """How many steps it has."""
        return len(self.steps) + len(self.closing_steps)

    @property
    def closing_only(self) -> bool:
        return self.mode is None

    @property
    def resumed(self) -> bool:
        """Whether it goes on from an earlier conduct, whose acquisitions it must not repeat."""
        return self.stated_boundary is not None and self.mode is ConductMode.FLAT

    @property
    def between(self) -> StepPlace:
        """The conduct between two steps."""
        return StepPlace(procedure_id=self.procedure_id, conduct_id=self.conduct_id, step_index=0)

    @property
    def loops(self) -> bool:
        """Whether its steps are walked in passes."""
        return self.mode in (ConductMode.CONVERGED, ConductMode.ADVISED)

    def first_index(self, place: StepPlace) -> int:
        """The step that the walk of this list begins with."""
        return 0 if place.closing else self.boundary

    def has(self, place: StepPlace) -> bool:
        """Whether there is such a step to walk: passes are of loops alone, and closing is in none."""
        count = len(self.closing_steps if place.closing else self.steps)
        in_pass = self.loops and not place.closing
        return self.first_index(place) <= place.step_index < count and (place.iteration_index > 0) is in_pass

    def last(self, iteration_index: int = 0, *, closing: bool = False) -> StepPlace | None:
        """The last step to walk of a list; None where there is none."""
        count = len(self.closing_steps if closing else self.steps)
        place = self.between.model_copy(
            update={"iteration_index": iteration_index, "closing": closing, "step_index": count - 1}
        )
        return place if count > self.first_index(place) else None

    def step(self, place: StepPlace) -> RecipeStep:
        """The step at a place."""
        return (self.closing_steps if place.closing else self.steps)[place.step_index]

    def after(self, place: StepPlace) -> RecipeStep | None:
        """The step that follows in the same list."""
        listed = self.closing_steps if place.closing else self.steps
        return listed[place.step_index + 1] if place.step_index + 1 < len(listed) else None

    @property
    def closing_blocks(self) -> frozenset[RunStatus]:
        """What of the parent run keeps closing steps from being done; closing alone asks no run."""
        return frozenset() if self.closing_only else CLOSING_BLOCKS


class ConductPlans:
    """The scores of the conducts that this process works on, loaded once each."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[UUID, ConductPlan] = OrderedDict()
        self._steps = 0

    async def score(self, procedure_id: UUID, conduct_id: UUID) -> ConductPlan | None:
        """The score of a conduct; None where it is not the live one."""
        if (known := self._known.get(conduct_id)) is not None:
            self._known.move_to_end(conduct_id)
            return known if known.procedure_id == procedure_id else None
        score = await self._loaded(procedure_id, conduct_id)
        if score is not None and conduct_id not in self._known:
            self._known[conduct_id] = score
            self._steps += score.weight
            while len(self._known) > 1 and (self._steps > REMEMBERED_STEPS or len(self._known) > REMEMBERED):
                self._steps -= self._known.popitem(last=False)[1].weight
        return score

    def forget(self, conduct_id: UUID) -> None:
        """Keep no score of a conduct that came to its end."""
        if (score := self._known.pop(conduct_id, None)) is not None:
            self._steps -= score.weight

    async def _loaded(self, procedure_id: UUID, conduct_id: UUID) -> ConductPlan | None:
        aggregate = Procedure.aggregate
        async with self._store.session() as session:
            procedure = aggregate.replay(await session.load(aggregate.name, [procedure_id]))
            if procedure is None or procedure.live_conduct_id != conduct_id:
                return None
            wanted = [event.__name__ for event in (ProcedureStepsResolved, ProcedureSteeringDeclared, *OPENINGS)]
            rows = await session.load_of(aggregate.name, procedure_id, wanted)
            begun = await session.load_of(aggregate.name, procedure_id, [ProcedureIterationStarted.__name__])
            (opened,) = await session.records(OpenedConduct, {"conduct_id": conduct_id})
        events = await asyncio.to_thread(lambda: [decode_event(aggregate, row) for row in rows])
        pin = next(event for event in reversed(events) if isinstance(event, ProcedureStepsResolved))
        designs = [event for event in events if isinstance(event, ProcedureSteeringDeclared)]
        version, opening = next(
            (row.version, event)
            for row, event in zip(rows, events, strict=True)
            if isinstance(event, OPENINGS) and event.conduct_id == conduct_id
        )
        closing_only = isinstance(opening, ProcedureAbortRequested)
        assert procedure.activity_logbook_id is not None, "the opening opens the logbook"
        return ConductPlan(
            procedure_id=procedure_id,
            conduct_id=conduct_id,
            command_name=opened.command_name,
            mode=None if closing_only else pin.conduct_mode,
            steps=pin.resolved_steps,
            closing_steps=pin.resolved_closing_steps,
            boundary=boundary_of(opening, pin),
            stated_boundary=opening.re_establishment_boundary if isinstance(opening, ProcedureResumed) else None,
            skipped_count=opening.skipped_count if isinstance(opening, ProcedureResumed) else 0,
            convergence=convergence_of(opening, pin),
            steering=designs[-1] if designs else None,
            iterations_before=sum(row.version < version for row in begun),
            run_id=procedure.parent_run_id,
            logbook_id=procedure.activity_logbook_id,
            caller=submitter(opened),
            started_at=opening.occurred_at,
        )


def boundary_of(opening: Any, pin: ProcedureStepsResolved) -> int:
    """The step from which on everything is done; before closing alone, everything counts as done."""
    if isinstance(opening, ProcedureAbortRequested):
        return len(pin.resolved_steps)
    flat = pin.conduct_mode is ConductMode.FLAT
    return opening.re_establishment_boundary if isinstance(opening, ProcedureResumed) and flat else 0


def convergence_of(opening: Any, pin: ProcedureStepsResolved) -> Convergence | None:
    """When a loop is done, with its patience as it was tightened last."""
    kept = pin.convergence
    if kept is None or not isinstance(opening, ProcedureResumed):
        return kept
    cap = tighter(opening.max_consecutive_unconverged_iterations, kept.max_consecutive_unconverged_iterations)
    return kept.model_copy(update={"max_consecutive_unconverged_iterations": cap})
