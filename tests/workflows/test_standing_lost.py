"""Conducts whose submitter stood down, on a real database and engine, with policies and without."""

import os
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest

from baton.application.ports import Caller
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.access.actor import DeactivateActor, RegisterActor
from baton.domain.agent.agent import DefineAgent, ResumeAgent, SuspendAgent, VersionAgent
from baton.domain.kernel import NIL, SYSTEM_CONDUIT
from baton.domain.operation.conduct.conduct import ConductFromProcedure, ConductProcedure
from baton.domain.operation.procedure.endings import AbortProcedure
from baton.domain.operation.procedure.procedure import HoldCause, ProcedureHeld, ProcedureIterationEnded, ProcedureStatus
from baton.domain.operation.steering.steered_conduct import (
    ConductUntilAdvised,
    ConductUntilAdvisedFrom,
    GetProcedureSteering,
)
from baton.domain.registry import REGISTRY
from baton.domain.run.conduct import ConductRun
from baton.domain.run.run import RunHeld, RunStatus
from baton.domain.run.start import ResumeRun
from baton.domain.shared.refusals import UnauthorizedError
from baton.domain.trust.policy import DefinePolicy
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.infrastructure.compute.in_memory import SimulatedCompute
from baton.infrastructure.runtime import new_id
from tests.conftest import with_database
from tests.domain.world import refused
from tests.waiting import until
from tests.workflows.runs import PLANT, Floor, furnished
from tests.workflows.stage import OPERATOR, Stage, staged
from tests.workflows.steps import capture, check, setpoint, steered

OPEN_GATE = check("gate", 1, timeout=30)
"""A step that goes on when the test says so."""
TWELVE = [setpoint("a", 1), OPEN_GATE, *(setpoint("a", value) for value in range(3, 13))]
SEARCH: dict[str, Any] = {
    "objective": {"kind": "Maximize", "target_measurement_name": "sharpness"},
    "space": {"axes": [{"name": "focus", "lower": 0.0, "upper": 2.0}]},
    "objective_capture_name": "sharpness",
    "decide": {"substrate": "caller", "advice_timeout": 60},
}
FOCUSING = [setpoint("a", steered("focus")), capture("sharpness", "sharpness")]
EVERYTHING = REGISTRY.command_names()


@pytest.fixture(scope="module", params=["permissive", "policy"])
def mode(request: Any) -> str:
    answer: str = request.param
    return answer


@pytest.fixture(scope="module")
def database(postgres: EmbeddedPostgres, template: str, mode: str) -> Iterator[str]:
    """One database for each mode: every procedure is one of its own."""
    name = f"standing_{mode}_{os.getpid()}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        yield with_database(postgres.url, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
async def floor(database: str, temporal: EmbeddedTemporal, mode: str) -> AsyncIterator[Floor]:
    """A stage whose caller may do everything and stays in good standing."""
    chosen = {"authorization_mode": mode, "bootstrap_principal_id": OPERATOR}
    async with staged(database, temporal.address, compute=SimulatedCompute(), **chosen, **PLANT) as stage:
        stage.caller = Caller.system(new_id())
        floor = await furnished(stage)
        stage.caller, _ = await member(stage)
        yield floor


@pytest.fixture
async def stage(floor: Floor) -> Stage:
    await floor.start()
    return floor.stage


async def member(stage: Stage, may: Iterable[str] = EVERYTHING) -> tuple[Caller, UUID]:
    """Somebody of the crew, and the policy by which they may do things."""
    id = UUID((await stage.do(RegisterActor(name="Mira Okafor"))).body["actor_id"])
    return Caller(id, SYSTEM_HTTP, new_id()), await permit(stage, id, may)


async def permit(stage: Stage, id: UUID, may: Iterable[str] = EVERYTHING) -> UUID:
    grant = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP, "permitted_principal_ids": [id]}
    policy = await stage.do(DefinePolicy(name="Crew", **grant, permitted_commands=sorted(may)))
    return UUID((policy.body or {})["policy_id"])


async def agent(stage: Stage) -> Caller:
    """An agent in service that may do everything."""
    defined = await stage.do(
        DefineAgent(kind="Other", name="Steerer", version="1", model_ref={"provider": "deterministic", "model": "own"})
    )
    id = UUID((defined.body or {})["agent_id"])
    await stage.do(VersionAgent(), id)
    await permit(stage, id)
    return Caller(id, SYSTEM_HTTP, new_id())


async def reaches(stage: Stage, id: UUID, status: ProcedureStatus) -> None:
    async def stands() -> bool:
        return (await stage.procedure(id)).status is status

    await until(stands)


async def asks(stage: Stage, id: UUID) -> None:
    """Wait until a conduct asks for advice."""

    async def waits() -> bool:
        return bool((await stage.ask(GetProcedureSteering(), id)).waiting)

    await until(waits)


async def has_rows(stage: Stage, id: UUID, count: int) -> None:
    """Wait until the ledger has this many rows, and the step behind them has begun to wait."""

    async def written() -> bool:
        return len(await stage.ledger(id)) >= count

    await until(written)


async def held(stage: Stage, id: UUID) -> ProcedureHeld:
    """How the procedure was held, which the service must have written."""
    await reaches(stage, id, ProcedureStatus.HELD)
    async with stage.runtime.store.session() as session:
        *_, last = await session.history("Procedure", id, 0, 200)
    assert (last.event_type, last.principal_id) == (ProcedureHeld.__name__, NIL)
    event = (await stage.events(id))[-1]
    assert isinstance(event, ProcedureHeld)
    return event


async def test_no_step_is_done_for_somebody_deactivated_and_another_takes_it_up(stage: Stage) -> None:
    submitter, _ = await member(stage)
    id = await stage.from_recipe(TWELVE, [setpoint("shutter", 0)])
    await stage.runtime.service.execute(ConductProcedure(wait=0), submitter, target_id=id)
    await has_rows(stage, id, 2)
    await stage.do(DeactivateActor(), submitter.principal_id)
    await stage.plant.write("gate", 1)
    event = await held(stage, id)
    assert (event.cause, "SubmitterStoodDown" in event.reason) == (HoldCause.SUBMITTER_STOOD_DOWN, True)
    assert stage.control.writes == [("a", 1)]
    result = await stage.conduct(ConductFromProcedure(wait=60), id)
    assert result["succeeded"]
    assert stage.control.writes == [("a", 1), *(("a", value) for value in range(3, 13)), ("shutter", 0)]


async def test_an_agent_suspended_while_advice_is_awaited_leaves_its_search_held_and_goes_on_later(stage: Stage) -> None:
    submitter = await agent(stage)
    id = await stage.from_recipe(FOCUSING)
    await stage.runtime.service.execute(ConductUntilAdvised(**SEARCH, wait=0), submitter, target_id=id)
    await asks(stage, id)
    await stage.do(SuspendAgent(reason="odd advice"), submitter.principal_id)
    assert (await held(stage, id)).cause is HoldCause.DRIVER_STOOD_DOWN
    (ended,) = [event for event in await stage.events(id) if isinstance(event, ProcedureIterationEnded)]
    assert (ended.converged, "SteeringDriverStoodDown" in (ended.reason or "")) == (None, True)
    with refused(UnauthorizedError, "agent_not_versioned"):
        await stage.runtime.commands.execute(ConductUntilAdvisedFrom(**SEARCH), submitter, target_id=id)
    await stage.do(ResumeAgent(), submitter.principal_id)
    await stage.runtime.service.execute(ConductUntilAdvisedFrom(**SEARCH, wait=0), submitter, target_id=id)
    await asks(stage, id)
    await stage.do(AbortProcedure(reason="enough"), id)
    await reaches(stage, id, ProcedureStatus.ABORTED)


async def test_a_run_is_held_with_its_phase_and_somebody_else_conducts_what_is_left(floor: Floor) -> None:
    series = await floor.start()
    stage = series.stage
    submitter, _ = await member(stage)
    first = await series.recipe_phase([setpoint("a", 1), OPEN_GATE, setpoint("b", 2)])
    second = await series.recipe_phase([setpoint("c", 3)])
    command = ConductRun(phases=[{"procedure_id": first}, {"procedure_id": second}], wait=0)
    await stage.runtime.service.execute(command, submitter, target_id=series.run_id)
    await series.at_step(first, 2)
    await stage.do(DeactivateActor(), submitter.principal_id)
    await series.reaches(RunStatus.HELD)
    await stage.plant.write("gate", 1)
    result = await series.result()
    assert (result["succeeded"], result["failure"]["error_class"]) == (False, "SubmitterStoodDown")
    assert (await held(stage, first)).cause is HoldCause.SUBMITTER_STOOD_DOWN
    assert stage.control.writes == [("a", 1)]
    (event,) = [event for event in await series.events() if isinstance(event, RunHeld)]
    assert "SubmitterStoodDown" in (event.reason or "")
    async with stage.runtime.store.session() as session:
        history = await session.history("Run", series.run_id, 0, 10)
    assert next(row for row in history if row.event_type == RunHeld.__name__).principal_id == NIL
    await stage.do(ResumeRun(), series.run_id)
    assert (await stage.conduct(ConductFromProcedure(wait=60), first))["succeeded"]
    assert (await series.conduct(second)).status == 200
    assert (await series.run()).status is RunStatus.COMPLETED
    assert stage.control.writes == [("a", 1), ("b", 2), ("c", 3)]
