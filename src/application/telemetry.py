"""Logging, in structured lines without values that could name a person, and the reports of running processes."""

import logging
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import structlog

from baton.domain.shared.refusals import Refusal


def configure_logging(level: str) -> None:
    """Write one JSON line for each log entry, to the present standard error."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
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
    return {
        "error": type(error).__name__,
        "raised_at": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-8:]],
    }


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


@dataclass(frozen=True)
class ProcessReport:
    kind: str
    host: str
    pid: int
    restarts: Mapping[str, int]  # how often each task was restarted
    troubles: tuple[TaskTrouble, ...]
    dropped_lines: int

    @property
    def name(self) -> str:
        return f"{self.kind} {self.pid} on {self.host}"
