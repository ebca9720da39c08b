"""What tests of the console share."""

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.console.code_issuer import CodeIssuer
from tests.support.console.hall import Hall, open_hall
from tests.support.databases import fresh_database
from tests.support.service import Api, running_api

if TYPE_CHECKING:  # most tests of pages need no browser
    from playwright.async_api import Browser

    from baton.cli.embedded.postgres import EmbeddedPostgres


@pytest.fixture(scope="module")
def issuer() -> Iterator[CodeIssuer]:
    """An identity provider at which people sign in."""
    with CodeIssuer.running_server() as issuer:
        yield issuer


@pytest.fixture(scope="module")
def module_database(postgres: "EmbeddedPostgres", template: str) -> Iterator[str]:
    """The database of a module's tests."""
    with fresh_database(postgres, template) as url:
        yield url


@pytest.fixture(scope="module")
async def api(module_database: str) -> AsyncIterator[Api]:
    """One permissive service for all tests of a module."""
    async with running_api(module_database, facility_time_zone="Europe/Berlin") as api:
        yield api


@pytest.fixture(scope="module")
async def hall(api: Api) -> Hall:
    """A beamline on which runs start, with a plan and two recipes."""
    return await open_hall(api)


@pytest.fixture(scope="package")
async def browser() -> AsyncIterator["Browser"]:
    """A browser for all journeys; everybody opens windows of their own."""
    from tests.support.console.browser import open_browser

    async with open_browser() as browser:
        yield browser
