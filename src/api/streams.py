"""Live streams as server-sent events: the feed of committed events."""

import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, Protocol

from api.authentication import expired
from api.errors import RequestValidationError
from api.http import Request, Response
from api.parsing import from_query
from api.rest import plain_json
from application.commands import refuse_denied
from application.feed import EventFilter, Feed, StreamEvents
from application.ports import Authorizer, Bookmark, Caller
from application.queries import envelope

COMMENT_INTERVAL = 15.0
SIGHT_INTERVAL = 30.0
STILL_HERE = b": still here\n\n"


class News(Protocol):
    """Tells when something was appended."""

    async def wait(self, at_most: float) -> None:
        """Returns when there is news, or after so many seconds."""
        ...


class EventStream:
    """`GET /events/stream`: a slow or dead reader holds back nobody, because each reads the log for itself."""

    def __init__(self, feed: Feed, authorizer: Authorizer, news: News) -> None:
        self._feed = feed
        self._authorizer = authorizer
        self._news = news

    async def __call__(self, request: Request, caller: Caller) -> Response:
        operation = StreamEvents.operation
        refuse_denied(operation, await self._authorizer.authorize(caller, operation.command_name))
        query = from_query(StreamEvents, request.query, {})
        after = last_event_id(request)
        start = await self._feed.start(query.after if after is None else after)
        return Response(200, content_type=b"text/event-stream", stream=self._frames(request, caller, query, start))

    async def _frames(
        self, request: Request, caller: Caller, query: EventFilter, bookmark: Bookmark
    ) -> AsyncGenerator[bytes, None]:
        over = asyncio.create_task(request.over())
        try:
            sight, seen_at, spoke_at = await self._feed.sight(caller), time.monotonic(), time.monotonic()
            yield b": stream of committed events\n\n"
            while not over.done() and not expired(caller):
                if time.monotonic() - seen_at > SIGHT_INTERVAL:
                    sight, seen_at = await self._feed.sight(caller), time.monotonic()
                rows = await self._feed.behind(bookmark)
                names = await self._feed.names([row for row in rows if sight.shows(row, query)], caller)
                for row in rows:
                    bookmark = Bookmark(row.transaction_id, row.position)
                    if sight.shows(row, query):
                        spoke_at = time.monotonic()
                        yield frame(row.position, row.event_type, plain_json(envelope(row, sight.texts, names)))
                if not rows:
                    await unless(over, self._news.wait(1.0))
                if time.monotonic() - spoke_at > COMMENT_INTERVAL:
                    spoke_at = time.monotonic()
                    yield STILL_HERE
        finally:
            over.cancel()


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
