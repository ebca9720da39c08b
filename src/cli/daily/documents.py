"""`documents`: a run as Bluesky's documents, printed as lines or written to a Tiled server."""

import json
from collections.abc import Iterable
from typing import Annotated, Any

from typer import Argument, Option, Typer

from baton.cli.daily.completion import complete_work
from baton.cli.daily.found_work import find_work
from baton.cli.daily.session import ServiceSession, print_json, service_command
from baton.cli.messages import REFUSED, refuse

app = Typer()
PAGE = 2000  # events and datasets that are asked for at a time
RunName = Annotated[str, Argument(metavar="RUN", help="A run: its name or id.", autocompletion=complete_work)]
TiledAddress = Annotated[
    str | None,
    Option("--to-tiled", metavar="ADDRESS", help="Write an ended run to this Tiled server; its key is in TILED_API_KEY."),
]
NamedDocument = tuple[str, dict[str, Any]]


@service_command(app)
def documents(session: ServiceSession, run: RunName, to_tiled: TiledAddress = None) -> None:
    """Print a run as Bluesky's documents, a line of JSON for each, or write it to a Tiled server."""
    found = find_work(session.client, run)
    if found.kind != "run":
        refuse(f"{found} is no run; name the run that it belongs to.")
    asked = {"run_id": found.id, "limit": PAGE}
    if to_tiled is None:
        print_documents(session, session.client.every("list_run_documents", **asked))
        return
    if session.client.call("get_run", run_id=found.id).ended_at is None:
        refuse(f"{found} has not ended, and Tiled keeps whole runs; write it once it has ended.", code=REFUSED)
    count = write_to_tiled(str(found.id), session.client.every("list_run_documents", events=True, **asked), to_tiled)
    written = {"run_id": str(found.id), "documents": count, "address": to_tiled}
    session.show(written, [f"{count} documents of {found} were written to {to_tiled}, under the key {found.id}."])


def print_documents(session: ServiceSession, documents: Iterable[NamedDocument]) -> None:
    """Print documents as they come, a line each; as JSON, one list of them."""
    if session.as_json:
        print_json(list(documents))
        return
    for document in documents:
        print(json.dumps(document))


def write_to_tiled(uid: str, documents: Iterable[NamedDocument], address: str) -> int:
    """Write the documents of a run to a Tiled server as Bluesky itself does, and return their number."""
    try:
        from bluesky_tiled_plugins import TiledWriter
        from httpx import HTTPError
        from tiled.client import from_uri
    except ModuleNotFoundError as error:
        refuse(f"This needs {error.name}, which is not installed; install baton-facility[tiled].")
    count = 0
    try:
        catalogue = from_uri(address)
        if uid in catalogue:
            refuse(f"Tiled at {address} has this run already, under the key {uid}; delete it there to write it again.")
        writer = TiledWriter(catalogue)
        for name, document in documents:
            writer(name, document)
            count += 1
    except (HTTPError, OSError) as error:
        refuse(f"Tiled at {address} did not take the run: {error}.", code=REFUSED)
    return count
