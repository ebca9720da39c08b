"""The frames of a conduct's stream. Their ordinals are derived from what they describe (pass, list, step, begun or done),
not counted: they are the same for all readers and all attempts at a step, and only grow while a conduct continues."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel

from baton.domain.conduct.ledger import MeasuredObjective
from baton.domain.conduct.messages import MAX_PASSES, Mark
from baton.domain.conduct.progress import ConductPhase
from baton.domain.conduct.views import LOOPS
from baton.domain.procedure import procedure as procedures
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.steering.steering import Point
from baton.domain.step.results import ConductResult

MOMENTS = {Mark.IN_FLIGHT: 0, Mark.OUTCOME: 1, Mark.DEPOSIT: 2}  # The order of the rows of a step.
PER_STEP = len(MOMENTS)


class FrameKind(StrEnum):
    SNAPSHOT = "snapshot"
    STEP = "step"
    ITERATION = "iteration"
    POINT = "point"
    HELD = "held"
    HALTED = "halted"
    ENDED = "ended"


LAST = frozenset({FrameKind.HELD, FrameKind.HALTED, FrameKind.ENDED})  # The frames behind which nothing comes.


@dataclass(frozen=True, order=True)
class LedgerPosition:
    """A position among ledger rows, in the order a conduct writes them."""

    closing: bool = False
    iteration_index: int = 0
    step_index: int = 0


@dataclass(frozen=True)
class Outline:
    """The shape of a conduct, from which all ordinals follow."""

    procedure_id: UUID
    conduct_id: UUID
    command_name: str
    step_count: int
    closing_count: int
    opened_version: int  # The version of the event that opened it; all its other events come later.
    objective: str | None = None  # The slot that its passes are judged by, where there are passes.

    @property
    def loops(self) -> bool:
        return procedures.MODES.get(self.command_name) in LOOPS

    @property
    def end(self) -> int:
        """The ordinal of the last frame."""
        return self._closing_rank + PER_STEP * self.closing_count + 1

    def step(self, position: LedgerPosition, mark: Mark) -> int:
        """Return the ordinal of a ledger row."""
        before = self._closing_rank if position.closing else self._pass(position.iteration_index) + self.loops
        return before + PER_STEP * position.step_index + MOMENTS[mark] + 1

    def iteration(self, index: int, *, ended: bool) -> int:
        """Return the ordinal of the beginning or the end of a pass."""
        return self._pass(index) + 1 + ended * (PER_STEP * self.step_count + 1)

    def before(self, phase: ConductPhase, iteration_index: int | None, step_index: int | None) -> int:
        """Return the ordinal behind which everything comes that a progress row does not cover."""
        if phase is ConductPhase.ENDED:
            return self.end - 1
        if step_index is None and phase is not ConductPhase.CLOSING:
            return 0
        position = LedgerPosition(phase is ConductPhase.CLOSING, iteration_index or 0, step_index or 0)
        return max(0, self.step(position, Mark.IN_FLIGHT) - 1)

    def position(self, ordinal: int) -> LedgerPosition:
        """Return the first ledger position that a reader behind this ordinal may not know."""
        if ordinal > self._closing_rank:
            return LedgerPosition(True, 0, min((ordinal - self._closing_rank - 1) // PER_STEP, self.closing_count))
        if not self.loops:
            return LedgerPosition(False, 0, max(0, ordinal - 1) // PER_STEP)
        passed, within = divmod(max(0, ordinal - 1), self._block)
        return LedgerPosition(False, passed + 1, min(max(0, within - 1) // PER_STEP, self.step_count))

    @property
    def _block(self) -> int:
        """The number of ordinals of one pass: its beginning, its steps, its end."""
        return PER_STEP * self.step_count + 2

    @property
    def _closing_rank(self) -> int:
        """The last ordinal of the main list, for the largest number of passes."""
        return MAX_PASSES * self._block if self.loops else PER_STEP * self.step_count

    def _pass(self, index: int) -> int:
        return (index - 1) * self._block if self.loops else 0


@dataclass(frozen=True)
class LedgerRow:
    """A ledger row as a stream shows it."""

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
    def position(self) -> LedgerPosition:
        return LedgerPosition(self.closing, self.iteration_index, self.step_index)


@dataclass(frozen=True)
class StreamRow:
    """An event of a conduct, and the measurement of the pass that it ends."""

    version: int
    event: procedures.ProcedureEvent
    measurement: MeasuredObjective | None = None


class StepFrame(AnswerForm):
    """A step was begun or ended; a beginning is shown only for steps that may change something."""

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


class IterationFrame(AnswerForm):
    """A pass was begun, or ended with this measurement."""

    iteration_index: int
    state: Literal["started", "ended"]
    point: Point | None
    converged: bool | None
    advised_stop: bool | None
    reason: str | None
    measurement: MeasuredObjective | None
    occurred_at: datetime


class EndFrame(AnswerForm):
    """The conduct came to its end, and this came of it."""

    conduct_id: UUID
    result: ConductResult
    occurred_at: datetime


@dataclass(frozen=True)
class StreamFrame:
    """One frame of a conduct's stream; a snapshot has the place of the frame before it."""

    kind: FrameKind
    ordinal: int
    data: BaseModel
    version: int = 0  # The version of the event that it tells of; 0 where it tells of none.

    @property
    def is_last(self) -> bool:
        return self.kind in LAST


def frames(
    outline: Outline, rows: Sequence[LedgerRow], events: Sequence[StreamRow], behind: int, limit: int
) -> list[StreamFrame]:
    """Return the frames of these rows and events behind an ordinal, in order, each once.

    Where as many as `limit` of either were read there may be more of them, and no frame behind those is returned.
    """
    found: dict[int, StreamFrame] = {}
    horizon = outline.end
    for part, read in ((row_frames(outline, rows), rows), (event_frames(outline, events), events)):
        by_ordinal = {frame.ordinal: frame for frame in reversed(list(part))}
        if len(read) >= limit:
            horizon = min(horizon, max(by_ordinal, default=behind))
        found |= by_ordinal
    return [found[ordinal] for ordinal in sorted(found) if behind < ordinal <= horizon]


def row_frames(outline: Outline, rows: Sequence[LedgerRow]) -> Iterator[StreamFrame]:
    """Yield the frames of ledger rows; a deposit is shown only where it failed."""
    for row in rows:
        if row.mark is not Mark.DEPOSIT or row.result == "failed":
            shown = {name: getattr(row, name) for name in StepFrame.model_fields if hasattr(row, name)}
            state = "started" if row.mark is Mark.IN_FLIGHT else row.result
            shown |= {"iteration_index": row.iteration_index or None, "state": state, "kind": row.step_kind}
            yield StreamFrame(FrameKind.STEP, outline.step(row.position, row.mark), StepFrame(**shown))


def event_frames(outline: Outline, events: Sequence[StreamRow]) -> Iterator[StreamFrame]:
    """Yield the frames of a conduct's events, up to its end."""
    for row in events:
        match row.event:
            case procedures.ProcedureIterationStarted() | procedures.ProcedureIterationEnded() as event if outline.loops:
                ended = isinstance(event, procedures.ProcedureIterationEnded)
                place = outline.iteration(event.iteration_index, ended=ended)
                yield StreamFrame(FrameKind.ITERATION, place, iteration_frame(event, row.measurement), row.version)
            case procedures.ProcedureConducted(conduct_id=outline.conduct_id) as event:
                end = EndFrame(conduct_id=event.conduct_id, result=event.result, occurred_at=event.occurred_at)
                kind = FrameKind.HALTED if event.result.acquisition_halt else FrameKind.ENDED
                yield StreamFrame(FrameKind.HELD if event.result.held else kind, outline.end, end, row.version)
                return
            case _:
                continue


def iteration_frame(event: procedures.PassEvent, measurement: MeasuredObjective | None) -> IterationFrame:
    """Return the frame of the beginning or the end of a pass."""
    state: Literal["started", "ended"] = "started" if isinstance(event, procedures.ProcedureIterationStarted) else "ended"
    names = ("iteration_index", "point", "converged", "advised_stop", "reason", "occurred_at")
    shown: dict[str, Any] = {name: getattr(event, name, None) for name in names}
    return IterationFrame(**shown, state=state, measurement=measurement)
