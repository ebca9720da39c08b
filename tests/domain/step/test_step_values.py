"""What a conduct makes of values: sentinels resolved, readings judged against criteria, results deposited."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from baton.domain.recipe.steps import BindingRef, CaptureRef, OutputRef, PlainCriterion, RecipeComputeStep, SteeringRef
from baton.domain.shared.canonical import canonical_json
from baton.domain.step.results import Artifact, Measured
from baton.domain.step.step_values import (
    Memory,
    StepFault,
    capturable_number,
    deposit_of,
    json_equal,
    meets,
    reference_field,
    refuse_refill,
)
from tests.support.tables import for_each
from tests.support.workflows.step_json import compute, criterion

CRITERION: TypeAdapter[Any] = TypeAdapter(PlainCriterion)
VOLUME = Artifact(uri="file:///data/volume", checksum_algorithm="sha256", checksum_value="0" * 64, byte_size=12)
MEMORY = Memory(captures={"home": 1.5}, outputs={"volume": VOLUME}, coordinates={"focus": -2.0, "filter": "Al"})

NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(st.characters(codec="ascii"), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=6,
)


def capture_ref(name: str) -> CaptureRef:
    return CaptureRef(capture_name=name)


def steering_ref(name: str) -> SteeringRef:
    return SteeringRef(steering_axis_name=name)


def output_ref(name: str) -> OutputRef:
    return OutputRef(output_name=name)


@for_each(
    ("operand", "value"),
    [
        (25.0, 25.0),
        ("home", "home"),
        ((1, 2), (1, 2)),
        ({"home": 1}, {"home": 1}),
        (None, None),
        (False, False),
        (capture_ref("home"), 1.5),
        (steering_ref("focus"), -2.0),
        (steering_ref("filter"), "Al"),
        (output_ref("volume"), "file:///data/volume"),
    ],
)
def test_an_operand_stands_for_itself_or_for_what_it_names(operand: Any, value: Any) -> None:
    assert MEMORY.value(operand) == value


@for_each(
    ("operand", "label"),
    [
        (capture_ref("away"), "UnresolvedCaptureRef"),
        (capture_ref("focus"), "UnresolvedCaptureRef"),
        (capture_ref("volume"), "UnresolvedCaptureRef"),
        (steering_ref("tilt"), "UnresolvedCaptureRef"),
        (steering_ref("home"), "UnresolvedCaptureRef"),
        (output_ref("home"), "UnresolvedOutputRef"),
    ],
)
def test_a_name_that_nothing_is_kept_under_is_a_fault(operand: Any, label: str) -> None:
    with pytest.raises(StepFault, match=next(iter(dict(operand).values()))) as fault:
        MEMORY.value(operand)
    assert fault.value.label == label


def test_nothing_is_remembered_at_first() -> None:
    with pytest.raises(StepFault):
        Memory().value(capture_ref("home"))


@for_each(
    ("operand", "named"),
    [
        (capture_ref("home"), {"capture_ref": "home"}),
        (steering_ref("focus"), {"steering_ref": "focus"}),
        (output_ref("volume"), {}),
        (BindingRef(name="dwell"), {}),
        (25.0, {}),
        ("home", {}),
    ],
)
def test_the_record_names_what_a_value_came_from(operand: Any, named: dict[str, str]) -> None:
    assert reference_field(operand) == named


@for_each(
    ("expected", "tolerance", "value", "met"),
    [
        (25, None, 25, True),
        (25, None, 25.0, True),
        (25, None, 25.0000001, False),
        (25, None, "25", False),
        (1, None, True, False),
        (0, None, False, False),
        (True, None, True, True),
        (True, None, 1, False),
        ("open", None, "open", True),
        ("open", None, "Open", False),
        ([1, 2], None, [1.0, 2], True),
        ([1, 2], None, (1, 2), True),
        ([1, 2], None, [2, 1], False),
        ([1, 2], None, [1, 2, 3], False),
        ([1, 0], None, [True, False], False),
        ([], None, [], True),
        ([], None, 0, False),
        (25, 0.5, 25.5, True),
        (25, 0.5, 24.5, True),
        (25, 0.5, 25.51, False),
        (25, 0, 25, True),
        (25, 0, 25.0000001, False),
        (25, 0.5, "25", False),
        (1, 0.5, True, False),
        (25, 0.5, None, False),
        (25, 0.5, [25], False),
        (25, 0.5, float("nan"), False),
        (25, 0.5, float("inf"), False),
        (25, 1e308, 10**400, False),
    ],
)
def test_a_value_meets_a_criterion_or_does_not_and_never_fails(
    expected: Any, tolerance: float | None, value: Any, met: bool
) -> None:
    judged = CRITERION.validate_python(criterion(expected, tolerance))
    assert meets(judged, judged.expected, value) is met


@for_each(
    ("expected", "tolerance", "value", "index", "met"),
    [
        ("Done", None, "Done", 2, True),
        (2, None, "Done", 2, True),
        (1, None, "Done", 2, False),
        (1, None, "Busy", True, False),
        (2, None, "Done", None, False),
        (2, 1.0, "Done", 2, False),
    ],
)
def test_a_label_is_met_by_its_index_too(
    expected: Any, tolerance: float | None, value: str, index: int | None, met: bool
) -> None:
    judged = CRITERION.validate_python(criterion(expected, tolerance))
    assert meets(judged, judged.expected, value, index) is met


@given(PLAIN, PLAIN)
def test_two_values_are_the_same_exactly_when_they_are_the_same_json(one: Any, other: Any) -> None:
    assert json_equal(one, other) == (canonical_json(one) == canonical_json(other))
    assert json_equal(one, other) == json_equal(other, one)


@given(PLAIN)
def test_a_value_is_the_same_as_itself_however_its_lists_are_kept(value: Any) -> None:
    assert json_equal(value, value)
    assert json_equal(value, frozen_value(value))


def frozen_value(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(frozen_value, value))
    return {key: frozen_value(item) for key, item in value.items()} if isinstance(value, dict) else value


@given(NUMBERS, st.floats(0, 1e9), NUMBERS)
def test_a_tolerance_reaches_as_far_to_either_side(expected: Any, tolerance: float, value: Any) -> None:
    judged = CRITERION.validate_python(criterion(expected, tolerance))
    met = meets(judged, expected, value)
    assert met == (abs(value - expected) <= tolerance)
    assert meets(judged, value, expected) == met
    assert meets(judged, expected, expected)


@given(NUMBERS)
def test_a_good_finite_number_is_captured_as_it_is(value: Any) -> None:
    assert capturable_number(value, "Good", "bl7:x") == value


@for_each(
    ("value", "quality", "label"),
    [
        (1.5, "Uncertain", "CheckFailedError"),
        (1.5, "Bad", "CheckFailedError"),
        ("wide", "Bad", "CheckFailedError"),
        (True, "Good", "ControlValueCoercionError"),
        ("1.5", "Good", "ControlValueCoercionError"),
        ([1.5], "Good", "ControlValueCoercionError"),
        (None, "Good", "ControlValueCoercionError"),
        (float("nan"), "Good", "ControlValueCoercionError"),
        (float("-inf"), "Good", "ControlValueCoercionError"),
        (10**400, "Good", "ControlValueCoercionError"),
    ],
)
def test_anything_else_is_not_captured(value: Any, quality: str, label: str) -> None:
    with pytest.raises(StepFault, match=r"^bl7:x ") as fault:
        capturable_number(value, quality, "bl7:x")
    assert fault.value.label == label


def test_a_slot_is_filled_once() -> None:
    refuse_refill("away", MEMORY.captures)
    with pytest.raises(StepFault, match="home") as fault:
        refuse_refill("home", MEMORY.captures)
    assert fault.value.label == "DuplicateCapture"


def program(**fields: Any) -> RecipeComputeStep:
    return RecipeComputeStep.model_validate(compute("find-offset", **fields))


def measurement(name: str, value: Any = 0.3, quality: str = "Good") -> Measured:
    return Measured(name=name, value=value, kind="Scalar", units="px", quality=quality)


def test_a_program_deposits_the_one_measurement_it_is_run_for() -> None:
    brought = [measurement("contrast", 9.0), measurement("offset"), measurement("noise", "high", "Bad")]
    left = deposit_of(program(capture_name="offset"), brought, [], MEMORY)
    assert left == {"capture_name": "offset", "captured_value": 0.3}


@for_each(
    ("brought", "label"),
    [
        ([], "ComputeMeasurementNotFound"),
        ([measurement("contrast")], "ComputeMeasurementNotFound"),
        ([measurement("home"), measurement("home")], "ComputeMeasurementAmbiguous"),
        ([measurement("home", "far", "Bad"), measurement("home")], "ComputeMeasurementAmbiguous"),
        ([measurement("home", "far", "Uncertain")], "CheckFailedError"),
        ([measurement("home", "far")], "ControlValueCoercionError"),
        ([measurement("home", True)], "ControlValueCoercionError"),
        ([measurement("home")], "DuplicateCapture"),
    ],
)
def test_what_is_wrong_with_a_measurement_is_told_in_order(brought: list[Measured], label: str) -> None:
    with pytest.raises(StepFault, match="home") as fault:
        deposit_of(program(capture_name="home"), brought, [], MEMORY)
    assert fault.value.label == label


def test_a_program_publishes_its_artifact_under_a_name_once() -> None:
    made = VOLUME.model_copy(update={"uri": "file:///data/slices"})
    step = program(output_uri="file:///data/slices", output_ref_name="slices")
    left = deposit_of(step, [], [made], MEMORY)
    assert left == {"output_ref_name": "slices", "artifact": made.model_dump(mode="json")}
    assert left is not None
    assert Artifact.model_validate(left["artifact"]) == made
    with pytest.raises(StepFault, match="volume") as fault:
        deposit_of(program(output_uri="file:///x", output_ref_name="volume"), [], [made], MEMORY)
    assert fault.value.label == "DuplicateOutput"


@given(st.lists(st.builds(measurement, st.sampled_from(["offset", "contrast"]), PLAIN)))
def test_a_program_that_is_run_for_nothing_deposits_nothing(brought: list[Measured]) -> None:
    assert deposit_of(program(), brought, [], MEMORY) is None
    assert deposit_of(program(output_uri="file:///x"), brought, [VOLUME], MEMORY) is None


@given(st.lists(st.tuples(st.sampled_from(["offset", "contrast"]), PLAIN, st.sampled_from(["Good", "Bad"])), max_size=4))
def test_whatever_a_program_brings_is_deposited_or_a_fault_of_a_known_name(brought: list[tuple[str, Any, str]]) -> None:
    found = [value for name, value, _ in brought if name == "offset"]
    made = [measurement(*one) for one in brought]
    try:
        left = deposit_of(program(capture_name="offset"), made, [], Memory())
    except StepFault as fault:
        kept = fault.label
    else:
        kept = "kept"
        assert left == {"capture_name": "offset", "captured_value": found[0]}
    known = {0: {"ComputeMeasurementNotFound"}, 1: {"kept", "CheckFailedError", "ControlValueCoercionError"}}
    assert kept in known.get(len(found), {"ComputeMeasurementAmbiguous"})
