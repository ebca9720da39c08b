"""What a model is shown of a run, and what is put on record of its conclusion."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from baton.domain.agent.caution_proposal import DRAFT, recurring_target
from baton.domain.agent.conclusions import (
    MAX_CLOSING_FAILURES,
    MAX_DEVIATIONS,
    MAX_PARAMETERS_LENGTH,
    MAX_PHASES,
    RUN_END_EVENTS,
    Conclusion,
    Material,
    RunEnd,
    bounded_parameters,
    phase_facts,
)
from baton.domain.agent.debrief import DEBRIEF, MAX_CHANNELS, narrative_of
from baton.domain.conduct.progress import OpenedConduct
from baton.domain.data.procedure_files import FileRow
from baton.domain.kernel import instant
from baton.domain.procedure.procedure import Procedure, ProcedureConducted, ProcedureStarted
from baton.domain.recipe.plan import Plan
from baton.domain.run.logbooks import Channel
from baton.domain.run.run import AbortRun, CompleteRun, HoldRun, RunAdjusted, RunHeld, RunResumed, StopRun, TruncateRun
from baton.domain.start.registration import RegisterProcedure, RegisterProcedureFromRecipe
from baton.domain.step.results import ConductResult, Deviation, Failure
from tests.support.domain.agents import agent_world, decision_of, drafter, register_decision, versioned_agent
from tests.support.domain.caution_proposals import proposed_caution
from tests.support.domain.cautions import on_asset, on_procedure, register_caution
from tests.support.domain.flat_field import BINDINGS, recipe
from tests.support.domain.run_beamline import Beamline
from tests.support.domain.world import OPERATOR, START, new_id
from tests.support.tables import for_each

RUN_KEYS = {
    *("terminal_event_type", "terminal_event_reason", "terminal_event_occurred_at", "run_id", "run_name", "run_status"),
    *("plan_id", "subject_id", "campaign_id", "effective_parameters", "adjustment_count", "last_adjusted_at"),
    *("hold_count", "last_held_at", "last_hold_reason", "interrupted_at", "pinned_calibration_ids", "phases"),
}
FAILURE = Failure(
    step_index=7, source_kind="setpoint", target="bl7:rotary", error_class="ControlTimeoutError", message="no answer"
)
DEVIATION = Deviation(step_index=3, address="bl7:slit", asked=500, read=100.0, unit="um")
REASONING = "The run was completed as planned. " * 4


def end_run(line: Beamline, run_id: UUID, verb: Any) -> RunEnd:
    (event,) = line.world.when(verb, on=run_id)
    return RunEnd(event.stored_id, event)


def phase(line: Beamline, run_id: UUID, name: str = "Projections", **fields: Any) -> UUID:
    return line.world.create(RegisterProcedure(name=name, kind="projections", parent_run_id=run_id, **fields))


def fail_conduct(line: Beamline, procedure_id: UUID, *closing: Failure) -> None:
    """Fail the conduct of a phase."""
    conduct_id = new_id()
    known = {"procedure_id": procedure_id, "conduct_id": conduct_id, "command_name": "ConductProcedure"}
    result = ConductResult(
        **known, succeeded=False, failure=FAILURE, closing_failures=closing, deviations=(DEVIATION,) * (MAX_DEVIATIONS + 1)
    )
    line.world.given(
        procedure_id,
        ProcedureStarted(conduct_id=conduct_id, command_name="ConductProcedure"),
        ProcedureConducted(conduct_id=conduct_id, result=result),
    )


def record_channel(line: Beamline, run_id: UUID, name: str = "ring_current") -> None:
    spans = {"first_recorded_at": START, "latest_recorded_at": START, "latest_sampled_at": START}
    row = Channel(run_id=run_id, channel_name=name, count=3, latest_value=198.7, units="mA", simulated=False, **spans)
    line.world.records[Channel, run_id, name] = row


def agent_material(line: Beamline, task: Any, run_id: UUID, terminal: RunEnd | None) -> Material:
    line.world.ports = {"file_rows": (), "image_count": 0, **line.world.ports}
    material: Material = line.world.fulfil(task.material(line.run(run_id), terminal))
    return material


class TestWhatADebrieferIsShown:
    def test_the_run_its_end_its_phases_and_its_channels(self, line: Beamline) -> None:
        run_id = line.start(pinned_calibration_ids=[])
        procedure_id = phase(line, run_id)
        fail_conduct(line, procedure_id, FAILURE)
        record_channel(line, run_id)
        said = {"name": "stream", "result_data": {"uri": "file:///data/raw.h5", "events": 110}}
        line.world.ports["file_rows"] = [FileRow("action", "outcome", 3, START, said)]
        line.world.ports["image_count"] = 110
        conduct = OpenedConduct(*[new_id()] * 6, "ConductProcedure", 4, 0, takeover_count=1)
        line.world.records[OpenedConduct, conduct.conduct_id] = replace(conduct, procedure_id=procedure_id)
        terminal = end_run(line, run_id, StopRun(reason="rotary stage encoder offline"))
        assert agent_material(line, DEBRIEF, run_id, terminal).facts == {
            "terminal_event_type": "RunStopped",
            "terminal_event_reason": "rotary stage encoder offline",
            "terminal_event_occurred_at": instant(line.world.now),
            "run_id": str(run_id),
            "run_name": "Load step 1",
            "run_status": "Stopped",
            "plan_id": str(line.plan_id),
            "subject_id": str(line.subject_id),
            "campaign_id": str(line.campaign_id),
            "effective_parameters": {"dwell": 0.1, "repetitions": 20},
            "hold_count": 0,
            "last_held_at": None,
            "last_hold_reason": None,
            "adjustment_count": 0,
            "last_adjusted_at": None,
            "interrupted_at": None,
            "pinned_calibration_ids": [],
            "phases": [
                {
                    "procedure_id": str(procedure_id),
                    "name": "Projections",
                    "status": "Running",
                    "failure": FAILURE.model_dump(),
                    "closing_failures": [FAILURE.model_dump()],
                    "deviations": [DEVIATION.model_dump()] * MAX_DEVIATIONS,
                    "iteration_count": 0,
                    "skipped_count": 0,
                    "skipped_waits": [],
                    "resolved_steps": [],
                    "image_count": 110,
                    "takeover_count": 1,
                    "files": [{"name": "raw.h5", "byte_size": None}],
                    "file_count": 1,
                }
            ],
            "channels": [
                {
                    "channel_name": "ring_current",
                    "count": 3,
                    "first_recorded_at": instant(START),
                    "latest_recorded_at": instant(START),
                    "latest_value": 198.7,
                    "units": "mA",
                    "simulated": False,
                }
            ],
        }

    def test_a_run_that_was_completed_has_no_reason(self, line: Beamline) -> None:
        run_id = line.start()
        facts = agent_material(line, DEBRIEF, run_id, end_run(line, run_id, CompleteRun())).facts
        assert facts.keys() == RUN_KEYS | {"channels"}
        assert (facts["terminal_event_type"], facts["terminal_event_reason"]) == ("RunCompleted", None)

    def test_only_a_truncated_run_was_interrupted(self, line: Beamline) -> None:
        run_id, at = line.start(), line.world.now
        terminal = end_run(line, run_id, TruncateRun(reason="power cut", interrupted_at=at))
        assert agent_material(line, DEBRIEF, run_id, terminal).facts["interrupted_at"] == instant(at)

    def test_of_a_run_that_is_on_the_end_is_null(self, line: Beamline) -> None:
        run_id = line.start()
        facts = agent_material(line, DEBRIEF, run_id, None).facts
        assert facts.keys() == RUN_KEYS | {"channels"}
        ending = ("terminal_event_type", "terminal_event_reason", "terminal_event_occurred_at", "interrupted_at")
        assert [facts[name] for name in ending] == [None] * 4
        assert facts["run_status"] == "Running"

    def test_that_it_was_adjusted_but_not_by_whom(self, line: Beamline) -> None:
        run_id, somebody = line.start(), new_id()
        changed = {"parameters_patch": {"dwell": 0.2}, "effective_parameters": {"dwell": 0.2}}
        adjustment = {"parameters_schema_revision": 1, "reason": "lower flux", "decided_by_decision_id": None}
        line.world.given(run_id, RunAdjusted(**changed, **adjustment, adjusted_by=somebody))
        facts = agent_material(line, DEBRIEF, run_id, None).facts
        assert (facts["adjustment_count"], facts["last_adjusted_at"]) == (1, instant(line.world.now))
        assert str(somebody) not in json.dumps(facts)

    def test_how_often_it_was_held_and_why_at_last(self, line: Beamline) -> None:
        run_id = line.start()
        for reason in ("shift change", "beam lost"):
            line.world.given(run_id, RunHeld(reason=reason, decided_by_decision_id=None))
            line.world.given(run_id, RunResumed(decided_by_decision_id=None))
        facts = agent_material(line, DEBRIEF, run_id, None).facts
        held = (facts["hold_count"], facts["last_held_at"], facts["last_hold_reason"])
        assert held == (2, instant(line.world.now), "beam lost")

    def test_the_channels_of_this_run_alone(self, line: Beamline) -> None:
        run_id = line.start()
        record_channel(line, run_id)
        record_channel(line, new_id(), "of_another_run")
        channels = agent_material(line, DEBRIEF, run_id, None).facts["channels"]
        assert [channel["channel_name"] for channel in channels] == ["ring_current"]


class TestBounds:
    def test_of_many_phases_and_channels_the_first_are_shown(self, line: Beamline) -> None:
        run_id = line.start()
        for number in range(MAX_PHASES + 1):
            phase(line, run_id, f"Phase {number}")
        for number in range(MAX_CHANNELS + 1):
            record_channel(line, run_id, f"channel_{number:03}")
        facts = agent_material(line, DEBRIEF, run_id, None).facts
        assert (len(facts["phases"]), len(facts["channels"])) == (MAX_PHASES, MAX_CHANNELS)

    def test_of_many_closing_failures_the_first_are_shown(self, line: Beamline) -> None:
        procedure_id = phase(line, line.start())
        fail_conduct(line, procedure_id, *[FAILURE] * (MAX_CLOSING_FAILURES + 1))
        procedure: Procedure = line.world.state(Procedure, procedure_id)
        assert len(phase_facts(procedure)["closing_failures"]) == MAX_CLOSING_FAILURES

    def test_parameters_that_would_fill_a_prompt_are_counted_instead(self) -> None:
        fitting = {"list": "x" * (MAX_PARAMETERS_LENGTH - 20)}
        assert bounded_parameters(fitting) is fitting
        assert bounded_parameters({"list": "x" * MAX_PARAMETERS_LENGTH, "dwell": 1}) == {
            "omitted": "2 parameters, too long to show"
        }


@pytest.mark.parametrize("task", [DEBRIEF, DRAFT], ids=lambda task: task.kind)
def test_nobody_is_in_what_a_model_is_shown(line: Beamline, task: Any) -> None:
    run_id = line.start()
    phase(line, run_id)
    register_caution(line.world, on_asset(line.hutch.camera))
    line.world.when(HoldRun(reason="sample change"), on=run_id)
    terminal = end_run(line, run_id, AbortRun(reason="smoke"))
    material = json.dumps(agent_material(line, task, run_id, terminal).facts)
    assert str(OPERATOR) not in material
    for key in ("actor", "principal", "_by", "author"):
        assert key not in material


class TestWhatADrafterIsShown:
    def test_the_run_with_its_candidates_and_the_cautions_on_them(self, line: Beamline) -> None:
        run_id = line.start()
        recipe_id = recipe(line.world, line.hutch.capability_id)
        procedure_id = phase(line, run_id)
        line.world.create(
            RegisterProcedureFromRecipe(
                name="Flat", kind="flat", recipe_id=recipe_id, parent_run_id=run_id, bindings=BINDINGS
            )
        )
        on_camera = register_caution(line.world, on_asset(line.hutch.camera), severity="Notice", text="t" * 201)
        on_plan = {"kind": "Plan", "id": line.plan_id}
        warned = register_caution(line.world, on_plan, severity="Warning", workaround="w" * 201)
        register_caution(line.world, on_procedure(procedure_id))
        register_caution(line.world, on_asset(new_id()))
        terminal = end_run(line, run_id, AbortRun(reason="smoke"))
        material = agent_material(line, DRAFT, run_id, terminal)
        assert material.facts.keys() == RUN_KEYS | {"candidates", "cautions"}
        assets = sorted(map(str, line.hutch.asset_ids))
        assert material.facts["candidates"] == {"assets": assets, "recipes": [str(recipe_id)], "plans": [str(line.plan_id)]}
        assert [one["caution_target"]["kind"] for one in material.facts["phases"]] == ["Plan", "Recipe"]
        assert [one["caution_id"] for one in material.facts["cautions"]] == [str(on_camera), str(warned)]
        first, second = material.facts["cautions"]
        known = {"caution_id", "target_kind", "target_id", "category", "severity", "text", "workaround"}
        assert first.keys() == second.keys() == known
        assert (first["severity"], second["severity"]) == ("Notice", "Warning")
        assert (first["text"], second["workaround"]) == ("t" * 200, "w" * 200)
        recurring = {("Recipe", recipe_id), ("Plan", line.plan_id)}
        assert material.candidates == {("Asset", id) for id in line.hutch.asset_ids} | recurring
        assert material.cautions == {on_camera, warned}

    def test_the_faults_of_a_phase_are_noted_on_what_the_next_one_meets(self, line: Beamline) -> None:
        """On its only asset, or else its recipe, or else the plan; never on the phase, which is over."""
        run_id, camera, shutter = line.start(), line.hutch.camera, line.hutch.shutter
        plan: Plan = line.world.state(Plan, line.plan_id)
        known = {"name": "Flat", "kind": "flat", "parent_run_id": run_id, "bindings": BINDINGS}
        recipe_id = recipe(line.world, line.hutch.capability_id)
        for targets, noted in (
            ([camera], ("Asset", camera)),
            ([camera, shutter], ("Recipe", recipe_id)),
            ([], ("Recipe", recipe_id)),
        ):
            made = line.world.create(RegisterProcedureFromRecipe(**known, recipe_id=recipe_id, target_asset_ids=targets))
            target = recurring_target(line.world.state(Procedure, made), plan)
            assert (target.kind, target.id) == noted
        alone = recurring_target(line.world.state(Procedure, phase(line, run_id, target_asset_ids=[camera, shutter])), plan)
        assert (alone.kind, alone.id) == ("Plan", line.plan_id)

    def test_cautions_count_as_of_the_end_of_the_run(self, line: Beamline) -> None:
        run_id = line.start()
        soon = line.world.now + timedelta(seconds=30)
        passing = register_caution(line.world, on_asset(line.hutch.camera), expires_at=soon)
        terminal = end_run(line, run_id, AbortRun(reason="smoke"))
        line.world.now += timedelta(days=1)
        assert agent_material(line, DRAFT, run_id, terminal).cautions == {passing}
        line.world.now = soon
        late = end_run(line, line.start(), AbortRun(reason="smoke"))
        assert agent_material(line, DRAFT, run_id, late).cautions == frozenset()


def test_the_four_ends_of_a_run_and_nothing_else_are_concluded_about() -> None:
    assert {event.__name__ for event in RUN_END_EVENTS} == {"RunCompleted", "RunAborted", "RunStopped", "RunTruncated"}
    assert RunHeld not in RUN_END_EVENTS


class TestWhatIsPutOnRecord:
    @pytest.mark.parametrize(
        ("task", "context", "conflicted", "deferred", "rule"),
        [
            (DEBRIEF, "RunDebrief", "DebriefConflicted", "DebriefDeferred", "agent:RunDebriefer:v1"),
            (DRAFT, "CautionProposal", "CautionDraftConflicted", "CautionDraftDeferred", "agent:CautionDrafter:v1"),
        ],
        ids=["debrief", "draft"],
    )
    def test_the_words_of_each_task(self, task: Any, context: str, conflicted: str, deferred: str, rule: str) -> None:
        assert (task.context, task.conflicted, task.deferred, task.rule) == (context, conflicted, deferred, rule)

    def test_a_conclusion(self) -> None:
        agent_id, inputs, proposal = new_id(), {"run_id": "r"}, proposed_caution("ProposeNotice", new_id())
        concluded = Conclusion("ProposeNotice", 0.8, REASONING, {"proposed_caution": proposal})
        choice = DRAFT.decision(agent_id, inputs, concluded)
        assert (choice.decided_by, choice.context, choice.choice) == (agent_id, "CautionProposal", "ProposeNotice")
        sure = (0.8, "self_reported", "agent:CautionDrafter:v1")
        assert (choice.confidence, choice.confidence_source, choice.rule) == sure
        assert (choice.parent_id, choice.reasoning) == (None, REASONING.strip())
        assert choice.inputs == {"run_id": "r", "proposed_caution": proposal}

    def test_what_came_instead_of_one(self) -> None:
        parent_id, inputs = new_id(), {"run_id": "r", "failure_error_class": "BudgetExhausted"}
        choice = DEBRIEF.decision(new_id(), inputs, instead="DebriefDeferred", reasoning="why", parent_id=parent_id)
        assert (choice.choice, choice.confidence, choice.confidence_source) == ("DebriefDeferred", None, None)
        assert (choice.inputs, choice.reasoning, choice.parent_id) == (inputs, "why", parent_id)


@for_each(
    ("context", "choice", "told"),
    [
        *(("RunDebrief", f"{what}Completion", True) for what in ("Nominal", "Degraded")),
        *(("RunDebrief", choice, True) for choice in ("OperatorAbort", "EquipmentAbort", "DataSuspect")),
        *(("RunDebrief", choice, False) for choice in ("DebriefDeferred", "DebriefConflicted")),
        ("CautionProposal", "NominalCompletion", False),
    ],
)
def test_the_narrative_of_a_verdict_and_nothing_else_goes_into_the_logbook(context: str, choice: str, told: bool) -> None:
    world = agent_world()
    by = versioned_agent(world) if context == "RunDebrief" else drafter(world)
    decision = decision_of(world, register_decision(world, by, context, choice, reasoning=REASONING))
    assert narrative_of(decision) == (REASONING.strip() if told else None)
