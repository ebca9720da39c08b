"""The steps of recipes and procedures: five kinds in one list, without branch, loop or fork; what they declare and refer to.

A recipe's step may hold a BindingRef; the step it resolves to is the same without one, and is what a conduct walks. Both are
written alike: every field with its default, except a deadline that is not set.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeVar, assert_never

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator
from pydantic_core import PydanticCustomError

from baton.domain.kernel import Value
from baton.domain.recipe.sentinels import (
    JSON,
    MEMBERS,
    NUMBER,
    TEXT,
    VALUE,
    BindingRef,
    CaptureRef,
    Name,
    OutputRef,
    Sentinel,
    SteeringRef,
)
from baton.domain.shared.annotations import Seconds
from baton.domain.shared.text import TRIMMED

Address = Annotated[StrictStr, Field(min_length=1, max_length=300, json_schema_extra={"pattern": TRIMMED})]
"""A control address, opaque here; that nothing surrounds it is judged when a step is read."""
Timeout = Annotated[StrictFloat, Field(gt=0, le=3600), Seconds]

Plain = StrictBool | StrictInt | StrictFloat | StrictStr | tuple[Any, ...]
Number = StrictInt | StrictFloat
BoundValue = Annotated[Plain | BindingRef | CaptureRef | SteeringRef, VALUE]
BoundNumber = Annotated[Number | BindingRef | CaptureRef | SteeringRef, NUMBER]
ResolvedValue = Annotated[Plain | CaptureRef | SteeringRef, VALUE]
ResolvedNumber = Annotated[Number | CaptureRef | SteeringRef, NUMBER]
AS_READ = Field(union_mode="left_to_right")  # A plain object is never tried as a sentinel: `Operand` tells the two apart.
ActionParameter = Annotated[Any | BindingRef, AS_READ, JSON]
ComputeParameter = Annotated[Any | BindingRef | CaptureRef | SteeringRef, AS_READ, JSON]
ResolvedActionParameter = Annotated[Any, JSON]
ResolvedComputeParameter = Annotated[Any | CaptureRef | SteeringRef, AS_READ, JSON]


class RecipeEqualsCriterion(Value):
    """The reading equals the expected value."""

    kind: Literal["equals"]
    expected: BoundValue


class RecipeToleranceCriterion(Value):
    """The reading lies no farther from the expected number than the tolerance, boundary included."""

    kind: Literal["within_tolerance"]
    expected: BoundNumber
    tolerance: Annotated[StrictFloat, Field(ge=0)]


class EqualsCriterion(RecipeEqualsCriterion):
    """The reading equals the expected value, which is known or will be when the step is reached."""

    expected: ResolvedValue


class ToleranceCriterion(RecipeToleranceCriterion):
    """The reading lies within the tolerance of a number that is known or will be when the step is reached."""

    expected: ResolvedNumber


class PlainEqualsCriterion(EqualsCriterion):
    """The value equals the expected one, which is given."""

    expected: Annotated[Plain, VALUE]


class PlainToleranceCriterion(ToleranceCriterion):
    """The value lies within the tolerance of a given number."""

    expected: Annotated[Number, NUMBER]


RecipeCriterion = Annotated[RecipeEqualsCriterion | RecipeToleranceCriterion, Field(discriminator="kind")]
Criterion = Annotated[EqualsCriterion | ToleranceCriterion, Field(discriminator="kind")]
PlainCriterion = Annotated[PlainEqualsCriterion | PlainToleranceCriterion, Field(discriminator="kind")]


class RecipeSetpointStep(Value):
    """Write a value and wait until it is confirmed; with `verify`, read it back once as evidence."""

    kind: Literal["setpoint"]
    address: Address
    value: BoundValue
    verify: StrictBool = False


class RecipeActionStep(Value):
    """Run a registered action body with these parameters."""

    kind: Literal["action"]
    name: Name
    params: Annotated[dict[str, ActionParameter], MEMBERS] = {}


class RecipeCheckStep(Value):
    """Read once, or watch until the deadline, and judge the reading."""

    kind: Literal["check"]
    address: Address
    criterion: RecipeCriterion
    timeout: Annotated[Timeout | None, Field(exclude_if=lambda timeout: timeout is None)] = None


class RecipeCaptureStep(Value):
    """Read a number and keep it in a slot for later steps."""

    kind: Literal["capture"]
    address: Address
    capture_name: Name


class RecipeComputeStep(Value):
    """Run a program: with `output_uri` it writes an artifact, without one it returns measurements."""

    kind: Literal["compute"]
    command: Annotated[tuple[Annotated[StrictStr, Field(min_length=1)], ...], Field(min_length=1)]
    input_uris: tuple[Annotated[StrictStr | OutputRef, TEXT], ...] = ()
    output_uri: StrictStr | None = None
    parameters: Annotated[dict[str, ComputeParameter], MEMBERS] = {}
    capture_name: Name | None = None
    output_ref_name: Name | None = None

    @model_validator(mode="after")
    def _one_arm(self) -> Self:
        if self.capture_name is not None and self.output_uri is not None:
            raise PydanticCustomError("wrong_arm", "takes no capture_name beside output_uri")
        if self.output_ref_name is not None and self.output_uri is None:
            raise PydanticCustomError("wrong_arm", "takes no output_ref_name without output_uri")
        return self


RecipeStep = Annotated[
    RecipeSetpointStep | RecipeActionStep | RecipeCheckStep | RecipeCaptureStep | RecipeComputeStep,
    Field(discriminator="kind"),
]


class SetpointStep(RecipeSetpointStep):
    """Write a value that is known or will be when the step is reached."""

    value: ResolvedValue


class ActionStep(RecipeActionStep):
    """Run a registered action body with parameters that are all known."""

    params: Annotated[dict[str, ResolvedActionParameter], MEMBERS] = {}


class CheckStep(RecipeCheckStep):
    """Judge a reading by a criterion that is known or will be when the step is reached."""

    criterion: Criterion


class CaptureStep(RecipeCaptureStep):
    """Read a number and keep it in a slot for later steps."""


class ComputeStep(RecipeComputeStep):
    """Run a program with parameters that are known or will be when the step is reached."""

    parameters: Annotated[dict[str, ResolvedComputeParameter], MEMBERS] = {}


Step = Annotated[SetpointStep | ActionStep | CheckStep | CaptureStep | ComputeStep, Field(discriminator="kind")]
"""What a conduct walks."""


def wire_form(steps: Sequence[RecipeStep]) -> list[dict[str, Any]]:
    """Return the steps as plain JSON data, the form they are requested, stored, shown and hashed in."""
    return [step.model_dump(mode="json") for step in steps]


T = TypeVar("T", bound=Sentinel)


class StepLocation(NamedTuple):
    """The list and the index of a step."""

    list: str
    step_index: int

    def __str__(self) -> str:
        return f"{self.list}[{self.step_index}]"


LocatedStep = tuple[StepLocation, RecipeStep]


def located_steps(steps: Sequence[RecipeStep], closing_steps: Sequence[RecipeStep]) -> list[LocatedStep]:
    """Return both lists as the one sequence they are walked in."""
    lists = {"steps": steps, "closing_steps": closing_steps}
    return [(StepLocation(name, index), step) for name, listed in lists.items() for index, step in enumerate(listed)]


def operands(step: RecipeStep) -> Iterator[tuple[str, Any]]:
    """Yield every value of a step that may be a sentinel, with its path."""
    match step:
        case RecipeSetpointStep():
            yield "value", step.value
        case RecipeActionStep():
            for key, value in step.params.items():
                yield f"params.{key}", value
        case RecipeCheckStep():
            yield "criterion.expected", step.criterion.expected
        case RecipeCaptureStep():
            return
        case RecipeComputeStep():
            for index, uri in enumerate(step.input_uris):
                yield f"input_uris.{index}", uri
            for key, value in step.parameters.items():
                yield f"parameters.{key}", value
        case _:
            assert_never(step)


def named_parts(step: RecipeStep) -> Iterator[tuple[str, str]]:
    """Yield the address and the names in a step with their paths; names of parameters belong to their schema."""
    for field in ("address", "name", "capture_name", "output_ref_name"):
        if (name := getattr(step, field, None)) is not None:
            yield field, name
    for path, value in operands(step):
        if isinstance(value, Sentinel) and not isinstance(value, BindingRef):
            for name in dict(value).values():
                yield path, name


def references(step: RecipeStep, kind: type[T]) -> Iterator[T]:
    """Return the sentinels of one kind in a step."""
    return (value for _, value in operands(step) if isinstance(value, kind))


def declared_capture(step: RecipeStep) -> str | None:
    """Return the slot a step fills, or None."""
    return step.capture_name if isinstance(step, RecipeCaptureStep | RecipeComputeStep) else None


def declared_output(step: RecipeStep) -> str | None:
    """Return the output a step publishes its artifact as, or None."""
    return step.output_ref_name if isinstance(step, RecipeComputeStep) else None


def binding_names(steps: Iterable[RecipeStep]) -> tuple[str, ...]:
    """Return the parameters that steps leave to the operator, in alphabetical order."""
    return tuple(sorted({reference.name for step in steps for reference in references(step, BindingRef)}))
