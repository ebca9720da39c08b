"""The stream of a conduct as server-sent events; each reader reads the record itself, so none delays another."""

import asyncio
import time
from collections.abc import AsyncGenerator
from uuid import UUID

from baton.api.authentication import is_expired
from baton.api.errors import RequestValidationError
from baton.api.http import Request, Response
from baton.api.parsing import from_query, uuid_from
from baton.api.streams import KEEP_ALIVE, AppendListener, OpenStreams, StreamIntervals, sse_frame, wait_unless_over
from baton.application.conduct.conduct_reader import ConductFeed, ConductWatch
from baton.application.ports import Caller
from baton.application.service import Service
from baton.domain.operation.conduct.frames import Frame, FrameKind
from baton.domain.operation.conduct.views import ConductView, StreamProcedureConduct, may_be_conducted


class ConductStream:
    """`GET /procedures/{procedure_id}/conduct/stream`."""

    def __init__(
        self,
        feed: ConductFeed,
        service: Service,
        listener: AppendListener,
        streams: OpenStreams,
        intervals: StreamIntervals = StreamIntervals(),
    ) -> None:
        self._feed = feed
        self._service = service
        self._listener = listener
        self._streams = streams
        self._intervals = intervals

    async def __call__(self, request: Request, caller: Caller) -> Response:
        self._streams.refuse_more()
        procedure_id = uuid_from(request.path["procedure_id"], "path", "procedure_id")
        query = from_query(StreamProcedureConduct, request.query, {})
        mark = resume_mark(request)
        view: ConductView = await self._service.ask(query, caller, target_id=procedure_id)
        watch = await self._resume(procedure_id, *mark) if mark is not None else await self._feed.latest(procedure_id)
        if watch is not None and mark is not None and watch.cursor.ordinal >= watch.outline.end:
            watch = await self._feed.after(watch)
            if watch is None:
                return Response(204)
        return self._streams.respond(self._frames(request, caller, view, watch))

    async def _resume(self, procedure_id: UUID, conduct_id: UUID, ordinal: int) -> ConductWatch:
        watch = await self._feed.behind(procedure_id, conduct_id, ordinal)
        if watch is None:
            raise unknown_mark_error()
        return watch

    async def _frames(
        self, request: Request, caller: Caller, view: ConductView, watch: ConductWatch | None
    ) -> AsyncGenerator[bytes, None]:
        over, reader = asyncio.create_task(request.wait_for_end()), ReaderTimer(self._intervals)
        try:
            if watch is None:
                yield frame_bytes(Frame(FrameKind.SNAPSHOT, 0, view), None)
            while not over.done() and not is_expired(caller) and await self._may_read(caller, reader):
                if watch is None:
                    if not may_be_conducted(view):
                        return
                    await wait_unless_over(over, self._pause_unopened())
                    async with self._streams.reading:
                        view = await self._feed.view(view.procedure_id, caller)
                        watch = await self._feed.latest(view.procedure_id, whole=True)
                    if watch is None and not may_be_conducted(view):
                        yield frame_bytes(Frame(FrameKind.SNAPSHOT, 0, view), None)
                else:
                    async with self._streams.reading:
                        frames = await self._feed.look(watch, caller)
                    for frame in frames:
                        reader.note_sent()
                        yield frame_bytes(frame, watch.outline.conduct_id)
                        if frame.is_last:
                            return
                    await asyncio.wait({over}, timeout=reader.pause())
                if reader.is_comment_due():
                    yield KEEP_ALIVE
        finally:
            over.cancel()

    async def _may_read(self, caller: Caller, reader: "ReaderTimer") -> bool:
        """Return whether the caller still has the permission; checked at intervals, and not recorded as a verdict."""
        if not reader.is_check_due():
            return True
        async with self._streams.reading:
            return StreamProcedureConduct.operation.command_name in await self._service.authorizer.permitted(caller)

    async def _pause_unopened(self) -> None:
        """Wait until something was appended, at least the longest interval between two reads."""
        await self._listener.wait(self._intervals.unopened)
        await asyncio.sleep(self._intervals.longest)


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


def frame_bytes(frame: Frame, conduct_id: UUID | None) -> bytes:
    """Return the bytes of a frame; before there is a conduct it has no id."""
    data = frame.data.model_dump_json().encode()
    if conduct_id is None:
        return b"event: %b\ndata: %b\n\n" % (frame.kind.value.encode(), data)
    return sse_frame(f"{conduct_id}:{frame.ordinal}", frame.kind.value, data)


def resume_mark(request: Request) -> tuple[UUID, int] | None:
    """Return the conduct and ordinal after which a reconnecting reader goes on."""
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
    return RequestValidationError.at(
        "header", "Last-Event-ID", msg="Give the id of a frame of this procedure's stream", type="value_error"
    )
