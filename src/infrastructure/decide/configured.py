"""The deciders of this deployment, made as a conduct asks for them; the simplest two are here."""

import asyncio
from collections.abc import Collection, Sequence
from typing import assert_never

from baton.application.conduct.deciders import Decider
from baton.application.language_models import ModelProvider
from baton.domain.agent.language_model import ModelRef
from baton.domain.operation.steering import decider_choice as choices
from baton.domain.operation.steering.decider_choice import AskedDecide
from baton.domain.operation.steering.grid_walk import grid_walk
from baton.domain.operation.steering.steering import SteeringAdvice, SteeringEvidence, SteeringVerdict
from baton.infrastructure.decide import StatelessDecider
from baton.infrastructure.decide.llm import LanguageModelDecider
from baton.infrastructure.plugins import DECIDERS, PluginUnusableError


class SeededDecider(StatelessDecider):
    """Replays the advice it was given, by iteration, and stops after the last."""

    def __init__(self, advice: Sequence[SteeringAdvice] = ()) -> None:
        self._advice = tuple(advice)

    async def advise_next(self, evidence: SteeringEvidence) -> SteeringAdvice:
        if evidence.iteration_index <= len(self._advice):
            return self._advice[evidence.iteration_index - 1]
        return SteeringAdvice(verdict=SteeringVerdict.STOP, rationale="No more advice was given beforehand.")


class GridWalkDecider(StatelessDecider):
    def __init__(self, points_per_axis: int) -> None:
        self._points_per_axis = points_per_axis

    async def advise_next(self, evidence: SteeringEvidence) -> SteeringAdvice:
        return grid_walk(evidence, self._points_per_axis)


class ConfiguredDeciders:
    """Makes the deciders that are available; numerical libraries are imported when first needed, in a thread."""

    def __init__(self, available: Collection[str], language_model: tuple[ModelProvider, ModelRef] | None = None) -> None:
        self._available = frozenset(available)
        self._language_model = language_model

    async def decider(self, decide: AskedDecide) -> Decider:
        if choices.decider_name(decide) not in self._available:
            raise _unavailable(decide, "it is not offered here")
        try:
            return await asyncio.to_thread(self._make, decide)
        except ImportError as error:
            raise _unavailable(decide, f"{error.name} is not installed; install baton-facility[optimize]") from error
        except PluginUnusableError as error:
            raise _unavailable(decide, str(error).rstrip(".")) from error

    def _make(self, decide: AskedDecide) -> Decider:
        match decide:
            case choices.InMemoryDecide():
                return SeededDecider(decide.advice)
            case choices.GridWalkDecide():
                return GridWalkDecider(decide.points_per_axis)
            case choices.SobolDecide():
                from baton.infrastructure.decide.optimizing import SobolDecider

                return SobolDecider()
            case choices.StagedDecide():
                from baton.infrastructure.decide.optimizing import StagedDecider

                return StagedDecider(decide)
            case choices.BotorchDecide():
                from baton.infrastructure.decide.optimizing import GaussianProcessDecider

                return GaussianProcessDecider(decide)
            case choices.LlmDecide():
                if self._language_model is None:
                    raise _unavailable(decide, "no language model is configured")
                return LanguageModelDecider(*self._language_model)
            case choices.PluginDecide():
                return DECIDERS.make(decide.name, decide.options)
            case _:
                assert_never(decide)


def _unavailable(decide: AskedDecide, why: str) -> choices.DecideNotAvailableError:
    name = choices.decider_name(decide)
    return choices.DecideNotAvailableError(
        f"The decider {name} cannot be asked: {why}.", reason="not_offered", facts={"substrate": name}
    )
