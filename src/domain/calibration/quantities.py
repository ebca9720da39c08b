"""What can be calibrated: the closed catalog in `quantities.json`, with the form of each operating point and value.
Every object is closed and every number carries its unit. What a schema cannot say stands beside it as a rule."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import partial
from importlib.resources import files
from typing import Any, NamedTuple

from baton.domain.shared.refusals import Refusal
from baton.domain.shared.schema import DIALECT, Schema, check_values

ENERGY_DECIMALS = 3
LARGEST = 2**53  # Beyond this a whole number has no exact form as the double that canonical JSON writes.


class CalibrationQuantity(StrEnum):
    ROTATION_CENTER = "rotation_center"
    DETECTOR_PIXEL_SIZE = "detector_pixel_size"
    MAGNIFICATION = "magnification"
    EFFECTIVE_THICKNESS = "effective_thickness"
    ENERGY_POSITION_CURVE = "energy_position_curve"
    INDEX_POSITION_TABLE = "index_position_table"
    BLADE_THROW_SCALE = "blade_throw_scale"
    MOTOR_SENSITIVITY = "motor_sensitivity"
    BEAM_PROFILE = "beam_profile"
    ENCODER_OFFSET = "encoder_offset"


Values = Mapping[str, Any]
Rule = Callable[[Values, type[Refusal]], None]  # A check that refuses values which keep to their schema, but are wrong.


@dataclass(frozen=True)
class Form:
    """The schema of an operating point or a value, and the rules that a schema cannot say."""

    schema: Schema
    rules: tuple[Rule, ...] = ()

    def check(self, values: Values, refusal: type[Refusal]) -> None:
        """Refuse values of another form, at the first fault."""
        if missing := [name for name in self.schema["required"] if name not in values]:
            raise _form_refusal(refusal, (missing[0],), "missing_key", "is required; give it too")
        check_values(self.schema, values, refusal)
        _check_leaves(values, refusal)
        _check_energies(values, refusal)
        for rule in self.rules:
            rule(values, refusal)


class Quantity(NamedTuple):
    """The form of the operating points and of the values of one kind of constant."""

    operating_point: Form
    value: Form


def _check_leaves(value: object, refusal: type[Refusal], path: tuple[str, ...] = ()) -> None:
    """Refuse blank texts, and whole numbers that cannot be kept exactly."""
    match value:
        case str() if not value.strip():
            raise _form_refusal(refusal, path, "blank", "is blank; give it at least one visible character")
        case int() if abs(value) > LARGEST:
            raise _form_refusal(refusal, path, "not_exact", "is too large to be kept exactly; correct the value")
        case Mapping():
            for key, item in value.items():
                _check_leaves(item, refusal, (*path, key))
        case list():
            for index, item in enumerate(value):
                _check_leaves(item, refusal, (*path, str(index)))


def _check_energies(values: Values, refusal: type[Refusal]) -> None:
    """Refuse energies with too many decimals, judged on how they are written."""
    for path, energy in _values_under(values, "energy"):
        if Decimal(repr(energy)) != round(Decimal(repr(energy)), ENERGY_DECIMALS):
            detail = f"has more than {ENERGY_DECIMALS} decimals; round it to whole eV"
            raise _form_refusal(refusal, path, "too_many_decimals", detail)


def _check_positive(keys: tuple[str, ...], values: Values, refusal: type[Refusal]) -> None:
    """Refuse numbers under these keys, wherever they stand, that are not above zero."""
    for path, number in (found for key in keys for found in _values_under(values, key)):
        if number <= 0:
            raise _form_refusal(refusal, path, "not_positive", "must be above 0; correct the value")


def _check_one_throughout(keys: tuple[str, ...], values: Values, refusal: type[Refusal]) -> None:
    """Refuse points that do not have exactly one of these keys, and all of them the same."""
    used = next((key for key in keys if key in values["points"][0]), None)
    for index, point in enumerate(values["points"]):
        if [key for key in keys if key in point] != [used]:
            detail = f"must have exactly one of {' and '.join(keys)}, the same in all points; correct it"
            raise _form_refusal(refusal, ("points", str(index)), "mixed_keys", detail)


def _check_at_least_one(keys: tuple[str, ...], values: Values, refusal: type[Refusal]) -> None:
    """Refuse values in which none of these keys is given."""
    if not any(key in values for key in keys):
        detail = f"is required, unless {keys[1]} is given; give one of them"
        raise _form_refusal(refusal, keys[:1], "missing_key", detail)


def _form_refusal(refusal: type[Refusal], path: tuple[str, ...], reason: str, detail: str) -> Refusal:
    return refusal(f"{'.'.join(path)} {detail}.", reason=reason, facts={"path": ".".join(path)})


def _values_under(values: Any, name: str, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every value under this name, at the root and in lists, with its path."""
    if name in values:
        yield (*path, name), values[name]
    for key, items in values.items():
        if isinstance(items, list):
            for index, item in enumerate(items):
                yield from _values_under(item, name, (*path, key, str(index)))


def _form(declared: Mapping[str, Any]) -> Form:
    """Return the form of a closed object with these required and optional keys."""
    required, optional = declared.get("required", {}), declared.get("optional", {})
    schema = {
        "$schema": DIALECT,
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
        "unevaluatedProperties": False,
    }
    return Form(schema, tuple(partial(RULES[name], tuple(keys)) for name, *keys in declared.get("rules", ())))


RULES = {"positive": _check_positive, "one_throughout": _check_one_throughout, "at_least_one": _check_at_least_one}
QUANTITIES: Mapping[CalibrationQuantity, Quantity] = {
    CalibrationQuantity(name): Quantity(**{part: _form(declared) for part, declared in parts.items()})
    for name, parts in json.loads(files(__package__).joinpath("quantities.json").read_bytes()).items()
}  # The catalog; widths are full widths at half maximum, and the index of a table's point is its slot.
