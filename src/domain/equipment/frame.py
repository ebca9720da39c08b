"""A frame: a named coordinate frame in the tree of placements, such as the beam centerline or a bench."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from baton.domain.equipment.placement import Placement, Survey, check_measured
from baton.domain.kernel import Aggregate, Call, Event, JudgedCreation, JudgedVerb, Outcome, State, Value, Verb, changed
from baton.domain.shared.listing import ListQuery, Summary
from baton.domain.shared.reads import Reads, every, members_of, required, required_if_given
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import FreeText, Reason
from baton.domain.shared.writes import Delist, Enlist

TREE_LOCK = "frame-tree"
"""Held wherever something comes to stand on a frame or a frame is retired, so that nothing slips under a retired one."""
CONSUMERS = "frame-consumer"  # Look-up kind: the mounts and child frames placed in one frame.


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
    return changed(frame, **dict(event))


class InvalidFramePlacementError(Invalid, context="equipment"):
    """A root frame has no placement, every other frame one in its parent; a transform is placed in the predecessor."""


@frame.creation(lock=TREE_LOCK)
class RegisterFrame(JudgedCreation[Frame | None]):
    """Register a root frame, or one placed in a parent frame."""

    name: Annotated[str, frame.text("name", 200)]
    parent_id: UUID | None = None
    placement: Placement | None = None
    supersedes: Supersession | None = None

    def gather(self, call: Call) -> Reads[Frame | None]:
        parent = yield from required_if_given(Frame, self.parent_id)
        if self.supersedes is not None:
            yield from required(Frame, self.supersedes.predecessor_frame_id)
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
            raise InvalidFramePlacementError(
                "A root frame has no placement; name a parent or leave the placement out.", reason="root_with_placement"
            )
        if self.parent_id is not None and self.placement is None:
            raise InvalidFramePlacementError(
                "A frame with a parent needs a placement in it; give one.", reason="child_without_placement"
            )
        if self.placement is not None and self.placement.parent_frame_id != self.parent_id:
            raise InvalidFramePlacementError(
                "The placement is in another frame than the parent; name the parent in both.", reason="parent_mismatch"
            )
        check_measured(self.placement)
        if self.supersedes is not None:
            if self.supersedes.transform.parent_frame_id != self.supersedes.predecessor_frame_id:
                raise InvalidFramePlacementError(
                    "The transform is in another frame than the predecessor; name the predecessor in both.",
                    reason="predecessor_mismatch",
                )
            check_measured(self.supersedes.transform)


@frame.command(patch="/{frame_id}/placement", allowed=[ACTIVE])
class UpdateFramePlacement(Verb[Frame]):
    """Correct where a frame sits in its parent, for instance after a survey."""

    placement: Placement
    survey: Survey | None = None

    def decide(self, frame: Frame, call: Call) -> Outcome:
        if frame.parent_id is None:
            raise self.cannot("root_frame", "A root frame has no placement; only frames with a parent are placed.")
        if self.placement.parent_frame_id != frame.parent_id:
            raise InvalidFramePlacementError(
                "The placement is in another frame than the parent; a frame keeps its parent, so name that one.",
                reason="parent_mismatch",
                facts={"parent_id": str(frame.parent_id)},
            )
        check_measured(self.placement, self.survey)
        if self.placement == frame.placement and self.survey in (None, frame.survey):
            return []
        return [FramePlacementUpdated(placement=self.placement, survey=self.survey)]


@frame.command(
    post="/{frame_id}/decommission",
    allowed=[ACTIVE],
    state_reason="already_decommissioned",
    lock=TREE_LOCK,
    destructive=True,
)
class DecommissionFrame(JudgedVerb[Frame, tuple[list[str], list[str]]]):
    """Retire a frame that nothing stands on any more."""

    reason: Reason

    def gather(self, frame: Frame, call: Call) -> Reads[tuple[list[str], list[str]]]:
        from baton.domain.equipment.mount import Mount, MountStatus  # a mount's module needs this one at its head

        consumers = yield from members_of(CONSUMERS, frame.id)
        frames = yield from every(Frame, consumers)
        mounts = yield from every(Mount, consumers)
        mount_ids = [str(id) for id, mount in sorted(mounts.items()) if mount.status is MountStatus.ACTIVE]
        return mount_ids, [str(id) for id, child in sorted(frames.items()) if child.status is ACTIVE]

    def decide(self, frame: Frame, call: Call, consumers: tuple[list[str], list[str]]) -> Outcome:
        mount_ids, frame_ids = consumers
        if mount_ids or frame_ids:
            raise self.cannot(
                "in_use",
                "Mounts or frames still stand on this frame; decommission them first.",
                mount_ids=mount_ids,
                frame_ids=frame_ids,
            )
        left = [] if frame.parent_id is None else [Delist(CONSUMERS, str(frame.parent_id))]
        return [FrameDecommissioned(reason=self.reason), *left]


frame.get()


FrameSummary = Summary.from_state(frame, "name parent_id placement status created_at")


@frame.listing(FrameSummary)
class ListFrames(ListQuery):
    """Frames in order of registration."""

    parent_id: UUID | None = None
    status: FrameStatus | None = None
