"""The settlement of a proposal: what happens next, by its state and the time."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from baton.domain.trust.proposal import OPEN, Proposal


class SettlementAction(Enum):
    REST = "rest"  # it is closed
    WAIT = "wait"  # for somebody who decides, until it expires
    CARRY_OUT = "carry out"
    EXPIRE = "expire"


@dataclass(frozen=True)
class Settlement:
    """What happens next, and in how many seconds a proposal that waits expires."""

    action: SettlementAction
    seconds: float = 0


def next_action(proposal: Proposal | None, now: datetime) -> Settlement:
    """Return what happens next: what was approved is carried out however late that is, and nothing else after its time."""
    if proposal is None or proposal.status is not OPEN:  # the engine may know more than the record
        return Settlement(SettlementAction.REST)
    if proposal.approved_by is not None:
        return Settlement(SettlementAction.CARRY_OUT)
    left = (proposal.expires_at - now).total_seconds()
    return Settlement(SettlementAction.WAIT, left) if left > 0 else Settlement(SettlementAction.EXPIRE)
