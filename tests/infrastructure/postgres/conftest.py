"""The store on a database of its own, and connections that hold transactions open beside it."""

from collections.abc import AsyncIterator

import psycopg
import pytest

from baton.infrastructure.postgres.pool import RUNTIME_OPTIONS, Pool, dedicated_connection, runtime_pool
from baton.infrastructure.postgres.store import PostgresStore
from tests.support.application.command_paths import CommandCaller
from tests.support.infrastructure.database_observer import Connection


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    async with runtime_pool(database_url, 8) as pool:
        yield pool


@pytest.fixture
async def store(pool: Pool) -> PostgresStore:
    return PostgresStore(pool)


@pytest.fixture
async def client(store: PostgresStore) -> CommandCaller:
    return CommandCaller(store)


@pytest.fixture
async def owner(database_url: str) -> AsyncIterator[Connection]:
    """Somebody who may see and change everything, each statement at once."""
    async with await dedicated_connection(database_url, owner=True) as connection:
        yield connection


@pytest.fixture
async def second_connection(database_url: str) -> AsyncIterator[Connection]:
    """A writer of the runtime role whose transaction stays open until it is told otherwise."""
    connection = await psycopg.AsyncConnection.connect(database_url, options=RUNTIME_OPTIONS)
    try:
        yield connection
    finally:
        await connection.close()
