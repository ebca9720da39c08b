"""A simulated plant behind the control port, and the hooks by which tests change it.

Everything that is done to the plant is an entry of its journal; what its signals read follows from the entries and the time.
"""

from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import asdict, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, assert_never

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
from baton.application.latest_queue import LatestQueue
from baton.application.plant import (
    SimulatedDetector,
    SimulatedDevice,
    SimulatedMotor,
    SimulatedPeak,
    SimulatedPlane,
    SimulatedSignal,
)
from baton.application.settings import Settings
from baton.infrastructure.control.area_detector import Detector
from baton.infrastructure.control.devices import DerivedSignal, Device, Motor, Noise, PlainSignal, peak, plane
from baton.infrastructure.control.journal import Entry, EntryKind, FileJournal, Journal, MemoryJournal
from baton.infrastructure.wall_clock import WallClock

POLL_SECONDS = 0.05


class SimulatedFault(StrEnum):
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
    """Signals by address. An unknown address is not connected; a connected one may still lack a value."""

    def __init__(
        self,
        values: Mapping[str, Any] | None = None,
        devices: Iterable[Device] = (),
        *,
        time: Timekeeper | None = None,
        journal: Journal | None = None,
        read_timeout: float = READ_TIMEOUT,
    ) -> None:
        self.writes: Counter[str] = Counter()
        """How often each address was written, by any process that shares the journal."""
        self._time = time or WallClock()
        self._journal = journal or MemoryJournal()
        self._shared = journal is not None
        self._read_timeout = read_timeout
        self._devices: dict[str, Device] = {}
        self._disconnected: set[str] = set()
        self._faults: dict[str, tuple[SimulatedFault, Reading | None]] = {}
        self._subscribers: dict[str, list[LatestQueue[Reading]]] = defaultdict(list)
        for address, value in (values or {}).items():
            self.add(PlainSignal(address, Reading(value=value)))
        for device in devices:
            self.add(device)
        self._apply_new_entries()

    async def read(self, address: str) -> Reading:
        reading = self._current(address)
        if reading is None or self._fault(address) is SimulatedFault.SILENT:
            await self._time.sleep(self._read_timeout)
            if (reading := self._current(address)) is None or self._fault(address) is SimulatedFault.SILENT:
                raise ControlTimeoutError(f"{address} gave no value within {self._read_timeout:g} s.")
        return reading

    async def write(
        self, address: str, value: Any, wait: bool = True, timeout: float = WRITE_TIMEOUT, fence: Fence | None = None
    ) -> None:
        device = self._connected_device(address)
        fault = self._fault(address)
        if fault is SimulatedFault.DENYING:
            raise ControlAccessDeniedError(f"{address} may not be written from here.")
        if fault is SimulatedFault.REJECTING:
            raise ControlWriteRejectedError(f"{address} refuses to be written.")
        accepted = device.accept(address, value)
        if fence is not None:
            fence()
        self._record(EntryKind.WRITE, address, value=accepted)
        if wait:
            await self._wait_until_done(address, timeout)

    async def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        last = self._current(address)
        queue = LatestQueue[Reading]()
        self._subscribers[address].append(queue)
        try:
            if last is not None:
                yield last
            while True:
                if self._shared or self._devices[address].changes_by_itself:
                    await self._wait_for_change(address, queue, last)
                try:
                    last = await anext(queue)
                except StopAsyncIteration:
                    return
                yield last
        finally:
            self._subscribers[address].remove(queue)

    async def close(self) -> None:
        """Do nothing: no channel is held open."""

    def add(self, device: Device) -> None:
        """Add a device to the plant, in place of any other at its addresses."""
        self._devices |= dict.fromkeys(device.addresses, device)

    def set_reading(self, address: str, reading: Reading) -> None:
        """Connect a signal if need be, and give it this value."""
        self._record(EntryKind.READING, address, reading=asdict(reading) if self._shared else reading)

    def simulate_connect(self, address: str) -> None:
        """Connect a signal; a new one has no value yet."""
        self._record(EntryKind.CONNECT, address)

    def simulate_disconnect(self, address: str) -> None:
        """Disconnect a signal: its subscriptions break, and a plain signal loses its value."""
        self._record(EntryKind.DISCONNECT, address)

    def simulate_end(self, address: str) -> None:
        """End the subscriptions of a signal without an error; it stays connected."""
        self._record(EntryKind.END, address)

    def simulate_fault(self, address: str, fault: SimulatedFault | None) -> None:
        """Give a signal a fault from now on, or clear it."""
        self._record(EntryKind.FAULT, address, fault=fault)

    def subscriptions(self, address: str) -> int:
        """Return how many subscriptions a signal has."""
        return len(self._subscribers[address])

    def _record(self, kind: EntryKind, address: str, **details: Any) -> None:
        self._apply_new_entries()
        self._journal.append({"kind": kind, "address": address, "at": self._time.now().isoformat(), **details})
        self._apply_new_entries()

    def _apply_new_entries(self) -> None:
        for entry in self._journal.read_new():
            self._apply(entry, datetime.fromisoformat(entry["at"]))

    def _apply(self, entry: Entry, at: datetime) -> None:
        address = entry["address"]
        match entry["kind"]:
            case EntryKind.WRITE:
                self.writes[address] += 1
                if (device := self._devices.get(address)) is not None:
                    device.write(address, entry["value"], at)
                    self._publish(address, at)
            case EntryKind.READING:
                self._disconnected.discard(address)
                if not isinstance(device := self._devices.get(address), PlainSignal):
                    self.add(device := PlainSignal(address))
                device.set(_reading(entry["reading"]))
                self._publish(address, at)
            case EntryKind.CONNECT:
                self._disconnected.discard(address)
                self._devices.setdefault(address, PlainSignal(address))
            case EntryKind.DISCONNECT:
                if isinstance(device := self._devices.get(address), PlainSignal):
                    device.set(None)
                self._disconnected.add(address)
                self._end_subscriptions(address, _not_connected(address))
            case EntryKind.END:
                self._end_subscriptions(address)
            case EntryKind.FAULT:
                self._faults.pop(address, None)
                if entry["fault"] is not None:
                    self._faults[address] = (SimulatedFault(entry["fault"]), self._reading_at(address, at))
                self._publish(address, at)

    def _connected_device(self, address: str) -> Device:
        self._apply_new_entries()
        if not address.strip():
            raise MalformedControlAddressError("A signal has an address; this one is blank.")
        if address in self._disconnected or address not in self._devices:
            raise _not_connected(address)
        return self._devices[address]

    def _current(self, address: str) -> Reading | None:
        """Return what a connected signal reads now."""
        self._connected_device(address)
        return self._reading_at(address, self._time.now())

    def _reading_at(self, address: str, at: datetime) -> Reading | None:
        if address in self._disconnected or (device := self._devices.get(address)) is None:
            return None
        fault, frozen = self._faults.get(address, (None, None))
        if fault is SimulatedFault.STUCK:
            return frozen
        reading = device.reading(address, at, lambda other: self._reading_at(other, at))
        if reading is not None and fault is SimulatedFault.BAD:
            return replace(reading, quality=Quality.BAD, quality_detail="a fault that was asked for")
        return reading

    def _fault(self, address: str) -> SimulatedFault | None:
        return self._faults.get(address, (None, None))[0]

    async def _wait_until_done(self, address: str, timeout: float) -> None:
        deadline = self._time.now().timestamp() + timeout
        while (
            self._connected_device(address).is_busy(address, now := self._time.now())
            or self._fault(address) is SimulatedFault.SILENT
        ):
            if (left := deadline - now.timestamp()) <= 0:
                raise ControlTimeoutError(f"{address} did not confirm what was written within {timeout:g} s.")
            await self._time.sleep(min(POLL_SECONDS, left))

    async def _wait_for_change(self, address: str, queue: LatestQueue[Reading], last: Reading | None) -> None:
        """Wait until something is queued for a subscriber, or the signal has changed by itself, which is queued."""
        while not queue.waiting:
            await self._time.sleep(POLL_SECONDS)
            self._apply_new_entries()
            reading = None if queue.waiting else self._reading_at(address, self._time.now())
            if reading and (last is None or (reading.value, reading.quality) != (last.value, last.quality)):
                queue.put(reading)

    def _publish(self, address: str, at: datetime) -> None:
        """Queue what a signal reads for its subscribers."""
        if self._subscribers[address] and (reading := self._reading_at(address, at)) is not None:
            for queue in self._subscribers[address]:
                queue.put(reading)

    def _end_subscriptions(self, address: str, failure: Exception | None = None) -> None:
        for queue in self._subscribers[address]:
            queue.end(failure)


def _reading(stored: Reading | Mapping[str, Any]) -> Reading:
    if isinstance(stored, Reading):
        return stored
    sampled_at = stored["sampled_at"] and datetime.fromisoformat(stored["sampled_at"])
    kind, quality = ReadingKind(stored["kind"]), Quality(stored["quality"])
    return Reading(**{**stored, "kind": kind, "quality": quality, "sampled_at": sampled_at})


def _not_connected(address: str) -> ControlNotConnectedError:
    return ControlNotConnectedError(f"{address} is not connected.")


def simulated_plant(settings: Settings, time: Timekeeper | None = None) -> Simulator:
    """Return the plant that the settings describe, in the state that its journal leads to."""
    devices = [make_device(device, settings.simulation_seed) for device in settings.simulated_devices]
    journal = FileJournal(settings.simulation_journal) if settings.simulation_journal else None
    return Simulator(settings.simulated_signals, devices, time=time, journal=journal)


def make_device(device: SimulatedDevice, seed: int = 0) -> Device:
    """Return the device that a setting describes."""
    match device:
        case SimulatedDetector():
            return Detector(device)
        case SimulatedMotor():
            return Motor(device, seed)
    address, units, noise = device.address, device.units, Noise(device.noise, seed, device.address)
    match device:
        case SimulatedSignal(labels=labels, value=str(value)) if labels:
            chosen = Reading(value=value, kind=ReadingKind.CATEGORICAL, index=labels.index(value))
            return PlainSignal(address, chosen, labels=labels, read_only=device.read_only)
        case SimulatedSignal():
            return PlainSignal(address, Reading(value=device.value, units=units), noise=noise, read_only=device.read_only)
        case SimulatedPeak(centres=centres):
            bell = peak(centres, device.width, device.height, device.background)
            return DerivedSignal(address, tuple(centres), bell, noise=noise, units=units)
        case SimulatedPlane(slopes=slopes):
            return DerivedSignal(address, tuple(slopes), plane(slopes, device.offset), noise=noise, units=units)
        case _:
            assert_never(device)
