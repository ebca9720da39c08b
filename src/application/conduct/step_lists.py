"""The steps that procedures walk, a part at a time. The lists never change, so they are cached, as they are written."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import orjson
from pydantic import TypeAdapter

from baton.application.ports import Store
from baton.application.unit_of_work import load_event_rows, load_events, load_state
from baton.domain.conduct.ledger import ListPlace, WalkedSpan
from baton.domain.conduct.points import PlacedPoint, PointPlan, plan_of
from baton.domain.conduct.step_list import ListedSteps
from baton.domain.procedure.procedure import ProcedureRecipeExpanded, ProcedureStepsResolved
from baton.domain.recipe.expansion import expansion_of
from baton.domain.recipe.plots import RecipePlot
from baton.domain.recipe.recipe import Recipe, RecipeVersion
from baton.domain.recipe.steps import Step, wire_form

MAX_CACHED_LISTS = 50
MAX_CACHED_POINTS = 200_000
WrittenSteps = Sequence[bytes]
Lists = tuple[WrittenSteps, WrittenSteps]  # Steps and closing steps, each as JSON.
NO_STEPS: Lists = ((), ())
STEP: TypeAdapter[Step] = TypeAdapter(Step)


@dataclass(frozen=True)
class StepLists:
    """Reads the lists of procedures, each once in a while."""

    store: Store
    _lists: dict[tuple[UUID, bool], Lists] = field(default_factory=dict)
    _points: dict[tuple[WalkedSpan, ...], Sequence[PlacedPoint]] = field(default_factory=dict)
    _plans: dict[tuple[UUID, bool], PointPlan] = field(default_factory=dict)

    async def listed_steps(self, procedure_id: UUID, pinned: bool, place: ListPlace) -> ListedSteps:
        """Return a part of the steps that a procedure is conducted by or, unless they are pinned, was registered with."""
        steps, closing_steps = await self._both(procedure_id, pinned)
        wanted = (closing_steps if place.closing else steps)[place.first : place.first + place.limit]
        return ListedSteps([STEP.validate_json(one) for one in wanted], len(steps), len(closing_steps))

    async def point_plan(self, procedure_id: UUID, loops: bool) -> PointPlan:
        """Return what the pinned steps of a procedure say of the points that it measures."""
        key = (procedure_id, loops)
        if (known := self._plans.get(key)) is None:
            rows = await load_event_rows(self.store, procedure_id, ProcedureStepsResolved)
            _, version = await self._expanded_version(procedure_id)
            plot = None if version is None else version.plot
            known = await asyncio.to_thread(plan_in, rows[-1].payload, loops, plot) if rows else PointPlan()
            if len(self._plans) >= MAX_CACHED_LISTS:
                self._plans.clear()
            self._plans[key] = known
        return known

    async def known_points(self, spans: tuple[WalkedSpan, ...]) -> Sequence[PlacedPoint]:
        """Return the closed points of conducts that were kept, so that reading continues behind them."""
        return self._points.get(spans, ())

    async def keep_points(self, spans: tuple[WalkedSpan, ...], points: Sequence[PlacedPoint]) -> None:
        """Keep all the closed points of conducts in memory for a while."""
        if sum(map(len, self._points.values())) + len(points) > MAX_CACHED_POINTS:
            self._points.clear()
        if len(points) > len(self._points.get(spans, ())):
            self._points[spans] = points

    async def _both(self, procedure_id: UUID, pinned: bool) -> Lists:
        key = (procedure_id, pinned)
        if (known := self._lists.get(key)) is None:
            known = await (self._read_pin(procedure_id) if pinned else self._expand_recipe(procedure_id))
            if len(self._lists) >= MAX_CACHED_LISTS:
                self._lists.clear()
            self._lists[key] = known
        return known

    async def _read_pin(self, procedure_id: UUID) -> Lists:
        rows = await load_event_rows(self.store, procedure_id, ProcedureStepsResolved)
        return await asyncio.to_thread(lists_in, rows[-1].payload) if rows else NO_STEPS

    async def _expand_recipe(self, procedure_id: UUID) -> Lists:
        expanded, version = await self._expanded_version(procedure_id)
        if expanded is None or version is None:
            return NO_STEPS
        bound = expanded.bindings, expanded.binding_units
        expansion = await asyncio.to_thread(expansion_of, version.steps, version.closing_steps, *bound)
        return await asyncio.to_thread(lambda: (step_documents(expansion.steps), step_documents(expansion.closing_steps)))

    async def _expanded_version(self, procedure_id: UUID) -> tuple[ProcedureRecipeExpanded | None, RecipeVersion | None]:
        """Return how a recipe became the steps of a procedure, and what it said; None where they come from elsewhere."""
        records = await load_events(self.store, procedure_id, ProcedureRecipeExpanded)
        recipe = await load_state(self.store, Recipe, records[-1].recipe_id) if records else None
        return (records[-1], recipe.version(records[-1].recipe_version)) if recipe is not None else (None, None)


def lists_in(payload: str) -> Lists:
    """Return both lists of a pin as it is stored."""
    pin = orjson.loads(payload)
    return [*map(orjson.dumps, pin["resolved_steps"])], [*map(orjson.dumps, pin["resolved_closing_steps"])]


def plan_in(payload: str, loops: bool, plot: RecipePlot | None) -> PointPlan:
    """Return what a pin as it is stored says of points, drawn as the recipe wants it."""
    pin = orjson.loads(payload)
    return plan_of(pin["resolved_steps"], loops=loops, convergence=pin.get("convergence"), plot=plot)


def step_documents(steps: Sequence[Step]) -> WrittenSteps:
    """Return steps as they are written."""
    return [*map(orjson.dumps, wire_form(steps))]
