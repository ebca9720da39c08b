"""`python -m tests.bench.write_window [LIBRARY...]`: the time between a write's fence and its bytes on their way.

A process that is suspended in this window sends one write when it wakes, however long that takes. The window ends where the
kernel gets the bytes (caproto), where the compiled library is called (ophyd-async over aioca), or where the server calls the
device's own code, later than the send (PyTango).
"""

import asyncio
import os
import socket
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from baton.application.control import Control
from tests.support.infrastructure.epics_servers import channel_access_server, free_ports
from tests.support.infrastructure.scripted_server import ScriptedServer

WRITES = 2000
SIGNAL = "bench:x"


class Stopwatch:
    """Microseconds of each write, from the fence's answer to a call that is stop_and_call."""

    def __init__(self) -> None:
        self.fence_time = 0
        self.found: list[float] = []

    def fence(self) -> None:
        self.fence_time = time.perf_counter_ns()

    def watch(self, owner: Any, name: str) -> Callable[[], None]:
        """Stop at each call of a function, and return what gives it back."""
        call = getattr(owner, name)

        def stop_and_call(*given: Any, **named: Any) -> Any:
            if self.fence_time:
                self.found.append((time.perf_counter_ns() - self.fence_time) / 1000)
                self.fence_time = 0
            return call(*given, **named)

        setattr(owner, name, stop_and_call)
        return lambda: setattr(owner, name, call)


async def write_many(control: Control, address: str, stopwatch: Stopwatch) -> None:
    for number in range(WRITES):
        await control.write(address, float(number), fence=stopwatch.fence)


async def measure_caproto() -> list[float]:
    from baton.infrastructure.control.caproto_client import CaprotoClient
    from baton.infrastructure.control.channel_access import ChannelAccess

    control, stopwatch = ChannelAccess(CaprotoClient()), Stopwatch()
    await control.write(SIGNAL, 0.0)
    give_back = stopwatch.watch(socket.socket, "send")
    try:
        await write_many(control, SIGNAL, stopwatch)
    finally:
        give_back()
        await control.close()
    return stopwatch.found


async def measure_ophyd() -> list[float]:
    import aioca
    import aioca._catools
    from ophyd_async.epics.core import epics_signal_rw

    from baton.infrastructure.control.ophyd import OphydControl

    control, stopwatch = OphydControl(lambda: {"x": epics_signal_rw(float, SIGNAL)}), Stopwatch()
    await control.write("ophyd:x", 0.0)
    give_back = stopwatch.watch(aioca._catools.cadef, "ca_array_put_callback")
    try:
        await write_many(control, "ophyd:x", stopwatch)
    finally:
        give_back()
        await control.close()
        aioca.purge_channel_caches()
    return stopwatch.found


async def measure_tango() -> list[float]:
    from baton.infrastructure.control.tango import TangoControl

    with ScriptedServer("tango_server") as server:
        server.tell("set", address="x", value=0.0)
        control, passed = TangoControl(), list[float]()
        for number in range(WRITES):
            address = f"tango:127.0.0.1:{server.ready['port']}/{server.ready['device']}/x"
            await control.write(address, float(number), fence=lambda: passed.append(time.clock_gettime(time.CLOCK_BOOTTIME)))
        await control.close()
        arrived = [at for at, *_ in server.tell("puts")]
    return [(at - before) * 1e6 for before, at in zip(passed, arrived, strict=True)]


LIBRARIES = {"caproto": measure_caproto, "ophyd": measure_ophyd, "tango": measure_tango}


def main() -> None:
    port, repeater = free_ports(2)
    os.environ |= {
        "EPICS_CA_ADDR_LIST": f"127.0.0.1:{port}",
        "EPICS_CA_AUTO_ADDR_LIST": "NO",
        "EPICS_CA_REPEATER_PORT": str(repeater),
    }
    with channel_access_server(port) as server:
        server.tell("set", address=SIGNAL, value=0.0)
        for library in sys.argv[1:] or LIBRARIES:
            found = sorted(asyncio.run(LIBRARIES[library]()))
            assert len(found) == WRITES, "every write is seen"
            median, high = statistics.median(found), found[int(0.99 * WRITES)]
            print(
                f"{library}, {WRITES} writes: median {median:.0f} µs, 99 % within {high:.0f} µs, longest {found[-1]:.0f} µs"
            )


if __name__ == "__main__":
    main()
