"""The pieces of the service as processes of their own; each loads only what it needs, so that it is there quickly."""

import asyncio
import gc
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from baton.application.boot_guards import bootstrap_awaits_binding, bootstrap_objections, database_objections
from baton.application.log_stream import protect_streams
from baton.application.settings import Settings
from baton.application.telemetry import configure_logging
from baton.cli.embedded.process import wait_until
from baton.cli.stack_address import noted_place
from baton.cli.startup_errors import NO_DATABASE, chosen_settings, refuse, required_database

LONGEST_STOP = 18
"""Seconds that stopping may take: what is in progress has 5 to end, and what it set going twice as many to be halted."""
FORM_PATIENCE = 100.0
"""Seconds that another process has to migrate the database where this one may not."""
FORM_INTERVAL = 0.25


def configured(*, stdio: bool = False, data_dir: Path | None = None) -> Settings:
    """The settings of this process on a database that is ready for it, or an exit that says what is in the way."""
    settings = chosen_settings(stdio=stdio)
    if data_dir is not None:
        settings = on_stack(settings, data_dir)
    protect_streams(stdout=not stdio)
    configure_logging(settings.log_level)
    url = required_database(settings)
    prepare(settings)
    if settings.production:
        from baton.infrastructure.postgres.schema_version import can_rewrite_log

        if objections := database_objections(settings, can_rewrite_log=can_rewrite_log(url)):
            refuse(*objections)
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


def on_stack(settings: Settings, data_dir: Path) -> Settings:
    """These settings with the servers of the stack that runs on this data directory, where none are set."""
    if settings.database_url is None:
        noted = {name: noted_place(data_dir, name) for name in ("database_url", "database_owner_url")}
        settings = settings.model_copy(update=noted)
    if settings.temporal_address is None:
        settings = settings.model_copy(update={"temporal_address": noted_place(data_dir, "temporal_address")})
    if settings.database_url is None:
        refuse(f"No database: DATABASE_URL is not set and no stack runs on {data_dir}; start one with `baton up`.")
    return settings


def prepare(settings: Settings) -> None:
    """Give the database the form this build needs, as any number of processes may at once, or wait until one has."""
    from baton.infrastructure.postgres.schema_version import NewerDatabaseError, has_current_form, may_migrate

    url = required_database(settings)
    owner_url = settings.database_owner_url
    try:
        if has_current_form(url):
            return
        if owner_url is not None or may_migrate(url):
            migrate_or_refuse(owner_url or url)
        elif not wait_until(lambda: has_current_form(url), FORM_PATIENCE, FORM_INTERVAL):
            refuse(
                "The database lacks migrations, which the user of DATABASE_URL may not apply; start `baton projector` with "
                "the owner's login in DATABASE_OWNER_URL."
            )
    except NewerDatabaseError as error:
        refuse(str(error))
    except psycopg.Error as error:
        refuse(f"{NO_DATABASE}: {one_line(error)}. Start it, or correct DATABASE_URL.")


def migrate_or_refuse(url: str) -> None:
    import sqlalchemy

    from baton.infrastructure.postgres.migrate import migrate

    try:
        migrate(url)
    except sqlalchemy.exc.DBAPIError as error:
        refuse(f"The database cannot be migrated: {one_line(error.orig)}. Nothing was changed; mend that and start again.")


def one_line(error: object) -> str:
    """What a driver says, without its line breaks and the full stop."""
    return " ".join(str(error).split()).rstrip(".")


def serve_api(host: str, port: int, descriptor: int | None = None, *, any_host: bool = False) -> None:
    """The API until it is told to stop, on this port or on a socket that the parent opened."""
    settings = configured()
    from baton.cli.api_server import serve
    from baton.infrastructure.temporal.sdk_logging import speak_in_lines

    speak_in_lines()
    serve(settings, host, port, descriptor, any_host)


def run_projector() -> None:
    """The projector until it is told to stop."""
    settings = configured()
    import uvloop

    from baton.infrastructure.background import Supervisor
    from baton.infrastructure.postgres.process_reports import Reporter
    from baton.infrastructure.postgres.projections import Projector

    url = required_database(settings)

    async def project() -> None:
        stopping = asyncio.Event()
        when_told(stopping.set)
        supervisor = Supervisor()
        reporter = Reporter(url, "projector", supervisor)
        async with (
            supervisor.supervise("reporting", reporter.run),
            supervisor.supervise("projections", Projector(url, owner_url=settings.database_owner_url).run),
        ):
            await stopping.wait()

    settle()
    uvloop.run(project())


def run_worker() -> None:
    """The worker until it is told to stop."""
    settings = configured()
    if settings.temporal_address is None:
        refuse("TEMPORAL_ADDRESS is not set; point it at a Temporal server, or use `baton up`, which brings its own.")
    import uvloop

    from baton.cli.worker import run
    from baton.infrastructure.compute.accounts import AccountUnusableError
    from baton.infrastructure.control.routes import AdapterMissingError
    from baton.infrastructure.temporal.sdk_logging import speak_in_lines

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

    from baton.api.mcp import serve_stdio
    from baton.infrastructure.runtime import BootRefused
    from baton.infrastructure.temporal.sdk_logging import speak_in_lines

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


def rebuild_projections(names: list[str], data_dir: Path) -> None:
    """Rebuild the named projections, or all of them, and say how fast it went."""
    import uvloop
    from rich.console import Console

    from baton.domain.contexts import REGISTRY
    from baton.infrastructure.postgres.projections import rebuild

    known = REGISTRY.projections
    if unknown := [name for name in names if name not in known]:
        refuse(f"{', '.join(unknown)}: no such projection; there are {', '.join(sorted(known))}.")
    settings = on_stack(chosen_settings(), data_dir)
    prepare(settings)
    url = settings.database_owner_url or required_database(settings)
    settle()
    console = Console(emoji=False)
    for name in names or sorted(known):
        started = time.perf_counter()
        with console.status(f"rebuilding {name}"):
            events = uvloop.run(rebuild(url, [name]))
        seconds = time.perf_counter() - started
        console.print(f"{name}: {events} events in {seconds:.2f} s ({events / seconds:,.0f}/s)", soft_wrap=True)
