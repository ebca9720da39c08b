"""What every adapter of the control port promises to those who read and follow signals."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

import pytest

from application.control import Control, ControlNotConnectedError, ControlTimeoutError, Quality, Reading
from infrastructure.control.routes import RoutedControl
from infrastructure.control.simulator import Simulator
from tests.conftest import until

SIGNAL = "bl7:shutter"
SAMPLED = datetime(2026, 10, 6, 8, 0, tzinfo=UTC)


class Plant(Protocol):
    """The other end of an adapter: what makes its signals come, change and go."""

    def set_reading(self, address: str, reading: Reading) -> None: ...
    def simulate_connect(self, address: str) -> None: ...
    def simulate_disconnect(self, address: str) -> None: ...
    def subscriptions(self, address: str) -> int: ...


def alone() -> tuple[Control, Plant]:
    plant = Simulator()
    return plant, plant


def behind_routes() -> tuple[Control, Plant]:
    plant = Simulator()
    return RoutedControl({"": Simulator(), "bl7:": plant}), plant


@pytest.fixture(params=[alone, behind_routes], ids=["simulator", "routed simulator"])
def wired(request: pytest.FixtureRequest) -> tuple[Control, Plant]:
    make: Callable[[], tuple[Control, Plant]] = request.param
    return make()


@pytest.fixture
def control(wired: tuple[Control, Plant]) -> Control:
    return wired[0]


@pytest.fixture
def plant(wired: tuple[Control, Plant]) -> Plant:
    return wired[1]


class TestReading:
    async def test_a_reading_has_value_quality_and_the_sources_time(self, control: Control, plant: Plant) -> None:
        reading = Reading(value=3.5, quality=Quality.UNCERTAIN, quality_detail="HIGH", sampled_at=SAMPLED)
        plant.set_reading(SIGNAL, reading)
        assert await control.read(SIGNAL) == reading

    async def test_a_time_the_source_does_not_give_is_not_invented(self, control: Control, plant: Plant) -> None:
        plant.set_reading(SIGNAL, Reading(value=1))
        assert (await control.read(SIGNAL)).sampled_at is None

    async def test_an_unknown_address_is_not_connected(self, control: Control) -> None:
        with pytest.raises(ControlNotConnectedError, match=SIGNAL):
            await control.read(SIGNAL)

    async def test_a_lost_signal_has_no_value_any_more(self, control: Control, plant: Plant) -> None:
        plant.set_reading(SIGNAL, Reading(value=1))
        plant.simulate_disconnect(SIGNAL)
        with pytest.raises(ControlNotConnectedError):
            await control.read(SIGNAL)

    async def test_a_connected_signal_without_a_value_times_out(self, control: Control, plant: Plant) -> None:
        plant.simulate_connect(SIGNAL)
        with pytest.raises(ControlTimeoutError):
            await control.read(SIGNAL)


class TestFollowing:
    async def test_the_present_value_comes_first_and_then_every_change(self, control: Control, plant: Plant) -> None:
        plant.set_reading(SIGNAL, Reading(value=0))
        stream = control.subscribe(SIGNAL)
        assert (await anext(stream)).value == 0
        for value in (1, 2, 3):
            plant.set_reading(SIGNAL, Reading(value=value))
        assert [(await anext(stream)).value for _ in range(3)] == [1, 2, 3]
        await stream.aclose()

    async def test_a_signal_without_a_value_says_nothing_until_it_has_one(self, control: Control, plant: Plant) -> None:
        plant.simulate_connect(SIGNAL)
        upcoming = asyncio.ensure_future(anext(control.subscribe(SIGNAL)))
        await until(lambda: plant.subscriptions(SIGNAL))
        assert not upcoming.done()
        plant.set_reading(SIGNAL, Reading(value=1))
        assert (await upcoming).value == 1

    async def test_an_unknown_address_raises_at_the_first_item(self, control: Control) -> None:
        with pytest.raises(ControlNotConnectedError, match=SIGNAL):
            await anext(control.subscribe(SIGNAL))

    async def test_a_disconnect_raises_and_is_never_a_silent_pause(self, control: Control, plant: Plant) -> None:
        plant.set_reading(SIGNAL, Reading(value=1))
        stream = control.subscribe(SIGNAL)
        await anext(stream)
        plant.simulate_disconnect(SIGNAL)
        with pytest.raises(ControlNotConnectedError, match=SIGNAL):
            await anext(stream)
        assert plant.subscriptions(SIGNAL) == 0

    async def test_what_was_said_before_a_disconnect_is_still_heard(self, control: Control, plant: Plant) -> None:
        plant.set_reading(SIGNAL, Reading(value=1))
        stream = control.subscribe(SIGNAL)
        await anext(stream)
        plant.set_reading(SIGNAL, Reading(value=0))
        plant.simulate_disconnect(SIGNAL)
        assert (await anext(stream)).value == 0
        with pytest.raises(ControlNotConnectedError):
            await anext(stream)

    async def test_a_signal_that_is_back_can_be_followed_again(self, control: Control, plant: Plant) -> None:
        plant.set_reading(SIGNAL, Reading(value=1))
        plant.simulate_disconnect(SIGNAL)
        plant.set_reading(SIGNAL, Reading(value=2))
        stream = control.subscribe(SIGNAL)
        assert (await anext(stream)).value == 2
        await stream.aclose()

    async def test_everybody_who_follows_hears_everything(self, control: Control, plant: Plant) -> None:
        plant.set_reading(SIGNAL, Reading(value=0))
        streams = [control.subscribe(SIGNAL) for _ in range(3)]
        heard: list[list[Any]] = [[(await anext(stream)).value] for stream in streams]
        plant.set_reading(SIGNAL, Reading(value=1))
        for stream, values in zip(streams, heard, strict=True):
            values.append((await anext(stream)).value)
            await stream.aclose()
        assert heard == [[0, 1]] * 3

    async def test_closing_the_iterator_unsubscribes(self, control: Control, plant: Plant) -> None:
        plant.set_reading(SIGNAL, Reading(value=0))
        stream = control.subscribe(SIGNAL)
        await anext(stream)
        assert plant.subscriptions(SIGNAL) == 1
        await stream.aclose()
        assert plant.subscriptions(SIGNAL) == 0

    async def test_signals_do_not_touch_each_other(self, control: Control, plant: Plant) -> None:
        plant.set_reading(SIGNAL, Reading(value=0))
        plant.set_reading("bl7:other", Reading(value=5))
        stream = control.subscribe(SIGNAL)
        await anext(stream)
        plant.set_reading("bl7:other", Reading(value=6))
        plant.simulate_disconnect("bl7:other")
        plant.set_reading(SIGNAL, Reading(value=1))
        assert (await anext(stream)).value == 1
        await stream.aclose()
