"""Deciders with numbers: filling the space, modelling the objective, and changing over from one to the other."""

import math
from random import Random
from typing import Any

import numpy as np
import pytest

from baton.application.conduct.deciders import DecideColdStartError, DecideEvidenceRejectedError, Decider
from baton.domain.steering.steering import BotorchDecide, DecideSubstrate, StagedDecide, SteeringObservation, SteeringVerdict
from baton.infrastructure.decide.optimizing import (
    MOST_POINTS,
    GaussianProcessDecider,
    SobolDecider,
    StagedDecider,
    TrainingData,
    log_improvement,
)
from tests.support.domain.searches import FOCUS, PLANE, choices, evidence, interval, observation, run_search, space
from tests.support.tables import for_each

FEW_STARTS = {"num_restarts": 2, "raw_samples": 64}
"""A cheaper search for the next point, which finds the same optima."""
UNIT = space(interval("x", 0, 1), interval("y", 0, 1))
MIXED = space(interval("focus", 0, 1), choices("filter", "Al", "Cu"))


def botorch_decider(**setup: Any) -> GaussianProcessDecider:
    return GaussianProcessDecider(BotorchDecide(substrate=DecideSubstrate.BOTORCH, **setup))


def staged_decider(**setup: Any) -> StagedDecider:
    return StagedDecider(StagedDecide(substrate=DecideSubstrate.STAGED, **setup))


def along_focus(*values: float, quality: str = "Good") -> list[SteeringObservation]:
    return [observation({"focus": -2 + 0.5 * number}, value, quality) for number, value in enumerate(values)]


class TestSobol:
    async def test_it_goes_on_from_the_origin_by_the_unscrambled_sequence(self) -> None:
        found = await run_search(SobolDecider().advise_next, UNIT, lambda _: 1.0, 8)
        assert [(item.point["x"], item.point["y"]) for item in found] == [
            *((0, 0), (0.5, 0.5), (0.75, 0.25), (0.25, 0.75)),
            *((0.375, 0.375), (0.875, 0.875), (0.625, 0.125), (0.125, 0.625)),
        ]

    async def test_it_never_advises_the_origin(self) -> None:
        advice = await SobolDecider().advise_next(evidence(UNIT, []))
        assert advice.next_point == {"x": 0.5, "y": 0.5}

    async def test_its_points_are_spread_over_the_bounds(self) -> None:
        advice = await SobolDecider().advise_next(evidence(PLANE, [observation({"focus": -2.0, "tilt": 0.0})]))
        assert advice.next_point == {"focus": 0.0, "tilt": 5.0}

    @for_each("kind", ["Minimize", "Maximize", "Satisfy", "Explore"])
    async def test_it_never_stops(self, kind: str) -> None:
        known = [observation({"focus": 0.0}, 3.0)] * 2000
        advice = await SobolDecider().advise_next(evidence(FOCUS, known, kind, target_value=3.0))
        assert advice.verdict is SteeringVerdict.MEASURE


@pytest.mark.parametrize(
    "decider", [SobolDecider(), botorch_decider(), staged_decider()], ids=["sobol", "botorch", "staged"]
)
async def test_choices_are_not_for_deciders_of_intervals(decider: Decider) -> None:
    known = [observation({"focus": 0.1 * number, "filter": "Al"}) for number in range(6)]
    with pytest.raises(DecideEvidenceRejectedError, match="filter"):
        await decider.advise_next(evidence(MIXED, known))


class TestModelling:
    @for_each("kind", ["Satisfy", "Explore"])
    async def test_there_must_be_something_to_make_small_or_large(self, kind: str) -> None:
        with pytest.raises(DecideEvidenceRejectedError, match=kind):
            await botorch_decider().advise_next(evidence(FOCUS, along_focus(*range(6)), kind, target_value=1.0))

    @for_each(
        "history",
        [
            [],
            along_focus(1, 2, 3, 4),
            [*along_focus(1, 2, 3, 4), *along_focus(5, 6, quality="Uncertain")],
            [*along_focus(1, 2, 3, 4), observation({"focus": 1.0}, "high")],
            [*along_focus(1, 2, 3, 4), observation({"focus": 1.0}, 5.0, succeeded=False)],
        ],
    )
    async def test_fewer_than_five_good_points_are_a_cold_start(self, history: list[SteeringObservation]) -> None:
        with pytest.raises(DecideColdStartError, match=f"needs 5 Good points .* there are {min(4, len(history))}"):
            await botorch_decider().advise_next(evidence(FOCUS, history))

    async def test_how_many_points_are_enough_can_be_set(self) -> None:
        assert await botorch_decider(min_observations=3).advise_next(evidence(FOCUS, along_focus(1, 2, 3)))
        with pytest.raises(DecideColdStartError, match="needs 7"):
            await botorch_decider(min_observations=7).advise_next(evidence(FOCUS, along_focus(*range(6))))

    @for_each(("kind", "sign"), [("Minimize", 1), ("Maximize", -1)])
    async def test_it_measures_where_the_best_is_to_be_expected(self, kind: str, sign: int) -> None:
        history = [observation({"focus": -2 + 0.5 * n}, sign * (-2 + 0.5 * n - 0.7) ** 2) for n in range(9)]
        advice = await botorch_decider().advise_next(evidence(FOCUS, history, kind))
        assert advice.next_point is not None
        assert advice.next_point["focus"] == pytest.approx(0.7, abs=0.1)
        assert advice.model_ref == "gaussian-process/matern-5-2/expected-improvement"

    async def test_values_without_any_difference_can_be_modelled(self) -> None:
        assert await botorch_decider().advise_next(evidence(FOCUS, along_focus(*[0.0] * 6)))

    async def test_a_point_measured_again_and_again_can_be_modelled(self) -> None:
        history = [observation({"focus": 1.0}, value) for value in (1.0, 1.2, 0.9, 1.1, 1.0)]
        assert await botorch_decider().advise_next(evidence(FOCUS, history))

    @for_each(
        ("z", "logarithm"),
        [
            (5.0, 1.6094379231264314),
            (0.0, -0.91893853320467274),
            (-1.0, -2.4851210257126413),
            (-1.0000001, -2.4851212161397683),
            (-6.0, -22.578879392169797),
            (-100.0, -5010.1295788002498),
            (-1e4, -50000019.339619307),
            (-1e6, -500000000028.54996),
        ],
    )
    def test_an_improvement_hardly_to_be_expected_is_still_told_from_a_smaller_one(self, z: float, logarithm: float) -> None:
        assert log_improvement(np.array([z]))[0] == pytest.approx(logarithm, rel=1e-12)

    def test_of_very_many_points_the_best_and_the_newest_are_modelled(self) -> None:
        numbers = np.arange(1000.0)
        values = -np.abs(numbers - 200.25)
        kept = TrainingData(numbers[:, None], values).subset()
        assert len(kept.values) == MOST_POINTS == 300
        assert list(kept.points[:, 0]) == [*range(126, 276), *range(850, 1000)]
        few = TrainingData(numbers[:300, None], values[:300])
        assert few.subset() is few


class TestStages:
    @for_each(
        ("setup", "history", "models"),
        [
            ({}, along_focus(1, 2, 3, 4), False),
            ({}, along_focus(1, 2, 3, 4, 5), True),
            ({}, [*along_focus(1, 2, 3, 4), *along_focus(5, 6, 7, quality="Bad")], False),
            ({"staged_threshold": 7}, along_focus(*range(6)), False),
            ({"staged_threshold": 7}, along_focus(*range(7)), True),
            ({"staged_threshold": 3, "min_observations": 3}, along_focus(1, 2, 3), True),
        ],
    )
    async def test_it_models_as_soon_as_there_are_enough_good_points(
        self, setup: dict[str, Any], history: list[SteeringObservation], models: bool
    ) -> None:
        advice = await staged_decider(**setup).advise_next(evidence(FOCUS, history))
        assert (advice.model_ref is not None) == models
        if not models:
            assert advice == await SobolDecider().advise_next(evidence(FOCUS, history))

    @for_each("kind", ["Satisfy", "Explore"])
    async def test_what_could_never_be_modelled_is_refused_from_the_start(self, kind: str) -> None:
        with pytest.raises(DecideEvidenceRejectedError, match=kind):
            await staged_decider().advise_next(evidence(FOCUS, along_focus(1.0), kind, target_value=1.0))


@pytest.mark.slow
class TestConvergence:
    """Searches that start cold, with noise on every measurement, and must come near the optimum in few passes."""

    @pytest.mark.soak
    async def test_a_noisy_valley_is_found_within_twenty_passes(self) -> None:
        noise = Random(1)

        def depth(point: dict[str, Any]) -> float:
            return (point["focus"] - 0.7) ** 2 + 0.05 * (point["tilt"] - 6.3) ** 2

        advise = staged_decider(**FEW_STARTS).advise_next
        found = await run_search(advise, PLANE, lambda point: depth(point) + noise.gauss(0, 0.02), 20, "Minimize")
        assert min(depth(item.point) for item in found) < 0.01
        last = [depth(item.point) for item in found[-5:]]
        assert sorted(last)[2] < 0.05, "it stays there"

    async def test_the_highest_of_several_peaks_is_found(self) -> None:
        noise = Random(3)
        within = space(interval("x", -5, 10), interval("y", 0, 15))

        def branin(point: dict[str, Any]) -> float:
            x, y = point["x"], point["y"]
            bent = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
            return float(bent**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10)

        advise = staged_decider(**FEW_STARTS).advise_next
        found = await run_search(advise, within, lambda point: noise.gauss(0, 0.1) - branin(point), 24, "Maximize")
        assert min(branin(item.point) for item in found) < 0.6, "the optimum is 0.398"
