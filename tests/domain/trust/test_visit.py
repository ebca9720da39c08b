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
from tests.support.domain.world import OPERATOR, START, World, new_id, refused

CONSOLE = new_id()


@pytest.fixture
def world() -> World:
    return World()


def planned(world: World, **fields: object) -> UUID:
    values = {"policy_id": new_id(), "surface_id": CONSOLE, "type": "user", "planned_start_at": START}
    return world.create(RegisterVisit(**{**values, "planned_end_at": START + timedelta(days=2), **fields}))


def arrived(world: World, **fields: object) -> UUID:
    visit = planned(world, **fields)
    world.when(RecordVisitArrival(), on=visit)
    return visit


def test_a_visit_must_end_after_it_starts(world: World) -> None:
    with refused("InvalidVisitPlannedPeriodError"):
        planned(world, planned_end_at=START)


def test_a_nested_visit_stays_on_its_parents_surface(world: World) -> None:
    parent = planned(world)
    with refused("VisitParentMismatchedSurfaceError"):
        planned(world, parent_id=parent, surface_id=new_id())
    with refused("VisitParentNotFoundError"):
        planned(world, parent_id=new_id())


def test_nobody_checks_in_before_arrival(world: World) -> None:
    visit = planned(world)
    with refused("VisitCannotCheckInError", "status_not_eligible"):
        world.when(CheckInVisit(mode="physical"), on=visit)


def test_an_actor_is_present_at_most_once(world: World) -> None:
    visit = arrived(world)
    world.when(CheckInVisit(mode="physical"), on=visit)
    with refused("VisitCannotCheckInError", "already_checked_in"):
        world.when(CheckInVisit(mode="remote"), on=visit)
    world.when(CheckOutVisit(), on=visit)
    with refused("VisitCannotCheckOutError", "not_checked_in"):
        world.when(CheckOutVisit(), on=visit)
    world.when(CheckInVisit(mode="remote"), on=visit)
    assert [entry.mode for entry in world.state(Visit, visit).presence_entries] == ["physical", "remote"]


def test_a_hold_keeps_its_reason_across_the_resume(world: World) -> None:
    visit = arrived(world)
    world.when(StartVisit(), on=visit)
    world.when(HoldVisit(reason=" beam dump "), on=visit)
    world.when(ResumeVisit(), on=visit)
    state = world.state(Visit, visit)
    assert (state.status, state.last_status_reason) == (VisitStatus.IN_PROGRESS, "beam dump")


def test_state_is_judged_before_a_blank_reason(world: World) -> None:
    visit = arrived(world)
    with refused("VisitCannotAbortError", "arrived"):
        world.when(AbortVisit(reason="   "), on=visit)
    world.when(StartVisit(), on=visit)
    with refused("InvalidVisitReasonError"):
        world.when(AbortVisit(reason="   "), on=visit)


def test_ending_a_visit_closes_presence_and_gives_up_the_surface(world: World) -> None:
    visit = arrived(world)
    world.when(CheckInVisit(mode="physical"), on=visit)
    world.when(StartVisit(), on=visit)
    world.when(TakeControlOfSurface(surface_id=CONSOLE), on=visit)
    events = world.when(CompleteVisit(), on=visit)
    assert events == [VisitCompleted(), VisitSurfaceControlReleased(surface_id=CONSOLE)]
    state = world.state(Visit, visit)
    assert state.presence_entries[0].check_out_at == state.completed_at == world.now
    assert not world.records


def test_control_passes_from_parent_to_child_and_not_back(world: World) -> None:
    parent = arrived(world)
    child = arrived(world, parent_id=parent, type="commissioning")
    stranger = arrived(world)
    world.when(TakeControlOfSurface(surface_id=CONSOLE), on=parent)
    world.when(TakeControlOfSurface(surface_id=CONSOLE), on=child)
    for rival in (parent, stranger):
        with refused("VisitCannotTakeControlError", "not_descendant"):
            world.when(TakeControlOfSurface(surface_id=CONSOLE), on=rival)
    world.when(ReleaseControlOfSurface(surface_id=CONSOLE), on=child)
    with refused("VisitCannotReleaseControlError", "not_holder"):
        world.when(ReleaseControlOfSurface(surface_id=CONSOLE), on=parent)
    world.when(TakeControlOfSurface(surface_id=CONSOLE), on=parent)
    assert world.records[SurfaceControl, CONSOLE].visit_id == parent


def test_the_surface_is_judged_before_the_status(world: World) -> None:
    visit = planned(world)
    with refused("VisitCannotTakeControlError", "surface_mismatch"):
        world.when(TakeControlOfSurface(surface_id=new_id()), on=visit)
    with refused("VisitCannotTakeControlError", "status_not_eligible"):
        world.when(TakeControlOfSurface(surface_id=CONSOLE), on=visit)


def test_driving_a_surface_needs_the_permission_there_too(world: World) -> None:
    visit = arrived(world)
    world.denied.add("TakeControlOfSurface")
    with refused("UnauthorizedError"):
        world.when(TakeControlOfSurface(surface_id=CONSOLE), on=visit)


def test_presence_defaults_to_the_caller(world: World) -> None:
    visit = arrived(world)
    world.when(CheckInVisit(mode="remote"), on=visit)
    assert world.state(Visit, visit).presence_entries[0].actor_id == OPERATOR
