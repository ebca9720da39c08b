"""What tests of the client share: a service that conducts and keeps its lists, and a beamline that the client has built."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from baton.cli.embedded.postgres import EmbeddedPostgres
    from baton.cli.embedded.temporal import EmbeddedTemporal
    from tests.client.program import BuiltBeamline
    from tests.support.workflows.conduct_service import ConductService


@pytest.fixture(scope="module")
async def listing_service(
    postgres: "EmbeddedPostgres", template: str, temporal: "EmbeddedTemporal"
) -> AsyncIterator["ConductService"]:
    """A worker on a simulated plant, the service beside it, and its projector."""
    from baton.infrastructure.background import Supervisor
    from baton.infrastructure.postgres.projections import Projector
    from tests.support.databases import fresh_database
    from tests.support.workflows.conduct_service import open_conduct_service

    with fresh_database(postgres, template) as url:
        async with (
            Supervisor().supervise("projections", Projector(url, poll=0.02).run),
            open_conduct_service(url, temporal.address) as service,
        ):
            yield service


@pytest.fixture(scope="module")
async def built(listing_service: "ConductService") -> "BuiltBeamline":
    """A beamline that the program of forty operations has put on record."""
    from baton.client import Baton
    from tests.client.program import build_beamline

    bridge = {"name": "Interlock bridge", "kind": "service_account"}
    bridge_id = await listing_service.api.create("/actors", bridge)

    def build() -> "BuiltBeamline":
        url = listing_service.api.base_url
        with Baton(url) as baton, Baton(url) as monitor:
            monitor.http.headers["X-Principal-Id"] = bridge_id
            return build_beamline(baton, uuid4().hex[:8], monitor)

    return await asyncio.to_thread(build)
