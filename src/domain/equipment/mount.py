"""A mount: a named slot provisioned ahead of the asset in it. It alone knows what is where; the asset holds no copy."""

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.equipment.asset import ASSETS, Asset, AssetLifecycle
from baton.domain.equipment.frame import CONSUMERS, FRAMES, Frame, FrameStatus, Placement, Survey, check_measured
from baton.domain.equipment.values import Drawing
from baton.domain.kernel import Aggregate, Call, Event, JudgedCreation, JudgedVerb, Outcome, State, Verb, copy_with
from baton.domain.shared.listing import ListQuery, Summary
from baton.domain.shared.reads import Reads, find, find_all, holder_of, members_of, require, require_if_given
from baton.domain.shared.refusals import Invalid, Refusal
from baton.domain.shared.text import FreeText, Reason, Text
from baton.domain.shared.writes import Claim, Delist, Enlist, Release

SLOT_CODES = "mount-slot-code"  # Claim kind: the slot codes of Active mounts.
INSTALLED = "asset-installed"  # Claim kind: the assets that are in a mount, each held by that mount.
CHILDREN = "mount-child"  # Look-up kind: the mounts under one mount.


class MountStatus(StrEnum):
    ACTIVE = "Active"
    DECOMMISSIONED = "Decommissioned"


ACTIVE, DECOMMISSIONED = MountStatus


@dataclass(frozen=True, kw_only=True)
class Mount(State):
    """A mount is a named slot, provisioned ahead of the asset that goes into it."""

    slot_code: str
    parent_id: UUID | None
    placement: Placement
    drawing: Drawing | None
    survey: Survey | None = None
    installed_asset_id: UUID | None = None
    status: MountStatus = ACTIVE


mount = Aggregate(Mount, "/mounts", context="equipment")


class MountRegistered(Event, of=mount):
    """The slot was provisioned."""

    slot_code: str
    parent_id: UUID | None
    placement: Placement
    drawing: Drawing | None


class MountPlacementUpdated(Event, of=mount):
    """The place of the mount in its frame was corrected."""

    placement: Placement
    survey: Survey | None


class MountAssetInstalled(Event, of=mount):
    """An asset was put into the slot."""

    asset_id: UUID


class MountAssetUninstalled(Event, of=mount):
    """The asset was taken out of the slot."""

    asset_id: UUID
    reason: FreeText


class MountDecommissioned(Event, of=mount, leads_to=DECOMMISSIONED):
    """The slot was retired for good, and its code is free again."""

    reason: FreeText


@mount.evolve
def evolve(mount: Mount, event: MountPlacementUpdated | MountAssetInstalled | MountAssetUninstalled) -> Mount:
    match event:
        case MountPlacementUpdated():
            return copy_with(mount, **dict(event))
        case MountAssetInstalled():
            return copy_with(mount, installed_asset_id=event.asset_id)
        case MountAssetUninstalled():
            return copy_with(mount, installed_asset_id=None)
        case _:
            assert_never(event)


class InvalidSlotCodeError(Invalid, context="equipment"):
    """A mount needs a slot code that is not blank."""


@mount.creation(refuses=[mount.NotFound], lock=FRAMES)
class RegisterMount(JudgedCreation[tuple[Mount | None, Frame]]):
    """Provision a slot for an asset, placed in a frame."""

    slot_code: Annotated[str, Text(200, InvalidSlotCodeError, "slot code")]
    parent_id: UUID | None = None
    """The mount that this one stands on."""
    placement: Placement
    drawing: Drawing | None = None

    def gather(self, call: Call) -> Reads[tuple[Mount | None, Frame]]:
        parent = yield from require_if_given(Mount, self.parent_id)
        return parent, (yield from require(Frame, self.placement.parent_frame_id))

    def decide(self, call: Call, facts: tuple[Mount | None, Frame]) -> Outcome:
        parent, frame = facts
        check_measured(self.placement)
        if parent is not None and parent.status is DECOMMISSIONED:
            raise self.cannot("parent_decommissioned", "The parent mount is Decommissioned; name an Active one or none.")
        if frame.status is FrameStatus.DECOMMISSIONED:
            raise self.cannot("frame_decommissioned", "The frame is Decommissioned; place the mount in an Active one.")
        detail = f"An Active mount has the slot code {self.slot_code} already; choose another or decommission that mount."
        taken = mount.AlreadyExists(detail, reason="slot_code_taken", facts={"slot_code": self.slot_code})
        return [
            MountRegistered(**dict(self)),
            Claim(SLOT_CODES, slot_key(self.slot_code), rival=taken),
            Enlist(CONSUMERS, str(frame.id)),
            *([] if parent is None else [Enlist(CHILDREN, str(parent.id))]),
        ]


def slot_key(slot_code: str) -> str:
    """Return the key under which two slot codes count as the same; case is kept."""
    return unicodedata.normalize("NFC", slot_code)


@mount.command(patch="/{mount_id}/placement", allowed=[ACTIVE])
class UpdateMountPlacement(Verb[Mount]):
    """Correct where a mount sits in its frame, for instance after a survey."""

    placement: Placement
    survey: Survey | None = None

    def decide(self, mount: Mount, call: Call) -> Outcome:
        check_measured(self.placement, self.survey)
        frame_id = mount.placement.parent_frame_id
        if self.placement.parent_frame_id != frame_id:
            detail = "A mount keeps its frame; name that one, or register a new mount."
            raise self.cannot("other_frame", detail, frame_id=frame_id)
        if self.placement == mount.placement and self.survey in (None, mount.survey):
            return []
        return [MountPlacementUpdated(placement=self.placement, survey=self.survey)]


@mount.command(post="/{mount_id}/install", allowed=[ACTIVE], reasons=["asset_installed_elsewhere"], lock=ASSETS)
class InstallAsset(JudgedVerb[Mount, tuple[Asset, UUID | None]]):
    """Put an Active asset into an empty slot; an asset is in one slot at most."""

    asset_id: UUID

    def gather(self, mount: Mount, call: Call) -> Reads[tuple[Asset, UUID | None]]:
        asset = yield from require(Asset, self.asset_id)
        return asset, (yield from holder_of(INSTALLED, str(self.asset_id)))

    def decide(self, mount: Mount, call: Call, facts: tuple[Asset, UUID | None]) -> Outcome:
        asset, holder_id = facts
        installed_id = mount.installed_asset_id
        if installed_id == asset.id:
            return []
        if installed_id is not None:
            detail = "Another asset is in this slot; uninstall it first."
            raise self.cannot("occupied", detail, installed_asset_id=installed_id)
        if asset.lifecycle is not AssetLifecycle.ACTIVE:
            detail = f"The asset is {asset.lifecycle.value}; only Active assets are installed."
            raise self.cannot("asset_not_active", detail, lifecycle=asset.lifecycle)
        if holder_id is not None:
            raise self.elsewhere_refusal(mount_id=holder_id)
        return [MountAssetInstalled(asset_id=asset.id), Claim(INSTALLED, str(asset.id), rival=self.elsewhere_refusal())]

    def elsewhere_refusal(self, **facts: UUID) -> Refusal:
        """Return the refusal of an asset that is in another slot."""
        detail = "The asset is installed in another mount; uninstall it there first."
        return self.cannot("asset_installed_elsewhere", detail, **facts)


@mount.command(post="/{mount_id}/uninstall", allowed=[ACTIVE], lock=ASSETS, destructive=True)
class UninstallAsset(JudgedVerb[Mount, Asset | None]):
    """Take the asset out of its slot."""

    reason: Reason

    def gather(self, mount: Mount, call: Call) -> Reads[Asset | None]:
        return (yield from find(Asset, mount.installed_asset_id))

    def decide(self, mount: Mount, call: Call, asset: Asset | None) -> Outcome:
        if mount.installed_asset_id is None or asset is None:
            raise self.cannot("empty", "No asset is in this slot; nothing to uninstall.")
        if asset.fixture_id is not None:
            detail = "The asset is attached to a fixture; detach it first."
            raise self.cannot("asset_fixture_bound", detail, asset_id=asset.id, fixture_id=asset.fixture_id)
        return [MountAssetUninstalled(asset_id=asset.id, reason=self.reason), Release(INSTALLED, str(asset.id))]


@mount.command(
    post="/{mount_id}/decommission", allowed=[ACTIVE], state_reason="already_decommissioned", lock=FRAMES, destructive=True
)
class DecommissionMount(JudgedVerb[Mount, list[UUID]]):
    """Retire an empty slot without slots under it; its code is free again."""

    reason: Reason

    def gather(self, mount: Mount, call: Call) -> Reads[list[UUID]]:
        children = yield from find_all(Mount, (yield from members_of(CHILDREN, mount.id)))
        return sorted(id for id, child in children.items() if child.status is ACTIVE)

    def decide(self, mount: Mount, call: Call, children: list[UUID]) -> Outcome:
        if mount.installed_asset_id is not None:
            detail = "An asset is in this slot; uninstall it first."
            raise self.cannot("asset_installed", detail, installed_asset_id=mount.installed_asset_id)
        if children:
            detail = "Active mounts are under this one; decommission them first."
            raise self.cannot("active_children", detail, mount_ids=children)
        return [
            MountDecommissioned(reason=self.reason),
            Release(SLOT_CODES, slot_key(mount.slot_code)),
            Delist(CONSUMERS, str(mount.placement.parent_frame_id)),
            *([] if mount.parent_id is None else [Delist(CHILDREN, str(mount.parent_id))]),
        ]


GetMount = mount.get()


class MountSummary(Summary):
    mount_id: UUID
    slot_code: str
    parent_id: UUID | None
    placement: Placement
    drawing: Drawing | None
    installed_asset_id: UUID | None
    status: MountStatus
    created_at: datetime


@mount.listing(MountSummary)
class ListMounts(ListQuery[MountSummary]):
    """Mounts in order of registration."""

    parent_id: UUID | None = None
    status: MountStatus | None = None
    slot_code: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    installed_asset_id: UUID | None = None
