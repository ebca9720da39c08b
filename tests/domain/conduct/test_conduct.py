"""How conducts are opened: everything that the one append holds, and what a conduct that goes on keeps."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.domain.conduct.conduct import (
    CONDUCTED_ASSETS,
    ConductFromProcedure,
    ConductOrHoldProcedure,
    ConductProcedure,
    ConductUntilConverged,
    tighter,
)
from baton.domain.conduct.endings import AbortProcedure, CompleteProcedure, HoldProcedure, RecordConductEnd
from baton.domain.conduct.iterations import StartProcedureIteration
from baton.domain.conduct.preflight import PreflightProcedure, ProcedurePreflight
from baton.domain.conduct.progress import ConductProgress, OpenedConduct
from baton.domain.conduct.steered_conduct import ConductUntilAdvised, ConductUntilAdvisedFrom
from baton.domain.equipment.asset_parts import AddAssetAlternateIdentifier
from baton.domain.equipment.signals import SetAssetSignalLimits
from baton.domain.kernel import Command
from baton.domain.procedure.activity_logbook import Activity, AppendProcedureActivities
from baton.domain.procedure.procedure import (
    ABORTED,
    RUNNING,
    ConductMode,
    Procedure,
    ProcedureActivitiesLogbookOpened,
    ProcedureResumed,
    ProcedureStarted,
    ProcedureStepsResolved,
)
from baton.domain.recipe.recipe import VersionRecipe
from baton.domain.recipe.steps import wire_form
from baton.domain.shared.writes import Claim
from baton.domain.start.procedure_start import ResumeProcedure, StartProcedure
from tests.support.domain.agents import decision_to_cite
from tests.support.domain.cautions import on_asset, on_procedure, register_caution
from tests.support.domain.conducts import (
    BEGINNING,
    GOING_ON,
    LOOP,
    SEARCH,
    STEPS,
    conduct_result,
    conduct_row,
    end_in_hold,
    fill_slot,
    open_and_hold,
    open_conduct,
    procedure_of,
    progress_of,
    register_procedure,
    register_procedure_from_recipe,
)
from tests.support.domain.run_beamline import Beamline, beamline
from tests.support.domain.world import START, World, expect_refusal, new_id
from tests.support.workflows.step_json import action, capture, captured_value, check, criterion, setpoint

HELD_IN = [(was, now) for was in (None, *ConductMode) for now in ConductMode]

SKIPPING: dict[str, Any] = {"skip": True, "skip_reason": "done by hand"}


@pytest.mark.parametrize(("was", "now"), HELD_IN, ids=[f"{was or 'by hand'} as {now}" for was, now in HELD_IN])
def test_a_held_procedure_goes_on_as_it_was_conducted(world: World, was: ConductMode | None, now: ConductMode) -> None:
    id = register_procedure_from_recipe(world)
    if was is None:
        world.when(StartProcedure(), on=id)
        world.when(HoldProcedure(reason="lunch"), on=id)
    else:
        open_and_hold(world, BEGINNING[was], on=id)
    if was is now:
        conduct_id = open_conduct(world, GOING_ON[now], on=id)
        state = procedure_of(world, id)
        assert (state.status, state.live_conduct_id, state.conduct_mode) == (RUNNING, conduct_id, now)
        return
    with expect_refusal("ProcedureCannotResumeError", "other_mode") as caught:
        world.when(GOING_ON[now], on=id)
    assert ("never conducted" if was is None else f"mode {was}") in caught.value.detail


EVENTS: dict[str, tuple[str, ...]] = {
    "conduct": ("ProcedureStepsResolved", "ProcedureActivitiesLogbookOpened", "ProcedureStarted"),
    "conduct or hold": ("ProcedureStepsResolved", "ProcedureActivitiesLogbookOpened", "ProcedureStarted"),
    "converge": ("ProcedureStepsResolved", "ProcedureActivitiesLogbookOpened", "ProcedureStarted"),
    "advise": (
        "ProcedureStepsResolved",
        "ProcedureSteeringDeclared",
        "ProcedureActivitiesLogbookOpened",
        "ProcedureStarted",
    ),
    "conduct from": ("ProcedureResumed",),
    "converge from": ("ProcedureResumed",),
    "advise from": ("ProcedureResumed",),
    "advise from otherwise": ("ProcedureSteeringDeclared", "ProcedureResumed"),
    "close": ("ProcedureAbortRequested",),
}
"""What the one append of every opening holds, in order."""
OPENINGS: dict[str, Command] = {
    "conduct": ConductProcedure(),
    "conduct or hold": ConductOrHoldProcedure(),
    "converge": ConductUntilConverged(**LOOP),
    "advise": ConductUntilAdvised(**SEARCH),
    "conduct from": ConductFromProcedure(re_establishment_boundary=1, **SKIPPING),
    "converge from": ConductUntilConverged(**LOOP),
    "advise from": ConductUntilAdvisedFrom(**SEARCH),
    "advise from otherwise": ConductUntilAdvisedFrom(**SEARCH, budget={"iterations_remaining": 3}),
    "close": AbortProcedure(reason="smoke", run_closing=True),
}
TAKEN_UP = {
    "conduct from": ConductMode.FLAT,
    "converge from": ConductMode.CONVERGED,
    "advise from": ConductMode.ADVISED,
    "advise from otherwise": ConductMode.ADVISED,
    "close": ConductMode.FLAT,
}


@pytest.mark.parametrize("how", OPENINGS)
def test_one_append_opens_a_conduct(line: Beamline, how: str) -> None:
    world = line.world
    targets = sorted([line.hutch.camera, line.hutch.shutter])
    id = register_procedure_from_recipe(world, target_asset_ids=targets)
    if (mode := TAKEN_UP.get(how)) is not None:
        open_and_hold(world, BEGINNING[mode], on=id)
        assert not any(kind == CONDUCTED_ASSETS for kind, _ in world.claims)
    before = procedure_of(world, id)
    events = world.when(OPENINGS[how], on=id)
    assert tuple(type(event).__name__ for event in events) == EVENTS[how]

    call = world.call
    assert call is not None
    conduct_id, command_name = call.new_id, OPENINGS[how].operation.command_name
    state = procedure_of(world, id)
    assert (state.live_conduct_id, state.last_conduct_id, state.pending_request) == (conduct_id, conduct_id, None)
    assert state.status is (before.status if how == "close" else RUNNING)
    assert {key: holder for (kind, key), holder in world.claims.items() if kind == CONDUCTED_ASSETS} == {
        str(asset_id): id for asset_id in targets
    }
    assert conduct_row(world, conduct_id) == OpenedConduct(
        conduct_id=conduct_id,
        procedure_id=id,
        command_name=command_name,
        principal_id=call.principal_id,
        surface_id=call.surface_id,
        conduit_id=call.conduit_id,
        correlation_id=call.correlation_id,
        step_count=0 if how == "close" else 2,
        closing_count=1,
    )
    assert progress_of(world, id) == ConductProgress(
        procedure_id=id,
        conduct_id=conduct_id,
        command_name=command_name,
        phase="Opened",
        waiting_for=None,
        waiting_until=None,
        step_index=None,
        iteration_index=None,
        started_at=call.now,
        heartbeat_at=None,
        active_at=call.now,
    )
    ids = {"procedure_id": str(id), "conduct_id": str(conduct_id)}
    assert world.answer == (ids if how == "close" else {**ids, "work_id": str(conduct_id), "acknowledged_cautions": []})


@pytest.mark.parametrize("how", [name for name in OPENINGS if name != "close"])
def test_every_opening_acknowledges_the_cautions_on_what_it_is_worked_with(line: Beamline, how: str) -> None:
    world = line.world
    id = register_procedure_from_recipe(world, target_asset_ids=[line.hutch.camera], parent_run_id=line.start())
    if (mode := TAKEN_UP.get(how)) is not None:
        open_and_hold(world, BEGINNING[mode], on=id)
    recipe_id = procedure_of(world, id).recipe_id
    targets = [
        on_asset(line.hutch.camera),
        on_procedure(id),
        {"kind": "Recipe", "id": recipe_id},
        {"kind": "Plan", "id": line.plan_id},
    ]
    met = [register_caution(world, target) for target in targets]
    met.append(register_caution(world, on_asset(line.hutch.beamline), propagate_to_children=True))
    register_caution(world, on_asset(line.hutch.beamline))
    register_caution(world, targets[2], severity="Notice")
    expected = [str(caution_id) for caution_id in met]
    preflight: ProcedurePreflight = world.ask(PreflightProcedure(), on=id)
    assert [str(one.caution_id) for one in preflight.acknowledged_cautions] == expected
    opened_by = world.when(OPENINGS[how], on=id)[-1]
    assert isinstance(opened_by, ProcedureStarted | ProcedureResumed)
    assert [str(one.caution_id) for one in opened_by.acknowledged_cautions] == expected
    assert [one["caution_id"] for one in world.answer["acknowledged_cautions"]] == expected


def test_what_is_begun_by_hand_acknowledges_nothing(line: Beamline) -> None:
    id = register_procedure_from_recipe(line.world, target_asset_ids=[line.hutch.camera])
    register_caution(line.world, on_asset(line.hutch.camera))
    (started,) = line.world.when(StartProcedure(), on=id)
    assert isinstance(started, ProcedureStarted)
    assert started.acknowledged_cautions == ()


@pytest.mark.parametrize("mode", ConductMode)
def test_the_pin_and_the_opening_say_what_is_conducted_and_how(world: World, mode: ConductMode) -> None:
    id = register_procedure_from_recipe(world)
    events = world.when(BEGINNING[mode], on=id)
    (pin,) = (event for event in events if isinstance(event, ProcedureStepsResolved))
    (started,) = (event for event in events if isinstance(event, ProcedureStarted))
    (logbook,) = (event for event in events if isinstance(event, ProcedureActivitiesLogbookOpened))
    state = procedure_of(world, id)
    assert (pin.conduct_id, started.conduct_id) == (state.live_conduct_id, state.live_conduct_id)
    assert (pin.conduct_mode, state.conduct_mode) == (mode, mode)
    assert started.command_name == BEGINNING[mode].operation.command_name
    assert state.activity_logbook_id == logbook.logbook_id
    assert (pin.step_count, len(pin.resolved_steps), len(pin.resolved_closing_steps)) == (3, 2, 1)
    assert (pin.convergence is None) == (mode is not ConductMode.CONVERGED)


def test_the_pin_holds_the_steps_as_they_were_when_it_was_registered(world: World) -> None:
    id = register_procedure_from_recipe(world)
    recipe_id = procedure_of(world, id).recipe_id
    assert recipe_id is not None
    world.when(VersionRecipe(version_tag="v2", steps=[setpoint("bl7:energy", 1)], closing_steps=[]), on=recipe_id)
    pin = world.when(ConductProcedure(), on=id)[0]
    assert isinstance(pin, ProcedureStepsResolved)
    assert [step["address"] for step in wire_form(pin.resolved_steps)] == ["bl7:focus", "bl7:camera:sharpness"]


def test_literal_steps_close_nothing(world: World) -> None:
    id = register_procedure(world)
    pin = world.when(ConductProcedure(steps=STEPS), on=id)[0]
    assert isinstance(pin, ProcedureStepsResolved)
    assert (wire_form(pin.resolved_steps)[1], pin.resolved_closing_steps) == (STEPS[1], ())
    assert conduct_row(world, pin.conduct_id).closing_count == 0


def test_a_procedure_that_runs_by_hand_is_conducted_from_there(world: World) -> None:
    id = register_procedure(world)
    world.when(StartProcedure(), on=id)
    doing = {"event_id": new_id(), "step_kind": "setpoint", "payload": {"value": 25.0}, "sampled_at": START}
    world.when(AppendProcedureActivities(entries=[doing]), on=id)
    before = procedure_of(world, id)
    world.now += timedelta(minutes=1)
    events = world.when(ConductProcedure(steps=STEPS), on=id)
    assert [type(event) for event in events] == [ProcedureStepsResolved, ProcedureStarted]
    after = procedure_of(world, id)
    assert (after.status, after.last_status_changed_at) == (RUNNING, before.last_status_changed_at)
    assert (after.activity_logbook_id, after.conduct_mode) == (before.activity_logbook_id, ConductMode.FLAT)


def test_an_open_iteration_is_ended_before_a_conduct_begins(world: World) -> None:
    id = register_procedure(world)
    world.when(StartProcedure(), on=id)
    world.when(StartProcedureIteration(iteration_index=1), on=id)
    with expect_refusal("ProcedureCannotStartError", "iteration_open"):
        world.when(ConductUntilConverged(**LOOP, steps=STEPS), on=id)


def test_every_taking_up_is_a_conduct_of_its_own(world: World) -> None:
    id = register_procedure_from_recipe(world)
    ways: list[Command] = [
        ConductProcedure(),
        *(ConductFromProcedure(re_establishment_boundary=at, **SKIPPING) for at in range(3)),
    ]
    conducts = [open_and_hold(world, way, on=id) for way in ways]
    assert len(set(conducts)) == 4
    assert {row.conduct_id for row in world.records.values() if isinstance(row, OpenedConduct)} == set(conducts)
    pins = [event for event in world.streams["Procedure", id] if isinstance(event, ProcedureStepsResolved)]
    assert [pin.conduct_id for pin in pins] == conducts[:1]
    assert procedure_of(world, id).live_conduct_id is None


def test_what_went_on_by_hand_is_conducted_again_once_it_is_held(world: World) -> None:
    id = register_procedure_from_recipe(world)
    open_and_hold(world, ConductProcedure(), on=id)
    world.when(ResumeProcedure(by_hand=True), on=id)
    with expect_refusal("ProcedureCannotStartError", "pinned"):
        world.when(ConductProcedure(), on=id)
    world.when(HoldProcedure(reason="lunch"), on=id)
    world.when(ConductFromProcedure(re_establishment_boundary=1, **SKIPPING), on=id)


@pytest.mark.parametrize("mode", ConductMode)
def test_who_decided_to_go_on_is_kept(world: World, mode: ConductMode) -> None:
    id, decision_id = register_procedure_from_recipe(world), decision_to_cite(world)
    open_and_hold(world, BEGINNING[mode], on=id)
    with expect_refusal("DecisionNotFoundError"):
        world.when(GOING_ON[mode].model_copy(update={"decided_by_decision_id": new_id()}), on=id)
    (event,) = world.when(GOING_ON[mode].model_copy(update={"decided_by_decision_id": decision_id}), on=id)
    assert isinstance(event, ProcedureResumed)
    assert event.decided_by_decision_id == decision_id
    assert event.command_name == GOING_ON[mode].operation.command_name


@pytest.mark.parametrize("boundary", range(4))
def test_a_boundary_lies_before_between_or_just_behind_the_steps(world: World, boundary: int) -> None:
    id = register_procedure_from_recipe(world)
    open_and_hold(world, ConductProcedure(), on=id)
    command = ConductFromProcedure(re_establishment_boundary=boundary, **SKIPPING)
    if boundary <= 2:
        (event,) = world.when(command, on=id)
        assert isinstance(event, ProcedureResumed)
        assert event.re_establishment_boundary == boundary
        return
    with expect_refusal("InvalidProcedureReEstablishmentBoundaryError") as caught:
        world.when(command, on=id)
    assert (caught.value.status, caught.value.facts) == (400, {"step_count": 2})


HOMING = [capture("bl7:x.RBV", "home"), setpoint("bl7:x", 20.0), check("bl7:x.RBV", 20.0, 0.05)]
GO_HOME = [setpoint("bl7:x", captured_value("home"))]


def held_homing_procedure(world: World, closing_steps: list[Any] = GO_HOME) -> UUID:
    """A held procedure that closes with what its first step captures."""
    id = register_procedure_from_recipe(world, HOMING, closing_steps)
    open_and_hold(world, ConductProcedure(), on=id)
    return id


@pytest.mark.parametrize("boundary", [1, 2, 3])
def test_closing_steps_need_what_was_captured_before_the_boundary(world: World, boundary: int) -> None:
    id = held_homing_procedure(world)
    with expect_refusal("ProcedureClosingCaptureBeforeBoundaryError", "capture_missing") as caught:
        world.when(ConductFromProcedure(re_establishment_boundary=boundary, **SKIPPING), on=id)
    assert (caught.value.status, caught.value.facts) == (422, {"capture_names": ["home"]})
    fill_slot(world, id, "home", step_index=0)
    world.when(ConductFromProcedure(re_establishment_boundary=boundary, **SKIPPING), on=id)


CAPTURE_ITSELF = [capture("bl7:y.RBV", "there"), setpoint("bl7:x", captured_value("there"))]


@pytest.mark.parametrize(("closing_steps", "boundary"), [(GO_HOME, 0), (CAPTURE_ITSELF, 3)])
def test_what_will_be_captured_again_or_by_closing_itself_need_not_have_been(
    world: World, closing_steps: list[Any], boundary: int
) -> None:
    id = held_homing_procedure(world, closing_steps)
    world.when(ConductFromProcedure(re_establishment_boundary=boundary, **SKIPPING), on=id)


@pytest.mark.parametrize(
    ("slot", "step_index", "closing"),
    [("away", 0, False), ("home", 1, False), ("home", 0, True)],
    ids=["another", "behind the boundary", "of closing"],
)
def test_only_a_slot_of_before_the_boundary_counts(world: World, slot: str, step_index: int, closing: bool) -> None:
    id = held_homing_procedure(world)
    fill_slot(world, id, slot, step_index, closing)
    with expect_refusal("ProcedureClosingCaptureBeforeBoundaryError"):
        world.when(ConductFromProcedure(re_establishment_boundary=1, **SKIPPING), on=id)


@pytest.mark.parametrize(
    "changes",
    [
        {"convergence_capture_name": "offset"},
        {"criterion": criterion(0.9, 0.05)},
        {"criterion": criterion(1.0, 0.06)},
        {"criterion": criterion(1.0)},
    ],
    ids=["capture", "expected", "tolerance", "kind"],
)
def test_a_held_loop_keeps_its_criterion(world: World, changes: dict[str, Any]) -> None:
    id = register_procedure_from_recipe(world)
    open_and_hold(world, ConductUntilConverged(**LOOP), on=id)
    with expect_refusal("ProcedureCannotResumeError", "criterion_changed"):
        world.when(ConductUntilConverged(**{**LOOP, **changes}), on=id)
    world.when(ConductUntilConverged(**LOOP), on=id)


def test_a_held_loop_keeps_its_steps(world: World) -> None:
    id = register_procedure(world)
    open_and_hold(world, ConductUntilConverged(**LOOP, steps=STEPS), on=id)
    with expect_refusal("ProcedureStepsForbiddenError"):
        world.when(ConductUntilConverged(**LOOP, steps=STEPS), on=id)
    (event,) = world.when(ConductUntilConverged(**LOOP), on=id)
    assert isinstance(event, ProcedureResumed)
    assert event.re_establishment_boundary == 0


@pytest.mark.parametrize(
    ("registered", "asked", "effective"), [(None, None, None), (5, None, 5), (None, 3, 3), (5, 3, 3), (5, 9, 5)]
)
def test_a_cap_is_only_ever_tightened(
    world: World, registered: int | None, asked: int | None, effective: int | None
) -> None:
    id = register_procedure_from_recipe(world, max_consecutive_unconverged_iterations=registered)
    pin = world.when(ConductUntilConverged(**LOOP, max_consecutive_unconverged_iterations=asked), on=id)[0]
    assert isinstance(pin, ProcedureStepsResolved)
    assert pin.convergence is not None
    assert pin.convergence.max_consecutive_unconverged_iterations == effective
    assert (pin.convergence.capture_name, pin.convergence.criterion.tolerance) == ("sharpness", 0.05)


@pytest.mark.parametrize("cap", [None, 2])
def test_a_held_loop_goes_on_with_as_much_patience_as_it_is_given(world: World, cap: int | None) -> None:
    id = register_procedure_from_recipe(world)
    open_and_hold(world, ConductUntilConverged(**LOOP), on=id)
    (event,) = world.when(ConductUntilConverged(**LOOP, max_consecutive_unconverged_iterations=cap), on=id)
    assert isinstance(event, ProcedureResumed)
    assert event.max_consecutive_unconverged_iterations == cap


@pytest.mark.parametrize("cap", [0, -1])
def test_patience_for_no_pass_at_all_is_refused_after_the_state(world: World, cap: int) -> None:
    id = register_procedure_from_recipe(world)
    impatient = ConductUntilConverged(**LOOP, max_consecutive_unconverged_iterations=cap)
    with expect_refusal("InvalidProcedureIterationCapError") as caught:
        world.when(impatient, on=id)
    assert caught.value.status == 400
    open_conduct(world, ConductProcedure(), on=id)
    with expect_refusal("ProcedureCannotConductError", "conduct_live"):
        world.when(impatient, on=id)


@given(st.lists(st.none() | st.integers(1, 50), min_size=1, max_size=5))
def test_of_several_caps_the_smallest_counts(caps: list[int | None]) -> None:
    set_ones = [cap for cap in caps if cap is not None]
    assert tighter(*caps) == (min(set_ones) if set_ones else None)


def test_an_asset_is_conducted_on_by_one_procedure_at_a_time(line: Beamline) -> None:
    world = line.world
    first = register_procedure(world, target_asset_ids=[line.hutch.camera, line.hutch.shutter])
    second = register_procedure(world, target_asset_ids=[line.hutch.shutter, line.hutch.timing_box])
    aside = register_procedure(world, target_asset_ids=[line.hutch.timing_box])
    conduct_id = open_conduct(world, ConductProcedure(steps=STEPS), on=first)
    with expect_refusal("ProcedureCannotConductError", "asset_in_use") as caught:
        world.when(ConductProcedure(steps=STEPS), on=second)
    assert caught.value.facts == {
        "asset_id": str(line.hutch.shutter),
        "procedure_id": str(first),
        "conduct_id": str(conduct_id),
    }
    world.when(ConductProcedure(steps=STEPS), on=aside)


@pytest.mark.parametrize("end", ["complete", "hold", "abort", "lose"])
def test_an_asset_is_free_again_once_the_conduct_is_over(line: Beamline, end: str) -> None:
    world = line.world
    first, second = (register_procedure(world, target_asset_ids=[line.hutch.camera]) for _ in range(2))
    open_conduct(world, ConductProcedure(steps=STEPS), on=first)
    result = conduct_result(world, first)
    ending: dict[str, Command] = {
        "complete": CompleteProcedure(conducted=result),
        "hold": HoldProcedure(reason="shift change", conducted=result),
        "abort": AbortProcedure(reason="smoke", conducted=result),
        "lose": RecordConductEnd(result=result),
    }
    world.when(ending[end], on=first)
    world.when(ConductProcedure(steps=STEPS), on=second)


def test_a_held_conduct_goes_on_only_when_its_assets_are_free(line: Beamline) -> None:
    world = line.world
    first, second = (register_procedure(world, target_asset_ids=[line.hutch.camera]) for _ in range(2))
    open_and_hold(world, ConductProcedure(steps=STEPS), on=first)
    conduct_id = open_conduct(world, ConductProcedure(steps=STEPS), on=second)
    with expect_refusal("ProcedureCannotConductError", "asset_in_use") as caught:
        world.when(ConductFromProcedure(re_establishment_boundary=0), on=first)
    assert caught.value.facts["conduct_id"] == str(conduct_id)
    end_in_hold(world, second)
    world.when(ConductFromProcedure(re_establishment_boundary=0), on=first)


def test_a_procedure_by_hand_claims_nothing(line: Beamline) -> None:
    world = line.world
    manual, conducted = (register_procedure(world, target_asset_ids=[line.hutch.camera]) for _ in range(2))
    world.when(StartProcedure(), on=manual)
    world.when(ConductProcedure(steps=STEPS), on=conducted)


def test_the_first_to_claim_an_asset_wins_a_race(line: Beamline) -> None:
    world = line.world
    id = register_procedure(world, target_asset_ids=[line.hutch.camera])
    command = ConductProcedure(steps=STEPS)
    with expect_refusal("ProcedureNotFoundError"):
        world.when(command, on=new_id())
    assert world.call is not None
    state: Procedure = world.state(Procedure, id)
    decided = world.fulfil(command.operation.decision(command, state, world.call))
    (claim,) = (effect for effect in decided if isinstance(effect, Claim))
    assert (claim.kind, claim.key) == (CONDUCTED_ASSETS, str(line.hutch.camera))
    assert (claim.rival.code, claim.rival.reason) == ("ProcedureCannotConductError", "asset_in_use")
    assert claim.rival.facts == {"asset_id": str(line.hutch.camera)}


@settings(max_examples=25)
@given(st.integers(0, 4), st.lists(st.sampled_from([setpoint("bl7:energy", 25.0), action("collect")]), max_size=6))
def test_any_steps_on_any_assets_are_pinned_and_the_assets_claimed(targets: int, steps: list[Any]) -> None:
    line = beamline()
    world, chosen = line.world, [*line.hutch.asset_ids, line.hutch.beamline][:targets]
    id = register_procedure(world, target_asset_ids=chosen)
    conduct_id = open_conduct(world, ConductProcedure(steps=steps), on=id)
    assert {key for kind, key in world.claims if kind == CONDUCTED_ASSETS} == set(map(str, chosen))
    assert conduct_row(world, conduct_id).step_count == len(steps)
    world.when(AbortProcedure(reason="smoke", conducted=conduct_result(world, id)), on=id)
    assert not any(kind == CONDUCTED_ASSETS for kind, _ in world.claims)
    assert procedure_of(world, id).status is ABORTED


def test_owners_of_what_is_written_are_claimed_and_given_back(line: Beamline) -> None:
    world, camera, box = line.world, line.hutch.camera, line.hutch.timing_box
    for asset_id, value in ((camera, "bl7:cam1"), (box, "bl7:shutter")):
        world.when(AddAssetAlternateIdentifier(kind="EPICS_PV", value=value), on=asset_id)
    steps, closing = [setpoint("bl7:cam1:Gain", 2), check("bl7:other", 1)], [setpoint("bl7:shutter", 0)]
    id = register_procedure_from_recipe(world, steps=steps, closing_steps=closing)

    def claimed_keys() -> set[str]:
        return {key for (kind, key), holder in world.claims.items() if kind == CONDUCTED_ASSETS and holder == id}

    open_conduct(world, ConductProcedure(), on=id)
    assert claimed_keys() == {str(camera), str(box)}
    assert procedure_of(world, id).judged_asset_ids == {camera, box}
    end_in_hold(world, id)
    assert claimed_keys() == set()
    open_conduct(world, ConductFromProcedure(), on=id)
    assert claimed_keys() == {str(camera), str(box)}
    end_in_hold(world, id)
    world.when(AbortProcedure(reason="smoke", run_closing=True), on=id)
    assert claimed_keys() == {str(box)}, "the closing steps alone need no more"
    world.when(AbortProcedure(reason="smoke", conducted=conduct_result(world, id)), on=id)
    assert claimed_keys() == set()


def test_a_step_that_is_done_is_not_held_against_limits_that_came_later(line: Beamline) -> None:
    world, camera = line.world, line.hutch.camera
    world.when(AddAssetAlternateIdentifier(kind="EPICS_PV", value="bl7:cam1"), on=camera)
    id = register_procedure_from_recipe(world, steps=[setpoint("bl7:cam1", 50), setpoint("bl7:cam1", 5)], closing_steps=[])
    open_and_hold(world, ConductProcedure(), on=id)
    world.when(SetAssetSignalLimits(address="bl7:cam1", high=10.0, reason="chip"), on=camera)
    with expect_refusal("ProcedureSetpointOutOfLimitsError", "out_of_limits"):
        world.when(ConductFromProcedure(), on=id)
    world.ports["completed_step_count"] = 1
    world.when(ConductFromProcedure(), on=id)
    assert procedure_of(world, id).status is RUNNING


def procedure_held_after(world: World, done: int) -> UUID:
    """A held procedure whose conduct had done so many of its steps."""
    id = register_procedure_from_recipe(world)
    open_and_hold(world, ConductProcedure(), on=id)
    world.ports["completed_step_count"] = done
    return id


def test_without_a_boundary_it_goes_on_at_the_first_step_that_is_not_done(world: World) -> None:
    (resumed,) = world.when(ConductFromProcedure(), on=procedure_held_after(world, 1))
    assert isinstance(resumed, ProcedureResumed)
    assert (resumed.re_establishment_boundary, resumed.skipped_count, resumed.skip_reason) == (1, 0, None)


@pytest.mark.parametrize("given", [{}, {"skip": True}, {"skip_reason": "lunch"}])
def test_no_step_is_skipped_by_a_number(world: World, given: Any) -> None:
    id = procedure_held_after(world, 0)
    with expect_refusal("InvalidProcedureReEstablishmentBoundaryError", "would_skip") as caught:
        world.when(ConductFromProcedure(re_establishment_boundary=2, **given), on=id)
    assert (caught.value.status, caught.value.facts) == (400, {"first_undone_step": 0, "skipped_count": 2})


def test_what_is_established_afresh_was_done_before(world: World) -> None:
    id = procedure_held_after(world, 2)
    open_and_hold(world, ConductFromProcedure(re_establishment_boundary=0), on=id)
    world.ports["completed_step_count"] = 1
    (resumed,) = world.when(ConductFromProcedure(), on=id)
    assert isinstance(resumed, ProcedureResumed)
    assert resumed.re_establishment_boundary == 1, "where the latest conduct came to, not an earlier one"


def test_steps_that_are_skipped_on_purpose_stand_in_the_ledger(world: World) -> None:
    id = procedure_held_after(world, 1)
    (resumed,) = world.when(ConductFromProcedure(re_establishment_boundary=2, **SKIPPING), on=id)
    assert isinstance(resumed, ProcedureResumed)
    assert (resumed.skipped_count, resumed.skip_reason) == (1, "done by hand")
    (row,) = (entry for entry in world.entries.values() if isinstance(entry, Activity))
    assert (row.step_index, row.payload["result"], row.mark, row.conduct_id) == (1, "skipped", "outcome", resumed.conduct_id)
    assert procedure_of(world, id).skipped_count == 1
