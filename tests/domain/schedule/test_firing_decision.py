"""What is decided about a firing, as a table: by its schedule, the time, and what is known of it."""

from datetime import timedelta
from typing import Any

from baton.domain.schedule.firing_decision import FiringAction, FiringFacts, NextFiring, next_action
from baton.domain.schedule.messages import DueFiring
from baton.domain.schedule.schedule import (
    HoldSchedule,
    RetireSchedule,
    ScheduleFiringMissedError,
    ScheduleFiringWithdrawnError,
)
from baton.domain.shared.refusals import Refusal
from tests.support.domain.schedules import define_schedule, schedule_of
from tests.support.domain.world import World, new_id
from tests.support.tables import for_each

LIMIT = timedelta(seconds=600)
HELD, RETIRED = HoldSchedule(reason="shift change"), RetireSchedule(reason="over")
AT_ONCE, IN_TIME, LATE = timedelta(), timedelta(seconds=120), timedelta(seconds=700)
MISSED, WITHDRAWN = ScheduleFiringMissedError, ScheduleFiringWithdrawnError
Case = tuple[Any, bool, dict[str, bool], timedelta, FiringAction, type[Refusal] | None]
TABLE: list[Case] = [
    (None, False, {}, AT_ONCE, FiringAction.OPEN, None),
    (None, True, {}, AT_ONCE, FiringAction.OPEN, None),
    (HELD, False, {}, AT_ONCE, FiringAction.REST, None),
    (HELD, True, {}, AT_ONCE, FiringAction.OPEN, None),
    (RETIRED, True, {}, AT_ONCE, FiringAction.REST, None),
    (HELD, False, {"is_begun": True}, AT_ONCE, FiringAction.REFUSE, WITHDRAWN),
    (RETIRED, True, {"is_begun": True}, AT_ONCE, FiringAction.REFUSE, WITHDRAWN),
    (None, False, {}, IN_TIME, FiringAction.REFUSE, MISSED),
    (None, True, {}, IN_TIME, FiringAction.OPEN, None),
    (None, True, {}, LATE, FiringAction.REFUSE, MISSED),
    (None, False, {"is_recorded": True}, LATE, FiringAction.ENDED, None),
    (HELD, False, {"is_open": True, "is_begun": True}, LATE, FiringAction.RECORD, None),
    (None, False, {"is_open": True, "is_recorded": True}, LATE, FiringAction.RECORD, None),
    (None, True, {"is_asked_for": False, "is_open": True}, AT_ONCE, FiringAction.REST, None),
]
"""What was done to the schedule, whether the firing was triggered, what is known, how late it is, and what that comes to."""


@for_each(("given", "triggered", "known", "late", "expected", "refusal"), TABLE)
def test_what_a_firing_comes_to(
    given: Any,
    triggered: bool,
    known: dict[str, bool],
    late: timedelta,
    expected: FiringAction,
    refusal: type[Refusal] | None,
) -> None:
    world = World()
    id = define_schedule(world, catchup_window=60)
    if given is not None:
        world.when(given, on=id)
    trigger_id = new_id() if triggered else None
    due = DueFiring(schedule_id=id, scheduled_at=world.now, started_at=world.now, trigger_id=trigger_id)
    facts = FiringFacts(restart_limit=LIMIT, **known)
    found = next_action(schedule_of(world, id), due, facts, world.now + late)
    assert (found.action, None if found.refusal is None else type(found.refusal)) == (expected, refusal)


def test_a_schedule_that_the_record_does_not_know_does_not_fire() -> None:
    now = World().now
    due = DueFiring(schedule_id=new_id(), scheduled_at=now, started_at=now)
    assert next_action(None, due, FiringFacts(restart_limit=LIMIT), now) == NextFiring(FiringAction.REST)
