"""The projector process, and rebuilding projections by hand."""

import asyncio
import time
from pathlib import Path

import uvloop
from rich.console import Console

from baton.application.settings import Settings
from baton.cli import startup
from baton.cli.messages import refuse
from baton.domain.contexts import REGISTRY
from baton.infrastructure.background import Supervisor
from baton.infrastructure.postgres.leadership import ProcessReporter
from baton.infrastructure.postgres.projections import Projector, rebuild


def run_projector(settings: Settings) -> None:
    """Keep the projections until SIGTERM or SIGINT."""
    url, supervisor = startup.required_database(settings), Supervisor()

    async def project() -> None:
        stopping = asyncio.Event()
        startup.stop_on_signals(stopping.set)
        async with (
            supervisor.supervise("reporting", ProcessReporter(url, "projector", supervisor).run),
            supervisor.supervise("projections", Projector(url, owner_url=settings.database_owner_url).run),
        ):
            await stopping.wait()

    startup.start_garbage_collection()
    uvloop.run(project())


def rebuild_projections(names: list[str], data_dir: Path) -> None:
    """Rebuild the named projections, or all of them, and print how fast it went."""
    known = REGISTRY.projections
    if unknown := [name for name in names if name not in known]:
        refuse(f"{', '.join(unknown)}: no such projection; there are {', '.join(sorted(known))}.")
    settings = startup.with_stack_servers(startup.load_settings(), data_dir)
    startup.prepare_database(settings)
    url = settings.database_owner_url or startup.required_database(settings)
    startup.start_garbage_collection()
    console = Console(emoji=False)
    for name in names or sorted(known):
        started = time.perf_counter()
        with console.status(f"rebuilding {name}"):
            events = uvloop.run(rebuild(url, [name]))
        seconds = time.perf_counter() - started
        console.print(f"{name}: {events} events in {seconds:.2f} s ({events / seconds:,.0f}/s)", soft_wrap=True)
