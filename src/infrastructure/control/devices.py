"""What a simulated plant is made of: signals that keep what is written, axes that take time, signals made of others.

A device has no time of its own: what it reads at a moment follows from what was done to it before, and when.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from typing import Any, Protocol

from baton.application.control import ControlValueCoercionError, ControlWriteRejectedError, Quality, Reading, ReadingKind

Plant = Callable[[str], Reading | None]
"""What the other signals read at the same moment; nothing where they have no value."""


class Device(Protocol):
    """One part of a simulated plant, with the addresses it answers at."""

    addresses: Sequence[str]
    restless: bool
    """Whether what it reads changes without being written."""

    def reading(self, address: str, at: datetime, plant: Plant) -> Reading | None:
        """What it reads at a time; nothing while it has no value."""
        ...

    def accepted(self, address: str, value: Any) -> Any:
        """A value as the device takes it; raises ControlError for one that it does not."""
        ...

    def write(self, address: str, value: Any, at: datetime) -> None:
        """Take an accepted value."""
        ...

    def busy(self, address: str, at: datetime) -> bool:
        """Whether what was last written to the address is still being carried out."""
        ...


@dataclass(frozen=True)
class Labels:
    """The values a signal can be chosen from."""

    address: str
    labels: tuple[str, ...]

    def reading(self, index: int, at: datetime | None) -> Reading:
        return Reading(value=self.labels[index], kind=ReadingKind.CATEGORICAL, index=index, sampled_at=at)

    def accepted(self, value: Any) -> int:
        """The index of a label that is given by its text or its index."""
        if isinstance(value, str) and value in self.labels:
            return self.labels.index(value)
        if isinstance(value, str) or not 0 <= (index := whole(self.address, value)) < len(self.labels):
            raise ControlValueCoercionError(f"{self.address} is one of {', '.join(self.labels)}, not {value!r}.")
        return index


class Noise:
    """A scatter of numbers that is the same for the same seed and address."""

    def __init__(self, deviation: float, seed: int, address: str) -> None:
        self._deviation = deviation
        self._random = Random(f"{seed}:{address}")

    def __bool__(self) -> bool:
        return self._deviation > 0

    def around(self, value: float) -> float:
        return self._random.gauss(value, self._deviation) if self else value


class PlainSignal:
    """A signal that reads what was set or written last; with labels, a choice among them."""

    def __init__(
        self,
        address: str,
        reading: Reading | None = None,
        *,
        labels: tuple[str, ...] = (),
        noise: Noise | None = None,
        read_only: bool = False,
    ) -> None:
        self.addresses: Sequence[str] = (address,)
        self._reading = reading
        self._labels = Labels(address, labels) if labels else None
        self._noise = noise
        self._read_only = read_only
        self.restless = bool(noise)

    def set(self, reading: Reading | None) -> None:
        """Let it read this from now on."""
        self._reading = reading

    def reading(self, address: str, at: datetime, plant: Plant) -> Reading | None:
        reading = self._reading
        if reading is None or not self._noise or reading.kind is not ReadingKind.SCALAR:
            return reading
        return replace(reading, value=self._noise.around(float(reading.value)), sampled_at=at)

    def accepted(self, address: str, value: Any) -> Any:
        if self._read_only:
            raise read_only(address)
        return self._labels.accepted(value) if self._labels else value

    def write(self, address: str, value: Any, at: datetime) -> None:
        if self._labels:
            self._reading = self._labels.reading(value, at)
            return
        kind = ReadingKind.ARRAY if isinstance(value, list | tuple) else ReadingKind.SCALAR
        units = self._reading.units if self._reading else None
        self._reading = Reading(value=value, kind=kind, sampled_at=at, units=units)

    def busy(self, address: str, at: datetime) -> bool:
        return False


class DerivedSignal:
    """A signal that is a function of others: no better than the worst of them, and without a value if one of them is."""

    restless = True

    def __init__(
        self,
        address: str,
        inputs: Sequence[str],
        function: Callable[..., float],
        *,
        noise: Noise | None = None,
        units: str | None = None,
    ) -> None:
        self.addresses: Sequence[str] = (address,)
        self._inputs = inputs
        self._function = function
        self._noise = noise
        self._units = units

    def reading(self, address: str, at: datetime, plant: Plant) -> Reading | None:
        inputs = [reading for reading in map(plant, self._inputs) if reading is not None]
        if len(inputs) < len(self._inputs):
            return None
        value = self._function(*(reading.value for reading in inputs))
        worst = max((reading.quality for reading in inputs), key=list(Quality).index, default=Quality.GOOD)
        value = self._noise.around(value) if self._noise else value
        return Reading(value=value, quality=worst, sampled_at=at, units=self._units)

    def accepted(self, address: str, value: Any) -> Any:
        raise read_only(address)

    def write(self, address: str, value: Any, at: datetime) -> None:
        raise read_only(address)

    def busy(self, address: str, at: datetime) -> bool:
        return False


class Motor:
    """An axis that moves at its velocity towards where it was sent, with the fields of an EPICS motor record.

    `.RBV` (or an address of its own) reads the position, `.DMOV` and `.MOVN` say whether it stands or moves, `.STOP` halts
    it, `.VELO` is the velocity of its next move, `.LLM` and `.HLM` are its limits.
    """

    restless = True

    def __init__(
        self,
        address: str,
        *,
        readback: str | None = None,
        position: float = 0.0,
        velocity: float = 1.0,
        lower: float | None = None,
        upper: float | None = None,
        noise: Noise | None = None,
        units: str | None = None,
    ) -> None:
        self._address = address
        self._readback = readback or f"{address}.RBV"
        self._limits = (-math.inf if lower is None else lower, math.inf if upper is None else upper)
        self._noise = noise
        self._units = units
        self._origin = self._target = position
        self._begun: datetime | None = None
        self._velocity = self._pace = velocity
        fields = [field for field, limit in zip((".LLM", ".HLM"), self._limits, strict=True) if math.isfinite(limit)]
        names = [f"{address}{field}" for field in ("", ".VAL", ".DMOV", ".MOVN", ".STOP", ".VELO", *fields)]
        self.addresses: Sequence[str] = [*names, self._readback]

    def position(self, at: datetime) -> float:
        """Where the axis is."""
        way = self._target - self._origin
        if self._begun is None or not way:
            return self._target
        gone = self._pace * max(0.0, (at - self._begun).total_seconds())
        return self._target if gone >= abs(way) else self._origin + math.copysign(gone, way)

    def reading(self, address: str, at: datetime, plant: Plant) -> Reading:
        if address == self._readback:
            position = self.position(at)
            return self._number(self._noise.around(position) if self._noise else position, at)
        match address.removeprefix(self._address):
            case ".DMOV":
                return Reading(value=int(self.position(at) == self._target), sampled_at=at)
            case ".MOVN":
                return Reading(value=int(self.position(at) != self._target), sampled_at=at)
            case ".STOP":
                return Reading(value=0, sampled_at=at)
            case ".VELO":
                return self._number(self._velocity, at)
            case ".LLM" | ".HLM" as limit:
                return self._number(self._limits[limit == ".HLM"], at)
            case _:
                return self._number(self._target, at)

    def accepted(self, address: str, value: Any) -> Any:
        if address == self._readback or address.endswith((".DMOV", ".MOVN", ".LLM", ".HLM")):
            raise read_only(address)
        given = number(address, value)
        if address.endswith(".VELO") and given <= 0:
            raise ControlWriteRejectedError(f"{address} must be above 0, not {given}.")
        lower, upper = self._limits
        if address in self.addresses[:2] and not lower <= given <= upper:
            raise ControlWriteRejectedError(f"{address} cannot go to {given}; its limits are {lower} and {upper}.")
        return given

    def write(self, address: str, value: Any, at: datetime) -> None:
        match address.removeprefix(self._address):
            case ".VELO":
                self._velocity = value
            case ".STOP":
                if value:
                    self._send(self.position(at), at)
            case _:
                self._send(value, at)

    def busy(self, address: str, at: datetime) -> bool:
        return address in self.addresses[:2] and self.position(at) != self._target

    def _send(self, target: float, at: datetime) -> None:
        self._origin, self._target = self.position(at), target
        self._begun, self._pace = at, self._velocity

    def _number(self, value: float, at: datetime) -> Reading:
        return Reading(value=value, sampled_at=at, units=self._units)


def peak(centres: Mapping[str, float], width: float, height: float, background: float) -> Callable[..., float]:
    """A bell over these centres, one input for each in their order."""

    def bell(*inputs: float) -> float:
        away = sum((given - centre) ** 2 for given, centre in zip(inputs, centres.values(), strict=True))
        return background + height * math.exp(-away / (2 * width**2))

    return bell


def plane(slopes: Mapping[str, float], offset: float) -> Callable[..., float]:
    """A sum of its inputs, each times its slope."""

    def height(*inputs: float) -> float:
        return offset + sum(given * slope for given, slope in zip(inputs, slopes.values(), strict=True))

    return height


def number(address: str, value: Any) -> float:
    """A number that was written; a truth value or a text is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ControlValueCoercionError(f"{address} takes a number, not {value!r}.")
    return value


def whole(address: str, value: Any) -> int:
    """A whole number that was written; a truth value counts as 0 or 1."""
    given = int(value) if isinstance(value, bool) else number(address, value)
    if given != int(given):
        raise ControlValueCoercionError(f"{address} takes a whole number, not {value!r}.")
    return int(given)


def read_only(address: str) -> ControlWriteRejectedError:
    return ControlWriteRejectedError(f"{address} can be read only.")
