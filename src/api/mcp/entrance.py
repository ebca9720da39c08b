"""The endpoint of MCP as the service starts with it: the protocol is loaded with the first frame, which takes longer than
most of the service."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from baton.api.http import Request, Response
from baton.api.streams import AppendListener, OpenStreams
from baton.application.caller import Caller
from baton.application.queries import Feed
from baton.application.service import Service
from baton.application.settings import Settings

if TYPE_CHECKING:
    from baton.api.mcp.transports import McpEndpoint


class McpEntrance:
    """`POST /mcp`, whose endpoint is loaded and opened by the first request."""

    def __init__(
        self, settings: Settings, service: Service, feed: Feed, listener: AppendListener, streams: OpenStreams
    ) -> None:
        self._parts = (settings, service, feed, listener, streams)
        self._closing = asyncio.Event()
        self._opened: asyncio.Future[McpEndpoint] | None = None
        self._keeper: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Close at the end what the first request opened."""
        try:
            yield
        finally:
            self._closing.set()
            if self._keeper is not None:
                await self._keeper

    async def __call__(self, request: Request, caller: Caller) -> Response:
        if self._opened is None:
            self._opened = asyncio.get_running_loop().create_future()
            self._keeper = asyncio.create_task(self._keep_open(self._opened))
        endpoint = await asyncio.shield(self._opened)
        return await endpoint(request, caller)

    async def _keep_open(self, opened: "asyncio.Future[McpEndpoint]") -> None:
        """Open the endpoint in a task of its own, because the task that opens its sessions must also close them."""
        try:
            endpoint = await asyncio.to_thread(self._load)
            async with endpoint.open():
                opened.set_result(endpoint)
                await self._closing.wait()
        except Exception as error:
            if opened.done():
                raise
            opened.set_exception(error)

    def _load(self) -> "McpEndpoint":
        from baton.api.mcp.transports import McpEndpoint

        return McpEndpoint(*self._parts)
