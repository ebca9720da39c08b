"""What was done to a simulated plant, in order: the plant's own memory, apart from any record of the service.

In a file it is shared by all processes on the machine and outlives them, however they end; each line is one entry.
"""

import json
import os
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

Entry = dict[str, Any]
"""What happened (`kind`), to which `address`, `at` what time, and what more there is to say of it."""


class Deed(StrEnum):
    """What can be done to a plant: by those who control it, or by whoever plays the plant's part."""

    WRITE = "write"
    ACQUIRE = "acquire"
    READING = "reading"
    CONNECT = "connect"
    DISCONNECT = "disconnect"
    END = "end"
    FAULT = "fault"


class Journal(Protocol):
    """Entries in the order in which they happened to the plant."""

    def append(self, entry: Entry) -> None: ...
    def news(self) -> Iterator[Entry]:
        """The entries that were not yet given, our own among them."""
        ...


class MemoryJournal:
    """The journal of a plant that one process has to itself; what was given is forgotten."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()

    def append(self, entry: Entry) -> None:
        self._entries.append(entry)

    def news(self) -> Iterator[Entry]:
        while self._entries:
            yield self._entries.popleft()


class FileJournal:
    """The journal of a plant that several processes share, one after another or at once."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._read = 0
        path.touch()

    def append(self, entry: Entry) -> None:
        line = json.dumps(entry, default=str).encode() + b"\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, line)  # in one piece: lines of several processes do not mix, and none is half there
        finally:
            os.close(descriptor)

    def news(self) -> Iterator[Entry]:
        if self._path.stat().st_size <= self._read:
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._read += len(line)
                yield json.loads(line)


@dataclass
class Effects:
    """How often each address was written, and each detector acquired."""

    writes: Counter[str] = field(default_factory=Counter)
    acquisitions: Counter[str] = field(default_factory=Counter)

    def count(self, entry: Entry) -> None:
        """Take one more entry into account."""
        match entry["kind"]:
            case Deed.WRITE:
                self.writes[entry["address"]] += 1
            case Deed.ACQUIRE:
                self.acquisitions[entry["address"]] += 1

    @classmethod
    def told_by(cls, path: Path) -> "Effects":
        """What a journal in a file tells, from its first entry."""
        effects = cls()
        for entry in FileJournal(path).news():
            effects.count(entry)
        return effects
