"""The journal: what a witness saw, on disk until the service has it.

One directory for each witness, which holds its lock while it lives; in it one directory for each Bluesky run, with segments
of JSON lines. `JournalWriter` is the side of the RunEngine, `RunJournal` that of the sender.
"""

import contextlib
import fcntl
import json
import os
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

SEGMENT_BYTES = 16 * 2**20
CEILING_BYTES = 2**30
NEARLY_FULL = 0.9
"""Part of the ceiling from which events are thinned to one a second of each stream."""
QUEUED_DOCUMENTS = 10_000
QUEUED_BYTES = 64 * 2**20
WRITE_SECONDS = 0.05
"""Longest time between two writes of what is queued; a start or a stop is written at once."""
ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
LINES_AT_ONCE = 1_000
LOOK_SECONDS = 5.0
"""Seconds between two looks at the room that is left, and at the sender."""
SETTINGS, SENDER_LOCK, WRITER_LOCK, STANDING = "settings.json", "sender.lock", "lock", "sender.json"


class JournalLine(NamedTuple):
    """A record on its way to the disk."""

    run: str
    record: Mapping[str, Any]
    size: int
    """Bytes, about."""
    stream: str | None
    """Its stream, where it may be dropped."""
    time: float
    is_last: bool
    """Whether nothing of its run follows."""
    written: threading.Event | None


@dataclass
class Segment:
    """The segment of a run that is being written."""

    directory: Path
    number: int = 0
    descriptor: int = -1
    size: int = 0
    torn: bool = False
    """Whether it ends in the middle of a line."""
    seconds: dict[str, int] = field(default_factory=dict)
    """The second of the last event written of each stream."""


class JournalWriter:
    """Writes what is handed over to a directory of its own, in a thread; whatever the disk does, nobody waits for it."""

    def __init__(
        self, directory: Path, settings: Mapping[str, Any], ceiling: int = CEILING_BYTES, name: str | None = None
    ) -> None:
        self.directory = directory
        self.name = name or f"{int(time.time() * 1000)}-{os.getpid()}-{secrets.token_hex(4)}"
        self.ceiling = ceiling
        self.journaled = 0
        self.dropped: Counter[str] = Counter()
        self.last_error: str | None = None
        self._settings = dict(settings)
        self._lines: deque[JournalLine] = deque()
        self._queued_bytes = 0
        self._dropped_of_run: Counter[str] = Counter()
        self._counting = threading.Lock()
        self._wanted = threading.Event()
        self._thread: threading.Thread | None = None
        self._segments: dict[str, Segment] = {}
        self._lock: int | None = None
        self._is_writing = self._is_closed = False
        self._used = 0
        self._looked = float("-inf")

    def append(
        self,
        run: str,
        record: Mapping[str, Any],
        stream: str | None = None,
        at: float = 0,
        wait: float = 0,
        is_last: bool = False,
    ) -> bool:
        """Queue a record, and return whether it is queued; an event has a stream, and is dropped by a full queue."""
        size = 200 + 80 * len(record["v"]) if stream is not None else len(ENCODER.encode(record))
        with self._counting:
            full = len(self._lines) >= QUEUED_DOCUMENTS or self._queued_bytes + size > QUEUED_BYTES
            if full and stream is not None:
                self.dropped[stream] += 1
                self._dropped_of_run[run] += 1
                return False
            self._queued_bytes += size
        written = threading.Event() if wait else None
        self._lines.append(JournalLine(run, record, size, stream, at, is_last, written))
        if self._thread is None:
            self._begin()
        if written is not None:
            self._wanted.set()
            written.wait(wait)
        return True

    @property
    def queued(self) -> int:
        """Number of records that are not written yet."""
        return len(self._lines) or int(self._is_writing)

    def flush(self, seconds: float = 2.0) -> bool:
        """Wait until what is queued is written, for a while at most; return whether it is."""
        deadline = time.monotonic() + seconds
        while self.queued and time.monotonic() < deadline:
            self._wanted.set()
            time.sleep(0.002)
        return not self.queued

    def close(self, seconds: float = 2.0) -> None:
        """Write what is queued, for a while at most, and give up the lock: what has not ended counts as dead."""
        self.flush(seconds)
        self._is_closed = True
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(seconds)

    def look(self) -> None:
        """Do what belongs to a look every few seconds; a witness starts its sender here."""

    def _begin(self) -> None:
        with self._counting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_for_ever, name="baton-witness-journal", daemon=True)
                self._thread.start()

    def _write_for_ever(self) -> None:
        while not self._is_closed:
            try:
                if self._lock is None:
                    self._open()
                self._look_around()
                while self._lines:
                    self._is_writing = True
                    self._write_some()
            except Exception as error:  # the disk may do anything
                self.last_error = f"{type(error).__name__}: {error}"[:500]
            self._is_writing = False
            self._wanted.wait(WRITE_SECONDS if self._segments or self._lines else 1.0)
            self._wanted.clear()
        for segment in self._segments.values():
            if segment.descriptor >= 0:
                os.close(segment.descriptor)
        self._segments.clear()
        if self._lock is not None:
            os.close(self._lock)

    def _open(self) -> None:
        make_directory(self.directory)
        write_whole(self.directory / SETTINGS, self._settings)
        own = self.directory / self.name
        make_directory(own)
        self._lock = os.open(own / WRITER_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.lockf(self._lock, fcntl.LOCK_EX)

    def _look_around(self) -> None:
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self._used = used_bytes(self.directory)
            self._looked = time.monotonic()
            self.look()

    def _write_some(self) -> None:
        """Write lines of one run; they stay in the queue until the disk has taken them."""
        run = self._lines[0].run
        lines: list[JournalLine] = []
        while self._lines and self._lines[0].run == run and len(lines) < LINES_AT_ONCE:
            lines.append(self._lines.popleft())
        kept = lines
        try:
            segment = self._segment(run)
            kept = [line for line in lines if line.stream is None or self._has_room(segment, line)]
            dropped = self._dropped_of_run[run]
            self._write(segment, b"".join(encode_line({**line.record, "dropped": dropped}) for line in kept))
        except OSError:
            self._lines.extendleft(reversed(kept))
            with self._counting:
                self._queued_bytes -= sum(line.size for line in lines) - sum(line.size for line in kept)
            raise
        with self._counting:
            self._queued_bytes -= sum(line.size for line in lines)
        self.journaled += len(kept)
        for line in lines:
            if line.written is not None:
                line.written.set()
        if lines[-1].is_last:
            self._forget(run)

    def _has_room(self, segment: Segment, line: JournalLine) -> bool:
        """Return whether an event is written: one a second where the journal is nearly full, none where it is."""
        assert line.stream is not None
        if self._used < NEARLY_FULL * self.ceiling:
            return True
        if self._used < self.ceiling and segment.seconds.get(line.stream) != int(line.time):
            segment.seconds[line.stream] = int(line.time)
            return True
        with self._counting:
            self.dropped[line.stream] += 1
            self._dropped_of_run[line.run] += 1
        return False

    def _segment(self, run: str) -> Segment:
        segment = self._segments.get(run)
        if segment is None:
            path = self.directory / self.name / run
            make_directory(path)
            segment = self._segments[run] = Segment(path, max(RunJournal(path).segments(), default=0))
        if segment.descriptor < 0:
            path = segment.directory / segment_name(segment.number)
            segment.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            segment.size = os.fstat(segment.descriptor).st_size
            segment.torn = segment.size > 0 and os.pread(segment.descriptor, 1, segment.size - 1) != b"\n"
        return segment

    def _write(self, segment: Segment, text: bytes) -> None:
        """Append whole lines, or none of them; where the disk kept a part of one, the next begins on a line of its own."""
        if segment.torn:
            text = b"\n" + text
        written = 0
        try:
            while written < len(text):
                written += os.write(segment.descriptor, text[written:])
        except OSError:
            segment.torn = True
            with contextlib.suppress(OSError):
                os.ftruncate(segment.descriptor, segment.size)
                segment.torn = False
            raise
        segment.torn = False
        segment.size += len(text)
        self._used += len(text)
        if segment.size >= SEGMENT_BYTES:
            os.close(segment.descriptor)
            segment.number, segment.descriptor, segment.size = segment.number + 1, -1, 0

    def _forget(self, run: str) -> None:
        """Close the segment of a run that has ended."""
        segment = self._segments.pop(run)
        if segment.descriptor >= 0:
            os.close(segment.descriptor)
        del self._dropped_of_run[run]


class Position(NamedTuple):
    """A place in the journal of a run."""

    segment: int = 0
    offset: int = 0


BEGINNING = Position()


@dataclass
class RunJournal:
    """The journal of one Bluesky run, as the sender reads it."""

    directory: Path
    unreadable: int = 0
    """Number of lines that are no JSON."""

    @property
    def writer(self) -> Path:
        """The directory of the witness that writes it."""
        return self.directory.parent

    def read(self, position: Position, limit: int = 256 * 1024) -> tuple[list[dict[str, Any]], Position]:
        """Return the records from a position on, of about this many bytes, and the position behind them."""
        numbers = self.segments()
        records: list[dict[str, Any]] = []
        while not records:
            text = self._text(position, limit)
            whole = text[: text.rfind(b"\n") + 1]
            if not whole:
                if len(text) >= limit and position.segment in numbers:  # a line longer than what is read at once
                    limit *= 4
                    continue
                later = [number for number in numbers if number > position.segment]
                if not later:
                    break
                position = Position(min(later), 0)
                continue
            for line in whole.splitlines():
                try:
                    record = json.loads(line)
                except ValueError:
                    self.unreadable += bool(line)
                    continue
                if isinstance(record, dict):
                    records.append(record)
            position = Position(position.segment, position.offset + len(whole))
        return records, position

    def _text(self, position: Position, limit: int) -> bytes:
        try:
            with (self.directory / segment_name(position.segment)).open("rb") as file:
                file.seek(position.offset)
                return file.read(limit)
        except FileNotFoundError:
            return b""

    def segments(self) -> list[int]:
        """Return the numbers of its segments."""
        with contextlib.suppress(OSError):
            return sorted(int(path.stem) for path in self.directory.glob("[0-9]*.jsonl"))
        return []

    def sync(self) -> None:
        """Have the last segment on disk."""
        for number in self.segments()[-1:]:
            with contextlib.suppress(OSError):
                descriptor = os.open(self.directory / segment_name(number), os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def discard_before(self, position: Position) -> None:
        """Delete the segments before a position, which the service has acknowledged."""
        for number in self.segments():
            if number < position.segment:
                (self.directory / segment_name(number)).unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the journal of a run that is recorded to its end."""
        for path in list(self.directory.iterdir()):
            path.unlink(missing_ok=True)
        self.directory.rmdir()


def run_journals(directory: Path) -> list[RunJournal]:
    """Return the journals of all runs in a directory, in the order in which they began."""
    found = [path for writer in writer_directories(directory) for path in subdirectories(writer)]
    return [RunJournal(path) for path in sorted(found, key=lambda path: path.name)]


def writer_directories(directory: Path) -> list[Path]:
    """Return the directories of witnesses that have a journal here."""
    return [path for path in subdirectories(directory) if (path / WRITER_LOCK).exists()]


def subdirectories(directory: Path) -> list[Path]:
    """Return the directories in a directory."""
    try:
        return [path for path in directory.iterdir() if path.is_dir()]
    except OSError:
        return []


def encode_line(record: Mapping[str, Any]) -> bytes:
    """Return a record as a line."""
    return ENCODER.encode(record).encode() + b"\n"


def run_directory_name(began_at: float, uid: str) -> str:
    """Return the name of the directory of a run, by which runs are in the order in which they began."""
    from hashlib import sha256

    milliseconds = int(min(max(began_at, 0), 1e11) * 1000)
    return f"{milliseconds:015d}-{sha256(uid.encode(errors='replace')).hexdigest()[:24]}"


def segment_name(number: int) -> str:
    """Return the file name of a segment."""
    return f"{number:06d}.jsonl"


def make_directory(path: Path) -> None:
    """Make a directory that only its owner can look into."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_whole(path: Path, document: Mapping[str, Any], *, durable: bool = False) -> None:
    """Replace a file by a document, so that it is never seen half written; a durable one outlives a power failure."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        text = json.dumps(document).encode()
        if os.write(descriptor, text) < len(text):
            raise OSError(f"{path} could not be written whole")
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    beside.replace(path)


def read_document(path: Path) -> dict[str, Any]:
    """Return the document of a file; an empty one where there is none that can be read."""
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def try_lock(path: Path) -> int | None:
    """Return a descriptor that holds the lock of a file until it is closed; None where another process holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def is_locked(path: Path) -> bool:
    """Return whether another process holds the lock of a file."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def used_bytes(directory: Path) -> int:
    """Return the size of all that is in a journal."""
    used = 0
    for path in directory.rglob("*"):
        with contextlib.suppress(OSError):
            used += path.stat().st_size
    return used
