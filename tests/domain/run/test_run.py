"""A run's life after its start: holds and resumes, adjustments, endings, readings and notes."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.domain.access.actor import ActorKind, ActorRegistered
from baton.domain.enclosure.enclosure import DecommissionEnclosure
from baton.domain.kernel import Event
from baton.domain.procedure.procedure import ProcedureCompleted, ProcedureStarted
from baton.domain.run.logbooks import AppendObservations, AppendRunLogbookEntries, Observation
from baton.domain.run.run import (
    AbortRun,
    CompleteRun,
    HoldRun,
    Run,
    RunAborted,
    RunObservationLogbookOpened,
    RunStatus,
    StopRun,
    TruncateRun,
)
from baton.domain.start.registration import RegisterProcedure
from baton.domain.start.run_start import AdjustRun, ResumeRun
from baton.domain.step.results import ActuationKind
from baton.domain.supply.supply import DegradeSupply, MarkSupplyUnavailable
from tests.support.domain.agents import decision_to_cite
from tests.support.domain.run_beamline import TTL, Beamline
from tests.support.domain.world import OPERATOR, START, expect_refusal, new_id


def held_run(line: Beamline) -> Any:
    run_id = line.start()
    line.world.when(HoldRun(reason="beam dump"), on=run_id)
    return run_id


def sample(**fields: Any) -> dict[str, Any]:
    reading = {"event_id": new_id(), "channel_name": "ring_current", "value": 198.7}
    return {**reading, "sampling_procedure": "baseline", "sampled_at": START, **fields}


def note(**fields: Any) -> dict[str, Any]:
    return {"event_id": new_id(), "text": "Sample slipped.", **fields}


def test_a_run_is_running_since_it_was_last_resumed(line: Beamline) -> None:
    run_id = held_run(line)
    line.world.when(ResumeRun(), on=run_id)
    assert line.run(run_id).running_since == line.world.now


def test_a_held_run_does_not_resume_without_beam_but_does_with_a_degraded_one(line: Beamline) -> None:
    run_id = held_run(line)
    assert line.supply_id is not None
    line.world.when(DegradeSupply(reason="half the current"), on=line.supply_id)
    line.world.when(ResumeRun(), on=run_id)
    line.world.when(HoldRun(), on=run_id)
    line.world.when(MarkSupplyUnavailable(reason="beam dump"), on=line.supply_id)
    with expect_refusal("RunSupplyCoverageMismatchError") as caught:
        line.world.when(ResumeRun(), on=run_id)
    assert caught.value.facts["run_id"] == str(run_id)


def test_a_held_run_does_not_resume_into_a_hutch_that_nobody_watches(line: Beamline) -> None:
    run_id = held_run(line)
    line.world.now += TTL + timedelta(seconds=5)
    with expect_refusal("RunRequiresPermittedEnclosureError"):
        line.world.when(ResumeRun(), on=run_id)
    line.observe()
    line.world.when(ResumeRun(), on=run_id)
    line.world.when(HoldRun(), on=run_id)
    line.world.when(DecommissionEnclosure(reason="hutch rebuilt"), on=line.enclosure_id)
    with expect_refusal("RunRequiresPermittedEnclosureError"):
        line.world.when(ResumeRun(), on=run_id)


def test_resuming_looks_at_the_status_before_the_gates(line: Beamline) -> None:
    run_id = line.start()
    line.lose_beam()
    with expect_refusal("RunCannotResumeError"):
        line.world.when(ResumeRun(), on=run_id)


@pytest.mark.parametrize(
    ("command", "refusal"),
    [
        (StopRun(reason=" "), "InvalidRunStopReasonError"),
        (AbortRun(reason=" "), "InvalidRunAbortReasonError"),
        (TruncateRun(reason=" "), "InvalidRunTruncateReasonError"),
    ],
    ids=["stop", "abort", "truncate"],
)
def test_a_blank_reason_is_refused_before_the_status(line: Beamline, command: Any, refusal: str) -> None:
    run_id = line.start()
    line.world.when(CompleteRun(), on=run_id)
    with expect_refusal(refusal):
        line.world.when(command, on=run_id)


def test_an_interruption_lies_between_the_start_and_now(line: Beamline) -> None:
    run_id = line.start()
    with expect_refusal("InvalidRunInterruptedAtError", "in_the_future"):
        line.world.when(TruncateRun(reason="power cut", interrupted_at=line.world.now + timedelta(hours=1)), on=run_id)
    started_at = line.run(run_id).created_at
    with expect_refusal("InvalidRunInterruptedAtError", "before_its_subject"):
        line.world.when(TruncateRun(reason="power cut", interrupted_at=started_at - timedelta(seconds=1)), on=run_id)
    line.world.when(TruncateRun(reason="power cut", interrupted_at=started_at), on=run_id)


def test_a_decision_can_stand_behind_an_ending(line: Beamline) -> None:
    run_id, decision_id = line.start(), decision_to_cite(line.world)
    (event,) = line.world.when(AbortRun(reason="smoke", decided_by_decision_id=decision_id), on=run_id)
    assert isinstance(event, RunAborted)
    assert event.decided_by_decision_id == decision_id


def test_adjusting_merges_into_the_present_parameters_and_leaves_the_overrides(line: Beamline) -> None:
    run_id = line.start(override_parameters={"dwell": 0.05})
    line.world.when(AdjustRun(parameters_patch={"dwell": 0.08}, reason="top-up"), on=run_id)
    line.world.when(AdjustRun(parameters_patch={"retract_position": 5}, reason="more room"), on=run_id)
    made = line.run(run_id)
    assert made.effective_parameters == {"dwell": 0.08, "repetitions": 20, "retract_position": 5}
    assert made.override_parameters == {"dwell": 0.05}
    assert (made.adjustment_count, made.last_adjusted_by, made.last_adjusted_at) == (2, OPERATOR, line.world.now)


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"parameters_patch": {}, "reason": " "}, "InvalidRunAdjustPatchError"),
        ({"parameters_patch": {"dwell": "long"}, "reason": " "}, "InvalidRunAdjustReasonError"),
        ({"parameters_patch": {"dwell": "long"}, "reason": "why not"}, "InvalidRunParametersError"),
        ({"parameters_patch": {"speed": 1}, "reason": "why not"}, "InvalidRunParametersError"),
    ],
    ids=["empty patch", "blank reason", "wrong type", "unknown key"],
)
def test_adjustments_are_refused_in_order(line: Beamline, fields: dict[str, Any], refusal: str) -> None:
    run_id = line.start()
    with expect_refusal(refusal):
        line.world.when(AdjustRun(**fields), on=run_id)
    line.world.when(CompleteRun(), on=run_id)
    with expect_refusal("RunCannotAdjustError"):
        line.world.when(AdjustRun(**fields), on=run_id)


def test_the_first_readings_open_the_logbook(line: Beamline) -> None:
    run_id = line.start()
    (opened,) = line.world.when(AppendObservations(entries=[sample(channel_name="  ring_current ")]), on=run_id)
    assert isinstance(opened, RunObservationLogbookOpened)
    assert opened.schema_["fields"]["value"] == {"type": "float"}
    assert line.world.when(AppendObservations(entries=[sample(), sample()]), on=run_id) == []
    rows = [row for row in line.world.entries.values() if isinstance(row, Observation)]
    assert {(row.logbook_id, row.channel_name) for row in rows} == {(opened.logbook_id, "ring_current")}
    assert line.run(run_id).observation_logbook_id == opened.logbook_id


def test_units_are_stored_trimmed_and_never_blank(line: Beamline) -> None:
    line.world.when(AppendObservations(entries=[sample(units=" mA ")]), on=line.start())
    [row] = line.world.entries.values()
    assert isinstance(row, Observation)
    assert row.units == "mA"
    for blank in ("", " "):
        with pytest.raises(ValidationError):
            AppendObservations(entries=[sample(units=blank)])


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"channel_name": "  "}, "InvalidChannelNameError"),
        ({"value": float("nan")}, "InvalidObservationValueError"),
        ({"value": float("-inf")}, "InvalidObservationValueError"),
        ({"sampling_procedure": "weekly"}, "InvalidSamplingProcedureError"),
    ],
    ids=["blank channel", "not a number", "infinite", "unknown procedure"],
)
def test_a_bad_reading_is_refused_before_the_run_is_looked_for(line: Beamline, fields: dict[str, Any], refusal: str) -> None:
    with expect_refusal(refusal):
        line.world.when(AppendObservations(entries=[sample(), sample(**fields)]), on=new_id())
    assert line.world.entries == {}


def test_a_repeated_reading_is_kept_once_and_still_counted(line: Beamline) -> None:
    run_id, one = line.start(), sample()
    line.world.when(AppendObservations(entries=[one, {**one, "value": 1.0}]), on=run_id)
    assert line.world.answer == {"event_count": 2}
    assert [row.value for row in line.world.entries.values() if isinstance(row, Observation)] == [198.7]


def phase_of(line: Beamline, run_id: UUID, *events: Event) -> UUID:
    """A phase of the run to which this happened."""
    id = line.world.create(RegisterProcedure(name="Flat field", kind="flat_field", parent_run_id=run_id))
    line.world.given(id, *events)
    return id


BEGUN = ProcedureStarted(conduct_id=None, command_name=None)


def completion_by(kind: ActuationKind | None = None) -> ProcedureCompleted:
    return ProcedureCompleted(actuation_kind=kind, termination_reason=None)


class TestPhases:
    def test_a_held_run_is_completed_once_every_phase_is(self, line: Beamline) -> None:
        run_id = line.start()
        phase_of(line, run_id, BEGUN, completion_by())
        second = phase_of(line, run_id, BEGUN)
        line.world.when(HoldRun(), on=run_id)
        with expect_refusal("RunCannotCompleteError", "phase_not_completed") as caught:
            line.world.when(CompleteRun(), on=run_id)
        assert caught.value.facts == {"procedure_ids": [str(second)]}
        line.world.given(second, completion_by())
        line.world.when(CompleteRun(), on=run_id)
        assert line.world.state(Run, run_id).status is RunStatus.COMPLETED

    def test_a_held_run_without_phases_is_not_completed(self, line: Beamline) -> None:
        run_id = line.start()
        line.world.when(HoldRun(), on=run_id)
        with expect_refusal("RunCannotCompleteError", "held"):
            line.world.when(CompleteRun(), on=run_id)

    @pytest.mark.parametrize(
        "ending", [CompleteRun(), StopRun(reason="enough"), AbortRun(reason="leak"), TruncateRun(reason="power cut")]
    )
    def test_a_run_was_done_on_what_its_phases_were(self, line: Beamline, ending: Any) -> None:
        run_id = line.start()
        phase_of(line, run_id, BEGUN, completion_by(ActuationKind.PHYSICAL))
        phase_of(line, run_id, BEGUN, completion_by(ActuationKind.SIMULATED))
        line.world.when(ending, on=run_id)
        assert line.world.state(Run, run_id).actuation_kind is ActuationKind.HYBRID

    def test_a_run_under_a_live_conduct_is_neither_completed_nor_truncated(self, line: Beamline) -> None:
        run_id = line.start()
        phase = phase_of(line, run_id, ProcedureStarted(conduct_id=new_id(), command_name="ConductProcedure"))
        for command in (CompleteRun(), TruncateRun(reason="power cut")):
            with expect_refusal(type(command).Cannot.__name__, "conduct_live") as caught:
                line.world.when(command, on=run_id)
            assert caught.value.facts == {"procedure_ids": [str(phase)], "conduct_id": None}
        line.world.when(StopRun(reason="enough"), on=run_id)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"text": " "}, "blank"),
        ({"entry_kind": "Debrief", "decision_id": new_id()}, "agent_only"),
        ({"decision_id": new_id()}, "decision_unexpected"),
    ],
    ids=["blank", "debrief by a person", "note with a decision"],
)
def test_entries_are_refused_by_their_cause(line: Beamline, fields: dict[str, Any], reason: str) -> None:
    run_id = line.start()
    with expect_refusal("InvalidRunLogbookEntryError", reason):
        line.world.when(AppendRunLogbookEntries(entries=[note(**fields)]), on=run_id)


def test_an_agents_debrief_names_its_decision(line: Beamline) -> None:
    run_id = line.start()
    line.world.given(OPERATOR, ActorRegistered(kind=ActorKind.AGENT))
    with expect_refusal("InvalidRunLogbookEntryError", "decision_missing"):
        line.world.when(AppendRunLogbookEntries(entries=[note(entry_kind="Debrief")]), on=run_id)
    line.world.when(AppendRunLogbookEntries(entries=[note(entry_kind="Debrief", decision_id=new_id())]), on=run_id)
