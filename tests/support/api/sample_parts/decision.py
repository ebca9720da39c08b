"""A decision with a rating and a call behind it."""

from uuid import uuid4

from tests.support.service import Api


async def create_samples(api: Api, ids: dict[str, str], mark: str) -> None:
    chosen = {"decided_by": ids["actor_id"], "context": "RunAbort", "choice": "abort scan", "confidence": 0.9}
    ids["decision_id"] = await api.create("/decisions", chosen)
    await api.execute(f"/decisions/{ids['decision_id']}/rate", {"rating": "useful"})
    span = {"event_id": str(uuid4()), "occurred_at": "2026-10-06T08:00:00Z", "operation_name": "chat"}
    entries = [{**span, "provider_name": "acme", "request_model": "m-1", "messages": {"prompt": "why?"}}]
    answer = await api.post(f"/decisions/{ids['decision_id']}/inferences", {"entries": entries})
    assert answer.json() == {"event_count": 1}, answer.text
