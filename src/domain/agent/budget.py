"""The budget rule: an agent's caps against what its calls have cost in the calendar month and day, in UTC."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from baton.domain.agent.agent import Budget
from baton.domain.kernel import instant
from baton.domain.shared.writes import Record

BUDGET_EXHAUSTED = "BudgetExhausted"
PRICE_UNKNOWN = "PriceUnknown"


@dataclass(frozen=True)
class SpendingTurn(Record):
    """The one decision that an agent is spending on now."""

    relation: ClassVar[str] = "spending_turns"
    key: ClassVar[tuple[str, ...]] = ("agent_id",)
    agent_id: UUID
    decision_id: UUID
    taken_at: datetime


class SpentAmounts(NamedTuple):
    """What an agent's calls have taken so far in this month and on this day."""

    cost_in_month: float
    tokens_on_day: int


class ReachedCap(NamedTuple):
    """The cap that is reached."""

    cap_kind: str
    cap_value: float
    spent: float
    window_start: datetime

    def facts(self) -> Mapping[str, Any]:
        """Return the cap as it is recorded."""
        return {**self._asdict(), "window_start": instant(self.window_start)}


def month_start(at: datetime) -> datetime:
    """Return when the calendar month of a time began."""
    return day_start(at).replace(day=1)


def day_start(at: datetime) -> datetime:
    """Return when the calendar day of a time began."""
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def next_month(at: datetime) -> datetime:
    """Return when the calendar month after that of a time begins."""
    return month_start(month_start(at) + timedelta(days=31))


def next_day(at: datetime) -> datetime:
    """Return when the calendar day after that of a time begins."""
    return day_start(at) + timedelta(days=1)


def reached_cap(budget: Budget | None, spent: SpentAmounts, at: datetime) -> ReachedCap | None:
    """Return the first cap that is reached, the monthly one before the daily one; without a budget there is no limit."""
    if budget is None:
        return None
    if budget.monthly_cost_cap is not None and spent.cost_in_month >= budget.monthly_cost_cap:
        return ReachedCap("monthly_cost_cap", budget.monthly_cost_cap, spent.cost_in_month, month_start(at))
    if budget.daily_token_cap is not None and spent.tokens_on_day >= budget.daily_token_cap:
        return ReachedCap("daily_token_cap", budget.daily_token_cap, spent.tokens_on_day, day_start(at))
    return None
