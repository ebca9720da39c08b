"""Conducts whose submitter stood down, on a real database and engine, with policies and without."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from baton.application.caller import Caller
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.access.actor import DeactivateActor
from baton.domain.agent.agent import DefineAgent, ResumeAgent, SuspendAgent, VersionAgent
from baton.domain.conduct.conduct import ConductFromProcedure, ConductProcedure
from baton.domain.conduct.endings import AbortProcedure
from baton.domain.conduct.run_conduct import ConductRun
from baton.domain.conduct.steered_conduct import ConductUntilAdvised, ConductUntilAdvisedFrom, GetProcedureSteering
from baton.domain.kernel import NIL
from baton.domain.procedure.procedure import HoldCause, ProcedureHeld, ProcedureIterationEnded, ProcedureStatus
from baton.domain.registry import REGISTRY
from baton.domain.run.run import RunHeld, RunStatus
from baton.domain.shared.refusals import UnauthorizedError
from baton.domain.start.run_start import ResumeRun
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.infrastructure.compute.in_memory import SimulatedCompute
from baton.infrastructure.wall_clock import new_id
from tests.support.databases import fresh_database
from tests.support.domain.world import expect_refusal
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import OPERATOR, ConductStack, open_conduct_stack
from tests.support.workflows.proposal_cases import define_policy
from tests.support.workflows.run_cases import PLANT, RunStack, build_run_stack
from tests.support.workflows.schedule_cases import register_member
from tests.support.workflows.step_json import capture, check, setpoint, steered_value

OPEN_GATE = check("gate", 1, timeout=120)
"""A step that goes on when the test says so."""
TWELVE = [setpoint("a", 1), OPEN_GATE, *(setpoint("a", value) for value in range(3, 13))]
SEARCH: dict[str, Any] = {
    "objective": {"kind": "Maximize", "target_measurement_name": "sharpness"},
    "space": {"axes": [{"name": "focus", "lower": 0.0, "upper": 2.0}]},
    "objective_capture_name": "sharpness",
    "decide": {"substrate": "caller", "advice_timeout": 60},
}
FOCUSING = [setpoint("a", steered_value("focus")), capture("sharpness", "sharpness")]
EVERYTHING = REGISTRY.command_names()


@pytest.fixture(scope="module", params=["permissive", "policy"])
def mode(request: Any) -> str:
    answer: str = request.param
    return answer


@pytest.fixture(scope="module")
async def run_stack(
    postgres: EmbeddedPostgres, template: str, temporal: EmbeddedTemporal, mode: str
) -> AsyncIterator[RunStack]:
    """A conduct stack whose caller may do everything and stays in good standing."""
    chosen = {"authorization_mode": mode, "bootstrap_principal_id": OPERATOR}
    with fresh_database(postgres, template) as url:
        async with open_conduct_stack(url, temporal.address, compute=SimulatedCompute(), **chosen, **PLANT) as stack:
            stack.caller = Caller.system(new_id())
            run_stack = await build_run_stack(stack)
            stack.caller, _ = await register_member(stack, EVERYTHING)
            yield run_stack


@pytest.fixture
async def stack(run_stack: RunStack) -> ConductStack:
    await run_stack.start()
    return run_stack.stack


async def agent(stack: ConductStack) -> Caller:
    """An agent in service that may do everything."""
    defined = await stack.do(
        DefineAgent(kind="Other", name="Steerer", version="1", model_ref={"provider": "deterministic", "model": "own"})
    )
    id = UUID((defined.body or {})["agent_id"])
    await stack.do(VersionAgent(), id)
    await define_policy(stack, id, *EVERYTHING)
    return Caller(id, SYSTEM_HTTP, new_id())


async def wait_until_asking(stack: ConductStack, id: UUID) -> None:
    """Wait until a conduct asks for advice."""

    async def is_waiting() -> bool:
        return bool((await stack.ask(GetProcedureSteering(), id)).waiting)

    await until(is_waiting)


async def has_rows(stack: ConductStack, id: UUID, count: int) -> None:
    """Wait until the ledger has this many rows, and the step behind them has begun to wait."""

    async def has_written() -> bool:
        return len(await stack.ledger(id)) >= count

    await until(has_written)


async def hold_event(stack: ConductStack, id: UUID) -> ProcedureHeld:
    """How the procedure was held, which the service must have written."""
    await stack.wait_for_status(id, ProcedureStatus.HELD)
    async with stack.runtime.store.session() as session:
        *_, last = await session.history("Procedure", id, 0, 200)
    assert (last.event_type, last.principal_id) == (ProcedureHeld.__name__, NIL)
    event = (await stack.events(id))[-1]
    assert isinstance(event, ProcedureHeld)
    return event


async def test_no_step_is_done_for_somebody_deactivated_and_another_takes_it_up(stack: ConductStack) -> None:
    submitter, _ = await register_member(stack, EVERYTHING)
    id = await stack.register_from_recipe(TWELVE, [setpoint("shutter", 0)])
    await stack.runtime.service.execute(ConductProcedure(wait=0), submitter, target_id=id)
    await has_rows(stack, id, 2)
    await stack.do(DeactivateActor(), submitter.principal_id)
    await stack.plant.write("gate", 1)
    event = await hold_event(stack, id)
    assert (event.cause, "SubmitterStoodDown" in event.reason) == (HoldCause.SUBMITTER_STOOD_DOWN, True)
    assert stack.control.writes == [("a", 1)]
    result = await stack.conduct(ConductFromProcedure(wait=60), id)
    assert result["succeeded"]
    assert stack.control.writes == [("a", 1), *(("a", value) for value in range(3, 13)), ("shutter", 0)]


async def test_an_agent_suspended_while_advice_is_awaited_leaves_its_search_held_and_goes_on_later(
    stack: ConductStack,
) -> None:
    submitter = await agent(stack)
    id = await stack.register_from_recipe(FOCUSING)
    await stack.runtime.service.execute(ConductUntilAdvised(**SEARCH, wait=0), submitter, target_id=id)
    await wait_until_asking(stack, id)
    await stack.do(SuspendAgent(reason="odd advice"), submitter.principal_id)
    assert (await hold_event(stack, id)).cause is HoldCause.DRIVER_STOOD_DOWN
    (ended,) = [event for event in await stack.events(id) if isinstance(event, ProcedureIterationEnded)]
    assert (ended.converged, "SteeringDriverStoodDown" in (ended.reason or "")) == (None, True)
    with expect_refusal(UnauthorizedError, "agent_not_versioned"):
        await stack.runtime.commands.execute(ConductUntilAdvisedFrom(**SEARCH), submitter, target_id=id)
    await stack.do(ResumeAgent(), submitter.principal_id)
    await stack.runtime.service.execute(ConductUntilAdvisedFrom(**SEARCH, wait=0), submitter, target_id=id)
    await wait_until_asking(stack, id)
    await stack.do(AbortProcedure(reason="enough"), id)
    await stack.wait_for_status(id, ProcedureStatus.ABORTED)


async def test_a_run_is_held_with_its_phase_and_somebody_else_conducts_what_is_left(run_stack: RunStack) -> None:
    series = await run_stack.start()
    stack = series.stack
    submitter, _ = await register_member(stack, EVERYTHING)
    first = await series.recipe_phase([setpoint("a", 1), OPEN_GATE, setpoint("b", 2)])
    second = await series.recipe_phase([setpoint("c", 3)])
    command = ConductRun(phases=[{"procedure_id": first}, {"procedure_id": second}], wait=0)
    await stack.runtime.service.execute(command, submitter, target_id=series.run_id)
    await series.wait_for_ledger_rows(first, 2)
    await stack.do(DeactivateActor(), submitter.principal_id)
    await series.wait_for_status(RunStatus.HELD)
    await stack.plant.write("gate", 1)
    result = await series.result()
    assert (result["succeeded"], result["failure"]["error_class"]) == (False, "SubmitterStoodDown")
    assert (await hold_event(stack, first)).cause is HoldCause.SUBMITTER_STOOD_DOWN
    assert stack.control.writes == [("a", 1)]
    (event,) = [event for event in await series.events() if isinstance(event, RunHeld)]
    assert "SubmitterStoodDown" in (event.reason or "")
    async with stack.runtime.store.session() as session:
        history = await session.history("Run", series.run_id, 0, 10)
    assert next(row for row in history if row.event_type == RunHeld.__name__).principal_id == NIL
    await stack.do(ResumeRun(), series.run_id)
    assert (await stack.conduct(ConductFromProcedure(wait=60), first))["succeeded"]
    assert (await series.conduct(second)).status == 200
    assert (await series.run()).status is RunStatus.COMPLETED
    assert stack.control.writes == [("a", 1), ("b", 2), ("c", 3)]
