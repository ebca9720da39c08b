"""The pieces of the service as processes of their own; each loads only what it needs, so that it is there quickly."""

import asyncio
import gc
import signal
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import psycopg

from application.boot_guards import bootstrap_awaits_binding, bootstrap_objections
from application.settings import Settings
from application.telemetry import configure_logging
from cli.places import noted_place
from cli.refusing import chosen_settings, refuse, required_database

LONGEST_STOP = 18
"""Seconds that stopping may take: what is in progress has 5 to end, and what it set going twice as many to be halted."""

NOTED = ("database_url", "temporal_address")
"""The servers of a running stack, for a process beside it."""


def configured(*, stdio: bool = False, data_dir: Path | None = None) -> Settings:
    """The settings of this process on a database that is ready for it, or an exit that says what is in the way."""
    settings = chosen_settings(stdio=stdio)
    if data_dir is not None:
        places = {name: getattr(settings, name) or noted_place(data_dir, name) for name in NOTED}
        settings = settings.model_copy(update=places)
        if settings.database_url is None:
            refuse_stackless(data_dir)
    configure_logging(settings.log_level)
    url = required_database(settings)
    prepare(url)
    if bootstrap_awaits_binding(settings):
        with psycopg.connect(url) as connection:
            stored = connection.execute("SELECT actor_id FROM access_subject_binding").fetchall()
        if objections := bootstrap_objections(settings, [row[0] for row in stored]):
            refuse(*objections)
    return settings


def settle() -> None:
    """Begin to collect garbage, and leave alone what has been loaded: it stays, and is not looked through again."""
    gc.freeze()
    gc.enable()


def prepare(url: str) -> None:
    """Give the database the form this build needs; any number of processes may do so at once."""
    from infrastructure.postgres.form import NewerDatabaseError, has_current_form

    try:
        if not has_current_form(url):
            migrate_or_refuse(url)
    except NewerDatabaseError as error:
        refuse(str(error))
    except psycopg.Error as error:
        refuse(f"The database cannot be used: {one_line(error)}. Start it, or correct DATABASE_URL.")


def migrate_or_refuse(url: str) -> None:
    import sqlalchemy

    from infrastructure.postgres.migrate import migrate

    try:
        migrate(url)
    except sqlalchemy.exc.DBAPIError as error:
        refuse(f"The database cannot be migrated: {one_line(error.orig)}. Nothing was changed; mend that and start again.")


def one_line(error: object) -> str:
    """What a driver says, without its line breaks and the full stop."""
    return " ".join(str(error).split()).rstrip(".")


def serve_api(host: str, port: int, descriptor: int | None = None) -> None:
    """The API until it is told to stop, on this port or on a socket that the parent opened."""
    settings = configured()
    from cli.serving import serve
    from infrastructure.temporal.lines import speak_in_lines

    speak_in_lines()
    serve(settings, host, port, descriptor)


def run_projector() -> None:
    """The projector until it is told to stop."""
    settings = configured()
    import uvloop

    from infrastructure.postgres.projections import Projector

    settle()
    uvloop.run(until_told(Projector(required_database(settings)).run()))


def run_worker() -> None:
    """The worker until it is told to stop."""
    settings = configured()
    if settings.temporal_address is None:
        refuse("TEMPORAL_ADDRESS is not set; point it at a Temporal server, or use `baton up`, which brings its own.")
    import uvloop

    from cli.worker import run
    from infrastructure.compute.accounts import AccountUnusableError
    from infrastructure.control.routes import AdapterMissingError
    from infrastructure.temporal.lines import speak_in_lines

    speak_in_lines()
    settle()
    try:
        uvloop.run(run(settings))
    except (AdapterMissingError, AccountUnusableError) as error:
        refuse(str(error))


def run_mcp(data_dir: Path) -> None:
    """MCP over stdio until the client hangs up."""
    settings = configured(stdio=True, data_dir=data_dir)
    import uvloop

    from api.mcp import serve_stdio
    from infrastructure.runtime import BootRefused
    from infrastructure.temporal.lines import speak_in_lines

    speak_in_lines()
    settle()
    try:
        uvloop.run(serve_stdio(settings))
    except BootRefused as refused:
        refuse(*refused.sentences)


def when_told(stop: Callable[[], object]) -> None:
    """Have SIGTERM and SIGINT stop the running loop's work."""

    def tell() -> None:
        end_in_time()
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, tell)


def end_in_time() -> None:
    """Have the system end this process if it is not gone by then: whoever would see to that may have been killed."""
    if not signal.getitimer(signal.ITIMER_REAL)[0]:  # to be told twice gives no more time
        signal.alarm(LONGEST_STOP)


async def until_told(work: Coroutine[Any, Any, None]) -> None:
    """Run something until SIGTERM or SIGINT."""
    task = asyncio.create_task(work)
    when_told(task.cancel)
    with suppress(asyncio.CancelledError):
        await task


def rebuild_projections(names: list[str], data_dir: Path) -> None:
    """Rebuild the named projections, or all of them, and say how fast it went."""
    import uvloop
    from rich.console import Console

    from domain.contexts import REGISTRY
    from infrastructure.postgres.projections import rebuild

    known = REGISTRY.projections
    if unknown := [name for name in names if name not in known]:
        refuse(f"{', '.join(unknown)}: no such projection; there are {', '.join(sorted(known))}.")
    url = database_of(data_dir)
    settle()
    console = Console(emoji=False)
    for name in names or sorted(known):
        started = time.perf_counter()
        with console.status(f"rebuilding {name}"):
            events = uvloop.run(rebuild(url, [name]))
        seconds = time.perf_counter() - started
        console.print(f"{name}: {events} events in {seconds:.2f} s ({events / seconds:,.0f}/s)", soft_wrap=True)


def database_of(data_dir: Path) -> str:
    """The database meant: the configured one, or that of the stack running on this data directory."""
    url = chosen_settings().database_url or noted_place(data_dir, "database_url")
    if url is None:
        refuse_stackless(data_dir)
    prepare(url)
    return url


def refuse_stackless(data_dir: Path) -> NoReturn:
    """End the command, because neither a database is named nor a stack there."""
    refuse(f"No database: DATABASE_URL is not set and no stack runs on {data_dir}; start one with `baton up`.")
