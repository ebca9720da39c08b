"""Frames: their tree, how they are placed, and what keeps one from being retired."""

from typing import Any
from uuid import UUID

import pytest

from baton.domain.equipment.frame import DecommissionFrame, Frame, FrameDecommissioned, RegisterFrame, UpdateFramePlacement
from baton.domain.equipment.mount import DecommissionMount, MountDecommissioned, RegisterMount
from tests.domain.equipment.test_placement import form
from tests.support.domain.world import START, World, expect_refusal, new_id

SURVEY = {"instrument": "laser tracker", "surveyed_at": START, "residual": 0.02}


@pytest.fixture
def world() -> World:
    return World()


def root(world: World) -> UUID:
    return world.create(RegisterFrame(name="centerline"))


def child(world: World, parent_id: UUID, **numbers: float) -> UUID:
    return world.create(RegisterFrame(name="bench", parent_id=parent_id, placement=frame_within(parent_id, **numbers)))


def frame_within(frame_id: UUID, **fields: Any) -> dict[str, Any]:
    return form(parent_frame_id=frame_id, **fields)


def decommission(world: World, frame_id: UUID) -> None:
    world.when(DecommissionFrame(reason="rebuilt"), on=frame_id)


def test_a_root_frame_has_no_placement_and_a_child_has_one(world: World) -> None:
    centerline = root(world)
    bench = child(world, centerline, z=31000)
    assert world.state(Frame, centerline).placement is None
    assert (world.state(Frame, bench).parent_id, world.state(Frame, bench).placement.z) == (centerline, 31000)


def test_a_frame_needs_a_name(world: World) -> None:
    with expect_refusal("InvalidFrameNameError"):
        world.create(RegisterFrame(name="  "))


@pytest.mark.parametrize(
    ("with_parent", "placed_in", "reason"),
    [
        (False, "parent", "root_with_placement"),
        (True, None, "child_without_placement"),
        (True, "stranger", "parent_mismatch"),
    ],
)
def test_a_placement_follows_the_place_in_the_tree(
    world: World, with_parent: bool, placed_in: str | None, reason: str
) -> None:
    frames = {"parent": root(world), "stranger": root(world)}
    command = RegisterFrame(
        name="bench",
        parent_id=frames["parent"] if with_parent else None,
        placement=None if placed_in is None else frame_within(frames[placed_in]),
    )
    with expect_refusal("InvalidFramePlacementError", reason):
        world.create(command)


def test_parent_and_predecessor_must_exist(world: World) -> None:
    centerline, nowhere = root(world), new_id()
    with expect_refusal("FrameNotFoundError") as caught:
        child(world, nowhere)
    assert caught.value.facts == {"missing_ids": [str(nowhere)]}
    with expect_refusal("FrameNotFoundError"):
        succession = {"predecessor_frame_id": nowhere, "transform": frame_within(nowhere)}
        world.create(RegisterFrame(name="centerline", supersedes=succession))
    assert world.state(Frame, centerline) is not None


def test_a_frame_may_supersede_a_retired_one(world: World) -> None:
    old = root(world)
    decommission(world, old)
    succession = {"predecessor_frame_id": old, "transform": frame_within(old, x=0.4)}
    new = world.create(RegisterFrame(name="centerline", supersedes=succession))
    supersedes = world.state(Frame, new).supersedes
    assert (supersedes.predecessor_frame_id, supersedes.transform.x) == (old, 0.4)


def test_a_transform_is_placed_in_the_predecessor(world: World) -> None:
    old, other = root(world), root(world)
    succession = {"predecessor_frame_id": old, "transform": frame_within(other)}
    with expect_refusal("InvalidFramePlacementError", "predecessor_mismatch"):
        world.create(RegisterFrame(name="centerline", supersedes=succession))
    succession = {"predecessor_frame_id": old, "transform": frame_within(old, tol_x=-1)}
    with expect_refusal("InvalidPlacementError", "negative"):
        world.create(RegisterFrame(name="centerline", supersedes=succession))


def test_nothing_is_placed_in_a_retired_frame(world: World) -> None:
    centerline = root(world)
    decommission(world, centerline)
    with expect_refusal("InvalidPlacementError", "not_finite"):
        child(world, centerline, x=float("nan"))
    with expect_refusal("FrameCannotRegisterError", "parent_decommissioned"):
        child(world, centerline)


def test_a_placement_or_a_survey_is_recorded_once(world: World) -> None:
    centerline = root(world)
    bench = child(world, centerline, z=5)
    assert world.when(UpdateFramePlacement(placement=frame_within(centerline, z=5)), on=bench) == []
    confirm = UpdateFramePlacement(placement=frame_within(centerline, z=5), survey=SURVEY)
    assert len(world.when(confirm, on=bench)) == 1
    assert world.when(confirm, on=bench) == []
    world.when(UpdateFramePlacement(placement=frame_within(centerline, z=0.1), survey=SURVEY), on=bench)
    state = world.state(Frame, bench)
    assert (state.placement.z, state.survey.instrument) == (0.1, "laser tracker")


def test_a_root_frame_cannot_be_placed(world: World) -> None:
    centerline = root(world)
    with expect_refusal("FrameCannotUpdatePlacementError", "root_frame"):
        world.when(UpdateFramePlacement(placement=frame_within(centerline, tol_x=-1)), on=centerline)


def test_a_frame_keeps_its_parent(world: World) -> None:
    bench, other = child(world, root(world)), root(world)
    with expect_refusal("InvalidFramePlacementError", "parent_mismatch"):
        world.when(UpdateFramePlacement(placement=frame_within(other)), on=bench)


def test_a_survey_needs_a_named_instrument_and_a_sound_residual(world: World) -> None:
    centerline = root(world)
    bench = child(world, centerline)
    for survey in ({"instrument": "  "}, {"residual": -1}):
        with expect_refusal("InvalidPlacementError"):
            world.when(UpdateFramePlacement(placement=frame_within(centerline, x=1), survey=survey), on=bench)


def test_a_frame_in_use_names_what_stands_on_it_and_is_free_once_all_that_is_retired(world: World) -> None:
    centerline = root(world)
    bench = child(world, centerline)
    mount = world.create(RegisterMount(slot_code="B-SAMPLE-01", placement=frame_within(centerline)))
    with expect_refusal("FrameCannotDecommissionError", "in_use") as caught:
        decommission(world, centerline)
    assert caught.value.facts == {"mount_ids": [str(mount)], "frame_ids": [str(bench)]}
    decommission(world, bench)
    with expect_refusal("FrameCannotDecommissionError", "in_use"):
        decommission(world, centerline)
    world.when(DecommissionMount(reason="rebuilt"), on=mount)
    decommission(world, centerline)


def test_use_is_judged_by_streams_and_not_by_the_look_up_alone(world: World) -> None:
    centerline = root(world)
    bench = child(world, centerline)
    mount = world.create(RegisterMount(slot_code="B-SAMPLE-01", placement=frame_within(centerline)))
    world.given(bench, FrameDecommissioned(reason="rebuilt"))
    world.given(mount, MountDecommissioned(reason="rebuilt"))
    assert world.members["frame-consumer", str(centerline)] == {bench, mount}
    decommission(world, centerline)


def test_whatever_comes_to_stand_on_frames_or_retires_them_takes_turns() -> None:
    verbs = (RegisterFrame, DecommissionFrame, RegisterMount, DecommissionMount)
    assert {verb.operation.lock for verb in verbs} == {"frame-tree"}
