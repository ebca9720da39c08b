"""Queues: what may be queued, in which order it stands, as whom it is conducted, and what becomes of it in its turn."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.equipment.asset_tree import DecommissionAsset
from baton.domain.kernel import SYSTEM_CONDUIT, Command
from baton.domain.procedure.procedure import Procedure
from baton.domain.queue.item_records import BlockQueueItem, EndQueueItem, RefuseQueueItem, StartQueueItem
from baton.domain.queue.items import MAX_ENDED, ItemLaunch, QueueItemStatus
from baton.domain.queue.queue import (
    BLOCKED_QUEUES,
    BUSY_QUEUES,
    AddQueueItems,
    EditQueueItem,
    HoldQueue,
    MoveQueueItem,
    OpenQueue,
    Queue,
    QueueItemRemoved,
    RemoveQueueItem,
    ResumeQueue,
    RetireQueue,
)
from baton.domain.queue.views import GetQueue, ListQueueItems
from baton.domain.recipe.plan import Plan
from baton.domain.run.run import Run
from baton.domain.shared.refusals import Refusal
from baton.domain.start.registration import RegisterProcedureFromRecipe
from baton.domain.start.run_start import StartRun
from baton.domain.trust.surface import SYSTEM_HTTP
from tests.support.domain.assets import facility_world, part, root
from tests.support.domain.queues import (
    CLOSED,
    add_items,
    attempt_of,
    block_item,
    end_item,
    item_of,
    open_queue,
    queue_of,
    refuse_item,
    start_item,
    titles_of,
)
from tests.support.domain.run_beamline import beamline
from tests.support.domain.schedules import darks, recipe, series
from tests.support.domain.world import OPERATOR, World, expect_refusal, new_id
from tests.support.tables import for_each

EDITOR = UUID("0197a100-0000-7000-8000-00000000000e")
FAILED = {"code": "ProcedureAborted", "detail": "The shutter did not open."}


@pytest.fixture
def world() -> World:
    return facility_world()


def assert_refused(code: str, action: Callable[[], object], reason: str | None = None) -> Refusal:
    with expect_refusal(code, reason) as caught:
        action()
    refusal: Refusal = caught.value
    return refusal


def members(world: World, kind: str) -> set[UUID]:
    return {id for (name, _), ids in world.members.items() if name == kind for id in ids}


def status_of(world: World, id: UUID, item_id: UUID) -> str:
    return item_of(world, id, item_id).status.value


def test_an_item_is_conducted_as_the_principal_and_on_the_surface_that_added_it(world: World) -> None:
    id = open_queue(world, name="  Tonight  ")
    (item_id,) = add_items(world, id, " Darks ")
    item = item_of(world, id, item_id)
    assert (item.added_by, item.surface_id, item.conduit_id) == (OPERATOR, SYSTEM_HTTP, SYSTEM_CONDUIT)
    assert (item.title, item.status, item.attempt, item.number, item.pause_after) == ("Darks", "Waiting", 1, 1, False)
    assert item.target["procedure_kind"] == "queued", "what is left out is filled in when it is added"
    queue = queue_of(world, id)
    assert (queue.name, queue.status, queue.on_failure, queue.item_count) == ("Tonight", "Active", "hold", 1)


def test_an_asset_has_one_queue_until_that_is_retired(world: World) -> None:
    id = open_queue(world)
    asked = {"name": "Another", "asset_id": queue_of(world, id).asset_id}
    assert_refused("AssetHasQueueError", lambda: world.when(OpenQueue(**asked)), reason="queue_open")
    world.when(RetireQueue(reason="over"), on=id)
    assert queue_of(world, world.create(OpenQueue(**asked))).status == "Active"


def test_only_a_root_in_service_has_a_queue(world: World) -> None:
    queue = queue_of(world, open_queue(world))
    stage = part(world, queue.asset_id)
    refusal = assert_refused("NotABeamlineError", lambda: open_queue(world, asset_id=stage), reason="not_a_root")
    assert refusal.facts is not None
    assert refusal.facts["root_asset_id"] == str(queue.asset_id)
    gone = root(world, name="Old hutch")
    world.when(DecommissionAsset(), on=gone)
    assert_refused("QueueCannotOpenError", lambda: open_queue(world, asset_id=gone), reason="asset_decommissioned")
    assert_refused("AssetNotFoundError", lambda: open_queue(world, asset_id=new_id()))


def test_items_are_added_at_the_end_or_before_another_one(world: World) -> None:
    id = open_queue(world)
    _, second = add_items(world, id, "a", "b")
    add_items(world, id, "c", "d", before_item_id=second)
    add_items(world, id, "e")
    assert titles_of(world, id) == ["a", "c", "d", "b", "e"]
    assert [item.number for item in queue_of(world, id).items] == [1, 3, 4, 2, 5]


@for_each(
    ("change", "code", "reason"),
    [
        ({"name": "{shift}"}, "InvalidQueueItemTargetError", "unknown_placeholder"),
        ({"name": " "}, "InvalidQueueItemTargetError", "blank"),
        ({"name": "x" * 190 + "{fired_at}"}, "InvalidQueueItemTargetError", "too_long"),
        ({"procedure_kind": " "}, "InvalidQueueItemTargetError", "blank"),
        ({"bindings": {"dwell": 1}}, "InvalidQueueItemTargetError", "bindings_unfit"),
        ({"conduct": {"steps": [{"kind": "setpoint"}]}}, "InvalidQueueItemTargetError", "steps_forbidden"),
        ({"recipe_id": new_id()}, "RecipeNotFoundError", None),
    ],
)
def test_a_target_that_could_never_be_conducted_is_refused_with_all_that_came_with_it(
    change: dict[str, Any], code: str, reason: str | None
) -> None:
    world = facility_world()
    id = open_queue(world)
    fit = darks(recipe(world))
    (item_id,) = add_items(world, id, "a", target=fit)
    items = [{"title": "b", "target": fit}, {"title": "c", "target": {**fit, **change}}]
    assert_refused(code, lambda: world.when(AddQueueItems(items=items), on=id), reason=reason)
    edit = EditQueueItem(item_id=item_id, target={**fit, **change})
    assert_refused(code, lambda: world.when(edit, on=id), reason=reason)
    assert titles_of(world, id) == ["a"]


def test_a_run_needs_a_plan_that_exists_and_phases() -> None:
    world = beamline().world
    (plan_id,) = (id for name, id in world.streams if name == Plan.__name__)
    id = open_queue(world, asset_id=root(world, name="Other"))
    survey = series(plan_id, recipe(world))
    (item_id,) = add_items(world, id, "survey", target=survey)
    assert item_of(world, id, item_id).target["phases"][0]["procedure_kind"] == "queued"
    for change, code, reason in (
        ({"plan_id": new_id()}, "PlanNotFoundError", None),
        ({"phases": []}, "InvalidQueueItemTargetError", "phases_missing"),
        ({"decided_by_decision_id": new_id()}, "DecisionNotFoundError", None),
    ):
        assert_refused(code, lambda change=change: add_items(world, id, "x", target={**survey, **change}), reason=reason)  # type: ignore[misc]


def test_what_is_asked_for_has_bounds(world: World) -> None:
    id, target = open_queue(world), darks(recipe(world))
    item = {"title": "a", "target": target}
    with pytest.raises(ValidationError):
        AddQueueItems(items=[])
    with pytest.raises(ValidationError):
        AddQueueItems(items=[item] * 501)
    with pytest.raises(ValidationError, match="give at least one"):
        EditQueueItem(item_id=new_id())
    for name in ("title", "target", "pause_after"):
        with pytest.raises(ValidationError):
            EditQueueItem(item_id=new_id(), **{name: None})
    blank = AddQueueItems(items=[{**item, "title": " "}])
    assert_refused("InvalidQueueItemTitleError", lambda: world.when(blank, on=id), reason="blank")


@pytest.mark.slow
def test_a_queue_has_at_most_a_thousand_items_that_have_not_ended(world: World) -> None:
    id, target = open_queue(world), darks(recipe(world))
    for _ in range(2):
        first, *_ = add_items(world, id, *(["x"] * 500), target=target)
    refusal = assert_refused("QueueCannotAddItemsError", lambda: add_items(world, id, "y", target=target), reason="too_many")
    assert refusal.facts == {"count": 1001}
    world.when(RemoveQueueItem(item_id=first, reason="one less"), on=id)
    add_items(world, id, "y", target=target)


@pytest.mark.slow
def test_of_those_that_ended_the_last_thousand_are_kept(world: World) -> None:
    id, target = open_queue(world), darks(recipe(world))
    added = [item_id for _ in range(2) for item_id in add_items(world, id, *(["x"] * 500), target=target)]
    over = [QueueItemRemoved(item_id=item_id, reason="over") for item_id in added[:-1]]
    world.given(id, *over)
    assert len(queue_of(world, id).items) == len(added)
    for further in add_items(world, id, *"yz", target=target):
        world.when(RemoveQueueItem(item_id=further, reason="over"), on=id)
    kept = queue_of(world, id).items
    assert (len(kept), kept[0].item_id, kept[-1].item_id) == (MAX_ENDED + 1, added[1], added[-1])
    gone = RemoveQueueItem(item_id=added[0], reason="again")
    assert_refused("QueueItemNotFoundError", lambda: world.when(gone, on=id))


def test_an_item_is_moved_before_another_one_or_to_the_end(world: World) -> None:
    id = open_queue(world)
    a, b, c = add_items(world, id, "a", "b", "c")
    world.when(MoveQueueItem(item_id=c, before_item_id=a), on=id)
    assert titles_of(world, id) == ["c", "a", "b"]
    world.when(MoveQueueItem(item_id=c), on=id)
    assert titles_of(world, id) == ["a", "b", "c"]
    for same in (MoveQueueItem(item_id=a, before_item_id=b), MoveQueueItem(item_id=b, before_item_id=b)):
        assert world.when(same, on=id) == []
    assert titles_of(world, id) == ["a", "b", "c"]


def test_an_edited_target_is_conducted_as_who_edited_it_and_nothing_else_is(world: World) -> None:
    id = open_queue(world)
    (item_id,) = add_items(world, id, "a")
    world.principal_id = EDITOR
    at = world.now + timedelta(hours=1)
    world.when(EditQueueItem(item_id=item_id, title="b", not_before=at, pause_after=True), on=id)
    item = item_of(world, id, item_id)
    assert (item.title, item.not_before, item.pause_after, item.added_by) == ("b", at, True, OPERATOR)
    world.when(EditQueueItem(item_id=item_id, target=darks(recipe(world)), not_before=None), on=id)
    item = item_of(world, id, item_id)
    assert (item.title, item.not_before, item.added_by) == ("b", None, EDITOR)
    assert world.when(EditQueueItem(item_id=item_id, title="b"), on=id) == [], "nothing changes"


@for_each("status", [None, *(status for status in QueueItemStatus if status not in ("Waiting", "Blocked"))])
def test_an_item_that_is_unknown_or_does_not_wait_cannot_be_changed(status: QueueItemStatus | None) -> None:
    world = facility_world()
    id = open_queue(world, on_failure="continue")
    item_id, waiting = add_items(world, id, "a", "b")
    if status is None:
        item_id = new_id()
    else:
        bring_to(world, id, item_id, status)
        assert status_of(world, id, item_id) == status
    for command in (
        MoveQueueItem(item_id=item_id),
        MoveQueueItem(item_id=waiting, before_item_id=item_id),
        EditQueueItem(item_id=item_id, title="c"),
        RemoveQueueItem(item_id=item_id, reason="no"),
        AddQueueItems(items=[{"title": "c", "target": darks(recipe(world))}], before_item_id=item_id),
    ):
        with expect_refusal("QueueItemNotFoundError" if status is None else command.Cannot, status and status.lower()):
            world.when(command, on=id)


def bring_to(world: World, id: UUID, item_id: UUID, status: str) -> None:
    """Bring the first item to a state."""
    if status == "Removed":
        world.when(RemoveQueueItem(item_id=item_id, reason="gone"), on=id)
    elif status == "Refused":
        refuse_item(world, id, item_id)
    elif status == "Blocked":
        block_item(world, id, item_id)
    elif status != "Waiting":
        start_item(world, id, item_id)
        if status != "Running":
            end_item(world, id, item_id, **({} if status == "Completed" else {**FAILED, "asked": status == "Stopped"}))


def test_an_item_starts_in_its_turn_under_ids_that_follow_from_it(world: World) -> None:
    id = open_queue(world)
    first, second = add_items(world, id, "a", "b")
    assert_refused("QueueCannotStartItemError", lambda: start_item(world, id, second), reason="not_next")
    start_item(world, id, first)
    item = item_of(world, id, first)
    assert (item.status, item.procedure_id, item.run_id) == ("Running", ItemLaunch(first, 1).procedure_id(), None)
    assert item.started_at == world.now
    assert world.when(StartQueueItem(item_id=first, attempt=1), on=id) == [], "it is on record"
    assert_refused("QueueCannotStartItemError", lambda: start_item(world, id, second), reason="not_next")
    end_item(world, id, first)
    start_item(world, id, second)
    assert [status_of(world, id, one) for one in (first, second)] == ["Completed", "Running"]


def test_a_plan_is_started_as_a_run() -> None:
    world = beamline().world
    (plan_id,) = (id for name, id in world.streams if name == Plan.__name__)
    id = open_queue(world, asset_id=root(world, name="Other"))
    (item_id,) = add_items(world, id, "survey", target=series(plan_id, recipe(world)))
    start_item(world, id, item_id)
    item = item_of(world, id, item_id)
    assert (item.run_id, item.procedure_id) == (ItemLaunch(item_id, 1).run_id, None)


def test_nothing_starts_before_its_time_in_a_held_queue_or_out_of_turn(world: World) -> None:
    id = open_queue(world)
    (item_id,) = add_items(world, id, "a", not_before=world.now + timedelta(hours=1))
    assert_refused("QueueCannotStartItemError", lambda: start_item(world, id, item_id), reason="not_next")
    world.now += timedelta(hours=1)
    world.when(HoldQueue(reason="search"), on=id)
    assert_refused("QueueCannotStartItemError", lambda: start_item(world, id, item_id), reason="not_next")
    world.when(ResumeQueue(reason="searched"), on=id)
    assert queue_of(world, id).last_status_reason == "searched"
    overtaken = StartQueueItem(item_id=item_id, attempt=2)
    assert_refused("QueueCannotStartItemError", lambda: world.when(overtaken, on=id), reason="not_next")
    start_item(world, id, item_id)


def test_what_blocks_the_first_item_is_recorded_once(world: World) -> None:
    id = open_queue(world)
    first, second = add_items(world, id, "a", "b")
    block_item(world, id, first)
    item = item_of(world, id, first)
    assert (item.status, item.code, item.detail, item.attempt) == ("Blocked", CLOSED["code"], CLOSED["detail"], 1)
    assert world.when(BlockQueueItem(**attempt_of(world, id, first), **CLOSED), on=id) == []
    block_item(world, id, first, detail="It was last observed 130 s ago, not within 120 s.")
    older = {**CLOSED, "detail": "It was last observed 145 s ago, not within 120 s."}
    assert world.when(BlockQueueItem(**attempt_of(world, id, first), **older), on=id) == [], "it only gets older"
    block_item(world, id, first, detail="The hutch is open.")
    assert item_of(world, id, first).detail == "The hutch is open."
    assert world.when(BlockQueueItem(**attempt_of(world, id, second), **CLOSED), on=id) == [], "it is not its turn"
    start_item(world, id, first)
    item = item_of(world, id, first)
    assert (item.status, item.code, item.detail) == ("Running", None, None)


def test_an_attempt_that_is_blocked_waits_for_another_one_and_leaves_nothing_open(world: World) -> None:
    id = open_queue(world)
    target = darks(recipe(world))
    first, _ = add_items(world, id, "a", "b", target=target)
    start_item(world, id, first)
    attempt = item_of(world, id, first)
    assert attempt.procedure_id is not None
    asked = RegisterProcedureFromRecipe(recipe_id=target["recipe_id"], name="a", kind="queued")
    world.when(asked, opening=attempt.procedure_id)
    blocked = BlockQueueItem(item_id=first, attempt=1, **CLOSED)
    world.when(blocked, on=id)
    item = item_of(world, id, first)
    assert (item.status, item.attempt, item.procedure_id, item.started_at) == ("Blocked", 2, None, None)
    assert titles_of(world, id) == ["a", "b"]
    assert world.state(Procedure, attempt.procedure_id).status == "Aborted"
    assert world.when(blocked, on=id) == [], "a repeat does nothing"
    start_item(world, id, first)
    assert item_of(world, id, first).procedure_id == ItemLaunch(first, 2).procedure_id()
    assert world.when(EndQueueItem(item_id=first, attempt=1), on=id) == [], "an earlier attempt ends nothing"


def test_an_attempt_that_made_nothing_is_made_again_under_the_same_ids(world: World) -> None:
    id = open_queue(world)
    (item_id,) = add_items(world, id, "a")
    start_item(world, id, item_id)
    block_item(world, id, item_id)
    assert (item_of(world, id, item_id).status, item_of(world, id, item_id).attempt) == ("Blocked", 1)


@for_each("refusal", [BlockQueueItem, RefuseQueueItem])
def test_a_refusal_that_comes_late_leaves_a_conduct_alone_that_is_open(refusal: type[Command]) -> None:
    world = facility_world()
    world.ports["deployment"].enclosure_observation_ttl = timedelta(seconds=60)
    id = open_queue(world)
    target = darks(recipe(world))
    (item_id,) = add_items(world, id, "a", target=target)
    start_item(world, id, item_id)
    launch = ItemLaunch(item_id, 1)
    asked = RegisterProcedureFromRecipe(recipe_id=target["recipe_id"], name="a", kind="queued")
    world.when(asked, opening=launch.procedure_id())
    world.when(ConductProcedure(wait=0), on=launch.procedure_id(), opening=launch.conduct_id)
    late = refusal(item_id=item_id, attempt=1, **CLOSED)
    assert world.when(late, on=id) == []
    assert world.state(Procedure, launch.procedure_id()).status == "Running"


def test_a_refused_attempt_ends_the_run_that_it_started() -> None:
    line = beamline()
    world, id = line.world, open_queue(line.world, asset_id=line.hutch.beamline)
    target = {**series(line.plan_id, recipe(world)), "subject_id": line.subject_id}
    (item_id,) = add_items(world, id, "survey", target=target)
    start_item(world, id, item_id)
    run_id = ItemLaunch(item_id, 1).run_id
    world.when(StartRun(**line.request), opening=run_id)
    refuse_item(world, id, item_id)
    run = world.state(Run, run_id)
    assert (status_of(world, id, item_id), run.status) == ("Refused", "Aborted")
    assert queue_of(world, id).status == "Held"


def test_only_the_first_item_is_blocked(world: World) -> None:
    id = open_queue(world)
    a, b = add_items(world, id, "a", "b")
    block_item(world, id, a)
    world.when(MoveQueueItem(item_id=b, before_item_id=a), on=id)
    assert [(item.title, item.status, item.code) for item in queue_of(world, id).ahead] == [
        ("b", "Waiting", None),
        ("a", "Waiting", None),
    ]
    block_item(world, id, b)
    add_items(world, id, "c", before_item_id=b)
    assert not queue_of(world, id).blocked


def test_an_edit_of_what_is_blocked_has_it_judged_anew(world: World) -> None:
    id = open_queue(world)
    (item_id,) = add_items(world, id, "a")
    block_item(world, id, item_id)
    world.when(EditQueueItem(item_id=item_id, title="b"), on=id)
    assert status_of(world, id, item_id) == "Blocked", "its title changes nothing"
    world.when(EditQueueItem(item_id=item_id, target=darks(recipe(world))), on=id)
    assert status_of(world, id, item_id) == "Waiting"


@for_each("end", ["refused", "failed"])
def test_an_item_that_comes_to_nothing_holds_the_queue_or_does_not(end: str) -> None:
    for on_failure, status in (("hold", "Held"), ("continue", "Active")):
        world = facility_world()
        id = open_queue(world, on_failure=on_failure)
        first, _ = add_items(world, id, "a", "b")
        if end == "refused":
            refuse_item(world, id, first, detail="It may not.")
        else:
            start_item(world, id, first)
            end_item(world, id, first, code="ProcedureAborted", detail="It may not.")
        queue, item = queue_of(world, id), item_of(world, id, first)
        assert (queue.status, item.status.value.lower(), item.detail) == (status, end, "It may not.")
        assert queue.last_status_reason == ("a: It may not." if status == "Held" else None)
        assert item.ended_at == world.now


@for_each("failure", [{}, FAILED])
def test_a_queue_pauses_behind_an_item_where_that_is_wanted(failure: dict[str, str]) -> None:
    world = facility_world()
    id = open_queue(world, on_failure="continue")
    first, second = add_items(world, id, "a", "b")
    world.when(EditQueueItem(item_id=first, pause_after=True), on=id)
    start_item(world, id, first)
    end_item(world, id, first, **failure)
    assert queue_of(world, id).status == "Held"
    world.when(ResumeQueue(), on=id)
    start_item(world, id, second)
    end_item(world, id, second, **failure)
    assert queue_of(world, id).status == "Active"


def test_what_is_under_way_goes_on_when_the_queue_is_retired(world: World) -> None:
    id = open_queue(world)
    first, second = add_items(world, id, "a", "b")
    start_item(world, id, first)
    world.when(RetireQueue(reason="over"), on=id)
    assert [status_of(world, id, one) for one in (first, second)] == ["Running", "Removed"]
    assert item_of(world, id, second).detail == "over"
    end_item(world, id, first, **FAILED)
    assert (status_of(world, id, first), queue_of(world, id).status) == ("Failed", "Retired")


def test_an_attempt_that_is_blocked_in_a_retired_queue_is_removed(world: World) -> None:
    id = open_queue(world)
    (item_id,) = add_items(world, id, "a")
    start_item(world, id, item_id)
    world.when(RetireQueue(reason="over"), on=id)
    block_item(world, id, item_id)
    assert status_of(world, id, item_id) == "Removed"
    assert not queue_of(world, id).busy


def test_a_queue_is_found_while_it_has_something_to_do_and_while_it_is_blocked(world: World) -> None:
    id = open_queue(world)
    found = [lookups(world)]
    first, second = add_items(world, id, "a", "b")
    for step in (
        lambda: None,
        lambda: block_item(world, id, first),
        lambda: start_item(world, id, first),
        lambda: world.when(HoldQueue(reason="wait"), on=id),
        lambda: end_item(world, id, first),
        lambda: world.when(ResumeQueue(), on=id),
        lambda: block_item(world, id, second),
        lambda: world.when(RemoveQueueItem(item_id=second, reason="no"), on=id),
    ):
        step()
        found.append(lookups(world))
    assert found == ["", "busy", "busy blocked", "busy", "busy", "", "busy", "busy blocked", ""]


def lookups(world: World) -> str:
    return " ".join(name for name, kind in (("busy", BUSY_QUEUES), ("blocked", BLOCKED_QUEUES)) if members(world, kind))


def test_a_queue_is_shown_with_what_waits_and_what_ended_last(world: World) -> None:
    world.ports["deployment"].enclosure_observation_ttl = timedelta(seconds=60)
    id = open_queue(world)
    items = add_items(world, id, *(f"item {number}" for number in range(14)))
    for item_id in items[:11]:
        start_item(world, id, item_id)
        end_item(world, id, item_id)
    start_item(world, id, items[11])
    view = world.ask(GetQueue(), on=id)
    assert [(item.title, item.status) for item in view.items] == [
        ("item 11", "Running"),
        ("item 12", "Waiting"),
        ("item 13", "Waiting"),
    ]
    assert [item.title for item in view.last_items] == [f"item {number}" for number in range(10, 0, -1)]
    assert [one.item_id for one in view.forecast] == [items[12], items[13]]
    assert world.ask(GetQueue(as_of_version=2), on=id).forecast == ()


def test_the_items_of_a_queue_are_listed_in_pages(world: World) -> None:
    id = open_queue(world)
    items = add_items(world, id, *"abcde")
    world.when(RemoveQueueItem(item_id=items[4], reason="no"), on=id)
    start_item(world, id, items[0])
    shown, cursor = [], None
    while True:
        page = world.ask(ListQueueItems(limit=2, cursor=cursor), on=id)
        shown += [item.title for item in page.items]
        if (cursor := page.next_cursor) is None:
            break
    assert shown == ["e", "a", "b", "c", "d"]
    assert [item.title for item in world.ask(ListQueueItems(status="Waiting"), on=id).items] == ["b", "c", "d"]
    assert_refused("InvalidCursorError", lambda: world.ask(ListQueueItems(cursor="bm8"), on=id), reason="malformed")


VERBS = st.lists(
    st.tuples(
        st.sampled_from(["add", "move", "edit", "remove", "start", "block", "refuse", "end", "fail", "hold", "resume"]),
        st.integers(0, 30),
        st.integers(0, 30),
    ),
    max_size=40,
)


@given(VERBS)
def test_whatever_happens_the_order_is_kept_and_nothing_is_lost(verbs: list[tuple[str, int, int]]) -> None:
    world, model = facility_world(), QueueModel()
    id = open_queue(world, on_failure="continue")
    target = darks(recipe(world))
    for verb, one, other in verbs:
        model.do(world, id, target, verb, one, other)
        queue = queue_of(world, id)
        assert [item.item_id for item in queue.ended] == model.ended
        assert [item.item_id for item in queue.ahead] == model.ahead
        assert (None if queue.running is None else queue.running.item_id) == model.running
        assert [item.item_id for item in queue.items if item.status == "Blocked"] in ([], model.ahead[:1])
        assert len(queue.items) == len(set(model.added)) == queue.item_count
        assert queue == Queue.aggregate.fold(world.streams["Queue", id])


class QueueModel:
    """A queue as lists of ids, to compare with."""

    def __init__(self) -> None:
        self.added: list[UUID] = []
        self.ahead: list[UUID] = []
        self.ended: list[UUID] = []
        self.running: UUID | None = None
        self.held = False

    def do(self, world: World, id: UUID, target: dict[str, Any], verb: str, one: int, other: int) -> None:
        """Do the same to the queue and to the lists, or see it refused by the one and impossible with the other."""
        item_id = self.added[one % len(self.added)] if self.added else None
        if item_id is None and verb not in ("add", "hold", "resume"):
            return
        place = self.ahead[other % len(self.ahead)] if self.ahead and other % 4 else None
        refused = None
        try:
            self._do(world, id, target, verb, item_id, place)
        except Refusal as refusal:
            refused = refusal
        assert (refused is None) == self._is_possible(verb, item_id), refused
        if refused is None:
            self._follow(verb, item_id, place, world)

    def _do(
        self, world: World, id: UUID, target: dict[str, Any], verb: str, item_id: UUID | None, place: UUID | None
    ) -> None:
        match verb:
            case "add":
                add_items(world, id, "x", target=target, before_item_id=place)
            case "hold":
                world.when(HoldQueue(reason="wait"), on=id)
            case "resume":
                world.when(ResumeQueue(), on=id)
            case _ if item_id is None:
                return
            case "move":
                world.when(MoveQueueItem(item_id=item_id, before_item_id=place), on=id)
            case "edit":
                world.when(EditQueueItem(item_id=item_id, title=f"x {len(world.streams)}"), on=id)
            case "remove":
                world.when(RemoveQueueItem(item_id=item_id, reason="no"), on=id)
            case "start":
                start_item(world, id, item_id)
            case "block":
                block_item(world, id, item_id)
            case "refuse":
                refuse_item(world, id, item_id)
            case "end" | "fail":
                end_item(world, id, item_id, **(FAILED if verb == "fail" else {}))

    def _is_possible(self, verb: str, item_id: UUID | None) -> bool:
        waits = item_id in self.ahead
        match verb:
            case "hold":
                return not self.held
            case "resume":
                return self.held
            case "move" | "edit" | "remove":
                return waits
            case "start":
                return item_id == self.running or (not self.held and self.running is None and item_id in self.ahead[:1])
            case _:
                return True

    def _follow(self, verb: str, item_id: UUID | None, place: UUID | None, world: World) -> None:
        match verb:
            case "add":
                new = UUID(world.answer["item_ids"][0])
                self.added.append(new)
                self.ahead.insert(len(self.ahead) if place is None else self.ahead.index(place), new)
            case "hold" | "resume":
                self.held = verb == "hold"
            case _ if item_id is None:
                return
            case "move" if place != item_id:
                self.ahead.remove(item_id)
                self.ahead.insert(len(self.ahead) if place is None else self.ahead.index(place), item_id)
            case "remove":
                self._end(item_id)
            case "refuse" if item_id in (*self.ahead, self.running):
                self._end(item_id)
            case "start" if self.running is None:
                self.running = item_id
                self.ahead.remove(item_id)
            case "block" if item_id == self.running:
                self.running = None
                self.ahead.insert(0, item_id)
            case "end" | "fail" if item_id == self.running:
                self._end(item_id)

    def _end(self, item_id: UUID) -> None:
        self.ahead = [one for one in self.ahead if one != item_id]
        self.running = None if self.running == item_id else self.running
        self.ended.append(item_id)
