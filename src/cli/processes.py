"""The pieces of the service as processes of their own."""

import asyncio
import signal
import time
from contextlib import suppress
from pathlib import Path

import uvicorn
import uvloop
from rich.console import Console

from application.settings import Settings
from application.telemetry import configure_logging
from cli.places import database_of
from cli.refusing import refuse, refuse_objections
from infrastructure.postgres.migrate import migrate
from infrastructure.postgres.projections import Projector
from infrastructure.postgres.projections import rebuild as rebuild_tables


def configured(*, stdio: bool = False) -> Settings:
    """The settings of this process, or an exit that says what is wrong with them."""
    settings = Settings()
    configure_logging(settings.log_level)
    refuse_objections(settings, stdio=stdio)
    return settings


def serve_api(host: str, port: int) -> None:
    """The API until it is told to stop; requests in progress are finished."""
    from api.app import create_app

    settings = configured()
    migrate(str(settings.database_url))
    uvicorn.run(
        create_app(settings),
        host=host,
        port=port,
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=10,
    )


def run_projector() -> None:
    """The projector until it is told to stop."""
    settings = configured()
    migrate(str(settings.database_url))
    uvloop.run(until_told(Projector(str(settings.database_url)).run()))


def run_mcp() -> None:
    """MCP over stdio until the client hangs up."""
    from api.mcp import serve_stdio

    settings = configured(stdio=True)
    migrate(str(settings.database_url))
    uvloop.run(serve_stdio(settings))


async def until_told(work: "asyncio.Future[None] | object") -> None:
    """Run something until SIGTERM or SIGINT."""
    task = asyncio.ensure_future(work)  # type: ignore[arg-type]
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with suppress(asyncio.CancelledError):
        await task


def rebuild_projections(names: list[str], data_dir: Path) -> None:
    """Rebuild the named projections, or all of them, and say how fast it went."""
    from domain.contexts import REGISTRY

    known = REGISTRY.projections
    if unknown := [name for name in names if name not in known]:
        refuse(f"{', '.join(unknown)}: no such projection; there are {', '.join(sorted(known))}.")
    url = database_of(Settings(), data_dir)
    console = Console()
    for name in names or sorted(known):
        started = time.perf_counter()
        with console.status(f"rebuilding {name}"):
            events = uvloop.run(rebuild_tables(url, [name]))
        seconds = time.perf_counter() - started
        console.print(f"{name}: {events} events in {seconds:.2f} s ({events / seconds:,.0f}/s)")
