"""MCP over streamable HTTP: one frame in, one frame out, so that any replica can answer any of them."""

from collections.abc import MutableMapping
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import urlsplit

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from api.http import Request, Response
from api.mcp.server import Context, Toolbox, mcp_server
from application.ports import Caller
from application.service import Service
from application.settings import Settings
from domain.contexts import REGISTRY
from domain.shared.refusals import Forbidden

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class ForeignOriginError(Forbidden):
    """A page of another site tried to reach MCP through somebody's browser."""


class McpEndpoint:
    """`POST /mcp`; the edge has measured the frame and established its caller."""

    def __init__(self, settings: Settings, service: Service) -> None:
        self._origin = settings.public_base_url and "{0.scheme}://{0.netloc}".format(urlsplit(settings.public_base_url))
        self._manager = StreamableHTTPSessionManager(
            mcp_server(Toolbox(REGISTRY, service, settings.mcp_toolset), caller_of),
            json_response=True,
            stateless=True,
            max_request_body_size=settings.max_request_body_size_bytes,
        )

    def running(self) -> AbstractAsyncContextManager[None]:
        """What must be open while frames are answered."""
        return self._manager.run()

    async def __call__(self, request: Request, caller: Caller) -> Response:
        self._check_origin(request.header(b"origin"))
        request.scope["caller"] = caller
        unread = [await request.body()]
        answer = Response(500)

        async def receive() -> MutableMapping[str, Any]:
            if unread:
                return {"type": "http.request", "body": unread.pop(), "more_body": False}
            await request.disconnected()
            return {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.content_type = dict(message["headers"]).get(b"content-type", answer.content_type)
            else:
                answer.body += message.get("body", b"")

        await self._manager.handle_request(request.scope, receive, send)
        return answer

    def _check_origin(self, origin: str | None) -> None:
        """A browser says whose page is asking: only ours and those of the same machine may (DNS rebinding)."""
        if origin is None or origin == self._origin or host_of(origin) in LOOPBACK:
            return
        raise ForeignOriginError("Pages of other sites may not use MCP here; if this one is ours, set PUBLIC_BASE_URL.")


def host_of(origin: str) -> str | None:
    """The host in an origin, if it can be read."""
    try:
        return urlsplit(origin).hostname
    except ValueError:
        return None


def caller_of(context: Context) -> Caller:
    """The caller the edge established for the request that carried this frame."""
    assert context.request is not None, "a frame over HTTP comes with its request"
    caller: Caller = context.request.scope["caller"]
    return caller
