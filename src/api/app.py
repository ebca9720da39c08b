"""The API: one FastAPI application with every operation of the registry, health, documentation, metrics, MCP and console."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import orjson
from fastapi import APIRouter, FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from baton.api.argument_help import HelpfulEndpoint
from baton.api.authentication import Authentication
from baton.api.documentation import documentation_routes
from baton.api.edge import LateRoutes, OperationRoutes, make_application
from baton.api.http import Endpoint
from baton.api.landing_pages import landing_pages
from baton.api.mcp.entrance import McpEntrance
from baton.api.metrics import observe_processes
from baton.api.refusal_catalogue import refusal_page
from baton.api.rest import OperationEndpoint
from baton.api.streams import AppendListener, ConductStream, EventStream, OpenStreams
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
    from baton.client.spreadsheets import Table

CONSOLE_SEGMENTS = ("", "console")  # `/` leads to the console
UNSETTLED = "No worker has settled the permits of these enclosures since its start; see that one runs."


class TableReader(Protocol):
    """Reads what somebody uploads as a table, where it can do no harm."""

    async def read_table(self, name: str, content: bytes) -> "Table":
        """Return the table in a .csv or .xlsx file, or raise SpreadsheetError."""


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
    def table_reader(self) -> TableReader: ...
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
    operations: OperationRoutes
    authentication: Authentication
    streams: OpenStreams


def create_app(
    host: ServiceHost, *, any_host: bool = False, add_console: Callable[[ApiParts, APIRouter], None] | None = None
) -> FastAPI:
    """Return the application, with a console that is added to it when its first page is asked for; streams and waiting
    requests end once the service is stopping."""
    settings, service = host.settings, host.service
    authentication = Authentication(settings, host.identity, any_host=any_host)
    streams = OpenStreams(settings.max_open_streams, settings.database_pool_size, settings.max_streams_per_principal)
    mcp = McpEntrance(settings, service, host.feed, host.listener, streams)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with host, host.report_process("api"):
            await host.plant_seeds()
            async with mcp.open():
                yield

    limits = settings.max_request_body_size_bytes, service.stopping
    logged = settings.requests_logged
    operations = OperationRoutes(authentication, *limits)
    operations.add("POST", "/mcp", mcp, "mcp")
    special: dict[type[Any], Endpoint] = {
        StreamEvents: EventStream(host.feed, host.authorizer, host.listener, streams),
        StreamProcedureConduct: ConductStream(host.conduct_feed, service, host.listener, streams),
    }
    for operation in REGISTRY:
        endpoint = special.get(operation.input) or OperationEndpoint(operation, service)
        helpful = HelpfulEndpoint(endpoint, operation, service)
        operations.add(operation.method, operation.path, helpful, operation.name, operation.context)
    app = make_application(operations, authentication, *limits, lifespan, logged=logged)
    app.router.routes += [*service_routes(host, authentication).routes, *documentation_routes(settings).routes]
    if add_console is not None:
        parts = ApiParts(host, operations, authentication, streams)
        app.router.routes.append(LateRoutes(CONSOLE_SEGMENTS, "console", partial(add_console, parts)))
    if host.tracing is not None:
        from baton.api.trace_continuation import TraceContinuation  # imported only where it is wanted

        app.add_middleware(TraceContinuation)
    return app


def service_routes(host: ServiceHost, authentication: Authentication) -> APIRouter:
    """Return the routes of the service itself, which need no principal; that of landing pages asks for one by itself."""
    router = APIRouter()
    router.add_api_route("/health", health, name="health")
    router.add_api_route("/readyz", readiness(host), name="readyz")
    router.add_api_route("/metrics", metrics(host), name="metrics")
    router.add_api_route("/refusals/{code}", refusal_page, name="refusals")
    pages = landing_pages(host.service, authentication, host.settings.public_landing_pages)
    router.add_api_route("/landing/{kind}/{id}", pages, name="landing_page")
    router.add_api_route(METADATA_PATH, authentication.metadata(""), name="protected_resource")
    router.add_api_route(f"{METADATA_PATH}/mcp", authentication.metadata("/mcp"), name="protected_resource_mcp")
    return router


def metrics(host: ServiceHost) -> Callable[[], Awaitable[Response]]:
    """Return the endpoint of what Prometheus collects."""

    async def endpoint() -> Response:
        with suppress(Exception):  # the gauges of the processes need the database, the rest does not
            async with asyncio.timeout(2):
                observe_processes(*await host.fellow_processes())
        return Response(generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return endpoint


async def health() -> Response:
    """Answer that the process is alive."""
    return Response(b'{"status":"ok"}', media_type="application/json")


def readiness(host: ServiceHost) -> Callable[[], Awaitable[Response]]:
    """Return the endpoint that is ready when the database answers, projections are built and permits were settled once.
    Faults of other processes are listed and do not make this one unready. Every answer names what writes can reach."""
    settled = False
    actuation = actuation_of(host.settings.control_routes, host.settings.control_writes_enabled).value

    def answer(code: int, **members: Any) -> Response:
        return Response(orjson.dumps({**members, "actuation": actuation}), code, media_type="application/json")

    async def endpoint() -> Response:
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
