"""Which decider steers a conduct, how it is set up, and which ones a request may choose."""

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from baton.domain.kernel import Value
from baton.domain.operation.steering.steering import SteeringAdvice, SteeringObjective, SteeringObjectiveKind, SteeringSpace
from baton.domain.shared.refusals import Unprocessable
from baton.domain.shared.units import Seconds


class DecideSubstrate(StrEnum):
    IN_MEMORY = "in_memory"
    GRID_WALK = "grid_walk"
    SOBOL = "sobol"
    BOTORCH = "botorch"
    STAGED = "staged"
    LLM = "llm"
    CALLER = "caller"


class Setup(Value):
    """How a decider is set up, and which searches it can serve."""

    bounded_only: ClassVar[bool] = False
    """Whether it knows intervals only, no choices."""
    extremum_only: ClassVar[bool] = False
    """Whether it looks for a minimum or a maximum only."""


class InMemoryDecide(Setup):
    """Gives the advice it was told to, pass by pass, and then stops; for rehearsals and tests."""

    substrate: Literal[DecideSubstrate.IN_MEMORY]
    advice: Annotated[tuple[SteeringAdvice, ...], Field(max_length=1000)] = ()


class GridWalkDecide(Setup):
    """Walks a lattice, the first axis slowest, and stops at its end or where Satisfy is met exactly."""

    substrate: Literal[DecideSubstrate.GRID_WALK]
    points_per_axis: Annotated[int, Field(strict=True, ge=2, le=10_000)] = 5


class SobolDecide(Setup):
    """Fills the space evenly and never stops."""

    bounded_only = True
    substrate: Literal[DecideSubstrate.SOBOL]


class Optimizing(Setup):
    """What a model of the objective is made from, and how hard its best point is looked for."""

    bounded_only = True
    extremum_only = True
    min_observations: Annotated[int, Field(strict=True, ge=2, le=1000)] = 5
    num_restarts: Annotated[int, Field(strict=True, ge=1, le=100)] = 10
    raw_samples: Annotated[int, Field(strict=True, ge=1, le=4096)] = 256
    seed: Annotated[int, Field(strict=True, ge=0, le=2**32 - 1)] = 0


class BotorchDecide(Optimizing):
    """Models the objective by a Gaussian process and measures where most improvement is expected; never stops."""

    substrate: Literal[DecideSubstrate.BOTORCH]


class StagedDecide(Optimizing):
    """Fills the space until there is enough to model, and then optimizes; never stops."""

    substrate: Literal[DecideSubstrate.STAGED]
    staged_threshold: Annotated[int, Field(strict=True, ge=2, le=1000)] = 5

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if self.staged_threshold < self.min_observations:
            raise ValueError("staged_threshold must be at least min_observations")
        return self


class LlmDecide(Setup):
    """Asks the deployment's language model."""

    substrate: Literal[DecideSubstrate.LLM]


class CallerDecide(Setup):
    """Asks nobody: the conduct waits until somebody advises it, and is held when nobody does in time."""

    substrate: Literal[DecideSubstrate.CALLER]
    advice_timeout: Annotated[int, Field(strict=True, ge=1, le=86400), Seconds] = 600


AskedDecide = InMemoryDecide | GridWalkDecide | SobolDecide | BotorchDecide | StagedDecide | LlmDecide
"""The deciders that are asked, each by an adapter."""
Decide = Annotated[AskedDecide | CallerDecide, Field(discriminator="substrate")]
DEFAULT_DECIDE = GridWalkDecide(substrate=DecideSubstrate.GRID_WALK)
SELECTABLE = frozenset({DecideSubstrate.IN_MEMORY, DecideSubstrate.GRID_WALK, DecideSubstrate.CALLER})
"""What every request may choose; the others only where the deployment offers them."""
EXTREMA = (SteeringObjectiveKind.MINIMIZE, SteeringObjectiveKind.MAXIMIZE)


class DecideNotAvailableError(Unprocessable, context="operation"):
    """This decider cannot be asked: it is not offered here, does not serve such a search, or does not answer."""


def offered(further: Iterable[DecideSubstrate]) -> frozenset[DecideSubstrate]:
    """The deciders that requests may choose in a deployment that offers these besides."""
    return SELECTABLE | frozenset(further)


def refuse_unavailable(
    decide: Decide, objective: SteeringObjective, space: SteeringSpace, available: Collection[DecideSubstrate]
) -> None:
    """Refuse, before anything starts, a decider that this deployment does not offer or that cannot serve this search."""
    name = decide.substrate.value
    if decide.substrate not in available:
        choices = sorted(substrate.value for substrate in available)
        raise DecideNotAvailableError(
            f"The decider {name} is not offered here; choose one of {', '.join(choices)}.",
            reason="not_offered",
            facts={"substrate": name, "offered": choices},
        )
    if decide.bounded_only and (unbounded := [axis.name for axis in space.axes if axis.bounds is None]):
        raise DecideNotAvailableError(
            f"The decider {name} knows intervals only; give {', '.join(unbounded)} bounds, or choose another decider.",
            reason="needs_bounds",
            facts={"substrate": name, "axes": unbounded},
        )
    if decide.extremum_only and objective.kind not in EXTREMA:
        raise DecideNotAvailableError(
            f"The decider {name} looks for a minimum or a maximum; choose another one for {objective.kind.value}.",
            reason="needs_extremum",
            facts={"substrate": name, "kind": objective.kind.value},
        )
