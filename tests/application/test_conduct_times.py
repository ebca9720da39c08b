"""What estimates are made from: read once in a while, however many readers ask."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import pytest

from baton.application.conduct.conduct_times import FRESH_SECONDS, ConductTimes
from baton.domain.conduct.conduct import ConductFromProcedure, ConductUntilConverged
from baton.domain.conduct.endings import HoldProcedure
from baton.domain.conduct.estimates import ConductWalk, StepDuration, StepKey
from baton.domain.procedure.procedure import ConductMode
from baton.domain.start.registration import RegisterProcedure
from tests.support.application.memory_conduct import MemoryConduct
from tests.support.domain.world import new_id
from tests.support.infrastructure.ledger_cases import LedgerConduct
from tests.support.workflows.step_json import capture, criterion, setpoint

MOVE, LOOK = ("setpoint", "bl7:a"), ("capture", "bl7:b")


class CountingReader:
    """A reader of durations that notes what it is asked for."""

    def __init__(self, **known: float) -> None:
        self.known = {("setpoint", name): StepDuration(1, seconds, seconds) for name, seconds in known.items()}
        self.asked: list[Sequence[StepKey]] = []

    async def read_durations(self, keys: Sequence[StepKey]) -> Mapping[StepKey, StepDuration]:
        self.asked.append(list(keys))
        return {key: self.known[key] for key in keys if key in self.known}


def times_of(memory: MemoryConduct, reader: Any = None) -> ConductTimes:
    return ConductTimes(memory.store, reader, lambda: memory.time.elapsed_seconds)


async def test_durations_are_asked_for_once_in_ten_seconds_and_what_is_unknown_every_time(memory: MemoryConduct) -> None:
    reader = CountingReader(a=2.0)
    times, keys = times_of(memory, reader), (("setpoint", "a"), ("setpoint", "b"))
    for _ in "12":
        assert await times.step_durations(keys) == {("setpoint", "a"): StepDuration(1, 2.0, 2.0)}
    reader.known[keys[1]] = StepDuration(1, 3.0, 3.0)
    assert set(await times.step_durations(keys)) == set(keys)
    assert reader.asked == [[*keys], [keys[1]], [keys[1]]]
    await memory.time.sleep(FRESH_SECONDS)
    await times.step_durations(keys)
    assert reader.asked[-1] == [*keys]


async def test_the_walk_of_a_conduct_has_its_steps_and_where_it_begins(memory: MemoryConduct) -> None:
    conduct = await memory.open_conduct([setpoint("bl7:a", 1), capture("bl7:b", "n")], [setpoint("bl7:a", 0)])
    times, procedure_id = times_of(memory), conduct.procedure_id
    walk = await times.conduct_walk(procedure_id, conduct.conduct_id)
    assert walk == ConductWalk((MOVE, LOOK), (MOVE,), started_at=memory.time.now())
    assert await times.conduct_walk(procedure_id, conduct.conduct_id) is walk, "it is read once"
    assert await times.conduct_walk(procedure_id, new_id()) is None
    result = LedgerConduct(procedure_id, conduct.conduct_id).result
    await memory.do(HoldProcedure(reason="lunch", conducted=result), on=procedure_id)
    again = await memory.do(
        ConductFromProcedure(re_establishment_boundary=1, skip=True, skip_reason="done"), on=procedure_id
    )
    resumed = await times.conduct_walk(procedure_id, UUID((again.body or {})["conduct_id"]))
    assert resumed is not None
    assert (resumed.boundary, resumed.steps) == (1, walk.steps)


@pytest.mark.parametrize("cap", [4, None])
async def test_the_walk_of_a_loop_has_its_cap(memory: MemoryConduct, cap: int | None) -> None:
    loop = {"convergence_capture_name": "n", "criterion": criterion(9), "max_consecutive_unconverged_iterations": cap}
    conduct = await memory.open_conduct([capture("bl7:b", "n")], how=ConductUntilConverged, conduct=loop)
    walk = await times_of(memory).conduct_walk(conduct.procedure_id, conduct.conduct_id)
    assert walk is not None
    assert (walk.mode, walk.unconverged_cap, walk.steps) == (ConductMode.CONVERGED, cap, (LOOK,))


async def test_a_procedure_that_nobody_has_conducted_has_the_steps_of_its_recipe(memory: MemoryConduct) -> None:
    procedure_id = await memory.register_procedure([setpoint("bl7:a", 1), capture("bl7:b", "n")], [setpoint("bl7:a", 0)])
    times = times_of(memory)
    walk = await times.registered_walk(procedure_id)
    assert walk == ConductWalk((MOVE, LOOK), (MOVE,))
    assert await times.registered_walk(procedure_id) is walk, "it is read once"
    without = await memory.create(RegisterProcedure(name="Alignment", kind="alignment"))
    assert await times.registered_walk(without) is None
