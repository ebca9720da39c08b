"""How procedures stop: by hand, by a request that a live conduct serves, by its own end, and when nobody works on it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.domain.conduct.conduct import CONDUCTED_ASSETS, ConductFromProcedure, ConductProcedure
from baton.domain.conduct.endings import (
    EXPIRED,
    LOST,
    SILENT_FOR,
    AbortProcedure,
    CompleteProcedure,
    HoldProcedure,
    RecordConductEnd,
    TruncateProcedure,
    lost_result,
)
from baton.domain.conduct.iterations import EndProcedureIteration, StartProcedureIteration
from baton.domain.conduct.messages import reason_of
from baton.domain.conduct.progress import ABORT_ASKED, HOLD_ASKED
from baton.domain.kernel import Command
from baton.domain.procedure.procedure import (
    ABORTED,
    HELD,
    RUNNING,
    TRUNCATED,
    ConductMode,
    HoldCause,
    PendingRequest,
    Procedure,
    ProcedureAborted,
    ProcedureAbortRequested,
    ProcedureCompleted,
    ProcedureConducted,
    ProcedureHeld,
    ProcedureHoldRequested,
    ProcedureTruncated,
)
from baton.domain.run.run import HoldRun
from baton.domain.shared.refusals import Refusal
from baton.domain.start.procedure_start import ResumeProcedure, StartProcedure
from baton.domain.step.results import ActuationKind
from tests.support.domain.agents import decision_to_cite
from tests.support.domain.conducts import (
    BEGINNING,
    ENDINGS,
    STEPS,
    STOPS,
    conduct_result,
    conduct_row,
    end_in_hold,
    latest,
    open_and_hold,
    open_conduct,
    procedure_of,
    progress_of,
    register_procedure,
    register_procedure_from_recipe,
    set_progress,
)
from tests.support.domain.run_beamline import Beamline, beamline
from tests.support.domain.world import START, World, expect_refusal, new_id

SECOND = timedelta(seconds=1)


@pytest.fixture
def live_procedure(line: Beamline) -> UUID:
    """A procedure with a recipe and one target asset, which is being conducted."""
    id = register_procedure_from_recipe(line.world, target_asset_ids=[line.hutch.camera])
    open_conduct(line.world, ConductProcedure(), on=id)
    return id


def started_procedure(world: World) -> UUID:
    id = register_procedure(world)
    world.when(StartProcedure(), on=id)
    return id


def claimed_assets(world: World) -> dict[str, UUID]:
    return {key: holder for (kind, key), holder in world.claims.items() if kind == CONDUCTED_ASSETS}


def conduct_requests(world: World, id: UUID) -> set[str]:
    """Return the requests to the live conduct that the look-ups hold."""
    key = str(procedure_of(world, id).live_conduct_id)
    return {kind for kind in (HOLD_ASKED, ABORT_ASKED) if id in world.members[kind, key]}


def test_what_runs_by_hand_is_held_at_once(world: World) -> None:
    id, decision_id = started_procedure(world), decision_to_cite(world)
    with expect_refusal("DecisionNotFoundError"):
        world.when(HoldProcedure(reason=" ", decided_by_decision_id=new_id()), on=id)
    (event,) = world.when(HoldProcedure(reason=" shift change ", decided_by_decision_id=decision_id), on=id)
    assert event == ProcedureHeld(
        reason="shift change", cause=HoldCause.OPERATOR, decided_by_decision_id=decision_id, actuation_kind=None
    )
    assert procedure_of(world, id).status is HELD
    assert world.answer is None


@pytest.mark.parametrize("command", [AbortProcedure(reason="smoke"), AbortProcedure(reason="smoke", run_closing=True)])
@pytest.mark.parametrize("held", [False, True], ids=["running", "held"])
def test_what_runs_by_hand_is_aborted_at_once(world: World, command: Command, held: bool) -> None:
    id = started_procedure(world)
    if held:
        world.when(HoldProcedure(reason="lunch"), on=id)
    (event,) = world.when(command, on=id)
    assert event == ProcedureAborted(reason="smoke", actuation_kind=None)
    assert procedure_of(world, id).status is ABORTED


@pytest.mark.parametrize(
    ("command", "refusal"),
    [
        (HoldProcedure(reason="  "), "InvalidProcedureHoldReasonError"),
        (AbortProcedure(reason="  "), "InvalidProcedureAbortReasonError"),
        (TruncateProcedure(reason="  "), "InvalidProcedureTruncateReasonError"),
    ],
    ids=["hold", "abort", "truncate"],
)
def test_a_reason_is_not_blank_and_asked_for_after_the_state(world: World, command: Command, refusal: str) -> None:
    id = register_procedure(world)
    with expect_refusal(command.Cannot, "defined"):
        world.when(command, on=id)
    world.when(StartProcedure(), on=id)
    with expect_refusal(refusal, "blank"):
        world.when(command, on=id)


def test_a_live_conduct_is_asked_to_hold(world: World, live_procedure: UUID) -> None:
    conduct_id, decision_id = procedure_of(world, live_procedure).live_conduct_id, decision_to_cite(world)
    assert conduct_id is not None
    (event,) = world.when(HoldProcedure(reason="shift change", decided_by_decision_id=decision_id), on=live_procedure)
    assert event == ProcedureHoldRequested(conduct_id=conduct_id, reason="shift change", decided_by_decision_id=decision_id)
    assert (world.answer, world.status) == ({"procedure_id": str(live_procedure), "conduct_id": str(conduct_id)}, 202)
    state = procedure_of(world, live_procedure)
    assert (state.status, state.live_conduct_id, state.pending_request) == (RUNNING, conduct_id, PendingRequest.HOLD)
    assert conduct_requests(world, live_procedure) == {HOLD_ASKED}


def test_a_live_conduct_is_asked_to_abort(world: World, live_procedure: UUID) -> None:
    conduct_id = procedure_of(world, live_procedure).live_conduct_id
    assert conduct_id is not None
    (event,) = world.when(AbortProcedure(reason="smoke"), on=live_procedure)
    assert event == ProcedureAbortRequested(conduct_id=conduct_id, reason="smoke", run_closing=False)
    assert (world.answer, world.status) == ({"procedure_id": str(live_procedure), "conduct_id": str(conduct_id)}, 202)
    assert procedure_of(world, live_procedure).pending_request is PendingRequest.ABORT
    assert conduct_requests(world, live_procedure) == {ABORT_ASKED}


REQUESTS: dict[str, tuple[list[Command], Command, str | None]] = {
    "hold": ([], HoldProcedure(reason="lunch"), None),
    "abort": ([], AbortProcedure(reason="smoke"), None),
    "hold twice": ([HoldProcedure(reason="lunch")], HoldProcedure(reason="again"), "ProcedureCannotHoldError"),
    "abort after hold": ([HoldProcedure(reason="lunch")], AbortProcedure(reason="smoke"), None),
    "abort twice": ([AbortProcedure(reason="smoke")], AbortProcedure(reason="again"), "ProcedureCannotAbortError"),
    "hold after abort": ([AbortProcedure(reason="smoke")], HoldProcedure(reason="lunch"), "ProcedureCannotHoldError"),
    "abort after both": (
        [HoldProcedure(reason="lunch"), AbortProcedure(reason="smoke")],
        AbortProcedure(reason="again"),
        "ProcedureCannotAbortError",
    ),
}


@pytest.mark.parametrize("how", REQUESTS)
def test_only_an_abort_is_asked_for_beside_another_request(world: World, live_procedure: UUID, how: str) -> None:
    before, command, refusal = REQUESTS[how]
    for earlier in before:
        world.when(earlier, on=live_procedure)
    known = conduct_requests(world, live_procedure)
    if refusal is None:
        world.when(command, on=live_procedure)
        assert conduct_requests(world, live_procedure) > known
        return
    with expect_refusal(refusal, "request_pending"):
        world.when(command, on=live_procedure)
    assert conduct_requests(world, live_procedure) == known


def test_closing_is_not_asked_for_beside_a_live_conduct(world: World, live_procedure: UUID) -> None:
    with expect_refusal("ProcedureCannotAbortError", "conduct_live") as caught:
        world.when(AbortProcedure(reason="smoke", run_closing=True), on=live_procedure)
    assert caught.value.facts == {"conduct_id": str(procedure_of(world, live_procedure).live_conduct_id)}
    assert conduct_requests(world, live_procedure) == set()


REQUESTED: dict[str, list[Command]] = {
    "unasked": [],
    "asked to hold": [HoldProcedure(reason="lunch")],
    "asked to abort": [AbortProcedure(reason="smoke")],
    "asked for both": [HoldProcedure(reason="lunch"), AbortProcedure(reason="smoke")],
}


@pytest.mark.parametrize("requests", REQUESTED)
@pytest.mark.parametrize("end", ENDINGS)
def test_the_end_of_a_conduct_is_one_append_that_gives_everything_back(
    world: World, live_procedure: UUID, end: str, requests: str
) -> None:
    conduct_id = progress_of(world, live_procedure).conduct_id
    set_progress(
        world, live_procedure, phase="Waiting", waiting_for="advice", waiting_until=START, step_index=1, heartbeat_at=START
    )
    for request in REQUESTED[requests]:
        world.when(request, on=live_procedure)
    result = conduct_result(world, live_procedure, actuation_kind="Simulated", completed_count=2)
    ending, events, status = ENDINGS[end]
    if end in ("complete", "hold") and procedure_of(world, live_procedure).pending_request is PendingRequest.ABORT:
        with expect_refusal(ending(result).Cannot, "request_pending"):
            world.when(ending(result), on=live_procedure)
        return
    happened = world.when(ending(result), on=live_procedure)
    assert tuple(type(event).__name__ for event in happened) == events
    conducted = happened[0]
    assert isinstance(conducted, ProcedureConducted)
    assert (conducted.conduct_id, conducted.result) == (conduct_id, result)
    state = procedure_of(world, live_procedure)
    assert (state.status, state.live_conduct_id, state.pending_request) == (status, None, None)
    assert (state.last_conduct_id, state.conduct_mode) == (conduct_id, ConductMode.FLAT)
    assert state.actuation_kind is ActuationKind.SIMULATED
    assert claimed_assets(world) == {}
    assert not any(live_procedure in ids for (kind, _), ids in world.members.items() if kind in (HOLD_ASKED, ABORT_ASKED))
    row = progress_of(world, live_procedure)
    assert (row.phase, row.waiting_for, row.waiting_until) == ("Ended", None, None)
    assert (row.conduct_id, row.step_index, row.heartbeat_at) == (conduct_id, 1, START)


def test_the_ending_says_what_the_conduct_came_to(world: World, live_procedure: UUID) -> None:
    result = conduct_result(world, live_procedure, actuation_kind="Physical", termination_reason="BudgetIterationsExhausted")
    _, completed = world.when(CompleteProcedure(conducted=result), on=live_procedure)
    assert completed == ProcedureCompleted(
        actuation_kind=ActuationKind.PHYSICAL, termination_reason="BudgetIterationsExhausted"
    )


@pytest.mark.parametrize("cause", HoldCause)
def test_a_hold_says_what_caused_it(world: World, live_procedure: UUID, cause: HoldCause) -> None:
    result, decision_id = conduct_result(world, live_procedure, actuation_kind="Physical"), new_id()
    hold = HoldProcedure(reason="stuck", cause=cause, decided_by_decision_id=decision_id, conducted=result)
    _, held = world.when(hold, on=live_procedure)
    assert held == ProcedureHeld(
        reason="stuck", cause=cause, decided_by_decision_id=decision_id, actuation_kind=ActuationKind.PHYSICAL
    )
    assert procedure_of(world, live_procedure).hold_cause is cause


def test_kinds_merge_over_the_conducts_of_a_procedure(world: World, live_procedure: UUID) -> None:
    end_in_hold(world, live_procedure, actuation_kind="Simulated")
    open_conduct(world, ConductFromProcedure(re_establishment_boundary=0), on=live_procedure)
    world.when(
        CompleteProcedure(conducted=conduct_result(world, live_procedure, actuation_kind="Physical")), on=live_procedure
    )
    assert procedure_of(world, live_procedure).actuation_kind is ActuationKind.HYBRID


def test_what_ends_by_hand_keeps_the_kind_of_its_conducts(world: World, live_procedure: UUID) -> None:
    end_in_hold(world, live_procedure, actuation_kind="Simulated")
    (event,) = world.when(AbortProcedure(reason="smoke"), on=live_procedure)
    assert event == ProcedureAborted(reason="smoke", actuation_kind=ActuationKind.SIMULATED)


@pytest.mark.parametrize("end", ["complete", "hold", "abort", None])
def test_a_conduct_that_is_over_ends_nothing_more(line: Beamline, live_procedure: UUID, end: str | None) -> None:
    world, result = line.world, conduct_result(line.world, live_procedure)
    assert len(world.when(RecordConductEnd(result=result), on=live_procedure)) == 1
    rival = register_procedure(world, target_asset_ids=[line.hutch.camera])
    open_conduct(world, ConductProcedure(steps=STEPS), on=rival)
    if end is None:
        assert world.when(RecordConductEnd(result=result), on=live_procedure) == []
    else:
        ending = ENDINGS[end][0](result)
        with expect_refusal(ending.Cannot, "conduct_live"):
            world.when(ending, on=live_procedure)
    assert claimed_assets(world) == {str(line.hutch.camera): rival}


def test_a_conduct_that_was_taken_up_is_not_ended_by_the_one_before(world: World, live_procedure: UUID) -> None:
    before = conduct_result(world, live_procedure)
    end_in_hold(world, live_procedure)
    conduct_id = open_conduct(world, ConductFromProcedure(re_establishment_boundary=0), on=live_procedure)
    with expect_refusal("ProcedureCannotCompleteError", "conduct_live") as caught:
        world.when(CompleteProcedure(conducted=before), on=live_procedure)
    assert caught.value.facts == {"conduct_id": str(conduct_id)}
    assert world.when(RecordConductEnd(result=before, abort_reason="late"), on=live_procedure) == []
    assert procedure_of(world, live_procedure).live_conduct_id == conduct_id


def test_a_conduct_that_nobody_began_is_given_up_by_the_service(world: World, live_procedure: UUID) -> None:
    row = progress_of(world, live_procedure)
    result = lost_result(live_procedure, row.conduct_id, row.command_name, EXPIRED)
    conducted, aborted = world.when(RecordConductEnd(result=result, abort_reason=reason_of(EXPIRED)), on=live_procedure)
    assert isinstance(conducted, ProcedureConducted)
    failure = conducted.result.failure
    assert failure is not None
    assert (failure.source_kind, failure.target, failure.error_class) == ("lifecycle", "start", "ConductStartExpired")
    assert (conducted.result.command_name, conducted.result.succeeded) == ("ConductProcedure", False)
    assert isinstance(aborted, ProcedureAborted)
    assert aborted.reason == f"lifecycle start failed: ConductStartExpired: {failure.message}"


@pytest.mark.parametrize("halted", [False, True], ids=["held", "halted"])
def test_closing_steps_are_conducted_alone(line: Beamline, live_procedure: UUID, halted: bool) -> None:
    world = line.world
    world.when(RecordConductEnd(result=conduct_result(world, live_procedure)), on=live_procedure) if halted else end_in_hold(
        world, live_procedure
    )
    before = procedure_of(world, live_procedure)
    (event,) = world.when(AbortProcedure(reason="smoke", run_closing=True), on=live_procedure)
    state = procedure_of(world, live_procedure)
    opening = {"conduct_id": state.live_conduct_id, "judged_asset_ids": {line.hutch.camera}}
    assert event == ProcedureAbortRequested(**opening, reason="smoke", run_closing=True)
    assert state.live_conduct_id != before.last_conduct_id
    assert (state.status, state.pending_request, state.conduct_mode) == (before.status, None, ConductMode.FLAT)
    assert world.status == 202
    row = conduct_row(world, event.conduct_id)
    assert (row.command_name, row.step_count, row.closing_count) == ("AbortProcedure", 0, 1)
    assert claimed_assets(world) == {str(line.hutch.camera): live_procedure}
    assert conduct_requests(world, live_procedure) == set()
    world.when(AbortProcedure(reason="smoke", conducted=conduct_result(world, live_procedure)), on=live_procedure)
    assert procedure_of(world, live_procedure).status is ABORTED
    assert claimed_assets(world) == {}


def test_closing_alone_judges_no_gate(line: Beamline) -> None:
    world, run_id = line.world, line.start()
    id = register_procedure_from_recipe(world, parent_run_id=run_id, target_asset_ids=[line.hutch.camera])
    open_and_hold(world, ConductProcedure(), on=id)
    world.when(HoldRun(), on=run_id)
    line.lose_beam()
    line.observe("NotPermitted")
    del world.streams["Asset", line.hutch.camera]
    world.when(AbortProcedure(reason="smoke", run_closing=True), on=id)
    assert procedure_of(world, id).live_conduct_id is not None


def test_closing_alone_needs_its_assets_to_itself(line: Beamline, live_procedure: UUID) -> None:
    world = line.world
    end_in_hold(world, live_procedure)
    rival = register_procedure(world, target_asset_ids=[line.hutch.camera])
    conduct_id = open_conduct(world, ConductProcedure(steps=STEPS), on=rival)
    with expect_refusal("ProcedureCannotConductError", "asset_in_use") as caught:
        world.when(AbortProcedure(reason="smoke", run_closing=True), on=live_procedure)
    assert caught.value.facts == {
        "asset_id": str(line.hutch.camera),
        "procedure_id": str(rival),
        "conduct_id": str(conduct_id),
    }
    world.when(AbortProcedure(reason="smoke"), on=live_procedure)


def test_without_closing_steps_there_is_nothing_to_run(world: World) -> None:
    id = register_procedure(world)
    open_and_hold(world, ConductProcedure(steps=STEPS), on=id)
    (event,) = world.when(AbortProcedure(reason="smoke", run_closing=True), on=id)
    assert isinstance(event, ProcedureAborted)
    assert procedure_of(world, id).live_conduct_id is None


CLOSING_REFUSES: dict[str, tuple[Command, str, str]] = {
    "hold": (HoldProcedure(reason="lunch"), "ProcedureCannotHoldError", "held"),
    "complete": (CompleteProcedure(), "ProcedureCannotCompleteError", "held"),
    "close again": (AbortProcedure(reason="x", run_closing=True), "ProcedureCannotAbortError", "conduct_live"),
    "resume": (ResumeProcedure(by_hand=True), "ProcedureCannotResumeError", "conduct_live"),
    "conduct": (ConductProcedure(), "ProcedureCannotConductError", "conduct_live"),
    "take up": (ConductFromProcedure(re_establishment_boundary=0), "ProcedureCannotConductError", "conduct_live"),
    "truncate": (TruncateProcedure(reason="dead"), "ProcedureCannotTruncateError", "conduct_live"),
}


@pytest.mark.parametrize("what", CLOSING_REFUSES)
def test_while_only_closing_steps_are_conducted_nothing_else_happens(world: World, live_procedure: UUID, what: str) -> None:
    end_in_hold(world, live_procedure)
    world.when(AbortProcedure(reason="smoke", run_closing=True), on=live_procedure)
    command, refusal, reason = CLOSING_REFUSES[what]
    with expect_refusal(refusal, reason):
        world.when(command, on=live_procedure)


def test_closing_alone_can_be_cut_off(world: World, live_procedure: UUID) -> None:
    end_in_hold(world, live_procedure)
    world.when(AbortProcedure(reason="smoke", run_closing=True), on=live_procedure)
    (event,) = world.when(AbortProcedure(reason="fire"), on=live_procedure)
    assert isinstance(event, ProcedureAbortRequested)
    assert (event.conduct_id, event.run_closing) == (procedure_of(world, live_procedure).live_conduct_id, False)
    assert conduct_requests(world, live_procedure) == {ABORT_ASKED}
    with expect_refusal("ProcedureCannotAbortError", "request_pending"):
        world.when(AbortProcedure(reason="again"), on=live_procedure)


@pytest.mark.parametrize("mode", ConductMode)
def test_a_halted_or_lost_conduct_leaves_the_procedure_running_for_a_person(world: World, mode: ConductMode) -> None:
    id = register_procedure_from_recipe(world)
    open_conduct(world, BEGINNING[mode], on=id)
    world.when(RecordConductEnd(result=conduct_result(world, id, succeeded=False)), on=id)
    state = procedure_of(world, id)
    assert (state.status, state.live_conduct_id, state.conduct_mode) == (RUNNING, None, mode)
    world.when(HoldProcedure(reason="settled by hand"), on=id)
    with expect_refusal("ProcedureCannotResumeError", "conduct_pinned"):
        world.when(ResumeProcedure(), on=id)


def test_a_halted_procedure_is_completed_by_hand(world: World, live_procedure: UUID) -> None:
    result = conduct_result(world, live_procedure, succeeded=False, acquisition_halt=True, actuation_kind="Physical")
    world.when(RecordConductEnd(result=result), on=live_procedure)
    (event,) = world.when(CompleteProcedure(), on=live_procedure)
    assert event == ProcedureCompleted(actuation_kind=ActuationKind.PHYSICAL, termination_reason=None)


@pytest.mark.parametrize(
    ("heartbeat", "silence", "lost_result"),
    [
        (None, SILENT_FOR - SECOND, False),
        (None, SILENT_FOR, True),
        (timedelta(minutes=5), SILENT_FOR - SECOND, False),
        (timedelta(minutes=5), SILENT_FOR, True),
        (timedelta(minutes=5), timedelta(days=2), True),
    ],
    ids=["never heard of", "never heard of for a minute", "heard of", "silent for a minute", "silent for days"],
)
def test_a_conduct_is_given_up_once_it_has_been_silent_for_a_minute(
    line: Beamline, live_procedure: UUID, heartbeat: timedelta | None, silence: timedelta, lost_result: bool
) -> None:
    world, row = line.world, progress_of(line.world, live_procedure)
    heard = row.started_at if heartbeat is None else row.started_at + heartbeat
    set_progress(world, live_procedure, heartbeat_at=None if heartbeat is None else heard)
    world.now = heard + silence - SECOND
    truncate = TruncateProcedure(reason="power cut", interrupted_at=heard)
    if not lost_result:
        with expect_refusal("ProcedureCannotTruncateError", "conduct_live") as caught:
            world.when(truncate, on=live_procedure)
        assert caught.value.facts == {"conduct_id": str(row.conduct_id)}
        return
    conducted, truncated = world.when(truncate, on=live_procedure)
    assert isinstance(conducted, ProcedureConducted)
    failure = conducted.result.failure
    assert failure is not None
    assert (failure.source_kind, failure.error_class) == ("lifecycle", "ConductLost")
    assert (conducted.conduct_id, conducted.result.conduct_id) == (row.conduct_id, row.conduct_id)
    assert (conducted.result.command_name, conducted.result.succeeded) == ("ConductProcedure", False)
    assert truncated == ProcedureTruncated(reason="power cut", interrupted_at=heard)
    state = procedure_of(world, live_procedure)
    assert (state.status, state.live_conduct_id, state.interrupted_at) == (TRUNCATED, None, heard)
    assert claimed_assets(world) == {}


def test_a_request_that_was_never_served_does_not_keep_a_silent_conduct_alive(world: World, live_procedure: UUID) -> None:
    world.when(AbortProcedure(reason="smoke"), on=live_procedure)
    world.now += SILENT_FOR
    world.when(TruncateProcedure(reason="power cut"), on=live_procedure)
    state = procedure_of(world, live_procedure)
    assert (state.status, state.pending_request) == (TRUNCATED, None)
    assert not any(live_procedure in ids for (kind, _), ids in world.members.items() if kind == ABORT_ASKED)


@pytest.mark.parametrize("held", [False, True], ids=["running", "held"])
def test_without_a_live_conduct_the_books_are_closed_at_once(world: World, live_procedure: UUID, held: bool) -> None:
    end_in_hold(world, live_procedure) if held else world.when(
        RecordConductEnd(result=conduct_result(world, live_procedure)), on=live_procedure
    )
    (event,) = world.when(TruncateProcedure(reason="power cut"), on=live_procedure)
    assert event == ProcedureTruncated(reason="power cut", interrupted_at=None)


@pytest.mark.parametrize("command", ["start", "end"])
def test_only_the_live_conduct_turns_from_pass_to_pass(world: World, live_procedure: UUID, command: str) -> None:
    conduct_id = progress_of(world, live_procedure).conduct_id
    turning: dict[str, Callable[..., Command]] = {
        "start": lambda **by: StartProcedureIteration(iteration_index=1, **by),
        "end": lambda **by: EndProcedureIteration(iteration_index=1, converged=None, **by),
    }
    if command == "end":
        world.when(turning["start"](conduct_id=conduct_id), on=live_procedure)
    for by in ({}, {"conduct_id": new_id()}):
        with expect_refusal(turning[command]().Cannot, "conduct_live"):
            world.when(turning[command](**by), on=live_procedure)
    world.when(turning[command](conduct_id=conduct_id), on=live_procedure)


def attempt(world: World, command: Command, on: UUID) -> Refusal | None:
    """Try a command and return its refusal, or None."""
    try:
        world.when(command, on=on)
    except Refusal as refusal:
        return refusal
    return None


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from(sorted(STOPS)), st.booleans(), st.sampled_from([0, 0, 0, 70])), max_size=25))
def test_however_it_goes_nothing_is_held_that_no_live_conduct_holds(life: list[tuple[str, bool, int]]) -> None:
    line = beamline()
    world = line.world
    pair = [register_procedure_from_recipe(world, target_asset_ids=[line.hutch.camera]) for _ in range(2)]
    for name, second, silence in life:
        id = pair[second]
        world.now += timedelta(seconds=silence)
        line.observe()
        before = procedure_of(world, id)
        refusal = attempt(world, STOPS[name](latest(world, id)), on=id)
        if refusal is not None:
            assert (refusal.status in (400, 409), procedure_of(world, id)) == (True, before)
        check_nothing_left(world, pair)


def check_nothing_left(world: World, pair: list[UUID]) -> None:
    states = {id: procedure_of(world, id) for id in pair}
    live = [id for id, state in states.items() if state.live_conduct_id is not None]
    assert len(live) <= 1
    assert list(claimed_assets(world).values()) == live
    for id, state in states.items():
        check_standing(world, id, state)


def check_standing(world: World, id: UUID, state: Procedure) -> None:
    """What is true of a procedure at every moment."""
    asked = conduct_requests(world, id)
    if state.live_conduct_id is None:
        assert (state.pending_request, asked) == (None, set())
    else:
        assert state.status in (RUNNING, HELD)
        assert progress_of(world, id).conduct_id == state.live_conduct_id
    assert (ABORT_ASKED in asked) == (state.pending_request is PendingRequest.ABORT)
    assert state.pending_request is not PendingRequest.HOLD or HOLD_ASKED in asked
    assert (state.hold_cause is not None) == (state.status is HELD)
    if state.last_conduct_id is not None:
        ended = progress_of(world, id).phase == "Ended"
        assert ended == (state.live_conduct_id is None)
    results: list[Any] = [event for event in world.streams["Procedure", id] if isinstance(event, ProcedureConducted)]
    assert len({event.conduct_id for event in results}) == len(results)


@pytest.mark.parametrize("how", ["lost", "truncated"])
def test_what_a_lost_conduct_was_done_on_is_not_forgotten_with_it(world: World, live_procedure: UUID, how: str) -> None:
    world.ports["actuation_kind"] = ActuationKind.SIMULATED
    conduct_id = procedure_of(world, live_procedure).live_conduct_id
    assert conduct_id is not None
    if how == "lost":
        world.when(
            RecordConductEnd(result=lost_result(live_procedure, conduct_id, "ConductProcedure", LOST)), on=live_procedure
        )
    else:
        world.now += timedelta(minutes=2)
        world.when(TruncateProcedure(reason="power cut"), on=live_procedure)
    assert procedure_of(world, live_procedure).actuation_kind is ActuationKind.SIMULATED


def test_a_conduct_that_was_taken_up_meanwhile_does_not_expire(world: World, live_procedure: UUID) -> None:
    conduct_id = procedure_of(world, live_procedure).live_conduct_id
    assert conduct_id is not None
    set_progress(world, live_procedure, phase="Walking", heartbeat_at=START)
    expired = RecordConductEnd(
        result=lost_result(live_procedure, conduct_id, "ConductProcedure", EXPIRED), abort_reason="late"
    )
    assert world.when(expired, on=live_procedure) == []


def test_a_live_conduct_counts_before_a_time_in_the_future(world: World, live_procedure: UUID) -> None:
    with expect_refusal("ProcedureCannotTruncateError", "conduct_live"):
        world.when(TruncateProcedure(reason="dead", interrupted_at=world.now + timedelta(days=1)), on=live_procedure)
