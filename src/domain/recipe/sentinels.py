"""The values in steps: JSON literals, and the four sentinels that stand for a value which is not known yet.

A sentinel is an object with exactly one reserved key. The keys are reserved everywhere in a step, so that nothing a
person writes as plain data can ever be taken for a reference, nor a reference for plain data.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, StrictStr, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from baton.domain.kernel import Value
from baton.domain.shared.text import TRIMMED

MAX_DEPTH = 32  # Levels of lists and objects in one literal; every reader of JSON that a step meets takes that many.

ParameterName = Annotated[StrictStr, Field(min_length=1, max_length=100)]
"""The exact name of a parameter; a schema may declare any."""
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


def reserved_key(value: Any) -> str | None:
    """Return the reserved key of an object, or None."""
    return next((key for key in RESERVED if key in value), None) if isinstance(value, Mapping) else None


def literal(value: Any, depth: int = 0) -> Any:
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

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        sentinels = tuple(part for part in get_args(source) if isinstance(part, type) and issubclass(part, Sentinel))
        return core_schema.no_info_before_validator_function(lambda value: self.read(value, sentinels), handler(source))

    def read(self, value: Any, sentinels: tuple[type[Sentinel], ...]) -> Any:
        """Return the literal or sentinel at this position."""
        if isinstance(value, Sentinel):
            found = value
        elif (key := reserved_key(value)) is not None:
            found = read_sentinel(value, RESERVED[key])
        else:
            plain = literal(value)
            if type(plain) not in self.types:
                raise PydanticCustomError("wrong_type", "must be {words}", {"words": self.words})
            return plain
        if not isinstance(found, sentinels):
            raise misplaced_sentinel(type(found))
        return found


def read_sentinel(value: Mapping[str, Any], sentinel: type[Sentinel]) -> Sentinel:
    """Return the sentinel that this object means."""
    try:
        return sentinel.model_validate(dict(value), by_name=False)
    except ValidationError:
        raise PydanticCustomError(
            "malformed_sentinel",
            "must be a {sentinel} alone, with a name of 1 to 100 characters",
            {"sentinel": sentinel.__name__},
        ) from None


def _no_sentinel_itself(members: Any) -> Any:
    if (key := reserved_key(members)) is not None:
        raise misplaced_sentinel(RESERVED[key])
    return members


MEMBERS = BeforeValidator(_no_sentinel_itself)  # Marks an object whose members are operands, and which is none itself.
VALUE = Operand("a number, a text, true, false or a list", (bool, int, float, str, tuple))
NUMBER = Operand("a number", (int, float))
TEXT = Operand("a text", (str,))
JSON = Operand("a JSON value", (type(None), bool, int, float, str, tuple, dict))
