"""Devices of ophyd-async behind the control port, and what of the installed release the adapter rests on."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ophyd_async", reason="ophyd-async is not installed (extra `ophyd`)")

import numpy
from ophyd_async.core import (
    Array1D,
    AsyncStatus,
    Device,
    DeviceVector,
    SignalR,
    SoftSignalBackend,
    StandardReadable,
    StrictEnum,
    Table,
    soft_signal_r_and_setter,
    soft_signal_rw,
)
from ophyd_async.sim import PatternGenerator, SimMotor, SimStage

from baton.application.control import (
    ControlAccessDeniedError,
    ControlLimits,
    ControlNotConnectedError,
    ControlTimeoutError,
    ControlValueCoercionError,
    ControlWriteRejectedError,
    MalformedControlAddressError,
    Quality,
    ReadingKind,
)
from baton.infrastructure.control.ophyd import OphydControl
from baton.infrastructure.control.ophyd_devices import load_devices
from tests.support.waiting import until

FACTORY = "tests.support.infrastructure.site_devices:devices"


class Filter(StrictEnum):
    OUT = "Out"
    IN = "In"


class Peaks(Table):
    centre: Array1D[numpy.float64]
    name: Sequence[str]


class Hutch(StandardReadable):
    """Two signals, neither of which is the reading of the whole."""

    def __init__(self) -> None:
        self.filter = soft_signal_rw(Filter, Filter.OUT)
        self.counts = DeviceVector({1: soft_signal_rw(int, 5), 2: soft_signal_rw(int, 7)})
        self.temperature, self.set_temperature = soft_signal_r_and_setter(float, 21.5, units="degC")
        self.image = soft_signal_rw(numpy.ndarray, numpy.zeros((2, 3), dtype=numpy.uint16))
        self.peaks = soft_signal_rw(Peaks, Peaks(centre=numpy.array([1.5]), name=["a"]))
        self.choices = soft_signal_rw(Sequence[Filter], [Filter.IN])
        self.limited = limited_signal()
        super().__init__(name="hutch")


class TwoPuts(Device):
    """A device that sends two values for each position; in between it may be told that nothing more may be sent."""

    def __init__(self) -> None:
        self.first, self.second = soft_signal_rw(float), soft_signal_rw(float)
        self.stopped = 0
        super().__init__(name="two")

    @AsyncStatus.wrap
    async def set(self, value: float) -> None:
        await self.first.set(value)
        await asyncio.sleep(0)
        await self.second.set(value)

    async def stop(self, success: bool = False) -> None:
        self.stopped += 1

    @property
    def hints(self) -> dict[str, Any]:
        return {"fields": [self.second.name]}


def limited_signal() -> Any:
    signal = soft_signal_rw(float, 0.5)
    signal._connector.backend.metadata["limits"] = {"control": {"low": None, "high": 4.0}}
    return signal


@pytest.fixture
def devices() -> dict[str, Any]:
    return {
        "hutch": Hutch,
        "stage": lambda: SimStage(PatternGenerator()),
        "motor": lambda: SimMotor(instant=False),
        "two": TwoPuts(),
        "deaf": lambda: SignalR(SoftSignalBackend(float, 1.0)),
    }


@pytest.fixture
async def ophyd(devices: dict[str, Any]) -> AsyncIterator[OphydControl]:
    control = OphydControl(lambda: devices)
    yield control
    await control.close()


class TestReading:
    @pytest.mark.parametrize(
        ("address", "value", "kind"),
        [
            ("hutch.temperature", 21.5, ReadingKind.SCALAR),
            ("hutch.filter", "Out", ReadingKind.CATEGORICAL),
            ("hutch.counts.2", 7, ReadingKind.SCALAR),
            ("hutch.image", [[0, 0, 0], [0, 0, 0]], ReadingKind.IMAGE),
            ("hutch.peaks", {"centre": [1.5], "name": ["a"]}, ReadingKind.TABULAR),
            ("hutch.choices", ["In"], ReadingKind.ARRAY),
            ("motor", 0.0, ReadingKind.SCALAR),
            ("stage.x", 0.0, ReadingKind.SCALAR),
            ("stage.x.velocity", 1.0, ReadingKind.SCALAR),
        ],
    )
    async def test_values_are_plain_data(self, ophyd: OphydControl, address: str, value: Any, kind: ReadingKind) -> None:
        reading = await ophyd.read(f"ophyd:{address}")
        assert (reading.value, reading.kind, reading.quality) == (value, kind, Quality.GOOD)
        assert json.dumps(reading.value)

    async def test_units_and_limits_are_those_of_describe(self, ophyd: OphydControl) -> None:
        assert (await ophyd.read("ophyd:motor")).units == "mm"
        assert (await ophyd.read("ophyd:hutch.temperature")).units == "degC"
        assert await ophyd.limits("ophyd:hutch.limited") == ControlLimits(None, 4.0)
        assert await ophyd.limits("ophyd:motor") is None

    async def test_a_device_of_several_values_has_none_of_its_own(self, ophyd: OphydControl) -> None:
        with pytest.raises(MalformedControlAddressError, match=r"name a part of it: .*filter"):
            await ophyd.read("ophyd:hutch")

    @pytest.mark.parametrize("address", ["motor", "ophyd:", "ophyd:motor.", "ophyd:a b", "ca://motor"])
    async def test_other_addresses_are_malformed(self, ophyd: OphydControl, address: str) -> None:
        with pytest.raises(MalformedControlAddressError):
            await ophyd.read(address)

    @pytest.mark.parametrize("address", ["ophyd:nobody", "ophyd:motor.nothing"])
    async def test_a_part_there_is_not_is_not_connected(self, ophyd: OphydControl, address: str) -> None:
        with pytest.raises(ControlNotConnectedError, match=r"there is no nothing|no device nobody"):
            await ophyd.read(address)


class TestWriting:
    async def test_a_motor_is_set_until_it_is_there(self, ophyd: OphydControl) -> None:
        await ophyd.write("ophyd:motor", 0.2)
        assert (await ophyd.read("ophyd:motor")).value == pytest.approx(0.2)

    async def test_a_cancelled_move_is_stopped(self, ophyd: OphydControl) -> None:
        moving = asyncio.create_task(ophyd.write("ophyd:motor", 50.0))

        async def moves() -> bool:
            return bool((await ophyd.read("ophyd:motor")).value > 0)

        await until(moves)
        moving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await moving
        stopped_at = (await ophyd.read("ophyd:motor")).value
        assert (await ophyd.read("ophyd:motor.user_setpoint")).value == stopped_at < 50

    async def test_a_move_that_takes_too_long_may_be_on_its_way(self, ophyd: OphydControl) -> None:
        with pytest.raises(ControlTimeoutError, match="did not confirm"):
            await ophyd.write("ophyd:motor", 50.0, timeout=0.2)

    async def test_everything_a_move_sends_passes_its_fence(self, ophyd: OphydControl, devices: dict[str, Any]) -> None:
        asked: list[None] = []

        class Closed(Exception):
            pass

        def fence() -> None:
            asked.append(None)
            if len(asked) == 2:
                raise Closed

        with pytest.raises(Closed):
            await ophyd.write("ophyd:two", 3.0, fence=fence)
        assert [(await ophyd.read(f"ophyd:two.{part}")).value for part in ("first", "second")] == [3.0, 0.0]
        await ophyd.write("ophyd:two", 4.0)
        assert (await ophyd.read("ophyd:two")).value == 4.0

    async def test_a_move_nothing_was_sent_of_is_not_stopped(self, ophyd: OphydControl, devices: dict[str, Any]) -> None:
        class Closed(Exception):
            pass

        def fence() -> None:
            raise Closed

        with pytest.raises(Closed):
            await ophyd.write("ophyd:two", 3.0, fence=fence)
        assert devices["two"].stopped == 0

    @pytest.mark.parametrize("address", ["ophyd:hutch", "ophyd:deaf", "ophyd:hutch.temperature"])
    async def test_what_cannot_be_set_is_rejected(self, ophyd: OphydControl, address: str) -> None:
        with pytest.raises(ControlWriteRejectedError, match="is read-only"):
            await ophyd.write(address, 1.0)

    @pytest.mark.parametrize(
        ("address", "value"),
        [
            ("hutch.counts.1", 1.5),
            ("hutch.counts.1", 2**70),
            ("motor", "far"),
            ("hutch.peaks", {}),
            ("hutch.image", [[1, 2], [3]]),
        ],
    )
    async def test_what_does_not_fit_is_refused_before_the_fence(
        self, ophyd: OphydControl, address: str, value: Any
    ) -> None:
        asked: list[None] = []
        with pytest.raises(ControlValueCoercionError, match="ophyd:"):
            await ophyd.write(f"ophyd:{address}", value, fence=lambda: asked.append(None))
        assert asked == []

    async def test_images_and_lists_of_choices_are_written(self, ophyd: OphydControl) -> None:
        await ophyd.write("ophyd:hutch.image", [[1, 2], [3, 4]])
        await ophyd.write("ophyd:hutch.choices", ["Out", 1])
        assert (await ophyd.read("ophyd:hutch.image")).value == [[1, 2], [3, 4]]
        assert (await ophyd.read("ophyd:hutch.choices")).value == ["Out", "In"]


class TestDevices:
    async def test_the_devices_of_a_factory_are_made_on_first_use(self) -> None:
        made: list[str] = []

        def make(name: str) -> Any:
            made.append(name)
            return soft_signal_rw(float)

        control = OphydControl(lambda: {name: lambda name=name: make(name) for name in ("a", "b")})
        await control.read("ophyd:a")
        await control.read("ophyd:a")
        assert made == ["a"]

    async def test_a_factory_may_return_devices(self) -> None:
        assert set(load_devices(FACTORY)) >= {"x", "stage"}
        assert set(load_devices("tests.infrastructure.control.test_ophyd:listed_devices")) == {"one", "two"}

    @pytest.mark.parametrize(
        ("source", "name", "sentence"),
        [
            (FACTORY, "broken", "RuntimeError: no such crate"),
            (FACTORY, "absent", "no device of ophyd-async"),
            ("no.such.module:devices", "x", "ModuleNotFoundError"),
            ("nothing", "x", "neither module:factory nor"),
        ],
    )
    async def test_a_device_that_cannot_be_made_is_not_connected(self, source: str, name: str, sentence: str) -> None:
        control = OphydControl(lambda: load_devices(source))
        with pytest.raises(ControlNotConnectedError, match=sentence):
            await control.read(f"ophyd:{name}")

    async def test_a_happi_database_names_classes_and_their_arguments(self, tmp_path: Path) -> None:
        entry = {
            "name": "omega",
            "device_class": "ophyd_async.sim.SimMotor",
            "args": [],
            "kwargs": {"name": "{{name}}", "instant": "{{instant}}", "units": "{{egu}}"},
            "instant": True,
            "egu": "deg",
            "active": True,
        }
        path = tmp_path / "happi.json"
        path.write_text(json.dumps({"omega": entry, "old": {**entry, "name": "old", "active": False}}))
        control = OphydControl(lambda: load_devices(str(path)))
        await control.write("ophyd:omega", 90)
        reading = await control.read("ophyd:omega")
        assert (reading.value, reading.units) == (90.0, "deg")
        with pytest.raises(ControlNotConnectedError, match="no device old"):
            await control.read("ophyd:old")

    async def test_a_signal_that_is_only_written_is_not_read(self) -> None:
        from ophyd_async.core import SignalW

        control = OphydControl(lambda: {"only": SignalW(SoftSignalBackend(float, 1.0))})
        await control.write("ophyd:only", 2.0)
        with pytest.raises(ControlAccessDeniedError, match="can only be written"):
            await control.read("ophyd:only")


def listed_devices() -> list[Device]:
    return [SimMotor(name="one"), SimMotor(name="two")]


class TestFacts:
    """F 1: what the installed release does, as far as rule 44 rests on it."""

    async def test_f1_soft_and_simulated_devices_need_no_control_system(self) -> None:
        motor = SimMotor(name="motor")
        await motor.connect()
        await motor.set(2.0)
        assert (await motor.read())["motor"]["value"] == 2.0

    async def test_f1_a_reading_has_value_timestamp_and_severity(self) -> None:
        signal = soft_signal_rw(float, 1.5, name="signal")
        await signal.connect()
        assert set((await signal.read())["signal"]) == {"value", "timestamp", "alarm_severity"}

    async def test_f1_an_enum_takes_its_label_only_and_a_float_no_text(self) -> None:
        choice, number = soft_signal_rw(Filter, name="choice"), soft_signal_rw(float, name="number")
        await choice.connect()
        await number.connect()
        await choice.set(Filter("In"))
        with pytest.raises(ValueError, match="1 is not a valid"):
            await choice.set(1)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="could not convert"):
            await number.set("far")  # type: ignore[arg-type]

    async def test_f1_a_subscription_begins_with_the_present_value(self) -> None:
        signal = soft_signal_rw(float, 1.5, name="signal")
        await signal.connect()
        heard: list[Any] = []
        signal.subscribe_reading(heard.append)
        assert [each["signal"]["value"] for each in heard] == [1.5]

    async def test_a_task_of_set_keeps_the_context_of_its_caller_and_sends_by_put(self) -> None:
        """The fence travels with the context, to the backend's `put`."""
        from contextvars import ContextVar

        place: ContextVar[str] = ContextVar("place", default="nowhere")
        seen: list[str] = []
        signal = soft_signal_rw(float, name="signal", setter=lambda value: seen.append(place.get()))
        await signal.connect()
        token = place.set("here")
        status = signal.set(1.0)
        place.reset(token)
        await status
        assert seen == ["here"]
