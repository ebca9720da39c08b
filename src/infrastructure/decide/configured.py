"""The deciders of this deployment, made as a conduct asks for them."""

import asyncio
from collections.abc import Collection
from typing import assert_never

from baton.application.conduct.deciders import Decider
from baton.application.language_models import ModelProvider
from baton.domain.agent.model_ref import ModelRef
from baton.domain.operation.steering.decider_choice import (
    AskedDecide,
    BotorchDecide,
    DecideNotAvailableError,
    DecideSubstrate,
    GridWalkDecide,
    InMemoryDecide,
    LlmDecide,
    SobolDecide,
    StagedDecide,
)
from baton.infrastructure.decide.grid_walk import GridWalkDecider
from baton.infrastructure.decide.in_memory import SeededDecider
from baton.infrastructure.decide.llm import LanguageModelDecider


class ConfiguredDeciders:
    """Makes what is available. Numerical libraries are loaded when first needed, beside the event loop: it takes seconds."""

    def __init__(
        self, available: Collection[DecideSubstrate], language_model: tuple[ModelProvider, ModelRef] | None = None
    ) -> None:
        self._available = frozenset(available)
        self._language_model = language_model

    async def decider(self, decide: AskedDecide) -> Decider:
        if decide.substrate not in self._available:
            raise _unavailable(decide, "it is not offered here")
        try:
            return await asyncio.to_thread(self._made, decide)
        except ImportError as error:
            raise _unavailable(decide, f"{error.name} is not installed; install baton[optimize]") from error

    def _made(self, decide: AskedDecide) -> Decider:
        match decide:
            case InMemoryDecide():
                return SeededDecider(decide.advice)
            case GridWalkDecide():
                return GridWalkDecider(decide.points_per_axis)
            case SobolDecide():
                from baton.infrastructure.decide.sobol import SobolDecider

                return SobolDecider()
            case BotorchDecide():
                from baton.infrastructure.decide.gaussian_process import GaussianProcessDecider

                return GaussianProcessDecider(decide)
            case StagedDecide():
                from baton.infrastructure.decide.staged import StagedDecider

                return StagedDecider(decide)
            case LlmDecide():
                if self._language_model is None:
                    raise _unavailable(decide, "no language model is configured")
                return LanguageModelDecider(*self._language_model)
            case _:
                assert_never(decide)


def _unavailable(decide: AskedDecide, why: str) -> DecideNotAvailableError:
    name = decide.substrate.value
    return DecideNotAvailableError(
        f"The decider {name} cannot be asked: {why}.", reason="not_offered", facts={"substrate": name}
    )
