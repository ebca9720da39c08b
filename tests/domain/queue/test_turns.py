"""What the turn of a queue comes to, as a table: by the queue, the time, and what was found out about the item."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from baton.domain.queue.queue import HoldQueue, Queue, QueueItemWithdrawnError
from baton.domain.queue.turns import NextTurn, TurnAction, TurnFacts, next_action
from baton.domain.shared.refusals import Conflict, Refusal
from tests.support.domain.assets import facility_world
from tests.support.domain.queues import add_items, block_item, open_queue, queue_of, start_item
from tests.support.domain.world import World
from tests.support.tables import for_each

LASTING: Refusal = Conflict("The plan is not Active any more.", reason="not_active")
PASSING: Refusal = Conflict("The beam is away; wait for it.", passing=True)
Arrange = Callable[[World], Any]


def arrange_empty(world: World) -> Any:
    return open_queue(world)


def arrange_waiting(world: World, **fields: Any) -> Any:
    id = open_queue(world)
    add_items(world, id, "first", "second", **fields)
    return id


def arrange_early(world: World) -> Any:
    return arrange_waiting(world, not_before=(world.now + timedelta(minutes=1)).isoformat())


def arrange_due(world: World) -> Any:
    id = arrange_early(world)
    world.now += timedelta(minutes=1)
    return id


def arrange_blocked(world: World) -> Any:
    id = arrange_waiting(world)
    block_item(world, id, queue_of(world, id).ahead[0].item_id)
    return id


def arrange_started(world: World) -> Any:
    id = arrange_waiting(world)
    start_item(world, id, queue_of(world, id).ahead[0].item_id)
    return id


def hold_after(arrange: Arrange) -> Arrange:
    def arrange_then_hold(world: World) -> Any:
        id = arrange(world)
        world.when(HoldQueue(reason="shift change"), on=id)
        return id

    return arrange_then_hold


UNKNOWN, OPEN = TurnFacts(), TurnFacts(is_open=True)
JUDGED, PASSES, LASTS = (TurnFacts(is_judged=True, refusal=refusal) for refusal in (None, PASSING, LASTING))
TABLE: list[tuple[Arrange, TurnFacts, TurnAction]] = [
    (arrange_empty, UNKNOWN, TurnAction.REST),
    (hold_after(arrange_waiting), UNKNOWN, TurnAction.REST),
    (arrange_early, UNKNOWN, TurnAction.WAIT),
    (arrange_due, UNKNOWN, TurnAction.JUDGE),
    (arrange_waiting, UNKNOWN, TurnAction.JUDGE),
    (arrange_blocked, UNKNOWN, TurnAction.JUDGE),
    (arrange_waiting, JUDGED, TurnAction.START),
    (arrange_blocked, JUDGED, TurnAction.START),
    (arrange_waiting, PASSES, TurnAction.BLOCK),
    (arrange_waiting, LASTS, TurnAction.REFUSE),
    (arrange_started, UNKNOWN, TurnAction.OPEN),
    (arrange_started, OPEN, TurnAction.FOLLOW),
    (hold_after(arrange_started), UNKNOWN, TurnAction.BLOCK),
    (hold_after(arrange_started), OPEN, TurnAction.FOLLOW),
]


@for_each(("arrange", "facts", "expected"), TABLE)
def test_what_a_turn_comes_to(arrange: Arrange, facts: TurnFacts, expected: TurnAction) -> None:
    world = facility_world()
    queue: Queue = queue_of(world, arrange(world))
    turn = next_action(queue, facts, world.now)
    first = next(iter(queue.items_left), None)
    assert (turn.action, turn.item) == (expected, None if expected is TurnAction.REST else first)
    assert (turn.refusal is not None) == (expected in (TurnAction.BLOCK, TurnAction.REFUSE))


def test_an_item_whose_queue_was_held_before_it_was_open_is_withdrawn() -> None:
    world = facility_world()
    queue = queue_of(world, hold_after(arrange_started)(world))
    assert isinstance(next_action(queue, UNKNOWN, world.now).refusal, QueueItemWithdrawnError)


def test_a_queue_that_the_record_does_not_know_has_nothing_to_do() -> None:
    assert next_action(None, UNKNOWN, facility_world().now) == NextTurn(TurnAction.REST)
