"""The decision about a firing: whether it opens its conduct now, by its schedule, the time, and what is known of it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from baton.domain.schedule import schedule as schedules
from baton.domain.schedule.messages import DueFiring
from baton.domain.schedule.schedule import Schedule
from baton.domain.shared.refusals import Refusal


class FiringAction(Enum):
    REST = "rest"  # the schedule does not fire now; nothing was touched
    ENDED = "ended"  # the record says why it opened nothing
    OPEN = "open"
    RECORD = "record"  # its conduct is open; the record is to say so
    REFUSE = "refuse"  # record why it opens nothing


@dataclass(frozen=True, kw_only=True)
class FiringFacts:
    """What is on record of a firing."""

    is_asked_for: bool = True  # whether its calendar called for it, or the trigger that it names is on the record
    is_open: bool = False  # whether its conduct was opened, however it goes
    is_begun: bool = False  # whether its run was started, or its procedure registered
    is_recorded: bool = False  # whether its outcome is on the schedule's record
    restart_limit: timedelta  # how long a conduct that a person asks for may wait for a worker


@dataclass(frozen=True)
class NextFiring:
    """What happens next, with the refusal where one is recorded."""

    action: FiringAction
    refusal: Refusal | None = None


def next_action(schedule: Schedule | None, due: DueFiring, facts: FiringFacts, now: datetime) -> NextFiring:
    """Return what happens next. Until its conduct is open a firing is judged again at every try: none acts late, or for a
    schedule that is held."""
    if schedule is None or not facts.is_asked_for:  # the engine may know more than the record
        return NextFiring(FiringAction.REST)
    if facts.is_open:
        return NextFiring(FiringAction.RECORD)
    if facts.is_recorded:
        return NextFiring(FiringAction.ENDED)
    if not fires(schedule, due):
        return NextFiring(FiringAction.REFUSE, withdrawal(schedule)) if facts.is_begun else NextFiring(FiringAction.REST)
    if (missed := missed_refusal(schedule, due, facts, now)) is not None:
        return NextFiring(FiringAction.REFUSE, missed)
    return NextFiring(FiringAction.OPEN)


def fires(schedule: Schedule, due: DueFiring) -> bool:
    """Return whether a schedule fires now: by its calendar while it is Active, on request unless it is Retired."""
    return schedule.status is not schedules.RETIRED if due.trigger_id is not None else schedule.status is schedules.ACTIVE


def withdrawal(schedule: Schedule) -> Refusal:
    """Return the refusal of a firing that was begun before its schedule was held or retired."""
    detail = f"The schedule was {schedule.status} before the firing had opened its conduct; nothing continues of it."
    return schedules.ScheduleFiringWithdrawnError(detail)


def missed_refusal(schedule: Schedule, due: DueFiring, facts: FiringFacts, now: datetime) -> Refusal | None:
    """Return the refusal of a firing that no worker took up in time. A triggered firing counts from its trigger, and may
    wait as long as a conduct that a person asks for."""
    since, limit = due.started_at, timedelta(seconds=schedule.catchup_window)
    if due.trigger_id is not None:
        since, limit = due.scheduled_at, max(limit, facts.restart_limit)
    if (late := now - since) <= limit:
        return None
    limits = f"for {late.total_seconds():.0f} s, and it may wait for {limit.total_seconds():.0f} s"
    detail = f"No worker took the firing up {limits}; see that one runs, or trigger the schedule."
    return schedules.ScheduleFiringMissedError(detail)
