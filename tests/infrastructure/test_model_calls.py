"""What every store says of the models behind decisions: what the logged calls come to, however they came."""

import random
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from baton.application.ports import Batch, Store
from baton.domain.agent.language_model import ListAtRiskResults, ModelCall, model_calls
from baton.domain.decision.decision import Inference
from baton.domain.kernel import Call
from baton.domain.shared.listing import Where
from baton.domain.shared.writes import Enter
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.infrastructure.postgres.pool import runtime_pool
from baton.infrastructure.postgres.statements import page_statement
from baton.infrastructure.postgres.store import PostgresStore
from tests.support.domain.world import OPERATOR, START, new_id

DECISIONS = [new_id() for _ in range(6)]
PROVIDERS = ["acme", "bolt"]
MODELS = ["m-1", "m-1.1", "m-2", "newest"]
NAMES = [*MODELS, *(f"{model}-2026060{number}" for model in MODELS for number in (1, 2)), "m-1-202606", "-20260601"]


async def append(store: Store, *entries: Inference) -> None:
    call = Call(OPERATOR, SYSTEM_HTTP, START, new_id(), new_id())
    async with store.session() as session:
        await session.append(Batch(call, "AppendInferences", entries=[Enter(entries)]))


def some_call(chance: random.Random) -> Inference:
    """Any call; many happen in the same minute."""
    empty: dict[str, Any] = dict.fromkeys(Inference.model_fields)
    known = {"event_id": new_id(), "logbook_id": new_id(), "actor_id": OPERATOR, "correlation_id": new_id()}
    said = {
        "command_name": "AppendInferences",
        "operation_name": "chat",
        "decision_id": chance.choice(DECISIONS),
        "occurred_at": START + timedelta(minutes=chance.randrange(20)),
        "provider_name": chance.choice(PROVIDERS),
        "request_model": chance.choice(NAMES),
        "response_model": chance.choice([None, *NAMES]),
        "agent_id": chance.choice([None, "agent-7"]),
        "finish_reasons": (),
    }
    return Inference(**{**empty, **known, **said})


def conditions_for(provider: str, model: str) -> list[Where]:
    return [Where("provider_name", "is", provider), Where("model", "is", model)]


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_a_model_is_found_behind_the_same_decisions_everywhere(store: Store, order: str) -> None:
    chance = random.Random(7)
    calls = [some_call(chance) for _ in range(60)]
    await append(store, *calls)
    expected = list(model_calls(calls))
    shown = set(ModelCall.model_fields) - ModelCall.hidden()
    for provider in PROVIDERS:
        for model in [*NAMES, "unheard-of"]:
            rows = [row for row in expected if (row.provider_name, row.model) == (provider, model)]
            rows.sort(key=lambda row: (row.occurred_at, row.decision_id), reverse=order == "desc")
            assert [row.model_dump(include=shown) for row in rows] == [
                {name: getattr(item, name) for name in shown}
                for item in await read_pages(store, order, conditions_for(provider, model))
            ]


async def read_pages(store: Store, order: str, where: list[Where]) -> list[Any]:
    """Every row, two at a time."""
    items: list[Any] = []
    cursor = None
    while True:
        async with store.session() as session:
            page = await session.page(ModelCall, ListAtRiskResults(limit=2, order=order, cursor=cursor), where)
        items += page.items
        if (cursor := page.next_cursor) is None:
            return items


async def test_a_model_is_looked_up_without_reading_every_call(database_url: str) -> None:
    chance = random.Random(7)
    async with runtime_pool(database_url, 1) as pool:
        await append(PostgresStore(pool), *(some_call(chance) for _ in range(60)))
    statement, values, _ = page_statement(ModelCall, ListAtRiskResults(), conditions_for("acme", "m-1"))
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        await connection.execute("SET enable_seqscan = off")
        plan = await (await connection.execute(f"EXPLAIN {statement}", values)).fetchall()
    lines = "\n".join(line for (line,) in plan)
    assert "Seq Scan" not in lines, lines
    for index in ("requested", "answered", "undated"):
        assert f"entries_decision_inferences_{index}" in lines, lines
