"""The query path: authorize, wait for own writes where asked, answer from streams, rows or a projection; and the feed."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

import orjson
from pydantic import BaseModel

from baton.application.caller import Caller
from baton.application.commands import READ_EVENT_TEXTS, refuse_denied
from baton.application.dry_runs import DryRunPorts
from baton.application.ports import Authorizer, Bookmark, Clock, EventRow, IdGenerator, Session, Store
from baton.application.unit_of_work import UnitOfWork, refuse_missing
from baton.domain.access.actor import Names, names_of
from baton.domain.access.references import include_names
from baton.domain.kernel import Call, History, HistoryPage, NamesOnRequest, Query, State, TimeTravel
from baton.domain.ports import Ports, method_of
from baton.domain.registry import REGISTRY
from baton.domain.shared.listing import Order, Page, decode_cursor, encode_cursor, malformed_cursor
from baton.domain.shared.reads import AskPort
from baton.domain.trust.authorization import MCP_SURFACES
from baton.domain.views.event_log import EventFilter, ListEvents, StreamEvents

PROJECTIONS = "projections"  # the follower that keeps every projection
OWN_WRITES_WAIT_SECONDS = 2.0
SCAN = 1000
LONGEST_APPEND = timedelta(minutes=1)  # no command writes longer; so far the order of the log and of times may differ
MOST_IN_LINE = 4  # kinds of events that the line of a command names
LOG_END = Bookmark(2**63 - 1, 2**63 - 1)  # behind every event
MOST_SCANNED = 20_000  # events that one page looks through before it answers with what it found and a cursor to go on


T = TypeVar("T")


class ShownAnswer(NamedTuple, Generic[T]):
    """An answer as its query declares it, and as plain data with the names of what it refers to where that is asked for."""

    answer: T
    named: Mapping[str, Any] | None = None

    @property
    def shown(self) -> Any:
        """What a surface shows."""
        return self.answer if self.named is None else self.named


@dataclass
class Queries:
    store: Store
    authorizer: Authorizer
    clock: Clock
    new_id: IdGenerator
    ports: Ports

    async def ask(self, query: Query[T], caller: Caller, *, target_id: UUID | None = None) -> T:
        """Return the answer to a query."""
        return (await self.show(query, caller, target_id=target_id)).answer

    async def show(self, query: Query[T], caller: Caller, *, target_id: UUID | None = None) -> ShownAnswer[T]:
        """Return the answer to a query, with names where they are asked for."""
        operation = query.operation
        if not operation.open:
            refuse_denied(operation.command_name, await self.authorizer.authorize(caller, operation.command_name))
        return await self.answer(query, caller, target_id=target_id)

    async def answer(self, query: Query[T], caller: Caller, *, target_id: UUID | None = None) -> ShownAnswer[T]:
        """Answer a query of a caller whose permission for it is known."""
        operation = query.operation
        if query.reads_projections and (position := getattr(query, "min_position", None)):
            await self.wait_for_projections(position)
        if isinstance(query, History) and target_id is not None:
            return await self._history(query, caller, target_id)
        call = caller.call(self.clock(), self.new_id())
        async with self.store.snapshot() if query.of_one_moment else self.store.session() as session:
            unit = UnitOfWork(session, caller, self.authorizer, DryRunPorts(self.ports) if query.rehearses else self.ports)
            known: tuple[State | Call, ...] = (call,)
            if operation.target is not None and operation.aggregate is not None and target_id is not None:
                if isinstance(query, TimeTravel) and query.travels:
                    known = (await self._past(session, query, target_id), call)
                else:
                    known = (await unit.target(operation.aggregate, target_id), call)
            answer = await unit.fulfil(query.answer(*known))
            if not isinstance(answer, AskPort):
                return await self._with_names(query, answer, unit)
        answer = await method_of(self.ports, answer.method)(*answer.arguments)  # no connection waits for it
        async with self.store.session() as session:
            return await self._with_names(query, answer, UnitOfWork(session, caller, self.authorizer, self.ports))

    async def _with_names(self, query: Query[Any], answer: T, unit: UnitOfWork) -> ShownAnswer[T]:
        """Return an answer, with the names of what it refers to where that is asked for."""
        if not (isinstance(query, NamesOnRequest) and query.include):
            return ShownAnswer(answer)
        return ShownAnswer(answer, await unit.fulfil(include_names(plain_answer(answer), query.operation.aggregate)))

    async def _past(self, session: Session, query: TimeTravel[object], id: UUID) -> State:
        aggregate = query.operation.aggregate
        assert aggregate is not None, "only an aggregate has a past"
        past: State | None = aggregate.replay(await session.load_past(aggregate.name, id, query.as_of, query.as_of_version))
        return past or refuse_missing(aggregate, id)

    async def _history(self, query: History, caller: Caller, id: UUID) -> ShownAnswer[Any]:
        aggregate = query.operation.aggregate
        assert aggregate is not None, "only an aggregate has a history"
        texts = (await self.authorizer.authorize(caller, READ_EVENT_TEXTS)).is_allowed
        async with self.store.session() as session:
            after = 0 if query.cursor is None else numbers_in(query.cursor, 1, 2**31)[0]
            rows = await session.history(aggregate.name, id, after, query.limit + 1)
            if not rows and query.cursor is None:
                refuse_missing(aggregate, id)
            unit = UnitOfWork(session, caller, self.authorizer, self.ports)
            names = await unit.fulfil(names_of((row.principal_id, row.surface_id) for row in rows[: query.limit]))
            shown = tuple(event_envelope(row, texts, names) for row in rows[: query.limit])
            following = encode_cursor(rows[query.limit - 1].version) if len(rows) > query.limit else None
            return await self._with_names(query, HistoryPage(aggregate.id_name, id, shown, following), unit)

    async def wait_for_projections(self, position: int) -> bool:
        """Wait a moment until the projections show what is recorded up to a position; return whether they do."""
        pause, waited = 0.005, 0.0
        while not (passed := await self.store.has_passed(PROJECTIONS, position)) and waited < OWN_WRITES_WAIT_SECONDS:
            await asyncio.sleep(pause)
            waited += pause
            pause = min(pause * 1.5, 0.05)
        return passed


def plain_answer(answer: object) -> Any:
    """Return an answer as plain data."""
    match answer:
        case State():
            return plain_answer(answer.aggregate.show(answer))
        case BaseModel():
            return answer.model_dump(mode="json", warnings=False)
        case Page(items, next_cursor):
            return {"items": [plain_answer(item) for item in items], "next_cursor": next_cursor}
        case HistoryPage(id_name, id, items, next_cursor):
            return {id_name: id, "items": items, "next_cursor": next_cursor}
    return answer


def event_envelope(row: EventRow, texts: bool, names: Names) -> dict[str, Any]:
    """Return an event as histories and the feed show it: at its class's version, personal texts null unless permitted."""
    event = REGISTRY.aggregates[row.stream_type].events[row.event_type]
    payload = event.upcast(orjson.loads(row.payload), row.schema_version)
    shown = payload if texts else event.without_texts(payload)
    current = {"payload": shown, "schema_version": max(row.schema_version, event.schema_version)}
    return row._asdict() | current | {"principal_name": names[row.principal_id, row.surface_id]}


def feed_envelope(row: EventRow, texts: bool, names: Names) -> dict[str, object]:
    """Return an event as the feed shows it: where it holds a list of steps, the address of the whole event stands."""
    envelope = event_envelope(row, texts, names)
    return envelope | {"payload": without_steps(envelope["payload"], address_of(row))}


def address_of(row: EventRow) -> str:
    """Return the address that shows one event whole, in the history of its stream."""
    path = REGISTRY.aggregates[row.stream_type].path
    return f"{path}/{row.stream_id}/history?limit=1&cursor={encode_cursor(row.version - 1)}"


def without_steps(part: object, address: str) -> object:
    """Return a part of a payload with each list of steps replaced by their number and an address that shows them."""
    match part:
        case dict():
            return {
                key: {"count": len(value), "at": address} if is_step_list(key, value) else without_steps(value, address)
                for key, value in part.items()
            }
        case list():
            return [without_steps(one, address) for one in part]
    return part


def is_step_list(key: str, value: object) -> bool:
    """Return whether a member of a payload is a list of steps, each of which says of which kind it is."""
    items = value if key.endswith("steps") and isinstance(value, list) else []
    return any(isinstance(item, dict) and "kind" in item for item in items)


def numbers_in(cursor: str, count: int, below: int) -> list[int]:
    """Return the numbers that a cursor holds; refuse one that no page ended with."""
    parts = decode_cursor(cursor, count)
    if not all(part.isascii() and part.isdigit() and int(part) < below for part in parts):
        raise malformed_cursor()
    return [int(part) for part in parts]


def place_of(row: EventRow) -> Bookmark:
    """Return the place of an event in the log."""
    return Bookmark(row.transaction_id, row.position)


def cursor_of(bookmark: Bookmark, order: Order) -> str:
    """Return the cursor of a page of the log that ended here."""
    return encode_cursor(*bookmark) if order is Order.ASC else encode_cursor(order, *bookmark)


def bookmark_in(cursor: str | None, order: Order) -> Bookmark | None:
    """Return where the page before this one ended; refuse the cursor of another order."""
    if cursor is None:
        return None
    if order is Order.ASC:
        return Bookmark(*numbers_in(cursor, 2, 2**63))
    written, *place = decode_cursor(cursor, 3)
    if written != order:
        raise malformed_cursor()
    return Bookmark(*numbers_in(encode_cursor(*place), 2, 2**63))


def bounded_items(items: Sequence[dict[str, object]], rows: Sequence[EventRow], max_bytes: int) -> list[dict[str, object]]:
    """Return the first events that fit into so many bytes; where one alone does not, its payload is an address instead."""
    shown: list[dict[str, object]] = []
    size = 0
    for item, row in zip(items, rows, strict=False):
        size += len(orjson.dumps(item))
        if size > max_bytes and shown:
            break
        cut = size > max_bytes and "payload" in item
        shown.append(item | {"payload": {"at": address_of(row)}} if cut else item)
    return shown


def is_of_time(row: EventRow, query: ListEvents) -> bool:
    """Return whether an event was recorded when a query asks for it."""
    begun = query.since is None or row.recorded_at >= query.since
    return begun and (query.until is None or row.recorded_at < query.until)


def is_of_command(row: EventRow, other: EventRow) -> bool:
    """Return whether two events that follow on each other were recorded by one command."""
    commands = [(one.transaction_id, one.correlation_id, one.command_name, one.principal_id) for one in (row, other)]
    return commands[0] == commands[1]


def command_item(rows: Sequence[EventRow], who: str | None, names: Mapping[tuple[str, UUID], str | None]) -> dict[str, Any]:
    """Return what one command recorded, as a line."""
    first, done = rows[0], Counter((row.event_type, row.stream_type, row.stream_id) for row in rows)
    events = []
    for (event, kind, id), times in done.most_common(MOST_IN_LINE):
        name = names.get((kind, id))
        thing = f"{kind} {id}" if name is None else f"{kind} {name} ({id})"
        events.append(f"{event}{f' {times} times' if times > 1 else ''} of {thing}")
    more = [f"{len(done) - MOST_IN_LINE} more"] if len(done) > MOST_IN_LINE else []
    line = f"{first.recorded_at:%Y-%m-%d %H:%M:%S}Z {who or 'somebody'}, {first.command_name}: {'; '.join(events + more)}"
    last = max(row.position for row in rows)
    return {"position": last, "correlation_id": str(first.correlation_id), "line": line}


@dataclass(frozen=True)
class FeedAccess:
    stream_types: frozenset[str]
    texts: bool
    streams: bool  # whether it may follow the log as it grows

    def shows(self, row: EventRow, query: EventFilter) -> bool:
        """Return whether an event is wanted and may be seen."""
        streams, events = query.stream_type or self.stream_types, query.event_type or (row.event_type,)
        return row.stream_type in self.stream_types and row.stream_type in streams and row.event_type in events


@dataclass
class Feed:
    store: Store
    authorizer: Authorizer
    ports: Ports

    async def access(self, caller: Caller) -> FeedAccess:
        """Return what this caller may see now: the stream types it may get, and texts if it holds `ReadEventTexts`."""
        permitted = await self.authorizer.permitted_commands(caller)
        types = frozenset(name for name in REGISTRY.aggregates if f"Get{name}" in permitted)
        return FeedAccess(types, READ_EVENT_TEXTS in permitted, StreamEvents.__name__ in permitted)

    async def start(self, after: int | None) -> Bookmark:
        """Return the place in the log behind a position; one that holds no event stands for the newest before it."""
        return (await self.store.locate(after) if after else None) or Bookmark(0, 0)

    async def _goes_on(self, query: ListEvents) -> Bookmark | None:
        """Return where the page before ended: where that event is now, since a record that is adopted gets other numbers."""
        if (ended := bookmark_in(query.cursor, query.order)) is None:
            return None
        found = await self.store.locate(ended.position)
        return found if found is not None and found.position == ended.position else ended

    async def event_page(self, call: Call, query: ListEvents) -> Page[dict[str, Any]]:
        """Return a page of the log; where it would be larger than asked for, it ends earlier."""
        caller = Caller.of(call)
        access = await self.access(caller)
        in_lines = caller.surface_id in MCP_SURFACES and not query.full
        start, end = await self._stretch(query)
        bookmark = await self._goes_on(query) or (start if query.order is Order.ASC else end)
        found: list[list[EventRow]] = []  # by item: an event, or what one command recorded
        scanned, rows = 0, await self.store.search(query, bookmark, SCAN)
        while rows and len(found) <= query.limit and scanned < MOST_SCANNED:
            scanned += len(rows)
            within = [row for row in rows if start < place_of(row) < end]
            for row in (one for one in within if access.shows(one, query) and is_of_time(one, query)):
                if in_lines and found and is_of_command(row, found[-1][-1]):
                    found[-1].append(row)
                else:
                    found.append([row])
            bookmark = place_of(rows[-1])
            rows = await self.store.search(query, bookmark, SCAN) if len(within) == SCAN else ()
        items = await self._items(found[: query.limit], query, caller, access.texts, in_lines=in_lines)
        if query.max_bytes is not None:
            items = bounded_items(
                items, [rows[0] for rows in found], query.max_bytes // 2 if query.include else query.max_bytes
            )
        if len(items) < len(found):
            bookmark = place_of(found[len(items) - 1][-1])
        more = rows or len(items) < len(found)
        return Page(tuple(items), cursor_of(bookmark, query.order) if more else None)

    async def _stretch(self, query: ListEvents) -> tuple[Bookmark, Bookmark]:
        """Return the places that lie before and behind all that a query may show."""
        after, end = await self.start(query.after), LOG_END
        if query.since is not None:
            first = await self.store.at_time(query.since - LONGEST_APPEND)
            after = max(after, LOG_END if first is None else Bookmark(first.transaction_id, first.position - 1))
        if query.until is not None:
            end = await self.store.at_time(query.until + LONGEST_APPEND) or LOG_END
        return after, end

    async def _items(
        self, found: Sequence[Sequence[EventRow]], query: ListEvents, caller: Caller, texts: bool, *, in_lines: bool
    ) -> list[dict[str, Any]]:
        """Return what is shown of these events, or of the commands that recorded them."""
        names = await self.names([rows[0] for rows in found], caller)
        if not in_lines:
            shown = (feed_envelope(row, texts, names) for [row] in found)
            return [item if query.payloads else item | {"payload": None} for item in shown]
        streams = dict.fromkeys((row.stream_type, row.stream_id) for rows in found for row in rows)
        async with self.store.session() as session:
            unit = UnitOfWork(session, caller, self.authorizer, self.ports)
            mentions = [{"stream_type": kind, "stream_id": str(id)} for kind, id in streams]
            named = await unit.fulfil(include_names(mentions, None))
        known = {key: (mention.get("stream") or {}).get("name") for key, mention in zip(streams, named, strict=True)}
        return [command_item(rows, names[rows[0].principal_id, rows[0].surface_id], known) for rows in found]

    async def names(self, rows: Sequence[EventRow], caller: Caller) -> Names:
        """Return the names of those who recorded these events, as far as the caller may know them."""
        if not rows:
            return {}
        async with self.store.session() as session:
            unit = UnitOfWork(session, caller, self.authorizer, self.ports)
            return await unit.fulfil(names_of((row.principal_id, row.surface_id) for row in rows))

    async def behind(self, bookmark: Bookmark, limit: int) -> Sequence[EventRow]:
        """Return the next rows behind a bookmark, before any access is judged."""
        return await self.store.follow(bookmark, limit)
