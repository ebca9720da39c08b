"""The control port: reading and writing the signals of any control system."""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, TypeVar

READ_TIMEOUT = 5.0  # seconds a control system has to connect and to give a value
WRITE_TIMEOUT = 30.0  # seconds a control system has to confirm a write, unless the writer says otherwise
T = TypeVar("T")
Fence = Callable[[], None]  # called right before a send; raises where nothing may be sent any more


def always_open() -> None:
    """Allow every write: the fence of code that stops motion or restores a safe state."""


class Timekeeper(Protocol):
    """The wall clock, or a clock that tests and simulations move."""

    def now(self) -> datetime:
        """Return the present time, with its zone."""

    async def sleep(self, seconds: float) -> None:
        """Wait this long."""


class ReadingKind(StrEnum):
    SCALAR = "Scalar"
    ARRAY = "Array"
    IMAGE = "Image"
    CATEGORICAL = "Categorical"
    TABULAR = "Tabular"


class Quality(StrEnum):
    """The control system's judgement of a value: good, in alarm but measured, or not to be trusted."""

    GOOD = "Good"
    UNCERTAIN = "Uncertain"
    BAD = "Bad"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One value of a signal as plain JSON data: an array is a list, an image rows, a table columns by name, a choice its
    label. `sampled_at` is the source's own time and never invented; `index` is the place of a choice among the labels."""

    value: Any
    kind: ReadingKind = ReadingKind.SCALAR
    quality: Quality = Quality.GOOD
    quality_detail: str | None = None
    sampled_at: datetime | None = None
    name: str | None = None
    units: str | None = None
    index: int | None = None


@dataclass(frozen=True)
class ControlLimits:
    """Between which values a signal may be set; None is no limit on that side."""

    low: float | None = None
    high: float | None = None

    @classmethod
    def from_declared(cls, low: float, high: float) -> "ControlLimits | None":
        """Return limits as control systems declare them: they count only where the low one is below the high one."""
        sides = [limit if math.isfinite(limit) else None for limit in (low, high)]
        return cls(*sides) if low < high and sides != [None, None] else None


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


class SetpointOutOfLimitsError(ControlError):
    """The value lies outside the limits of the signal; nothing was sent."""

    def __init__(self, message: str, facts: Mapping[str, object]) -> None:
        super().__init__(message)
        self.facts = facts


LimitCheck = Callable[[str, Any], Awaitable[None]]  # raises SetpointOutOfLimitsError where a value is not allowed


async def allow_any_value(address: str, value: object) -> None:
    """Accept every value: the limit check of code that knows no limits."""


class Control(Protocol):
    """One control system, or several behind their routes. Channels connect on first use."""

    async def read(self, address: str) -> Reading:
        """Return the current value of a signal; raise ControlError."""

    async def write(
        self, address: str, value: object, wait: bool = True, timeout: float = WRITE_TIMEOUT, fence: Fence | None = None
    ) -> None:
        """Set a signal, and return when that is confirmed, or without `wait` as soon as it is on its way. The fence is
        called right before the bytes go out, and nothing is sent where it raises; None means that of a wrapping control."""

    def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        """Yield the current value as soon as there is one, then the changes; a slow reader gets only the newest of them. A
        disconnect raises ControlNotConnectedError after the last value. Closing the iterator unsubscribes."""

    async def limits(self, address: str) -> ControlLimits | None:
        """Return between which values the control system lets a signal be set, as it declares now; None where it declares
        none; raise ControlError. An adapter of an installed package may lack this method, which means none."""

    async def close(self) -> None:
        """Close every channel; may be repeated."""


Standstill = Callable[[], Callable[[], bool]]  # begins to look whether this process stands still; then, whether it did


def never_still() -> Callable[[], bool]:
    """Say that this process never stands still: for code that cannot tell."""
    return lambda: False


class FencedControl:
    """A control with a fence and a limit check for every write, which remembers what was done: `touched` addresses in the
    order of first use, the last confirmed values (`written`), and those sent since that may have had an effect
    (`unconfirmed`). Where the time of a question ran out while this process itself stood still, that says nothing of the
    control system, and it is asked again (`repeats`)."""

    def __init__(
        self,
        control: Control,
        fence: Fence,
        check_limits: LimitCheck = allow_any_value,
        stood_still: Standstill = never_still,
    ) -> None:
        self._control = control
        self._fence = fence
        self._check_limits = check_limits
        self._stood_still = stood_still
        self.repeats = 0
        self._touched: dict[str, None] = {}
        self.written: dict[str, object] = {}
        self.unconfirmed: dict[str, list[object]] = {}

    @property
    def touched(self) -> tuple[str, ...]:
        return tuple(self._touched)

    async def read(self, address: str) -> Reading:
        self._touched[address] = None
        return await self._ask(lambda: self._control.read(address))

    async def _ask(self, question: Callable[[], Awaitable[T]], may_repeat: Callable[[], bool] = lambda: True) -> T:
        while True:
            stood_still = self._stood_still()
            try:
                return await question()
            except (ControlNotConnectedError, ControlTimeoutError):
                if not (may_repeat() and stood_still()):
                    raise
            self.repeats += 1

    async def write(
        self, address: str, value: object, wait: bool = True, timeout: float = WRITE_TIMEOUT, fence: Fence | None = None
    ) -> None:
        """Set a signal unless the fence is closed or the value lies outside its limits; a task that is being cancelled stops
        what it started, and passes both."""
        self._touched[address] = None
        task = asyncio.current_task()
        stopping = task is not None and task.cancelling() > 0
        check = fence or (always_open if stopping else self._fence)
        if not stopping:
            await self._ask(lambda: self._check_limits(address, value))
        before, sent = self.unconfirmed.get(address, []), False

        def send() -> None:
            nonlocal sent
            check()
            sent, self.unconfirmed[address] = True, [*before, value]

        try:
            await self._ask(lambda: self._control.write(address, value, wait, timeout, send), lambda: not sent)
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

    async def limits(self, address: str) -> ControlLimits | None:
        return await limits_of(self._control, address)

    async def close(self) -> None:
        """Close nothing: the channels belong to the wrapped control."""


async def limits_of(control: Control, address: str) -> ControlLimits | None:
    """Return the limits that a control system declares; None from an adapter that cannot say."""
    read_limits = getattr(control, "limits", None)
    return None if read_limits is None else await read_limits(address)
