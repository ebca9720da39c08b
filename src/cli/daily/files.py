"""`apply`, `diff`, `export` and `schema`: the beamline as a file."""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option, Typer

from baton.cli.daily.completion import complete_asset
from baton.cli.daily.session import DAILY_WORK, ServiceSession, print_json, service_command
from baton.cli.messages import REFUSED, refuse

app = Typer()
Files = Annotated[list[Path], Option("-f", "--file", help="A beamline file, YAML or JSON; may be repeated.")]
Prune = Annotated[bool, Option("--prune", help="Retire what the file does not name.")]


@service_command(app)
def apply(
    session: ServiceSession,
    file: Files,
    dry_run: Annotated[bool, Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    prune: Prune = False,
    yes: Annotated[bool, Option("--yes", help="Retire without asking.")] = False,
) -> None:
    """Bring the record to what beamline files say; exits with 1 where something was refused."""
    code = apply_files(session, file, dry_run=dry_run, prune=prune, yes=yes)
    if session.as_json:
        print_json({"files": [str(one) for one in file], "dry_run": dry_run, "exit_code": code})
    raise SystemExit(code)


def apply_files(session: ServiceSession, files: Sequence[Path], **options: bool) -> int:
    """Apply beamline files and return the exit code; what is said goes beside the JSON document, where one is wanted."""
    from baton.beamline import commands

    with redirect_stdout(sys.stderr if session.as_json else sys.stdout):
        return commands.apply_files(session.client, files, **options)


@service_command(app)
def diff(session: ServiceSession, file: Files, prune: Prune = False) -> None:
    """Show what applying beamline files would change, each command tried; exits with 2 where anything would change, with 1
    where anything would be refused."""
    from baton.beamline import commands
    from baton.beamline.reading import BeamlineFileError

    if not session.as_json:
        raise SystemExit(commands.diff_files(session.client, file, prune=prune))
    try:
        plan = commands.rehearse(session.client, file, prune=prune)
    except BeamlineFileError as error:
        raise SystemExit(commands.refuse_files(error)) from None
    print_json([change_document(one) for one in (*plan.changes, *plan.retirements)])
    raise SystemExit(commands.diff_code(plan))


def change_document(change: Any) -> dict[str, Any]:
    """Return what is to be done with one thing."""
    return {
        "section": change.section,
        "name": change.key,
        "creates": change.creates,
        "retires": change.retires,
        "operations": [one.operation for one in change.updates],
        "obstacles": list(change.obstacles),
    }


@service_command(app)
def export(
    session: ServiceSession,
    root: Annotated[str | None, Option(help="Only what hangs below this asset.", autocompletion=complete_asset)] = None,
) -> None:
    """Print the record as a beamline file, in YAML; with --json the same in JSON."""
    from baton.beamline import commands

    if not session.as_json:
        raise SystemExit(commands.export_record(session.client, root))
    from io import StringIO

    from ruamel.yaml import YAML

    with redirect_stdout(StringIO()) as text:
        code = commands.export_record(session.client, root)
    if code == commands.DONE:
        print_json(YAML(typ="safe", pure=True).load(text.getvalue()))
    raise SystemExit(code)


@app.command(rich_help_panel=DAILY_WORK)
def init(
    file: Annotated[Path, Argument(help="Where to write it; a file that is there already is not written over.")] = Path(
        "beamline.yaml"
    ),
) -> None:
    """Write a commented beamline file to begin with; no service is asked."""
    text = resources.files("baton.beamline").joinpath("starting_file.yaml").read_text()
    try:
        with file.open("x") as written:
            written.write(text)
    except FileExistsError:
        refuse(f"{file} is there already; name another file.", code=REFUSED)
    except OSError as error:
        refuse(f"{file} cannot be written: {error.strerror}; name another file.", code=REFUSED)
    print(f"{file} is written. Make it your beamline's, then: baton diff -f {file}")


@app.command(rich_help_panel=DAILY_WORK)
def schema() -> None:
    """Print the JSON Schema of beamline files, for editors that complete them; no service is asked."""
    from baton.beamline import commands

    raise SystemExit(commands.print_schema())
