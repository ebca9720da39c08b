"""Approvals: what a person may decide, what they proposed and what else is open, each in words with its verbs. A command
that is held only with approval leads to the proposal that it becomes, from every form."""

import json
import re
from collections.abc import AsyncIterator
from html import unescape
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit
from uuid import uuid4

import httpx
import pytest

from baton.console.pages.approvals import SHOWN, describe_approvers, json_of, shown_request
from baton.console.verbs import proposal_label
from tests.support.api.approval_service import DECIDING, ApprovalService, open_approval_service
from tests.support.api.mcp_clients import agent
from tests.support.console.live_frames import open_stream
from tests.support.console.page_source import PageSource
from tests.support.service import Api
from tests.support.waiting import until

SEEING = ("GetActor", "ListActors", "ListWaiting", "GetPolicy", "ListPolicies")


@pytest.fixture(scope="module")
async def service(module_database: str) -> AsyncIterator[ApprovalService]:
    async with open_approval_service(module_database) as service:
        everybody = (service.proposer, service.approver, service.bystander, service.powerless)
        people = [service.id_of(one) for one in everybody]
        await service.define_policy("Seeing who and what", people, list(SEEING))
        yield service


async def see(api: Api, path: str, after: dict[str, Any] | None = None, **query: str) -> str:
    """Return the source of a page on one line; with a proposal, once the lists show it."""
    if after is not None:
        await until(lambda: is_listed(api, after))
    answer = await api.get(path, **query)
    assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[-1500:]}"
    return " ".join(answer.text.split())


async def is_listed(api: Api, proposed: dict[str, Any]) -> bool:
    items = (await api.get("/proposals", limit=100, order="desc")).json()["items"]
    return any(one["proposal_id"] == proposed["proposal_id"] for one in items)


async def give(api: Api, operation: str, form: dict[str, str], **headers: str) -> httpx.Response:
    """Fill in the form of a command and send it, as a browser does."""
    page = PageSource.of((await api.get(f"/console/do/{operation}")).text)
    cookies = "; ".join(f"{name}={value}" for name, value in api.client.cookies.items())
    sent = {**form, "form_token": page.value("form_token")}
    return await api.request("POST", f"/console/do/{operation}", data=sent, headers={"cookie": cookies, **headers})


def section(page: str, name: str) -> str:
    """Return one region of a page."""
    begun = page.index(f'id="region-{name}"')
    return page[begun : page.find('id="region-', begun + 10)]


def card(page: str, proposed: dict[str, Any]) -> str:
    """Return the part of a page about one proposal; nothing where it is not there."""
    found = re.findall(r"<article.*?</article>", page)
    return next((one for one in found if f"/console/proposals/{proposed['proposal_id']}" in one), "")


def verb(name: str, proposed: dict[str, Any]) -> str:
    return f"/console/do/{name}_proposal?proposal_id={proposed['proposal_id']}"


async def shown_form(api: Api, proposed: dict[str, Any]) -> dict[str, str]:
    """Return the fields of an approval that the page of a proposal fills in."""
    path = f"/console/proposals/{proposed['proposal_id']}"
    found = re.search(r'href="/console/do/approve_proposal\?([^"]*)"', await see(api, path))
    assert found is not None
    return dict(parse_qsl(unescape(found[1])))


async def page_when_closed(service: ApprovalService, proposed: dict[str, Any]) -> str:
    """Return the page of a proposal, once it is closed."""

    async def is_closed() -> bool:
        return bool((await service.boss.get(f"/proposals/{proposed['proposal_id']}")).json()["status"] != "Open")

    await until(is_closed)
    return await see(service.approver, f"/console/proposals/{proposed['proposal_id']}")


class TestCommandsThatBecomeProposals:
    async def test_a_form_says_so_and_leads_to_the_proposal(self, service: ApprovalService) -> None:
        form = await see(service.proposer, "/console/do/define_zone")
        assert "You hold this only with approval" in form
        assert ">Propose: define zone</button>" in form
        name = f"Optics {uuid4()}"
        answer = await give(service.proposer, "define_zone", {"name": name})
        assert answer.status_code == 303, answer.text
        to = urlsplit(answer.headers["location"])
        assert re.fullmatch(r"/console/proposals/[0-9a-f-]{36}", to.path)
        assert "Proposed; it waits for approval until 2" in parse_qs(to.query)["said"][0]
        cookies = {"cookie": "; ".join(f"{k}={v}" for k, v in service.proposer.client.cookies.items())}
        page = (await service.proposer.request("GET", answer.headers["location"], headers=cookies)).text
        assert "Proposed; it waits for approval until" in page
        assert name in page

    async def test_a_script_is_told_where_the_proposal_is(self, service: ApprovalService) -> None:
        answer = await give(service.proposer, "define_zone", {"name": f"Optics {uuid4()}"}, **{"X-Fragment": "1"})
        assert answer.status_code == 200
        led = json.loads(answer.text)
        assert led["to"].startswith("/console/proposals/")
        assert led["said"].startswith("Proposed; it waits")

    async def test_what_would_be_refused_is_not_proposed(self, service: ApprovalService) -> None:
        actor = await service.boss.create("/actors", {"name": "Gone"})
        await service.boss.execute(f"/actors/{actor}/deactivate")
        answer = await give(service.proposer, "deactivate_actor", {"actor_id": actor})
        assert answer.status_code == 409
        assert "/refusals/ActorCannotDeactivateError" in answer.text

    async def test_verbs_and_the_halt_bar_say_that_they_propose(self, service: ApprovalService) -> None:
        actor = await service.boss.create("/actors", {"name": "Somebody"})
        page = await see(service.proposer, f"/console/actors/{actor}")
        assert ">Propose: deactivate</a>" in page
        assert ">Propose: hold<kbd>" in page
        assert ">Propose: define zone…</a>" in await see(service.proposer, "/console/zones")
        outright = await see(service.approver, f"/console/actors/{actor}")
        assert ">Deactivate</a>" in outright
        assert "Propose" not in outright

    async def test_a_rehearsal_stays_one(self, service: ApprovalService) -> None:
        answer = await give(service.proposer, "define_zone", {"name": f"Dry {uuid4()}", "_check": "1"})
        assert answer.status_code == 200
        assert "Nothing was done" in answer.text


class TestTheInbox:
    async def test_each_sees_what_it_is_to_them(self, service: ApprovalService) -> None:
        name = f"Optics {uuid4()}"
        proposed = await service.propose(body={"name": name})
        approver = await see(service.approver, "/console/approvals", proposed)
        shown = card(section(approver, "deciding"), proposed)
        for text in (">Define zone</a>", "Waits for approval", "proposed by <b>Proposer</b>", name, "zone defined"):
            assert text in shown, text
        assert "The zone was defined." in shown
        assert verb("approve", proposed) in shown
        assert verb("reject", proposed) in shown
        assert verb("withdraw", proposed) not in shown
        proposer = await see(service.proposer, "/console/approvals", proposed)
        own = card(section(proposer, "own"), proposed)
        assert "proposed by <b>you</b>" in own
        assert verb("withdraw", proposed) in own
        assert verb("approve", proposed) not in proposer
        bystander = await see(service.bystander, "/console/approvals", proposed)
        others = card(section(bystander, "others"), proposed)
        assert "Approve and Reject: The policy names others to approve this" in others
        assert "Who may: " in others
        assert "Second approver" in others
        assert verb("approve", proposed) not in bystander
        powerless = await see(service.powerless, "/console/approvals", proposed)
        assert "Approve: You do not hold DefineZone without approval yourself." in card(powerless, proposed)
        assert verb("reject", proposed) in card(powerless, proposed)
        assert verb("approve", proposed) not in powerless

    async def test_what_would_be_refused_now_says_why(self, service: ApprovalService) -> None:
        actor = await service.boss.create("/actors", {"name": "Temporary"})
        proposed = await service.propose(f"/actors/{actor}/deactivate", {})
        await service.approver.execute(f"/actors/{actor}/deactivate")
        shown = card(await see(service.approver, "/console/approvals", proposed), proposed)
        assert f'href="/console/actors/{actor}">Temporary</a>' in shown
        assert "It would be refused now: " in shown
        assert "/refusals/ActorCannotDeactivateError" in shown
        await give(service.approver, "approve_proposal", await shown_form(service.approver, proposed))
        page = await page_when_closed(service, proposed)
        assert "It was approved, and refused when it was carried out." in page
        assert "/refusals/ActorCannotDeactivateError" in page
        assert "/console/do/approve_proposal" not in page

    async def test_an_approval_leads_to_what_was_made_and_to_its_history(self, service: ApprovalService) -> None:
        name = f"Optics {uuid4()}"
        proposed = await service.propose(body={"name": name})
        shown = await shown_form(service.approver, proposed)
        form = {**shown, "reason": "as discussed", "back": "/console/approvals"}
        answer = await give(service.approver, "approve_proposal", form)
        assert answer.status_code == 303, answer.text
        said = parse_qs(urlsplit(answer.headers["location"]).query)["said"][0]
        assert said.endswith("Approved; it is being carried out")
        page = await page_when_closed(service, proposed)
        assert "It was approved and carried out." in page
        assert "approved by <b>Approver</b>" in page
        assert "as discussed" in page
        assert re.search(r'href="/console/zones/[0-9a-f-]{36}">The zone</a>', page)
        history = section(page, "history")
        for event in ("Proposal opened", "Proposal approved", "Proposal carried out"):
            assert event in history, event

    async def test_a_refused_approval_is_said_beside_the_form(self, service: ApprovalService) -> None:
        proposed = await service.propose()
        form = await shown_form(service.approver, proposed)
        refused = await give(service.bystander, "approve_proposal", form)
        assert refused.status_code == 403
        assert "The policy names others to approve this" in refused.text
        await service.proposer.execute(f"/proposals/{proposed['proposal_id']}/withdraw", {"reason": "a mistake"})
        late = await give(service.approver, "approve_proposal", form)
        assert late.status_code == 409
        page = await see(service.proposer, f"/console/proposals/{proposed['proposal_id']}")
        assert "It was withdrawn before anybody approved it." in page
        assert "a mistake" in page

    async def test_what_waits_for_somebody_is_counted_and_waits_for_them_alone(self, service: ApprovalService) -> None:
        proposed = await service.propose()
        page = await see(service.approver, "/console/waiting", proposed)
        assert re.search(r'id="region-approvals">\d+\+?<span class="visually-hidden"> waiting', page)
        assert verb("approve", proposed) in card(section(page, "deciding"), proposed)
        assert f"/console/proposals/{proposed['proposal_id']}" not in section(page, "items")
        other = await see(service.bystander, "/console/waiting", proposed)
        assert proposed["proposal_id"] not in other
        assert 'id="region-approvals"></span>' in other
        shared = await see(service.approver, "/console/waiting", proposed, kind="proposal")
        assert f"/console/proposals/{proposed['proposal_id']}" not in section(shared, "items")

    async def test_what_is_open_is_shown_in_pages(self, service: ApprovalService) -> None:
        held = (*DECIDING, *SEEING, "DefineZone")
        approver, person = [await service.register(name, *held) for name in ("Approver of many", "Onlooker")]
        asking = await service.register("Asking often", *DECIDING)
        approval = {"principals": [service.id_of(approver)]}
        await service.define_policy("Of many", [service.id_of(asking)], ["DefineZone"], approval=approval)
        proposed = [await service.propose(api=asking) for _ in range(SHOWN + 2)]
        for api, name in ((approver, "deciding"), (asking, "own"), (person, "others")):
            first = section(await see(api, "/console/approvals", proposed[-1]), name)
            links = re.findall(rf'href="\?{name}=([^"&]+)"', first)
            assert first.count("<article") == SHOWN, name
            assert len(links) == 1, name
            second = section(await see(api, "/console/approvals", **{name: unquote(links[0])}), name)
            assert 2 <= second.count("<article") <= SHOWN, name
            shown = [set(re.findall(r'<h3><a href="/console/proposals/([0-9a-f-]{36})', one)) for one in (first, second)]
            assert shown[0].isdisjoint(shown[1]), name

    async def test_two_with_the_same_permissions_each_see_their_own(self, service: ApprovalService) -> None:
        """A rendering is shared by those who may do the same, and what is personal is not."""
        held = (*DECIDING, *SEEING, "DefineZone")
        named, other = [await service.register(name, *held) for name in ("Named", "Not named")]
        person = await service.register("Asking")
        approval = {"principals": [service.id_of(named)]}
        await service.define_policy("Of one", [service.id_of(person)], ["DefineZone"], approval=approval)
        async with open_stream(named, "/console/approvals") as first, open_stream(other, "/console/approvals") as second:
            assert "Nothing waits for your approval" in (await first.next_region("deciding"))["html"]
            proposed = await service.propose(api=person)
            arrived = (await first.next_region("deciding"))["html"]
            assert verb("approve", proposed) in arrived.replace("&amp;", "&")
            while "The policy names others" not in (seen := (await second.next_region("others"))["html"]):
                assert verb("approve", proposed) not in seen.replace("&amp;", "&")

    async def test_a_stranger_learns_nothing(self, service: ApprovalService) -> None:
        proposed = await service.propose()
        stranger = await service.register("Stranger")
        for path in ("/console/approvals", f"/console/proposals/{proposed['proposal_id']}"):
            page = await see(stranger, path)
            assert "This takes the permission" in page
            assert "Define zone" not in page


class TestAgents:
    async def test_what_an_agent_proposes_is_approved_where_agents_are(self, service: ApprovalService) -> None:
        model = {"provider": "acme", "model": "m-1"}
        defined = {"kind": "Tidier", "name": "Night tidier", "version": "1", "model_ref": model}
        id = await service.boss.create("/agents", defined)
        await service.boss.execute(f"/agents/{id}/version")
        approval = {"principals": [service.id_of(service.boss)]}
        await service.define_policy("Tidying", [id], ["DefineZone"], approval=approval)
        proposed = await service.propose(api=service.boss.acting_as(id))
        page = await see(service.boss, "/console/agents", proposed)
        shown = card(section(page, "commands"), proposed)
        assert "Night tidier" in shown
        assert verb("approve", proposed) in shown
        alone = await see(service.boss, "/console/agents", agent=id)
        assert "Commands that it proposed" in alone
        await service.boss.execute(f"/proposals/{proposed['proposal_id']}/reject", {"reason": "not tonight"})
        assert "Rejected" in card(await see(service.boss, "/console/agents", agent=id), proposed)
        assert proposed["proposal_id"] not in await see(service.boss, "/console/agents")

    async def test_what_is_proposed_over_mcp_is_in_the_inbox(self, service: ApprovalService) -> None:
        async with agent(service.proposer) as client:
            body = (await client.call_tool("define_zone", {"name": f"Agent {uuid4()}"})).structured_content
        assert body is not None
        assert verb("approve", body) in await see(service.approver, "/console/approvals", body)


def test_a_request_is_shown_without_what_was_left_empty() -> None:
    asked = {"name": "Optics", "asset_id": "1", "asset": {"id": "1", "name": "Stage"}, "notes": None, "wait": 0, "tags": []}
    assert shown_request(asked) == {"name": "Optics", "asset": {"id": "1", "name": "Stage"}}


def test_approvers_who_may_not_be_seen_are_counted() -> None:
    seen, unseen = {"id": "1", "name": "Ada"}, {"id": "2", "name": None}
    assert describe_approvers({"approvers": [seen]}) == ["Ada"]
    assert describe_approvers({"approvers": [unseen, unseen]}) == ["2 whom you may not see"]
    shown = describe_approvers({"approvers": [seen, unseen], "approver_groups": [{"id": "3", "name": "Staff"}]})
    assert shown == ["Ada", "the group Staff", "1 others whom you may not see"]


def test_what_would_be_recorded_is_the_same_text_a_moment_later() -> None:
    def would(id: str, time: str) -> list[dict[str, Any]]:
        payload = {"zone_id": id, "name": "Optics", "occurred_at": time}
        return [{"stream": "Zone", "stream_id": id, "event_type": "ZoneDefined", "payload": payload}]

    assert json_of(would("a-1", "10:00"), None) == json_of(would("b-2", "10:01"), None)
    assert "a-1" in json_of(would("a-1", "10:00"), "a-1")


def test_a_verb_that_is_proposed_says_so() -> None:
    assert proposal_label("Define zone") == "Propose: define zone"
