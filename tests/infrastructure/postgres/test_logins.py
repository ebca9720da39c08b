"""Who logs in to the database: the service as somebody who can add to the log alone, migrations as the owner of it."""

import os
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.domain.trust.zone import DefineZone, ListZones
from baton.infrastructure.background import Supervisor
from baton.infrastructure.postgres.migrate import migrate
from baton.infrastructure.postgres.pool import dedicated_connection, runtime_pool
from baton.infrastructure.postgres.projections import Projector, rebuild, unbuilt_projections
from baton.infrastructure.postgres.schema_version import can_rewrite_log, has_current_form, may_migrate
from baton.infrastructure.postgres.store import PostgresStore
from tests.support.application.command_paths import CommandCaller
from tests.support.databases import with_database
from tests.support.service import running_api
from tests.support.stack import run_baton
from tests.support.tables import for_each
from tests.support.waiting import until

PRODUCTION = {
    "APP_ENV": "production",
    "REQUIRE_AUTHENTICATED_PRINCIPAL": "true",
    "AUTHORIZATION_MODE": "policy",
    "COMPUTE_SUBSTRATE": "local_process",
    "COMPUTE_JOB_DIRECTORY": "/var/tmp/jobs",
    "IDENTITY_PROVIDERS": '[{"issuer": "https://id.example.org", "jwks_url": "https://id.example.org/keys", '
    '"audiences": {"00000000-0000-0000-0000-000000000020": "baton"}}]',
}


@pytest.fixture
def empty_database(postgres: EmbeddedPostgres) -> Iterator[str]:
    """The name of an empty database that belongs to the owner."""
    name = f"logins_{os.getpid()}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} OWNER baton_owner")
        yield name
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def runtime_url(postgres: EmbeddedPostgres, database_url: str) -> str:
    """A migrated database, as the service logs in to it."""
    return with_database(postgres.runtime_url, database_url.partition("?")[0].rpartition("/")[2])


@for_each(
    "statement",
    [
        "UPDATE events SET command_name = 'x'",
        "DELETE FROM events",
        "TRUNCATE events",
        "SET ROLE baton_owner",
        "SET ROLE baton",
        "SET SESSION AUTHORIZATION baton",
        "SELECT * FROM pg_authid",
        "SELECT pg_read_file('PG_VERSION')",
        "COPY events TO PROGRAM 'cat'",
        "CREATE TABLE mine (id int)",
        "ALTER ROLE baton_runtime SUPERUSER",
    ],
)
def test_the_service_cannot_rewrite_the_log_or_become_somebody_who_can(runtime_url: str, statement: str) -> None:
    with psycopg.connect(runtime_url, autocommit=True) as connection, pytest.raises(InsufficientPrivilege):
        connection.execute(statement)


def test_neither_the_service_nor_the_owner_is_a_superuser(postgres: EmbeddedPostgres) -> None:
    for url, name in ((postgres.runtime_url, "baton_runtime"), (postgres.owner_url, "baton_owner")):
        with psycopg.connect(url) as connection:
            found = connection.execute(
                "SELECT session_user::text, rolsuper, rolcreaterole, rolcreatedb FROM pg_roles WHERE rolname = session_user"
            ).fetchone()
        assert found == (name, False, False, False)


def test_their_passwords_are_in_files_of_their_own_and_not_in_what_names_the_database(postgres: EmbeddedPostgres) -> None:
    for url in (postgres.runtime_url, postgres.owner_url):
        role = url.partition("//")[2].partition("@")[0]
        file = postgres.directory / f"{role}.pgpass"
        assert file.stat().st_mode & 0o077 == 0
        assert file.read_text().rpartition(":")[2].strip() not in url
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(url.partition("&passfile=")[0], password="guessed")


async def test_the_service_serves_and_projects_under_its_own_login(runtime_url: str) -> None:
    async with running_api(runtime_url) as api:
        position = await api.post("/actors", {"name": "Mira"})
        listed = await api.get("/actors", min_position=position.headers["X-Baton-Position"])
        assert "Mira" in listed.text
    assert not can_rewrite_log(runtime_url)
    assert not may_migrate(runtime_url)


async def test_the_owner_migrates_and_rebuilds_and_the_service_sees_the_form(
    postgres: EmbeddedPostgres, empty_database: str
) -> None:
    owner_url, runtime_url = (
        with_database(postgres.owner_url, empty_database),
        with_database(postgres.runtime_url, empty_database),
    )
    assert not has_current_form(runtime_url)
    migrate(owner_url)
    assert has_current_form(runtime_url)
    async with runtime_pool(runtime_url, 2) as pool:
        await CommandCaller(PostgresStore(pool)).do(DefineZone(name="Hutch"))
    assert await rebuild(owner_url, [ListZones.summary.relation]) == 1
    with pytest.raises(InsufficientPrivilege):
        await rebuild(runtime_url, [ListZones.summary.relation])
    with psycopg.connect(owner_url) as owner:
        owner.execute("UPDATE projections SET built_at = NULL WHERE relation = %s", (ListZones.summary.relation,))
    async with (
        await dedicated_connection(runtime_url) as connection,
        Supervisor().supervise("projections", Projector(runtime_url, 0.02, owner_url).run),
    ):

        async def is_built() -> bool:
            return not await unbuilt_projections(connection)

        await until(is_built)


def test_production_refuses_a_login_that_can_rewrite_the_log(postgres: EmbeddedPostgres, database_url: str) -> None:
    ran = run_baton("projector", DATABASE_URL=database_url, **PRODUCTION)
    assert ran.returncode == 2
    assert ran.stderr.startswith("baton: DATABASE_URL logs in as a user who can rewrite the log, which APP_ENV=production")
