"""The decider that needs no model: walk the lattice, point after point."""

import math
from typing import Any

from baton.domain.operation.steering.steering import (
    SteeringAdvice,
    SteeringAxis,
    SteeringEvidence,
    SteeringObjectiveKind,
    SteeringVerdict,
)


def grid_walk(evidence: SteeringEvidence, points_per_axis: int) -> SteeringAdvice:
    """The lattice point after as many as were measured, the first axis slowest; Stop at the end, or where Satisfy is met."""
    if is_satisfied(evidence):
        return SteeringAdvice(verdict=SteeringVerdict.STOP, rationale="The target value was measured.")
    position = len(evidence.observations)
    counts = [len(axis.choices) or points_per_axis for axis in evidence.space.axes]
    if position >= math.prod(counts):
        return SteeringAdvice(
            verdict=SteeringVerdict.STOP, rationale=f"All {math.prod(counts)} lattice points were measured."
        )
    point: dict[str, Any] = {}
    rest = position
    for axis, count in zip(reversed(evidence.space.axes), reversed(counts), strict=True):
        rest, index = divmod(rest, count)
        point[axis.name] = lattice_value(axis, index, count)
    return SteeringAdvice(
        verdict=SteeringVerdict.MEASURE,
        next_point=dict(reversed(point.items())),
        rationale=f"Lattice point {position + 1} of {math.prod(counts)}.",
    )


def is_satisfied(evidence: SteeringEvidence) -> bool:
    """Whether a search for one value has found exactly it."""
    objective = evidence.objective
    if objective.kind is not SteeringObjectiveKind.SATISFY:
        return False
    return any(
        observation.good(objective.target_measurement_name) == objective.target_value
        for observation in evidence.observations
    )


def lattice_value(axis: SteeringAxis, index: int, count: int) -> Any:
    """One of `count` even values of an axis, both ends among them; or one of its choices."""
    if axis.bounds is None:
        return axis.choices[index]
    return between(*axis.bounds, index / (count - 1))


def between(lower: float, upper: float, fraction: float) -> float:
    """The number so far on the way from `lower` to `upper`, never beyond either, however wide the interval."""
    if fraction >= 1:
        return upper
    width = upper - lower
    value = lower + width * fraction if math.isfinite(width) else lower * (1 - fraction) + upper * fraction
    return min(max(value, lower), upper)
