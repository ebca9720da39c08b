"""Between which values signals may be set: by the owners of a signal, and by its control system."""

import asyncio
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID
from weakref import WeakValueDictionary

from baton.application.caller import Caller
from baton.application.commands import Commands
from baton.application.control import Control, ControlAccessDeniedError, SetpointOutOfLimitsError, limits_of
from baton.domain.equipment.signals import SignalLimits, owners_of, tightest_limits
from baton.domain.shared.reads import Reads

REREAD_SECONDS = 0.9  # a limit that is set counts at the latest a second later
MAX_KNOWN = 10_000  # signals whose limits are remembered
WHOSE = {"owners": "its owners allow", "control_system": "the control system allows"}  # by the fact `whose`


def declared_limits(addresses: Collection[str]) -> Reads[dict[str, SignalLimits | None]]:
    """Return the limits that the owners of each address set; None where they set none."""
    owners = yield from owners_of(addresses)
    return {address: tightest_limits(address, found) for address, found in owners.items()}


@dataclass(frozen=True)
class KnownLimits:
    """The limits of a signal, and when they were read."""

    read_at: float
    by_source: Mapping[str, SignalLimits | None]


@dataclass(frozen=True)
class SetpointLimits:
    """Checks values before they are written. Limits are read again after a moment, so that changed ones count."""

    control: Control
    commands: Commands
    new_id: Callable[[], UUID]
    clock: Callable[[], float] = time.monotonic
    _known: dict[str, KnownLimits] = field(default_factory=dict)
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)  # one reads for all

    async def check(self, address: str, value: object) -> None:
        """Raise SetpointOutOfLimitsError for a number outside the limits; what is no finite number has none."""
        numbers = list(finite_numbers(value))
        if not numbers:
            return
        for source, limits in (await self._read(address)).by_source.items():
            if limits is not None:
                refuse_outside(address, numbers, limits, source)

    async def _read(self, address: str) -> KnownLimits:
        lock = self._locks.setdefault(address, asyncio.Lock())
        async with lock:
            known, now = self._known.get(address), self.clock()
            if known is None or now - known.read_at > REREAD_SECONDS:
                declared = await self.commands.read(declared_limits((address,)), Caller.system(self.new_id()))
                by_source = {"owners": declared[address], "control_system": await control_limits(self.control, address)}
                if len(self._known) >= MAX_KNOWN:
                    self._known.clear()
                known = self._known[address] = KnownLimits(now, by_source)
            return known


async def control_limits(control: Control, address: str) -> SignalLimits | None:
    """Return the limits that the control system declares; None where it does not let us read them."""
    try:
        limits = await limits_of(control, address)
    except ControlAccessDeniedError:
        return None
    return None if limits is None else SignalLimits(low=limits.low, high=limits.high)


def finite_numbers(value: object) -> Iterator[float]:
    """Yield the numbers in a value that is to be written."""
    match value:
        case list() | tuple():
            for item in value:
                yield from finite_numbers(item)
        case int() | float() if abs(value) < math.inf:
            yield value


def refuse_outside(address: str, numbers: list[float], limits: SignalLimits, whose: str) -> None:
    """Refuse the first of these numbers that lies outside the limits."""
    outside = next((number for number in numbers if not limits.admits(number)), None)
    if outside is not None:
        sides = (("from", limits.low), ("to", limits.high))
        allowed = " ".join(f"{word} {side!r}" for word, side in sides if side is not None)
        detail = f"{address} was not set to {outside!r}: {WHOSE[whose]} values {allowed}."
        facts = {"address": address, "value": outside, "low": limits.low, "high": limits.high, "whose": whose}
        raise SetpointOutOfLimitsError(detail, facts)
