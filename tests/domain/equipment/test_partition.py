"""Partition rules: which are valid, and that their setpoints add up to what was commanded."""

import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from baton.domain.equipment.asset_parts import UpdateAssetPartitionRule
from baton.domain.equipment.partition import (
    InvalidPartitionRuleError,
    PartitionNotEvaluatedError,
    PartitionNotFiniteError,
    PartitionOutOfRangeError,
    PartitionRule,
    arity,
    check_partition_rule,
    setpoints,
)
from tests.support.domain.assets import facility_world, root
from tests.support.domain.world import expect_refusal, new_id
from tests.support.tables import for_each

RULES: TypeAdapter[Any] = TypeAdapter(PartitionRule)
TABLE = {"kind": "LookupTable", "calibration_id": str(new_id()), "calibration_revision_id": str(new_id())}
SOLVER = {
    "kind": "SolverReference",
    "solver_id": "kinematics",
    "solver_version": "2.1",
    "solver_transport_kind": "PythonCallable",
}
VALUES = st.floats(-1e6, 1e6)


def rule(kind: str, **fields: Any) -> Any:
    return RULES.validate_python({"kind": kind, **fields})


def table(**fields: Any) -> Any:
    return RULES.validate_python({**TABLE, **fields})


@for_each(
    ("fields", "defaults"),
    [
        ({"kind": "Affine"}, {"gain": 1, "offset": 0, "input_unit": None, "output_unit": None}),
        ({"kind": "Aggregation"}, {"aggregator_kind": "Sum", "constituent_count": 1}),
        (
            TABLE,
            {
                "interpolation_kind": "Linear",
                "extrapolation_kind": "Clamp",
                "invertible": True,
                "readback_aggregator_kind": None,
            },
        ),
        (
            {"kind": "CompositePartition"},
            {
                "partition_kind": "ProportionalFill",
                "constituent_count": 2,
                "partition_parameters": {},
                "readback_aggregator_kind": "Sum",
            },
        ),
        (SOLVER, {"residual_tolerance_limit": 0, "singularity_threshold": 0, "invertible": True}),
    ],
)
def test_a_rule_fills_in_what_is_left_out_and_is_valid(fields: dict[str, Any], defaults: dict[str, Any]) -> None:
    made = RULES.validate_python(fields)
    check_partition_rule(made)
    assert made.model_dump(mode="json").items() >= {**fields, **defaults}.items()


@for_each(
    "fields",
    [
        {"kind": "Aggregation", "constituent_count": 0},
        {"kind": "Aggregation", "aggregator_kind": "Difference"},
        {"kind": "Aggregation", "aggregator_kind": "MidRange", "constituent_count": 3},
        {**TABLE, "invertible": False},
        {"kind": "CompositePartition", "constituent_count": 1},
        {**SOLVER, "residual_tolerance_limit": -0.1},
        {**SOLVER, "residual_tolerance_limit": 0.2, "singularity_threshold": 0.1},
        {**SOLVER, "invertible": False},
        {**SOLVER, "solver_id": " "},
        {**SOLVER, "solver_version": " "},
        {"kind": "Affine", "input_unit": {"system": "udunits", "code": " "}},
    ],
)
def test_a_rule_that_contradicts_itself_is_refused(fields: dict[str, Any]) -> None:
    world = facility_world()
    axis = root(world)
    with expect_refusal(InvalidPartitionRuleError):
        world.when(UpdateAssetPartitionRule(partition_rule=fields), on=axis)


@for_each(
    "fields",
    [{"kind": "Affine", "gain": math.inf}, {"kind": "CompositePartition", "partition_parameters": {"share": math.nan}}],
)
def test_a_rule_with_a_number_that_is_not_finite_does_not_reach_the_domain(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RULES.validate_python(fields)


def test_a_rule_that_is_not_invertible_is_valid_with_a_readback() -> None:
    check_partition_rule(table(invertible=False, readback_aggregator_kind="SelectIndex0"))
    check_partition_rule(RULES.validate_python({**SOLVER, "invertible": False, "readback_aggregator_kind": "Mean"}))


@for_each(
    ("made", "count"),
    [
        (rule("Affine"), 1),
        (table(), 1),
        (rule("Aggregation", constituent_count=3), 3),
        (rule("CompositePartition"), 2),
        (RULES.validate_python(SOLVER), None),
    ],
)
def test_each_rule_says_how_many_axes_it_drives(made: Any, count: int | None) -> None:
    assert arity(made) == count


@given(value=VALUES, gain=VALUES, offset=VALUES)
def test_an_affine_setpoint_lies_on_its_line(value: float, gain: float, offset: float) -> None:
    assert setpoints(rule("Affine", gain=gain, offset=offset), value) == (gain * value + offset,)


@given(value=VALUES, count=st.integers(1, 8))
def test_the_setpoints_of_a_sum_add_up_and_are_equal(value: float, count: int) -> None:
    found = setpoints(rule("Aggregation", constituent_count=count), value)
    assert len(found) == count
    assert len(set(found)) == 1
    assert math.fsum(found) == pytest.approx(value)


@given(value=VALUES)
def test_the_setpoints_of_a_difference_differ_by_the_value_around_zero(value: float) -> None:
    first, second = setpoints(rule("Aggregation", aggregator_kind="Difference", constituent_count=2), value)
    assert second - first == pytest.approx(value)
    assert first + second == 0


@given(value=VALUES)
def test_the_middle_of_both_ends_is_the_value(value: float) -> None:
    first, second = setpoints(rule("Aggregation", aggregator_kind="MidRange", constituent_count=2), value)
    assert (min(first, second) + max(first, second)) / 2 == value


@given(value=VALUES, count=st.integers(1, 8))
def test_the_setpoints_of_a_product_multiply_to_the_value(value: float, count: int) -> None:
    product = rule("Aggregation", aggregator_kind="Product", constituent_count=count)
    if value < 0:
        with pytest.raises(PartitionOutOfRangeError):
            setpoints(product, value)
    else:
        assert math.prod(setpoints(product, value)) == pytest.approx(value)


@given(
    value=VALUES,
    count=st.integers(2, 6),
    kind=st.sampled_from(["CoarseFirstFill", "FineCenteredKeep", "ProportionalFill", "ConcentricSymmetric"]),
)
def test_the_parts_of_a_composite_add_up(value: float, count: int, kind: str) -> None:
    found = setpoints(rule("CompositePartition", partition_kind=kind, constituent_count=count), value)
    assert len(found) == count
    assert math.fsum(found) == pytest.approx(value)


@for_each(
    ("kind", "expected"),
    [
        ("CoarseFirstFill", (6, 0, 0)),
        ("FineCenteredKeep", (0, 0, 6)),
        ("ProportionalFill", (2, 2, 2)),
        ("ConcentricSymmetric", (2, 2, 2)),
    ],
)
def test_a_composite_shares_out_as_its_kind_says(kind: str, expected: tuple[float, ...]) -> None:
    assert setpoints(rule("CompositePartition", partition_kind=kind, constituent_count=3), 6) == expected


CURVE = [(8.0, 10.0), (12.0, 30.0), (20.0, 50.0)]


@for_each(
    ("interpolation", "value", "position"),
    [
        *(("Linear", 8, 10), ("Linear", 10, 20), ("Linear", 16, 40), ("Linear", 20, 50)),
        *(("Nearest", 9.9, 10), ("Nearest", 11, 30)),
    ],
)
def test_a_table_is_read_between_its_points_in_whatever_order_they_come(
    interpolation: str, value: float, position: float
) -> None:
    assert setpoints(table(interpolation_kind=interpolation), value, CURVE[::-1]) == (pytest.approx(position),)


def test_outside_its_range_a_table_clamps_or_refuses() -> None:
    assert setpoints(table(), 5, CURVE) == (10.0,)
    assert setpoints(table(), 25, CURVE) == (50.0,)
    for value in (5, 25):
        with pytest.raises(PartitionOutOfRangeError):
            setpoints(table(extrapolation_kind="Error"), value, CURVE)


POINTS = st.lists(st.tuples(st.integers(-1000, 1000), VALUES), min_size=1, max_size=8, unique_by=lambda point: point[0])


@given(points=POINTS, value=st.floats(-1200, 1200), kind=st.sampled_from(["Linear", "Nearest"]))
def test_a_table_meets_its_points_and_stays_between_them(points: list[tuple[float, float]], value: float, kind: str) -> None:
    made = table(interpolation_kind=kind)
    for known, position in points:
        assert setpoints(made, known, points) == (pytest.approx(position),)
    (found,) = setpoints(made, value, points)
    outputs = [position for _, position in points]
    slack = 1e-6 * max(1.0, *map(abs, outputs))
    assert min(outputs) - slack <= found <= max(outputs) + slack
    if kind == "Nearest":
        assert found in outputs


def test_what_cannot_be_evaluated_says_so() -> None:
    with pytest.raises(PartitionNotEvaluatedError):
        setpoints(RULES.validate_python(SOLVER), 1)
    with pytest.raises(PartitionNotEvaluatedError):
        setpoints(table(), 1, [])


@given(value=st.floats(1e300, 1.7e308), gain=st.floats(1e10, 1e20))
def test_a_setpoint_is_a_finite_number_or_an_error(value: float, gain: float) -> None:
    assume(math.isinf(value * gain))
    with pytest.raises(PartitionNotFiniteError):
        setpoints(rule("Affine", gain=gain), value)
