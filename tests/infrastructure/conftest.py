"""What tests of several stores share."""

from collections.abc import AsyncIterator

import pytest

from application.ports import Store
from infrastructure.memory.store import MemoryStore
from infrastructure.postgres.pool import runtime_pool
from infrastructure.postgres.store import PostgresStore


@pytest.fixture(params=["memory", "postgres"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """A store of either kind, with nothing in it."""
    if request.param == "memory":
        yield MemoryStore()
        return
    async with runtime_pool(request.getfixturevalue("database_url"), 2) as pool:
        yield PostgresStore(pool)
