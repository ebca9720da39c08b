"""What estimates are made from, cached: the steps that conducts walk, and how long such steps took lately."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from baton.application.conduct.conduct_reader import ConductReader
from baton.application.conduct.conduct_record import OPENINGS, boundary_of, convergence_of
from baton.application.ports import EventRow, Store
from baton.application.unit_of_work import decode_event, load_events, load_state
from baton.domain.conduct.estimates import UNLIMITED, ConductWalk, StepDuration, StepKey, walk_of
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.procedure import Procedure
from baton.domain.recipe.expansion import expansion_of
from baton.domain.recipe.recipe import Recipe

FRESH_SECONDS = 10.0  # how long durations are used before the ledger is asked again
MAX_CACHED_DURATIONS = 20_000
MAX_CACHED_WALKS = 200


@dataclass(frozen=True)
class ConductTimes:
    """Reads walks and durations, each at most once in a while."""

    store: Store
    reader: ConductReader
    clock: Callable[[], float] = time.monotonic
    _walks: dict[UUID, ConductWalk] = field(default_factory=dict)  # by the ids of conducts, and of procedures to conduct
    _durations: dict[StepKey, tuple[StepDuration, float]] = field(default_factory=dict)  # each with when it was read

    async def conduct_walk(self, procedure_id: UUID, conduct_id: UUID) -> ConductWalk | None:
        """Return the steps that a conduct walks, and the caps of its passes; None where it has none."""
        if (known := self._walks.get(conduct_id)) is not None:
            return known
        walk = await self._read(procedure_id, conduct_id)
        return None if walk is None else self._keep(conduct_id, walk)

    async def registered_walk(self, procedure_id: UUID) -> ConductWalk | None:
        """Return the steps that a procedure was registered with, from beginning to end; None where it has no recipe."""
        if (known := self._walks.get(procedure_id)) is not None:
            return known
        records = await load_events(self.store, procedure_id, procedures.ProcedureRecipeExpanded)
        recipe = await load_state(self.store, Recipe, records[-1].recipe_id) if records else None
        if recipe is None or (version := recipe.version(records[-1].recipe_version)) is None:
            return None
        steps = (version.steps, version.closing_steps)
        expansion = await asyncio.to_thread(expansion_of, *steps, records[-1].bindings)
        return self._keep(procedure_id, walk_of(expansion.steps, expansion.closing_steps))

    async def step_durations(self, keys: Sequence[StepKey]) -> Mapping[StepKey, StepDuration]:
        """Return how long steps of these kinds on these targets took lately; what was never done is left out."""
        now = self.clock()
        cached = [(key, self._durations[key]) for key in keys if key in self._durations]
        known = {key: duration for key, (duration, read_at) in cached if now < read_at + FRESH_SECONDS}
        if missing := [key for key in keys if key not in known]:  # what was never done costs next to nothing to ask for
            read = await self.reader.read_durations(missing)
            if len(self._durations) + len(read) > MAX_CACHED_DURATIONS:
                self._durations.clear()
            self._durations.update({key: (duration, now) for key, duration in read.items()})
            known |= read
        return known

    def _keep(self, id: UUID, walk: ConductWalk) -> ConductWalk:
        if len(self._walks) >= MAX_CACHED_WALKS:
            self._walks.clear()
        self._walks[id] = walk
        return walk

    async def _read(self, procedure_id: UUID, conduct_id: UUID) -> ConductWalk | None:
        name = Procedure.__name__
        wanted = (procedures.ProcedureStepsResolved, procedures.ProcedureSteeringDeclared, *OPENINGS)
        async with self.store.session() as session:
            rows = await session.load_of(name, (procedure_id,), [event.__name__ for event in wanted])
            begun = await session.load_of(name, (procedure_id,), [procedures.ProcedureIterationStarted.__name__])
        return await asyncio.to_thread(walk_in, rows, begun, conduct_id)


def walk_in(rows: Sequence[EventRow], begun: Sequence[EventRow], conduct_id: UUID) -> ConductWalk | None:
    """Return the walk of a conduct by its pin, its design and its opening; None where the rows have no such conduct."""
    events = [(row.version, decode_event(Procedure.aggregate, row)) for row in rows]
    openings = [(at, event) for at, event in events if isinstance(event, OPENINGS) and event.conduct_id == conduct_id]
    pins = [event for _, event in events if isinstance(event, procedures.ProcedureStepsResolved)]
    if not openings or not pins:
        return None
    version, opening = openings[0]
    designs = [event for at, event in events if isinstance(event, procedures.ProcedureSteeringDeclared) and at < version]
    convergence = convergence_of(opening, pins[-1])
    return replace(
        walk_of(pins[-1].resolved_steps, pins[-1].resolved_closing_steps),
        mode=None if isinstance(opening, procedures.ProcedureAbortRequested) else pins[-1].conduct_mode,
        boundary=boundary_of(opening, pins[-1]),
        unconverged_cap=None if convergence is None else convergence.max_consecutive_unconverged_iterations,
        budget=(designs[-1].budget if designs else None) or UNLIMITED,
        passes_before=sum(row.version < version for row in begun),
        started_at=opening.occurred_at,
    )
