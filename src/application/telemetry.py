"""Logging, in structured lines without values that could name a person; reports of running processes; and standard output
and error of a process that must continue when nobody reads its lines: those are dropped and counted."""

import io
import logging
import os
import select
import stat
import sys
import threading
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import structlog

from baton.domain.shared.refusals import Refusal

CHUNK = select.PIPE_BUF  # bytes that a pipe takes whole once it says that it takes any
READER_WAIT_MILLISECONDS = 100  # how long a reader may delay the process, once; then lines are dropped until it reads again


def configure_logging(level: str, process: str, build: str) -> None:
    """Write one JSON line for each log entry, with this kind of process and its build, to the present standard error."""

    def add_process(logger: object, method: str, entry: structlog.typing.EventDict) -> structlog.typing.EventDict:
        return {**entry, "process": process, "pid": os.getpid(), "build": build}

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            add_process,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level)),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def error_location(error: BaseException) -> dict[str, Any]:
    """Return an exception's type and place for the log; its message is left out, since it may quote input."""
    frames = traceback.extract_tb(error.__traceback__)
    raised_at = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-8:]]
    return {"error": type(error).__name__, "raised_at": raised_at}


def error_text(error: BaseException) -> str:
    """Return an exception as text for people: a refusal's own sentence, of anything else its type and place."""
    if isinstance(error, Refusal):
        return str(error)
    places = [f"{PurePath(frame.filename).name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-1:]]
    return " at ".join([type(error).__name__, *places])


@dataclass(frozen=True)
class TaskTrouble:
    task: str
    restarts: int
    running: bool
    because: str | None


TOLERATED_SKEW_SECONDS = 2.0


@dataclass(frozen=True)
class ProcessReport:
    kind: str
    host: str
    pid: int
    restarts: Mapping[str, int]  # how often each task was restarted
    troubles: tuple[TaskTrouble, ...]
    dropped_lines: int
    clock_skew: float  # seconds by which its clock is ahead of the database's, at the least

    @property
    def has_wrong_clock(self) -> bool:
        """Whether times that it records are told apart from those of others."""
        return abs(self.clock_skew) > TOLERATED_SKEW_SECONDS

    @property
    def name(self) -> str:
        return f"{self.kind} {self.pid} on {self.host}"


class LogStream(io.TextIOBase):
    """A text stream that never raises and never blocks for long; `dropped` counts the lines that could not be written."""

    encoding = "utf-8"

    def __init__(self, descriptor: int | None) -> None:
        self.dropped = 0
        self._descriptor = descriptor
        self._rest = ""
        self._torn = False  # whether the last line that was written is not whole
        self._stuck = False
        self._lock = threading.RLock()

    def write(self, text: str) -> int:
        """Write every whole line at once, and keep the rest for later."""
        with self._lock:
            whole, newline, self._rest = (self._rest + text).rpartition("\n")
            if newline:
                self._put(whole + newline)
        return len(text)

    def flush(self) -> None:
        """Write what is not a whole line yet."""
        with self._lock:
            rest, self._rest = self._rest, ""
            if rest:
                self._put(rest)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        if self._descriptor is None:
            raise OSError("this stream was closed before the process began")
        return self._descriptor

    def isatty(self) -> bool:
        return self._descriptor is not None and os.isatty(self._descriptor)

    def close(self) -> None:
        """Stay open: other code may write until the very end."""

    def _put(self, text: str) -> None:
        separator = b"\n" if self._torn else b""
        data = separator + text.encode(errors="backslashreplace")
        written = self._write(data)
        if written < len(data):
            self.dropped += max(1, data[max(written, len(separator)) :].count(b"\n"))
        if written:
            self._torn = written < len(data) and data[written - 1 : written] != b"\n"

    def _write(self, data: bytes) -> int:
        written = 0
        if self._descriptor is None:
            return written
        try:
            chunk = len(data) if stat.S_ISREG(os.fstat(self._descriptor).st_mode) else CHUNK
            while written < len(data) and (chunk == len(data) or self._is_writable()):
                written += os.write(self._descriptor, data[written : written + chunk])
        except OSError:  # no space, no reader, no file
            pass
        return written

    def _is_writable(self) -> bool:
        poll = select.poll()
        poll.register(self.fileno(), select.POLLOUT)
        self._stuck = not poll.poll(0 if self._stuck else READER_WAIT_MILLISECONDS)
        return not self._stuck


def protect_streams(*, stdout: bool = True) -> None:
    """Let no line on standard error or output stop this process, even where they were closed at its start."""
    closed = [descriptor for descriptor in (0, 1, 2) if not _is_open(descriptor)]
    for _ in closed:  # or the next socket takes the number, and a log line is sent to a server
        os.open(os.devnull, os.O_RDWR)
    for name, descriptor in {"stderr": 2, **({"stdout": 1} if stdout else {})}.items():
        if not isinstance(getattr(sys, name), LogStream):
            setattr(sys, name, LogStream(None if descriptor in closed else descriptor))


def dropped_lines() -> int:
    """Return the number of lines that this process could not write to standard output and error."""
    return sum(stream.dropped for stream in (sys.stdout, sys.stderr) if isinstance(stream, LogStream))


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
