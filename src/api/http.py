"""A request and a response, as light as ASGI allows."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

from baton.api.errors import RequestTooLargeError
from baton.application.ports import Caller

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

NOSNIFF = (b"x-content-type-options", b"nosniff")


class ClientDisconnected(Exception):
    """The client went away before its request was read."""


class Request:
    """What an endpoint may know of a request."""

    def __init__(
        self, scope: Scope, receive: Receive, path: dict[str, str], max_body: int, stopping: asyncio.Event | None = None
    ) -> None:
        self.scope = scope
        self.path = path
        self.query: bytes = scope["query_string"]
        self._receive = receive
        self._max_body = max_body
        self._stopping = stopping or asyncio.Event()

    def header(self, name: bytes) -> str | None:
        return header(self.scope, name)

    async def body(self) -> bytes:
        """The whole body, refused as soon as it is larger than allowed."""
        message = await self._receive()
        body: bytes = message.get("body", b"")
        while message.get("more_body"):
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            self._check(len(body))
            message = await self._receive()
            body += message.get("body", b"")
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        self._check(len(body))
        return body

    def _check(self, size: int) -> None:
        if size > self._max_body:
            raise too_large(self._max_body)

    async def disconnected(self) -> None:
        """Returns when the client goes away."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def over(self) -> None:
        """Returns when a stream is to end: the client goes away, or the server is about to."""
        ends = {asyncio.create_task(self.disconnected()), asyncio.create_task(self._stopping.wait())}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """The first header of each (lower-case) name, indexed once for each request."""
    index: dict[bytes, bytes] | None = scope.get("header_index")
    if index is None:
        index = scope["header_index"] = dict(reversed(scope["headers"]))
    return index


def header(scope: Scope, name: bytes) -> str | None:
    """The first header of this (lower-case) name."""
    value = headers_of(scope).get(name)
    return None if value is None else value.decode("latin-1")


def too_large(limit: int) -> RequestTooLargeError:
    return RequestTooLargeError(f"The request body is larger than {limit} bytes; send less, or in parts.")


@dataclass
class Response:
    """A whole answer, or the head of a stream."""

    status: int
    body: bytes = b""
    headers: Headers = field(default_factory=list)
    content_type: bytes = b"application/json"
    stream: AsyncGenerator[bytes, None] | None = None
    release: Callable[[], None] = lambda: None
    """Called once a stream has ended, in whichever way."""

    async def send(self, send: Send) -> None:
        headers = [*self.headers, NOSNIFF]
        if self.stream is None:
            if self.body or self.status not in (204, 304):
                headers.append((b"content-length", str(len(self.body)).encode()))
            if self.body:
                headers.append((b"content-type", self.content_type))
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            await send({"type": "http.response.body", "body": self.body})
            return
        headers += [(b"content-type", self.content_type), (b"cache-control", b"no-store")]
        try:
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            async with aclosing(self.stream) as chunks:
                async for chunk in chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self.release()


class Endpoint(Protocol):
    """Something that answers requests."""

    async def __call__(self, request: Request, caller: Caller) -> Response: ...
