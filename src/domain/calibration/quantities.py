"""What can be calibrated: the closed catalog of quantities, each with the form of its operating point and of its value.

Every object is closed and every number carries its unit. What a schema cannot say stands beside it as a rule: a number
strictly above zero, an energy's decimals, one of two keys.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from baton.domain.shared.refusals import Refusal
from baton.domain.shared.schema import DIALECT, Schema, check_values

ENERGY_DECIMALS = 3
LARGEST = 2**53
"""Beyond this a whole number has no exact form as the double that canonical JSON writes."""


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
Rule = Callable[[Values, type[Refusal]], None]
"""Refuses values that keep to their schema and are wrong all the same."""


@dataclass(frozen=True)
class Form:
    """What an operating point or a value must look like."""

    schema: Schema
    rules: tuple[Rule, ...] = ()

    def check(self, values: Values, refusal: type[Refusal]) -> None:
        """Refuse values of another form, at the first fault."""
        if missing := [name for name in self.schema["required"] if name not in values]:
            raise _fault(refusal, (missing[0],), "missing_key", "is required; give it too")
        check_values(self.schema, values, refusal)
        _check_leaves(values, refusal)
        _check_energies(values, refusal)
        for rule in self.rules:
            rule(values, refusal)


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One kind of constant."""

    operating_point: Form
    value: Form


def check_operating_point(quantity: CalibrationQuantity, point: Values, refusal: type[Refusal]) -> None:
    """Refuse what is no operating point of this quantity."""
    QUANTITIES[quantity].operating_point.check(point, refusal)


def check_value(quantity: CalibrationQuantity, value: Values, refusal: type[Refusal]) -> None:
    """Refuse what is no value of this quantity."""
    QUANTITIES[quantity].value.check(value, refusal)


def _check_leaves(value: Any, refusal: type[Refusal], path: tuple[str, ...] = ()) -> None:
    """Texts say something, and whole numbers can be kept as they are."""
    match value:
        case str() if not value.strip():
            raise _fault(refusal, path, "blank", "is blank; give it at least one visible character")
        case int() if abs(value) > LARGEST:
            raise _fault(refusal, path, "not_exact", "is too large to be kept exactly; correct the value")
        case Mapping():
            for key, item in value.items():
                _check_leaves(item, refusal, (*path, key))
        case list():
            for index, item in enumerate(value):
                _check_leaves(item, refusal, (*path, str(index)))


def _check_energies(values: Values, refusal: type[Refusal]) -> None:
    """Energies have so many decimals at most, judged on how they are written."""
    for path, energy in _found(values, "energy"):
        if Decimal(repr(energy)) != round(Decimal(repr(energy)), ENERGY_DECIMALS):
            raise _fault(
                refusal, path, "too_many_decimals", f"has more than {ENERGY_DECIMALS} decimals; round it to whole eV"
            )


def _positive(*names: str) -> Rule:
    """These numbers, wherever they stand, are above zero."""

    def check(values: Values, refusal: type[Refusal]) -> None:
        for name in names:
            for path, number in _found(values, name):
                if number <= 0:
                    raise _fault(refusal, path, "not_positive", "must be above 0; correct the value")

    return check


def _one_throughout(*keys: str) -> Rule:
    """Every point has exactly one of these keys, and all of them the same."""

    def check(values: Values, refusal: type[Refusal]) -> None:
        used = next((key for key in keys if key in values["points"][0]), None)
        for index, point in enumerate(values["points"]):
            if [key for key in keys if key in point] != [used]:
                saying = f"must have exactly one of {' and '.join(keys)}, the same in all points; correct it"
                raise _fault(refusal, ("points", str(index)), "mixed_keys", saying)

    return check


def _at_least_one(*keys: str) -> Rule:
    """One of these keys is given."""

    def check(values: Values, refusal: type[Refusal]) -> None:
        if not any(key in values for key in keys):
            raise _fault(refusal, keys[:1], "missing_key", f"is required, unless {keys[1]} is given; give one of them")

    return check


def _fault(refusal: type[Refusal], path: tuple[str, ...], reason: str, saying: str) -> Refusal:
    return refusal(f"{'.'.join(path)} {saying}.", reason=reason, facts={"path": ".".join(path)})


def _found(values: Any, name: str, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Everything under this name, at the root and in lists, with where it stands."""
    if name in values:
        yield (*path, name), values[name]
    for key, items in values.items():
        if isinstance(items, list):
            for index, item in enumerate(items):
                yield from _found(item, name, (*path, key, str(index)))


def _number(unit: str, **bounds: Any) -> Schema:
    return {"type": "number", "unit": {"system": "udunits", "code": unit}, **bounds}


def _text(longest: int = 100) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": longest}


def _object(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
        "unevaluatedProperties": False,
    }


def _form(required: Mapping[str, Schema], *rules: Rule, **optional: Schema) -> Form:
    return Form({"$schema": DIALECT, **_object(required, optional)}, rules)


def _measured(name: str, unit: str) -> Form:
    """One number above zero, and how sure it is."""
    return _form({name: _at_least_zero(unit)}, _positive(name), uncertainty=_at_least_zero(unit))


def _at_least_zero(unit: str) -> Schema:
    return _number(unit, minimum=0)


def _points(required: Mapping[str, Schema]) -> Form:
    """A table whose points all have a position, or all an angle."""
    point = _object(required, {"position": _number("mm"), "angle": _number("degree")})
    return _form({"points": {"type": "array", "minItems": 2, "items": point}}, _one_throughout("position", "angle"))


def _either(linear: tuple[str, str], angular: tuple[str, str]) -> Form:
    """A linear or an angular constant, or both, each with how sure it is."""
    return _form(
        {},
        _at_least_one(linear[0], angular[0]),
        **{linear[0]: _number(linear[1]), angular[0]: _number(angular[1])},
        linear_uncertainty=_at_least_zero(linear[1]),
        angular_uncertainty=_at_least_zero(angular[1]),
    )


_ENERGY = _number("keV", minimum=1, maximum=100)
_BLADE = _object({"blade": _text(50), "scale": _at_least_zero("pixel/mm")})

QUANTITIES: Mapping[CalibrationQuantity, Quantity] = {
    CalibrationQuantity.ROTATION_CENTER: Quantity(
        operating_point=_form({"energy": _ENERGY, "optics_config": _text()}),
        value=_form({"center": _number("pixel")}, uncertainty=_at_least_zero("pixel")),
    ),
    CalibrationQuantity.DETECTOR_PIXEL_SIZE: Quantity(
        operating_point=_form({"optics_config": _text()}, energy=_ENERGY), value=_measured("pixel_size", "um")
    ),
    CalibrationQuantity.MAGNIFICATION: Quantity(
        operating_point=_form({"objective_designation": _text(), "energy": _ENERGY}), value=_measured("magnification", "1")
    ),
    CalibrationQuantity.EFFECTIVE_THICKNESS: Quantity(
        operating_point=_form({"scintillator_material": _text(), "energy": _ENERGY}),
        value=_measured("effective_thickness", "um"),
    ),
    CalibrationQuantity.ENERGY_POSITION_CURVE: Quantity(
        operating_point=_form({"axis_designation": _text()}, beam_mode=_text()), value=_points({"energy": _ENERGY})
    ),
    CalibrationQuantity.INDEX_POSITION_TABLE: Quantity(
        operating_point=_form({"device_designation": _text()}), value=_points({"name": _text()})
    ),
    CalibrationQuantity.BLADE_THROW_SCALE: Quantity(
        operating_point=_form({"optics_config": _text()}),
        value=_form({"blades": {"type": "array", "minItems": 1, "maxItems": 4, "items": _BLADE}}, _positive("scale")),
    ),
    CalibrationQuantity.MOTOR_SENSITIVITY: Quantity(
        operating_point=_form({"axis_designation": _text()}, optics_config=_text()),
        value=_either(("linear_sensitivity", "pixel/mm"), ("angular_sensitivity", "pixel/degree")),
    ),
    CalibrationQuantity.BEAM_PROFILE: Quantity(
        operating_point=_form({"energy": _ENERGY}, beam_mode=_text()),
        value=_form(
            {"horizontal_width": _at_least_zero("um"), "vertical_width": _at_least_zero("um")},
            _positive("horizontal_width", "vertical_width"),
            horizontal_offset=_number("um"),
            vertical_offset=_number("um"),
            uncertainty=_at_least_zero("um"),
        ),
    ),
    CalibrationQuantity.ENCODER_OFFSET: Quantity(
        operating_point=_form({"axis_designation": _text()}),
        value=_either(("linear_offset", "mm"), ("angular_offset", "degree")),
    ),
}
"""The catalog; widths are full widths at half maximum, and the index of a table's point is its slot."""
