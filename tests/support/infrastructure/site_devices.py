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
