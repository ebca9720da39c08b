"""How long a conduct will still take: the sum of how long its remaining steps took before, by the ledger of all conducts.
Steps are known by kind and target; what happens between two steps counts as nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Protocol
from uuid import UUID

from pydantic import Field

from baton.domain.conduct.conduct import first_undone_step
from baton.domain.conduct.messages import MAX_PASSES, target_of
from baton.domain.conduct.progress import ConductPhase, ConductProgress, WaitingFor
from baton.domain.procedure.procedure import HELD, ConductMode, PendingRequest, Procedure
from baton.domain.recipe.steps import RecipeStep
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.reads import Reads, ask
from baton.domain.steering.steering import SteeringBudget

MAX_KEYS = 200  # kinds and targets that one estimate asks the ledger about; steps beyond them count as unknown
SHORTEST_SECONDS = 5  # that words tell apart
AT_A_STEP = (ConductPhase.WALKING, ConductPhase.CLOSING)
StepKey = tuple[str, str]  # The kind and the target of a step.
UNLIMITED = SteeringBudget()
Times = Sequence[float | None]  # How many seconds each step of a list usually takes; None where that is not known.


@dataclass(frozen=True)
class StepDuration:
    """How long the last outcomes of a kind of step on one target took, in seconds; only those that went well count."""

    count: int
    median: float
    p90: float


class EstimateBasis(StrEnum):
    HISTORY = "history"  # Every remaining step is known.
    PARTLY = "partly"  # Some are; the others count as nothing.
    NONE = "none"  # None is, or nothing limits the number of passes.


class Estimate(AnswerForm):
    """How long the rest takes if every step takes its median over the last hundred outcomes on the same target."""

    remaining_seconds: Annotated[
        float | None,
        Field(
            description="Seconds that the remaining steps take, closing steps included. Null where `basis` is `none`.",
            json_schema_extra={"unit": {"system": "udunits", "code": "s"}},
        ),
    ] = None
    ends_at: Annotated[
        datetime | None,
        Field(
            description="When it ends, if it continues; null before the start, while held, asked to or waiting, and while "
            "nothing is known of a phase to come."
        ),
    ] = None
    basis: Annotated[
        EstimateBasis,
        Field(
            description="Whether all remaining steps were done before (`history`), some (`partly`; the others count as "
            "nothing) or none."
        ),
    ]
    to_cap: Annotated[
        bool, Field(description="Whether passes are counted up to the cap of a loop, which may well end before.")
    ] = False


@dataclass(frozen=True)
class ConductWalk:
    """The steps that a conduct walks, and what ends its passes at the latest."""

    steps: tuple[StepKey, ...]
    closing_steps: tuple[StepKey, ...]
    mode: ConductMode | None = ConductMode.FLAT  # None where only the closing steps are walked.
    boundary: int = 0  # The first step of the main list that is walked.
    unconverged_cap: int | None = None  # The number of passes in a row that may miss the criterion.
    budget: SteeringBudget = UNLIMITED
    passes_before: int = 0  # Passes that were begun before the conduct was opened.
    started_at: datetime | None = None

    @cached_property
    def keys(self) -> tuple[StepKey, ...]:
        """Return the kinds and targets to ask for, each once."""
        return tuple(dict.fromkeys((*self.steps, *self.closing_steps)))[:MAX_KEYS]

    @property
    def loops(self) -> bool:
        return self.mode in (ConductMode.CONVERGED, ConductMode.ADVISED)


@dataclass(frozen=True)
class WalkPosition:
    """Where a walk is: the first step that is not done, how long it is under way, and what limits the passes behind it."""

    step_index: int = 0
    closing: bool = False
    elapsed: float = 0.0
    loops: bool = False
    passes_left: int | None = 0  # Passes to begin behind the open one; None where nothing limits their number.
    seconds_left: float | None = None  # Until no further pass is begun; None where time does not limit them.


def walk_of(steps: Iterable[RecipeStep], closing_steps: Iterable[RecipeStep]) -> ConductWalk:
    """Return the walk of these steps from beginning to end."""
    return ConductWalk(tuple(map(step_key, steps)), tuple(map(step_key, closing_steps)))


def step_key(step: RecipeStep) -> StepKey:
    """Return the kind and the target of a step."""
    return step.kind, target_of(step)


def estimate(steps: Times, closing_steps: Times, at: WalkPosition, now: datetime | None) -> Estimate:
    """Return how long a walk takes from a position on, and when it ends where the clock runs, which then shows `now`."""
    loops = at.loops and not at.closing
    if loops and at.passes_left is None and at.seconds_left is None:
        return Estimate(basis=EstimateBasis.NONE)
    rest = () if at.closing else steps[at.step_index :]
    closing = closing_steps[at.step_index :] if at.closing else closing_steps
    repeated = steps if loops and at.passes_left != 0 else ()
    ahead = [*rest, *repeated, *closing]
    known = [one for one in ahead if one is not None]
    if ahead and not known:
        return Estimate(basis=EstimateBasis.NONE, to_cap=loops)
    under_way = next(iter(closing if at.closing else rest), None) or 0.0
    in_pass, further = known_seconds(rest), known_seconds(repeated) * (at.passes_left or 0)
    if at.seconds_left is not None:
        limit = max(0.0, at.seconds_left - in_pass)
        further = limit if at.passes_left is None else min(limit, further)
    remaining = round(in_pass + further + known_seconds(closing) - min(under_way, max(0.0, at.elapsed)), 3)
    basis = EstimateBasis.HISTORY if len(known) == len(ahead) else EstimateBasis.PARTLY
    ends_at = None if now is None else now + timedelta(seconds=remaining)
    return Estimate(remaining_seconds=remaining, ends_at=ends_at, basis=basis, to_cap=loops)


def known_seconds(times: Times) -> float:
    """Return how long the steps take together that are known."""
    return sum(one for one in times if one is not None)


def estimate_walk(
    walk: ConductWalk, durations: Mapping[StepKey, StepDuration], at: WalkPosition, now: datetime | None = None
) -> Estimate:
    """Return the estimate of a walk by these durations."""
    times = {key: found.median for key, found in durations.items()}
    return estimate([times.get(key) for key in walk.steps], [times.get(key) for key in walk.closing_steps], at, now)


def sum_estimates(parts: Sequence[Estimate], now: datetime | None) -> Estimate:
    """Return how long several walks take one after the other."""
    remaining = round(sum(part.remaining_seconds or 0.0 for part in parts), 3)
    to_cap = any(part.to_cap for part in parts)
    if not remaining and any(part.remaining_seconds is None for part in parts):
        return Estimate(basis=EstimateBasis.NONE, to_cap=to_cap)
    complete = all(part.basis is EstimateBasis.HISTORY for part in parts)
    unknown = any(part.remaining_seconds is None for part in parts)  # it would seem to end when the known parts do
    return Estimate(
        remaining_seconds=remaining,
        ends_at=None if now is None or unknown else now + timedelta(seconds=remaining),
        basis=EstimateBasis.HISTORY if complete else EstimateBasis.PARTLY,
        to_cap=to_cap,
    )


class ConductTimePort(Protocol):
    """Knows what conducts walk, and how long that takes."""

    async def conduct_walk(self, procedure_id: UUID, conduct_id: UUID) -> ConductWalk | None:
        """Return the steps that a conduct walks or walked, and the caps of its passes."""

    async def registered_walk(self, procedure_id: UUID) -> ConductWalk | None:
        """Return the steps that a procedure was registered with; None where they come with the request that conducts it."""

    async def step_durations(self, keys: Sequence[StepKey]) -> Mapping[StepKey, StepDuration]:
        """Return how long steps of these kinds on these targets took lately; what was never done is left out."""


def load_estimate(steps: Iterable[RecipeStep], closing_steps: Iterable[RecipeStep]) -> Reads[Estimate]:
    """Return how long these steps take from beginning to end."""
    walk = walk_of(steps, closing_steps)
    return estimate_walk(walk, (yield from ask(ConductTimePort.step_durations, walk.keys)), WalkPosition())


def conduct_estimate(procedure: Procedure, progress: ConductProgress, now: datetime) -> Reads[Estimate | None]:
    """Return how long the latest conduct of a procedure will take, or taking it up from Held; None where nothing follows."""
    live = procedure.live_conduct_id == progress.conduct_id
    if not (live or procedure.status is HELD) or procedure.pending_request is PendingRequest.ABORT:
        return None
    walk = yield from ask(ConductTimePort.conduct_walk, procedure.id, progress.conduct_id)
    if walk is None:
        return None
    durations = yield from ask(ConductTimePort.step_durations, walk.keys)
    if not live:
        return estimate_walk(walk, durations, (yield from held_position(walk, procedure)))
    stands = progress.waiting_for is not None or procedure.pending_request is not None
    stands = stands or progress.shown_phase is ConductPhase.STALLED
    return estimate_walk(walk, durations, live_position(walk, procedure, progress, now), None if stands else now)


def held_position(walk: ConductWalk, procedure: Procedure) -> Reads[WalkPosition]:
    """Return where a held procedure would be taken up; a search has its whole budget again."""
    return start_position(walk, procedure) if walk.loops else WalkPosition((yield from first_undone_step(procedure)))


def start_position(walk: ConductWalk, procedure: Procedure) -> WalkPosition:
    """Return where a conduct begins that walks all of its steps."""
    if not walk.loops:
        return WalkPosition()
    return loop_position(walk, procedure, passes=0, seconds_left=walk.budget.wall_clock_remaining)


def first_position(walk: ConductWalk) -> WalkPosition:
    """Return where the first conduct of a procedure begins that is not registered yet."""
    if not walk.loops:
        return WalkPosition()
    passes = walk.unconverged_cap if walk.mode is ConductMode.CONVERGED else walk.budget.iterations_remaining
    limited = None if passes is None else max(0, min(passes, MAX_PASSES))
    seconds_left = walk.budget.wall_clock_remaining
    return WalkPosition(len(walk.steps), loops=True, passes_left=limited, seconds_left=seconds_left)


def live_position(walk: ConductWalk, procedure: Procedure, progress: ConductProgress, now: datetime) -> WalkPosition:
    """Return where a live conduct is; the step that it is at began when something was last done."""
    index = progress.step_index
    at_step = index is not None and progress.shown_phase in AT_A_STEP
    elapsed = (now - progress.active_at).total_seconds() if at_step else 0.0
    if progress.phase == ConductPhase.CLOSING:
        return WalkPosition(index or 0, closing=True, elapsed=elapsed)
    if walk.mode is None:
        return WalkPosition(closing=True)
    if not walk.loops:
        return WalkPosition(walk.boundary if index is None else index, elapsed=elapsed)
    seconds_left = walk.budget.wall_clock_remaining
    if seconds_left is not None and walk.started_at is not None:
        seconds_left = max(0.0, seconds_left - (now - walk.started_at).total_seconds())
    passes = procedure.iteration_count - walk.passes_before
    if procedure.current_iteration_index is None or progress.waiting_for == WaitingFor.ADVICE:
        return loop_position(walk, procedure, passes, seconds_left)
    begun = progress.iteration_index == procedure.current_iteration_index
    at = (index or 0, elapsed) if begun else (0, 0.0)
    return loop_position(walk, procedure, passes, seconds_left, *at)


def loop_position(
    walk: ConductWalk,
    procedure: Procedure,
    passes: int,
    seconds_left: float | None,
    step_index: int | None = None,
    elapsed: float = 0.0,
) -> WalkPosition:
    """Return a position in a loop of which so many passes were begun; without a step it is between two passes."""
    if walk.mode is ConductMode.CONVERGED:
        streak = procedure.consecutive_unconverged_iterations + (procedure.current_iteration_index is not None)
        left = None if walk.unconverged_cap is None else walk.unconverged_cap - streak
    else:
        iterations = walk.budget.iterations_remaining
        left = None if iterations is None else iterations - passes
    limited = None if left is None else max(0, min(left, MAX_PASSES - procedure.iteration_count))
    at = len(walk.steps) if step_index is None else step_index
    return WalkPosition(at, elapsed=elapsed, loops=True, passes_left=limited, seconds_left=seconds_left)


def remaining_text(found: Estimate | None) -> str | None:
    """Return how long the rest takes, in words; None where that is not known."""
    if found is None or found.remaining_seconds is None:
        return None
    if found.remaining_seconds < SHORTEST_SECONDS:
        return None if found.basis is EstimateBasis.PARTLY else f"less than {SHORTEST_SECONDS} s left"
    kind = "about" if found.to_cap is (found.basis is EstimateBasis.PARTLY) else "at most" if found.to_cap else "more than"
    return f"{kind} {duration_text(found.remaining_seconds)} left"


def duration_text(seconds: float) -> str:
    """Return a time span in words, coarser the longer it is."""
    if seconds < 60:
        return f"{SHORTEST_SECONDS * round(seconds / SHORTEST_SECONDS)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
