"""What every decider promises: advice that can be followed, from the evidence alone."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.application.conduct.deciders import Decider, advice_from
from baton.application.language_models import ChatRequest
from baton.domain.agent.language_model import ModelRef
from baton.domain.operation.steering.steering import (
    BotorchDecide,
    DecideSubstrate,
    StagedDecide,
    SteeringAdvice,
    SteeringSpace,
    SteeringVerdict,
)
from baton.infrastructure.decide.configured import GridWalkDecider, LanguageModelDecider, SeededDecider
from baton.infrastructure.decide.optimizing import GaussianProcessDecider, SobolDecider, StagedDecider
from tests.support.domain.searches import CHOICES, INTERVALS, PLANE, evidence, observation, spaces
from tests.support.infrastructure.canned_model import CannedModel

QUICK: dict[str, Any] = {"num_restarts": 2, "raw_samples": 32}


def middling(request: ChatRequest) -> dict[str, Any]:
    """The last choice of every axis, or its upper end."""
    axes = json.loads(request.user_message)["space"]["axes"]
    point = {axis["name"]: axis["choices"][-1] if axis["choices"] else axis["upper"] for axis in axes}
    return {"verdict": "Measure", "next_point": point, "rationale": "The far end is unexplored.", "confidence": 0.5}


def grid_walk() -> Decider:
    return GridWalkDecider(5)


def seeded() -> Decider:
    return SeededDecider([SteeringAdvice(verdict=SteeringVerdict.MEASURE, next_point={"focus": 1.0, "tilt": 3.0})] * 3)


def sobol() -> Decider:
    return SobolDecider()


def botorch() -> Decider:
    return GaussianProcessDecider(BotorchDecide(substrate=DecideSubstrate.BOTORCH, **QUICK))


def staged() -> Decider:
    return StagedDecider(StagedDecide(substrate=DecideSubstrate.STAGED, **QUICK))


def llm() -> Decider:
    return LanguageModelDecider(CannedModel(middling), ModelRef(provider="canned", model="m-1"))


Made = Callable[[], Decider]
HISTORY = [observation({"focus": 0.3 * number, "tilt": 1.7 * number}, number % 4) for number in range(6)]


@pytest.mark.parametrize("made", [seeded, grid_walk, sobol])
@pytest.mark.parametrize("measured", [1, 2, 3, 6])
async def test_a_repeatable_decider_says_the_same_of_the_same_evidence(made: Made, measured: int) -> None:
    known, other = evidence(PLANE, HISTORY[:measured]), evidence(PLANE, HISTORY[: measured - 1])
    decider = made()
    first = await decider.advise_next(known)
    await decider.advise_next(other)
    assert await decider.advise_next(known) == first
    assert await made().advise_next(known) == first


@pytest.mark.parametrize("made", [seeded, grid_walk, sobol, botorch, staged, llm])
async def test_advice_can_be_followed(made: Made) -> None:
    decider = made()
    for measured in (5, 6):
        assert await advice_from(decider, evidence(PLANE, HISTORY[:measured], iteration_index=measured))


@pytest.mark.parametrize("made", [seeded, grid_walk, sobol, botorch, staged, llm])
async def test_closing_may_be_repeated(made: Made) -> None:
    decider = made()
    await decider.close()
    await decider.close()


@pytest.mark.parametrize("made", [sobol, staged])
@given(within=spaces(INTERVALS), measured=st.integers(0, 4))
async def test_advice_is_admissible_in_every_space_of_intervals(made: Made, within: SteeringSpace, measured: int) -> None:
    known = [observation(within.first_point, float(number)) for number in range(measured)]
    assert (await advice_from(made(), evidence(within, known))).verdict is SteeringVerdict.MEASURE


@pytest.mark.parametrize("made", [grid_walk, llm])
@given(within=spaces(st.one_of(INTERVALS, CHOICES)), measured=st.integers(0, 4))
async def test_advice_is_admissible_in_every_space(made: Made, within: SteeringSpace, measured: int) -> None:
    await advice_from(made(), evidence(within, [observation(within.first_point, 1.0)] * measured))


@settings(max_examples=15)
@pytest.mark.parametrize("kind", ["Minimize", "Maximize"])
@given(
    within=spaces(INTERVALS, most=3),
    values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=5, max_size=8),
)
async def test_a_model_of_whatever_was_measured_gives_admissible_advice(
    kind: str, within: SteeringSpace, values: list[float]
) -> None:
    walk, known = GridWalkDecider(3), []
    for value in values:
        advice = await walk.advise_next(evidence(within, known))
        known.append(observation(dict(advice.next_point or within.first_point), value))
    assert (await advice_from(botorch(), evidence(within, known, kind))).verdict is SteeringVerdict.MEASURE
