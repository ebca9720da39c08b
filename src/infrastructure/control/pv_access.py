"""EPICS PV Access behind the control port; part of the extra `epics`. No answer means that there is no such signal."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

from p4p.client.asyncio import Cancelled, Context, Disconnected, RemoteError, Value

from baton.application import control
from baton.application.control import READ_TIMEOUT, ControlLimits, ControlValueCoercionError, Fence, Reading, ReadingKind
from baton.application.dropping_queue import DroppingQueue
from baton.infrastructure.control.epics import alarm_text, check_name, quality
from baton.infrastructure.control.signal_values import Element, ValueShape, coerce, sample_time

DENIED = re.compile(r"permi|denied|access|authori", re.IGNORECASE)  # the protocol has no code for it
INTEGER_BOUNDS = {code: (-(2**bits), 2**bits - 1) for code, bits in {"b": 7, "h": 15, "i": 31, "l": 63}.items()}
INTEGER_BOUNDS |= {code: (0, 2**bits - 1) for code, bits in {"B": 8, "H": 16, "I": 32, "L": 64}.items()}
CHARACTERS: dict[str, Literal["b", "B"]] = {"ab": "b", "aB": "B"}  # arrays that a text fills, and how they count bytes


class PvAccess:
    """The signals that PV Access servers offer, found as the variables EPICS_PVA_* say, or as configured here."""

    def __init__(self, configuration: Mapping[str, str] | None = None, *, read_timeout: float = READ_TIMEOUT) -> None:
        self._configuration = configuration
        self._read_timeout = read_timeout
        self._context: Context | None = None

    async def read(self, address: str) -> Reading:
        return _reading(address, await self._get(address))

    async def write(
        self,
        address: str,
        value: object,
        wait: bool = True,
        timeout: float = control.WRITE_TIMEOUT,
        fence: Fence | None = None,
    ) -> None:
        sent = False

        def fill(target: Value) -> None:
            nonlocal sent
            if sent:  # the library writes again when a lost server is back
                raise control.ControlNotConnectedError(f"{address} was lost before it confirmed what was written.")
            _fill(address, target, value)
            if fence is not None:
                fence()
            sent = True

        try:
            async with self._translate_errors(address, control.ControlWriteRejectedError), asyncio.timeout(timeout):
                await self._open().put(check_name(address), fill, wait=wait)
        except TimeoutError:
            raise control.ControlTimeoutError(f"{address} did not confirm what was written within {timeout:g} s.") from None

    async def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        queue, connected = DroppingQueue[Value](), False

        async def receive(event: Value | Exception) -> None:
            nonlocal connected
            if not isinstance(event, Exception):
                connected = True
                queue.put(event)
            elif connected or not isinstance(event, Disconnected):  # every subscription begins without a connection
                queue.end(event)

        subscription = self._open().monitor(check_name(address), receive, notify_disconnect=True)
        try:
            async with self._translate_errors(address):
                if not await queue.arrive(self._read_timeout):
                    raise control.ControlNotConnectedError(f"{address} is not connected.")
                async for value in queue:
                    yield _reading(address, value)
        finally:
            subscription.close()
            await subscription.wait_closed()

    async def limits(self, address: str) -> ControlLimits | None:
        value = await self._get(address)
        return ControlLimits.from_declared(value.get("control.limitLow", 0.0), value.get("control.limitHigh", 0.0))

    async def close(self) -> None:
        if self._context is not None:
            context, self._context = self._context, None
            context.close()

    async def _get(self, address: str) -> Value:
        try:
            async with self._translate_errors(address), asyncio.timeout(self._read_timeout):
                return await self._open().get(check_name(address))
        except TimeoutError:
            raise control.ControlNotConnectedError(f"{address} is not connected.") from None

    def _open(self) -> Context:
        if self._context is None:
            here = self._configuration is not None
            self._context = Context("pva", conf=dict(self._configuration or {}), useenv=not here, nt=False)
        return self._context

    @asynccontextmanager
    async def _translate_errors(
        self, address: str, refused: type[control.ControlError] = control.ControlNotConnectedError
    ) -> AsyncIterator[None]:
        try:
            yield
        except (Disconnected, Cancelled) as lost:
            raise control.ControlNotConnectedError(f"{address} is not connected.") from lost
        except RemoteError as refusal:
            denied = DENIED.search(str(refusal))
            raise (control.ControlAccessDeniedError if denied else refused)(f"{address}: {refusal}") from refusal


def _reading(address: str, value: Value) -> Reading:
    kind, plain, index = _plain_value(address, value)
    severity = value.get("alarm.severity", 0)
    return Reading(
        value=plain,
        kind=kind,
        index=index,
        quality=quality(severity),
        quality_detail=alarm_text(severity, value.get("alarm.message", "")),
        sampled_at=sample_time(value.get("timeStamp.secondsPastEpoch", 0), value.get("timeStamp.nanoseconds", 0)),
        name=value.get("display.description", "") or value.get("descriptor", "") or None,
        units=value.get("display.units", "") or None,
    )


def _plain_value(address: str, value: Value) -> tuple[ReadingKind, object, int | None]:
    content = value.get("value")
    match value.getID().split(":")[1:2]:
        case ["nt/NTEnum"]:
            index, labels = content["index"], content["choices"]
            return ReadingKind.CATEGORICAL, labels[index] if 0 <= index < len(labels) else str(index), index
        case ["nt/NTNDArray"]:
            if codec := value.get("codec.name", ""):
                raise ControlValueCoercionError(f"{address} is an image packed with {codec}, which is not unpacked here.")
            rows = [dimension["size"] for dimension in reversed(value["dimension"])]
            return ReadingKind.IMAGE, content.reshape(rows).tolist() if content is not None else [], None
        case ["nt/NTTable"]:
            return ReadingKind.TABULAR, {name: _list(column) for name, column in content.items()}, None
    if isinstance(content, str | bool | int | float):
        return ReadingKind.SCALAR, content, None
    if isinstance(content, list) or hasattr(content, "tolist"):
        return ReadingKind.ARRAY, _list(content), None
    raise ControlValueCoercionError(f"{address} is a structure {value.getID()!r} without a value that could be read.")


def _list(values: Any) -> list[Any]:
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _fill(address: str, target: Value, value: object) -> None:
    type = target.type()["value"] if "value" in target else None
    if target.getID().startswith("epics:nt/NTEnum"):
        target["value.index"] = coerce(address, value, ValueShape(Element.CHOICE, labels=target["value.choices"]))
    elif isinstance(value, str) and isinstance(type, str) and type in CHARACTERS:
        target["value"] = memoryview(value.encode()).cast(CHARACTERS[type]).tolist()
    elif isinstance(type, str) and (shape := _shape(type)) is not None:
        target["value"] = coerce(address, value, shape)
    else:
        raise ControlValueCoercionError(f"{address} is a structure {target.getID()!r}, which cannot be written from here.")


def _shape(code: str) -> ValueShape | None:
    count, code = (0, code[1:]) if code.startswith("a") else (1, code)
    if code in INTEGER_BOUNDS:
        return ValueShape(Element.WHOLE, count, INTEGER_BOUNDS[code])
    elements = {"s": Element.TEXT, "f": Element.REAL, "d": Element.REAL, "?": Element.TRUTH}
    return ValueShape(elements[code], count) if code in elements else None
