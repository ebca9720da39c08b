"""The plan of a conduct: its steps, and everything else about it that does not change while it is conducted."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from baton.application.conduct.conduct_work import submitter
from baton.application.ports import Caller, Store
from baton.application.unit_of_work import decode_event
from baton.domain.operation.conduct.conduct import tighter
from baton.domain.operation.conduct.messages import ConductRequest, StepPlace
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

MAX_CACHED_STEPS = 200_000  # steps of all cached plans together
MAX_CACHED_PLANS = 1_000
MAIN_BLOCKS = frozenset(RunStatus) - {RunStatus.RUNNING}  # the statuses of the parent run that block the main list
CLOSING_BLOCKS = frozenset({RunStatus.ABORTED})  # and those that block the closing steps
Opening = ProcedureStarted | ProcedureResumed | ProcedureAbortRequested
OPENINGS = (ProcedureStarted, ProcedureResumed, ProcedureAbortRequested)


@dataclass(frozen=True)
class StepPlan:
    """The plan of one conduct."""

    procedure_id: UUID
    conduct_id: UUID
    command_name: str
    mode: ConductMode | None  # None where only the closing steps are walked
    steps: tuple[RecipeStep, ...]
    closing_steps: tuple[RecipeStep, ...]
    boundary: int  # the first step of the main list that is walked
    stated_boundary: int | None  # the step at which the opening takes an earlier conduct up; None where it takes none up
    skipped_count: int  # steps that the opening leaves out
    convergence: Convergence | None
    steering: ProcedureSteeringDeclared | None
    iterations_before: int  # passes that were begun before this conduct was opened
    run_id: UUID | None
    logbook_id: UUID
    caller: Caller  # the submitter, as whom every command of the conduct is authorized
    started_at: datetime

    @property
    def total_steps(self) -> int:
        return len(self.steps) + len(self.closing_steps)

    @property
    def closing_only(self) -> bool:
        return self.mode is None

    @property
    def resumed(self) -> bool:
        """Return whether it continues an earlier conduct, whose acquisitions it must not repeat."""
        return self.stated_boundary is not None and self.mode is ConductMode.FLAT

    @property
    def between(self) -> StepPlace:
        """Return the place for heartbeats between two steps."""
        return StepPlace(procedure_id=self.procedure_id, conduct_id=self.conduct_id, step_index=0)

    @property
    def loops(self) -> bool:
        """Return whether its steps are walked in passes."""
        return self.mode in (ConductMode.CONVERGED, ConductMode.ADVISED)

    def first_index(self, place: StepPlace) -> int:
        """Return the first step that is walked of this list."""
        return 0 if place.closing else self.boundary

    def has(self, place: StepPlace) -> bool:
        """Return whether there is such a step to walk: only loops have passes, and closing steps are in none."""
        count = len(self.closing_steps if place.closing else self.steps)
        in_pass = self.loops and not place.closing
        return self.first_index(place) <= place.step_index < count and (place.iteration_index > 0) is in_pass

    def last(self, iteration_index: int = 0, *, closing: bool = False) -> StepPlace | None:
        """Return the last step to walk of a list; None where there is none."""
        count = len(self.closing_steps if closing else self.steps)
        at = {"iteration_index": iteration_index, "closing": closing, "step_index": count - 1}
        place = self.between.model_copy(update=at)
        return place if count > self.first_index(place) else None

    def step(self, place: StepPlace) -> RecipeStep:
        """Return the step at a place."""
        return (self.closing_steps if place.closing else self.steps)[place.step_index]

    def after(self, place: StepPlace) -> RecipeStep | None:
        """Return the step that follows in the same list."""
        listed = self.closing_steps if place.closing else self.steps
        return listed[place.step_index + 1] if place.step_index + 1 < len(listed) else None

    def passes(self, procedure: Procedure) -> int:
        """Return how many passes this conduct has begun."""
        return procedure.iteration_count - self.iterations_before


class StepPlans:
    """The plans of the conducts that this process works on, loaded once each."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[UUID, StepPlan] = OrderedDict()
        self._step_count = 0

    async def load(self, request: ConductRequest) -> StepPlan | None:
        """Return the plan of a conduct; None where it is not the live one."""
        procedure_id, conduct_id = request.procedure_id, request.conduct_id
        if (known := self._known.get(conduct_id)) is not None:
            self._known.move_to_end(conduct_id)
            return known if known.procedure_id == procedure_id else None
        plan = await self._read(procedure_id, conduct_id)
        if plan is not None and conduct_id not in self._known:
            self._known[conduct_id] = plan
            self._step_count += plan.total_steps
            while len(self._known) > 1 and (self._step_count > MAX_CACHED_STEPS or len(self._known) > MAX_CACHED_PLANS):
                self._step_count -= self._known.popitem(last=False)[1].total_steps
        return plan

    def forget(self, conduct_id: UUID) -> None:
        """Drop the plan of a conduct that has ended."""
        if (plan := self._known.pop(conduct_id, None)) is not None:
            self._step_count -= plan.total_steps

    async def _read(self, procedure_id: UUID, conduct_id: UUID) -> StepPlan | None:
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
        resumption = opening if isinstance(opening, ProcedureResumed) else None
        assert procedure.activity_logbook_id is not None, "the opening opens the logbook"
        return StepPlan(
            procedure_id=procedure_id,
            conduct_id=conduct_id,
            command_name=opened.command_name,
            mode=None if isinstance(opening, ProcedureAbortRequested) else pin.conduct_mode,
            steps=pin.resolved_steps,
            closing_steps=pin.resolved_closing_steps,
            boundary=boundary_of(opening, pin),
            stated_boundary=None if resumption is None else resumption.re_establishment_boundary,
            skipped_count=0 if resumption is None else resumption.skipped_count,
            convergence=convergence_of(opening, pin),
            steering=designs[-1] if designs else None,
            iterations_before=sum(row.version < version for row in begun),
            run_id=procedure.parent_run_id,
            logbook_id=procedure.activity_logbook_id,
            caller=submitter(opened),
            started_at=opening.occurred_at,
        )


def boundary_of(opening: Opening, pin: ProcedureStepsResolved) -> int:
    """Return the first step to walk; a conduct of closing steps alone walks none of the main list."""
    if isinstance(opening, ProcedureAbortRequested):
        return len(pin.resolved_steps)
    flat = pin.conduct_mode is ConductMode.FLAT
    return opening.re_establishment_boundary if isinstance(opening, ProcedureResumed) and flat else 0


def convergence_of(opening: Opening, pin: ProcedureStepsResolved) -> Convergence | None:
    """Return when a loop is done, with the tightest cap on passes without convergence."""
    pinned = pin.convergence
    if pinned is None or not isinstance(opening, ProcedureResumed):
        return pinned
    cap = tighter(opening.max_consecutive_unconverged_iterations, pinned.max_consecutive_unconverged_iterations)
    return pinned.model_copy(update={"max_consecutive_unconverged_iterations": cap})
