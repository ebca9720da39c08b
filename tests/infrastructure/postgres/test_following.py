"""Followers of the log skip nothing that is in flight and repeat nothing, however transactions interleave."""

from dataclasses import dataclass, field

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from baton.application.ports import Bookmark, EventRow
from baton.domain.views.event_log import ListEvents
from baton.infrastructure.postgres.pool import RUNTIME_OPTIONS
from baton.infrastructure.postgres.statements import AHEAD, AT_TIME, END, FOLLOW, FOLLOW_ONLY, PLACES, search
from baton.infrastructure.postgres.store import PostgresStore
from tests.infrastructure.postgres.test_long_streams import read_by
from tests.support.application.command_paths import CommandCaller
from tests.support.domain.world import new_id
from tests.support.infrastructure.database_observer import Connection, insert_event

BEGINNING = Bookmark(0, 0)
BEGINNING_VALUES = ("0", 0)
MANY_ZONES = """
INSERT INTO events (event_id, stream_type, stream_id, version, event_type, payload, principal_id, command_name,
    correlation_id, occurred_at)
SELECT gen_random_uuid(), 'Zone', gen_random_uuid(), 1, 'ZoneDefined', json_build_object('name', 'Hutch'),
    gen_random_uuid(), 'Written', gen_random_uuid(), clock_timestamp()
FROM generate_series(1, 2000)
"""


@dataclass
class Follower:
    """Reads on from its bookmark, a few rows at a time."""

    store: PostgresStore
    bookmark: Bookmark = BEGINNING
    seen: list[EventRow] = field(default_factory=list)

    async def look(self, limit: int = 1000) -> list[int]:
        """The positions that are new."""
        rows = await self.store.follow(self.bookmark, limit)
        if rows:
            self.bookmark = Bookmark(rows[-1].transaction_id, rows[-1].position)
            self.seen += rows
        return [row.position for row in rows]


async def test_a_later_position_waits_for_an_earlier_one_in_flight(
    store: PostgresStore, second_connection: Connection, owner: Connection
) -> None:
    follower = Follower(store)
    held = await insert_event(second_connection)
    committed = await insert_event(owner)
    assert held < committed
    assert await follower.look() == []
    await second_connection.commit()
    assert await follower.look() == [held, committed]
    assert await follower.look() == []


async def test_a_rolled_back_insert_leaves_a_gap_and_holds_nobody_back(
    store: PostgresStore, second_connection: Connection, owner: Connection
) -> None:
    follower = Follower(store)
    held = await insert_event(second_connection)
    committed = await insert_event(owner)
    await second_connection.rollback()
    assert await follower.look() == [committed]
    assert held not in {row.position for row in follower.seen}


async def test_a_broken_connection_counts_as_rolled_back(
    store: PostgresStore, second_connection: Connection, owner: Connection
) -> None:
    follower = Follower(store)
    await insert_event(second_connection)
    committed = await insert_event(owner)
    await second_connection.close()
    position = None
    while position is None:
        position = next(iter(await follower.look()), None)
    assert position == committed


async def test_order_is_by_transaction_where_positions_cross(
    store: PostgresStore, second_connection: Connection, database_url: str
) -> None:
    """The older transaction also holds the newest position: both its rows come first."""
    async with await psycopg.AsyncConnection.connect(database_url, options=RUNTIME_OPTIONS) as other:
        first = await insert_event(second_connection)
        second = await insert_event(other)
        third = await insert_event(second_connection)
        follower = Follower(store)
        await other.commit()
        assert await follower.look() == []
        await second_connection.commit()
        assert await follower.look(limit=2) == [first, third]
        assert await follower.look(limit=2) == [second]


async def test_a_reader_in_a_long_transaction_holds_nobody_back(
    store: PostgresStore, client: CommandCaller, second_connection: Connection
) -> None:
    """Only writers have a transaction id; a report that reads for an hour must not stop the projections."""
    await second_connection.execute("SELECT count(*) FROM events")
    committed = await insert_event(second_connection)
    await second_connection.commit()
    await second_connection.execute("SELECT count(*) FROM events")
    assert await Follower(store).look() == [committed]


WRITERS = 4
steps = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.integers(0, WRITERS - 1)),
        st.tuples(st.just("commit"), st.integers(0, WRITERS - 1)),
        st.tuples(st.just("rollback"), st.integers(0, WRITERS - 1)),
        st.tuples(st.just("look"), st.integers(1, 3)),
    ),
    max_size=40,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=steps)
async def test_no_interleaving_makes_a_follower_skip_or_repeat(
    store: PostgresStore, database_url: str, steps: list[tuple[str, int]]
) -> None:
    follower = Follower(store)
    while await follower.look():
        pass
    follower.seen.clear()
    committed: set[int] = set()
    writers = [await psycopg.AsyncConnection.connect(database_url, options=RUNTIME_OPTIONS) for _ in range(WRITERS)]
    pending: list[set[int]] = [set() for _ in writers]
    try:
        for step, number in steps:
            match step:
                case "insert":
                    pending[number].add(await insert_event(writers[number]))
                case "commit":
                    await writers[number].commit()
                    committed |= pending[number]
                    pending[number] = set()
                case "rollback":
                    await writers[number].rollback()
                    pending[number] = set()
                case "look":
                    assert set(await follower.look(limit=number)) <= committed
        for writer, positions in zip(writers, pending, strict=True):
            await writer.commit()
            committed |= positions
        while await follower.look(limit=3):
            pass
    finally:
        for writer in writers:
            await writer.close()
    seen = [row.position for row in follower.seen]
    assert sorted(seen) == sorted(committed)
    assert follower.seen == sorted(follower.seen, key=lambda row: (row.transaction_id, row.position))


FOLLOWING = {
    "the log": (FOLLOW, (*BEGINNING_VALUES, 50)),
    "the places of events": (PLACES, (*BEGINNING_VALUES, 50)),
    "some types": (FOLLOW_ONLY, (*BEGINNING_VALUES, 50, ["ZoneDefined"])),
    "the next of some types": (AHEAD, (*BEGINNING_VALUES, ["ZoneDefined"], 50)),
    "the end": (END, ()),
}


@pytest.mark.parametrize("name", FOLLOWING)
async def test_a_follower_that_is_far_behind_reads_no_more_than_it_takes(
    name: str, owner: Connection, second_connection: Connection
) -> None:
    await owner.execute(MANY_ZONES)
    await owner.execute("ANALYZE events")
    query, values = FOLLOWING[name]
    explained = await second_connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", values)
    (plan,) = await explained.fetchone() or ()
    assert read_by(plan[0]["Plan"]) <= 5 * 50


SEARCHES = {
    "events_of_principal": search(ListEvents(principal_id=new_id()), BEGINNING, 1000),
    "events_of_request": search(ListEvents(correlation_id=new_id()), BEGINNING, 1000),
    "events_naming_assets": search(ListEvents(asset_id=new_id()), BEGINNING, 1000),
    "events_recorded": (AT_TIME, ["2026-01-01T00:00:00Z"]),
}


@pytest.mark.parametrize("index", SEARCHES)
async def test_an_index_serves_each_search_of_the_log(index: str, owner: Connection) -> None:
    await owner.execute(MANY_ZONES)
    await owner.execute("ANALYZE events")
    query, values = SEARCHES[index]
    plan = await (await owner.execute(f"EXPLAIN {query}", values)).fetchall()
    assert index in "\n".join(line for (line,) in plan)
