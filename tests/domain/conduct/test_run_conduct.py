"""Conducting a run: what is refused before anything is written, how it opens, and what its end says of its phases."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.domain.access.actor import ActorKind, ActorRegistered
from baton.domain.conduct.arranged_conduct import COMMANDS, arranged_command, form_of
from baton.domain.conduct.conduct import ConductFromProcedure, ConductProcedure
from baton.domain.conduct.endings import (
    LOST,
    AbortProcedure,
    CompleteProcedure,
    HoldProcedure,
    RecordConductEnd,
    TruncateProcedure,
)
from baton.domain.conduct.ends import ABORTED
from baton.domain.conduct.estimates import ConductWalk, Estimate, EstimateBasis, StepDuration
from baton.domain.conduct.messages import lifecycle_failure
from baton.domain.conduct.progress import OpenedRunConduct, RunConductProgress, RunWait, RunWaitingFor
from baton.domain.conduct.run_conduct import ConductRun, GetRunConduct, RecordRunConductEnd, RunConductView, failure_of
from baton.domain.conduct.run_messages import phase_conduct_id
from baton.domain.conduct.steered_conduct import ConductUntilAdvised
from baton.domain.procedure.procedure import HoldCause, Procedure, ProcedureRecipeExpanded
from baton.domain.run.run import (
    FAILED_RUNS,
    AbortRun,
    CompleteRun,
    HoldRun,
    Run,
    RunConducted,
    RunConductStarted,
    RunStatus,
    StopRun,
    TruncateRun,
)
from baton.domain.start.procedure_start import StartProcedure
from baton.domain.start.run_start import ResumeRun
from baton.domain.step.results import ActuationKind, Artifact, Failure, RunConductResult
from tests.support.domain.conducts import (
    FOCUS_STEPS,
    LOOP,
    SEARCH,
    conduct_result,
    open_conduct,
    register_procedure,
    register_procedure_from_recipe,
)
from tests.support.domain.conducts import set_progress as stands
from tests.support.domain.run_beamline import Beamline
from tests.support.domain.world import expect_refusal, new_id
from tests.support.tables import for_each
from tests.support.workflows.step_json import setpoint

STEPS = [setpoint("bl7:energy", 25.0)]
HOW: dict[str, dict[str, Any]] = {
    "conduct_procedure": {"steps": STEPS},
    "conduct_or_hold_procedure": {"steps": STEPS},
    "conduct_until_converged": {**LOOP, "steps": FOCUS_STEPS[1:]},
    "conduct_until_advised": SEARCH,
}


@pytest.fixture
def run_id(line: Beamline) -> UUID:
    return line.start()


def phase(line: Beamline, run_id: UUID, **fields: Any) -> UUID:
    return register_procedure(line.world, parent_run_id=run_id, **fields)


def conduct_run(line: Beamline, run_id: UUID, *ids: UUID) -> UUID:
    """Conduct these phases of a run and return the conduct."""
    return open_conduct(line.world, ConductRun(procedure_ids=ids), run_id)


def open_phases(line: Beamline, conduct_id: UUID, *ids: UUID) -> None:
    """Open the conducts of these phases, one after the other."""
    for id in ids:
        open_conduct(line.world, ConductProcedure(), id)


def complete_phase(line: Beamline, id: UUID, **fields: Any) -> None:
    line.world.when(CompleteProcedure(conducted=conduct_result(line.world, id, **fields)), on=id)


def fail_phase(line: Beamline, id: UUID, failure: Failure) -> None:
    result = conduct_result(line.world, id, succeeded=False, failure=failure)
    line.world.when(AbortProcedure(reason="it failed", conducted=result), on=id)


def end_conduct(line: Beamline, run_id: UUID, conduct_id: UUID, **fields: Any) -> RunConductResult:
    (event,) = line.world.when(RecordRunConductEnd(conduct_id=conduct_id, **fields), on=run_id)
    assert isinstance(event, RunConducted)
    return event.result


def conduct_view(line: Beamline, run_id: UUID) -> RunConductView:
    view: RunConductView = line.world.ask(GetRunConduct(), on=run_id)
    return view


@pytest.mark.parametrize("command", sorted(HOW))
def test_a_phase_says_which_command_opens_it_with_which_fields(line: Beamline, run_id: UUID, command: str) -> None:
    steered = command == "conduct_until_advised"
    id = register_procedure_from_recipe(line.world, parent_run_id=run_id) if steered else phase(line, run_id)
    (event,) = line.world.when(
        ConductRun(phases=[{"procedure_id": id, "conduct": {"command": command, **HOW[command]}}]), on=run_id
    )
    assert isinstance(event, RunConductStarted)
    assert event.phases[0].procedure_id == id
    assert event.phases[0].conduct["command"] == command
    assert arranged_command(event.phases[0].conduct) == COMMANDS[command](**HOW[command])


def test_the_options_of_a_phase_are_codes_that_every_reader_of_its_event_sees() -> None:
    conduct = {"command": "conduct_procedure", "watch": ["supply"], "on_unknown_outcome": "hold", "note": "for Mira"}
    payload = {"conduct_id": "c", "phases": [{"procedure_id": "p", "conduct": conduct}]}
    (phase,) = RunConductStarted.without_texts(payload)["phases"]
    assert phase["conduct"] == {**conduct, "note": None}


def test_ids_alone_are_phases_conducted_once_from_beginning_to_end(line: Beamline, run_id: UUID) -> None:
    id = phase(line, run_id)
    (event,) = line.world.when(ConductRun(procedure_ids=[id]), on=run_id)
    assert isinstance(event, RunConductStarted)
    assert event.phases[0].conduct == {"command": "conduct_procedure", "steps": []}


ID = new_id()


@for_each(
    "asked",
    [
        {},
        {"phases": [{"procedure_id": ID}], "procedure_ids": [ID]},
        {"phases": []},
        {"procedure_ids": []},
        {"phases": None, "procedure_ids": [ID]},
        {"procedure_ids": [ID, ID]},
        {"phases": [{"procedure_id": ID}, {"procedure_id": ID, "conduct": {"steps": []}}]},
        {"procedure_ids": [new_id() for _ in range(33)]},
        {"procedure_ids": [ID], "wait": 61},
        {"phases": [{"procedure_id": ID, "conduct": {"command": "conduct_from_procedure"}}]},
        {"phases": [{"procedure_id": ID, "conduct": {"wait": 3}}]},
        {"phases": [{"procedure_id": ID, "conduct": {"command": "conduct_until_converged"}}]},
        {"phases": [{"procedure_id": ID, "conduct": {"command": "conduct_until_advised", **SEARCH, "steps": []}}]},
        {"phases": [{"procedure_id": ID, "conduct": "conduct_procedure"}]},
        {"phases": [{"procedure_id": ID, "name": "Flats"}]},
    ],
)
def test_what_has_the_wrong_form_is_no_request(asked: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ConductRun(**asked)


def test_the_opening_says_who_conducts_what_and_that_nobody_has_begun(line: Beamline, run_id: UUID) -> None:
    first, second = phase(line, run_id), phase(line, run_id)
    conduct_id = conduct_run(line, run_id, first, second)
    assert line.world.answer == {"run_id": str(run_id), "conduct_id": str(conduct_id), "work_id": str(conduct_id)}
    assert line.run(run_id).live_conduct_id == conduct_id
    assert line.run(run_id).status is RunStatus.RUNNING
    row: Any = line.world.records[OpenedRunConduct, conduct_id]
    assert (row.run_id, row.principal_id, row.phase_count) == (run_id, line.world.principal_id, 2)
    progress: Any = line.world.records[RunConductProgress, run_id]
    assert (progress.conduct_id, progress.phase, progress.heartbeat_at) == (conduct_id, "Opened", None)


@pytest.mark.parametrize("other", ["phases", "command", "principal"])
def test_a_second_conduct_beside_a_live_one_is_refused_and_named(line: Beamline, run_id: UUID, other: str) -> None:
    first, second = phase(line, run_id), phase(line, run_id)
    live = conduct_run(line, run_id, first)
    command = "conduct_or_hold_procedure" if other == "command" else "conduct_procedure"
    phases: list[dict[str, Any]] = [{"procedure_id": first, "conduct": {"command": command}}]
    if other == "phases":
        phases.append({"procedure_id": second})
    if other == "principal":
        line.world.principal_id = new_id()
    with expect_refusal("RunCannotConductError", "conduct_live") as caught:
        line.world.when(ConductRun(phases=phases), on=run_id)
    assert caught.value.facts == {"conduct_id": str(live)}


def test_a_repeat_by_the_same_principal_with_the_same_phases_attaches(line: Beamline, run_id: UUID) -> None:
    id = phase(line, run_id)
    live = conduct_run(line, run_id, id)
    line.world.when(HoldRun(), on=run_id)
    again = ConductRun(phases=[{"procedure_id": id, "conduct": {"command": "conduct_procedure"}}])
    assert line.world.when(again, on=run_id) == []
    assert line.world.answer["conduct_id"] == str(live)


def corrupt_recipe_hash(line: Beamline, id: UUID) -> None:
    stream = line.world.streams["Procedure", id]
    (record,) = (event for event in stream if isinstance(event, ProcedureRecipeExpanded))
    stream[stream.index(record)] = record.model_copy(update={"steps_hash": "0" * 64})


def test_what_stands_in_the_way_is_told_in_the_order_it_is_looked_for(line: Beamline, run_id: UUID) -> None:
    """Each phase breaks one rule; taken away one after the other, the next one is what is told."""
    world = line.world
    missing, alien, begun = new_id(), register_procedure(world), phase(line, run_id)
    world.when(StartProcedure(), on=begun)
    unfounded, unfit = register_procedure_from_recipe(world, parent_run_id=run_id), phase(line, run_id)
    corrupt_recipe_hash(line, unfounded)
    unfit_phase = {"procedure_id": unfit, "conduct": {"command": "conduct_until_advised", **SEARCH}}
    listed: list[Any] = [unfit_phase, *({"procedure_id": id} for id in (unfounded, begun, alien, missing))]
    expected = [
        (missing, "ProcedureNotFoundError", None),
        (alien, "RunPhaseMismatchError", "not_a_phase"),
        (begun, "RunPhaseMismatchError", "not_defined"),
        (unfit, "RunPhaseMismatchError", "conduct_unfit"),
        (unfounded, "RunPhaseMismatchError", "pin_not_rebuildable"),
    ]
    before = dict(world.streams), dict(world.records)
    for id, code, reason in expected:
        with expect_refusal(code, reason) as caught:
            world.when(ConductRun(phases=listed), on=run_id)
        facts = caught.value.facts or {}
        assert facts.get("procedure_id", facts.get("missing_ids", [None])[0]) == str(id)
        listed = [one for one in listed if one["procedure_id"] != id]
    assert (dict(world.streams), dict(world.records)) == before


ADVISED = {"command": "conduct_until_advised", **SEARCH}


@pytest.mark.parametrize(
    ("from_recipe", "conduct", "cause"),
    [
        (False, {"steps": [{"kind": "setpoint"}]}, "InvalidRecipeStepShapeError"),
        (
            False,
            {"command": "conduct_until_converged", **LOOP, "max_consecutive_unconverged_iterations": 0},
            "InvalidProcedureIterationCapError",
        ),
        (False, ADVISED, "ProcedureRequiresRecipeError"),
        (True, {"steps": STEPS, "command": "conduct_procedure"}, "ProcedureStepsForbiddenError"),
        (True, {**ADVISED, "objective_capture_name": "contrast"}, "ProcedureSteeringMismatchError"),
        (True, {**ADVISED, "decide": {"substrate": "sobol"}}, "DecideNotAvailableError"),
    ],
)
def test_fields_that_the_command_itself_would_refuse_are_unfit(
    line: Beamline, run_id: UUID, from_recipe: bool, conduct: dict[str, Any], cause: str
) -> None:
    id = (register_procedure_from_recipe if from_recipe else register_procedure)(line.world, parent_run_id=run_id)
    with expect_refusal("RunPhaseMismatchError", "conduct_unfit") as caught:
        line.world.when(ConductRun(phases=[{"procedure_id": id, "conduct": conduct}]), on=run_id)
    assert (caught.value.facts or {})["cause"]["code"] == cause


def test_gates_and_assets_are_judged_when_the_turn_of_a_phase_comes(line: Beamline, run_id: UUID) -> None:
    taken, id = (
        register_procedure(line.world, target_asset_ids=[line.hutch.camera]),
        phase(line, run_id, target_asset_ids=[line.hutch.camera]),
    )
    open_conduct(line.world, ConductProcedure(), taken)
    line.lose_beam()
    line.observe("NotPermitted")
    assert conduct_run(line, run_id, id) == line.run(run_id).live_conduct_id


def test_a_phase_has_one_conduct_under_the_conduct_of_its_run(line: Beamline, run_id: UUID) -> None:
    conduct_id, first, second = new_id(), new_id(), new_id()
    own = phase_conduct_id(conduct_id, first)
    assert own == phase_conduct_id(conduct_id, first)
    assert len({own, phase_conduct_id(conduct_id, second), phase_conduct_id(new_id(), first)}) == 3
    assert (own.version, own.int >> 80) == (7, conduct_id.int >> 80)


def test_a_run_with_a_live_conduct_is_not_ended_as_if_nothing_was_on(line: Beamline, run_id: UUID) -> None:
    id = phase(line, run_id)
    conduct_id = conduct_run(line, run_id, id)
    open_phases(line, conduct_id, id)
    for command in (CompleteRun(), TruncateRun(reason="power cut")):
        with expect_refusal(type(command).Cannot.__name__, "conduct_live") as caught:
            line.world.when(command, on=run_id)
        assert caught.value.facts == {"procedure_ids": [str(id)], "conduct_id": str(conduct_id)}


def test_between_phases_the_books_are_closed_although_the_conduct_of_the_run_is_live(line: Beamline, run_id: UUID) -> None:
    conduct_run(line, run_id, phase(line, run_id))
    with expect_refusal("RunCannotCompleteError", "conduct_live"):
        line.world.when(CompleteRun(), on=run_id)
    line.world.when(TruncateRun(reason="power cut"), on=run_id)
    assert line.world.state(Run, run_id).status is RunStatus.TRUNCATED


def test_a_held_run_whose_phases_are_done_is_completed_by_hand_although_its_conduct_waits(
    line: Beamline, run_id: UUID
) -> None:
    id = phase(line, run_id)
    conduct_id = conduct_run(line, run_id, id)
    open_phases(line, conduct_id, id)
    line.world.when(HoldRun(), on=run_id)
    with expect_refusal("RunCannotCompleteError", "conduct_live"):
        line.world.when(CompleteRun(), on=run_id)
    complete_phase(line, id)
    line.world.when(CompleteRun(), on=run_id)
    assert end_conduct(line, run_id, conduct_id).succeeded


def test_its_own_conduct_completes_a_run_unless_somebody_holds_it(line: Beamline, run_id: UUID) -> None:
    id = phase(line, run_id)
    conduct_id = conduct_run(line, run_id, id)
    open_phases(line, conduct_id, id)
    with expect_refusal("RunCannotCompleteError", "conduct_live"):
        line.world.when(CompleteRun(conduct_id=conduct_id), on=run_id)
    complete_phase(line, id, actuation_kind=ActuationKind.SIMULATED)
    line.world.when(HoldRun(), on=run_id)
    with expect_refusal("RunCannotCompleteError", "held"):
        line.world.when(CompleteRun(conduct_id=conduct_id), on=run_id)
    line.observe()
    line.world.when(ResumeRun(), on=run_id)
    line.world.when(CompleteRun(conduct_id=conduct_id), on=run_id)
    assert line.run(run_id).actuation_kind is ActuationKind.SIMULATED


ARTIFACT = Artifact(uri="file:///flats.h5", checksum_algorithm="sha256", checksum_value="0" * 64, byte_size=1)
REJECTED = Failure(
    step_index=1, source_kind="setpoint", target="bl7:x", error_class="ControlWriteRejectedError", message="no"
)


def test_the_result_tells_of_every_phase_and_what_all_of_them_brought(line: Beamline, run_id: UUID) -> None:
    first, second = phase(line, run_id), phase(line, run_id)
    conduct_id = conduct_run(line, run_id, first, second)
    open_phases(line, conduct_id, first)
    complete_phase(
        line, first, completed_count=3, artifacts=[ARTIFACT], outputs={"flats": ARTIFACT}, actuation_kind="Physical"
    )
    open_phases(line, conduct_id, second)
    closing = lifecycle_failure("abort", "ControlNotConnectedError", "shutter")
    complete_phase(line, second, completed_count=1, closing_failures=[closing], actuation_kind="Simulated")
    line.world.when(CompleteRun(conduct_id=conduct_id), on=run_id)
    result = end_conduct(line, run_id, conduct_id)
    assert (result.succeeded, result.failure, result.actuation_kind) == (True, None, ActuationKind.HYBRID)
    assert [(one.procedure_id, one.succeeded, one.completed_count) for one in result.phases] == [
        (first, True, 3),
        (second, True, 1),
    ]
    assert result.phases[1].closing_failures == (closing,)
    assert (result.artifacts, result.outputs) == ((ARTIFACT,), {"flats": ARTIFACT})
    run: Run = line.run(run_id)
    assert (run.live_conduct_id, run.actuation_kind) == (None, ActuationKind.HYBRID)


def test_what_failed_first_is_what_the_result_tells(line: Beamline, run_id: UUID) -> None:
    first, second = phase(line, run_id), phase(line, run_id)
    conduct_id = conduct_run(line, run_id, first, second)
    open_phases(line, conduct_id, first)
    fail_phase(line, first, REJECTED)
    line.world.when(AbortRun(reason="phase failed"), on=run_id)
    result = end_conduct(line, run_id, conduct_id)
    assert (result.succeeded, result.failure) == (False, REJECTED)
    assert [(one.failure, one.conduct_id is None) for one in result.phases] == [(REJECTED, False), (None, True)]


@contextmanager
def acting_as(line: Beamline, principal_id: UUID) -> Iterator[None]:
    """Commands come from this principal until the end of the block."""
    before, line.world.principal_id = line.world.principal_id, principal_id
    yield
    line.world.principal_id = before


def ask_abort(line: Beamline, id: UUID, by: UUID, **fields: Any) -> None:
    with acting_as(line, by):
        line.world.when(AbortProcedure(reason="smoke", **fields), on=id)


def leave_held(line: Beamline, id: UUID) -> None:
    """Have the conduct of a phase leave it Held."""
    result = conduct_result(line.world, id, succeeded=False, held=True, failure=REJECTED)
    line.world.when(HoldProcedure(reason="stuck", cause=HoldCause.STEP_FAULT, conducted=result), on=id)
    line.world.now += timedelta(seconds=1)


def abort_live(line: Beamline, id: UUID, by: UUID) -> None:
    ask_abort(line, id, by)
    fail_phase(line, id, ABORTED)


def abort_held(line: Beamline, id: UUID, by: UUID) -> None:
    leave_held(line, id)
    ask_abort(line, id, by)


def abort_and_close(line: Beamline, id: UUID, by: UUID) -> None:
    """Abort a held phase by a conduct of its closing steps alone, of which one fails."""
    leave_held(line, id)
    ask_abort(line, id, by, run_closing=True)
    fail_phase(line, id, REJECTED)


def fail_after_lost_abort(line: Beamline, id: UUID, by: UUID) -> None:
    """Ask for an abort of a conduct that is lost, and have the next conduct of the phase fail by itself."""
    ask_abort(line, id, by)
    line.world.when(RecordConductEnd(result=conduct_result(line.world, id, succeeded=False, failure=LOST)), on=id)
    open_conduct(line.world, ConductFromProcedure(re_establishment_boundary=0), id)
    fail_phase(line, id, REJECTED)


def truncate(line: Beamline, id: UUID, by: UUID) -> None:
    leave_held(line, id)
    with acting_as(line, by):
        line.world.when(TruncateProcedure(reason="power cut"), on=id)


def fail_by_itself(line: Beamline, id: UUID, by: UUID) -> None:
    with acting_as(line, by):  # whoever submitted a conduct is the principal of its ends
        fail_phase(line, id, REJECTED)


@pytest.mark.parametrize(
    ("end", "kind", "failed"),
    [
        (abort_live, ActorKind.HUMAN, False),
        (abort_held, ActorKind.HUMAN, False),
        (abort_and_close, ActorKind.HUMAN, False),
        (abort_held, None, False),
        (abort_live, ActorKind.SERVICE_ACCOUNT, True),
        (abort_held, ActorKind.AGENT, True),
        (fail_after_lost_abort, ActorKind.HUMAN, True),
        (truncate, ActorKind.HUMAN, True),
        (fail_by_itself, ActorKind.HUMAN, True),
    ],
)
def test_a_run_has_failed_unless_a_person_aborted_its_phase(
    line: Beamline, run_id: UUID, end: Any, kind: ActorKind | None, failed: bool
) -> None:
    first, second = phase(line, run_id), register_procedure_from_recipe(line.world, STEPS, parent_run_id=run_id)
    conduct_id = conduct_run(line, run_id, first, second)
    open_phases(line, conduct_id, first)
    complete_phase(line, first)
    open_phases(line, conduct_id, second)
    somebody = new_id()
    if kind is not None:
        line.world.given(somebody, ActorRegistered(kind=kind))
    end(line, second, somebody)
    line.world.when(AbortRun(reason="phase failed", conduct_id=conduct_id), on=run_id)
    assert (run_id in line.world.members.get((FAILED_RUNS, ""), ())) is failed


def test_a_phase_that_a_person_aborted_in_an_earlier_conduct_is_not_why_a_later_one_failed(
    line: Beamline, run_id: UUID
) -> None:
    first, second = phase(line, run_id), phase(line, run_id)
    earlier = conduct_run(line, run_id, first)
    open_phases(line, earlier, first)
    line.world.when(RecordRunConductEnd.for_lost(earlier), on=run_id)
    abort_live(line, first, new_id())
    later = conduct_run(line, run_id, second)
    line.world.when(AbortRun(reason="it could not start", conduct_id=later), on=run_id)
    assert run_id in line.world.members[FAILED_RUNS, ""]


def test_a_phase_that_could_not_start_has_its_refusal(line: Beamline, run_id: UUID) -> None:
    first, second = phase(line, run_id), phase(line, run_id)
    conduct_id = conduct_run(line, run_id, first, second)
    refusal = lifecycle_failure("start", "ProcedureAssetDecommissionedError", "The camera is gone.")
    result = end_conduct(line, run_id, conduct_id, failure=refusal, failed_id=first)
    assert result.failure == refusal
    assert [one.failure for one in result.phases] == [refusal, None]


@pytest.mark.parametrize("command", [StopRun(reason="enough"), AbortRun(reason="smoke")], ids=["stop", "abort"])
def test_a_run_that_somebody_ended_was_not_conducted_to_its_end(line: Beamline, run_id: UUID, command: Any) -> None:
    id = phase(line, run_id)
    conduct_id = conduct_run(line, run_id, id)
    open_phases(line, conduct_id, id)
    complete_phase(line, id)
    line.world.when(command, on=run_id)
    result = end_conduct(line, run_id, conduct_id)
    assert result.failure is not None
    assert (result.succeeded, result.failure.error_class) == (False, f"Run{line.run(run_id).status.value}")


@pytest.mark.parametrize(
    ("end", "error_class"),
    [(RecordRunConductEnd.for_lost, "ConductLost"), (RecordRunConductEnd.for_expired, "ConductStartExpired")],
)
def test_a_conduct_given_up_leaves_the_run_where_it_stood(line: Beamline, run_id: UUID, end: Any, error_class: str) -> None:
    conduct_id = conduct_run(line, run_id, phase(line, run_id))
    (event,) = line.world.when(end(conduct_id), on=run_id)
    assert isinstance(event, RunConducted)
    assert event.result.failure is not None
    assert (event.result.failure.source_kind, event.result.failure.error_class) == ("lifecycle", error_class)
    run = line.run(run_id)
    assert (run.status, run.live_conduct_id) == (RunStatus.RUNNING, None)
    assert line.world.when(end(conduct_id), on=run_id) == [], "it ends once"


def test_the_end_of_an_earlier_conduct_does_not_end_a_later_one(line: Beamline, run_id: UUID) -> None:
    id = phase(line, run_id)
    first = conduct_run(line, run_id, id)
    end_conduct(line, run_id, first, failure=lifecycle_failure("start", "ConductStartExpired", "late"))
    second = conduct_run(line, run_id, id)
    assert line.world.when(RecordRunConductEnd.for_lost(first), on=run_id) == []
    late = RunConducted(conduct_id=first, result=RunConductResult(run_id=run_id, conduct_id=first, succeeded=False))
    line.world.given(run_id, late)
    assert line.run(run_id).live_conduct_id == second


def test_a_run_never_conducted_has_no_conduct_to_show(line: Beamline, run_id: UUID) -> None:
    assert conduct_view(line, run_id) == RunConductView()


def test_the_view_of_a_held_run_says_why_it_is_held_since_when_and_by_whom(line: Beamline, run_id: UUID) -> None:
    conduct_run(line, run_id, phase(line, run_id))
    assert conduct_view(line, run_id).hold is None
    line.world.when(HoldRun(reason="top-up"), on=run_id)
    hold = conduct_view(line, run_id).hold
    assert hold is not None
    assert (hold.since, hold.reason, hold.held_by) == (line.world.now, "top-up", line.world.principal_id)


def test_the_view_shows_each_phase_where_it_stands(line: Beamline, run_id: UUID) -> None:
    first, second = phase(line, run_id), phase(line, run_id)
    conduct_id = conduct_run(line, run_id, first, second)
    open_phases(line, conduct_id, first)
    row: Any = line.world.records[RunConductProgress, run_id]
    waiting = RunWait(for_=RunWaitingFor.RUN)
    standing = {"phase_index": 0, "waiting": waiting.model_dump(mode="json"), "heartbeat_at": line.world.now}
    line.world.records[RunConductProgress, run_id] = replace(row, **standing)
    view = conduct_view(line, run_id)
    assert (view.conduct_id, view.current_procedure_id, view.waiting) == (conduct_id, first, waiting)
    assert [(one.procedure_id, one.command, one.status.value) for one in view.phases] == [
        (first, "conduct_procedure", "Running"),
        (second, "conduct_procedure", "Defined"),
    ]
    assert view.result is None
    assert view.model_dump(mode="json")["waiting"]["for"] == "run"
    line.world.when(AbortRun(reason="smoke"), on=run_id)
    result = end_conduct(line, run_id, conduct_id)
    after = conduct_view(line, run_id)
    assert (after.result, after.waiting, after.current_procedure_id) == (result, None, None)
    assert after.heartbeat_at == standing["heartbeat_at"]


def test_the_estimate_of_a_run_is_that_of_its_phases_together(line: Beamline, run_id: UUID) -> None:
    world = line.world
    first, second, third = [register_procedure_from_recipe(world, parent_run_id=run_id) for _ in "123"]
    step = ("setpoint", "bl7:focus")
    world.ports["step_durations"] = {step: StepDuration(count=1, median=10.0, p90=10.0)}
    world.ports["conduct_walk"] = world.ports["registered_walk"] = ConductWalk((step, step), (step,))
    conduct_id = conduct_run(line, run_id, first, second, third)
    whole = conduct_view(line, run_id).estimate
    assert whole == Estimate(remaining_seconds=90, ends_at=world.now + timedelta(seconds=90), basis=EstimateBasis.HISTORY)
    open_phases(line, conduct_id, first)
    stands(world, first, phase="Walking", step_index=1, heartbeat_at=world.now, active_at=world.now)
    world.now += timedelta(seconds=4)
    going_on = conduct_view(line, run_id).estimate
    assert going_on is not None
    assert (going_on.remaining_seconds, going_on.ends_at) == (16 + 60, world.now + timedelta(seconds=76))
    world.when(HoldRun(reason="lunch"), on=run_id)
    held = conduct_view(line, run_id).estimate
    assert held is not None
    assert (held.basis, held.ends_at) == (EstimateBasis.HISTORY, None)
    world.ports["registered_walk"] = ConductWalk((("action", "collect"),), ())
    partly = conduct_view(line, run_id).estimate
    assert partly is not None
    assert partly.basis is EstimateBasis.PARTLY


def test_the_bluesky_plan_that_its_phase_waits_for_is_shown(line: Beamline, run_id: UUID) -> None:
    first = register_procedure_from_recipe(line.world, parent_run_id=run_id)
    conduct_id = conduct_run(line, run_id, first)
    open_phases(line, conduct_id, first)
    row: Any = line.world.records[RunConductProgress, run_id]
    line.world.records[RunConductProgress, run_id] = replace(row, phase_index=0)
    assert conduct_view(line, run_id).plan_step is None
    own = {"conduct_id": str(line.world.state(Procedure, first).live_conduct_id), "iteration_index": 0, "closing": False}
    said = {"name": "plan:bl7/scan", "key": str(run_id), "job_id": "item 4", "environment": None, "phase": "running"}
    news = {**own, **said, "step_index": 0, "message": "", "run_uids": [], "answered_at": None}
    news["changed_at"] = line.world.now.isoformat()
    stands(line.world, first, phase="Walking", step_index=0, heartbeat_at=line.world.now, plan_step=news)
    plan = conduct_view(line, run_id).plan_step
    assert plan is not None
    assert plan.text == "plan scan at bl7 as item 4: its progress is not known"


def test_a_hold_of_the_run_says_which_step_of_its_phase_it_waits_for(line: Beamline, run_id: UUID) -> None:
    line.world.ports["deployment"].action_timeout = line.world.ports["deployment"].compute_timeout = 600.0
    first = register_procedure_from_recipe(line.world, parent_run_id=run_id)
    conduct_id = conduct_run(line, run_id, first)
    open_phases(line, conduct_id, first)
    row: Any = line.world.records[RunConductProgress, run_id]
    line.world.records[RunConductProgress, run_id] = replace(row, phase_index=0)
    stands(line.world, first, phase="Walking", step_index=0, heartbeat_at=line.world.now)
    assert conduct_view(line, run_id).pending is None
    line.world.when(HoldRun(reason="lunch"), on=run_id)
    held_at = line.world.now
    pending = conduct_view(line, run_id).pending
    assert pending is not None
    assert pending.step is not None
    assert (pending.request, pending.since, pending.step.step_index) == ("Hold", held_at, 0)
    assert pending.until is not None
    stands(line.world, first, phase="Waiting", waiting_for="run")
    assert conduct_view(line, run_id).pending is None, "the hold is in force"


def test_a_phase_that_was_held_as_asked_and_then_given_up_is_told_by_why_it_was_given_up(
    line: Beamline, run_id: UUID
) -> None:
    id = phase(line, run_id)
    open_phases(line, conduct_run(line, run_id, id), id)
    asked = lifecycle_failure("hold", "ProcedureHeldByOperator", "The procedure was held as asked.")
    held = conduct_result(line.world, id, succeeded=False, held=True, failure=asked)
    line.world.when(HoldProcedure(reason="lunch", conducted=held), on=id)
    line.world.when(AbortProcedure(reason="the sample fell off"), on=id)
    failure = failure_of(line.world.state(Procedure, id), [held])
    assert failure == lifecycle_failure("abort", "ProcedureAborted", "the sample fell off")


def test_an_arranged_search_is_shown_as_it_is_given() -> None:
    form = form_of("conduct_until_advised", ConductUntilAdvised)
    shown = form.model_validate({**ADVISED, "decide": {"substrate": "grid_walk"}}).model_dump(mode="json")
    assert (shown["decide"]["substrate"], form.model_validate(shown).model_dump(mode="json")) == ("grid_walk", shown)
