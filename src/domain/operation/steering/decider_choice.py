"""Which decider steers a conduct, how it is set up, and which ones a request may choose."""

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, JsonValue, model_validator

from baton.domain.kernel import Value
from baton.domain.operation.steering.steering import (
    Name,
    SteeringAdvice,
    SteeringObjective,
    SteeringObjectiveKind,
    SteeringSpace,
)
from baton.domain.shared.annotations import Seconds
from baton.domain.shared.refusals import Unprocessable


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


def refuse_unavailable(
    decide: Decide, objective: SteeringObjective, space: SteeringSpace, available: Collection[str]
) -> None:
    """Refuse, before anything starts, a decider that this deployment does not offer or that cannot serve this search."""
    name = decider_name(decide)
    if name not in available:
        choices = sorted(map(str, available))
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
