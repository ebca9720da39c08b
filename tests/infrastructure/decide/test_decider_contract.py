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
from baton.domain.steering.steering import (
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
from tests.support.tables import for_each

QUICK: dict[str, Any] = {"num_restarts": 2, "raw_samples": 32}


def far_end(request: ChatRequest) -> dict[str, Any]:
    """The last choice of every axis, or its upper end."""
    axes = json.loads(request.user_message)["space"]["axes"]
    point = {axis["name"]: axis["choices"][-1] if axis["choices"] else axis["upper"] for axis in axes}
    return {"verdict": "Measure", "next_point": point, "rationale": "The far end is unexplored.", "confidence": 0.5}


def grid_walk_decider() -> Decider:
    return GridWalkDecider(5)


def seeded_decider() -> Decider:
    return SeededDecider([SteeringAdvice(verdict=SteeringVerdict.MEASURE, next_point={"focus": 1.0, "tilt": 3.0})] * 3)


def sobol_decider() -> Decider:
    return SobolDecider()


def botorch_decider() -> Decider:
    return GaussianProcessDecider(BotorchDecide(substrate=DecideSubstrate.BOTORCH, **QUICK))


def staged_decider() -> Decider:
    return StagedDecider(StagedDecide(substrate=DecideSubstrate.STAGED, **QUICK))


def llm_decider() -> Decider:
    return LanguageModelDecider(CannedModel(far_end), ModelRef(provider="canned", model="m-1"))


DeciderFactory = Callable[[], Decider]
HISTORY = [observation({"focus": 0.3 * number, "tilt": 1.7 * number}, number % 4) for number in range(6)]


@for_each("make_decider", [seeded_decider, grid_walk_decider, sobol_decider])
@for_each("measured", [1, 2, 3, 6])
async def test_a_repeatable_decider_says_the_same_of_the_same_evidence(make_decider: DeciderFactory, measured: int) -> None:
    known, other = evidence(PLANE, HISTORY[:measured]), evidence(PLANE, HISTORY[: measured - 1])
    decider = make_decider()
    first = await decider.advise_next(known)
    await decider.advise_next(other)
    assert await decider.advise_next(known) == first
    assert await make_decider().advise_next(known) == first


@pytest.mark.slow
@for_each("make_decider", [seeded_decider, grid_walk_decider, sobol_decider, botorch_decider, staged_decider, llm_decider])
async def test_advice_can_be_followed(make_decider: DeciderFactory) -> None:
    decider = make_decider()
    for measured in (5, 6):
        assert await advice_from(decider, evidence(PLANE, HISTORY[:measured], iteration_index=measured))


@for_each("make_decider", [seeded_decider, grid_walk_decider, sobol_decider, botorch_decider, staged_decider, llm_decider])
async def test_closing_may_be_repeated(make_decider: DeciderFactory) -> None:
    decider = make_decider()
    await decider.close()
    await decider.close()


@for_each("make_decider", [sobol_decider, staged_decider])
@given(within=spaces(INTERVALS), measured=st.integers(0, 4))
async def test_advice_is_admissible_in_every_space_of_intervals(
    make_decider: DeciderFactory, within: SteeringSpace, measured: int
) -> None:
    known = [observation(within.first_point, float(number)) for number in range(measured)]
    assert (await advice_from(make_decider(), evidence(within, known))).verdict is SteeringVerdict.MEASURE


@for_each("make_decider", [grid_walk_decider, llm_decider])
@given(within=spaces(st.one_of(INTERVALS, CHOICES)), measured=st.integers(0, 4))
async def test_advice_is_admissible_in_every_space(
    make_decider: DeciderFactory, within: SteeringSpace, measured: int
) -> None:
    await advice_from(make_decider(), evidence(within, [observation(within.first_point, 1.0)] * measured))


@pytest.mark.slow
@settings(max_examples=15)
@given(
    kind=st.sampled_from(["Minimize", "Maximize"]),
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
    assert (await advice_from(botorch_decider(), evidence(within, known, kind))).verdict is SteeringVerdict.MEASURE
