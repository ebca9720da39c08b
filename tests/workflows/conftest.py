"""One record for all the tests of a module: what each of them needs is one of its own."""

from collections.abc import AsyncIterator, Iterator

import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.temporal import EmbeddedTemporal
from tests.support.databases import fresh_database
from tests.support.workflows.conduct_stack import ConductStack
from tests.support.workflows.many_conducts import ManyConducts


@pytest.fixture(scope="module")
def database(postgres: EmbeddedPostgres, template: str) -> Iterator[str]:
    """A migrated database for a module's tests."""
    with fresh_database(postgres, template) as url:
        yield url


@pytest.fixture(scope="module")
def many_conducts() -> ManyConducts:
    return ManyConducts()


@pytest.fixture(scope="module")
async def watched_stack(
    many_conducts: ManyConducts, database: str, temporal: EmbeddedTemporal
) -> AsyncIterator[ConductStack]:
    """A stack with a watched worker for a module's tests."""
    async with many_conducts.open_stack(database, temporal.address) as stack:
        yield stack
