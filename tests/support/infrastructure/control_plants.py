"""The other end of each adapter of the control port: what makes its signals come, change and go."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from baton.application.control import Control, ControlNotConnectedError, ControlTimeoutError, Reading
from baton.application.plant import ControlRoute, SimulatedMotor, Substrate
from baton.infrastructure.control.devices import Motor, PlainSignal
from baton.infrastructure.control.routes import RoutedControl
from baton.infrastructure.control.simulator import Simulator
from tests.support.infrastructure.scripted_server import ScriptedServer

PATIENT, IMPATIENT = 30.0, 0.3
"""Seconds to wait for an answer that comes, and for one that does not."""
SEVERITIES = {"Good": 0, "Uncertain": 1, "Bad": 3}


class Plant(Protocol):
    def set_reading(self, address: str, reading: Reading) -> None: ...
    def offer(self, address: str, value: Any, labels: list[str] | None = None) -> None:
        """A signal that takes what is written to it."""
        ...

    def offer_limited(self, address: str, value: float, low: float, high: float) -> None:
        """A signal that may be set between limits."""
        ...

    def simulate_connect(self, address: str) -> None: ...
    def simulate_disconnect(self, address: str) -> None: ...
    def subscriptions(self, address: str) -> int: ...


@dataclass
class WiredPlant:
    """An adapter and its plant, and in what adapters may differ."""

    control: Control
    impatient: Control
    """The same control system, for what is not there."""
    plant: Plant
    no_value: type[Exception] = ControlTimeoutError
    """What a read raises when a signal exists and says nothing."""
    no_writable: type[Exception] = ControlNotConnectedError
    """What a write raises when there is no such signal."""
    tells_silence: bool = True
    """Whether a signal that says nothing is told from one that is not there."""
    counts: bool = True
    """Whether the plant knows how many follow a signal."""
    signal: str = "bl7:shutter"
    other_signal: str = "bl7:other"
    too_high: str = "HIGH"
    """What is said of a reading that is too high."""


class SimulatedPlant(Simulator):
    def offer(self, address: str, value: Any, labels: list[str] | None = None) -> None:
        self.add(PlainSignal(address, Reading(value=value), labels=tuple(labels or ())))

    def offer_limited(self, address: str, value: float, low: float, high: float) -> None:
        limits = {"lower": low, "upper": high} if low < high else {}
        self.add(Motor(SimulatedMotor(address=address, kind="motor", position=value, velocity=1e6, **limits)))


class ServedPlant:
    """The signals of a server, which has its own names for them."""

    def __init__(self, server: ScriptedServer, own_name: Callable[[str], str] = str) -> None:
        self._server = server
        self._own_name = own_name

    def set_reading(self, address: str, reading: Reading) -> None:
        sampled_at = reading.sampled_at and reading.sampled_at.timestamp()
        self._server.tell(
            "set",
            address=self._own_name(address),
            value=reading.value,
            severity=SEVERITIES[reading.quality],
            status=reading.quality_detail,
            timestamp=sampled_at,
        )

    def offer(self, address: str, value: Any, labels: list[str] | None = None) -> None:
        self._server.tell("set", address=self._own_name(address), value=value, labels=labels)

    def offer_limited(self, address: str, value: float, low: float, high: float) -> None:
        self._server.tell("set", address=self._own_name(address), value=value, limits=[low, high])

    def simulate_connect(self, address: str) -> None:
        self._server.tell("silent", address=self._own_name(address))

    def simulate_disconnect(self, address: str) -> None:
        self._server.tell("drop", address=self._own_name(address))

    def subscriptions(self, address: str) -> int:
        count: int = self._server.tell("subscriptions", address=self._own_name(address))
        return count


def simulated_plant() -> WiredPlant:
    plant = SimulatedPlant(read_timeout=IMPATIENT)
    return WiredPlant(plant, plant, plant)


def routed_plant() -> WiredPlant:
    plant = SimulatedPlant(read_timeout=IMPATIENT)
    adapters = {Substrate.EPICS_CA: Simulator(), Substrate.IN_MEMORY: plant}
    routes = [
        ControlRoute(prefix=prefix, substrate=substrate) for prefix, substrate in zip(("", "bl7:"), adapters, strict=True)
    ]
    control = RoutedControl(routes, adapters)
    return WiredPlant(control, control, plant)
