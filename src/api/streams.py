"""Server-sent events: limits of live streams, and the stream of committed events."""

import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from baton.api.authentication import is_expired
from baton.api.errors import RequestValidationError, TooManyStreamsError
from baton.api.http import Request, Response
from baton.api.parsing import from_query
from baton.api.rest import plain_json
from baton.application.commands import refuse_denied
from baton.application.feed import Feed, FeedAccess
from baton.application.ports import Authorizer, Bookmark, Caller, EventRow
from baton.application.queries import event_envelope
from baton.domain.access.edge_queries import EventFilter, StreamEvents
from baton.domain.access.principals import Names
from baton.domain.shared.refusals import UnauthorizedError

KEEP_ALIVE = b": still here\n\n"
MAX_ROWS = 200  # events that one read of the log returns for a reader
MAX_BYTES = 128 * 1024  # about how much is buffered for a reader; rows beyond that are read again
POOL_SHARE = 4  # all streams together use one database connection in four


@dataclass(frozen=True)
class StreamIntervals:
    """The intervals of a stream, in seconds."""

    shortest: float = 0.1
    longest: float = 0.25  # between two reads of a conduct; grows from shortest to longest while nothing happens
    unopened: float = 2.0  # between two checks whether a conduct was opened, unless something was appended
    comment: float = 15.0
    sight: float = 30.0  # between two checks of the reader's permission


class OpenStreams:
    """The live streams of this process: bounded in number and in concurrent use of the database."""

    def __init__(self, limit: int, pool_size: int) -> None:
        self._limit = limit
        self._open = 0
        # Held while a stream reads the database, never while it waits for its client.
        self.reading = asyncio.Semaphore(max(1, pool_size // POOL_SHARE))

    def refuse_more(self) -> None:
        """Raise where the limit of open streams is reached."""
        if self._open >= self._limit:
            remedy = "try again when one has ended, or have MAX_OPEN_STREAMS raised"
            raise TooManyStreamsError(f"This process serves {self._limit} live streams already; {remedy}.")

    def respond(self, stream: AsyncGenerator[bytes, None]) -> Response:
        """Return a streaming response, which counts as open until it has ended."""
        self.refuse_more()
        self._open += 1
        return Response(200, content_type=b"text/event-stream", stream=stream, release=self._release)

    def _release(self) -> None:
        self._open -= 1


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
        self._sent_at, self._pause = time.monotonic(), self._intervals.shortest

    def pause(self) -> float:
        """Return the seconds until the next read, and lengthen them for the one after."""
        pause, self._pause = self._pause, min(self._pause * 1.5, self._intervals.longest)
        return pause

    def is_comment_due(self) -> bool:
        """Return whether a comment is due; it then counts as sent."""
        if due := time.monotonic() - self._sent_at >= self._intervals.comment:
            self._sent_at = time.monotonic()
        return due

    def is_check_due(self) -> bool:
        """Return whether the permission is to be checked; it then counts as checked."""
        if due := time.monotonic() - self._checked_at >= self._intervals.sight:
            self._checked_at = time.monotonic()
        return due


@dataclass(frozen=True)
class EventStream:
    """`GET /events/stream`: each reader reads the log itself, so a slow one delays no other."""

    feed: Feed
    authorizer: Authorizer
    listener: AppendListener
    streams: OpenStreams
    intervals: StreamIntervals = field(default_factory=StreamIntervals)

    async def __call__(self, request: Request, caller: Caller) -> Response:
        self.streams.refuse_more()
        operation = StreamEvents.operation
        refuse_denied(operation, await self.authorizer.authorize(caller, operation.command_name))
        query = from_query(StreamEvents, request.query, {})
        after = last_event_id(request)
        async with self.streams.reading:
            start = await self.feed.start(query.after if after is None else after)
            access = await self.feed.access(caller)
        if not access.stream_types:
            detail = "This caller may read no aggregate, so the stream would stay empty; ask for a permission to get one."
            raise UnauthorizedError(detail, reason="nothing_to_see")
        return self.streams.respond(self._frames(request, caller, query, start, access))

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
                if reader.is_comment_due():
                    yield KEEP_ALIVE
        finally:
            over.cancel()


def visible_frames(rows: Sequence[EventRow], access: FeedAccess, query: EventFilter, names: Names) -> tuple[Bookmark, bytes]:
    """Return the bookmark after the rows that were used, and the frames of those that the reader may see."""
    frames = bytearray()
    for row in rows:
        if access.shows(row, query):
            frames += sse_frame(row.position, row.event_type, plain_json(event_envelope(row, access.texts, names)))
        if len(frames) >= MAX_BYTES:
            break
    return Bookmark(row.transaction_id, row.position), bytes(frames)


async def wait_unless_over(over: "asyncio.Task[None]", waiting: Coroutine[Any, Any, None]) -> None:
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
    """Return the position after which a reconnecting reader goes on."""
    text = request.header(b"last-event-id")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and int(text) < 2**63):
        raise RequestValidationError.at("header", "Last-Event-ID", msg="Give the id of an event frame", type="int_parsing")
    return int(text)
