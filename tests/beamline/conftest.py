"""What tests of beamline files share: one service for a module, and a client that waits for its answers."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from baton.cli.embedded.postgres import EmbeddedPostgres
    from baton.client import Baton
    from tests.support.api.module_service import ModuleService


@pytest.fixture(scope="module")
def beamline_service(postgres: "EmbeddedPostgres", template: str) -> Iterator["ModuleService"]:
    """A service with an empty record, in a thread of its own."""
    from tests.support.api.module_service import running_module_service
    from tests.support.databases import fresh_database

    with fresh_database(postgres, template) as url, running_module_service(url) as service:
        yield service


@pytest.fixture
def baton(beamline_service: "ModuleService") -> Iterator["Baton"]:
    """A client of the module's service."""
    from baton.client import Baton

    with Baton(beamline_service.api.base_url) as client:
        yield client


@pytest.fixture
def empty_baton(postgres: "EmbeddedPostgres", template: str) -> Iterator["Baton"]:
    """A client of a service whose record is empty."""
    from baton.client import Baton
    from tests.support.api.module_service import running_module_service
    from tests.support.databases import fresh_database

    with (
        fresh_database(postgres, template) as url,
        running_module_service(url) as service,
        Baton(service.api.base_url) as client,
    ):
        yield client
