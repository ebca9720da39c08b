"""The steps of recipes and procedures: five kinds in one list, without branch, loop or fork; what they declare and refer to.

A value in a step is a JSON literal or a sentinel: an object with one key that is reserved everywhere in a step, so that data
and references are never taken for each other. A recipe's step may hold a BindingRef; the step it resolves to is the same
without one, and is what a conduct walks. Both are written alike: every field with its default, except an unset deadline.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeVar, assert_never, get_args

import pydantic
from pydantic import ConfigDict, Discriminator, Field, StrictBool, StrictFloat, StrictInt, StrictStr, Tag, model_validator
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from baton.domain.kernel import Value
from baton.domain.shared.annotations import Seconds
from baton.domain.shared.text import TRIMMED

MAX_DEPTH = 32  # Levels of lists and objects in one literal; every reader of JSON that a step meets takes that many.

ParameterName = Annotated[StrictStr, Field(min_length=1, max_length=100)]  # Exact; a schema may declare any.
Name = Annotated[ParameterName, Field(json_schema_extra={"pattern": TRIMMED})]
"""The name of an action, a slot, an axis or an output; that nothing surrounds it is judged when a step is read."""


class Sentinel(Value):
    """A value that is not known yet, by the name it will be found under."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)


class BindingRef(Sentinel):
    """The value an operator binds to a parameter when a procedure is registered; gone from resolved steps."""

    name: Annotated[ParameterName, Field(alias="__binding__")]


class CaptureRef(Sentinel):
    """The value an earlier step put into a slot."""

    capture_name: Annotated[Name, Field(alias="__capture__")]


class SteeringRef(Sentinel):
    """The coordinate that the decide loop sets on an axis before each pass."""

    steering_axis_name: Annotated[Name, Field(alias="__steering__")]


class OutputRef(Sentinel):
    """The address of the artifact an earlier compute step published."""

    output_name: Annotated[Name, Field(alias="__output__")]


RESERVED: dict[str, type[Sentinel]] = {
    "__binding__": BindingRef,
    "__capture__": CaptureRef,
    "__steering__": SteeringRef,
    "__output__": OutputRef,
}


def reserved_key(value: object) -> str | None:
    """Return the reserved key of an object, or None."""
    return next((key for key in RESERVED if key in value), None) if isinstance(value, Mapping) else None


def literal(value: object, depth: int = 0) -> Any:
    """Return the value as immutable plain data; raise a fault where it is no JSON or holds a reserved key."""
    match value:
        case None | bool() | str():
            return value
        case int() | float():
            if not is_finite(value):
                raise PydanticCustomError("not_finite", "must be a finite number that a double can hold")
            return value
        case list() | tuple() | Mapping() if depth == MAX_DEPTH:
            raise PydanticCustomError("too_deep", "nests deeper than {depth} levels", {"depth": MAX_DEPTH})
        case list() | tuple():
            return tuple(literal(item, depth + 1) for item in value)
        case Mapping():
            if (key := reserved_key(value)) is not None:
                raise misplaced_sentinel(RESERVED[key], "must hold no")
            return {str(key): literal(item, depth + 1) for key, item in value.items()}
        case Sentinel():
            raise misplaced_sentinel(type(value), "must hold no")
    raise PydanticCustomError("wrong_type", "must be plain JSON")


def is_finite(number: int | float) -> bool:
    """Return whether a number is finite as a double."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def misplaced_sentinel(sentinel: type[Sentinel], words: str = "takes no") -> PydanticCustomError:
    """Return the fault of a sentinel where only a literal may stand."""
    return PydanticCustomError("misplaced_sentinel", "{words} {sentinel}", {"words": words, "sentinel": sentinel.__name__})


@dataclass(frozen=True)
class Operand:
    """Marks a position of a step: literals of these types may stand there, and the sentinels its annotation names."""

    words: str
    types: tuple[type, ...]

    def __get_pydantic_core_schema__(self, source: object, handler: pydantic.GetCoreSchemaHandler) -> CoreSchema:
        sentinels = tuple(part for part in get_args(source) if isinstance(part, type) and issubclass(part, Sentinel))
        return core_schema.no_info_before_validator_function(lambda value: self.read(value, sentinels), handler(source))

    def read(self, value: Any, sentinels: tuple[type[Sentinel], ...]) -> Any:
        """Return the literal or sentinel at this position."""
        if (key := reserved_key(value)) is not None:
            value = read_sentinel(value, RESERVED[key])
        if isinstance(value, Sentinel):
            if not isinstance(value, sentinels):
                raise misplaced_sentinel(type(value))
            return value
        plain = literal(value)
        if type(plain) not in self.types:
            raise PydanticCustomError("wrong_type", "must be {words}", {"words": self.words})
        return plain


def read_sentinel(value: Mapping[str, Any], sentinel: type[Sentinel]) -> Sentinel:
    """Return the sentinel that this object means."""
    try:
        return sentinel.model_validate(dict(value), by_name=False)
    except pydantic.ValidationError:
        words = "must be a {sentinel} alone, with a name of 1 to 100 characters"
        raise PydanticCustomError("malformed_sentinel", words, {"sentinel": sentinel.__name__}) from None


def _no_sentinel_itself(members: object) -> object:
    if (key := reserved_key(members)) is not None:
        raise misplaced_sentinel(RESERVED[key])
    return members


MEMBERS = pydantic.BeforeValidator(_no_sentinel_itself)  # Marks an object of operands, which is no operand itself.
VALUE = Operand("a number, a text, true, false or a list", (bool, int, float, str, tuple))
NUMBER = Operand("a number", (int, float))
TEXT = Operand("a text", (str,))
JSON = Operand("a JSON value", (type(None), bool, int, float, str, tuple, dict))

Address = Annotated[StrictStr, Field(min_length=1, max_length=300, json_schema_extra={"pattern": TRIMMED})]
"""A control address, opaque here; that nothing surrounds it is judged when a step is read."""
Timeout = Annotated[StrictFloat, Field(gt=0, le=3600), Seconds]
DeclaredUnit = Annotated[
    StrictStr | None,
    Field(min_length=1, max_length=64, json_schema_extra={"pattern": TRIMMED}, exclude_if=lambda unit: unit is None),
]
"""What the numbers of a step are counted in, such as mm; without it, in the unit of the signal."""

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
    """The value that the captured one must equal, in its unit."""


class PlainToleranceCriterion(ToleranceCriterion):
    """The value lies within the tolerance of a given number."""

    expected: Annotated[Number, NUMBER]
    """The number that the captured value must come close to, in its unit."""


RecipeCriterion = Annotated[RecipeEqualsCriterion | RecipeToleranceCriterion, Field(discriminator="kind")]
Criterion = Annotated[EqualsCriterion | ToleranceCriterion, Field(discriminator="kind")]
PlainCriterion = Annotated[PlainEqualsCriterion | PlainToleranceCriterion, Field(discriminator="kind")]


class Verification(Value):
    """Read until what is read lies within the tolerance of what was written, or the time is up; without a timeout, once.
    A value that is no number must be equal."""

    tolerance: Annotated[StrictFloat, Field(ge=0, description="In its `unit`, or the unit of the signal that is read.")]
    address: Annotated[
        Address | None,
        Field(
            exclude_if=lambda address: address is None,
            description="The signal to read, such as a readback; else the one written.",
        ),
    ] = None
    timeout: Annotated[Timeout | None, Field(exclude_if=lambda timeout: timeout is None)] = None
    unit: DeclaredUnit = None
    """The unit of the tolerance; without it, that of the signal that is read."""


def _verify_tag(value: object) -> str:
    is_object = isinstance(value, Verification) or (isinstance(value, Mapping) and reserved_key(value) is None)
    return "judged" if is_object else "flag"


Verify = Annotated[Annotated[StrictBool, Tag("flag")] | Annotated[Verification, Tag("judged")], Discriminator(_verify_tag)]


class RecipeSetpointStep(Value):
    """Write a value and wait until it is confirmed; with `verify`, read it back: once as evidence, or until it took."""

    kind: Literal["setpoint"]
    address: Address
    value: BoundValue
    """The value to write, in the unit of the step or the signal, or a reference to one."""
    verify: Verify = False
    unit: DeclaredUnit = None
    """The unit of the value, such as mm; without it, that of its parameter or of the signal."""


class RecipeActionStep(Value):
    """Run a registered action body with these parameters."""

    kind: Literal["action"]
    name: Name
    """The name of the action, as the deployment has registered it."""
    params: Annotated[dict[str, ActionParameter], MEMBERS] = {}


class RecipeCheckStep(Value):
    """Read once, or watch until the deadline, and judge the reading."""

    kind: Literal["check"]
    address: Address
    criterion: RecipeCriterion
    timeout: Annotated[Timeout | None, Field(exclude_if=lambda timeout: timeout is None)] = None
    unit: DeclaredUnit = None
    """The unit of the expected value, such as mm; without it, that of the signal or its parameter."""


class RecipeCaptureStep(Value):
    """Read a number and keep it in a slot for later steps."""

    kind: Literal["capture"]
    address: Address
    capture_name: Name
    unit: DeclaredUnit = None
    """The unit that the number is kept in, such as mm; without it, that of the signal."""


class RecipeComputeStep(Value):
    """Run a program: with `output_uri` it writes an artifact, without one it returns measurements."""

    kind: Literal["compute"]
    command: Annotated[tuple[Annotated[StrictStr, Field(min_length=1)], ...], Field(min_length=1)]
    """The program and its arguments."""
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


AnyRecipeStep = RecipeSetpointStep | RecipeActionStep | RecipeCheckStep | RecipeCaptureStep | RecipeComputeStep
RecipeStep = Annotated[AnyRecipeStep, Field(discriminator="kind")]


class SetpointStep(RecipeSetpointStep):
    """Write a value that is known or will be when the step is reached."""

    value: ResolvedValue
    """The value to write, in the unit of the step or the signal, or a reference to one."""


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


def wire_form(steps: Sequence[RecipeStep]) -> list[dict[str, object]]:
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
            yield from ((f"params.{key}", value) for key, value in step.params.items())
        case RecipeCheckStep():
            yield "criterion.expected", step.criterion.expected
        case RecipeCaptureStep():
            return
        case RecipeComputeStep():
            yield from ((f"input_uris.{index}", uri) for index, uri in enumerate(step.input_uris))
            yield from ((f"parameters.{key}", value) for key, value in step.parameters.items())
        case _:
            assert_never(step)


def named_parts(step: RecipeStep) -> Iterator[tuple[str, str]]:
    """Yield the address and the names in a step with their paths; names of parameters belong to their schema."""
    for field in ("address", "name", "capture_name", "output_ref_name", "unit"):
        if (name := getattr(step, field, None)) is not None:
            yield field, name
    if isinstance(step, RecipeSetpointStep) and isinstance(step.verify, Verification) and step.verify.address is not None:
        yield "verify.address", step.verify.address
    for path, value in operands(step):
        if isinstance(value, CaptureRef | SteeringRef | OutputRef):
            yield from ((path, name) for name in dict(value).values())


def references(step: RecipeStep, kind: type[T]) -> Iterator[T]:
    """Return the sentinels of one kind in a step."""
    return (value for _, value in operands(step) if isinstance(value, kind))


def declared_capture(step: RecipeStep) -> str | None:
    """Return the slot a step fills, or None."""
    return step.capture_name if isinstance(step, RecipeCaptureStep | RecipeComputeStep) else None


def declared_output(step: RecipeStep) -> str | None:
    """Return the output a step publishes its artifact as, or None."""
    return step.output_ref_name if isinstance(step, RecipeComputeStep) else None


def wait_seconds(step: RecipeStep) -> float:
    """Return how long a step may wait for a signal by its own declaration; 0 where it is over at once."""
    match step:
        case RecipeCheckStep(timeout=timeout):
            return timeout or 0.0
        case RecipeSetpointStep(verify=Verification(timeout=timeout)):
            return timeout or 0.0
    return 0.0


def binding_names(steps: Iterable[RecipeStep]) -> tuple[str, ...]:
    """Return the parameters that steps leave to the operator, in alphabetical order."""
    return tuple(sorted({reference.name for step in steps for reference in references(step, BindingRef)}))
