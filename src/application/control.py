"""The control port: what the service reads from and writes to the plant's control system, whatever the system is."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

READ_TIMEOUT = 5.0
"""Seconds a control system has to connect and to give a value."""
WRITE_TIMEOUT = 30.0
"""Seconds a control system has to confirm a write, unless the writer says otherwise."""


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
    """One value of a signal, as plain JSON data: an array is a list, an image a list of rows, a table its columns by name.

    `sampled_at` is the source's own time and never invented. A categorical value is its label, `index` its place among the
    labels. `name` and `units` are what the control system calls the signal and counts it in.
    """

    value: Any
    kind: ReadingKind = ReadingKind.SCALAR
    quality: Quality = Quality.GOOD
    quality_detail: str | None = None
    sampled_at: datetime | None = None
    name: str | None = None
    units: str | None = None
    index: int | None = None


class ControlError(Exception):
    """The control system did not do what was asked of it."""


class ControlNotConnectedError(ControlError):
    """There is no channel to this address, before or during the call."""


class ControlTimeoutError(ControlError):
    """No value or no confirmation came in time; what was written may have had its effect."""


class ControlWriteRejectedError(ControlError):
    """The control system said no: the signal is read-only, or the value is none it accepts."""


class ControlValueCoercionError(ControlError):
    """The value does not fit the type that is needed."""


class ControlAccessDeniedError(ControlError):
    """The control system's access security does not let this service do that."""


class ControlWritesDisabledError(ControlError):
    """The deployment or the route only observes; nothing was sent."""


class NoAdapterForAddressError(ControlError):
    """No route leads to this address."""


class MalformedControlAddressError(ControlError):
    """The control system behind the route has no addresses of this form."""


class Control(Protocol):
    """One control system, or several behind their routes. Channels connect on first use."""

    async def read(self, address: str) -> Reading:
        """The current value of a signal; raises ControlError."""
        ...

    async def write(self, address: str, value: Any, wait: bool = True, timeout: float = WRITE_TIMEOUT) -> None:
        """Set a signal, and return when the control system confirms it; without `wait`, as soon as it is on its way."""
        ...

    def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        """The current value as soon as there is one, then the changes.

        Whoever is far behind gets the newest of them; what came long before is passed over. A disconnect raises
        ControlNotConnectedError after the last value, it never pauses silently. Closing the iterator unsubscribes.
        """
        ...

    async def close(self) -> None:
        """Let go of every channel; may be repeated."""
        ...


class Witness:
    """A control that remembers what was done through it.

    `touched` are the addresses in the order of first touch, whether or not it worked; `written` is the last value that each
    address took.
    """

    def __init__(self, control: Control) -> None:
        self._control = control
        self._touched: dict[str, None] = {}
        self.written: dict[str, Any] = {}

    @property
    def touched(self) -> tuple[str, ...]:
        return tuple(self._touched)

    async def read(self, address: str) -> Reading:
        self._touched[address] = None
        return await self._control.read(address)

    async def write(self, address: str, value: Any, wait: bool = True, timeout: float = WRITE_TIMEOUT) -> None:
        self._touched[address] = None
        await self._control.write(address, value, wait, timeout)
        self.written[address] = value

    def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        self._touched[address] = None
        return self._control.subscribe(address)

    async def close(self) -> None:
        """Nothing to let go of: the channels belong to whoever opened them."""
