"""The devices of a site, as its own Python makes them: what is written to them is noted in a file, one of them slowly."""

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any

from ophyd_async.core import SignalRW, soft_signal_rw
from ophyd_async.sim import SimMotor

SLOW_SECONDS = 1.5


def devices() -> dict[str, Callable[[], Any]]:
    """Return what makes each device."""
    return {
        "x": lambda: make_noted_signal("x"),
        "slow": lambda: make_noted_signal("slow", SLOW_SECONDS),
        "y": lambda: make_noted_signal("y"),
        "stage": lambda: SimMotor(instant=False),
        "broken": broken,
        "absent": lambda: None,
    }


def curious() -> dict[str, Callable[[], Any]]:
    """Return a device that cannot be made, and says what its process knows."""

    def tell() -> Any:
        raise RuntimeError(f"variables {' '.join(sorted(os.environ))}, home {os.environ['HOME']}")

    print("the site's Python prints")
    return {"curious": tell}


def channels() -> dict[str, Callable[[], Any]]:
    """Return what makes devices of Channel Access."""
    from ophyd_async.core import Device
    from ophyd_async.epics.core import epics_signal_r, epics_signal_rw

    class Slit(Device):
        def __init__(self) -> None:
            self.gap = epics_signal_rw(float, "bl7:slit:gap")
            self.width = epics_signal_r(float, "bl7:slit:width")
            super().__init__()

    return {"slit": Slit, "lost": lambda: epics_signal_rw(float, "bl7:absent", timeout=0.5)}


def make_noted_signal(name: str, seconds: float = 0) -> SignalRW[float]:
    async def take(value: float) -> None:
        note(name, value)
        await asyncio.sleep(seconds)

    return soft_signal_rw(float, setter=take, units="mm")


def note(name: str, value: float) -> None:
    with open(os.environ["SITE_PUTS"], "a", encoding="utf-8") as file:
        file.write(json.dumps([name, value]) + "\n")


def broken() -> Any:
    raise RuntimeError("no such crate")
