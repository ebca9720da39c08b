"""What an agent may spend by itself: its caps against what its calls have cost in the calendar month and day, in UTC."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar
from uuid import UUID

from baton.domain.agent.agent import Budget
from baton.domain.kernel import instant
from baton.domain.shared.writes import Record

BUDGET_EXHAUSTED = "BudgetExhausted"
PRICE_UNKNOWN = "PriceUnknown"


@dataclass(frozen=True)
class SpendingTurn(Record):
    """Which decision an agent is spending on now; while it does, it spends on no other."""

    relation: ClassVar[str] = "spending_turns"
    key: ClassVar[tuple[str, ...]] = ("agent_id",)
    agent_id: UUID
    decision_id: UUID
    taken_at: datetime


@dataclass(frozen=True)
class Spent:
    """What an agent's calls have taken so far in this month and on this day."""

    cost_in_month: float
    tokens_on_day: int


@dataclass(frozen=True)
class Exhaustion:
    """The cap that is reached."""

    cap_kind: str
    cap_value: float
    spent: float
    window_start: datetime

    def facts(self) -> Mapping[str, Any]:
        return {
            "cap_kind": self.cap_kind,
            "cap_value": self.cap_value,
            "spent": self.spent,
            "window_start": instant(self.window_start),
        }


def month_of(at: datetime) -> datetime:
    """When the calendar month of a time began."""
    return day_of(at).replace(day=1)


def day_of(at: datetime) -> datetime:
    """When the calendar day of a time began."""
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def next_month(at: datetime) -> datetime:
    """When the calendar month after that of a time begins."""
    return month_of(month_of(at) + timedelta(days=31))


def next_day(at: datetime) -> datetime:
    """When the calendar day after that of a time begins."""
    return day_of(at) + timedelta(days=1)


def exhausted(budget: Budget | None, spent: Spent, at: datetime) -> Exhaustion | None:
    """The first cap that is reached, the monthly one before the daily one; whoever has no budget has no limit."""
    if budget is None:
        return None
    if budget.monthly_cost_cap is not None and spent.cost_in_month >= budget.monthly_cost_cap:
        return Exhaustion("monthly_cost_cap", budget.monthly_cost_cap, spent.cost_in_month, month_of(at))
    if budget.daily_token_cap is not None and spent.tokens_on_day >= budget.daily_token_cap:
        return Exhaustion("daily_token_cap", budget.daily_token_cap, spent.tokens_on_day, day_of(at))
    return None
