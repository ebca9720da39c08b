"""Searches: how they fit the steps, what goes on of them, what a decider is asked, and how an outside one answers."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.endings import AbortProcedure, HoldProcedure
from baton.domain.conduct.iterations import EndProcedureIteration, ListProcedureIterations, StartProcedureIteration
from baton.domain.conduct.steered_conduct import (
    AdviseProcedure,
    ConductUntilAdvised,
    ConductUntilAdvisedFrom,
    GetProcedureSteering,
    ProcedureSteeringMismatchError,
    RecordProcedureOutcome,
    SteeringView,
    check_first_point,
    check_wiring,
    evidence_of,
    remaining_budget,
)
from baton.domain.equipment.signals import SignalLimits
from baton.domain.kernel import Command
from baton.domain.procedure.procedure import (
    ProcedureAdvised,
    ProcedureIterationStarted,
    ProcedureResumed,
    ProcedureSteeringDeclared,
)
from baton.domain.recipe.steps import RecipeStep
from baton.domain.steering.steering import DecideSubstrate, SteeringAdvice, SteeringBudget, SteeringSpace, offered_deciders
from baton.domain.step.results import ActuationKind
from tests.support.domain.conducts import (
    BY_CALLER,
    FOCUS_STEPS,
    SEARCH,
    end_in_hold,
    measured_pass,
    open_and_hold,
    open_conduct,
    procedure_of,
    progress_of,
    register_procedure,
    register_procedure_from_recipe,
    set_progress,
    wait_for_advice,
)
from tests.support.domain.world import OPERATOR, START, World, expect_refusal, new_id
from tests.support.tables import for_each
from tests.support.workflows.step_json import capture, check, compute, setpoint, steered_value

STEPS: TypeAdapter[Any] = TypeAdapter(tuple[RecipeStep, ...])
STOP = SteeringAdvice.model_validate({"verdict": "Stop"})


def space(*names: str) -> SteeringSpace:
    return SteeringSpace.model_validate({"axes": [{"name": name, "lower": -2, "upper": 2} for name in names]})


def open_search(world: World, **fields: Any) -> UUID:
    """Register a procedure and open a conduct that an outside decider steers."""
    id = register_procedure_from_recipe(world)
    open_conduct(world, ConductUntilAdvised(**{**BY_CALLER, **fields}), on=id)
    return id


def search_awaiting_advice(world: World, **fields: Any) -> UUID:
    """Open a search whose first pass was measured, and which waits for advice."""
    id = open_search(world, **fields)
    conduct_id = progress_of(world, id).conduct_id
    world.when(StartProcedureIteration(iteration_index=1, point={"focus": -2.0}, conduct_id=conduct_id), on=id)
    world.when(RecordProcedureOutcome(outcome=measured_pass(1)), on=id)
    wait_for_advice(world, id)
    return id


def publishing_program(name: str) -> dict[str, Any]:
    return compute("reconstruct", output_uri="file:///r", output_ref_name=name)


FOLLOWED, COLLISION = [setpoint("a", steered_value("n")), capture("b", "n")], "name_collision"
PROGRAM = compute("find", parameters={"at": steered_value("focus")}, capture_name="n")
WIRINGS: dict[str, tuple[list[Any], list[str], str, str | None, list[str]]] = {
    "fits": (FOCUS_STEPS, ["focus"], "sharpness", None, []),
    "fits a check": ([check("a", steered_value("focus"), 0.1), capture("b", "n")], ["focus"], "n", None, []),
    "fits a program": ([PROGRAM], ["focus"], "n", None, []),
    "axis unused": (FOCUS_STEPS, ["focus", "tilt", "roll"], "sharpness", "axis_unused", ["roll", "tilt"]),
    "axis missing": ([*FOCUS_STEPS, setpoint("c", steered_value("tilt"))], ["focus"], "sharpness", "axis_missing", ["tilt"]),
    "axis named as the objective": (FOLLOWED, ["n"], "n", COLLISION, ["n"]),
    "axis named as a slot": ([*FOCUS_STEPS, capture("c", "focus")], ["focus"], "sharpness", COLLISION, ["focus"]),
    "axis named as an output": ([*FOCUS_STEPS, publishing_program("focus")], ["focus"], "sharpness", COLLISION, ["focus"]),
    "objective missing": (FOCUS_STEPS, ["focus"], "offset", "objective_missing", ["offset"]),
    "objective an output": (
        [*FOCUS_STEPS, publishing_program("volume")],
        ["focus"],
        "volume",
        "objective_missing",
        ["volume"],
    ),
}


@for_each("how", WIRINGS)
def test_axes_and_objective_fit_the_steps(how: str) -> None:
    steps, axes, objective, reason, names = WIRINGS[how]
    read = STEPS.validate_python(steps)
    if reason is None:
        check_wiring(read, space(*axes), objective)
        return
    with expect_refusal(ProcedureSteeringMismatchError, reason) as caught:
        check_wiring(read, space(*axes), objective)
    assert (caught.value.status, caught.value.facts) == (422, {"names": names})


NAMES = st.sampled_from(["focus", "tilt", "roll", "pitch"])


@given(st.sets(NAMES, min_size=1), st.sets(NAMES, max_size=4))
def test_a_search_fits_exactly_when_every_axis_is_followed_and_nothing_else(axes: set[str], followed: set[str]) -> None:
    steps = [*(setpoint(f"bl7:{name}", steered_value(name)) for name in sorted(followed)), capture("b", "sharpness")]
    read = STEPS.validate_python(steps)
    if axes == followed:
        check_wiring(read, space(*axes), "sharpness")
        return
    with expect_refusal(ProcedureSteeringMismatchError, "axis_unused" if axes - followed else "axis_missing") as caught:
        check_wiring(read, space(*axes), "sharpness")
    assert caught.value.facts == {"names": sorted(axes - followed or followed - axes)}


def test_only_a_recipe_is_steered(world: World) -> None:
    with expect_refusal("ProcedureRequiresRecipeError", "no_recipe") as caught:
        world.when(ConductUntilAdvised(**SEARCH), on=register_procedure(world))
    assert caught.value.status == 409


def test_a_search_that_does_not_fit_is_refused_before_its_decider(world: World) -> None:
    id, offering = register_procedure_from_recipe(world), {**SEARCH, "decide": {"substrate": "sobol"}}
    with expect_refusal("ProcedureSteeringMismatchError", "objective_missing"):
        world.when(ConductUntilAdvised(**{**offering, "objective_capture_name": "offset"}), on=id)
    with expect_refusal("DecideNotAvailableError", "not_offered") as caught:
        world.when(ConductUntilAdvised(**offering), on=id)
    assert caught.value.status == 422
    world.ports["deployment"].deciders = offered_deciders([DecideSubstrate.SOBOL])
    world.when(ConductUntilAdvised(**offering), on=id)


@for_each(
    ("point", "reason", "names"),
    [
        ({}, "first_point_axes", ["focus"]),
        ({"focus": 0.5, "tilt": 1}, "first_point_axes", ["tilt"]),
        ({"focus": 2.5}, "first_point_outside", ["focus"]),
        ({"focus": True}, "first_point_outside", ["focus"]),
    ],
)
def test_a_search_begins_nowhere_but_in_its_space(point: dict[str, Any], reason: str, names: list[str]) -> None:
    check_first_point({"focus": 2}, space("focus"))
    with expect_refusal(ProcedureSteeringMismatchError, reason) as caught:
        check_first_point(point, space("focus"))
    assert caught.value.facts == {"names": names}


def test_a_search_begins_where_it_is_asked_to_and_keeps_that_when_it_is_taken_up(world: World) -> None:
    id = register_procedure_from_recipe(world)
    with expect_refusal(ProcedureSteeringMismatchError, "first_point_outside"):
        world.when(ConductUntilAdvised(**SEARCH, first_point={"focus": 9.0}), on=id)
    open_and_hold(world, ConductUntilAdvised(**SEARCH, first_point={"focus": 0.5}), on=id)
    (design,) = [event for event in world.streams["Procedure", id] if isinstance(event, ProcedureSteeringDeclared)]
    assert (design.first_point, design.start_point) == ({"focus": 0.5}, {"focus": 0.5})
    (resumed,) = world.when(ConductUntilAdvisedFrom(**SEARCH), on=id)
    assert isinstance(resumed, ProcedureResumed), "the design has not changed"


def test_a_decider_that_is_not_offered_does_not_take_a_search_up_either(world: World) -> None:
    id = register_procedure_from_recipe(world)
    open_and_hold(world, ConductUntilAdvised(**SEARCH), on=id)
    with expect_refusal("DecideNotAvailableError", "not_offered"):
        world.when(ConductUntilAdvisedFrom(**SEARCH, decide={"substrate": "llm"}), on=id)


def test_a_search_is_declared_as_it_was_asked_for(world: World) -> None:
    id, budget = register_procedure_from_recipe(world), {"iterations_remaining": 6, "wall_clock_remaining": 3600.0}
    _, design, _, _ = world.when(ConductUntilAdvised(**BY_CALLER, budget=budget), on=id)
    assert isinstance(design, ProcedureSteeringDeclared)
    dumped = design.model_dump(mode="json", exclude_defaults=True)
    assert dumped == {
        "objective": SEARCH["objective"],
        "objective_capture_name": "sharpness",
        "space": {"axes": [{"name": "focus", "lower": -2.0, "upper": 2.0}]},
        "decide": {"substrate": "caller"},
        "budget": budget,
    }


def test_a_search_beyond_the_limits_of_the_control_system_is_refused_when_it_opens(world: World) -> None:
    id = register_procedure_from_recipe(world)
    world.ports["stated_limits"] = lambda addresses: dict.fromkeys(addresses, SignalLimits(low=-1.5))
    with expect_refusal("InvalidSearchSpaceError", "outside_limits") as caught:
        world.when(ConductUntilAdvised(**SEARCH), on=id)
    facts = caught.value.facts
    assert facts is not None
    assert (facts["axis"], facts["value"], facts["low"], facts["whose"]) == ("focus", -2.0, -1.5, "control_system")
    world.ports["stated_limits"] = lambda addresses: dict.fromkeys(addresses, SignalLimits(low=-2.0, high=2.0))
    assert world.when(ConductUntilAdvised(**SEARCH), on=id)


def test_without_a_word_a_grid_is_walked_for_as_long_as_it_takes(world: World) -> None:
    _, design, _, _ = world.when(ConductUntilAdvised(**SEARCH), on=register_procedure_from_recipe(world))
    assert isinstance(design, ProcedureSteeringDeclared)
    assert (design.decide.substrate, design.budget) == (DecideSubstrate.GRID_WALK, None)


@for_each("fields", [{"steps": FOCUS_STEPS}, {"re_establishment_boundary": 1}, {"decide_": {}}])
@for_each("command", [ConductUntilAdvised, ConductUntilAdvisedFrom])
def test_a_search_takes_neither_steps_nor_a_boundary(command: type[Any], fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        command(**SEARCH, **fields)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("objective", {"kind": "Minimize", "target_measurement_name": "sharpness"}),
        ("objective", {"kind": "Maximize", "target_measurement_name": "contrast"}),
        ("objective_capture_name", "contrast"),
        ("space", {"axes": [{"name": "focus", "lower": -2, "upper": 3}]}),
        ("space", {"axes": [{"name": "tilt", "lower": -2, "upper": 2}]}),
    ],
)
def test_a_search_that_goes_on_keeps_its_design(world: World, name: str, value: Any) -> None:
    id = register_procedure_from_recipe(world)
    open_and_hold(world, ConductUntilAdvised(**SEARCH), on=id)
    with expect_refusal("ProcedureSteeringDesignMismatchError", f"{name}_changed") as caught:
        world.when(ConductUntilAdvisedFrom(**{**SEARCH, name: value}), on=id)
    assert caught.value.status == 422


@pytest.mark.parametrize(
    ("changes", "declared"),
    [
        ({}, False),
        ({"decide": {"substrate": "grid_walk"}}, False),
        ({"decide": {"substrate": "grid_walk", "points_per_axis": 5}}, False),
        ({"decide": {"substrate": "grid_walk", "points_per_axis": 9}}, True),
        ({"decide": {"substrate": "caller"}}, True),
        ({"budget": {"iterations_remaining": 3}}, True),
        ({"budget": {}}, True),
    ],
)
def test_decider_and_budget_may_change_and_only_a_change_is_declared(
    world: World, changes: dict[str, Any], declared: bool
) -> None:
    id = register_procedure_from_recipe(world)
    open_and_hold(world, ConductUntilAdvised(**SEARCH), on=id)
    *designs, resumed = world.when(ConductUntilAdvisedFrom(**{**SEARCH, **changes}), on=id)
    assert isinstance(resumed, ProcedureResumed)
    assert [type(design) for design in designs] == [ProcedureSteeringDeclared] * declared


def test_the_last_design_is_the_one_that_goes_on(world: World) -> None:
    id, budget = register_procedure_from_recipe(world), {"iterations_remaining": 3}
    open_and_hold(world, ConductUntilAdvised(**SEARCH), on=id)
    open_and_hold(world, ConductUntilAdvisedFrom(**SEARCH, budget=budget), on=id)
    (event,) = world.when(ConductUntilAdvisedFrom(**SEARCH, budget=budget), on=id)
    assert isinstance(event, ProcedureResumed)


@pytest.mark.parametrize("outcomes", [0, 1, 3])
def test_a_search_goes_on_behind_what_was_measured(world: World, outcomes: int) -> None:
    id = register_procedure_from_recipe(world)
    open_conduct(world, ConductUntilAdvised(**SEARCH), on=id)
    for index in range(1, outcomes + 1):
        world.when(RecordProcedureOutcome(outcome=measured_pass(2 * index)), on=id)
    end_in_hold(world, id)
    (event,) = world.when(ConductUntilAdvisedFrom(**SEARCH), on=id)
    assert isinstance(event, ProcedureResumed)
    assert event.re_establishment_boundary == outcomes


def test_an_outcome_is_recorded_once(world: World) -> None:
    id = open_search(world)
    first = measured_pass(1, actuation_kind=ActuationKind.SIMULATED)
    assert world.when(RecordProcedureOutcome(outcome=first), on=id) == [first]
    assert world.when(RecordProcedureOutcome(outcome=measured_pass(1, 9.9)), on=id) == []
    assert len(world.when(RecordProcedureOutcome(outcome=measured_pass(2)), on=id)) == 1
    assert procedure_of(world, id).actuation_kind is None


def design_of(world: World, id: UUID) -> ProcedureSteeringDeclared:
    found = [event for event in world.streams["Procedure", id] if isinstance(event, ProcedureSteeringDeclared)]
    return found[-1]


def test_a_decider_knows_the_design_and_what_was_measured_in_order(world: World) -> None:
    id = open_search(world)
    outcomes = [
        measured_pass(3, 3.0),
        measured_pass(1, 1.0),
        measured_pass(2, 2.0, succeeded=False, actuation_kind="Simulated"),
    ]
    design = design_of(world, id)
    known = evidence_of(procedure_of(world, id), design, outcomes, SteeringBudget())
    assert [one.point["focus"] for one in known.observations] == [1.0, 2.0, 3.0]
    second = known.observations[1]
    assert (second.succeeded, second.actuation_kind, second.measurements[0].value) == (False, "Simulated", 2.0)
    assert (known.procedure_id, known.objective, known.space) == (id, design.objective, design.space)


@pytest.mark.parametrize(("count", "is_open", "asked_for"), [(0, False, 1), (1, True, 1), (1, False, 2), (7, True, 7)])
def test_a_decider_is_asked_for_the_open_pass_or_the_coming_one(
    world: World, count: int, is_open: bool, asked_for: int
) -> None:
    id = open_search(world)
    conduct_id = progress_of(world, id).conduct_id
    for index in range(1, count + 1):
        world.when(StartProcedureIteration(iteration_index=index, conduct_id=conduct_id), on=id)
        if index < count or not is_open:
            world.when(EndProcedureIteration(iteration_index=index, converged=None, conduct_id=conduct_id), on=id)
    known = evidence_of(procedure_of(world, id), design_of(world, id), [], SteeringBudget())
    assert known.iteration_index == asked_for


def declared_steering(budget: SteeringBudget | None) -> ProcedureSteeringDeclared:
    return ProcedureSteeringDeclared.model_validate({**SEARCH, "decide": {"substrate": "grid_walk"}, "budget": budget})


@for_each(
    ("budget", "passes", "elapsed", "left"),
    [
        (None, 3, 60, (None, None)),
        ({}, 3, 60, (None, None)),
        ({"iterations_remaining": 6}, 0, 0, (6, None)),
        ({"iterations_remaining": 6}, 5, 0, (1, None)),
        ({"iterations_remaining": 6}, 6, 0, (0, None)),
        ({"iterations_remaining": 6}, 9, 0, (0, None)),
        ({"iterations_remaining": 0}, 0, 0, (0, None)),
        ({"wall_clock_remaining": 60.0}, 9, 15, (None, 45.0)),
        ({"wall_clock_remaining": 60.0}, 0, 60, (None, 0.0)),
        ({"wall_clock_remaining": 60.0}, 0, 61, (None, 0.0)),
        ({"iterations_remaining": 2, "wall_clock_remaining": 60.0}, 1, 20, (1, 40.0)),
    ],
)
def test_what_is_left_of_a_budget(
    budget: dict[str, Any] | None, passes: int, elapsed: int, left: tuple[int | None, float | None]
) -> None:
    granted = None if budget is None else SteeringBudget(**budget)
    found = remaining_budget(declared_steering(granted), passes, START, START + timedelta(seconds=elapsed))
    assert (found.iterations_remaining, found.wall_clock_remaining) == left


@given(
    st.none() | st.integers(0, 20),
    st.none() | st.floats(0, 1e6),
    st.integers(0, 30),
    st.integers(0, 30),
    st.timedeltas(timedelta(0), timedelta(days=30)),
)
def test_a_budget_only_shrinks_and_never_below_nothing(
    iterations: int | None, seconds: float | None, passes: int, more: int, elapsed: timedelta
) -> None:
    design = declared_steering(SteeringBudget(iterations_remaining=iterations, wall_clock_remaining=seconds))
    first = remaining_budget(design, passes, START, START + elapsed)
    later = remaining_budget(design, passes + more, START, START + 2 * elapsed)
    for granted, before, after in (
        (iterations, first.iterations_remaining, later.iterations_remaining),
        (seconds, first.wall_clock_remaining, later.wall_clock_remaining),
    ):
        if granted is None:
            assert (before, after) == (None, None)
        else:
            assert before is not None
            assert after is not None
            assert 0 <= after <= before <= granted


def test_a_conduct_that_waits_says_what_it_wants_to_know(world: World) -> None:
    id = search_awaiting_advice(world, budget={"iterations_remaining": 6, "wall_clock_remaining": 3600.0})
    world.now += timedelta(seconds=30)
    row = progress_of(world, id)
    view = world.ask(GetProcedureSteering(), on=id)
    assert isinstance(view, SteeringView)
    assert (view.waiting, view.iteration_index) == (True, 1)
    assert (view.conduct_id, view.deadline) == (row.conduct_id, row.waiting_until)
    assert view.evidence is not None
    assert [one.point for one in view.evidence.observations] == [{"focus": 1.5}]
    elapsed = (world.now - row.started_at).total_seconds()
    assert view.evidence.budget == SteeringBudget(iterations_remaining=5, wall_clock_remaining=3600.0 - elapsed)


def test_a_fresh_budget_counts_the_passes_of_its_own_conduct_only(world: World) -> None:
    id = search_awaiting_advice(world)
    end_in_hold(world, id)
    open_conduct(world, ConductUntilAdvisedFrom(**BY_CALLER, budget={"iterations_remaining": 2}), on=id)
    conduct_id = progress_of(world, id).conduct_id
    world.when(EndProcedureIteration(iteration_index=1, converged=None, conduct_id=conduct_id), on=id)
    wait_for_advice(world, id)
    evidence = world.ask(GetProcedureSteering(), on=id).evidence
    assert (len(evidence.observations), evidence.budget.iterations_remaining, evidence.iteration_index) == (1, 2, 2)


SILENT: dict[str, dict[str, Any] | None] = {
    "walking": {"waiting_for": None, "waiting_until": None},
    "waiting for its run": {"waiting_for": "run"},
    "waiting without an end": {"waiting_until": None},
    "of another conduct": {"conduct_id": new_id()},
    "held": None,
}


@pytest.mark.parametrize("how", SILENT)
def test_a_conduct_that_does_not_wait_for_advice_takes_none(world: World, how: str) -> None:
    id = search_awaiting_advice(world)
    if (fields := SILENT[how]) is None:
        end_in_hold(world, id)
        set_progress(world, id, waiting_for="advice", waiting_until=world.now)
    else:
        set_progress(world, id, **fields)
    assert world.ask(GetProcedureSteering(), on=id) == SteeringView(procedure_id=id, waiting=False)
    with expect_refusal("ProcedureCannotAdviseError", "held" if fields is None else "not_waiting"):
        world.when(AdviseProcedure(iteration_index=1, advice=STOP), on=id)


def test_what_was_never_conducted_waits_for_no_advice(world: World) -> None:
    assert world.ask(GetProcedureSteering(), on=register_procedure_from_recipe(world)).waiting is False


@pytest.mark.parametrize("conduct", [ConductProcedure(), ConductUntilAdvised(**BY_CALLER)])
def test_what_never_asked_takes_no_advice(world: World, conduct: Command) -> None:
    id = register_procedure_from_recipe(world)
    open_conduct(world, conduct, on=id)
    for question in (None, 1):
        with expect_refusal("ProcedureCannotAdviseError", "not_waiting"):
            world.when(AdviseProcedure(iteration_index=1, question=question, advice=STOP), on=id)


def test_advice_is_recorded_with_its_author(world: World) -> None:
    id = search_awaiting_advice(world)
    advice = SteeringAdvice.model_validate(
        {
            "verdict": "Measure",
            "next_point": {"focus": 0.5},
            "rationale": "halfway",
            "confidence": 0.7,
            "confidence_source": "self_reported",
            "alternatives": ["0.4"],
            "model_ref": "reasoner-3",
        }
    )
    before = procedure_of(world, id)
    (event,) = world.when(AdviseProcedure(iteration_index=1, advice=advice), on=id)
    conduct_id = progress_of(world, id).conduct_id
    assert event == ProcedureAdvised(conduct_id=conduct_id, iteration_index=1, advice=advice, advised_by=OPERATOR)
    assert procedure_of(world, id) == before


@pytest.mark.parametrize("index", [2, 7])
def test_advice_on_another_pass_is_stale(world: World, index: int) -> None:
    id = search_awaiting_advice(world)
    with expect_refusal("ProcedureCannotAdviseError", "stale_iteration") as caught:
        world.when(AdviseProcedure(iteration_index=index, advice=STOP), on=id)
    assert caught.value.facts == {"expected": 1, "question": 1}


def test_a_pass_is_advised_once(world: World) -> None:
    id = search_awaiting_advice(world)
    conduct_id = progress_of(world, id).conduct_id
    world.when(AdviseProcedure(iteration_index=1, advice=STOP), on=id)
    with expect_refusal("ProcedureCannotAdviseError", "not_waiting"):
        world.when(AdviseProcedure(iteration_index=1, advice=STOP), on=id)
    world.when(EndProcedureIteration(iteration_index=1, converged=None, conduct_id=conduct_id), on=id)
    world.when(StartProcedureIteration(iteration_index=2, conduct_id=conduct_id), on=id)
    world.when(AdviseProcedure(iteration_index=2, advice=STOP), on=id)


def test_a_search_that_was_taken_up_is_advised_anew(world: World) -> None:
    """What was said to the conduct before does not count for this one, although both ask for the same pass."""
    id = open_search(world)
    world.when(RecordProcedureOutcome(outcome=measured_pass(1)), on=id)
    wait_for_advice(world, id)
    world.when(AdviseProcedure(iteration_index=1, advice=STOP), on=id)
    end_in_hold(world, id)
    conduct_id = open_conduct(world, ConductUntilAdvisedFrom(**BY_CALLER), on=id)
    wait_for_advice(world, id)
    (event,) = world.when(AdviseProcedure(iteration_index=1, advice=STOP), on=id)
    assert isinstance(event, ProcedureAdvised)
    assert event.conduct_id == conduct_id


def test_a_late_answer_to_the_question_before_a_take_up_is_stale(world: World) -> None:
    """Both questions name the same pass and differ in their number."""
    id = open_search(world)
    world.when(RecordProcedureOutcome(outcome=measured_pass(1)), on=id)
    asked = []
    for _ in range(3):
        end_in_hold(world, id)
        open_conduct(world, ConductUntilAdvisedFrom(**BY_CALLER), on=id)
        wait_for_advice(world, id)
        view = world.ask(GetProcedureSteering(), on=id)
        asked.append((view.iteration_index, view.question))
    assert asked == [(1, 2), (1, 3), (1, 4)]
    for late in (1, 2, 3, 5):
        with expect_refusal("ProcedureCannotAdviseError", "stale_iteration") as caught:
            world.when(AdviseProcedure(iteration_index=1, question=late, advice=STOP), on=id)
        assert caught.value.facts == {"question": 4}
    world.when(AdviseProcedure(iteration_index=1, question=4, advice=STOP), on=id)
    with expect_refusal("ProcedureCannotAdviseError", "stale_iteration"):
        world.when(AdviseProcedure(iteration_index=1, question=4, advice=STOP), on=id)


def test_a_pass_that_advice_began_is_advised_again_once_it_is_measured(world: World) -> None:
    """Where to measure and what follows from it are two questions, although both name the same pass."""
    id = open_search(world)
    conduct_id = progress_of(world, id).conduct_id
    wait_for_advice(world, id)
    there = SteeringAdvice.model_validate({"verdict": "Measure", "next_point": {"focus": 0.5}})
    world.when(AdviseProcedure(iteration_index=1, advice=there), on=id)
    assert world.ask(GetProcedureSteering(), on=id).waiting is False
    begin = StartProcedureIteration(iteration_index=1, point={"focus": 0.5}, advice=there, conduct_id=conduct_id)
    world.when(begin, on=id)
    assert world.ask(GetProcedureSteering(), on=id).waiting is True
    world.when(AdviseProcedure(iteration_index=1, advice=STOP), on=id)
    with expect_refusal("ProcedureCannotAdviseError", "not_waiting"):
        world.when(AdviseProcedure(iteration_index=1, advice=STOP), on=id)


@pytest.mark.parametrize("request_", [HoldProcedure(reason="lunch"), AbortProcedure(reason="smoke")])
def test_a_conduct_that_is_asked_to_stop_takes_no_advice(world: World, request_: Any) -> None:
    id = search_awaiting_advice(world)
    world.when(request_, on=id)
    for index in (1, 9):
        with expect_refusal("ProcedureCannotAdviseError", "request_pending"):
            world.when(AdviseProcedure(iteration_index=index, advice=STOP), on=id)


@pytest.mark.parametrize(
    ("advice", "reason"),
    [
        ({"verdict": "Stop", "next_point": {"focus": 0.0}}, "stop_with_point"),
        ({"verdict": "Measure"}, "point_missing"),
        ({"verdict": "Measure", "next_point": {}}, "axes_differ"),
        ({"verdict": "Measure", "next_point": {"focus": 0.0, "tilt": 0.0}}, "axes_differ"),
        ({"verdict": "Measure", "next_point": {"focus": 2.1}}, "outside_space"),
        ({"verdict": "Measure", "next_point": {"focus": "0"}}, "outside_space"),
        ({"verdict": "Measure", "next_point": {"focus": True}}, "outside_space"),
    ],
)
def test_advice_that_nobody_could_follow_changes_nothing(world: World, advice: dict[str, Any], reason: str) -> None:
    id = search_awaiting_advice(world)
    stale = SteeringAdvice.model_validate(advice)
    with expect_refusal("ProcedureCannotAdviseError", "stale_iteration"):
        world.when(AdviseProcedure(iteration_index=2, advice=stale), on=id)
    with expect_refusal("DecideAdviceMalformedError", reason) as caught:
        world.when(AdviseProcedure(iteration_index=1, advice=stale), on=id)
    assert caught.value.status == 400
    world.when(AdviseProcedure(iteration_index=1, advice=STOP), on=id)


@for_each(
    "fields",
    [
        {"confidence": 1.1},
        {"confidence": -0.1},
        {"confidence": float("nan")},
        {"rationale": "x" * 5001},
        {"model_ref": "x" * 101},
        {"verdict": "Pause"},
        {"mood": "good"},
    ],
)
def test_advice_of_another_form_is_refused_at_the_edge(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AdviseProcedure.model_validate({"iteration_index": 1, "advice": {"verdict": "Stop", **fields}})


def test_a_pass_tells_where_it_measured_what_and_what_was_advised(world: World) -> None:
    id = search_awaiting_advice(world)
    conduct_id = progress_of(world, id).conduct_id
    ended = EndProcedureIteration(
        iteration_index=1,
        converged=None,
        advised_stop=False,
        reasoning="halfway",
        advised_next_point={"focus": 0.5},
        advised_by=OPERATOR,
        conduct_id=conduct_id,
    )
    world.when(ended, on=id)
    advice = SteeringAdvice.model_validate({"verdict": "Measure", "next_point": {"focus": 0.5}})
    begin = StartProcedureIteration(iteration_index=2, point={"focus": 0.5}, advice=advice, conduct_id=conduct_id)
    (begun,) = world.when(begin, on=id)
    assert begun == ProcedureIterationStarted(iteration_index=2, point={"focus": 0.5}, advice=advice)
    first, second = world.ask(ListProcedureIterations(), on=id).items
    assert (first.point, first.measurements[0].value, first.reasoning) == ({"focus": 1.5}, 1.5, "halfway")
    assert (first.advised_stop, first.advised_next_point, first.advised_by) == (False, {"focus": 0.5}, OPERATOR)
    assert (second.point, second.measurements, second.ended_at) == ({"focus": 0.5}, None, None)


def test_a_steered_search_is_never_out_of_patience(world: World) -> None:
    id = register_procedure_from_recipe(world, max_consecutive_unconverged_iterations=1)
    conduct_id = open_conduct(world, ConductUntilAdvised(**SEARCH), on=id)
    for index in (1, 2, 3):
        world.when(StartProcedureIteration(iteration_index=index, conduct_id=conduct_id), on=id)
        world.when(EndProcedureIteration(iteration_index=index, converged=None, conduct_id=conduct_id), on=id)
    assert procedure_of(world, id).consecutive_unconverged_iterations == 0
