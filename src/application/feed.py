"""The event feed: every committed event once, in commit-safe order, to whoever may read its aggregate.

This is how outside consumers subscribe. The two queries, and `get_my_access`, belong to no aggregate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from baton.application.ports import Authorizer, Bookmark, Caller, EventRow, Store
from baton.application.queries import READ_EVENT_TEXTS, envelope, names_in
from baton.domain.access.actor import Actor, ActorKind
from baton.domain.access.principals import Names, names_of
from baton.domain.kernel import Call, Query, SortedSet, Value
from baton.domain.registry import REGISTRY, Operation
from baton.domain.shared.listing import Page, malformed, opaque, revealed
from baton.domain.shared.reads import Reads, answered, existing
from baton.domain.trust.authorization import reachable_commands

SCAN = 1000
MOST_SCANNED = 20_000
"""How much of the log one page looks through before it answers with what it found and a cursor to go on."""

Name = Annotated[str, Field(min_length=1, max_length=200)]
Position = Annotated[int, Field(ge=0, le=2**63 - 1)]


class EventView(Value):
    """One event with its envelope; texts that may hold personal data are null without `ReadEventTexts`.

    `principal_name` is that of a person, an agent or an account as it is now, `Baton` for the service itself, or `not
    signed in`; people's names are null without `GetActor`.
    """

    position: int
    transaction_id: int
    event_id: UUID
    stream_type: str
    stream_id: UUID
    version: int
    event_type: str
    schema_version: int
    payload: dict[str, Any]
    principal_id: UUID
    command_name: str
    correlation_id: UUID
    causation_id: UUID | None
    occurred_at: datetime
    recorded_at: datetime
    surface_id: UUID | None
    principal_name: str | None


class EventFilter(Query):
    """Which events of the log are wanted, behind which position."""

    after: Position | None = None
    stream_type: tuple[Name, ...] = ()
    event_type: tuple[Name, ...] = ()


class ListEvents(EventFilter):
    """Every committed event after a position, in commit-safe order."""

    limit: Annotated[int, Field(ge=1, le=100)] = 50
    cursor: Name | None = None

    def answer(self, call: Call) -> Reads[Page[dict[str, Any]]]:
        page: Page[dict[str, Any]] = yield from answered("feed", query=self)
        return page


class StreamEvents(EventFilter):
    """Every committed event after a position, as it happens (server-sent events); resumable without loss or repeat."""


class AccessView(Value):
    """Who a caller is, and what it can reach; a caller without a token is of no kind and named so."""

    principal_id: UUID
    kind: ActorKind | None
    name: str | None
    surface_id: UUID
    permitted_commands: SortedSet[str]


class GetMyAccess(Query):
    """Who I am to the service, and every command that a call of mine can reach on this surface."""

    def answer(self, call: Call) -> Reads[AccessView]:
        actor = yield from existing(Actor, call.principal_id)
        kind = actor.kind if actor else None
        appearance = (call.principal_id, call.surface_id)
        names = yield from names_of([appearance], own=True)
        permitted = yield from answered("permitted_commands")
        return AccessView(
            principal_id=call.principal_id,
            kind=kind,
            name=names[appearance],
            surface_id=call.surface_id,
            permitted_commands=reachable_commands(permitted, kind, call.surface_id),
        )


def _declare(query: type[Query], name: str, path: str, returns: Any, **options: Any) -> None:
    operation = Operation(
        name=name,
        command_name=query.__name__,
        kind="query",
        context="edge",
        method="GET",
        path=path,
        input=query,
        returns=returns,
        **options,
    )
    query.operation = operation
    REGISTRY.declare(operation)


_declare(ListEvents, "list_events", "/events", Page[EventView], essential=True)
_declare(StreamEvents, "stream_events", "/events/stream", None, mcp=False)
_declare(GetMyAccess, "get_my_access", "/me", AccessView, open=True, essential=True)


@dataclass(frozen=True)
class Sight:
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

    def __init__(self, store: Store, authorizer: Authorizer) -> None:
        self._store = store
        self._authorizer = authorizer

    async def sight(self, caller: Caller) -> Sight:
        """What this caller may see now: the stream types it may get, and texts if it holds `ReadEventTexts`."""
        permitted = await self._authorizer.permitted(caller)
        types = frozenset(name for name in REGISTRY.aggregates if f"Get{name}" in permitted)
        return Sight(types, READ_EVENT_TEXTS in permitted, StreamEvents.__name__ in permitted)

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
            return await names_in(rows, session, caller, self._authorizer)

    async def behind(self, bookmark: Bookmark, limit: int) -> Sequence[EventRow]:
        """The next rows behind a bookmark, whoever may see them."""
        return await self._store.follow(bookmark, limit)


def bookmark_in(cursor: str) -> Bookmark:
    """The place a feed page ended."""
    parts = revealed(cursor, 2)
    if not all(part.isascii() and part.isdigit() and int(part) < 2**63 for part in parts):
        raise malformed()
    return Bookmark(*map(int, parts))
