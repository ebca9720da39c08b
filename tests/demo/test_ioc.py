"""The beamline as control clients find it: over Channel Access, in a process of its own."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from baton.application.control import Control, ControlWriteRejectedError
from baton.demo.programs import read_file
from baton.infrastructure.actions.acquisition import stream
from baton.infrastructure.control.caproto_client import CaprotoClient
from baton.infrastructure.control.channel_access import ChannelAccess
from baton.infrastructure.wall_clock import WallClock
from tests.support.waiting import until


@pytest.fixture
async def control(ioc: None) -> AsyncIterator[Control]:
    client = ChannelAccess(CaprotoClient(), read_timeout=30)
    yield client
    await client.close()


async def value(control: Control, address: str) -> object:
    return (await control.read(address)).value


async def test_an_axis_is_confirmed_when_it_has_arrived(control: Control) -> None:
    await control.write("bl7:rot", 30.0)
    assert (await value(control, "bl7:rot.RBV"), await value(control, "bl7:rot.DMOV")) == (30.0, 1)


async def test_a_halted_axis_stands_still_on_the_way(control: Control) -> None:
    going = asyncio.create_task(control.write("bl7:hexapod:x", 5.0))

    async def is_moving() -> bool:
        return await value(control, "bl7:hexapod:x.DMOV") == 0

    await until(is_moving)
    await control.write("bl7:hexapod:x.STOP", 1)
    await going
    assert 0 <= float(str(await value(control, "bl7:hexapod:x.RBV"))) < 5


async def test_the_shutter_opens_in_a_searched_hutch_only(control: Control) -> None:
    with pytest.raises(ControlWriteRejectedError):
        await control.write("bl7:shutter", "Open")
    await control.write("PSS:B:SEARCH", "YES")
    assert await value(control, "PSS:B:PERMIT") == "YES"
    await control.write("bl7:shutter", "Open")
    assert await value(control, "bl7:shutter") == "Open"


async def test_a_stream_is_one_file_of_as_many_pictures_as_were_asked_for(control: Control, data: Path) -> None:
    await control.write("bl7:HDF1:FileName", "flats")
    await control.write("bl7:HDF1:FileNumber", 3)
    answer = await stream(control, WallClock(), {"detector": "bl7:cam1", "dwell": 0.01, "events": 4})
    assert answer == {"uri": (data / "flats_0003.h5").as_uri(), "events": 4}
    assert len(read_file(data / "flats_0003.h5")["pictures"]) == 4


async def test_a_single_picture_replaces_itself_and_says_how_everything_stood(control: Control, data: Path) -> None:
    told = {"HDF1:FileWriteMode": "Single", "HDF1:AutoSave": "Yes", "HDF1:FileName": "projection", "HDF1:FileNumber": 7}
    for name, said in {**told, "cam1:ImageMode": "Single", "rot": 12.0}.items():
        await control.write(f"bl7:{name}", said)
    for _ in "12":
        await control.write("bl7:cam1:Acquire", 1)
    assert await value(control, "bl7:cam1:Acquire") == "Done"
    (angle,), (current,) = (read_file(data / "projection_0007.h5")[name] for name in ("angles", "currents"))
    assert (angle, np.round(current)) == (12.0, 100.0)
    assert [name for name in os.listdir(data) if name.startswith("projection")] == ["projection_0007.h5"]


async def test_a_dumped_beam_is_gone_until_the_ring_is_filled(control: Control) -> None:
    await control.write("SR:BEAM", "Dumped")
    assert await value(control, "SR:CURRENT") == 0
    await control.write("SR:BEAM", "Stored")
    assert await value(control, "SR:CURRENT") == pytest.approx(100, abs=1)
