"""Programs are allowed by name: asked when a procedure is registered, before it starts and before it goes on."""

from typing import Any

import pytest

from baton.domain.conduct.preflight import PreflightProcedure, ProcedurePreflight
from baton.domain.conduct.run_conduct import ConductRun
from baton.domain.kernel import Command
from baton.domain.procedure.procedure import ConductMode, Procedure
from tests.support.domain.conducts import BEGINNING, FOCUS_STEPS, GOING_ON, open_and_hold, register_procedure_from_recipe
from tests.support.domain.run_beamline import Beamline
from tests.support.domain.world import World, expect_refusal
from tests.support.workflows.step_json import compute

RECON = "/opt/recon/bin/recon"
STEPS = [*FOCUS_STEPS, compute(RECON, "--fast")]
NOT_ALLOWED = "ComputeProgramNotAllowedError"


def allow(world: World, *programs: str) -> None:
    world.ports["deployment"].compute_programs = frozenset(programs)


def gates(world: World, id: Any) -> dict[str, Any]:
    answer: ProcedurePreflight = world.ask(PreflightProcedure(), on=id)
    return {gate.gate: gate for gate in answer.gates}


@pytest.mark.parametrize(
    "programs", [(), ("recon",), (f"{RECON} ",), ("/opt/recon/bin",), (RECON.upper(),), ("/bin/sh", "--fast")]
)
def test_a_program_that_is_not_listed_letter_by_letter_is_refused_when_the_procedure_is_registered(
    world: World, programs: tuple[str, ...]
) -> None:
    allow(world, *programs)
    with expect_refusal(NOT_ALLOWED, "program_not_allowed") as caught:
        register_procedure_from_recipe(world, STEPS)
    assert caught.value.status == 409
    assert caught.value.facts == {"program": RECON, "list": "steps", "step_index": 2}
    assert not [stream for kind, stream in world.streams if kind == Procedure.__name__]


def test_programs_of_closing_steps_are_asked_for_too(world: World) -> None:
    allow(world, RECON)
    with expect_refusal(NOT_ALLOWED) as caught:
        register_procedure_from_recipe(world, STEPS, [compute("/bin/rm", "-r", "/")])
    assert caught.value.facts == {"program": "/bin/rm", "list": "closing_steps", "step_index": 0}


def test_a_recipe_without_programs_asks_for_none(world: World) -> None:
    allow(world)
    assert register_procedure_from_recipe(world)


@pytest.mark.parametrize("mode", ConductMode)
def test_a_program_that_is_not_allowed_any_more_keeps_a_procedure_from_starting(world: World, mode: ConductMode) -> None:
    allow(world, RECON)
    id = register_procedure_from_recipe(world, STEPS)
    assert gates(world, id)["steps_prepared"].passed
    allow(world)
    with expect_refusal(NOT_ALLOWED):
        world.when(BEGINNING[mode], on=id)
    closed = gates(world, id)["steps_prepared"]
    assert (closed.passed, closed.reason) == (False, "program_not_allowed")


@pytest.mark.parametrize("mode", ConductMode)
def test_a_program_that_is_not_allowed_any_more_keeps_a_held_procedure_from_going_on(
    world: World, mode: ConductMode
) -> None:
    allow(world, RECON)
    id = register_procedure_from_recipe(world, STEPS)
    open_and_hold(world, BEGINNING[mode], id)
    assert gates(world, id)["programs_allowed"].passed
    allow(world)
    going_on: Command = GOING_ON[mode]
    with expect_refusal(NOT_ALLOWED):
        world.when(going_on, on=id)
    closed = gates(world, id)["programs_allowed"]
    assert (closed.passed, closed.reason, closed.asked_by) == (False, "program_not_allowed", (going_on.operation.name,))
    allow(world, RECON)
    world.when(going_on, on=id)


def test_a_run_does_not_begin_with_a_phase_whose_program_is_not_allowed(world: World, line: Beamline) -> None:
    allow(world, RECON)
    run_id = line.start()
    id = register_procedure_from_recipe(world, [compute(RECON, capture_name="n")], parent_run_id=run_id)
    allow(world)
    with expect_refusal("RunPhaseMismatchError", "conduct_unfit") as caught:
        world.when(ConductRun(procedure_ids=[id]), on=run_id)
    assert (caught.value.facts or {})["cause"]["code"] == NOT_ALLOWED
