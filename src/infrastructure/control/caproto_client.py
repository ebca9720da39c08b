"""Channel Access in pure Python. The library's client does not notice refused requests, channels that the server closes, nor
servers that vanish between search and connection, and cannot be closed at every moment; the subclasses here do and can."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import caproto
from caproto.asyncio.client import PV, Context, VirtualCircuitManager
from caproto.asyncio.utils import _TaskHandler
from caproto.client.common import DeadCircuitError

from baton.application.control import ControlLimits, Fence
from baton.infrastructure.control import channel_access as ca
from baton.infrastructure.control.channel_access import OnSample
from baton.infrastructure.control.signal_values import EPICS_EPOCH, UNIX_EPOCH, sample_time

EPICS_TO_UNIX = int((EPICS_EPOCH - UNIX_EPOCH).total_seconds())  # seconds from 1970 to 1990, from which the protocol counts
CANCEL_AGAIN_SECONDS = 0.1


class _Circuit(VirtualCircuitManager):  # type: ignore[misc]
    """A circuit that also ends requests which the server refuses or whose channel it closes."""

    async def _connect(self, timeout: float) -> None:
        try:
            await super()._connect(timeout)
        except (OSError, caproto.CaprotoError):
            await self._disconnected()

    async def _disconnected(self, *, reconnect: bool = True) -> None:
        if not self.dead.is_set():
            await super()._disconnected(reconnect=reconnect)
            self.user_callback_executor.submit(self.user_callback_executor.shutdown)  # after the callbacks still queued

    async def write(self, pv: PV, data: Any, count: int, wait: bool, fence: Fence) -> Any:
        """Send a value, calling the fence immediately before, and return the answer if it is waited for."""
        id = self._ioid_counter()
        command = pv.channel.write(data, ioid=id, notify=wait, data_count=count)
        request: dict[str, Any] = {"event": asyncio.Event(), "pv": pv, "request": command, "deadline": None}
        async with self._send_lock:
            if self.dead.is_set() or self.transport is None:
                raise DeadCircuitError
            encoded = b"".join(bytes(part) for part in self.circuit.send(command, extra={"pv": pv.name}))
            fence()
            self.transport.writer.write(encoded)
            if wait:
                self.ioids[id] = request
            await self.transport.writer.drain()
        if not wait:
            return None
        await request["event"].wait()
        return request.get("response")

    async def _process_command(self, command: object) -> None:
        await super()._process_command(command)
        match command:
            case caproto.ErrorResponse():
                self._end_request(command.original_request.parameter2, command)
            case caproto.ServerDisconnResponse():
                pv = self.pvs[command.cid]
                pv.channel_ready.clear()
                pv.circuit_ready.clear()
                for id in [id for id, request in self.ioids.items() if request["pv"] is pv]:
                    self._end_request(id, None)
                self._search_results.mark_channel_disconnected(pv.name, self.circuit.address)
                await self.context.reconnect([(pv.name, pv.priority)])

    def _end_request(self, id: int, response: object) -> None:
        request = self.ioids.pop(id, None)
        if request is not None:
            request["response"] = response
            request["event"].set()


class _Tasks(_TaskHandler):  # type: ignore[misc]
    """Tasks that end when they are cancelled, although the library's loops can lose a cancellation."""

    async def cancel_all(self, wait: bool = False) -> None:
        pending = set(self.tasks)
        await super().cancel_all()
        while wait and pending:
            _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN_SECONDS)
            for task in pending:
                task.cancel()


class _Context(Context):  # type: ignore[misc]
    """A context whose circuits are of the class above, and that can be closed before its socket is open."""

    def __init__(self) -> None:
        super().__init__(timeout=None)
        self.broadcaster.protocol = None
        self.broadcaster._tasks = _Tasks()

    def get_circuit_manager(self, address: tuple[str, int], priority: int) -> VirtualCircuitManager:
        manager = self.circuit_managers.get((address, priority))
        if manager is None or manager.dead.is_set():
            version = self.broadcaster.server_protocol_versions[address]
            circuit = caproto.VirtualCircuit(caproto.CLIENT, address, priority, protocol_version=version)
            manager = self.circuit_managers[(address, priority)] = _Circuit(self, circuit)
        return manager


class _Monitor:
    """A subscription; it holds its callbacks, which the library references only weakly."""

    def __init__(self, pv: PV, on_sample: OnSample) -> None:
        self._pv = pv
        self._on_sample = on_sample
        self._connection = pv.connection_state_callback.add_callback(self._on_connection)
        self._subscription = pv.subscribe(data_type="time", data_count=0)
        self._samples = self._subscription.add_callback(self._on_response)
        if not pv.channel_ready.is_set():
            on_sample(None)

    async def end(self) -> None:
        self._pv.connection_state_callback.remove_callback(self._connection)
        await self._subscription.remove_callback(self._samples)

    async def _on_response(self, subscription: object, response: object) -> None:
        self._on_sample(_sample(response, self._pv))

    async def _on_connection(self, pv: PV, state: str) -> None:
        if state == "disconnected":
            self._on_sample(None)


class CaprotoClient:
    """A client that finds servers by the variables EPICS_CA_*."""

    def __init__(self) -> None:
        self._context: _Context | None = None

    async def connect(self, address: str) -> ca.ChannelInfo:
        pv = await self._pv(address)
        await pv.channel_ready.wait()
        channel, rights, all_rights = pv.channel, pv.access_rights, caproto.AccessRights
        readable, writable = (rights is None or right in rights for right in (all_rights.READ, all_rights.WRITE))
        return ca.ChannelInfo(int(channel.native_data_type), channel.native_data_count, readable, writable)

    async def get(self, address: str) -> ca.ChannelSample:
        return _sample(await self._read(address, "time", 0), await self._pv(address))

    async def properties(self, address: str) -> ca.ChannelProperties:
        declared = (await self._read(address, "control", 1)).metadata
        units, labels = getattr(declared, "units", b""), getattr(declared, "enum_strings", ())
        low, high = (_number(getattr(declared, f"{side}_ctrl_limit", 0)) for side in ("lower", "upper"))
        limits = ControlLimits.from_declared(low, high)
        return ca.ChannelProperties(units=_text(units) or None, labels=tuple(map(_text, labels)), limits=limits)

    async def put(self, address: str, value: Any, wait: bool, fence: Fence) -> None:
        pv = await self._pv(address)
        values = value if isinstance(value, list) else [value]
        encoded = [each.encode() if isinstance(each, str) else each for each in values]
        data = bytes(values) if pv.channel.native_data_type == ca.CHAR else encoded
        async with _translate_loss(address):
            answer = await pv.circuit_manager.write(pv, data, len(values), wait, fence)
            if wait:
                _check_granted(answer)

    async def monitor(self, address: str, on_sample: OnSample) -> Callable[[], Awaitable[None]]:
        return _Monitor(await self._pv(address), on_sample).end

    async def close(self) -> None:
        if self._context is not None:
            context, self._context = self._context, None
            await context.disconnect()
            await asyncio.sleep(0)  # let the cancelled tasks end

    async def _pv(self, address: str) -> PV:
        if self._context is None:
            self._context = _Context()
        (pv,) = await self._context.get_pvs(address)
        return pv

    async def _read(self, address: str, kind: str, count: int) -> Any:
        """Read without the library's decorator, which repeats a request on another circuit when the first one dies."""
        pv = await self._pv(address)
        async with _translate_loss(address):
            return _check_granted(await PV.read.__wrapped__(pv, data_type=kind, data_count=count, timeout=None))


@asynccontextmanager
async def _translate_loss(address: str) -> AsyncIterator[None]:
    try:
        yield
    except (KeyError, DeadCircuitError, caproto.LocalProtocolError, OSError) as error:
        raise ca.ChannelRefusal(ca.DISCONNECTED, f"{address} was lost") from error


def _check_granted(response: Any) -> Any:
    if response is None:
        raise DeadCircuitError
    status = response.status
    if isinstance(response, caproto.ErrorResponse):
        raise ca.ChannelRefusal(status.code_with_severity, _text(response.error_message) or status.description)
    if not status.success:
        raise ca.ChannelRefusal(status.code_with_severity, status.description)
    return response


def _sample(response: Any, pv: PV) -> ca.ChannelSample:
    type, values = int(pv.channel.native_data_type), list(response.data)
    if type == ca.STRING:
        values = [_text(value) for value in values]
    elif type == ca.CHAR:
        values = [int(value) & 0xFF for value in values]
    else:
        values = response.data.tolist()
    value = values[0] if pv.channel.native_data_count == 1 and values else values
    stamp = response.metadata
    sampled_at = sample_time(stamp.secondsSinceEpoch + EPICS_TO_UNIX, stamp.nanoSeconds)
    return ca.ChannelSample(value, int(stamp.status), int(stamp.severity), sampled_at)


def _number(value: Any) -> float:
    return float(value[0] if isinstance(value, bytes) else value)


def _text(value: bytes) -> str:
    """Decode a text of a server, which does not say its encoding; old ones write units like µm in Latin-1."""
    text = bytes(value).split(b"\0")[0]
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1")
