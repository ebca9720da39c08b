"""A simulated plant behind the control port, and the hooks that play the plant's part.

Everything that is done to the plant is an entry of its journal; what its signals read follows from the entries and the time.
"""

from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import asdict, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from baton.application.clock import Timekeeper
from baton.application.control import (
    READ_TIMEOUT,
    WRITE_TIMEOUT,
    ControlAccessDeniedError,
    ControlNotConnectedError,
    ControlTimeoutError,
    ControlWriteRejectedError,
    Fence,
    MalformedControlAddressError,
    Quality,
    Reading,
    ReadingKind,
)
from baton.application.latest_queue import News
from baton.infrastructure.control.detector import Detector
from baton.infrastructure.control.devices import Device, PlainSignal
from baton.infrastructure.control.journal import Deed, Effects, Entry, Journal, MemoryJournal
from baton.infrastructure.wall_clock import WallClock

TICK = 0.05
"""Seconds between two looks at a signal that changes by itself."""


class Fault(StrEnum):
    """What can be wrong with a connected signal."""

    SILENT = "silent"
    """No answer comes in time. What is written arrives nevertheless."""
    REJECTING = "rejecting"
    DENYING = "denying"
    STUCK = "stuck"
    """It reads what it read when the fault began."""
    BAD = "bad"
    """What it reads is of bad quality."""


class Simulator:
    """Signals by address. An address nobody set is not connected; a connected one may still lack a value."""

    def __init__(
        self,
        values: Mapping[str, Any] | None = None,
        devices: Iterable[Device] = (),
        *,
        time: Timekeeper | None = None,
        journal: Journal | None = None,
        read_timeout: float = READ_TIMEOUT,
    ) -> None:
        self._time = time or WallClock()
        self._journal = journal or MemoryJournal()
        self._shared = journal is not None
        self._read_timeout = read_timeout
        self._devices: dict[str, Device] = {}
        self._lost: set[str] = set()
        self._faults: dict[str, tuple[Fault, Reading | None]] = {}
        self._subscribers: dict[str, list[News[Reading]]] = defaultdict(list)
        self._effects = Effects()
        for address, value in (values or {}).items():
            self.add(PlainSignal(address, Reading(value=value)))
        for device in devices:
            self.add(device)
        self._catch_up()

    async def read(self, address: str) -> Reading:
        reading = self._present(address)
        if reading is None or self._fault(address) is Fault.SILENT:
            await self._time.sleep(self._read_timeout)
            if (reading := self._present(address)) is None or self._fault(address) is Fault.SILENT:
                raise ControlTimeoutError(f"{address} gave no value within {self._read_timeout:g} s.")
        return reading

    async def write(
        self, address: str, value: Any, wait: bool = True, timeout: float = WRITE_TIMEOUT, fence: Fence | None = None
    ) -> None:
        device = self._connected(address)
        fault = self._fault(address)
        if fault is Fault.DENYING:
            raise ControlAccessDeniedError(f"{address} may not be written from here.")
        if fault is Fault.REJECTING:
            raise ControlWriteRejectedError(f"{address} refuses to be written.")
        accepted = device.accepted(address, value)
        if fence is not None:
            fence()
        if isinstance(device, Detector) and (camera := device.acquires(address, accepted, self._time.now())):
            self._do(Deed.ACQUIRE, camera)
        self._do(Deed.WRITE, address, value=accepted)
        if wait:
            await self._confirmed(address, timeout)

    async def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        told = self._present(address)
        news = News[Reading]()
        self._subscribers[address].append(news)
        try:
            if told is not None:
                yield told
            while True:
                if not self._at_rest(address):
                    await self._changed(address, news, told)
                try:
                    told = await anext(news)
                except StopAsyncIteration:
                    return
                yield told
        finally:
            self._subscribers[address].remove(news)

    async def close(self) -> None:
        """Nothing is held open."""

    def add(self, device: Device) -> None:
        """Build a device into the plant."""
        self._devices |= dict.fromkeys(device.addresses, device)

    def set_reading(self, address: str, reading: Reading) -> None:
        """Connect a signal if need be, and give it this value."""
        self._do(Deed.READING, address, reading=asdict(reading) if self._shared else reading)

    def simulate_connect(self, address: str) -> None:
        """Connect a signal; one that nobody set has no value yet."""
        self._do(Deed.CONNECT, address)

    def simulate_disconnect(self, address: str) -> None:
        """Lose a signal: its subscriptions break, and a value that was only set is gone."""
        self._do(Deed.DISCONNECT, address)

    def simulate_end(self, address: str) -> None:
        """End the subscriptions of a signal in good order; it stays connected."""
        self._do(Deed.END, address)

    def simulate_fault(self, address: str, fault: Fault | None) -> None:
        """Let something be wrong with a signal from now on, or nothing any more."""
        self._do(Deed.FAULT, address, fault=fault)

    def subscriptions(self, address: str) -> int:
        """How many follow a signal."""
        return len(self._subscribers[address])

    def effects(self) -> Effects:
        """What was done to the plant so far."""
        self._catch_up()
        return self._effects

    def _do(self, kind: Deed, address: str, **said: Any) -> None:
        self._catch_up()
        self._journal.append({"kind": kind, "address": address, "at": self._time.now().isoformat(), **said})
        self._catch_up()

    def _catch_up(self) -> None:
        for entry in self._journal.news():
            self._apply(entry, datetime.fromisoformat(entry["at"]))
            self._effects.count(entry)

    def _apply(self, entry: Entry, at: datetime) -> None:
        address = entry["address"]
        match entry["kind"]:
            case Deed.WRITE:
                if (device := self._devices.get(address)) is not None:
                    device.write(address, entry["value"], at)
                    self._tell_present(address, at)
            case Deed.READING:
                self._lost.discard(address)
                self._plain(address).set(_reading(entry["reading"]))
                self._tell_present(address, at)
            case Deed.CONNECT:
                self._lost.discard(address)
                self._devices.setdefault(address, PlainSignal(address))
            case Deed.DISCONNECT:
                if isinstance(device := self._devices.get(address), PlainSignal):
                    device.set(None)
                self._lost.add(address)
                self._end(address, _not_connected(address))
            case Deed.END:
                self._end(address)
            case Deed.FAULT:
                self._faults.pop(address, None)
                if entry["fault"] is not None:
                    self._faults[address] = (Fault(entry["fault"]), self._seen(address, at))
                self._tell_present(address, at)

    def _plain(self, address: str) -> PlainSignal:
        """The signal at an address that reads what it is set to; it takes the place of any device there."""
        if not isinstance(device := self._devices.get(address), PlainSignal):
            self.add(device := PlainSignal(address))
        return device

    def _connected(self, address: str) -> Device:
        self._catch_up()
        if not address.strip():
            raise MalformedControlAddressError("A signal has an address; this one is blank.")
        if address in self._lost or address not in self._devices:
            raise _not_connected(address)
        return self._devices[address]

    def _present(self, address: str) -> Reading | None:
        """What a connected signal reads now."""
        self._connected(address)
        return self._seen(address, self._time.now())

    def _seen(self, address: str, at: datetime) -> Reading | None:
        if address in self._lost or (device := self._devices.get(address)) is None:
            return None
        fault, frozen = self._faults.get(address, (None, None))
        if fault is Fault.STUCK:
            return frozen
        reading = device.reading(address, at, lambda input: self._seen(input, at))
        if reading is not None and fault is Fault.BAD:
            return replace(reading, quality=Quality.BAD, quality_detail="a fault that was asked for")
        return reading

    def _fault(self, address: str) -> Fault | None:
        return self._faults.get(address, (None, None))[0]

    async def _confirmed(self, address: str, timeout: float) -> None:
        """Until what was written is carried out."""
        deadline = self._time.now().timestamp() + timeout
        while self._connected(address).busy(address, now := self._time.now()) or self._fault(address) is Fault.SILENT:
            if (left := deadline - now.timestamp()) <= 0:
                raise ControlTimeoutError(f"{address} did not confirm what was written within {timeout:g} s.")
            await self._time.sleep(min(TICK, left))

    def _at_rest(self, address: str) -> bool:
        """Whether a signal changes only when this process is told so."""
        return not self._shared and not self._devices[address].restless

    async def _changed(self, address: str, news: News[Reading], told: Reading | None) -> None:
        """Until something is said of a signal, or it has come to another value by itself."""
        while not news.waiting:
            await self._time.sleep(TICK)
            self._catch_up()
            if not news.waiting and (present := self._seen(address, self._time.now())) and _differs(present, told):
                news.put(present)

    def _tell_present(self, address: str, at: datetime) -> None:
        if self._subscribers[address] and (reading := self._seen(address, at)) is not None:
            for news in self._subscribers[address]:
                news.put(reading)

    def _end(self, address: str, failure: Exception | None = None) -> None:
        for news in self._subscribers[address]:
            news.end(failure)


def _differs(reading: Reading, told: Reading | None) -> bool:
    return told is None or (reading.value, reading.quality) != (told.value, told.quality)


def _reading(said: Reading | Mapping[str, Any]) -> Reading:
    if isinstance(said, Reading):
        return said
    sampled_at = said["sampled_at"] and datetime.fromisoformat(said["sampled_at"])
    known = {**said, "kind": ReadingKind(said["kind"]), "quality": Quality(said["quality"]), "sampled_at": sampled_at}
    return Reading(**known)


def _not_connected(address: str) -> ControlNotConnectedError:
    return ControlNotConnectedError(f"{address} is not connected.")
