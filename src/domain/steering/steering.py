"""Steering: the evidence that a decider gets, its advice, and which deciders a request may choose."""

import math
from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self
from uuid import UUID

from pydantic import Field, JsonValue, model_validator

from baton.domain.decision.decision import ConfidenceSource
from baton.domain.kernel import Value
from baton.domain.shared.annotations import Seconds
from baton.domain.shared.refusals import Invalid, Unprocessable
from baton.domain.step.results import ActuationKind, Measured
from baton.domain.step.step_values import GOOD, is_number

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
    """The aim of a search."""

    kind: SteeringObjectiveKind
    """Whether to minimize, maximize, come to a value (Satisfy) or explore."""
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
        if (self.bounds is None) != bool(self.choices) or (self.lower is None) != (self.upper is None):
            raise ValueError("give lower and upper, or choices")
        if self.bounds is not None and self.bounds[0] >= self.bounds[1]:
            raise ValueError("lower must be less than upper")
        return self

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The ends of the interval; an axis of choices has none."""
        return None if self.lower is None or self.upper is None else (self.lower, self.upper)

    def admits(self, value: object) -> bool:
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
        return {axis.name: axis.choices[0] if axis.choices else axis.lower for axis in self.axes}


class SteeringBudget(Value):
    """How much one call may spend; each is left unlimited where it is not given."""

    iterations_remaining: Annotated[int, Field(strict=True, ge=0)] | None = None
    wall_clock_remaining: Annotated[Annotated[float, Field(strict=True, ge=0)] | None, Seconds] = None


class SteeringObservation(Value):
    """The place and the measurements of one pass."""

    point: Point
    measurements: tuple[Measured, ...]
    artifact_ref: str | None = None
    """Where the artifact of the pass is."""
    actuation_kind: ActuationKind | None = None
    succeeded: bool

    def good(self, name: str | None) -> float | None:
        """Return the last Good number that a succeeded pass measured under this name, or None."""
        found = next((item for item in reversed(self.measurements) if item.name == name), None)
        if found is None or found.quality != GOOD or not self.succeeded or not is_number(found.value):
            return None
        return float(found.value)


class SteeringEvidence(Value):
    """Everything a decider may know; deciders keep no memory of their own."""

    objective: SteeringObjective
    space: SteeringSpace
    observations: tuple[SteeringObservation, ...]
    """What was measured so far, and where."""
    budget: SteeringBudget
    iteration_index: int
    procedure_id: UUID


class SteeringAdvice(Value):
    """The advice of a decider: measure there next, or stop."""

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


def malformed_advice(detail: str, reason: str, **facts: object) -> DecideAdviceMalformedError:
    """Return the refusal of advice."""
    return DecideAdviceMalformedError(detail, reason=reason, facts=facts)


class DecideSubstrate(StrEnum):
    IN_MEMORY = "in_memory"
    GRID_WALK = "grid_walk"
    SOBOL = "sobol"
    BOTORCH = "botorch"
    STAGED = "staged"
    LLM = "llm"
    PLUGIN = "plugin"
    CALLER = "caller"


class DeciderSetup(Value):
    """How a decider is set up, and which searches it can serve."""

    bounded_only: ClassVar[bool] = False  # Whether it knows intervals only, no choices.
    extremum_only: ClassVar[bool] = False  # Whether it looks for a minimum or a maximum only.


class InMemoryDecide(DeciderSetup):
    """Gives the advice it was set up with, pass by pass, and then stops; for rehearsals and tests."""

    substrate: Literal[DecideSubstrate.IN_MEMORY]
    advice: Annotated[tuple[SteeringAdvice, ...], Field(max_length=1000)] = ()


class GridWalkDecide(DeciderSetup):
    """Walks a lattice, the first axis slowest, and stops at its end or where Satisfy is met exactly."""

    substrate: Literal[DecideSubstrate.GRID_WALK]
    points_per_axis: Annotated[int, Field(strict=True, ge=2, le=10_000)] = 5


class SobolDecide(DeciderSetup):
    """Fills the space evenly and never stops."""

    bounded_only = True
    substrate: Literal[DecideSubstrate.SOBOL]


class OptimizerSetup(DeciderSetup):
    """How the objective is modelled and its best point looked for."""

    bounded_only = True
    extremum_only = True
    min_observations: Annotated[int, Field(strict=True, ge=2, le=1000)] = 5
    num_restarts: Annotated[int, Field(strict=True, ge=1, le=100)] = 10
    raw_samples: Annotated[int, Field(strict=True, ge=1, le=4096)] = 256
    seed: Annotated[int, Field(strict=True, ge=0, le=2**32 - 1)] = 0


class BotorchDecide(OptimizerSetup):
    """Models the objective by a Gaussian process and measures where most improvement is expected; never stops."""

    substrate: Literal[DecideSubstrate.BOTORCH]


class StagedDecide(OptimizerSetup):
    """Fills the space until there is enough to model, and then optimizes; never stops."""

    substrate: Literal[DecideSubstrate.STAGED]
    staged_threshold: Annotated[int, Field(strict=True, ge=2, le=1000)] = 5

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if self.staged_threshold < self.min_observations:
            raise ValueError("staged_threshold must be at least min_observations")
        return self


class LlmDecide(DeciderSetup):
    """Asks the deployment's language model."""

    substrate: Literal[DecideSubstrate.LLM]


class PluginDecide(DeciderSetup):
    """Asks the decider that an installed package offers under this name, set up with these options of its own."""

    substrate: Literal[DecideSubstrate.PLUGIN]
    name: Name
    """The name of the decider that an installed package offers."""
    options: dict[str, JsonValue] = {}


class CallerDecide(DeciderSetup):
    """Asks nobody: the conduct waits until somebody advises it, and is held when nobody does in time."""

    substrate: Literal[DecideSubstrate.CALLER]
    advice_timeout: Annotated[int, Field(strict=True, ge=1, le=86400), Seconds] = 600


AskedDecide = InMemoryDecide | GridWalkDecide | SobolDecide | BotorchDecide | StagedDecide | LlmDecide | PluginDecide
"""The deciders that are asked, each by an adapter."""
Decide = Annotated[AskedDecide | CallerDecide, Field(discriminator="substrate")]
DEFAULT_DECIDE = GridWalkDecide(substrate=DecideSubstrate.GRID_WALK)
SELECTABLE = frozenset({DecideSubstrate.IN_MEMORY, DecideSubstrate.GRID_WALK, DecideSubstrate.CALLER})
"""What every request may choose; the others only where the deployment offers them."""
EXTREMA = (SteeringObjectiveKind.MINIMIZE, SteeringObjectiveKind.MAXIMIZE)


class DecideNotAvailableError(Unprocessable, context="operation"):
    """This decider cannot be asked: it is not offered here, does not serve such a search, or does not answer."""


def decider_name(decide: Decide) -> str:
    """Return the name that a deployment offers a decider under."""
    return decide.name if isinstance(decide, PluginDecide) else decide.substrate.value


def offered_deciders(further: Iterable[str]) -> frozenset[str]:
    """Return the deciders that requests may choose in a deployment that offers these further ones."""
    return SELECTABLE | frozenset(further)


def refuse_unavailable(decide: Decide, objective: SteeringObjective, space: SteeringSpace, offered: Collection[str]) -> None:
    """Refuse, before anything starts, a decider that this deployment does not offer or that cannot serve this search."""
    name = decider_name(decide)
    if name not in offered:
        choices = sorted(map(str, offered))
        detail = f"The decider {name} is not offered here; choose one of {', '.join(choices)}."
        raise DecideNotAvailableError(detail, reason="not_offered", facts={"substrate": name, "offered": choices})
    if decide.bounded_only and (unbounded := [axis.name for axis in space.axes if axis.bounds is None]):
        detail = f"The decider {name} knows intervals only; give {', '.join(unbounded)} bounds, or choose another decider."
        raise DecideNotAvailableError(detail, reason="needs_bounds", facts={"substrate": name, "axes": unbounded})
    if decide.extremum_only and objective.kind not in EXTREMA:
        kind = objective.kind.value
        detail = f"The decider {name} looks for a minimum or a maximum; choose another one for {kind}."
        raise DecideNotAvailableError(detail, reason="needs_extremum", facts={"substrate": name, "kind": kind})


def grid_walk(evidence: SteeringEvidence, points_per_axis: int) -> SteeringAdvice:
    """Return the next lattice point, the first axis slowest; Stop at the end, or where Satisfy is met."""
    objective = evidence.objective
    values = (observation.good(objective.target_measurement_name) for observation in evidence.observations)
    if objective.kind is SteeringObjectiveKind.SATISFY and objective.target_value in values:
        return SteeringAdvice(verdict=SteeringVerdict.STOP, rationale="The target value was measured.")
    position = len(evidence.observations)
    counts = [len(axis.choices) or points_per_axis for axis in evidence.space.axes]
    total = math.prod(counts)
    if position >= total:
        return SteeringAdvice(verdict=SteeringVerdict.STOP, rationale=f"All {total} lattice points were measured.")
    point: Point = {}
    rest = position
    for axis, count in zip(reversed(evidence.space.axes), reversed(counts), strict=True):
        rest, index = divmod(rest, count)
        point[axis.name] = axis.choices[index] if axis.bounds is None else between(*axis.bounds, index / (count - 1))
    rationale = f"Lattice point {position + 1} of {total}."
    return SteeringAdvice(verdict=SteeringVerdict.MEASURE, next_point=dict(reversed(point.items())), rationale=rationale)


def between(lower: float, upper: float, fraction: float) -> float:
    """Return the number at a fraction of the interval, never beyond its ends, however wide it is."""
    if fraction >= 1:
        return upper
    width = upper - lower
    value = lower + width * fraction if math.isfinite(width) else lower * (1 - fraction) + upper * fraction
    return min(max(value, lower), upper)
