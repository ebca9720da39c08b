"""The query path: authorize, wait for own writes where asked, then answer from streams, rows or a projection."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from baton.application.commands import refuse_denied
from baton.application.ports import Authorizer, Caller, Clock, EventRow, IdGenerator, Session, Store
from baton.application.unit_of_work import UnitOfWork, refuse_missing
from baton.domain.access.principals import Names, names_of
from baton.domain.kernel import Call, History, Query, State, TimeTravel
from baton.domain.registry import REGISTRY
from baton.domain.shared.listing import malformed, opaque, revealed
from baton.domain.shared.ports import Ports

READ_EVENT_TEXTS = "ReadEventTexts"
PROJECTIONS = "projections"
"""The follower that keeps every projection."""
OWN_WRITES_WAIT = 2.0


@dataclass(frozen=True)
class HistoryPage:
    """A page of one stream's events, under the aggregate's own id name."""

    id_name: str
    id: UUID
    items: tuple[Mapping[str, Any], ...]
    next_cursor: str | None


class Queries:
    """Answers queries for callers on every surface."""

    def __init__(
        self, store: Store, authorizer: Authorizer, clock: Clock, new_id: IdGenerator, ports: Ports
    ) -> None:
        self._store = store
        self._authorizer = authorizer
        self._clock = clock
        self._new_id = new_id
        self._ports = ports

    async def ask(self, query: Query, caller: Caller, *, target_id: UUID | None = None) -> Any:
        """The answer to one query."""
        operation = query.operation
        if not operation.open:
            refuse_denied(operation, await self._authorizer.authorize(caller, operation.command_name))
        if query.reads_projections and (position := getattr(query, "min_position", None)):
            await self._own_writes(position)
        if isinstance(query, History) and target_id is not None:
            return await self._history(query, caller, target_id)
        call = caller.call(self._clock(), self._new_id())
        async with self._store.snapshot() if query.of_one_moment else self._store.session() as session:
            unit = UnitOfWork(session, caller, self._authorizer, self._ports)
            known: tuple[State | Call, ...] = (call,)
            if operation.target is not None and operation.aggregate is not None and target_id is not None:
                if isinstance(query, TimeTravel) and query.travels:
                    known = (await self._past(unit, query, target_id), call)
                else:
                    known = (await unit.target(operation.aggregate, target_id), call)
            return await unit.fulfil(query.answer(*known))

    async def _past(self, unit: UnitOfWork, query: TimeTravel, id: UUID) -> State:
        aggregate = query.operation.aggregate
        assert aggregate is not None, "only an aggregate has a past"
        rows = await unit.session.load_past(aggregate.name, id, query.as_of, query.as_of_version)
        past: State | None = aggregate.replay(rows)
        return past or refuse_missing(aggregate, id)

    async def _history(self, query: History, caller: Caller, id: UUID) -> HistoryPage:
        aggregate = query.operation.aggregate
        assert aggregate is not None, "only an aggregate has a history"
        texts = (await self._authorizer.authorize(caller, READ_EVENT_TEXTS)).allowed
        async with self._store.session() as session:
            rows = await session.history(aggregate.name, id, version_after(query.cursor), query.limit + 1)
            if not rows and query.cursor is None:
                refuse_missing(aggregate, id)
            names = await names_in(rows[: query.limit], session, caller, self._authorizer, self._ports)
        shown = tuple(envelope(row, texts, names) for row in rows[: query.limit])
        more = len(rows) > query.limit
        return HistoryPage(aggregate.id_name, id, shown, opaque(rows[query.limit - 1].version) if more else None)

    async def _own_writes(self, position: int) -> None:
        """Wait, within a bound, until the projections have passed a position."""
        pause, waited = 0.005, 0.0
        while not await self._store.passed(PROJECTIONS, position) and waited < OWN_WRITES_WAIT:
            await asyncio.sleep(pause)
            waited += pause
            pause = min(pause * 1.5, 0.05)


async def names_in(
    rows: Sequence[EventRow], session: Session, caller: Caller, authorizer: Authorizer, ports: Ports
) -> Names:
    """Return the names of those who recorded these events, as far as the caller may know them."""
    unit = UnitOfWork(session, caller, authorizer, ports)
    return await unit.fulfil(names_of((row.principal_id, row.surface_id) for row in rows))


def envelope(row: EventRow, texts: bool, names: Names) -> dict[str, Any]:
    """An event as histories and the feed show it; texts that may hold personal data are null unless permitted."""
    payload = orjson.loads(row.payload)
    if not texts:
        payload = REGISTRY.aggregates[row.stream_type].events[row.event_type].without_texts(payload)
    return row._asdict() | {"payload": payload, "principal_name": names[row.principal_id, row.surface_id]}


def version_after(cursor: str | None) -> int:
    """The version a history page starts behind."""
    if cursor is None:
        return 0
    (version,) = revealed(cursor, 1)
    if not (version.isascii() and version.isdigit() and int(version) < 2**31):
        raise malformed()
    return int(version)
