"""The worked examples of procedures: centring a rotation axis, an energy that does not arrive, a focus, a shift change."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.conduct import (
    ConductFromProcedure,
    ConductOrHoldProcedure,
    ConductProcedure,
    ConductUntilConverged,
)
from baton.domain.conduct.endings import CompleteProcedure, HoldProcedure
from baton.domain.conduct.steered_conduct import ConductUntilAdvised
from baton.domain.equipment.asset_tree import RegisterAsset
from baton.domain.procedure.procedure import ProcedureIterationEnded, ProcedureOutcomeRecorded, ProcedureStatus
from baton.domain.shared.refusals import Refusal
from baton.domain.start.procedure_start import ResumeProcedure, StartProcedure
from baton.domain.step.results import Measured
from baton.infrastructure.compute.in_memory import SimulatedCompute, SimulatedOutcome
from baton.infrastructure.plugins import ActionRegistry
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.step_json import (
    action,
    capture,
    captured_value,
    check,
    compute,
    criterion,
    setpoint,
    steered_value,
)

ROUTES = ({"prefix": "bl7:", "substrate": "in_memory"},)
SIGNALS = {"bl7:stage:x": 0, "bl7:shutter": 1, "bl7:energy": 0, "bl7:energy:rbv": 20, "bl7:energy:moving": 0}
DEVICES = (
    {"kind": "signal", "address": "bl7:focus", "value": 0},
    {"kind": "peak", "address": "bl7:sharpness", "centres": {"bl7:focus": 0.5}, "width": 1},
)


async def collect_action(control: Any, time: Any, params: Any) -> dict[str, Any]:
    return {"frames": params.get("repetitions", 1)}


def measured_offset(value: float) -> Any:
    measured = Measured(name="offset", value=value, kind="Scalar", units="px", quality="Good")
    return lambda job: SimulatedOutcome(measurements=(measured,))


@pytest.fixture(scope="module")
async def module_stack(database: str, temporal: EmbeddedTemporal) -> AsyncIterator[ConductStack]:
    own = {"actions": ActionRegistry({"expose": collect_action}), "compute": SimulatedCompute()}
    plant = {"control_routes": ROUTES, "simulated_signals": SIGNALS, "simulated_devices": DEVICES}
    async with open_conduct_stack(database, temporal.address, **own, **plant) as stack:
        yield stack


@pytest.fixture
def stack(module_stack: ConductStack) -> ConductStack:
    """A plant as at the beginning, and a program that finds these offsets, one after the other."""
    module_stack.reset_plant(SIGNALS)
    assert isinstance(module_stack.compute, SimulatedCompute)
    module_stack.compute.seed(("find-offset",), *map(measured_offset, (3.2, 0.9, 0.3)))
    return module_stack


CENTRING = [
    action("expose", repetitions=2),
    compute("find-offset", capture_name="offset"),
    setpoint("bl7:stage:x", captured_value("offset")),
]
CLOSED = [setpoint("bl7:shutter", 0)]
CENTRED = {"convergence_capture_name": "offset", "criterion": criterion(0, 0.5), "wait": 60}


async def test_a_rotation_axis_is_centred_in_three_passes(stack: ConductStack) -> None:
    id = await stack.register_from_recipe(CENTRING, CLOSED, max_consecutive_unconverged_iterations=5)
    result = await stack.conduct(ConductUntilConverged(**CENTRED), id)
    assert (result["succeeded"], result["iteration_count"], result["closing_failures"]) == (True, 3, [])
    assert [(item["name"], item["value"], item["units"]) for item in result["measurements"]] == [("offset", 0.3, "px")]
    assert result["substrate_writes"] == {"bl7:stage:x": 0.3, "bl7:shutter": 0}
    assert result["actuation_kind"] == "Hybrid", "the programs are simulated here, the plant is not"
    ended = [event.converged for event in await stack.events(id) if isinstance(event, ProcedureIterationEnded)]
    assert ended == [False, False, True]
    assert [value for _, value in stack.control.writes] == [3.2, 0.9, 0.3, 0]
    assert (await stack.procedure(id)).status is ProcedureStatus.COMPLETED


async def test_a_shutter_that_does_not_close_does_not_undo_the_success(stack: ConductStack) -> None:
    stack.plant.simulate_disconnect("bl7:shutter")
    id = await stack.register_from_recipe(CENTRING, CLOSED)
    result = await stack.conduct(ConductUntilConverged(**CENTRED), id)
    assert result["succeeded"]
    (failure,) = result["closing_failures"]
    assert (failure["step_index"], failure["target"], failure["error_class"]) == (
        0,
        "bl7:shutter",
        "ControlNotConnectedError",
    )


async def test_patience_for_two_passes_allows_two(stack: ConductStack) -> None:
    id = await stack.register_from_recipe(CENTRING, CLOSED, max_consecutive_unconverged_iterations=5)
    result = await stack.conduct(ConductUntilConverged(**CENTRED, max_consecutive_unconverged_iterations=2), id)
    assert result["failure"]["error_class"] == "ConvergenceIterationCapReached"
    assert (result["iteration_count"], result["failure"]["target"]) == (2, "abort")
    assert (await stack.procedure(id)).status is ProcedureStatus.ABORTED
    assert stack.control.writes[-1] == ("bl7:shutter", 0), "it closes at the end of the loop, once"


async def test_an_energy_that_does_not_arrive_is_held_and_taken_up_when_it_does(stack: ConductStack) -> None:
    steps = [setpoint("bl7:energy", 25.0), check("bl7:energy:rbv", 25, 0.01, timeout=0.2)]
    id, result = await stack.conduct_steps(steps, ConductOrHoldProcedure)
    assert (result["succeeded"], result["held"]) == (False, True)
    assert (result["failure"]["step_index"], result["failure"]["source_kind"]) == (1, "check")
    await stack.plant.write("bl7:energy:rbv", 25.001)
    result = await stack.conduct(ConductFromProcedure(re_establishment_boundary=0, wait=60), id)
    assert (result["succeeded"], stack.control.writes) == (True, [("bl7:energy", 25.0)] * 2)


async def test_a_focus_is_looked_for_as_often_as_the_budget_allows(stack: ConductStack) -> None:
    id = await stack.register_from_recipe(
        [setpoint("bl7:focus", steered_value("focus")), capture("bl7:sharpness", "sharpness")], CLOSED
    )
    result = await stack.conduct(
        ConductUntilAdvised(
            objective={"kind": "Maximize", "target_measurement_name": "sharpness"},
            space={"axes": [{"name": "focus", "lower": -2.0, "upper": 2.0}]},
            objective_capture_name="sharpness",
            decide={"substrate": "grid_walk", "points_per_axis": 9},
            budget={"iterations_remaining": 6},
            wait=60,
        ),
        id,
    )
    assert (result["succeeded"], result["termination_reason"]) == (True, "BudgetIterationsExhausted")
    outcomes = [event for event in await stack.events(id) if isinstance(event, ProcedureOutcomeRecorded)]
    assert [event.point["focus"] for event in outcomes] == [-2, -1.5, -1, -0.5, 0, 0.5]
    assert outcomes[-1].measurements[0].value == pytest.approx(1)
    assert stack.control.writes[-1] == ("bl7:shutter", 0)


async def test_what_was_begun_by_hand_can_still_be_conducted(stack: ConductStack) -> None:
    id = await stack.register_procedure()
    await stack.do(StartProcedure(), id)
    result = await stack.conduct(ConductProcedure(steps=(setpoint("bl7:energy", 1),), wait=60), id)
    assert result["succeeded"]
    other = await stack.register_procedure()
    await stack.do(StartProcedure(), other)
    await stack.do(CompleteProcedure(), other)
    assert (await stack.procedure(other)).status is ProcedureStatus.COMPLETED


async def test_a_shift_change_holds_after_the_step_in_progress(stack: ConductStack) -> None:
    stack.plant.set_reading("bl7:gate", (await stack.plant.read("bl7:shutter")))
    waiting = check("bl7:gate", 5, timeout=120)
    steps = [setpoint("bl7:energy", n) for n in range(7)]
    steps = [
        capture("bl7:energy:rbv", "seen"),
        *steps,
        waiting,
        action("expose"),
        setpoint("bl7:stage:x", captured_value("seen")),
    ]
    id = await stack.register_procedure()
    accepted = await stack.do(ConductProcedure(steps=tuple(steps), wait=0), id)
    assert accepted.status == 202

    async def is_at_the_check() -> bool:
        return len(await stack.ledger(id)) >= 15

    await until(is_at_the_check)
    held = await stack.do(HoldProcedure(reason="shift change"), id)
    assert (held.status, held.body) == (202, {"procedure_id": str(id), "conduct_id": accepted.body["conduct_id"]})
    await stack.plant.write("bl7:gate", 5)
    await stack.wait_for_status(id, ProcedureStatus.HELD)
    procedure = await stack.procedure(id)
    assert (procedure.last_status_reason, procedure.live_conduct_id) == ("shift change", None)
    assert (await stack.event_types(id))[-3:] == ["ProcedureHoldRequested", "ProcedureConducted", "ProcedureHeld"]
    with pytest.raises(Refusal) as refused:
        await stack.do(ResumeProcedure(), id)
    assert (refused.value.reason, refused.value.facts) == ("conduct_pinned", {"command": "conduct_from_procedure"})
    result = await stack.conduct(
        ConductFromProcedure(re_establishment_boundary=9, skip=True, skip_reason="settled by hand", wait=60), id
    )
    assert result["succeeded"], result
    assert stack.control.writes[-1] == ("bl7:stage:x", 20), "what was captured before the hold is still there"


async def test_two_conducts_never_share_a_stage(stack: ConductStack) -> None:
    asset = await stack.do(RegisterAsset(name="Stage", tier="Unit", facility_code="facility"))
    asset_id = (asset.body or {})["asset_id"]
    first, second = [await stack.register_procedure(target_asset_ids=[asset_id]) for _ in range(2)]
    opened = await stack.do(ConductProcedure(steps=(check("bl7:energy", 9, timeout=120),), wait=0), first)
    with pytest.raises(Refusal) as refused:
        await stack.do(ConductProcedure(steps=(setpoint("bl7:energy", 1),)), second)
    assert (refused.value.code, refused.value.reason) == ("ProcedureCannotConductError", "asset_in_use")
    assert refused.value.facts == {
        "asset_id": asset_id,
        "procedure_id": str(first),
        "conduct_id": (opened.body or {})["conduct_id"],
    }
    await stack.plant.write("bl7:energy", 9)
    await stack.wait_until_over(first)
    result = await stack.conduct(ConductProcedure(steps=(setpoint("bl7:energy", 1),), wait=60), second)
    assert result["succeeded"]
