"""The API process: the edge over every operation of the registry, with documentation, health and MCP beside them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.requests import Request as BehindRequest
from starlette.responses import Response as BehindResponse

from baton.api.authentication import Authentication
from baton.api.conduct_streams import ConductStream
from baton.api.docs import DOCS_PAGE, page_headers
from baton.api.edge import Edge, response_to, route_not_found
from baton.api.http import Request, Response
from baton.api.mcp import McpEndpoint
from baton.api.metrics import observe_processes
from baton.api.openapi import openapi_document
from baton.api.rest import OperationEndpoint
from baton.api.streams import EventStream, OpenStreams
from baton.api.tracing import TraceContinuation
from baton.application.identity import METADATA_PATH
from baton.application.ports import Caller
from baton.application.settings import Settings
from baton.domain.access.edge_queries import StreamEvents
from baton.domain.contexts import REGISTRY
from baton.domain.operation.conduct.actuation import actuation_of
from baton.domain.operation.conduct.views import StreamProcedureConduct
from baton.domain.shared.refusals import Refusal
from baton.infrastructure.runtime import Runtime

HEALTHY = b'{"status":"ok"}'
UNSETTLED = "No worker has settled the permits of these enclosures since its start; see that one runs."


def create_app(
    settings: Settings, runtime: Runtime | None = None, stopping: asyncio.Event | None = None, *, any_host: bool = False
) -> Edge | TraceContinuation:
    """The application a server runs; streams and waiting requests end once the server says that it is stopping."""
    runtime = runtime or Runtime(settings, stopping=stopping)
    authentication = Authentication(settings, runtime.identity, any_host=any_host)
    mcp = McpEndpoint(settings, runtime.service)
    behind = application_behind(runtime, mcp)
    edge = Edge(behind, authentication, settings.max_request_body_size_bytes, runtime.service.stopping)
    edge.add("GET", "/health", health, "health", open=True)
    edge.add("GET", "/readyz", readiness(runtime), "readyz", open=True)
    edge.add("GET", METADATA_PATH, authentication.metadata(""), "protected_resource", open=True)
    edge.add("GET", f"{METADATA_PATH}/mcp", authentication.metadata("/mcp"), "protected_resource_mcp", open=True)
    edge.add("POST", "/mcp", mcp, "mcp")
    streams = OpenStreams(settings.max_open_streams, settings.database_pool_size)
    for operation in REGISTRY:
        endpoint: Any = OperationEndpoint(operation, runtime.service)
        if operation.input is StreamEvents:
            endpoint = EventStream(runtime.feed, runtime.authorizer, runtime.listener, streams)
        elif operation.input is StreamProcedureConduct:
            endpoint = ConductStream(runtime.watching, runtime.service, runtime.listener, streams)
        edge.add(operation.method, operation.path, endpoint, operation.name, operation.context)
    return edge if runtime.tracing is None else TraceContinuation(edge)


def application_behind(runtime: Runtime, mcp: McpEndpoint) -> FastAPI:
    """What is not an operation: documentation and metrics, and what must be open while anything is answered."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with runtime, runtime.reporting("api"):
            await runtime.plant_seeds()
            async with mcp.running():
                yield

    @cache
    def document() -> bytes:
        return orjson.dumps(openapi_document(REGISTRY, runtime.settings))

    app = FastAPI(title="Baton", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/openapi.json")
    async def openapi() -> BehindResponse:
        return BehindResponse(await asyncio.to_thread(document), media_type="application/json")

    docs_headers = page_headers(DOCS_PAGE)

    @app.get("/docs")
    async def docs() -> HTMLResponse:
        return HTMLResponse(DOCS_PAGE, headers=docs_headers)

    @app.get("/metrics")
    async def metrics() -> PlainTextResponse:
        with suppress(Exception):  # what the other processes say needs the database; the rest does not
            async with asyncio.timeout(2):
                observe_processes(*await runtime.fellow_processes())
        return PlainTextResponse(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    @app.exception_handler(Refusal)
    async def refuse(request: BehindRequest, refusal: Refusal) -> BehindResponse:
        answer = response_to(refusal, "edge", request.scope["correlation_id"], request.scope)
        return BehindResponse(answer.body, answer.status, media_type="application/json")

    @app.exception_handler(HTTPException)
    async def unrouted(request: BehindRequest, error: HTTPException) -> BehindResponse:
        answer = response_to(route_not_found(), "edge", request.scope["correlation_id"], request.scope)
        return BehindResponse(answer.body, error.status_code, media_type="application/json")

    return app


async def health(request: Request, caller: Caller) -> Response:
    return Response(200, HEALTHY)


def readiness(runtime: Runtime) -> Any:
    """Ready when the database answers, every projection is built and the configured permits were settled once.

    What the other processes fail to do is said beside that, and does not keep this one from answering.
    Every answer says what writes can reach.
    """
    settled = False
    actuation = actuation_of(runtime.settings.control_routes, runtime.settings.control_writes_enabled).value

    def answer(code: int, **said: Any) -> Response:
        return Response(code, orjson.dumps({**said, "actuation": actuation}))

    async def endpoint(request: Request, caller: Caller) -> Response:
        nonlocal settled
        try:
            async with asyncio.timeout(2):
                async with runtime.pool.connection() as connection:
                    found = await connection.execute("SELECT count(*) FROM projections WHERE built_at IS NULL")
                    row = await found.fetchone()
                waiting = [] if settled else await runtime.unsettled_enclosures()
                processes, unled = await runtime.fellow_processes()
        except Exception as error:
            return answer(503, status="unavailable", because=type(error).__name__)
        if row and row[0]:
            return answer(503, status="building", projections=row[0])
        if waiting:
            return answer(503, status="settling", because=UNSETTLED, enclosures=waiting)
        settled = True
        troubled = [
            {"process": process.kind, "task": trouble.task, "restarts": trouble.restarts, "because": trouble.because}
            for process in processes
            for trouble in process.troubles
        ]
        dropped = sum(process.dropped_lines for process in processes)
        beside = {"unled_tasks": unled, "restarted_tasks": troubled, "dropped_log_lines": dropped}
        return answer(200, status="ready", **{name: said for name, said in beside.items() if said})

    return endpoint
