"""A database that cannot be reached: said so, nothing half done, and well again as soon as it is back."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from baton.application.ports import Bookmark, CommandResult, KeyClaim, StoreUnavailableError
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.domain.access.actor import ActorProfile, RegisterActor
from baton.domain.kernel import Command
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.domain.trust.zone import DefineZone
from baton.infrastructure.postgres import pool as pool_module
from baton.infrastructure.postgres.pool import TIMEOUTS, Pool, dedicated_connection, runtime_pool
from baton.infrastructure.postgres.store import PostgresStore
from tests.support.application.command_paths import OPERATOR, START, CommandCaller
from tests.support.domain.world import expect_refusal, new_id
from tests.support.infrastructure.database_observer import Connection, rows, until_waiting
from tests.support.waiting import until


@asynccontextmanager
async def outage(postgres: EmbeddedPostgres, database: str) -> AsyncIterator[None]:
    """Close a database to everybody, and end the sessions that are open."""
    async with await psycopg.AsyncConnection.connect(postgres.url, autocommit=True) as connection:
        await connection.execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS false")
        await until(lambda: is_without_sessions(connection, database))
        try:
            yield
        finally:
            await connection.execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")


async def is_without_sessions(connection: Connection, database: str) -> bool:
    """End the sessions of a database, and return whether the server agrees that none is left.

    A session that is just beginning shows in no list yet, but keeps its database from being renamed.
    """
    await connection.execute("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s", (database,))
    try:
        await connection.execute(f"ALTER DATABASE {database} RENAME TO {database}_away")
    except psycopg.errors.ObjectInUse:
        return False
    await connection.execute(f"ALTER DATABASE {database}_away RENAME TO {database}")
    return True


@pytest.fixture
def database(database_url: str) -> str:
    return database_url.partition("?")[0].rsplit("/", 1)[1]


@pytest.fixture(autouse=True)
def impatient_pool(pool: Pool) -> None:
    pool.timeout = 0.2


def claim(key: str) -> KeyClaim:
    return KeyClaim(OPERATOR, key, SYSTEM_HTTP, "DefineZone", "a" * 64, START)


async def load_stream(store: PostgresStore) -> Any:
    async with store.session() as session:
        return await session.load("Zone", [new_id()])


async def read_under_lock(store: PostgresStore) -> Any:
    async with store.session("gate") as session:
        return await session.members("kind", ["key"])


async def read_record(store: PostgresStore) -> Any:
    async with store.session() as session:
        return await session.records(ActorProfile, {"actor_id": new_id()})


ASKED: list[Callable[[PostgresStore], Any]] = [
    load_stream,
    read_under_lock,
    read_record,
    lambda store: store.newer("Zone", {}),
    lambda store: store.follow(Bookmark(0, 0), 10),
    lambda store: store.locate(1),
    lambda store: store.end(),
    lambda store: store.last_position(),
    lambda store: store.ahead(Bookmark(0, 0), ["ZoneDefined"], 10),
    lambda store: store.has_passed("projections", 1),
    lambda store: store.claim_key(claim("retry-1"), START),
    lambda store: store.release_key(claim("retry-1")),
]


@pytest.mark.parametrize("ask", ASKED)
async def test_an_unreachable_store_says_so(
    store: PostgresStore, postgres: EmbeddedPostgres, database: str, ask: Callable[[PostgresStore], Any]
) -> None:
    async with outage(postgres, database):
        for _ in range(2):
            with pytest.raises(StoreUnavailableError) as caught:
                await ask(store)
    assert caught.value.status == 503


async def test_commands_and_queries_are_refused_and_work_again_afterwards(
    client: CommandCaller, postgres: EmbeddedPostgres, database: str
) -> None:
    zone = await client.create(DefineZone(name="Before"))
    async with outage(postgres, database):
        with expect_refusal(StoreUnavailableError):
            await client.do(DefineZone(name="During"), key="retry-1")
        with expect_refusal(StoreUnavailableError):
            await client.versions("Zone", zone)
    executed = await answer_when_back(client, DefineZone(name="During"), "retry-1")
    assert not executed.replayed
    assert len(await client.store.follow(Bookmark(0, 0), 10)) == 2


async def test_a_connection_that_breaks_before_the_append_leaves_nothing_behind(
    client: CommandCaller, owner: Connection
) -> None:
    """It breaks when the event's id is drawn: after the decision, before anything is written."""
    drawn: list[UUID] = []

    def break_connections() -> UUID:
        drawn.append(new_id())
        if len(drawn) == 1:
            end_all_but(owner)
        return drawn[-1]

    with expect_refusal(StoreUnavailableError):
        await replace(client, new_id=break_connections).do(RegisterActor(name="Mira"), key="retry-1")
    assert await rows(owner, "SELECT FROM events") == []
    assert await rows(owner, "SELECT FROM access_actor_profile") == []
    client.clock.now += timedelta(seconds=60)
    executed = await answer_when_back(client, RegisterActor(name="Mira"), "retry-1")
    assert not executed.replayed
    assert len(await rows(owner, "SELECT FROM events")) == 1


class TestLostAnswers:
    """What reached the server may have been done although nobody heard of it."""

    @pytest.fixture
    async def line(self, database_url: str) -> AsyncIterator["Line"]:
        with TemporaryDirectory() as directory:
            line = Line(Path(directory), database_url)
            async with await asyncio.start_unix_server(line.connect, line.socket):
                yield line
                line.cut()

    @pytest.fixture
    async def remote_service(self, line: "Line") -> AsyncIterator[CommandCaller]:
        """A service that reaches its database over that line."""
        async with runtime_pool(line.url, 1) as pool:
            yield CommandCaller(PostgresStore(pool))

    async def test_a_commit_whose_answer_was_lost_is_replayed(
        self, remote_service: CommandCaller, line: "Line", owner: Connection
    ) -> None:
        async def is_committed() -> bool:
            return bool(await rows(owner, "SELECT FROM events"))

        line.cut_when = is_committed
        with expect_refusal(StoreUnavailableError):
            await remote_service.do(RegisterActor(name="Mira"), key="retry-1")
        ((id,),) = await rows(owner, "SELECT stream_id FROM events")
        again = await answer_when_back(remote_service, RegisterActor(name="Mira"), "retry-1")
        assert (again.replayed, again.body) == (True, {"actor_id": str(id)})
        assert len(await rows(owner, "SELECT FROM events")) == 1

    async def test_an_append_that_was_given_up_on_does_not_commit_behind_a_released_key(
        self, remote_service: CommandCaller, line: "Line", owner: Connection, second_connection: Connection
    ) -> None:
        """The server still works on the append when the caller has already been told to repeat."""
        await second_connection.execute("LOCK TABLE access_actor_profile IN ACCESS EXCLUSIVE MODE")
        request = asyncio.create_task(remote_service.do(RegisterActor(name="Mira"), key="retry-1"))
        await until_waiting(owner)
        line.cut()
        with expect_refusal(StoreUnavailableError):
            await request
        await until(lambda: is_released(owner))
        await second_connection.rollback()
        await until(lambda: nobody_waits(owner))
        executed = await answer_when_back(remote_service, RegisterActor(name="Mira"), "retry-1")
        assert not executed.replayed
        assert len(await rows(owner, "SELECT FROM events")) == 1


class Line:
    """A wire to the server that can be cut: at once, or once, before an answer, as soon as something is true."""

    def __init__(self, directory: Path, url: str) -> None:
        there = conninfo_to_dict(url)
        self._far_end = f"{there['host']}/.s.PGSQL.{there['port']}"
        self.socket = directory / f".s.PGSQL.{there['port']}"
        self.url = make_conninfo(url, host=str(directory))
        self.cut_when: Callable[[], Awaitable[bool]] | None = None
        self._ends: list[asyncio.StreamWriter] = []

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_unix_connection(self._far_end)
        self._ends += [writer, far_writer]
        await asyncio.gather(self._there(reader, far_writer), self._back(far_reader, writer), return_exceptions=True)
        writer.close()
        far_writer.close()

    async def _there(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if self.cut_when is not None and await self.cut_when():
                self.cut_when = None
                break
            writer.write(data)
            await writer.drain()
        writer.close()

    def cut(self) -> None:
        for end in self._ends:
            end.close()
        self._ends.clear()


async def answer_when_back(client: CommandCaller, command: Command, key: str) -> CommandResult:
    """The answer, as soon as the store can be reached again."""

    async def answer_or_none() -> CommandResult | None:
        try:
            return await client.do(command, key=key)
        except StoreUnavailableError:
            return None

    executed = await until(answer_or_none)
    assert isinstance(executed, CommandResult)
    return executed


async def is_released(owner: Connection) -> bool:
    return not await rows(owner, "SELECT FROM idempotency")


async def nobody_waits(owner: Connection) -> bool:
    waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return not await rows(owner, waiting)


def end_all_but(owner: Connection) -> None:
    """End every other backend of the database, and wait until they are gone."""
    with psycopg.connect(owner.info.dsn, password=owner.info.password, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid NOT IN (pg_backend_pid(), %s)",
            (owner.info.backend_pid,),
        )


async def test_nobody_waits_for_ever_on_a_server_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TIMEOUTS, "connect_timeout", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/baton"
        async with asyncio.timeout(30):
            with pytest.raises(psycopg.OperationalError, match="timeout"):
                await dedicated_connection(place)


async def test_the_first_request_after_an_outage_that_nobody_met_is_answered(
    postgres: EmbeddedPostgres, database: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections that were idle then died with the server, and the pool has not noticed."""
    store = PostgresStore(pool)
    monkeypatch.setattr(pool_module, "TESTED_AFTER_SECONDS", 0.0)
    pool.timeout = 30
    await store.end()
    async with outage(postgres, database):
        pass
    await store.end()
