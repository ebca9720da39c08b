"""A decider in two stages: fill the space until there is enough to model, then follow the model."""

from baton.application.conduct.deciders import DecideColdStartError
from baton.domain.operation.steering.decider_choice import StagedDecide
from baton.domain.operation.steering.steering import SteeringAdvice, SteeringEvidence
from baton.infrastructure.decide.gaussian_process import GaussianProcessDecider, training_data
from baton.infrastructure.decide.intervals import Intervals
from baton.infrastructure.decide.sobol import SobolDecider


class StagedDecider:
    """Changes over as soon as there are enough Good points, and back where the model still wants more."""

    def __init__(self, setup: StagedDecide) -> None:
        self._threshold = setup.staged_threshold
        self._exploring = SobolDecider()
        self._exploiting = GaussianProcessDecider(setup)

    async def advise_next(self, evidence: SteeringEvidence) -> SteeringAdvice:
        if len(training_data(evidence, Intervals(evidence.space)).values) < self._threshold:
            return await self._exploring.advise_next(evidence)
        try:
            return await self._exploiting.advise_next(evidence)
        except DecideColdStartError:
            return await self._exploring.advise_next(evidence)

    async def close(self) -> None:
        await self._exploring.close()
        await self._exploiting.close()
