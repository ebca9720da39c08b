"""A plan from devices and steps: one command makes everything that a launch needs, or nothing."""

from typing import Any
from uuid import UUID

import pytest

from baton.domain.equipment.asset import Asset, AssetLifecycle
from baton.domain.equipment.asset_tree import RegisterAsset
from baton.domain.facility.facility import RegisterFacility
from baton.domain.recipe.plan import Plan
from baton.domain.recipe.plan_setup import SetUpPlan
from baton.domain.recipe.recipe import Recipe
from tests.support.domain.world import World, expect_refusal
from tests.support.workflows.step_json import capture, setpoint

STEPS = (setpoint("bl7:turn", 90.0), capture("bl7:look:mean", "mean"))
DEVICES = ({"name": "Turntable", "address": "bl7:turn"}, {"name": "Camera", "address": "bl7:look"})
SITE = "beta-source"


def set_up(**fields: Any) -> SetUpPlan:
    return SetUpPlan.model_validate({"name": "Turn and look", "devices": DEVICES, "steps": STEPS, **fields})


@pytest.fixture
def site(world: World) -> World:
    """A world whose deployment serves a facility."""
    world.create(RegisterFacility(code=SITE, display_name="Beta Source", kind="Site"))
    world.ports["deployment"].self_facility_code = SITE
    return world


def test_one_command_makes_devices_and_all_that_a_plan_rests_on(site: World) -> None:
    plan_id = site.create(set_up())
    made = site.answer
    assert made["plan_id"] == str(plan_id)
    plan: Plan = site.state(Plan, plan_id)
    assert sorted(map(str, plan.asset_ids)) == sorted(made["asset_ids"])
    turntable: Asset = site.state(Asset, UUID(made["asset_ids"][0]))
    assert (turntable.name, turntable.lifecycle) == ("Turntable", AssetLifecycle.ACTIVE)
    assert [one.value for one in turntable.alternate_identifiers] == ["bl7:turn"]
    recipe: Recipe = site.state(Recipe, UUID(made["recipe_id"]))
    assert (recipe.capability_id, recipe.step_count) == (UUID(made["capability_id"]), 2)


def test_a_device_that_is_registered_is_taken_as_it_is(site: World) -> None:
    known = site.create(RegisterAsset(name="Hexapod", tier="Unit", facility_code=SITE))
    plan_id = site.create(set_up(devices=({"asset_id": known}, DEVICES[1])))
    assert known in site.state(Plan, plan_id).asset_ids
    assert site.state(Asset, known).lifecycle is AssetLifecycle.COMMISSIONED


def test_nothing_is_made_where_a_part_is_refused(site: World) -> None:
    before = set(site.streams)
    with expect_refusal("EmptyRecipeStepsError"):
        site.create(set_up(steps=()))
    assert set(site.streams) == before
    site.create(set_up())
    with expect_refusal("CapabilityCodeAlreadyExistsError"):
        site.create(set_up())


@pytest.mark.parametrize("device", [{}, {"name": "Turntable"}, {"address": "bl7:turn"}])
def test_a_device_is_registered_or_new(device: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="give asset_id, or name and address"):
        set_up(devices=(device,))


def test_it_takes_the_permissions_of_all_that_it_makes() -> None:
    assert {"SetUpPlan", "RegisterAsset", "DefineRecipe", "DefinePlan"} <= set(set_up().needs().given)
