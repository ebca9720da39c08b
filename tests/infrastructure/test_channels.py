"""What every store says of a run's channels: what its readings come to, however they came."""

import random
from typing import Any
from uuid import UUID

from baton.application.ports import Batch, Store
from baton.domain.kernel import Call
from baton.domain.procedure.activity_logbook import Activity
from baton.domain.procedure.procedure import PHASES
from baton.domain.run.logbooks import Channel, ListRunObservations, Observation, channels_of
from baton.domain.shared.listing import Where
from baton.domain.shared.logbooks import Entry
from baton.domain.shared.writes import Enlist, Enter
from baton.domain.step.results import ActuationKind
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


def captured_row(procedure_id: UUID, value: float, pass_number: int, **payload: Any) -> Activity:
    """The row of a step that captured the sharpness of a pass."""
    place = {"conduct_id": procedure_id, "iteration_index": pass_number, "closing": False, "step_index": 0, "attempt": 1}
    own = {"procedure_id": procedure_id, "step_kind": "capture", "slot": "sharpness", "mark": "outcome", **place}
    says = {"result": "ok", "capture_name": "sharpness", "captured_value": value, **payload}
    written = dict(reading(procedure_id, command_name="ConductProcedure"))
    shared = {name: written[name] for name in (*Entry.model_fields, "sampled_at") if name != "recorded_at"}
    return Activity(**shared, **own, payload=says)


async def test_what_steps_of_phases_captured_are_readings_in_their_order(store: Store) -> None:
    run_id, phase, alone = new_id(), new_id(), new_id()
    call = Call(OPERATOR, SYSTEM_HTTP, START, new_id(), new_id())
    writes: list[list[Any]] = [
        [reading(run_id, channel_name="sharpness", value=1.0)],
        [captured_row(phase, 2.0, 1, captured_unit="um"), captured_row(alone, 9.0, 1)],
        [reading(run_id, value=3.0)],
        [
            captured_row(
                phase,
                4.0,
                2,
                actuation_kind=ActuationKind.SIMULATED.value,
                reading={"units": "mm", "sampled_at": "2020-01-01T00:00:00Z"},
            )
        ],
    ]
    for rows in writes:
        async with store.session() as session:
            enlistments = [(Enlist(PHASES, str(run_id)), phase)]
            await session.append(Batch(call, "Any", enlistments=enlistments, entries=[Enter([one]) for one in rows]))
    for order, values in (("asc", [1.0, 2.0, 3.0, 4.0]), ("desc", [4.0, 3.0, 2.0, 1.0])):
        found, cursor = list[Any](), None
        while cursor is not None or not found:
            query = ListRunObservations(limit=1, order=order, cursor=cursor)
            async with store.session() as session:
                page = await session.page(Observation, query, [Where("run_id", "is", run_id)])
            found, cursor = [*found, *page.items], page.next_cursor
        assert [one.value for one in found] == values
    assert [(one.channel_name, one.units, one.sampling_procedure) for one in found[:3]] == [
        ("sharpness", "mm", "capture"),
        ("T_sample", "K", "monitor"),
        ("sharpness", "um", "capture"),
    ]
    other, sharp = await channels(store, run_id)
    assert (other.channel_name, other.count, sharp.channel_name, sharp.count) == ("T_sample", 1, "sharpness", 3)
    assert (sharp.latest_value, sharp.units, sharp.simulated, sharp.latest_sampled_at.year) == (4.0, "mm", True, 2020)
