"""Launches: all that a plan or a recipe takes is decided as a whole, and one refusal leaves nothing of it."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.domain.access.actor import ActorKind, ActorRegistered
from baton.domain.conduct.conduct import CONDUCTED_ASSETS, ConductProcedure
from baton.domain.conduct.endings import AbortProcedure, CompleteProcedure
from baton.domain.contexts import REGISTRY
from baton.domain.equipment.asset import Asset
from baton.domain.launch.launch import Launch, LaunchEnded, LaunchOrigin, LaunchStatus
from baton.domain.launch.launch_ids import OwnLaunchIds
from baton.domain.procedure.procedure import Procedure
from baton.domain.queue.item_records import arranged_item
from baton.domain.queue.items import ItemLaunch
from baton.domain.recipe.plan import Plan
from baton.domain.recipe.recipe import DeprecateRecipe, VersionRecipe
from baton.domain.run.run import AbortRun, CompleteRun, Run, RunConductStarted, StopRun
from baton.domain.start.registration import RegisterProcedureFromRecipe
from baton.domain.start.run_start import StartRun
from baton.domain.target.start_launch import ArrangedLaunch, StartLaunch, timed_name
from tests.support.domain.conducts import (
    CLOSE_SHUTTER,
    FOCUS_STEPS,
    LOOP,
    STEPS,
    conduct_result,
    open_conduct,
    register_procedure,
)
from tests.support.domain.launches import launch_of, launch_plan, launch_recipe, plan_recipe
from tests.support.domain.queues import add_items, item_of, open_queue, queue_of, refuse_item, start_item
from tests.support.domain.run_beamline import REFUSALS, Beamline, beamline
from tests.support.domain.schedules import darks, recipe
from tests.support.domain.world import OPERATOR, World, expect_refusal, new_id
from tests.support.tables import for_each


def record_of(world: World) -> dict[tuple[str, UUID], int]:
    """Return every stream that there is, with its length."""
    return {key: len(events) for key, events in world.streams.items() if events}


def test_the_launch_of_a_plan_starts_its_run_registers_its_phases_and_opens_their_conduct(line: Beamline) -> None:
    darks_id, scan_id = plan_recipe(line, "Darks"), plan_recipe(line, "Scan")
    asked = [{"recipe_id": darks_id, "name": "Darks before"}, {"recipe_id": scan_id}]
    id = launch_plan(line, phases=asked, watch=[], parameters={"dwell": 0.2})
    world, answer, ids = line.world, line.world.answer, OwnLaunchIds(id)
    assert answer == {
        "launch_id": str(id),
        "name": "Load step 1",
        "run_id": str(ids.run_id),
        "procedure_ids": [str(one) for one in ids.procedure_ids(2)],
        "conduct_id": str(ids.conduct_id),
        "work_id": str(ids.conduct_id),
        "acknowledged_cautions": [],
    }
    run = line.run(ids.run_id)
    assert (run.name, run.launch_id, run.live_conduct_id, run.status) == ("Load step 1", id, ids.conduct_id, "Running")
    assert (run.override_parameters, run.subject_id, run.campaign_id) == ({"dwell": 0.2}, line.subject_id, line.campaign_id)
    phases = [world.state(Procedure, one) for one in ids.procedure_ids(2)]
    assert [one.name for one in phases] == ["Darks before", "Scan"]
    assert {(one.parent_run_id, one.launch_id, one.status) for one in phases} == {(run.id, id, "Defined")}
    (opened,) = [one for one in world.streams[Run.__name__, run.id] if isinstance(one, RunConductStarted)]
    assert [phase.procedure_id for phase in opened.phases] == list(ids.procedure_ids(2))
    assert [phase.conduct["watch"] for phase in opened.phases] == [[], []]
    launch = launch_of(world, id)
    assert (launch.status, launch.run_id, launch.procedure_ids) == (LaunchStatus.BEGUN, run.id, ids.procedure_ids(2))
    assert (launch.by, launch.launched_by, launch.plan_id) == (LaunchOrigin.PERSON, OPERATOR, line.plan_id)
    assert {one.kind for one in launch.versions} == {"Recipe", "Plan", "Practice", "Method"}


def test_the_launch_of_a_recipe_registers_a_procedure_and_opens_its_conduct(world: World) -> None:
    recipe_id = recipe(world, FOCUS_STEPS)
    id = launch_recipe(world, recipe_id, name="Focus", conduct={"command": "conduct_until_converged", **LOOP})
    procedure = world.state(Procedure, OwnLaunchIds(id).procedure_id())
    assert (procedure.name, procedure.launch_id, procedure.status) == ("Focus", id, "Running")
    assert (procedure.live_conduct_id, procedure.conduct_mode) == (OwnLaunchIds(id).conduct_id, "Converged")
    assert launch_of(world, id).run_id is None
    assert world.answer["procedure_ids"] == [str(procedure.id)]


def test_what_is_left_out_follows_from_the_plan_and_its_only_recipe(line: Beamline) -> None:
    plan_recipe(line)
    old = plan_recipe(line, "Old scan")
    line.world.when(DeprecateRecipe(), on=old)
    del line.request["name"]
    id = launch_plan(line)
    launch, world = launch_of(line.world, id), line.world
    assert launch.name == timed_name(world.state(Plan, line.plan_id).name, world.now)
    phase = world.state(Procedure, launch.procedure_ids[0])
    assert phase.name == "Tomography scan"
    assert phase.target_asset_ids == world.state(Plan, line.plan_id).asset_ids


def test_a_plan_of_which_several_recipes_realise_it_asks_which(line: Beamline) -> None:
    with expect_refusal("LaunchCannotStartError", "recipe_choice_needed") as none:
        launch_plan(line)
    assert none.value.facts == {"candidates": {}}
    first, second = plan_recipe(line, "Fast"), plan_recipe(line, "Slow")
    before = record_of(line.world)
    with expect_refusal("LaunchCannotStartError", "recipe_choice_needed") as several:
        launch_plan(line)
    assert several.value.facts == {"candidates": {str(first): "Fast", str(second): "Slow"}}
    assert record_of(line.world) == before


@for_each("gate", REFUSALS)
def test_every_gate_of_the_run_is_a_gate_of_the_launch(gate: str) -> None:
    line = beamline(gate)
    phases = [{"recipe_id": plan_recipe(line)}]
    fields = {"phases": phases}
    if (given := line.request.pop("override_parameters", None)) is not None:
        fields["parameters"] = given
    before = record_of(line.world)
    refused = REFUSALS[gate] if gate != "name_given" else "InvalidLaunchTargetError"
    with expect_refusal(refused):
        launch_plan(line, **fields)
    assert record_of(line.world) == before


def test_a_refusal_of_the_third_part_leaves_nothing_of_the_first_two(line: Beamline) -> None:
    recipe_id = plan_recipe(line)
    line.world.denied |= {"AbortProcedure"}
    before = record_of(line.world)
    with expect_refusal("UnauthorizedError", "grants_missing"):
        launch_plan(line, phases=[{"recipe_id": recipe_id}])
    line.world.denied.clear()
    with expect_refusal("RunPhaseMismatchError", "conduct_unfit"):
        launch_plan(line, phases=[{"recipe_id": recipe_id, "conduct": {"steps": STEPS}}])
    assert record_of(line.world) == before


def test_the_phases_are_bound_by_the_parameters_of_the_run(line: Beamline) -> None:
    with expect_refusal("InvalidProcedureBindingsError"):
        launch_plan(line, phases=[{"recipe_id": plan_recipe(line), "bindings": {"nonsense": 1}}])


def test_a_launch_names_a_plan_or_a_recipe_and_what_belongs_to_it(line: Beamline) -> None:
    both: list[dict[str, Any]] = [{}, {"plan_id": new_id(), "recipe_id": new_id()}]
    foreign = [
        ({"plan_id": new_id(), "bindings": {}}, "bindings"),
        ({"recipe_id": new_id(), "phases": [{"recipe_id": new_id()}]}, "phases"),
        ({"recipe_id": new_id(), "parameters": {}}, "parameters"),
    ]
    for fields in both:
        with pytest.raises(ValidationError, match="one of them"):
            StartLaunch(**fields)
    for fields, name in foreign:
        with pytest.raises(ValidationError, match=f"{name}: not for"):
            StartLaunch(**fields)


def test_two_launches_that_want_the_same_asset_are_one_launch(line: Beamline) -> None:
    world, camera = line.world, line.hutch.camera
    recipe_id = recipe(world)
    first = launch_recipe(world, recipe_id, target_asset_ids=[camera])
    before = record_of(world)
    with expect_refusal("ProcedureCannotConductError", "asset_in_use"):
        launch_recipe(world, recipe_id, target_asset_ids=[camera])
    assert record_of(world) == before
    assert world.claims[CONDUCTED_ASSETS, str(camera)] == OwnLaunchIds(first).procedure_id()


def test_a_plan_is_not_launched_while_its_first_phase_would_find_an_asset_in_use(line: Beamline) -> None:
    world, camera = line.world, line.hutch.camera
    darks_id = register_procedure(world, name="Darks", target_asset_ids=[camera])
    conduct_id = open_conduct(world, ConductProcedure(steps=STEPS), on=darks_id)
    free, taken = ({"recipe_id": plan_recipe(line), "target_asset_ids": ids} for ids in ([], [camera]))
    before = record_of(world)
    with expect_refusal("ProcedureCannotConductError", "asset_in_use") as caught:
        launch_plan(line, phases=[taken, free])
    assert record_of(world) == before
    named = {"asset_id": str(camera), "procedure_id": str(darks_id), "conduct_id": str(conduct_id)}
    assert (caught.value.facts, caught.value.passing) == (named, True)
    name = world.state(Asset, camera).name
    assert caught.value.detail.startswith(f"The conduct of Darks has {name} to itself")
    assert "abort_procedure" in caught.value.detail
    launch_plan(line, phases=[free, taken])


def test_a_launch_is_of_an_agent_where_an_agent_asks(line: Beamline) -> None:
    world = line.world
    world.given(OPERATOR, ActorRegistered(kind=ActorKind.AGENT))
    assert launch_of(world, launch_recipe(world, recipe(world))).by == "agent"


def test_a_launch_under_the_id_of_another_one_is_refused(world: World) -> None:
    id = launch_recipe(world, recipe(world))
    with expect_refusal("LaunchAlreadyExistsError"):
        world.when(StartLaunch(recipe_id=recipe(world)), opening=id)


ENDS: dict[str, tuple[Callable[[], Any], str, str | None]] = {
    "stop": (lambda: StopRun(reason="enough"), "Stopped", "enough"),
    "abort": (lambda: AbortRun(reason="smoke"), "Aborted", "smoke"),
}


@for_each("end", ENDS)
def test_a_launch_ends_with_its_run(line: Beamline, end: str) -> None:
    id = launch_plan(line, phases=[{"recipe_id": plan_recipe(line)}])
    command, outcome, reason = ENDS[end]
    line.world.when(command(), on=OwnLaunchIds(id).run_id)
    launch = launch_of(line.world, id)
    assert (launch.status, launch.outcome, launch.reason) == (LaunchStatus.ENDED, outcome, reason)
    assert launch.ended_at == line.world.now
    assert isinstance(line.world.streams[Launch.__name__, id][-1], LaunchEnded)


def test_the_launch_of_a_plan_does_not_end_with_a_phase_but_with_the_completed_run(line: Beamline) -> None:
    id = launch_plan(line, phases=[{"recipe_id": plan_recipe(line)}])
    world, ids = line.world, OwnLaunchIds(id)
    world.when(ConductProcedure(), on=ids.procedure_id(), opening=new_id())
    world.when(CompleteProcedure(conducted=conduct_result(world, ids.procedure_id())), on=ids.procedure_id())
    assert launch_of(world, id).status is LaunchStatus.BEGUN
    world.when(CompleteRun(conduct_id=ids.conduct_id), on=ids.run_id)
    assert (launch_of(world, id).status, launch_of(world, id).outcome) == (LaunchStatus.ENDED, "Completed")


def test_the_launch_of_a_recipe_ends_with_its_procedure(world: World) -> None:
    id = launch_recipe(world, recipe(world))
    procedure_id = OwnLaunchIds(id).procedure_id()
    failed = conduct_result(world, procedure_id, succeeded=False)
    world.when(AbortProcedure(reason="it failed", conducted=failed), on=procedure_id)
    launch = launch_of(world, id)
    assert (launch.status, launch.outcome, launch.reason) == (LaunchStatus.ENDED, "Aborted", "it failed")


def test_a_launch_that_an_earlier_release_has_half_begun_is_begun_and_ends_under_the_same_ids(line: Beamline) -> None:
    world, id, recipe_id = line.world, new_id(), plan_recipe(line)
    ids = OwnLaunchIds(id)
    (procedure_id,) = ids.former_procedure_ids(1)
    world.when(StartRun(**line.request), opening=ids.run_id)
    phase = RegisterProcedureFromRecipe(recipe_id=recipe_id, name="Darks", kind="queued", parent_run_id=ids.run_id)
    world.when(phase, opening=procedure_id)
    world.when(StartLaunch(**line.request, phases=[{"recipe_id": recipe_id}]), opening=id)
    assert (line.run(ids.run_id).live_conduct_id, line.run(ids.run_id).launch_id) == (ids.conduct_id, id)
    assert [type(one).__name__ for one in world.streams[Run.__name__, ids.run_id]].count("RunStarted") == 1
    assert world.state(Procedure, procedure_id).launch_id == id
    world.when(AbortRun(reason="it burns"), on=ids.run_id)
    assert (launch_of(world, id).status, launch_of(world, id).outcome) == (LaunchStatus.ENDED, "Aborted")


def test_a_procedure_that_an_earlier_release_has_registered_ends_the_launch_that_conducts_it(world: World) -> None:
    id, recipe_id = new_id(), recipe(world)
    procedure_id = OwnLaunchIds(id).procedure_id()
    world.when(RegisterProcedureFromRecipe(recipe_id=recipe_id, name="Darks", kind="queued"), opening=procedure_id)
    world.when(StartLaunch(recipe_id=recipe_id), opening=id)
    world.when(CompleteProcedure(conducted=conduct_result(world, procedure_id)), on=procedure_id)
    assert (launch_of(world, id).status, launch_of(world, id).outcome) == (LaunchStatus.ENDED, "Completed")


def test_what_was_arranged_is_launched_at_the_versions_it_was_arranged_with(world: World) -> None:
    id, recipe_id = open_queue(world), recipe(world)
    (item_id,) = add_items(world, id, "a", target=darks(recipe_id))
    start_item(world, id, item_id)
    arranged = arranged_item(queue_of(world, id), item_of(world, id, item_id))
    assert isinstance(arranged, ArrangedLaunch)
    assert "{fired_at}" not in arranged.target.name
    world.when(VersionRecipe(version_tag="v2", steps=STEPS[:1], closing_steps=CLOSE_SHUTTER), on=recipe_id)
    launch = ItemLaunch(item_id, 1)
    with expect_refusal("TargetChangedError", "target_changed"):
        world.when(StartLaunch(arranged=arranged), opening=launch.id)
    assert world.state(Procedure, launch.procedure_id()) is None
    refuse_item(world, id, item_id)
    refused = launch_of(world, launch.id)
    assert (refused.status, refused.by, refused.item_id, refused.queue_id) == ("Refused", "queue_item", item_id, id)
    assert (refused.code, refused.launched_by) == ("UnauthorizedError", OPERATOR)


def test_a_launch_needs_what_it_stands_for_and_what_its_conduct_does_later() -> None:
    plan = StartLaunch(plan_id=new_id()).needs()
    assert plan.given == ("Launch", "StartRun", "RegisterProcedureFromRecipe", "ConductRun")
    assert {"AbortRun", "CompleteRun", "HoldRun", "ConductProcedure", "AbortProcedure"} <= set(plan.issued)
    loop = StartLaunch(recipe_id=new_id(), conduct={"command": "conduct_until_converged", **LOOP}).needs()
    assert loop.given == ("Launch", "RegisterProcedureFromRecipe", "ConductUntilConverged")
    assert "StartProcedureIteration" in loop.issued
    arranged = ArrangedLaunch(target={**darks(new_id()), "name": "a"}, by="schedule", schedule_id=new_id())
    assert StartLaunch(arranged=arranged).needs().given == ("RegisterProcedureFromRecipe", "ConductProcedure")


def test_one_launch_is_shown_with_what_it_made(line: Beamline) -> None:
    id = launch_plan(line, phases=[{"recipe_id": plan_recipe(line)}])
    view = line.world.show(REGISTRY.operations["get_launch"].input(), on=id)
    assert (view.launch_id, view.run_id, view.status) == (id, OwnLaunchIds(id).run_id, "Begun")
