"""Approvals: the commands that wait for the approval of a second person. What the person who looks may decide comes first,
then what they proposed and its fate, then what else is open; each says what it would do now, or what became of it."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

import orjson

from baton.console.display import words_of
from baton.console.judgement import name_of
from baton.console.page import Context, MenuGroup, frame_region, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.pages.people import operation_of
from baton.console.pages.waiting import count_waiting, waiting
from baton.console.verbs import VerbButton, form_href, verb_label, verbs_of
from baton.domain.contexts import REGISTRY
from baton.domain.shared.listing import Page
from baton.domain.shared.naming import name_member
from baton.domain.trust.proposal import GetProposal, ListProposals, Proposal, ProposalStatus, ProposalSummary
from baton.domain.views.waiting import ListWaiting, WaitingKind

SHOWN, LISTED = 10, 50  # Proposals in words on one page, each with a rehearsal; rows that are looked through for them.
DECIDING = ("Proposal", "Policy", "Group")
"""The streams whose events may change what somebody may decide."""
FATES = {
    ProposalStatus.CARRIED_OUT: "It was approved and carried out.",
    ProposalStatus.REFUSED: "It was approved, and refused when it was carried out.",
    ProposalStatus.REJECTED: "It was not approved.",
    ProposalStatus.WITHDRAWN: "It was withdrawn before anybody approved it.",
    ProposalStatus.EXPIRED: "Nobody approved it in time.",
}

approvals = page(
    "/approvals",
    "Approvals",
    "Commands that wait for the approval of a second person, and what became of your own.",
    template="approvals.html",
    menu=MenuGroup.WORK,
)
proposal_page = page(
    "/proposals/{proposal_id}",
    "Proposal",
    "One proposed command: what it would do, and its fate.",
    template="proposal.html",
    under=approvals,
)


@frame_region("approvals", watches=DECIDING, every=30.0, personal=True)
async def load_count(queries: PageQueries) -> Context:
    return await count_waiting(queries, (WaitingKind.PROPOSAL,), permitted=True)


@waiting.region("deciding", asks=[], watches=DECIDING, every=10.0, template="approvals/waiting.html", personal=True)
async def load_waiting(queries: PageQueries) -> Context:
    return await to_decide(queries) if queries.may(ListWaiting, GetProposal) else {"proposals": [], "next_cursor": None}


@approvals.region("deciding", asks=[ListProposals, GetProposal], watches=DECIDING, every=10.0)
async def load_deciding(queries: PageQueries) -> Context:
    return await to_decide(queries)


@approvals.region("own", asks=[ListProposals, GetProposal], watches=DECIDING, every=10.0)
async def load_own(queries: PageQueries) -> Context:
    me, place = queries.caller.principal_id, queries.query.get("own")
    page = await queries.ask(ListProposals, proposed_by=me, order="desc", limit=SHOWN, cursor=place)
    own = await describe_all(queries, proposal_ids(page.items))
    own.sort(key=lambda one: one["status"] != ProposalStatus.OPEN)
    return {"proposals": own, "next_cursor": page.next_cursor, "me": me}


@approvals.region("others", asks=[ListProposals, GetProposal], watches=DECIDING, every=10.0)
async def load_others(queries: PageQueries) -> Context:
    """Load what is open and neither theirs nor for them to decide."""
    page = await list_open(queries, limit=SHOWN, cursor=queries.query.get("others"))
    others = [one for one in page.items if one.proposed_by != queries.caller.principal_id]
    described = [
        one for one in await describe_all(queries, proposal_ids(others)) if not one["may_approve"] and one["is_open"]
    ]
    return {"proposals": described, "next_cursor": page.next_cursor}


async def list_open(queries: PageQueries, **fields: object) -> Page[ProposalSummary]:
    """Return the newest open proposals."""
    return await queries.ask(ListProposals, status=ProposalStatus.OPEN, **{"order": "desc", "limit": LISTED, **fields})


async def to_decide(queries: PageQueries) -> Context:
    """Return a page of the proposals that the person may approve, the oldest first."""
    paged: dict[str, object] = {"limit": SHOWN, "cursor": queries.query.get("deciding")}
    if queries.may(ListWaiting):
        waiting = await queries.ask(ListWaiting, kind=(WaitingKind.PROPOSAL,), permitted=True, **paged)
        ids, place = [one.id for one in waiting.items], waiting.next_cursor
    else:
        page = await list_open(queries, order="asc", **paged)
        ids, place = proposal_ids(page.items), page.next_cursor
    described = [one for one in await describe_all(queries, ids) if one["may_approve"]]
    return {"proposals": described, "next_cursor": place}


def proposal_ids(items: Iterable[ProposalSummary]) -> list[UUID]:
    """Return the ids of listed proposals."""
    return [item.proposal_id for item in items]


async def describe_all(queries: PageQueries, ids: Sequence[UUID]) -> list[Context]:
    """Return these proposals, each as its card shows it."""
    return list(await asyncio.gather(*(describe_proposal(queries, id) for id in ids)))


async def describe_proposal(queries: PageQueries, proposal_id: UUID) -> Context:
    """Return a proposal in words: the command, what it is about, what it would do now or what became of it, its verbs."""
    view = await queries.show(GetProposal, proposal_id)
    operation = operation_of(view["command_name"])
    rehearsal = view["rehearsal"] or {"would": None, "refusal": None}
    would = view["would"] if rehearsal["would"] is None else rehearsal["would"]
    is_open = view["status"] == ProposalStatus.OPEN
    return {
        **view,
        "title": title_of(view),
        "summary": operation.summary if operation else "",
        "about": await describe_target(view, queries),
        "asked": shown_request(view["request"] or {}),
        "approvers": describe_approvers(view),
        "policies": view.get(str(name_member("policy_ids")), ()),
        "events": [describe_event(one) for one in would],
        "refused_now": rehearsal["refusal"],
        "as_json": json_of(would, view["target_id"]),
        "is_open": is_open,
        "is_own": view["proposed_by"] == str(queries.caller.principal_id),
        "is_approved": is_open and view["approved_by"] is not None,
        "fate": FATES.get(ProposalStatus(view["status"])),
        "made": describe_made(view),
        "verbs": decision_verbs(view, queries),
    }


def title_of(view: Shown) -> str:
    """Return a proposed command in words; beside the thing that it is about, without that."""
    if (operation := operation_of(view["command_name"])) is None:
        return words_of(view["command_name"])
    return words_of(operation.name) if view["target_id"] is None else verb_label(operation)


def shown_request(request: Mapping[str, object]) -> Context:
    """Return the fields of the command without empty ones; a thing with a name is listed once."""
    given = {name: value for name, value in request.items() if value not in (None, [], {}) and name != "wait"}
    return {name: value for name, value in given.items() if name_member(name) not in given}


def describe_approvers(view: Shown) -> list[str]:
    """Return who may approve, as the policies name them."""
    people, groups = view.get("approvers", ()), view.get("approver_groups", ())
    named = [one["name"] for one in people if one["name"]] + [f"the group {one['name']}" for one in groups if one["name"]]
    unseen = len(people) + len(groups) - len(named)
    return [*named, f"{unseen} {'others ' if named else ''}whom you may not see"] if unseen else named


async def describe_target(view: Shown, queries: PageQueries) -> Context | None:
    """Return the thing that a proposed command is about, by its name as far as the person may see it."""
    operation = operation_of(view["command_name"])
    if operation is None or operation.aggregate is None or view["target_id"] is None:
        return None
    kind = operation.aggregate
    return {"kind": kind, "id": view["target_id"], "name": await name_of(kind.name, view["target_id"], queries)}


def describe_event(event: Shown) -> Context:
    """Return an event that would be recorded in words: its name, and what it says."""
    kind = REGISTRY.aggregates[event["stream"]].events.get(event["event_type"])
    said = ((kind.__doc__ if kind else None) or "").partition("\n")[0]
    return {"words": words_of(event["event_type"]), "said": said}


def json_of(events: Sequence[Shown], target_id: str | None) -> str:
    """Return events that would be recorded as JSON, without what would be another one a moment later: time and new ids."""
    kept = [{**one, "payload": {k: v for k, v in one["payload"].items() if k != "occurred_at"}} for one in events]
    text = orjson.dumps(kept, option=orjson.OPT_INDENT_2).decode()
    for one in events:
        if one["stream_id"] != target_id:
            text = text.replace(one["stream_id"], f"(a new {words_of(one['stream']).lower()})")
    return text


def describe_made(view: Shown) -> list[tuple[str, str]]:
    """Return what a carried-out command made: the kinds and ids that its answer names."""
    answer: Shown = view["answer"] or {}
    by_id = {aggregate.id_name: aggregate.name for aggregate in REGISTRY.aggregates.values()}
    return [(by_id[name], str(value)) for name, value in answer.items() if name in by_id and value]


def decision_verbs(view: Shown, queries: PageQueries) -> list[VerbButton]:
    """Return the buttons of a proposal: its decisions, each possible or with why not, or for its proposer the withdrawal."""
    buttons = {one.name: one for one in verbs_of(Proposal.aggregate, view, queries)}
    if view["status"] != ProposalStatus.OPEN or view["approved_by"] is not None:
        return []
    if view["proposed_by"] == str(queries.caller.principal_id):
        return [buttons["withdraw_proposal"]]
    decisions = (("approve_proposal", view["may_approve"]), ("reject_proposal", view["may_reject"]))
    approving = buttons["approve_proposal"]
    href = form_href(approving.operation, view["proposal_id"], digest=view["digest"])
    buttons[approving.name] = replace(approving, href=href)
    shown = ((buttons[name], None if may else view["why_not"]) for name, may in decisions)
    return [replace(button, why_not=button.why_not or objection) for button, objection in shown]


@proposal_page.title_from
async def name_proposal(queries: PageQueries) -> str:
    """Return the proposed command in words."""
    return title_of(await queries.show(GetProposal, queries.id("proposal_id")))


@proposal_page.region("proposal", asks=[GetProposal], watches=DECIDING, every=10.0)
async def load_proposal(queries: PageQueries) -> Context:
    return {"one": await describe_proposal(queries, queries.id("proposal_id"))}


@proposal_page.region("history", asks=[Proposal.aggregate.history])
async def load_history(queries: PageQueries) -> Context:
    id = queries.id("proposal_id")
    return {
        "items": (await queries.show(Proposal.aggregate.history, id))["items"],
        "href": f"/console/proposals/{id}/history",
    }
