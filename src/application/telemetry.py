"""What is logged, and what never is: structured lines without values that could name a person."""

import logging
import sys
import traceback
from typing import Any

import structlog


def configure_logging(level: str) -> None:
    """One JSON line for each log entry, on standard error."""
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


def traced(error: BaseException) -> dict[str, Any]:
    """An exception for the log: its type and where it was raised. Its message is left out, since it may quote input."""
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "error": type(error).__name__,
        "raised_at": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-8:]],
    }
