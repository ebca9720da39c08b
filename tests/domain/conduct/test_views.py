"""How a conduct is seen: before anybody takes it up, while it goes on, while nobody is heard of, and once it has ended."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from baton.domain.conduct.conduct import ConductProcedure, ConductUntilConverged
from baton.domain.conduct.endings import AbortProcedure, CompleteProcedure, HoldProcedure
from baton.domain.conduct.estimates import ConductWalk, Estimate, EstimateBasis, StepDuration
from baton.domain.conduct.iterations import EndProcedureIteration, StartProcedureIteration
from baton.domain.conduct.ledger import MeasuredObjective
from baton.domain.conduct.views import ConductView, GetProcedureConduct
from baton.domain.procedure.procedure import ConductMode
from baton.domain.start.registration import RegisterProcedure
from baton.domain.steering.steering import SteeringBudget
from tests.support.domain.conducts import LOOP, conduct_result, end_in_hold, set_progress, wait_for_advice
from tests.support.domain.editions import creator
from tests.support.domain.lifecycles.run import run_world
from tests.support.domain.world import START, World
from tests.support.workflows.step_json import action, capture, check, setpoint

STEPS = tuple(setpoint("bl7:energy", value) for value in range(40))


@pytest.fixture
def world() -> World:
    world = run_world()
    world.ports["measured_objective"] = None
    world.ports["deployment"] = SimpleNamespace(
        **{**vars(world.ports["deployment"]), "action_timeout": 600.0, "compute_timeout": 900.0}
    )
    return world


def register_procedure(world: World) -> UUID:
    return world.create(RegisterProcedure(name="Set the energy", kind="beam_mode_change"))


def conducted_procedure(world: World, command: Any = None) -> UUID:
    id = register_procedure(world)
    world.when(command or ConductProcedure(steps=STEPS), on=id)
    return id


def view(world: World, id: UUID) -> ConductView:
    answer: ConductView = world.ask(GetProcedureConduct(), on=id)
    return answer


def set_walking(world: World, id: UUID, **fields: Any) -> None:
    set_progress(world, id, **{"phase": "Walking", "step_index": 6, "heartbeat_at": world.now, **fields})


def test_what_was_never_conducted_has_no_conduct(world: World) -> None:
    seen = view(world, register_procedure(world))
    assert (seen.conduct_id, seen.phase, seen.result, seen.message) == (None, None, None, "never conducted")


def test_a_conduct_that_nobody_has_taken_up_waits_for_a_worker(world: World) -> None:
    seen = view(world, conducted_procedure(world))
    assert (seen.phase, seen.worker, seen.silence) == ("Opened", "awaited", None)
    assert (seen.command_name, seen.step_count, seen.step_index) == ("ConductProcedure", 40, None)
    assert seen.message == "waiting for a worker to take it up"


def test_a_worker_that_is_heard_of_says_where_it_is(world: World) -> None:
    id = conducted_procedure(world)
    set_walking(world, id)
    seen = view(world, id)
    assert (seen.phase, seen.worker, seen.silence, seen.message) == ("Walking", "heard", 0, "step 7 of 40")


def test_a_worker_that_is_silent_too_long_is_lost_and_its_silence_is_said(world: World) -> None:
    id = conducted_procedure(world)
    set_walking(world, id)
    world.now += timedelta(seconds=4)
    assert view(world, id).worker == "heard"
    world.now += timedelta(seconds=8)
    seen = view(world, id)
    assert (seen.worker, seen.silence, seen.message) == ("lost", 12, "step 7 of 40, worker lost 12 s ago")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"phase": "Waiting", "waiting_for": "run"}, "waiting for its run to be resumed"),
        ({"phase": "Closing", "step_index": None}, "coming to its end"),
        ({"stalled_at": START + timedelta(hours=1)}, "stalled in the engine"),
        ({"iteration_index": 3, "step_index": 0}, "iteration 3, step 1 of 40"),
    ],
)
def test_words_say_where_a_conduct_stands(world: World, fields: dict[str, Any], words: str) -> None:
    id = conducted_procedure(world)
    set_walking(world, id, **fields)
    assert view(world, id).message == words


def test_waiting_for_advice_says_until_when(world: World) -> None:
    id = conducted_procedure(world)
    set_walking(world, id)
    deadline = world.now + timedelta(minutes=10)
    wait_for_advice(world, id, deadline)
    seen = view(world, id)
    assert (seen.waiting_for, seen.waiting_until, seen.message) == ("advice", deadline, "waiting for advice")


def test_a_loop_says_what_it_measured_last(world: World) -> None:
    world.ports["measured_objective"] = MeasuredObjective(name="sharpness", value=0.9, iteration_index=2)
    id = conducted_procedure(world, ConductUntilConverged(**LOOP, steps=STEPS))
    set_walking(world, id, iteration_index=3)
    seen = view(world, id)
    assert seen.measurement == MeasuredObjective(name="sharpness", value=0.9, iteration_index=2)
    assert seen.message == "iteration 3, step 7 of 40, sharpness 0.9 in iteration 2"


EVERYTHING = (
    setpoint("bl7:energy", 1),
    action("collect", detector="cam"),
    check("bl7:energy", 1, timeout=60.0),
    capture("bl7:energy", "energy"),
)


@pytest.mark.parametrize(
    ("step_index", "kind", "label", "seconds"),
    [
        (0, "setpoint", "set bl7:energy", 35),
        (1, "action", "do collect", 600),
        (2, "check", "check bl7:energy", 65),
        (3, "capture", "capture energy from bl7:energy", 5),
    ],
)
def test_a_hold_says_since_when_it_waits_for_what_and_until_when_at_the_latest(
    world: World, step_index: int, kind: str, label: str, seconds: float
) -> None:
    id = conducted_procedure(world, ConductProcedure(steps=EVERYTHING))
    began = world.now
    set_walking(world, id, step_index=step_index, active_at=began)
    world.now += timedelta(seconds=2)
    world.when(HoldProcedure(reason="shift change"), on=id)
    asked_at = world.now
    world.now += timedelta(seconds=1)
    seen = view(world, id)
    assert seen.pending is not None
    assert seen.pending.step is not None
    assert (seen.pending.request, seen.pending.since) == ("Hold", asked_at)
    assert seen.pending.step.model_dump() == {"step_index": step_index, "closing": False, "kind": kind, "label": label}
    assert seen.pending.until == began + timedelta(seconds=seconds)
    assert f"waits for {label}, until {seen.pending.until:%H:%M:%S} UTC at the latest" in seen.message


@pytest.mark.parametrize(
    ("request_", "walking", "silence"),
    [
        (HoldProcedure(reason="shift change"), True, 20),
        (HoldProcedure(reason="shift change"), False, 0),
        (AbortProcedure(reason="smoke"), True, 0),
    ],
    ids=["worker lost", "between two steps", "abort"],
)
def test_a_request_may_wait_for_nobody_knows_how_long(world: World, request_: Any, walking: bool, silence: int) -> None:
    id = conducted_procedure(world)
    if walking:
        set_walking(world, id)
    world.when(request_, on=id)
    world.now += timedelta(seconds=silence)
    pending = view(world, id).pending
    assert pending is not None
    assert (f"{pending.request}Procedure", pending.until) == (type(request_).__name__, None)
    assert (pending.step is not None) is walking


def test_a_request_is_pending_until_the_conduct_has_ended(world: World) -> None:
    id = conducted_procedure(world)
    set_walking(world, id)
    assert view(world, id).pending_request is None
    world.when(HoldProcedure(reason="shift change"), on=id)
    assert view(world, id).pending_request == "Hold"
    failure = {
        "source_kind": "lifecycle",
        "target": "hold",
        "error_class": "ProcedureHeldByOperator",
        "message": "As asked.",
    }
    end_in_hold(world, id, failure=failure)
    seen = view(world, id)
    assert seen.pending is None
    assert (seen.pending_request, seen.phase, seen.status, seen.message) == (None, "Ended", "Held", "held: As asked.")


def test_a_held_procedure_is_held_by_who_asked_its_conduct_for_that(world: World) -> None:
    id, submitter = conducted_procedure(world), world.principal_id
    assert view(world, id).hold is None
    world.principal_id = creator(world)
    world.when(HoldProcedure(reason="shift change"), on=id)
    holder, world.principal_id = world.principal_id, submitter
    end_in_hold(world, id)
    hold = view(world, id).hold
    assert hold is not None
    assert (hold.since, hold.reason, hold.held_by, hold.held_by_name) == (world.now, "shift change", holder, "Mira Okafor")
    world.denied |= {"GetActor"}
    nameless = view(world, id).hold
    assert nameless is not None
    assert (nameless.held_by, nameless.held_by_name) == (holder, None)


def test_a_conduct_that_ended_has_its_result_and_nobody_is_heard_of(world: World) -> None:
    id = conducted_procedure(world)
    set_walking(world, id)
    result = conduct_result(world, id, completed_count=40)
    world.when(CompleteProcedure(conducted=result), on=id)
    world.now += timedelta(hours=1)
    seen = view(world, id)
    assert (seen.result, seen.worker, seen.silence, seen.message) == (result, None, None, "succeeded")


SET, SHUT = ("setpoint", "bl7:energy"), ("setpoint", "bl7:shutter")
HISTORY = {SET: StepDuration(count=3, median=10.0, p90=12.0), SHUT: StepDuration(count=1, median=2.0, p90=2.0)}


def know_walk(world: World, **fields: Any) -> None:
    """Let the conduct be one of forty steps and a closing step, all of which were done before."""
    world.ports["conduct_walk"] = ConductWalk((SET,) * 40, (SHUT,), **fields)
    world.ports["step_durations"] = HISTORY


def estimate_of(world: World, id: UUID) -> Estimate:
    found = view(world, id).estimate
    assert found is not None
    return found


def test_a_conduct_says_how_long_it_will_take_by_what_its_steps_took_before(world: World) -> None:
    id = conducted_procedure(world)
    know_walk(world)
    assert estimate_of(world, id) == Estimate(
        remaining_seconds=402, ends_at=world.now + timedelta(seconds=402), basis=EstimateBasis.HISTORY
    )
    set_walking(world, id, active_at=world.now)
    world.now += timedelta(seconds=4)
    assert estimate_of(world, id).remaining_seconds == 33 * 10 + 6 + 2
    world.now += timedelta(seconds=60)
    assert estimate_of(world, id).remaining_seconds == 33 * 10 + 2, "a step that takes long counts as nothing any more"
    set_walking(world, id, phase="Closing", step_index=0, active_at=world.now)
    assert estimate_of(world, id).remaining_seconds == 2


@pytest.mark.parametrize("fields", [{"waiting_for": "run", "phase": "Waiting"}, {"stalled_at": START + timedelta(hours=1)}])
def test_the_clock_stands_while_a_conduct_does_not_go_on(world: World, fields: dict[str, Any]) -> None:
    id = conducted_procedure(world)
    know_walk(world)
    set_walking(world, id, **fields)
    world.now += timedelta(minutes=5)
    assert estimate_of(world, id) == Estimate(remaining_seconds=342, basis=EstimateBasis.HISTORY)


def test_a_hold_that_came_too_late_is_told(world: World) -> None:
    id = conducted_procedure(world)
    set_walking(world, id)
    world.when(HoldProcedure(reason="lunch"), on=id)
    assert view(world, id).hold_lapsed is False, "it may still be served"
    world.when(CompleteProcedure(conducted=conduct_result(world, id)), on=id)
    seen = view(world, id)
    assert (seen.hold_lapsed, seen.message) == (True, "succeeded; a hold that was asked for came too late")


def test_a_hold_that_was_served_did_not_lapse(world: World) -> None:
    id = conducted_procedure(world)
    world.when(HoldProcedure(reason="lunch"), on=id)
    end_in_hold(world, id)
    assert view(world, id).hold_lapsed is False


def test_a_hold_stops_the_clock(world: World) -> None:
    id = conducted_procedure(world)
    know_walk(world)
    set_walking(world, id, active_at=world.now)
    world.when(HoldProcedure(reason="shift change"), on=id)
    assert estimate_of(world, id).ends_at is None
    world.ports["completed_step_count"] = 30
    end_in_hold(world, id)
    for _ in "12":
        assert estimate_of(world, id) == Estimate(remaining_seconds=102, basis=EstimateBasis.HISTORY)
        world.now += timedelta(hours=1)


def test_nothing_follows_an_abort_or_an_end(world: World) -> None:
    aborted, ended = conducted_procedure(world), conducted_procedure(world)
    know_walk(world)
    for id in (aborted, ended):
        set_walking(world, id)
    world.when(AbortProcedure(reason="smoke"), on=aborted)
    world.when(CompleteProcedure(conducted=conduct_result(world, ended)), on=ended)
    assert [view(world, id).estimate for id in (aborted, ended, register_procedure(world))] == [None, None, None]


def test_a_loop_is_estimated_to_its_cap(world: World) -> None:
    id = conducted_procedure(world, ConductUntilConverged(**LOOP, steps=STEPS))
    conduct_id = view(world, id).conduct_id
    know_walk(world, mode=ConductMode.CONVERGED, unconverged_cap=3)
    world.when(StartProcedureIteration(iteration_index=1, conduct_id=conduct_id), on=id)
    set_walking(world, id, iteration_index=1, step_index=39, active_at=world.now)
    assert estimate_of(world, id).remaining_seconds == 10 + 2 * 400 + 2
    world.when(EndProcedureIteration(iteration_index=1, converged=False, conduct_id=conduct_id), on=id)
    between = estimate_of(world, id)
    assert (between.remaining_seconds, between.to_cap) == (2 * 400 + 2, True)
    world.when(StartProcedureIteration(iteration_index=2, conduct_id=conduct_id), on=id)
    assert estimate_of(world, id).remaining_seconds == 2 * 400 + 2, "its first step has not begun"
    know_walk(world, mode=ConductMode.CONVERGED)
    assert estimate_of(world, id) == Estimate(basis=EstimateBasis.NONE)


def test_a_search_is_estimated_to_its_budget(world: World) -> None:
    id = conducted_procedure(world, ConductUntilConverged(**LOOP, steps=STEPS))
    conduct_id = view(world, id).conduct_id
    world.when(StartProcedureIteration(iteration_index=1, conduct_id=conduct_id), on=id)
    set_walking(world, id, iteration_index=1, step_index=39, active_at=world.now)
    know_walk(world, mode=ConductMode.ADVISED, budget=SteeringBudget(iterations_remaining=5))
    assert estimate_of(world, id).remaining_seconds == 10 + 4 * 400 + 2
    budget = SteeringBudget(iterations_remaining=5, wall_clock_remaining=600)
    know_walk(world, mode=ConductMode.ADVISED, budget=budget, started_at=world.now - timedelta(seconds=100))
    assert estimate_of(world, id).remaining_seconds == 500 + 2
    wait_for_advice(world, id)
    know_walk(world, mode=ConductMode.ADVISED, budget=SteeringBudget(iterations_remaining=5))
    assert estimate_of(world, id) == Estimate(remaining_seconds=4 * 400 + 2, basis=EstimateBasis.HISTORY, to_cap=True)
