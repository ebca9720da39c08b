"""`python -m baton.infrastructure.control.ophyd_description MODULE:FACTORY [--connect]`: what a site's devices are, as JSON.

It runs the site's Python, so it is a process of its own, and the person who starts it chooses what that may see.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from bluesky.protocols import Flyable, Movable, Readable, Triggerable
from ophyd_async.core import Device, Signal, SignalR, SignalW, StandardMovable

from baton.infrastructure.control.ophyd_devices import CONNECT_SECONDS, load_devices
from baton.infrastructure.control.ophyd_values import DataKey, limits_of_key

PROTOCOLS = {"Movable": Movable, "Readable": Readable, "Triggerable": Triggerable, "Flyable": Flyable}


async def describe_devices(source: str, connect: bool) -> list[dict[str, Any]]:
    """Return what each device is; one that cannot be made or connected says why."""
    makers = await asyncio.to_thread(load_devices, source)
    return [await describe_device(name, maker, connect) for name, maker in sorted(makers.items())]


async def describe_device(name: str, maker: Any, connect: bool) -> dict[str, Any]:
    """Return what a device is; its signals are known where it is connected."""
    told: dict[str, Any] = {"name": name, "connected": False, "signals": []}
    try:
        device = maker if isinstance(maker, Device) else maker()
        told["class"] = type(device).__name__
        told["protocols"] = [protocol for protocol, kind in PROTOCOLS.items() if isinstance(device, kind)]
        if not isinstance(device, Device):
            return {**told, "error": "it is no device of ophyd-async"}
        if connect:
            if not device.name:
                device.set_name(name)
            async with asyncio.timeout(CONNECT_SECONDS):
                await device.connect(timeout=0.9 * CONNECT_SECONDS)  # the library says better what is lost
            told["readback"] = readback_path(name, device)
            told["signals"] = [await describe_signal(path, signal) for path, signal in signals_at(name, device)]
            told["connected"] = True
    except Exception as failure:
        told["error"] = f"{type(failure).__name__}: {' '.join(str(failure).split())[:300]}"
    return told


async def describe_signal(path: str, signal: Any) -> dict[str, Any]:
    """Return what one signal is."""
    key: DataKey = {}
    if isinstance(signal, SignalR):
        async with asyncio.timeout(CONNECT_SECONDS):
            (key,) = (await signal.describe()).values()
    limits = limits_of_key(key)
    return {
        "path": path,
        "source": signal.source,
        "readable": isinstance(signal, SignalR),
        "writable": isinstance(signal, SignalW),
        "type": key.get("dtype"),
        "choices": key.get("choices") or [],
        "units": key.get("units") or "",
        "limits": None if limits is None else [limits.low, limits.high],
    }


def signals_at(path: str, device: Device) -> Iterator[tuple[str, Any]]:
    """Yield the signals of a device with their paths."""
    if isinstance(device, Signal):
        yield path, device
    for name, child in sorted(device.children()):
        yield from signals_at(f"{path}.{name}", child)


def readback_path(path: str, device: Device) -> str | None:
    """Return where the signal is that a moving device reads back."""
    if not isinstance(device, StandardMovable):
        return None
    readback = device.movable_logic.readback
    return next((at for at, signal in signals_at(path, device) if signal is readback), None)


def main() -> None:
    source, *options = sys.argv[1:]
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answer:
        os.dup2(2, 1)  # the site's Python may print
        devices = asyncio.run(describe_devices(source, "--connect" in options))
        json.dump(devices, answer)


if __name__ == "__main__":
    main()
