"""What tests of the command line share."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from baton.cli.embedded.postgres import EmbeddedPostgres
    from baton.cli.embedded.temporal import EmbeddedTemporal
    from tests.support.cli.daily_service import DailyService


@pytest.fixture(scope="module")
async def daily_service(
    postgres: "EmbeddedPostgres", template: str, temporal: "EmbeddedTemporal", tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator["DailyService"]:
    """A small beamline on a real service for the tests of a module."""
    from tests.support.cli.daily_service import open_daily_service
    from tests.support.databases import fresh_database

    with fresh_database(postgres, template) as url:
        async with open_daily_service(url, temporal.address, tmp_path_factory.mktemp("config")) as daily_service:
            yield daily_service
