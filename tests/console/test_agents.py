"""Agents: what each is and may spend, what it decided and why, what it proposes, and its verbs with their reasons."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest

from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP
from tests.support.console.page_text import card
from tests.support.console.staff import ADMIN, ENFORCED, Person, employ
from tests.support.domain.caution_proposals import TITLE, proposal_fields
from tests.support.service import Api, running_api

LONG = "The first projections drift. " * 20


@dataclass(frozen=True)
class Crew:
    """Somebody who keeps agents, somebody who may only look, and an agent with a budget that proposed a caution."""

    keeper: Person
    guest: Person
    agent_id: str
    proposal_id: str
    position: int


@pytest.fixture(scope="module")
async def crew(module_database: str) -> AsyncIterator[Crew]:
    async with running_api(module_database, **ENFORCED) as api:
        keeper = await employ(api, "Ines Keeper", sets=("all",))
        guest = await employ(api, "Gil Guest", sets=("queries",))
        agent_id = await define_agent(keeper.api)
        drafter = {"permitted_principal_ids": [agent_id], "permitted_commands": ["RegisterDecision"]}
        place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
        await api.acting_as(ADMIN).create("/policies", {"name": "Drafts", **place, **drafter})
        station = await keeper.api.create("/assets", {"name": "Stage", "tier": "Unit", "facility_code": "facility"})
        proposed = proposal_fields("ProposeNotice", UUID(station))
        reasoned = {"decided_by": agent_id, **proposed, "reasoning": LONG}
        proposal_id = await api.acting_as(agent_id).create("/decisions", reasoned)
        budget = {"monthly_cost_cap": 40.0, "daily_token_cap": 200_000}
        position = await keeper.api.execute(f"/agents/{agent_id}/update-budget", budget)
        yield Crew(keeper, guest, agent_id, proposal_id, position)


async def define_agent(api: Api) -> str:
    """An agent in service that asks a model."""
    model_ref = {"provider": "acme", "model": "m-1", "snapshot_pin": "m-1-0601"}
    agent = {"kind": "CautionDrafter", "name": "Night drafter", "version": "2.1", "model_ref": model_ref}
    agent_id = await api.create("/agents", agent)
    await api.execute(f"/agents/{agent_id}/version")
    await api.execute(f"/agents/{agent_id}/tools/grant", {"tool_name": "get_run"})
    return agent_id


async def test_an_agent_shows_what_it_thinks_with_may_spend_and_decided(crew: Crew) -> None:
    shown = card(await crew.keeper.see("/console/agents", after=crew.position), "Night drafter")
    for text in ("m-1 of acme, pinned to m-1-0601", "40 $ a month", "tokens a day", "get_run", "high confidence, 0.8"):
        assert text in shown, text
    assert f'href="/console/decisions/{crew.proposal_id}">Propose notice</a>' in shown
    assert re.search(r"<summary>The first projections drift.*? …</summary>", shown)
    assert LONG.strip() in shown


async def test_one_agent_alone_shows_all_it_decided(crew: Crew) -> None:
    page = await crew.keeper.see("/console/agents", after=crew.position, agent=crew.agent_id)
    assert page.count("<article") == 1
    assert "What it decided</h3>" in page
    assert (await crew.keeper.api.get("/console/agents", agent=str(uuid4()))).status_code == 404


async def test_a_proposal_waits_with_the_verbs_that_resolve_it(crew: Crew) -> None:
    page = await crew.keeper.see("/console/agents", after=crew.position)
    waiting = page[page.index('id="region-proposals"') : page.index('id="region-reactions"')]
    assert TITLE in waiting
    assert f"/console/do/promote_caution_proposal?decision_id={crew.proposal_id}" in waiting
    assert f"/console/do/rate_decision?decision_id={crew.proposal_id}" in waiting
    denied = await crew.guest.see("/console/agents", after=crew.position)
    assert "it takes the permission PromoteCautionProposal." in denied
    assert "/console/do/promote_caution_proposal" not in denied


async def test_verbs_follow_the_state_and_the_permissions(crew: Crew) -> None:
    page = await crew.keeper.see("/console/agents", after=crew.position)
    shown = card(page, "Night drafter")
    assert f"/console/do/suspend_agent?agent_id={crew.agent_id}" in shown
    assert "<b>Resume</b> <span>The agent is Versioned; this is possible only from Suspended.</span>" in shown
    refused = card(await crew.guest.see("/console/agents", after=crew.position), "Night drafter")
    assert "<b>Suspend</b> <span>You may not: it takes the permission SuspendAgent. <a" in refused
    position = await crew.keeper.api.execute(f"/agents/{crew.agent_id}/suspend", {"reason": "It repeats itself."})
    suspended = card(await crew.keeper.see("/console/agents", after=position), "Night drafter")
    assert re.search(r"Suspended <time [^>]*data-age>[^<]*</time> by Ines Keeper: It repeats itself\.", suspended)
    assert f"/console/do/resume_agent?agent_id={crew.agent_id}" in suspended
    await crew.keeper.api.execute(f"/agents/{crew.agent_id}/resume")


async def test_reactions_say_how_far_they_are(crew: Crew) -> None:
    page = await crew.guest.see("/console/agents")
    reactions = page[page.index('id="region-reactions"') :]
    assert "Caution promoter" in reactions
    assert re.search("Switched off|Up to date|unprocessed", reactions)
