"""A language model that had a part in a decision, agents in service, what one of them proposes, and where a reaction is."""

from typing import Any
from uuid import UUID

from tests.support.domain.caution_proposals import proposal_fields
from tests.support.domain.language_models import entry
from tests.support.service import Api

SYSTEM_CONDUIT = "00000000-0000-0000-0000-000000000010"
SYSTEM_HTTP = "00000000-0000-0000-0000-000000000020"


async def create_samples(api: Api, ids: dict[str, str], mark: str) -> None:
    ids["language_model_id"] = await api.create(
        "/language-models", entry(model="m-1", snapshot_pin=f"m-1-{mark}", endpoint_note="Through the site gateway")
    )
    ids["agent_id"] = await create_agent(api, "RunDebriefer", mark)
    ids["caution_proposal_id"] = await proposal(api, mark, UUID(ids["asset_id"]))
    ids["subscriber_name"] = "caution_promoter"
    ids["logged_event_id"] = await next_event(api, ids["subscriber_name"], "DecisionRegistered")


async def create_agent(api: Api, kind: str, mark: str, **fields: Any) -> str:
    """An agent of a kind that asks whatever model the deployment has for it."""
    model_ref = {"provider": "setting", "model": "RUN_DEBRIEFER_MODEL"}
    claims = {
        "description": "Writes what it sees.",
        "canonical_uri": "https://agents.example/1",
        "capabilities": ["compare"],
    }
    defined = {"kind": kind, "name": f"{kind} {mark}", "version": "2.1", "model_ref": model_ref, **claims, **fields}
    agent_id = await api.create("/agents", defined)
    await api.execute(f"/agents/{agent_id}/version")
    await api.execute(f"/agents/{agent_id}/tools/grant", {"tool_name": "get_run"})
    await api.execute(f"/agents/{agent_id}/update-budget", {"monthly_cost_cap": 40.0, "daily_token_cap": 200_000})
    return agent_id


async def proposal(api: Api, mark: str, target_id: UUID, choice: str = "ProposeNotice") -> str:
    """A caution that an agent with a token of its own proposes."""
    drafter = await create_agent(api, "CautionDrafter", mark)
    grant = {"name": f"Drafts {mark}", "conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
    permitted = {"permitted_principal_ids": [drafter], "permitted_commands": ["RegisterDecision"]}
    await api.create("/policies", {**grant, **permitted})
    return await api.acting_as(drafter).create("/decisions", {"decided_by": drafter, **proposal_fields(choice, target_id)})


async def next_event(api: Api, subscriber_name: str, event_type: str) -> str:
    """The next event that a subscriber has before it; nobody leads it through the log here."""
    (reaction,) = (await api.get("/reactions", subscriber_name=subscriber_name)).json()["items"]
    asked = {"after": reaction["bookmark"]["position"], "event_type": event_type, "limit": 1}
    (event,) = (await api.get("/events", **asked)).json()["items"]
    id: str = event["event_id"]
    return id
