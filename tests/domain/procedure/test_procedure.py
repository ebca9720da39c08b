"""A procedure by hand: what it must pass, what it logs, and what a live conduct keeps people from doing."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.conduct.endings import CompleteProcedure, HoldProcedure, TruncateProcedure
from baton.domain.conduct.iterations import EndProcedureIteration, ListProcedureIterations, StartProcedureIteration
from baton.domain.equipment.asset_tree import DecommissionAsset
from baton.domain.procedure.activity_logbook import Activity, AppendProcedureActivities
from baton.domain.procedure.procedure import (
    PendingRequest,
    Procedure,
    ProcedureConducted,
    ProcedureHeld,
    ProcedureHoldRequested,
    ProcedureIterationEnded,
    ProcedureIterationStarted,
    ProcedureResumed,
    ProcedureStarted,
)
from baton.domain.run.run import HoldRun
from baton.domain.start.procedure_start import ResumeProcedure, StartProcedure
from baton.domain.start.registration import RegisterProcedure
from baton.domain.step.results import ActuationKind, ConductResult, merged_kind
from baton.domain.supply.supply import DegradeSupply
from tests.support.domain.run_beamline import TTL, Beamline
from tests.support.domain.world import START, expect_refusal, new_id


def register_procedure(line: Beamline, **fields: Any) -> UUID:
    task = {"name": "Centre the axis", "kind": "center_alignment", "target_asset_ids": [line.hutch.camera]}
    return line.world.create(RegisterProcedure(**{**task, **fields}))


def started_procedure(line: Beamline, **fields: Any) -> UUID:
    id = register_procedure(line, **fields)
    line.world.when(StartProcedure(), on=id)
    return id


def phase(line: Beamline) -> UUID:
    return register_procedure(line, parent_run_id=line.start())


def conducted_procedure(line: Beamline, command_name: str = "ConductProcedure") -> tuple[UUID, UUID]:
    """A procedure that is being conducted, and its conduct."""
    id, conduct_id = register_procedure(line), new_id()
    line.world.given(id, ProcedureStarted(conduct_id=conduct_id, command_name=command_name))
    return id, conduct_id


def procedure_of(line: Beamline, id: UUID) -> Procedure:
    state: Procedure = line.world.state(Procedure, id)
    return state


def conducted_event(id: UUID, conduct_id: UUID, kind: ActuationKind | None = None) -> ProcedureConducted:
    result = ConductResult(
        procedure_id=id, conduct_id=conduct_id, command_name="ConductProcedure", succeeded=True, actuation_kind=kind
    )
    return ProcedureConducted(conduct_id=conduct_id, result=result)


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"name": " "}, "InvalidProcedureNameError"),
        ({"kind": " "}, "InvalidProcedureKindError"),
        ({"max_consecutive_unconverged_iterations": 0}, "InvalidProcedureIterationCapError"),
        ({"capability_id": new_id()}, "CapabilityNotFoundError"),
    ],
    ids=["name", "kind", "cap", "capability"],
)
def test_a_registration_is_refused_by_its_own_class(line: Beamline, fields: dict[str, Any], refusal: str) -> None:
    with expect_refusal(refusal):
        register_procedure(line, **fields)


def test_targets_are_looked_for_when_it_starts(line: Beamline) -> None:
    id = register_procedure(line, target_asset_ids=[new_id()])
    with expect_refusal("AssetNotFoundError"):
        line.world.when(StartProcedure(), on=id)


def test_a_decommissioned_target_keeps_it_from_starting(line: Beamline) -> None:
    id = register_procedure(line, target_asset_ids=[line.hutch.timing_box])
    line.world.when(DecommissionAsset(), on=line.hutch.timing_box)
    with expect_refusal("ProcedureAssetDecommissionedError"):
        line.world.when(StartProcedure(), on=id)


def test_an_enclosure_that_nobody_watches_keeps_it_from_starting_and_resuming(line: Beamline) -> None:
    id = register_procedure(line)
    line.world.now += TTL + timedelta(seconds=5)
    with expect_refusal("ProcedureRequiresPermittedEnclosureError"):
        line.world.when(StartProcedure(), on=id)
    line.observe()
    line.world.when(StartProcedure(), on=id)
    line.world.when(HoldProcedure(reason="lunch"), on=id)
    line.observe("NotPermitted")
    with expect_refusal("ProcedureRequiresPermittedEnclosureError"):
        line.world.when(ResumeProcedure(), on=id)


def test_only_a_phase_needs_the_supplies_of_its_run(line: Beamline) -> None:
    alone, within = register_procedure(line), phase(line)
    line.lose_beam()
    line.world.when(StartProcedure(), on=alone)
    with expect_refusal("ProcedureSupplyCoverageMismatchError"):
        line.world.when(StartProcedure(), on=within)


def test_a_phase_resumes_with_a_degraded_supply_but_does_not_start_with_one(line: Beamline) -> None:
    first, second = phase(line), phase(line)
    line.world.when(StartProcedure(), on=first)
    line.world.when(HoldProcedure(reason="top-up"), on=first)
    assert line.supply_id is not None
    line.world.when(DegradeSupply(reason="half the current"), on=line.supply_id)
    line.world.when(ResumeProcedure(), on=first)
    with expect_refusal("ProcedureSupplyCoverageMismatchError"):
        line.world.when(StartProcedure(), on=second)


def test_a_phase_starts_and_resumes_only_while_its_run_is_running(line: Beamline) -> None:
    run_id = line.start()
    id = register_procedure(line, parent_run_id=run_id)
    line.world.when(HoldRun(), on=run_id)
    with expect_refusal("ProcedureCannotStartError", "parent_run_not_running"):
        line.world.when(StartProcedure(), on=id)


def test_the_status_is_looked_at_before_anything_behind_it(line: Beamline) -> None:
    id = started_procedure(line)
    line.world.when(CompleteProcedure(), on=id)
    line.observe("NotPermitted")
    with expect_refusal("ProcedureCannotStartError", "completed"):
        line.world.when(StartProcedure(), on=id)
    with expect_refusal("ProcedureCannotResumeError", "completed"):
        line.world.when(ResumeProcedure(), on=id)


def test_a_live_conduct_is_not_completed_by_hand(line: Beamline) -> None:
    id, _ = conducted_procedure(line)
    with expect_refusal("ProcedureCannotCompleteError", "conduct_live"):
        line.world.when(CompleteProcedure(), on=id)


def test_the_end_of_another_conduct_only_adds_its_kind(line: Beamline) -> None:
    id, conduct_id = conducted_procedure(line)
    line.world.when(HoldProcedure(reason="shift change"), on=id)
    line.world.given(id, conducted_event(id, new_id(), ActuationKind.SIMULATED))
    state = procedure_of(line, id)
    assert (state.live_conduct_id, state.pending_request) == (conduct_id, PendingRequest.HOLD)
    assert state.actuation_kind is ActuationKind.SIMULATED


def test_what_was_conducted_is_taken_up_by_its_own_command(line: Beamline) -> None:
    id, conduct_id = conducted_procedure(line, "ConductUntilConverged")
    line.world.given(id, conducted_event(id, conduct_id))
    line.world.when(HoldProcedure(reason="lunch"), on=id)
    with expect_refusal("ProcedureCannotResumeError", "conduct_pinned") as caught:
        line.world.when(ResumeProcedure(), on=id)
    assert caught.value.facts == {"command": "conduct_until_converged"}
    line.world.when(ResumeProcedure(by_hand=True), on=id)


@given(st.lists(st.sampled_from([*ActuationKind, None])))
def test_kinds_only_merge(kinds: list[ActuationKind | None]) -> None:
    merged = None
    for kind in kinds:
        merged = merged_kind((merged, kind))
    assert merged == merged_kind(kinds)
    if ActuationKind.HYBRID in kinds:
        assert merged is ActuationKind.HYBRID


def test_iterations_are_taken_in_turn(line: Beamline) -> None:
    id = started_procedure(line)
    with expect_refusal("ProcedureCannotStartIterationError", "index_out_of_turn"):
        line.world.when(StartProcedureIteration(iteration_index=2), on=id)
    line.world.when(StartProcedureIteration(iteration_index=1), on=id)
    with expect_refusal("ProcedureCannotStartIterationError", "iteration_open"):
        line.world.when(StartProcedureIteration(iteration_index=2), on=id)
    with expect_refusal("ProcedureCannotEndIterationError", "not_open"):
        line.world.when(EndProcedureIteration(iteration_index=2, converged=True), on=id)
    line.world.when(EndProcedureIteration(iteration_index=1, converged=False, reason="3.2 px off"), on=id)
    line.world.when(StartProcedureIteration(iteration_index=2), on=id)
    listed = line.world.ask(ListProcedureIterations(), on=id).items
    assert [(one.iteration_index, one.converged, one.reason) for one in listed] == [
        (1, False, "3.2 px off"),
        (2, None, None),
    ]
    assert listed[1].ended_at is None


def test_patience_lasts_for_as_many_unconverged_passes_as_the_cap(line: Beamline) -> None:
    id = started_procedure(line, max_consecutive_unconverged_iterations=2)
    for index in (1, 2):
        line.world.when(StartProcedureIteration(iteration_index=index), on=id)
        line.world.when(EndProcedureIteration(iteration_index=index, converged=None), on=id)
    with expect_refusal("ProcedureIterationLimitReachedError"):
        line.world.when(StartProcedureIteration(iteration_index=3), on=id)


@pytest.mark.parametrize(
    ("mode", "pending", "verdicts", "streak"),
    [
        ("ConductUntilConverged", False, [False, None, False], 3),
        ("ConductUntilConverged", False, [False, True, False], 1),
        ("ConductUntilConverged", True, [None], 0),
        ("ConductUntilConverged", True, [False], 1),
        ("ConductUntilAdvised", False, [None, None], 0),
    ],
    ids=["all miss", "one hits", "discarded", "missed while held", "steered"],
)
def test_the_streak_counts_passes_that_were_meant_to_converge(
    line: Beamline, mode: str, pending: bool, verdicts: list[bool | None], streak: int
) -> None:
    id, conduct_id = conducted_procedure(line, mode)
    if pending:
        hold = ProcedureHoldRequested(conduct_id=conduct_id, reason="shift change", decided_by_decision_id=None)
        line.world.given(id, hold)
    for index, verdict in enumerate(verdicts, 1):
        line.world.given(id, ProcedureIterationStarted(iteration_index=index))
        line.world.given(id, ProcedureIterationEnded(iteration_index=index, converged=verdict, reason=None))
    assert procedure_of(line, id).consecutive_unconverged_iterations == streak


def test_a_reason_stands_until_it_goes_on(line: Beamline) -> None:
    id = started_procedure(line)
    (event,) = line.world.when(HoldProcedure(reason="lunch"), on=id)
    assert isinstance(event, ProcedureHeld)
    state = procedure_of(line, id)
    assert (state.last_status_reason, state.hold_cause) == ("lunch", "Operator")
    (event,) = line.world.when(ResumeProcedure(re_establishment_boundary=3), on=id)
    assert isinstance(event, ProcedureResumed)
    assert event.re_establishment_boundary == 3
    state = procedure_of(line, id)
    assert (state.last_status_reason, state.hold_cause) == (None, None)


def test_activities_are_logged_while_it_runs(line: Beamline) -> None:
    id = started_procedure(line)
    doing = {"event_id": new_id(), "step_kind": "setpoint", "payload": {"value": 25.0}, "sampled_at": START}
    assert len(line.world.when(AppendProcedureActivities(entries=[doing]), on=id)) == 1
    assert line.world.when(AppendProcedureActivities(entries=[doing]), on=id) == []
    (row,) = line.world.entries.values()
    assert isinstance(row, Activity)
    assert (row.procedure_id, row.conduct_id) == (id, None)
    with expect_refusal("InvalidProcedureStepKindError"):
        line.world.when(AppendProcedureActivities(entries=[{**doing, "step_kind": "dance"}]), on=id)


def test_an_interruption_lies_between_the_start_and_now(line: Beamline) -> None:
    id = started_procedure(line)
    for off, reason in ((timedelta(days=1), "in_the_future"), (timedelta(days=-1), "before_its_subject")):
        with expect_refusal("InvalidProcedureInterruptedAtError", reason):
            line.world.when(TruncateProcedure(reason="power cut", interrupted_at=line.world.now + off), on=id)
