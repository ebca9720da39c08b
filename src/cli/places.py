"""Where a running stack can be found: `baton up` leaves a note in its data directory for the commands beside it."""

import json
import os
from pathlib import Path

from application.settings import Settings
from cli.refusing import refuse

NOTE = "stack.json"


def write_note(data_dir: Path, **places: str | None) -> None:
    """Leave the addresses of a running stack, for its owner only: they hold the database's password."""
    note = data_dir / NOTE
    descriptor = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(places, file)


def remove_note(data_dir: Path) -> None:
    (data_dir / NOTE).unlink(missing_ok=True)


def noted_place(data_dir: Path, name: str) -> str | None:
    """One address of the stack that runs on this data directory."""
    try:
        place: str | None = json.loads((data_dir / NOTE).read_text()).get(name)
        return place
    except (OSError, ValueError):
        return None


def database_of(settings: Settings, data_dir: Path) -> str:
    """The database meant: the configured one, or that of the stack running on this data directory."""
    url = settings.database_url or noted_place(data_dir, "database_url")
    if url is None:
        refuse(f"No database: DATABASE_URL is not set and no stack runs on {data_dir}.")
    return url
