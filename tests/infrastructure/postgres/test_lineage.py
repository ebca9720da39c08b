"""What the provenance of datasets is read by: right in both directions, bounded, by indexes, and with as many statements for
five hundred datasets as for three."""

import random
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from baton.domain.data.acquisition import AcquisitionRecorded
from baton.domain.data.dataset import Dataset, DatasetSummary
from baton.domain.data.lineage import Lineage, LineageDirection
from baton.domain.data.provenance import GetDatasetProvenance
from baton.domain.kernel import Event
from baton.domain.run.run import Run, RunHeld, RunStarted
from baton.infrastructure.postgres.lineage import STATEMENTS, PostgresLineage
from baton.infrastructure.postgres.pool import Pool
from baton.infrastructure.postgres.store import PostgresStore
from tests.support.application.command_paths import CommandCaller, lenient
from tests.support.application.ports import ports_of
from tests.support.domain.lifecycles.run import run_started
from tests.support.domain.world import OPERATOR, START, new_id
from tests.support.infrastructure.database_observer import Connection, project
from tests.support.infrastructure.dataset_graphs import append_streams, generations, registered_dataset

ANCESTORS, DESCENDANTS = LineageDirection


@pytest.fixture
async def reader(store: PostgresStore) -> PostgresLineage:
    return PostgresLineage(store)


def expected_lineage(
    parents: Mapping[UUID, frozenset[UUID]], starts: Iterable[UUID], direction: LineageDirection, max_depth: int
) -> tuple[dict[UUID, int], bool]:
    """Return how far away each dataset is, and whether there are more, by walking over plain sets."""
    children = {id: {child for child, of in parents.items() if id in of} for id in parents}
    further = parents if direction is ANCESTORS else children
    depths = dict.fromkeys(starts, 0)
    waiting = list(depths)
    for id in waiting:
        for other in further[id]:
            if other not in depths:
                depths[other] = depths[id] + 1
                waiting.append(other)
    near = {id: depth for id, depth in depths.items() if depth <= max_depth}
    return near, len(near) < len(depths)


async def write_chain(store: PostgresStore, url: str, owner: Connection, length: int) -> list[UUID]:
    ids, streams = generations(*[1] * length)
    await append_streams(store, streams)
    await project(url, owner)
    return [generation[0] for generation in ids]


def depths_of(lineage: Lineage) -> dict[UUID, int]:
    return {node.dataset_id: node.depth for node in lineage.nodes}


class TestLineage:
    async def test_it_is_that_of_plain_sets_whatever_the_graph(
        self, store: PostgresStore, database_url: str, owner: Connection, reader: PostgresLineage
    ) -> None:
        chance = random.Random(17)
        ids = [new_id() for _ in range(80)]
        parents = {
            id: frozenset(chance.sample(ids[:place], min(place, chance.randint(0, 3)))) for place, id in enumerate(ids)
        }
        await append_streams(store, {id: [registered_dataset(f"{id}", of)] for id, of in parents.items()})
        await project(database_url, owner)
        for _ in range(40):
            starts = chance.sample(ids, chance.randint(1, 3))
            direction, depth = chance.choice([ANCESTORS, DESCENDANTS]), chance.randint(0, 8)
            found = await reader.dataset_lineage(starts, direction, depth, 1000)
            expected, more = expected_lineage(parents, starts, direction, depth)
            assert (depths_of(found), found.truncated) == (expected, more)
            assert set(found.edges) == {(one, id) for id in expected for one in parents[id] if one in expected}
            assert [*found.nodes] == sorted(found.nodes, key=lambda node: (node.depth, node.dataset_id))

    async def test_the_limit_keeps_the_nearest_and_says_that_there_is_more(
        self, store: PostgresStore, database_url: str, owner: Connection, reader: PostgresLineage
    ) -> None:
        chain = await write_chain(store, database_url, owner, 6)
        for limit in range(1, 8):
            found = await reader.dataset_lineage([chain[-1]], ANCESTORS, 100, limit)
            assert [node.dataset_id for node in found.nodes] == chain[::-1][:limit]
            assert found.truncated is (limit < 6)
            assert len(found.edges) == min(limit, 6) - 1

    async def test_at_depth_nought_there_are_only_those_asked_about(
        self, store: PostgresStore, database_url: str, owner: Connection, reader: PostgresLineage
    ) -> None:
        chain = await write_chain(store, database_url, owner, 3)
        found = await reader.dataset_lineage(chain[:2], DESCENDANTS, 0, 10)
        assert (depths_of(found), found.truncated) == (dict.fromkeys(chain[:2], 0), True)

    async def test_what_does_not_exist_has_no_lineage(self, reader: PostgresLineage) -> None:
        assert await reader.dataset_lineage([new_id()], ANCESTORS, 20, 10) == Lineage((), truncated=False)
        assert await reader.dataset_lineage([], DESCENDANTS, 20, 10) == Lineage((), truncated=False)

    @pytest.mark.parametrize("direction", [ANCESTORS, DESCENDANTS])
    async def test_each_generation_is_found_by_an_index(
        self, direction: LineageDirection, store: PostgresStore, database_url: str, owner: Connection
    ) -> None:
        ids, streams = generations(1, 10, 100, 2000)
        await append_streams(store, streams)
        await project(database_url, owner)
        values = {"ids": [ids[0][0] if direction is DESCENDANTS else ids[-1][0]], "max_depth": 20, "limit": 20_000}
        plan = await (await owner.execute(f"EXPLAIN {STATEMENTS[direction]}", values)).fetchall()
        assert not [line for (line,) in plan if "Seq Scan" in line]


def held_run(decision_id: UUID | None) -> list[Event]:
    return [run_started(), RunHeld(reason="beam lost", decided_by_decision_id=decision_id)]


class TestManyStreams:
    async def test_rows_come_by_a_value_of_a_column_or_a_member_of_a_set(
        self, store: PostgresStore, database_url: str, owner: Connection, reader: PostgresLineage
    ) -> None:
        ids, streams = generations(2, 6)
        await append_streams(store, streams)
        await project(database_url, owner)
        rows = await reader.summary_rows(DatasetSummary, ["name", "dataset_id"], "dataset_id", [*ids[0], new_id()], 10)
        assert {row["dataset_id"] for row in rows} == set(ids[0])
        assert [row["name"] for row in rows] == ["level-0-0", "level-0-1"]
        children = await reader.summary_rows(DatasetSummary, (), "derived_from", ids[0][:1], 10)
        assert {row["dataset_id"] for row in children} == set(ids[1][::2])
        assert len(await reader.summary_rows(DatasetSummary, (), "derived_from", ids[0], 4)) == 4

    async def test_events_come_with_something_under_a_key(self, store: PostgresStore, reader: PostgresLineage) -> None:
        decision, runs = new_id(), [new_id() for _ in range(3)]
        await append_streams(store, {runs[0]: held_run(decision), runs[1]: held_run(None)})
        found = await reader.events_of_streams(
            runs, (RunStarted, RunHeld), ("decided_by_decision_id", "acknowledged_cautions")
        )
        assert [(type(event), event.stream_id) for event in found] == [(RunHeld, runs[0])]
        assert await reader.stream_recorders(Run, runs) == dict.fromkeys(runs[:2], OPERATOR)
        assert await reader.stream_recorders(Dataset, runs) == {}


class CountingConnection:
    """A connection that counts what is asked of it."""

    def __init__(self, connection: Connection, asked: list[str]) -> None:
        self._connection = connection
        self._asked = asked

    async def execute(self, query: str, *given: Any, **options: Any) -> Any:
        self._asked.append(query)
        return await self._connection.execute(query, *given, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class CountingStore(PostgresStore):
    """A store that keeps what is asked of its database."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self.asked: list[str] = []

    @asynccontextmanager
    async def connection(self, *, writing: bool = False) -> AsyncIterator[Any]:
        async with super().connection(writing=writing) as connection:
            yield CountingConnection(connection, self.asked)


async def statement_count(pool: Pool, id: UUID, node_count: int) -> int:
    """Ask for the provenance of a dataset, and return how many statements that took."""
    store = CountingStore(pool)
    reader = PostgresLineage(store)
    ports = ports_of(
        deployment=lenient,
        dataset_lineage=reader.dataset_lineage,
        summary_rows=reader.summary_rows,
        stream_recorders=reader.stream_recorders,
        events_of_streams=reader.events_of_streams,
    )
    answer = await CommandCaller(store, ports=ports).ask(GetDatasetProvenance(limit=20_000, copies=True), on=id)
    assert len(answer["nodes"]) == node_count
    return len(store.asked)


async def test_five_hundred_datasets_take_no_more_statements_than_three(
    store: PostgresStore, pool: Pool, database_url: str, owner: Connection
) -> None:
    counts = []
    for sizes in ((1, 1, 1), (1, 20, 500)):
        ids, streams = generations(*sizes)
        runs: dict[UUID, list[Event]] = {new_id(): held_run(new_id()) for _ in ids[1]}
        for id, run_id in zip(ids[1], runs, strict=True):
            streams[id] = [registered_dataset(f"of {run_id}", ids[0], producing_run_id=run_id)]
        captured = {"producing_asset_id": new_id(), "captured_at": START, "settings": {}, "evidence": {}}
        born = {
            new_id(): [AcquisitionRecorded(dataset_id=id, producing_run_id=None, recorded_by=OPERATOR, **captured)]
            for id in ids[2]
        }
        await append_streams(store, {**streams, **runs, **born})
        await project(database_url, owner)
        # Each run has a plan and a decision; one camera captured everything, and one person registered it.
        counts.append(await statement_count(pool, ids[0][0], sum(sizes) + 3 * len(runs) + len(born) + 2))
    assert counts[0] == counts[1] <= 30
