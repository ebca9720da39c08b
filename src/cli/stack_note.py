"""The note that a running `baton up` leaves in its data directory: by it other commands find the stack."""

import fcntl
import json
from collections.abc import Mapping
from pathlib import Path

NOTE = "stack.json"


def write_note(data_dir: Path, *, settings: Mapping[str, object] | None = None, **addresses: str | None) -> None:
    """Write the addresses of a running stack and its printable settings, readable by its owner only."""
    from baton.cli.embedded.process import write_private

    fresh = data_dir / f"{NOTE}.new"
    write_private(fresh, json.dumps({**addresses, "settings": settings}))
    fresh.replace(data_dir / NOTE)


def stack_address(data_dir: Path, name: str) -> str | None:
    """Return one address of the stack that runs on this data directory."""
    address = read_note(data_dir).get(name)
    return address if isinstance(address, str) else None


def read_note(data_dir: Path) -> dict[str, object]:
    """Return the note of a running stack; that of a killed one, whose lock nobody holds, is ignored."""
    try:
        with (data_dir / "owner.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return {}
    except BlockingIOError:
        pass
    except OSError:
        return {}
    try:
        note = json.loads((data_dir / NOTE).read_text())
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}
