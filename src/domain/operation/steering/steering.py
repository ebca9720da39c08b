"""Steering: the evidence that a decider gets, the advice that it gives, and whether the advice can be followed."""

from enum import StrEnum
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import Field, model_validator

from baton.domain.decision.decision import ConfidenceSource
from baton.domain.kernel import Value
from baton.domain.operation.conduct.actuation import ActuationKind
from baton.domain.operation.conduct.results import Measured
from baton.domain.recipe.sentinels import is_finite
from baton.domain.shared.annotations import Seconds
from baton.domain.shared.refusals import Invalid

Name = Annotated[str, Field(min_length=1, max_length=100)]
Number = Annotated[float, Field(strict=True)]
Coordinate = Number | Name
Point = dict[str, Any]  # A coordinate for each axis, by name.


class SteeringObjectiveKind(StrEnum):
    MINIMIZE = "Minimize"
    MAXIMIZE = "Maximize"
    SATISFY = "Satisfy"
    EXPLORE = "Explore"


class SteeringVerdict(StrEnum):
    MEASURE = "Measure"
    STOP = "Stop"


class SteeringObjective(Value):
    """What the search is for."""

    kind: SteeringObjectiveKind
    target_measurement_name: Name | None = None
    target_value: Number | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind is not SteeringObjectiveKind.EXPLORE and self.target_measurement_name is None:
            raise ValueError(f"{self.kind.value} needs target_measurement_name")
        if self.kind is SteeringObjectiveKind.SATISFY and self.target_value is None:
            raise ValueError("Satisfy needs target_value")
        return self


class SteeringAxis(Value):
    """One direction of the search: an interval, or a few choices."""

    name: Name
    lower: Number | None = None
    upper: Number | None = None
    choices: Annotated[tuple[Coordinate, ...], Field(max_length=1000)] = ()

    @model_validator(mode="after")
    def _interval_or_choices(self) -> Self:
        bounded = self.lower is not None and self.upper is not None
        if bounded == bool(self.choices) or (self.lower is None) != (self.upper is None):
            raise ValueError("give lower and upper, or choices")
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            raise ValueError("lower must be less than upper")
        return self

    @property
    def first(self) -> Any:
        """The coordinate where the search begins."""
        return self.choices[0] if self.choices else self.lower

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The ends of the interval; an axis of choices has none."""
        return None if self.lower is None or self.upper is None else (self.lower, self.upper)

    def admits(self, value: Any) -> bool:
        """Return whether a coordinate lies on this axis."""
        if isinstance(value, bool):
            return False
        if self.bounds is None:
            return value in self.choices
        lower, upper = self.bounds
        return isinstance(value, int | float) and lower <= value <= upper


class SteeringSpace(Value):
    """Everywhere the search may go."""

    axes: Annotated[tuple[SteeringAxis, ...], Field(min_length=1, max_length=50)]

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if len({axis.name for axis in self.axes}) < len(self.axes):
            raise ValueError("axis names must be unique")
        return self

    @property
    def first_point(self) -> Point:
        """Where the first pass measures."""
        return {axis.name: axis.first for axis in self.axes}


class SteeringBudget(Value):
    """How much one call may spend; each is left unlimited where it is not given."""

    iterations_remaining: Annotated[int, Field(strict=True, ge=0)] | None = None
    wall_clock_remaining: Annotated[Annotated[float, Field(strict=True, ge=0)] | None, Seconds] = None


class SteeringObservation(Value):
    """What one pass measured, where."""

    point: Point
    measurements: tuple[Measured, ...]
    artifact_ref: str | None = None
    actuation_kind: ActuationKind | None = None
    succeeded: bool

    def good(self, name: str | None) -> float | None:
        """Return the last Good number that a succeeded pass measured under this name, or None."""
        found = next((item for item in reversed(self.measurements) if item.name == name), None)
        if found is None or found.quality != "Good" or not self.succeeded:
            return None
        if isinstance(found.value, bool) or not isinstance(found.value, int | float) or not is_finite(found.value):
            return None
        return float(found.value)


class SteeringEvidence(Value):
    """Everything a decider may know; deciders keep no memory of their own."""

    objective: SteeringObjective
    space: SteeringSpace
    observations: tuple[SteeringObservation, ...]
    budget: SteeringBudget
    iteration_index: int
    procedure_id: UUID


class SteeringAdvice(Value):
    """What a decider says: measure there next, or stop."""

    verdict: SteeringVerdict
    next_point: Point | None = None
    rationale: Annotated[str, Field(max_length=5000)] | None = None
    confidence: Annotated[float, Field(strict=True, ge=0, le=1)] | None = None
    confidence_source: ConfidenceSource | None = None
    alternatives: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=500)], ...], Field(max_length=32)] = ()
    model_ref: Annotated[str, Field(max_length=100)] | None = None


class DecideAdviceMalformedError(Invalid, context="operation"):
    """The advice contradicts itself or names a point outside the space."""


def check_advice(advice: SteeringAdvice, space: SteeringSpace) -> None:
    """Refuse advice that nobody could follow."""
    if advice.verdict is SteeringVerdict.STOP:
        if advice.next_point is not None:
            raise malformed_advice("Stop names no next point; leave next_point out.", "stop_with_point")
        return
    if advice.next_point is None:
        raise malformed_advice("Measure needs a point to measure at; give next_point.", "point_missing")
    names = {axis.name for axis in space.axes}
    if advice.next_point.keys() != names:
        raise malformed_advice(f"The point must name exactly the axes {', '.join(sorted(names))}.", "axes_differ")
    outside = [axis.name for axis in space.axes if not axis.admits(advice.next_point[axis.name])]
    if outside:
        raise malformed_advice(f"The point lies outside the space on {', '.join(outside)}.", "outside_space", axes=outside)


def malformed_advice(detail: str, reason: str, **facts: Any) -> DecideAdviceMalformedError:
    """Return the refusal of advice."""
    return DecideAdviceMalformedError(detail, reason=reason, facts=facts)
