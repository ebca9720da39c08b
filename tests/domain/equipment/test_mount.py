"""Mounts: slot codes, placements, and one asset in one slot at most."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from baton.domain.equipment.asset import (
    ActivateAsset,
    Asset,
    AssetAttachedToFixture,
    AssetDetachedFromFixture,
    EnterAssetMaintenance,
)
from baton.domain.equipment.asset_tree import DecommissionAsset, RegisterAsset
from baton.domain.equipment.frame import DecommissionFrame, RegisterFrame
from baton.domain.equipment.mount import (
    DecommissionMount,
    InstallAsset,
    Mount,
    MountAssetInstalled,
    MountAssetUninstalled,
    MountDecommissioned,
    MountPlacementUpdated,
    RegisterMount,
    UninstallAsset,
    UpdateMountPlacement,
)
from baton.domain.facility.facility import RegisterFacility
from baton.domain.shared.refusals import Refusal
from tests.domain.equipment.test_placement import form
from tests.support.domain.world import World, expect_refusal, new_id

SAMPLE, DETECTOR = "B-SAMPLE-01", "B-DETECTOR-01"


@pytest.fixture
def world() -> World:
    return beamline()


def beamline() -> World:
    world = World()
    world.create(RegisterFacility(code="lumen", display_name="Lumen Light Source", kind="Site"))
    return world


def frame(world: World) -> UUID:
    return world.create(RegisterFrame(name="centerline"))


def slot(world: World, slot_code: str = SAMPLE, **fields: Any) -> UUID:
    placement = fields.pop("placement", None) or form(parent_frame_id=frame(world))
    return world.create(RegisterMount(slot_code=slot_code, placement=placement, **fields))


def stage(world: World, *, activated: bool = True) -> UUID:
    asset = world.create(RegisterAsset(name="Rotary", tier="Device", facility_code="lumen"))
    if activated:
        world.when(ActivateAsset(), on=asset)
    return asset


def test_a_slot_is_provisioned_before_its_asset(world: World) -> None:
    drawing = {"system": "EDMS", "number": " D-17 "}
    mount = world.state(Mount, slot(world, drawing=drawing))
    assert (mount.slot_code, mount.installed_asset_id) == (SAMPLE, None)
    assert (mount.drawing.number, mount.drawing.revision) == ("D-17", None)


def test_parent_and_frame_of_a_slot_must_exist_parent_first(world: World) -> None:
    nowhere = form(parent_frame_id=new_id())
    with expect_refusal("MountNotFoundError"):
        slot(world, parent_id=new_id(), placement=nowhere)
    with expect_refusal("FrameNotFoundError"):
        slot(world, placement=nowhere)


def test_texts_and_numbers_of_a_slot_are_judged(world: World) -> None:
    with expect_refusal("InvalidSlotCodeError"):
        slot(world, " ")
    with expect_refusal("InvalidDrawingError"):
        slot(world, drawing={"system": "ICMS", "number": " "})
    with expect_refusal("InvalidPlacementError", "negative"):
        slot(world, placement=form(parent_frame_id=frame(world), tol_rz=-1))


def test_a_slot_code_is_unique_until_its_mount_is_retired(world: World) -> None:
    first = slot(world)
    with expect_refusal("MountAlreadyExistsError"):
        slot(world, f" {SAMPLE} ")
    world.when(DecommissionMount(reason="moved"), on=first)
    assert slot(world) != first


def test_no_slot_is_provisioned_under_something_retired(world: World) -> None:
    parent = slot(world, DETECTOR)
    world.when(DecommissionMount(reason="moved"), on=parent)
    with expect_refusal("MountCannotRegisterError", "parent_decommissioned"):
        slot(world, parent_id=parent)
    retired = frame(world)
    world.when(DecommissionFrame(reason="rebuilt"), on=retired)
    with expect_refusal("MountCannotRegisterError", "frame_decommissioned"):
        slot(world, placement=form(parent_frame_id=retired))


def test_a_survey_moves_a_slot_within_its_frame(world: World) -> None:
    centerline = frame(world)
    mount = slot(world, placement=form(parent_frame_id=centerline))
    moved = UpdateMountPlacement(placement=form(parent_frame_id=centerline, x=1), survey={"instrument": "tracker"})
    [event] = world.when(moved, on=mount)
    assert isinstance(event, MountPlacementUpdated)
    assert world.state(Mount, mount).placement.x == 1
    assert world.when(moved, on=mount) == []


def test_a_slot_keeps_its_frame(world: World) -> None:
    mount = slot(world)
    elsewhere = UpdateMountPlacement(placement=form(parent_frame_id=frame(world)))
    with expect_refusal("MountCannotUpdatePlacementError", "other_frame"):
        world.when(elsewhere, on=mount)
    world.when(DecommissionMount(reason="moved"), on=mount)
    with expect_refusal("MountCannotUpdatePlacementError", "decommissioned"):
        world.when(elsewhere, on=mount)


def test_an_active_asset_goes_into_an_empty_slot(world: World) -> None:
    mount, asset = slot(world), stage(world)
    assert world.when(InstallAsset(asset_id=asset), on=mount) == [MountAssetInstalled(asset_id=asset)]
    assert world.state(Mount, mount).installed_asset_id == asset
    assert world.claims["asset-installed", str(asset)] == mount


def test_an_asset_that_is_in_its_slot_already_is_no_event(world: World) -> None:
    mount, asset = slot(world), stage(world)
    world.when(InstallAsset(asset_id=asset), on=mount)
    world.when(EnterAssetMaintenance(), on=asset)
    assert world.when(InstallAsset(asset_id=asset), on=mount) == []


def test_an_occupied_slot_evicts_nothing(world: World) -> None:
    mount, first, second = slot(world), stage(world), stage(world)
    world.when(InstallAsset(asset_id=first), on=mount)
    with expect_refusal("MountCannotInstallAssetError", "occupied") as caught:
        world.when(InstallAsset(asset_id=second), on=mount)
    assert caught.value.facts == {"installed_asset_id": str(first)}


def test_only_active_assets_are_installed(world: World) -> None:
    mount = slot(world)
    with expect_refusal("AssetNotFoundError"):
        world.when(InstallAsset(asset_id=new_id()), on=mount)
    asset = stage(world, activated=False)
    with expect_refusal("MountCannotInstallAssetError", "asset_not_active"):
        world.when(InstallAsset(asset_id=asset), on=mount)
    world.when(ActivateAsset(), on=asset)
    world.when(EnterAssetMaintenance(), on=asset)
    with expect_refusal("MountCannotInstallAssetError", "asset_not_active"):
        world.when(InstallAsset(asset_id=asset), on=mount)


def test_an_asset_is_in_one_slot_at_most(world: World) -> None:
    here, there, asset = slot(world), slot(world, DETECTOR), stage(world)
    world.when(InstallAsset(asset_id=asset), on=here)
    with expect_refusal("MountCannotInstallAssetError", "asset_installed_elsewhere") as caught:
        world.when(InstallAsset(asset_id=asset), on=there)
    assert caught.value.facts == {"mount_id": str(here)}


def test_two_installations_racing_for_one_asset_are_settled_by_the_claim(world: World) -> None:
    there, asset = slot(world, DETECTOR), stage(world)
    command = InstallAsset(asset_id=asset)
    [_, claim] = command.decide(world.state(Mount, there), None, (world.state(Asset, asset), None))
    assert (claim.kind, claim.key) == ("asset-installed", str(asset))
    assert claim.rival.code == "MountCannotInstallAssetError"
    assert claim.rival.reason == "asset_installed_elsewhere"


def test_installing_and_retiring_an_asset_exclude_each_other() -> None:
    assert InstallAsset.operation.lock == DecommissionAsset.operation.lock is not None


def test_an_uninstalled_asset_is_free_for_another_slot(world: World) -> None:
    here, there, asset = slot(world), slot(world, DETECTOR), stage(world)
    with expect_refusal("MountCannotUninstallAssetError", "empty"):
        world.when(UninstallAsset(reason="realignment"), on=here)
    world.when(InstallAsset(asset_id=asset), on=here)
    events = world.when(UninstallAsset(reason=" realignment "), on=here)
    assert events == [MountAssetUninstalled(asset_id=asset, reason="realignment")]
    world.when(InstallAsset(asset_id=asset), on=there)
    assert world.state(Mount, there).installed_asset_id == asset


def test_an_asset_bound_into_a_fixture_stays_in_its_slot(world: World) -> None:
    mount, asset, fixture = slot(world), stage(world), new_id()
    world.when(InstallAsset(asset_id=asset), on=mount)
    world.given(asset, AssetAttachedToFixture(fixture_id=fixture))
    with expect_refusal("MountCannotUninstallAssetError", "asset_fixture_bound") as caught:
        world.when(UninstallAsset(reason="realignment"), on=mount)
    assert caught.value.facts == {"asset_id": str(asset), "fixture_id": str(fixture)}
    world.given(asset, AssetDetachedFromFixture(fixture_id=fixture))
    world.when(UninstallAsset(reason="realignment"), on=mount)


def test_a_slot_is_retired_empty_and_without_slots_under_it(world: World) -> None:
    parent, asset = slot(world), stage(world)
    child = slot(world, DETECTOR, parent_id=parent)
    world.when(InstallAsset(asset_id=asset), on=parent)
    with expect_refusal("MountCannotDecommissionError", "asset_installed"):
        world.when(DecommissionMount(reason="moved"), on=parent)
    world.when(UninstallAsset(reason="moved"), on=parent)
    with expect_refusal("MountCannotDecommissionError", "active_children") as caught:
        world.when(DecommissionMount(reason="moved"), on=parent)
    assert caught.value.facts == {"mount_ids": [str(child)]}
    world.when(DecommissionMount(reason="moved"), on=child)
    world.when(DecommissionMount(reason="moved"), on=parent)


def test_children_are_judged_by_streams_and_not_by_the_look_up_alone(world: World) -> None:
    parent = slot(world)
    child = slot(world, DETECTOR, parent_id=parent)
    world.given(child, MountDecommissioned(reason="moved"))
    assert world.members["mount-child", str(parent)] == {child}
    world.when(DecommissionMount(reason="moved"), on=parent)


def test_a_reason_is_needed_to_take_something_away(world: World) -> None:
    mount = slot(world)
    for command in (UninstallAsset(reason="  "), DecommissionMount(reason="  ")):
        with expect_refusal("InvalidReasonError"):
            world.when(command, on=mount)


class Installations(RuleBasedStateMachine):
    """Whatever is installed and uninstalled in whatever order: an asset is in one slot at most, and the claims say where."""

    @initialize()
    def provision(self) -> None:
        self.world = beamline()
        placement = form(parent_frame_id=frame(self.world))
        self.mounts = [slot(self.world, f"B-{number}", placement=placement) for number in range(3)]
        self.assets = [stage(self.world) for _ in range(3)]

    @rule(mount=st.integers(0, 2), asset=st.integers(0, 2))
    def install(self, mount: int, asset: int) -> None:
        self.attempt(InstallAsset(asset_id=self.assets[asset]), self.mounts[mount])

    @rule(mount=st.integers(0, 2))
    def uninstall(self, mount: int) -> None:
        self.attempt(UninstallAsset(reason="shuffle"), self.mounts[mount])

    @rule(mount=st.integers(0, 2))
    def decommission(self, mount: int) -> None:
        self.attempt(DecommissionMount(reason="shuffle"), self.mounts[mount])

    def attempt(self, command: Any, mount: UUID) -> None:
        before = dict(self.world.claims)
        try:
            self.world.when(command, on=mount)
        except Refusal:
            assert self.world.claims == before

    @invariant()
    def every_asset_is_in_one_slot_at_most(self) -> None:
        installed = {id: self.world.state(Mount, id).installed_asset_id for id in getattr(self, "mounts", ())}
        occupied = {asset: mount for mount, asset in installed.items() if asset is not None}
        assert len(occupied) == sum(asset is not None for asset in installed.values())
        if installed:
            claims = {key: mount for (kind, key), mount in self.world.claims.items() if kind == "asset-installed"}
            assert claims == {str(asset): mount for asset, mount in occupied.items()}


TestInstallations = Installations.TestCase
TestInstallations.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
