"""The API processes: a uvicorn server, which ends streams when it stops, and MCP for one agent over standard streams."""

import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import uvicorn
import uvloop
from fastapi import APIRouter

from baton.api.app import ApiParts, create_app
from baton.api.connections import KEEP_ALIVE_SECONDS, timed_connection
from baton.application.settings import Settings
from baton.cli.child_processes import open_listener, require_loopback, url_of
from baton.cli.composition.runtime import BootRefused, Runtime
from baton.cli.embedded.process import StartError
from baton.cli.messages import refuse
from baton.cli.startup import limit_stop_time, start_garbage_collection
from baton.infrastructure.temporal.sdk_logging import configure_sdk_logging


def serve_api(settings: Settings, host: str, port: int, descriptor: int | None = None, *, any_host: bool = False) -> None:
    """Serve until SIGTERM or SIGINT, on this port or on a socket that the parent opened."""
    configure_sdk_logging()
    stopping = asyncio.Event()
    try:
        runtime = Runtime(settings, stopping=stopping)
        app = Startup(create_app(runtime, any_host=any_host, add_console=partial(load_console, settings)))
    except BootRefused as refused:
        refuse(*refused.sentences)
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http=timed_connection(settings.client_timeout_seconds),
        ws="none",
        log_level="warning",
        access_log=False,
        proxy_headers=False,  # TRUSTED_PROXIES decides
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=5,
    )
    try:
        listening = open_listener(host, port) if descriptor is None else socket.socket(fileno=descriptor)
        require_loopback(listening, settings, any_host)
    except StartError as error:
        refuse(str(error))
    server = ApiServer(config, stopping)
    start_garbage_collection()
    app.started = lambda: print(f"serving on {url_of(listening)}", flush=True)
    try:
        server.run(sockets=[listening])
    finally:
        if app.objections:
            refuse(*app.objections)


def load_console(settings: Settings, parts: ApiParts, router: APIRouter) -> None:
    """Add the console to the application; a process that is asked for no page does without its modules."""
    from baton.cli.doctor.own_examination import examine_process
    from baton.console.console import add_console

    add_console(parts, router, examine=partial(examine_process, settings))


class ApiServer(uvicorn.Server):
    """Sets the stopping event before it waits for requests in progress, so that streams end at once."""

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        limit_stop_time()
        self._stopping.set()
        await super().shutdown(sockets)


class Startup:
    """Wraps an application: announces its start, and keeps a refusal to start as sentences instead of a traceback."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.started: Callable[[], None] = lambda: None
        self.objections: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return
        failed: dict[str, Any] = {}

        async def send_all_but_failure(message: dict[str, Any]) -> None:
            if message["type"] == "lifespan.startup.failed":
                failed.update(message)
                return
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                self.started()

        try:
            await self._app(scope, receive, send_all_but_failure)
        except BootRefused as refused:
            self.objections = refused.sentences
            logging.getLogger("uvicorn.error").disabled = True
        finally:
            if failed:
                await send(failed)


def run_mcp(settings: Settings) -> None:
    """Answer frames on standard input and output until the client closes the streams."""
    from baton.api.mcp.transports import serve_stdio

    async def serve() -> None:
        async with Runtime(settings) as runtime:
            await runtime.plant_seeds()
            await serve_stdio(settings, runtime.service, runtime.feed, runtime.listener)

    configure_sdk_logging()
    start_garbage_collection()
    try:
        uvloop.run(serve())
    except BootRefused as refusal:
        refuse(*refusal.sentences)
