"""`baton conduct watch`: follows the stream of a conduct to its end and prints its result."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NoReturn
from uuid import UUID

import httpx
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task
from rich.text import Text

from baton.cli.service_client import error_members, open_client, refuse_unanswered, refuse_unauthorized
from baton.cli.startup import refuse
from baton.domain.operation.conduct import views
from baton.domain.operation.conduct.estimates import Estimate, remaining_text
from baton.domain.operation.conduct.frames import LAST, EndFrame, FrameKind, IterationFrame, StepFrame
from baton.domain.operation.conduct.messages import reason_of
from baton.domain.operation.conduct.progress import ConductPhase, WaitingFor
from baton.domain.operation.conduct.results import ConductResult
from baton.domain.operation.conduct.views import ConductView, MeasuredObjective, WorkerContact

RECONNECT_SECONDS = 60.0  # how long a lost service may be away
READ_TIMEOUT_SECONDS = 40.0  # a connection without even a comment for so long counts as dead
WAITS = {WaitingFor.RUN: "waiting for its run to be resumed", WaitingFor.ADVICE: "waiting for advice"}


def watch_conduct(url: str, token: str | None, procedure_id: UUID, console: Console | None = None) -> NoReturn:
    """Show the latest conduct of a procedure, as a bar or in lines, and print its result; exit with 0 where it succeeded."""
    console = console or Console(stderr=True, soft_wrap=True, emoji=False)
    state = WatchedConduct()
    display = show_bar(state, console) if console.is_interactive else print_lines(state, console)
    with display as update, open_client(url, token, httpx.Timeout(10, read=READ_TIMEOUT_SECONDS)) as client:
        for kind, data in ConductStreamClient(url, client, procedure_id).frames():
            update(state.apply(kind, data))
            if state.is_unconductable or (state.result is not None and kind in LAST):
                break
    if state.is_unconductable:
        refuse("The procedure has come to its end and was never conducted; there is nothing to watch.")
    assert state.result is not None, "the stream of a conduct ends with its result"
    print(*result_lines(state), sep="\n", flush=True)
    raise SystemExit(0 if state.result.succeeded else 1)


@dataclass
class WatchedConduct:
    """The state of a conduct as far as its frames tell."""

    view: ConductView | None = None
    current_step: str = ""
    step_index: int = 0
    closing: bool = False
    iteration_index: int | None = None
    between: bool = False  # whether a pass has ended and the next one has not begun
    measurement: MeasuredObjective | None = None
    captured: str = ""  # the value captured last, shown where passes are not judged by a measurement
    result: ConductResult | None = None
    ended_at: datetime | None = None
    seen_at: float = field(default_factory=time.monotonic)  # when the view was received, by the clock of this process

    def apply(self, kind: FrameKind, data: str) -> bool:
        """Apply a frame; return whether it says more than that the next step has begun."""
        match kind:
            case FrameKind.SNAPSHOT:
                view = ConductView.model_validate_json(data)
                self.view = view
                self.seen_at = time.monotonic()
                self.step_index = view.step_index or 0
                self.closing = view.phase is ConductPhase.CLOSING
                self.iteration_index = view.iteration_index or self.iteration_index
                self.measurement = view.measurement or self.measurement
                return True
            case FrameKind.STEP:
                step = StepFrame.model_validate_json(data)
                self.closing, self.iteration_index = step.closing, step.iteration_index or self.iteration_index
                self.between = False
                self.step_index = step.step_index + (step.state == "ok")
                failed = " failed" if step.state == "failed" else ""
                self.current_step = "" if step.state == "ok" else f"{step.kind} {step.target}{failed}"
                if step.captured_value is not None:
                    self.captured = f"{step.capture_name} {step.captured_value:.6g}"
                return step.state == "failed"
            case FrameKind.ITERATION:
                iteration = IterationFrame.model_validate_json(data)
                self.between = iteration.state == "ended"
                self.iteration_index = iteration.iteration_index
                self.step_index = self.count if self.between else 0
                self.current_step, self.measurement = "", iteration.measurement or self.measurement
                return self.between
            case FrameKind.HELD | FrameKind.HALTED | FrameKind.ENDED:
                end = EndFrame.model_validate_json(data)
                self.result = end.result
                self.ended_at = end.occurred_at
                return False

    @property
    def is_unconductable(self) -> bool:
        """Whether the procedure has no conduct and cannot get one any more."""
        return self.view is not None and self.view.conduct_id is None and not views.may_be_conducted(self.view)

    @property
    def count(self) -> int:
        """The number of steps, or of closing steps."""
        if self.view is None:
            return 0
        return (self.view.closing_count if self.closing else self.view.step_count) or 0

    @property
    def estimate(self) -> Estimate | None:
        """The estimate of the view, less the time since then where its clock runs."""
        found = None if self.view is None else self.view.estimate
        if found is None or found.remaining_seconds is None or found.ends_at is None:
            return found
        seconds = max(0.0, found.remaining_seconds - (time.monotonic() - self.seen_at))
        return found.model_copy(update={"remaining_seconds": seconds})

    @property
    def line(self) -> str:
        """The state in one line."""
        if self.result is not None:
            return views.ending_text(self.result)
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
            parts.append(views.pending_text(self.view.pending))
        if self.view.worker is WorkerContact.LOST:
            parts.append(f"worker lost {(self.view.silence or 0) + time.monotonic() - self.seen_at:.0f} s ago")
        if (remaining := remaining_text(self.estimate)) is not None:
            parts.append(remaining)
        return " · ".join(parts)

    def _position(self, view: ConductView) -> str:
        if view.worker is WorkerContact.AWAITED:
            return "waiting for a worker to take it up"
        if view.waiting_for is not None:
            return WAITS[view.waiting_for]
        if view.phase is ConductPhase.STALLED:
            return "stalled in the engine"
        if self.closing and not self.count:
            return "coming to its end"
        number = f"{'closing step' if self.closing else 'step'} {min(self.step_index + 1, self.count)} of {self.count}"
        return f"{number}, {self.current_step}" if self.current_step else number

    @property
    def elapsed(self) -> float:
        """Seconds since the conduct was opened."""
        if self.view is None or self.view.started_at is None:
            return 0
        return max(0.0, ((self.ended_at or datetime.now(UTC)) - self.view.started_at).total_seconds())


class TextColumn(ProgressColumn):
    """A column whose text is computed at each refresh."""

    def __init__(self, text: Callable[[Task], Text]) -> None:
        super().__init__()
        self._text = text

    def render(self, task: Task) -> Text:
        return self._text(task)


@contextmanager
def show_bar(state: WatchedConduct, console: Console) -> Iterator[Callable[[bool], None]]:
    """Show a progress bar, which is removed when the conduct has ended; yield what updates it."""

    def line(task: Task) -> Text:
        lost = state.view is not None and state.view.worker is WorkerContact.LOST
        return Text(state.line, style="red" if lost else "")

    steps = TextColumn(lambda task: Text("" if task.total is None else f"{task.completed:.0f}/{task.total:.0f}"))
    elapsed = TextColumn(lambda task: Text(duration(state.elapsed), style="progress.elapsed"))
    with Progress(BarColumn(24), steps, elapsed, TextColumn(line), console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda _: progress.update(task, completed=min(state.step_index, state.count), total=state.count or None)


@contextmanager
def print_lines(state: WatchedConduct, console: Console) -> Iterator[Callable[[bool], None]]:
    """Yield what prints a line, where a frame says more than that the next step has begun."""
    printed = ""

    def update(is_notable: bool) -> None:
        nonlocal printed
        if is_notable and state.line != printed:
            printed = state.line
            console.print(printed, highlight=False, markup=False)

    yield update


def duration(seconds: float) -> str:
    """Return a time span as hours, minutes and seconds."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def result_lines(state: WatchedConduct) -> Iterator[str]:
    """Yield the result of a conduct in lines."""
    result = state.result
    assert result is not None, "there is a result"
    how = "succeeded" if result.succeeded else "held" if result.held else "halted" if result.acquisition_halt else "failed"
    yield f"{how} after {duration(state.elapsed)}: {result.command_name}, conduct {result.conduct_id}"
    if result.failure is not None:
        failure, of_a_step = result.failure, result.failure.source_kind != "lifecycle"
        yield f"  {reason_of(failure) if of_a_step else f'{failure.error_class}: {failure.message}'}"
    of = None if state.view is None else state.view.step_count
    yield f"  {result.completed_count} steps done" + ("" if of is None else f" of {of}")
    if result.iteration_count is not None:
        why = "" if result.termination_reason is None else f", {result.termination_reason.value}"
        yield f"  {result.iteration_count} iterations{why}"
    if state.measurement is not None:
        yield f"  {state.measurement.name} {state.measurement.value:.6g} in iteration {state.measurement.iteration_index}"
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
        yield f"  closing: {reason_of(failure)}"


class ConductStreamClient:
    """Reads the stream of a conduct; resumes a lost connection after the last frame."""

    def __init__(self, url: str, client: httpx.Client, procedure_id: UUID) -> None:
        self._url = url
        self._client = client
        self._path = f"/procedures/{procedure_id}/conduct/stream"
        self._last_id: str | None = None
        self._heard = False
        self._deadline = time.monotonic() + RECONNECT_SECONDS

    def frames(self) -> Iterator[tuple[FrameKind, str]]:
        """Yield every frame once, however often the connection is lost."""
        while True:
            headers = {} if self._last_id is None else {"Last-Event-ID": self._last_id}
            try:
                with self._client.stream("GET", self._path, headers=headers) as answer:
                    if answer.status_code == 200:
                        yield from self._read(answer)
                    else:
                        self._handle_refusal(answer)
            except httpx.TransportError as error:
                if not self._heard or time.monotonic() > self._deadline:
                    refuse_unanswered(self._url, error)
            if time.monotonic() > self._deadline:
                refuse(f"The service at {self._url} ends the stream again and again; see its log.")
            time.sleep(0.5)

    def _read(self, answer: httpx.Response) -> Iterator[tuple[FrameKind, str]]:
        fields: dict[str, str] = {}
        for line in answer.iter_lines():
            self._deadline = time.monotonic() + RECONNECT_SECONDS
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
            elif not line and "data" in fields:
                self._heard, self._last_id = True, fields.get("id", self._last_id)
                with suppress(ValueError):  # a newer service may have more kinds
                    yield FrameKind(fields["event"]), fields["data"]
                fields = {}

    def _handle_refusal(self, answer: httpx.Response) -> None:
        """Exit where the service refuses; return where it is not ready, so that it is asked again."""
        answer.read()
        error, status = error_members(answer), answer.status_code
        refuse_unauthorized(status, error["detail"], "watch conducts")
        if status == 404 and "code" in error:
            refuse(str(error["detail"]))
        if status not in (500, 502, 503, 504):
            refuse(f"What answers at {self._url} is no Baton, or does not know this stream ({status}: {error['detail']}).")
        self._heard = True
