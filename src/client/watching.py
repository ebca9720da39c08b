"""Watching work to its end: every frame of a conduct's stream once, however often the connection is lost, and those of the
phases of a run one after the other. Like exchanges, generators that do no I/O, so that both kinds of client share them."""

from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, NotRequired, TypeAlias, TypedDict, TypeVar, cast
from uuid import UUID

from baton.client.event_stream import FrameReader, ServerEvent
from baton.client.exchanges import CallScript, ClientSession, NoAnswer, Wait
from baton.client.index import OPERATIONS
from baton.client.refusals import ClientError, ServiceUnreachableError, refusal_of
from baton.client.requests import HttpRequest, HttpResponse, parse, request_of
from baton.client.watched_work import ConductFrame, RunFrame, WatchedConduct, WatchedRunConduct

if TYPE_CHECKING:
    from rich.console import Console

    from baton.client.operations import ConductResult, EndFrame, EventView, RunConductResult, RunConductView

RECONNECT_SECONDS = 60.0  # how long a lost service may be away
PAUSE_SECONDS = 0.5  # before a lost connection is opened again
SHORTEST_LOOK_SECONDS, LONGEST_LOOK_SECONDS = 0.1, 1.0  # between two looks at a run that is between two phases
FRAME_FORMS = {
    "snapshot": "ConductView",
    "step": "StepFrame",
    "iteration": "IterationFrame",
    "point": "PointFrame",
    **dict.fromkeys(("held", "halted", "ended"), "EndFrame"),
}
LIVE = ("Running", "Held")  # the states of runs and procedures that may still be conducted
F = TypeVar("F")
R = TypeVar("R")
W = TypeVar("W", WatchedConduct, WatchedRunConduct)


@dataclass(frozen=True)
class OpenStream:
    """A stream is to be opened; the reply is its response, whose body is read only where it is no stream."""

    request: HttpRequest


@dataclass(frozen=True)
class NextLine:
    """The next line of the open stream is wanted; the reply is `NoAnswer` where there is none."""


Watching = Generator[HttpRequest | Wait | OpenStream | NextLine | F, Any, UUID | None]
StreamReading = Generator[HttpRequest | Wait | OpenStream | NextLine | F, Any, F | None]


class DisplayOptions(TypedDict):
    """How watched work is shown: on which console, and whether in lines where that is no terminal."""

    console: "Console | None"
    lines: bool
    plot: NotRequired[str | bool]
    table: NotRequired[bool]


class NothingToWatchError(ClientError):
    """What is to be watched has come to its end and was never conducted."""


def stream_frames(
    session: ClientSession,
    request: HttpRequest,
    read: Callable[[ServerEvent], F | None],
    is_last: Callable[[F], bool],
    from_id: str | None = None,
) -> "StreamReading[F]":
    """Yield every frame of a stream once behind an id, however often the connection is lost; return the last one."""
    reader, heard, deadline = FrameReader(from_id), False, monotonic() + RECONNECT_SECONDS
    while True:
        headers = {} if reader.last_id is None else {"Last-Event-ID": reader.last_id}
        opened: HttpResponse | NoAnswer = yield OpenStream(replace(request, headers=headers))
        match opened:
            case NoAnswer(reason):
                if not heard or monotonic() > deadline:
                    raise ServiceUnreachableError(f"No service answers at {session.url} ({reason}).")
            case HttpResponse(status=200):
                while isinstance(line := (yield NextLine()), str):
                    heard, deadline = True, monotonic() + RECONNECT_SECONDS
                    if (event := reader.take(line)) is not None and (frame := read(event)) is not None:
                        yield frame
                        if is_last(frame):
                            return frame
                reader.drop_partial()
            case HttpResponse(status=204):
                return None
            case HttpResponse(status=500 | 502 | 503 | 504):
                heard = True
                if monotonic() > deadline:
                    raise refusal_of(opened.status, opened.content)
            case _:
                raise refusal_of(opened.status, opened.content)
        yield Wait(PAUSE_SECONDS)


def conduct_frames(session: ClientSession, procedure_id: UUID, from_id: str | None = None) -> "Watching[ConductFrame]":
    """Yield the frames of the latest conduct of a procedure, behind an id or from its present state on, to its end;
    return its id."""
    request = request_of(OPERATIONS["stream_procedure_conduct"], {"procedure_id": procedure_id})
    frames: StreamReading[ConductFrame] = stream_frames(session, request, typed_frame, ends_conduct, from_id)
    last = yield from frames
    return None if last is None else cast("EndFrame", last).conduct_id


def typed_frame(event: ServerEvent) -> "ConductFrame | None":
    """Return the frame of a stream's event; None for a kind that a newer service has."""
    form = FRAME_FORMS.get(event.event)
    return None if form is None else cast("ConductFrame", parse(form, event.data.encode()))


def ends_conduct(frame: Any) -> bool:
    """Return whether nothing comes behind a frame; refuse to wait for a conduct of a procedure that cannot get one."""
    form = type(frame).__name__
    if form == "ConductView" and frame.conduct_id is None and frame.status not in ("Defined", *LIVE):
        raise NothingToWatchError("The procedure has come to its end and was never conducted; there is nothing to watch.")
    return form == "EndFrame"


def event_frames(session: ClientSession, filters: Mapping[str, Any]) -> "Watching[EventView]":
    """Yield every committed event behind a position, or from now on, as it happens, without end."""
    request = request_of(OPERATIONS["stream_events"], filters)
    yield from stream_frames(session, request, typed_event, never_ends)
    return None


def typed_event(event: ServerEvent) -> "EventView | None":
    """Return the committed event that a frame tells of."""
    return cast("EventView", parse("EventView", event.data.encode()))


def never_ends(frame: "EventView") -> bool:
    """Return that more comes behind any frame."""
    return False


def run_frames(session: ClientSession, run_id: UUID, *, whole: bool = False) -> "Watching[RunFrame]":
    """Yield the latest conduct of a run whenever it comes to another phase, and all frames of its phases in between; of
    phases that were over before, none. The one under way is shown from its present state on, or the whole of it."""
    shown, look = None, SHORTEST_LOOK_SECONDS
    passed: set[UUID | None] = {None}
    while True:
        view: RunConductView = yield from session.call(OPERATIONS["get_run_conduct"], {"run_id": run_id})
        if view.conduct_id is None:
            yield from refuse_ended_run(session, run_id)
        begun = {one.conduct_id for one in view.phases if one.procedure_id == view.current_procedure_id}
        if shown is None:
            passed |= {one.conduct_id for one in view.phases} - begun
        else:
            begun = set()
        if shown != (now := (view.conduct_id, view.current_procedure_id, view.waiting, view.result)):
            shown = now
            yield view
        if view.result is not None:
            return None
        ahead = next((one for one in view.phases if one.conduct_id not in passed), None)
        if ahead is None:
            yield Wait(look)
            look = min(look * 1.5, LONGEST_LOOK_SECONDS)
        else:
            from_id = None if ahead.conduct_id in begun and not whole else f"{ahead.conduct_id}:0"
            ended = yield from conduct_frames(session, ahead.procedure_id, from_id)
            passed |= {ahead.conduct_id, ended}
            look = SHORTEST_LOOK_SECONDS


def refuse_ended_run(session: ClientSession, run_id: UUID) -> CallScript[None]:
    """Refuse to wait for the conduct of a run that has ended."""
    view = yield from session.call(OPERATIONS["get_run"], {"run_id": run_id})
    if view.status not in LIVE:
        raise NothingToWatchError(f"The run is {view.status} and was never conducted; there is nothing to watch.")


class Watch(Generic[F, R, W]):
    """Work that is watched: iterated over, it yields typed frames and draws a bar; `result` follows it to its end."""

    def __init__(self, client: Any, frames: "Watching[F]", work: W, display: DisplayOptions) -> None:
        self.client = client
        self.work: W = work
        self._frames: Watching[F] = frames
        self._display = display

    def __iter__(self) -> Iterator[F]:
        from baton.client.progress_display import show_work

        with show_work(self.work, **self._display) as update:
            for frame in self.client.follow(self._frames):
                update(self.work.apply(frame))
                yield frame

    def result(self) -> R:
        """Follow the work to its end and return its result."""
        for _ in self:
            pass
        return cast("R", self.work.result)

    def _ipython_display_(self) -> None:
        """Follow the work where a notebook shows it, and print its result."""
        self.result()
        print(*self.work.result_lines(), sep="\n")


class AsyncWatch(Generic[F, R, W]):
    """Work that is watched by an asynchronous program: `async for` yields typed frames and draws a bar."""

    def __init__(self, client: Any, frames: "Watching[F]", work: W, display: DisplayOptions) -> None:
        self.client = client
        self.work: W = work
        self._frames: Watching[F] = frames
        self._display = display

    async def __aiter__(self) -> AsyncIterator[F]:
        from baton.client.progress_display import show_work

        with show_work(self.work, **self._display) as update:
            async for frame in self.client.follow(self._frames):
                update(self.work.apply(frame))
                yield frame

    async def result(self) -> R:
        """Follow the work to its end and return its result."""
        async for _ in self:
            pass
        return cast("R", self.work.result)


ConductWatch: TypeAlias = "Watch[ConductFrame, ConductResult, WatchedConduct]"
RunWatch: TypeAlias = "Watch[RunFrame, RunConductResult, WatchedRunConduct]"
AsyncConductWatch: TypeAlias = "AsyncWatch[ConductFrame, ConductResult, WatchedConduct]"
AsyncRunWatch: TypeAlias = "AsyncWatch[RunFrame, RunConductResult, WatchedRunConduct]"
