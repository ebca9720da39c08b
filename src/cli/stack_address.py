"""The note that `baton up` leaves in its data directory, by which other commands find the running stack."""

import fcntl
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from baton.cli.embedded.process import write_private

NOTE = "stack.json"


def write_note(data_dir: Path, *, settings: Mapping[str, Any] | None = None, **addresses: str | None) -> None:
    """Write the addresses of a running stack and its printable settings, readable by its owner only."""
    fresh = data_dir / f"{NOTE}.new"
    write_private(fresh, json.dumps({**addresses, "settings": settings}))
    fresh.replace(data_dir / NOTE)


def remove_note(data_dir: Path) -> None:
    """Remove the note of a stack that is going down."""
    (data_dir / NOTE).unlink(missing_ok=True)


def stack_address(data_dir: Path, name: str) -> str | None:
    """Return one address of the stack that runs on this data directory."""
    address = _read_note(data_dir).get(name)
    return address if isinstance(address, str) else None


def stack_settings(data_dir: Path) -> dict[str, Any] | None:
    """Return the settings of the stack that runs on this data directory, without their secrets."""
    settings = _read_note(data_dir).get("settings")
    return settings if isinstance(settings, dict) else None


def _read_note(data_dir: Path) -> dict[str, Any]:
    """Return the note of a running stack; that of a killed one is ignored."""
    if not is_running(data_dir):
        return {}
    try:
        note = json.loads((data_dir / NOTE).read_text())
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def is_running(data_dir: Path) -> bool:
    """Return whether a stack holds this data directory."""
    try:
        with (data_dir / "owner.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
