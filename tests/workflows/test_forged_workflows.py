"""What reaches the engine is not believed: forged workflows touch nothing, and what is conducted goes on undisturbed."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy

from baton.application.caller import Caller
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.conduct import ConductProcedure, ConductUntilConverged
from baton.domain.conduct.messages import (
    ConductCursor,
    ConductOrder,
    ConductOutcome,
    ConductStart,
    Finish,
    NextStep,
    conduct_workflow_id,
    lifecycle_failure,
)
from baton.domain.conduct.run_messages import RunConductOrder, run_workflow_id
from baton.domain.conduct.steered_conduct import ConductUntilAdvised
from baton.domain.conduct.views import GetProcedureConduct
from baton.domain.procedure.procedure import ConductMode, ProcedureStatus
from baton.domain.run.run import RunStatus
from baton.infrastructure.compute.in_memory import SimulatedCompute
from baton.infrastructure.temporal.engine import TASK_QUEUE
from baton.infrastructure.wall_clock import new_id
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.run_cases import PLANT, SIGNALS, RunStack, build_run_stack
from tests.support.workflows.step_json import capture, check, criterion, setpoint, steered_value

GATE = check("gate", 1, timeout=120)
"""A step that goes on when the test says so."""
STEPS = [setpoint("a", 1), GATE, setpoint("b", 2)]
CLOSING = [setpoint("shutter", 0)]
FLAT = ConductStart(command_name="ConductProcedure", mode=ConductMode.FLAT, step_count=3, closing_count=1)
NEXT = NextStep(label="forged", timeout_seconds=35)
BROKEN = ConductOutcome(finish=Finish.FAILED, failure=lifecycle_failure("abort", "Broken", "It broke."))


@pytest.fixture(scope="module")
async def run_stack(database: str, temporal: EmbeddedTemporal) -> AsyncIterator[RunStack]:
    async with open_conduct_stack(database, temporal.address, compute=SimulatedCompute(), **PLANT) as stack:
        stack.caller = Caller.system(new_id())
        yield await build_run_stack(stack)


@pytest.fixture
def stack(run_stack: RunStack) -> ConductStack:
    run_stack.stack.reset_plant(SIGNALS)
    return run_stack.stack


async def start_waiting_conduct(
    stack: ConductStack, command: Any = None, steps: Any = STEPS, at: int = 1
) -> tuple[UUID, UUID]:
    """A procedure whose conduct is live and waits at a step."""
    procedure_id = await stack.register_from_recipe(steps, CLOSING)
    executed = await stack.do(command or ConductProcedure(wait=0), procedure_id)

    async def has_reached() -> bool:
        return (await stack.ask(GetProcedureConduct(), procedure_id)).step_index == at

    await until(has_reached)
    return procedure_id, UUID((executed.body or {})["conduct_id"])


async def result_of(stack: ConductStack, procedure_id: UUID) -> Any:
    """What came of the conduct, once it has ended."""
    return (await stack.ask(GetProcedureConduct(), procedure_id)).result


async def run_forged_workflow(
    stack: ConductStack,
    ids: tuple[UUID, UUID],
    cursor: ConductCursor,
    briefing: ConductStart | None = FLAT,
    *,
    instead: bool,
) -> None:
    """Have a workflow of somebody else's run to its end, beside the real one or in its place."""
    procedure_id, conduct_id = ids
    order = ConductOrder(
        procedure_id=procedure_id,
        conduct_id=conduct_id,
        principal_id=new_id(),
        surface_id=new_id(),
        conduit_id=new_id(),
        correlation_id=new_id(),
        start=briefing,
        cursor=cursor,
    )
    await check_end(await start_workflow(stack, "conduct", order, conduct_workflow_id(procedure_id), instead=instead))


async def start_workflow(stack: ConductStack, kind: str, order: Any, id: str, *, instead: bool) -> WorkflowHandle[Any, Any]:
    policy = WorkflowIDConflictPolicy.TERMINATE_EXISTING if instead else WorkflowIDConflictPolicy.FAIL
    return await stack.client.start_workflow(
        kind, order, id=id if instead else f"forged:{new_id()}", task_queue=TASK_QUEUE, id_conflict_policy=policy
    )


async def check_end(handle: WorkflowHandle[Any, Any]) -> None:
    """One under a foreign id fails; one that took the place of the real one finds the record against it, and ends."""
    with suppress(WorkflowFailureError):
        await handle.result()
    assert (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING


FORGERIES = {
    "behind the step that waits": ConductCursor(step_index=2, next_step=NEXT),
    "behind the last step": ConductCursor(step_index=3),
    "at a step that is not there": ConductCursor(step_index=17, next_step=NEXT),
    "closing": ConductCursor(closing=True, next_step=NEXT, outcome=BROKEN),
    "closed": ConductCursor(closing=True, step_index=1, outcome=ConductOutcome(finish=Finish.COMPLETED, completed_count=3)),
    "held": ConductCursor(step_index=1, next_step=NEXT, outcome=ConductOutcome(finish=Finish.HELD)),
    "in a pass": ConductCursor(step_index=0, iteration_index=1, next_step=NEXT),
}


@pytest.mark.parametrize("cursor", FORGERIES.values(), ids=FORGERIES)
async def test_a_forged_conduct_beside_a_live_one_changes_nothing(stack: ConductStack, cursor: ConductCursor) -> None:
    ids = await start_waiting_conduct(stack)
    await run_forged_workflow(stack, ids, cursor, instead=False)
    assert stack.control.writes == [("a", 1)]
    assert (await stack.procedure(ids[0])).live_conduct_id == ids[1]
    await stack.plant.write("gate", 1)
    result = await until(lambda: result_of(stack, ids[0]))
    assert (result.succeeded, result.completed_count) == (True, 3)
    assert stack.control.writes == [("a", 1), ("b", 2), ("shutter", 0)]


@pytest.mark.parametrize("cursor", FORGERIES.values(), ids=FORGERIES)
async def test_a_forged_conduct_in_the_place_of_a_live_one_claims_nothing(
    stack: ConductStack, cursor: ConductCursor
) -> None:
    ids = await start_waiting_conduct(stack)
    await run_forged_workflow(stack, ids, cursor, instead=True)
    assert stack.control.writes == [("a", 1)]
    procedure = await stack.procedure(ids[0])
    assert (procedure.status, procedure.live_conduct_id) == (ProcedureStatus.RUNNING, ids[1])


async def test_a_conduct_of_one_procedure_is_not_ended_under_the_name_of_another(stack: ConductStack) -> None:
    ids = await start_waiting_conduct(stack)
    other = await stack.register_from_recipe(STEPS)
    await run_forged_workflow(stack, (other, ids[1]), ConductCursor(step_index=1, outcome=BROKEN), instead=True)
    assert (await stack.procedure(ids[0])).live_conduct_id == ids[1]
    await stack.plant.write("gate", 1)
    await until(lambda: result_of(stack, ids[0]))


@pytest.mark.parametrize("iteration_index", [1, 2])
async def test_a_pass_is_not_judged_before_it_was_walked(stack: ConductStack, iteration_index: int) -> None:
    steps = [capture("a", "offset"), GATE, setpoint("b", 2)]
    loop = ConductUntilConverged(convergence_capture_name="offset", criterion=criterion(0, 0.5), wait=0)
    ids = await start_waiting_conduct(stack, loop, steps)
    briefing = FLAT.model_copy(update={"command_name": "ConductUntilConverged", "mode": ConductMode.CONVERGED})
    await run_forged_workflow(
        stack, ids, ConductCursor(iteration_index=iteration_index, step_index=3, passes=1), briefing, instead=True
    )
    assert stack.control.writes == []
    assert "ProcedureIterationEnded" not in await stack.event_types(ids[0])


async def test_a_pass_measures_only_where_the_record_says(stack: ConductStack) -> None:
    steps = [GATE, setpoint("b", steered_value("focus")), capture("b", "sharpness")]
    search = ConductUntilAdvised(
        objective={"kind": "Maximize", "target_measurement_name": "sharpness"},
        space={"axes": [{"name": "focus", "lower": -2.0, "upper": 2.0}]},
        objective_capture_name="sharpness",
        wait=0,
    )
    ids = await start_waiting_conduct(stack, search, steps, at=0)
    await stack.plant.write("gate", 1)
    briefing = FLAT.model_copy(update={"command_name": "ConductUntilAdvised", "mode": ConductMode.ADVISED})
    for index in range(3):
        cursor = ConductCursor(iteration_index=1, step_index=index, next_step=NEXT, passes=1, point={"focus": 99.0})
        await run_forged_workflow(stack, ids, cursor, briefing, instead=True)
    assert ("b", 99.0) not in stack.control.writes


@pytest.mark.parametrize("instead", [True, False])
@pytest.mark.parametrize("phase_index", [1, 2, 9])
async def test_no_phase_of_a_run_is_left_out(
    run_stack: RunStack, stack: ConductStack, phase_index: int, instead: bool
) -> None:
    series = await run_stack.start()
    phases = [await series.phase(name) for name in ("first", "second")]
    listed = [
        {"procedure_id": phase, "conduct": {"command": "conduct_procedure", "steps": steps}}
        for phase, steps in zip(phases, ([GATE], [setpoint("b", 2)]), strict=True)
    ]
    conduct_id = UUID(((await series.conduct(*listed, wait=0)).body or {})["conduct_id"])
    await series.wait_until_conducted(phases[0])
    order = RunConductOrder(
        run_id=series.run_id,
        conduct_id=conduct_id,
        principal_id=new_id(),
        surface_id=new_id(),
        conduit_id=new_id(),
        correlation_id=new_id(),
        phase_count=2,
        phase_index=phase_index,
    )
    await check_end(await start_workflow(stack, "conduct-run", order, run_workflow_id(series.run_id), instead=instead))
    assert (await series.run()).status is RunStatus.RUNNING
    assert (await stack.procedure(phases[1])).status is ProcedureStatus.DEFINED
    assert ("b", 2) not in stack.control.writes
    await stack.plant.write("gate", 1)
    if not instead:
        await series.wait_for_status(RunStatus.COMPLETED)
