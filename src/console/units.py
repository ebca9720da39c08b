"""Units at the edge: a number may be typed in any unit that its declared one can be converted to, and shown in another one
on request. What is stored is always in the declared unit."""

import asyncio
import re
from functools import cache
from math import isfinite

from baton.domain.shared.units import OTHER_NAMES, UnitError, convert, known_unit, unit_registry

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
ANGLES = ("degree", "mrad", "rad")


async def load_units() -> None:
    """Have the units loaded where nobody else waits for it."""
    await asyncio.to_thread(unit_registry)


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
