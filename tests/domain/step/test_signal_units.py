"""Units of steps against those that the control system states: what a preflight says, and what a conduct refuses."""

from typing import Any
from uuid import UUID

import pytest

from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.preflight import PreflightProcedure
from baton.domain.shared.units import UnitPolicy
from baton.domain.start.registration import RegisterProcedure
from tests.support.domain.conducts import procedure_of, register_procedure_from_recipe
from tests.support.domain.run_beamline import Beamline
from tests.support.domain.world import World, expect_refusal
from tests.support.workflows.step_json import capture, check, setpoint

STATED = {"bl7:x": "um", "bl7:turn": "degree", "bl7:bare": None}
FITTING = [setpoint("bl7:x", 1.5, unit="mm"), check("bl7:turn", 3, 1.0, unit="rad"), {**capture("bl7:x", "x"), "unit": "nm"}]


@pytest.fixture(autouse=True)
def control_system(world: World) -> None:
    """A control system that states these units."""
    world.ports["stated_units"] = lambda addresses: {address: STATED.get(address) for address in addresses}


def register(world: World, steps: list[Any]) -> UUID:
    return register_procedure_from_recipe(world, steps, [])


def units_gate(answer: Any) -> Any:
    (gate,) = (one for one in answer.gates if one.gate == "units_agree")
    return gate


def test_a_procedure_whose_units_fit_passes_and_unknown_ones_are_named(world: World, line: Beamline) -> None:
    id = register(world, [*FITTING, setpoint("bl7:bare", 1.0, unit="mm"), setpoint("bl7:turn", 4)])
    answer = world.ask(PreflightProcedure(), on=id)
    assert (units_gate(answer).passed, answer.units_unknown) == (True, ("bl7:bare",))
    verify = {"tolerance": 0.1, "address": "bl7:turn"}
    unfit = register(world, [setpoint("bl7:x", 1.5, unit="mm", verify=verify)])
    gate = units_gate(world.ask(PreflightProcedure(), on=unfit))
    assert (gate.code, gate.facts["address"], gate.facts["control_unit"]) == ("UnitMismatchError", "bl7:turn", "degree")


def test_what_is_no_number_is_not_asked_about(world: World, line: Beamline) -> None:
    del world.ports["stated_units"]
    id = register(
        world, [setpoint("bl7:mode", "Open", unit="mm"), check("bl7:mode", "Open", unit="mm"), setpoint("bl7:x", 1)]
    )
    answer = world.ask(PreflightProcedure(), on=id)
    assert (units_gate(answer).passed, answer.units_unknown) == (True, ())


def test_a_policy_decides_whether_units_are_converted_refused_or_ignored(world: World, line: Beamline) -> None:
    task = RegisterProcedure(name="Centre", kind="alignment", target_asset_ids=[line.hutch.timing_box])
    steps = (setpoint("bl7:x", 1.5, unit="mm"),)
    world.ports["deployment"].unit_policy = UnitPolicy.REFUSE
    with expect_refusal("UnitMismatchError", "unit_mismatch"):
        world.when(ConductProcedure(steps=steps), on=world.create(task))
    world.when(ConductProcedure(steps=(setpoint("bl7:x", 1.5, unit="micron"),)), on=world.create(task))


def test_ignored_units_are_not_even_asked_for(world: World, line: Beamline) -> None:
    del world.ports["stated_units"]
    world.ports["deployment"].unit_policy = UnitPolicy.IGNORE
    task = RegisterProcedure(name="Centre", kind="alignment", target_asset_ids=[line.hutch.timing_box])
    world.when(ConductProcedure(steps=(setpoint("bl7:turn", 1.5, unit="mm"),)), on=world.create(task))


def test_the_preflight_of_a_run_asks_the_recipes_of_its_phases(world: World, line: Beamline) -> None:
    steps = (FITTING, [setpoint("bl7:bare", 1, unit="mm")], [setpoint("bl7:turn", 1, unit="mm")])
    fitting, bare, unfit = (procedure_of(world, register(world, one)).recipe_id for one in steps)
    assert "units_agree" not in {one.gate for one in line.preflight().gates}
    answer = line.preflight(recipe_ids=[fitting, bare])
    assert (units_gate(answer).passed, answer.units_unknown) == (True, ("bl7:bare",))
    gate = units_gate(line.preflight(recipe_ids=[unfit]))
    assert (gate.passed, gate.code, gate.asked_by) == (False, "UnitMismatchError", ("conduct_run",))
