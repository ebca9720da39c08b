"""What the plant's readings say of supplies and enclosures: the observer seam and the rules from value to status."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from baton.application.control import Control, Quality, Reading
from baton.application.plant import MonitoredSupply, ReadingRule
from baton.domain.enclosure.enclosure import EnclosurePermitStatus
from baton.domain.supply.supply import SupplyStatus

PROCESS_VARIABLE = "ProcessVariable"
PERMITTED = frozenset({"1", "ON", "TRUE", "YES"})
NOT_PERMITTED = frozenset({"0", "OFF", "FALSE", "NO"})
QUOTED = 80
"""Characters of a value or a quality that a reason quotes."""


@dataclass(frozen=True, kw_only=True)
class SignalObservation:
    """What an observer says of one supply or enclosure; `observed_at` is the source's own time, if it has one.

    With `nothing_read` it is what the service says where no observer does.
    """

    code: str
    observed_status: str
    reason: str
    source_kind: str
    source_id: str
    observed_at: datetime | None = None
    nothing_read: bool = False


class Observer(Protocol):
    """Where observations come from."""

    def observe(self, code: str) -> AsyncGenerator[SignalObservation, None]:
        """What is observed of one thing, the present state first; a source that cannot be reached raises or ends."""
        ...


Meaning = Callable[[Reading], str | None]
"""What a reading says; nothing, where it is not to be trusted or fits no rule."""


@dataclass(frozen=True)
class Signal:
    """An address of the control system, and what its readings mean."""

    address: str
    meaning: Meaning


class ControlObserver:
    """Observes by subscribing to signals of the control system."""

    def __init__(self, control: Control, signals: Mapping[str, Signal]) -> None:
        self._control = control
        self._signals = signals

    async def observe(self, code: str) -> AsyncGenerator[SignalObservation, None]:
        signal = self._signals[code]
        async with aclosing(self._control.subscribe(signal.address)) as readings:
            async for reading in readings:
                if (status := signal.meaning(reading)) is not None:
                    yield SignalObservation(
                        code=code,
                        observed_status=status,
                        reason=f"{signal.address} {_said(reading)}",
                        source_kind=PROCESS_VARIABLE,
                        source_id=signal.address,
                        observed_at=reading.sampled_at,
                    )


def permit_signals(permits: Mapping[str, str]) -> dict[str, Signal]:
    """The signals of enclosures, by name."""
    return {name: Signal(address, permit_status) for name, address in permits.items()}


def supply_signals(supplies: Iterable[MonitoredSupply]) -> dict[str, Signal]:
    """The signals of supplies, by code."""
    return {supply.code: Signal(supply.signal, partial(supply_status, supply.readings)) for supply in supplies}


def permit_status(reading: Reading) -> EnclosurePermitStatus:
    """What a permit signal says; whatever is not plainly a yes or a no is Unknown."""
    word = None if reading.quality is Quality.BAD else _word(reading.value)
    if word in PERMITTED:
        return EnclosurePermitStatus.PERMITTED
    return EnclosurePermitStatus.NOT_PERMITTED if word in NOT_PERMITTED else EnclosurePermitStatus.UNKNOWN


def supply_status(rules: Iterable[ReadingRule], reading: Reading) -> SupplyStatus | None:
    """What a supply's signal says, by the first rule that fits.

    A value in alarm counts, since an alarm is what tells of a failing supply; a bad one says nothing.
    """
    if reading.quality is Quality.BAD:
        return None
    return next((SupplyStatus(rule.status) for rule in rules if _fits(rule, reading.value)), None)


def _fits(rule: ReadingRule, value: Any) -> bool:
    if rule.values:
        return _word(value) in map(_word, rule.values)
    if not isinstance(value, int | float):
        return False
    return (rule.below is None or value < rule.below) and (rule.above is None or value > rule.above)


def _word(value: Any) -> str | None:
    """A value as it is compared: a whole number by its digits, a text in capitals, nothing else at all."""
    match value:
        case int():
            return str(int(value))
        case float():
            return str(int(value)) if value.is_integer() else str(value)
        case str():
            return value.strip().upper()
    return None


def _said(reading: Reading) -> str:
    quality = "" if reading.quality is Quality.GOOD else f" with quality {reading.quality.value}"
    detail = f" ({printable(reading.quality_detail, QUOTED)})" if reading.quality_detail else ""
    return f"reads {printable(str(reading.value), QUOTED)}{quality}{detail}"


def printable(text: str, length: int) -> str:
    """The beginning of a text from outside, fit to be recorded: signals may hold characters that nothing can store."""
    return "".join(character if character.isprintable() else "?" for character in text[:length])
