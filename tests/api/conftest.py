"""What tests of the edge share."""

from collections.abc import AsyncIterator, Iterator

import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from tests.support.databases import fresh_database
from tests.support.infrastructure.identity_provider import Issuer
from tests.support.service import Api, running_api


@pytest.fixture(scope="module")
async def api(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[Api]:
    """The service on a real socket, permissive, with its projector; the tests of a module share one record."""
    with fresh_database(postgres, template) as url:
        async with running_api(url) as api:
            yield api


@pytest.fixture
async def fresh_api(database_url: str) -> AsyncIterator[Api]:
    """The same service on a record of the test's own."""
    async with running_api(database_url) as api:
        yield api


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    """An issuer of tokens, served over HTTP."""
    with Issuer.running_server() as issuer:
        yield issuer
