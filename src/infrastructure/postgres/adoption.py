"""Records that came from another cluster. Followers read the log in the order of its transactions, by the numbers that the
cluster gave them: where a record was restored into a cluster that counts lower, whatever is recorded from now on would come
before what followers have read already, and nobody would ever see it. Such a record is refused until it is adopted."""

from typing import NamedTuple

import psycopg

from baton.infrastructure.postgres.pool import OWNER_OPTIONS, Connection

IS_AHEAD = "SELECT EXISTS (SELECT FROM events WHERE transaction_id >= pg_snapshot_xmax(pg_current_snapshot()))"
AHEAD = (
    "The record was restored from another PostgreSQL cluster, which had counted its transactions further than this one: no "
    "list, feed or agent would see what is recorded from now on. Stop all processes and run `baton restore --adopt` once."
)
LOWEST = 3  # the first number that a cluster gives to a transaction
READ_ALL_UP_TO = """least({follower}.position, (SELECT min(position) - 1 FROM events
    WHERE (transaction_id, position) > ({follower}.transaction_id::text::xid8, {follower}.position)))"""
"""The place in the order of positions up to which a follower has read everything; the rest it may read again."""


class RecordAheadError(Exception):
    """The record is ahead of the cluster that holds it."""

    def __init__(self) -> None:
        super().__init__(AHEAD)


class AdoptedRecord(NamedTuple):
    """How many events were given the lowest number, and how many followers a place among them."""

    events: int
    followers: int


async def refuse_ahead(connection: Connection) -> None:
    """Raise RecordAheadError for a record that is ahead of its cluster."""
    row = await (await connection.execute(IS_AHEAD)).fetchone()
    if row and row[0]:
        raise RecordAheadError


def adopt(url: str) -> AdoptedRecord | None:
    """Make a record at home in this cluster, as its owner: order is that of positions, and followers continue where they
    were. Return None where it is at home already."""
    with psycopg.connect(url, options=OWNER_OPTIONS, connect_timeout=10) as connection:
        connection.execute("LOCK TABLE events, bookmarks, reactions IN EXCLUSIVE MODE")
        [(ahead,)] = connection.execute(IS_AHEAD).fetchall()
        if not ahead:
            return None
        followers = 0
        for table, number in (("bookmarks", f"'{LOWEST}'::xid8"), ("reactions", f"{LOWEST}")):
            place = READ_ALL_UP_TO.format(follower=table)
            followers += connection.execute(f"UPDATE {table} SET transaction_id = {number}, position = {place}").rowcount
        events = connection.execute(f"UPDATE events SET transaction_id = '{LOWEST}'::xid8").rowcount
    return AdoptedRecord(events, followers)
