"""What agents have spent, summed up in memory."""

from datetime import datetime
from uuid import UUID

from baton.domain.agent.budget import Spent, day_of, month_of, next_day, next_month
from baton.domain.decision.inferences import Inference
from baton.testing.store import MemoryStore


class MemorySpending:
    """Sums the rows that an agent has appended itself, by the time they are accounted to."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def of(self, agent_id: UUID, at: datetime) -> Spent:
        own = [row for row in self._store.listed(Inference) if isinstance(row, Inference) and row.actor_id == agent_id]
        month = [row for row in own if month_of(at) <= row.occurred_at < next_month(at)]
        day = [row for row in month if day_of(at) <= row.occurred_at < next_day(at)]
        return Spent(
            sum(row.cost or 0.0 for row in month), sum((row.input_tokens or 0) + (row.output_tokens or 0) for row in day)
        )
