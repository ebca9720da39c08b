"""Partition rules: how the value commanded to a virtual axis is shared out among the axes it is made of.
A rule is data on the asset; `setpoints` says what it means. Solver rules are recorded only."""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Literal, assert_never
from uuid import UUID

from pydantic import Field, StrictBool, StrictFloat, StrictInt

from baton.domain.kernel import Value
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.schema import UnitSystem
from baton.domain.shared.text import Text


class InvalidPartitionRuleError(Invalid, context="equipment"):
    """The partition rule contradicts itself."""


class AggregatorKind(StrEnum):
    SUM = "Sum"
    DIFFERENCE = "Difference"
    MID_RANGE = "MidRange"
    PRODUCT = "Product"


class ReadbackAggregatorKind(StrEnum):
    IDENTITY = "Identity"
    SUM = "Sum"
    MEAN = "Mean"
    SELECT_INDEX_0 = "SelectIndex0"


class InterpolationKind(StrEnum):
    LINEAR = "Linear"
    NEAREST = "Nearest"


class ExtrapolationKind(StrEnum):
    CLAMP = "Clamp"
    ERROR = "Error"


class CompositePartitionKind(StrEnum):
    COARSE_FIRST_FILL = "CoarseFirstFill"
    FINE_CENTERED_KEEP = "FineCenteredKeep"
    PROPORTIONAL_FILL = "ProportionalFill"
    CONCENTRIC_SYMMETRIC = "ConcentricSymmetric"


class SolverTransportKind(StrEnum):
    SOFT_IOC_RECORD = "SoftIOCRecord"
    PYTHON_CALLABLE = "PythonCallable"
    CONTROLLER_API = "ControllerAPI"
    EXTERNAL_HTTP_SERVICE = "ExternalHTTPService"


class Unit(Value):
    """The unit a number is in, spelled as in a declared schema."""

    system: UnitSystem
    """Whose code it is, such as udunits."""
    code: Annotated[str, Text(200, InvalidPartitionRuleError, "unit code")]
    """The unit, spelled as its system spells it, such as mm or deg."""
    label: Annotated[str, Text(200, InvalidPartitionRuleError, "unit label")] | None = None
    """The unit in words."""


class Affine(Value):
    """One axis behind a gain and an offset."""

    kind: Literal["Affine"]
    gain: StrictFloat = 1.0
    offset: StrictFloat = 0.0
    input_unit: Unit | None = None
    output_unit: Unit | None = None


class Aggregation(Value):
    """Several equal axes whose sum, difference, middle or product is commanded."""

    kind: Literal["Aggregation"]
    aggregator_kind: AggregatorKind = AggregatorKind.SUM
    constituent_count: StrictInt = 1


class LookupTable(Value):
    """One axis that follows the points of a pinned calibration revision."""

    kind: Literal["LookupTable"]
    calibration_id: UUID
    calibration_revision_id: UUID
    interpolation_kind: InterpolationKind = InterpolationKind.LINEAR
    extrapolation_kind: ExtrapolationKind = ExtrapolationKind.CLAMP
    invertible: StrictBool = True
    readback_aggregator_kind: ReadbackAggregatorKind | None = None
    input_unit: Unit | None = None
    output_unit: Unit | None = None


class CompositePartition(Value):
    """Coarse and fine axes that add up to the commanded value."""

    kind: Literal["CompositePartition"]
    partition_kind: CompositePartitionKind = CompositePartitionKind.PROPORTIONAL_FILL
    constituent_count: StrictInt = 2
    partition_parameters: dict[str, StrictFloat] = {}
    readback_aggregator_kind: ReadbackAggregatorKind = ReadbackAggregatorKind.SUM


class SolverReference(Value):
    """Axes that an outside solver computes; recorded, not evaluated."""

    kind: Literal["SolverReference"]
    solver_id: Annotated[str, Text(200, InvalidPartitionRuleError, "solver id")]
    solver_version: Annotated[str, Text(100, InvalidPartitionRuleError, "solver version")]
    solver_transport_kind: SolverTransportKind
    residual_tolerance_limit: StrictFloat = 0.0
    singularity_threshold: StrictFloat = 0.0
    invertible: StrictBool = True
    readback_aggregator_kind: ReadbackAggregatorKind | None = None


PartitionRule = Annotated[
    Affine | Aggregation | LookupTable | CompositePartition | SolverReference, Field(discriminator="kind")
]


def check_partition_rule(rule: PartitionRule) -> None:
    """Refuse a rule that contradicts itself, by the first fault found."""
    for reason, detail in _faults(rule):
        raise InvalidPartitionRuleError(detail, reason=reason)


def _faults(rule: PartitionRule) -> Iterator[tuple[str, str]]:
    if isinstance(rule, Aggregation | CompositePartition):
        count, least = rule.constituent_count, 1 if isinstance(rule, Aggregation) else 2
        if count < least:
            yield "constituent_count", f"constituent_count is {count}; this rule needs at least {least}."
    if isinstance(rule, Aggregation):
        paired = rule.aggregator_kind in (AggregatorKind.DIFFERENCE, AggregatorKind.MID_RANGE)
        if paired and rule.constituent_count != 2:
            yield "constituent_count", f"{rule.aggregator_kind} is between two axes; set constituent_count to 2."
    if isinstance(rule, SolverReference):
        if rule.residual_tolerance_limit < 0:
            yield "residual_tolerance_limit", "residual_tolerance_limit is negative; set it to 0 or above."
        if rule.singularity_threshold < rule.residual_tolerance_limit:
            detail = "singularity_threshold is below residual_tolerance_limit; raise it to at least that."
            yield "singularity_threshold", detail
    if isinstance(rule, LookupTable | SolverReference) and not rule.invertible and rule.readback_aggregator_kind is None:
        detail = "A rule that is not invertible cannot tell the axis' position; name a readback_aggregator_kind."
        yield "readback_aggregator_kind", detail


def arity(rule: PartitionRule) -> int | None:
    """Return how many constituents the rule drives; solver rules do not say."""
    match rule:
        case Affine() | LookupTable():
            return 1
        case Aggregation() | CompositePartition():
            return rule.constituent_count
        case SolverReference():
            return None
        case _:
            assert_never(rule)


class PartitionNotEvaluatedError(Exception):
    """This rule is recorded only, or its table has no points."""


class PartitionOutOfRangeError(Exception):
    """The commanded value has no setpoints under this rule."""


class PartitionNotFiniteError(Exception):
    """The rule leads to a setpoint that is no finite number."""


def setpoints(rule: PartitionRule, value: float, points: Sequence[tuple[float, float]] = ()) -> tuple[float, ...]:
    """Return one setpoint for each constituent; `points` are those of the revision a table pins, in any order."""
    results = _setpoints(rule, value, points)
    if not all(map(math.isfinite, results)):
        raise PartitionNotFiniteError(f"{rule.kind} leads from {value} to {results}")
    return results


def _setpoints(rule: PartitionRule, value: float, points: Sequence[tuple[float, float]]) -> tuple[float, ...]:
    match rule:
        case Affine():
            return (rule.gain * value + rule.offset,)
        case Aggregation():
            return _aggregate_setpoints(rule, value)
        case LookupTable():
            return (_table_output(rule, value, sorted(points)),)
        case CompositePartition():
            return _composite_setpoints(rule, value)
        case SolverReference():
            raise PartitionNotEvaluatedError(f"solver {rule.solver_id} is recorded only")
        case _:
            assert_never(rule)


def constituent_tolerances(rule: PartitionRule, tolerance: float) -> tuple[float, ...] | None:
    """Return how far each constituent may be from its setpoint so that the axis is as near as the tolerance; None where the
    rule has no such number that counts everywhere."""
    match rule:
        case Affine():
            return (abs(rule.gain) * tolerance,)
        case Aggregation(aggregator_kind=AggregatorKind.MID_RANGE):
            return (tolerance, tolerance)
        case Aggregation(aggregator_kind=AggregatorKind.SUM | AggregatorKind.DIFFERENCE) | CompositePartition():
            return (tolerance / rule.constituent_count,) * rule.constituent_count
        case Aggregation() | LookupTable() | SolverReference():
            return None
        case _:
            assert_never(rule)


def _aggregate_setpoints(rule: Aggregation, value: float) -> tuple[float, ...]:
    count = rule.constituent_count
    match rule.aggregator_kind:
        case AggregatorKind.SUM:
            return (value / count,) * count
        case AggregatorKind.DIFFERENCE:
            return (-value / 2, value / 2)
        case AggregatorKind.MID_RANGE:
            return (value, value)
        case AggregatorKind.PRODUCT:
            if value < 0:
                raise PartitionOutOfRangeError(f"a product of equal factors cannot be {value}")
            return (value ** (1 / count),) * count
        case _:
            assert_never(rule.aggregator_kind)


def _composite_setpoints(rule: CompositePartition, value: float) -> tuple[float, ...]:
    count = rule.constituent_count
    match rule.partition_kind:
        case CompositePartitionKind.COARSE_FIRST_FILL:
            return (value, *(0.0,) * (count - 1))
        case CompositePartitionKind.FINE_CENTERED_KEEP:
            return (*(0.0,) * (count - 1), value)
        case CompositePartitionKind.PROPORTIONAL_FILL | CompositePartitionKind.CONCENTRIC_SYMMETRIC:
            return (value / count,) * count
        case _:
            assert_never(rule.partition_kind)


def _table_output(rule: LookupTable, value: float, points: Sequence[tuple[float, float]]) -> float:
    if not points:
        raise PartitionNotEvaluatedError("the pinned revision has no points")
    (first, first_output), (last, last_output) = points[0], points[-1]
    if not first <= value <= last:
        if rule.extrapolation_kind is ExtrapolationKind.ERROR:
            raise PartitionOutOfRangeError(f"{value} is outside the table, which goes from {first} to {last}")
        return first_output if value < first else last_output
    above = bisect_left(points, value, key=lambda point: point[0])
    (high, high_output) = points[above]
    if above == 0 or high == value:
        return high_output
    (low, low_output) = points[above - 1]
    share = (value - low) / (high - low)
    match rule.interpolation_kind:
        case InterpolationKind.LINEAR:
            return low_output + share * (high_output - low_output)
        case InterpolationKind.NEAREST:
            return low_output if share <= 0.5 else high_output
        case _:
            assert_never(rule.interpolation_kind)
