"""What a plan says about the files of its runs, and what it may not say."""

from uuid import UUID

import pytest

from baton.domain.equipment.asset_parts import AddAssetFamily
from baton.domain.recipe.plan import DataRegistration, Plan, PlanDataRegistrationSet
from baton.domain.recipe.plan_data import SetPlanDataRegistration
from baton.domain.supply.supply import RegisterSupply
from tests.support.domain.assets import family
from tests.support.domain.plans import PlanHutch, imaging_hutch
from tests.support.domain.world import World, expect_refusal, new_id


@pytest.fixture
def hutch() -> PlanHutch:
    hutch = imaging_hutch(World())
    hutch.world.when(AddAssetFamily(family_id=family(hutch.world, "Detector", None, "Capturing")), on=hutch.camera)
    return hutch


def supply(hutch: PlanHutch, kind: str = "Storage") -> UUID:
    return hutch.world.create(RegisterSupply(name="Disk", kind=kind, facility_code="lumen"))


def set_registration(hutch: PlanHutch, plan_id: UUID, registration: DataRegistration | None) -> list[object]:
    return [*hutch.world.when(SetPlanDataRegistration(data_registration=registration), on=plan_id)]


def test_it_is_said_changed_and_taken_back(hutch: PlanHutch) -> None:
    plan_id = hutch.define_plan()
    first = DataRegistration(supply_id=supply(hutch), capturing_asset_id=hutch.camera, raw_outputs=frozenset({"scan"}))
    assert set_registration(hutch, plan_id, first) == [PlanDataRegistrationSet(data_registration=first)]
    assert set_registration(hutch, plan_id, first) == [], "it is said already"
    assert set_registration(hutch, plan_id, None) == [PlanDataRegistrationSet(data_registration=None)]
    assert hutch.world.state(Plan, plan_id).data_registration is None


def test_files_are_kept_on_a_storage_supply_that_there_is(hutch: PlanHutch) -> None:
    plan_id = hutch.define_plan()
    with expect_refusal("SupplyNotFoundError"):
        set_registration(hutch, plan_id, DataRegistration(supply_id=new_id()))
    with expect_refusal("PlanDataSupplyNotStorageError", "not_storage"):
        set_registration(hutch, plan_id, DataRegistration(supply_id=supply(hutch, "photon_beam")))


def test_raw_data_is_captured_by_an_asset_of_the_plan_that_captures(hutch: PlanHutch) -> None:
    plan_id, disk = hutch.define_plan(), supply(hutch)
    with expect_refusal("AssetNotFoundError"):
        set_registration(hutch, plan_id, DataRegistration(supply_id=disk, capturing_asset_id=new_id()))
    with expect_refusal("PlanDataAssetNotBoundError", "asset_not_bound"):
        set_registration(hutch, plan_id, DataRegistration(supply_id=disk, capturing_asset_id=hutch.beamline))
    with expect_refusal("PlanDataAssetNotCapturingError", "not_capturing"):
        set_registration(hutch, plan_id, DataRegistration(supply_id=disk, capturing_asset_id=hutch.shutter))
