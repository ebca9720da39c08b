"""The plant of the reference interpreter: a dictionary of signals, with everything that can be wrong with them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ROUTES = {"real:": {"simulated": False}, "model:": {"simulated": True}, "watch:": {"simulated": False, "read_only": True}}
"""Everything the plant has begins with one of these; what begins otherwise, nothing leads to."""


NEVER = object()
"""What an address was left at that nobody wrote to."""


class StepFailed(Exception):
    """A step failed; the record calls it so."""


@dataclass
class Signal:
    """One signal of the plant and what is wrong with it."""

    value: Any
    fault: str | None = None
    connected: bool = True
    series: list[Any] = field(default_factory=list)
    """What it reads one after the other; at the end it stays."""
    arrives: list[Any] = field(default_factory=list)
    """What it comes to as soon as somebody follows it, if anything."""
    breaks: bool = False
    """Whether it is lost as soon as somebody follows it."""

    def __post_init__(self) -> None:
        self.first = self.frozen = self.value

    @property
    def reading(self) -> tuple[Any, str]:
        return self.frozen if self.fault == "stuck" else self.value, "Bad" if self.fault == "bad" else "Good"


class ReferencePlant:
    """Signals by address."""

    def __init__(self, signals: Mapping[str, Mapping[str, Any]]) -> None:
        self.signals = {address: Signal(**described) for address, described in signals.items()}
        self.attempts: list[tuple[str, Any]] = []
        """Every write that was tried, in order."""

    def read(self, address: str) -> tuple[Any, str]:
        signal = self._connected_signal(address)
        if signal.series:
            signal.value = signal.series.pop(0)
        if signal.fault == "silent":
            raise StepFailed("ControlTimeoutError")
        return signal.reading

    def follow(self, address: str) -> tuple[Any, str]:
        """What a signal reads when it has been followed for as long as a check waits."""
        signal = self._connected_signal(address)
        if signal.breaks:
            signal.connected = False
            raise StepFailed("ControlNotConnectedError")
        if signal.arrives:
            signal.value = signal.arrives[0]
        return signal.reading

    def write(self, address: str, value: Any, during: Callable[[], None] = lambda: None) -> None:
        if holds_number(value):
            self._connected_signal(address)  # its limits are asked for first
        self.attempts.append((address, value))
        during()
        if any(address.startswith(prefix) and route.get("read_only") for prefix, route in ROUTES.items()):
            raise StepFailed("ControlWritesDisabledError")
        signal = self._connected_signal(address)
        if signal.fault in ("denying", "rejecting"):
            raise StepFailed("ControlAccessDeniedError" if signal.fault == "denying" else "ControlWriteRejectedError")
        signal.value = value
        if signal.fault == "silent":
            raise StepFailed("ControlTimeoutError")

    def mend(self) -> None:
        """Let nothing be wrong any more; what was lost reads again what it read at first."""
        for signal in self.signals.values():
            if not signal.connected:
                signal.value, signal.connected = signal.first, True
            signal.fault, signal.breaks = None, False

    def _connected_signal(self, address: str) -> Signal:
        if kind_of(address) is None:
            raise StepFailed("NoAdapterForAddressError")
        if address not in self.signals or not self.signals[address].connected:
            raise StepFailed("ControlNotConnectedError")
        return self.signals[address]


def kind_of(address: str) -> str | None:
    """What the route of an address says it is."""
    for prefix, route in ROUTES.items():
        if address.startswith(prefix):
            return "Simulated" if route["simulated"] else "Physical"
    return None


def merged_kind(kinds: Sequence[str | None]) -> str | None:
    seen = {kind for kind in kinds if kind is not None}
    return seen.pop() if len(seen) == 1 else "Hybrid" if seen else None


def are_same(one: Any, other: Any) -> bool:
    """Equal as JSON has it."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(are_same, one, other))
    return bool(one == other)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def holds_number(value: Any) -> bool:
    """Whether there is anything in a value that a limit could be for."""
    if isinstance(value, list | tuple):
        return any(map(holds_number, value))
    return isinstance(value, bool) or is_number(value)


def is_met(criterion: Mapping[str, Any], expected: Any, value: Any) -> bool:
    if criterion["kind"] == "equals":
        return are_same(value, expected)
    return is_number(value) and is_number(expected) and abs(value - expected) <= criterion["tolerance"]


def shown_value(value: Any) -> Any:
    """A value as a result tells it: of a list only the shape."""
    if not isinstance(value, list | tuple):
        return value
    shape: list[int] = []
    inner: Any = value
    while isinstance(inner, list | tuple):
        shape.append(len(inner))
        inner = inner[0] if inner else None
    return {"kind": "Array", "shape": shape}


def captured_number(value: Any, quality: str) -> float:
    """A value that may be captured."""
    if quality != "Good":
        raise StepFailed("CheckFailedError")
    if not is_number(value):
        raise StepFailed("ControlValueCoercionError")
    number: float = value
    return number


def is_on_axis(axis: Mapping[str, Any], value: Any) -> bool:
    if axis.get("choices"):
        return value in axis["choices"]
    return is_number(value) and axis["lower"] <= value <= axis["upper"]


def first_point(axis: Mapping[str, Any]) -> Any:
    return axis["choices"][0] if axis.get("choices") else axis["lower"]


def values_of(axis: Mapping[str, Any], count: int) -> Sequence[Any]:
    """The values of an axis that lie on the lattice."""
    if axis.get("choices"):
        chosen: Sequence[Any] = axis["choices"]
        return chosen
    return [axis["lower"] + (axis["upper"] - axis["lower"]) * n / (count - 1) for n in range(count)]


def doubtful_value(before: Any, value: Any) -> Any:
    """What an address is left at by a write that nobody saw confirmed."""
    in_doubt = isinstance(before, dict) and "outcome" in before
    known = before["values"] if in_doubt else [] if before is NEVER else [before]
    if value in known and not in_doubt:
        return before
    return {"outcome": "unknown", "values": known if value in known else [*known, value]}
