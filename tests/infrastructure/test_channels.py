"""What every store says of a run's channels: what its readings come to, however they came."""

import random
from typing import Any
from uuid import UUID

from baton.application.ports import Batch, Store
from baton.domain.kernel import Call
from baton.domain.run.logbooks import Channel, ListRunObservations, Observation, channels_of
from baton.domain.shared.listing import Where
from baton.domain.shared.writes import Enter
from baton.domain.trust.surface import SYSTEM_HTTP
from tests.support.domain.world import OPERATOR, START, new_id
from tests.support.infrastructure.readings import reading

RUNS = [new_id() for _ in range(3)]


async def append(store: Store, *entries: Observation) -> None:
    call = Call(OPERATOR, SYSTEM_HTTP, START, new_id(), new_id())
    async with store.session() as session:
        await session.append(Batch(call, "AppendObservations", entries=[Enter(entries)]))


async def channels(store: Store, run_id: UUID) -> Any:
    async with store.session() as session:
        return await session.records(Channel, {"run_id": run_id})


async def readings(store: Store, run_id: UUID) -> list[Any]:
    async with store.session() as session:
        page = await session.page(Observation, ListRunObservations(limit=100), [Where("run_id", "is", run_id)])
        assert page.next_cursor is None
        return list(page.items)


async def test_channels_are_what_the_stored_readings_come_to(store: Store) -> None:
    chance = random.Random(7)
    sent: list[Observation] = []
    for number in range(25):
        fresh = [
            reading(
                chance.choice(RUNS),
                channel_name=f"channel_{chance.randrange(5)}",
                value=number / 7,
                units=chance.choice(["K", None]),
                simulated=chance.random() < 0.05,
            )
            for _ in range(chance.randrange(1, 9))
        ]
        repeated = chance.sample(sent, min(len(sent), 3))
        await append(store, *chance.sample([*fresh, *repeated], len(fresh) + len(repeated)))
        sent += fresh
    found = {run_id: await channels(store, run_id) for run_id in RUNS}
    assert found == {run_id: channels_of(await readings(store, run_id)) for run_id in RUNS}
    assert sum(channel.count for of_run in found.values() for channel in of_run) == len(sent)


async def test_a_run_without_readings_has_no_channels(store: Store) -> None:
    await append(store, reading(RUNS[0]))
    assert await channels(store, RUNS[1]) == ()


async def test_the_reading_recorded_last_counts_not_the_one_sampled_last(store: Store) -> None:
    await append(store, reading(RUNS[0], value=1.0, sampled_at="2030-01-01T00:00:00Z"))
    await append(store, reading(RUNS[0], value=2.0, sampled_at="2020-01-01T00:00:00Z"))
    [channel] = await channels(store, RUNS[0])
    assert (channel.latest_value, channel.latest_sampled_at.year, channel.count) == (2.0, 2020, 2)
    assert channel.first_recorded_at < channel.latest_recorded_at


async def test_one_simulated_reading_marks_its_channel_for_good(store: Store) -> None:
    for simulated in (False, True, False):
        await append(store, reading(RUNS[0], simulated=simulated))
    await append(store, reading(RUNS[0], channel_name="ring_current"))
    assert [(channel.channel_name, channel.simulated) for channel in await channels(store, RUNS[0])] == [
        ("T_sample", True),
        ("ring_current", False),
    ]
