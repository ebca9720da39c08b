"""How steps are read from a request: shape by shape, each fault refused with the place it was found at.

The edge lets any list through and documents the form it must have, so that a step refused here is refused in its turn,
by its own class and in a sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import GetJsonSchemaHandler, TypeAdapter, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails

from baton.domain.recipe.references import Place, declared_output, names_in, operands
from baton.domain.recipe.sentinels import RESERVED, OutputRef, SteeringRef, misplaced, reserved_key
from baton.domain.recipe.steps import RecipeStep
from baton.domain.shared.refusals import Unprocessable


class InvalidRecipeStepShapeError(Unprocessable, context="recipe"):
    """A step has an unknown kind or field, a value its kind does not take, or a sentinel where none may stand."""


@dataclass(frozen=True)
class Documented:
    """Marks an input that the domain reads itself: the documentation shows the form, the edge does not judge it."""

    form: Any

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(TypeAdapter(self.form).core_schema)


RawSteps = Annotated[tuple[Any, ...], Documented(tuple[RecipeStep, ...])]
"""A list of steps as it was sent."""

ARMS: TypeAdapter[RecipeStep] = TypeAdapter(RecipeStep)

FAULTS = {
    "missing": ("missing_field", "is missing"),
    "extra_forbidden": ("unknown_field", "is no field of this kind"),
    "union_tag_not_found": ("unknown_kind", "has no kind"),
    "union_tag_invalid": ("unknown_kind", "has an unknown kind, give one of {expected_tags}"),
    "model_attributes_type": ("wrong_type", "must be an object"),
    "dict_type": ("wrong_type", "must be an object"),
    "tuple_type": ("wrong_type", "must be a list"),
    "string_type": ("wrong_type", "must be a text"),
    "bool_type": ("wrong_type", "must be true or false"),
    "float_type": ("wrong_type", "must be a number"),
    "finite_number": ("not_finite", "must be a finite number"),
    "string_too_short": ("out_of_bounds", "must not be empty"),
    "string_too_long": ("out_of_bounds", "must have at most {max_length} characters"),
    "too_short": ("out_of_bounds", "must not be empty"),
    "greater_than": ("out_of_bounds", "must be greater than {gt:g}"),
    "greater_than_equal": ("out_of_bounds", "must be at least {ge:g}"),
    "less_than_equal": ("out_of_bounds", "must be at most {le:g}"),
}
"""What breaking each rule of a shape is called, and what is said about it."""


def read_steps(raw: Sequence[Any]) -> tuple[RecipeStep, ...]:
    """The steps of the main list; refused at the first one that has no proper shape."""
    return tuple(_read(item, Place("steps", index)) for index, item in enumerate(raw))


def read_closing_steps(raw: Sequence[Any]) -> tuple[RecipeStep, ...]:
    """The closing steps, which know neither the loop's coordinates nor the artifacts of the main list."""
    closing = []
    for index, item in enumerate(raw):
        place = Place("closing_steps", index)
        step = _read(item, place)
        for path, value in operands(step):
            if isinstance(value, SteeringRef | OutputRef):
                fault = misplaced(type(value))
                raise misshapen(place, path, fault.type, fault.message())
        if declared_output(step) is not None:
            raise misshapen(place, "output_ref_name", "closing_output", "must be null in a closing step")
        closing.append(step)
    return tuple(closing)


def _read(item: Any, place: Place) -> RecipeStep:
    try:
        step = ARMS.validate_python(item)
    except ValidationError as error:
        raise misshapen(place, *first_fault(error)) from None
    for path, name in names_in(step):
        if not name.strip():
            raise misshapen(place, path, "blank", "must not be blank")
        if name != name.strip():
            raise misshapen(place, path, "untrimmed", "must not begin or end with white space")
    return step


def misshapen(place: Place, path: str, reason: str, words: str) -> InvalidRecipeStepShapeError:
    """The refusal of a step for what stands at this path."""
    where = f"{place}.{path[:200]}" if path else str(place)
    return InvalidRecipeStepShapeError(
        f"{where} {words}; correct the step.", reason=reason, facts={**place._asdict(), "path": path[:200]}
    )


def first_fault(error: ValidationError) -> tuple[str, str, str]:
    """The path, the machine cause and the words of the first thing wrong with a step."""
    fault = error.errors(include_url=False)[0]
    path = path_of(fault)
    if fault["type"] not in FAULTS:
        return path, fault["type"], fault["msg"]
    if fault["type"] != "missing" and (key := reserved_key(fault["input"])) is not None:
        stray = misplaced(RESERVED[key])
        return path, stray.type, stray.message()
    reason, words = FAULTS[fault["type"]]
    return path, reason, words.format(**fault.get("ctx", {}))


def path_of(fault: ErrorDetails) -> str:
    """The dotted path of a fault inside its step, without the kinds that tell unions apart."""
    parts = [str(part) for part in fault["loc"][1:]]
    if parts[:1] == ["criterion"]:
        del parts[1:2]
    return ".".join(parts)
