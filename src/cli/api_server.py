"""The API as a process: a server that ends streams when it stops, and says in sentences why it does not start."""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from baton.api.app import create_app
from baton.api.connections import timed_connection
from baton.application.settings import Settings
from baton.cli.api_socket import listener, require_loopback, url_of
from baton.cli.embedded.process import StartError
from baton.cli.processes import end_in_time, settle
from baton.cli.startup_errors import refuse
from baton.infrastructure.runtime import BootRefused

GRACE = 5
"""Seconds that requests in progress have to end when the API is told to stop."""


def serve(settings: Settings, host: str, port: int, descriptor: int | None, any_host: bool) -> None:
    """Serve until told to stop, on this port or on a socket that the parent opened."""
    stopping = asyncio.Event()
    app = Startup(create_app(settings, stopping=stopping, any_host=any_host))
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http=timed_connection(settings.client_timeout_seconds),
        ws="none",
        log_level="warning",
        access_log=False,
        proxy_headers=False,  # whom to believe is up to TRUSTED_PROXIES
        timeout_graceful_shutdown=GRACE,
    )
    try:
        listening = listener(host, port) if descriptor is None else socket.socket(fileno=descriptor)
        require_loopback(listening, settings, any_host)
    except StartError as error:
        refuse(str(error))
    server = Server(config, stopping)
    settle()
    app.started = lambda: print(f"serving on {url_of(listening)}", flush=True)
    try:
        server.run(sockets=[listening])
    finally:
        if app.objections:
            refuse(*app.objections)


class Server(uvicorn.Server):
    """Says that it is stopping before it waits for what is in progress; streams would go on until its patience ends."""

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        end_in_time()
        self._stopping.set()
        await super().shutdown(sockets)


class Startup:
    """An application whose start is announced, and whose refusal to start is kept as sentences, not as a traceback."""

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
