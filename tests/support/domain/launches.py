"""Verbs to arrange launches with: recipes that realise what a plan is for, and what a launch has made."""

from typing import Any
from uuid import UUID

from baton.domain.launch.launch import Launch
from baton.domain.recipe.method import Method
from baton.domain.recipe.plan import Plan
from baton.domain.recipe.practice import Practice
from baton.domain.recipe.recipe import DefineRecipe
from baton.domain.target.start_launch import StartLaunch
from tests.support.domain.conducts import CLOSE_SHUTTER, STEPS, Raw
from tests.support.domain.run_beamline import Beamline
from tests.support.domain.world import World


def plan_recipe(line: Beamline, name: str = "Tomography scan", steps: list[Raw] = STEPS) -> UUID:
    """A recipe that realises what the beamline's plan is for."""
    world = line.world
    practice: Practice = world.state(Practice, world.state(Plan, line.plan_id).practice_id)
    realised = world.state(Method, practice.method_id).capability_id
    asked = {"name": name, "capability_id": realised, "steps": steps, "closing_steps": CLOSE_SHUTTER}
    return world.create(DefineRecipe(**asked))


def launch_plan(line: Beamline, **fields: Any) -> UUID:
    """Launch the beamline's plan, with its subject and campaign, and return the launch."""
    asked = {name: value for name, value in line.request.items() if name != "override_parameters"}
    line.world.when(StartLaunch(**{**asked, **fields}))
    return UUID(line.world.answer["launch_id"])


def launch_recipe(world: World, recipe_id: UUID, **fields: Any) -> UUID:
    world.when(StartLaunch(recipe_id=recipe_id, **fields))
    return UUID(world.answer["launch_id"])


def launch_of(world: World, id: UUID) -> Launch:
    state: Launch = world.state(Launch, id)
    return state
