"""Registering from a recipe: bindings completed from the run, and what cannot be expanded refused."""

from collections.abc import Callable
from itertools import combinations
from typing import Any
from uuid import UUID

import pytest

from baton.domain.procedure.procedure import Procedure, ProcedureRecipeExpanded, ProcedureRegistered
from baton.domain.recipe.capability import Capability, DeprecateCapability, VersionCapability
from baton.domain.recipe.recipe import DefineRecipe, DeprecateRecipe
from baton.domain.start.registration import RegisterProcedure, RegisterProcedureFromRecipe
from tests.support.domain.run_beamline import Beamline
from tests.support.domain.templates import parameters
from tests.support.domain.world import expect_refusal, new_id

EXPOSE = [{"kind": "action", "name": "collect", "params": {"dwell": {"__binding__": "dwell"}, "repetitions": 2}}]
HOME = [{"kind": "setpoint", "address": "bl7:shutter", "value": 0}]


def recipe(line: Beamline) -> UUID:
    asked = {"name": "flat_field_recipe", "capability_id": line.hutch.capability_id}
    return line.world.create(DefineRecipe(**asked, steps=EXPOSE, closing_steps=HOME))


def register(recipe_id: UUID, **fields: Any) -> RegisterProcedureFromRecipe:
    task = {"name": "Flats 1 April", "kind": "acquisition", "recipe_id": recipe_id}
    return RegisterProcedureFromRecipe(**{**task, "bindings": {"dwell": 0.1, "repetitions": 20}, **fields})


def test_what_it_was_made_from_is_recorded_with_its_hashes(line: Beamline) -> None:
    recipe_id = recipe(line)
    first, second = line.world.when(register(recipe_id))
    assert isinstance(first, ProcedureRegistered)
    assert isinstance(second, ProcedureRecipeExpanded)
    assert (second.recipe_id, second.recipe_version, second.step_count) == (recipe_id, None, 2)
    assert second.bindings == {"dwell": 0.1, "repetitions": 20}
    state: Procedure = line.world.state(Procedure, first.stream_id)
    assert (state.recipe_id, state.capability_id) == (recipe_id, line.hutch.capability_id)


def test_what_is_not_bound_comes_from_the_run_and_what_differs_is_said(line: Beamline) -> None:
    recipe_id, run_id = recipe(line), line.start(override_parameters={"dwell": 0.05})
    _, defaulted = line.world.when(register(recipe_id, parent_run_id=run_id, bindings={"repetitions": 20}))
    assert isinstance(defaulted, ProcedureRecipeExpanded)
    assert (defaulted.bindings, defaulted.overridden) == ({"dwell": 0.05, "repetitions": 20}, ())
    _, given = line.world.when(register(recipe_id, parent_run_id=run_id, bindings={"dwell": 0.2, "repetitions": 20}))
    assert isinstance(given, ProcedureRecipeExpanded)
    assert given.overridden == ("dwell",)


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"recipe_id": new_id()}, "RecipeNotFoundError"),
        ({"bindings": {}}, "UnboundRecipeBindingError"),
        ({"bindings": {"dwell": 0.1}}, "InvalidProcedureBindingsError"),
    ],
    ids=["recipe", "nothing bound", "required missing"],
)
def test_what_cannot_be_expanded_is_refused(line: Beamline, fields: dict[str, Any], refusal: str) -> None:
    recipe_id = recipe(line)
    with expect_refusal(refusal):
        line.world.when(register(**{"recipe_id": recipe_id, **fields}))


def deprecate_recipe(line: Beamline, recipe_id: UUID) -> dict[str, Any]:
    line.world.when(DeprecateRecipe(), on=recipe_id)
    return {}


def deprecate_capability(line: Beamline, recipe_id: UUID) -> dict[str, Any]:
    line.world.when(DeprecateCapability(), on=line.hutch.capability_id)
    return {}


def version_capability(line: Beamline, **changes: Any) -> dict[str, Any]:
    """Version the capability with what it has but for these changes, which may meet others."""
    known = line.world.state(Capability, line.hutch.capability_id)
    kept = {name: getattr(known, name) for name in VersionCapability.model_fields if name != "version_tag"}
    line.world.when(VersionCapability(**{**kept, **changes}, version_tag=str(new_id())), on=line.hutch.capability_id)
    return {}


def drop_parameter(line: Beamline, recipe_id: UUID) -> dict[str, Any]:
    return version_capability(line, parameters_schema=parameters("repetitions", repetitions={"type": "integer"}))


def leave_to_methods(line: Beamline, recipe_id: UUID) -> dict[str, Any]:
    return version_capability(line, executor_shapes=["METHOD"])


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (deprecate_capability, "ProcedureBoundCapabilityDeprecatedError"),
        (leave_to_methods, "ProcedureCapabilityExecutorMismatchError"),
    ],
)
def test_a_procedure_without_a_recipe_needs_its_capability_too(line: Beamline, change: Any, refusal: str) -> None:
    change(line, new_id())
    with expect_refusal(refusal):
        line.world.when(RegisterProcedure(name="x", kind="y", capability_id=line.hutch.capability_id))


def test_a_parameter_that_the_capability_gave_up_makes_the_recipe_stale(line: Beamline) -> None:
    recipe_id = recipe(line)
    drop_parameter(line, recipe_id)
    with expect_refusal("ProcedureBindingsStaleError") as caught:
        line.world.when(register(recipe_id))
    assert caught.value.facts == {"parameter_names": ["dwell"]}


ORDER: list[tuple[str, Callable[[Beamline, UUID], dict[str, Any]]]] = [
    ("RunNotFoundError", lambda line, recipe_id: {"parent_run_id": new_id()}),
    ("ProcedureBoundRecipeDeprecatedError", deprecate_recipe),
    ("ProcedureBoundCapabilityDeprecatedError", deprecate_capability),
    ("ProcedureBindingsStaleError", drop_parameter),
    ("ProcedureCapabilityExecutorMismatchError", leave_to_methods),
    ("InvalidProcedureBindingsError", lambda line, recipe_id: {"bindings": {"repetitions": "many"}}),
    ("InvalidProcedureNameError", lambda line, recipe_id: {"name": "  "}),
    ("InvalidProcedureKindError", lambda line, recipe_id: {"kind": "  "}),
    ("InvalidProcedureIterationCapError", lambda line, recipe_id: {"max_consecutive_unconverged_iterations": 0}),
    ("UnboundRecipeBindingError", lambda line, recipe_id: {"bindings": {}}),
]
"""The refusals in the order they are promised, and how each is brought about."""
PAIRS = [(one, other) for one, other in combinations(range(len(ORDER)), 2) if {one, other} != {5, 9}]
"""Every two of them; the same bindings cannot be both wrong and missing."""
VERSIONED_LAST = (deprecate_recipe, deprecate_capability)
"""What leaves a template as it is from then on, and so comes after its other changes."""


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=[f"{ORDER[one][0]}-{ORDER[other][0]}" for one, other in PAIRS])
def test_of_two_causes_the_one_that_is_promised_first_refuses(line: Beamline, first: int, second: int) -> None:
    recipe_id = recipe(line)
    fields: dict[str, Any] = {}
    for cause in sorted((ORDER[first][1], ORDER[second][1]), key=lambda cause: cause in VERSIONED_LAST):
        fields |= cause(line, recipe_id)
    with expect_refusal(ORDER[first][0]):
        line.world.when(register(recipe_id, **fields))
