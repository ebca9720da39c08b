"""Tango devices behind the control port; part of the extra `tango`. Each call has a thread and a proxy of its own."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from tango import DevFailed, DeviceProxy, EnsureOmniThread, EventData, EventType

from baton.application import control
from baton.application.control import READ_TIMEOUT, WRITE_TIMEOUT, ControlLimits, Fence, Quality, Reading
from baton.application.dropping_queue import DroppingQueue
from baton.infrastructure.control.loss_watch import PROBE_SECONDS, LossWatch
from baton.infrastructure.control.tango_values import (
    NOT_CONNECTED,
    TangoAddress,
    TangoDeclaration,
    declaration_of_attribute,
    declaration_of_command,
    encode,
    parse_address,
    reading_of,
    translate,
)

MOST_CALLS = 32  # requests that wait for devices at the same time
POLL_SECONDS = 0.2  # how often an attribute is read whose server announces no changes
SETTLE_SECONDS = 1.0  # after which a subscription has reached its server; the library itself waits for 10 ms
PING_TIMEOUT = 1.5  # seconds that a device has to answer a ping
T = TypeVar("T")


class CallAbandonedError(Exception):
    """Nobody waits for this call any more, so it sends nothing."""


class SendGate:
    """What a write passes right before it is sent: its fence, unless its caller is gone."""

    def __init__(self, fence: Fence, loop: asyncio.AbstractEventLoop) -> None:
        self._fence = fence
        self._loop = loop
        self._lock = threading.Lock()
        self._abandoned = False
        self.passed = False
        self.sent: asyncio.Future[None] = loop.create_future()

    def open(self) -> None:
        """Call the fence; called in the thread that sends."""
        with self._lock:
            if self._abandoned:
                raise CallAbandonedError
            self._fence()
            self.passed = True
        self._loop.call_soon_threadsafe(lambda: None if self.sent.done() else self.sent.set_result(None))

    def abandon(self) -> None:
        """Let nothing pass from now on."""
        with self._lock:
            self._abandoned = True


class TangoControl:
    """The attributes and commands of Tango devices, with a database (TANGO_HOST) or by the address of their server."""

    def __init__(self, *, read_timeout: float = READ_TIMEOUT, probe_seconds: float = PROBE_SECONDS) -> None:
        self._read_timeout = read_timeout
        self._idle: dict[str, list[DeviceProxy]] = defaultdict(list)
        self._declared: dict[str, TangoDeclaration] = {}
        self._threads: ThreadPoolExecutor | None = None
        self._losses = LossWatch(self._probe, probe_seconds)

    async def read(self, address: str) -> Reading:
        at = _attribute(address)
        declared = await self._declaration(at)
        return reading_of(address, await self._ask(at, lambda proxy: proxy.read_attribute(at.member)), declared)

    async def write(
        self, address: str, value: object, wait: bool = True, timeout: float = WRITE_TIMEOUT, fence: Fence | None = None
    ) -> None:
        at, loop = parse_address(address), asyncio.get_running_loop()
        deadline, connecting = loop.time() + timeout, min(timeout, self._read_timeout)
        declared = await self._declaration(at, connecting)
        if not declared.writable:
            raise control.ControlWriteRejectedError(f"{address} is read-only.")
        encoded, gate = encode(at, value, declared), SendGate(fence or control.always_open, loop)

        def send(proxy: DeviceProxy) -> None:
            proxy.set_timeout_millis(_millis(connecting))
            proxy.ping()  # connects again where the server was restarted
            proxy.set_timeout_millis(_millis(deadline - loop.time()))
            proxy.set_transparency_reconnection(False)  # the library sends nothing again by itself
            try:
                gate.open()
                if at.is_command:
                    proxy.command_inout(at.member, encoded)
                else:
                    proxy.write_attribute(declared.info, encoded)
            finally:
                proxy.set_transparency_reconnection(True)

        sending = self._start(at.device, send)
        sending.add_done_callback(_forget)
        try:
            awaited = {sending} if wait else {sending, gate.sent}
            left = max(0.0, deadline - loop.time())
            await asyncio.wait(awaited, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
            elif wait or not gate.passed:
                raise TimeoutError
        except TimeoutError:
            raise self._silent(at, timeout, gate.passed) from None
        except DevFailed as failure:
            refused = control.ControlWriteRejectedError if gate.passed else control.ControlNotConnectedError
            error = translate(address, failure.args, refused, f"did not confirm what was written within {timeout:g} s")
            if isinstance(error, control.ControlTimeoutError) and not gate.passed:
                raise self._silent(at, timeout, passed=False) from failure
            raise self._note_loss(at, error) from failure
        finally:
            gate.abandon()

    async def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        at, loop, queue = _attribute(address), asyncio.get_running_loop(), DroppingQueue[Reading]()
        declared, newest = await self._declaration(at), None

        def take(event: EventData) -> None:
            nonlocal newest
            if event.err:
                queue.end(self._lost(at))
            elif event.attr_value is not None:
                newest = reading_of(address, event.attr_value, declared)
                queue.put(newest)

        def receive(event: EventData) -> None:
            with suppress(RuntimeError):  # the loop ended before the subscription
                loop.call_soon_threadsafe(take, event)

        async def settle() -> None:
            """Read once more: a change before the subscription reached the server was pushed to nobody."""
            await asyncio.sleep(SETTLE_SECONDS)
            if (known := newest) is None:
                return  # it is polled
            try:
                reading = await self.read(address)
            except control.ControlError:
                queue.end(self._lost(at))
                return
            if newest is known and _says(reading) != _says(known):
                queue.put(reading)

        end, settling = await self._follow(at, receive, queue), asyncio.create_task(settle())
        try:
            with self._losses.add_follower(at.device, address, queue):
                async for reading in queue:
                    yield reading
        finally:
            settling.cancel()
            await end()

    async def limits(self, address: str) -> ControlLimits | None:
        self._declared.pop(address, None)
        return (await self._declaration(parse_address(address))).limits

    async def close(self) -> None:
        await self._losses.close()
        self._idle.clear()
        self._declared.clear()
        if self._threads is not None:
            threads, self._threads = self._threads, None
            threads.shutdown(wait=False, cancel_futures=True)

    async def _declaration(self, at: TangoAddress, timeout: float | None = None) -> TangoDeclaration:
        if (known := self._declared.get(at.whole)) is None:
            if at.is_command:
                known = declaration_of_command(await self._ask(at, lambda proxy: proxy.command_query(at.member), timeout))
            else:
                asked = await self._ask(at, lambda proxy: proxy.get_attribute_config(at.member), timeout)
                known = declaration_of_attribute(asked)
            self._declared[at.whole] = known
        return known

    async def _ask(self, at: TangoAddress, request: Callable[[DeviceProxy], T], timeout: float | None = None) -> T:
        limit = timeout or self._read_timeout

        def ask(proxy: DeviceProxy) -> T:
            proxy.set_timeout_millis(_millis(limit))
            return request(proxy)

        try:
            async with asyncio.timeout(limit):
                return await self._start(at.device, ask)
        except TimeoutError:
            raise control.ControlTimeoutError(f"{at.whole} gave no answer within {limit:g} s.") from None
        except DevFailed as failure:
            silence = f"gave no answer within {limit:g} s"
            error = translate(at.whole, failure.args, control.ControlNotConnectedError, silence)
            raise self._note_loss(at, error) from failure

    async def _probe(self, device: str) -> None:
        await self._ask(TangoAddress(device, device, "", is_command=False), lambda proxy: proxy.ping(), PING_TIMEOUT)

    async def _follow(
        self, at: TangoAddress, receive: Callable[[EventData], None], queue: DroppingQueue[Reading]
    ) -> Callable[[], Awaitable[None]]:
        """Begin to follow an attribute and return what ends that."""

        def subscribe() -> tuple[DeviceProxy, int]:
            proxy = DeviceProxy(at.device)  # lent to nobody
            proxy.set_timeout_millis(_millis(self._read_timeout))
            return proxy, proxy.subscribe_event(at.member, EventType.CHANGE_EVENT, receive)

        try:
            proxy, subscription = await self._run(subscribe)
        except DevFailed as failure:
            if any(error.reason in NOT_CONNECTED for error in failure.args):
                raise self._lost(at) from failure
            polling = asyncio.create_task(self._poll(at, queue))  # the server pushes no changes and does not poll

            async def end_polling() -> None:
                polling.cancel()

            return end_polling

        async def end_subscription() -> None:
            with suppress(DevFailed):
                await self._run(lambda: proxy.unsubscribe_event(subscription))

        return end_subscription

    async def _poll(self, at: TangoAddress, queue: DroppingQueue[Reading]) -> None:
        last = None
        while True:
            try:
                reading = await self.read(at.whole)
            except control.ControlError as failure:
                queue.end(failure)
                return
            if last is None or _says(reading) != _says(last):
                queue.put(reading)
            last = reading
            await asyncio.sleep(POLL_SECONDS)

    def _start(self, device: str, request: Callable[[DeviceProxy], T]) -> "asyncio.Future[T]":
        """Carry out a request in a thread, with a proxy that nobody else uses; it is kept for others where all went well."""

        def lend() -> T:
            idle = self._idle[device]
            try:
                proxy = idle.pop()
            except IndexError:
                proxy = DeviceProxy(device)
            result = request(proxy)
            idle.append(proxy)
            return result

        return self._run(lend)

    def _run(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        def in_thread() -> T:
            with EnsureOmniThread():
                return call()

        if self._threads is None:
            self._threads = ThreadPoolExecutor(MOST_CALLS, thread_name_prefix="tango")
        return asyncio.get_running_loop().run_in_executor(self._threads, in_thread)

    def _silent(self, at: TangoAddress, timeout: float, passed: bool) -> control.ControlError:
        if passed:
            return control.ControlTimeoutError(f"{at.whole} did not confirm what was written within {timeout:g} s.")
        return self._lost(at)

    def _lost(self, at: TangoAddress) -> control.ControlError:
        return self._note_loss(at, control.ControlNotConnectedError(f"{at.whole} is not connected."))

    def _note_loss(self, at: TangoAddress, error: control.ControlError) -> control.ControlError:
        if isinstance(error, control.ControlNotConnectedError):
            self._declared.pop(at.whole, None)  # what is back may be another
        return error


def _attribute(address: str) -> TangoAddress:
    at = parse_address(address)
    if at.is_command:
        raise control.MalformedControlAddressError(f"{address} is a command; it is written and has no value.")
    return at


def _says(reading: Reading) -> tuple[object, Quality]:
    return reading.value, reading.quality


def _millis(seconds: float) -> int:
    return max(1, int(seconds * 1000))


def _forget(sending: "asyncio.Future[None]") -> None:
    if not sending.cancelled():
        sending.exception()
