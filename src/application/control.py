"""The control port: what the service reads from the plant's control system, whatever the system is."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol


class ReadingKind(StrEnum):
    SCALAR = "Scalar"
    ARRAY = "Array"
    IMAGE = "Image"
    CATEGORICAL = "Categorical"
    TABULAR = "Tabular"


class Quality(StrEnum):
    """What the control system says of a value: good, in alarm but measured, or not to be believed."""

    GOOD = "Good"
    UNCERTAIN = "Uncertain"
    BAD = "Bad"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One value of a signal; `sampled_at` is the source's own time and never invented."""

    value: Any
    kind: ReadingKind = ReadingKind.SCALAR
    quality: Quality = Quality.GOOD
    quality_detail: str | None = None
    sampled_at: datetime | None = None


class ControlError(Exception):
    """The control system did not do what was asked of it."""


class ControlNotConnectedError(ControlError):
    """There is no channel to this address, before or during the call."""


class ControlTimeoutError(ControlError):
    """No value came in time."""


class NoAdapterForAddressError(ControlError):
    """No route leads to this address."""


class Control(Protocol):
    """One control system, or several behind their routes. Channels connect on first use."""

    async def read(self, address: str) -> Reading:
        """The current value of a signal; raises ControlError."""
        ...

    def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        """The current value as soon as there is one, then every change.

        A disconnect raises ControlNotConnectedError, it never pauses silently. Closing the iterator unsubscribes.
        """
        ...
