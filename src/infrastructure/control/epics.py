"""What both EPICS protocols share: names, alarms, times, and what a value must be to fit a signal."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Any

from baton.application.control import ControlValueCoercionError, MalformedControlAddressError, Quality

EPOCH = datetime(1990, 1, 1, tzinfo=UTC)
"""The time that a signal carries which was never processed."""
UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXT_LENGTH = 39
"""Characters that fit a Channel Access string."""
SEVERITIES = ("NO_ALARM", "MINOR", "MAJOR", "INVALID")
QUALITIES = (Quality.GOOD, Quality.UNCERTAIN, Quality.UNCERTAIN, Quality.BAD)
LARGEST = sys.float_info.max
MOST_CHOICES = 16
"""How many choices a signal can have that does not name them."""
_NAME = re.compile(r"[!-~]+")


class Element(Enum):
    """What a signal is made of."""

    TEXT = auto()
    WHOLE = auto()
    REAL = auto()
    CHOICE = auto()
    CHARACTER = auto()
    TRUTH = auto()


@dataclass(frozen=True)
class Form:
    """What values a signal can hold: how many elements of which kind, and from where to where whole numbers reach."""

    element: Element
    count: int = 1
    """The greatest number of elements; 0 is no limit, 1 a single value."""
    reach: tuple[int, int] = (-(2**31), 2**31 - 1)
    length: int | None = None
    labels: Sequence[str] = ()


def well_formed(address: str) -> str:
    """The name of a signal, if it is one."""
    if not _NAME.fullmatch(address):
        raise MalformedControlAddressError(
            f"{address!r} is no name of an EPICS signal; these are of letters, digits and signs, without spaces."
        )
    return address


def quality(severity: int) -> Quality:
    """How far a value in this state of alarm can be trusted; a severity nobody defined is not to be trusted."""
    return QUALITIES[severity] if 0 <= severity < len(QUALITIES) else Quality.BAD


def alarm(severity: int, status: str) -> str | None:
    """What is to be said of a value in alarm."""
    if severity == 0:
        return None
    named = SEVERITIES[severity] if 0 < severity < len(SEVERITIES) else f"severity {severity}"
    return f"{named} {status}".strip()


def sampled(seconds: int, nanoseconds: int) -> datetime | None:
    """The time of a sample from seconds since 1970; a signal that was never processed has none."""
    at = UNIX_EPOCH + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)
    return at if at > EPOCH else None


def coerced(address: str, value: Any, form: Form) -> Any:
    """A value as the signal holds it, without loss; a list for several elements, an index for a choice."""
    if form.element is Element.CHARACTER and form.count != 1 and isinstance(value, str):
        value = list(value.encode())
    if not isinstance(value, list | tuple):
        return _single(address, value, form) if form.count == 1 else [_single(address, value, form)]
    if form.count == 1 and len(value) != 1:
        raise ControlValueCoercionError(f"{address} holds a single value; {len(value)} were given.")
    if form.count and len(value) > form.count:
        raise ControlValueCoercionError(f"{address} holds {form.count} elements; {len(value)} were given.")
    elements = [_single(address, element, form) for element in value]
    return elements[0] if form.count == 1 else elements


def _single(address: str, value: Any, form: Form) -> Any:
    number = int(value) if isinstance(value, bool) else value
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    match form.element:
        case Element.TEXT if isinstance(value, str | int | float):
            text = value if isinstance(value, str) else str(number)
            if "\0" in text:
                raise ControlValueCoercionError(f"{address} holds texts without null characters, not {text!r}.")
            if form.length is not None and len(text.encode()) > form.length:
                raise ControlValueCoercionError(f"{address} holds texts of {form.length} characters; {text!r} is longer.")
            return text
        case Element.CHOICE if isinstance(value, str):
            if value in form.labels:
                return form.labels.index(value)
            raise ControlValueCoercionError(f"{address} is one of {', '.join(form.labels)}, not {value!r}.")
        case Element.CHOICE if isinstance(number, int):
            if 0 <= number < (len(form.labels) or MOST_CHOICES):
                return number
            raise ControlValueCoercionError(f"{address} has {len(form.labels)} choices, counted from 0, not {value!r}.")
        case Element.REAL if isinstance(number, int | float) and abs(number) < LARGEST:
            return float(number)
        case Element.TRUTH if isinstance(number, int) and number in (0, 1):
            return bool(number)
        case Element.WHOLE | Element.CHARACTER if isinstance(number, int):
            lower, upper = form.reach
            if lower <= number <= upper:
                return number
            raise ControlValueCoercionError(f"{address} holds whole numbers from {lower} to {upper}, not {value!r}.")
    raise ControlValueCoercionError(f"{address} holds {_WORDS[form.element]}, not {value!r}.")


_WORDS = {
    Element.TEXT: "texts",
    Element.WHOLE: "whole numbers",
    Element.REAL: "numbers",
    Element.CHOICE: "one of its choices",
    Element.CHARACTER: "characters",
    Element.TRUTH: "true or false",
}
