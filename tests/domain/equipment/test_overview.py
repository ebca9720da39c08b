"""What people watch at a beamline: said once of its root, and nothing of a part."""

from uuid import UUID

import pytest

from baton.domain.equipment.asset import AssetOverviewSet
from baton.domain.equipment.asset_tree import RegisterAsset
from baton.domain.equipment.overview import SetAssetOverview
from baton.domain.equipment.values import OverviewSignal
from tests.support.domain.assets import asset_of, facility_world, root
from tests.support.domain.world import World, expect_refusal

ROTATION = OverviewSignal(name="Rotation", address="bl7:rot")


@pytest.fixture
def world() -> World:
    return facility_world()


@pytest.fixture
def beamline(world: World) -> UUID:
    return root(world)


def test_what_is_watched_is_said_anew_and_the_same_again_records_nothing(world: World, beamline: UUID) -> None:
    wanted = SetAssetOverview(signals=(ROTATION,), camera="bl7:cam1")
    assert world.when(wanted, on=beamline) == [AssetOverviewSet(signals=(ROTATION,), camera="bl7:cam1")]
    assert world.when(wanted, on=beamline) == []
    world.when(SetAssetOverview(), on=beamline)
    assert (asset_of(world, beamline).overview.signals, asset_of(world, beamline).overview.camera) == ((), None)


def test_two_signals_of_one_name_are_refused(world: World, beamline: UUID) -> None:
    twice = (ROTATION, OverviewSignal(name="Rotation", address="bl7:x"))
    with expect_refusal("InvalidAssetOverviewError", "duplicate"):
        world.when(SetAssetOverview(signals=twice), on=beamline)


def test_it_is_said_of_the_root_of_a_beamline(world: World, beamline: UUID) -> None:
    part = world.create(RegisterAsset(name="Stage", tier="Device", parent_id=beamline))
    with expect_refusal("NotABeamlineError", "not_a_root"):
        world.when(SetAssetOverview(signals=(ROTATION,)), on=part)
