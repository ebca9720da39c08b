"""Readings of a Tango attribute on a server beside us, and of a soft signal of ophyd-async, through their adapters."""

import time
from typing import TYPE_CHECKING

from baton.application.control import Control
from tests.bench.client import Measurement
from tests.support.infrastructure.scripted_server import ScriptedServer

if TYPE_CHECKING:
    from tests.bench.__main__ import Bench

READS = 2000


async def measure_device_reads(bench: "Bench") -> None:
    """Note how long one reading after another takes, and compare the medians with their budgets."""
    from ophyd_async.core import soft_signal_rw

    from baton.infrastructure.control.ophyd import OphydControl
    from baton.infrastructure.control.tango import TangoControl

    with ScriptedServer("tango_server") as server:
        server.tell("set", address="x", value=1.5)
        address = f"tango:127.0.0.1:{server.ready['port']}/{server.ready['device']}/x"
        plants: dict[str, tuple[Control, str]] = {
            "Tango read": (TangoControl(), address),
            "ophyd soft signal read": (OphydControl(lambda: {"x": soft_signal_rw(float, 1.5)}), "ophyd:x"),
        }
        for name, (control, signal) in plants.items():
            measured = bench.note(name, await read_many(control, signal))
            bench.budget(f"{name}, p50 (ms)", measured.percentile(0.5), 3, at_least=False)
            await control.close()


async def read_many(control: Control, address: str) -> Measurement:
    await control.read(address)
    latencies, started = list[float](), time.perf_counter()
    for _ in range(READS):
        asked_at = time.perf_counter()
        await control.read(address)
        latencies.append(time.perf_counter() - asked_at)
    return Measurement(time.perf_counter() - started, latencies, {200: READS})
