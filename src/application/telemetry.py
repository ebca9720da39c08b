"""What is logged, and what never is: structured lines without values that could name a person."""

import logging
import sys
import traceback
from pathlib import PurePath
from typing import Any

import structlog

from baton.domain.shared.refusals import Refusal


def configure_logging(level: str) -> None:
    """One JSON line for each log entry, on standard error as it is now."""
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
    """An exception for the log: its type and where it was raised. Its message is left out, since it may quote input."""
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "error": type(error).__name__,
        "raised_at": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-8:]],
    }


def error_text(error: BaseException) -> str:
    """An exception for people: a refusal is made for them; of anything else its type and place are told, as in the log."""
    if isinstance(error, Refusal):
        return str(error)
    places = [f"{PurePath(frame.filename).name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-1:]]
    return " at ".join([type(error).__name__, *places])
