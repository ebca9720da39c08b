"""A plan that a blueapi or a queueserver serves, gated by a decorator.

The address of the service, and the plan there, come from the environment, as a site would have them in a settings file.
"""

import os
import time
from collections.abc import Generator
from typing import Any

import bluesky.plan_stubs as bps
from bluesky.preprocessors import run_decorator
from bluesky.utils import MsgGenerator

from baton_bluesky import BatonGate, baton_touches

gate = BatonGate(os.environ["GATE_SERVICE"], plan=os.environ["GATE_PLAN"])


class Clock:
    """A device that reads the time."""

    name = "clock"
    parent = None

    def describe(self) -> dict[str, Any]:
        return {"clock": {"source": "soft://clock", "dtype": "number", "shape": []}}

    def read(self) -> dict[str, Any]:
        return {"clock": {"value": time.time(), "timestamp": time.time()}}

    def describe_configuration(self) -> dict[str, Any]:
        return {}

    def read_configuration(self) -> dict[str, Any]:
        return {}


@gate.gated
@baton_touches(writes=["stage"], reads=["camera"])
def gated_steps(num: int, exposure: float = 0.1) -> MsgGenerator[str]:
    """Read a clock, with a checkpoint before each reading.

    It is held at its checkpoints.
    """
    note = os.environ["GATE_DOCUMENTS"]

    def keep(name: str, document: dict[str, Any]) -> None:
        with open(note, "a") as file:
            file.write(f"{name} {document['time']} {document.get('uid')} {document.get('exit_status')}\n")

    @run_decorator(md={"plan_name": "gated_steps", "plan_args": {"exposure": exposure}})
    def inner() -> Generator[Any, Any, None]:
        clock = Clock()
        for _ in range(num):
            yield from bps.checkpoint()
            yield from bps.create()
            yield from bps.read(clock)
            yield from bps.save()
            yield from bps.sleep(0.1)

    token = yield from bps.subscribe("all", keep)
    result = yield from inner()
    yield from bps.unsubscribe(token)
    return result
