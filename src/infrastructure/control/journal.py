"""The journal of a simulated plant: everything done to it, in order, apart from any record of the service.

In a file it is shared by all processes on the machine and outlives them, however they end; each line is one entry.
"""

import json
from collections import deque
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

Entry = dict[str, Any]
"""What happened (`kind`), to which `address`, `at` what time, and the details of that kind."""


class EntryKind(StrEnum):
    """What can be done to a plant: a write by a client, or a change that only a simulation can make."""

    WRITE = "write"
    READING = "reading"
    CONNECT = "connect"
    DISCONNECT = "disconnect"
    END = "end"
    FAULT = "fault"


class Journal(Protocol):
    """Entries in the order in which they happened to the plant."""

    def append(self, entry: Entry) -> None: ...
    def read_new(self) -> Iterator[Entry]:
        """Return the entries that were not returned before, the caller's own among them."""
        ...


class MemoryJournal:
    """The journal of a plant that belongs to one process; an entry is forgotten once it is read."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()

    def append(self, entry: Entry) -> None:
        self._entries.append(entry)

    def read_new(self) -> Iterator[Entry]:
        while self._entries:
            yield self._entries.popleft()


class FileJournal:
    """The journal of a plant that several processes share, one after another or at once."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self._path = path
        self._position = 0

    def append(self, entry: Entry) -> None:
        with self._path.open("ab", buffering=0) as file:  # one system call: lines of several processes do not mix
            file.write(json.dumps(entry, default=str).encode() + b"\n")

    def read_new(self) -> Iterator[Entry]:
        if self._path.stat().st_size <= self._position:
            return
        with self._path.open("rb") as file:
            file.seek(self._position)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._position += len(line)
                yield json.loads(line)
