"""What the edge answers while its process is stopping, and where everything else fails."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from baton.api.authentication import Authentication
from baton.api.edge import OperationRoutes, make_application
from baton.api.http import Request, Response
from baton.application.caller import Caller
from baton.application.settings import Settings
from baton.infrastructure.identity import ProviderClient, ProviderRegistry
from tests.api.test_edge import assert_error


class NoBindings:
    """Nobody has a token."""

    async def actor_of(self, issuer: str, subject: str) -> None:
        return None


class UnprintableError(Exception):
    """A failure whose traceback cannot be read."""

    @property
    def __traceback__(self) -> Any:
        raise OSError("nothing is readable any more")


@pytest.fixture
def stop_event() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
async def client(stop_event: asyncio.Event) -> AsyncIterator[httpx.AsyncClient]:
    registry = ProviderRegistry((), NoBindings(), ProviderClient(), lambda: datetime.now(UTC))
    authentication = Authentication(Settings(app_env="test"), registry)
    operations = OperationRoutes(authentication, 1000, stop_event)

    async def quick(request: Request, caller: Caller) -> Response:
        return Response(200, b"{}")

    async def cut_off(request: Request, caller: Caller) -> Response:
        stop_event.set()
        raise asyncio.CancelledError

    async def unspeakable(request: Request, caller: Caller) -> Response:
        raise UnprintableError

    async def full(request: Request, caller: Caller) -> Response:
        with open("/dev/full", "w") as device:  # noqa: ASYNC230
            device.write("something")
            device.flush()
        return Response(200)

    for endpoint in (quick, cut_off, unspeakable, full):
        operations.add("GET", f"/{endpoint.__name__}", endpoint, endpoint.__name__)
    app = make_application(operations, authentication, 1000, stop_event)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        yield client


async def test_a_request_that_comes_while_the_service_stops_is_sent_away(
    client: httpx.AsyncClient, stop_event: asyncio.Event
) -> None:
    assert (await client.get("/quick")).status_code == 200
    stop_event.set()
    for path in ("/quick", "/nothing"):
        refused = await client.get(path)
        assert_error(refused, 503, "ServiceStoppingError", "edge")
        assert (refused.headers["Connection"], refused.headers["Retry-After"]) == ("close", "5")


async def test_what_does_not_end_in_time_when_the_service_stops_is_answered_all_the_same(client: httpx.AsyncClient) -> None:
    refused = await client.get("/cut_off")
    assert_error(refused, 503, "ServiceStoppingError", "edge")
    assert refused.headers["Connection"] == "close"


async def test_a_failure_of_which_nothing_can_be_said_has_its_body(client: httpx.AsyncClient) -> None:
    assert_error(await client.get("/unspeakable"), 500, "InternalError", "edge")


async def test_a_disk_without_space_is_an_unavailable_store(client: httpx.AsyncClient) -> None:
    assert_error(await client.get("/full"), 503, "StoreUnavailableError", "edge")
