"""Expansion: a recipe's steps with the operator's bindings put in, which a procedure conducts. It is pure: one step in, one
out, in order; only a BindingRef is replaced, by the value bound and never by text. Equal input has an equal hash."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from baton.domain.kernel import Value
from baton.domain.recipe import steps as kinds
from baton.domain.recipe.step_checks import first_fault
from baton.domain.recipe.steps import BindingRef, RecipeStep, Step, StepLocation, literal, operands, references, wire_form
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.refusals import Conflict, Invalid, Unprocessable
from baton.domain.shared.schema import Schema, declared_units
from baton.domain.shared.text import shorten
from baton.domain.shared.units import is_same_unit

EXPANDER_VERSION = 1  # Raised when the same steps and bindings would expand differently; recorded with every expansion.
MAX_STEPS = 10_000  # Steps and closing steps of one procedure together.

RESOLVED: TypeAdapter[Step] = TypeAdapter(Step)
NO_UNITS: Mapping[str, str] = MappingProxyType({})


class InvalidProcedureBindingsError(Invalid, context="recipe"):
    """A binding breaks the capability's parameter schema, or cannot stand where the steps use it."""


class UnboundRecipeBindingError(Unprocessable, context="recipe"):
    """The steps refer to a parameter that nothing was bound to."""


class ProcedureExpansionOverflowError(Unprocessable, context="recipe"):
    """The steps are more than one procedure may have."""


class UnitMismatchError(Conflict, context="recipe", reason="unit_mismatch"):
    """A step counts in another unit than what it reads or writes, and one cannot be converted to the other here."""


class Expansion(Value):
    """The resolved steps of a procedure."""

    steps: tuple[Step, ...]
    closing_steps: tuple[Step, ...]

    @property
    def every_step(self) -> tuple[Step, ...]:
        return (*self.steps, *self.closing_steps)

    @property
    def step_count(self) -> int:
        return len(self.steps) + len(self.closing_steps)

    @property
    def steps_hash(self) -> str:
        return steps_hash(self.steps, self.closing_steps)


def expansion_of(
    steps: Sequence[RecipeStep],
    closing_steps: Sequence[RecipeStep],
    bindings: Mapping[str, object],
    units: Mapping[str, str] = NO_UNITS,
) -> Expansion:
    """Return both lists of a recipe expanded with the same bindings, which are counted in these units."""
    expansion = Expansion(
        steps=expand(steps, bindings, units=units), closing_steps=expand(closing_steps, bindings, "closing_steps", units)
    )
    check_step_count(expansion.step_count)
    return expansion


def expand(
    steps: Sequence[RecipeStep], bindings: Mapping[str, object], name: str = "steps", units: Mapping[str, str] = NO_UNITS
) -> tuple[Step, ...]:
    """Return the steps of one list with every BindingRef replaced; unused bindings are ignored."""
    return tuple(_resolve_step(step, StepLocation(name, index), bindings, units) for index, step in enumerate(steps))


def check_step_count(count: int) -> None:
    """Refuse more steps than one procedure may have."""
    if count > MAX_STEPS:
        detail = f"The procedure would have {count} steps, and {MAX_STEPS} is the most; divide the recipe."
        raise ProcedureExpansionOverflowError(detail, facts={"step_count": count, "cap": MAX_STEPS})


def steps_hash(steps: Sequence[RecipeStep], closing_steps: Sequence[RecipeStep]) -> str:
    """Return the hash of two lists of steps; sentinels count as they are written."""
    return content_hash({"closing_steps": wire_form(closing_steps), "steps": wire_form(steps)})


def binding_units(steps: Iterable[RecipeStep], schema: Schema | None) -> dict[str, str]:
    """Return the units of the parameters that steps write to a signal or compare with one, as a schema declares them."""
    measuring = (kinds.RecipeSetpointStep, kinds.RecipeCheckStep)
    names = {ref.name for step in steps if isinstance(step, measuring) for ref in references(step, BindingRef)}
    declared = declared_units(schema) if names else {}
    found = ((name, declared.get(name) or declared.get(f"{name}[]")) for name in sorted(names))
    return {name: unit[1] for name, unit in found if unit is not None}


def unit_in(step: RecipeStep, place: StepLocation, units: Mapping[str, str]) -> str | None:
    """Return the unit that a step counts in, by itself or by the binding that it uses."""
    if not isinstance(step, kinds.RecipeSetpointStep | kinds.RecipeCheckStep):
        return getattr(step, "unit", None)
    unit = step.unit
    for reference in references(step, BindingRef):
        unit = one_unit(place, unit, f"its binding {reference.name}", units.get(reference.name))
    return unit


def _resolve_step(
    step: RecipeStep, place: StepLocation, bindings: Mapping[str, object], units: Mapping[str, str] = NO_UNITS
) -> Step:
    fields: dict[str, object] = dict(step)
    if (unit := unit_in(step, place, units)) is not None:
        fields["unit"] = unit
    values = {path: _bound(value, bindings) for path, value in operands(step)}
    match step:
        case kinds.RecipeSetpointStep():
            fields["value"] = values["value"]
        case kinds.RecipeActionStep():
            fields["params"] = {key: values[f"params.{key}"] for key in step.params}
        case kinds.RecipeCheckStep():
            fields["criterion"] = {**dict(step.criterion), "expected": values["criterion.expected"]}
        case kinds.RecipeComputeStep():
            fields["parameters"] = {key: values[f"parameters.{key}"] for key in step.parameters}
    try:
        return RESOLVED.validate_python(fields)
    except ValidationError as error:
        path, reason, words = first_fault(error)
        raise unfit(dict(operands(step))[path].name, reason, f"{words} to stand in {place}.{path}") from None


def one_unit(place: StepLocation, own: str | None, whose: str, other: str | None) -> str | None:
    """Return the unit of a step that is declared by itself, by what its value comes from, or alike by both."""
    if own is not None and other is not None and not is_same_unit(own, other):
        raise UnitMismatchError(
            f"{place} counts in {shorten(own)}, and {whose} in {shorten(other)}; give the step the same unit, or none.",
            facts={"unit": own, "other_unit": other, "step": place._asdict()},
        )
    return own if own is not None else other


def _bound(value: object, bindings: Mapping[str, object]) -> Any:
    if not isinstance(value, BindingRef):
        return value
    if value.name not in bindings:
        detail = f"Nothing is bound to {value.name}, which the steps refer to; add it to the bindings."
        raise UnboundRecipeBindingError(detail, facts={"binding_name": value.name})
    try:
        return literal(bindings[value.name])
    except PydanticCustomError as fault:
        raise unfit(value.name, fault.type, fault.message()) from None


def unfit(name: str, reason: str, words: str) -> InvalidProcedureBindingsError:
    """Return the refusal of a binding whose value is unfit where the steps use it."""
    detail = f"The binding {name} {words}; bind another value."
    return InvalidProcedureBindingsError(detail, reason=reason, facts={"binding_name": name})
