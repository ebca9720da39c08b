"""Loops and searches that are rehearsed pass by pass, and what is asked of them meanwhile."""

from collections.abc import Awaitable, Callable
from typing import Any

from baton.domain.conduct.conduct import ConductUntilConverged
from baton.domain.conduct.endings import AbortProcedure, HoldProcedure
from baton.domain.conduct.messages import ConductVerdict
from baton.domain.conduct.steered_conduct import ConductUntilAdvised
from baton.domain.run.run import RunAborted, RunHeld, RunStopped
from tests.support.application.memory_conduct import ENDING, MemoryConduct, OpenedConduct
from tests.support.workflows.step_json import capture, captured_value, criterion, setpoint, steered_value

HELD_RUN = RunHeld(reason=None, decided_by_decision_id=None)
CENTRING = [capture("bl7:b", "offset"), setpoint("bl7:a", captured_value("offset"))]
CENTRED = {"convergence_capture_name": "offset", "criterion": criterion(0, 0.5)}
SEARCHING = [setpoint("bl7:a", steered_value("focus")), capture("bl7:b", "sharpness")]
SEARCH: dict[str, Any] = {
    "objective": {"kind": "Maximize", "target_measurement_name": "sharpness"},
    "space": {"axes": [{"name": "focus", "lower": -2.0, "upper": 2.0}]},
    "objective_capture_name": "sharpness",
}
GRID = {"substrate": "grid_walk", "points_per_axis": 3}
CALLER = {"substrate": "caller", "advice_timeout": 600}
FIRST = {"focus": -2.0}


async def open_loop(memory: MemoryConduct, run_id: Any = None, cap: int | None = None, **more: Any) -> OpenedConduct:
    """A loop that has just been opened."""
    conduct = {**CENTRED, "max_consecutive_unconverged_iterations": cap}
    return await memory.open_conduct(CENTRING, how=ConductUntilConverged, run_id=run_id, conduct=conduct, **more)


async def open_search(
    memory: MemoryConduct, decide: Any = None, budget: Any = None, steps: Any = None, **more: Any
) -> OpenedConduct:
    """A search that has just been opened."""
    conduct = {**SEARCH, "decide": decide or GRID, "budget": budget}
    return await memory.open_conduct(steps or SEARCHING, how=ConductUntilAdvised, conduct=conduct, **more)


async def walk_pass(memory: MemoryConduct, conduct: OpenedConduct, reading: float) -> int:
    """Begin a pass and walk it to its end; answers its index."""
    turn = await memory.passes.start(conduct.request)
    assert turn.verdict is ConductVerdict.DONE
    await memory.plant.write("bl7:b", reading)
    for index in range(len(conduct.plan.steps)):
        assert (await memory.step(conduct, index, turn.iteration_index, point=turn.point)).verdict is ConductVerdict.DONE
    return turn.iteration_index


async def walk_last_pass(memory: MemoryConduct, conduct: OpenedConduct) -> None:
    """Walk a pass that ends a loop."""
    await memory.passes.judge(conduct.pass_request(await walk_pass(memory, conduct, 0.1)))


async def twice(memory: MemoryConduct, conduct: OpenedConduct, asking: Callable[[MemoryConduct], Awaitable[Any]]) -> Any:
    """What is answered, the same to another conductor that asks again; and nothing more is on the record then."""
    answer = await asking(memory)
    told = memory.event_types(conduct)
    assert await asking(memory.other_worker()) == answer
    assert memory.event_types(conduct) == told
    return answer


async def request(memory: MemoryConduct, conduct: OpenedConduct, *commands: Any) -> None:
    for command in commands:
        await memory.do(command(reason="shift change"), conduct.procedure_id)


ASKED = [
    ((HoldProcedure,), ConductVerdict.HOLD),
    ((AbortProcedure,), ConductVerdict.ABORT),
    ((HoldProcedure, AbortProcedure), ConductVerdict.ABORT),
]
RUN_LIVES = [
    (HELD_RUN, ConductVerdict.RUN_HELD),
    (RunStopped(reason="enough", **ENDING), ConductVerdict.RUN_STOPPED),
    (RunAborted(reason="smoke", **ENDING), ConductVerdict.RUN_ABORTED),
]
