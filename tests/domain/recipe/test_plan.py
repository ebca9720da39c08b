"""Plans: bound to assets that cover what is needed, within a window, with default parameters."""

import json
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.domain.equipment.asset import AssetFamilyAdded, EnterAssetMaintenance, FaultAsset
from baton.domain.equipment.asset_parts import RemoveAssetFamily
from baton.domain.equipment.asset_tree import DecommissionAsset
from baton.domain.kernel import Command
from baton.domain.recipe.capability import DeprecateCapability, VersionCapability
from baton.domain.recipe.lifecycle import DEFINED, DEPRECATED, VERSIONED
from baton.domain.recipe.method import DeprecateMethod, UpdateMethodParametersSchema, VersionMethod
from baton.domain.recipe.plan import (
    DefinePlan,
    DeprecatePlan,
    PlanDefaultParametersUpdated,
    PlanDeprecated,
    PlanRescheduled,
    PlanSummary,
    PlanVersioned,
    ReschedulePlan,
    UpdatePlanDefaultParameters,
    VersionPlan,
    missing_families,
)
from baton.domain.recipe.practice import DeprecatePractice
from tests.support.domain.assets import asset_of, family, part
from tests.support.domain.plans import WINDOW, PlanHutch, imaging_hutch
from tests.support.domain.templates import MILLISECOND, acquisition, contract, practice
from tests.support.domain.world import World, expect_refusal, new_id

START, END = WINDOW.values()


@pytest.fixture
def hutch() -> PlanHutch:
    return imaging_hutch(World())


def patch_defaults(hutch: PlanHutch, plan_id: UUID, **values: Any) -> list[Any]:
    return hutch.world.when(UpdatePlanDefaultParameters(default_parameters_patch=values), on=plan_id)


def test_a_plan_begins_defined_with_what_it_was_bound_to(hutch: PlanHutch) -> None:
    (event,) = hutch.world.when(DefinePlan(**hutch.plan_fields(name=" Spring block ", **WINDOW)))
    plan = hutch.plan(event.stream_id)
    assert (plan.name, plan.practice_id, plan.method_id) == ("Spring block", hutch.practice_id, hutch.method_id)
    assert (plan.asset_ids, plan.wires, plan.role_bindings) == (set(hutch.asset_ids), (), ())
    assert (plan.window_starts_at.isoformat(), plan.window_ends_at.day) == ("2026-04-01T08:00:00+00:00", 3)  # type: ignore[union-attr]
    assert (plan.default_parameters, plan.parameters_schema_revision) == ({}, None)
    assert (plan.status, plan.version_tag, plan.created_at) == (DEFINED, None, hutch.world.now)


def test_a_definition_keeps_each_asset_once_with_all_its_families(hutch: PlanHutch) -> None:
    extra = family(hutch.world, "Housing")
    hutch.world.given(hutch.camera, AssetFamilyAdded(family_id=extra))
    (event,) = hutch.world.when(DefinePlan(**hutch.plan_fields(asset_ids=[*hutch.asset_ids, hutch.camera])))
    stored = json.loads(event.payload())
    assert stored["asset_ids"] == list(stored["asset_families_snapshot"]) == sorted(map(str, hutch.asset_ids))
    assert stored["asset_families_snapshot"][str(hutch.camera)] == sorted([str(hutch.camera_family), str(extra)])


WINDOWS = [
    ({"window_starts_at": START}, "half_window"),
    ({"window_ends_at": END}, "half_window"),
    ({"window_starts_at": START, "window_ends_at": START}, "ends_before_start"),
    ({"window_starts_at": END, "window_ends_at": START}, "ends_before_start"),
    ({"window_starts_at": "2026-04-01T10:00:00+02:00", "window_ends_at": START}, "ends_before_start"),
]


@pytest.mark.parametrize(("window", "reason"), WINDOWS)
def test_a_window_has_a_start_and_a_later_end(hutch: PlanHutch, window: dict[str, str], reason: str) -> None:
    with expect_refusal("InvalidPlanWindowError", reason):
        hutch.define_plan(**window)
    plan_id = hutch.define_plan()
    with expect_refusal("InvalidPlanWindowError", reason):
        hutch.world.when(ReschedulePlan(**{"window_starts_at": None, "window_ends_at": None, **window}), on=plan_id)


def test_a_window_is_moved_and_cleared(hutch: PlanHutch) -> None:
    plan_id = hutch.define_plan()
    assert hutch.world.when(ReschedulePlan(**WINDOW), on=plan_id) == [PlanRescheduled(**WINDOW)]
    assert hutch.plan(plan_id).window_starts_at is not None
    hutch.world.when(ReschedulePlan(window_starts_at=None, window_ends_at=None), on=plan_id)
    assert (hutch.plan(plan_id).window_starts_at, hutch.plan(plan_id).window_ends_at) == (None, None)


def test_both_ends_of_the_window_must_be_sent_to_move_it() -> None:
    with pytest.raises(ValidationError):
        ReschedulePlan(window_starts_at=None)


def without_family(hutch: PlanHutch) -> dict[str, Any]:
    hutch.world.given(hutch.timing_box, AssetFamilyAdded(family_id=new_id()))
    return {"name": " "}


def with_no_image(hutch: PlanHutch) -> dict[str, Any]:
    kept = {key: contract()[key] for key in ("executor_shapes", "parameters_schema")}
    needs = {"version_tag": "2", "required_affordances": ["Rotatable", "Imageable", "Homeable"], "description": None}
    hutch.world.when(VersionCapability(**needs, **kept), on=hutch.capability_id)
    return {}


def only_the_shutter(hutch: PlanHutch) -> dict[str, Any]:
    return {"asset_ids": [hutch.shutter]}


PRACTICE, METHOD = ("practice_id", DeprecatePractice()), ("method_id", DeprecateMethod())
RETIRED = ("shutter", DecommissionAsset())


@pytest.mark.parametrize(
    ("before", "broken", "refusal", "reason"),
    [
        ([], lambda hutch: {"practice_id": new_id(), "asset_ids": [new_id()]}, "PracticeNotFoundError", None),
        ([], lambda hutch: {"asset_ids": [hutch.camera, new_id()], "name": " "}, "AssetNotFoundError", None),
        ([], without_family, "FamilyNotFoundError", None),
        ([], lambda hutch: {"name": " ", "window_starts_at": START}, "InvalidPlanNameError", "blank"),
        ([], lambda hutch: {"window_starts_at": START, "asset_ids": []}, "InvalidPlanWindowError", "half_window"),
        ([PRACTICE], lambda hutch: {"asset_ids": []}, "PlanAssetsRequiredError", "empty"),
        ([PRACTICE, METHOD, RETIRED], only_the_shutter, "PlanBoundPracticeDeprecatedError", "practice_deprecated"),
        ([METHOD, RETIRED], only_the_shutter, "PlanBoundMethodDeprecatedError", "method_deprecated"),
        ([RETIRED], only_the_shutter, "PlanAssetDecommissionedError", "asset_decommissioned"),
        ([], only_the_shutter, "PlanFamiliesNotSatisfiedError", "families_missing"),
        ([], with_no_image, "PlanAffordancesNotSatisfiedError", "affordances_missing"),
    ],
)
def test_a_definition_is_refused_at_the_first_gate_that_is_closed(
    hutch: PlanHutch, before: list[tuple[str, Command]], broken: Any, refusal: str, reason: str | None
) -> None:
    """Each case is broken at its own gate and, where it can be, at the next one."""
    for target, command in before:
        hutch.world.when(command, on=getattr(hutch, target))
    with expect_refusal(refusal, reason):
        hutch.define_plan(**broken(hutch))


def test_every_retired_asset_is_named(hutch: PlanHutch) -> None:
    for asset_id in (hutch.shutter, hutch.camera):
        hutch.world.when(DecommissionAsset(), on=asset_id)
    with expect_refusal("PlanAssetDecommissionedError") as caught:
        hutch.define_plan()
    assert caught.value.facts == {"asset_ids": sorted([str(hutch.shutter), str(hutch.camera)])}


def test_no_condition_and_no_lifecycle_but_the_last_keeps_an_asset_out(hutch: PlanHutch) -> None:
    hutch.world.when(EnterAssetMaintenance(), on=hutch.camera)
    hutch.world.when(FaultAsset(reason="no image"), on=hutch.camera)
    assert hutch.define_plan()


def test_the_families_of_the_practice_are_needed_too(hutch: PlanHutch) -> None:
    stage = family(hutch.world, "Stage")
    narrow = practice(hutch.world, hutch.method_id, family_ids=[stage, hutch.camera_family])
    with expect_refusal("PlanFamiliesNotSatisfiedError") as caught:
        hutch.define_plan(practice_id=narrow, asset_ids=[hutch.camera])
    assert caught.value.facts == {"missing_family_ids": sorted([str(stage), str(hutch.shutter_family)])}
    assert "families, which are needed: Shutter, Stage;" in caught.value.detail


def test_missing_affordances_are_named_in_order_and_add_up_whichever_family_contributes_them(hutch: PlanHutch) -> None:
    with_no_image(hutch)
    with expect_refusal("PlanAffordancesNotSatisfiedError") as caught:
        hutch.define_plan()
    assert caught.value.facts == {"missing_affordances": ["Homeable", "Rotatable"]}
    homing, turning = family(hutch.world, "Homing", None, "Homeable"), family(hutch.world, "Turning", None, "Rotatable")
    both = hutch.asset("Stage", homing, turning)
    assert hutch.define_plan(asset_ids=[*hutch.asset_ids, both])


def test_neither_parents_nor_parts_of_an_asset_count(hutch: PlanHutch) -> None:
    housed = part(hutch.world, hutch.shutter, name="Built-in camera", family_ids=[hutch.camera_family])
    for asset_ids in ([hutch.shutter], [housed]):
        with expect_refusal("PlanFamiliesNotSatisfiedError"):
            hutch.define_plan(asset_ids=asset_ids)


def test_nothing_that_changes_later_touches_a_plan(hutch: PlanHutch) -> None:
    plan_id = hutch.define_plan()
    before = hutch.plan(plan_id)
    hutch.world.when(RemoveAssetFamily(family_id=hutch.camera_family), on=hutch.camera)
    hutch.world.when(DecommissionAsset(), on=hutch.shutter)
    for command, id in (
        (DeprecatePractice(), hutch.practice_id),
        (DeprecateMethod(), hutch.method_id),
        (DeprecateCapability(), hutch.capability_id),
    ):
        hutch.world.when(command, on=id)
    assert hutch.plan(plan_id) == before
    hutch.world.when(VersionPlan(version_tag="2026-Q2"), on=plan_id)


def test_the_families_of_a_start_are_judged_by_the_same_rule(hutch: PlanHutch) -> None:
    needed = {hutch.shutter_family, hutch.camera_family}
    assets = [asset_of(hutch.world, id) for id in hutch.asset_ids]
    assert missing_families(needed, assets) == ()
    hutch.world.when(RemoveAssetFamily(family_id=hutch.camera_family), on=hutch.camera)
    assert missing_families(needed, [asset_of(hutch.world, id) for id in hutch.asset_ids]) == (hutch.camera_family,)
    assert missing_families(needed, []) == tuple(sorted(needed))


def test_a_deprecated_capability_still_takes_plans(hutch: PlanHutch) -> None:
    hutch.world.when(DeprecateCapability(), on=hutch.capability_id)
    assert hutch.define_plan()


def test_the_label_of_a_plan_can_be_given_again(hutch: PlanHutch) -> None:
    plan_id = hutch.define_plan()
    for _ in range(2):
        assert hutch.world.when(VersionPlan(version_tag=" 2026-Q2 "), on=plan_id) == [PlanVersioned(version_tag="2026-Q2")]
        plan = hutch.plan(plan_id)
        assert (plan.status, plan.version_tag, plan.versioned_at) == (VERSIONED, "2026-Q2", hutch.world.now)


@pytest.mark.parametrize("reason", [None, "shutter replaced; earlier runs stand"])
def test_a_deprecated_plan_stays_readable(hutch: PlanHutch, reason: str | None) -> None:
    plan_id = hutch.define_plan(**WINDOW)
    hutch.world.when(VersionPlan(version_tag="2026-Q2"), on=plan_id)
    assert hutch.world.when(DeprecatePlan(reason=reason), on=plan_id) == [PlanDeprecated(reason=reason)]
    plan = hutch.plan(plan_id)
    assert (plan.status, plan.deprecated_at, plan.version_tag) == (DEPRECATED, hutch.world.now, "2026-Q2")
    assert plan.window_starts_at is not None


@pytest.mark.parametrize(
    ("command", "refusal", "reason"),
    [
        (VersionPlan(version_tag=" "), "InvalidPlanVersionTagError", "blank"),
        (DeprecatePlan(reason=" "), "InvalidReasonError", "blank"),
        (ReschedulePlan(window_starts_at=START, window_ends_at=None), "InvalidPlanWindowError", "half_window"),
    ],
)
def test_the_state_is_judged_before_a_value(hutch: PlanHutch, command: Command, refusal: str, reason: str) -> None:
    plan_id = hutch.define_plan()
    with expect_refusal(refusal, reason):
        hutch.world.when(command, on=plan_id)
    hutch.world.when(DeprecatePlan(), on=plan_id)
    with expect_refusal(command.Cannot, "deprecated"):
        hutch.world.when(command, on=plan_id)


def test_default_parameters_are_merged_and_kept_as_a_whole(hutch: PlanHutch) -> None:
    plan_id = hutch.define_plan()
    patch_defaults(hutch, plan_id, dwell=0.1, repetitions=20, retract_position=4)
    assert patch_defaults(hutch, plan_id, dwell=0.2, retract_position=None) == [
        PlanDefaultParametersUpdated(default_parameters={"dwell": 0.2, "repetitions": 20}, parameters_schema_revision=0)
    ]
    plan = hutch.plan(plan_id)
    assert (plan.default_parameters, plan.parameters_schema_revision) == ({"dwell": 0.2, "repetitions": 20}, 0)


def test_a_patch_that_changes_nothing_is_no_event(hutch: PlanHutch) -> None:
    plan_id = hutch.define_plan()
    assert patch_defaults(hutch, plan_id) == []
    patch_defaults(hutch, plan_id, dwell=1, repetitions=20)
    hutch.world.when(UpdateMethodParametersSchema(parameters_schema=acquisition(maximum=5)), on=hutch.method_id)
    assert patch_defaults(hutch, plan_id, dwell=1.0, retract_position=None) == []
    assert hutch.plan(plan_id).parameters_schema_revision == 0


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"dwell": 2, "repetitions": 20}, "above_maximum"),
        ({"dwell": 0.1}, "missing_key"),
        ({"dwell": 0.1, "repetitions": 20, "speed": 3}, "undeclared_key"),
        ({"dwell": "long", "repetitions": 20}, "wrong_type"),
    ],
)
def test_default_parameters_stand_under_the_methods_schema(hutch: PlanHutch, values: dict[str, Any], reason: str) -> None:
    plan_id = hutch.define_plan()
    with expect_refusal("InvalidPlanDefaultParametersError", reason):
        patch_defaults(hutch, plan_id, **values)


def test_the_schema_that_holds_now_is_the_one_that_counts(hutch: PlanHutch) -> None:
    plan_id = hutch.define_plan()
    hutch.world.when(UpdateMethodParametersSchema(parameters_schema=acquisition(maximum=5)), on=hutch.method_id)
    patch_defaults(hutch, plan_id, dwell=4, repetitions=1)
    assert hutch.plan(plan_id).parameters_schema_revision == 1
    hutch.world.when(UpdateMethodParametersSchema(parameters_schema=None), on=hutch.method_id)
    with expect_refusal("InvalidPlanDefaultParametersError", "no_schema"):
        patch_defaults(hutch, plan_id, dwell=3)
    patch_defaults(hutch, plan_id, dwell=None, repetitions=None)
    plan = hutch.plan(plan_id)
    assert (plan.default_parameters, plan.parameters_schema_revision, plan.default_parameters_present) == ({}, 2, False)


def in_milliseconds(hutch: PlanHutch) -> None:
    """The dwell of capability and method counted in another unit from now on."""
    kept = {key: contract()[key] for key in ("required_affordances", "executor_shapes")}
    schema = acquisition(unit=MILLISECOND)
    widened = VersionCapability(version_tag="2", description=None, parameters_schema=schema, **kept)
    hutch.world.when(widened, on=hutch.capability_id)
    hutch.world.when(VersionMethod(version_tag="2", parameters_schema=schema), on=hutch.method_id)


@pytest.mark.parametrize("dwell", [10, 0.1])
def test_a_value_whose_unit_changed_must_be_set_again_before_anything_else(hutch: PlanHutch, dwell: float) -> None:
    plan_id = hutch.define_plan()
    patch_defaults(hutch, plan_id, dwell=0.1, repetitions=20)
    in_milliseconds(hutch)
    for values in ({"repetitions": 10}, {}):
        with expect_refusal("InvalidPlanDefaultParametersError", "unit_changed") as caught:
            patch_defaults(hutch, plan_id, **values)
        assert caught.value.facts == {"keys": ["dwell"]}
    assert patch_defaults(hutch, plan_id, dwell=dwell) == [
        PlanDefaultParametersUpdated(default_parameters={"dwell": dwell, "repetitions": 20}, parameters_schema_revision=1)
    ]
    patch_defaults(hutch, plan_id, repetitions=10)


def test_a_listed_plan_shows_whether_it_has_default_parameters_and_who_plays_what(hutch: PlanHutch) -> None:
    hutch.role()
    plan_id = hutch.define_plan()
    patch_defaults(hutch, plan_id, dwell=0.1, repetitions=20)
    hutch.bind(plan_id, hutch.camera)
    row = PlanSummary.of(hutch.plan(plan_id))
    assert (row.plan_id, row.default_parameters_present) == (plan_id, True)
    assert [(one.role_name, one.asset_id) for one in row.role_bindings] == [("detector", hutch.camera)]
