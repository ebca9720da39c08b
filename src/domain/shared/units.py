"""Units of measurement: which of them are the same, and what a number in one of them is in another. A unit is written by
people, files and control systems, so that a text which is no plain product of units is unknown and never evaluated."""

import re
from enum import StrEnum
from functools import cache, lru_cache
from threading import Lock
from typing import Any

_FACTOR = r"[A-Za-z_°µμÅΩ%]+(?:(?:\*\*|\^)-?[0-9])?"
CODE = re.compile(rf"(?:1 ?/ ?)?{_FACTOR}(?: ?[*/·] ?{_FACTOR}){{0,5}}")
MAX_LENGTH = 64
OTHER_NAMES = {
    "deg": "degree",
    "Deg": "degree",
    "DEG": "degree",
    "°": "degree",
    "µm": "um",
    "μm": "um",
    "µs": "us",
    "μs": "us",
    "Å": "angstrom",
    "%": "percent",
    "C": "degC",
    "Cel": "degC",
    "°C": "degC",
}  # What facilities write, and the library reads otherwise or not at all: `C` is no coulomb on any thermometer.
LOADING = Lock()  # Units of two registries do not go together.


class UnitPolicy(StrEnum):
    """What becomes of a value whose declared unit is not that of the signal."""

    CONVERT = "convert"
    REFUSE = "refuse"
    IGNORE = "ignore"


class UnitError(ValueError):
    """A number cannot be read or converted; the message says why."""


@cache
def _load_registry() -> Any:
    import pint

    return pint.UnitRegistry(autoconvert_offset_to_baseunit=True)


def unit_registry() -> Any:
    """Return the units that are known; they are loaded when the first is asked for, which takes a second."""
    with LOADING:
        return _load_registry()


@lru_cache(maxsize=2000)
def known_unit(code: str) -> Any:
    """Return the unit with this code, or None where it is not known."""
    name = OTHER_NAMES.get(code, code)
    if len(name) > MAX_LENGTH or CODE.fullmatch(name) is None:
        return None
    import pint

    try:
        return unit_registry().Unit(name)
    except (pint.errors.PintError, ValueError, TypeError, AttributeError, SyntaxError, ArithmeticError):
        return None


def is_same_unit(one: str, other: str) -> bool:
    """Return whether two codes mean the same unit, in which numbers stay as they are: a micron is a micrometre."""
    return one == other or (is_convertible(one, other) and all(convert(number, one, other) == number for number in (0, 1)))


def is_convertible(one: str, other: str) -> bool:
    """Return whether a number in one unit can be given in the other. An angle has no dimension, and neither has a count:
    both must rest on the same root unit."""
    source, target = known_unit(one), known_unit(other)
    if source is None or target is None:
        return False
    roots = unit_registry().get_root_units
    return bool(roots(source)[1] == roots(target)[1])


def convert(number: float, given: str, wanted: str) -> float:
    """Return a number in another unit."""
    if not is_convertible(given, wanted):
        raise UnitError(f"{given} cannot be converted to {wanted}")
    converted = unit_registry().Quantity(number, known_unit(given)).to(known_unit(wanted)).magnitude
    return float(f"{converted:.15g}")  # Without the noise of the last bits.


def carry(value: object, given: str, wanted: str, policy: UnitPolicy = UnitPolicy.CONVERT) -> Any:
    """Return a value in another unit as far as the policy allows it: each number of a list; any other value as it is."""
    if policy is UnitPolicy.IGNORE or is_same_unit(given, wanted):
        return value
    if policy is UnitPolicy.REFUSE:
        raise UnitError(f"{given} is not {wanted}, and UNIT_POLICY lets nothing be converted")
    match value:
        case bool():
            return value
        case int() | float():
            return convert(value, given, wanted)
        case list() | tuple():
            return tuple(carry(item, given, wanted, policy) for item in value)
    return value
