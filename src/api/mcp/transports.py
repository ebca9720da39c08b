"""The transports of MCP: standard streams, and HTTP without sessions, so that any replica can answer any frame."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, MutableMapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import orjson
import uuid_utils.compat
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params

from baton.api.http import Request, Response
from baton.api.mcp.resources import Resources
from baton.api.mcp.server import Context, mcp_server, serve_session_subscriptions
from baton.api.mcp.subscriptions import SessionSubscriptions, Subscriptions
from baton.api.mcp.toolbox import Toolbox
from baton.api.parsing import from_query, refuse_repeated_keys
from baton.api.streams import AppendListener, OpenStreams
from baton.application.caller import Caller
from baton.application.queries import Feed
from baton.application.service import Service
from baton.application.settings import McpToolset, Settings
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import NIL, Value
from baton.domain.trust.surface import SYSTEM_MCP_STDIO

EVENT_STREAM = "text/event-stream"
LISTEN = "subscriptions/listen"
Message = MutableMapping[str, Any]


class McpEndpoint:
    """`POST /mcp`: answers a frame by one body, or by a stream that ends with the answer where it asks for progress or
    subscribes. `?toolset=` chooses the tools that are listed."""

    def __init__(
        self, settings: Settings, service: Service, feed: Feed, listener: AppendListener, streams: OpenStreams
    ) -> None:
        toolbox = Toolbox(REGISTRY, service, settings.mcp_toolset)
        subscriptions = Subscriptions(Resources(toolbox.operations, service), feed, listener, streams)
        server = mcp_server(toolbox, subscriptions, caller_of, toolset_of)
        size = settings.max_request_body_size_bytes
        self._plain = StreamableHTTPSessionManager(server, json_response=True, stateless=True, max_request_body_size=size)
        self._streaming = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=size)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep the session managers open while frames are answered."""
        async with self._plain.run(), self._streaming.run():
            yield

    async def __call__(self, request: Request, caller: Caller) -> Response:
        request.scope["caller"], request.scope["toolset"] = caller, chosen_toolset(request.query)
        body = await request.body()
        with suppress(orjson.JSONDecodeError):  # the protocol answers that itself
            refuse_repeated_keys(body, orjson.loads(body), "body")
        exchange = Exchange(request, body)
        if wants_stream(body) and EVENT_STREAM in (request.header(b"accept") or ""):
            return await exchange.streamed_answer(self._streaming)
        return await exchange.whole_answer(self._plain)


class Exchange:
    """One frame and the messages that answer it: a head, and a body in one or several parts."""

    def __init__(self, request: Request, body: bytes) -> None:
        self._request = request
        self._unread = [body]
        self._answer: asyncio.Queue[Message | None] = asyncio.Queue()

    async def whole_answer(self, manager: StreamableHTTPSessionManager) -> Response:
        """Return the complete answer."""
        await manager.handle_request(self._request.scope, self._receive, self._answer.put)
        self._answer.put_nowait(None)
        head = await self._answer.get()
        return Response(500) if head is None else await join_parts(head, self._parts())

    async def streamed_answer(self, manager: StreamableHTTPSessionManager) -> Response:
        """Return the answer as a stream if it comes in parts; there is none where the client disconnected before."""
        handling = asyncio.create_task(manager.handle_request(self._request.scope, self._receive, self._answer.put))
        handling.add_done_callback(lambda _: self._answer.put_nowait(None))
        if (head := await self._answer.get()) is None:
            await handling
            return Response(500)
        if not media_type_of(head).startswith(EVENT_STREAM.encode()):
            return await join_parts(head, self._until_done(handling))
        return Response(head["status"], content_type=media_type_of(head), stream=self._until_done(handling))

    async def _parts(self) -> AsyncIterator[bytes]:
        while (message := await self._answer.get()) is not None:
            yield message.get("body", b"")

    async def _until_done(self, handling: "asyncio.Task[None]") -> AsyncGenerator[bytes, None]:
        """Yield the parts of the body; the exchange stops with the reader."""
        try:
            async for part in self._parts():
                yield part
            await handling
        finally:
            handling.cancel()

    async def _receive(self) -> Message:
        if self._unread:
            return {"type": "http.request", "body": self._unread.pop(), "more_body": False}
        await self._request.wait_for_disconnect()
        return {"type": "http.disconnect"}


async def join_parts(head: Message, parts: AsyncIterator[bytes]) -> Response:
    """Return an answer with its whole body."""
    return Response(head["status"], b"".join([part async for part in parts]), content_type=media_type_of(head))


def media_type_of(head: Message) -> bytes:
    """Return the content type in the head of an answer."""
    headers: dict[bytes, bytes] = dict(head["headers"])
    return headers.get(b"content-type", b"application/json")


def caller_of(context: Context) -> Caller:
    """Return the caller that the edge determined for the request of this frame."""
    assert context.request is not None, "a frame over HTTP comes with its request"
    caller: Caller = context.request.scope["caller"]
    return caller


def toolset_of(context: Context) -> McpToolset | None:
    """Return the toolset that the address of a frame names."""
    assert context.request is not None, "a frame over HTTP comes with its request"
    toolset: McpToolset | None = context.request.scope["toolset"]
    return toolset


def chosen_toolset(query: bytes) -> McpToolset | None:
    """Return the toolset that a query string names, if any; refuse another one."""
    return from_query(ChosenToolset, query, {}).toolset


class ChosenToolset(Value):
    """What the address of the endpoint may say."""

    toolset: McpToolset | None = None


def wants_stream(body: bytes) -> bool:
    """Return whether the answer to a frame must be a stream: it carries a progress token, or subscribes."""
    if b"progressToken" not in body and LISTEN.encode() not in body:
        return False
    try:
        frame = json.loads(body)
    except (ValueError, RecursionError):
        return False
    if not isinstance(frame, dict):
        return False
    return frame.get("method") == LISTEN or progress_token_from_params(frame.get("params")) is not None


async def serve_stdio(settings: Settings, service: Service, feed: Feed, listener: AppendListener) -> None:
    """Answer frames on the standard streams until the client closes them, as one configured principal without a token."""
    principal_id = settings.mcp_stdio_principal_id or NIL

    def caller_of(context: Context) -> Caller:
        return Caller(principal_id, SYSTEM_MCP_STDIO, uuid_utils.compat.uuid7())

    toolbox = Toolbox(REGISTRY, service, settings.mcp_toolset)
    streams = OpenStreams(settings.max_open_streams, settings.database_pool_size, settings.max_streams_per_principal)
    subscriptions = Subscriptions(Resources(toolbox.operations, service), feed, listener, streams)
    sessions = SessionSubscriptions(subscriptions)
    server = mcp_server(toolbox, subscriptions, caller_of)
    serve_session_subscriptions(server, sessions, caller_of)
    async with aclosing(sessions), stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
