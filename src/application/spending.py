"""The port of spending: what an agent's model calls have taken, for its caps to be held against."""

from datetime import datetime
from typing import Protocol
from uuid import UUID

from domain.agent.budget import Spent


class Spending(Protocol):
    """Sums of what agents have put on record themselves; what others appended does not count."""

    async def of(self, agent_id: UUID, at: datetime) -> Spent:
        """What an agent has spent in the calendar month and on the calendar day of this time, in UTC."""
        ...
