"""What a person may decide about a step: whether one with an unknown outcome was done, and that a check waits no longer."""

from typing import Any
from uuid import UUID

import pytest

from baton.domain.conduct.conduct import ConductFromProcedure, ConductProcedure, ConductUntilConverged
from baton.domain.conduct.endings import AbortProcedure, CompleteProcedure
from baton.domain.conduct.preflight import PreflightProcedure
from baton.domain.conduct.verdicts import ResolveProcedureStep, SkipProcedureWait
from baton.domain.kernel import Command
from baton.domain.procedure.activity_logbook import Activity
from baton.domain.procedure.procedure import (
    ABORTED,
    HELD,
    RUNNING,
    HoldCause,
    ProcedureConducted,
    ProcedureResumed,
    ProcedureStepResolved,
    ProcedureWaitSkipped,
)
from baton.domain.shared.refusals import Refusal
from baton.domain.start.procedure_start import ResumeProcedure
from baton.domain.step.results import PlacedStep, ResolvedStep, StepVerdict
from tests.support.domain.conducts import (
    LOOP,
    WAITING_CHECK,
    conduct_result,
    end_in_hold,
    open_and_lose,
    open_conduct,
    procedure_of,
    register_procedure,
    register_procedure_from_recipe,
    set_progress,
)
from tests.support.domain.world import World, new_id
from tests.support.workflows.step_json import action, capture, setpoint

STEPS = [setpoint("bl7:energy", 25.0), action("expose"), WAITING_CHECK, capture("bl7:camera:sharpness", "sharpness")]


def held_unknown(world: World) -> tuple[UUID, UUID]:
    """A procedure held because nobody knows whether step 1 was done, and the conduct that tried it."""
    id = register_procedure(world)
    return id, open_and_lose(world, ConductProcedure(steps=STEPS, on_unknown_outcome="hold"), on=id)


def verdict(conduct_id: UUID, /, outcome: str = "done", **fields: Any) -> ResolveProcedureStep:
    place = {"conduct_id": conduct_id, "step_index": 1}
    return ResolveProcedureStep(**{**place, "outcome": outcome, "reason": "the image is on disk", **fields})


def refusal_of(world: World, command: Command, on: UUID) -> Refusal:
    with pytest.raises(Refusal) as caught:
        world.when(command, on=on)
    return caught.value


def rows_of(world: World, id: UUID) -> list[Activity]:
    return [row for row in world.entries.values() if isinstance(row, Activity) and row.procedure_id == id]


def test_a_hold_for_an_unknown_outcome_says_which_step(world: World) -> None:
    id, conduct_id = held_unknown(world)
    procedure = procedure_of(world, id)
    assert (procedure.status, procedure.hold_cause) == (HELD, HoldCause.OUTCOME_UNKNOWN)
    assert procedure.unknown_step == PlacedStep(conduct_id=conduct_id, step_index=1)


def test_without_a_verdict_no_conduct_takes_it_up(world: World) -> None:
    id, _ = held_unknown(world)
    for command in (ConductFromProcedure(), ConductFromProcedure(re_establishment_boundary=2, skip=True, skip_reason="so")):
        refusal = refusal_of(world, command, id)
        assert (refusal.code, refusal.reason, refusal.status) == ("ProcedureCannotResumeError", "outcome_unknown", 409)
        assert refusal.facts["step_index"] == 1
    preflight = world.ask(PreflightProcedure(), on=id)
    assert not preflight.passed
    assert [gate.gate for gate in preflight.gates if not gate.passed] == ["conduct_unpinned", "outcome_known"]


@pytest.mark.parametrize(("outcome", "boundary"), [("done", 2), ("not_done", 1)])
def test_it_is_taken_up_behind_a_step_that_was_done_and_at_one_that_was_not(
    world: World, outcome: str, boundary: int
) -> None:
    id, conduct_id = held_unknown(world)
    world.ports["completed_step_count"] = 1
    (resolved,) = world.when(verdict(conduct_id, outcome), on=id)
    assert isinstance(resolved, ProcedureStepResolved)
    assert (resolved.conduct_id, resolved.step_index, resolved.outcome) == (conduct_id, 1, outcome)
    assert world.ask(PreflightProcedure(), on=id).passed
    resumed = world.when(ConductFromProcedure(), on=id)[-1]
    assert isinstance(resumed, ProcedureResumed)
    assert (resumed.re_establishment_boundary, resumed.skipped_count) == (boundary, 0)
    procedure = procedure_of(world, id)
    assert (procedure.status, procedure.unknown_step, procedure.hold_cause) == (RUNNING, None, None)
    known = ResolvedStep(conduct_id=conduct_id, step_index=1, outcome=StepVerdict(outcome))
    assert procedure.resolved_steps == (known,)
    completed = world.when(CompleteProcedure(conducted=conduct_result(world, id)), on=id)[0]
    assert isinstance(completed, ProcedureConducted)
    assert completed.result.resolved_steps == (known,), "the result says what it went on from"


def test_a_verdict_is_a_row_of_the_ledger(world: World) -> None:
    id, conduct_id = held_unknown(world)
    world.when(verdict(conduct_id, "not_done"), on=id)
    (row,) = rows_of(world, id)
    assert (row.conduct_id, row.step_index, row.step_kind, row.mark) == (conduct_id, 1, "action", "verdict")
    assert (row.payload["result"], row.payload["target"], row.actor_id) == ("not_done", "expose", world.principal_id)
    assert "disk" not in str(row.payload), "what a person writes stays in the event"


def test_a_verdict_is_given_once(world: World) -> None:
    id, conduct_id = held_unknown(world)
    world.when(verdict(conduct_id), on=id)
    refusal = refusal_of(world, verdict(conduct_id, "not_done"), id)
    assert (refusal.code, refusal.reason) == ("ProcedureCannotResolveStepError", "already_resolved")
    assert refusal.facts["outcome"] == "done"


@pytest.mark.parametrize(
    "fields", [{"step_index": 0}, {"step_index": 9}, {"iteration_index": 1}, {"closing": True}, {"conduct_id": new_id()}]
)
def test_only_the_step_that_is_unknown_is_resolved(world: World, fields: dict[str, Any]) -> None:
    id, conduct_id = held_unknown(world)
    refusal = refusal_of(world, verdict(conduct_id, **fields), id)
    assert (refusal.reason, refusal.facts["step_index"], refusal.facts["conduct_id"]) == ("not_unknown", 1, str(conduct_id))


def test_a_procedure_held_for_another_reason_has_nothing_to_resolve(world: World) -> None:
    id = register_procedure(world)
    conduct_id = open_conduct(world, ConductProcedure(steps=STEPS), on=id)
    end_in_hold(world, id)
    assert refusal_of(world, verdict(conduct_id), id).reason == "not_unknown"


def test_a_hold_that_somebody_asked_for_meanwhile_needs_the_verdict_too(world: World) -> None:
    id = register_procedure(world)
    conduct_id = open_and_lose(world, ConductProcedure(steps=STEPS), on=id, cause=HoldCause.OPERATOR)
    assert refusal_of(world, ConductFromProcedure(), id).reason == "outcome_unknown"
    world.when(verdict(conduct_id), on=id)
    world.when(ConductFromProcedure(), on=id)


def test_it_can_be_aborted_or_taken_over_by_hand_without_a_verdict(world: World) -> None:
    id, conduct_id = held_unknown(world)
    other, _ = held_unknown(world)
    world.when(AbortProcedure(reason="smoke"), on=id)
    assert (procedure_of(world, id).status, procedure_of(world, id).unknown_step) == (ABORTED, None)
    world.when(ResumeProcedure(by_hand=True), on=other)
    assert (procedure_of(world, other).status, procedure_of(world, other).unknown_step) == (RUNNING, None)
    assert refusal_of(world, verdict(conduct_id), other).reason == "running"


def test_a_step_that_is_unknown_again_is_resolved_again(world: World) -> None:
    id, first = held_unknown(world)
    world.ports["completed_step_count"] = 1
    world.when(verdict(first, "not_done"), on=id)
    world.ports["completed_step_count"] = 0
    second = open_and_lose(world, ConductFromProcedure(), on=id)
    assert refusal_of(world, ConductFromProcedure(), id).reason == "outcome_unknown"
    assert refusal_of(world, verdict(first), id).reason == "not_unknown"
    world.when(verdict(second), on=id)
    resumed = world.when(ConductFromProcedure(), on=id)[-1]
    assert isinstance(resumed, ProcedureResumed)
    assert resumed.re_establishment_boundary == 2


def test_a_loop_needs_the_verdict_too_and_begins_a_pass_of_its_own(world: World) -> None:
    id = register_procedure_from_recipe(world)
    loop = ConductUntilConverged(**LOOP, on_unknown_outcome="hold")
    conduct_id = open_and_lose(world, loop, on=id, iteration_count=1)
    assert refusal_of(world, ConductUntilConverged(**LOOP), id).reason == "outcome_unknown"
    assert refusal_of(world, verdict(conduct_id), id).reason == "not_unknown", "the pass counts"
    world.when(verdict(conduct_id, iteration_index=1), on=id)
    world.when(ConductUntilConverged(**LOOP), on=id)
    assert procedure_of(world, id).status is RUNNING


def waiting_conduct(world: World) -> tuple[UUID, UUID]:
    """A procedure whose conduct waits in the check at step 2."""
    id = register_procedure(world)
    conduct_id = open_conduct(world, ConductProcedure(steps=STEPS), on=id)
    set_progress(world, id, phase="Walking", step_index=2)
    return id, conduct_id


def skip(conduct_id: UUID, /, **fields: Any) -> SkipProcedureWait:
    return SkipProcedureWait(**{"conduct_id": conduct_id, "step_index": 2, "reason": "warm enough", **fields})


def test_a_wait_is_skipped_as_if_the_check_had_come_true(world: World) -> None:
    id, conduct_id = waiting_conduct(world)
    (skipped,) = world.when(skip(conduct_id), on=id)
    assert isinstance(skipped, ProcedureWaitSkipped)
    assert (skipped.conduct_id, skipped.iteration_index, skipped.step_index) == (conduct_id, 0, 2)
    (row,) = rows_of(world, id)
    assert (row.mark, row.step_kind, row.payload["result"], row.payload["skipped"]) == ("outcome", "check", "ok", True)
    completed = world.when(CompleteProcedure(conducted=conduct_result(world, id)), on=id)[0]
    assert isinstance(completed, ProcedureConducted)
    assert completed.result.skipped_waits == (PlacedStep(conduct_id=conduct_id, step_index=2),)
    assert procedure_of(world, id).skipped_waits == completed.result.skipped_waits


@pytest.mark.parametrize(
    ("progress", "fields"),
    [
        ({"step_index": 1}, {"step_index": 1}),
        ({"step_index": 3}, {}),
        ({"step_index": 2, "phase": "Closing"}, {}),
        ({"step_index": 2, "phase": "Waiting"}, {}),
        ({"step_index": 2}, {"iteration_index": 1}),
        ({"step_index": 2}, {"conduct_id": new_id()}),
        ({"step_index": 7}, {"step_index": 7}),
    ],
    ids=["an action", "behind it", "closing", "waiting for something else", "another pass", "another conduct", "no step"],
)
def test_only_the_wait_at_which_the_conduct_stands_is_skipped(
    world: World, progress: dict[str, Any], fields: dict[str, Any]
) -> None:
    id, conduct_id = waiting_conduct(world)
    set_progress(world, id, **progress)
    refusal = refusal_of(world, skip(conduct_id, **fields), id)
    assert (refusal.code, refusal.reason, refusal.status) == ("ProcedureCannotSkipWaitError", "not_waiting", 409)


def test_a_check_that_does_not_wait_has_no_wait_to_skip(world: World) -> None:
    id = register_procedure(world)
    at_once = {**WAITING_CHECK, "timeout": None}
    conduct_id = open_conduct(world, ConductProcedure(steps=[at_once]), on=id)
    set_progress(world, id, phase="Walking", step_index=0)
    assert refusal_of(world, skip(conduct_id, step_index=0), id).reason == "not_waiting"


def test_an_abort_leaves_nothing_to_skip(world: World) -> None:
    id, conduct_id = waiting_conduct(world)
    world.when(AbortProcedure(reason="smoke"), on=id)
    assert refusal_of(world, skip(conduct_id), id).reason == "request_pending"
