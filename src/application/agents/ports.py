"""The ports of agents: who is not to be named, what was spent, and where conclusions are copied to."""

from datetime import datetime
from typing import Protocol
from uuid import UUID

from baton.domain.agent.budget import Spent
from baton.domain.agent.redaction import NameBook


class People(Protocol):
    """Everybody with a profile; what agents and machine accounts are called is no secret."""

    async def book(self) -> NameBook:
        """The names of people as they are now; the same book until a profile changes."""
        ...


class Spending(Protocol):
    """Sums of what agents have put on record themselves; what others appended does not count."""

    async def of(self, agent_id: UUID, at: datetime) -> Spent:
        """What an agent has spent in the calendar month and on the calendar day of this time, in UTC."""
        ...


class LogbookMirror(Protocol):
    """Copies narratives out once their decisions are committed; a deployment without one copies nothing.

    It retries, keeps time and logs by itself and never raises: a copy that fails undoes and delays nothing.
    """

    async def mirror_decision(self, decision_id: UUID, narrative: str, target_logbook: str) -> None:
        """Copy the narrative of a decision, to the letter and once, to a logbook of the outside system."""
        ...
