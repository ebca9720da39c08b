"""How a process rehearses: one walk at a time, equal ones from memory for a moment, and actions that fail to say."""

import asyncio
import time as clocks
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from baton.application.conduct import rehearsals
from baton.application.conduct.rehearsals import Rehearsals, ask_action
from baton.domain.conduct.estimates import walk_of
from baton.domain.conduct.rehearsal import RehearsalBasis, RehearsalPart, RehearsalsBusyError
from baton.domain.recipe.expansion import expansion_of
from baton.domain.recipe.step_checks import read_steps
from baton.domain.shared.action_signals import ActionForecast, ActionSignals
from tests.support.fast_clock import START
from tests.support.workflows.step_json import action, setpoint

STEPS = [setpoint("bl7:x", float(value)) for value in range(100)]


def basis_of(steps: list[dict[str, Any]], **more: Any) -> RehearsalBasis:
    """What a rehearsal of these steps rests on."""
    expansion = expansion_of(read_steps(steps), (), {})
    return RehearsalBasis((RehearsalPart("any", expansion, walk_of(expansion.steps, ())),), (), START, **more)


class Room:
    """A process that rehearses, and the time that passes there."""

    def __init__(self, **options: Any) -> None:
        self.now = 0.0
        self.rehearsals = Rehearsals(lambda: self.now, **options)


async def test_equal_rehearsals_are_walked_once_in_ten_seconds() -> None:
    room, basis = Room(), basis_of(STEPS)
    first = await room.rehearsals.rehearse(basis)
    room.now = 9.0
    again = await room.rehearsals.rehearse(replace(basis))
    assert again.rehearsed is first.rehearsed
    room.now = 10.0
    assert (await room.rehearsals.rehearse(basis)).rehearsed is not first.rehearsed
    other = await room.rehearsals.rehearse(basis_of(STEPS[1:]))
    assert other.fingerprint != first.fingerprint


async def test_a_rehearsal_that_others_hold_off_for_long_is_refused_and_the_next_one_is_walked() -> None:
    """The action that is asked is what takes so long."""
    begun, released = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait(params: Mapping[str, Any]) -> ActionForecast:
        loop.call_soon_threadsafe(begun.set)
        asyncio.run_coroutine_threadsafe(released.wait(), loop).result(10)
        return ActionForecast()

    room = Room(wait_seconds=0.05)
    slow = asyncio.ensure_future(
        room.rehearsals.rehearse(basis_of([action("slow")], actions={"slow": ActionSignals(rehearse=wait)}))
    )
    async with asyncio.timeout(10):
        await begun.wait()
    with pytest.raises(RehearsalsBusyError):
        await room.rehearsals.rehearse(basis_of(STEPS))
    released.set()
    await slow
    assert (await room.rehearsals.rehearse(basis_of(STEPS))).rehearsed.steps


def test_an_action_that_raises_or_takes_too_long_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(params: Mapping[str, Any]) -> ActionForecast:
        raise RuntimeError("no")

    assert ask_action("bad", ActionSignals(rehearse=fail), {}) is None
    quick = ActionSignals(rehearse=lambda params: ActionForecast())
    assert ask_action("quick", quick, {}) == ActionForecast()
    monkeypatch.setattr(rehearsals, "ACTION_SECONDS", -1.0)
    assert ask_action("quick", quick, {}) is None


async def test_ten_thousand_steps_take_less_processor_time_than_a_person_waits() -> None:
    """The budget, 0.6 s, is for `make bench`; a slower machine may take several times as long."""
    basis, began = basis_of(STEPS * 100), clocks.process_time()
    assert len((await Room().rehearsals.rehearse(basis)).rehearsed.steps) == 10_000
    assert clocks.process_time() - began < 6
