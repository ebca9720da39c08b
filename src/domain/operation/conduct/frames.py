"""The frames of a conduct's stream: what happened in it, each at its place.

A frame's ordinal is not counted, it is the place of what it tells in the conduct: in which pass, in which list, at which
step, begun or done. So it is the same for whoever reads, whenever they read and however often a step was tried; it only
grows while a conduct goes on, and it leaves out what was not to be told.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel

from baton.domain.operation.conduct.messages import MAX_PASSES, Mark
from baton.domain.operation.conduct.progress import ConductPhase
from baton.domain.operation.conduct.results import ConductResult
from baton.domain.operation.conduct.views import LOOPS, MeasuredObjective
from baton.domain.operation.procedure.procedure import (
    MODES,
    ProcedureConducted,
    ProcedureEvent,
    ProcedureIterationEnded,
    ProcedureIterationStarted,
)
from baton.domain.operation.steering.steering import Point

MOMENTS = {Mark.IN_FLIGHT: 0, Mark.OUTCOME: 1, Mark.DEPOSIT: 2}
"""What is told of a step, in the order in which it comes: that it was begun, what came of it, what it left."""
PER_STEP = len(MOMENTS)


class FrameKind(StrEnum):
    SNAPSHOT = "snapshot"
    STEP = "step"
    ITERATION = "iteration"
    HELD = "held"
    HALTED = "halted"
    ENDED = "ended"


LAST = frozenset({FrameKind.HELD, FrameKind.HALTED, FrameKind.ENDED})
"""The frames behind which nothing comes."""


@dataclass(frozen=True, order=True)
class Spot:
    """Where a reader stands among the ledger's rows, in the order in which a conduct writes them."""

    closing: bool = False
    iteration_index: int = 0
    step_index: int = 0


@dataclass(frozen=True)
class Outline:
    """The form of a conduct, from which the place of everything in it follows."""

    procedure_id: UUID
    conduct_id: UUID
    command_name: str
    step_count: int
    closing_count: int
    opened_version: int
    """The version of the event that opened it; whatever its stream says of it comes behind."""
    objective: str | None = None
    """The slot that its passes are judged by, where there are passes."""

    @property
    def loops(self) -> bool:
        return MODES.get(self.command_name) in LOOPS

    @property
    def end(self) -> int:
        """The place of the last frame."""
        return self._closing + PER_STEP * self.closing_count + 1

    def step(self, spot: Spot, mark: Mark) -> int:
        """The place of what a row of the ledger tells."""
        before = self._closing if spot.closing else self._pass(spot.iteration_index) + self.loops
        return before + PER_STEP * spot.step_index + MOMENTS[mark] + 1

    def iteration(self, index: int, *, ended: bool) -> int:
        """The place of the beginning or the end of a pass."""
        return self._pass(index) + 1 + ended * (PER_STEP * self.step_count + 1)

    def before(self, phase: ConductPhase, iteration_index: int | None, step_index: int | None) -> int:
        """The place behind which everything comes that such a progress row does not tell."""
        if phase is ConductPhase.ENDED:
            return self.end - 1
        if step_index is None and phase is not ConductPhase.CLOSING:
            return 0
        spot = Spot(phase is ConductPhase.CLOSING, iteration_index or 0, step_index or 0)
        return max(0, self.step(spot, Mark.IN_FLIGHT) - 1)

    def spot(self, ordinal: int) -> Spot:
        """The first place of the ledger that a reader behind this ordinal may still have to hear of."""
        if ordinal > self._closing:
            return Spot(True, 0, min((ordinal - self._closing - 1) // PER_STEP, self.closing_count))
        if not self.loops:
            return Spot(False, 0, max(0, ordinal - 1) // PER_STEP)
        passed, within = divmod(max(0, ordinal - 1), self._block)
        return Spot(False, passed + 1, min(max(0, within - 1) // PER_STEP, self.step_count))

    @property
    def _block(self) -> int:
        """The places of one pass: its beginning, its steps, its end."""
        return PER_STEP * self.step_count + 2

    @property
    def _closing(self) -> int:
        """Behind every place of the main list, however many passes there may come to be."""
        return MAX_PASSES * self._block if self.loops else PER_STEP * self.step_count

    def _pass(self, index: int) -> int:
        return (index - 1) * self._block if self.loops else 0


@dataclass(frozen=True)
class LedgerRow:
    """What a row of the ledger says to whoever watches."""

    iteration_index: int
    closing: bool
    step_index: int
    mark: Mark
    step_kind: str
    result: str
    target: str
    recorded_at: datetime
    error_class: str | None = None
    message: str | None = None
    capture_name: str | None = None
    captured_value: float | None = None

    @property
    def spot(self) -> Spot:
        return Spot(self.closing, self.iteration_index, self.step_index)


@dataclass(frozen=True)
class StreamRow:
    """An event of the procedure's stream that tells of a conduct, and what the pass measured that it ends."""

    version: int
    event: ProcedureEvent
    measurement: MeasuredObjective | None = None


class StepFrame(BaseModel):
    """A step was begun, or this came of it; only what may change something is told before it is done."""

    iteration_index: int | None
    closing: bool
    step_index: int
    state: Literal["started", "ok", "failed", "skipped"]
    kind: str
    target: str
    error_class: str | None
    message: str | None
    capture_name: str | None
    captured_value: float | None
    recorded_at: datetime


class IterationFrame(BaseModel):
    """A pass was begun, or ended with this measurement."""

    iteration_index: int
    state: Literal["started", "ended"]
    point: Point | None
    converged: bool | None
    advised_stop: bool | None
    reason: str | None
    measurement: MeasuredObjective | None
    occurred_at: datetime


class EndFrame(BaseModel):
    """The conduct came to its end, and this came of it."""

    conduct_id: UUID
    result: ConductResult
    occurred_at: datetime


@dataclass(frozen=True)
class Frame:
    """One frame of a conduct's stream; a snapshot has the place of the frame before it."""

    kind: FrameKind
    ordinal: int
    data: BaseModel
    version: int = 0
    """The version of the event that it tells of; 0 where it tells of none."""

    @property
    def is_last(self) -> bool:
        return self.kind in LAST


def frames(outline: Outline, rows: Sequence[LedgerRow], events: Sequence[StreamRow], behind: int, limit: int) -> list[Frame]:
    """What these rows and events tell to a reader who knows everything up to an ordinal, in order, each once.

    Where as many as `limit` of either were read there may be more of them, and nothing is told that comes behind those.
    """
    found: dict[int, Frame] = {}
    horizon = outline.end
    for part, read in ((row_frames(outline, rows), rows), (event_frames(outline, events), events)):
        told = {frame.ordinal: frame for frame in reversed(list(part))}
        if len(read) >= limit:
            horizon = min(horizon, max(told, default=behind))
        found |= told
    return [found[ordinal] for ordinal in sorted(found) if behind < ordinal <= horizon]


def row_frames(outline: Outline, rows: Sequence[LedgerRow]) -> Iterator[Frame]:
    """What ledger rows tell; that a step left something goes without saying, that it failed to does not."""
    for row in rows:
        if row.mark is not Mark.DEPOSIT or row.result == "failed":
            yield Frame(FrameKind.STEP, outline.step(row.spot, row.mark), step_frame(row))


def step_frame(row: LedgerRow) -> StepFrame:
    state: Any = "started" if row.mark is Mark.IN_FLIGHT else row.result
    return StepFrame(
        iteration_index=row.iteration_index or None,
        closing=row.closing,
        step_index=row.step_index,
        state=state,
        kind=row.step_kind,
        target=row.target,
        error_class=row.error_class,
        message=row.message,
        capture_name=row.capture_name,
        captured_value=row.captured_value,
        recorded_at=row.recorded_at,
    )


def event_frames(outline: Outline, events: Sequence[StreamRow]) -> Iterator[Frame]:
    """What the stream tells of a conduct, up to its end."""
    for row in events:
        match row.event:
            case ProcedureIterationStarted() | ProcedureIterationEnded() as event if outline.loops:
                ended = isinstance(event, ProcedureIterationEnded)
                place = outline.iteration(event.iteration_index, ended=ended)
                yield Frame(FrameKind.ITERATION, place, iteration_frame(event, row.measurement), row.version)
            case ProcedureConducted(conduct_id=outline.conduct_id) as event:
                end = EndFrame(conduct_id=event.conduct_id, result=event.result, occurred_at=event.occurred_at)
                yield Frame(end_kind(event.result), outline.end, end, row.version)
                return
            case _:
                continue


def iteration_frame(
    event: ProcedureIterationStarted | ProcedureIterationEnded, measurement: MeasuredObjective | None
) -> IterationFrame:
    ended = event if isinstance(event, ProcedureIterationEnded) else None
    return IterationFrame(
        iteration_index=event.iteration_index,
        state="started" if ended is None else "ended",
        point=event.point if isinstance(event, ProcedureIterationStarted) else None,
        converged=None if ended is None else ended.converged,
        advised_stop=None if ended is None else ended.advised_stop,
        reason=None if ended is None else ended.reason,
        measurement=measurement,
        occurred_at=event.occurred_at,
    )


def end_kind(result: ConductResult) -> FrameKind:
    """The frame that a conduct ends with."""
    if result.held:
        return FrameKind.HELD
    return FrameKind.HALTED if result.acquisition_halt else FrameKind.ENDED
