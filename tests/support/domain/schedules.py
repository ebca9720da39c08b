"""Verbs to arrange schedules with: something to conduct, and a calendar."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from baton.domain.recipe.capability import CODE_PREFIX
from baton.domain.recipe.recipe import DefineRecipe
from baton.domain.schedule.schedule import DefineSchedule, RecordScheduleFiring, RecordScheduleFiringRefusal, Schedule
from tests.support.domain.conducts import CLOSE_SHUTTER, STEPS, Raw
from tests.support.domain.templates import capability
from tests.support.domain.world import World, new_id

NIGHTLY = {"cron": ["0 2 * * *"]}
SUMMER = datetime(2027, 7, 1, 2, 0, tzinfo=UTC)


def recipe(world: World, steps: list[Raw] = STEPS, **fields: Any) -> UUID:
    """A recipe that procedures are registered from."""
    realised = capability(world, code=f"{CODE_PREFIX}{new_id()}", executor_shapes=["PROCEDURE"], **fields)
    asked = {"name": "darks", "capability_id": realised, "steps": steps, "closing_steps": CLOSE_SHUTTER}
    return world.create(DefineRecipe(**asked))


def darks(recipe_id: UUID, **fields: Any) -> Raw:
    """The recipe as a target."""
    return {"kind": "ConductRecipe", "recipe_id": recipe_id, "name": "Darks {fired_at}", **fields}


def series(plan_id: UUID, recipe_id: UUID, **fields: Any) -> Raw:
    """A run as a target, with one phase."""
    phases = [{"recipe_id": recipe_id, "name": "Flats {count}"}]
    return {"kind": "ConductPlan", "plan_id": plan_id, "name": "Survey {count}", "phases": phases, **fields}


def define_schedule(world: World, target: Raw | None = None, **fields: Any) -> UUID:
    """Define a schedule (nightly darks by default) and return its id."""
    asked = {"name": "Nightly darks", "calendar": NIGHTLY, "target": target or darks(recipe(world))}
    return world.create(DefineSchedule(**{**asked, **fields}))


def schedule_of(world: World, id: UUID) -> Schedule:
    state: Schedule = world.state(Schedule, id)
    return state


def record_firing(world: World, id: UUID, at: datetime = SUMMER, **fields: Any) -> None:
    """Record a firing that opened its conduct."""
    what = {"firing_id": new_id(), "procedure_id": new_id(), **fields}
    world.when(RecordScheduleFiring(scheduled_at=at, **what), on=id)


def record_refused_firing(world: World, id: UUID, at: datetime = SUMMER, **fields: Any) -> None:
    why = {"firing_id": new_id(), "code": "UnauthorizedError", "detail": "It was refused.", **fields}
    world.when(RecordScheduleFiringRefusal(scheduled_at=at, **why), on=id)
