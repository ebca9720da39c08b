"""The API application: every operation of the registry behind the edge, with health, documentation, metrics and MCP."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import orjson
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from baton.api.argument_help import HelpfulEndpoint
from baton.api.authentication import Authentication
from baton.api.documentation import Documentation
from baton.api.edge import Edge
from baton.api.http import Endpoint, Request, Response
from baton.api.mcp.entrance import McpEntrance
from baton.api.metrics import observe_processes
from baton.api.refusal_catalogue import refusal_page
from baton.api.rest import OperationEndpoint
from baton.api.streams import AppendListener, ConductStream, EventStream, OpenStreams
from baton.application.caller import Caller
from baton.application.conduct.conduct_reader import ConductFeed
from baton.application.identity import METADATA_PATH, IdentityRegistry
from baton.application.ports import Authorizer
from baton.application.queries import Feed
from baton.application.service import Service
from baton.application.settings import Settings
from baton.application.telemetry import ProcessReport
from baton.domain.conduct.views import StreamProcedureConduct
from baton.domain.contexts import REGISTRY
from baton.domain.step.results import actuation_of
from baton.domain.views.event_log import StreamEvents

if TYPE_CHECKING:
    from baton.api.trace_continuation import TraceContinuation

CONSOLE_SEGMENTS = ("", "console")  # `/` leads to the console
UNSETTLED = "No worker has settled the permits of these enclosures since its start; see that one runs."


class ServiceHost(Protocol):
    """What the API needs of the process it runs in; entered, it is open."""

    settings: Settings
    service: Service
    authorizer: Authorizer
    feed: Feed
    conduct_feed: ConductFeed

    @property
    def identity(self) -> IdentityRegistry: ...
    @property
    def listener(self) -> AppendListener: ...
    @property
    def tracing(self) -> object | None: ...
    async def __aenter__(self) -> object: ...
    async def __aexit__(self, *error: object) -> None: ...

    def report_process(self, kind: str) -> AbstractAsyncContextManager[None]: ...
    async def plant_seeds(self) -> None: ...
    async def fellow_processes(self) -> tuple[Sequence[ProcessReport], Sequence[str]]: ...
    async def unbuilt_projections(self) -> Sequence[str]: ...
    async def unsettled_enclosures(self) -> Sequence[str]: ...


@dataclass(frozen=True)
class ApiParts:
    """What the console is built on."""

    host: ServiceHost
    edge: Edge
    authentication: Authentication
    streams: OpenStreams


def create_app(
    host: ServiceHost, *, any_host: bool = False, add_console: Callable[[ApiParts], None] | None = None
) -> "Edge | TraceContinuation":
    """Return the ASGI application, with a console that is added to it when its first page is asked for; streams and waiting
    requests end once the service is stopping."""
    settings, service = host.settings, host.service
    authentication = Authentication(settings, host.identity, any_host=any_host)
    streams = OpenStreams(settings.max_open_streams, settings.database_pool_size)
    mcp = McpEntrance(settings, service, host.feed, host.listener, streams)

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        async with host, host.report_process("api"):
            await host.plant_seeds()
            async with mcp.open():
                yield

    edge = Edge(lifespan, authentication, settings.max_request_body_size_bytes, service.stopping)
    Documentation(settings).route(edge)
    edge.add("GET", "/refusals/{code}", refusal_page, "refusals", open=True)
    edge.add("GET", "/health", health, "health", open=True)
    edge.add("GET", "/readyz", readiness(host), "readyz", open=True)
    edge.add("GET", "/metrics", metrics(host), "metrics", open=True)
    edge.add("GET", METADATA_PATH, authentication.metadata(""), "protected_resource", open=True)
    edge.add("GET", f"{METADATA_PATH}/mcp", authentication.metadata("/mcp"), "protected_resource_mcp", open=True)
    edge.add("POST", "/mcp", mcp, "mcp")
    special: dict[type[object], Endpoint] = {
        StreamEvents: EventStream(host.feed, host.authorizer, host.listener, streams),
        StreamProcedureConduct: ConductStream(host.conduct_feed, service, host.listener, streams),
    }
    for operation in REGISTRY:
        endpoint = special.get(operation.input) or OperationEndpoint(operation, service)
        helpful = HelpfulEndpoint(endpoint, operation, service)
        edge.add(operation.method, operation.path, helpful, operation.name, operation.context)
    if add_console is not None:
        edge.add_late(CONSOLE_SEGMENTS, partial(add_console, ApiParts(host, edge, authentication, streams)))
    if host.tracing is None:
        return edge
    from baton.api.trace_continuation import TraceContinuation  # imported only where it is wanted

    return TraceContinuation(edge)


def metrics(host: ServiceHost) -> Endpoint:
    """Return the endpoint of what Prometheus collects."""

    async def endpoint(request: Request, caller: Caller) -> Response:
        with suppress(Exception):  # the gauges of the processes need the database, the rest does not
            async with asyncio.timeout(2):
                observe_processes(*await host.fellow_processes())
        return Response(200, generate_latest(), content_type=CONTENT_TYPE_LATEST.encode())

    return endpoint


async def health(request: Request, caller: Caller) -> Response:
    """Answer that the process is alive."""
    return Response(200, b'{"status":"ok"}')


def readiness(host: ServiceHost) -> Endpoint:
    """Return the endpoint that is ready when the database answers, projections are built and permits were settled once.
    Faults of other processes are listed and do not make this one unready. Every answer names what writes can reach."""
    settled = False
    actuation = actuation_of(host.settings.control_routes, host.settings.control_writes_enabled).value

    def answer(code: int, **members: Any) -> Response:
        return Response(code, orjson.dumps({**members, "actuation": actuation}))

    async def endpoint(request: Request, caller: Caller) -> Response:
        nonlocal settled
        try:
            async with asyncio.timeout(2):
                unbuilt = await host.unbuilt_projections()
                unsettled = [] if settled else await host.unsettled_enclosures()
                processes, unled = await host.fellow_processes()
        except Exception as error:
            return answer(503, status="unavailable", because=type(error).__name__)
        if unbuilt:
            return answer(503, status="building", projections=len(unbuilt))
        if unsettled:
            return answer(503, status="settling", because=UNSETTLED, enclosures=unsettled)
        settled = True
        troubles = [
            {"process": process.kind, "task": trouble.task, "restarts": trouble.restarts, "because": trouble.because}
            for process in processes
            for trouble in process.troubles
        ]
        dropped = sum(process.dropped_lines for process in processes)
        skewed = [{"process": one.name, "seconds": one.clock_skew} for one in processes if one.has_wrong_clock]
        faults = {"unled_tasks": unled, "restarted_tasks": troubles, "dropped_log_lines": dropped, "clock_skew": skewed}
        return answer(200, status="ready", **{name: fault for name, fault in faults.items() if fault})

    return endpoint
