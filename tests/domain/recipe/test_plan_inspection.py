"""Asking before planning: what a binding would lack, and which other assets could provide it."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.equipment.asset import DegradeAsset
from baton.domain.equipment.asset_tree import DecommissionAsset
from baton.domain.equipment.asset_views import AssetSummary
from baton.domain.equipment.family import DeprecateFamily, FamilySummary
from baton.domain.recipe.capability import VersionCapability
from baton.domain.recipe.method import DeprecateMethod
from baton.domain.recipe.plan_inspection import MOST_CANDIDATES, InspectPlanBinding, PlanBinding
from baton.domain.recipe.practice import DeprecatePractice
from baton.domain.shared.reads import Rows
from baton.domain.shared.refusals import Refusal
from tests.support.domain.assets import family
from tests.support.domain.plans import ListedWorld, PlanHutch, imaging_hutch
from tests.support.domain.templates import contract, practice
from tests.support.domain.world import expect_refusal, new_id


@pytest.fixture
def hutch() -> PlanHutch:
    return imaging_hutch(ListedWorld())


def inspect_binding(hutch: PlanHutch, *asset_ids: UUID, **fields: Any) -> PlanBinding:
    query = InspectPlanBinding(**{"practice_id": hutch.practice_id, "asset_ids": asset_ids, **fields})
    answer: PlanBinding = hutch.world.ask(query)
    return answer


def test_a_binding_that_covers_everything_is_satisfied(hutch: PlanHutch) -> None:
    answer = inspect_binding(hutch, *hutch.asset_ids)
    assert (answer.binding_status, answer.missing_family_ids, answer.missing_affordances) == ("Satisfied", (), ())
    assert answer.missing_affordance_candidates == ()
    assert (answer.practice_id, answer.method_id) == (hutch.practice_id, hutch.method_id)
    assert answer.capability_id == hutch.capability_id


def test_what_each_named_asset_brings_along_is_shown_by_id(hutch: PlanHutch) -> None:
    hutch.world.when(DegradeAsset(reason="hot pixels"), on=hutch.camera)
    answer = inspect_binding(hutch, hutch.timing_box, hutch.camera)
    shown = [one.model_dump(mode="json") for one in answer.wired_assets]
    assert shown == [
        {
            "asset_id": str(hutch.camera),
            "asset_name": "High-speed camera",
            "condition": "Degraded",
            "lifecycle": "Active",
            "family_ids": [str(hutch.camera_family)],
            "contributed_affordances": ["Imageable", "Triggerable"],
        },
        {
            "asset_id": str(hutch.timing_box),
            "asset_name": "Timing box",
            "condition": "Nominal",
            "lifecycle": "Commissioned",
            "family_ids": [],
            "contributed_affordances": [],
        },
    ]


def test_the_families_of_the_practice_are_among_those_needed(hutch: PlanHutch) -> None:
    stage = family(hutch.world, "Stage")
    narrow = practice(hutch.world, hutch.method_id, family_ids=[stage])
    answer = inspect_binding(hutch, *hutch.asset_ids, practice_id=narrow)
    assert answer.method_needed_family_ids == {hutch.shutter_family, hutch.camera_family, stage}
    assert (answer.binding_status, answer.missing_family_ids) == ("MissingFamilies", (stage,))
    assert answer.missing_affordances == ()


def require_affordances(hutch: PlanHutch, *affordances: str) -> None:
    """Version the capability so that it requires these affordances."""
    kept = {key: contract()[key] for key in ("executor_shapes", "parameters_schema")}
    version = VersionCapability(version_tag="2", description=None, required_affordances=affordances, **kept)
    hutch.world.when(version, on=hutch.capability_id)


def test_missing_affordances_count_where_no_family_is_missing(hutch: PlanHutch) -> None:
    require_affordances(hutch, "Rotatable", "Imageable", "Homeable")
    answer = inspect_binding(hutch, *hutch.asset_ids)
    assert (answer.binding_status, answer.missing_affordances) == ("MissingAffordances", ("Homeable", "Rotatable"))
    assert answer.capability_required_affordances == {"Rotatable", "Imageable", "Homeable"}
    assert inspect_binding(hutch, hutch.shutter).binding_status == "MissingFamilies"


def test_an_affordance_nobody_has_has_no_candidates(hutch: PlanHutch) -> None:
    require_affordances(hutch, "Rotatable")
    family(hutch.world, "Stage", None, "Rotatable")
    family(hutch.world, "Axis", None, "Homeable")
    (rotatable,) = inspect_binding(hutch, *hutch.asset_ids).missing_affordance_candidates
    assert (rotatable.affordance, rotatable.candidates) == ("Rotatable", ())
    require_affordances(hutch, "Leading")
    (leading,) = inspect_binding(hutch, *hutch.asset_ids).missing_affordance_candidates
    assert leading.candidates == ()


def test_candidates_are_the_other_assets_with_the_families_they_have_it_by(hutch: PlanHutch) -> None:
    scintillator = family(hutch.world, "Scintillator", None, "Imageable", "Rotatable")
    double = hutch.asset("Twin", scintillator, hutch.camera_family, hutch.shutter_family)
    answer = inspect_binding(hutch, hutch.timing_box)
    found = {
        one.affordance: {each.asset_id: each.contributing_family_ids for each in one.candidates}
        for one in answer.missing_affordance_candidates
    }
    assert list(found) == ["Imageable", "Triggerable"]
    assert found["Imageable"] == {hutch.camera: {hutch.camera_family}, double: {scintillator, hutch.camera_family}}
    assert found["Triggerable"] == {
        hutch.shutter: {hutch.shutter_family},
        hutch.camera: {hutch.camera_family},
        double: {hutch.shutter_family, hutch.camera_family},
    }
    assert all(list(ids) == sorted(ids) for ids in found.values())


def test_candidates_are_found_beyond_the_first_page_and_the_first_of_many_are_shown(hutch: PlanHutch) -> None:
    cameras = sorted([hutch.camera, *(hutch.asset(f"Camera {number}", hutch.camera_family) for number in range(101))])
    stage = hutch.asset("Stage", family(hutch.world, "Stage", None, "Rotatable"))
    require_affordances(hutch, "Imageable", "Rotatable")
    imageable, rotatable = inspect_binding(hutch, hutch.shutter).missing_affordance_candidates
    assert [one.asset_id for one in imageable.candidates] == cameras[:MOST_CANDIDATES]
    assert [one.asset_id for one in rotatable.candidates] == [stage]


@dataclass
class CountingWorld(ListedWorld):
    """Counts the pages that are read of each list."""

    pages: Counter[str] = field(default_factory=Counter)

    def _read(self, request: Any) -> Any:
        if isinstance(request, Rows):
            self.pages[request.summary.relation] += 1
        return super()._read(request)


def test_families_and_assets_are_listed_once_however_many_affordances_are_missing() -> None:
    world = CountingWorld()
    hutch = imaging_hutch(world)
    inspect_binding(hutch, hutch.timing_box)
    assert world.pages == {FamilySummary.relation: 1, AssetSummary.relation: 1}
    inspect_binding(hutch, *hutch.asset_ids)
    assert world.pages.total() == 2


def test_no_status_keeps_a_binding_from_being_inspected(hutch: PlanHutch) -> None:
    for command, id in (
        (DeprecatePractice(), hutch.practice_id),
        (DeprecateMethod(), hutch.method_id),
        (DecommissionAsset(), hutch.camera),
        (DeprecateFamily(), hutch.camera_family),
    ):
        hutch.world.when(command, on=id)
    answer = inspect_binding(hutch, hutch.camera, hutch.shutter)
    assert answer.binding_status == "Satisfied"
    assert {one.asset_id: one.lifecycle for one in answer.wired_assets}[hutch.camera] == "Decommissioned"
    (imageable,) = inspect_binding(hutch, hutch.shutter).missing_affordance_candidates
    assert [(one.asset_id, one.lifecycle) for one in imageable.candidates] == [(hutch.camera, "Decommissioned")]


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"practice_id": new_id(), "asset_ids": [new_id()]}, "PracticeNotFoundError"),
        ({"asset_ids": [new_id()]}, "AssetNotFoundError"),
        ({"asset_ids": []}, "PlanAssetsRequiredError"),
    ],
)
def test_what_is_named_must_exist(hutch: PlanHutch, fields: dict[str, Any], refusal: str) -> None:
    with expect_refusal(refusal):
        inspect_binding(hutch, **fields)


FITTINGS = st.sets(st.sampled_from(["shutter_family", "camera_family", "blind"]))
AFFORDANCES = st.sets(st.sampled_from(["Imageable", "Rotatable", "Homeable"]))


@given(st.lists(FITTINGS, min_size=1, max_size=4), AFFORDANCES)
def test_what_is_found_satisfied_can_be_planned_and_nothing_else(fittings: list[set[str]], needed: set[str]) -> None:
    hutch = imaging_hutch(ListedWorld())
    require_affordances(hutch, *needed)
    families = {"shutter_family": hutch.shutter_family, "camera_family": hutch.camera_family}
    families["blind"] = family(hutch.world, "Blind", None, "Rotatable")
    asset_ids = [hutch.asset("Any", *(families[name] for name in sorted(names))) for names in fittings]
    refusal = None
    try:
        hutch.define_plan(asset_ids=asset_ids)
    except Refusal as caught:
        refusal = caught.code
    refusals = {"Satisfied": None, "MissingFamilies": "PlanFamiliesNotSatisfiedError"}
    refusals["MissingAffordances"] = "PlanAffordancesNotSatisfiedError"
    assert refusals[inspect_binding(hutch, *asset_ids).binding_status] == refusal
