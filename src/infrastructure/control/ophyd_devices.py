"""The ophyd-async devices of a site: what its factory or its happi database describes, made and connected on first use."""

import asyncio
import importlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ophyd_async.core import Device, NotConnectedError

from baton.application import control

CONNECT_SECONDS = 5.0  # how long a device has to connect
TEMPLATE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
DeviceMakers = Mapping[str, Device | Callable[[], Device]]


class OphydDevices:
    """Devices by their names, one of which is made and connected when it is first asked for."""

    def __init__(self, load: Callable[[], DeviceMakers], prepare: Callable[[Device], None] = lambda device: None) -> None:
        self._load = load
        self._prepare = prepare
        self._makers: DeviceMakers | None = None
        self._connected: dict[str, Device] = {}
        self._made: dict[str, Device] = {}
        self._one_by_one = asyncio.Lock()

    async def find(self, name: str, timeout: float = CONNECT_SECONDS) -> Device:
        """Return a connected device; raise ControlNotConnectedError."""
        if (device := self._connected.get(name)) is not None:
            return device
        async with self._one_by_one:
            if name not in self._connected:
                self._connected[name] = await self._connect(name, timeout)
        return self._connected[name]

    async def _connect(self, name: str, timeout: float) -> Device:
        try:
            if self._makers is None:
                self._makers = await asyncio.to_thread(self._load)
            if (maker := self._made.get(name) or self._makers.get(name)) is None:
                raise control.ControlNotConnectedError(f"ophyd:{name} is not connected: OPHYD_DEVICES has no device {name}.")
            device = maker if isinstance(maker, Device) else await asyncio.to_thread(maker)
            if not isinstance(device, Device):
                raise control.ControlNotConnectedError(f"ophyd:{name} is not connected: it is no device of ophyd-async.")
            self._made[name] = device
            if not device.name:
                device.set_name(name)
            limit = min(timeout, CONNECT_SECONDS)
            async with asyncio.timeout(limit):
                await device.connect(timeout=0.9 * limit)  # the library says better what is lost
        except (NotConnectedError, TimeoutError) as failure:
            raise control.ControlNotConnectedError(f"ophyd:{name} is not connected: {_one_line(failure)}.") from failure
        except control.ControlError:
            raise
        except Exception as failure:
            because = f"its device cannot be made: {type(failure).__name__}: {_one_line(failure)}"
            raise control.ControlNotConnectedError(f"ophyd:{name} is not connected: {because}.") from failure
        self._prepare(device)
        return device


def load_devices(source: str) -> DeviceMakers:
    """Return the devices that `module:factory` makes, or that a happi database in JSON describes; runs the site's Python."""
    if source.endswith(".json"):
        return read_happi(Path(source))
    module, colon, factory = source.partition(":")
    if not colon or not factory:
        raise ValueError(f"{source!r} is neither module:factory nor a .json file of happi")
    made = getattr(importlib.import_module(module), factory)()
    if isinstance(made, Device):
        return {made.name: made}
    if isinstance(made, Mapping):
        return {str(name): maker for name, maker in made.items()}
    if isinstance(made, Iterable):
        return {device.name: device for device in made}
    raise ValueError(f"{source} returns {type(made).__name__}; let it return devices, or devices by their names")


def read_happi(path: Path) -> DeviceMakers:
    """Return what makes each active entry of a happi database, whose classes are imported when they are made."""
    entries = json.loads(path.read_text(encoding="utf-8"))
    return {
        str(entry.get("name") or key): _maker(entry)
        for key, entry in entries.items()
        if entry.get("active", True) and entry.get("device_class")
    }


def _maker(entry: Mapping[str, Any]) -> Callable[[], Device]:
    def make() -> Device:
        module, _, name = str(entry["device_class"]).rpartition(".")
        arguments = [_fill_template(argument, entry) for argument in entry.get("args") or ()]
        options = {key: _fill_template(value, entry) for key, value in (entry.get("kwargs") or {}).items()}
        device: Device = getattr(importlib.import_module(module), name)(*arguments, **options)
        return device

    return make


def _fill_template(value: Any, entry: Mapping[str, Any]) -> Any:
    """Return an argument with the entry's own fields in place of `{{field}}`; a field by itself keeps its type."""
    if not isinstance(value, str):
        return value
    if whole := TEMPLATE.fullmatch(value.strip()):
        return entry.get(whole[1])
    return TEMPLATE.sub(lambda found: str(entry.get(found[1], "")), value)


def _one_line(failure: BaseException) -> str:
    return " ".join(str(failure).split())[:500] or type(failure).__name__
