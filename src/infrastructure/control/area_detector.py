"""The signals of EPICS areaDetector, such as `bl7:cam1:Acquire` and `bl7:HDF1:Capture`, and a simulated camera with them."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from baton.application.control import ControlWriteRejectedError, Reading
from baton.application.plant import SimulatedDetector
from baton.infrastructure.control.devices import Device, Labels, ReadOther, number, read_only, whole

DONE = 0  # the index of `Acquire` and `Capture` when nothing more is to come
UNLIMITED = 0  # the value of `NumCapture` that records every image
SINGLE, MULTIPLE, CONTINUOUS = range(3)
CHOICES = {
    "TriggerMode": ("Internal", "ExternalEdge", "ExternalLevel"),
    "ImageMode": ("Single", "Multiple", "Continuous"),
    "Acquire": ("Done", "Acquire"),
    "FileWriteMode": ("Single", "Capture", "Stream"),
    "Capture": ("Done", "Capture"),
    "DetectorState_RBV": (
        *("Idle", "Acquire", "Readout", "Correct", "Saving", "Aborting", "Error", "Waiting"),
        *("Initializing", "Disconnected", "Aborted"),
    ),
}
TRIGGER_SETTINGS = {"TriggerMode": 0, "TriggerPolarity": "", "TriggerSource": ""}
IMAGE_SETTINGS = {"AcquireTime": 0.1, "NumImages": 1, "ImageMode": SINGLE}
WRITER_SETTINGS = {"FileWriteMode": 0, "NumCapture": 1}
WRITER = (*WRITER_SETTINGS, "Capture", "NumCaptured_RBV", "FullFileName_RBV")
CAMERA = (*TRIGGER_SETTINGS, *IMAGE_SETTINGS, "Acquire", "DetectorState_RBV", "NumImagesCounter_RBV")


def camera_signal(detector: str, name: str) -> str:
    return f"{detector.rstrip(':')}:{name}"


def writer_signal(detector: str, name: str) -> str:
    """Return a signal of a camera's file writer: its neighbour `HDF1`, as `bl7:HDF1` is of `bl7:cam1`."""
    device, colon, _ = detector.rstrip(":").rpartition(":")
    return f"{device}{colon}HDF1:{name}"


@dataclass(frozen=True)
class FrameSeries:
    """When an acquisition began, how long an image takes, and how many images it takes at most."""

    began_at: datetime
    period: float
    images: float

    def images_by(self, at: datetime) -> int:
        """Return how many images are taken; one that is due at this very microsecond is."""
        elapsed = (at - self.began_at).total_seconds() / self.period
        return int(min(self.images, math.floor(elapsed + 1e-6)))


@dataclass(frozen=True)
class DetectorState:
    """What a detector is doing at a time, and how many images it has taken and recorded."""

    acquiring: bool
    images: int
    capturing: bool
    captured: int


class Detector(Device):
    """A camera and its file writer. An external trigger is assumed to fire as fast as the camera can follow."""

    def __init__(self, detector: SimulatedDetector) -> None:
        self._fields = {camera_signal(detector.address, name): name for name in CAMERA}
        self._fields |= {writer_signal(detector.address, name): name for name in WRITER}
        super().__init__(*self._fields)
        self._readout = detector.readout
        self._file_prefix = f"{detector.directory}/{detector.address.rstrip(':').replace(':', '_')}"
        self._settings: dict[str, Any] = {**TRIGGER_SETTINGS, **IMAGE_SETTINGS, **WRITER_SETTINGS}
        self._acquisition: FrameSeries | None = None
        self._images = 0
        self._capturing = False
        self._captured = 0
        self._images_before_capture = 0
        self._file_number = 0

    def reading(self, address: str, at: datetime, read_other: ReadOther) -> Reading:
        name, state = self._fields[address], self._state(at)
        values: dict[str, Any] = {
            **self._settings,
            "Acquire": int(state.acquiring),
            "DetectorState_RBV": int(state.acquiring),
            "Capture": int(state.capturing),
            "NumImagesCounter_RBV": state.images,
            "NumCaptured_RBV": state.captured,
            "FullFileName_RBV": f"{self._file_prefix}_{self._file_number:04}.h5",
        }
        if name in CHOICES:
            return Labels(address, CHOICES[name]).reading(values[name], at)
        return Reading(value=values[name], sampled_at=at, units="s" if name == "AcquireTime" else None)

    def accept(self, address: str, value: Any) -> Any:
        name = self._fields[address]
        if name.endswith("_RBV"):
            raise read_only(address)
        if name in CHOICES:
            return Labels(address, CHOICES[name]).index_of(value)
        if name in ("NumImages", "NumCapture", "AcquireTime"):
            given = number(address, value) if name == "AcquireTime" else whole(address, value)
            if given <= 0 and (name, given) != ("NumCapture", UNLIMITED):
                raise ControlWriteRejectedError(f"{address} must be above 0, not {given}.")
            return given
        return str(value)

    def write(self, address: str, value: Any, at: datetime) -> None:
        state = self._state(at)
        self._images = state.images
        self._captured = state.captured
        self._images_before_capture = state.images
        match self._fields[address]:
            case "Acquire" if not value:
                self._acquisition = None
            case "Acquire" if not state.acquiring:
                images = {SINGLE: 1, MULTIPLE: self._settings["NumImages"], CONTINUOUS: math.inf}
                period = self._settings["AcquireTime"] + self._readout
                self._acquisition = FrameSeries(at, period, images[self._settings["ImageMode"]])
                self._images_before_capture = 0
            case "Acquire":
                return
            case "Capture":
                if value and not state.capturing:
                    self._captured, self._file_number = 0, self._file_number + 1
                self._capturing = bool(value)
            case name:
                self._settings[name] = value

    def is_busy(self, address: str, at: datetime) -> bool:
        state = self._state(at)
        return {"Acquire": state.acquiring, "Capture": state.capturing}.get(self._fields[address], False)

    def _state(self, at: datetime) -> DetectorState:
        images = self._images if self._acquisition is None else self._acquisition.images_by(at)
        limit = self._settings["NumCapture"] or math.inf
        recorded = images - self._images_before_capture if self._capturing else 0
        captured = int(min(limit, self._captured + recorded))
        acquiring = self._acquisition is not None and images < self._acquisition.images
        return DetectorState(acquiring, images, self._capturing and captured < limit, captured)
