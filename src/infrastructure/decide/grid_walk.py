"""The walk over a lattice, as a decider."""

from baton.domain.operation.steering.grid_walk import grid_walk
from baton.domain.operation.steering.steering import SteeringAdvice, SteeringEvidence


class GridWalkDecider:
    """Measures every point of the lattice once."""

    def __init__(self, points_per_axis: int) -> None:
        self._points_per_axis = points_per_axis

    async def advise_next(self, evidence: SteeringEvidence) -> SteeringAdvice:
        return grid_walk(evidence, self._points_per_axis)

    async def close(self) -> None:
        return
