"""What every adapter of the control port promises to those who read, write and follow signals."""

import asyncio
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from baton.application.control import (
    Control,
    ControlLimits,
    ControlNotConnectedError,
    ControlValueCoercionError,
    MalformedControlAddressError,
    Quality,
    Reading,
    ReadingKind,
)
from tests.support.infrastructure.control_plants import Plant, WiredPlant
from tests.support.waiting import until

SAMPLED = datetime(2026, 10, 6, 8, 0, tzinfo=UTC)
LABELS = ["Closed", "Open"]


@pytest.fixture
def control(wired_plant: WiredPlant) -> Control:
    return wired_plant.control


@pytest.fixture
def impatient_control(wired_plant: WiredPlant) -> Control:
    return wired_plant.impatient


@pytest.fixture
def plant(wired_plant: WiredPlant) -> Plant:
    return wired_plant.plant


@pytest.fixture
def signal(wired_plant: WiredPlant) -> str:
    return wired_plant.signal


@pytest.fixture
def other_signal(wired_plant: WiredPlant) -> str:
    return wired_plant.other_signal


class TestReading:
    async def test_a_reading_has_value_quality_and_the_sources_time(
        self, wired_plant: WiredPlant, control: Control, plant: Plant, signal: str
    ) -> None:
        plant.set_reading(signal, Reading(value=3.5, quality=Quality.UNCERTAIN, quality_detail="HIGH", sampled_at=SAMPLED))
        reading = await control.read(signal)
        assert (reading.value, reading.kind) == (3.5, ReadingKind.SCALAR)
        assert (reading.quality, reading.sampled_at) == (Quality.UNCERTAIN, SAMPLED)
        assert reading.quality_detail
        assert wired_plant.too_high in reading.quality_detail

    async def test_a_time_the_source_does_not_give_is_not_invented(
        self, control: Control, plant: Plant, signal: str
    ) -> None:
        plant.set_reading(signal, Reading(value=1))
        assert (await control.read(signal)).sampled_at is None

    async def test_an_unknown_address_is_not_connected(self, impatient_control: Control, signal: str) -> None:
        with pytest.raises(ControlNotConnectedError, match=re.escape(signal)):
            await impatient_control.read(signal)

    async def test_a_lost_signal_has_no_value_any_more(
        self, control: Control, impatient_control: Control, plant: Plant, signal: str
    ) -> None:
        plant.set_reading(signal, Reading(value=1))
        await control.read(signal)
        plant.simulate_disconnect(signal)
        with pytest.raises(ControlNotConnectedError):
            await impatient_control.read(signal)

    async def test_a_connected_signal_without_a_value_times_out(self, wired_plant: WiredPlant, signal: str) -> None:
        if not wired_plant.tells_silence:
            pytest.skip("this protocol connects and asks in one")
        wired_plant.plant.simulate_connect(signal)
        with pytest.raises(wired_plant.no_value, match=re.escape(signal)):
            await wired_plant.impatient.read(signal)

    async def test_a_blank_address_is_malformed(self, control: Control) -> None:
        with pytest.raises(MalformedControlAddressError):
            await control.read(" ")


class TestWriting:
    @pytest.mark.parametrize(("before", "written"), [(0, 5), (0.5, 2.25), ("in", "out"), ([1.0], [2.0, 3.5])])
    async def test_what_was_written_is_read(
        self, control: Control, plant: Plant, before: Any, written: Any, signal: str
    ) -> None:
        plant.offer(signal, before)
        await control.write(signal, written)
        reading = await control.read(signal)
        assert (reading.value, reading.quality) == (written, Quality.GOOD)
        assert reading.kind is (ReadingKind.ARRAY if isinstance(written, list) else ReadingKind.SCALAR)

    async def test_an_unconfirmed_write_arrives_too(self, control: Control, plant: Plant, signal: str) -> None:
        plant.offer(signal, 0)
        await control.write(signal, 4, wait=False)

        async def has_arrived() -> bool:
            return (await control.read(signal)).value == 4

        await until(has_arrived)

    @pytest.mark.parametrize("choice", ["Open", 1, True])
    async def test_a_choice_is_written_by_label_or_index_and_read_as_both(
        self, control: Control, plant: Plant, choice: Any, signal: str
    ) -> None:
        plant.offer(signal, "Closed", LABELS)
        await control.write(signal, choice)
        reading = await control.read(signal)
        assert (reading.value, reading.index, reading.kind) == ("Open", 1, ReadingKind.CATEGORICAL)

    @pytest.mark.parametrize("choice", ["Ajar", 2, -1, 0.5])
    async def test_a_choice_there_is_not_cannot_be_written(
        self, control: Control, plant: Plant, choice: Any, signal: str
    ) -> None:
        plant.offer(signal, "Closed", LABELS)
        with pytest.raises(ControlValueCoercionError, match=re.escape(signal)):
            await control.write(signal, choice)
        assert (await control.read(signal)).value == "Closed"

    async def test_a_signal_that_is_not_there_cannot_be_written(self, wired_plant: WiredPlant, signal: str) -> None:
        with pytest.raises(wired_plant.no_writable, match=re.escape(signal)):
            await wired_plant.control.write(signal, 1, timeout=0.5)

    async def test_a_lost_signal_cannot_be_written(self, wired_plant: WiredPlant, signal: str) -> None:
        wired_plant.plant.offer(signal, 0)
        await wired_plant.control.write(signal, 1)
        wired_plant.plant.simulate_disconnect(signal)
        with pytest.raises((wired_plant.no_writable, ControlNotConnectedError), match=re.escape(signal)):
            await wired_plant.control.write(signal, 2, timeout=0.5)

    async def test_those_who_follow_hear_what_was_written(self, control: Control, plant: Plant, signal: str) -> None:
        plant.offer(signal, 0)
        stream = control.subscribe(signal)
        assert (await anext(stream)).value == 0
        await control.write(signal, 7)
        assert (await anext(stream)).value == 7
        await stream.aclose()


class ClosedFence(Exception):
    """A fence that lets nothing pass."""


class TestFences:
    """Asked by every adapter right before anything is sent."""

    @pytest.mark.parametrize("wait", [True, False])
    async def test_a_write_whose_fence_is_closed_sends_nothing(
        self, control: Control, plant: Plant, wait: bool, signal: str
    ) -> None:
        def closed_fence() -> None:
            raise ClosedFence

        plant.offer(signal, 0)
        with pytest.raises(ClosedFence):
            await control.write(signal, 1, wait, fence=closed_fence)
        assert (await control.read(signal)).value == 0
        await control.write(signal, 2)
        assert (await control.read(signal)).value == 2

    @pytest.mark.parametrize("wait", [True, False])
    async def test_it_is_asked_once_for_a_write_that_arrives(
        self, control: Control, plant: Plant, wait: bool, signal: str
    ) -> None:
        asked: list[None] = []
        plant.offer(signal, 0)
        await control.write(signal, 4, wait, fence=lambda: asked.append(None))

        async def has_arrived() -> bool:
            return (await control.read(signal)).value == 4

        await until(has_arrived)
        assert asked == [None]

    async def test_it_is_not_asked_before_the_channel_is_connected(self, wired_plant: WiredPlant, signal: str) -> None:
        asked: list[None] = []
        with pytest.raises(wired_plant.no_writable, match=re.escape(signal)):
            await wired_plant.control.write(signal, 1, timeout=0.5, fence=lambda: asked.append(None))
        assert asked == []

    async def test_it_is_not_asked_for_what_cannot_be_sent(self, control: Control, plant: Plant, signal: str) -> None:
        asked: list[None] = []
        plant.offer(signal, "Closed", LABELS)
        with pytest.raises(ControlValueCoercionError):
            await control.write(signal, "Ajar", fence=lambda: asked.append(None))
        assert asked == []


class TestFollowing:
    async def test_the_present_value_comes_first_and_then_the_changes(
        self, control: Control, plant: Plant, signal: str
    ) -> None:
        plant.set_reading(signal, Reading(value=0))
        stream = control.subscribe(signal)
        assert (await anext(stream)).value == 0
        for value in (1, 2, 3):
            plant.set_reading(signal, Reading(value=value))
            assert (await anext(stream)).value == value
        await stream.aclose()

    async def test_a_reader_that_is_far_behind_gets_the_newest_values(
        self, control: Control, plant: Plant, monkeypatch: pytest.MonkeyPatch, signal: str
    ) -> None:
        monkeypatch.setattr("baton.application.dropping_queue.MOST", 2)
        plant.set_reading(signal, Reading(value=0))
        slow, attentive = control.subscribe(signal), control.subscribe(signal)
        assert (await anext(slow)).value == (await anext(attentive)).value == 0
        for value in range(1, 41):
            plant.set_reading(signal, Reading(value=value))
            while (await anext(attentive)).value != value:
                pass
        heard = [(await anext(slow)).value]
        while heard[-1] != 40:
            heard.append((await anext(slow)).value)
        assert len(heard) <= 4, "the last ones may still have been on their way"
        for stream in (slow, attentive):
            await stream.aclose()

    async def test_a_signal_without_a_value_says_nothing_until_it_has_one(
        self, wired_plant: WiredPlant, signal: str
    ) -> None:
        if not wired_plant.tells_silence:
            pytest.skip("this protocol connects and asks in one")
        wired_plant.plant.simulate_connect(signal)
        stream = wired_plant.control.subscribe(signal)
        upcoming = asyncio.ensure_future(anext(stream))
        await until(lambda: wired_plant.plant.subscriptions(signal))
        assert not upcoming.done()
        wired_plant.plant.set_reading(signal, Reading(value=1))
        assert (await upcoming).value == 1
        await stream.aclose()

    async def test_an_unknown_address_raises_at_the_first_item(self, impatient_control: Control, signal: str) -> None:
        with pytest.raises(ControlNotConnectedError, match=re.escape(signal)):
            await anext(impatient_control.subscribe(signal))

    async def test_a_disconnect_raises_and_is_never_a_silent_pause(
        self, control: Control, plant: Plant, signal: str
    ) -> None:
        plant.set_reading(signal, Reading(value=1))
        stream = control.subscribe(signal)
        await anext(stream)
        plant.simulate_disconnect(signal)
        with pytest.raises(ControlNotConnectedError, match=re.escape(signal)):
            await anext(stream)
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    async def test_what_was_said_before_a_disconnect_is_still_heard(
        self, control: Control, plant: Plant, signal: str
    ) -> None:
        plant.set_reading(signal, Reading(value=1))
        stream = control.subscribe(signal)
        await anext(stream)
        plant.set_reading(signal, Reading(value=0))
        plant.simulate_disconnect(signal)
        assert (await anext(stream)).value == 0
        with pytest.raises(ControlNotConnectedError):
            await anext(stream)

    async def test_a_disconnect_is_heard_by_a_reader_that_reads_only_when_the_signal_is_back(
        self, control: Control, plant: Plant, signal: str
    ) -> None:
        plant.set_reading(signal, Reading(value=1))
        slow, attentive = control.subscribe(signal), control.subscribe(signal)
        await anext(slow)
        await anext(attentive)
        plant.simulate_disconnect(signal)
        with pytest.raises(ControlNotConnectedError):
            await anext(attentive)
        plant.set_reading(signal, Reading(value=2))
        back = control.subscribe(signal)
        while (await anext(back)).value != 2:
            pass
        with pytest.raises(ControlNotConnectedError):
            await anext(slow)
        await back.aclose()

    async def test_a_signal_that_is_back_can_be_followed_again(self, control: Control, plant: Plant, signal: str) -> None:
        plant.set_reading(signal, Reading(value=1))
        plant.simulate_disconnect(signal)
        plant.set_reading(signal, Reading(value=2))
        stream = control.subscribe(signal)
        assert (await anext(stream)).value == 2
        await stream.aclose()

    async def test_everybody_who_follows_hears_everything(self, control: Control, plant: Plant, signal: str) -> None:
        plant.set_reading(signal, Reading(value=0))
        streams = [control.subscribe(signal) for _ in range(3)]
        heard: list[list[Any]] = [[(await anext(stream)).value] for stream in streams]
        plant.set_reading(signal, Reading(value=1))
        for stream, values in zip(streams, heard, strict=True):
            values.append((await anext(stream)).value)
            await stream.aclose()
        assert heard == [[0, 1]] * 3

    async def test_closing_the_iterator_unsubscribes(self, wired_plant: WiredPlant, signal: str) -> None:
        if not wired_plant.counts:
            pytest.skip("this server does not know who follows")
        wired_plant.plant.set_reading(signal, Reading(value=0))
        stream = wired_plant.control.subscribe(signal)
        await anext(stream)
        assert wired_plant.plant.subscriptions(signal) == 1
        await stream.aclose()
        await until(lambda: wired_plant.plant.subscriptions(signal) == 0)

    async def test_signals_do_not_touch_each_other(
        self, control: Control, plant: Plant, signal: str, other_signal: str
    ) -> None:
        plant.set_reading(signal, Reading(value=0))
        plant.set_reading(other_signal, Reading(value=5))
        stream = control.subscribe(signal)
        await anext(stream)
        plant.set_reading(other_signal, Reading(value=6))
        plant.simulate_disconnect(other_signal)
        plant.set_reading(signal, Reading(value=1))
        assert (await anext(stream)).value == 1
        await stream.aclose()


class TestLimits:
    async def test_a_signal_says_between_which_values_it_may_be_set(
        self, control: Control, plant: Plant, signal: str
    ) -> None:
        plant.offer_limited(signal, 0.5, -2.5, 100.0)
        assert await control.limits(signal) == ControlLimits(-2.5, 100.0)

    async def test_equal_limits_are_none(self, control: Control, plant: Plant, signal: str) -> None:
        plant.offer_limited(signal, 0.5, 0.0, 0.0)
        assert await control.limits(signal) is None

    @pytest.mark.parametrize(
        ("value", "labels"), [("text", None), (3, None), (1.5, None), ("Open", LABELS), ([1.0, 2.0], None)]
    )
    async def test_a_signal_without_limits_has_none(
        self, control: Control, plant: Plant, value: Any, labels: Any, signal: str
    ) -> None:
        plant.offer(signal, value, labels)
        assert await control.limits(signal) is None

    async def test_an_unknown_address_has_no_limits_to_say(self, impatient_control: Control, signal: str) -> None:
        with pytest.raises(ControlNotConnectedError, match=re.escape(signal)):
            await impatient_control.limits(signal)


class TestClosing:
    async def test_closing_may_be_repeated(self, control: Control, plant: Plant, signal: str) -> None:
        plant.set_reading(signal, Reading(value=1))
        await control.read(signal)
        await control.close()
        await control.close()

    async def test_what_never_connected_can_be_closed(self, control: Control) -> None:
        await control.close()
