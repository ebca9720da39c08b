"""The decider that needs no model: walk the lattice, point after point."""

import math
from typing import Any

from baton.domain.operation.steering.steering import SteeringAdvice, SteeringEvidence, SteeringObjectiveKind, SteeringVerdict


def grid_walk(evidence: SteeringEvidence, points_per_axis: int) -> SteeringAdvice:
    """Return the next lattice point, the first axis slowest; Stop at the end, or where Satisfy is met."""
    objective = evidence.objective
    values = (observation.good(objective.target_measurement_name) for observation in evidence.observations)
    if objective.kind is SteeringObjectiveKind.SATISFY and objective.target_value in values:
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
        point[axis.name] = axis.choices[index] if axis.bounds is None else between(*axis.bounds, index / (count - 1))
    return SteeringAdvice(
        verdict=SteeringVerdict.MEASURE,
        next_point=dict(reversed(point.items())),
        rationale=f"Lattice point {position + 1} of {math.prod(counts)}.",
    )


def between(lower: float, upper: float, fraction: float) -> float:
    """Return the number at a fraction of the interval, never beyond its ends, however wide it is."""
    if fraction >= 1:
        return upper
    width = upper - lower
    value = lower + width * fraction if math.isfinite(width) else lower * (1 - fraction) + upper * fraction
    return min(max(value, lower), upper)
