"""A frame: a named coordinate frame in the tree of placements, such as the beam centerline or a bench.
A placement is where a thing sits in its parent frame, within which tolerances; a survey is how that was measured."""

import math
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from pydantic import ConfigDict, Field, Strict

from baton.domain.kernel import Aggregate, Call, Event, JudgedCreation, JudgedVerb, Outcome, State, Value, Verb, copy_with
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.reads import Reads, find_all, members_of, require, require_if_given
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import FreeText, Reason, Text
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Delist, Enlist

FRAMES = "frame-tree"  # Lock: held where a thing comes to stand on a frame or one is retired; nothing slips under it.
CONSUMERS = "frame-consumer"  # Look-up kind: the mounts and child frames placed in one frame.


class ReferenceSurface(StrEnum):
    """The part of the thing that the placement locates."""

    THERMAL_FACE = "ThermalFace"
    OPTIC_CENTER = "OpticCenter"
    SHIELDING_FACE = "ShieldingFace"
    MOUNTING_FACE = "MountingFace"


class InvalidPlacementError(Invalid, context="equipment"):
    """Placements and surveys have finite numbers, no negative tolerance or residual, and no blank instrument."""


Length = Annotated[float, Strict(), Field(json_schema_extra={"unit": {"system": "udunits", "code": "mm"}})]
Angle = Annotated[float, Strict(), Field(json_schema_extra={"unit": {"system": "udunits", "code": "rad"}})]


class Placement(Value):
    """A pose in the parent frame; tolerances are symmetric, 0 means exact."""

    model_config = ConfigDict(allow_inf_nan=True)
    x: Length
    y: Length
    z: Length
    rx: Angle
    ry: Angle
    rz: Angle
    tol_x: Length
    tol_y: Length
    tol_z: Length
    tol_rx: Angle
    tol_ry: Angle
    tol_rz: Angle
    parent_frame_id: UUID
    reference_surface: ReferenceSurface


class Survey(Value):
    """How a placement was measured; it names the instrument, never a person."""

    model_config = ConfigDict(allow_inf_nan=True)
    instrument: Annotated[str, Text(200, InvalidPlacementError, "instrument")] | None = None
    surveyed_at: Instant | None = None
    residual: Length | None = None


def check_measured(*measured: Placement | Survey | None) -> None:
    """Refuse numbers that are not finite, and tolerances or residuals below zero."""
    for values in measured:
        for name, value in values or ():
            if not isinstance(value, float):
                continue
            if not math.isfinite(value):
                detail = f"{name} is not a finite number; give a finite one."
                raise InvalidPlacementError(detail, reason="not_finite", facts={"field": name})
            if value < 0 and name.startswith(("tol_", "residual")):
                raise InvalidPlacementError(f"{name} is negative; give 0 or more.", reason="negative", facts={"field": name})


class FrameStatus(StrEnum):
    ACTIVE = "Active"
    DECOMMISSIONED = "Decommissioned"


ACTIVE, DECOMMISSIONED = FrameStatus


class Supersession(Value):
    """The frame a new one replaces, and where the new one sits in it."""

    predecessor_frame_id: UUID
    transform: Placement


@dataclass(frozen=True, kw_only=True)
class Frame(State):
    """A frame is a named coordinate frame in the tree of placements."""

    name: str
    parent_id: UUID | None
    placement: Placement | None
    supersedes: Supersession | None
    survey: Survey | None = None
    status: FrameStatus = ACTIVE


frame = Aggregate(Frame, "/frames", context="equipment")


class FrameRegistered(Event, of=frame):
    """The frame was registered, as a root or placed in a parent frame."""

    name: str
    parent_id: UUID | None
    placement: Placement | None
    supersedes: Supersession | None


class FramePlacementUpdated(Event, of=frame):
    """The place of the frame in its parent was corrected."""

    placement: Placement
    survey: Survey | None


class FrameDecommissioned(Event, of=frame, leads_to=DECOMMISSIONED):
    """The frame was retired for good."""

    reason: FreeText


@frame.evolve
def evolve(frame: Frame, event: FramePlacementUpdated) -> Frame:
    return copy_with(frame, **dict(event))


class InvalidFramePlacementError(Invalid, context="equipment"):
    """A root frame has no placement, every other frame one in its parent; a transform is placed in the predecessor."""


@frame.creation(lock=FRAMES)
class RegisterFrame(JudgedCreation[Frame | None]):
    """Register a root frame, or one placed in a parent frame."""

    name: Annotated[str, frame.text("name", 200)]
    parent_id: UUID | None = None
    """The frame that this one is placed in; none for a root."""
    placement: Placement | None = None
    supersedes: Supersession | None = None

    def gather(self, call: Call) -> Reads[Frame | None]:
        parent = yield from require_if_given(Frame, self.parent_id)
        if self.supersedes is not None:
            yield from require(Frame, self.supersedes.predecessor_frame_id)
        return parent

    def decide(self, call: Call, parent: Frame | None) -> Outcome:
        self.check_placement()
        if parent is None:
            return [FrameRegistered(**dict(self))]
        if parent.status is DECOMMISSIONED:
            raise self.cannot("parent_decommissioned", "The parent frame is Decommissioned; name an Active one.")
        return [FrameRegistered(**dict(self)), Enlist(CONSUMERS, str(parent.id))]

    def check_placement(self) -> None:
        """Refuse a placement that does not fit the frame's place in the tree, or whose numbers are no measures."""
        if self.parent_id is None and self.placement is not None:
            raise misfit("root_with_placement", "A root frame has no placement; name a parent or leave the placement out.")
        if self.parent_id is not None and self.placement is None:
            raise misfit("child_without_placement", "A frame with a parent needs a placement in it; give one.")
        if self.placement is not None and self.placement.parent_frame_id != self.parent_id:
            detail = "The placement is in another frame than the parent; name the parent in both."
            raise misfit("parent_mismatch", detail)
        check_measured(self.placement)
        if self.supersedes is not None:
            if self.supersedes.transform.parent_frame_id != self.supersedes.predecessor_frame_id:
                detail = "The transform is in another frame than the predecessor; name the predecessor in both."
                raise misfit("predecessor_mismatch", detail)
            check_measured(self.supersedes.transform)


def misfit(reason: str, detail: str, **facts: object) -> InvalidFramePlacementError:
    """Return the refusal of a placement."""
    return InvalidFramePlacementError(detail, reason=reason, facts=facts)


@frame.command(patch="/{frame_id}/placement", allowed=[ACTIVE])
class UpdateFramePlacement(Verb[Frame]):
    """Correct where a frame sits in its parent, for instance after a survey."""

    placement: Placement
    survey: Survey | None = None

    def decide(self, frame: Frame, call: Call) -> Outcome:
        if frame.parent_id is None:
            raise self.cannot("root_frame", "A root frame has no placement; only frames with a parent are placed.")
        if self.placement.parent_frame_id != frame.parent_id:
            detail = "The placement is in another frame than the parent; a frame keeps its parent, so name that one."
            raise misfit("parent_mismatch", detail, parent_id=frame.parent_id)
        check_measured(self.placement, self.survey)
        if self.placement == frame.placement and self.survey in (None, frame.survey):
            return []
        return [FramePlacementUpdated(placement=self.placement, survey=self.survey)]


@frame.command(
    post="/{frame_id}/decommission", allowed=[ACTIVE], state_reason="already_decommissioned", lock=FRAMES, destructive=True
)
class DecommissionFrame(JudgedVerb[Frame, dict[str, list[UUID]]]):
    """Retire a frame that nothing stands on any more."""

    reason: Reason

    def gather(self, frame: Frame, call: Call) -> Reads[dict[str, list[UUID]]]:
        from baton.domain.equipment.mount import Mount, MountStatus  # a mount's module needs this one at its head

        consumers = yield from members_of(CONSUMERS, frame.id)
        frames = yield from find_all(Frame, consumers)
        mounts = yield from find_all(Mount, consumers)
        return {
            "mount_ids": sorted(id for id, mount in mounts.items() if mount.status is MountStatus.ACTIVE),
            "frame_ids": sorted(id for id, child in frames.items() if child.status is ACTIVE),
        }

    def decide(self, frame: Frame, call: Call, consumers: dict[str, list[UUID]]) -> Outcome:
        if any(consumers.values()):
            raise self.cannot("in_use", "Mounts or frames still stand on this frame; decommission them first.", **consumers)
        left = [] if frame.parent_id is None else [Delist(CONSUMERS, str(frame.parent_id))]
        return [FrameDecommissioned(reason=self.reason), *left]


GetFrame = frame.get()


class FrameSummary(Summary):
    frame_id: UUID
    name: str
    parent_id: UUID | None
    placement: Placement | None
    status: FrameStatus
    created_at: datetime


@frame.listing(FrameSummary)
class ListFrames(NamedListQuery[FrameSummary]):
    """Frames in order of registration."""

    parent_id: UUID | None = None
    status: FrameStatus | None = None
