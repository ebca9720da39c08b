"""The built-in actions: acquire images where the axis stands, at points, along a sweep, or as a stream into a file."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any

from pydantic import JsonValue

from baton.application.clock import Timekeeper
from baton.application.control import Control, Quality, Reading, always_open
from baton.infrastructure.actions.parameters import Collect, Continuous, Discrete, Stream
from baton.infrastructure.area_detector import DONE, UNLIMITED, signal_of, writer_signal_of

POLL_INTERVAL = 0.05
"""Seconds between two looks at whether an acquisition is done."""
STOP_TIMEOUT = 5.0
"""Seconds that something has to confirm that it stopped."""


async def collect(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> Mapping[str, JsonValue]:
    """Acquire images where everything stands."""
    wanted = Collect.of(params)
    return {"repetitions": wanted.repetitions, **await _collected(control, time, wanted)}


async def discrete(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> Mapping[str, JsonValue]:
    """Acquire images at each point of an axis."""
    wanted = Discrete.of(params)
    state: Mapping[str, JsonValue] = {}
    for point in wanted.points:
        await _moved(control, wanted.axis, point)
        await time.sleep(wanted.wait)
        state = await _collected(control, time, wanted)
    return {"points": len(wanted.points), "repetitions": wanted.repetitions, **state}


async def continuous(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> Mapping[str, JsonValue]:
    """Acquire images while an axis sweeps."""
    wanted = Continuous.of(params)
    await _moved(control, wanted.axis, wanted.start)
    async with _velocity(control, wanted.axis, wanted.rate):
        await _prepared(control, wanted)
        acquire = signal_of(wanted.detector, "Acquire")
        async with _stopped_if_cut_short(control, {_halt(wanted.axis): 1, acquire: 0}):
            await _started(control, acquire)
            await control.write(wanted.axis, wanted.stop, wait=False)
            await _done(control, time, acquire)
    return {"start": wanted.start, "stop": wanted.stop, **await _state(control, wanted.detector)}


async def stream(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> Mapping[str, JsonValue]:
    """Record into a file, and say which; whatever happens, the recording is stopped."""
    wanted = Stream.of(params)
    acquire, capture = signal_of(wanted.detector, "Acquire"), writer_signal_of(wanted.detector, "Capture")
    await control.write(signal_of(wanted.detector, "AcquireTime"), wanted.dwell)
    await control.write(signal_of(wanted.detector, "ImageMode"), "Continuous")
    await control.write(writer_signal_of(wanted.detector, "FileWriteMode"), "Stream")
    await control.write(writer_signal_of(wanted.detector, "NumCapture"), wanted.events or UNLIMITED)
    try:
        await _started(control, capture)
        await _started(control, acquire)
        if wanted.duration is None:
            await _done(control, time, capture)
        else:
            await _passed(time, wanted.duration)
    finally:
        await _seen_through(_stop_in_turn(control, acquire, capture))
    recorded = await control.read(writer_signal_of(wanted.detector, "NumCaptured_RBV"))
    file = _text(await control.read(writer_signal_of(wanted.detector, "FullFileName_RBV")))
    return {"uri": PurePosixPath(file).as_uri() if file.startswith("/") else file, "events": recorded.value}


async def _moved(control: Control, axis: str, position: float) -> None:
    """Move an axis and wait until it is there; cut short on the way, it is halted."""
    async with _stopped_if_cut_short(control, {_halt(axis): 1}):
        await control.write(axis, position)


async def _collected(control: Control, time: Timekeeper, wanted: Collect) -> Mapping[str, JsonValue]:
    await _prepared(control, wanted)
    acquire = signal_of(wanted.detector, "Acquire")
    async with _stopped_if_cut_short(control, {acquire: 0}):
        await _started(control, acquire)
        await _done(control, time, acquire)
    return await _state(control, wanted.detector)


async def _prepared(control: Control, wanted: Collect) -> None:
    """Set trigger, exposure and count."""
    told = {
        "TriggerMode": wanted.trigger_mode,
        "TriggerSource": wanted.source,
        "TriggerPolarity": wanted.polarity,
        "AcquireTime": wanted.dwell,
        "ImageMode": "Multiple",
        "NumImages": wanted.repetitions,
    }
    for name, value in told.items():
        if value is not None:
            await control.write(signal_of(wanted.detector, name), value)


async def _started(control: Control, address: str) -> None:
    """Begin; the confirmation would come only with the end."""
    await control.write(address, 1, wait=False)


async def _done(control: Control, time: Timekeeper, address: str) -> None:
    """Until a signal says by its index that it is done; a reading of bad quality says nothing."""
    while True:
        await time.sleep(POLL_INTERVAL)
        reading = await control.read(address)
        if reading.quality is not Quality.BAD and (reading.value if reading.index is None else reading.index) == DONE:
            return


async def _passed(time: Timekeeper, seconds: float) -> None:
    end = time.now() + timedelta(seconds=seconds)
    while (left := (end - time.now()).total_seconds()) > 0:
        await time.sleep(min(POLL_INTERVAL, left))


async def _state(control: Control, detector: str) -> Mapping[str, JsonValue]:
    reading = await control.read(signal_of(detector, "DetectorState_RBV"))
    return {"detector": detector, "state": reading.value, "state_quality": reading.quality.value}


@asynccontextmanager
async def _stopped_if_cut_short(control: Control, stops: Mapping[str, int]) -> AsyncIterator[None]:
    """Leave nothing running that was set going here, if it does not come to its end; no stop waits for another."""
    try:
        yield
    except BaseException:
        await _seen_through(asyncio.gather(*(_leave(control, address, value) for address, value in stops.items())))
        raise


@asynccontextmanager
async def _velocity(control: Control, axis: str, rate: float | None) -> AsyncIterator[None]:
    """Let an axis move at a rate, and at its own velocity again afterwards."""
    if rate is None:
        yield
        return
    before = await control.read(f"{axis}.VELO")
    try:
        await control.write(f"{axis}.VELO", rate)
        yield
    finally:
        await _seen_through(_leave(control, f"{axis}.VELO", before.value))


async def _leave(control: Control, address: str, value: Any) -> None:
    """Leave a signal at a value as well as can be; what goes wrong with it must not hide why."""
    with suppress(Exception):
        await control.write(address, value, timeout=STOP_TIMEOUT, fence=always_open)


async def _stop_in_turn(control: Control, *addresses: str) -> None:
    for address in addresses:
        await _leave(control, address, 0)


async def _seen_through(work: Awaitable[Any]) -> None:
    """Carry something to its end, however often this is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as cancellation:
            cancelled = cancellation
    if cancelled is not None:
        raise cancelled


def _halt(axis: str) -> str:
    return f"{axis}.STOP"


def _text(reading: Reading) -> str:
    """A text, which some servers give as the codes of its characters."""
    if isinstance(reading.value, str):
        return reading.value
    return bytes(reading.value).split(b"\0")[0].decode(errors="replace")
