"""The event feed: every committed event once, in commit-safe order, for callers who may read its aggregate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from baton.application.ports import Authorizer, Bookmark, Caller, EventRow, Store
from baton.application.queries import READ_EVENT_TEXTS, envelope, names_in
from baton.domain.access.edge_queries import EventFilter, ListEvents, StreamEvents
from baton.domain.access.principals import Names
from baton.domain.registry import REGISTRY
from baton.domain.shared.listing import Page, malformed, opaque, revealed
from baton.domain.shared.ports import Ports

SCAN = 1000
MOST_SCANNED = 20_000
"""How much of the log one page looks through before it answers with what it found and a cursor to go on."""

@dataclass(frozen=True)
class FeedAccess:
    """What a caller may see of the log."""

    stream_types: frozenset[str]
    texts: bool
    streams: bool
    """Whether it may follow the log as it grows."""

    def shows(self, row: EventRow, query: EventFilter) -> bool:
        return (
            row.stream_type in self.stream_types
            and (not query.stream_type or row.stream_type in query.stream_type)
            and (not query.event_type or row.event_type in query.event_type)
        )


class Feed:
    """Reads the log for callers."""

    def __init__(self, store: Store, authorizer: Authorizer, ports: Ports) -> None:
        self._store = store
        self._ports = ports
        self._authorizer = authorizer

    async def sight(self, caller: Caller) -> FeedAccess:
        """What this caller may see now: the stream types it may get, and texts if it holds `ReadEventTexts`."""
        permitted = await self._authorizer.permitted(caller)
        types = frozenset(name for name in REGISTRY.aggregates if f"Get{name}" in permitted)
        return FeedAccess(types, READ_EVENT_TEXTS in permitted, StreamEvents.__name__ in permitted)

    async def start(self, after: int | None) -> Bookmark:
        """The place in the log behind a position; one that holds no event stands for the newest before it."""
        if not after:
            return Bookmark(0, 0)
        return await self._store.locate(after) or Bookmark(0, 0)

    async def page(self, caller: Caller, query: ListEvents) -> Page[dict[str, Any]]:
        """One page of the feed."""
        sight = await self.sight(caller)
        bookmark = bookmark_in(query.cursor) if query.cursor else await self.start(query.after)
        found: list[EventRow] = []
        scanned, rows = 0, await self._store.follow(bookmark, SCAN)
        while rows and len(found) <= query.limit and scanned < MOST_SCANNED:
            scanned += len(rows)
            found += [row for row in rows if sight.shows(row, query)]
            bookmark = Bookmark(rows[-1].transaction_id, rows[-1].position)
            rows = await self._store.follow(bookmark, SCAN) if len(rows) == SCAN else ()
        shown = found[: query.limit]
        if len(found) > query.limit:
            bookmark = Bookmark(shown[-1].transaction_id, shown[-1].position)
        names = await self.names(shown, caller)
        items = tuple(envelope(row, sight.texts, names) for row in shown)
        return Page(items, opaque(*bookmark) if rows or len(found) > query.limit else None)

    async def names(self, rows: Sequence[EventRow], caller: Caller) -> Names:
        """What those are called who recorded these events, as far as the caller may know."""
        if not rows:
            return {}
        async with self._store.session() as session:
            return await names_in(rows, session, caller, self._authorizer, self._ports)

    async def behind(self, bookmark: Bookmark, limit: int) -> Sequence[EventRow]:
        """The next rows behind a bookmark, whoever may see them."""
        return await self._store.follow(bookmark, limit)


def bookmark_in(cursor: str) -> Bookmark:
    """The place a feed page ended."""
    parts = revealed(cursor, 2)
    if not all(part.isascii() and part.isdigit() and int(part) < 2**63 for part in parts):
        raise malformed()
    return Bookmark(*map(int, parts))
