"""`data`: datasets are listed, and an edition is taken away with its files."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option, Typer

from baton.cli.daily.session import ServiceSession, service_command
from baton.cli.daily.tables import local_time, table_lines
from baton.cli.messages import refuse

app = Typer(no_args_is_help=True, help="Datasets and editions.")
HEAD = ("NAME", "STATUS", "INTENT", "SINCE", "ID")


@service_command(app)
def ls(session: ServiceSession, text: Annotated[str | None, Argument(help="A part of their names.")] = None) -> None:
    """List datasets, the latest first."""
    found = list(session.client.every("list_datasets", order="desc", **({} if text is None else {"q": text})))
    rows = [(one.name, one.status, one.intent, local_time(one.created_at), one.dataset_id) for one in found]
    session.show(found, table_lines(HEAD, rows, "No datasets."))


@service_command(app)
def export(
    session: ServiceSession,
    edition: Annotated[str, Argument(metavar="EDITION", help="A sealed or published edition: its id or title.")],
    to: Annotated[Path | None, Option("--to", metavar="FILE", help="Where to write it; else in this directory.")] = None,
) -> None:
    """Write an edition to a zip: an RO-Crate with its files, where the service can read them and they are small enough."""
    crate = session.client.call("get_edition_crate", edition_id=edition)
    path = to or Path(f"{edition}.crate.zip".replace("/", "_"))
    if path.exists():
        refuse(f"{path} is there already; name another file with --to.")
    path.write_bytes(crate.content)
    session.show({"file": str(path), "bytes": len(crate.content)}, [f"{path} has {len(crate.content)} bytes."])
