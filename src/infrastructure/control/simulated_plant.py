"""The simulated plant that a deployment describes."""

from typing import assert_never

from baton.application.clock import Timekeeper
from baton.application.control import Reading, ReadingKind
from baton.application.plant import (
    SimulatedDetector,
    SimulatedDevice,
    SimulatedMotor,
    SimulatedPeak,
    SimulatedPlane,
    SimulatedSignal,
)
from baton.application.settings import Settings
from baton.infrastructure.control.detector import Detector
from baton.infrastructure.control.devices import DerivedSignal, Device, Motor, Noise, PlainSignal, peak, plane
from baton.infrastructure.control.journal import FileJournal
from baton.infrastructure.control.simulator import Simulator


def simulated_plant(settings: Settings, time: Timekeeper | None = None) -> Simulator:
    """The plant as it stands, after everything that its journal says was done to it."""
    devices = [built(device, settings.simulation_seed) for device in settings.simulated_devices]
    journal = FileJournal(settings.simulation_journal) if settings.simulation_journal else None
    return Simulator(settings.simulated_signals, devices, time=time, journal=journal)


def built(device: SimulatedDevice, seed: int = 0) -> Device:
    """The behaviour of what is described."""
    if isinstance(device, SimulatedDetector):
        return Detector(device.address, readout=device.readout, directory=device.directory)
    address, units = device.address, device.units
    noise = Noise(device.noise, seed, address)
    match device:
        case SimulatedSignal(labels=labels, value=str(value)) if labels:
            chosen = Reading(value=value, kind=ReadingKind.CATEGORICAL, index=labels.index(value))
            return PlainSignal(address, chosen, labels=labels, read_only=device.read_only)
        case SimulatedSignal():
            return PlainSignal(address, Reading(value=device.value, units=units), noise=noise, read_only=device.read_only)
        case SimulatedMotor():
            return Motor(
                address,
                readback=device.readback,
                position=device.position,
                velocity=device.velocity,
                lower=device.lower,
                upper=device.upper,
                noise=noise,
                units=units,
            )
        case SimulatedPeak(centres=centres):
            bell = peak(centres, device.width, device.height, device.background)
            return DerivedSignal(address, tuple(centres), bell, noise=noise, units=units)
        case SimulatedPlane(slopes=slopes):
            return DerivedSignal(address, tuple(slopes), plane(slopes, device.offset), noise=noise, units=units)
        case _:
            assert_never(device)
