"""Projections: one leader keeps them, applying twice changes nothing, and they are rebuilt while they serve."""

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest

from baton.application.queries import PROJECTIONS
from baton.domain.access.actor import DeactivateActor, RegisterActor
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import UnknownEventError
from baton.domain.shared.listing import Summary
from baton.domain.trust.surface import DefineSurface
from baton.domain.trust.visit import HoldVisit, ListVisits, RecordVisitArrival, StartVisit, Visit
from baton.domain.trust.zone import DefineZone, ListZones, zone
from baton.infrastructure.background import Supervisor
from baton.infrastructure.postgres import projections
from baton.infrastructure.postgres.leadership import PROJECTIONS_LOCK
from baton.infrastructure.postgres.migrate import migrate
from baton.infrastructure.postgres.projections import SWAP_LOCK, Projector, rebuild, unbuilt_projections
from baton.infrastructure.postgres.schema_version import current_definitions, has_current_form
from tests.support.application.command_paths import CommandCaller, planned_visit
from tests.support.domain.world import new_id
from tests.support.infrastructure.database_observer import (
    Connection,
    insert_event,
    insert_stored_streams,
    lock_holders,
    lock_waiters,
    project,
    rows,
    until_waiting,
    value,
)
from tests.support.waiting import until

VisitSummary = ListVisits.summary
VISITS, ZONES = VisitSummary.relation, ListZones.summary.relation


def running_projector(url: str) -> AbstractAsyncContextManager[None]:
    """A projector at work."""
    return Supervisor().supervise("projections", Projector(url, poll=0.02).run)


async def write_history(client: CommandCaller) -> list[UUID]:
    """Some history over several aggregates; the visits' ids come back."""
    await client.create(DefineSurface(name="Endstation A", kind="HTTP"))
    person = await client.create(RegisterActor(name="Mira"))
    await client.do(DeactivateActor(), on=person)
    await client.create(DefineZone(name="Hutch"))
    visits = [await client.create(planned_visit(external_refs={"proposal": str(number)})) for number in range(6)]
    for visit in visits[1:]:
        await client.do(RecordVisitArrival(), on=visit)
    for visit in visits[2:]:
        await client.do(StartVisit(), on=visit)
    await client.do(HoldVisit(reason="beam dump"), on=visits[3])
    return visits


async def all_rows(connection: Connection) -> dict[str, list[Any]]:
    """Every row of every projection, with the version it shows."""
    return {name: await rows(connection, f"SELECT * FROM {name} ORDER BY 1") for name in REGISTRY.projections}


async def bookmark(connection: Connection) -> tuple[Any, ...]:
    found = await rows(connection, "SELECT transaction_id::text, position FROM bookmarks WHERE follower = %s", PROJECTIONS)
    return found[0]


async def shown_zones(connection: Connection) -> set[str]:
    return {row[0] for row in await rows(connection, f"SELECT name FROM {ZONES}")}


class TestRows:
    async def test_each_row_shows_the_fold_of_its_stream(
        self, client: CommandCaller, owner: Connection, database_url: str
    ) -> None:
        visits = await write_history(client)
        await project(database_url, owner)
        columns = ", ".join(name for name in VisitSummary.model_fields)
        for visit in visits:
            async with client.store.session() as session:
                stream = list(await session.load("Visit", [visit]))
            state: Any = Visit.aggregate.replay(stream)
            (row,) = await rows(owner, f"SELECT {columns}, stream_version FROM {VISITS} WHERE visit_id = %s", visit)
            assert VisitSummary(**dict(zip(VisitSummary.model_fields, row[:-1], strict=True))) == VisitSummary.of(state)
            assert row[-1] == len(stream)

    async def test_replaying_the_log_from_the_beginning_changes_nothing(
        self, client: CommandCaller, owner: Connection, database_url: str
    ) -> None:
        await write_history(client)
        await project(database_url, owner)
        before, place = await all_rows(owner), await bookmark(owner)
        await owner.execute("UPDATE bookmarks SET transaction_id = '0', position = 0")
        await project(database_url, owner)
        assert await all_rows(owner) == before
        assert await bookmark(owner) == place

    async def test_a_projector_that_starts_in_the_middle_shows_the_same(
        self, client: CommandCaller, owner: Connection, database_url: str
    ) -> None:
        """Another leader remembers nothing: it must read the streams it continues."""
        visits = await write_history(client)
        await project(database_url, owner)
        await client.do(StartVisit(), on=visits[1])
        await project(database_url, owner)
        statuses = dict(await rows(owner, f"SELECT visit_id, status FROM {VISITS}"))
        assert [statuses[visit] for visit in visits] == ["Planned", *["InProgress"] * 2, "OnHold", *["InProgress"] * 2]

    async def test_an_older_apply_never_overwrites_a_newer_row(
        self, client: CommandCaller, owner: Connection, database_url: str
    ) -> None:
        visit = await client.create(planned_visit())
        behind = await project(database_url, owner)
        place = await bookmark(owner)
        await client.do(RecordVisitArrival(), on=visit)
        await project(database_url, owner)
        await owner.execute(f"UPDATE {VISITS} SET stream_version = 99")
        await owner.execute("UPDATE bookmarks SET transaction_id = %s::text::xid8, position = %s", place)
        await client.do(StartVisit(), on=visit)
        while await behind.advance(owner):
            pass
        assert await rows(owner, f"SELECT status, stream_version FROM {VISITS}") == [("Arrived", 99)]


class TestBatches:
    """A projector writes what streams have come to, and passes over events whose effect its rows show already."""

    async def test_a_stream_in_many_batches_is_read_once_and_written_once(
        self, client: CommandCaller, owner: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(projections, "BATCH", 3)
        await write_history(client)
        await project(database_url, owner)
        shown = await all_rows(owner)
        await rebuild(database_url, REGISTRY.projections)
        assert await all_rows(owner) == shown
        await owner.execute("UPDATE bookmarks SET transaction_id = '0', position = 0")
        written = await rows(owner, f"SELECT visit_id, xmin::text FROM {VISITS}")
        await project(database_url, owner)
        assert await rows(owner, f"SELECT visit_id, xmin::text FROM {VISITS}") == written
        assert await all_rows(owner) == shown

    async def test_what_is_in_flight_holds_back_the_bookmark_and_not_the_rows_behind_it(
        self, client: CommandCaller, second_connection: Connection, owner: Connection, database_url: str
    ) -> None:
        """A later version of a stream is committed under an older transaction; an event of another stream is in flight."""
        held, id = new_id(), new_id()
        await insert_event(second_connection, "Zone", held)
        visit = await client.create(planned_visit())
        place = await bookmark(owner)
        projector = await project(database_url, owner)
        assert await bookmark(owner) == place
        assert await rows(owner, f"SELECT FROM {VISITS}") == []
        await second_connection.commit()
        await client.do(RecordVisitArrival(), on=visit)
        await insert_event(owner, "Zone", id)
        while await projector.advance(owner):
            pass
        assert await rows(owner, f"SELECT visit_id, status, stream_version FROM {VISITS}") == [(visit, "Arrived", 2)]
        assert {row[0] for row in await rows(owner, f"SELECT zone_id FROM {ZONES}")} == {held, id}

    async def test_a_version_that_comes_before_its_predecessor_in_the_log_is_shown(
        self, client: CommandCaller, second_connection: Connection, owner: Connection, database_url: str
    ) -> None:
        """The transaction of version 2 began to write, and so got its place in the log, before version 1 was committed."""
        await insert_event(second_connection, "Zone", new_id())
        visit = await client.create(planned_visit())
        await insert_event(second_connection, "Visit", visit, 2, "VisitArrived")
        await second_connection.commit()
        ordered = await rows(
            owner, "SELECT version FROM events WHERE stream_type = 'Visit' ORDER BY transaction_id, position"
        )
        assert ordered == [(2,), (1,)]
        await project(database_url, owner)
        assert await rows(owner, f"SELECT status, stream_version FROM {VISITS}") == [("Arrived", 2)]

    async def test_rows_that_could_not_be_written_are_written_by_the_next_attempt(
        self, client: CommandCaller, owner: Connection, database_url: str
    ) -> None:
        visit = await client.create(planned_visit())
        projector = await project(database_url, owner)
        await client.do(RecordVisitArrival(), on=visit)
        await owner.execute(f"ALTER TABLE {VISITS} ADD CONSTRAINT refused CHECK (stream_version < 2)")
        with pytest.raises(psycopg.errors.CheckViolation):
            await projector.advance(owner)
        await owner.execute(f"ALTER TABLE {VISITS} DROP CONSTRAINT refused")
        assert await projector.advance(owner) == 1
        assert await rows(owner, f"SELECT status, stream_version FROM {VISITS}") == [("Arrived", 2)]


class TestEveryProjection:
    async def test_rows_show_the_folds_of_their_streams_and_rebuilding_gives_the_same_rows_and_tables(
        self, client: CommandCaller, owner: Connection, database_url: str
    ) -> None:
        """Rebuilt twice, so that what the first rebuild left is a start for the second."""
        await insert_stored_streams(owner)
        await project(database_url, owner)
        for relation, projection in REGISTRY.projections.items():
            summary, name = projection.summary, projection.aggregate.name
            found = await rows(owner, f"SELECT {', '.join(summary.model_fields)} FROM {relation}")
            shown = [summary(**dict(zip(summary.model_fields, row, strict=True))) for row in found]
            streams = await rows(owner, "SELECT DISTINCT stream_id FROM events WHERE stream_type = %s ORDER BY 1", name)
            async with client.store.session() as session:
                folded = [summary.of(projection.aggregate.replay(await session.load(name, [id]))) for (id,) in streams]
            assert folded, f"nothing was written of {name}"
            assert sorted(shown, key=first_of) == folded, relation
        projected = [projection.aggregate.name for projection in REGISTRY.projections.values()]
        events = await value(owner, "SELECT count(*) FROM events WHERE stream_type = ANY(%s)", projected)
        before, made = await all_rows(owner), await table_definitions(owner)
        for name in REGISTRY.projections:
            await owner.execute(f"UPDATE {name} SET stream_version = 0")
        for _ in range(2):
            assert await rebuild(database_url, REGISTRY.projections) == events
            assert await all_rows(owner) == before
            assert await table_definitions(owner) == made


def first_of(summary: Summary) -> Any:
    """The id of a row."""
    return next(iter(dict(summary).values()))


class TestOneTransaction:
    async def test_rows_and_bookmark_move_together_or_not_at_all(
        self, client: CommandCaller, owner: Connection, database_url: str
    ) -> None:
        """The projector dies while it waits to write its rows."""
        await client.create(DefineZone(name="Seen"))
        await project(database_url, owner)
        place = await bookmark(owner)
        await client.create(DefineZone(name="Hutch"))
        await client.create(planned_visit())
        async with owner.transaction():
            await owner.execute(f"LOCK TABLE {VISITS} IN ACCESS EXCLUSIVE MODE")
            async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
                applying = asyncio.create_task(Projector(database_url).advance(connection))
                await until_waiting(owner)
                await owner.execute("SELECT pg_terminate_backend(%s)", (connection.info.backend_pid,))
                with pytest.raises(psycopg.OperationalError):
                    await applying
        assert await bookmark(owner) == place
        assert await shown_zones(owner) == {"Seen"}
        await project(database_url, owner)
        assert await shown_zones(owner) == {"Seen", "Hutch"}
        assert len(await rows(owner, f"SELECT FROM {VISITS}")) == 1


class TestUnknownEvents:
    async def test_streams_without_a_list_are_passed_over(
        self, client: CommandCaller, owner: Connection, database_url: str
    ) -> None:
        await insert_event(owner, "Sketch", event_type="SketchDrawn")
        await client.create(DefineZone(name="Hutch"))
        await project(database_url, owner)
        assert await shown_zones(owner) == {"Hutch"}

    async def test_an_unknown_event_stops_the_projector_loudly(
        self, client: CommandCaller, owner: Connection, database_url: str
    ) -> None:
        zone = await client.create(DefineZone(name="Hutch"))
        await project(database_url, owner)
        place = await bookmark(owner)
        await client.create(DefineZone(name="In the same batch"))
        await insert_event(owner, "Zone", zone, 2, "ZoneRenamed")
        await client.create(DefineZone(name="Behind it"))
        with pytest.raises(UnknownEventError, match=r"Zone .* unknown event ZoneRenamed"):
            async with asyncio.timeout(30):
                await Projector(database_url).run()
        assert await bookmark(owner) == place
        assert await shown_zones(owner) == {"Hutch"}

    async def test_a_rebuild_does_not_skip_it_either(
        self, client: CommandCaller, owner: Connection, database_url: str
    ) -> None:
        zone = await client.create(DefineZone(name="Hutch"))
        await project(database_url, owner)
        await insert_event(owner, "Zone", zone, 2, "ZoneRenamed")
        with pytest.raises(UnknownEventError):
            await rebuild(database_url, [ZONES])
        assert await shown_zones(owner) == {"Hutch"}


class TestLeadership:
    async def test_of_two_projectors_one_leads_and_the_other_takes_over(
        self, client: CommandCaller, owner: Connection, database_url: str
    ) -> None:
        async with running_projector(database_url), running_projector(database_url):

            async def one_leads() -> list[int]:
                assert not await lock_waiters(owner, PROJECTIONS_LOCK), "a waiting session holds back vacuum"
                return await lock_holders(owner, PROJECTIONS_LOCK)

            (leader,) = await until(one_leads)  # type: ignore[misc]
            await client.create(DefineZone(name="First"))
            await until(lambda: is_shown(owner, "First"))
            await owner.execute("SELECT pg_terminate_backend(%s)", (leader,))

            async def another_leads() -> bool:
                found = await lock_holders(owner, PROJECTIONS_LOCK)
                return bool(found) and found != [leader]

            await until(another_leads)
            await client.create(DefineZone(name="Second"))
            await until(lambda: is_shown(owner, "Second"))
            await until(one_leads)

    async def test_a_leader_that_is_told_to_stop_leaves_its_place(self, owner: Connection, database_url: str) -> None:
        async with running_projector(database_url):
            await until(lambda: lock_holders(owner, PROJECTIONS_LOCK))
        await until(lambda: nobody_leads(owner))

    async def test_it_works_without_any_wake_up(self, client: CommandCaller, owner: Connection, database_url: str) -> None:
        async with running_projector(database_url):
            await until(lambda: lock_holders(owner, PROJECTIONS_LOCK))
            for name in ("First", "Second"):
                await client.create(DefineZone(name=name))
                await until(lambda name=name: is_shown(owner, name))


class TestRebuilding:
    async def test_lists_answer_and_never_shrink_while_writers_write(
        self, client: CommandCaller, database_url: str, owner: Connection
    ) -> None:
        visits = await write_history(client)
        await project(database_url, owner)
        stop = asyncio.Event()

        async def lengths() -> list[int]:
            found: list[int] = []
            while not stop.is_set():
                found.append(len((await client.ask(ListVisits(limit=100))).items))
            return found

        async def write() -> int:
            written = 0
            while not stop.is_set() and written < 90:
                await client.create(planned_visit())
                written += 1
            return written

        async with running_projector(database_url):
            readers = [asyncio.create_task(lengths()) for _ in range(2)]
            writer = asyncio.create_task(write())
            for _ in range(4):
                await rebuild(database_url, [VISITS])
            stop.set()
            seen, written = await asyncio.gather(*readers), await writer
            await until(lambda: all_visits_shown(owner))
        for found in seen:
            assert found == sorted(found)
            assert found[0] >= len(visits)
        assert written > 0
        assert len((await client.ask(ListVisits(limit=100))).items) == len(visits) + written

    async def test_what_is_committed_during_a_rebuild_is_there_afterwards(
        self, client: CommandCaller, second_connection: Connection, owner: Connection, database_url: str
    ) -> None:
        """One event is in flight when the rebuild begins, one is written after it has read; no projector helps."""
        zone = await client.create(DefineZone(name="Before"))
        held = new_id()
        await insert_event(second_connection, "Zone", held)
        async with owner.transaction():
            await owner.execute("SELECT pg_advisory_xact_lock_shared(%s)", (SWAP_LOCK,))
            rebuilding = asyncio.create_task(rebuild(database_url, [ZONES]))
            await until(lambda: lock_waiters(owner, SWAP_LOCK))
            await second_connection.commit()
            late = await client.create(DefineZone(name="Late"))
        await rebuilding
        assert {row[0] for row in await rows(owner, f"SELECT zone_id FROM {ZONES}")} == {zone, held, late}

    async def test_what_is_in_flight_at_its_end_is_applied_by_the_projector(
        self, client: CommandCaller, second_connection: Connection, owner: Connection, database_url: str
    ) -> None:
        zone, held = await client.create(DefineZone(name="Before")), new_id()
        await insert_event(second_connection, "Zone", held)
        await rebuild(database_url, [ZONES])
        assert await shown_zones(owner) == {"Before"}
        await second_connection.commit()
        await project(database_url, owner)
        assert {row[0] for row in await rows(owner, f"SELECT zone_id FROM {ZONES}")} == {zone, held}

    async def test_several_rebuilds_at_once_do_not_disturb_each_other(
        self, client: CommandCaller, owner: Connection, database_url: str
    ) -> None:
        await write_history(client)
        await project(database_url, owner)
        before, made = await all_rows(owner), await table_definitions(owner)
        await asyncio.gather(*(rebuild(database_url, [VISITS, ZONES]) for _ in range(3)))
        assert await all_rows(owner) == before
        assert await table_definitions(owner) == made

    async def test_a_rebuild_that_was_broken_off_leaves_the_old_table_serving(
        self, client: CommandCaller, owner: Connection, database_url: str
    ) -> None:
        await client.create(DefineZone(name="Hutch"))
        await project(database_url, owner)
        async with owner.transaction():
            await owner.execute("SELECT pg_advisory_xact_lock_shared(%s)", (SWAP_LOCK,))
            rebuilding = asyncio.create_task(rebuild(database_url, [ZONES]))
            (pid,) = await until(lambda: lock_waiters(owner, SWAP_LOCK))  # type: ignore[misc]
            await owner.execute("SELECT pg_terminate_backend(%s)", (pid,))
            with pytest.raises(psycopg.OperationalError):
                await rebuilding
        assert [row.name for row in (await client.ask(ListZones())).items] == ["Hutch"]
        await rebuild(database_url, [ZONES])
        assert await shown_zones(owner) == {"Hutch"}


class TestChangedDeclarations:
    async def test_a_table_that_was_declared_differently_is_made_anew_and_filled_at_the_start(
        self, client: CommandCaller, owner: Connection, database_url: str
    ) -> None:
        await write_history(client)
        await project(database_url, owner)
        before, made = await all_rows(owner), await table_definitions(owner)
        await owner.execute(f"ALTER TABLE {VISITS} ADD COLUMN old_column text")
        await owner.execute("UPDATE projections SET definition = 'of an older build' WHERE relation = %s", (VISITS,))
        await asyncio.to_thread(migrate, database_url)
        assert await table_definitions(owner) == made
        assert await unbuilt_projections(owner) == [VISITS]
        async with running_projector(database_url):
            await until(lambda: is_everything_built(owner))
        assert await all_rows(owner) == before

    async def test_what_is_declared_as_before_is_left_alone(
        self, client: CommandCaller, owner: Connection, database_url: str
    ) -> None:
        await write_history(client)
        await project(database_url, owner)
        before = await all_rows(owner)
        await asyncio.to_thread(migrate, database_url)
        assert await unbuilt_projections(owner) == []
        assert await all_rows(owner) == before

    async def test_a_changed_fold_rebuilds_its_list_at_the_next_start_while_the_old_rows_serve(
        self, client: CommandCaller, owner: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await write_history(client)
        await project(database_url, owner)
        begin = zone._begin
        monkeypatch.setattr(zone, "_begin", lambda event: replace(begin(event), name=event.name.upper()))
        current_definitions.cache_clear()  # as in the process of another build
        assert not has_current_form(database_url)
        await asyncio.to_thread(migrate, database_url)
        assert await unbuilt_projections(owner) == [ZONES]
        assert await shown_zones(owner) == {"Hutch"}
        async with running_projector(database_url):
            await until(lambda: is_everything_built(owner))
        assert await shown_zones(owner) == {"HUTCH"}
        assert has_current_form(database_url)
        current_definitions.cache_clear()


async def is_shown(connection: Connection, zone: str) -> bool:
    return zone in await shown_zones(connection)


async def nobody_leads(connection: Connection) -> bool:
    return not await lock_holders(connection, PROJECTIONS_LOCK)


async def is_everything_built(connection: Connection) -> bool:
    return not await unbuilt_projections(connection)


async def all_visits_shown(connection: Connection) -> bool:
    written = await value(connection, "SELECT count(DISTINCT stream_id) FROM events WHERE stream_type = 'Visit'")
    return bool(written == await value(connection, f"SELECT count(*) FROM {VISITS}"))


async def table_definitions(connection: Connection) -> Any:
    """Columns, indexes and grants of every projection, and whatever rebuilding left behind."""
    names = " = ANY(%s)"
    relations = list(REGISTRY.projections)
    return (
        await rows(
            connection,
            "SELECT table_name, column_name, data_type, is_nullable, ordinal_position FROM information_schema.columns "
            "WHERE table_name ~ '^(proj|next)_' ORDER BY 1, 5",
        ),
        await rows(connection, "SELECT indexname, indexdef FROM pg_indexes WHERE tablename ~ '^(proj|next)_' ORDER BY 1"),
        await rows(
            connection,
            "SELECT table_name, grantee, privilege_type FROM information_schema.role_table_grants "
            f"WHERE table_name{names} ORDER BY 1, 2, 3",
            relations,
        ),
    )
