"""The turn of a queue: what happens next, by the queue, the time, and what was found out about the item whose turn it is."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from baton.domain.queue import queue as queues
from baton.domain.queue.items import QueueItem
from baton.domain.queue.queue import ACTIVE, HELD, Queue
from baton.domain.shared.refusals import Refusal


class TurnAction(Enum):
    REST = "rest"  # there is nothing to do
    WAIT = "wait"  # the first item is not to start yet
    JUDGE = "judge"  # ask the gates about the first item
    START = "start"  # put the start of the first item on the record
    OPEN = "open"  # open the conduct of the item whose start is on the record
    FOLLOW = "follow"  # that conduct is open: wait for its end
    BLOCK = "block"  # record what the item waits for
    REFUSE = "refuse"  # record that the item came to nothing


@dataclass(frozen=True)
class TurnFacts:
    """What was found out about the item whose turn it is."""

    is_open: bool = False  # whether its conduct was opened
    is_judged: bool = False  # whether the gates were asked
    refusal: Refusal | None = None  # what they refuse


@dataclass(frozen=True)
class NextTurn:
    """What happens next, with the item, and the refusal where one is recorded."""

    action: TurnAction
    item: QueueItem | None = None
    refusal: Refusal | None = None


def next_action(queue: Queue | None, facts: TurnFacts, now: datetime) -> NextTurn:
    """Return what happens next. A start on the record comes first; the queue may have been held since."""
    if queue is None:  # the engine may know more than the record
        return NextTurn(TurnAction.REST)
    if (running := queue.running) is not None:
        if facts.is_open:
            return NextTurn(TurnAction.FOLLOW, running)
        return refused_turn(running, withdrawal()) if queue.status is HELD else NextTurn(TurnAction.OPEN, running)
    if queue.status is not ACTIVE or not queue.ahead:
        return NextTurn(TurnAction.REST)
    first = queue.ahead[0]
    if first.not_before is not None and first.not_before > now:
        return NextTurn(TurnAction.WAIT, first)
    if not facts.is_judged:
        return NextTurn(TurnAction.JUDGE, first)
    return NextTurn(TurnAction.START, first) if facts.refusal is None else refused_turn(first, facts.refusal)


def refused_turn(item: QueueItem, refusal: Refusal) -> NextTurn:
    """Return what a refusal leads to: the item waits for what may pass, and comes to nothing by anything else."""
    return NextTurn(TurnAction.BLOCK if refusal.passing else TurnAction.REFUSE, item, refusal)


def withdrawal() -> Refusal:
    """Return the refusal of an item whose queue was held before its conduct was open; it waits until somebody resumes it."""
    detail = "The queue was held before the item had opened its conduct; it starts when somebody resumes the queue."
    return queues.QueueItemWithdrawnError(detail)
