"""The twin of a rehearsal: the signals that steps touch, each with the value that is known of it and where that comes from.
Steps set it; nothing else moves, since the twin is no physics."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from baton.domain.equipment.values import SignalLimits, value_field


class ValueSource(StrEnum):
    """Where a value of the twin comes from."""

    ASSUMED = "assumed"  # The caller gave it.
    READ = "read"  # A worker read it for this rehearsal.
    LEDGER = "ledger"  # A conduct wrote or read it last.
    OBSERVED = "observed"  # A monitor observed it last.
    SET = "set"  # A step of the rehearsal set it.


class TwinValue(NamedTuple):
    """A value of the twin; without a source nobody knows it."""

    value: Any = None
    source: ValueSource | None = None
    at: datetime | None = None

    @property
    def known(self) -> bool:
        return self.source is not None


UNKNOWN = TwinValue()


class LastValue(NamedTuple):
    """The value that a conduct wrote to a signal or read of it last."""

    value: Any
    unit: str | None
    unit_known: bool  # Whether it was read; a signal that was only written may count in any unit.
    at: datetime


@dataclass(frozen=True)
class TwinSignal:
    """A signal as it is before the first step."""

    address: str
    first: TwinValue = UNKNOWN
    unit: str | None = None
    unit_known: bool = True
    limits: Mapping[str, SignalLimits | None] = field(default_factory=dict)
    """The limits of its owners and of the control system, by whose they are."""

    @property
    def document(self) -> dict[str, Any]:
        """Return what decides the verdicts on it, as JSON; how old its value is does not."""
        limits = {whose: found and [found.low, found.high] for whose, found in self.limits.items()}
        first = [self.first.source, str(self.first.value)]
        unit = [self.unit, self.unit_known]
        return {"address": self.address, "unit": unit, "first": first, "limits": limits}


class Twin:
    """The signals of one rehearsal. An EPICS record and its VAL field are one signal, as for limits."""

    def __init__(self, signals: Iterable[TwinSignal] = ()) -> None:
        self._signals = {value_field(signal.address): signal for signal in signals}
        self._values = {key: signal.first for key, signal in self._signals.items()}

    @property
    def signals(self) -> tuple[TwinSignal, ...]:
        return tuple(self._signals.values())

    def signal(self, address: str) -> TwinSignal:
        """Return what is known of a signal; of one that is not listed, nothing."""
        return self._signals.get(value_field(address)) or TwinSignal(address)

    def ask(self, address: str) -> TwinValue:
        """Return the value of a signal now."""
        return self._values.get(value_field(address), UNKNOWN)

    def set(self, address: str, value: TwinValue) -> None:
        """Set a signal and, of a motor record, its readback."""
        key = value_field(address)
        self._values[key] = value
        readback = f"{key.removesuffix('.VAL')}.RBV"
        if key.endswith(".VAL") and readback in self._signals:
            self._values[readback] = value

    def forget(self, address: str) -> None:
        """Forget an address and all below it, which something wrote without saying what."""
        whole = value_field(address)
        below = tuple(f"{address.removesuffix('.VAL')}{end}" for end in ":./")
        for key in [key for key in self._values if key == whole or key.startswith(below)]:
            self._values[key] = UNKNOWN


def with_first(signal: TwinSignal, value: Any, source: ValueSource, at: datetime | None = None) -> TwinSignal:
    """Return a signal that begins with this value."""
    return replace(signal, first=TwinValue(value, source, at))
