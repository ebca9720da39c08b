"""Procedures as the log keeps them: what every payload holds, how old ones are read, and what a fold passes over."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from baton.domain.conduct.endings import AbortProcedure, AcknowledgeProcedure, HoldProcedure
from baton.domain.conduct.iterations import EndProcedureIteration, StartProcedureIteration
from baton.domain.conduct.steered_conduct import AdviseProcedure, ConductUntilAdvised, RecordProcedureOutcome
from baton.domain.kernel import Event, StoredEvent
from baton.domain.procedure.procedure import (
    ABORTED,
    COMPLETED,
    RUNNING,
    ConductMode,
    ProcedureAcknowledged,
    ProcedureAdvised,
    ProcedureConducted,
    ProcedureIterationEnded,
    ProcedureIterationStarted,
    ProcedureOutcomeRecorded,
    ProcedureRecipeExpanded,
    ProcedureSteeringDeclared,
    ProcedureStepsResolved,
    procedure,
)
from baton.domain.steering.steering import SteeringAdvice
from baton.domain.step.results import ActuationKind, ConductResult, Failure
from tests.support.domain.conducts import (
    BY_CALLER,
    conduct_result,
    end_in_hold,
    measured_pass,
    open_conduct,
    procedure_of,
    register_procedure_from_recipe,
    wait_for_advice,
)
from tests.support.domain.world import START, World, new_id
from tests.support.tables import for_each


def rows_of(id: UUID, payloads: list[tuple[str, dict[str, Any]]]) -> list[StoredEvent]:
    return [
        StoredEvent(id, version, version, name, json.dumps(payload), START + timedelta(seconds=version))
        for version, (name, payload) in enumerate(payloads, 1)
    ]


FIRST, SECOND, LOGBOOK = (str(UUID(int=0x0197A1000000700080000000000000C0 + number)) for number in range(3))
REGISTERED: dict[str, Any] = {
    "name": "Centre",
    "kind": "center_alignment",
    "target_asset_ids": [],
    "parent_run_id": None,
    "capability_id": None,
    "recipe_id": None,
    "max_consecutive_unconverged_iterations": 5,
}
OPENED = [
    ("ProcedureRegistered", REGISTERED),
    (
        "ProcedureStepsResolved",
        {
            "conduct_id": FIRST,
            "conduct_mode": "Converged",
            "resolved_steps": [{"kind": "capture", "address": "bl7:x", "capture_name": "offset"}],
            "resolved_closing_steps": [],
            "step_count": 1,
            "steps_hash": "0" * 64,
        },
    ),
    ("ProcedureActivitiesLogbookOpened", {"logbook_id": LOGBOOK, "kind": "activity", "schema": {"fields": {}}}),
    ("ProcedureStarted", {"conduct_id": FIRST, "command_name": "ConductUntilConverged"}),
]


def conducted_event(conduct_id: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    defaults = {"procedure_id": FIRST, "conduct_id": conduct_id, "command_name": "ConductUntilConverged", "succeeded": False}
    return "ProcedureConducted", {"conduct_id": conduct_id, "result": {**defaults, **fields}}


LOOPED = [
    *OPENED,
    ("ProcedureIterationStarted", {"iteration_index": 1}),
    ("ProcedureIterationEnded", {"iteration_index": 1, "converged": False, "reason": None}),
    ("ProcedureIterationStarted", {"iteration_index": 2}),
    ("ProcedureHoldRequested", {"conduct_id": FIRST, "reason": "lunch", "decided_by_decision_id": None}),
    ("ProcedureIterationEnded", {"iteration_index": 2, "converged": None, "reason": "held"}),
    conducted_event(FIRST, actuation_kind="Simulated"),
    (
        "ProcedureHeld",
        {"reason": "lunch", "cause": "Operator", "decided_by_decision_id": None, "actuation_kind": "Simulated"},
    ),
    (
        "ProcedureResumed",
        {
            "re_establishment_boundary": 0,
            "conduct_id": SECOND,
            "command_name": "ConductUntilConverged",
            "decided_by_decision_id": None,
        },
    ),
]
"""A held and resumed loop in the fewest keys that were ever written."""


def test_a_loop_is_read_as_it_was_first_written() -> None:
    state = procedure.replay(rows_of(new_id(), LOOPED))
    assert state is not None
    assert (state.status, state.live_conduct_id, state.conduct_mode) == (RUNNING, UUID(SECOND), ConductMode.CONVERGED)
    assert (state.iteration_count, state.consecutive_unconverged_iterations) == (2, 1)
    assert (state.hold_cause, state.pending_request, state.last_status_reason) == (None, None, None)
    assert (state.actuation_kind, state.activity_logbook_id) == (ActuationKind.SIMULATED, UUID(LOGBOOK))


@pytest.mark.parametrize(
    ("last", "status"),
    [
        (("ProcedureCompleted", {"actuation_kind": "Physical", "termination_reason": None}), COMPLETED),
        (("ProcedureAborted", {"reason": "smoke", "actuation_kind": "Physical"}), ABORTED),
    ],
    ids=["completed", "aborted"],
)
def test_an_end_is_read_as_it_was_first_written(last: tuple[str, dict[str, Any]], status: str) -> None:
    state = procedure.replay(rows_of(new_id(), [*LOOPED, conducted_event(SECOND), last]))
    assert state is not None
    assert (state.status, state.live_conduct_id, state.last_conduct_id) == (status, None, UUID(SECOND))
    assert state.actuation_kind is ActuationKind.HYBRID


@for_each(
    ("event", "payload"),
    [
        (ProcedureIterationStarted, {"iteration_index": 1}),
        (ProcedureIterationEnded, {"iteration_index": 1, "converged": True, "reason": None}),
        (ProcedureConducted, conducted_event(FIRST)[1]),
        (ProcedureStepsResolved, OPENED[1][1]),
    ],
)
def test_what_an_old_payload_lacks_is_none_or_empty(event: type[Event], payload: dict[str, Any]) -> None:
    read = json.loads(procedure.decode(event.__name__, json.dumps(payload), new_id(), START).payload())
    read.update(read.pop("result", {}))
    given = {**payload, **payload.get("result", {})}
    added = {key: value for key, value in read.items() if key not in {*given, "procedure_id", "occurred_at"}}
    assert added
    assert not any(value for value in added.values() if value != "abort"), "what a pin then did with an unknown outcome"


def aborted_search(world: World) -> UUID:
    """A search that was advised, held and aborted: every inert event stands in its log."""
    id = register_procedure_from_recipe(world)
    conduct_id = open_conduct(world, ConductUntilAdvised(**BY_CALLER), on=id)
    world.when(StartProcedureIteration(iteration_index=1, point={"focus": -2.0}, conduct_id=conduct_id), on=id)
    world.when(RecordProcedureOutcome(outcome=measured_pass(1)), on=id)
    wait_for_advice(world, id)
    advice = SteeringAdvice.model_validate({"verdict": "Stop", "rationale": "sharp enough"})
    world.when(AdviseProcedure(iteration_index=1, advice=advice), on=id)
    world.when(HoldProcedure(reason="lunch"), on=id)
    world.when(EndProcedureIteration(iteration_index=1, converged=None, conduct_id=conduct_id), on=id)
    end_in_hold(world, id)
    world.when(AcknowledgeProcedure(), on=id)
    world.when(AbortProcedure(reason="smoke", run_closing=True), on=id)
    world.when(AbortProcedure(reason="smoke", conducted=conduct_result(world, id)), on=id)
    return id


INERT = {
    ProcedureRecipeExpanded,
    ProcedureStepsResolved,
    ProcedureSteeringDeclared,
    ProcedureOutcomeRecorded,
    ProcedureAdvised,
    ProcedureAcknowledged,
}


def test_these_events_never_change_what_a_procedure_is() -> None:
    assert {event for event in procedure.events.values() if event.inert} == INERT


def test_a_fold_does_not_even_read_what_it_passes_over(world: World) -> None:
    id = aborted_search(world)
    events = world.streams["Procedure", id]
    assert {type(event) for event in events} >= INERT
    rows = [
        StoredEvent(id, version, version, type(event).__name__, "" if event.inert else event.payload(), event.occurred_at)
        for version, event in enumerate(events, 1)
    ]
    assert procedure.replay(rows) == procedure.fold(events) == procedure_of(world, id)


def test_what_is_said_of_people_is_marked(world: World) -> None:
    id = aborted_search(world)
    marked = {type(event).__name__: set(event.personal) for event in world.streams["Procedure", id] if event.personal}
    assert marked == {
        "ProcedureRegistered": {"name"},
        "ProcedureStarted": {"acknowledged_cautions"},
        "ProcedureSteeringDeclared": {"decide"},
        "ProcedureIterationStarted": {"advice"},
        "ProcedureAdvised": {"advice"},
        "ProcedureHoldRequested": {"reason"},
        "ProcedureIterationEnded": {"reason", "reasoning", "alternatives"},
        "ProcedureHeld": {"reason"},
        "ProcedureAbortRequested": {"reason"},
        "ProcedureAborted": {"reason"},
    }


def test_of_a_result_only_the_texts_are_hidden() -> None:
    failure = Failure(step_index=1, source_kind="check", target="x", error_class="CheckFailedError", message="Ask Mira.")
    result = ConductResult(
        procedure_id=new_id(),
        conduct_id=new_id(),
        command_name="ConductProcedure",
        succeeded=False,
        completed_count=1,
        failure=failure,
        closing_failures=(failure,),
        substrate_writes={"x": 3, "title": "Mira's sample"},
    )
    event = ProcedureConducted(conduct_id=result.conduct_id, result=result)
    written = event.model_dump(mode="json")
    shown = event.without_texts(written)
    untold = {**failure.model_dump(mode="json"), "message": None}
    assert shown == {
        **written,
        "result": {
            **written["result"],
            "failure": untold,
            "closing_failures": [untold],
            "substrate_writes": {"x": 3, "title": None},
        },
    }
    assert shown["succeeded"] is False


def test_an_end_that_was_written_without_it_says_whether_it_succeeded() -> None:
    result = ConductResult(procedure_id=new_id(), conduct_id=new_id(), command_name="ConductProcedure", succeeded=True)
    written = ProcedureConducted(conduct_id=result.conduct_id, result=result).model_dump(mode="json", exclude={"succeeded"})
    assert ProcedureConducted.model_validate(written).succeeded
