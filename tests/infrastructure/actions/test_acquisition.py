"""The built-in actions on a simulated camera: what they do, what they refuse, and what they leave behind."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from baton.application.conduct.actions import (
    ActionBody,
    ActionRefusedError,
    InvalidActionParametersError,
    UnboundedAcquisitionError,
    UnwiredExternalTriggerError,
    declared_signals,
)
from baton.application.control import (
    ControlNotConnectedError,
    ControlTimeoutError,
    ControlWriteRejectedError,
    FencedControl,
    Quality,
    Reading,
    ReadingKind,
    always_open,
)
from baton.application.plant import SimulatedDetector, SimulatedMotor
from baton.infrastructure.actions.acquisition import collect, continuous, discrete, settle, stream
from baton.infrastructure.control.area_detector import Detector
from baton.infrastructure.control.devices import Motor
from baton.infrastructure.control.simulator import SimulatedFault, Simulator
from tests.support.application.rehearsals import WriteList
from tests.support.fast_clock import SimulatedTime

CAMERA, WRITER, AXIS = "bl7:cam1", "bl7:HDF1", "bl7:stage:theta"
COLLECT: dict[str, Any] = {"detector": CAMERA, "trigger_mode": "Internal", "repetitions": 4, "dwell": 0.25}
DISCRETE = {**COLLECT, "axis": AXIS, "points": [0, 5.5, -2], "wait": 0.5}
CONTINUOUS = {**COLLECT, "axis": AXIS, "start": 10.0, "stop": 0.0, "rate": 10.0}
STREAM: dict[str, Any] = {"detector": CAMERA, "dwell": 0.1, "events": 8}
EDGE = {"trigger_mode": "ExternalEdge", "polarity": "Rising", "source": "bl7:zebra"}
LEVEL = {"trigger_mode": "ExternalLevel", "source": "bl7:zebra"}
ACTIONS: list[tuple[ActionBody, dict[str, Any]]] = [
    (collect, COLLECT),
    (discrete, DISCRETE),
    (continuous, CONTINUOUS),
    (stream, STREAM),
]


def stage(velocity: float, upper: float | None = None) -> Motor:
    return Motor(SimulatedMotor(address=AXIS, velocity=velocity, upper=upper))


class Beamline:
    """A camera and a rotary stage, in simulated time."""

    def __init__(self) -> None:
        self.time = SimulatedTime()
        self.plant = Simulator(devices=[Detector(SimulatedDetector(address=CAMERA)), stage(20.0)], time=self.time)
        self.witness = FencedControl(self.plant, always_open)

    def do(self, action: ActionBody, params: dict[str, Any]) -> Awaitable[Any]:
        return action(self.witness, self.time, params)

    async def value(self, address: str) -> Any:
        return (await self.plant.read(address)).value

    async def start_sweep_with_silent_camera(self) -> "asyncio.Future[Any]":
        """A sweep under way whose camera confirms nothing any more."""
        sweeping = asyncio.ensure_future(self.do(continuous, {**CONTINUOUS, "stop": -100.0, "repetitions": 100}))
        await self.time.sleep(0.5 + 0.3)
        self.plant.simulate_fault(f"{CAMERA}:Acquire", SimulatedFault.SILENT)
        return sweeping

    @property
    def writes(self) -> dict[str, int]:
        return dict(self.plant.writes)

    @property
    def acquisitions(self) -> int:
        return self.plant.writes[f"{CAMERA}:Acquire"]


@pytest.fixture
def beamline() -> Beamline:
    return Beamline()


class TestSettle:
    async def test_it_waits_so_many_seconds(self, beamline: Beamline) -> None:
        assert await beamline.do(settle, {"seconds": 2.5}) == {"seconds": 2.5}
        assert beamline.time.elapsed_seconds == pytest.approx(2.5)

    async def test_it_needs_a_time(self, beamline: Beamline) -> None:
        with pytest.raises(InvalidActionParametersError, match="greater than 0"):
            await beamline.do(settle, {"seconds": 0})


class TestForecast:
    @pytest.mark.parametrize(("action", "params"), ACTIONS)
    async def test_it_says_what_it_will_write(self, beamline: Beamline, action: ActionBody, params: dict[str, Any]) -> None:
        """A rate is set back in the end to what it was before, which nobody knows beforehand."""
        signals = declared_signals(action)
        assert signals is not None
        assert signals.rehearse is not None
        said, written = signals.rehearse(params), WriteList(beamline.plant)
        await action(written, beamline.time, params)
        expected = [*said.moves, *([(f"{AXIS}.VELO", 20.0)] if action is continuous else [])]
        assert written.writes == expected
        assert said.seconds is not None
        assert said.seconds <= beamline.time.elapsed_seconds + 0.001

    async def test_it_says_what_it_would_refuse(self) -> None:
        signals = declared_signals(collect)
        assert signals is not None
        assert signals.rehearse is not None
        said = signals.rehearse({**COLLECT, "repetitions": None})
        assert said.refusal is not None
        assert said.refusal[0] == "UnboundedAcquisitionError"


class TestCollect:
    async def test_it_takes_so_many_images_of_so_many_seconds(self, beamline: Beamline) -> None:
        said = await beamline.do(collect, COLLECT)
        assert said == {"detector": CAMERA, "repetitions": 4, "state": "Idle", "state_quality": "Good"}
        assert beamline.time.elapsed_seconds == pytest.approx(1.0, abs=0.06)
        assert await beamline.value(f"{CAMERA}:NumImagesCounter_RBV") == 4
        assert beamline.acquisitions == 1

    @pytest.mark.parametrize("trigger", [EDGE, LEVEL])
    async def test_an_external_trigger_is_wired(self, beamline: Beamline, trigger: dict[str, str]) -> None:
        await beamline.do(collect, {**COLLECT, **trigger})
        wired = [await beamline.value(f"{CAMERA}:{name}") for name in ("TriggerMode", "TriggerSource", "TriggerPolarity")]
        assert wired == [trigger["trigger_mode"], "bl7:zebra", trigger.get("polarity", "")]

    async def test_done_is_judged_by_the_index_whatever_the_label_says(self, beamline: Beamline) -> None:
        acquiring = asyncio.ensure_future(beamline.do(collect, COLLECT))
        await beamline.time.sleep(0.2)
        odd = Reading(value="Beschäftigt", index=1, kind=ReadingKind.CATEGORICAL)
        beamline.plant.set_reading(f"{CAMERA}:Acquire", odd)
        await beamline.time.sleep(10)
        assert not acquiring.done()
        beamline.plant.set_reading(f"{CAMERA}:Acquire", Reading(value="Fertig", index=0, kind=ReadingKind.CATEGORICAL))
        await acquiring

    async def test_bad_quality_blocks_the_judgement_and_an_alarm_does_not(self, beamline: Beamline) -> None:
        beamline.plant.simulate_fault(f"{CAMERA}:Acquire", SimulatedFault.BAD)
        acquiring = asyncio.ensure_future(beamline.do(collect, COLLECT))
        await beamline.time.sleep(10)
        assert not acquiring.done()
        beamline.plant.simulate_fault(f"{CAMERA}:Acquire", None)
        done = Reading(value="Done", index=0, kind=ReadingKind.CATEGORICAL, quality=Quality.UNCERTAIN)
        beamline.plant.set_reading(f"{CAMERA}:Acquire", done)
        await acquiring


class TestDiscrete:
    async def test_each_point_is_reached_before_its_images_are_taken(self, beamline: Beamline) -> None:
        said = await beamline.do(discrete, DISCRETE)
        assert (said["points"], said["state"]) == (3, "Idle")
        assert beamline.writes[AXIS] == beamline.acquisitions == 3
        assert await beamline.value(f"{AXIS}.RBV") == -2
        travelling = (5.5 + 7.5) / 20
        assert beamline.time.elapsed_seconds == pytest.approx(3 * (0.5 + 1.0) + travelling, abs=0.3)

    @pytest.mark.parametrize(("after", "position"), [(0.1, 2), (0.3 + 0.5 + 1.0 + 0.1, 8)])
    async def test_cancelled_on_the_way_to_a_point_it_halts_the_axis(
        self, beamline: Beamline, after: float, position: float
    ) -> None:
        acting = asyncio.ensure_future(beamline.do(discrete, {**DISCRETE, "points": [6, 60]}))
        await beamline.time.sleep(after)
        assert await beamline.value(f"{AXIS}.MOVN") == 1
        acting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await acting
        assert await beamline.value(f"{AXIS}.MOVN") == 0
        assert await beamline.value(f"{AXIS}.RBV") == pytest.approx(position, abs=3)

    async def test_a_point_that_is_not_reached_in_time_halts_the_axis(self, beamline: Beamline) -> None:
        beamline.plant.add(stage(0.1))
        with pytest.raises(ControlTimeoutError, match=AXIS):
            await beamline.do(discrete, {**DISCRETE, "points": [60]})
        assert await beamline.value(f"{AXIS}.MOVN") == 0

    async def test_a_point_that_cannot_be_reached_ends_it(self, beamline: Beamline) -> None:
        beamline.plant.add(stage(20.0, upper=5))
        with pytest.raises(ControlWriteRejectedError):
            await beamline.do(discrete, DISCRETE)
        assert beamline.acquisitions == 1


class TestContinuous:
    async def test_images_are_taken_while_the_axis_sweeps(self, beamline: Beamline) -> None:
        said = await beamline.do(continuous, CONTINUOUS)
        assert (said["start"], said["stop"], said["state"]) == (10.0, 0.0, "Idle")
        assert await beamline.value(f"{AXIS}.RBV") == pytest.approx(0, abs=1)
        assert beamline.acquisitions == 1
        assert beamline.time.elapsed_seconds == pytest.approx(0.5 + 1.0, abs=0.15)

    async def test_the_axis_has_its_own_velocity_again_afterwards(self, beamline: Beamline) -> None:
        await beamline.do(continuous, CONTINUOUS)
        assert await beamline.value(f"{AXIS}.VELO") == 20

    async def test_without_a_rate_the_velocity_is_left_alone(self, beamline: Beamline) -> None:
        await beamline.do(continuous, {name: value for name, value in CONTINUOUS.items() if name != "rate"})
        assert f"{AXIS}.VELO" not in beamline.witness.touched

    async def test_cut_short_it_stops_camera_and_axis(self, beamline: Beamline) -> None:
        sweeping = asyncio.ensure_future(beamline.do(continuous, {**CONTINUOUS, "repetitions": 100}))
        await beamline.time.sleep(0.5 + 0.3)
        sweeping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sweeping
        assert await beamline.value(f"{CAMERA}:Acquire") == "Done"
        assert await beamline.value(f"{AXIS}.DMOV") == 1
        assert await beamline.value(f"{AXIS}.RBV") == pytest.approx(7, abs=1)
        assert await beamline.value(f"{AXIS}.VELO") == 20

    async def test_cancelled_on_the_way_to_the_start_it_halts_the_axis(self, beamline: Beamline) -> None:
        acting = asyncio.ensure_future(beamline.do(continuous, CONTINUOUS))
        await beamline.time.sleep(0.2)
        acting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await acting
        assert await beamline.value(f"{AXIS}.MOVN") == 0
        assert await beamline.value(f"{AXIS}.RBV") == pytest.approx(4, abs=1.5)
        assert beamline.acquisitions == 0

    async def test_the_axis_is_halted_while_a_silent_camera_is_still_waited_for(self, beamline: Beamline) -> None:
        sweeping = await beamline.start_sweep_with_silent_camera()
        sweeping.cancel()
        await beamline.time.sleep(0.1)
        assert not sweeping.done()
        assert await beamline.value(f"{AXIS}.MOVN") == 0
        with pytest.raises(asyncio.CancelledError):
            await sweeping

    async def test_cancelled_again_while_a_silent_camera_is_waited_for_it_leaves_nothing_running(
        self, beamline: Beamline
    ) -> None:
        sweeping = await beamline.start_sweep_with_silent_camera()
        for _ in range(3):
            sweeping.cancel()
            await beamline.time.sleep(0.1)
        with pytest.raises(asyncio.CancelledError):
            await sweeping
        assert await beamline.value(f"{AXIS}.MOVN") == 0
        assert await beamline.value(f"{AXIS}.VELO") == 20
        beamline.plant.simulate_fault(f"{CAMERA}:Acquire", None)
        assert await beamline.value(f"{CAMERA}:Acquire") == "Done"


class TestStream:
    async def test_so_many_events_are_recorded_to_a_file(self, beamline: Beamline) -> None:
        said = await beamline.do(stream, STREAM)
        assert said == {"uri": "file:///tmp/bl7_cam1_0001.h5", "events": 8}
        assert beamline.time.elapsed_seconds == pytest.approx(0.8, abs=0.1)
        assert (await beamline.value(f"{WRITER}:Capture"), await beamline.value(f"{CAMERA}:Acquire")) == ("Done", "Done")

    async def test_it_records_for_so_many_seconds(self, beamline: Beamline) -> None:
        said = await beamline.do(stream, {"detector": CAMERA, "dwell": 0.1, "duration": 2.0})
        assert said["events"] == 20
        assert beamline.time.elapsed_seconds == pytest.approx(2.0, abs=0.1)
        assert (await beamline.value(f"{WRITER}:Capture"), await beamline.value(f"{CAMERA}:Acquire")) == ("Done", "Done")

    async def test_each_recording_has_a_file_of_its_own(self, beamline: Beamline) -> None:
        files = {(await beamline.do(stream, STREAM))["uri"] for _ in range(3)}
        assert len(files) == 3

    async def test_cancelled_it_stops_recording(self, beamline: Beamline) -> None:
        recording = asyncio.ensure_future(beamline.do(stream, {"detector": CAMERA, "dwell": 0.1, "duration": 100.0}))
        await beamline.time.sleep(1)
        assert await beamline.value(f"{WRITER}:Capture") == "Capture"
        recording.cancel()
        with pytest.raises(asyncio.CancelledError):
            await recording
        assert (await beamline.value(f"{WRITER}:Capture"), await beamline.value(f"{CAMERA}:Acquire")) == ("Done", "Done")

    async def test_a_camera_that_is_lost_does_not_keep_the_recording_from_being_stopped(self, beamline: Beamline) -> None:
        recording = asyncio.ensure_future(beamline.do(stream, {**STREAM, "events": 1000}))
        await beamline.time.sleep(1)
        beamline.plant.simulate_disconnect(f"{CAMERA}:Acquire")
        beamline.plant.simulate_disconnect(f"{WRITER}:NumCaptured_RBV")
        recording.cancel()
        with pytest.raises(asyncio.CancelledError):
            await recording
        assert await beamline.value(f"{WRITER}:Capture") == "Done"

    async def test_cancelled_again_while_a_silent_camera_is_waited_for_it_stops_recording(self, beamline: Beamline) -> None:
        recording = asyncio.ensure_future(beamline.do(stream, {**STREAM, "events": 1000}))
        await beamline.time.sleep(1)
        beamline.plant.simulate_fault(f"{CAMERA}:Acquire", SimulatedFault.SILENT)
        for _ in range(2):
            recording.cancel()
            await beamline.time.sleep(0.1)
        with pytest.raises(asyncio.CancelledError):
            await recording
        assert await beamline.value(f"{WRITER}:Capture") == "Done"

    async def test_a_file_name_in_character_codes_is_a_text(self, beamline: Beamline) -> None:
        codes = Reading(value=[*b"/data/scan.h5", 0, 0], kind=ReadingKind.ARRAY)
        beamline.plant.set_reading(f"{WRITER}:FullFileName_RBV", codes)
        assert (await beamline.do(stream, STREAM))["uri"] == "file:///data/scan.h5"


class TestCutShort:
    @pytest.mark.parametrize(("action", "params"), ACTIONS)
    async def test_a_cancelled_acquisition_leaves_no_camera_running(
        self, beamline: Beamline, action: ActionBody, params: dict[str, Any]
    ) -> None:
        endless = {"events" if action is stream else "repetitions": 10_000}
        acting = asyncio.ensure_future(beamline.do(action, {**params, **endless}))
        while await beamline.value(f"{CAMERA}:Acquire") != "Acquire":
            await beamline.time.sleep(0.1)
        acting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await acting
        assert await beamline.value(f"{CAMERA}:Acquire") == "Done"

    @pytest.mark.parametrize(("action", "params"), ACTIONS)
    async def test_a_control_error_is_what_the_action_ends_with(
        self, beamline: Beamline, action: ActionBody, params: dict[str, Any]
    ) -> None:
        beamline.plant.simulate_disconnect(f"{CAMERA}:AcquireTime")
        with pytest.raises(ControlNotConnectedError, match=f"{CAMERA}:AcquireTime"):
            await beamline.do(action, params)
        assert beamline.acquisitions == 0


class TestRefusals:
    @pytest.mark.parametrize(("action", "params"), ACTIONS[:3])
    @pytest.mark.parametrize("repetitions", [{}, {"repetitions": None}])
    async def test_an_acquisition_without_an_end(
        self, beamline: Beamline, action: ActionBody, params: dict[str, Any], repetitions: dict[str, None]
    ) -> None:
        unbounded = {name: value for name, value in params.items() if name != "repetitions"} | repetitions
        with pytest.raises(UnboundedAcquisitionError):
            await beamline.do(action, unbounded)
        assert not beamline.witness.touched

    @pytest.mark.parametrize(("action", "params"), ACTIONS[:3])
    @pytest.mark.parametrize("trigger", [EDGE, LEVEL])
    async def test_an_external_trigger_without_a_source(
        self, beamline: Beamline, action: ActionBody, params: dict[str, Any], trigger: dict[str, str]
    ) -> None:
        unwired = {name: value for name, value in {**params, **trigger}.items() if name != "source"}
        with pytest.raises(UnwiredExternalTriggerError):
            await beamline.do(action, unwired)
        assert not beamline.witness.touched

    @pytest.mark.parametrize(
        ("action", "params", "changes"),
        [
            *((action, params, {"dwell": dwell}) for action, params in ACTIONS for dwell in (0, -1, "0.1", None, True)),
            *((action, params, {"detector": detector}) for action, params in ACTIONS for detector in ("", " ", None, 5)),
            *((action, params, {"exposure": 1}) for action, params in ACTIONS),
            *(
                (action, params, {"repetitions": count})
                for action, params in ACTIONS[:3]
                for count in (0, -1, 1.5, "4", True)
            ),
            *(
                (action, params, {"trigger_mode": mode})
                for action, params in ACTIONS[:3]
                for mode in ("Free", None, "internal")
            ),
            (collect, COLLECT, {"polarity": "Rising"}),
            (collect, COLLECT, {"source": "bl7:zebra"}),
            (collect, COLLECT, {**EDGE, "polarity": None}),
            (collect, COLLECT, {**LEVEL, "polarity": "Rising"}),
            *((discrete, DISCRETE, {"points": points}) for points in ([], None, [1, "2"], [float("nan")], 3)),
            *((discrete, DISCRETE, {"wait": wait}) for wait in (-0.1, None)),
            (discrete, DISCRETE, {"axis": ""}),
            (continuous, CONTINUOUS, {"stop": 10.0}),
            *((continuous, CONTINUOUS, {"rate": rate}) for rate in (0, -1, "fast")),
            (continuous, CONTINUOUS, {"start": None}),
            (stream, STREAM, {"duration": 5.0}),
            (stream, STREAM, {"events": None}),
            (stream, STREAM, {"events": 0}),
            (stream, STREAM, {"events": None, "duration": 0}),
            (stream, STREAM, {"trigger_mode": "Internal"}),
        ],
    )
    async def test_parameters_that_cannot_be_used(
        self, beamline: Beamline, action: ActionBody, params: dict[str, Any], changes: dict[str, Any]
    ) -> None:
        with pytest.raises(InvalidActionParametersError) as refusal:
            await beamline.do(action, {**params, **changes})
        assert isinstance(refusal.value, ActionRefusedError)
        assert not beamline.witness.touched

    @pytest.mark.parametrize(
        ("action", "params", "name"),
        [
            *((action, params, name) for action, params in ACTIONS for name in ("detector", "dwell")),
            *((action, params, "trigger_mode") for action, params in ACTIONS[:3]),
            *((discrete, DISCRETE, name) for name in ("axis", "points", "wait")),
            *((continuous, CONTINUOUS, name) for name in ("axis", "start", "stop")),
            (stream, STREAM, "events"),
        ],
    )
    async def test_a_parameter_that_is_missing_is_named(
        self, beamline: Beamline, action: ActionBody, params: dict[str, Any], name: str
    ) -> None:
        with pytest.raises(InvalidActionParametersError, match=name):
            await beamline.do(action, {key: value for key, value in params.items() if key != name})
        assert not beamline.witness.touched
