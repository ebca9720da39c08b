"""What an importer found: devices with the parts it is sure of, and remarks on those it is not."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

FAMILY_OF_UNIT = {
    **dict.fromkeys(("deg", "degree", "degrees", "°"), "RotaryStage"),
    **dict.fromkeys(("mrad", "urad", "rad", "arcsec"), "TiltStage"),
    **dict.fromkeys(("mm", "um", "µm", "micron", "microns", "nm", "m", "cm"), "LinearStage"),
}
FAMILY_OF_WORD = {
    "hexapod": "Hexapod",
    "cam": "Camera",
    "detector": "Camera",
    "shutter": "Shutter",
    "slit": "Slit",
    "filter": "Filter",
    "attenuator": "Filter",
    "mirror": "Mirror",
    "mono": "Monochromator",
    "undulator": "InsertionDevice",
    "temperature": "TemperatureController",
    "cryo": "TemperatureController",
    "furnace": "TemperatureController",
    "objective": "Objective",
    "scintillator": "Scintillator",
    "table": "Table",
    "rot": "RotaryStage",
    "tilt": "TiltStage",
    "pitch": "TiltStage",
    "roll": "TiltStage",
    "stage": "LinearStage",
    "motor": "LinearStage",
    "diode": "FluxMonitor",
    "flux": "FluxMonitor",
    "scaler": "FluxMonitor",
}
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
NOT_OF_AN_AXIS = {"Camera", "Objective", "Scintillator"}  # a motor that moves one of these is none of them


@dataclass(frozen=True)
class SignalRange:
    """Between which values a signal may be set, and the unit it is written in."""

    low: float | None
    high: float | None
    unit: str = ""


@dataclass(frozen=True)
class DeviceDraft:
    """A device that an importer found, where, and what a person has to answer before the file is applied."""

    name: str
    within: tuple[str, ...] = ()
    family: str | None = None
    model: tuple[str, str] | None = None
    serial_number: str | None = None
    inventory_number: str | None = None
    signals: tuple[str, ...] = ()
    limits: Mapping[str, SignalRange] = field(default_factory=dict)
    description: str = ""
    source: str = ""
    questions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What is known and has no place in a beamline file; it becomes comments."""


def family_of_words(*texts: str) -> str | None:
    """Return the family that the first telling word of these texts speaks of."""
    words = (word.lower() for text in texts for word in WORD.findall(text))
    return next((family for word in words for start, family in FAMILY_OF_WORD.items() if word.startswith(start)), None)


def family_of_axis(unit: str, *texts: str) -> str:
    """Return the family of a single motor, by what it moves or the unit it counts in."""
    told = family_of_words(*texts)
    by_unit = FAMILY_OF_UNIT.get(unit.strip().lower(), "LinearStage")
    return by_unit if told is None or told in NOT_OF_AN_AXIS or told == "LinearStage" else told
