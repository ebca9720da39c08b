"""Of a long stream only what is not overwritten is read, and it leads to the same state."""

from typing import Any
from uuid import UUID

from psycopg_pool import AsyncConnectionPool

from baton.application.ports import Batch, StreamAppend
from baton.domain.contexts import REGISTRY
from baton.domain.equipment.asset import AssetFamilyAdded, AssetRenamed
from baton.domain.kernel import NIL, Call, Event, State
from baton.domain.schedule.schedule import Schedule, ScheduleFired, ScheduleFiringRefused, ScheduleHeld
from baton.domain.shared.reads import LatestEvents
from baton.infrastructure.postgres.pool import dedicated_connection, runtime_pool
from baton.infrastructure.postgres.statements import SHORT, endless_stream
from baton.infrastructure.postgres.store import PostgresStore
from tests.domain.test_replay import BORN
from tests.support.domain.schedules import define_schedule
from tests.support.domain.world import START, World, new_id

ASSET, SCHEDULE = REGISTRY.aggregates["Asset"], REGISTRY.aggregates["Schedule"]


async def store_with(pool: AsyncConnectionPool, id: UUID, events: list[Event]) -> PostgresStore:
    store = PostgresStore(pool)
    call = Call(principal_id=NIL, surface_id=NIL, now=START, new_id=id, correlation_id=new_id())
    stamped = [(new_id(), event.stamp(id, START)) for event in events]
    async with store.session() as session:
        await session.append(Batch(call, "Given", [StreamAppend(events[0].aggregate.name, id, 0, stamped)]))
    return store


async def test_a_long_stream_is_read_without_what_was_overwritten(database_url: str) -> None:
    families = [new_id() for _ in range(5)]
    renames = [AssetRenamed(name=f"Stage {number}") for number in range(3 * SHORT)]
    life: list[Event] = [BORN, *renames, *(AssetFamilyAdded(family_id=id) for id in families), AssetRenamed(name="Last")]
    id = new_id()
    async with runtime_pool(database_url, 2) as pool:
        store = await store_with(pool, id, life)
        async with store.session() as session:
            rows = await session.load("Asset", [id])
            many = await session.load("Asset", [id, new_id()])
    assert [row.event_type for row in rows] == ["AssetRegistered", *["AssetFamilyAdded"] * 5, "AssetRenamed"]
    assert rows[-1].version == len(life)
    state: State | None = ASSET.fold(life)
    assert ASSET.replay(rows) == ASSET.replay(many) == state


async def test_a_short_stream_is_read_whole(database_url: str) -> None:
    life: list[Event] = [BORN, *(AssetRenamed(name=f"Stage {number}") for number in range(SHORT - 1))]
    id = new_id()
    async with runtime_pool(database_url, 2) as pool:
        store = await store_with(pool, id, life)
        async with store.session() as session:
            rows = await session.load("Asset", [id])
    assert [row.version for row in rows] == list(range(1, SHORT + 1))


async def test_a_schedule_that_has_fired_for_months_is_read_as_fast_as_a_new_one(database_url: str) -> None:
    world = World()
    (born,) = world.streams["Schedule", define_schedule(world)]
    fired: list[Event] = [
        ScheduleFired(scheduled_at=START, run_id=None, procedure_id=new_id(), count=number) for number in range(1, 4 * SHORT)
    ]
    refused = ScheduleFiringRefused(scheduled_at=START, code="UnauthorizedError", detail="no", count=len(fired) + 1)
    life: list[Event] = [born, *fired, refused]
    id = new_id()
    async with runtime_pool(database_url, 2) as pool:
        store = await store_with(pool, id, life)
        async with store.session() as session:
            rows = await session.load("Schedule", [id])
            last = await session.load_latest(LatestEvents(Schedule, id, (ScheduleFired, ScheduleFiringRefused), 3))
    assert [row.event_type for row in rows] == ["ScheduleDefined", "ScheduleFired", "ScheduleFiringRefused"]
    assert SCHEDULE.replay(rows) == SCHEDULE.fold(life)
    assert [row.version for row in last] == [len(life), len(life) - 1, len(life) - 2]


async def test_a_schedule_that_has_fired_for_years_is_read_without_passing_over_its_firings(database_url: str) -> None:
    world = World()
    (born,) = world.streams["Schedule", define_schedule(world)]
    fired: list[Event] = [
        ScheduleFired(scheduled_at=START, run_id=None, procedure_id=new_id(), count=number) for number in range(1, 5000)
    ]
    life: list[Event] = [born, *fired, ScheduleHeld(reason="beam dump")]
    id = new_id()
    async with runtime_pool(database_url, 2) as pool:
        store = await store_with(pool, id, life)
        async with store.session() as session:
            rows = await session.load("Schedule", [id])
        async with await dedicated_connection(database_url, owner=True) as connection:
            await connection.execute("ANALYZE events")
            query = f"EXPLAIN (ANALYZE, FORMAT JSON) {endless_stream('Schedule')}"
            (plan,) = await (await connection.execute(query, {"id": id})).fetchone() or ()
    assert [row.event_type for row in rows] == ["ScheduleDefined", "ScheduleFired", "ScheduleHeld"]
    assert SCHEDULE.replay(rows) == SCHEDULE.fold(life)
    assert read_by(plan[0]["Plan"]) <= 2 * len(rows)


def read_by(plan: dict[str, Any]) -> int:
    """Rows that the scans of a plan looked at."""
    below = sum(read_by(part) for part in plan.get("Plans", ()))
    if "Scan" not in plan["Node Type"]:
        return below
    looks: int = plan["Actual Loops"] * (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0))
    return below + looks
