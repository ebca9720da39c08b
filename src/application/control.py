"""The control port: what the service reads from and writes to the plant's control system, whatever the system is."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

READ_TIMEOUT = 5.0
"""Seconds a control system has to connect and to give a value."""
WRITE_TIMEOUT = 30.0
"""Seconds a control system has to confirm a write, unless the writer says otherwise."""

Fence = Callable[[], None]
"""Asked immediately before something is sent to the plant; it raises where nothing may be sent any more."""


def always_open() -> None:
    """Let every write pass: the fence of code that stops motion or restores a safe state."""


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

    async def write(
        self, address: str, value: Any, wait: bool = True, timeout: float = WRITE_TIMEOUT, fence: Fence | None = None
    ) -> None:
        """Set a signal, and return when the control system confirms it; without `wait`, as soon as it is on its way.

        The fence is asked when the channel is connected and the value is encoded, right before the bytes go out; where it
        raises, nothing is sent. None is the fence of whoever hands this control on, if there is one.
        """
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
    """A control with a fence that every write through it must pass, and that remembers what was done through it.

    `touched` are the addresses in the order of first touch, whether or not it worked; `written` is the last value that each
    address took; `unconfirmed` are the values sent since then of which nobody knows whether they had their effect.
    """

    def __init__(self, control: Control, fence: Fence) -> None:
        self._control = control
        self._fence = fence
        self._touched: dict[str, None] = {}
        self.written: dict[str, Any] = {}
        self.unconfirmed: dict[str, list[Any]] = {}

    @property
    def touched(self) -> tuple[str, ...]:
        return tuple(self._touched)

    async def read(self, address: str) -> Reading:
        self._touched[address] = None
        return await self._control.read(address)

    async def write(
        self, address: str, value: Any, wait: bool = True, timeout: float = WRITE_TIMEOUT, fence: Fence | None = None
    ) -> None:
        """Set a signal unless the fence is closed; a task that is being cancelled stops what it set going, and passes."""
        self._touched[address] = None
        asked = fence or (always_open if is_cancelled() else self._fence)
        before = self.unconfirmed.get(address, [])

        def send() -> None:
            asked()
            self.unconfirmed[address] = [*before, value]

        try:
            await self._control.write(address, value, wait, timeout, send)
        except (ControlWriteRejectedError, ControlAccessDeniedError):
            self.unconfirmed.pop(address, None)
            if before:
                self.unconfirmed[address] = before
            raise
        self.unconfirmed.pop(address, None)
        self.written[address] = value

    def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        self._touched[address] = None
        return self._control.subscribe(address)

    async def close(self) -> None:
        """Nothing to let go of: the channels belong to whoever opened them."""


def is_cancelled() -> bool:
    """Whether the current task is being cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
