"""Expansion: a recipe's steps with the operator's bindings put in, which is what a procedure conducts.

A pure function of steps and bindings: one step in, one out, in order; only a BindingRef is replaced, by the value bound and
never by text. Two processes that expand the same input agree on every byte of the hash.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from baton.domain.kernel import Value
from baton.domain.recipe.sentinels import BindingRef, literal
from baton.domain.recipe.step_checks import first_fault
from baton.domain.recipe.steps import (
    RecipeActionStep,
    RecipeCheckStep,
    RecipeComputeStep,
    RecipeSetpointStep,
    RecipeStep,
    Step,
    StepLocation,
    operands,
    wire_form,
)
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.refusals import Invalid, Unprocessable
from baton.domain.shared.schema import Schema, check_values

EXPANDER_VERSION = 1  # Raised when the same steps and bindings would expand differently; recorded with every expansion.
MAX_STEPS = 10_000  # Steps and closing steps of one procedure together.

RESOLVED: TypeAdapter[Step] = TypeAdapter(Step)


class InvalidProcedureBindingsError(Invalid, context="recipe"):
    """A binding breaks the capability's parameter schema, or cannot stand where the steps use it."""


class UnboundRecipeBindingError(Unprocessable, context="recipe"):
    """The steps refer to a parameter that nothing was bound to."""


class ProcedureExpansionOverflowError(Unprocessable, context="recipe"):
    """The steps are more than one procedure may have."""


class Expansion(Value):
    """The resolved steps of a procedure."""

    steps: tuple[Step, ...]
    closing_steps: tuple[Step, ...]

    @property
    def step_count(self) -> int:
        return len(self.steps) + len(self.closing_steps)

    @property
    def steps_hash(self) -> str:
        return steps_hash(self.steps, self.closing_steps)


def check_bindings(schema: Schema | None, bindings: Mapping[str, Any]) -> None:
    """Refuse bindings that break the capability's parameter schema."""
    check_values(schema, bindings, InvalidProcedureBindingsError)


def expansion_of(steps: Sequence[RecipeStep], closing_steps: Sequence[RecipeStep], bindings: Mapping[str, Any]) -> Expansion:
    """Return both lists of a recipe expanded with the same bindings."""
    expansion = Expansion(steps=expand(steps, bindings), closing_steps=expand(closing_steps, bindings, "closing_steps"))
    check_step_count(expansion.step_count)
    return expansion


def expand(steps: Sequence[RecipeStep], bindings: Mapping[str, Any], name: str = "steps") -> tuple[Step, ...]:
    """Return the steps of one list with every BindingRef replaced; unused bindings are ignored."""
    return tuple(_resolve_step(step, StepLocation(name, index), bindings) for index, step in enumerate(steps))


def check_step_count(count: int) -> None:
    """Refuse more steps than one procedure may have."""
    if count > MAX_STEPS:
        raise ProcedureExpansionOverflowError(
            f"The procedure would have {count} steps, and {MAX_STEPS} is the most; divide the recipe.",
            facts={"step_count": count, "cap": MAX_STEPS},
        )


def steps_hash(steps: Sequence[RecipeStep], closing_steps: Sequence[RecipeStep]) -> str:
    """Return the hash of two lists of steps; sentinels count as they are written."""
    return content_hash({"closing_steps": wire_form(closing_steps), "steps": wire_form(steps)})


def bindings_hash(bindings: Mapping[str, Any]) -> str:
    """Return the hash of a set of bindings."""
    return content_hash(bindings)


def _resolve_step(step: RecipeStep, place: StepLocation, bindings: Mapping[str, Any]) -> Step:
    fields: dict[str, Any] = dict(step)
    values = {path: _bound(value, bindings) for path, value in operands(step)}
    match step:
        case RecipeSetpointStep():
            fields["value"] = values["value"]
        case RecipeActionStep():
            fields["params"] = {key: values[f"params.{key}"] for key in step.params}
        case RecipeCheckStep():
            fields["criterion"] = {**dict(step.criterion), "expected": values["criterion.expected"]}
        case RecipeComputeStep():
            fields["parameters"] = {key: values[f"parameters.{key}"] for key in step.parameters}
    try:
        return RESOLVED.validate_python(fields)
    except ValidationError as error:
        path, reason, words = first_fault(error)
        raise unfit(dict(operands(step))[path].name, reason, f"{words} to stand in {place}.{path}") from None


def _bound(value: Any, bindings: Mapping[str, Any]) -> Any:
    if not isinstance(value, BindingRef):
        return value
    if value.name not in bindings:
        raise UnboundRecipeBindingError(
            f"Nothing is bound to {value.name}, which the steps refer to; add it to the bindings.",
            facts={"binding_name": value.name},
        )
    try:
        return literal(bindings[value.name])
    except PydanticCustomError as fault:
        raise unfit(value.name, fault.type, fault.message()) from None


def unfit(name: str, reason: str, words: str) -> InvalidProcedureBindingsError:
    """Return the refusal of a binding whose value is unfit where the steps use it."""
    return InvalidProcedureBindingsError(
        f"The binding {name} {words}; bind another value.", reason=reason, facts={"binding_name": name}
    )
