"""Plants of ophyd-async devices: soft signals that are lost when a test says so, and signals of a Channel Access server."""

from enum import Enum
from typing import TYPE_CHECKING, Any

from baton.application.control import ControlNotConnectedError, Reading
from tests.support.infrastructure.control_plants import IMPATIENT, PATIENT, SEVERITIES, ServedPlant, WiredPlant
from tests.support.infrastructure.scripted_server import ScriptedServer

if TYPE_CHECKING:
    from ophyd_async.core import SignalRW, SoftSignalBackend

SHUTTER, OTHER = "ophyd:shutter", "ophyd:other"


class SoftPlant:
    """Devices that are soft signals, by their names."""

    def __init__(self) -> None:
        self.devices: dict[str, SignalRW[Any]] = {}
        self._backends: dict[str, SoftSignalBackend[Any]] = {}

    def set_reading(self, address: str, reading: Reading) -> None:
        if address not in self._backends:
            self.offer(address, reading.value)
        backend, said = self._backends[address], SEVERITIES[reading.quality]
        vars(backend)["lost"] = False
        backend.reading = {
            "value": reading.value,
            "timestamp": reading.sampled_at.timestamp() if reading.sampled_at else 0.0,
            "alarm_severity": -1 if said > 2 else said,
        }
        if backend.callback:
            backend.callback(backend.reading)

    def offer(self, address: str, value: Any, labels: list[str] | None = None) -> None:
        from ophyd_async.core import SignalRW, StrictEnum

        datatype: Any = type(value)
        if labels:
            datatype = StrictEnum("Labels", {label.upper(): label for label in labels})  # type: ignore[call-overload]
            assert issubclass(datatype, Enum)
        elif isinstance(value, list):
            datatype = array_type()
        backend = self._backends[address] = losable_backend(datatype, value)
        self.devices[name_of(address)] = SignalRW(backend, name=name_of(address))

    def offer_limited(self, address: str, value: float, low: float, high: float) -> None:
        self.offer(address, value)
        self._backends[address].metadata["limits"] = {"control": {"low": low, "high": high}}

    def simulate_connect(self, address: str) -> None:
        raise NotImplementedError("a soft signal always has a value")

    def simulate_disconnect(self, address: str) -> None:
        vars(self._backends[address])["lost"] = True

    def subscriptions(self, address: str) -> int:
        cache = self.devices[name_of(address)]._cache
        return 0 if cache is None else len(cache._listeners)


def name_of(address: str) -> str:
    return address.partition(":")[2]


def array_type() -> Any:
    import numpy
    from ophyd_async.core import Array1D

    return Array1D[numpy.float64]


def losable_backend(datatype: Any, value: Any) -> "SoftSignalBackend[Any]":
    """A soft backend that does what those of a network do with a lost channel: it raises."""
    from ophyd_async.core import NotConnectedError, SoftSignalBackend

    class LosableBackend(SoftSignalBackend[Any]):
        lost = False

        def check(self) -> None:
            if self.lost:
                raise NotConnectedError("soft://lost")

        async def connect(self, timeout: float) -> None:
            self.check()

        async def put(self, value: Any) -> None:
            self.check()
            await super().put(value)

        async def get_reading(self) -> Any:
            self.check()
            return await super().get_reading()

        async def get_value(self) -> Any:
            self.check()
            return await super().get_value()

        async def get_datakey(self, source: str) -> Any:
            self.check()
            return await super().get_datakey(source)

    return LosableBackend(datatype, value)


def soft_ophyd_plant() -> WiredPlant:
    """The adapter of ophyd on soft signals."""
    from baton.infrastructure.control.ophyd import OphydControl

    plant = SoftPlant()
    patient, impatient = (
        OphydControl(lambda: plant.devices, read_timeout=timeout, probe_seconds=0.2) for timeout in (PATIENT, IMPATIENT)
    )
    return WiredPlant(
        patient,
        impatient,
        plant,
        no_value=ControlNotConnectedError,
        tells_silence=False,
        signal=SHUTTER,
        other_signal=OTHER,
        too_high="MINOR",
    )


def ophyd_over_aioca(server: ScriptedServer) -> WiredPlant:
    """The adapter of ophyd on signals of a Channel Access server."""
    import aioca
    from ophyd_async.core import SignalRW
    from ophyd_async.epics.core import CaSignalBackend

    from baton.infrastructure.control.ophyd import OphydControl

    class OphydOverAioca(OphydControl):
        async def close(self) -> None:
            await super().close()
            aioca.purge_channel_caches()  # the next test has other channels of the same names

    def signal_of(name: str) -> Any:
        return lambda: SignalRW(CaSignalBackend(None, name, name), timeout=None)

    names = {"shutter": "bl7:shutter", "other": "bl7:other"}
    makers = {name: signal_of(record) for name, record in names.items()}
    patient, impatient = (
        OphydOverAioca(lambda: makers, read_timeout=timeout, probe_seconds=0.2) for timeout in (PATIENT, IMPATIENT)
    )
    return WiredPlant(
        patient,
        impatient,
        ServedPlant(server, lambda address: names[name_of(address)]),
        no_value=ControlNotConnectedError,
        tells_silence=False,
        signal=SHUTTER,
        other_signal=OTHER,
        too_high="MINOR",
    )
