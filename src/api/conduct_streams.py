"""The stream of a conduct as server-sent events; each reader reads the record itself, so none delays another."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from uuid import UUID

from baton.api.authentication import is_expired
from baton.api.errors import RequestValidationError
from baton.api.http import Request, Response
from baton.api.parsing import from_query, uuid_from
from baton.api.streams import (
    KEEP_ALIVE,
    AppendListener,
    OpenStreams,
    ReaderTimer,
    StreamIntervals,
    sse_frame,
    wait_unless_over,
)
from baton.application.conduct.conduct_reader import ConductFeed, ConductWatch
from baton.application.ports import Caller
from baton.application.service import Service
from baton.domain.operation.conduct.frames import FrameKind, StreamFrame
from baton.domain.operation.conduct.views import ConductView, StreamProcedureConduct, may_be_conducted


@dataclass(frozen=True)
class ConductStream:
    """`GET /procedures/{procedure_id}/conduct/stream`."""

    feed: ConductFeed
    service: Service
    listener: AppendListener
    streams: OpenStreams
    intervals: StreamIntervals = field(default_factory=StreamIntervals)

    async def __call__(self, request: Request, caller: Caller) -> Response:
        self.streams.refuse_more()
        procedure_id = uuid_from(request.path["procedure_id"], "path", "procedure_id")
        query = from_query(StreamProcedureConduct, request.query, {})
        mark = resume_mark(request)
        view: ConductView = await self.service.ask(query, caller, target_id=procedure_id)
        if mark is None:
            watch = await self.feed.latest(procedure_id)
        elif (watch := await self.feed.behind(procedure_id, *mark)) is None:
            raise unknown_mark_error()
        elif watch.cursor.ordinal >= watch.outline.end and (watch := await self.feed.after(watch)) is None:
            return Response(204)
        return self.streams.respond(self._frames(request, caller, view, watch))

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
                        frames = await self.feed.look(watch, caller)
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

    async def _may_read(self, caller: Caller, reader: ReaderTimer) -> bool:
        """Return whether the caller still has the permission; checked at intervals, and not recorded as a verdict."""
        if not reader.is_check_due():
            return True
        async with self.streams.reading:
            return StreamProcedureConduct.operation.command_name in await self.service.authorizer.permitted(caller)

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
    return RequestValidationError.at("header", "Last-Event-ID", msg="Give the id of a frame of this procedure's stream")
