"""Values of signals in any control system: what a signal can hold, the coercion of a value to it, sample times."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum

from baton.application.control import ControlValueCoercionError

EPICS_EPOCH = datetime(1990, 1, 1, tzinfo=UTC)  # the time stamp of an EPICS signal that was never processed
UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_CHOICES = 16  # how many choices a signal can have that does not name them


class Element(Enum):
    """The kind of a signal's elements, in the words of a refusal."""

    TEXT = "texts"
    WHOLE = "whole numbers"
    REAL = "numbers"
    CHOICE = "one of its choices"
    CHARACTER = "characters"
    TRUTH = "true or false"


@dataclass(frozen=True)
class ValueShape:
    """What values a signal can hold: the kind of its elements, their number, and their limits."""

    element: Element
    count: int = 1  # the greatest number of elements; 0 is no limit, 1 a single value
    bounds: tuple[int, int] = (-(2**31), 2**31 - 1)  # the least and the greatest whole number
    length: int | None = None  # the greatest number of bytes of a text
    labels: Sequence[str] = ()


def sample_time(seconds: int, nanoseconds: int) -> datetime | None:
    """Return the time of a sample from seconds since 1970, or None for a signal that was never processed."""
    at = UNIX_EPOCH + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)
    return at if at > EPICS_EPOCH else None


def coerce(address: str, value: object, shape: ValueShape) -> object:
    """Return a value as the signal holds it, without loss: a list for several elements, an index for a choice."""
    if shape.element is Element.CHARACTER and shape.count != 1 and isinstance(value, str):
        value = list(value.encode())
    if not isinstance(value, list | tuple):
        return _coerce_element(address, value, shape) if shape.count == 1 else [_coerce_element(address, value, shape)]
    if shape.count == 1 and len(value) != 1:
        raise ControlValueCoercionError(f"{address} holds a single value; {len(value)} were given.")
    if shape.count and len(value) > shape.count:
        raise ControlValueCoercionError(f"{address} holds {shape.count} elements; {len(value)} were given.")
    elements = [_coerce_element(address, element, shape) for element in value]
    return elements[0] if shape.count == 1 else elements


def _coerce_element(address: str, value: object, shape: ValueShape) -> object:
    number = int(value) if isinstance(value, bool) else value
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    match shape.element:
        case Element.TEXT if isinstance(value, str | int | float):
            text = value if isinstance(value, str) else str(number)
            if "\0" in text:
                raise ControlValueCoercionError(f"{address} holds texts without null characters, not {text!r}.")
            if shape.length is not None and len(text.encode()) > shape.length:
                raise ControlValueCoercionError(f"{address} holds texts of {shape.length} characters; {text!r} is longer.")
            return text
        case Element.CHOICE if isinstance(value, str):
            if value in shape.labels:
                return shape.labels.index(value)
            raise ControlValueCoercionError(f"{address} is one of {', '.join(shape.labels)}, not {value!r}.")
        case Element.CHOICE if isinstance(number, int):
            if 0 <= number < (len(shape.labels) or MOST_CHOICES):
                return number
            raise ControlValueCoercionError(f"{address} has {len(shape.labels)} choices, counted from 0, not {value!r}.")
        case Element.REAL if isinstance(number, int | float) and abs(number) < sys.float_info.max:
            return float(number)
        case Element.TRUTH if isinstance(number, int) and number in (0, 1):
            return bool(number)
        case Element.WHOLE | Element.CHARACTER if isinstance(number, int):
            lower, upper = shape.bounds
            if lower <= number <= upper:
                return number
            raise ControlValueCoercionError(f"{address} holds whole numbers from {lower} to {upper}, not {value!r}.")
    raise ControlValueCoercionError(f"{address} holds {shape.element.value}, not {value!r}.")
