"""Server-sent events: limits of live streams, the stream of committed events, and that of a conduct. Each reader reads the
log or the record itself, so a slow one delays no other."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol
from uuid import UUID

from baton.api.authentication import is_expired
from baton.api.errors import RequestValidationError, TooManyStreamsError
from baton.api.http import Request, Response
from baton.api.parsing import from_query, uuid_from
from baton.api.rest import plain_json
from baton.application.caller import Caller
from baton.application.commands import refuse_denied
from baton.application.conduct.conduct_reader import ConductFeed, ConductWatch
from baton.application.ports import Authorizer, Bookmark, EventRow
from baton.application.queries import Feed, FeedAccess, feed_envelope
from baton.application.service import Service
from baton.domain.access.actor import Names
from baton.domain.conduct.frames import FrameKind, StreamFrame
from baton.domain.conduct.views import ConductView, StreamProcedureConduct, may_be_conducted
from baton.domain.shared.refusals import UnauthorizedError
from baton.domain.views.event_log import EventFilter, StreamEvents

MAX_ROWS = 200  # events that one read of the log returns for a reader
MAX_BYTES = 128 * 1024  # about how much is buffered for a reader; rows beyond that are read again
POOL_SHARE = 4  # all streams together use one database connection in four
RESERVE_SHARE = 4  # one stream in four is kept for who holds a grant


@dataclass(frozen=True)
class StreamIntervals:
    """The intervals of a stream, in seconds."""

    shortest: float = 0.1
    longest: float = 0.25  # between two reads of a conduct; grows from shortest to longest while nothing happens
    unopened: float = 2.0  # between two checks whether a conduct was opened, unless something was appended
    comment: float = 15.0
    sight: float = 30.0  # between two checks of the reader's permission


class OpenStreams:
    """The live streams of this process: bounded in number, for each principal too, and in concurrent use of the database."""

    def __init__(self, limit: int, pool_size: int, share: int = 20) -> None:
        self.limit, self.share = limit, share
        self._open: Counter[UUID] = Counter()  # by principal
        # Held while a stream reads the database, never while it waits for its client.
        self.reading = asyncio.Semaphore(max(1, pool_size // POOL_SHARE))

    @property
    def open_count(self) -> int:
        """How many streams are open."""
        return self._open.total()

    def refuse_more(self, caller: Caller, *, granted: bool = True) -> None:
        """Raise where the caller or this process has as many streams as it may; some are kept for who holds a grant."""
        if self._open[caller.principal_id] >= self.share:
            remedy = "close some, or have MAX_STREAMS_PER_PRINCIPAL raised"
            raise TooManyStreamsError(f"You have {self.share} live streams open already; {remedy}.", reason="own_share")
        reserved = 0 if granted else self.limit // RESERVE_SHARE
        if self.open_count >= self.limit - reserved:
            remedy = "try again when one has ended, or have MAX_OPEN_STREAMS raised"
            detail, reason = f"This process serves {self.limit} live streams already; {remedy}.", None
            if self.open_count < self.limit:
                detail = "The live streams that are left are kept for who holds a permission; ask an administrator for one."
                reason = "reserved"
            raise TooManyStreamsError(detail, reason=reason)

    def respond(self, stream: AsyncGenerator[bytes, None], caller: Caller, *, granted: bool = True) -> Response:
        """Return a streaming response, which counts as open until it has ended."""
        self.refuse_more(caller, granted=granted)
        self._open[caller.principal_id] += 1
        release = partial(self._release, caller.principal_id)
        return Response(200, content_type=b"text/event-stream", stream=stream, release=release)

    @contextmanager
    def count_open(self, caller: Caller, *, granted: bool) -> Iterator[None]:
        """Count a stream as open that is answered in another way."""
        self.refuse_more(caller, granted=granted)
        self._open[caller.principal_id] += 1
        try:
            yield
        finally:
            self._release(caller.principal_id)

    def _release(self, principal_id: UUID) -> None:
        self._open[principal_id] -= 1
        if not self._open[principal_id]:
            del self._open[principal_id]


class AppendListener(Protocol):
    """Waits for appended events."""

    async def wait(self, at_most: float) -> None:
        """Return when something was appended, or after this many seconds."""


class ReaderTimer:
    """Says when a reader's stream is to be read, commented and checked again."""

    def __init__(self, intervals: StreamIntervals) -> None:
        self._intervals = intervals
        self._pause = intervals.shortest
        self._sent_at = self._checked_at = time.monotonic()

    def note_sent(self) -> None:
        """Note that a frame was sent; the next read comes soon."""
        self._sent_at = time.monotonic()
        self._pause = self._intervals.shortest

    def pause(self) -> float:
        """Return the seconds until the next read, and lengthen them for the one after."""
        pause, self._pause = self._pause, min(self._pause * 1.5, self._intervals.longest)
        return pause

    def due_comment(self) -> bytes:
        """Return the comment that keeps an idle connection open, where it is due; it then counts as sent."""
        if time.monotonic() - self._sent_at < self._intervals.comment:
            return b""
        self._sent_at = time.monotonic()
        return b": still here\n\n"

    def is_check_due(self) -> bool:
        """Return whether the permission is to be checked; it then counts as checked."""
        if due := time.monotonic() - self._checked_at >= self._intervals.sight:
            self._checked_at = time.monotonic()
        return due


@dataclass(frozen=True)
class EventStream:
    """`GET /events/stream`."""

    feed: Feed
    authorizer: Authorizer
    listener: AppendListener
    streams: OpenStreams
    intervals: StreamIntervals = field(default_factory=StreamIntervals)

    async def __call__(self, request: Request, caller: Caller) -> Response:
        self.streams.refuse_more(caller)
        operation = StreamEvents.operation
        refuse_denied(operation.command_name, await self.authorizer.authorize(caller, operation.command_name))
        query = from_query(StreamEvents, request.query, {})
        after = last_event_id(request)
        async with self.streams.reading:
            start = await self.feed.start(query.after if after is None else after)
            access = await self.feed.access(caller)
        if not access.stream_types:
            detail = "This caller may read no aggregate, so the stream would stay empty; ask for a permission to get one."
            raise UnauthorizedError(detail, reason="nothing_to_see")
        return self.streams.respond(self._frames(request, caller, query, start, access), caller)

    async def _frames(
        self, request: Request, caller: Caller, query: EventFilter, bookmark: Bookmark, access: FeedAccess
    ) -> AsyncGenerator[bytes, None]:
        over, reader = asyncio.create_task(request.wait_for_end()), ReaderTimer(self.intervals)
        try:
            yield b": stream of committed events\n\n"
            while not over.done() and not is_expired(caller):
                async with self.streams.reading:
                    if reader.is_check_due():
                        access = await self.feed.access(caller)
                        if not access.streams or not access.stream_types:
                            return
                    rows = await self.feed.behind(bookmark, MAX_ROWS)
                    names = await self.feed.names([row for row in rows if access.shows(row, query)], caller)
                if rows:
                    bookmark, frames = visible_frames(rows, access, query, names)
                    del rows  # free them before waiting for the client
                    if frames:
                        reader.note_sent()
                        yield frames
                else:
                    await wait_unless_over(over, self.listener.wait(1.0))
                if comment := reader.due_comment():
                    yield comment
        finally:
            over.cancel()


def visible_frames(rows: Sequence[EventRow], access: FeedAccess, query: EventFilter, names: Names) -> tuple[Bookmark, bytes]:
    """Return the bookmark after the rows that were used, and the frames of those that the reader may see."""
    frames = bytearray()
    for row in rows:
        if access.shows(row, query):
            frames += sse_frame(row.position, row.event_type, plain_json(feed_envelope(row, access.texts, names)))
        if len(frames) >= MAX_BYTES:
            break
    return Bookmark(row.transaction_id, row.position), bytes(frames)


async def wait_unless_over(over: "asyncio.Task[None]", waiting: Coroutine[object, object, None]) -> None:
    """Wait for something, or until the stream must end."""
    task = asyncio.create_task(waiting)
    try:
        done, _ = await asyncio.wait({over, task}, return_when=asyncio.FIRST_COMPLETED)
        for ended in done:
            ended.result()
    finally:
        task.cancel()


def sse_frame(id: object, event: str, data: bytes) -> bytes:
    """Return one server-sent event."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (str(id).encode(), event.encode(), data)


def last_event_id(request: Request) -> int | None:
    """Return the position after which a reconnecting reader continues."""
    text = request.header(b"last-event-id")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and int(text) < 2**63):
        raise RequestValidationError.at("header", "Last-Event-ID", msg="Give the id of an event frame", type="int_parsing")
    return int(text)


@dataclass(frozen=True)
class ConductStream:
    """`GET /procedures/{procedure_id}/conduct/stream`."""

    feed: ConductFeed
    service: Service
    listener: AppendListener
    streams: OpenStreams
    intervals: StreamIntervals = field(default_factory=StreamIntervals)

    async def __call__(self, request: Request, caller: Caller) -> Response:
        self.streams.refuse_more(caller)
        procedure_id = uuid_from(request.path["procedure_id"], "path", "procedure_id")
        query = from_query(StreamProcedureConduct, request.query, {})
        mark = resume_mark(request)
        view = await self.service.ask(query, caller, target_id=procedure_id)
        if mark is None:
            watch = await self.feed.latest(procedure_id)
        elif (watch := await self.feed.behind(procedure_id, *mark)) is None:
            raise unknown_mark_error()
        elif watch.cursor.ordinal >= watch.outline.end and (watch := await self.feed.after(watch)) is None:
            return Response(204)
        return self.streams.respond(self._frames(request, caller, view, watch), caller)

    async def _frames(
        self, request: Request, caller: Caller, view: ConductView, watch: ConductWatch | None
    ) -> AsyncGenerator[bytes, None]:
        over, reader = asyncio.create_task(request.wait_for_end()), ReaderTimer(self.intervals)
        try:
            if watch is None:
                yield frame_bytes(StreamFrame(FrameKind.SNAPSHOT, 0, view), None)
            while not over.done() and not is_expired(caller) and await self._may_read(caller, reader):
                if watch is None:
                    if not may_be_conducted(view):
                        return
                    await wait_unless_over(over, self._pause_unopened())
                    async with self.streams.reading:
                        view = await self.feed.view(view.procedure_id, caller)
                        watch = await self.feed.latest(view.procedure_id, whole=True)
                    if watch is None and not may_be_conducted(view):
                        yield frame_bytes(StreamFrame(FrameKind.SNAPSHOT, 0, view), None)
                else:
                    async with self.streams.reading:
                        frames = await self.feed.poll(watch, caller)
                    for frame in frames:
                        reader.note_sent()
                        yield frame_bytes(frame, watch.outline.conduct_id)
                        if frame.is_last:
                            return
                    await asyncio.wait({over}, timeout=reader.pause())
                if comment := reader.due_comment():
                    yield comment
        finally:
            over.cancel()

    async def _may_read(self, caller: Caller, reader: ReaderTimer) -> bool:
        """Return whether the caller still has the permission; checked at intervals, and not recorded as a verdict."""
        if not reader.is_check_due():
            return True
        async with self.streams.reading:
            return StreamProcedureConduct.operation.command_name in await self.service.authorizer.permitted_commands(caller)

    async def _pause_unopened(self) -> None:
        """Wait until something was appended, at least the longest interval between two reads."""
        await self.listener.wait(self.intervals.unopened)
        await asyncio.sleep(self.intervals.longest)


def frame_bytes(frame: StreamFrame, conduct_id: UUID | None) -> bytes:
    """Return the bytes of a frame; before there is a conduct it has no id."""
    data = frame.data.model_dump_json().encode()
    if conduct_id is None:
        return b"event: %b\ndata: %b\n\n" % (frame.kind.value.encode(), data)
    return sse_frame(f"{conduct_id}:{frame.ordinal}", frame.kind.value, data)


def resume_mark(request: Request) -> tuple[UUID, int] | None:
    """Return the conduct and ordinal after which a reconnecting reader continues."""
    text = request.header(b"last-event-id")
    if text is None:
        return None
    conduct_id, _, ordinal = text.partition(":")
    if not (ordinal.isascii() and ordinal.isdigit() and len(ordinal) <= 10):
        raise unknown_mark_error()
    try:
        return UUID(conduct_id), int(ordinal)
    except ValueError:
        raise unknown_mark_error() from None


def unknown_mark_error() -> RequestValidationError:
    """Return the refusal of a mark that no stream of this procedure handed out."""
    return RequestValidationError.at("header", "Last-Event-ID", msg="Give the id of a frame of this procedure's stream")
