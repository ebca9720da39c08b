"""What tests of several stores share."""

from collections.abc import AsyncIterator

import pytest

from baton.application.ports import Store
from baton.infrastructure.postgres.pool import runtime_pool
from baton.infrastructure.postgres.store import PostgresStore
from baton.testing.store import MemoryStore


@pytest.fixture(params=["memory", "postgres"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """A store of either kind, with nothing in it."""
    if request.param == "memory":
        yield MemoryStore()
        return
    async with runtime_pool(request.getfixturevalue("database_url"), 2) as pool:
        yield PostgresStore(pool)
