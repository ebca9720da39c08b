"""The devices of a simulated plant; what one reads at a moment follows from what was written to it before, and when."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from typing import Any

from baton.application.control import (
    ControlLimits,
    ControlValueCoercionError,
    ControlWriteRejectedError,
    Quality,
    Reading,
    ReadingKind,
)
from baton.application.plant import SimulatedMotor

ReadOther = Callable[[str], Reading | None]  # what another signal reads now, None without a value
Function = Callable[..., float]  # of the values of other signals


class Device(ABC):
    """One part of a simulated plant; it can only be read unless it overrides `accept` and `write`."""

    changes_by_itself = True  # whether what it reads can change without being written

    def __init__(self, *addresses: str) -> None:
        self.addresses: Sequence[str] = addresses

    @abstractmethod
    def reading(self, address: str, at: datetime, read_other: ReadOther) -> Reading | None:
        """Return what it reads at a time, or None while it has no value."""

    def accept(self, address: str, value: object) -> object:
        """Return a value as the device stores it; raise ControlError for one that it refuses."""
        raise read_only(address)

    def write(self, address: str, value: object, at: datetime) -> None:
        """Take an accepted value; a device that accepts none is never asked."""
        raise read_only(address)

    def is_busy(self, address: str, at: datetime) -> bool:
        """Return whether the last write to the address is still in progress."""
        return False

    def limits(self, address: str) -> ControlLimits | None:
        """Return between which values an address may be set, where the device declares that."""
        return None


@dataclass(frozen=True)
class Labels:
    address: str
    labels: tuple[str, ...]

    def reading(self, index: int, at: datetime | None) -> Reading:
        return Reading(value=self.labels[index], kind=ReadingKind.CATEGORICAL, index=index, sampled_at=at)

    def index_of(self, value: object) -> int:
        if isinstance(value, str) and value in self.labels:
            return self.labels.index(value)
        if isinstance(value, str) or not 0 <= (index := whole(self.address, value)) < len(self.labels):
            raise ControlValueCoercionError(f"{self.address} is one of {', '.join(self.labels)}, not {value!r}.")
        return index


class Noise:
    """Gaussian noise, the same for the same seed and address."""

    def __init__(self, deviation: float, seed: int, address: str) -> None:
        self._deviation = deviation
        self._random = Random(f"{seed}:{address}")

    def __bool__(self) -> bool:
        return self._deviation > 0

    def add_to(self, value: float) -> float:
        return self._random.gauss(value, self._deviation) if self else value


NO_NOISE = Noise(0, 0, "")


class PlainSignal(Device):
    """A signal that reads what was set or written last; with labels, a choice among them."""

    def __init__(
        self,
        address: str,
        reading: Reading | None = None,
        *,
        labels: tuple[str, ...] = (),
        noise: Noise = NO_NOISE,
        read_only: bool = False,
    ) -> None:
        super().__init__(address)
        self.current = reading
        self._labels = Labels(address, labels) if labels else None
        self._noise = noise
        self._read_only = read_only
        self.changes_by_itself = bool(noise)

    def reading(self, address: str, at: datetime, read_other: ReadOther) -> Reading | None:
        reading = self.current
        if reading is None or not self._noise or reading.kind is not ReadingKind.SCALAR:
            return reading
        return replace(reading, value=self._noise.add_to(float(reading.value)), sampled_at=at)

    def accept(self, address: str, value: object) -> object:
        if self._read_only:
            raise read_only(address)
        return self._labels.index_of(value) if self._labels else value

    def write(self, address: str, value: Any, at: datetime) -> None:
        if self._labels:
            self.current = self._labels.reading(value, at)
            return
        kind = ReadingKind.ARRAY if isinstance(value, list | tuple) else ReadingKind.SCALAR
        units = self.current.units if self.current else None
        self.current = Reading(value=value, kind=kind, sampled_at=at, units=units)


class DerivedSignal(Device):
    """A function of other signals: no better than the worst of them, and without a value while one of them has none."""

    def __init__(
        self, address: str, inputs: Sequence[str], function: Function, *, noise: Noise = NO_NOISE, units: str | None = None
    ) -> None:
        super().__init__(address)
        self._inputs = inputs
        self._function = function
        self._noise = noise
        self._units = units

    def reading(self, address: str, at: datetime, read_other: ReadOther) -> Reading | None:
        inputs = [reading for reading in map(read_other, self._inputs) if reading is not None]
        if len(inputs) < len(self._inputs):
            return None
        value = self._noise.add_to(self._function(*(reading.value for reading in inputs)))
        worst = max((reading.quality for reading in inputs), key=list(Quality).index, default=Quality.GOOD)
        return Reading(value=value, quality=worst, sampled_at=at, units=self._units)


class Motor(Device):
    """An axis that moves at its velocity to its target, with these fields of an EPICS motor record: `.VAL`, `.RBV` (or the
    configured readback), `.DMOV`, `.MOVN`, `.STOP`, `.VELO` of the next move, `.LLM` and `.HLM`."""

    def __init__(self, motor: SimulatedMotor, seed: int = 0) -> None:
        self._address = address = motor.address
        self._readback = motor.readback or f"{address}.RBV"
        self._limits = (-math.inf if motor.lower is None else motor.lower, math.inf if motor.upper is None else motor.upper)
        limits = [field for field, limit in zip((".LLM", ".HLM"), self._limits, strict=True) if math.isfinite(limit)]
        fields = ("", ".VAL", ".DMOV", ".MOVN", ".STOP", ".VELO", *limits)
        super().__init__(*(f"{address}{field}" for field in fields), self._readback)
        self._noise = Noise(motor.noise, seed, address)
        self._units = motor.units
        self._origin = self._target = motor.position
        self._departed_at: datetime | None = None
        self._velocity = self._move_velocity = motor.velocity

    def position(self, at: datetime) -> float:
        distance = self._target - self._origin
        if self._departed_at is None or not distance:
            return self._target
        travelled = self._move_velocity * max(0.0, (at - self._departed_at).total_seconds())
        return self._target if travelled >= abs(distance) else self._origin + math.copysign(travelled, distance)

    def reading(self, address: str, at: datetime, read_other: ReadOther) -> Reading:
        position, field, (lower, upper) = self.position(at), address.removeprefix(self._address), self._limits
        flags = {".DMOV": int(position == self._target), ".MOVN": int(position != self._target), ".STOP": 0}
        if address == self._readback:
            value = self._noise.add_to(position)
        elif field in flags:
            return Reading(value=flags[field], sampled_at=at)
        else:
            value = {".VELO": self._velocity, ".LLM": lower, ".HLM": upper}.get(field, self._target)
        return Reading(value=value, sampled_at=at, units=self._units)

    def accept(self, address: str, value: object) -> object:
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
                    self._move_to(self.position(at), at)
            case _:
                self._move_to(value, at)

    def is_busy(self, address: str, at: datetime) -> bool:
        return address in self.addresses[:2] and self.position(at) != self._target

    def limits(self, address: str) -> ControlLimits | None:
        lower, upper = (limit if math.isfinite(limit) else None for limit in self._limits)
        is_target = address in self.addresses[:2] and (lower, upper) != (None, None)
        return ControlLimits(lower, upper) if is_target else None

    def _move_to(self, target: float, at: datetime) -> None:
        self._origin = self.position(at)
        self._target = target
        self._departed_at = at
        self._move_velocity = self._velocity


def peak(centres: Mapping[str, float], width: float, height: float, background: float) -> Function:
    """Return a Gaussian bell over these centres, a function of one input for each in their order."""

    def bell(*inputs: float) -> float:
        squared = sum((given - centre) ** 2 for given, centre in zip(inputs, centres.values(), strict=True))
        return background + height * math.exp(-squared / (2 * width**2))

    return bell


def plane(slopes: Mapping[str, float], offset: float) -> Function:
    return lambda *inputs: offset + sum(given * slope for given, slope in zip(inputs, slopes.values(), strict=True))


def number(address: str, value: object) -> float:
    """Return a number that was written; raise ControlValueCoercionError for a truth value or a text."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ControlValueCoercionError(f"{address} takes a number, not {value!r}.")
    return value


def whole(address: str, value: object) -> int:
    """Return a whole number that was written; a truth value counts as 0 or 1."""
    given = int(value) if isinstance(value, bool) else number(address, value)
    if given != int(given):
        raise ControlValueCoercionError(f"{address} takes a whole number, not {value!r}.")
    return int(given)


def read_only(address: str) -> ControlWriteRejectedError:
    return ControlWriteRejectedError(f"{address} can be read only.")
