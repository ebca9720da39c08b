"""Migrations: applied once, by the first to come, with any number of processes starting at the same moment."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
import sqlalchemy
from alembic import command

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.domain.contexts import REGISTRY
from baton.domain.data.dataset import DIGESTS
from baton.domain.equipment.signals import SIGNALS
from baton.domain.run.run import LIVE_RUNS
from baton.domain.shared.file_addresses import BELIEVED_COPIES
from baton.infrastructure.postgres.migrate import (
    MIGRATION_LOCK,
    alchemy_url,
    alembic_configuration,
    migrate,
    pending_migrations,
)
from tests.support.api.data_products import register_copy, register_dataset, verify_copies
from tests.support.api.rest_beamline import beamline
from tests.support.databases import with_database
from tests.support.forked_commands import FORKS
from tests.support.service import Api
from tests.support.tables import for_each

STATE = {
    "tables": "SELECT oid, relname, relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY oid",
    "columns": "SELECT table_name, column_name, data_type, column_default FROM information_schema.columns "
    "WHERE table_schema = 'public' ORDER BY 1, 2",
    "grants": "SELECT table_name, grantee, privilege_type FROM information_schema.role_table_grants "
    "WHERE table_schema = 'public' ORDER BY 1, 2, 3",
    "versions": "SELECT version_num FROM alembic_version",
    "projections": "SELECT relation, definition, built_at FROM projections ORDER BY 1",
    "bookmarks": "SELECT * FROM bookmarks",
}


@pytest.fixture
def empty_url(postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database nobody has migrated."""
    name = f"empty_{os.getpid()}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield with_database(postgres.url, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def state(url: str) -> dict[str, Any]:
    with psycopg.connect(url) as connection:
        return {name: connection.execute(query).fetchall() for name, query in STATE.items()}


def without_identity(found: dict[str, Any]) -> dict[str, Any]:
    """Return what two databases that were migrated alike have in common."""
    names = sorted(row[1] for row in found["tables"])
    definitions = [row[:2] for row in found["projections"]]
    return {**found, "tables": names, "projections": definitions, "bookmarks": len(found["bookmarks"])}


def test_an_empty_database_needs_every_migration_and_then_none(empty_url: str) -> None:
    assert pending_migrations(empty_url) != []
    migrate(empty_url)
    assert pending_migrations(empty_url) == []


def test_migrating_makes_every_projection_and_marks_it_built(database_url: str) -> None:
    found = state(database_url)["projections"]
    assert {row[0] for row in found} == set(REGISTRY.projections)
    assert all(row[2] is not None for row in found)


def test_migrating_again_changes_nothing(database_url: str) -> None:
    before = state(database_url)
    migrate(database_url)
    assert state(database_url) == before


def test_several_processes_may_migrate_at_once(empty_url: str, database_url: str) -> None:
    processes = [FORKS.Process(target=migrate, args=(empty_url,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(100)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert without_identity(state(empty_url)) == without_identity(state(database_url))


def test_a_migration_waits_for_one_that_is_under_way(database_url: str) -> None:
    """The lock is given back by a session that ends in the middle of it, too."""
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with (
        psycopg.connect(database_url, autocommit=True) as other,
        psycopg.connect(database_url, autocommit=True) as owner,
        ThreadPoolExecutor() as threads,
    ):
        other.execute("SELECT pg_advisory_lock(%s)", (MIGRATION_LOCK,))
        migration = threads.submit(migrate, database_url)
        while owner.execute(waiting).fetchone() == (0,):
            assert not migration.done()
        owner.execute("SELECT pg_terminate_backend(%s, 10000)", (other.info.backend_pid,))
        migration.result(timeout=100)


def migrate_again(url: str, before: str, revision: str) -> None:
    """Apply one migration to a database that has had it."""
    with sqlalchemy.create_engine(alchemy_url(url), poolclass=sqlalchemy.NullPool).connect() as connection:
        configuration = alembic_configuration()
        configuration.attributes["connection"] = connection
        command.stamp(configuration, before)
        command.upgrade(configuration, revision)
        command.stamp(configuration, "head")
        connection.commit()


async def test_owners_of_signals_are_found_in_the_events_of_before(api: Api, database_url: str) -> None:
    """The migration writes the very rows that the commands have written."""
    await api.create("/federation/facilities", {"code": "lumen", "display_name": "Lumen", "kind": "Site"})

    async def register(*identifiers: tuple[str, str]) -> str:
        named = [{"kind": kind, "value": value} for kind, value in identifiers]
        described = {"name": "Stage", "tier": "Device", "facility_code": "lumen"}
        return await api.create("/assets", {**described, "alternate_identifiers": named})

    async def change(asset_id: str, verb: str, kind: str, value: str) -> None:
        await api.execute(f"/assets/{asset_id}/{verb}-alternate-identifier", {"kind": kind, "value": value})

    stage = await register(("EPICS_PV", "BL:ROT"), ("EPICS_PV", "BL:LIN"), ("SerialNumber", "BL:SERIAL"))
    await change(stage, "add", "EPICS_PV", "BL:CAM")
    await change(stage, "add", "Other", "BL:CAM")
    await change(stage, "remove", "Other", "BL:CAM")
    await change(stage, "remove", "EPICS_PV", "BL:LIN")
    await change(stage, "remove", "EPICS_PV", "BL:ROT")
    await change(stage, "add", "EPICS_PV", "BL:ROT")
    twin, former = await register(("EPICS_PV", "BL:ROT")), await register(("EPICS_PV", "BL:OLD"))
    await api.execute(f"/assets/{former}/decommission")

    with psycopg.connect(database_url, autocommit=True) as connection:

        def rows() -> set[tuple[str, str]]:
            found = connection.execute("SELECT key, stream_id::text FROM lookups WHERE kind = %s", (SIGNALS,))
            return set(found.fetchall())

        written = rows()
        assert written == {("BL:CAM", stage), ("BL:ROT", stage), ("BL:ROT", twin)}
        migrate_again(database_url, "0011", "0012")
        assert rows() == written
        connection.execute("DELETE FROM lookups WHERE kind = %s", (SIGNALS,))
        migrate_again(database_url, "0011", "0012")
        assert rows() == written


@for_each(
    "url",
    [
        "postgresql://baton@db.example.org/baton",
        "postgres://baton@db.example.org/baton",
        "postgresql+psycopg://baton@db.example.org/baton",
        "postgresql+asyncpg://baton@db.example.org/baton",
    ],
)
def test_every_usual_spelling_of_a_database_address_is_understood(url: str) -> None:
    assert str(alchemy_url(url)) == "postgresql+psycopg://baton@db.example.org/baton"


async def test_live_runs_are_found_in_the_events_of_before(api: Api, database_url: str) -> None:
    """The migration writes the very rows that the commands have written; ended runs have none."""
    line = await beamline(api)
    first, second, third = [await line.start_run() for _ in range(3)]
    await api.execute(f"/runs/{first}/complete")
    await api.execute(f"/runs/{second}/hold", {"reason": "top-up"})
    rows = "SELECT key, stream_id::text FROM lookups WHERE kind = %s ORDER BY stream_id"
    with psycopg.connect(database_url, autocommit=True) as connection:
        written = connection.execute(rows, (LIVE_RUNS,)).fetchall()
        assert written == [(line.plan_id, second), (line.plan_id, third)]
        connection.execute("DELETE FROM lookups WHERE kind = %s", (LIVE_RUNS,))
        migrate_again(database_url, "0015", "0016")
        assert connection.execute(rows, (LIVE_RUNS,)).fetchall() == written


async def test_datasets_are_found_by_their_bytes_in_the_events_of_before(api: Api, database_url: str) -> None:
    """The migration writes the very rows that the commands have written; Discarded datasets have none."""
    kept, gone = await register_dataset(api), await register_dataset(api)
    await api.execute(f"/datasets/{gone}/discard", {"reason": "wrong sample"})
    rows = "SELECT key, stream_id::text FROM lookups WHERE kind = %s"
    with psycopg.connect(database_url, autocommit=True) as connection:
        written = connection.execute(rows, (DIGESTS,)).fetchall()
        assert [id for _, id in written] == [kept]
        connection.execute("DELETE FROM lookups WHERE kind = %s", (DIGESTS,))
        migrate_again(database_url, "0020", "0021")
        assert connection.execute(rows, (DIGESTS,)).fetchall() == written


async def test_copies_are_found_by_their_addresses_in_the_events_of_before(api: Api, database_url: str) -> None:
    """The migration writes the very rows that the commands have written; Stale and Discarded copies have none."""
    datasets = [await register_dataset(api, uri=f"file:///data/Gerät {number}/") for number in range(4)]
    copies = [await register_copy(api, dataset) for dataset in datasets]
    await verify_copies(api, copies[1])
    await api.execute(f"/distributions/{copies[2]}/mark-stale", {"reason": "disk array lost"})
    await api.execute(f"/distributions/{copies[3]}/discard", {"reason": "moved"})
    rows = "SELECT key, stream_id::text FROM lookups WHERE kind = %s ORDER BY stream_id"
    with psycopg.connect(database_url, autocommit=True) as connection:
        written = connection.execute(rows, (BELIEVED_COPIES,)).fetchall()
        assert [id for _, id in written] == copies[:2]
        connection.execute("DELETE FROM lookups WHERE kind = %s", (BELIEVED_COPIES,))
        migrate_again(database_url, "0018", "0019")
        assert connection.execute(rows, (BELIEVED_COPIES,)).fetchall() == written
