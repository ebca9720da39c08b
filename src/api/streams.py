"""Live streams as server-sent events: how many there may be, what they may use, and the feed of committed events."""

import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from baton.api.authentication import expired
from baton.api.errors import RequestValidationError, TooManyStreamsError
from baton.api.http import Request, Response
from baton.api.parsing import from_query
from baton.api.rest import plain_json
from baton.application.commands import refuse_denied
from baton.application.feed import EventFilter, Feed, Sight, StreamEvents
from baton.application.ports import Authorizer, Bookmark, Caller, EventRow
from baton.application.queries import envelope
from baton.domain.access.principals import Names
from baton.domain.shared.refusals import UnauthorizedError

STILL_HERE = b": still here\n\n"
MOST_ROWS = 200
"""Events that one look at the log takes for a reader."""
MOST_BYTES = 128 * 1024
"""About how much is made ready for a reader before it has taken the last of it; of more, the rest is read again."""
POOL_SHARE = 4
"""All streams together use one connection in so many."""


@dataclass(frozen=True)
class Pace:
    """How often a reader looks and speaks, in seconds."""

    shortest: float = 0.1
    longest: float = 0.25
    """Between two looks at a conduct; the longer nothing happens, the more."""
    unopened: float = 2.0
    """Between two looks whether there is a conduct by now, unless something was appended."""
    comment: float = 15.0
    sight: float = 30.0
    """Between two looks whether the reader may still read."""


class OpenStreams:
    """The live streams of this process: so many at a time, and few of them at the database at once."""

    def __init__(self, limit: int, pool_size: int) -> None:
        self._limit = limit
        self._open = 0
        self.reading = asyncio.Semaphore(max(1, pool_size // POOL_SHARE))
        """Held while a stream reads from the database, never while it waits for its client."""

    def refuse_more(self) -> None:
        """Refuse another stream where there are as many as may be."""
        if self._open >= self._limit:
            raise TooManyStreamsError(
                f"This process serves {self._limit} live streams already; try again when one has ended, or have "
                "MAX_OPEN_STREAMS raised."
            )

    def respond(self, stream: AsyncGenerator[bytes, None]) -> Response:
        """Answer with a stream, which counts until it has ended."""
        self.refuse_more()
        self._open += 1
        return Response(200, content_type=b"text/event-stream", stream=stream, release=self._release)

    def _release(self) -> None:
        self._open -= 1


class News(Protocol):
    """Tells when something was appended."""

    async def wait(self, at_most: float) -> None:
        """Returns when there is news, or after so many seconds."""
        ...


class EventStream:
    """`GET /events/stream`: a slow or dead reader holds back nobody, because each reads the log for itself."""

    def __init__(
        self, feed: Feed, authorizer: Authorizer, news: News, streams: OpenStreams, pace: Pace | None = None
    ) -> None:
        self._feed = feed
        self._authorizer = authorizer
        self._news = news
        self._streams = streams
        self._pace = pace or Pace()

    async def __call__(self, request: Request, caller: Caller) -> Response:
        self._streams.refuse_more()
        operation = StreamEvents.operation
        refuse_denied(operation, await self._authorizer.authorize(caller, operation.command_name))
        query = from_query(StreamEvents, request.query, {})
        after = last_event_id(request)
        async with self._streams.reading:
            start = await self._feed.start(query.after if after is None else after)
            sight = await self._feed.sight(caller)
        if not sight.stream_types:
            raise UnauthorizedError(
                "This caller may read no aggregate, so the stream would stay empty; ask for a permission to get one.",
                reason="nothing_to_see",
            )
        return self._streams.respond(self._frames(request, caller, query, start, sight))

    async def _frames(
        self, request: Request, caller: Caller, query: EventFilter, bookmark: Bookmark, sight: Sight
    ) -> AsyncGenerator[bytes, None]:
        over = asyncio.create_task(request.over())
        try:
            seen_at = spoke_at = time.monotonic()
            yield b": stream of committed events\n\n"
            while not over.done() and not expired(caller):
                async with self._streams.reading:
                    if time.monotonic() - seen_at >= self._pace.sight:
                        sight, seen_at = await self._feed.sight(caller), time.monotonic()
                        if not sight.streams or not sight.stream_types:
                            return
                    rows = await self._feed.behind(bookmark, MOST_ROWS)
                    names = await self._feed.names([row for row in rows if sight.shows(row, query)], caller)
                if rows:
                    bookmark, frames = shown_frames(rows, sight, query, names)
                    del rows  # not kept while the client takes its time
                    if frames:
                        spoke_at = time.monotonic()
                        yield frames
                else:
                    await unless(over, self._news.wait(1.0))
                if time.monotonic() - spoke_at > self._pace.comment:
                    spoke_at = time.monotonic()
                    yield STILL_HERE
        finally:
            over.cancel()


def shown_frames(rows: Sequence[EventRow], sight: Sight, query: EventFilter, names: Names) -> tuple[Bookmark, bytes]:
    """The frames of the rows that a reader may see, no more than it should hold at once, and the place they lead to."""
    frames = bytearray()
    for row in rows:
        if sight.shows(row, query):
            frames += frame(row.position, row.event_type, plain_json(envelope(row, sight.texts, names)))
        if len(frames) >= MOST_BYTES:
            break
    return Bookmark(row.transaction_id, row.position), bytes(frames)


async def unless(over: "asyncio.Task[None]", waiting: Coroutine[Any, Any, None]) -> None:
    """Wait for something, unless a stream is to end meanwhile."""
    task = asyncio.create_task(waiting)
    try:
        done, _ = await asyncio.wait({over, task}, return_when=asyncio.FIRST_COMPLETED)
        for ended in done:
            ended.result()
    finally:
        task.cancel()


def frame(id: object, event: str, data: bytes) -> bytes:
    """One server-sent event."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (str(id).encode(), event.encode(), data)


def last_event_id(request: Request) -> int | None:
    """Where a reader that comes back had got to."""
    text = request.header(b"last-event-id")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and int(text) < 2**63):
        raise RequestValidationError.at("header", "Last-Event-ID", msg="Give the id of an event frame", type="int_parsing")
    return int(text)
