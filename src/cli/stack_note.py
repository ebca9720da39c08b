"""The note that a running `baton up` leaves in its data directory: by it other commands find the stack."""

import fcntl
import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

NOTE = "stack.json"


def write_note(data_dir: Path, *, settings: Mapping[str, Any] | None = None, **addresses: str | None) -> None:
    """Write the addresses of a running stack and its printable settings, readable by its owner only."""
    from baton.cli.embedded.process import write_private

    fresh = data_dir / f"{NOTE}.new"
    write_private(fresh, json.dumps({**addresses, "settings": settings}))
    fresh.replace(data_dir / NOTE)


def stack_address(data_dir: Path, name: str) -> str | None:
    """Return one address of the stack that runs on this data directory."""
    address = read_note(data_dir).get(name)
    return address if isinstance(address, str) else None


def is_own_stack(data_dir: Path, address: str) -> bool:
    """Return whether this address stands in a note that nobody but this user can have written, and is of this machine."""
    try:
        found = [path.stat() for path in (data_dir, data_dir / NOTE)]
        host = urlsplit(address).hostname or ""
    except (OSError, ValueError):
        return False
    is_own = all(one.st_uid == os.getuid() and not one.st_mode & stat.S_IWOTH for one in found)
    return is_own and is_loopback(host) and address == stack_address(data_dir, "url")


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine alone."""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def read_note(data_dir: Path) -> dict[str, Any]:
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
