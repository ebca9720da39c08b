"""A decider that fills the space evenly, finer and finer: the Sobol' sequence."""

import asyncio

from scipy.stats import qmc

from baton.domain.operation.steering.steering import SteeringAdvice, SteeringEvidence, SteeringVerdict
from baton.infrastructure.decide.intervals import Intervals


class SobolDecider:
    """The unscrambled sequence without its origin, which is where every first pass measures. Never stops."""

    async def advise_next(self, evidence: SteeringEvidence) -> SteeringAdvice:
        intervals = Intervals(evidence.space)
        position = max(1, len(evidence.observations))
        fractions = await asyncio.to_thread(_member, len(intervals), position)
        return SteeringAdvice(
            verdict=SteeringVerdict.MEASURE,
            next_point=intervals.point(fractions),
            rationale=f"Member {position} of the Sobol' sequence.",
        )

    async def close(self) -> None:
        return


def _member(dimensions: int, position: int) -> list[float]:
    sequence = qmc.Sobol(dimensions, scramble=False).fast_forward(position)
    return [float(part) for part in sequence.random(1)[0]]
