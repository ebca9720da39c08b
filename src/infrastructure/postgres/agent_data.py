"""What agents need to know: the names of people, read again when profiles have changed, and their own spending."""

import asyncio
from datetime import datetime
from uuid import UUID

from baton.domain.agent.agent import SpentAmounts, day_start, month_start, next_day, next_month
from baton.domain.agent.redaction import KnownPerson, NameBook, name_book
from baton.infrastructure.postgres.store import PostgresStore

STATE = "SELECT count(*), sum(xmin::text::bigint) FROM access_actor_profile"  # other after every change
PEOPLE = """SELECT name, email, phone, external_id FROM access_actor_profile AS profile
WHERE NOT EXISTS (
    SELECT FROM events WHERE stream_type = 'Actor' AND stream_id = profile.actor_id AND version = 1
    AND payload ->> 'kind' <> 'human'
)"""


class PostgresPeople:
    """Keeps the book of names until the profiles have changed."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._reading = asyncio.Lock()
        self._state: tuple[int, int | None] | None = None
        self._book = NameBook()

    async def book(self) -> NameBook:
        async with self._reading, self._store.connection() as connection:
            state = await (await connection.execute(STATE)).fetchone()
            if state != self._state:
                people = map(KnownPerson._make, await (await connection.execute(PEOPLE)).fetchall())
                self._book = await asyncio.to_thread(name_book, people)
                self._state = state
        return self._book


SPENT = """SELECT coalesce(sum(cost), 0)::double precision,
    coalesce(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0))
        FILTER (WHERE occurred_at >= %(day)s AND occurred_at < %(next_day)s), 0)::bigint
FROM entries_decision_inferences
WHERE actor_id = %(agent)s AND occurred_at >= %(month)s AND occurred_at < %(next_month)s"""


class PostgresSpending:
    """Sums the rows that an agent has appended itself, by the time they count for."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def of(self, agent_id: UUID, at: datetime) -> SpentAmounts:
        windows = {"month": month_start(at), "next_month": next_month(at), "day": day_start(at), "next_day": next_day(at)}
        async with self._store.connection() as connection:
            row = await (await connection.execute(SPENT, {"agent": agent_id, **windows})).fetchone()
        assert row is not None, "a sum always has a row"
        return SpentAmounts(*row)
