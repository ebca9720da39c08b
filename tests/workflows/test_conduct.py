"""Conducts from end to end: what is asked for, what the plant sees, what the ledger and the stream say afterwards."""

from collections.abc import AsyncIterator

import pytest

from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.conduct import ConductFromProcedure, ConductOrHoldProcedure, ConductProcedure
from baton.domain.procedure.procedure import ProcedureStatus
from baton.domain.start.procedure_start import InvalidProcedureReEstablishmentBoundaryError
from baton.infrastructure.control.simulator import SimulatedFault
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.step_json import capture, check, setpoint

SIGNALS = {"a": 0, "b": 1.5, "c": 0}


@pytest.fixture(scope="module")
async def module_stack(database: str, temporal: EmbeddedTemporal) -> AsyncIterator[ConductStack]:
    async with open_conduct_stack(database, temporal.address, simulated_signals=SIGNALS) as stack:
        yield stack


@pytest.fixture
def stack(module_stack: ConductStack) -> ConductStack:
    module_stack.reset_plant(SIGNALS)
    return module_stack


async def test_steps_are_done_in_order_and_the_procedure_completes(stack: ConductStack) -> None:
    steps = [
        setpoint("a", 3),
        check("a", 3),
        {"kind": "capture", "address": "b", "capture_name": "n"},
        setpoint("c", {"__capture__": "n"}),
    ]
    procedure_id, result = await stack.conduct_steps(steps)
    assert (result["succeeded"], result["completed_count"], result["substrate_writes"]) == (True, 4, {"a": 3, "c": 1.5})
    assert stack.control.writes == [("a", 3), ("c", 1.5)]
    assert (await stack.procedure(procedure_id)).status is ProcedureStatus.COMPLETED
    assert (await stack.event_types(procedure_id))[-2:] == ["ProcedureConducted", "ProcedureCompleted"]
    marks = [(row["kind"], row["mark"], row["result"]) for row in await stack.ledger(procedure_id)]
    assert marks == [
        ("setpoint", "in_flight", "in_flight"),
        ("setpoint", "outcome", "ok"),
        ("check", "outcome", "ok"),
        ("capture", "outcome", "ok"),
        ("setpoint", "in_flight", "in_flight"),
        ("setpoint", "outcome", "ok"),
    ]


async def test_a_failed_setpoint_aborts(stack: ConductStack) -> None:
    stack.plant.simulate_fault("a", SimulatedFault.REJECTING)
    procedure_id, result = await stack.conduct_steps([setpoint("c", 1), setpoint("a", 3), setpoint("c", 2)])
    assert result["failure"] == {
        "step_index": 1,
        "source_kind": "setpoint",
        "target": "a",
        "error_class": "ControlWriteRejectedError",
        "message": "a refuses to be written.",
    }
    procedure = await stack.procedure(procedure_id)
    assert procedure.status is ProcedureStatus.ABORTED
    assert procedure.last_status_reason == "setpoint[1] a failed: ControlWriteRejectedError: a refuses to be written."
    assert stack.control.writes == [("c", 1), ("a", 3)]


async def test_a_failed_check_holds_where_that_was_asked_for_and_is_taken_up_again(stack: ConductStack) -> None:
    steps = [setpoint("a", 25.0), check("c", 25)]
    procedure_id, result = await stack.conduct_steps(steps, ConductOrHoldProcedure)
    assert (result["succeeded"], result["held"], result["failure"]["error_class"]) == (False, True, "CheckFailedError")
    assert (await stack.procedure(procedure_id)).status is ProcedureStatus.HELD
    await stack.control.write("c", 25)
    again = await stack.do(ConductFromProcedure(re_establishment_boundary=0, wait=60), procedure_id)
    assert again.body is not None
    assert (again.body["succeeded"], again.body["re_establishment_boundary"]) == (True, 0)
    assert (await stack.procedure(procedure_id)).status is ProcedureStatus.COMPLETED
    assert stack.control.writes == [("a", 25.0), ("c", 25), ("a", 25.0)]


async def test_without_routes_the_plant_is_the_simulator_and_says_so(stack: ConductStack) -> None:
    assert not stack.runtime.settings.control_routes
    _, result = await stack.conduct_steps([setpoint("a", 1), capture("a", "seen")])
    assert (result["succeeded"], result["actuation_kind"]) == (True, "Simulated")


async def test_a_repeat_with_the_same_key_gets_the_same_conduct(stack: ConductStack) -> None:
    procedure_id = await stack.register_procedure()
    command = ConductProcedure(steps=(setpoint("a", 1),), wait=60)
    first = await stack.do(command, procedure_id, key="once")
    again = await stack.do(command.model_copy(update={"wait": 5}), procedure_id, key="once")
    assert (first.body, again.body, again.replayed, again.status) == (first.body, first.body, True, 200)
    assert stack.control.writes == [("a", 1)]


async def test_a_procedure_is_taken_up_where_it_was_held_and_leaves_out_only_what_somebody_says(stack: ConductStack) -> None:
    steps = [setpoint("a", 1), check("c", 25), setpoint("a", 2), setpoint("a", 3)]
    procedure_id, _ = await stack.conduct_steps(steps, ConductOrHoldProcedure)
    with pytest.raises(InvalidProcedureReEstablishmentBoundaryError, match="Step 1 is not done"):
        await stack.do(ConductFromProcedure(re_establishment_boundary=3), procedure_id)
    skipping = ConductFromProcedure(re_establishment_boundary=2, skip=True, skip_reason="the check is broken", wait=60)
    result = await stack.conduct(skipping, procedure_id)
    assert (result["succeeded"], result["completed_count"], result["skipped_count"]) == (True, 2, 1)
    assert stack.control.writes == [("a", 1), ("a", 2), ("a", 3)]
    assert [row["step_index"] for row in await stack.ledger(procedure_id) if row["result"] == "skipped"] == [1]
    again, _ = await stack.conduct_steps(steps, ConductOrHoldProcedure)
    await stack.control.write("c", 25)
    stack.control.writes.clear()
    result = await stack.conduct(ConductFromProcedure(wait=60), again)
    assert (result["succeeded"], result["completed_count"], result["re_establishment_boundary"]) == (True, 3, 1)
    assert stack.control.writes == [("a", 2), ("a", 3)]
