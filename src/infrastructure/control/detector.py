"""A simulated camera with the signals of EPICS areaDetector, and the file writer that stands beside it.

A camera at `bl7:cam1` acquires at `bl7:cam1:Acquire`; what it sees is recorded by `bl7:HDF1`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from baton.application.control import ControlWriteRejectedError, Reading
from baton.infrastructure.area_detector import CAMERA_STATES, UNLIMITED, signal_of, writer_signal_of
from baton.infrastructure.control.devices import Labels, Plant, number, read_only, whole

SINGLE, MULTIPLE, CONTINUOUS = range(3)
CHOICES = {
    "TriggerMode": ("Internal", "ExternalEdge", "ExternalLevel"),
    "ImageMode": ("Single", "Multiple", "Continuous"),
    "Acquire": ("Done", "Acquire"),
    "FileWriteMode": ("Single", "Capture", "Stream"),
    "Capture": ("Done", "Capture"),
}
SETTINGS = {
    "TriggerMode": 0,
    "TriggerPolarity": "",
    "TriggerSource": "",
    "AcquireTime": 0.1,
    "NumImages": 1,
    "ImageMode": SINGLE,
    "FileWriteMode": 0,
    "NumCapture": 1,
}
"""What can be set, as it is at first."""
WRITER = ("FileWriteMode", "NumCapture", "Capture", "NumCaptured_RBV", "FullFileName_RBV")
CAMERA = (*(name for name in SETTINGS if name not in WRITER), "Acquire", "DetectorState_RBV", "NumImagesCounter_RBV")


@dataclass(frozen=True)
class Span:
    """An acquisition: when it began, how long an image takes, and how many there are to be."""

    begun: datetime
    period: float
    images: float

    def taken(self, at: datetime) -> int:
        """How many images there are by now; one that is due at this very microsecond is there."""
        passed = (at - self.begun).total_seconds() / self.period
        return int(min(self.images, math.floor(passed + 1e-6)))


@dataclass(frozen=True)
class Moment:
    """What a detector is doing at a time, and how many images it has taken and recorded."""

    acquiring: bool
    images: int
    capturing: bool
    captured: int


class Detector:
    """A camera and its file writer. An external trigger is taken to fire as fast as the camera can follow."""

    restless = True

    def __init__(self, address: str, *, readout: float = 0.0, directory: str = "/tmp") -> None:
        self._readout = readout
        self._directory = directory
        self._camera = address.rstrip(":")
        self._fields = {signal_of(address, name): name for name in CAMERA}
        self._fields |= {writer_signal_of(address, name): name for name in WRITER}
        self._set: dict[str, Any] = dict(SETTINGS)
        self._span: Span | None = None
        self._images = 0
        self._capturing = False
        self._captured = 0
        self._seen = 0
        self._file = 0
        self.addresses: Sequence[str] = list(self._fields)

    def acquires(self, address: str, value: Any, at: datetime) -> str | None:
        """The camera that begins to acquire when this value is written, if one does."""
        begins = self._fields[address] == "Acquire" and value == 1 and not self._moment(at).acquiring
        return self._camera if begins else None

    def reading(self, address: str, at: datetime, plant: Plant) -> Reading:
        moment = self._moment(at)
        match self._fields[address]:
            case "Acquire" | "DetectorState_RBV" as name:
                return Labels(address, CHOICES.get(name, CAMERA_STATES)).reading(int(moment.acquiring), at)
            case "Capture" as name:
                return Labels(address, CHOICES[name]).reading(int(moment.capturing), at)
            case "NumImagesCounter_RBV":
                return Reading(value=moment.images, sampled_at=at)
            case "NumCaptured_RBV":
                return Reading(value=moment.captured, sampled_at=at)
            case "FullFileName_RBV":
                return Reading(value=f"{self._directory}/{self._camera.replace(':', '_')}_{self._file:04}.h5", sampled_at=at)
            case "AcquireTime" as name:
                return Reading(value=self._set[name], sampled_at=at, units="s")
            case name if name in CHOICES:
                return Labels(address, CHOICES[name]).reading(self._set[name], at)
            case name:
                return Reading(value=self._set[name], sampled_at=at)

    def accepted(self, address: str, value: Any) -> Any:
        name = self._fields[address]
        if name.endswith("_RBV"):
            raise read_only(address)
        if name in CHOICES:
            return Labels(address, CHOICES[name]).accepted(value)
        if name in ("NumImages", "NumCapture", "AcquireTime"):
            given = number(address, value) if name == "AcquireTime" else whole(address, value)
            if given <= 0 and (name, given) != ("NumCapture", UNLIMITED):
                raise ControlWriteRejectedError(f"{address} must be above 0, not {given}.")
            return given
        return str(value)

    def write(self, address: str, value: Any, at: datetime) -> None:
        moment = self._moment(at)
        self._images, self._captured, self._seen = moment.images, moment.captured, moment.images
        match self._fields[address]:
            case "Acquire" if not value:
                self._span = None
            case "Acquire" if not moment.acquiring:
                images = {SINGLE: 1, MULTIPLE: self._set["NumImages"], CONTINUOUS: math.inf}[self._set["ImageMode"]]
                self._span = Span(at, self._set["AcquireTime"] + self._readout, images)
                self._seen = 0
            case "Capture":
                if value and not moment.capturing:
                    self._captured, self._file = 0, self._file + 1
                self._capturing = bool(value)
            case "Acquire":
                return
            case name:
                self._set[name] = value

    def busy(self, address: str, at: datetime) -> bool:
        match self._fields[address]:
            case "Acquire":
                return self._moment(at).acquiring
            case "Capture":
                return self._moment(at).capturing
        return False

    def _moment(self, at: datetime) -> Moment:
        images = self._images if self._span is None else self._span.taken(at)
        limit = self._set["NumCapture"] or math.inf
        captured = int(min(limit, self._captured + (images - self._seen if self._capturing else 0)))
        return Moment(
            acquiring=self._span is not None and images < self._span.images,
            images=images,
            capturing=self._capturing and captured < limit,
            captured=captured,
        )
