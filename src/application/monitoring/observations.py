"""The observer port of the monitors, and the rules from a signal's reading to a status."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from math import isnan
from typing import Protocol

from baton.application.control import Control, Quality, Reading
from baton.application.plant import MonitoredSupply, ReadingRule
from baton.domain.enclosure.enclosure import EnclosurePermitStatus
from baton.domain.supply.supply import SupplyStatus

PERMITTED = frozenset({"1", "ON", "TRUE", "YES"})
NOT_PERMITTED = frozenset({"0", "OFF", "FALSE", "NO"})
QUOTED = 80  # characters of a value or a quality that a reason quotes
StatusRule = Callable[[Reading], str | None]  # None: the reading is not to be trusted, and confirms nothing


@dataclass(frozen=True, kw_only=True)
class SignalObservation:
    """An observed status at the source's own time, if it has one; with `nothing_read` it rests on no trusted reading."""

    code: str
    observed_status: str
    reason: str
    source_kind: str
    source_id: str
    observed_at: datetime | None = None
    nothing_read: bool = False


class Observer(Protocol):
    """A source of observations."""

    def observe(self, code: str) -> AsyncGenerator[SignalObservation, None]:
        """Yield the observations of one thing, the present state first; a source that cannot be reached raises or ends."""


@dataclass(frozen=True)
class Signal:
    address: str
    status_of: StatusRule


@dataclass
class ControlObserver:
    control: Control
    signals: Mapping[str, Signal]

    async def observe(self, code: str) -> AsyncGenerator[SignalObservation, None]:
        signal = self.signals[code]
        async with aclosing(self.control.subscribe(signal.address)) as readings:
            async for reading in readings:
                status = signal.status_of(reading)
                yield SignalObservation(
                    code=code,
                    observed_status=SupplyStatus.UNKNOWN if status is None else status,
                    reason=f"{signal.address} {_describe(reading)}",
                    source_kind="ProcessVariable",
                    source_id=signal.address,
                    observed_at=reading.sampled_at,
                    nothing_read=status is None,
                )


def permit_signals(permits: Mapping[str, str]) -> dict[str, Signal]:
    return {name: Signal(address, permit_status) for name, address in permits.items()}


def supply_signals(supplies: Iterable[MonitoredSupply]) -> dict[str, Signal]:
    return {supply.code: Signal(supply.signal, partial(supply_status, supply.readings)) for supply in supplies}


def permit_status(reading: Reading) -> EnclosurePermitStatus:
    """Return the status of a permit signal; whatever is not plainly a yes or a no is Unknown."""
    word = None if reading.quality is Quality.BAD else _word(reading.value)
    if word in PERMITTED:
        return EnclosurePermitStatus.PERMITTED
    return EnclosurePermitStatus.NOT_PERMITTED if word in NOT_PERMITTED else EnclosurePermitStatus.UNKNOWN


def supply_status(rules: Iterable[ReadingRule], reading: Reading) -> SupplyStatus | None:
    """Return the status of a supply's signal by the first rule that fits; where none does, nothing is wrong, and the reading
    says no more (Unknown). A bad value and one that no rule can judge have none, but one in alarm counts."""
    rules = tuple(rules)
    if reading.quality is Quality.BAD or not any(_can_judge(rule, reading.value) for rule in rules):
        return None
    return next((SupplyStatus(rule.status) for rule in rules if _fits(rule, reading.value)), SupplyStatus.UNKNOWN)


def _can_judge(rule: ReadingRule, value: object) -> bool:
    if isinstance(value, float) and isnan(value):
        return False
    return _word(value) is not None if rule.values else isinstance(value, int | float)


def _fits(rule: ReadingRule, value: object) -> bool:
    if rule.values:
        return _word(value) in map(_word, rule.values)
    if not isinstance(value, int | float):
        return False
    return (rule.below is None or value < rule.below) and (rule.above is None or value > rule.above)


def _word(value: object) -> str | None:
    match value:
        case int():
            return str(int(value))
        case float():
            return str(int(value)) if value.is_integer() else str(value)
        case str():
            return value.strip().upper()
    return None


def _describe(reading: Reading) -> str:
    quality = "" if reading.quality is Quality.GOOD else f" with quality {reading.quality.value}"
    detail = f" ({printable(reading.quality_detail, QUOTED)})" if reading.quality_detail else ""
    return f"reads {printable(str(reading.value), QUOTED)}{quality}{detail}"


def printable(text: str, length: int) -> str:
    """Return the beginning of a text from outside in characters that can be stored."""
    return "".join(character if character.isprintable() else "?" for character in text[:length])
