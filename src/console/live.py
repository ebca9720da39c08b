"""Live pages: while somebody looks at a page, its regions are rendered again when the log or the clock gives reason to, and
what has changed is pushed. People who may see the same share one rendering, however many tabs show it; what is personal is
rendered for each of them, as a view of its own."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2s
from typing import Protocol
from uuid import UUID

import orjson
import structlog

from baton.api.authentication import is_expired
from baton.api.http import Request
from baton.api.streams import AppendListener, OpenStreams
from baton.application.caller import Caller
from baton.application.ports import Bookmark
from baton.application.queries import Feed
from baton.application.telemetry import error_location
from baton.console.page import ConsolePage, Region
from baton.console.page_queries import HeldPermissions
from baton.domain.contexts import REGISTRY

log = structlog.get_logger()
SHORTEST_SECONDS = 0.5  # between two renderings of one view
RENDER_TIME_SHARE = 10  # of the time of this process, renderings take about one part in so many
PAUSE_SECONDS = 0.2  # between two looks at the log, at least
SAVED_SECONDS = 1.0  # of that part, which may be saved for when something happens
LONGEST_REST_SECONDS = 5.0
RENEWAL_SECONDS = 30.0  # after so long a region is rendered whatever happened
LOG_OVERLAP = 200  # events before the end of the log that are read again: one of a slow transaction may stand among them
PULSE_SECONDS = 2.0
PERMISSION_RECHECK_SECONDS = 30.0  # between two checks of a reader's permissions
SCANNED = 500  # events that one look at the log takes
TROUBLE = "The record cannot be read at the moment; what is shown is as old as it says."


class Render(Protocol):
    """Renders regions of a page as a caller with these permissions sees them; each by its name."""

    async def __call__(self, view: "LiveView", names: frozenset[str], position: int) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class ViewKey:
    """What a rendering depends on: the page, its address, and what those who look at it may do; for what is personal, who
    looks, and the groups that their token tells."""

    page: str
    address: str
    held: HeldPermissions
    person: tuple[UUID, frozenset[UUID]] | None = None


@dataclass(eq=False)
class LiveView:
    """A page that somebody looks at, as it was last rendered."""

    key: ViewKey
    page: ConsolePage
    caller: Caller  # the person it is rendered as: always one who looks at it, since another one's rights may have changed
    path: Mapping[str, str]
    query: Mapping[str, str]
    shown: dict[str, str] = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)
    rendered_at: dict[str, float] = field(default_factory=dict)
    stale: set[str] = field(default_factory=set)
    trouble: bool = False
    readers: "dict[asyncio.Event, Caller]" = field(default_factory=dict)

    @property
    def regions(self) -> dict[str, Region]:
        """The regions of the page that this view is of: those that are personal, or those that are not."""
        is_personal = self.key.person is not None
        return {name: region for name, region in self.page.regions.items() if region.personal is is_personal}

    def due(self, now: float, urgent: bool) -> frozenset[str]:
        """Return the regions that are to be rendered now: those that an event may have changed, and those whose time has
        come, or is long past where only what is urgent counts."""
        if now - max(self.rendered_at.values(), default=0.0) < SHORTEST_SECONDS:
            return frozenset()
        patience = LONGEST_REST_SECONDS if urgent else 0.0
        waited = {
            name
            for name, region in self.regions.items()
            if now - self.rendered_at.get(name, 0.0) >= (region.every or RENEWAL_SECONDS) + patience
        }
        return frozenset(self.stale | waited)

    def note_events(self, streams: frozenset[str]) -> None:
        """Mark the regions that events of these streams may change."""
        self.stale |= {name for name, region in self.regions.items() if region.watches & streams}

    def keep(self, rendered: Mapping[str, str], now: float) -> bool:
        """Keep what was rendered; return whether any of it has changed."""
        before = dict(self.marks)
        for name, html in rendered.items():
            self.shown[name] = html
            self.marks[name] = mark_of(html)
            self.rendered_at[name] = now
            self.stale.discard(name)
        return before != self.marks

    def wake(self) -> None:
        """Wake everybody who looks."""
        for reader in self.readers:
            reader.set()


def mark_of(html: str) -> str:
    """Return what tells one rendering from another."""
    return blake2s(html.encode(), digest_size=8).hexdigest()


class LiveViews:
    """The views of this process. One task follows the log and renders what is due, a small part of the time."""

    def __init__(self, feed: Feed, listener: AppendListener, render: Render, streams: OpenStreams) -> None:
        self._feed, self._listener, self._render, self._streams = feed, listener, render, streams
        self._views: dict[ViewKey, LiveView] = {}
        self._task: asyncio.Task[None] | None = None

    def open(self, view: LiveView, reader: asyncio.Event) -> LiveView:
        """Have somebody look at a view; return the one that all who see the same share."""
        shared = self._views.setdefault(view.key, view)
        shared.readers[reader] = view.caller
        if not shared.shown:
            shared.stale |= set(shared.regions)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return shared

    def close(self, view: LiveView, reader: asyncio.Event) -> None:
        """Let somebody look away; a view that nobody looks at is forgotten."""
        view.readers.pop(reader, None)
        if view.readers:
            view.caller = next(iter(view.readers.values()))
        elif self._views.get(view.key) is view:
            del self._views[view.key]

    async def _run(self) -> None:
        """Render what is due until nobody looks at anything. What may be spent on it comes in steadily, and half of what is
        saved is kept for events: they are shown at once unless there are very many."""
        bookmark, position = None, 0
        left, counted_at = SAVED_SECONDS, time.monotonic()
        while self._views:
            begun = time.thread_time()  # what waits for the database takes none of this process's time
            try:
                if bookmark is None:
                    bookmark = await self._end_of_log()
                else:
                    bookmark, position = await self._follow(bookmark, position)
            except Exception as error:  # the views stay, and are tried again
                log.warning("console_cannot_follow", **error_location(error))
            for view in tuple(self._views.values()):
                await self._render_view(view, position, urgent=left < SAVED_SECONDS / 2)
            left = max(left - (time.thread_time() - begun), -LONGEST_REST_SECONDS / RENDER_TIME_SHARE)
            await asyncio.sleep(max(PAUSE_SECONDS, -left * RENDER_TIME_SHARE))
            await self._listener.wait(PAUSE_SECONDS)
            elapsed, counted_at = time.monotonic() - counted_at, time.monotonic()
            left = min(left + elapsed / RENDER_TIME_SHARE, SAVED_SECONDS)

    async def _end_of_log(self) -> Bookmark:
        position = await self._feed.store.last_position()
        return await self._feed.start(max(0, position - LOG_OVERLAP))

    async def _follow(self, bookmark: Bookmark, position: int) -> tuple[Bookmark, int]:
        """Mark what new events may have changed; return the place behind them."""
        async with self._streams.reading:
            rows = await self._feed.behind(bookmark, SCANNED)
        if not rows:
            return bookmark, position
        if len(rows) == SCANNED:  # so much has happened that everything may have changed
            streams, end = frozenset(REGISTRY.aggregates), await self._feed.store.last_position()
            for view in self._views.values():
                view.note_events(streams)
            return await self._end_of_log(), end
        streams = frozenset(row.stream_type for row in rows)
        for view in self._views.values():
            view.note_events(streams)
        return Bookmark(rows[-1].transaction_id, rows[-1].position), max(position, *(row.position for row in rows))

    async def _render_view(self, view: LiveView, position: int, *, urgent: bool) -> None:
        """Render what is due of a view; where that fails, say so there and try again later."""
        begun = time.monotonic()
        if not (names := view.due(begun, urgent)):
            return
        try:
            changed = view.keep(await self._render(view, names, position), time.monotonic())
            trouble = False
        except Exception as error:  # one view that fails keeps no other from being rendered
            log.warning("console_rendering_failed", page=view.page.path, **error_location(error))
            view.rendered_at |= dict.fromkeys(names, time.monotonic() + PULSE_SECONDS)
            changed, trouble = False, True
        if changed or trouble != view.trouble:
            view.trouble = trouble
            view.wake()


@dataclass(frozen=True)
class LiveReader:
    """One open tab: sends what has changed since it last sent it, and a pulse that says that it is alive."""

    views: LiveViews
    request: Request
    caller: Caller
    make_views: Callable[[], Awaitable[Sequence[LiveView]]]

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """Yield the frames of a live page until the person is gone, signed out or may no longer see it."""
        reader = asyncio.Event()
        views = [self.views.open(view, reader) for view in await self.make_views()]
        over = asyncio.create_task(self.request.wait_for_end())
        sent: dict[str, str] = {}
        checked_at, trouble = time.monotonic(), False
        try:
            yield b"retry: 1000\n\n"
            while not over.done():
                if is_expired(self.caller):
                    yield frame("signed-out", {})
                    return
                for view in views:
                    for name, mark in tuple(view.marks.items()):
                        if sent.get(name) != mark:
                            sent[name] = mark
                            region = view.page.regions[name]
                            yield frame("region", {"id": region.element_id, "mark": mark, "html": view.shown[name]})
                if any(view.trouble for view in views) != trouble:
                    trouble = not trouble
                    yield frame("trouble", {"text": TROUBLE if trouble else ""})
                yield frame("pulse", {"at": time.time()})
                await self._wait(over, reader)
                if time.monotonic() - checked_at >= PERMISSION_RECHECK_SECONDS:
                    checked_at, seen = time.monotonic(), await self.make_views()
                    if [view.key for view in seen] != [view.key for view in views]:
                        self._close(views, reader)
                        views, sent = [self.views.open(view, reader) for view in seen], {}
        finally:
            over.cancel()
            self._close(views, reader)

    def _close(self, views: Sequence[LiveView], reader: asyncio.Event) -> None:
        for view in views:
            self.views.close(view, reader)

    async def _wait(self, over: "asyncio.Task[None]", reader: asyncio.Event) -> None:
        woken = asyncio.create_task(reader.wait())
        try:
            await asyncio.wait({over, woken}, timeout=PULSE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            woken.cancel()
        reader.clear()


def frame(event: str, data: Mapping[str, object]) -> bytes:
    """Return one server-sent event."""
    return b"event: %b\ndata: %b\n\n" % (event.encode(), orjson.dumps(data))
