"""A visit's life, presence and control of its surface."""

from datetime import timedelta
from uuid import UUID

import pytest

from baton.domain.trust.surface import SurfaceControl
from baton.domain.trust.visit import (
    AbortVisit,
    CheckInVisit,
    CheckOutVisit,
    CompleteVisit,
    HoldVisit,
    RecordVisitArrival,
    RegisterVisit,
    ReleaseControlOfSurface,
    ResumeVisit,
    StartVisit,
    TakeControlOfSurface,
    Visit,
    VisitCompleted,
    VisitStatus,
    VisitSurfaceControlReleased,
)
from tests.support.domain.world import OPERATOR, START, World, expect_refusal, new_id

CONSOLE = new_id()


@pytest.fixture
def world() -> World:
    return World()


def register_visit(world: World, **fields: object) -> UUID:
    values = {"policy_id": new_id(), "surface_id": CONSOLE, "type": "user", "planned_start_at": START}
    return world.create(RegisterVisit(**{**values, "planned_end_at": START + timedelta(days=2), **fields}))


def arrived_visit(world: World, **fields: object) -> UUID:
    visit = register_visit(world, **fields)
    world.when(RecordVisitArrival(), on=visit)
    return visit


def test_a_visit_must_end_after_it_starts(world: World) -> None:
    with expect_refusal("InvalidVisitPlannedPeriodError"):
        register_visit(world, planned_end_at=START)


def test_a_nested_visit_stays_on_its_parents_surface(world: World) -> None:
    parent = register_visit(world)
    with expect_refusal("VisitParentMismatchedSurfaceError"):
        register_visit(world, parent_id=parent, surface_id=new_id())
    with expect_refusal("VisitParentNotFoundError"):
        register_visit(world, parent_id=new_id())


def test_an_actor_is_present_at_most_once(world: World) -> None:
    visit = arrived_visit(world)
    world.when(CheckInVisit(mode="physical"), on=visit)
    with expect_refusal("VisitCannotCheckInError", "already_checked_in"):
        world.when(CheckInVisit(mode="remote"), on=visit)
    world.when(CheckOutVisit(), on=visit)
    with expect_refusal("VisitCannotCheckOutError", "not_checked_in"):
        world.when(CheckOutVisit(), on=visit)
    world.when(CheckInVisit(mode="remote"), on=visit)
    entries = world.state(Visit, visit).presence_entries
    assert [(entry.mode, entry.actor_id) for entry in entries] == [("physical", OPERATOR), ("remote", OPERATOR)]


def test_a_hold_keeps_its_reason_across_the_resume(world: World) -> None:
    visit = arrived_visit(world)
    world.when(StartVisit(), on=visit)
    world.when(HoldVisit(reason=" beam dump "), on=visit)
    world.when(ResumeVisit(), on=visit)
    state = world.state(Visit, visit)
    assert (state.status, state.last_status_reason) == (VisitStatus.IN_PROGRESS, "beam dump")


def test_state_is_judged_before_a_blank_reason(world: World) -> None:
    visit = arrived_visit(world)
    with expect_refusal("VisitCannotAbortError", "arrived"):
        world.when(AbortVisit(reason="   "), on=visit)
    world.when(StartVisit(), on=visit)
    with expect_refusal("InvalidVisitReasonError"):
        world.when(AbortVisit(reason="   "), on=visit)


def test_ending_a_visit_closes_presence_and_gives_up_the_surface(world: World) -> None:
    visit = arrived_visit(world)
    world.when(CheckInVisit(mode="physical"), on=visit)
    world.when(StartVisit(), on=visit)
    world.when(TakeControlOfSurface(surface_id=CONSOLE), on=visit)
    events = world.when(CompleteVisit(), on=visit)
    assert events == [VisitCompleted(), VisitSurfaceControlReleased(surface_id=CONSOLE)]
    state = world.state(Visit, visit)
    assert state.presence_entries[0].check_out_at == state.completed_at == world.now
    assert not world.records


def test_control_passes_from_parent_to_child_and_not_back(world: World) -> None:
    parent = arrived_visit(world)
    child = arrived_visit(world, parent_id=parent, type="commissioning")
    stranger = arrived_visit(world)
    world.when(TakeControlOfSurface(surface_id=CONSOLE), on=parent)
    world.when(TakeControlOfSurface(surface_id=CONSOLE), on=child)
    for rival in (parent, stranger):
        with expect_refusal("VisitCannotTakeControlError", "not_descendant"):
            world.when(TakeControlOfSurface(surface_id=CONSOLE), on=rival)
    world.when(ReleaseControlOfSurface(surface_id=CONSOLE), on=child)
    with expect_refusal("VisitCannotReleaseControlError", "not_holder"):
        world.when(ReleaseControlOfSurface(surface_id=CONSOLE), on=parent)
    world.when(TakeControlOfSurface(surface_id=CONSOLE), on=parent)
    assert world.records[SurfaceControl, CONSOLE].visit_id == parent


def test_the_surface_is_judged_before_the_status(world: World) -> None:
    visit = register_visit(world)
    with expect_refusal("VisitCannotTakeControlError", "surface_mismatch"):
        world.when(TakeControlOfSurface(surface_id=new_id()), on=visit)
