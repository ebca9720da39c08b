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
from baton.domain.shared.listing import decode_cursor, encode_cursor, malformed_cursor
from baton.domain.shared.ports import Ports

READ_EVENT_TEXTS = "ReadEventTexts"
PROJECTIONS = "projections"  # the follower that keeps every projection
OWN_WRITES_WAIT_SECONDS = 2.0


@dataclass(frozen=True)
class HistoryPage:
    """A page of one stream's events, under the aggregate's own id name."""

    id_name: str
    id: UUID
    items: tuple[Mapping[str, Any], ...]
    next_cursor: str | None


@dataclass
class Queries:
    store: Store
    authorizer: Authorizer
    clock: Clock
    new_id: IdGenerator
    ports: Ports

    async def ask(self, query: Query, caller: Caller, *, target_id: UUID | None = None) -> Any:
        operation = query.operation
        if not operation.open:
            refuse_denied(operation, await self.authorizer.authorize(caller, operation.command_name))
        if query.reads_projections and (position := getattr(query, "min_position", None)):
            await self._wait_for_projections(position)
        if isinstance(query, History) and target_id is not None:
            return await self._history(query, caller, target_id)
        call = caller.call(self.clock(), self.new_id())
        async with self.store.snapshot() if query.of_one_moment else self.store.session() as session:
            unit = UnitOfWork(session, caller, self.authorizer, self.ports)
            known: tuple[State | Call, ...] = (call,)
            if operation.target is not None and operation.aggregate is not None and target_id is not None:
                if isinstance(query, TimeTravel) and query.travels:
                    known = (await self._past(session, query, target_id), call)
                else:
                    known = (await unit.target(operation.aggregate, target_id), call)
            return await unit.fulfil(query.answer(*known))

    async def _past(self, session: Session, query: TimeTravel, id: UUID) -> State:
        aggregate = query.operation.aggregate
        assert aggregate is not None, "only an aggregate has a past"
        past: State | None = aggregate.replay(await session.load_past(aggregate.name, id, query.as_of, query.as_of_version))
        return past or refuse_missing(aggregate, id)

    async def _history(self, query: History, caller: Caller, id: UUID) -> HistoryPage:
        aggregate = query.operation.aggregate
        assert aggregate is not None, "only an aggregate has a history"
        texts = (await self.authorizer.authorize(caller, READ_EVENT_TEXTS)).allowed
        async with self.store.session() as session:
            rows = await session.history(aggregate.name, id, version_after(query.cursor), query.limit + 1)
            if not rows and query.cursor is None:
                refuse_missing(aggregate, id)
            unit = UnitOfWork(session, caller, self.authorizer, self.ports)
            names = await recorder_names(unit, rows[: query.limit])
        shown = tuple(event_envelope(row, texts, names) for row in rows[: query.limit])
        more = len(rows) > query.limit
        return HistoryPage(aggregate.id_name, id, shown, encode_cursor(rows[query.limit - 1].version) if more else None)

    async def _wait_for_projections(self, position: int) -> None:
        pause, waited = 0.005, 0.0
        while not await self.store.passed(PROJECTIONS, position) and waited < OWN_WRITES_WAIT_SECONDS:
            await asyncio.sleep(pause)
            waited += pause
            pause = min(pause * 1.5, 0.05)


async def recorder_names(unit: UnitOfWork, rows: Sequence[EventRow]) -> Names:
    return await unit.fulfil(names_of((row.principal_id, row.surface_id) for row in rows))


def event_envelope(row: EventRow, texts: bool, names: Names) -> dict[str, Any]:
    """Return an event as histories and the feed show it: at its class's version, personal texts null unless permitted."""
    event = REGISTRY.aggregates[row.stream_type].events[row.event_type]
    payload = event.upcast(orjson.loads(row.payload), row.schema_version)
    shown = {
        "payload": payload if texts else event.without_texts(payload),
        "schema_version": max(row.schema_version, event.schema_version),
        "principal_name": names[row.principal_id, row.surface_id],
    }
    return row._asdict() | shown


def version_after(cursor: str | None) -> int:
    """Return the version that a history page starts behind."""
    if cursor is None:
        return 0
    (version,) = decode_cursor(cursor, 1)
    if not (version.isascii() and version.isdigit() and int(version) < 2**31):
        raise malformed_cursor()
    return int(version)
