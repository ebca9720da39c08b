"""Doing an action: what it is given, how long it may take, and what it must return."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from baton.application.conduct.actions import (
    ActionBody,
    ActionRefusedError,
    ActionResultError,
    ActionTimeoutError,
    UnknownActionError,
    perform,
)
from baton.application.control import (
    Control,
    ControlNotConnectedError,
    ControlTimeoutError,
    ControlWriteRejectedError,
    FencedControl,
    Timekeeper,
    always_open,
)
from baton.infrastructure.control.simulator import SimulatedFault, Simulator
from tests.support.fast_clock import SimulatedTime
from tests.support.tables import for_each


class ClosedFence(Exception):
    """A fence that lets nothing pass."""


class Only:
    """One action, whatever its name."""

    def __init__(self, body: ActionBody) -> None:
        self._body = body

    def body_of(self, name: str) -> ActionBody:
        if name != "act":
            raise UnknownActionError(name)
        return self._body


def body_returning(said: Any) -> Only:
    async def body(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> Any:
        return said

    return Only(body)


async def done(actions: Only, name: str = "act", ceiling: float = 5.0, **params: Any) -> Any:
    return await perform(actions, name, params, Simulator({"bl7:x": 1}), SimulatedTime(), ceiling)


async def test_a_body_gets_control_clock_and_parameters() -> None:
    async def body(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> Mapping[str, Any]:
        before = time.now()
        await time.sleep(60)
        return {"x": (await control.read("bl7:x")).value, "by": params["by"], "slept": (time.now() - before).total_seconds()}

    assert await done(Only(body), by="Mira") == {"x": 1, "by": "Mira", "slept": 60.0}


async def test_an_unknown_action_is_not_begun() -> None:
    with pytest.raises(UnknownActionError):
        await done(body_returning({}), "bake")


@for_each("said", [None, [1], "done", {"reading": object()}, {1: 2}, {"deep": {"set": {1}}}])
async def test_what_is_no_json_object_is_no_result(said: Any) -> None:
    with pytest.raises(ActionResultError, match="act"):
        await done(body_returning(said))


@for_each("said", [{}, {"uri": "file:///a.h5", "events": 3, "more": [1, None, {"deep": True}]}])
async def test_whatever_object_is_returned_is_the_result(said: Any) -> None:
    assert await done(body_returning(said)) == said


async def test_an_action_that_takes_too_long_is_stopped_and_may_clean_up() -> None:
    stopped: list[str] = []

    async def body(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("stopped")
        return {}

    with pytest.raises(ActionTimeoutError, match=r"after 0\.02 s"):
        await done(Only(body), ceiling=0.02)
    assert stopped == ["stopped"]


@for_each("error", [ControlNotConnectedError("gone"), ActionRefusedError("no"), TimeoutError("theirs")])
async def test_what_a_body_raises_is_what_became_of_it(error: Exception) -> None:
    async def body(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> Mapping[str, Any]:
        raise error

    with pytest.raises(type(error)) as raised:
        await done(Only(body))
    assert raised.value is error


class TestWitness:
    async def test_it_knows_what_was_touched_and_what_was_written(self) -> None:
        witness = FencedControl(Simulator({"a": 1, "b": 2, "c": 3}), always_open)
        await witness.read("c")
        await witness.write("a", 5)
        await witness.write("b", 6)
        await witness.write("a", 7)
        await anext(witness.subscribe("b"))
        assert witness.touched == ("c", "a", "b")
        assert list(witness.written.items()) == [("a", 7), ("b", 6)]

    async def test_an_attempt_counts_as_touched_but_not_as_written(self) -> None:
        witness = FencedControl(Simulator(), always_open)
        with pytest.raises(ControlNotConnectedError):
            await witness.write("a", 5)
        with pytest.raises(ControlNotConnectedError):
            await witness.read("b")
        with pytest.raises(ControlNotConnectedError):
            await anext(witness.subscribe("c"))
        assert (witness.touched, witness.written) == (("a", "b", "c"), {})


class TestTheFenceOfAWitness:
    """A body need not know of the fence, and cannot get round it."""

    def closed_fence(self) -> None:
        raise ClosedFence

    @pytest.fixture
    def plant(self) -> Simulator:
        return Simulator({"a": 1, "b": 2})

    @pytest.fixture
    def witness(self, plant: Simulator) -> FencedControl:
        return FencedControl(plant, self.closed_fence)

    async def test_a_write_that_is_refused_reaches_nothing(self, plant: Simulator, witness: FencedControl) -> None:
        with pytest.raises(ClosedFence):
            await witness.write("a", 5)
        assert ((await witness.read("a")).value, plant.writes) == (1, Counter())
        assert (witness.written, witness.unconfirmed) == ({}, {})

    async def test_a_task_of_the_body_does_not_get_round_it(self, plant: Simulator, witness: FencedControl) -> None:
        found = await asyncio.gather(*(witness.write(address, 5) for address in ("a", "b")), return_exceptions=True)
        assert [type(one) for one in found] == [ClosedFence, ClosedFence]
        assert not plant.writes

    async def test_a_write_that_makes_something_safe_passes(self, plant: Simulator, witness: FencedControl) -> None:
        await witness.write("a", 0, fence=always_open)
        assert (await plant.read("a")).value == 0

    async def test_a_task_that_is_being_cancelled_passes(self, plant: Simulator, witness: FencedControl) -> None:
        async def body() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await witness.write("a", 0)

        task = asyncio.create_task(body())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await plant.read("a")).value == 0

    async def test_a_time_out_of_the_body_itself_does_not_open_it(self, plant: Simulator, witness: FencedControl) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        with pytest.raises(ClosedFence):
            await witness.write("a", 5)


class TestWhatMayHaveBeenWritten:
    async def test_a_write_that_was_sent_and_not_confirmed_is_of_unknown_outcome(self) -> None:
        plant = Simulator({"a": 1})
        witness = FencedControl(plant, always_open)
        await witness.write("a", 2)
        plant.simulate_fault("a", SimulatedFault.SILENT)
        for value in (3, 4):
            with pytest.raises(ControlTimeoutError):
                await witness.write("a", value, timeout=0.01)
        assert (witness.written, witness.unconfirmed) == ({"a": 2}, {"a": [3, 4]})

    async def test_a_later_write_that_was_confirmed_settles_it(self) -> None:
        plant = Simulator({"a": 1})
        witness = FencedControl(plant, always_open)
        plant.simulate_fault("a", SimulatedFault.SILENT)
        with pytest.raises(ControlTimeoutError):
            await witness.write("a", 3, timeout=0.01)
        plant.simulate_fault("a", None)
        await witness.write("a", 5)
        assert (witness.written, witness.unconfirmed) == ({"a": 5}, {})

    async def test_a_write_that_was_never_sent_or_was_refused_is_none(self) -> None:
        plant = Simulator({"a": 1})
        witness = FencedControl(plant, always_open)
        plant.simulate_fault("a", SimulatedFault.REJECTING)
        with pytest.raises(ControlWriteRejectedError):
            await witness.write("a", 3)
        with pytest.raises(ControlNotConnectedError):
            await witness.write("b", 3)
        assert (witness.written, witness.unconfirmed) == ({}, {})
