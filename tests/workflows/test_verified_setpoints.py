"""Setpoints that are waited for until they took: with heartbeat, until an abort, and by themselves in their activity."""

from collections.abc import AsyncIterator

import pytest

from baton.application.plant import SimulatedMotor
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.conduct import ConductOrHoldProcedure, ConductProcedure
from baton.domain.conduct.endings import AbortProcedure
from baton.domain.procedure.procedure import ProcedureConducted, ProcedureStatus
from baton.infrastructure.control.devices import Motor
from baton.infrastructure.control.simulator import SimulatedFault
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.step_json import setpoint

SIGNALS = {"a": 0, "b": 1.5}


@pytest.fixture(scope="module")
async def module_stack(database: str, temporal: EmbeddedTemporal) -> AsyncIterator[ConductStack]:
    async with open_conduct_stack(database, temporal.address, simulated_signals=SIGNALS) as stack:
        yield stack


@pytest.fixture
def stack(module_stack: ConductStack) -> ConductStack:
    module_stack.reset_plant(SIGNALS)
    return module_stack


async def test_a_conduct_goes_on_when_the_readback_is_near(stack: ConductStack) -> None:
    stack.plant.add(Motor(SimulatedMotor(address="x", velocity=2.0)))
    await stack.plant.write("x", 1, wait=False)
    verify = {"tolerance": 0.1, "address": "x.RBV", "timeout": 30}
    procedure_id, result = await stack.conduct_steps([setpoint("a", 1, verify=verify), setpoint("b", 2)])
    assert result["succeeded"], result
    assert result["substrate_writes"]["a"]["read_from"] == "x.RBV"
    assert result["substrate_writes"]["a"]["read"] == pytest.approx(1, abs=0.1)
    assert result["substrate_writes"]["b"] == 2
    (waited,) = [row["waited"] for row in await stack.ledger(procedure_id) if "waited" in row]
    assert waited > 0


async def test_an_abort_ends_the_wait_and_what_was_written_stands(stack: ConductStack) -> None:
    stack.plant.simulate_fault("a", SimulatedFault.STUCK)
    procedure_id = await stack.register_procedure()
    step = setpoint("a", 3, verify={"tolerance": 0.5, "timeout": 3600})
    await stack.do(ConductProcedure(steps=(step,), wait=0), procedure_id)
    await until(lambda: stack.plant.subscriptions("a") == 1)
    await stack.do(AbortProcedure(reason="wrong sample"), procedure_id)
    await stack.wait_for_status(procedure_id, ProcedureStatus.ABORTED)
    (ended,) = [event for event in await stack.events(procedure_id) if isinstance(event, ProcedureConducted)]
    assert ended.result.substrate_writes == {"a": 3}
    assert stack.plant.subscriptions("a") == 0


async def test_one_that_did_not_take_is_held_for_a_person_where_that_was_asked_for(stack: ConductStack) -> None:
    stack.plant.simulate_fault("a", SimulatedFault.STUCK)
    procedure_id = await stack.register_procedure()
    step = setpoint("a", 3, verify={"tolerance": 0.5})
    result = await stack.conduct(ConductOrHoldProcedure(steps=(step,), wait=60), procedure_id)
    assert (result["held"], result["failure"]["error_class"]) == (True, "SetpointNotReachedError")
    assert result["failure"]["facts"] == {"address": "a", "asked": 3, "read": 0, "tolerance": 0.5}
    assert (await stack.procedure(procedure_id)).status is ProcedureStatus.HELD
