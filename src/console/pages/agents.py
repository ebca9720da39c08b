"""Agents: what each of them is, may spend and decided last and why, what they propose, and how far they follow the log."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from baton.console.page import Context, MenuGroup, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.pages.approvals import DECIDING, describe_all, list_open, proposal_ids
from baton.console.pages.waiting import resolving_verbs
from baton.console.verbs import creations_of, form_href, verbs_of
from baton.domain.agent.agent import Agent, AgentStatus, GetAgent, ListAgents
from baton.domain.agent.language_model import DETERMINISTIC, SETTING
from baton.domain.agent.reactions import DismissEventInReaction, ListReactions
from baton.domain.decision.decision import GetDecision, ListDecisions
from baton.domain.shared.naming import referred_aggregate
from baton.domain.trust.proposal import GetProposal, ListProposals
from baton.domain.views.waiting import ListWaiting, WaitingKind

SHOWN_AGENTS, SHOWN_DECISIONS, SHOWN_PROPOSALS = 20, 4, 10
READ_DECISIONS = 100  # of all agents together, newest first; an agent that has none among them is asked for by itself
EXCERPT = 180  # characters of a reasoning that stand beside a decision
ORDER = (AgentStatus.SUSPENDED, AgentStatus.VERSIONED, AgentStatus.DEFINED, AgentStatus.DEPRECATED)
LABELS = {"promote_caution_proposal": "Make it a caution", "rate_decision": "Rate or dismiss"}
CAPS = {"monthly_cost_cap": "its monthly cost", "daily_token_cap": "its daily tokens"}

agents = page(
    "/agents",
    "Agents",
    "What each agent did and why, what it may spend, and what it proposes.",
    template="agents.html",
    menu=MenuGroup.RECORD,
)


@agents.region("agents", asks=[ListAgents, GetAgent], watches=("Decision",))
async def load_agents(queries: PageQueries) -> Context:
    """Load every agent with its latest decisions, or one with many of them."""
    chosen = queries.query.get("agent")
    if chosen:
        decisions = await decisions_of(queries, chosen, limit=20, cursor=queries.query.get("cursor"))
        shown = [await describe_agent(queries, chosen, decisions["items"], explained=20)]
        return {"agents": shown, "chosen": chosen, "next_cursor": decisions["next_cursor"], "creations": []}
    listed, latest = await asyncio.gather(
        queries.show(ListAgents, limit=SHOWN_AGENTS, cursor=queries.query.get("cursor")),
        queries.show_if_permitted(ListDecisions, order="desc", limit=READ_DECISIONS),
    )
    rows = latest or {"items": [], "next_cursor": None}
    own = {id: [one for one in rows["items"] if one["decided_by"] == id][:SHOWN_DECISIONS] for id in ids_of(listed["items"])}
    if rows["next_cursor"]:  # an agent that rests may have decided before all of these
        resting = [id for id, found in own.items() if not found]
        older = await asyncio.gather(*(decisions_of(queries, id, limit=SHOWN_DECISIONS) for id in resting))
        own |= {id: page["items"] for id, page in zip(resting, older, strict=True)}
    shown = list(await asyncio.gather(*(describe_agent(queries, id, own[id]) for id in own)))
    shown.sort(key=lambda one: ORDER.index(AgentStatus(one["status"])))
    creations = creations_of(Agent.aggregate, queries)
    return {"agents": shown, "chosen": None, "next_cursor": listed["next_cursor"], "creations": creations}


def ids_of(items: Sequence[Shown]) -> list[str]:
    """Return the ids of listed agents."""
    return [item["agent_id"] for item in items]


async def decisions_of(queries: PageQueries, agent_id: str, **fields: object) -> Shown:
    """Return the newest decisions of one agent; none to those who may not list decisions."""
    page = await queries.show_if_permitted(ListDecisions, decided_by=agent_id, order="desc", **fields)
    return page or {"items": [], "next_cursor": None}


async def describe_agent(
    queries: PageQueries, agent_id: str, decisions: Sequence[Shown], explained: int = 1
) -> dict[str, Any]:
    """Return an agent with its decisions, so many of them with their reasons, and its verbs."""
    asked = (queries.show_found(GetDecision, one["decision_id"]) for one in decisions[:explained])
    view, whole = await asyncio.gather(queries.show(GetAgent, agent_id), asyncio.gather(*asked))
    rest = decisions[explained:]
    described = [describe_decision(one, view) for one, view in zip(decisions, [*whole, *([None] * len(rest))], strict=True)]
    return {
        **view,
        "model": describe_model(view["model_ref"]),
        "decisions": described,
        "may_list": queries.may(ListDecisions),
        "verbs": verbs_of(Agent.aggregate, view, queries),
    }


def describe_model(model_ref: Mapping[str, object]) -> str:
    """Return in words what an agent thinks with."""
    match model_ref["provider"]:
        case provider if provider == DETERMINISTIC:
            return "rules, no model"
        case provider if provider == SETTING:
            return f"the model that {model_ref['model']} names"
        case provider:
            pinned = f", pinned to {model_ref['snapshot_pin']}" if model_ref.get("snapshot_pin") else ""
            return f"{model_ref['model']} of {provider}{pinned}"


def describe_decision(listed: Shown, whole: Shown | None) -> dict[str, Any]:
    """Return a decision with its reasons and what it is about, as far as the whole of it is known."""
    inputs: Shown = (whole or {}).get("inputs") or {}
    reasoning = (whole or {}).get("reasoning") or ""
    return {
        **listed,
        "reasoning": reasoning,
        "excerpt": reasoning if len(reasoning) <= EXCERPT else reasoning[:EXCERPT].rsplit(" ", 1)[0] + " …",
        "about": [
            (aggregate, value)
            for name, value in inputs.items()
            if isinstance(value, dict) and set(value) == {"id", "name"} and (aggregate := referred_aggregate(f"{name}_id"))
        ],
        "reached": CAPS.get(str(inputs.get("cap_kind"))),
        "spent": inputs.get("spent"),
        "cap": inputs.get("cap_value"),
        "ratings": list(((whole or {}).get("ratings") or {}).values()),
    }


@agents.region("proposals", asks=[ListWaiting], watches=("Decision", "Caution"), every=30.0)
async def load_proposals(queries: PageQueries) -> Context:
    """Load the cautions that agents propose and nobody has taken up."""
    page = await queries.show(ListWaiting, kind=[WaitingKind.CAUTION_PROPOSAL], limit=20)
    proposals = [
        {**item, "buttons": [replace(one, label=LABELS[one.name]) for one in resolving_verbs(item, queries)]}
        for item in page["items"]
    ]
    return {"proposals": proposals, "more": page["next_cursor"]}


@agents.region("commands", asks=[ListAgents, ListProposals, GetProposal], watches=DECIDING, every=10.0)
async def load_commands(queries: PageQueries) -> Context:
    """Load the commands that agents propose and somebody is to approve; of one agent alone, what became of them too."""
    if chosen := queries.query.get("agent"):
        page = await queries.ask(ListProposals, proposed_by=chosen, order="desc", limit=SHOWN_PROPOSALS)
        return {"proposals": await describe_all(queries, proposal_ids(page.items)), "chosen": chosen}
    known = await queries.ask(ListAgents, limit=100, order="desc")
    page = await list_open(queries)
    authors = {one.agent_id for one in known.items}
    proposed = [one for one in page.items if one.proposed_by in authors][:SHOWN_PROPOSALS]
    return {"proposals": await describe_all(queries, proposal_ids(proposed)), "chosen": None}


@agents.region("reactions", asks=[ListReactions], every=10.0)
async def load_reactions(queries: PageQueries) -> Context:
    answer = await queries.show(ListReactions)
    dismissal = DismissEventInReaction.operation
    return {
        "reactions": answer["items"],
        "dismiss": {
            one["subscriber_name"]: form_href(dismissal, subscriber_name=one["subscriber_name"]) for one in answer["items"]
        },
        "may_dismiss": queries.may(dismissal),
        "dismissal": dismissal.command_name,
    }
