"""A simulated plant behind the control port: what its signals read follows from the entries of its journal and the time."""

import json
from collections import Counter, defaultdict, deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, assert_never

from baton.application import control, plant
from baton.application.control import Fence, Reading, ReadingKind, Timekeeper
from baton.application.dropping_queue import DroppingQueue
from baton.application.settings import Settings
from baton.infrastructure.control.area_detector import Detector
from baton.infrastructure.control.devices import DerivedSignal, Device, Motor, Noise, PlainSignal, peak, plane
from baton.infrastructure.wall_clock import WallClock

Entry = dict[str, Any]  # what happened (`kind`), to which `address`, `at` what time, and the details of that kind


class EntryKind(StrEnum):
    """What can be done to a plant: a write by a client, or a change that only a simulation can make."""

    WRITE = "write"
    READING = "reading"
    CONNECT = "connect"
    DISCONNECT = "disconnect"
    END = "end"
    FAULT = "fault"


class MemoryJournal(deque[Entry]):
    """The journal of a plant that belongs to one process; an entry is forgotten once it is read."""

    def read_new(self) -> Iterator[Entry]:
        while self:
            yield self.popleft()


class FileJournal:
    """The journal of a plant that several processes share; each reads every entry once, its own among them."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self._path = path
        self._position = 0

    def append(self, entry: Entry) -> None:
        with self._path.open("ab", buffering=0) as file:  # one system call: lines of several processes do not mix
            file.write(json.dumps(entry, default=str).encode() + b"\n")

    def read_new(self) -> Iterator[Entry]:
        if self._path.stat().st_size <= self._position:
            return
        with self._path.open("rb") as file:
            file.seek(self._position)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._position += len(line)
                yield json.loads(line)


POLL_SECONDS = 0.05


class SimulatedFault(StrEnum):
    SILENT = "silent"  # no answer comes in time. What is written arrives nevertheless
    REJECTING = "rejecting"
    DENYING = "denying"
    STUCK = "stuck"  # it reads what it read when the fault began
    BAD = "bad"  # what it reads is of bad quality


class Simulator:
    """Signals by address. An unknown address is not connected; a connected one may still lack a value."""

    def __init__(
        self,
        values: Mapping[str, object] | None = None,
        devices: Iterable[Device] = (),
        *,
        time: Timekeeper | None = None,
        journal: FileJournal | None = None,
        read_timeout: float = control.READ_TIMEOUT,
    ) -> None:
        self.writes: Counter[str] = Counter()  # how often each address was written, by any process that shares the journal
        self._time = time or WallClock()
        self._journal = journal or MemoryJournal()
        self._shared = journal is not None
        self._read_timeout = read_timeout
        self._devices: dict[str, Device] = {}
        self._disconnected: set[str] = set()
        self._faults: dict[str, tuple[SimulatedFault, Reading | None]] = {}
        self._subscribers: dict[str, list[DroppingQueue[Reading]]] = defaultdict(list)
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
                raise control.ControlTimeoutError(f"{address} gave no value within {self._read_timeout:g} s.")
        return reading

    async def write(
        self,
        address: str,
        value: object,
        wait: bool = True,
        timeout: float = control.WRITE_TIMEOUT,
        fence: Fence | None = None,
    ) -> None:
        device, fault = self._connected_device(address), self._fault(address)
        if fault is SimulatedFault.DENYING:
            raise control.ControlAccessDeniedError(f"{address} may not be written from here.")
        if fault is SimulatedFault.REJECTING:
            raise control.ControlWriteRejectedError(f"{address} refuses to be written.")
        accepted = device.accept(address, value)
        if fence is not None:
            fence()
        self._record(EntryKind.WRITE, address, value=accepted)
        if wait:
            await self._wait_until_done(address, timeout)

    async def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        last = self._current(address)
        queue = DroppingQueue[Reading]()
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

    async def limits(self, address: str) -> control.ControlLimits | None:
        return self._connected_device(address).limits(address)

    async def close(self) -> None:
        """Do nothing: no channel is held open."""

    def add(self, device: Device) -> None:
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
        return len(self._subscribers[address])

    def _record(self, kind: EntryKind, address: str, **details: object) -> None:
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
                device.current = _reading(entry["reading"])
                self._publish(address, at)
            case EntryKind.CONNECT:
                self._disconnected.discard(address)
                self._devices.setdefault(address, PlainSignal(address))
            case EntryKind.DISCONNECT:
                if isinstance(device := self._devices.get(address), PlainSignal):
                    device.current = None
                self._disconnected.add(address)
                self._end_subscriptions(address, control.ControlNotConnectedError(f"{address} is not connected."))
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
            raise control.MalformedControlAddressError("A signal has an address; this one is blank.")
        if address in self._disconnected or address not in self._devices:
            raise control.ControlNotConnectedError(f"{address} is not connected.")
        return self._devices[address]

    def _current(self, address: str) -> Reading | None:
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
            return replace(reading, quality=control.Quality.BAD, quality_detail="a fault that was asked for")
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
                raise control.ControlTimeoutError(f"{address} did not confirm what was written within {timeout:g} s.")
            await self._time.sleep(min(POLL_SECONDS, left))

    async def _wait_for_change(self, address: str, queue: DroppingQueue[Reading], last: Reading | None) -> None:
        while not queue.has_items:
            await self._time.sleep(POLL_SECONDS)
            self._apply_new_entries()
            reading = None if queue.has_items else self._reading_at(address, self._time.now())
            if reading and (last is None or (reading.value, reading.quality) != (last.value, last.quality)):
                queue.put(reading)

    def _publish(self, address: str, at: datetime) -> None:
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
    kind, quality = ReadingKind(stored["kind"]), control.Quality(stored["quality"])
    return Reading(**{**stored, "kind": kind, "quality": quality, "sampled_at": sampled_at})


def simulated_plant(settings: Settings, time: Timekeeper | None = None) -> Simulator:
    devices = [make_device(device, settings.simulation_seed) for device in settings.simulated_devices]
    journal = FileJournal(settings.simulation_journal) if settings.simulation_journal else None
    return Simulator(settings.simulated_signals, devices, time=time, journal=journal)


def make_device(device: plant.SimulatedDevice, seed: int = 0) -> Device:
    match device:
        case plant.SimulatedDetector():
            return Detector(device)
        case plant.SimulatedMotor():
            return Motor(device, seed)
    address, units, noise = device.address, device.units, Noise(device.noise, seed, device.address)
    match device:
        case plant.SimulatedSignal(labels=labels, value=str(value)) if labels:
            chosen = Reading(value=value, kind=ReadingKind.CATEGORICAL, index=labels.index(value))
            return PlainSignal(address, chosen, labels=labels, read_only=device.read_only)
        case plant.SimulatedSignal():
            return PlainSignal(address, Reading(value=device.value, units=units), noise=noise, read_only=device.read_only)
        case plant.SimulatedPeak(centres=centres):
            bell = peak(centres, device.width, device.height, device.background)
            return DerivedSignal(address, tuple(centres), bell, noise=noise, units=units)
        case plant.SimulatedPlane(slopes=slopes):
            return DerivedSignal(address, tuple(slopes), plane(slopes, device.offset), noise=noise, units=units)
        case _:
            assert_never(device)
