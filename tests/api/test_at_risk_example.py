"""A provider ends a model: which decisions rested on it, over REST."""

from typing import Any
from uuid import uuid4

import pytest

from tests.support.api.example_reads import refusal
from tests.support.domain.language_models import entry
from tests.support.service import Api


class Records:
    """Decisions of one person, and the calls behind them."""

    def __init__(self, api: Api, decider: str) -> None:
        self.api, self.decider = api, decider

    async def decision(self, *calls: dict[str, Any]) -> str:
        chosen = {"decided_by": self.decider, "context": "RunDebrief", "choice": "NominalCompletion"}
        id = await self.api.create("/decisions", chosen)
        answer = await self.api.post(f"/decisions/{id}/inferences", {"entries": list(calls)})
        assert answer.json() == {"event_count": len(calls)}, answer.text
        return id


@pytest.fixture
async def records(api: Api) -> Records:
    return Records(api, await api.create("/actors", {"name": "Anna Reis"}))


def call(minute: int, request: str = "large-4", response: str | None = None, **fields: Any) -> dict[str, Any]:
    span = {"event_id": str(uuid4()), "occurred_at": f"2026-10-06T08:{minute:02}:00Z", "operation_name": "chat"}
    return {**span, "provider_name": "acme", "request_model": request, "response_model": response, **fields}


async def test_the_decisions_behind_a_retired_model_are_listed(api: Api, records: Records) -> None:
    model = await api.create("/language-models", entry())
    path = f"/language-models/{model}/at-risk-results"
    late = await records.decision(call(30, "newest", "large-4-20260601", agent_id="agent-7"))
    twice = await records.decision(call(5), call(20, "large-4", "large-4-20260601"), call(40, "large-5", "large-5"))
    early = await records.decision(call(10, "newest", "large-4"))
    await records.decision(call(1, "large-4.1", "large-4.1-20260601"), call(2, "large-4-mini"))
    await records.decision(call(3, provider_name="bolt"))

    answer = (await api.get(path)).json()
    assert answer == {
        "language_model_id": model,
        "status": "Defined",
        "archivability": "Alias",
        "reproducibility_grade": "AttributableOnly",
        "at_risk": False,
        "items": [
            item(early, 10, "newest", "large-4"),
            item(twice, 20, "large-4", "large-4-20260601"),
            item(late, 30, "newest", "large-4-20260601", "agent-7"),
        ],
        "next_cursor": None,
    }
    await api.execute(f"/language-models/{model}/approve")
    assert not (await api.get(path)).json()["at_risk"]
    await api.execute(f"/language-models/{model}/announce-retirement", {"reason": "Provider notice"})
    assert (await api.get(path)).json()["at_risk"]
    await api.execute(f"/language-models/{model}/retire")
    retired = (await api.get(path)).json()
    assert retired == {**answer, "status": "Retired", "at_risk": True}


def item(decision: str, minute: int, request: str, response: str | None, agent: str | None = None) -> dict[str, Any]:
    asked = {"request_model": request, "response_model": response, "agent_id": agent}
    return {"decision_id": decision, "occurred_at": f"2026-10-06T08:{minute:02}:00Z", **asked}


async def test_the_list_is_read_page_by_page_in_either_order(api: Api, records: Records) -> None:
    model = await api.create("/language-models", entry(model="small-1", archivability="Pinned", served_via="InHouse"))
    path = f"/language-models/{model}/at-risk-results"
    made = [await records.decision(call(minute, "small-1")) for minute in (5, 3, 3, 9, 1)]
    expected = [made[4], *sorted(made[1:3]), made[0], made[3]]
    for order, decisions in (("asc", expected), ("desc", expected[::-1])):
        found: list[str] = []
        asked: dict[str, Any] = {"limit": 2, "order": order}
        while True:
            page = (await api.get(path, **asked)).json()
            assert (page["language_model_id"], page["reproducibility_grade"]) == (model, "ReExecutable")
            found += [one["decision_id"] for one in page["items"]]
            if page["next_cursor"] is None:
                break
            asked["cursor"] = page["next_cursor"]
        assert found == decisions


async def test_a_model_that_is_not_in_the_catalog_is_not_found(api: Api) -> None:
    answer = await api.get(f"/language-models/{uuid4()}/at-risk-results")
    assert refusal(answer) == (404, "LanguageModelNotFoundError")
