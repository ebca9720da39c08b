"""The FastAPI application, and the edge around it: correlation id, origin and size checks, refusals, compression, counts of
every route; and the tree of the operations, whose paths are matched by segments, so that hundreds cost as much as one."""

import asyncio
import errno
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, TypeVar
from uuid import UUID

import fastapi
import orjson
import structlog
import uuid_utils.compat
from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Route

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
from baton.api.http import (
    STANDARD_HEADERS,
    ClientDisconnected,
    Endpoint,
    Headers,
    Receive,
    Request,
    Response,
    Scope,
    Send,
    header,
    too_large,
)
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


class OperationRoutes(BaseRoute):
    """The one tree of all operations, which the application mounts as a route; each request for one needs a caller."""

    def __init__(self, authentication: Authentication, max_body: int, stopping: asyncio.Event) -> None:
        self._authentication = authentication
        self._max_body = max_body
        self._stopping = stopping
        self._routes: Routes[tuple[Endpoint, str, str]] = Routes()

    def add(self, method: str, path: str, endpoint: Endpoint, name: str, context: str = "edge") -> None:
        """Route an endpoint."""
        self._routes.add(method, path, (endpoint, name, context))

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match = self._routes.match(scope["method"], scope["path"])
        if not isinstance(match, tuple):
            return (Match.PARTIAL if match else Match.NONE), {}
        (endpoint, name, context), values = match
        return Match.FULL, {"endpoint": endpoint, "path_params": values, "operation": name, "context": context}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if "operation" not in scope:
            raise HTTPException(405)
        caller = await self._authentication.caller(scope, scope["correlation_id"])
        request = Request(scope, receive, scope["path_params"], self._max_body, self._stopping)
        response: Response = await scope["endpoint"](request, caller)
        await response.send(send)

    def methods_at(self, scope: Scope) -> frozenset[str]:
        """Return the methods of a path that takes another one than is asked for."""
        match = self._routes.match(scope["method"], scope["path"])
        return frozenset() if isinstance(match, tuple) else match

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
            (endpoint, _, context), values = match
            return await endpoint(Request(scope, receive, values, self._max_body, self._stopping), caller)
        except Exception as error:
            return refusal_response(error, context, caller.correlation_id, scope)


class LateRoutes(BaseRoute):
    """Routes below some first segments of paths, which are added to a router, in a thread, when the first is asked for."""

    def __init__(self, first_segments: Collection[str], context: str, add: Callable[[APIRouter], None]) -> None:
        self._first_segments = frozenset(first_segments)
        self._context = context
        self._add = add
        self._router = APIRouter(redirect_slashes=False)
        self._added: asyncio.Future[None] | None = None

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        first: str = scope["path"][1:].partition("/")[0]
        return (Match.FULL, {"context": self._context}) if first in self._first_segments else (Match.NONE, {})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._added is None:
            self._added = asyncio.ensure_future(asyncio.to_thread(self._add, self._router))
        await asyncio.shield(self._added)
        await self._router(scope, receive, send)

    def methods_at(self, scope: Scope) -> frozenset[str]:
        """Return the methods that a path takes."""
        return methods_at(self._router.routes, scope)


def methods_at(routes: Iterable[BaseRoute], scope: Scope) -> frozenset[str]:
    """Return the methods that a path takes by any of these routes."""
    found: set[str] = set()
    for route in routes:
        if isinstance(route, OperationRoutes | LateRoutes):
            found |= route.methods_at(scope) if route.matches(scope)[0] is not Match.NONE else set()
        elif isinstance(route, Route) and route.matches(scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return frozenset(found)


def make_application(
    operations: OperationRoutes,
    authentication: Authentication,
    max_body: int,
    stopping: asyncio.Event,
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
    *,
    logged: bool = False,
) -> FastAPI:
    """Return a FastAPI application that mounts the tree of operations, inside the edge, which may log each request."""

    async def refuse_unrouted(request: Any, error: Exception) -> NoReturn:
        """Raise the refusal of a path, or of a method, that no route has."""
        scope = request.scope
        scope["route"], scope["context"] = None, "edge"
        if isinstance(error, HTTPException) and error.status_code == 405 and not authentication.is_open(scope["path"]):
            raise method_not_allowed(scope["method"], methods_at(app.routes, scope))
        if not authentication.is_open(scope["path"]):
            await authentication.caller(scope, scope["correlation_id"])
        raise RouteNotFoundError(NOTHING_HERE)

    app = FastAPI(
        openapi_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        exception_handlers={HTTPException: refuse_unrouted},
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    limits: dict[str, Any] = {"max_body": max_body, "stopping": stopping}
    app.add_middleware(Edge, operations=operations, authentication=authentication, **limits, logged=logged)
    app.router.routes.append(operations)
    return app


def serve(endpoint: Endpoint, max_body: int, stopping: asyncio.Event) -> Callable[..., Any]:
    """Return an endpoint that needs no principal, as FastAPI takes it."""

    async def answer(request: fastapi.Request) -> fastapi.Response:
        scope = request.scope
        received = Request(scope, request.receive, scope["path_params"], max_body, stopping)
        return EndpointResponse(await endpoint(received, Caller(NIL, NIL, scope["correlation_id"])))

    return answer


class EndpointResponse(fastapi.Response):
    """The response of an endpoint, as FastAPI takes it."""

    def __init__(self, response: Response) -> None:
        super().__init__(status_code=response.status)
        self._response = response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._response.send(send)


class Edge:
    """The middleware around every route: correlation id, checks of origin and size, refusals, compression and counts.
    A request for an operation needs nothing of the layers below, and goes from here to its endpoint."""

    def __init__(
        self,
        app: Any,
        operations: OperationRoutes,
        authentication: Authentication,
        max_body: int,
        stopping: asyncio.Event,
        *,
        logged: bool = False,
    ) -> None:
        self._app = app
        self._operations = operations
        self._logged = logged
        self._authentication = authentication
        self._max_body = max_body
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        correlation_id = scope["correlation_id"] = correlation_of(scope)
        answer = OutgoingResponse(scope, send, self._stopping, logged=self._logged)
        try:
            if self._stopping.is_set():
                raise stopping_error()
            refuse_unstorable(scope)
            self._authentication.origins.check(scope)
            self._check_size(scope)
            match, details = self._operations.matches(scope)
            if match is Match.FULL:
                scope.update(details)
                await self._operations.handle(scope, receive, answer.send)
            else:
                await self._app(scope, receive, answer.send)
            return
        except ClientDisconnected:
            return
        except asyncio.CancelledError:
            if answer.has_begun or not self._stopping.is_set():
                raise
            failure: Exception = stopping_error()
        except Exception as error:
            failure = error
        try:
            if answer.has_begun:
                log_failure(failure, correlation_id)
            else:
                await refusal_response(failure, scope.get("context", "edge"), correlation_id, scope).send(answer.send)
        except Exception as error:
            log_failure(error, correlation_id)

    def _check_size(self, scope: Scope) -> None:
        length = header(scope, b"content-length") or ""
        if length.isdigit() and int(length) > self._max_body:
            raise too_large(self._max_body)


class OutgoingResponse:
    """The answer to a request on its way out: its head waits for the first part of its body, and is completed by it."""

    def __init__(self, scope: Scope, send: Send, stopping: asyncio.Event, *, logged: bool) -> None:
        self._scope = scope
        self._logged = logged
        self._send = send
        self._stopping = stopping
        self._started = time.perf_counter()
        self._head: MutableMapping[str, Any] = {}
        self.has_begun = False

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Send a message of the application."""
        if message["type"] == "http.response.start":
            self._head = message
            return
        if not self.has_begun:
            status, headers, body = self._head["status"], list(self._head["headers"]), message.get("body", b"")
            if not message.get("more_body"):
                headers, body = await self._complete(status, headers, body)
            headers += [*STANDARD_HEADERS, (b"x-correlation-id", str(self._scope["correlation_id"]).encode())]
            if self._stopping.is_set():
                headers.append((b"connection", b"close"))
            route = self._scope.get("route")
            name = self._scope.get("operation") or ("unrouted" if route is None else route.name)
            seconds = time.perf_counter() - self._started
            observe(name, status, seconds)
            if self._logged:
                self._log(name, status, seconds)
            self.has_begun = True
            await self._send({"type": "http.response.start", "status": status, "headers": headers})
            message = {**message, "body": body}
        await self._send(message)

    def _log(self, operation: str, status: int, seconds: float) -> None:
        """Write the line of a request. Nothing personal is in it: neither who asked, nor the address, nor what was sent."""
        asked = {"operation": operation, "method": self._scope["method"], "status": status}
        correlation_id = str(self._scope["correlation_id"])
        log.info("request", **asked, milliseconds=round(seconds * 1000, 1), correlation_id=correlation_id)

    async def _complete(self, status: int, headers: Headers, body: bytes) -> tuple[Headers, bytes]:
        """Return the headers and the body of a whole answer, compressed where that is worth it."""
        body = await compress(body, headers, header(self._scope, b"accept-encoding"))
        headers = [one for one in headers if one[0] != b"content-length"]
        if body or status not in (204, 304):
            headers.append((b"content-length", b"%d" % len(body)))
        return headers, body


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
    if isinstance(refusal, MethodNotAllowedError):
        headers.append((b"allow", ", ".join(refusal.methods).encode()))
    body = orjson.dumps(error_body(refusal, context, correlation_id))
    return Response(refusal.status, body, headers, content_type=PROBLEM)


def method_not_allowed(method: str, methods: frozenset[str]) -> MethodNotAllowedError:
    """Return the refusal of a method, which lists the methods that the path has."""
    refusal = MethodNotAllowedError(f"This path takes {', '.join(sorted(methods))}, not {method}.")
    refusal.methods = sorted(methods)
    return refusal
