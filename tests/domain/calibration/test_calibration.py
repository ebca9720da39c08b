"""Calibrations: one for each target, quantity and operating point, and revisions that are only ever added."""

import hashlib
import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.calibration.calibration import (
    Calibration,
    CalibrationDefined,
    CalibrationRevisionAppended,
    CalibrationStatus,
    ListCalibrations,
    identity_key,
)
from baton.domain.calibration.quantities import CalibrationQuantity
from baton.domain.shared.canonical import canonical_json
from tests.support.domain.agents import decision_to_cite
from tests.support.domain.calibrations import AT_25_KEV, append_revision, definition, measured_revision, rotation_center
from tests.support.domain.world import OPERATOR, World, expect_refusal, new_id


@pytest.fixture
def world() -> World:
    return World()


def test_a_calibration_is_defined_before_anything_is_measured(world: World) -> None:
    target = new_id()
    [event] = world.when(definition(target_id=target, description=" after the mirror was realigned "))
    assert event == CalibrationDefined(
        target_id=target,
        quantity=CalibrationQuantity.ROTATION_CENTER,
        operating_point=AT_25_KEV,
        description="after the mirror was realigned",
        defined_by=OPERATOR,
    )
    state = world.state(Calibration, event.stream_id)
    assert (state.revisions, state.defined_at, state.last_revised_at) == ((), world.now, None)


def test_the_same_operating_point_is_calibrated_once(world: World) -> None:
    target = new_id()
    rotation_center(world, target_id=target)
    with expect_refusal("CalibrationIdentityAlreadyExistsError", "identity_taken"):
        rotation_center(world, target_id=target, operating_point={"optics_config": "5x", "energy": 25.0})
    rotation_center(world, target_id=target, operating_point={"energy": 25.001, "optics_config": "5x"})
    rotation_center(world)


@given(st.integers(1, 100), st.text(min_size=1, max_size=20).filter(str.strip), st.booleans())
def test_identity_is_what_is_meant_not_how_it_is_written(energy: int, optics: str, turned: bool) -> None:
    target, quantity = UUID(int=7), CalibrationQuantity.ROTATION_CENTER
    one = {"energy": energy, "optics_config": optics}
    other = {"energy": float(energy), "optics_config": optics}
    key = identity_key(target, quantity, one)
    assert key == identity_key(target, quantity, dict(reversed(other.items())) if turned else other)
    assert key != identity_key(target, quantity, {**one, "energy": energy + 0.001})


@pytest.mark.parametrize("quantity", ["wavelength", "Rotation_Center", " "])
def test_only_what_is_in_the_catalogue_is_calibrated(world: World, quantity: str) -> None:
    with expect_refusal("InvalidCalibrationQuantityError"):
        rotation_center(world, quantity=quantity, operating_point={})


def test_the_operating_point_must_have_its_quantitys_form(world: World) -> None:
    with expect_refusal("InvalidOperatingPointError", "missing_key"):
        rotation_center(world, operating_point={})


@pytest.mark.parametrize(("given", "kept"), [("", None), ("  ", None), (None, None), (" x ", "x")])
def test_a_description_that_says_nothing_is_none(world: World, given: str | None, kept: str | None) -> None:
    assert world.state(Calibration, rotation_center(world, description=given)).description == kept
    assert "description" in CalibrationDefined.personal


def test_a_revision_carries_its_value_its_source_and_its_hash(world: World) -> None:
    id, procedure, decision = rotation_center(world), new_id(), decision_to_cite(world)
    source = {"kind": "Measured", "procedure_id": procedure}
    [event] = world.when(measured_revision(source=source, decided_by_decision_id=decision), on=id)
    assert isinstance(event, CalibrationRevisionAppended)
    assert world.answer == {"revision_id": str(event.revision_id)}
    assert (event.established_at, event.established_by) == (world.now, OPERATOR)
    content = {
        "value": {"center": 1024.5, "uncertainty": 0.3},
        "status": "Provisional",
        "source_kind": "Measured",
        "source_id": str(procedure),
        "decided_by_decision_id": str(decision),
        "supersedes_revision_id": None,
    }
    written = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert event.content_hash == hashlib.sha256(written.encode()).hexdigest()
    assert json.loads(event.payload())["source"] == {"kind": "Measured", "procedure_id": str(procedure)}
    state = world.state(Calibration, id)
    assert (state.latest_revision_id, state.last_revised_at) == (event.revision_id, world.now)


@pytest.mark.parametrize("value", [{"center": 1024}, {"center": 1024.0}])
def test_equal_values_have_equal_hashes(world: World, value: dict[str, Any]) -> None:
    source = {"kind": "Asserted", "asserted_by": OPERATOR}
    [event] = world.when(measured_revision(value=value, source=source), on=rotation_center(world))
    expected = {
        "value": {"center": 1024},
        "status": "Provisional",
        "source_kind": "Asserted",
        "source_id": OPERATOR,
        "decided_by_decision_id": None,
        "supersedes_revision_id": None,
    }
    assert event.content_hash == hashlib.sha256(canonical_json(expected)).hexdigest()  # type: ignore[attr-defined]


ARMS = {"Measured": "procedure_id", "Computed": "dataset_id", "Asserted": "asserted_by"}


@pytest.mark.parametrize("kind", ARMS)
def test_a_source_names_exactly_what_its_kind_asks_for(world: World, kind: str) -> None:
    id, wanted = rotation_center(world), ARMS[kind]
    others = [{name: new_id()} for name in ARMS.values() if name != wanted]
    for ids in ({}, *others, {name: new_id() for name in ARMS.values()}):
        with expect_refusal("InvalidCalibrationSourceError", "wrong_arm"):
            world.when(measured_revision(source={"kind": kind, **ids}), on=id)
    append_revision(world, id, source={"kind": kind, wanted: new_id()})
    assert world.state(Calibration, id).latest_revision_source_kind == kind


def test_a_value_is_judged_before_its_source_and_its_source_before_what_it_supersedes(world: World) -> None:
    id = rotation_center(world)
    wrong = {"value": {}, "source": {"kind": "Measured"}, "supersedes_revision_id": new_id()}
    with expect_refusal("InvalidCalibrationValueError"):
        world.when(measured_revision(**wrong), on=id)
    with expect_refusal("InvalidCalibrationSourceError"):
        world.when(measured_revision(**{**wrong, "value": {"center": 1}}), on=id)
    with expect_refusal("InvalidSupersedesRevisionError"):
        world.when(measured_revision(supersedes_revision_id=new_id()), on=id)


def test_a_revision_supersedes_one_of_the_same_calibration_only(world: World) -> None:
    id, other = rotation_center(world), rotation_center(world)
    foreign = append_revision(world, other)
    with expect_refusal("InvalidSupersedesRevisionError", "not_of_this_calibration"):
        world.when(measured_revision(supersedes_revision_id=foreign), on=id)


def test_a_decision_that_a_revision_rests_on_exists_and_is_asked_for_first(world: World) -> None:
    missing = new_id()
    with expect_refusal("DecisionNotFoundError") as caught:
        world.when(measured_revision(value={}, decided_by_decision_id=missing), on=rotation_center(world))
    assert (caught.value.status, caught.value.facts) == (404, {"missing_ids": [str(missing)]})


def test_the_latest_revision_that_names_one_supersedes_it(world: World) -> None:
    id = rotation_center(world)
    first = append_revision(world, id)
    for _ in range(2):
        latest = append_revision(world, id, supersedes_revision_id=first)
    state = world.state(Calibration, id)
    assert state.revision(first).superseded_by_revision_id == latest
    assert state.revision(latest).superseded_by_revision_id is None


def test_the_latest_revision_is_the_last_appended_whatever_its_status(world: World) -> None:
    id = rotation_center(world)
    append_revision(world, id, status="Verified")
    provisional = append_revision(world, id)
    row = ListCalibrations.summary.of(world.state(Calibration, id)).model_dump()
    assert (row["latest_revision_id"], row["latest_revision_status"]) == (provisional, CalibrationStatus.PROVISIONAL)
    assert (row["revision_count"], row["defined_by"]) == (2, OPERATOR)
    empty = ListCalibrations.summary.of(world.state(Calibration, rotation_center(world))).model_dump()
    assert (empty["latest_revision_id"], empty["latest_revision_source_kind"], empty["revision_count"]) == (None, None, 0)


def test_a_revision_may_lapse_after_it_was_established(world: World) -> None:
    id, ends = rotation_center(world), world.now + timedelta(days=30)
    append_revision(world, id, valid_until=ends)
    append_revision(world, id)
    assert [one.valid_until for one in world.state(Calibration, id).revisions] == [ends, None]


def test_a_revision_that_would_have_lapsed_already_is_refused(world: World) -> None:
    id = rotation_center(world)
    with expect_refusal("InvalidCalibrationValidityError", "past"):
        append_revision(world, id, valid_until=world.now)
    assert world.state(Calibration, id).revision_count == 0
