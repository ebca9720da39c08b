"""People: who is known to the service, who may do what, and which policy says so."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any
from uuid import UUID

from baton.console.display import href_of, is_uuid, short_id, words_of
from baton.console.page import Context, MenuGroup, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.verbs import VerbButton, creations_of, form_href, verb_button, verbs_of
from baton.domain.access.actor import Actor, ActorKind, GetActor, ListActors
from baton.domain.access.group import GetGroup, Group, GroupStatus, ListGroups
from baton.domain.agent.agent import AgentStatus, GetAgent
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import NIL
from baton.domain.registry import Operation
from baton.domain.trust.authorization import APPROVAL_REQUIRED, EvaluatePolicy, is_reachable
from baton.domain.trust.conduit import AccessDecision
from baton.domain.trust.group_members import RemoveGroupMember
from baton.domain.trust.policy import (
    DefinePolicy,
    ExtendPolicy,
    GetPolicy,
    ListPolicies,
    Policy,
    RevokePolicyGrant,
    command_sets,
)
from baton.domain.trust.surface import ListSurfaces
from baton.domain.views.my_access import GetHolders, GetMyAccess

MOST_POLICIES = 100  # that one answer looks into
MOST_GROUPS, SHOWN_MEMBERS = 50, 30
SHOWN_ACTORS = 30
IN_PROCESS = "inside the service"
UNSEEN = "somebody you may not see"
REASONS = {
    "principal_deactivated": "{who} is deactivated, and everything a deactivated actor asks for is refused.",
    "agent_not_versioned": "{who} is an agent that is not in service.",
    "not_reachable": "only {kinds} can give it, and {who} is {kind}.",
    "no_applicable_policy": "there is no policy for calls over {where}.",
    "principal_not_permitted": "no policy for calls over {where} names {who}.",
    "command_not_permitted": "the policies that name {who} over {where} do not hold it.",
    "approval_required": "{who} holds it over {where} only with approval: given, it becomes a proposal.",
}
OBJECTIONS = {
    "principal_deactivated": "Deactivated",
    "agent_not_versioned": "Out of service",
    "not_reachable": "Cannot give it",
}  # Why somebody may not, whatever policies say, in a word.
PRIORITY = (APPROVAL_REQUIRED, "command_not_permitted", "principal_not_permitted", "no_applicable_policy")
ANSWERING = (ListPolicies, GetPolicy, EvaluatePolicy, ListActors)
"""What policies and people are read with; without it, a command is answered with names alone."""

people = page(
    "/people", "People", "Who may do what, and through which policy.", template="people.html", menu=MenuGroup.HOUSE
)


@cache
def operations_by_permission() -> Mapping[str, Operation]:
    """Return every operation by the permission that it takes, and by its own name."""
    return {one.command_name: one for one in REGISTRY} | {one.name: one for one in REGISTRY}


def operation_of(command_name: str) -> Operation | None:
    """Return the operation that a permission is for; None for a permission that is for none."""
    return operations_by_permission().get(command_name)


def command_named(text: str) -> str | None:
    """Return the permission that a text names, by its own name or by that of the operation."""
    if text in REGISTRY.command_names():
        return text
    return operation.command_name if (operation := operation_of(text)) else None


def label_of_command(command_name: str) -> str:
    """Return a permission in words."""
    operation = operation_of(command_name)
    return words_of(operation.name if operation else command_name)


def group_commands(names: Iterable[str]) -> list[dict[str, Any]]:
    """Return permissions by their context: what changes something, and what only asks."""
    found: dict[str, dict[str, list[str]]] = {}
    for name in sorted(names):
        operation = operation_of(name)
        context, kind = (operation.context, operation.kind) if operation else ("other", "command")
        found.setdefault(context, {"command": [], "query": []})[kind].append(name)
    return [
        {"context": context, "commands": kinds["command"], "queries": kinds["query"]}
        for context, kinds in sorted(found.items())
    ]


def surface_of(queries: PageQueries) -> UUID:
    """Return the surface that is asked about: the one that the address names, or the one that the person is on."""
    text = queries.query.get("surface", "")
    return UUID(text) if is_uuid(text) else queries.caller.surface_id


def place_name(policy: Shown) -> str:
    """Return in words where the calls of a policy arrive."""
    surface = policy.get("surface") or {}
    return IN_PROCESS if policy["surface_id"] == str(NIL) else surface.get("name") or short_id(policy["surface_id"])


@people.region("question", asks=[GetHolders], watches=("Actor", "Policy", "Surface"))
async def load_question(queries: PageQueries) -> Context:
    """Load the form that asks whether somebody may do something; about a command alone where the person may not see who is
    on record."""
    listed, surfaces = await asyncio.gather(
        queries.show_if_permitted(ListActors, limit=100, order="desc"), queries.show_if_permitted(ListSurfaces, limit=50)
    )
    listed = listed if listed and queries.may(*ANSWERING) else {"items": []}
    chosen = queries.query.get("actor", "")
    actors = {one["actor_id"]: one["name"] for one in listed["items"]}
    if chosen and chosen not in actors:
        actors[chosen] = short_id(chosen)
    return {
        "actors": sorted(actors.items(), key=lambda one: one[1].lower()),
        "actor": chosen,
        "command": queries.query.get("command", ""),
        "commands": sorted(REGISTRY.command_names()),
        "surface": str(surface_of(queries)),
        "surfaces": [(one["surface_id"], one["name"]) for one in (surfaces or {"items": []})["items"] if actors],
    }


@people.region("answer", asks=[GetHolders], watches=("Actor", "Agent", "Group", "Policy", "Surface"))
async def load_answer(queries: PageQueries) -> Context:
    """Load the answer to what the address asks: about a person, a command, or both."""
    actor_id, asked = queries.query.get("actor") or None, queries.query.get("command") or None
    command = command_named(asked) if asked else None
    empty: Context = {"unknown": None, "verdict": None, "person": None, "holders": None, "named": None}
    if (asked and command is None) or (actor_id and not is_uuid(actor_id)):
        return {**empty, "unknown": asked if command is None and asked else actor_id}
    if command and not actor_id and not queries.may(*ANSWERING):
        named = await queries.show(GetHolders, command_name=command)
        return {**empty, "named": {**named, "label": label_of_command(command)}}
    if actor_id or command:
        queries.require(one.operation for one in ANSWERING)
    if actor_id and command:
        return {**empty, "verdict": await judge_command(queries, actor_id, command)}
    if actor_id:
        return {**empty, "person": await describe_person(queries, actor_id)}
    return {**empty, "holders": await find_holders(queries, command)} if command else empty


async def load_policies(queries: PageQueries, **filters: str | UUID) -> tuple[Sequence[Shown], bool]:
    """Return the newest policies whole, and whether there are more."""
    listed = await queries.show(ListPolicies, **filters, limit=MOST_POLICIES, order="desc")
    views = await asyncio.gather(*(queries.show(GetPolicy, one["policy_id"]) for one in listed["items"]))
    return views, listed["next_cursor"] is not None


async def load_actors(queries: PageQueries, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return these actors by their ids; an id that stands for none is left out."""
    wanted = sorted(set(ids))[:100]
    listed = await queries.show(ListActors, actor_id=wanted, limit=100) if wanted else {"items": []}
    return {one["actor_id"]: one for one in listed["items"]}


async def judge_command(queries: PageQueries, actor_id: str, command: str) -> Context:
    """Return whether somebody may give a command on a surface: by which policies, or why not and what to do."""
    place = {"conduit_id": queries.caller.conduit_id, "surface_id": surface_of(queries)}
    listed, actors = await asyncio.gather(
        queries.show(ListPolicies, **place, limit=MOST_POLICIES, order="desc"), load_actors(queries, [actor_id])
    )
    asked: dict[str, object] = {f"evaluated_{name}": value for name, value in place.items()}
    asked |= {"evaluated_principal_id": actor_id, "evaluated_command_name": command}
    answers = await asyncio.gather(*(queries.show(EvaluatePolicy, one["policy_id"], **asked) for one in listed["items"]))
    judged = list(zip(listed["items"], answers, strict=True))
    permitting = [policy for policy, answer in judged if answer["decision"] == AccessDecision.ALLOW]
    asking = [policy for policy, answer in judged if answer["reason"] == APPROVAL_REQUIRED]
    denied = {answer["reason"] for _, answer in judged} | {"no_applicable_policy"}
    actor = actors.get(actor_id)
    objection = await find_objection(queries, actor, command)
    reason = objection or (None if permitting else next(one for one in PRIORITY if one in denied))
    operation = operation_of(command)
    who = actor["name"] if actor else f"the principal {short_id(actor_id)}"
    kinds = " or ".join(f"a {words_of(kind).lower()}" for kind in (operation.callers if operation else ()))
    where = place_name(listed["items"][0]) if listed["items"] else "this surface"
    words = {"who": who, "where": where, "kinds": kinds, "kind": words_of(actor["kind"]).lower() if actor else "no actor"}
    sentence = REASONS[reason].format(**words) if reason else ""
    return {
        "allowed": reason is None or (operation is not None and operation.open),
        "needless": operation is not None and operation.open,
        "who": who,
        "actor_id": actor_id,
        "where": where,
        "command": command,
        "label": label_of_command(command),
        "sentence": sentence[:1].upper() + sentence[1:],
        "proposed": reason == APPROVAL_REQUIRED,
        "policies": permitting or asking,
        "more": listed["next_cursor"] is not None,
        "grant": None if objection else grant_href(queries, surface_of(queries), actor_id, who, command),
        "may_grant": queries.may(DefinePolicy.operation),
    }


async def find_objection(queries: PageQueries, actor: Shown | None, command: str) -> str | None:
    """Return why somebody may not give a command whatever policies say."""
    if actor is None:
        return None
    if actor["status"] != "active":
        return "principal_deactivated"
    operation = operation_of(command)
    if operation is not None and not is_reachable(operation, ActorKind(actor["kind"]), surface_of(queries)):
        return "not_reachable"
    if actor["kind"] == ActorKind.AGENT:
        agent = await queries.show_found(GetAgent, actor["actor_id"])
        if agent is not None and agent["status"] != AgentStatus.VERSIONED:
            return "agent_not_versioned"
    return None


def grant_href(queries: PageQueries, surface_id: UUID, actor_id: str | None, who: str, command: str | None) -> str:
    """Return the form of a policy that permits this, filled in as far as it is known."""
    fields = {"permitted_principal_ids": actor_id, "permitted_commands": command}
    name = " ".join(part for part in (who, "may", label_of_command(command).lower() if command else "") if part)
    place = {"conduit_id": queries.caller.conduit_id, "surface_id": surface_id}
    return form_href(DefinePolicy.operation, name=name[:200] if actor_id else None, **place, **fields)


async def describe_person(queries: PageQueries, actor_id: str) -> Context:
    """Return somebody with the policies that name them, and what each of them permits."""
    (policies, more), actors, groups = await asyncio.gather(
        load_policies(queries), load_actors(queries, [actor_id]), load_groups(queries)
    )
    actor = actors.get(actor_id)
    active = [one for one in groups if one["status"] == GroupStatus.ACTIVE]
    own = {one["id"]: one["name"] for one in active if actor_id in one["member_ids"]}
    naming = [
        one for one in policies if actor_id in one["permitted_principal_ids"] or own.keys() & one["permitted_group_ids"]
    ]
    approvers = await name_approvers(queries, naming, groups)
    who = actor["name"] if actor else f"The principal {short_id(actor_id)}"
    return {
        "actor": actor,
        "actor_id": actor_id,
        "name": who,
        "verbs": verbs_of(Actor.aggregate, actor, queries) if actor else [],
        "groups": own,
        "policies": [{**describe_policy(one, queries, actor_id, own), "approvers": approvers[one["id"]]} for one in naming],
        "more": more,
        "grant": grant_href(queries, surface_of(queries), actor_id, who, None),
        "may_grant": queries.may(DefinePolicy.operation),
    }


async def name_approvers(queries: PageQueries, policies: Sequence[Shown], groups: Sequence[Shown]) -> dict[str, list[str]]:
    """Return whom each of these policies names as approvers, as far as the person may see them; none without approval."""
    approvals = {one["id"]: one["approval"] or {"principals": (), "groups": ()} for one in policies}
    actors = await load_actors(queries, (id for one in approvals.values() for id in one["principals"]))
    names = {id: one["name"] for id, one in actors.items()} | {one["id"]: f"the group {one['name']}" for one in groups}
    return {
        id: [names.get(one, UNSEEN) for one in (*approval["groups"], *approval["principals"])]
        for id, approval in approvals.items()
    }


def describe_policy(policy: Shown, queries: PageQueries, actor_id: str, groups: Mapping[str, str]) -> dict[str, Any]:
    """Return a policy with its commands by context, through which of these groups it permits somebody, and its verbs."""
    names: Sequence[str] = policy["permitted_commands"]
    through = [(id, groups[id]) for id in policy["permitted_group_ids"] if id in groups]
    buttons = [grant_button(queries, policy, name, permitted_group_id=id) for id, name in through]
    if actor_id in policy["permitted_principal_ids"]:
        buttons.insert(0, grant_button(queries, policy, "", permitted_principal_id=actor_id))
    extend = verb_button(ExtendPolicy.operation, queries, None, policy["id"])
    return {
        **policy,
        "where": place_name(policy),
        "groups": group_commands(names),
        "through": through,
        "verbs": [one for one in (*buttons, replace(extend, label="Extend")) if one.why_not is None],
    }


def grant_button(queries: PageQueries, policy: Shown, group: str, **grant: str) -> VerbButton:
    """Return the button that takes somebody, or a group, out of a policy."""
    button = verb_button(RevokePolicyGrant.operation, queries, None, policy["id"])
    href = form_href(RevokePolicyGrant.operation, policy["id"], **grant)
    return replace(button, label=f"Revoke of the group {group}" if group else "Revoke", href=href)


async def load_groups(queries: PageQueries) -> Sequence[Shown]:
    """Return the newest groups whole, as far as the person may see them."""
    if not queries.may(ListGroups, GetGroup):
        return []
    listed = await queries.show(ListGroups, limit=MOST_GROUPS, order="desc")
    return await asyncio.gather(*(queries.show(GetGroup, one["group_id"]) for one in listed["items"]))


@people.region("groups", asks=[ListGroups, GetGroup], watches=("Policy",))
async def load_group_cards(queries: PageQueries) -> Context:
    """Load the groups with their members and claims, and the policies that permit them something."""
    groups = await load_groups(queries)
    policies = (await load_policies(queries))[0] if queries.may(ListPolicies, GetPolicy) else []
    shown = [describe_group(one, policies, queries) for one in groups]
    shown.sort(key=lambda one: (one["status"] != GroupStatus.ACTIVE, one["name"].lower()))
    return {"groups": shown, "creations": creations_of(Group.aggregate, queries), "more": len(groups) == MOST_GROUPS}


def describe_group(group: Shown, policies: Sequence[Shown], queries: PageQueries) -> dict[str, Any]:
    """Return a group with its members, each with the form that removes them, and what policies permit it."""
    removal = verb_button(RemoveGroupMember.operation, queries, group["status"], group["id"])
    members = [
        {
            **one,
            "remove": replace(removal, label="Remove", href=form_href(removal.operation, group["id"], actor_id=one["id"])),
        }
        for one in group["members"][:SHOWN_MEMBERS]
    ]
    permitting = [one for one in policies if group["id"] in one["permitted_group_ids"]]
    approving = [one for one in policies if one["approval"] and group["id"] in one["approval"]["groups"]]
    return {
        **group,
        "members": members,
        "count": len(group["member_ids"]),
        "approving": approving,
        "policies": [
            {
                **one,
                "where": place_name(one),
                "revoke": grant_button(queries, one, group["name"], permitted_group_id=group["id"]),
            }
            for one in permitting
        ],
        "verbs": [
            one for one in verbs_of(Group.aggregate, group, queries) if one.operation is not RemoveGroupMember.operation
        ],
    }


async def find_holders(queries: PageQueries, command: str) -> Context:
    """Return who may give a command, each through which policy and on which surface."""
    policies, more = await load_policies(queries)
    holding = [one for one in policies if command in one["permitted_commands"]]
    actors = await load_actors(queries, (id for one in holding for id in one["permitted_principal_ids"]))
    operation = operation_of(command)
    rows: list[dict[str, Any]] = []
    for policy in holding:
        shared = {"policy": policy, "where": place_name(policy), "through": through_what(policy, command), "why_not": None}
        for group in policy["permitted_groups"]:
            name, href = group["name"] or UNSEEN, href_of(Group.aggregate, group["id"])
            revoke = grant_button(queries, policy, name, permitted_group_id=group["id"])
            rows.append({**shared, "name": name, "href": href, "kind": "group", "revoke": revoke})
        for principal in policy["permitted_principals"]:
            actor = actors.get(principal["id"])
            why_not = await find_objection(queries, actor, command)
            rows.append(
                {
                    **shared,
                    "href": f"/console/people?actor={principal['id']}",
                    "name": principal["name"] or (actor["name"] if actor else UNSEEN),
                    "kind": actor["kind"] if actor else None,
                    "why_not": OBJECTIONS[why_not] if why_not else None,
                    "revoke": grant_button(queries, policy, "", permitted_principal_id=principal["id"]),
                }
            )
    rows.sort(key=lambda row: (row["why_not"] is not None, row["name"].lower()))
    return {
        "command": command,
        "label": label_of_command(command),
        "summary": operation.summary if operation else "",
        "callers": [words_of(kind).lower() for kind in (operation.callers if operation else ())],
        "open": operation is not None and operation.open,
        "rows": rows[:100],
        "more": more or len(rows) > 100,
        "grant": grant_href(queries, surface_of(queries), None, "", command),
        "may_grant": queries.may(DefinePolicy.operation),
    }


def through_what(policy: Shown, command: str) -> str:
    """Return by what a policy permits a command: the sets of it that hold the command, or its own name."""
    known = command_sets()
    sets = [name for name in policy["permitted_command_sets"] if command in known.get(name, ())]
    return f"the set{'s' if len(sets) > 1 else ''} {', '.join(sets)}" if sets else "by its name"


@people.region("actors", asks=[ListActors])
async def load_actor_rows(queries: PageQueries) -> Context:
    """Load the actors on record, the newest first."""
    kind = queries.query.get("kind") or None
    kind = kind if kind in list(ActorKind) else None
    q = queries.query.get("q") or None if queries.may(GetActor) else None
    page = await queries.show(
        ListActors, kind=[kind] if kind else None, q=q, limit=SHOWN_ACTORS, order="desc", cursor=queries.query.get("cursor")
    )
    return {
        "actors": page["items"],
        "next_cursor": page["next_cursor"],
        "kinds": [(one.value, words_of(one.value)) for one in ActorKind],
        "kind": kind,
        "q": q or "",
        "may_search": queries.may(GetActor),
        "creations": [*creations_of(Actor.aggregate, queries), *creations_of(Policy.aggregate, queries)],
    }


@people.region("mine", asks=[GetMyAccess], watches=("Policy", "Group"))
async def load_mine(queries: PageQueries) -> Context:
    """Load what the person who looks may do here, and through which groups and policies."""
    groups = group_commands(queries.permitted)
    me = await queries.show(GetMyAccess)
    names = {one["group_id"]: one["name"] for one in me["groups"]}
    return {
        "belongs_to": me["groups"],
        "policies": [
            {**one, "through": [names[id] for id in one["through_group_ids"] if id in names]} for one in me["policies"]
        ],
        "with_approval": group_commands(queries.held.with_approval),
        "proposed": len(queries.held.with_approval),
        "groups": groups,
        "commands": sum(len(one["commands"]) for one in groups),
        "queries": sum(len(one["queries"]) for one in groups),
        "enforced": queries.rules.policies_enforced,
    }
