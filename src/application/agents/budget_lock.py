"""Turns: an agent that minds its budget asks one model at a time, so that it overspends by one call at most.

A turn is a row under the agent's id. Whoever died with it comes again for the same decision and has it still; one that
nobody came back for is given to the next after longer than any call takes.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from baton.application.ports import Batch, Caller, Clock, IdGenerator, Store
from baton.domain.agent.budget import SpendingTurn
from baton.domain.shared.writes import Drop, Put

LOCK = "spending-turns"
COMMAND_NAME = "TakeSpendingTurn"
FORGOTTEN = timedelta(minutes=45)
"""Longer than three attempts at an answer take, each as long as may be."""


class BudgetLock:
    """Gives out turns."""

    def __init__(self, store: Store, clock: Clock, new_id: IdGenerator) -> None:
        self._store = store
        self._clock = clock
        self._new_id = new_id

    async def take(self, agent_id: UUID, decision_id: UUID) -> bool:
        """Whether it is this decision's turn now."""
        async with self._store.session(LOCK) as session:
            rows = await session.records(SpendingTurn, {"agent_id": agent_id})
            now = self._clock()
            if rows and rows[0].decision_id != decision_id and now - rows[0].taken_at < FORGOTTEN:
                return False
            await session.append(self._batch(puts=[Put(SpendingTurn(agent_id, decision_id, now))]))
            return True

    async def give_back(self, agent_id: UUID, decision_id: UUID) -> None:
        """Let the next one have it."""
        own = {"agent_id": agent_id, "decision_id": decision_id}
        async with self._store.session() as session:
            await session.append(self._batch(drops=[Drop(SpendingTurn, own)]))

    def _batch(self, **parts: Any) -> Batch:
        return Batch(Caller.system(self._new_id()).call(self._clock(), self._new_id()), COMMAND_NAME, **parts)
