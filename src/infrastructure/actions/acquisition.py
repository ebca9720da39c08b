"""The built-in actions and their parameters: acquire images in place, at points, along a sweep, or as a stream to a file,
and wait for what was moved to settle."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, ValidationError, model_validator

from baton.application.conduct import actions
from baton.application.control import Control, Quality, Timekeeper, always_open
from baton.application.plant import SignalAddress
from baton.domain.shared.action_signals import ActionForecast
from baton.infrastructure.control.area_detector import DONE, UNLIMITED, camera_signal, writer_signal

POLL_SECONDS = 0.05
Word = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
Seconds = Annotated[float, Field(gt=0)]


class ActionParameters(BaseModel):
    """The parameters of an action; an unknown one is refused, and so is a number given as text."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @classmethod
    def parse(cls, params: Mapping[str, Any]) -> Self:
        """Return the parameters, or raise InvalidActionParametersError."""
        try:
            return cls.model_validate(dict(params))
        except ValidationError as error:
            faults = (
                f"{'.'.join(map(str, fault['loc'])) or 'together'}: {fault['msg'].removeprefix('Value error, ')}"
                for fault in error.errors(include_url=False, include_input=False)
            )
            raise actions.InvalidActionParametersError(f"The parameters cannot be used: {'; '.join(faults)}.") from error


class SettleParameters(ActionParameters):
    """A wait of `seconds`."""

    seconds: Seconds


class AcquisitionParameters(ActionParameters):
    """The detector of an acquisition, and the `dwell` of an image in seconds."""

    detector: Annotated[SignalAddress, Field(description="The address of the camera, such as bl7:cam1.")]
    dwell: Annotated[Seconds, Field(description="Seconds of one image.")]


class CollectParameters(AcquisitionParameters):
    """An acquisition of `repetitions` images of `dwell` seconds, each when it is triggered."""

    trigger_mode: Literal["Internal", "ExternalEdge", "ExternalLevel"]
    polarity: Word | None = None
    source: Word | None = None
    repetitions: Annotated[int | None, Field(ge=1, description="The number of images, always needed.")] = None

    @classmethod
    def parse(cls, params: Mapping[str, Any]) -> Self:
        given = super().parse(params)
        if given.repetitions is None:
            raise actions.UnboundedAcquisitionError("The acquisition has no end; give repetitions, 1 or more.")
        if given.trigger_mode != "Internal" and given.source is None:
            unwired = f"A trigger {given.trigger_mode} comes from outside, and no source is named; give source."
            raise actions.UnwiredExternalTriggerError(unwired)
        return given

    @model_validator(mode="after")
    def _check_trigger(self) -> Self:
        if (self.trigger_mode == "ExternalEdge") != (self.polarity is not None):
            raise ValueError("give a polarity with the trigger mode ExternalEdge, and with no other")
        if self.trigger_mode == "Internal" and self.source is not None:
            raise ValueError("a source is for external triggers; leave it out")
        return self


class DiscreteParameters(CollectParameters):
    """An acquisition at each of several points of an axis, `wait` seconds after the axis arrived."""

    axis: SignalAddress
    points: Annotated[list[float], Field(min_length=1)]
    wait: Annotated[float, Field(ge=0, description="Seconds after the axis arrived.")]


class ContinuousParameters(CollectParameters):
    """An acquisition while an axis sweeps from start to stop, at a rate or at its own velocity."""

    axis: SignalAddress
    start: float
    stop: float
    rate: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _check_distance(self) -> Self:
        if self.start == self.stop:
            raise ValueError("start and stop are the same; a sweep goes somewhere")
        return self


class StreamParameters(AcquisitionParameters):
    """A recording to a file, of a number of events or for a number of seconds."""

    events: Annotated[int, Field(ge=1)] | None = None
    duration: Seconds | None = None

    @model_validator(mode="after")
    def _check_end(self) -> Self:
        if (self.events is None) == (self.duration is None):
            raise ValueError("give exactly one of events and duration")
        return self


Writes = tuple[tuple[str, Any], ...]


def forecast_settle(params: Mapping[str, Any]) -> ActionForecast:
    """Return what `settle` would do."""
    return ActionForecast(SettleParameters.parse(params).seconds)


def forecast_collect(params: Mapping[str, Any]) -> ActionForecast:
    """Return what `collect` would do."""
    wanted = CollectParameters.parse(params)
    return ActionForecast(exposure_seconds(wanted), moves=acquisition_writes(wanted))


def forecast_discrete(params: Mapping[str, Any]) -> ActionForecast:
    """Return what `discrete` would do; the time of the moves between its points is not known."""
    wanted = DiscreteParameters.parse(params)
    seconds = len(wanted.points) * (wanted.wait + (exposure_seconds(wanted) or 0.0))
    at_points = [((wanted.axis, point), *acquisition_writes(wanted)) for point in wanted.points]
    return ActionForecast(
        seconds if wanted.trigger_mode == "Internal" else None, moves=tuple(one for each in at_points for one in each)
    )


def forecast_continuous(params: Mapping[str, Any]) -> ActionForecast:
    """Return what `continuous` would do, but for the velocity that it sets back to what it was."""
    wanted = ContinuousParameters.parse(params)
    rate = () if wanted.rate is None else ((f"{wanted.axis}.VELO", wanted.rate),)
    moves = ((wanted.axis, wanted.start), *rate, *acquisition_writes(wanted), (wanted.axis, wanted.stop))
    return ActionForecast(exposure_seconds(wanted), moves=moves)


def forecast_stream(params: Mapping[str, Any]) -> ActionForecast:
    """Return what `stream` would do; the file is named by the camera."""
    wanted = StreamParameters.parse(params)
    seconds = (wanted.events or 0) * wanted.dwell if wanted.duration is None else wanted.duration
    return ActionForecast(seconds, moves=(*stream_writes(wanted), *stream_ends(wanted.detector)))


def exposure_seconds(wanted: CollectParameters) -> float | None:
    """Return how long the images take that nothing outside triggers."""
    return wanted.dwell * (wanted.repetitions or 0) if wanted.trigger_mode == "Internal" else None


def camera_settings(wanted: CollectParameters) -> Writes:
    """Return what is written to set the camera up."""
    trigger = {"TriggerMode": wanted.trigger_mode, "TriggerSource": wanted.source, "TriggerPolarity": wanted.polarity}
    images = {"AcquireTime": wanted.dwell, "ImageMode": "Multiple", "NumImages": wanted.repetitions}
    written = (trigger | images).items()
    return tuple((camera_signal(wanted.detector, name), value) for name, value in written if value is not None)


def acquisition_writes(wanted: CollectParameters) -> Writes:
    """Return what is written to acquire images."""
    return (*camera_settings(wanted), (camera_signal(wanted.detector, "Acquire"), 1))


def stream_writes(wanted: StreamParameters) -> Writes:
    """Return what is written to begin a recording."""
    detector = wanted.detector
    return (
        (camera_signal(detector, "AcquireTime"), wanted.dwell),
        (camera_signal(detector, "ImageMode"), "Continuous"),
        (writer_signal(detector, "FileWriteMode"), "Stream"),
        (writer_signal(detector, "NumCapture"), wanted.events or UNLIMITED),
        (writer_signal(detector, "Capture"), 1),
        (camera_signal(detector, "Acquire"), 1),
    )


def stream_ends(detector: str) -> Writes:
    """Return what is written to end a recording."""
    return ((camera_signal(detector, "Acquire"), 0), (writer_signal(detector, "Capture"), 0))


@actions.touches(rehearse=forecast_settle, parameters=SettleParameters.model_json_schema)
async def settle(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> Mapping[str, JsonValue]:
    """Wait, and touch nothing."""
    wanted = SettleParameters.parse(params)
    await time.sleep(wanted.seconds)
    return {"seconds": wanted.seconds}


@actions.touches(writes=("detector",), rehearse=forecast_collect, parameters=CollectParameters.model_json_schema)
async def collect(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> Mapping[str, JsonValue]:
    """Acquire images without moving anything."""
    wanted = CollectParameters.parse(params)
    return {"repetitions": wanted.repetitions, **await _acquire(control, time, wanted)}


@actions.touches(writes=("axis", "detector"), rehearse=forecast_discrete, parameters=DiscreteParameters.model_json_schema)
async def discrete(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> Mapping[str, JsonValue]:
    """Acquire images at each point of an axis."""
    wanted = DiscreteParameters.parse(params)
    state: Mapping[str, JsonValue] = {}
    for point in wanted.points:
        await _move(control, wanted.axis, point)
        await time.sleep(wanted.wait)
        state = await _acquire(control, time, wanted)
    return {"points": len(wanted.points), "repetitions": wanted.repetitions, **state}


@actions.touches(
    writes=("axis", "detector"), rehearse=forecast_continuous, parameters=ContinuousParameters.model_json_schema
)
async def continuous(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> Mapping[str, JsonValue]:
    """Acquire images while an axis sweeps."""
    wanted = ContinuousParameters.parse(params)
    await _move(control, wanted.axis, wanted.start)
    async with _velocity(control, wanted.axis, wanted.rate):
        await _set_up_camera(control, wanted)
        acquire = camera_signal(wanted.detector, "Acquire")
        async with _stop_on_failure(control, {f"{wanted.axis}.STOP": 1, acquire: 0}):
            await _start(control, acquire)
            await control.write(wanted.axis, wanted.stop, wait=False)
            await _wait_until_done(control, time, acquire)
    return {"start": wanted.start, "stop": wanted.stop, **await _camera_state(control, wanted.detector)}


@actions.touches(
    writes=("detector",),
    derived_writes=lambda params: [writer_signal(params["detector"], "").rstrip(":")],
    rehearse=forecast_stream,
    parameters=StreamParameters.model_json_schema,
)
async def stream(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> Mapping[str, JsonValue]:
    """Record into a file and return its address; the recording is stopped whatever happens."""
    wanted = StreamParameters.parse(params)
    detector = wanted.detector
    *settings, (capture, _), (acquire, _) = stream_writes(wanted)
    for address, value in settings:
        await control.write(address, value)

    async def stop() -> None:
        for address, value in stream_ends(detector):
            await _write_best_effort(control, address, value)

    try:
        await _start(control, capture)
        await _start(control, acquire)
        if wanted.duration is None:
            await _wait_until_done(control, time, capture)
        else:
            end = time.now() + timedelta(seconds=wanted.duration)
            while (left := (end - time.now()).total_seconds()) > 0:
                await time.sleep(min(POLL_SECONDS, left))
    finally:
        await _finish_despite_cancellation(stop())
    recorded = await control.read(writer_signal(detector, "NumCaptured_RBV"))
    file = (await control.read(writer_signal(detector, "FullFileName_RBV"))).value
    if not isinstance(file, str):  # some servers give a text as the codes of its characters
        file = bytes(file).split(b"\0")[0].decode(errors="replace")
    return {"uri": PurePosixPath(file).as_uri() if file.startswith("/") else file, "events": recorded.value}


BUILT_IN: Mapping[str, actions.ActionBody] = {
    body.__name__: body for body in (collect, discrete, continuous, stream, settle)
}


async def _move(control: Control, axis: str, position: float) -> None:
    async with _stop_on_failure(control, {f"{axis}.STOP": 1}):
        await control.write(axis, position)


async def _acquire(control: Control, time: Timekeeper, wanted: CollectParameters) -> Mapping[str, JsonValue]:
    await _set_up_camera(control, wanted)
    acquire = camera_signal(wanted.detector, "Acquire")
    async with _stop_on_failure(control, {acquire: 0}):
        await _start(control, acquire)
        await _wait_until_done(control, time, acquire)
    return await _camera_state(control, wanted.detector)


async def _set_up_camera(control: Control, wanted: CollectParameters) -> None:
    for address, value in camera_settings(wanted):
        await control.write(address, value)


async def _start(control: Control, address: str) -> None:
    """Start without waiting: the confirmation comes only with the end."""
    await control.write(address, 1, wait=False)


async def _wait_until_done(control: Control, time: Timekeeper, address: str) -> None:
    while True:
        await time.sleep(POLL_SECONDS)
        reading = await control.read(address)
        if reading.quality is not Quality.BAD and (reading.value if reading.index is None else reading.index) == DONE:
            return


async def _camera_state(control: Control, detector: str) -> Mapping[str, JsonValue]:
    reading = await control.read(camera_signal(detector, "DetectorState_RBV"))
    return {"detector": detector, "state": reading.value, "state_quality": reading.quality.value}


@asynccontextmanager
async def _stop_on_failure(control: Control, stops: Mapping[str, int]) -> AsyncIterator[None]:
    """Write all stop signals at once when the body fails or is cancelled, so that no motion it started continues."""
    try:
        yield
    except BaseException:
        writes = (_write_best_effort(control, address, value) for address, value in stops.items())
        await _finish_despite_cancellation(asyncio.gather(*writes))
        raise


@asynccontextmanager
async def _velocity(control: Control, axis: str, rate: float | None) -> AsyncIterator[None]:
    """Set an axis to a rate, and back to its own velocity afterwards."""
    if rate is None:
        yield
        return
    before = await control.read(f"{axis}.VELO")
    try:
        await control.write(f"{axis}.VELO", rate)
        yield
    finally:
        await _finish_despite_cancellation(_write_best_effort(control, f"{axis}.VELO", before.value))


async def _write_best_effort(control: Control, address: str, value: Any) -> None:
    """Write past the fence and ignore a failure, which must not hide why the action stops."""
    with suppress(Exception):
        await control.write(address, value, timeout=5.0, fence=always_open)


async def _finish_despite_cancellation(work: Awaitable[Any]) -> None:
    """Run something to its end however often this is cancelled meanwhile, then raise the cancellation."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as cancellation:
            cancelled = cancellation
    if cancelled is not None:
        raise cancelled
