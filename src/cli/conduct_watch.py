"""`baton conduct watch`: follows a conduct through the running service, as any reader of its stream does, to its end."""

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

from baton.cli.service_client import client_of, refuse_unanswered, refuse_unauthenticated
from baton.cli.startup_errors import refuse
from baton.domain.operation.conduct.frames import LAST, EndFrame, FrameKind, IterationFrame, StepFrame
from baton.domain.operation.conduct.messages import reason_of
from baton.domain.operation.conduct.progress import ConductPhase, WaitingFor
from baton.domain.operation.conduct.results import ConductResult
from baton.domain.operation.conduct.views import (
    ConductView,
    MeasuredObjective,
    WorkerContact,
    ending_of,
    may_be_conducted,
    waits_of,
)

PATIENCE = 60.0
"""Seconds in which a service that was lost must be found again."""
RETRY_INTERVAL = 0.5
SILENCE = 40.0
"""Seconds without even a comment after which a connection counts as dead."""
WAITS = {WaitingFor.RUN: "waiting for its run to be resumed", WaitingFor.ADVICE: "waiting for advice"}


def watch_conduct(url: str, token: str | None, procedure_id: UUID, console: Console | None = None) -> NoReturn:
    """Show how the latest conduct of a procedure goes on and print what came of it; the exit code says whether it succeeded.

    What moves is shown on a terminal; elsewhere the same is said line by line.
    """
    console = console or Console(stderr=True, soft_wrap=True, emoji=False)
    scene = Scene()
    display = shown(scene, console) if console.is_interactive else spoken(scene, console)
    with display as changed, Stream(url, token, procedure_id) as stream:
        for kind, data in stream.frames():
            changed(scene.take(kind, data))
            if scene.is_in_vain:
                break
            if scene.result is not None and kind in LAST:
                break
    if scene.is_in_vain:
        refuse("The procedure has come to its end and was never conducted; there is nothing to watch.")
    assert scene.result is not None, "the stream of a conduct ends with its result"
    print(*result_lines(scene), sep="\n", flush=True)
    raise SystemExit(0 if scene.result.succeeded else 1)


@dataclass
class Scene:
    """What is known of a conduct by now."""

    view: ConductView | None = None
    doing: str = ""
    step_index: int = 0
    closing: bool = False
    iteration_index: int | None = None
    between: bool = False
    """Whether the pass has ended, and the next one not begun."""
    measurement: MeasuredObjective | None = None
    captured: str = ""
    """What was captured last, where there is nothing that passes are judged by."""
    result: ConductResult | None = None
    ended_at: datetime | None = None
    seen_at: float = field(default_factory=time.monotonic)
    """When the view was taken, by the clock of this process."""

    def take(self, kind: FrameKind, data: str) -> bool:
        """Take in a frame; answers whether it says more than that the next step has come."""
        match kind:
            case FrameKind.SNAPSHOT:
                self._look(ConductView.model_validate_json(data))
                return True
            case FrameKind.STEP:
                return self._step(StepFrame.model_validate_json(data))
            case FrameKind.ITERATION:
                return self._iteration(IterationFrame.model_validate_json(data))
            case FrameKind.HELD | FrameKind.HALTED | FrameKind.ENDED:
                end = EndFrame.model_validate_json(data)
                self.result, self.ended_at = end.result, end.occurred_at
                return False

    def _look(self, view: ConductView) -> None:
        self.view, self.seen_at = view, time.monotonic()
        self.step_index, self.closing = view.step_index or 0, view.phase is ConductPhase.CLOSING
        self.iteration_index = view.iteration_index or self.iteration_index
        self.measurement = view.measurement or self.measurement

    def _step(self, step: StepFrame) -> bool:
        self.closing, self.iteration_index = step.closing, step.iteration_index or self.iteration_index
        self.between = False
        self.step_index = step.step_index + (step.state == "ok")
        self.doing = "" if step.state == "ok" else f"{step.kind} {step.target}"
        if step.state == "failed":
            self.doing += " failed"
        if step.captured_value is not None:
            self.captured = f"{step.capture_name} {step.captured_value:.6g}"
        return step.state == "failed"

    def _iteration(self, iteration: IterationFrame) -> bool:
        ended = iteration.state == "ended"
        self.iteration_index, self.step_index = iteration.iteration_index, self.count if ended else 0
        self.doing, self.between = "", ended
        self.measurement = iteration.measurement or self.measurement
        return ended

    @property
    def is_in_vain(self) -> bool:
        """Whether no conduct will come any more."""
        return self.view is not None and self.view.conduct_id is None and not may_be_conducted(self.view)

    @property
    def count(self) -> int:
        """The steps of the list that is walked."""
        if self.view is None:
            return 0
        return (self.view.closing_count if self.closing else self.view.step_count) or 0

    @property
    def line(self) -> str:
        """Where the conduct stands, in a line."""
        if self.result is not None:
            return ending_of(self.result)
        if self.view is None or self.view.conduct_id is None:
            return "waiting for a conduct to be opened"
        parts = [self._passing()] if self.iteration_index is not None else []
        if not self.between or self.view.waiting_for is not None:
            parts.append(self._standing(self.view))
        if self.measurement is not None:
            parts.append(f"{self.measurement.name} {self.measurement.value:.6g}")
        elif self.captured:
            parts.append(self.captured)
        if self.view.pending is not None:
            parts.append(waits_of(self.view.pending))
        if self.view.worker is WorkerContact.LOST:
            parts.append(f"worker lost {self._silence(self.view):.0f} s ago")
        return " · ".join(parts)

    def _passing(self) -> str:
        return f"iteration {self.iteration_index} ended" if self.between else f"iteration {self.iteration_index}"

    def _standing(self, view: ConductView) -> str:
        if view.worker is WorkerContact.AWAITED:
            return "waiting for a worker to take it up"
        if view.waiting_for is not None:
            return WAITS[view.waiting_for]
        if view.phase is ConductPhase.STALLED:
            return "stalled in the engine"
        if self.closing and not self.count:
            return "coming to its end"
        number = f"{'closing step' if self.closing else 'step'} {min(self.step_index + 1, self.count)} of {self.count}"
        return f"{number}, {self.doing}" if self.doing else number

    def _silence(self, view: ConductView) -> float:
        return (view.silence or 0) + time.monotonic() - self.seen_at

    @property
    def elapsed(self) -> float:
        """Seconds since the conduct was opened."""
        if self.view is None or self.view.started_at is None:
            return 0
        return max(0.0, ((self.ended_at or datetime.now(UTC)) - self.view.started_at).total_seconds())


class Count(ProgressColumn):
    """How many steps of how many; nothing while that is not known."""

    def render(self, task: Task) -> Text:
        return Text("" if task.total is None else f"{task.completed:.0f}/{task.total:.0f}")


class Elapsed(ProgressColumn):
    """How long the conduct has been going on, whenever somebody began to watch it."""

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self._scene = scene

    def render(self, task: Task) -> Text:
        return Text(duration(self._scene.elapsed), style="progress.elapsed")


class Line(ProgressColumn):
    """Where the conduct stands; a lost worker's silence grows before one's eyes."""

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self._scene = scene

    def render(self, task: Task) -> Text:
        view = self._scene.view
        lost = view is not None and view.worker is WorkerContact.LOST
        return Text(self._scene.line, style="red" if lost else "")


@contextmanager
def shown(scene: Scene, console: Console) -> Iterator[Callable[[bool], None]]:
    """A bar on a terminal; nothing of it is left once the conduct has ended."""
    columns = (BarColumn(24), Count(), Elapsed(scene), Line(scene))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda _: progress.update(task, completed=min(scene.step_index, scene.count), total=scene.count or None)


@contextmanager
def spoken(scene: Scene, console: Console) -> Iterator[Callable[[bool], None]]:
    """A line whenever there is more to say than that the next step has come."""
    said = [""]

    def speak(worth_it: bool) -> None:
        if worth_it and scene.line != said[-1]:
            said[:] = [scene.line]
            console.print(scene.line, highlight=False, markup=False)

    yield speak


def duration(seconds: float) -> str:
    """A time span as a clock shows it."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def result_lines(scene: Scene) -> Iterator[str]:
    """What came of a conduct, in plain lines."""
    result = scene.result
    assert result is not None, "there is a result"
    how = "succeeded" if result.succeeded else "held" if result.held else "halted" if result.acquisition_halt else "failed"
    yield f"{how} after {duration(scene.elapsed)}: {result.command_name}, conduct {result.conduct_id}"
    if result.failure is not None:
        failure, of_a_step = result.failure, result.failure.source_kind != "lifecycle"
        yield f"  {reason_of(failure) if of_a_step else f'{failure.error_class}: {failure.message}'}"
    of = None if scene.view is None else scene.view.step_count
    yield f"  {result.completed_count} steps done" + ("" if of is None else f" of {of}")
    if result.iteration_count is not None:
        why = "" if result.termination_reason is None else f", {result.termination_reason.value}"
        yield f"  {result.iteration_count} iterations{why}"
    if scene.measurement is not None:
        yield f"  {scene.measurement.name} {scene.measurement.value:.6g} in iteration {scene.measurement.iteration_index}"
    for measured in result.measurements:
        yield f"  {measured.name} {json.dumps(measured.value)}{f' {measured.units}' if measured.units else ''}"
    for name, artifact in result.outputs.items():
        yield f"  {name}: {artifact.uri}"
    for address, value in result.substrate_writes.items():
        yield f"  {address} left at {json.dumps(value)}"
    for failure in result.closing_failures:
        yield f"  closing: {reason_of(failure)}"


class Stream:
    """The stream of a conduct over HTTP; a lost connection is taken up again behind the last frame."""

    def __init__(self, url: str, token: str | None, procedure_id: UUID) -> None:
        self._url = url
        self._path = f"/procedures/{procedure_id}/conduct/stream"
        self._last_id: str | None = None
        self._heard = False
        self._deadline = time.monotonic() + PATIENCE
        self._client = client_of(url, token, httpx.Timeout(10, read=SILENCE))

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()

    def frames(self) -> Iterator[tuple[FrameKind, str]]:
        """Every frame once, however often the connection is lost."""
        while True:
            try:
                with self._client.stream("GET", self._path, headers=self._resuming()) as answer:
                    if answer.status_code == 200:
                        yield from self._read(answer)
                    else:
                        self._refused(answer)
            except httpx.TransportError as error:
                if not self._heard or time.monotonic() > self._deadline:
                    refuse_unanswered(self._url, error)
            if time.monotonic() > self._deadline:
                refuse(f"The service at {self._url} ends the stream again and again; see its log.")
            time.sleep(RETRY_INTERVAL)

    def _resuming(self) -> dict[str, str]:
        return {} if self._last_id is None else {"Last-Event-ID": self._last_id}

    def _read(self, answer: httpx.Response) -> Iterator[tuple[FrameKind, str]]:
        fields: dict[str, str] = {}
        for line in answer.iter_lines():
            self._deadline = time.monotonic() + PATIENCE
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
            elif not line and "data" in fields:
                self._heard, self._last_id = True, fields.get("id", self._last_id)
                with suppress(ValueError):  # a newer service may tell of more
                    yield FrameKind(fields["event"]), fields["data"]
                fields = {}

    def _refused(self, answer: httpx.Response) -> None:
        """End where the service says no; one that is not ready is asked again."""
        answer.read()
        try:
            told = answer.json()
        except ValueError:
            told = {}
        detail = told.get("detail", answer.reason_phrase) if isinstance(told, dict) else answer.reason_phrase
        match answer.status_code:
            case 401:
                refuse_unauthenticated(detail)
            case 403:
                refuse(f"This principal may not watch conducts: {detail} Use the token of one who may.")
            case 404 if "code" in told:
                refuse(str(detail))
            case 500 | 502 | 503 | 504:
                self._heard = True
            case status:
                refuse(f"What answers at {self._url} is no Baton, or does not know this stream ({status}: {detail}).")
