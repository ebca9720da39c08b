"""Fingerprints of rehearsals: a start that names one is refused where what it rested on has changed, and says what."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from baton.domain.conduct.conduct import ConductFromProcedure, ConductProcedure
from baton.domain.conduct.run_conduct import ConductRun
from baton.domain.conduct.steered_conduct import ConductUntilAdvised
from baton.domain.conduct.twin import LastValue
from baton.domain.equipment.asset_parts import AddAssetAlternateIdentifier
from baton.domain.equipment.signals import SetAssetSignalLimits
from baton.domain.procedure.procedure import HELD, Procedure
from baton.domain.recipe.plan import UpdatePlanDefaultParameters
from baton.domain.start.registration import RegisterProcedureFromRecipe
from baton.domain.views.conduct_rehearsal import RehearsalView, Rehearse
from tests.support.domain.conducts import ENDINGS, SEARCH, conduct_result, open_conduct, register_procedure_from_recipe
from tests.support.domain.launches import launch_plan, launch_recipe, plan_recipe
from tests.support.domain.run_beamline import Beamline
from tests.support.domain.schedules import recipe
from tests.support.domain.world import World, expect_refusal
from tests.support.workflows.step_json import setpoint

STEPS = [setpoint("bl7:x", 1.0), setpoint("bl7:y", 2.0)]


@pytest.fixture(autouse=True)
def ports(line: Beamline) -> None:
    """The beamline's camera owns a signal; its value is the one that a conduct left."""
    world = line.world
    world.ports["last_values"] = {"bl7:y": LastValue(2.0, "mm", True, world.now)}
    world.when(AddAssetAlternateIdentifier(kind="EPICS_PV", value="bl7:x"), on=line.hutch.camera)


def fingerprint_of(world: World, **asked: Any) -> str:
    """The fingerprint of a rehearsal."""
    world.denied.add("ListVisits")
    found: RehearsalView = world.ask(Rehearse(**asked))
    assert found.fingerprint is not None
    return found.fingerprint


def limit_signal(line: Beamline) -> None:
    line.world.when(SetAssetSignalLimits(address="bl7:x", high=5.0, reason="cable"), on=line.hutch.camera)


def move_signal(line: Beamline) -> None:
    line.world.ports["last_values"] = {"bl7:y": LastValue(3.0, "mm", True, line.world.now)}


def age_signal(line: Beamline) -> None:
    """Another conduct has left the same value."""
    line.world.ports["last_values"] = {"bl7:y": LastValue(2.0, "mm", True, line.world.now.replace(year=2027))}


@pytest.mark.parametrize(("change", "changed"), [(limit_signal, ["limits"]), (move_signal, ["values"]), (age_signal, [])])
def test_a_conduct_is_refused_where_what_is_known_of_its_signals_has_changed(
    line: Beamline, change: Callable[[Beamline], None], changed: list[str]
) -> None:
    world = line.world
    id = register_procedure_from_recipe(world, STEPS)
    fingerprint = fingerprint_of(world, procedure_id=id)
    change(line)
    if not changed:
        open_conduct(world, ConductProcedure(fingerprint=fingerprint), on=id)
        return
    with expect_refusal("RehearsalOutdatedError", "basis_changed") as refused:
        open_conduct(world, ConductProcedure(fingerprint=fingerprint), on=id)
    assert refused.value.facts == {"changed": changed}
    open_conduct(world, ConductProcedure(fingerprint=fingerprint_of(world, procedure_id=id)), on=id)


def test_a_recipe_that_was_rehearsed_is_launched_and_its_procedure_conducted(line: Beamline) -> None:
    world, recipe_id = line.world, recipe(line.world, [setpoint("bl7:x", "{date}-{run}")])
    fingerprint = fingerprint_of(world, target={"kind": "ConductRecipe", "recipe_id": recipe_id, "name": "Turn"})
    launch_recipe(world.copy(), recipe_id, fingerprint=fingerprint)
    other = world.copy()
    registered = other.create(RegisterProcedureFromRecipe(recipe_id=recipe_id, name="Another", kind="turn"))
    open_conduct(other, ConductProcedure(fingerprint=fingerprint), on=registered)
    with expect_refusal("RehearsalOutdatedError") as refused:
        launch_recipe(world, recipe(world, STEPS), fingerprint=fingerprint)
    assert refused.value.facts == {"changed": ["steps"]}


def plan_target(line: Beamline, recipe_id: UUID) -> dict[str, Any]:
    asked = {name: value for name, value in line.request.items() if name != "override_parameters"}
    return {"kind": "ConductPlan", "phases": [{"recipe_id": recipe_id, "name": "Scan"}], **asked}


def test_a_plan_that_was_rehearsed_is_launched_or_started_and_conducted_step_by_step(line: Beamline) -> None:
    world, recipe_id = line.world, plan_recipe(line, steps=[setpoint("bl7:x", "{run}")])
    fingerprint = fingerprint_of(world, target=plan_target(line, recipe_id))
    run_id = line.start(fingerprint=fingerprint)
    phase = world.create(RegisterProcedureFromRecipe(recipe_id=recipe_id, name="S", kind="scan", parent_run_id=run_id))
    world.when(ConductRun(procedure_ids=[phase], fingerprint=fingerprint), on=run_id)
    launch_plan(line, fingerprint=fingerprint)
    world.when(UpdatePlanDefaultParameters(default_parameters_patch={"dwell": 0.3}), on=line.plan_id)
    for start in (line.start, lambda **fields: launch_plan(line, **fields)):
        with expect_refusal("RehearsalOutdatedError") as refused:
            start(fingerprint=fingerprint)
        assert refused.value.facts == {"changed": ["run"]}
    assert "the plan, its method or its parameters changed; rehearse it again" in refused.value.detail


def test_phases_are_refused_whose_steps_were_not_rehearsed(line: Beamline) -> None:
    world, recipe_id = line.world, plan_recipe(line, steps=STEPS)
    run_id, fingerprint = line.start(), fingerprint_of(world, target=plan_target(line, recipe_id))
    others = plan_recipe(line, "Other scan", steps=[setpoint("bl7:x", 2.0), setpoint("bl7:y", 2.0)])
    phase = world.create(RegisterProcedureFromRecipe(recipe_id=others, name="S", kind="scan", parent_run_id=run_id))
    with expect_refusal("RehearsalOutdatedError") as refused:
        world.when(ConductRun(procedure_ids=[phase], fingerprint=fingerprint), on=run_id)
    assert refused.value.facts == {"changed": ["steps"]}


def test_a_held_procedure_is_taken_up_where_it_was_rehearsed_from(line: Beamline) -> None:
    world, id = line.world, register_procedure_from_recipe(line.world, STEPS)
    open_conduct(world, ConductProcedure(), on=id)
    world.when(ENDINGS["hold"][0](conduct_result(world, id)), on=id)
    assert world.state(Procedure, id).status is HELD
    world.ports["completed_step_count"] = 1
    fingerprint = fingerprint_of(world, procedure_id=id)
    with expect_refusal("RehearsalOutdatedError") as refused:
        world.when(ConductFromProcedure(re_establishment_boundary=0, fingerprint=fingerprint), on=id)
    assert refused.value.facts == {"changed": ["steps"]}
    open_conduct(world, ConductFromProcedure(fingerprint=fingerprint), on=id)


def test_a_search_is_refused_where_it_looks_elsewhere_than_was_rehearsed(line: Beamline) -> None:
    world, id = line.world, register_procedure_from_recipe(line.world)
    wider = {**SEARCH, "space": {"axes": [{"name": "focus", "lower": -3, "upper": 3}]}}
    fingerprint = fingerprint_of(world, procedure_id=id)
    with expect_refusal("RehearsalOutdatedError"):
        open_conduct(world, ConductUntilAdvised(**wider, fingerprint=fingerprint), on=id)


def test_a_text_that_no_rehearsal_answered_is_outdated(line: Beamline) -> None:
    with expect_refusal("RehearsalOutdatedError"):
        line.start(fingerprint="x" * 64)
