"""Reads of the record outside any decision: states, events, rows, and streams that are polled."""

import asyncio
from typing import Any, Generic, TypeVar, cast
from uuid import UUID

from baton.application.ports import Store
from baton.application.unit_of_work import decode_event
from baton.domain.kernel import Event, State
from baton.domain.shared.writes import Record

S = TypeVar("S", bound=State)
E = TypeVar("E", bound=Event)
R = TypeVar("R", bound=Record)

FIRST_POLL_SECONDS, LONGEST_POLL_SECONDS = 0.05, 1.0  # grows with the time it takes


async def load_state(store: Store, state: type[S], id: UUID) -> S | None:
    """Return an aggregate's present state; None where there is none."""
    async with store.session() as session:
        rows = await session.load(state.aggregate.name, [id])
    return cast("S | None", state.aggregate.replay(rows))


async def require_state(store: Store, state: type[S], id: UUID) -> S:
    """Return the present state of an aggregate that exists."""
    known = await load_state(store, state, id)
    assert known is not None, "what is worked on is on record"
    return known


async def load_events(store: Store, id: UUID, *events: type[E]) -> list[E]:
    """Return the events of these types on one stream, oldest first."""
    aggregate = events[0].aggregate
    async with store.session() as session:
        rows = await session.load_of(aggregate.name, id, [event.__name__ for event in events])
    return [cast("E", decode_event(aggregate, row)) for row in rows]


async def load_row(store: Store, record: type[R], **where: Any) -> R | None:
    """Return the row with these values; None where there is none."""
    async with store.session() as session:
        rows = await session.records(record, where)
    return rows[0] if rows else None


class StreamWatch(Generic[S]):
    """A stream that is polled; only newer events are read each time."""

    def __init__(self, store: Store, state: type[S], id: UUID) -> None:
        self._store = store
        self._aggregate: Any = state.aggregate
        self._id = id
        self._state: S | None = None
        self._version = 0

    async def look(self) -> S:
        """Return the present state."""
        if self._state is None:
            async with self._store.session() as session:
                rows = await session.load(self._aggregate.name, [self._id])
            self._state = self._aggregate.replay(rows)
            assert self._state is not None, "what is watched exists"
        else:
            rows = await self._store.newer(self._aggregate.name, {self._id: self._version})
            for row in rows:
                if not self._aggregate.events[row.event_type].inert:
                    self._state = self._aggregate.after(self._state, decode_event(self._aggregate, row))
        self._version = rows[-1].version if rows else self._version
        return self._state


async def wait_longer(seconds: float) -> float:
    """Wait, and return how long to wait next time."""
    await asyncio.sleep(seconds)
    return min(seconds * 1.5, LONGEST_POLL_SECONDS)
