"""The catalogue of quantities: closed, with units throughout, and with rules that no schema can say."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from baton.domain.calibration.calibration import InvalidCalibrationValueError, InvalidOperatingPointError
from baton.domain.calibration.quantities import QUANTITIES, CalibrationQuantity, Form
from baton.domain.shared.schema import check_declaration, declared_units
from tests.support.domain.schemas import schema_levels
from tests.support.domain.world import expect_refusal
from tests.support.tables import for_each

ROTATION_CENTER = QUANTITIES[CalibrationQuantity.ROTATION_CENTER].operating_point
FORMS = [form for quantity in QUANTITIES.values() for form in (quantity.operating_point, quantity.value)]

CATALOGUE: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, str]]] = {
    "rotation_center": (
        {"energy": 25, "optics_config": "5x"},
        {"center": 1024.5, "uncertainty": 0.3},
        {"center": "pixel", "uncertainty": "pixel"},
    ),
    "detector_pixel_size": (
        {"optics_config": "5x", "energy": 25.5},
        {"pixel_size": 1.3, "uncertainty": 0},
        {"pixel_size": "um", "uncertainty": "um"},
    ),
    "magnification": (
        {"objective_designation": "5x NA 0.14", "energy": 100},
        {"magnification": 4.98, "uncertainty": 0.01},
        {"magnification": "1", "uncertainty": "1"},
    ),
    "effective_thickness": (
        {"scintillator_material": "LuAG:Ce", "energy": 1},
        {"effective_thickness": 50, "uncertainty": 2},
        {"effective_thickness": "um", "uncertainty": "um"},
    ),
    "energy_position_curve": (
        {"axis_designation": "dcm_bragg", "beam_mode": "mono"},
        {"points": [{"energy": 20, "angle": 5.1}, {"energy": 25.125, "angle": -4.2}]},
        {"points.[].energy": "keV", "points.[].position": "mm", "points.[].angle": "degree"},
    ),
    "index_position_table": (
        {"device_designation": "filter wheel 1"},
        {"points": [{"name": "open", "position": 0}, {"name": "Al 1 mm", "position": 12.5}]},
        {"points.[].position": "mm", "points.[].angle": "degree"},
    ),
    "blade_throw_scale": (
        {"optics_config": "5x"},
        {"blades": [{"blade": "left", "scale": 770.1}]},
        {"blades.[].scale": "pixel/mm"},
    ),
    "motor_sensitivity": (
        {"axis_designation": "sample_x", "optics_config": "5x"},
        {"linear_sensitivity": -769.2, "linear_uncertainty": 0.5},
        {
            "linear_sensitivity": "pixel/mm",
            "angular_sensitivity": "pixel/degree",
            "linear_uncertainty": "pixel/mm",
            "angular_uncertainty": "pixel/degree",
        },
    ),
    "beam_profile": (
        {"energy": 25, "beam_mode": "pink"},
        {"horizontal_width": 310, "vertical_width": 42.5, "horizontal_offset": -3, "uncertainty": 1},
        dict.fromkeys(["horizontal_width", "vertical_width", "horizontal_offset", "vertical_offset", "uncertainty"], "um"),
    ),
    "encoder_offset": (
        {"axis_designation": "rotary"},
        {"angular_offset": 0.004},
        {"linear_offset": "mm", "angular_offset": "degree", "linear_uncertainty": "mm", "angular_uncertainty": "degree"},
    ),
}
"""Each quantity with an operating point, a value, and the units of everything its value may hold."""


@for_each("name", CATALOGUE)
def test_every_quantity_takes_what_the_catalogue_shows(name: str) -> None:
    point, value, units = CATALOGUE[name]
    quantity = CalibrationQuantity(name)
    QUANTITIES[quantity].operating_point.check(point, InvalidOperatingPointError)
    QUANTITIES[quantity].value.check(value, InvalidCalibrationValueError)
    declared = declared_units(QUANTITIES[quantity].value.schema)
    assert declared == {path: ("udunits", code) for path, code in units.items()}
    in_keV = declared_units(QUANTITIES[quantity].operating_point.schema)
    assert in_keV == ({"energy": ("udunits", "keV")} if in_keV else {})


def test_the_catalogue_is_closed() -> None:
    assert CATALOGUE.keys() == set(CalibrationQuantity) == QUANTITIES.keys()


@for_each("form", FORMS)
def test_every_schema_could_be_declared_is_closed_and_has_a_unit_for_every_number(form: Form) -> None:
    check_declaration(form.schema, InvalidOperatingPointError)
    for level in schema_levels(form.schema):
        if level["type"] == "object":
            assert (level["additionalProperties"], level["unevaluatedProperties"]) == (False, False)
        if level["type"] == "number":
            assert level["unit"]["system"] == "udunits"
        assert "multipleOf" not in level


def with_energy(energy: Any) -> dict[str, Any]:
    return {"energy": energy, "optics_config": "5x"}


BAD_POINTS: list[tuple[str, dict[str, Any], str]] = [
    ("rotation_center", {}, "missing_key"),
    ("rotation_center", {"energy": 25}, "missing_key"),
    ("rotation_center", {**with_energy(25), "operator": "Mira"}, "undeclared_key"),
    ("rotation_center", with_energy(0.999), "below_minimum"),
    ("rotation_center", with_energy(100.001), "above_maximum"),
    ("rotation_center", with_energy("25"), "wrong_type"),
    ("rotation_center", with_energy(True), "wrong_type"),
    ("rotation_center", with_energy(25.0001), "too_many_decimals"),
    ("rotation_center", {"energy": 25, "optics_config": ""}, "too_short"),
    ("rotation_center", {"energy": 25, "optics_config": "x" * 101}, "too_long"),
    ("rotation_center", {"energy": 25, "optics_config": "  "}, "blank"),
    ("detector_pixel_size", {"energy": 25}, "missing_key"),
    ("index_position_table", {"device_designation": "wheel", "energy": 25}, "undeclared_key"),
]


@for_each(("quantity", "point", "reason"), BAD_POINTS)
def test_an_operating_point_of_another_form_is_refused(quantity: str, point: dict[str, Any], reason: str) -> None:
    with expect_refusal("InvalidOperatingPointError", reason):
        QUANTITIES[CalibrationQuantity(quantity)].operating_point.check(point, InvalidOperatingPointError)


AT_20, AT_25 = {"energy": 20, "position": 1}, {"energy": 25, "position": 2}
BLADES = [{"blade": name, "scale": 700} for name in "lrtbx"]
BAD_VALUES: list[tuple[str, dict[str, Any], str]] = [
    ("rotation_center", {}, "missing_key"),
    ("rotation_center", {"center": 1, "uncertainty": -0.1}, "below_minimum"),
    ("rotation_center", {"center": float("inf")}, "not_finite"),
    ("rotation_center", {"center": 10**60}, "not_exact"),
    ("detector_pixel_size", {"pixel_size": 0}, "not_positive"),
    ("detector_pixel_size", {"pixel_size": -1}, "below_minimum"),
    ("magnification", {"magnification": 0.0}, "not_positive"),
    ("effective_thickness", {"effective_thickness": 0}, "not_positive"),
    ("energy_position_curve", {"points": [AT_20]}, "too_few_items"),
    ("energy_position_curve", {"points": [AT_20, {"energy": 25, "angle": 2}]}, "mixed_keys"),
    ("energy_position_curve", {"points": [AT_20, {**AT_25, "angle": 2}]}, "mixed_keys"),
    ("energy_position_curve", {"points": [{"energy": 20}, {"energy": 25}]}, "mixed_keys"),
    ("energy_position_curve", {"points": [AT_20, {"position": 2}]}, "missing_key"),
    ("energy_position_curve", {"points": [AT_20, {**AT_25, "energy": 25.12345}]}, "too_many_decimals"),
    ("index_position_table", {"points": [{"name": "a", "angle": 1}, {"name": " ", "angle": 2}]}, "blank"),
    ("index_position_table", {"points": [{"name": "a", "angle": 1}, {"name": "b", "position": 2}]}, "mixed_keys"),
    ("blade_throw_scale", {"blades": []}, "too_few_items"),
    ("blade_throw_scale", {"blades": BLADES}, "too_many_items"),
    ("blade_throw_scale", {"blades": [{"blade": "l", "scale": 0}]}, "not_positive"),
    ("blade_throw_scale", {"blades": [{"blade": "l" * 51, "scale": 1}]}, "too_long"),
    ("motor_sensitivity", {}, "missing_key"),
    ("motor_sensitivity", {"linear_uncertainty": 1}, "missing_key"),
    ("beam_profile", {"horizontal_width": 3}, "missing_key"),
    ("beam_profile", {"horizontal_width": 3, "vertical_width": 0}, "not_positive"),
    ("encoder_offset", {}, "missing_key"),
    ("encoder_offset", {"linear_offset": 1, "angular_uncertainty": -1}, "below_minimum"),
]


@for_each(("quantity", "value", "reason"), BAD_VALUES)
def test_a_value_of_another_form_is_refused(quantity: str, value: dict[str, Any], reason: str) -> None:
    with expect_refusal("InvalidCalibrationValueError", reason) as caught:
        QUANTITIES[CalibrationQuantity(quantity)].value.check(value, InvalidCalibrationValueError)
    assert caught.value.facts["path"]


@given(st.integers(1000, 100_000))
def test_every_energy_of_three_decimals_is_taken_as_it_is_written(milli: int) -> None:
    ROTATION_CENTER.check(with_energy(milli / 1000), InvalidOperatingPointError)


@given(st.integers(10_001, 999_999).filter(lambda tenths: tenths % 10))
def test_no_energy_of_four_decimals_is_taken(tenths: int) -> None:
    with expect_refusal("InvalidOperatingPointError", "too_many_decimals"):
        ROTATION_CENTER.check(with_energy(tenths / 10_000), InvalidOperatingPointError)
