"""Channel Access in pure Python.

The library's own asynchronous client never hears of refused requests, of channels that only the server closed, nor of
servers that vanish between search and connection; the circuits here do.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import caproto
from caproto.asyncio.client import PV, Context, VirtualCircuitManager
from caproto.client.common import DeadCircuitError

from baton.application.control import Fence
from baton.infrastructure.control.channel_access import (
    CHAR,
    DISCONNECTED,
    STRING,
    Channel,
    ChannelRefusal,
    Properties,
    Sample,
    Told,
)
from baton.infrastructure.control.epics import sampled

EPICS_TO_UNIX = 631152000
"""Seconds from 1970 to 1990, from which the protocol counts."""


class _Circuit(VirtualCircuitManager):  # type: ignore[misc]
    async def _connect(self, timeout: float) -> None:
        try:
            await super()._connect(timeout)
        except (OSError, caproto.CaprotoError):
            await self._disconnected()

    async def _disconnected(self, *, reconnect: bool = True) -> None:
        if not self.dead.is_set():
            await super()._disconnected(reconnect=reconnect)
            self.user_callback_executor.submit(self.user_callback_executor.shutdown)  # after what is still to be told

    async def write(self, pv: PV, data: Any, count: int, confirmed: bool, fence: Fence) -> Any:
        """Send a value and return the answer, if one is asked for; the fence is asked when nothing is left but to send."""
        id = self._ioid_counter()
        command = pv.channel.write(data, ioid=id, notify=confirmed, data_count=count)
        request: dict[str, Any] = {"event": asyncio.Event(), "pv": pv, "request": command, "deadline": None}
        async with self._send_lock:
            if self.dead.is_set() or self.transport is None:
                raise DeadCircuitError
            encoded = b"".join(bytes(part) for part in self.circuit.send(command, extra={"pv": pv.name}))
            fence()
            self.transport.writer.write(encoded)
            if confirmed:
                self.ioids[id] = request
            await self.transport.writer.drain()
        if not confirmed:
            return None
        await request["event"].wait()
        return request.get("response")

    async def _process_command(self, command: Any) -> None:
        await super()._process_command(command)
        match command:
            case caproto.ErrorResponse():
                self._answer(command.original_request.parameter2, command)
            case caproto.ServerDisconnResponse():
                pv = self.pvs[command.cid]
                pv.channel_ready.clear()
                pv.circuit_ready.clear()
                for id in [id for id, request in self.ioids.items() if request["pv"] is pv]:
                    self._answer(id, None)
                self._search_results.mark_channel_disconnected(pv.name, self.circuit.address)
                await self.context.reconnect([(pv.name, pv.priority)])

    def _answer(self, id: int, response: Any) -> None:
        """Let whoever waits for the answer to a request go on with this one."""
        request = self.ioids.pop(id, None)
        if request is not None:
            request["response"] = response
            request["event"].set()


class _Context(Context):  # type: ignore[misc]
    def get_circuit_manager(self, address: tuple[str, int], priority: int) -> VirtualCircuitManager:
        manager = self.circuit_managers.get((address, priority))
        if manager is None or manager.dead.is_set():
            version = self.broadcaster.server_protocol_versions[address]
            circuit = caproto.VirtualCircuit(
                our_role=caproto.CLIENT, address=address, priority=priority, protocol_version=version
            )
            manager = self.circuit_managers[(address, priority)] = _Circuit(self, circuit)
        return manager


class _Following:
    """A subscription, which keeps what it calls: the library itself does not."""

    def __init__(self, pv: PV, told: Told) -> None:
        self._pv = pv
        self._told = told
        self._connection = pv.connection_state_callback.add_callback(self._changed)
        self._subscription = pv.subscribe(data_type="time", data_count=0)
        self._samples = self._subscription.add_callback(self._sampled)
        if not pv.channel_ready.is_set():
            told(None)

    async def end(self) -> None:
        self._pv.connection_state_callback.remove_callback(self._connection)
        await self._subscription.remove_callback(self._samples)

    async def _sampled(self, subscription: Any, response: Any) -> None:
        self._told(_sample(response, self._pv))

    async def _changed(self, pv: PV, state: str) -> None:
        if state == "disconnected":
            self._told(None)


class CaprotoClient:
    """Finds servers as the variables EPICS_CA_* say."""

    def __init__(self) -> None:
        self._context: _Context | None = None

    async def connect(self, address: str) -> Channel:
        pv = await self._pv(address)
        await pv.channel_ready.wait()
        channel, rights = pv.channel, pv.access_rights
        return Channel(
            type=int(channel.native_data_type),
            count=channel.native_data_count,
            readable=rights is None or caproto.AccessRights.READ in rights,
            writable=rights is None or caproto.AccessRights.WRITE in rights,
        )

    async def get(self, address: str) -> Sample:
        return _sample(await self._asked(address, "time", 0), await self._pv(address))

    async def properties(self, address: str) -> Properties:
        told = (await self._asked(address, "control", 1)).metadata
        units, labels = getattr(told, "units", b""), getattr(told, "enum_strings", ())
        return Properties(units=_text(units) or None, labels=tuple(map(_text, labels)))

    async def put(self, address: str, value: Any, wait: bool, fence: Fence) -> None:
        pv = await self._pv(address)
        values = value if isinstance(value, list) else [value]
        encoded = [each.encode() if isinstance(each, str) else each for each in values]
        data = bytes(values) if pv.channel.native_data_type == CHAR else encoded
        async with _surviving(address):
            answer = await pv.circuit_manager.write(pv, data, len(values), wait, fence)
            if wait:
                _granted(answer)

    async def monitor(self, address: str, told: Told) -> Callable[[], Awaitable[None]]:
        return _Following(await self._pv(address), told).end

    async def close(self) -> None:
        if self._context is not None:
            context, self._context = self._context, None
            await context.disconnect()
            await asyncio.sleep(0)  # what was cancelled ends

    async def _pv(self, address: str) -> PV:
        if self._context is None:
            self._context = _Context(timeout=None)
        (pv,) = await self._context.get_pvs(address)
        return pv

    async def _asked(self, address: str, kind: str, count: int) -> Any:
        pv = await self._pv(address)
        async with _surviving(address):
            return _granted(await _read(pv, data_type=kind, data_count=count, timeout=None))


_read = PV.read.__wrapped__
"""The library's request as it is, without repeating it on another circuit when the first one dies."""


@asynccontextmanager
async def _surviving(address: str) -> AsyncIterator[None]:
    """For a request whose channel may be lost before it is answered; then the library looks for an answer in vain."""
    try:
        yield
    except (KeyError, DeadCircuitError, caproto.LocalProtocolError, OSError) as error:
        raise ChannelRefusal(DISCONNECTED, f"{address} was lost") from error


def _granted(response: Any) -> Any:
    """An answer that is no refusal."""
    if response is None:
        raise DeadCircuitError
    status = response.status
    if isinstance(response, caproto.ErrorResponse):
        raise ChannelRefusal(status.code_with_severity, _text(response.error_message) or status.description)
    if not status.success:
        raise ChannelRefusal(status.code_with_severity, status.description)
    return response


def _sample(response: Any, pv: PV) -> Sample:
    told = response.metadata
    return Sample(_value(response, pv), int(told.status), int(told.severity), _time(told))


def _value(response: Any, pv: PV) -> Any:
    type, values = int(pv.channel.native_data_type), list(response.data)
    if type == STRING:
        values = [_text(value) for value in values]
    elif type == CHAR:
        values = [int(value) & 0xFF for value in values]
    else:
        values = response.data.tolist()
    return values[0] if pv.channel.native_data_count == 1 and values else values


def _time(told: Any) -> datetime | None:
    return sampled(told.secondsSinceEpoch + EPICS_TO_UNIX, told.nanoSeconds)


def _text(value: bytes) -> str:
    """A text of a server, which says nowhere how it is encoded; old ones write units like µm in one byte each."""
    text = bytes(value).split(b"\0")[0]
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1")
