"""EPICS Channel Access behind the control port, over either client library."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from baton.application import control
from baton.application.control import ControlError, ControlLimits, ControlNotConnectedError, Fence, Reading, ReadingKind
from baton.application.dropping_queue import DroppingQueue
from baton.infrastructure.control.epics import alarm_text, check_name, quality
from baton.infrastructure.control.signal_values import Element, ValueShape, coerce

STRING, SHORT, FLOAT, ENUM, CHAR, LONG, DOUBLE = range(7)  # the protocol's numbers of its native types
SHAPES = {
    STRING: ValueShape(Element.TEXT, length=39),
    SHORT: ValueShape(Element.WHOLE, bounds=(-(2**15), 2**15 - 1)),
    FLOAT: ValueShape(Element.REAL),
    ENUM: ValueShape(Element.CHOICE),
    CHAR: ValueShape(Element.CHARACTER, bounds=(0, 255)),
    LONG: ValueShape(Element.WHOLE),
    DOUBLE: ValueShape(Element.REAL),
}
STATUSES = (
    *("", "READ", "WRITE", "HIHI", "HIGH", "LOLO", "LOW", "STATE", "COS", "COMM", "TIMEOUT", "HWLIMIT", "CALC", "SCAN"),
    *("LINK", "SOFT", "BAD_SUB", "UDF", "DISABLE", "SIMM", "READ_ACCESS", "WRITE_ACCESS"),
)
DISCONNECTED = 192  # the protocol's code for a lost channel
DENIED = frozenset({368, 376})  # the protocol's codes for missing read and write access


class ChannelRefusal(Exception):
    """The server answered a request with this code of the protocol."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class ChannelInfo:
    type: int
    count: int
    readable: bool
    writable: bool


class ChannelSample(NamedTuple):
    """A value as the library delivers it: an array as a list, a choice as its index."""

    value: Any
    status: int
    severity: int
    sampled_at: datetime | None


@dataclass(frozen=True)
class ChannelProperties:
    """What a channel declares once about all its values."""

    units: str | None = None
    labels: Sequence[str] = ()
    limits: ControlLimits | None = None


OnSample = Callable[[ChannelSample | None], None]  # called with None when the channel is lost


class ChannelAccessClient(Protocol):
    """A client library. A request whose channel is lost meanwhile raises ChannelRefusal with DISCONNECTED."""

    async def connect(self, address: str) -> ChannelInfo:
        """Return the channel as soon as it is connected."""

    async def get(self, address: str) -> ChannelSample: ...
    async def properties(self, address: str) -> ChannelProperties: ...
    async def put(self, address: str, value: object, wait: bool, fence: Fence) -> None:
        """Write to a connected channel; call the fence right before the bytes go out, and do not wait for a lost channel."""

    async def monitor(self, address: str, on_sample: OnSample) -> Callable[[], Awaitable[None]]:
        """Subscribe to a connected channel and return what ends the subscription."""

    async def close(self) -> None: ...


class ChannelAccess:
    def __init__(self, client: ChannelAccessClient, *, read_timeout: float = control.READ_TIMEOUT) -> None:
        self._client = client
        self._read_timeout = read_timeout
        self._properties: dict[str, ChannelProperties] = {}

    async def read(self, address: str) -> Reading:
        deadline = _deadline(self._read_timeout)
        channel = await self._connect_readable(address, deadline)
        async with self._translate_errors(address, deadline, "gave no value in time"):
            properties = await self._cached_properties(address)
            return _reading(await self._client.get(address), channel, properties)

    async def write(
        self,
        address: str,
        value: object,
        wait: bool = True,
        timeout: float = control.WRITE_TIMEOUT,
        fence: Fence | None = None,
    ) -> None:
        deadline = _deadline(timeout)
        channel = await self._connect(address, _deadline(min(timeout, self._read_timeout)))
        if not channel.writable:
            raise control.ControlAccessDeniedError(f"{address} may not be written from here; ask for access at its server.")
        silence = f"did not confirm what was written within {timeout:g} s"
        async with self._translate_errors(address, deadline, silence, control.ControlWriteRejectedError):
            labels = (await self._cached_properties(address)).labels if channel.type == ENUM else ()
            shape = replace(SHAPES[channel.type], count=channel.count, labels=labels)
            await self._client.put(address, coerce(address, value, shape), wait, fence or control.always_open)

    async def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        channel = await self._connect_readable(address, _deadline(self._read_timeout))
        queue = DroppingQueue[ChannelSample]()
        end = await self._client.monitor(address, lambda sample: queue.end() if sample is None else queue.put(sample))
        try:
            async for sample in queue:
                async with self._translate_errors(address, _deadline(self._read_timeout), "does not say what it is"):
                    properties = await self._cached_properties(address)
                yield _reading(sample, channel, properties)
        finally:
            await end()
        raise self._not_connected(address)

    async def limits(self, address: str) -> ControlLimits | None:
        deadline = _deadline(self._read_timeout)
        channel = await self._connect(address, deadline)
        if not channel.readable:
            return None
        async with self._translate_errors(address, deadline, "did not say its limits in time"):
            properties = self._properties[address] = await self._client.properties(address)
        return properties.limits

    async def close(self) -> None:
        await self._client.close()

    async def _connect(self, address: str, deadline: float) -> ChannelInfo:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._client.connect(check_name(address))
        except TimeoutError:
            raise self._not_connected(address) from None

    async def _connect_readable(self, address: str, deadline: float) -> ChannelInfo:
        channel = await self._connect(address, deadline)
        if not channel.readable:
            raise control.ControlAccessDeniedError(f"{address} may not be read from here; ask for access at its server.")
        return channel

    async def _cached_properties(self, address: str) -> ChannelProperties:
        if address not in self._properties:
            self._properties[address] = await self._client.properties(address)
        return self._properties[address]

    @asynccontextmanager
    async def _translate_errors(
        self, address: str, deadline: float, silence: str, refused: type[ControlError] = ControlNotConnectedError
    ) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout_at(deadline):
                yield
        except TimeoutError:
            raise control.ControlTimeoutError(f"{address} {silence}.") from None
        except ChannelRefusal as refusal:
            if refusal.code in DENIED:
                raise control.ControlAccessDeniedError(f"{address}: {refusal}") from refusal
            if refusal.code == DISCONNECTED:
                raise self._not_connected(address) from refusal
            raise refused(f"{address}: {refusal}") from refusal

    def _not_connected(self, address: str) -> ControlNotConnectedError:
        self._properties.pop(address, None)
        return ControlNotConnectedError(f"{address} is not connected.")


def _deadline(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


def _reading(sample: ChannelSample, channel: ChannelInfo, properties: ChannelProperties) -> Reading:
    value, index, kind = sample.value, None, ReadingKind.SCALAR
    if isinstance(value, list):
        kind = ReadingKind.ARRAY
    elif channel.type == ENUM:
        kind, index = ReadingKind.CATEGORICAL, value
        value = properties.labels[index] if index < len(properties.labels) else str(index)
    return Reading(
        value=value,
        kind=kind,
        index=index,
        quality=quality(sample.severity),
        quality_detail=alarm_text(sample.severity, STATUSES[sample.status] if sample.status < len(STATUSES) else ""),
        sampled_at=sample.sampled_at,
        units=properties.units,
    )
