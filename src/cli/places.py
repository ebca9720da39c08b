"""Where a running stack can be found: `baton up` leaves a note in its data directory for the commands beside it."""

import fcntl
import json
from pathlib import Path

from cli.embedded.process import write_private

NOTE = "stack.json"
LOCK = "owner.lock"


def write_note(data_dir: Path, **places: str | None) -> None:
    """Leave the addresses of a running stack, for its owner only: they hold the database's password."""
    fresh = data_dir / f"{NOTE}.new"
    write_private(fresh, json.dumps(places))
    fresh.replace(data_dir / NOTE)


def remove_note(data_dir: Path) -> None:
    """The stack is going down."""
    (data_dir / NOTE).unlink(missing_ok=True)


def noted_place(data_dir: Path, name: str) -> str | None:
    """One address of the stack that runs on this data directory; a note left behind by a killed one says nothing."""
    if not is_running(data_dir):
        return None
    try:
        note = json.loads((data_dir / NOTE).read_text())
    except (OSError, ValueError):
        return None
    place = note.get(name) if isinstance(note, dict) else None
    return place if isinstance(place, str) else None


def is_running(data_dir: Path) -> bool:
    """Whether a stack holds this data directory."""
    try:
        with (data_dir / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
