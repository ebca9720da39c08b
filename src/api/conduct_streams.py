"""A conduct as server-sent events: each reader looks at the record for itself, so that none holds back another."""

import asyncio
import time
from collections.abc import AsyncGenerator
from uuid import UUID

from baton.api.authentication import expired
from baton.api.errors import RequestValidationError
from baton.api.http import Request, Response
from baton.api.parsing import from_query, uuid_from
from baton.api.streams import STILL_HERE, News, OpenStreams, Pace, frame, unless
from baton.application.conduct.conduct_reader import Watch, Watching
from baton.application.ports import Caller
from baton.application.service import Service
from baton.domain.operation.conduct.frames import Frame, FrameKind
from baton.domain.operation.conduct.views import ConductView, StreamProcedureConduct, may_be_conducted


class ConductStream:
    """`GET /procedures/{procedure_id}/conduct/stream`."""

    def __init__(
        self, watching: Watching, service: Service, news: News, streams: OpenStreams, pace: Pace | None = None
    ) -> None:
        self._watching = watching
        self._service = service
        self._news = news
        self._streams = streams
        self._pace = pace or Pace()

    async def __call__(self, request: Request, caller: Caller) -> Response:
        self._streams.refuse_more()
        procedure_id = uuid_from(request.path["procedure_id"], "path", "procedure_id")
        query = from_query(StreamProcedureConduct, request.query, {})
        mark = mark_in(request)
        view: ConductView = await self._service.ask(query, caller, target_id=procedure_id)
        watch = await self._resumed(procedure_id, *mark) if mark is not None else await self._watching.latest(procedure_id)
        if watch is not None and mark is not None and watch.cursor.ordinal >= watch.outline.end:
            watch = await self._watching.after(watch)
            if watch is None:
                return Response(204)
        return self._streams.respond(self._frames(request, caller, view, watch))

    async def _resumed(self, procedure_id: UUID, conduct_id: UUID, ordinal: int) -> Watch:
        watch = await self._watching.behind(procedure_id, conduct_id, ordinal)
        if watch is None:
            raise unknown_mark()
        return watch

    async def _frames(
        self, request: Request, caller: Caller, view: ConductView, watch: Watch | None
    ) -> AsyncGenerator[bytes, None]:
        over, reader = asyncio.create_task(request.over()), Reader(self._pace)
        try:
            if watch is None:
                yield sent(Frame(FrameKind.SNAPSHOT, 0, view), None)
            while not over.done() and not expired(caller) and await self._may_read(caller, reader):
                if watch is None:
                    if not may_be_conducted(view):
                        return
                    await unless(over, self._pause_unopened())
                    async with self._streams.reading:
                        view = await self._watching.view(view.procedure_id, caller)
                        watch = await self._watching.latest(view.procedure_id, whole=True)
                    if watch is None and not may_be_conducted(view):
                        yield sent(Frame(FrameKind.SNAPSHOT, 0, view), None)
                else:
                    async with self._streams.reading:
                        looked = await self._watching.look(watch, caller)
                    for told in looked:
                        reader.spoke()
                        yield sent(told, watch.outline.conduct_id)
                        if told.is_last:
                            return
                    await asyncio.wait({over}, timeout=reader.pause())
                if reader.is_silent():
                    yield STILL_HERE
        finally:
            over.cancel()

    async def _may_read(self, caller: Caller, reader: "Reader") -> bool:
        """Whether the reader still holds the permission; asked now and then, and not recorded as a verdict."""
        if not reader.is_to_be_judged():
            return True
        async with self._streams.reading:
            return StreamProcedureConduct.operation.command_name in await self._service.authorizer.permitted(caller)

    async def _pause_unopened(self) -> None:
        """Wait for news; where they come without end, no less than between two looks."""
        await self._news.wait(self._pace.unopened)
        await asyncio.sleep(self._pace.longest)


class Reader:
    """When a reader was last spoken to and last judged, and how long it waits for the next look."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._pause = pace.shortest
        self._spoke_at = self._judged_at = time.monotonic()

    def spoke(self) -> None:
        self._spoke_at, self._pause = time.monotonic(), self._pace.shortest

    def pause(self) -> float:
        """Seconds until the next look."""
        pause, self._pause = self._pause, min(self._pause * 1.5, self._pace.longest)
        return pause

    def is_silent(self) -> bool:
        """Whether a comment is due; it then counts as made."""
        due = time.monotonic() - self._spoke_at >= self._pace.comment
        if due:
            self._spoke_at = time.monotonic()
        return due

    def is_to_be_judged(self) -> bool:
        """Whether it is time to ask again what the reader may do."""
        due = time.monotonic() - self._judged_at >= self._pace.sight
        if due:
            self._judged_at = time.monotonic()
        return due


def sent(told: Frame, conduct_id: UUID | None) -> bytes:
    """A frame as it is sent; before there is a conduct it has no id."""
    data = told.data.model_dump_json().encode()
    if conduct_id is None:
        return b"event: %b\ndata: %b\n\n" % (told.kind.value.encode(), data)
    return frame(f"{conduct_id}:{told.ordinal}", told.kind.value, data)


def mark_in(request: Request) -> tuple[UUID, int] | None:
    """The conduct and the ordinal that a reader who comes back had got to."""
    text = request.header(b"last-event-id")
    if text is None:
        return None
    conduct_id, _, ordinal = text.partition(":")
    if not (ordinal.isascii() and ordinal.isdigit() and len(ordinal) <= 10):
        raise unknown_mark()
    try:
        return UUID(conduct_id), int(ordinal)
    except ValueError:
        raise unknown_mark() from None


def unknown_mark() -> RequestValidationError:
    """The refusal of a mark that no stream of this procedure handed out."""
    return RequestValidationError.at(
        "header", "Last-Event-ID", msg="Give the id of a frame of this procedure's stream", type="value_error"
    )
