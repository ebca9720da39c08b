"""Between which values signals may be set: by the owners of a signal, and by its control system."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from uuid import UUID
from weakref import WeakValueDictionary

from baton.application.caller import Caller
from baton.application.commands import Commands
from baton.application.control import Control, ControlAccessDeniedError, SetpointOutOfLimitsError, limits_of
from baton.domain.equipment.signals import SignalLimits, owners_of, tightest_limits
from baton.domain.shared.reads import Reads
from baton.domain.step.signal_rules import finite_numbers, refuse_out_of_limits
from baton.domain.step.step_values import StepFault

REREAD_SECONDS = 0.9  # a limit that is set counts at the latest a second later
MAX_KNOWN = 10_000  # signals whose limits are remembered


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
        if next(finite_numbers(value), None) is None:
            return
        try:
            refuse_out_of_limits(address, value, (await self._read(address)).by_source)
        except StepFault as fault:
            raise SetpointOutOfLimitsError(str(fault), fault.facts) from None

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
