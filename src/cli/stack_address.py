"""Where a running stack can be found: `baton up` leaves a note in its data directory for the commands beside it."""

import fcntl
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from baton.cli.embedded.process import write_private

NOTE = "stack.json"
LOCK = "owner.lock"


def write_note(data_dir: Path, *, settings: Mapping[str, Any] | None = None, **places: str | None) -> None:
    """Leave the addresses of a running stack and its settings as they may be shown, for its owner only."""
    fresh = data_dir / f"{NOTE}.new"
    write_private(fresh, json.dumps({**places, "settings": settings}))
    fresh.replace(data_dir / NOTE)


def remove_note(data_dir: Path) -> None:
    """The stack is going down."""
    (data_dir / NOTE).unlink(missing_ok=True)


def noted_place(data_dir: Path, name: str) -> str | None:
    """One address of the stack that runs on this data directory; a note left behind by a killed one says nothing."""
    place = _noted(data_dir).get(name)
    return place if isinstance(place, str) else None


def noted_settings(data_dir: Path) -> dict[str, Any] | None:
    """The settings of the stack that runs on this data directory, without their secrets."""
    settings = _noted(data_dir).get("settings")
    return settings if isinstance(settings, dict) else None


def _noted(data_dir: Path) -> dict[str, Any]:
    if not is_running(data_dir):
        return {}
    try:
        note = json.loads((data_dir / NOTE).read_text())
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


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
