"""The beamline as an EPICS server: `python -m baton.demo.ioc <directory>`, with the names of areaDetector and motor
records."""

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from caproto import ChannelType, SkipWrite
from caproto.asyncio.server import start_server
from caproto.server import PVGroup, pvproperty

from baton.demo.optics import FULL_CURRENT, Beamline, Picture, sharpness

TICK_SECONDS = 0.01
RecordedPicture = tuple[Picture, float, float]  # A picture with the angle and the ring current at which it was taken


def choice(name: str, *labels: str, **options: Any) -> Any:
    """Return a signal that is one of several labels, the first one at the start."""
    return pvproperty(name=name, value=labels[0], enum_strings=list(labels), dtype=ChannelType.ENUM, **options)


def real(name: str, value: float, **options: Any) -> Any:
    return pvproperty(name=name, value=value, dtype=ChannelType.DOUBLE, **options)


class Axis(PVGroup):
    """An axis with the fields of a motor record; a write to it is confirmed when it has arrived."""

    async def _move(self, instance: Any, value: float) -> None:
        self._halted = False
        await self.done.write(0)
        while not self._halted and (left := value - getattr(self._plant, self._name)):
            reach = self.velocity.value * TICK_SECONDS
            setattr(self._plant, self._name, value if abs(left) <= reach else self.readback.value + reach * np.sign(left))
            await self.readback.write(getattr(self._plant, self._name))
            await asyncio.sleep(TICK_SECONDS)
        await self.done.write(1)

    async def _halt(self, instance: Any, value: int) -> int:
        self._halted = bool(value)
        return 0

    target = real("", 0.0, precision=4, put=_move)
    readback = real(".RBV", 0.0, precision=4, read_only=True)
    velocity = real(".VELO", 1.0, precision=4)
    done = pvproperty(name=".DMOV", value=1)
    stop = pvproperty(name=".STOP", value=0, put=_halt)

    def __init__(self, prefix: str, *, plant: Beamline, name: str, speed: float, units: str, **options: Any) -> None:
        super().__init__(prefix, **options)
        self._plant = plant
        self._name = name
        self._halted = False
        self.velocity._data["value"] = speed
        for signal in (self.target, self.readback):
            signal._data["value"] = getattr(plant, name)
            signal._data["units"] = units


class FileWriter(PVGroup):
    """The file writer of a camera: each picture into its own file, or a stream of them into one."""

    _frames: list[RecordedPicture]

    async def _capture(self, instance: Any, value: str) -> str:
        if value == "Capture":
            self._frames = []
            await self.captured.write(0)
        elif self._frames:
            await self._write(self._frames)
            self._frames = []
        return value

    mode = choice("FileWriteMode", "Single", "Capture", "Stream")
    capture = choice("Capture", "Done", "Capture", put=_capture)
    wanted = pvproperty(name="NumCapture", value=1)
    captured = pvproperty(name="NumCaptured_RBV", value=0, read_only=True)
    auto_save = choice("AutoSave", "No", "Yes")
    file_name = pvproperty(name="FileName", value="picture", dtype=ChannelType.STRING)
    number = pvproperty(name="FileNumber", value=0)
    full_name = pvproperty(name="FullFileName_RBV", value="", max_length=500, dtype=ChannelType.CHAR, read_only=True)

    def __init__(self, prefix: str, *, plant: Beamline, directory: Path, **options: Any) -> None:
        super().__init__(prefix, **options)
        self._plant = plant
        self._directory = directory
        self._frames = []

    async def take(self, picture: Picture) -> None:
        """Record a picture if the writer is set to, with the state of the beamline when it was taken."""
        frame = (picture, self._plant.angle, self._plant.current)
        if self.mode.value == "Single" and self.auto_save.value == "Yes":
            await self._write([frame])
        elif self.mode.value == "Stream" and self.capture.value == "Capture":
            self._frames.append(frame)
            await self.captured.write(len(self._frames))
            if len(self._frames) == self.wanted.value:
                await self.capture.write("Done")

    async def _write(self, frames: list[RecordedPicture]) -> None:
        path = self._directory / f"{self.file_name.value}_{self.number.value:04}.h5"
        pictures, angles, currents = zip(*frames, strict=True)
        await asyncio.to_thread(save, path, np.array(pictures), np.array(angles), np.array(currents))
        await self.full_name.write(str(path))


def save(path: Path, pictures: Picture, angles: Any, currents: Any) -> None:
    """Write a file completely or not at all, in place of an earlier one."""
    draft = path.with_suffix(".part")
    with h5py.File(draft, "w") as file:
        file["pictures"], file["angles"], file["currents"] = pictures, angles, currents
    draft.replace(path)


class Station(PVGroup):
    """Shutter, sample changer, and the measurements in the hutch."""

    async def _set_shutter(self, instance: Any, value: str) -> str:
        if value == "Open" and self._permit.value == "NO":
            raise PermissionError("the hutch is not permitted")
        await asyncio.sleep(0.1)
        self._plant.shutter_open = value == "Open"
        return value

    async def _set_sample(self, instance: Any, value: str) -> str:
        await asyncio.sleep(0.3)
        self._plant.sample_in = value == "In"
        return value

    shutter = choice("shutter", "Closed", "Open", put=_set_shutter)
    sample = choice("sample", "In", "Out", put=_set_sample)
    temperature = real("hutch:temperature", 24.2, units="degC", precision=2, read_only=True)
    sharpness = real("Stats1:Sharpness_RBV", 0.0, precision=3, read_only=True)
    brightness = real("Stats1:MeanValue_RBV", 0.0, units="counts", precision=1, read_only=True)

    def __init__(self, prefix: str, *, plant: Beamline, permit: Any, **options: Any) -> None:
        super().__init__(prefix, **options)
        self._plant = plant
        self._permit = permit


class Camera(PVGroup):
    """A camera with the signals of areaDetector; a write to `Acquire` is confirmed when the pictures are taken."""

    async def _acquire(self, instance: Any, value: str) -> None:
        self._stopped = value == "Done"
        if not self._stopped:
            async with self._busy:
                await self.acquire.write("Acquire", verify_value=False)
                await self.state.write("Acquire")
                await self._take_pictures()
                await self.state.write("Idle")
                await self.acquire.write("Done", verify_value=False)
        raise SkipWrite

    acquire = choice("Acquire", "Done", "Acquire", put=_acquire)
    exposure = real("AcquireTime", 0.02, units="s")
    image_mode = choice("ImageMode", "Single", "Multiple", "Continuous")
    count = pvproperty(name="NumImages", value=1)
    trigger_mode = choice("TriggerMode", "Internal", "ExternalEdge", "ExternalLevel")
    trigger_source = pvproperty(name="TriggerSource", value="", dtype=ChannelType.STRING)
    trigger_polarity = pvproperty(name="TriggerPolarity", value="", dtype=ChannelType.STRING)
    state = choice("DetectorState_RBV", "Idle", "Acquire", read_only=True)
    counter = pvproperty(name="ArrayCounter_RBV", value=0, read_only=True)

    def __init__(self, prefix: str, *, plant: Beamline, writer: FileWriter, station: Station, **options: Any) -> None:
        super().__init__(prefix, **options)
        self._plant = plant
        self._writer = writer
        self._station = station
        self._generator = np.random.default_rng(7)
        self._busy = asyncio.Lock()
        self._stopped = False

    async def _take_pictures(self) -> None:
        taken, wanted = 0, {"Single": 1, "Multiple": self.count.value}.get(self.image_mode.value)
        while not self._stopped and taken != wanted:
            await asyncio.sleep(self.exposure.value)
            picture = self._plant.picture(self.exposure.value, self._generator)
            taken += 1
            await self._writer.take(picture)
            await self._station.sharpness.write(sharpness(picture))
            await self._station.brightness.write(float(picture.mean()))
            await self.counter.write(self.counter.value + 1)


class Ring(PVGroup):
    """The storage ring: its current decays, and is 0 after the beam is dumped."""

    async def _set_beam(self, instance: Any, value: str) -> str:
        self._plant.current = FULL_CURRENT if value == "Stored" else 0.0
        await self.current.write(self._plant.current)
        return value

    async def _decay(self, instance: Any, _: Any) -> None:
        while True:
            await asyncio.sleep(1)
            self._plant.current *= 0.9999
            await instance.write(self._plant.current)

    current = real("CURRENT", FULL_CURRENT, units="mA", precision=2, read_only=True, startup=_decay)
    beam = choice("BEAM", "Stored", "Dumped", put=_set_beam)

    def __init__(self, prefix: str, *, plant: Beamline, **options: Any) -> None:
        super().__init__(prefix, **options)
        self._plant = plant


class Interlock(PVGroup):
    """The hutch's personnel safety system: a completed search gives the permit, and taking the search back revokes it."""

    async def _set_permit(self, instance: Any, value: str) -> str:
        await self.permit.write(value)
        return value

    permit = choice("PERMIT", "NO", "YES", read_only=True)
    search = choice("SEARCH", "NO", "YES", put=_set_permit)


def signals(directory: Path) -> dict[str, Any]:
    plant = Beamline()
    interlock = Interlock("PSS:B:")
    station = Station("bl7:", plant=plant, permit=interlock.permit)
    writer = FileWriter("bl7:HDF1:", plant=plant, directory=directory)
    groups = (
        interlock,
        station,
        writer,
        Camera("bl7:cam1:", plant=plant, writer=writer, station=station),
        Ring("SR:", plant=plant),
        Axis("bl7:rot", plant=plant, name="angle", speed=180.0, units="degree"),
        Axis("bl7:hexapod:x", plant=plant, name="hexapod", speed=1.0, units="mm"),
        Axis("bl7:focus", plant=plant, name="focus", speed=4.0, units="mm"),
    )
    return {name: signal for group in groups for name, signal in group.pvdb.items()}


if __name__ == "__main__":
    logging.getLogger("caproto.ctx").setLevel(logging.CRITICAL)  # it complains of every beacon that nobody receives
    asyncio.run(start_server(signals(Path(sys.argv[1])), interfaces=["127.0.0.1"]))
