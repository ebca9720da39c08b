"""What agents have spent, summed up from their inference logbooks."""

from datetime import datetime
from uuid import UUID

from baton.domain.agent.budget import Spent, day_of, month_of, next_day, next_month
from baton.infrastructure.postgres.store import PostgresStore

SPENT = """
SELECT coalesce(sum(cost), 0)::double precision,
    coalesce(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0))
        FILTER (WHERE occurred_at >= %(day)s AND occurred_at < %(next_day)s), 0)::bigint
FROM entries_decision_inferences
WHERE actor_id = %(agent)s AND occurred_at >= %(month)s AND occurred_at < %(next_month)s
"""


class PostgresSpending:
    """Sums the rows that an agent has appended itself, by the time they are accounted to."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def of(self, agent_id: UUID, at: datetime) -> Spent:
        windows = {
            "agent": agent_id,
            "month": month_of(at),
            "next_month": next_month(at),
            "day": day_of(at),
            "next_day": next_day(at),
        }
        async with self._store.connection() as connection:
            row = await (await connection.execute(SPENT, windows)).fetchone()
        assert row is not None, "a sum is always there"
        return Spent(*row)
