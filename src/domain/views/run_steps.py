"""The steps of a phase as a report or a comparison has them: a short list step by step, a long one folded by kind."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from baton.domain.conduct.step_list import ListedStep, ListProcedureSteps, ProcedureSteps, StepState
from baton.domain.kernel import Call
from baton.domain.procedure.procedure import Procedure
from baton.domain.shared.reads import Reads

MOST_STEPS = 50_000  # Steps of one list that are read.
SHOWN_WHOLE = 60  # A list of at most so many is shown step by step.
MOST_TROUBLES = 40  # Steps of a longer list that are shown one by one, because something was not as usual.
UNUSUAL = (StepState.FAILED, StepState.SKIPPED, StepState.UNKNOWN)


@dataclass(frozen=True)
class StepFold:
    """The steps of one kind: how many there are, what became of them, and how long they took."""

    kind: str
    count: int
    done: int
    unusual: int
    seconds: float
    median_seconds: float | None
    longest_seconds: float | None


class PhaseSteps(NamedTuple):
    """Every step of a phase that a report looks at, in order: those of the main list, and those of closing."""

    main: tuple[ListedStep, ...]
    closing: tuple[ListedStep, ...]

    @property
    def every(self) -> tuple[ListedStep, ...]:
        """The steps of both lists."""
        return (*self.main, *self.closing)


def load_steps(phase: Procedure, call: Call) -> Reads[PhaseSteps]:
    """Return the steps of both lists of a phase; of one with passes, those of its last pass."""
    main = yield from load_list(phase, call, closing=False)
    closing = yield from load_list(phase, call, closing=True)
    return PhaseSteps(main.items, closing.items)


def load_list(phase: Procedure, call: Call, *, closing: bool) -> Reads[ProcedureSteps]:
    query = ListProcedureSteps.model_construct(closing=closing, first_index=0, limit=MOST_STEPS)
    return (yield from query.answer(phase, call))


def fold_steps(steps: Iterable[ListedStep]) -> tuple[StepFold, ...]:
    """Return the steps by kind, the kind that took longest first."""
    kinds: dict[str, list[ListedStep]] = {}
    for one in steps:
        kinds.setdefault(one.step.kind, []).append(one)
    folds = []
    for kind, same in kinds.items():
        seconds = [one.seconds for one in same if one.seconds is not None]
        done, unusual = sum(one.state is StepState.DONE for one in same), sum(one.state in UNUSUAL for one in same)
        middle, longest = (median(seconds), max(seconds)) if seconds else (None, None)
        folds.append(StepFold(kind, len(same), done, unusual, sum(seconds), middle, longest))
    return tuple(sorted(folds, key=lambda fold: (-fold.seconds, fold.kind)))


def noteworthy_steps(steps: Sequence[ListedStep]) -> tuple[ListedStep, ...]:
    """Return the steps that a report shows one by one: all of a short list, else those that were not as usual."""
    if len(steps) <= SHOWN_WHOLE:
        return tuple(steps)
    unusual = [one for one in steps if one.state in UNUSUAL or one.deviates or one.attempt_count > 1]
    return tuple(unusual[:MOST_TROUBLES])
