"""Devices of ophyd-async behind the control port; part of the extra `ophyd`. A device is set as a Bluesky plan sets it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any

from ophyd_async.core import (
    AsyncStatus,
    Device,
    NotConnectedError,
    Signal,
    SignalR,
    SignalW,
    StandardMovable,
    WatchableAsyncStatus,
)

from baton.application import control
from baton.application.control import READ_TIMEOUT, WRITE_TIMEOUT, ControlLimits, Fence, Reading
from baton.application.dropping_queue import DroppingQueue
from baton.infrastructure.control.channel_access import DENIED, DISCONNECTED
from baton.infrastructure.control.loss_watch import PROBE_SECONDS, LossWatch
from baton.infrastructure.control.ophyd_devices import DeviceMakers, OphydDevices
from baton.infrastructure.control.ophyd_values import DataKey, encode, limits_of_key, reading_of

PREFIX = "ophyd:"
STOP_SECONDS = 5.0  # how long a device has to take its stop
SENDING = ("put", "execute")  # by which a signal's or a command's backend sends


class PutGate:
    """What everything that one write sends passes right before it: the write's fence, until its caller is gone."""

    def __init__(self, fence: Fence) -> None:
        self._fence = fence
        self._abandoned = False
        self.refusal: Exception | None = None
        self.sent = asyncio.get_running_loop().create_future()

    @property
    def passed(self) -> bool:
        return self.sent.done()

    def open(self) -> None:
        """Call the fence, and remember what it raises: the library may wrap it."""
        try:
            if self._abandoned:
                raise control.ControlTimeoutError("The write is over, so nothing more of it is sent.")
            self._fence()
        except Exception as refusal:
            self.refusal = refusal
            raise
        if not self.sent.done():
            self.sent.set_result(None)

    def abandon(self) -> None:
        """Let nothing pass from now on."""
        self._abandoned = True


GATE: ContextVar[PutGate | None] = ContextVar("GATE", default=None)


class OphydControl:
    """The signals of devices, `ophyd:device.child`, and what moves, `ophyd:device`."""

    def __init__(
        self, load: Callable[[], DeviceMakers], *, read_timeout: float = READ_TIMEOUT, probe_seconds: float = PROBE_SECONDS
    ) -> None:
        self._devices = OphydDevices(load, fence_everything_sent)
        self._read_timeout = read_timeout
        self._probe_timeout = 1.5 * probe_seconds
        self._keys: dict[str, DataKey] = {}
        self._losses = LossWatch(self._probe, probe_seconds)
        self._under_way: set[asyncio.Task[Any]] = set()

    async def read(self, address: str) -> Reading:
        signal = await self._readable(address)
        return await self._read(address, signal, self._read_timeout)

    async def write(
        self, address: str, value: object, wait: bool = True, timeout: float = WRITE_TIMEOUT, fence: Fence | None = None
    ) -> None:
        connecting = min(timeout, self._read_timeout)
        target = await self._find(address, connecting)
        if not isinstance(target, SignalW) and not hasattr(target, "set"):
            raise control.ControlWriteRejectedError(f"{address} is read-only.")
        described = target if isinstance(target, Signal) else self._readback(address, target)
        encoded = encode(address, value, await self._describe(address, described, connecting))
        gate = PutGate(fence or control.always_open)
        with _set_gate(gate):
            limited = isinstance(target, Signal | StandardMovable)
            status = target.set(encoded, timeout=timeout) if limited else target.set(encoded)
        if not isinstance(status, AsyncStatus | WatchableAsyncStatus):
            raise control.ControlWriteRejectedError(f"{address} cannot be set: that returns no AsyncStatus of ophyd-async.")
        await self._finish(address, target, status.task, gate, wait, timeout)

    async def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        signal, queue = await self._readable(address), DroppingQueue[Reading]()
        await self._read(address, signal, self._read_timeout)
        key = self._keys[address]

        def receive(readings: dict[str, Any]) -> None:
            queue.put(reading_of(next(iter(readings.values())), key))

        signal.subscribe_reading(receive)
        try:
            with self._losses.add_follower(address, address, queue):
                async for reading in queue:
                    yield reading
        finally:
            signal.clear_sub(receive)

    async def limits(self, address: str) -> ControlLimits | None:
        target = await self._find(address, self._read_timeout)
        signal = target if isinstance(target, Signal) else self._readback(address, target)
        return limits_of_key(await self._describe(address, signal, self._read_timeout))

    async def close(self) -> None:
        await self._losses.close()

    async def _find(self, address: str, timeout: float) -> Any:
        found: Device | None
        name, *children = address.removeprefix(PREFIX).split(".")
        if not address.startswith(PREFIX) or not all(part.isidentifier() or part.isalnum() for part in (name, *children)):
            raise control.MalformedControlAddressError(
                f"{address!r} is no address of ophyd; write ophyd:device, or ophyd:device.child of one."
            )
        found = await self._devices.find(name, timeout)
        for child in children:
            if (found := dict(found.children() if found else ()).get(child)) is None:
                raise control.ControlNotConnectedError(f"{address} is not connected: there is no {child} on it.")
        return found

    async def _readable(self, address: str) -> Any:
        target = await self._find(address, self._read_timeout)
        signal = target if isinstance(target, Signal) else self._readback(address, target)
        if not isinstance(signal, SignalR):
            raise control.ControlAccessDeniedError(f"{address} can only be written.")
        return signal

    def _readback(self, address: str, device: Device) -> Any:
        """Return the one signal whose value a device's own reading is."""
        if isinstance(device, StandardMovable):
            return device.movable_logic.readback
        fields = set(getattr(device, "hints", {}).get("fields", ())) | {device.name}
        hinted = [signal for signal in signals_of(device) if signal.name in fields]
        if len(hinted) != 1:
            parts = ", ".join(name for name, _ in device.children())
            raise control.MalformedControlAddressError(f"{address} has no value of its own; name a part of it: {parts}.")
        return hinted[0]

    async def _read(self, address: str, signal: Any, timeout: float) -> Reading:
        if address not in self._keys:
            await self._describe(address, signal, timeout)
        async with self._translate_errors(address, timeout):
            readings = await signal.read(cached=False)
        return reading_of(next(iter(readings.values())), self._keys[address])

    async def _describe(self, address: str, signal: Any, timeout: float) -> DataKey:
        async with self._translate_errors(address, timeout):
            key: DataKey = await signal._connector.backend.get_datakey(signal.source)
        self._keys[address] = key
        return key

    async def _probe(self, address: str) -> None:
        await self._read(address, await self._readable(address), self._probe_timeout)

    async def _finish(
        self, address: str, target: Any, moving: "asyncio.Task[Any]", gate: PutGate, wait: bool, timeout: float
    ) -> None:
        """Wait for what was begun; stop it where the caller is cancelled, and leave it alone where its time is up."""
        self._under_way.add(moving)
        moving.add_done_callback(self._forget)
        try:
            awaited: set[asyncio.Future[Any]] = {moving} if wait else {moving, gate.sent}
            await asyncio.wait(awaited, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            gate.abandon()
            await self._stop(target, moving, gate)
            raise
        if not moving.done():
            if wait or not gate.passed:
                gate.abandon()
                raise self._silence_error(address, gate, f"did not confirm what was written within {timeout:g} s")
            return
        gate.abandon()
        failure = asyncio.CancelledError() if moving.cancelled() else moving.exception()
        if failure is not None:
            raise gate.refusal or self._refusal_of(address, target, failure, gate, timeout) from failure

    async def _stop(self, target: Any, moving: "asyncio.Task[Any]", gate: PutGate) -> None:
        if gate.passed and hasattr(target, "stop"):
            with _set_gate(PutGate(control.always_open)):
                try:
                    async with asyncio.timeout(STOP_SECONDS):
                        await target.stop(success=False)
                finally:
                    moving.cancel()
        moving.cancel()

    def _refusal_of(
        self, address: str, target: Any, failure: BaseException, gate: PutGate, timeout: float
    ) -> control.ControlError:
        because = " ".join(str(failure).split())[:500] or type(failure).__name__
        if isinstance(failure, TimeoutError):
            return self._silence_error(address, gate, f"did not confirm what was written within {timeout:g} s")
        if isinstance(failure, NotConnectedError):
            return self._lost(address)
        code = getattr(failure, "errorcode", None)
        if code in DENIED:
            return control.ControlAccessDeniedError(f"{address}: {because}.")
        if code == DISCONNECTED:
            return self._lost(address)
        if gate.passed and not isinstance(target, Signal):
            return control.ControlTimeoutError(f"{address} did not reach what was written: {because}.")
        return control.ControlWriteRejectedError(f"{address}: {because}.")

    def _silence_error(self, address: str, gate: PutGate, silence: str) -> control.ControlError:
        return control.ControlTimeoutError(f"{address} {silence}.") if gate.passed else self._lost(address)

    def _lost(self, address: str) -> control.ControlError:
        self._keys.pop(address, None)
        return control.ControlNotConnectedError(f"{address} is not connected.")

    @asynccontextmanager
    async def _translate_errors(self, address: str, timeout: float) -> AsyncIterator[None]:
        """A library that waits for a lost channel tells no lost signal from a silent one."""
        try:
            async with asyncio.timeout(timeout):
                yield
        except (TimeoutError, NotConnectedError) as failure:
            raise self._lost(address) from failure
        except control.ControlError:
            raise
        except Exception as failure:
            because = " ".join(str(failure).split())[:500] or type(failure).__name__
            raise control.ControlNotConnectedError(f"{address} gave no value: {because}.") from failure

    def _forget(self, moving: "asyncio.Task[Any]") -> None:
        self._under_way.discard(moving)
        if not moving.cancelled():
            moving.exception()


def signals_of(device: Device) -> Iterator[Any]:
    """Yield every signal of a device, itself where it is one."""
    if isinstance(device, Signal):
        yield device
    for _, child in device.children():
        yield from signals_of(child)


def fence_everything_sent(device: Device) -> None:
    """Let everything that a connected device sends pass the gate of the write that it belongs to: where its backend is
    called."""
    backend = getattr(getattr(device, "_connector", None), "backend", None)
    for name in SENDING:
        if backend is not None and hasattr(backend, name) and name not in vars(backend):
            setattr(backend, name, _fence_sending(getattr(backend, name)))
    for _, child in device.children():
        fence_everything_sent(child)


def _fence_sending(send: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def send_through_gate(*arguments: Any, **options: Any) -> Any:
        if (gate := GATE.get()) is not None:
            gate.open()
        return await send(*arguments, **options)

    return send_through_gate


@contextmanager
def _set_gate(gate: PutGate) -> Iterator[None]:
    """Give tasks that begin here a gate."""
    token = GATE.set(gate)
    try:
        yield
    finally:
        GATE.reset(token)
