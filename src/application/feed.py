"""The event feed: every committed event once, in commit-safe order, for callers who may read its aggregate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from baton.application.ports import Authorizer, Bookmark, Caller, EventRow, Store
from baton.application.queries import READ_EVENT_TEXTS, event_envelope, recorder_names
from baton.application.unit_of_work import UnitOfWork
from baton.domain.access.edge_queries import EventFilter, ListEvents, StreamEvents
from baton.domain.access.principals import Names
from baton.domain.registry import REGISTRY
from baton.domain.shared.listing import Page, decode_cursor, encode_cursor, malformed_cursor
from baton.domain.shared.ports import Ports

SCAN = 1000
MOST_SCANNED = 20_000  # events that one page looks through before it answers with what it found and a cursor to go on


@dataclass(frozen=True)
class FeedAccess:
    stream_types: frozenset[str]
    texts: bool
    streams: bool  # whether it may follow the log as it grows

    def shows(self, row: EventRow, query: EventFilter) -> bool:
        """Return whether an event is wanted and may be seen."""
        return (
            row.stream_type in self.stream_types
            and (not query.stream_type or row.stream_type in query.stream_type)
            and (not query.event_type or row.event_type in query.event_type)
        )


@dataclass
class Feed:
    store: Store
    authorizer: Authorizer
    ports: Ports

    async def access(self, caller: Caller) -> FeedAccess:
        """Return what this caller may see now: the stream types it may get, and texts if it holds `ReadEventTexts`."""
        permitted = await self.authorizer.permitted(caller)
        types = frozenset(name for name in REGISTRY.aggregates if f"Get{name}" in permitted)
        return FeedAccess(types, READ_EVENT_TEXTS in permitted, StreamEvents.__name__ in permitted)

    async def start(self, after: int | None) -> Bookmark:
        """Return the place in the log behind a position; one that holds no event stands for the newest before it."""
        return (await self.store.locate(after) if after else None) or Bookmark(0, 0)

    async def page(self, caller: Caller, query: ListEvents) -> Page[dict[str, Any]]:
        access = await self.access(caller)
        bookmark = bookmark_in(query.cursor) if query.cursor else await self.start(query.after)
        found: list[EventRow] = []
        scanned, rows = 0, await self.store.follow(bookmark, SCAN)
        while rows and len(found) <= query.limit and scanned < MOST_SCANNED:
            scanned += len(rows)
            found += [row for row in rows if access.shows(row, query)]
            bookmark = Bookmark(rows[-1].transaction_id, rows[-1].position)
            rows = await self.store.follow(bookmark, SCAN) if len(rows) == SCAN else ()
        shown = found[: query.limit]
        if len(found) > query.limit:
            bookmark = Bookmark(shown[-1].transaction_id, shown[-1].position)
        names = await self.names(shown, caller)
        items = tuple(event_envelope(row, access.texts, names) for row in shown)
        return Page(items, encode_cursor(*bookmark) if rows or len(found) > query.limit else None)

    async def names(self, rows: Sequence[EventRow], caller: Caller) -> Names:
        """Return the names of those who recorded these events, as far as the caller may know them."""
        if not rows:
            return {}
        async with self.store.session() as session:
            return await recorder_names(UnitOfWork(session, caller, self.authorizer, self.ports), rows)

    async def behind(self, bookmark: Bookmark, limit: int) -> Sequence[EventRow]:
        """Return the next rows behind a bookmark, before any access is judged."""
        return await self.store.follow(bookmark, limit)


def bookmark_in(cursor: str) -> Bookmark:
    """Return the place where a feed page ended."""
    parts = decode_cursor(cursor, 2)
    if not all(part.isascii() and part.isdigit() and int(part) < 2**63 for part in parts):
        raise malformed_cursor()
    return Bookmark(*map(int, parts))
