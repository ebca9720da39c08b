"""Requests and responses as thin wrappers of ASGI messages."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import baton
from baton.api.errors import RequestTooLargeError
from baton.application.caller import Caller

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

STANDARD_HEADERS: Headers = [(b"x-content-type-options", b"nosniff"), (b"baton-version", baton.__version__.encode())]
"""The headers of every response."""


class ClientDisconnected(Exception):
    """The client disconnected before its request was read."""


@dataclass
class Request:
    """A request as endpoints see it."""

    scope: Scope
    receive: Receive
    path: dict[str, str]
    max_body: int
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def query(self) -> bytes:
        query: bytes = self.scope["query_string"]
        return query

    def header(self, name: bytes) -> str | None:
        return header(self.scope, name)

    async def body(self) -> bytes:
        """Return the whole body; raise as soon as it is larger than allowed."""
        body = bytearray()
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            body += message.get("body", b"")
            if len(body) > self.max_body:
                raise too_large(self.max_body)
            if not message.get("more_body"):
                return bytes(body)

    async def wait_for_disconnect(self) -> None:
        """Return when the client has disconnected."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def wait_for_end(self) -> None:
        """Return when a stream must end: the client has disconnected, or the server is stopping."""
        ends = {asyncio.create_task(self.wait_for_disconnect()), asyncio.create_task(self.stopping.wait())}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """Return the first header of each (lower-case) name; the index is made once a request."""
    index: dict[bytes, bytes] | None = scope.get("header_index")
    if index is None:
        index = scope["header_index"] = dict(reversed(scope["headers"]))
    return index


def header(scope: Scope, name: bytes) -> str | None:
    """Return the first header of this (lower-case) name."""
    value = headers_of(scope).get(name)
    return None if value is None else value.decode("latin-1")


def too_large(limit: int) -> RequestTooLargeError:
    return RequestTooLargeError(f"The request body is larger than {limit} bytes; send less, or in parts.")


@dataclass
class Response:
    """A complete response, or the head of a streamed one."""

    status: int
    body: bytes = b""
    headers: Headers = field(default_factory=list)
    content_type: bytes = b"application/json"
    stream: AsyncGenerator[bytes, None] | None = None
    release: Callable[[], None] = lambda: None  # called once when a stream has ended, normally or not

    async def send(self, send: Send) -> None:
        """Send the response; the edge completes its headers."""
        if self.stream is None:
            headers = [*self.headers, (b"content-type", self.content_type)] if self.body else self.headers
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            await send({"type": "http.response.body", "body": self.body})
            return
        headers = [*self.headers, (b"content-type", self.content_type), (b"cache-control", b"no-store")]
        try:
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            async with aclosing(self.stream) as chunks:
                async for chunk in chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self.release()


Endpoint = Callable[[Request, Caller], Awaitable[Response]]
