"""The `baton` command line: each command imports what it needs when it runs, so that it starts quickly."""

import gc
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from traceback import walk_tb
from typing import Annotated, Any

from typer import Argument, Exit, Option, Typer
from typer.core import TyperGroup

import baton
from baton.cli.daily import (
    approvals,
    calls,
    completion,
    data,
    documents,
    events,
    files,
    imports,
    overview,
    queue,
    reports,
    sign_in,
    steering,
    witness,
    work,
)
from baton.cli.daily.session import DAILY_WORK, AsJson, ServiceSession, print_json, service_command


class RecipeGroup(TyperGroup):
    """The commands about conducts; what is none of them is a recipe to conduct."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, ["recipe", *args] if args and args[0] not in known else args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        [recipe, *_] = self.commands["recipe"].params
        return [*super().shell_complete(ctx, incomplete), *recipe.shell_complete(ctx, incomplete)]


app = Typer(
    no_args_is_help=True,
    add_completion=completion.VARIABLE in os.environ,  # a shell asks for completions
    pretty_exceptions_enable=False,
)
projections = Typer(no_args_is_help=True, help="The read models.")
catalog = Typer(no_args_is_help=True, help="The starter catalog of an imaging beamline.")
app.add_typer(projections, name="projections")
app.add_typer(catalog, name="catalog")
app.add_typer(imports.app, name="import")
app.add_typer(queue.app, name="queue", rich_help_panel=DAILY_WORK)
app.add_typer(data.app, name="data", rich_help_panel=DAILY_WORK)
app.add_typer(witness.app, name="witness", rich_help_panel=DAILY_WORK)
for group in (overview, work, steering, approvals, events, files, documents, reports, calls, sign_in, completion):
    app.add_typer(group.app)
app.add_typer(
    work.conduct,
    name="conduct",
    cls=RecipeGroup,
    no_args_is_help=True,
    help="Have a recipe conducted: `baton conduct RECIPE --on ASSET`; or watch a conduct.",
)

Host = Annotated[str, Option(help="Address to listen on.")]
AnyHost = Annotated[
    bool, Option("--insecure-any-host", help="Let others than this machine in although no token is required.")
]
Port = Annotated[int, Option(help="Port to listen on; 0 takes a free one.")]
DataDir = Annotated[Path, Option(help="The data directory of `baton up`.")]


def main() -> None:
    """Run the command line."""
    gc.disable()  # until everything is loaded: see `baton.cli.startup.start_garbage_collection`
    try:
        app()
    except ModuleNotFoundError as error:
        if str(error.name).startswith("baton"):
            raise
        print(f"This command needs {error.name}, which is not installed; install {needed_extra(error)}.", file=sys.stderr)
        sys.exit(2)


def needed_extra(error: ModuleNotFoundError) -> str:
    """Return what brings a module that is missing: the extra of the part of the package that asked for it."""
    askers = {str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__)}
    if any(name.startswith("baton.beamline") for name in askers):
        return "baton-facility[files]"
    return "baton-facility[server], and [embedded] for `baton up`"


def print_version(requested: bool) -> None:
    """Print the version and exit, where `--version` was given."""
    if requested:
        print(baton.__version__)
        raise Exit


Version = Annotated[bool, Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")]


@app.callback()
def options(version: Version = False) -> None:
    """Operations control for experiment facilities."""


@app.command()
def up(
    data_dir: Annotated[Path, Option(help="Where the embedded servers keep their data.")] = Path(".baton"),
    host: Host = "127.0.0.1",
    port: Port = 8000,
    insecure_any_host: AnyHost = False,
    temporal_port: Annotated[int, Option(help="Port of the embedded Temporal; 0 takes a free one.")] = 7233,
    temporal_ui_port: Annotated[int, Option(help="Port of the Temporal UI; 0 takes a free one.")] = 8233,
) -> None:
    """Bring up the whole service: PostgreSQL and Temporal (unless outside ones are named), api, worker, projector."""
    from baton.cli.up import Stack

    Stack(data_dir, host, port, temporal_port, temporal_ui_port, any_host=insecure_any_host).run()


@app.command()
def api(
    host: Host = "127.0.0.1",
    port: Port = 8000,
    insecure_any_host: AnyHost = False,
    descriptor: Annotated[int | None, Option(hidden=True, help="A listening socket that the parent opened.")] = None,
) -> None:
    """Serve REST and MCP on outside servers (DATABASE_URL, TEMPORAL_ADDRESS)."""
    from baton.cli.startup import prepare_process

    settings = prepare_process("api")
    from baton.cli.api_server import serve_api

    serve_api(settings, host, port, descriptor, any_host=insecure_any_host)


@app.command()
def worker() -> None:
    """Monitor the plant and run the workflows; any number may run, one monitors."""
    from baton.cli.startup import prepare_process

    settings = prepare_process("worker")
    from baton.cli.worker import run_worker

    run_worker(settings)


@app.command()
def projector() -> None:
    """Keep the projections; any number may run, one leads."""
    from baton.cli.startup import prepare_process

    settings = prepare_process("projector")
    from baton.cli.projector import run_projector

    run_projector(settings)


@app.command()
def mcp(data_dir: DataDir = Path(".baton")) -> None:
    """Serve MCP over standard input and output, on outside servers or beside the stack of the data directory."""
    from baton.cli.startup import prepare_process

    settings = prepare_process("mcp", stdio=True, data_dir=data_dir)
    from baton.cli.api_server import run_mcp

    run_mcp(settings)


@app.command()
def doctor(
    only: Annotated[str | None, Option(help="One check, by the name it is printed with.")] = None,
    data_dir: DataDir = Path(".baton"),
    as_json: AsJson = False,
) -> None:
    """Say what is wrong and how to mend it."""
    from baton.cli.doctor.examination import examine

    raise SystemExit(examine(only, data_dir, as_json=as_json))


@app.command()
def restore(
    adopt: Annotated[
        bool, Option("--adopt", help="Make a record that came from another cluster at home in this one.")
    ] = False,
    data_dir: DataDir = Path(".baton"),
) -> None:
    """Make a database that PostgreSQL's own tools restored ready for the service; all processes are stopped meanwhile."""
    from baton.cli.restoring import adopt_record

    adopt_record(data_dir, wanted=adopt)


@projections.command("rebuild")
def rebuild(
    names: Annotated[list[str] | None, Argument(help="Projections to rebuild; all when none is named.")] = None,
    data_dir: DataDir = Path(".baton"),
) -> None:
    """Fill projections again from the log while the service is in use."""
    from baton.cli.projector import rebuild_projections

    rebuild_projections(names or [], data_dir)


@service_command(catalog, "load")
def load(session: ServiceSession) -> None:
    """Load the starter catalog through the running service; what is there already is left alone."""
    from baton.beamline.catalog import load_catalog

    with redirect_stdout(sys.stderr if session.as_json else sys.stdout):
        code = load_catalog(session.client)
    if session.as_json:
        print_json({"exit_code": code})
    raise SystemExit(code)
