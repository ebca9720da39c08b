"""The state of a long stream is kept and folded on, and is always what the database says it is."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from baton.application.commands import execute_with_retry
from baton.application.fold_cache import CHARACTERS_AN_EVENT, LARGE, LONG, MANY, FoldCache, FoldedStream
from baton.application.ports import Batch, Session, StreamAppend
from baton.application.unit_of_work import load_state, load_streams
from baton.domain.contexts import REGISTRY
from baton.domain.equipment.asset import Asset, AssetRenamed, RenameAsset
from baton.domain.kernel import NIL, Call
from baton.infrastructure.postgres.store import PostgresStore
from tests.domain.test_replay import BORN
from tests.support.application.command_paths import CommandCaller
from tests.support.domain.world import START, new_id
from tests.support.infrastructure.database_observer import Connection

asset = Asset.aggregate
GET_ASSET = REGISTRY.operations["get_asset"].input


async def append_names(session: Session, id: UUID, after: int, *names: str, seconds: int = 0) -> None:
    """Append so many names to a stream, its registration before the first."""
    now = START + timedelta(seconds=seconds)
    call = Call(principal_id=NIL, surface_id=NIL, now=now, new_id=id, correlation_id=new_id())
    events = [*([] if after else [BORN]), *(AssetRenamed(name=name) for name in names)]
    stamped = [(new_id(), event.stamp(id, now)) for event in events]
    await session.append(Batch(call, "Given", [StreamAppend(asset.name, id, after, stamped)]))


async def register_long_stream(store: PostgresStore, names: int = 2 * LONG) -> UUID:
    id = new_id()
    async with store.session() as session:
        await append_names(session, id, 0, *(f"Stage {number}" for number in range(names)))
    return id


def name_of(stream: FoldedStream) -> str:
    assert isinstance(stream.state, Asset)
    return stream.state.name


async def known_name(store: PostgresStore, id: UUID) -> str:
    state = await load_state(store, Asset, id)
    assert state is not None
    return state.name


async def remove_events(owner: Connection, id: UUID, after: int) -> None:
    """Put the stream back to what it was, as restoring a backup does."""
    await owner.execute("ALTER TABLE events DISABLE TRIGGER ALL")
    await owner.execute("DELETE FROM events WHERE stream_id = %s AND version > %s", (id, after))
    await owner.execute("ALTER TABLE events ENABLE TRIGGER ALL")


async def test_a_long_stream_that_did_not_change_is_not_folded_again(store: PostgresStore) -> None:
    id = await register_long_stream(store)
    assert await load_state(store, Asset, id) is await load_state(store, Asset, id)


async def test_what_others_wrote_meanwhile_is_folded_on(store: PostgresStore, pool: Any) -> None:
    id = await register_long_stream(store)
    before = await load_state(store, Asset, id)
    async with PostgresStore(pool).session() as elsewhere:
        await append_names(elsewhere, id, 2 * LONG + 1, "Elsewhere", "Elsewhere again")
    async with store.session() as session:
        found = (await load_streams(session, asset, [id]))[id]
        rows = await session.load(asset.name, [id], {id: found.version - 2})
        whole = asset.replay(await session.load(asset.name, [id]))
    assert found.state == whole
    assert (found.version, found.position) == (2 * LONG + 3, rows[-1].position)
    assert [row.version for row in rows] == [found.version - 2, found.version - 1, found.version]
    assert before is not None
    assert before.name == f"Stage {2 * LONG - 1}"  # states that somebody holds stay as they are


async def test_streams_that_are_kept_and_others_are_loaded_together(store: PostgresStore) -> None:
    kept, unread, short = await asyncio.gather(
        *(register_long_stream(store, names) for names in (2 * LONG, 2 * LONG + 1, 3))
    )
    await load_state(store, Asset, kept)
    missing = new_id()
    async with store.session() as session:
        found = await load_streams(session, asset, [short, missing, kept, unread])
    assert {id: stream.version for id, stream in found.items()} == {kept: 2 * LONG + 1, unread: 2 * LONG + 2, short: 4}


async def test_short_streams_are_kept_where_many_are_read_together(store: PostgresStore) -> None:
    ids = await asyncio.gather(*(register_long_stream(store, 2) for _ in range(MANY)))
    async with store.session() as session:
        await load_streams(session, asset, ids[:-1])
        assert not session.folds.find(asset.name, ids), "these were too few"
        await load_streams(session, asset, ids)
        assert len(session.folds.find(asset.name, ids)) == MANY
        await append_names(session, ids[0], 3, "Renamed since")
        found = await load_streams(session, asset, ids)
    assert (found[ids[0]].version, name_of(found[ids[0]])) == (4, "Renamed since")
    assert name_of(found[ids[1]]) == "Stage 1"


async def test_rivals_on_a_long_stream_lose_no_command(client: CommandCaller, store: PostgresStore) -> None:
    id = await register_long_stream(store)

    renames = [RenameAsset(name=f"Rival {number}") for number in range(12)]
    await asyncio.gather(*(execute_with_retry(client.commands, one, client.caller, target_id=id) for one in renames))
    async with store.session() as session:
        whole = asset.replay(await session.load(asset.name, [id]))
        versions = [row.version for row in await session.history(asset.name, id, 2 * LONG, 100)]
    assert await load_state(store, Asset, id) == whole
    assert versions == list(range(2 * LONG + 1, 2 * LONG + 14))


async def test_the_past_of_a_stream_that_is_kept_is_read_from_the_log(client: CommandCaller, store: PostgresStore) -> None:
    id = await register_long_stream(store)
    assert await known_name(store, id) == f"Stage {2 * LONG - 1}"
    assert (await client.ask(GET_ASSET(as_of_version=LONG + 2), on=id)).name == f"Stage {LONG}"


async def test_a_snapshot_from_before_sees_its_own_moment(store: PostgresStore) -> None:
    id = await register_long_stream(store)

    async def write_on() -> None:
        async with store.session() as session:
            await append_names(session, id, 2 * LONG + 1, "Later")
        assert await known_name(store, id) == "Later"

    async with store.snapshot() as snapshot:
        assert (await load_streams(snapshot, asset, [id]))[id].version == 2 * LONG + 1
        await asyncio.create_task(write_on())
        seen = (await load_streams(snapshot, asset, [id]))[id]
    assert (seen.version, name_of(seen)) == (2 * LONG + 1, f"Stage {2 * LONG - 1}")
    assert await known_name(store, id) == "Later"


async def test_what_was_rolled_back_is_not_kept(store: PostgresStore) -> None:
    id = await register_long_stream(store)

    async def fail() -> None:
        async with store.session(lock="rolled back") as session:
            await append_names(session, id, 2 * LONG + 1, "Never")
            assert name_of((await load_streams(session, asset, [id]))[id]) == "Never"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await known_name(store, id) == f"Stage {2 * LONG - 1}"
    async with store.session() as session:
        await append_names(session, id, 2 * LONG + 1, "Instead")
    assert await known_name(store, id) == "Instead"


async def test_a_restored_database_is_believed(store: PostgresStore, owner: Connection) -> None:
    id = await register_long_stream(store)
    assert await known_name(store, id) == f"Stage {2 * LONG - 1}"
    await remove_events(owner, id, after=LONG + 1)
    assert await known_name(store, id) == f"Stage {LONG - 1}"


async def test_a_restored_database_that_went_on_is_believed_even_at_the_same_positions(
    store: PostgresStore, owner: Connection
) -> None:
    id = await register_long_stream(store)
    async with store.session() as session:
        kept = (await load_streams(session, asset, [id]))[id]
    await remove_events(owner, id, after=kept.version - 2)
    await owner.execute("SELECT setval(pg_get_serial_sequence('events', 'position'), %s)", (kept.position - 2,))
    async with store.session() as session:
        await append_names(session, id, kept.version - 2, "Other", "Other still", seconds=1)
        row = (await session.load(asset.name, [id]))[-1]
    assert (row.version, row.position) == (kept.version, kept.position)
    assert await known_name(store, id) == "Other still"


def folded_stream(version: int) -> FoldedStream:
    state: Any = asset.fold([BORN.model_copy().stamp(new_id(), START)])
    return FoldedStream(state, version, version, START)


def large_stream(largest: int) -> FoldedStream:
    return folded_stream(1)._replace(largest=largest)


class TestMemory:
    def test_short_streams_are_not_kept(self) -> None:
        cache, stream = FoldCache(), folded_stream(LONG)
        cache.keep("Asset", stream)
        assert cache.find("Asset", [stream.state.id]) == {}

    def test_a_short_stream_with_a_large_event_is_kept_and_counts_for_more(self) -> None:
        cache, streams = FoldCache(max_events=2 * LARGE // CHARACTERS_AN_EVENT), [large_stream(LARGE + 1) for _ in range(3)]
        for stream in streams:
            cache.keep("Asset", stream)
        assert [stream.state.id in cache.find("Asset", [stream.state.id]) for stream in streams] == [False, True, True]
        cache.keep("Asset", small := large_stream(LARGE))
        assert cache.find("Asset", [small.state.id]) == {}

    def test_what_was_used_longest_ago_makes_room(self) -> None:
        cache, streams = FoldCache(max_events=300), [folded_stream(100) for _ in range(4)]
        for stream in [*streams[:3], streams[0], streams[3]]:
            cache.keep("Asset", stream)
        assert [stream.state.id in cache.find("Asset", [stream.state.id]) for stream in streams] == [True, False, True, True]

    def test_a_stream_that_grows_counts_once(self) -> None:
        cache, other = FoldCache(max_events=300), folded_stream(100)
        cache.keep("Asset", other)
        grown = folded_stream(100)
        for version in range(100, 200):
            cache.keep("Asset", grown._replace(version=version))
        assert set(cache.find("Asset", [other.state.id, grown.state.id])) == {other.state.id, grown.state.id}

    def test_a_stream_that_outgrows_everything_is_let_go(self) -> None:
        cache, stream = FoldCache(max_events=300), folded_stream(300)
        cache.keep("Asset", stream)
        cache.keep("Asset", stream._replace(version=301))
        assert cache.find("Asset", [stream.state.id]) == {}
