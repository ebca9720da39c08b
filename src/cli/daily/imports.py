"""`import`: what a site has written down already becomes a beamline file for review; the record stays as it is."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, Typer

from baton.cli.messages import REFUSED, refuse

if TYPE_CHECKING:
    from baton.application.plan_settings import PlanExecutorKind
    from baton.beamline.importers.drafts import DeviceDraft
    from baton.beamline.importers.touches import PlanDraft

app = Typer(no_args_is_help=True, help="Write a beamline file from what a site has already, for review.")
RootName = Annotated[str, Option("--root", help="Name of the asset that all of it is put below.")]
OutputFile = Annotated[Path | None, Option("-o", "--output", help="Where to write the file; else it is printed.")]
FacilityCode = Annotated[str | None, Option("--facility", help="Code of the facility; else the service's only site.")]


TouchesFile = Annotated[
    Path | None, Option("--touches", help="Where to write the devices' addresses, for `touches` of PLAN_EXECUTORS.")
]


@app.command("happi")
def import_from_happi(
    file: Annotated[Path, Argument(help="A happi database in JSON.")],
    root: RootName = "Beamline",
    facility: FacilityCode = None,
    output: OutputFile = None,
    touches: TouchesFile = None,
) -> None:
    """Import the active devices of a happi database."""
    from baton.beamline.importers.happi_database import import_happi
    from baton.beamline.importers.sources import UnreadableSourceError

    try:
        drafts = import_happi(file)
    except UnreadableSourceError as error:
        refuse(str(error), code=REFUSED)
    write_review(drafts, root, facility, output)
    write_touches(touches, {draft.name: draft.signals or (f"ophyd:{draft.name}",) for draft in drafts})


@app.command("csv")
def import_from_csv(
    file: Annotated[Path, Argument(help="An inventory with a heading; cells parted by commas, semicolons or tabs.")],
    mapping: Annotated[
        Path | None, Option(help="YAML or JSON that says which column holds which field, such as `name: Device`.")
    ] = None,
    root: RootName = "Beamline",
    facility: FacilityCode = None,
    output: OutputFile = None,
) -> None:
    """Import an inventory. Without a mapping the columns are guessed, and the guess is printed to be saved."""
    from baton.beamline.importers.csv_inventory import import_csv, read_mapping
    from baton.beamline.importers.sources import UnreadableSourceError

    try:
        drafts, used = import_csv(file, None if mapping is None else read_mapping(mapping))
    except UnreadableSourceError as error:
        refuse(str(error), code=REFUSED)
    if mapping is None:
        print_mapping(used)
    write_review(drafts, root, facility, output)


@app.command("epics-db")
def import_from_epics(
    file: Annotated[list[Path], Argument(help="Databases: .db, .template or .substitutions files.")],
    substitutions: Annotated[list[Path] | None, Option(help="A substitutions file of any name.")] = None,
    macro: Annotated[list[str] | None, Option(metavar="NAME=VALUE", help="A macro's value.")] = None,
    root: RootName = "Beamline",
    facility: FacilityCode = None,
    output: OutputFile = None,
) -> None:
    """Import EPICS databases: motors and groups of records as devices, DRVL and DRVH as limits of their signals."""
    from baton.beamline.importers.epics_database import import_epics
    from baton.beamline.importers.macros import MacroError, read_macros
    from baton.beamline.importers.sources import UnreadableSourceError

    try:
        drafts = import_epics(file, substitutions or [], read_macros(macro or []))
    except (UnreadableSourceError, MacroError) as error:
        refuse(str(error), code=REFUSED)
    write_review(drafts, root, facility, output)


@app.command("ophyd")
def import_from_ophyd(
    source: Annotated[str, Argument(metavar="MODULE:FACTORY", help="What makes the devices, or a happi database.")],
    run_code: Annotated[bool, Option("--run-code", help="Run the site's Python, in a process of its own.")] = False,
    connect: Annotated[bool, Option("--connect", help="Connect each device, and ask it for its signals.")] = False,
    root: RootName = "Beamline",
    facility: FacilityCode = None,
    output: OutputFile = None,
    touches: TouchesFile = None,
) -> None:
    """Import ophyd-async devices of the site's own Python; with --connect their addresses, units and limits."""
    from baton.beamline.importers.ophyd_factory import import_ophyd, read_factory
    from baton.beamline.importers.sources import UnreadableSourceError

    if not run_code:
        refuse(f"To import {source} its Python must be run; say --run-code if you trust it.", code=REFUSED)
    try:
        drafts, addresses = import_ophyd(read_factory(source), connect)
    except UnreadableSourceError as error:
        refuse(str(error), code=REFUSED)
    write_review(drafts, root, facility, output)
    write_touches(touches, addresses)


@app.command("tango")
def import_from_tango(
    database: Annotated[str | None, Argument(metavar="[HOST:PORT]", help="A Tango database: all devices it has.")] = None,
    device: Annotated[
        list[str] | None, Option(help="A device: domain/family/member, with HOST:PORT/ before it where it has no database.")
    ] = None,
    root: RootName = "Beamline",
    facility: FacilityCode = None,
    output: OutputFile = None,
) -> None:
    """Import Tango devices: their attributes with units and limits, their commands as questions."""
    from baton.beamline.importers.sources import UnreadableSourceError
    from baton.beamline.importers.tango_devices import import_tango

    if (database is None) == (not device):
        refuse("Give either a database as HOST:PORT or devices with --device.", code=REFUSED)
    try:
        drafts = import_tango(database, device or [])
    except UnreadableSourceError as error:
        refuse(str(error), code=REFUSED)
    write_review(drafts, root, facility, output)


ExecutorName = Annotated[str, Option("--executor", help="Its name in PLAN_EXECUTORS, which steps will name.")]
CredentialsVariable = Annotated[
    str | None, Option("--credentials-env", help="The variable that holds the token of blueapi or the key of queueserver.")
]


@app.command("blueapi")
def import_from_blueapi(
    address: Annotated[str, Argument(help="Base address, such as http://bl7-blueapi:8000.")],
    executor: ExecutorName = "blueapi",
    credentials_env: CredentialsVariable = None,
    root: RootName = "Beamline",
    facility: FacilityCode = None,
    output: OutputFile = None,
    touches: TouchesFile = None,
) -> None:
    """Import the devices and the Bluesky plans of a blueapi."""
    from baton.application.plan_settings import PlanExecutorKind

    import_from_executor(PlanExecutorKind.BLUEAPI, address, executor, credentials_env, (root, facility, output, touches))


@app.command("queueserver")
def import_from_queueserver(
    address: Annotated[str, Argument(help="Address of the control socket, such as tcp://bl7-qserver:60615.")],
    executor: ExecutorName = "queueserver",
    credentials_env: CredentialsVariable = None,
    root: RootName = "Beamline",
    facility: FacilityCode = None,
    output: OutputFile = None,
    touches: TouchesFile = None,
) -> None:
    """Import the devices and the Bluesky plans of a queueserver."""
    from baton.application.plan_settings import PlanExecutorKind

    import_from_executor(PlanExecutorKind.QUEUESERVER, address, executor, credentials_env, (root, facility, output, touches))


def import_from_executor(
    kind: "PlanExecutorKind",
    address: str,
    executor: str,
    credentials_env: str | None,
    written: tuple[str, str | None, Path | None, Path | None],
) -> None:
    """Ask an executor what it has, and write that for review."""
    import asyncio

    from baton.application.conduct.plan_executors import PlanExecutorSilentError
    from baton.beamline.importers.plan_catalogue import ExecutorListing, device_drafts, plan_drafts, plan_sections
    from baton.infrastructure.plans.listing import list_executor

    root, facility, output, touches = written
    try:
        catalogue, devices = asyncio.run(list_executor(kind, address, credentials_env))
    except (PlanExecutorSilentError, TypeError, AttributeError) as error:
        refuse(f"{address} does not answer as a {kind.value}: {error}.", code=REFUSED)
    listing = ExecutorListing(executor, catalogue.plans, devices)
    write_review(device_drafts(listing), root, facility, output, list(plan_sections(listing)))
    write_touches(touches, {name: (f"ophyd:{name}",) for name in devices}, plan_drafts(listing))


def print_mapping(mapping: Mapping[str, str]) -> None:
    """Print which column was taken for which field, as a mapping that can be saved."""
    print("Columns were guessed; save these lines, mend them and give them with --mapping:", file=sys.stderr)
    for name, column in mapping.items():
        print(f"{name}: {json.dumps(column, ensure_ascii=False)}", file=sys.stderr)


def write_review(
    drafts: "Sequence[DeviceDraft]", root: str, facility: str | None, output: Path | None, sections: Sequence[str] = ()
) -> None:
    """Write or print the beamline file."""
    from baton.beamline.importers.review_file import review_text

    text = review_text(drafts, root, facility, sections)
    if output is None:
        print(text, end="")
        return
    write_new(output, text)
    asked = sum(1 for draft in drafts if draft.questions)
    print(f"{len(drafts)} devices are in {output}; {asked} have a question above them. Then: baton diff -f {output}")


def write_touches(
    output: Path | None, devices: "Mapping[str, Sequence[str]]", plans: "Mapping[str, PlanDraft] | None" = None
) -> None:
    """Write the file of touches, where one is asked for."""
    from baton.beamline.importers.touches import touches_text

    if output is not None:
        write_new(output, touches_text(devices, plans))
        print(f"The addresses of {len(devices)} devices are in {output}; what plans touch is a guess.", file=sys.stderr)


def write_new(output: Path, text: str) -> None:
    """Write a file; one that is there already is not written over."""
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        refuse(f"{output} is there already; name another file, or remove it.", code=REFUSED)
    except OSError as error:
        refuse(f"{output} cannot be written: {error.strerror}.", code=REFUSED)
