"""A decider that was told what to say: for rehearsals and tests."""

from collections.abc import Sequence

from baton.domain.operation.steering.steering import SteeringAdvice, SteeringEvidence, SteeringVerdict


class SeededDecider:
    """Replays advice by iteration, and stops where there is none."""

    def __init__(self, advice: Sequence[SteeringAdvice] = ()) -> None:
        self._advice = tuple(advice)

    async def advise_next(self, evidence: SteeringEvidence) -> SteeringAdvice:
        if evidence.iteration_index <= len(self._advice):
            return self._advice[evidence.iteration_index - 1]
        return SteeringAdvice(verdict=SteeringVerdict.STOP, rationale="No more advice was given beforehand.")

    async def close(self) -> None:
        return
