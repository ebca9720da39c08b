"""The ASGI application: correlation id, origin and size checks, routing, authentication, errors and counts.
Paths are matched segment by segment, so hundreds of routes cost as much as one."""

import asyncio
import errno
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from uuid import UUID

import orjson
import structlog
import uuid_utils.compat

from baton.api.authentication import Authentication, challenge
from baton.api.compression import compress
from baton.api.errors import (
    PROBLEM,
    InternalError,
    MethodNotAllowedError,
    RouteNotFoundError,
    ServiceStoppingError,
    error_body,
    refusal_meaning,
)
from baton.api.http import ClientDisconnected, Endpoint, Receive, Request, Response, Scope, Send, header, too_large
from baton.api.metrics import observe
from baton.api.parsing import refuse_unstorable
from baton.application.caller import Caller
from baton.application.ports import StoreUnavailableError
from baton.application.telemetry import error_location
from baton.domain.kernel import NIL
from baton.domain.shared.refusals import IdempotencyClaimLostError, Refusal

log = structlog.get_logger()

FAILED = "Something failed inside the service; give the correlation id to its operators."
LAST_RESORT = (
    f'{{"type":"/refusals/InternalError","title":"{refusal_meaning(InternalError)}","status":500,"detail":"{FAILED}",'
    '"instance":"urn:uuid:%s","code":"InternalError","context":"edge","correlation_id":"%s"}'
)

NOTHING_HERE = "There is nothing at this path; /docs lists every operation."

E = TypeVar("E")
Lifespan = Callable[[], AbstractAsyncContextManager[None]]


@dataclass
class _Node(Generic[E]):
    literal: dict[str, "_Node[E]"] = field(default_factory=dict)
    parameter: "_Node[E] | None" = None
    methods: dict[str, tuple[E, tuple[str, ...]]] = field(default_factory=dict)


class Routes(Generic[E]):
    """Maps method and path to endpoints; a literal segment is preferred to a parameter."""

    def __init__(self) -> None:
        self._root: _Node[E] = _Node()

    def add(self, method: str, path: str, endpoint: E) -> None:
        node, names = self._root, []
        for segment in path.strip("/").split("/"):
            if segment.startswith("{"):
                names.append(segment[1:-1])
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.literal.setdefault(segment, _Node())
        if method in node.methods:
            raise TypeError(f"{method} {path} is routed twice")
        node.methods[method] = (endpoint, tuple(names))

    def match(self, method: str, path: str) -> tuple[E, dict[str, str]] | frozenset[str]:
        """Return the endpoint and its path parameters, or the methods of the path (empty where it does not exist)."""
        segments = path[1:].split("/")
        for node, values in self._reach(self._root, segments, 0):
            if method in node.methods:
                endpoint, names = node.methods[method]
                return endpoint, dict(zip(names, values, strict=True))
            if node.methods:
                return frozenset(node.methods)
        return frozenset()

    def _reach(self, node: _Node[E], segments: list[str], depth: int) -> Iterator[tuple[_Node[E], list[str]]]:
        if depth == len(segments):
            yield node, []
            return
        segment = segments[depth]
        if (literal := node.literal.get(segment)) is not None:
            yield from self._reach(literal, segments, depth + 1)
        if node.parameter is not None and segment:
            for reached, values in self._reach(node.parameter, segments, depth + 1):
                yield reached, [segment, *values]


class LateRoutes:
    """Routes that are added, in a thread, when the first of them is asked for."""

    def __init__(self, add: Callable[[], None]) -> None:
        self._add = add
        self._added: asyncio.Future[None] | None = None

    async def be_added(self) -> None:
        if self._added is None:
            self._added = asyncio.ensure_future(asyncio.to_thread(self._add))
        await asyncio.shield(self._added)


class Edge:
    """The ASGI application; its lifespan is that of the service."""

    def __init__(self, lifespan: Lifespan, authentication: Authentication, max_body: int, stopping: asyncio.Event) -> None:
        self._lifespan = lifespan
        self._authentication = authentication
        self._max_body = max_body
        self._stopping = stopping
        self._routes: Routes[tuple[Endpoint, str, str, bool]] = Routes()
        self._late: dict[str, LateRoutes] = {}

    def add(self, method: str, path: str, endpoint: Endpoint, name: str, context: str = "edge", open: bool = False) -> None:
        """Route an endpoint; an open one needs no principal."""
        self._routes.add(method, path, (endpoint, name, context, open))

    def add_late(self, first_segments: Collection[str], add: Callable[[], None]) -> None:
        """Have everything whose path begins with one of these segments routed when it is first asked for."""
        self._late |= dict.fromkeys(first_segments, LateRoutes(add))

    async def answer(
        self, method: str, path: str, query: bytes, headers: Mapping[str, str], body: bytes, caller: Caller
    ) -> Response:
        """Answer a request that this process makes itself for a caller it knows, as one that came from outside."""
        named = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": "http", "method": method, "path": path, "query_string": query, "headers": named}
        context = "edge"

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        try:
            match = self._routes.match(method, path)
            if not isinstance(match, tuple):
                raise RouteNotFoundError(NOTHING_HERE)
            (endpoint, _, context, _), values = match
            return await endpoint(Request(scope, receive, values, self._max_body, self._stopping), caller)
        except Exception as error:
            return refusal_response(error, context, caller.correlation_id, scope)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        started = time.perf_counter()
        correlation_id = correlation_of(scope)
        name, context = "unrouted", "edge"
        try:
            if self._stopping.is_set():
                raise stopping_error()
            refuse_unstorable(scope)
            self._authentication.origins.check(scope)
            self._check_size(scope)
            path: str = scope["path"]
            if (late := self._late.get(path[1:].partition("/")[0])) is not None:
                await late.be_added()
            match = self._routes.match(scope["method"], path)
            if isinstance(match, tuple):
                (endpoint, name, context, open), values = match
                caller = Caller(NIL, NIL, correlation_id)
                if not open:
                    caller = await self._authentication.caller(scope, correlation_id)
                response = await endpoint(Request(scope, receive, values, self._max_body, self._stopping), caller)
            elif self._authentication.is_open(path):
                raise RouteNotFoundError(NOTHING_HERE)
            elif match:
                response = method_not_allowed(scope, match, correlation_id)
            else:
                await self._authentication.caller(scope, correlation_id)
                raise RouteNotFoundError(NOTHING_HERE)
        except ClientDisconnected:
            return
        except asyncio.CancelledError:
            if not self._stopping.is_set():
                raise
            response = response_to(stopping_error(), context, correlation_id, scope)
        except Exception as error:
            response = refusal_response(error, context, correlation_id, scope)
        await compress(response, header(scope, b"accept-encoding"))
        if self._stopping.is_set():
            response.headers.append((b"connection", b"close"))
        response.headers.append((b"x-correlation-id", str(correlation_id).encode()))
        observe(name, response.status, time.perf_counter() - started)
        try:
            await response.send(send)
        except Exception as error:
            log_failure(error, correlation_id)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Open the service, report it, and close it when the server shuts down."""
        phase = "startup"
        await receive()
        try:
            async with self._lifespan():
                await send({"type": "lifespan.startup.complete"})
                phase = "shutdown"
                await receive()
        except BaseException:
            await send({"type": f"lifespan.{phase}.failed", "message": traceback.format_exc()})
            raise
        await send({"type": "lifespan.shutdown.complete"})

    def _check_size(self, scope: Scope) -> None:
        length = header(scope, b"content-length") or ""
        if length.isdigit() and int(length) > self._max_body:
            raise too_large(self._max_body)


def correlation_of(scope: Scope) -> UUID:
    """Return the trace id of a W3C `traceparent` header as a UUID, or a new one."""
    parts = (header(scope, b"traceparent") or "").split("-")
    if len(parts) >= 4 and len(parts[1]) == 32 and parts[1].strip("0"):
        with suppress(ValueError):
            return UUID(hex=parts[1])
    return uuid_utils.compat.uuid7()


def as_refusal(error: Exception, correlation_id: UUID) -> Refusal:
    """Return the refusal for an exception; an unforeseen one is logged and its answer reveals nothing of it."""
    if isinstance(error, Refusal):
        return error
    log_failure(error, correlation_id)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreUnavailableError("There is no space left to write to; have some made, and repeat the request then.")
    return InternalError(FAILED)


def refusal_response(error: Exception, context: str, correlation_id: UUID, scope: Scope) -> Response:
    """Return the response to a failed request, or a constant one where even that cannot be made."""
    try:
        return response_to(as_refusal(error, correlation_id), context, correlation_id, scope)
    except Exception as unexpected:
        with suppress(Exception):
            log.error("error_response_failed", error=type(unexpected).__name__, correlation_id=str(correlation_id))
        return Response(500, (LAST_RESORT % (correlation_id, correlation_id)).encode(), content_type=PROBLEM)


def stopping_error() -> ServiceStoppingError:
    remedy = "repeat the request in a few seconds, with the same idempotency key"
    return ServiceStoppingError(f"The service is stopping; {remedy}.")


def log_failure(error: Exception, correlation_id: UUID) -> None:
    """Log a failure; a failing log does not prevent the answer."""
    with suppress(Exception):
        log.error("request_failed", correlation_id=str(correlation_id), **error_location(error))


def response_to(refusal: Refusal, context: str, correlation_id: UUID, scope: Scope) -> Response:
    """Return the response to a refused request."""
    headers = [(b"www-authenticate", challenge(refusal, scope))] if refusal.status == 401 else []
    if refusal.status == 503 or isinstance(refusal, IdempotencyClaimLostError):
        headers.append((b"retry-after", b"5" if refusal.status == 503 else b"1"))
    body = orjson.dumps(error_body(refusal, context, correlation_id))
    return Response(refusal.status, body, headers, content_type=PROBLEM)


def method_not_allowed(scope: Scope, methods: frozenset[str], correlation_id: UUID) -> Response:
    """Return the 405 response, which lists the methods that the path has."""
    allow = ", ".join(sorted(methods))
    refusal = MethodNotAllowedError(f"This path takes {allow}, not {scope['method']}.")
    response = response_to(refusal, "edge", correlation_id, scope)
    response.headers.append((b"allow", allow.encode()))
    return response
