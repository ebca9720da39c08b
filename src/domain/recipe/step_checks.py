"""The checks of steps: their shapes as they are read from a request, and the references between them. The edge lets any list
through and documents its form, so that a step is refused here in its turn, by its own class. Steps and closing steps are
judged as one sequence; coordinates of a steered loop have no declaring step and are exempt."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import GetJsonSchemaHandler, TypeAdapter, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from baton.domain.recipe import steps as step_model
from baton.domain.recipe.steps import LocatedStep, OutputRef, RecipeStep, StepLocation, declared_output, misplaced_sentinel
from baton.domain.shared.refusals import Unprocessable
from baton.domain.shared.schema import Schema
from baton.domain.shared.text import shorten


class InvalidRecipeStepShapeError(Unprocessable, context="recipe"):
    """A step has an unknown kind or field, a value its kind does not take, or a sentinel where none may stand."""


@dataclass(frozen=True)
class DocumentedForm:
    """Marks an input that the domain reads itself: the documentation shows the form, the edge does not judge it."""

    form: Any

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(TypeAdapter(self.form).core_schema)


RawSteps = Annotated[tuple[Any, ...], DocumentedForm(tuple[RecipeStep, ...])]  # A list of steps as it was sent.

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
}  # The reason and the words for each kind of fault.


def read_steps(raw: Sequence[object]) -> tuple[RecipeStep, ...]:
    """Return the steps of the main list; refuse the first one that is misshapen."""
    return tuple(_read(item, StepLocation("steps", index)) for index, item in enumerate(raw))


def read_closing_steps(raw: Sequence[object]) -> tuple[RecipeStep, ...]:
    """Return the closing steps, which may use neither the loop's coordinates nor artifacts of the main list."""
    closing = []
    for index, item in enumerate(raw):
        place = StepLocation("closing_steps", index)
        step = _read(item, place)
        for path, value in step_model.operands(step):
            if isinstance(value, step_model.SteeringRef | OutputRef):
                fault = misplaced_sentinel(type(value))
                raise misshapen(place, path, fault.type, fault.message())
        if declared_output(step) is not None:
            raise misshapen(place, "output_ref_name", "closing_output", "must be null in a closing step")
        closing.append(step)
    return tuple(closing)


def _read(item: object, place: StepLocation) -> RecipeStep:
    try:
        step = ARMS.validate_python(item)
    except ValidationError as error:
        raise misshapen(place, *first_fault(error)) from None
    for path, name in step_model.named_parts(step):
        if not name.strip():
            raise misshapen(place, path, "blank", "must not be blank")
        if name != name.strip():
            raise misshapen(place, path, "untrimmed", "must not begin or end with white space")
    return step


def misshapen(place: StepLocation, path: str, reason: str, words: str) -> InvalidRecipeStepShapeError:
    """Return the refusal of a step for the value at this path."""
    detail = f"{place}.{path[:200]} {words}; correct the step." if path else f"{place} {words}; correct the step."
    return InvalidRecipeStepShapeError(detail, reason=reason, facts={**place._asdict(), "path": path[:200]})


def first_fault(error: ValidationError) -> tuple[str, str, str]:
    """Return the path, the reason and the words of the first fault of a step."""
    fault = error.errors(include_url=False)[0]
    parts = [str(part) for part in fault["loc"][1:]]
    if parts[:1] in (["criterion"], ["verify"]):
        del parts[1:2]  # the tag of the union
    path = ".".join(parts)
    if fault["type"] not in FAULTS:
        return path, fault["type"], fault["msg"]
    if fault["type"] != "missing" and (key := step_model.reserved_key(fault["input"])) is not None:
        stray = misplaced_sentinel(step_model.RESERVED[key])
        return path, stray.type, stray.message()
    reason, words = FAULTS[fault["type"]]
    return path, reason, words.format(**fault.get("ctx", {}))


class RecipeRequiresCapabilityParametersSchemaError(Unprocessable, context="recipe"):
    """Steps refer to parameters, but the capability declares none."""


class RecipeBindingReferencesUnknownParameterError(Unprocessable, context="recipe"):
    """A step refers to a parameter that the capability's schema does not declare."""


class DuplicateRecipeCaptureError(Unprocessable, context="recipe"):
    """Two steps fill the same slot."""


class UnboundRecipeCaptureError(Unprocessable, context="recipe"):
    """A step uses a slot that no earlier step fills."""


class DuplicateRecipeOutputError(Unprocessable, context="recipe"):
    """Two compute steps publish an artifact under the same name."""


class UnboundRecipeOutputError(Unprocessable, context="recipe"):
    """A compute step reads an output that no earlier compute step publishes."""


def check_steps(steps: Sequence[RecipeStep], closing_steps: Sequence[RecipeStep], schema: Schema | None) -> None:
    """Refuse steps that are inconsistent with each other or with the capability's parameters."""
    sequence = step_model.located_steps(steps, closing_steps)
    check_parameters(sequence, schema)
    check_references(sequence)


def check_references(sequence: Sequence[LocatedStep]) -> None:
    """Refuse steps that are inconsistent with each other."""
    check_captures(sequence)
    check_outputs(sequence)


def check_parameters(sequence: Sequence[LocatedStep], schema: Schema | None) -> None:
    """Refuse references to parameters that the schema does not declare at its top level."""
    names = step_model.binding_names(step for _, step in sequence)
    if names and schema is None:
        lack = f"The capability declares no parameters, but the steps refer to {_name_list(names)}"
        detail = f"{lack}; version the capability with a schema or write literals."
        raise RecipeRequiresCapabilityParametersSchemaError(detail, facts={"binding_names": list(names)})
    declared = sorted((schema or {}).get("properties", {}))
    if unknown := next((name for name in names if name not in declared), None):
        detail = (
            f"The capability has no parameter {unknown}; use one of those it declares: {_name_list(declared) or 'none'}."
        )
        facts = {"binding_name": unknown, "declared_names": declared}
        raise RecipeBindingReferencesUnknownParameterError(detail, facts=facts)


def check_captures(sequence: Sequence[LocatedStep]) -> None:
    """Refuse slots filled twice, then slots used before they are filled."""
    filled: dict[str, StepLocation] = {}
    for place, name in _declarations(sequence, step_model.declared_capture):
        if name in filled:
            detail = f"{place} fills the slot {name}, which {filled[name]} fills already; give each slot a name of its own."
            raise DuplicateRecipeCaptureError(detail, facts={**place._asdict(), "capture_name": name})
        filled[name] = place
    for place, step in sequence:
        for name in (reference.capture_name for reference in step_model.references(step, step_model.CaptureRef)):
            if name not in filled or not _before(filled[name], place):
                detail = f"{place} uses the slot {name}, which no earlier step fills; capture it first."
                raise UnboundRecipeCaptureError(detail, facts={**place._asdict(), "capture_name": name})


def check_outputs(sequence: Sequence[LocatedStep]) -> None:
    """Refuse outputs published twice, read before they are published, or left over beside the one of record."""
    published: dict[str, StepLocation] = {}
    for place, name in _declarations(sequence, declared_output):
        if name in published:
            detail = f"{place} publishes the output {name}, which {published[name]} publishes already; give it another name."
            raise DuplicateRecipeOutputError(detail, facts={**place._asdict(), "output_name": name})
        published[name] = place
    loose = dict.fromkeys(published)
    for place, step in sequence:
        for name in (reference.output_name for reference in step_model.references(step, OutputRef)):
            if name not in published or not _before(published[name], place):
                detail = f"{place} reads the output {name}, which no earlier compute step publishes; publish it first."
                raise UnboundRecipeOutputError(detail, facts={**place._asdict(), "output_name": name})
            loose.pop(name, None)
    if published and len(loose) != 1:
        rule = f"Exactly one output must stay unread as the one of record, but {_name_list(loose) or 'none'} would"
        detail = f"{rule}; read the others in later steps or do not publish them."
        raise InvalidRecipeStepShapeError(detail, reason="one_sink", facts={"output_names": list(loose)})


def _declarations(
    sequence: Sequence[LocatedStep], declared: Callable[[RecipeStep], str | None]
) -> Iterator[tuple[StepLocation, str]]:
    return ((place, name) for place, step in sequence if (name := declared(step)) is not None)


def _before(one: StepLocation, other: StepLocation) -> bool:
    """Return whether a step comes before another; closing steps come after all others."""
    return (one.list != "steps", one.step_index) < (other.list != "steps", other.step_index)


def _name_list(names: Iterable[str]) -> str:
    return shorten(", ".join(names))
