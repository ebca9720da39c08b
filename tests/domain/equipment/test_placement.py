"""Placements and surveys: what is a wrong value, and which units the schema declares."""

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from baton.domain.equipment.frame import Placement, Survey, check_measured
from tests.support.domain.world import expect_refusal, new_id
from tests.support.tables import for_each

LENGTHS = ("x", "y", "z", "tol_x", "tol_y", "tol_z")
ANGLES = ("rx", "ry", "rz", "tol_rx", "tol_ry", "tol_rz")
NUMBERS = (*LENGTHS, *ANGLES)
TOLERANCES = tuple(name for name in NUMBERS if name.startswith("tol_"))


def form(**fields: Any) -> dict[str, Any]:
    exact = dict.fromkeys(NUMBERS, 0.0)
    return {**exact, "parent_frame_id": str(new_id()), "reference_surface": "MountingFace", **fields}


@for_each("name", NUMBERS)
@for_each("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused_by_name(name: str, value: float) -> None:
    with expect_refusal("InvalidPlacementError", "not_finite") as caught:
        check_measured(Placement(**form(**{name: value})))
    assert caught.value.facts == {"field": name}


def test_a_number_too_large_for_a_double_is_refused_as_not_finite() -> None:
    text = Placement(**form(x=1.25)).model_dump_json().replace("1.25", "1e999")
    with expect_refusal("InvalidPlacementError", "not_finite"):
        check_measured(Placement.model_validate_json(text))


@for_each("name", TOLERANCES)
def test_a_tolerance_cannot_be_negative(name: str) -> None:
    with expect_refusal("InvalidPlacementError", "negative") as caught:
        check_measured(Placement(**form(**{name: -0.001})))
    assert caught.value.facts == {"field": name}


def test_a_survey_may_leave_everything_out() -> None:
    check_measured(Survey())


def test_a_survey_has_no_negative_residual() -> None:
    with expect_refusal("InvalidPlacementError", "negative"):
        check_measured(Survey(residual=-1))
    with expect_refusal("InvalidPlacementError", "not_finite"):
        check_measured(Survey(residual=math.inf))


def test_the_request_schema_declares_every_unit() -> None:
    properties = Placement.model_json_schema()["properties"]
    assert {name: properties[name]["unit"]["code"] for name in LENGTHS} == dict.fromkeys(LENGTHS, "mm")
    assert {name: properties[name]["unit"]["code"] for name in ANGLES} == dict.fromkeys(ANGLES, "rad")
    assert Survey.model_json_schema()["properties"]["residual"]["anyOf"][0]["unit"] == {"system": "udunits", "code": "mm"}


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(
    numbers=st.fixed_dictionaries({name: finite for name in NUMBERS if name not in TOLERANCES}),
    tolerances=st.fixed_dictionaries({name: st.floats(min_value=0, allow_infinity=False) for name in TOLERANCES}),
)
def test_every_finite_pose_with_tolerances_of_zero_or_more_is_taken(
    numbers: dict[str, float], tolerances: dict[str, float]
) -> None:
    check_measured(Placement(**form(**numbers, **tolerances)))
