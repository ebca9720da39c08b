"""Readings as they are stored: finite, insert-only, and summed up by channel as they come."""

import asyncio

import pytest
from psycopg.errors import CheckViolation, InsufficientPrivilege

from baton.application.ports import Batch
from baton.domain.kernel import Call
from baton.domain.run.logbooks import Observation
from baton.domain.shared.writes import Enter
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.infrastructure.postgres.pool import dedicated_connection
from baton.infrastructure.postgres.store import PostgresStore
from tests.support.domain.world import OPERATOR, START, new_id
from tests.support.infrastructure.database_observer import Connection, rows
from tests.support.infrastructure.readings import reading

INSERT = """
INSERT INTO entries_run_observations (event_id, run_id, logbook_id, actor_id, command_name, channel_name, value,
    sampling_procedure, simulated, sampled_at, correlation_id, occurred_at)
SELECT gen_random_uuid(), id, id, id, 'AppendObservations', 'T_sample', %s, 'monitor', false, now(), id, now()
FROM (SELECT gen_random_uuid() AS id) AS run
"""
SUMMED = """
SELECT run_id, channel_name, count(*), min(recorded_at), bool_or(simulated), max(recorded_at),
    (array_agg(value ORDER BY recorded_at DESC, event_id DESC))[1],
    (array_agg(units ORDER BY recorded_at DESC, event_id DESC))[1],
    (array_agg(sampled_at ORDER BY recorded_at DESC, event_id DESC))[1]
FROM entries_run_observations GROUP BY run_id, channel_name ORDER BY run_id, channel_name
"""
KEPT = """
SELECT run_id, channel_name, count, first_recorded_at, simulated, latest_recorded_at, latest_value, units, latest_sampled_at
FROM run_channels ORDER BY run_id, channel_name
"""
RUN = new_id()


async def append(store: PostgresStore, *entries: Observation) -> None:
    call = Call(OPERATOR, SYSTEM_HTTP, START, new_id(), new_id())
    async with store.session() as session:
        await session.append(Batch(call, "AppendObservations", entries=[Enter(entries)]))


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
async def test_what_is_no_finite_number_is_stored_by_no_writer(owner: Connection, value: str) -> None:
    with pytest.raises(CheckViolation):
        await owner.execute(INSERT, (value,))
    assert await rows(owner, "SELECT FROM entries_run_observations") == []
    await owner.execute(INSERT, ("1.7976931348623157e308",))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries_run_observations SET value = 0",
        "DELETE FROM entries_run_observations",
        "UPDATE run_channels SET count = 0",
        "DELETE FROM run_channels",
        "INSERT INTO run_channels SELECT * FROM run_channels",
        "DROP TRIGGER sum_up_run_channels ON entries_run_observations",
    ],
)
async def test_what_was_recorded_cannot_be_changed(store: PostgresStore, database_url: str, change: str) -> None:
    await append(store, reading(RUN))
    async with await dedicated_connection(database_url) as runtime:
        with pytest.raises(InsufficientPrivilege):
            await runtime.execute(change)


async def test_a_batch_of_nothing_but_repeats_changes_no_channel(store: PostgresStore, owner: Connection) -> None:
    one = reading(RUN)
    await append(store, one)
    before = await rows(owner, KEPT)
    await append(store, one.model_copy(update={"value": 1.0, "channel_name": "other"}))
    assert await rows(owner, KEPT) == before


async def test_appends_that_meet_on_the_same_channels_in_any_order_are_all_kept(
    store: PostgresStore, owner: Connection
) -> None:
    names = [f"channel_{number}" for number in range(20)]

    async def append_readings(number: int) -> None:
        ordered = names if number % 2 else names[::-1]
        for _ in range(10):
            await append(store, *(reading(RUN, channel_name=name, value=float(number)) for name in ordered))

    await asyncio.gather(*(append_readings(number) for number in range(8)))
    assert [row[1:3] for row in await rows(owner, KEPT)] == [(name, 80) for name in sorted(names)]
    assert await rows(owner, KEPT) == await rows(owner, SUMMED)
