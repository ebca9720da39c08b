"""Spaces of intervals as unit cubes, the form in which numerical deciders know them."""

from collections.abc import Mapping, Sequence
from typing import Any

from baton.application.conduct.deciders import DecideEvidenceRejectedError
from baton.domain.operation.steering.grid_walk import between
from baton.domain.operation.steering.steering import SteeringSpace


class Intervals:
    """A space in which every axis has bounds; raises DecideEvidenceRejectedError for any other."""

    def __init__(self, space: SteeringSpace) -> None:
        bounds = {axis.name: axis.bounds for axis in space.axes}
        if unbounded := [name for name, ends in bounds.items() if ends is None]:
            raise DecideEvidenceRejectedError(f"This decider knows intervals only, and {', '.join(unbounded)} has none.")
        self._bounds = {name: ends for name, ends in bounds.items() if ends is not None}

    def __len__(self) -> int:
        return len(self._bounds)

    def point(self, fractions: Sequence[float]) -> dict[str, Any]:
        """The point of the space at these fractions of its axes."""
        ends = self._bounds.items()
        return {name: between(*bounds, float(part)) for (name, bounds), part in zip(ends, fractions, strict=True)}

    def fractions(self, point: Mapping[str, Any]) -> list[float]:
        """Where in the unit cube a point of the space lies."""
        return [_fraction(*bounds, point[name]) for name, bounds in self._bounds.items()]


def _fraction(lower: float, upper: float, value: float) -> float:
    scale = max(abs(lower), abs(upper))  # without it, the width of a very wide interval is infinite
    fraction = (value / scale - lower / scale) / (upper / scale - lower / scale)
    return min(max(fraction, 0.0), 1.0)
