"""The service as tests run it: on a real socket of this process, with its projector beside it."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import UUID

import httpx
import uvicorn

from baton.api.app import create_app
from baton.api.connections import KEEP_ALIVE_SECONDS, timed_connection
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.console.console import add_console
from baton.console.health import Examine
from baton.infrastructure.background import Supervisor
from baton.infrastructure.postgres.projections import Projector
from tests.support.waiting import until
from tests.support.workflows.step_json import PROGRAMS

FROM_THE_LOG = frozenset({"/events", "/reactions"})

# The client's library looks for this module with every request where it is not installed, which is a tenth of a request.
sys.modules.setdefault("sniffio", None)  # type: ignore[arg-type]


@dataclass
class Api:
    """A client of the running service, as one principal."""

    client: httpx.AsyncClient
    base_url: str
    database_url: str
    headers: Mapping[str, str]
    own_runtime: Runtime | None = field(default=None, repr=False)

    @property
    def runtime(self) -> Runtime:
        """What the service itself works with, for what only it or a worker does."""
        assert self.own_runtime is not None, "this service is another process"
        return self.own_runtime

    def acting_as(self, principal_id: UUID | str) -> "Api":
        return replace(self, headers={"X-Principal-Id": str(principal_id)})

    def with_token(self, token: str) -> "Api":
        return replace(self, headers={"Authorization": f"Bearer {token}"})

    async def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {**self.headers, **options.pop("headers", {})}
        return await self.client.request(method, path, headers=headers, **options)

    async def get(self, path: str, **parameters: Any) -> httpx.Response:
        """Ask; for the log once it has all there is, since a transaction under way anywhere keeps later events back."""
        if path in FROM_THE_LOG and self.own_runtime:
            await until(self._has_settled)
        return await self.request("GET", path, params=parameters)

    async def _has_settled(self) -> bool:
        return (await self.runtime.store.end()).position == await self.runtime.store.last_position()

    async def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.request("POST", path, json=body if body is not None else {}, headers=named)

    async def create(self, path: str, body: Any) -> str:
        """Create something, and return its id."""
        response = await self.post(path, body)
        assert response.status_code == 201, response.text
        return next(value for name, value in response.json().items() if name.endswith("_id"))

    async def execute(self, path: str, body: Any = None) -> int:
        """Send a command that must succeed, and return its log position."""
        response = await self.post(path, body)
        assert response.status_code in (200, 201, 204), response.text
        return int(response.headers["X-Baton-Position"])


@asynccontextmanager
async def running_api(
    database_url: str, *, projecting: bool = True, any_host: bool = False, examine: Examine | None = None, **settings: Any
) -> AsyncIterator[Api]:
    """The API on a free port, and the projector unless not wanted; its console can examine it by what is given."""
    settings = {"pid_minter": "development", "compute_programs": PROGRAMS, **settings}
    chosen = Settings(database_url=database_url, app_env="test", database_pool_size=8, **settings)
    runtime = Runtime(chosen)
    config = uvicorn.Config(
        create_app(runtime, any_host=any_host, add_console=partial(add_console, examine=examine)),
        port=0,
        log_level="error",
        http=timed_connection(chosen.client_timeout_seconds),
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        ws="none",
        proxy_headers=False,
        access_log=False,
        lifespan="on",
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        assert not serving.done(), "the service did not start"
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    base_url = f"http://127.0.0.1:{port}"
    projector = Projector(database_url)
    try:
        # There are no certificates to verify here, and loading them costs as much as starting the service.
        async with (
            Supervisor().supervise("projections", projector.run) if projecting else nullcontext(),
            httpx.AsyncClient(base_url=base_url, timeout=30, verify=False) as client,
        ):
            yield Api(client, base_url, database_url, {}, runtime)
    finally:
        server.should_exit = True
        await serving
