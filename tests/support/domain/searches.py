"""Searches for tests of steering: spaces of every kind, what was measured in them, and a search carried on by advice."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from baton.domain.steering.steering import (
    SteeringAdvice,
    SteeringAxis,
    SteeringBudget,
    SteeringEvidence,
    SteeringObjective,
    SteeringObservation,
    SteeringSpace,
    SteeringVerdict,
)
from baton.domain.step.results import Measured

PROCEDURE = UUID("0197a100-0000-7000-8000-0000000000f0")
SHARPNESS = "sharpness"


def interval(name: str, lower: float, upper: float) -> SteeringAxis:
    return SteeringAxis(name=name, lower=lower, upper=upper)


def choices(name: str, *values: float | str) -> SteeringAxis:
    return SteeringAxis(name=name, choices=values)


def space(*axes: SteeringAxis) -> SteeringSpace:
    return SteeringSpace(axes=axes)


FOCUS = space(interval("focus", -2, 2))
PLANE = space(interval("focus", -2, 2), interval("tilt", 0, 10))


def observation(point: dict[str, Any], value: Any = 1.0, quality: str = "Good", **fields: Any) -> SteeringObservation:
    measured = Measured(name=SHARPNESS, value=value, kind="Scalar", quality=quality)
    return SteeringObservation(point=point, measurements=(measured,), **{"succeeded": True, **fields})


def evidence(
    within: SteeringSpace,
    observations: Sequence[SteeringObservation] = (),
    kind: str = "Maximize",
    target_value: float | None = None,
    iteration_index: int | None = None,
) -> SteeringEvidence:
    named = None if kind == "Explore" else SHARPNESS
    return SteeringEvidence(
        objective=SteeringObjective.model_validate(
            {"kind": kind, "target_measurement_name": named, "target_value": target_value}
        ),
        space=within,
        observations=tuple(observations),
        budget=SteeringBudget(),
        iteration_index=len(observations) if iteration_index is None else iteration_index,
        procedure_id=PROCEDURE,
    )


async def run_search(
    advise: Callable[[SteeringEvidence], Awaitable[SteeringAdvice]],
    within: SteeringSpace,
    measure: Callable[[dict[str, Any]], float],
    passes: int,
    kind: str = "Maximize",
    target_value: float | None = None,
) -> list[SteeringObservation]:
    """Return what is measured in so many passes that follow advice, or in fewer where it is to stop."""
    observations: list[SteeringObservation] = []
    point = within.first_point
    while len(observations) < passes:
        observations.append(observation(point, measure(point)))
        advice = await advise(evidence(within, observations, kind, target_value))
        if advice.verdict is SteeringVerdict.STOP:
            break
        assert advice.next_point is not None
        point = dict(advice.next_point)
    return observations


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
INTERVALS = (st.tuples(NUMBERS, NUMBERS).map(sorted).filter(lambda ends: ends[0] < ends[1])).map(
    lambda ends: {"lower": ends[0], "upper": ends[1]}
)
CHOICES = st.lists(st.one_of(NUMBERS, st.text(min_size=1, max_size=5)), min_size=1, max_size=6, unique_by=str).map(
    lambda values: {"choices": values}
)


def spaces(axes: st.SearchStrategy[dict[str, Any]], most: int = 4) -> st.SearchStrategy[SteeringSpace]:
    return st.lists(axes, min_size=1, max_size=most).map(
        lambda found: SteeringSpace(
            axes=tuple(SteeringAxis(name=f"axis {number}", **axis) for number, axis in enumerate(found))
        )
    )
