"""The names of people, read from their profiles when those have changed."""

import asyncio

from baton.domain.agent.redaction import NameBook, Person, book_of
from baton.infrastructure.postgres.store import PostgresStore

STATE = "SELECT count(*), sum(xmin::text::bigint) FROM access_actor_profile"
"""What differs after every change: each write has a transaction of its own. Clocks of several hosts may disagree."""
PEOPLE = """
SELECT name, email, phone, external_id FROM access_actor_profile AS profile
WHERE NOT EXISTS (
    SELECT FROM events WHERE stream_type = 'Actor' AND stream_id = profile.actor_id AND version = 1
    AND payload ->> 'kind' <> 'human'
)
"""


class PostgresPeople:
    """Keeps the book until a look at the profiles shows that it is out of date."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._reading = asyncio.Lock()
        self._state: tuple[int, int | None] | None = None
        self._book = NameBook()

    async def book(self) -> NameBook:
        async with self._reading, self._store.connection() as connection:
            state = await (await connection.execute(STATE)).fetchone()
            if state != self._state:
                people = map(Person._make, await (await connection.execute(PEOPLE)).fetchall())
                self._book = await asyncio.to_thread(book_of, people)
                self._state = state
        return self._book
