"""EPICS Channel Access behind the control port, whichever client library speaks it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from baton.application.control import (
    READ_TIMEOUT,
    WRITE_TIMEOUT,
    ControlAccessDeniedError,
    ControlError,
    ControlNotConnectedError,
    ControlTimeoutError,
    ControlWriteRejectedError,
    Fence,
    Reading,
    ReadingKind,
    always_open,
)
from baton.application.latest_queue import News
from baton.infrastructure.control.epics import TEXT_LENGTH, Element, Form, alarm, coerced, quality, well_formed

STRING, SHORT, FLOAT, ENUM, CHAR, LONG, DOUBLE = range(7)
"""The native types of the protocol, by their number."""
FORMS = {
    STRING: Form(Element.TEXT, length=TEXT_LENGTH),
    SHORT: Form(Element.WHOLE, reach=(-(2**15), 2**15 - 1)),
    FLOAT: Form(Element.REAL),
    ENUM: Form(Element.CHOICE),
    CHAR: Form(Element.CHARACTER, reach=(0, 255)),
    LONG: Form(Element.WHOLE),
    DOUBLE: Form(Element.REAL),
}
STATUSES = (
    *("", "READ", "WRITE", "HIHI", "HIGH", "LOLO", "LOW", "STATE", "COS", "COMM", "TIMEOUT", "HWLIMIT", "CALC", "SCAN"),
    *("LINK", "SOFT", "BAD_SUB", "UDF", "DISABLE", "SIMM", "READ_ACCESS", "WRITE_ACCESS"),
)
"""The causes of an alarm, by their number."""
DISCONNECTED = 192
DENIED = frozenset({368, 376})
"""The protocol's codes for a channel that is gone, and for access that is not granted to read and to write."""


class ChannelRefusal(Exception):
    """The server answered a request with this code of the protocol."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


@dataclass(frozen=True)
class Channel:
    """What a connected channel is."""

    type: int
    count: int
    readable: bool
    writable: bool


class Sample(NamedTuple):
    """A value as it comes: an array as a list, a choice as its index."""

    value: Any
    status: int
    severity: int
    sampled_at: datetime | None


@dataclass(frozen=True)
class Properties:
    """What a channel says once about all its values."""

    units: str | None = None
    labels: Sequence[str] = ()


Told = Callable[[Sample | None], None]
"""Takes every sample of a subscription, and None when the channel is lost."""


class Client(Protocol):
    """A client library. A request that its channel did not survive raises ChannelRefusal with DISCONNECTED."""

    async def connect(self, address: str) -> Channel:
        """The channel, as soon as there is one."""
        ...

    async def get(self, address: str) -> Sample: ...
    async def properties(self, address: str) -> Properties: ...
    async def put(self, address: str, value: Any, wait: bool, fence: Fence) -> None:
        """Write to a connected channel, without waiting for a lost one; the fence is asked right before the bytes go out."""
        ...

    async def monitor(self, address: str, told: Told) -> Callable[[], Awaitable[None]]:
        """Follow a connected channel; what is returned ends it."""
        ...

    async def close(self) -> None: ...


class ChannelAccess:
    """The signals that Channel Access servers offer."""

    def __init__(self, client: Client, *, read_timeout: float = READ_TIMEOUT) -> None:
        self._client = client
        self._read_timeout = read_timeout
        self._properties: dict[str, Properties] = {}

    async def read(self, address: str) -> Reading:
        deadline = _in(self._read_timeout)
        channel = await self._readable(address, deadline)
        async with self._answered(address, deadline, "gave no value in time"):
            properties = await self._known(address)
            return _reading(await self._client.get(address), channel, properties)

    async def write(
        self, address: str, value: Any, wait: bool = True, timeout: float = WRITE_TIMEOUT, fence: Fence | None = None
    ) -> None:
        deadline = _in(timeout)
        channel = await self._connected(address, _in(min(timeout, self._read_timeout)))
        if not channel.writable:
            raise ControlAccessDeniedError(f"{address} may not be written from here; ask for access at its server.")
        silence = f"did not confirm what was written within {timeout:g} s"
        async with self._answered(address, deadline, silence, ControlWriteRejectedError):
            labels = (await self._known(address)).labels if channel.type == ENUM else ()
            form = replace(FORMS[channel.type], count=channel.count, labels=labels)
            await self._client.put(address, coerced(address, value, form), wait, fence or always_open)

    async def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        channel = await self._readable(address, _in(self._read_timeout))
        news = News[Sample]()
        end = await self._client.monitor(address, lambda sample: news.end() if sample is None else news.put(sample))
        try:
            async for sample in news:
                async with self._answered(address, _in(self._read_timeout), "does not say what it is"):
                    properties = await self._known(address)
                yield _reading(sample, channel, properties)
        finally:
            await end()
        raise self._lost(address)

    async def close(self) -> None:
        await self._client.close()

    async def _connected(self, address: str, deadline: float) -> Channel:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._client.connect(well_formed(address))
        except TimeoutError:
            raise self._lost(address) from None

    async def _readable(self, address: str, deadline: float) -> Channel:
        channel = await self._connected(address, deadline)
        if not channel.readable:
            raise ControlAccessDeniedError(f"{address} may not be read from here; ask for access at its server.")
        return channel

    async def _known(self, address: str) -> Properties:
        """What a channel says of its values, asked for once."""
        if address not in self._properties:
            self._properties[address] = await self._client.properties(address)
        return self._properties[address]

    @asynccontextmanager
    async def _answered(
        self, address: str, deadline: float, silence: str, refused: type[ControlError] = ControlNotConnectedError
    ) -> AsyncIterator[None]:
        """What the protocol's answers and its silence mean to those who asked."""
        try:
            async with asyncio.timeout_at(deadline):
                yield
        except TimeoutError:
            raise ControlTimeoutError(f"{address} {silence}.") from None
        except ChannelRefusal as refusal:
            if refusal.code in DENIED:
                raise ControlAccessDeniedError(f"{address}: {refusal}") from refusal
            if refusal.code == DISCONNECTED:
                raise self._lost(address) from refusal
            raise refused(f"{address}: {refusal}") from refusal

    def _lost(self, address: str) -> ControlNotConnectedError:
        self._properties.pop(address, None)
        return ControlNotConnectedError(f"{address} is not connected.")


def _in(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


def _reading(sample: Sample, channel: Channel, properties: Properties) -> Reading:
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
        quality_detail=alarm(sample.severity, STATUSES[sample.status] if sample.status < len(STATUSES) else ""),
        sampled_at=sample.sampled_at,
        units=properties.units,
    )


def installed_client() -> Client:
    """The compiled client where it is installed, else the one in pure Python that always is."""
    try:
        from baton.infrastructure.control.aioca_client import AiocaClient
    except ImportError:
        from baton.infrastructure.control.caproto_client import CaprotoClient

        return CaprotoClient()
    return AiocaClient()
