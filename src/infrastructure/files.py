"""Files that appear whole and stay as they are, whatever happens while they are written."""

import os
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile


def write_once(path: Path, content: bytes) -> None:
    """Put a file where there is none: linked there when it is on the disk, and never over another."""
    directory = path.parent
    directory.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=directory, prefix=".") as draft:
        os.fchmod(draft.fileno(), 0o640)
        draft.write(content)
        draft.flush()
        os.fsync(draft.fileno())
        with suppress(FileExistsError):
            os.link(draft.name, path)
    sync(directory)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
