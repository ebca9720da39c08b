"""What agents have spent, asked of every store: their own rows, in the month and on the day they are accounted to."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from baton.application.ports import Batch, Spending, Store
from baton.domain.agent.agent import SpentAmounts
from baton.domain.decision.decision import Inference
from baton.domain.kernel import NIL, Call
from baton.domain.shared.writes import Enter
from baton.infrastructure.postgres.agent_data import PostgresSpending
from baton.infrastructure.postgres.store import PostgresStore
from baton.testing.ports import MemorySpending
from baton.testing.store import MemoryStore
from tests.support.domain.world import START, new_id

AGENT, OTHER = new_id(), new_id()
NOON = datetime(2026, 3, 31, 12, tzinfo=UTC)


@pytest.fixture
def spent_amounts(store: Store) -> Spending:
    if isinstance(store, MemoryStore):
        return MemorySpending(store)
    assert isinstance(store, PostgresStore)
    return PostgresSpending(store)


def call(at: datetime, cost: float | None, tokens: tuple[int | None, int | None], actor_id: UUID = AGENT) -> Inference:
    empty: dict[str, Any] = dict.fromkeys(Inference.model_fields)
    known = {"event_id": new_id(), "logbook_id": new_id(), "decision_id": new_id(), "correlation_id": new_id()}
    said = {"command_name": "RecordAgentDecision", "operation_name": "chat", "provider_name": "acme", "request_model": "m"}
    spent = {"cost": cost, "input_tokens": tokens[0], "output_tokens": tokens[1], "agent_id": str(AGENT)}
    return Inference(**{**empty, **known, **said, **spent, "finish_reasons": (), "actor_id": actor_id, "occurred_at": at})


async def test_windows_are_half_open_and_rows_are_the_agents_own(store: Store, spent_amounts: Spending) -> None:
    entries = [
        call(datetime(2026, 2, 28, 23, 59, 59, 999999, tzinfo=UTC), 100.0, (1000, 1000)),
        call(datetime(2026, 3, 1, tzinfo=UTC), 1.0, (10, 1)),
        call(datetime(2026, 3, 30, 23, 59, 59, tzinfo=UTC), 2.0, (20, 2)),
        call(datetime(2026, 3, 31, tzinfo=UTC), 4.0, (40, None)),
        call(datetime(2026, 3, 31, 23, 59, 59, 999999, tzinfo=UTC), None, (None, 8)),
        call(datetime(2026, 4, 1, tzinfo=UTC), 100.0, (1000, 1000)),
        call(NOON, 100.0, (1000, 1000), OTHER),
    ]
    async with store.session() as session:
        await session.append(Batch(Call(NIL, NIL, START, new_id(), new_id()), "AppendInferences", entries=[Enter(entries)]))
    assert await spent_amounts.of(AGENT, NOON) == SpentAmounts(7.0, 48)
    assert await spent_amounts.of(new_id(), NOON) == SpentAmounts(0.0, 0)
