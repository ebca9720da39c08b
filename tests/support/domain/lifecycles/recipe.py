"""The life of a recipe as the specification tabulates it."""

from typing import Any
from uuid import UUID

from tests.support.domain.flat_field import STEPS, recipe
from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb, at, reason_fields
from tests.support.domain.world import World

CURRENT = "Defined Versioned"


def recipe_begins(world: World) -> tuple[UUID, Scene]:
    return recipe(world), Scene()


def recipe_version_fields(scene: Scene) -> dict[str, Any]:
    return {"version_tag": "2026-Q2", "steps": STEPS[:4]}


RECIPE = Lifecycle(
    "Recipe",
    "define_recipe",
    recipe_begins,
    {"status": {"Defined": "", "Versioned": "version_recipe", "Deprecated": "deprecate_recipe"}},
    {
        "version_recipe": Verb(CURRENT, at("Versioned"), "RecipeCannotVersionError", given=recipe_version_fields),
        "deprecate_recipe": Verb(CURRENT, at("Deprecated"), "RecipeCannotDeprecateError", given=reason_fields),
    },
)

LIVES = (RECIPE,)
STATELESS: tuple[Lifecycle, ...] = ()
