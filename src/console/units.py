"""Units at the edge: a number may be typed in any unit that its declared one can be converted to, and shown in another one
on request. What is stored is always in the declared unit."""

import asyncio
import re
from functools import cache
from math import isfinite
from threading import Lock
from typing import Any

QUANTITY = re.compile(
    r"\s*(?P<number>[-+]?[0-9.,\s\N{NARROW NO-BREAK SPACE}]*[0-9.](?:[eE][-+]?\d+)?)\s*(?P<unit>[^\d\s].*)?"
)
OFFERED = {
    "[length]": ("m", "mm", "um", "nm", "angstrom"),
    "[time]": ("s", "ms", "us", "min", "h"),
    "[current]": ("A", "mA", "uA", "nA"),
    "[temperature]": ("K", "degC", "degF"),
    "[mass] * [length] ** 2 / [time] ** 2": ("eV", "keV", "J"),
    "[mass] / [length] / [time] ** 2": ("Pa", "mbar", "bar"),
    "[mass] * [length] / [time] ** 2": ("N", "mN", "kN"),
    "[length] / [time]": ("m/s", "mm/s", "um/s"),
}  # What a number of each dimension may be shown in.
LOADING = Lock()  # units of two registries do not go together
ANGLES = ("degree", "mrad", "rad")
OTHER_NAMES = {"deg": "degree", "°": "degree", "µm": "um", "μm": "um", "µs": "us", "Å": "angstrom", "%": "percent"}


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


async def load_units() -> None:
    """Have the units loaded where nobody else waits for it."""
    await asyncio.to_thread(unit_registry)


@cache
def known_unit(code: str) -> Any:
    """Return the unit with this code, or None where it is not known."""
    import pint

    try:
        return unit_registry().Unit(OTHER_NAMES.get(code, code))
    except (pint.errors.PintError, ValueError, TypeError, AttributeError, SyntaxError):
        return None


def convert(number: float, given: str, wanted: str) -> float:
    """Return a number in another unit."""
    source, target = known_unit(given), known_unit(wanted)
    if source is None or target is None or not source.is_compatible_with(target):
        raise UnitError(f"{given} cannot be converted to {wanted}")
    converted = unit_registry().Quantity(number, source).to(target).magnitude
    return float(f"{converted:.15g}")  # without the noise of the last bits


def parse_quantity(text: str, unit: str | None) -> float:
    """Return the number that a text means in the declared unit: `35 ms` is 0.035 where that is s."""
    found = QUANTITY.fullmatch(text)
    if found is None:
        raise UnitError("this is no number")
    digits = re.sub(r"[\s\N{NARROW NO-BREAK SPACE}]", "", found["number"])
    digits = digits.replace(",", ".") if digits.count(",") == 1 and "." not in digits else digits.replace(",", "")
    try:
        number = float(digits)
    except ValueError:
        raise UnitError("this is no number") from None
    if not isfinite(number):
        raise UnitError("this number is too large")
    written = (found["unit"] or "").strip()
    if not written or written == unit:
        return number
    if unit is None:
        raise UnitError("this number has no unit")
    return convert(number, written, unit)


@cache
def other_units(code: str | None) -> tuple[str, ...]:
    """Return the units that a number of this unit may be shown in, its own first; none where it is not known."""
    unit = known_unit(code) if code else None
    if unit is None or code is None:
        return ()
    plain = unit.dimensionless and OTHER_NAMES.get(code, code) not in ANGLES  # counts are no angles, though both are plain
    if plain:
        return ()
    offered = ANGLES if unit.dimensionless else OFFERED.get(str(unit.dimensionality), ())
    return (code, *(one for one in offered if known_unit(one) != unit and unit.is_compatible_with(known_unit(one))))
