"""The state of a conduct or of a run as far as its frames tell, and what is said of it in lines."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from uuid import UUID

from baton.client.wording import (
    ending_text,
    ending_word,
    failure_text,
    pending_text,
    remaining_text,
    step_failure_text,
    unclosed_text,
)

if TYPE_CHECKING:
    from baton.client.operations import (
        ConductResult,
        ConductView,
        EndFrame,
        IterationFrame,
        MeasuredObjective,
        PointFrame,
        RunConductResult,
        RunConductView,
        StepFrame,
    )

ConductFrame: TypeAlias = "ConductView | StepFrame | IterationFrame | PointFrame | EndFrame"
RunFrame: TypeAlias = "RunConductView | ConductView | StepFrame | IterationFrame | PointFrame | EndFrame"
WAITS = {"run": "waiting for its run to be resumed", "advice": "waiting for advice"}


class WatchedWork(Protocol):
    """What a display shows of work that is watched."""

    @property
    def line(self) -> str:
        """The state in one line."""

    @property
    def step_index(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def elapsed_seconds(self) -> float: ...
    @property
    def is_worker_lost(self) -> bool: ...
    @property
    def points(self) -> "dict[int, PointFrame]": ...
    def result_lines(self) -> Iterator[str]: ...


@dataclass
class WatchedConduct:
    """The state of a conduct as far as its frames tell."""

    view: "ConductView | None" = None
    current_step: str = ""
    step_index: int = 0
    closing: bool = False
    iteration_index: int | None = None
    between: bool = False  # whether a pass has ended and the next one has not begun
    measurement: "MeasuredObjective | None" = None
    captured: str = ""  # the value captured last, shown where passes are not judged by a measurement
    points: "dict[int, PointFrame]" = field(default_factory=dict)  # by their ordinals: a later frame replaces one
    result: "ConductResult | None" = None
    ended_at: datetime | None = None
    seen_at: float = field(default_factory=time.monotonic)  # when the view was received, by the clock of this process

    def apply(self, frame: Any) -> bool:
        """Apply a frame; return whether it says more than that the next step has begun."""
        match type(frame).__name__:
            case "ConductView":
                self.view = frame
                self.seen_at = time.monotonic()
                self.step_index = frame.step_index or 0
                self.closing = frame.phase == "Closing"
                self.iteration_index = frame.iteration_index or self.iteration_index
                self.measurement = frame.measurement or self.measurement
                return True
            case "StepFrame":
                self.closing, self.iteration_index = frame.closing, frame.iteration_index or self.iteration_index
                self.between = False
                self.step_index = frame.step_index + (frame.state == "ok")
                failed = " failed" if frame.state == "failed" else ""
                self.current_step = "" if frame.state == "ok" else f"{frame.kind} {frame.target}{failed}"
                if frame.captured_value is not None:
                    self.captured = f"{frame.capture_name} {frame.captured_value:.6g}"
                return bool(frame.state == "failed")
            case "IterationFrame":
                self.between = frame.state == "ended"
                self.iteration_index = frame.iteration_index
                self.step_index = self.count if self.between else 0
                self.current_step, self.measurement = "", frame.measurement or self.measurement
                return self.between
            case "PointFrame":
                self.points[frame.ordinal] = frame
                return False
            case "EndFrame":
                self.result = frame.result
                self.ended_at = frame.occurred_at
                return False
            case unknown:
                raise TypeError(f"{unknown} is no frame of a conduct")

    @property
    def count(self) -> int:
        """The number of steps, or of closing steps."""
        if self.view is None:
            return 0
        return (self.view.closing_count if self.closing else self.view.step_count) or 0

    @property
    def is_worker_lost(self) -> bool:
        return self.view is not None and self.view.worker == "lost"

    @property
    def time_left(self) -> str | None:
        """The estimate of the view in words, less the time since then where its clock runs."""
        found = None if self.view is None else self.view.estimate
        is_running = found is not None and found.ends_at is not None
        return remaining_text(found, time.monotonic() - self.seen_at if is_running else 0.0)

    @property
    def line(self) -> str:
        """The state in one line."""
        if self.result is not None:
            return ending_text(self.result)
        if self.view is None or self.view.conduct_id is None:
            return "waiting for a conduct to be opened"
        ended = " ended" if self.between else ""
        parts = [f"iteration {self.iteration_index}{ended}"] if self.iteration_index is not None else []
        if not self.between or self.view.waiting_for is not None:
            parts.append(self._position(self.view))
        if self.measurement is not None:
            parts.append(f"{self.measurement.name} {self.measurement.value:.6g}")
        elif self.captured:
            parts.append(self.captured)
        if self.view.pending is not None:
            parts.append(pending_text(self.view.pending))
        if self.is_worker_lost:
            parts.append(f"worker lost {(self.view.silence or 0) + time.monotonic() - self.seen_at:.0f} s ago")
        if self.time_left is not None:
            parts.append(self.time_left)
        return " · ".join(parts)

    def _position(self, view: "ConductView") -> str:
        if view.worker == "awaited":
            return "waiting for a worker to take it up"
        if view.waiting_for is not None:
            return WAITS.get(view.waiting_for, f"waiting for {view.waiting_for}")
        if view.phase == "Stalled":
            return "stalled in the engine"
        if self.closing and not self.count:
            return "coming to its end"
        number = f"{'closing step' if self.closing else 'step'} {min(self.step_index + 1, self.count)} of {self.count}"
        return f"{number}, {self.current_step}" if self.current_step else number

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the conduct was opened."""
        return seconds_since(None if self.view is None else self.view.started_at, self.ended_at)

    def result_lines(self) -> Iterator[str]:
        """Yield the result of the conduct in lines."""
        result = self.result
        assert result is not None, "there is a result"
        after = f"{ending_word(result)} after {duration(self.elapsed_seconds)}"
        yield f"{after}: {result.command_name}, conduct {result.conduct_id}"
        if result.failure is not None:
            yield f"  {failure_text(result.failure)}"
        of = None if self.view is None else self.view.step_count
        yield f"  {result.completed_count} steps done" + ("" if of is None else f" of {of}")
        if result.iteration_count is not None:
            why = "" if result.termination_reason is None else f", {result.termination_reason}"
            yield f"  {result.iteration_count} iterations{why}"
        if self.measurement is not None:
            yield f"  {self.measurement.name} {self.measurement.value:.6g} in iteration {self.measurement.iteration_index}"
        for measured in result.measurements:
            yield f"  {measured.name} {json.dumps(measured.value)}{f' {measured.units}' if measured.units else ''}"
        for name, artifact in result.outputs.items():
            yield f"  {name}: {artifact.uri}"
        for address, value in result.substrate_writes.items():
            yield f"  {address} left at {json.dumps(value)}"
        for one in result.deviations:
            unit = f" {one.unit}" if one.unit else ""
            yield f"  {one.address} deviates: {json.dumps(one.asked)} was written, {json.dumps(one.read)}{unit} read"
        for failure in result.closing_failures:
            yield f"  closing: {step_failure_text(failure)}"


@dataclass
class WatchedRunConduct:
    """The state of a run's conduct: its own view, and its latest phase."""

    view: "RunConductView | None" = None
    phase: WatchedConduct = field(default_factory=WatchedConduct)
    ended_at: datetime | None = None

    def apply(self, frame: Any) -> bool:
        """Apply a frame; return whether it says more than that the next step has begun."""
        if type(frame).__name__ == "RunConductView":
            self.view = frame
            self.ended_at = self.ended_at or (None if frame.result is None else datetime.now(UTC))
            return True
        if type(frame).__name__ == "ConductView" and self._is_next(frame):
            self.phase = WatchedConduct()
        return self.phase.apply(frame)

    def _is_next(self, view: "ConductView") -> bool:
        known = self.phase.view
        return known is not None and (known.procedure_id, known.conduct_id) != (view.procedure_id, view.conduct_id)

    @property
    def result(self) -> "RunConductResult | None":
        return None if self.view is None else self.view.result

    @property
    def line(self) -> str:
        """The state in one line: which phase it is at, and how that goes."""
        if self.view is None or self.view.conduct_id is None:
            return "waiting for a conduct to be opened"
        if self.result is not None:
            if self.result.failure is None:
                return unclosed_text(self.result) or "succeeded"
            return f"failed: {self.result.failure.message}"
        number = self._phase_number(self.phase.view.procedure_id) if self.phase.view is not None else None
        if number is None:
            return "waiting for its first phase"
        return f"phase {number} of {len(self.view.phases)} · {self.phase.line}"

    def _phase_number(self, procedure_id: UUID) -> int | None:
        phases = () if self.view is None else self.view.phases
        return next((number for number, one in enumerate(phases, 1) if one.procedure_id == procedure_id), None)

    @property
    def points(self) -> "dict[int, PointFrame]":
        """The points of its latest phase."""
        return self.phase.points

    @property
    def step_index(self) -> int:
        return self.phase.step_index

    @property
    def count(self) -> int:
        return self.phase.count

    @property
    def is_worker_lost(self) -> bool:
        return self.phase.is_worker_lost

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the conduct of the run was opened."""
        return seconds_since(None if self.view is None else self.view.started_at, self.ended_at)

    def result_lines(self) -> Iterator[str]:
        """Yield the result of the run's conduct in lines."""
        result = self.result
        assert result is not None, "there is a result"
        ended = "succeeded" if result.succeeded else "failed"
        yield f"{ended} after {duration(self.elapsed_seconds)}: run {result.run_id}, conduct {result.conduct_id}"
        if result.failure is not None:
            yield f"  {failure_text(result.failure)}"
        for number, phase in enumerate(result.phases, 1):
            how = "succeeded" if phase.succeeded else "failed" if phase.failure is not None else "not conducted"
            yield f"  phase {number} {how}, {phase.completed_count} steps done: procedure {phase.procedure_id}"
        for name, artifact in result.outputs.items():
            yield f"  {name}: {artifact.uri}"


def seconds_since(started_at: datetime | None, ended_at: datetime | None) -> float:
    """Return the seconds from a beginning to an end, or to now."""
    return 0.0 if started_at is None else max(0.0, ((ended_at or datetime.now(UTC)) - started_at).total_seconds())


def duration(seconds: float) -> str:
    """Return a time span as hours, minutes and seconds."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
