"""Starting a run: every gate by itself, all of them in order, and the preflight that says the same."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from baton.domain.campaign.campaign import Campaign
from baton.domain.equipment.asset import FaultAsset
from baton.domain.recipe.capability import VersionCapability
from baton.domain.recipe.method import VersionMethod
from baton.domain.recipe.plan import Plan
from baton.domain.run.run import RunStarted
from baton.domain.start.run_start import GATES, StartRun
from baton.domain.subject.subject import RemoveSubject
from tests.support.domain.agents import decision_to_cite
from tests.support.domain.assets import LUMEN
from tests.support.domain.calibrations import append_revision, rotation_center
from tests.support.domain.cautions import on_asset, register_caution
from tests.support.domain.clearances import binding, clearance_in_status, template
from tests.support.domain.run_beamline import IMPLIED, REFUSALS, TTL, beamline
from tests.support.domain.templates import MILLISECOND, acquisition, contract
from tests.support.domain.world import expect_refusal, new_id
from tests.support.tables import for_each

NAMES = list(REFUSALS)


def failing_gates(*broken: str) -> set[str]:
    return {*broken, *(IMPLIED[gate] for gate in broken if gate in IMPLIED)}


def test_the_gates_stand_in_the_specified_order() -> None:
    assert [gate.name for gate in GATES] == NAMES


def test_a_run_starts_where_every_gate_is_open() -> None:
    line = beamline()
    answer = line.preflight()
    assert answer.passed
    assert all(verdict.passed for verdict in answer.gates)
    (event,) = line.world.when(StartRun(**line.request))
    assert isinstance(event, RunStarted)
    assert event.effective_parameters == answer.effective_parameters == {"dwell": 0.1, "repetitions": 20}
    assert line.world.state(Campaign, line.campaign_id).run_ids == {event.stream_id}
    assert line.world.answer == {
        "run_id": str(event.stream_id),
        "effective_parameters": {"dwell": 0.1, "repetitions": 20},
        "acknowledged_cautions": [],
    }


@for_each("gate", NAMES)
def test_each_gate_refuses_by_itself(gate: str) -> None:
    line = beamline(gate)
    verdicts = {verdict.gate: verdict for verdict in line.preflight().gates}
    assert {name for name, verdict in verdicts.items() if not verdict.passed} == failing_gates(gate)
    assert verdicts[gate].code == REFUSALS[gate]
    with expect_refusal(REFUSALS[gate], verdicts[gate].reason) as caught:
        line.start()
    assert caught.value.detail == verdicts[gate].detail
    assert (caught.value.facts or {}).keys() == (verdicts[gate].facts or {}).keys()
    assert line.world.state(Campaign, line.campaign_id).run_ids == frozenset()


@pytest.mark.parametrize("pairs", [pairwise, pytest.param(lambda names: combinations(names, 2), marks=pytest.mark.soak)])
def test_the_earlier_of_two_closed_gates_refuses(pairs: Callable[[list[str]], Iterable[tuple[str, str]]]) -> None:
    for first, second in pairs(NAMES):
        line = beamline(first, second)
        with expect_refusal(REFUSALS[first]):
            line.start()


@given(st.sets(st.sampled_from(NAMES)))
def test_a_run_starts_exactly_when_its_preflight_passes(broken: set[str]) -> None:
    line = beamline(*sorted(broken, key=NAMES.index))
    answer = line.preflight()
    assert answer.passed == (not broken)
    closed = [verdict.code for verdict in answer.gates if not verdict.passed]
    if not closed:
        line.start()
    else:
        with expect_refusal(str(closed[0])):
            line.start()


@for_each(
    ("field", "refusal"),
    [("plan_id", "PlanNotFoundError"), ("subject_id", "SubjectNotFoundError"), ("campaign_id", "CampaignNotFoundError")],
)
def test_what_is_missing_is_refused_before_any_gate(field: str, refusal: str) -> None:
    line = beamline("clearance_present", "name_given")
    with expect_refusal(refusal):
        line.start(**{field: new_id()})


def test_the_way_to_a_missing_clearance_says_what_it_must_cover_and_the_template_that_fits() -> None:
    line = beamline("clearance_present")
    fit = template(line.world, facility_code=LUMEN)
    template(line.world, "Deprecated", facility_code=LUMEN, code="OLD")
    for subject_id in (line.subject_id, None):
        with expect_refusal("RunRequiresActiveClearanceError", "no_clearance") as caught:
            line.start(subject_id=subject_id)
        register = caught.value.next_steps[0]
        on_assets = [binding("Asset", id) for id in sorted(line.world.state(Plan, line.plan_id).asset_ids)]
        bindings = on_assets if subject_id is None else [binding("Subject", subject_id)]
        known = {"facility_code": LUMEN, "template_id": str(fit), "bindings": bindings}
        assert (register.operation, register.arguments, register.needed) == ("register_clearance", known, ("title",))
    template(line.world, facility_code=LUMEN, code="OTHER")
    with expect_refusal("RunRequiresActiveClearanceError") as several:
        line.start()
    assert sorted(several.value.facts["templates"]) == ["ESAF", "OTHER"]
    assert "template_id" in several.value.next_steps[0].needed


def test_an_old_observation_of_the_enclosure_counts_as_unknown() -> None:
    line = beamline()
    line.world.now += TTL + timedelta(seconds=5)
    with expect_refusal("RunRequiresPermittedEnclosureError") as caught:
        line.start()
    assert "s ago" in caught.value.detail
    line.observe()
    line.start()


def test_faulted_assets_do_not_block() -> None:
    line = beamline()
    line.world.when(FaultAsset(reason="sticks"), on=line.hutch.camera)
    line.start()


def test_a_verdict_says_until_when_the_clearance_is_in_force() -> None:
    line = beamline("clearance_present")
    ends = line.world.now + timedelta(hours=2)
    form = {"template_id": template(line.world, facility_code=LUMEN), "facility_code": LUMEN, "valid_until": ends}
    clearance_in_status(line.world, "Active", bindings=[binding("Asset", line.hutch.beamline)], **form)
    verdicts = {one.gate: one for one in line.preflight().gates}
    assert (verdicts["clearance_active"].until, verdicts["clearance_active"].opens_at) == (ends, None)


def test_a_lapsed_revision_warns_where_the_deployment_refuses_none() -> None:
    line = beamline("calibrations_valid")
    line.world.ports["deployment"].lapsed_calibrations_refused = False
    verdict = next(one for one in line.preflight().gates if one.gate == "calibrations_valid")
    assert (verdict.passed, verdict.until) == (True, None)
    assert verdict.detail is not None
    assert "rotation_center" in verdict.detail
    line.start()


def test_a_pinned_revision_counts_until_the_second_of_its_end() -> None:
    line = beamline("calibrations_valid")
    ends = line.world.now
    line.world.now = ends - timedelta(seconds=2)
    verdict = next(one for one in line.preflight().gates if one.gate == "calibrations_valid")
    assert (verdict.passed, verdict.until, verdict.detail) == (True, ends, None)
    line.start()
    line.world.now = ends
    with expect_refusal("RunCalibrationLapsedError", "calibration_lapsed"):
        line.start()


def test_as_many_pins_are_kept_as_there_may_be() -> None:
    line = beamline()
    calibration_id = rotation_center(line.world)
    pins = {append_revision(line.world, calibration_id) for _ in range(64)}
    assert line.run(line.start(pinned_calibration_ids=pins)).pinned_calibration_ids == pins


def test_what_a_start_pins_and_cites_exists_in_the_order_it_is_given() -> None:
    line = beamline("clearance_present")
    pin, missing = append_revision(line.world, rotation_center(line.world)), sorted([new_id(), new_id()])
    wrong: dict[str, Any] = {"pinned_calibration_ids": [pin, *missing]}
    wrong |= {"campaign_id": new_id(), "decided_by_decision_id": new_id()}
    for code, name, right in (
        ("CalibrationRevisionNotFoundError", "pinned_calibration_ids", [pin]),
        ("CampaignNotFoundError", "campaign_id", line.campaign_id),
        ("DecisionNotFoundError", "decided_by_decision_id", decision_to_cite(line.world)),
    ):
        for ask in (line.start, line.preflight):
            with expect_refusal(code) as caught:
                ask(**wrong)
        assert caught.value.status == 404
        if code == "CalibrationRevisionNotFoundError":
            assert caught.value.facts == {"missing_ids": [str(id) for id in missing]}
        wrong[name] = right
    with expect_refusal("RunRequiresActiveClearanceError"):
        line.start(**wrong)


@for_each("gone", [RemoveSubject(), None])
def test_only_a_subject_that_can_still_be_mounted_is_worth_waiting_for(gone: RemoveSubject | None) -> None:
    line = beamline("subject_mounted")
    if gone is not None:
        line.world.when(gone, on=line.subject_id)
    with expect_refusal("RunSubjectNotMountableError") as caught:
        line.start()
    assert caught.value.passing is (gone is None), "a queue's item waits for what may pass, and fails by anything else"


def test_a_run_may_have_neither_subject_nor_campaign() -> None:
    line = beamline("subject_mounted", "campaign_open")
    made = line.run(line.start(subject_id=None, campaign_id=None))
    assert (made.subject_id, made.campaign_id) == (None, None)


@for_each(
    ("overrides", "effective"),
    [
        ({}, {"dwell": 0.1, "repetitions": 20}),
        ({"dwell": 0.05}, {"dwell": 0.05, "repetitions": 20}),
        ({"retract_position": 5}, {"dwell": 0.1, "repetitions": 20, "retract_position": 5}),
        ({"dwell": None, "repetitions": None}, {}),
    ],
)
def test_overrides_are_merged_into_the_plans_defaults(overrides: dict[str, Any], effective: dict[str, Any]) -> None:
    line = beamline()
    made = line.run(line.start(override_parameters=overrides))
    assert made.override_parameters == overrides
    assert made.effective_parameters == effective


def test_a_default_whose_unit_changed_must_be_set_again() -> None:
    line = beamline()
    in_milliseconds = acquisition(maximum=1000, unit=MILLISECOND)
    versioned = {key: value for key, value in contract().items() if key not in ("code", "name")}
    line.world.when(
        VersionCapability(**{**versioned, "description": None, "parameters_schema": in_milliseconds}, version_tag="ms"),
        on=line.hutch.capability_id,
    )
    line.world.when(VersionMethod(version_tag="ms", parameters_schema=in_milliseconds), on=line.hutch.method_id)
    with expect_refusal("InvalidRunParametersError", "unit_changed") as caught:
        line.start()
    assert caught.value.facts == {"keys": ["dwell"]}
    line.start(override_parameters={"dwell": 100})


def test_starting_acknowledges_cautions_of_the_plans_assets_and_those_handed_down() -> None:
    line = beamline()
    stage, above = line.hutch.camera, line.hutch.beamline
    own = register_caution(line.world, on_asset(stage))
    warning = register_caution(line.world, on_asset(above), severity="Warning", propagate_to_children=True)
    register_caution(line.world, on_asset(above))
    register_caution(line.world, on_asset(stage), severity="Notice")
    expected = [str(warning), str(own)]
    assert [str(one.caution_id) for one in line.preflight().acknowledged_cautions] == expected
    (event,) = line.world.when(StartRun(**line.request))
    assert [one["caution_id"] for one in line.world.answer["acknowledged_cautions"]] == expected
    assert [str(one.caution_id) for one in event.acknowledged_cautions] == expected  # type: ignore[attr-defined]


def test_starting_acknowledges_cautions_of_the_plan_and_of_no_other_plan() -> None:
    line = beamline()
    own = register_caution(line.world, {"kind": "Plan", "id": line.plan_id})
    register_caution(line.world, {"kind": "Plan", "id": line.hutch.define_plan()}, severity="Warning")
    assert [one.caution_id for one in line.preflight().acknowledged_cautions] == [own]
    (event,) = line.world.when(StartRun(**line.request))
    assert [one.caution_id for one in event.acknowledged_cautions] == [own]  # type: ignore[attr-defined]


@for_each(
    ("field", "given", "kept"),
    [
        ("name", "  Load step 1 ", "Load step 1"),
        ("external_refs", {" proposal ": " 89421 "}, {"proposal": "89421"}),
        ("trigger_source", " nightly scan ", "nightly scan"),
        ("raid", " https://raid.org/10.0000/a1 ", " https://raid.org/10.0000/a1 "),
    ],
)
def test_texts_are_stored_trimmed_and_the_research_activity_identifier_verbatim(field: str, given: Any, kept: Any) -> None:
    line = beamline()
    assert getattr(line.run(line.start(**{field: given})), field) == kept


@for_each("blank", ["", " \t"])
def test_what_triggered_a_run_is_never_blank(blank: str) -> None:
    with pytest.raises(ValidationError):
        StartRun(name="Load step 1", plan_id=new_id(), trigger_source=blank)


def test_a_preflight_says_whether_the_run_could_be_conducted_too() -> None:
    line = beamline()
    verdicts = {one.command: one.passed for one in line.preflight().commands}
    assert verdicts == {"start_run": True, "conduct_run": True}
    line.world.denied = {"CompleteRun", "HoldProcedure", "HoldVisit"}
    answer = line.preflight()
    assert answer.passed, "starting it takes none of these"
    (shut,) = (gate for gate in answer.gates if not gate.passed)
    assert (shut.gate, shut.asked_by) == ("grants_present", ("conduct_run",))
    assert (shut.code, shut.reason) == ("UnauthorizedError", "grants_missing")
    assert shut.facts == {"missing": ["CompleteRun", "HoldProcedure"]}
    line.world.denied = {"StartRun"}
    assert not line.preflight().passed
