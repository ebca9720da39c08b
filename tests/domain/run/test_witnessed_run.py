"""A run that happens elsewhere: what waits for a person, who closes its books, and when its data are promoted."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from baton.domain.access.actor import ActorKind, RegisterActor
from baton.domain.data.dataset import PromoteDataset
from baton.domain.procedure.procedure import ProcedureCompleted, ProcedureStarted
from baton.domain.run.logbooks import AppendRunLogbookEntries, NarrativeEntry
from baton.domain.run.run import PHASES, Run, TruncateRun
from baton.domain.run.witness import STILL_HEARD, WitnessedEnd
from baton.domain.run.witnessing import WitnessRunChange
from baton.domain.start.run_witness import WitnessRun
from baton.domain.step.results import ActuationKind
from baton.domain.views.waiting import ListWaiting, WaitingItem, WaitingKind
from tests.support.domain.datasets import procedure_with, registered_dataset
from tests.support.domain.run_beamline import Beamline, beamline
from tests.support.domain.world import expect_refusal, new_id
from tests.support.tables import for_each

HOURS_AGO = timedelta(hours=3)
PROMOTE = PromoteDataset(reason="frame count and flats checked")


@pytest.fixture
def line() -> Beamline:
    line = beamline()
    line.world.principal_id = line.world.create(RegisterActor(name="Bluesky at BL7", kind=ActorKind.SERVICE_ACCOUNT))
    return line


def witnessed_run(line: Beamline, **over: Any) -> UUID:
    """Return a run elsewhere that passes every gate."""
    asked = {"document_uid": str(new_id()), "plan_id": line.plan_id, "name": "count 42", "began_at": line.world.now}
    line.world.when(WitnessRun(**{**asked, "subject_id": line.subject_id, **over}))
    return UUID(line.world.answer["run_id"])


def end(line: Beamline, run_id: UUID, **over: Any) -> None:
    """Tell that a run ended well."""
    ended = WitnessedEnd(**{"exit_status": "success", **over})
    line.world.when(WitnessRunChange(change="ended", at=line.world.now, end=ended), on=run_id)


def become_a_person(line: Beamline) -> None:
    """Have a person act from now on."""
    line.world.principal_id = line.world.create(RegisterActor(name="Noor Haddad"))


def past_gates(line: Beamline) -> list[WaitingItem]:
    """Return the runs elsewhere that wait for a note."""
    return list(line.world.ask(ListWaiting(kind=(WaitingKind.WITNESSED_PAST_GATE,))).items)


@for_each("age", [timedelta(0), HOURS_AGO])
def test_an_override_waits_for_a_note_of_a_person_however_late_it_is_told(age: timedelta) -> None:
    line = beamline()
    run_id = witnessed_run(line, began_at=line.world.now - age, override_reason="Baton is away and the beam is not")
    [waiting] = past_gates(line)
    assert (waiting.id, waiting.why) == (run_id, "The gates were overridden: Baton is away and the beam is not.")
    become_a_person(line)
    note = NarrativeEntry(event_id=new_id(), text="Looked at it.")
    line.world.when(AppendRunLogbookEntries(entries=(note,)), on=run_id)
    assert past_gates(line) == []


@for_each(
    ("parameters", "accepted", "waits"),
    [
        ({"args": ["stage_x", -1, 1], "detectors": ["point"]}, {}, False),
        ({"args": ["stage_x", -1, 1], "dwell": 0.2}, {"dwell": 0.2}, False),
        ({"args": ["stage_x", -1, 1], "dwell": "long"}, {}, True),
    ],
)
def test_an_argument_that_the_method_does_not_know_closes_no_gate(
    parameters: dict[str, Any], accepted: dict[str, Any], waits: bool
) -> None:
    line = beamline()
    run_id = witnessed_run(line, parameters=parameters)
    run: Run = line.world.state(Run, run_id)
    assert run.override_parameters == accepted
    assert [one.id for one in past_gates(line)] == ([run_id] if waits else [])


def test_a_person_closes_the_books_a_minute_after_the_last_word(line: Beamline) -> None:
    run_id = witnessed_run(line)
    become_a_person(line)
    truncate = TruncateRun(reason="Its RunEngine is gone.")
    with expect_refusal("RunCannotTruncateError", "still_heard"):
        line.world.when(truncate, on=run_id)
    line.world.now += STILL_HEARD
    line.world.when(truncate, on=run_id)
    run: Run = line.world.state(Run, run_id)
    assert run.status == "Truncated"


@for_each(
    ("simulated", "sources", "reason"),
    [
        (None, False, "origin_unproven"),
        (True, False, "simulated_origin"),
        (False, True, "simulated_origin"),
        (False, False, None),
    ],
)
def test_data_are_promoted_where_somebody_declares_real_equipment(
    simulated: bool | None, sources: bool, reason: str | None
) -> None:
    line = beamline()
    run_id = witnessed_run(line, simulated=simulated)
    end(line, run_id, simulated_sources=sources)
    dataset_id = registered_dataset(line.world, producing_run_id=run_id)
    become_a_person(line)
    if reason is None:
        line.world.when(PROMOTE, on=dataset_id)
    else:
        with expect_refusal("DatasetCannotPromoteError", reason):
            line.world.when(PROMOTE, on=dataset_id)


def test_a_phase_on_real_equipment_says_nothing_of_what_happened_elsewhere(line: Beamline) -> None:
    run_id = witnessed_run(line)
    real = ProcedureCompleted(actuation_kind=ActuationKind.PHYSICAL, termination_reason=None)
    started = ProcedureStarted(conduct_id=None, command_name=None)
    line.world.members[PHASES, str(run_id)].add(procedure_with(line.world, started, real))
    end(line, run_id)
    dataset_id = registered_dataset(line.world, producing_run_id=run_id)
    become_a_person(line)
    with expect_refusal("DatasetCannotPromoteError", "origin_unproven"):
        line.world.when(PROMOTE, on=dataset_id)


def test_the_witness_does_not_promote_what_it_witnessed(line: Beamline) -> None:
    run_id = witnessed_run(line, simulated=False)
    end(line, run_id)
    dataset_id = registered_dataset(line.world, producing_run_id=run_id)
    with expect_refusal("DatasetCannotPromoteError", "own_witness"):
        line.world.when(PROMOTE, on=dataset_id)
