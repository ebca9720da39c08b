"""`python -m tests.bench.write_window`: the time between a write's fence and its bytes in the socket, with caproto.

A process that is suspended in this window sends one write when it wakes, however long that takes.
"""

import asyncio
import os
import socket
import statistics
import time
from typing import Any

from baton.infrastructure.control.caproto_client import CaprotoClient
from baton.infrastructure.control.channel_access import ChannelAccess
from tests.support.infrastructure.epics_servers import channel_access_server, free_ports

WRITES = 5000
SIGNAL = "bench:x"


async def write_windows() -> list[float]:
    """Microseconds of each write, from the fence's answer to the call that hands the bytes to the kernel."""
    fence_time, found = 0, []
    send = socket.socket.send

    def fence() -> None:
        nonlocal fence_time
        fence_time = time.perf_counter_ns()

    def send_timed(own: socket.socket, *given: Any) -> int:
        nonlocal fence_time
        if fence_time:
            found.append((time.perf_counter_ns() - fence_time) / 1000)
            fence_time = 0
        return send(own, *given)

    control = ChannelAccess(CaprotoClient())
    await control.write(SIGNAL, 0.0)
    socket.socket.send = send_timed  # type: ignore[method-assign]
    try:
        for number in range(WRITES):
            await control.write(SIGNAL, float(number), fence=fence)
    finally:
        socket.socket.send = send  # type: ignore[method-assign]
        await control.close()
    return sorted(found)


def main() -> None:
    port, repeater = free_ports(2)
    os.environ |= {
        "EPICS_CA_ADDR_LIST": f"127.0.0.1:{port}",
        "EPICS_CA_AUTO_ADDR_LIST": "NO",
        "EPICS_CA_REPEATER_PORT": str(repeater),
    }
    with channel_access_server(port) as server:
        server.tell("set", address=SIGNAL, value=0.0)
        found = asyncio.run(write_windows())
    assert len(found) == WRITES, "every write is seen in the socket"
    high = found[int(0.99 * WRITES)]
    print(
        f"{WRITES} writes: median {statistics.median(found):.0f} µs, 99 % within {high:.0f} µs, longest {found[-1]:.0f} µs"
    )


if __name__ == "__main__":
    main()
