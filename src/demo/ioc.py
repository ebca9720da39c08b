"""The beamline as an EPICS server: `python -m baton.demo.ioc <directory>`, a soft IOC in a process of its own.

Signals are named as areaDetector and motor records name theirs, so that what works it here works it on a real beamline.
"""

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from caproto import ChannelType, SkipWrite
from caproto.asyncio.server import Context
from caproto.server import PVGroup, pvproperty

from baton.demo.identity import LOOPBACK
from baton.demo.optics import FULL_CURRENT, Beamline, Picture, sharpness

TICK = 0.01
"""Seconds between two steps of what moves."""
OFF, ON = 0, 1


def choice(name: str, *labels: str, **more: Any) -> Any:
    """A signal that is one of several words, the first one to begin with."""
    return pvproperty(name=name, value=labels[0], enum_strings=list(labels), dtype=ChannelType.ENUM, **more)


class Axis(PVGroup):
    """An axis with the fields of a motor record; a write to it is confirmed when it has arrived."""

    goal = pvproperty(name="", value=0.0, precision=4, dtype=ChannelType.DOUBLE)
    readback = pvproperty(name=".RBV", value=0.0, precision=4, dtype=ChannelType.DOUBLE, read_only=True)
    velocity = pvproperty(name=".VELO", value=1.0, precision=4, dtype=ChannelType.DOUBLE)
    done = pvproperty(name=".DMOV", value=ON)
    halt = pvproperty(name=".STOP", value=OFF)

    def __init__(self, prefix: str, *, plant: Beamline, name: str, speed: float, units: str, **more: Any) -> None:
        super().__init__(prefix, **more)
        self._plant, self._name = plant, name
        self._halted = False
        self.velocity._data["value"] = speed
        for signal in (self.goal, self.readback):
            signal._data["value"] = getattr(plant, name)
            signal._data["units"] = units

    @goal.putter
    async def goal(self, instance: Any, value: float) -> None:
        self._halted = False
        await self.done.write(OFF)
        while not self._halted and (left := value - getattr(self._plant, self._name)):
            reach = self.velocity.value * TICK
            setattr(self._plant, self._name, value if abs(left) <= reach else self.readback.value + reach * np.sign(left))
            await self.readback.write(getattr(self._plant, self._name))
            await asyncio.sleep(TICK)
        await self.done.write(ON)

    @halt.putter
    async def halt(self, instance: Any, value: int) -> int:
        self._halted = bool(value)
        return OFF


class Writer(PVGroup):
    """The file writer behind a camera: each picture into a file of its own, or a stream of them into one."""

    mode = choice("FileWriteMode", "Single", "Capture", "Stream")
    capture = choice("Capture", "Done", "Capture")
    wanted = pvproperty(name="NumCapture", value=1)
    captured = pvproperty(name="NumCaptured_RBV", value=0, read_only=True)
    saving = choice("AutoSave", "No", "Yes")
    file = pvproperty(name="FileName", value="picture", dtype=ChannelType.STRING)
    number = pvproperty(name="FileNumber", value=0)
    full_name = pvproperty(name="FullFileName_RBV", value="", max_length=500, dtype=ChannelType.CHAR, read_only=True)

    def __init__(self, prefix: str, *, plant: Beamline, directory: Path, **more: Any) -> None:
        super().__init__(prefix, **more)
        self._plant, self._directory = plant, directory
        self._kept: list[tuple[Picture, float, float]] = []

    async def take(self, picture: Picture) -> None:
        """Keep a picture, if the writer is told to, with what the beamline was like when it was taken."""
        taken = (picture, self._plant.angle, self._plant.current)
        if self.mode.value == "Single" and self.saving.value == "Yes":
            await self._write([taken])
        elif self.mode.value == "Stream" and self.capture.value == "Capture":
            self._kept.append(taken)
            await self.captured.write(len(self._kept))
            if len(self._kept) == self.wanted.value:
                await self.capture.write("Done")

    @capture.putter
    async def capture(self, instance: Any, value: str) -> str:
        if value == "Capture":
            self._kept = []
            await self.captured.write(0)
        elif self._kept:
            await self._write(self._kept)
            self._kept = []
        return value

    async def _write(self, taken: list[tuple[Picture, float, float]]) -> None:
        path = self._directory / f"{self.file.value}_{self.number.value:04}.h5"
        pictures, angles, currents = zip(*taken, strict=True)
        await asyncio.to_thread(save, path, np.array(pictures), np.array(angles), np.array(currents))
        await self.full_name.write(str(path))


def save(path: Path, pictures: Picture, angles: Any, currents: Any) -> None:
    """Write a file whole, or not at all; one that is there already is replaced."""
    draft = path.with_suffix(".part")
    with h5py.File(draft, "w") as file:
        file["pictures"], file["angles"], file["currents"] = pictures, angles, currents
    draft.replace(path)


class Camera(PVGroup):
    """A camera with the signals of areaDetector; a write to `Acquire` is confirmed when the pictures are taken."""

    acquire = choice("Acquire", "Done", "Acquire")
    exposure = pvproperty(name="AcquireTime", value=0.02, dtype=ChannelType.DOUBLE, units="s")
    image_mode = choice("ImageMode", "Single", "Multiple", "Continuous")
    count = pvproperty(name="NumImages", value=1)
    trigger_mode = choice("TriggerMode", "Internal", "ExternalEdge", "ExternalLevel")
    trigger_source = pvproperty(name="TriggerSource", value="", dtype=ChannelType.STRING)
    trigger_polarity = pvproperty(name="TriggerPolarity", value="", dtype=ChannelType.STRING)
    state = choice("DetectorState_RBV", "Idle", "Acquire", read_only=True)
    counter = pvproperty(name="ArrayCounter_RBV", value=0, read_only=True)

    def __init__(self, prefix: str, *, plant: Beamline, writer: Writer, sharpness: Any, **more: Any) -> None:
        super().__init__(prefix, **more)
        self._plant, self._writer, self._sharpness = plant, writer, sharpness
        self._chance = np.random.default_rng(7)
        self._busy = asyncio.Lock()
        self._stopped = False

    @acquire.putter
    async def acquire(self, instance: Any, value: str) -> None:
        self._stopped = value == "Done"
        if not self._stopped:
            async with self._busy:
                await self.acquire.write("Acquire", verify_value=False)
                await self.state.write("Acquire")
                await self._taken()
                await self.state.write("Idle")
                await self.acquire.write("Done", verify_value=False)
        raise SkipWrite

    async def _taken(self) -> None:
        """Take pictures until there are enough, or until told to stop."""
        taken = 0
        while not self._stopped and not (self.image_mode.value != "Continuous" and taken == self._wanted):
            await asyncio.sleep(self.exposure.value)
            picture = self._plant.picture(self.exposure.value, self._chance)
            taken += 1
            await self._writer.take(picture)
            await self._sharpness.write(sharpness(picture))
            await self.counter.write(self.counter.value + 1)

    @property
    def _wanted(self) -> int:
        return int(self.count.value) if self.image_mode.value == "Multiple" else 1


class Ring(PVGroup):
    """The storage ring: its current decays, and is gone when the beam is dumped."""

    current = pvproperty(name="CURRENT", value=FULL_CURRENT, units="mA", precision=2, read_only=True)
    beam = choice("BEAM", "Stored", "Dumped")

    def __init__(self, prefix: str, *, plant: Beamline, **more: Any) -> None:
        super().__init__(prefix, **more)
        self._plant = plant

    @beam.putter
    async def beam(self, instance: Any, value: str) -> str:
        self._plant.current = FULL_CURRENT if value == "Stored" else 0.0
        await self.current.write(self._plant.current)
        return value

    @current.startup
    async def current(self, instance: Any, _: Any) -> None:
        while True:
            await asyncio.sleep(1)
            self._plant.current *= 0.9999
            await instance.write(self._plant.current)


class Station(PVGroup):
    """Shutter, sample changer, and what is measured in the hutch."""

    shutter = choice("shutter", "Closed", "Open")
    sample = choice("sample", "In", "Out")
    temperature = pvproperty(name="hutch:temperature", value=24.2, units="degC", precision=2, read_only=True)
    sharpness = pvproperty(name="Stats1:Sharpness_RBV", value=0.0, precision=3, read_only=True)

    def __init__(self, prefix: str, *, plant: Beamline, permit: Any, **more: Any) -> None:
        super().__init__(prefix, **more)
        self._plant, self._permit = plant, permit

    @shutter.putter
    async def shutter(self, instance: Any, value: str) -> str:
        if value == "Open" and self._permit.value == "NO":
            raise PermissionError("the hutch is not permitted")
        await asyncio.sleep(0.1)
        self._plant.shutter_open = value == "Open"
        return value

    @sample.putter
    async def sample(self, instance: Any, value: str) -> str:
        await asyncio.sleep(0.3)
        self._plant.sample_in = value == "In"
        return value


class Interlock(PVGroup):
    """The hutch's personnel safety system: a completed search gives the permit, and taking it back takes it."""

    permit = choice("PERMIT", "NO", "YES", read_only=True)
    search = choice("SEARCH", "NO", "YES")

    @search.putter
    async def search(self, instance: Any, value: str) -> str:
        await self.permit.write(value)
        return value


def signals(directory: Path) -> dict[str, Any]:
    """Everything that is served, by its name; pictures go to this directory."""
    plant = Beamline()
    interlock = Interlock("PSS:B:")
    station = Station("bl7:", plant=plant, permit=interlock.permit)
    writer = Writer("bl7:HDF1:", plant=plant, directory=directory)
    groups = (
        interlock,
        station,
        writer,
        Camera("bl7:cam1:", plant=plant, writer=writer, sharpness=station.sharpness),
        Ring("SR:", plant=plant),
        Axis("bl7:rot", plant=plant, name="angle", speed=180.0, units="degree"),
        Axis("bl7:hexapod:x", plant=plant, name="hexapod", speed=1.0, units="mm"),
        Axis("bl7:focus", plant=plant, name="focus", speed=4.0, units="mm"),
    )
    return {name: signal for group in groups for name, signal in group.pvdb.items()}


async def serve(directory: Path) -> None:
    """Serve on loopback alone, for ever."""
    await Context(signals(directory), [LOOPBACK]).run()


if __name__ == "__main__":
    logging.getLogger("caproto.ctx").setLevel(logging.CRITICAL)  # it complains of every beacon that nobody listens to
    asyncio.run(serve(Path(sys.argv[1])))
