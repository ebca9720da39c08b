"""A running server of models, and clients of it."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from tests.support.infrastructure.model_server import ModelServer


@pytest.fixture(scope="session")
def running_server() -> Iterator[ModelServer]:
    with ModelServer.running_server() as server:
        yield server


@pytest.fixture
def server(running_server: ModelServer) -> ModelServer:
    running_server.reset()
    return running_server


@pytest.fixture(scope="session")
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(verify=False) as client:
        yield client
