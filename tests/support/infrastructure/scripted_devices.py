"""Devices and a plan on them, as the environments of queueserver and blueapi have them where devices are imported."""

from dataclasses import dataclass, field
from typing import Any

from bluesky.plan_stubs import null
from bluesky.protocols import Movable, Readable
from bluesky.utils import MsgGenerator
from ophyd_async.sim import PatternGenerator, SimMotor, SimPointDetector

stage_x = SimMotor(name="stage_x")
diode = SimPointDetector(PatternGenerator(), name="diode")


@dataclass
class Built:
    devices: dict[str, Any]
    build_errors: dict[str, Exception] = field(default_factory=dict)
    connection_errors: dict[str, Exception] = field(default_factory=dict)


class Manager:
    """What blueapi asks for devices."""

    def build_and_connect(self, **options: Any) -> Built:
        return Built({"stage_x": stage_x, "diode": diode})


devices = Manager()


def line_scan(motor: Movable, detectors: list[Readable], points: int = 3) -> MsgGenerator[None]:
    """Measure along a line."""
    yield from null()
