"""Safety: forms on their way into force with what they cover and who has judged them, forms in force, hutches and supplies,
each with its verbs."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from baton.console.display import instant_of, words_of
from baton.console.page import Context, MenuGroup, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.verbs import VerbButton, creations_of, verbs_of
from baton.domain.access.actor import ActorKind
from baton.domain.enclosure.enclosure import Enclosure, EnclosureLifecycle, GetEnclosure, ListEnclosures
from baton.domain.kernel import Aggregate
from baton.domain.safety.clearance import AppendClearanceReviewStep, Clearance, ClearanceStatus
from baton.domain.safety.clearance_views import GetClearance, ListClearances
from baton.domain.supply.supply import GetSupply, ListSupplies, Supply, SupplyStatus
from baton.domain.views.beamline_now import ENDS_SOON

ON_THEIR_WAY = (ClearanceStatus.UNDER_REVIEW, ClearanceStatus.SUBMITTED, ClearanceStatus.APPROVED)
NEXT_STEPS = {
    ClearanceStatus.DEFINED: "A draft. It covers nothing; hand it in when it is complete.",
    ClearanceStatus.SUBMITTED: "Handed in. Nobody reviews it yet.",
    ClearanceStatus.UNDER_REVIEW: "Under review. It takes a step that approves, and then the approval itself.",
    ClearanceStatus.APPROVED: "Approved. It covers nothing until somebody puts it into force.",
}
MOST_FORMS = 12  # forms of one status that are shown whole
MOST_TILES = 60
NFPA = ("health", "flammability", "instability")
FINAL_HAZARDS = {"Green": "good", "Yellow": "look", "Red": "stop"}

safety = page(
    "/safety",
    "Safety",
    "Forms on their way into force and in force, hutches and supplies, with the verbs of each.",
    template="safety.html",
    menu=MenuGroup.RECORD,
)
form = page(
    "/clearances/{clearance_id}",
    "Clearance",
    "One safety form whole, and its verbs.",
    template="clearance.html",
    under=safety,
)


def verbs_of_people(aggregate: Aggregate, view: Shown, queries: PageQueries) -> list[VerbButton]:
    """Return the verbs of a thing; those that only machines give say so."""
    buttons = verbs_of(aggregate, view, queries)
    return sorted(
        (one if is_for_people(one) else replace(one, why_not=machine_only(one)) for one in buttons),
        key=lambda button: button.why_not is not None,
    )


def is_for_people(button: VerbButton) -> bool:
    """Return whether a person may give a verb, whatever policies say."""
    return not button.operation.callers or ActorKind.HUMAN in button.operation.callers


def machine_only(button: VerbButton) -> str:
    """Return the sentence about a verb that no person gives."""
    kinds = " or ".join(f"a {words_of(kind).lower()}" for kind in button.operation.callers)
    return f"Only {kinds} reports this: a monitor that reads it from the plant."


@safety.region("hutches", asks=[ListEnclosures], every=5.0)
async def load_hutches(queries: PageQueries) -> Context:
    listed = await queries.show(ListEnclosures, lifecycle=EnclosureLifecycle.ACTIVE, limit=MOST_TILES)
    views = await asyncio.gather(*(queries.show_found(GetEnclosure, one["enclosure_id"]) for one in listed["items"]))
    hutches = [
        {
            **item,
            "monitored": None if view is None else view["monitored"],
            "remark": None if view is None else view["remark"],
            "fresh": is_fresh(item["last_contact_at"], queries, monitored=view is not None and view["monitored"]),
            "verbs": verbs_of_people(Enclosure.aggregate, item, queries),
        }
        for item, view in zip(listed["items"], views, strict=True)
    ]
    return {"hutches": hutches, "more": listed["next_cursor"], "creations": creations_of(Enclosure.aggregate, queries)}


def is_fresh(contacted_at: object, queries: PageQueries, *, monitored: bool) -> bool:
    """Return whether an observation is recent enough to work by."""
    at, rules = instant_of(contacted_at), queries.rules
    seconds = rules.monitored_seconds if monitored else rules.observation_seconds
    return at is not None and abs(queries.now - at) <= timedelta(seconds=seconds)


@safety.region("supplies", asks=[ListSupplies], every=10.0)
async def load_supplies(queries: PageQueries) -> Context:
    listed = await queries.show(ListSupplies, limit=MOST_TILES)
    items = [one for one in listed["items"] if one["status"] != SupplyStatus.DECOMMISSIONED]
    views = await asyncio.gather(*(queries.show_found(GetSupply, one["supply_id"]) for one in items))
    supplies = [
        {
            **item,
            "monitored": view is not None and view["monitored"],
            "last_contact_at": None if view is None else view["last_contact_at"],
            "verbs": verbs_of_people(Supply.aggregate, item, queries),
        }
        for item, view in zip(items, views, strict=True)
    ]
    return {"supplies": supplies, "more": listed["next_cursor"], "creations": creations_of(Supply.aggregate, queries)}


@safety.region("review", asks=[ListClearances, GetClearance])
async def load_review(queries: PageQueries) -> Context:
    """Load the forms on their way into force, those first that are being reviewed."""
    pages = await asyncio.gather(*(forms_of_status(queries, status) for status in ON_THEIR_WAY))
    listed = [item for page in pages for item in page["items"]]
    forms = await asyncio.gather(*(describe_form(queries, item["clearance_id"], item) for item in listed))
    more = [status.value for status, page in zip(ON_THEIR_WAY, pages, strict=True) if page["next_cursor"]]
    return {"forms": forms, "more": more, "four_eyes": queries.rules.four_eyes}


async def forms_of_status(queries: PageQueries, status: ClearanceStatus, **fields: object) -> Shown:
    """Return the newest forms of a status."""
    return await queries.show(ListClearances, status=status, order="desc", **{"limit": MOST_FORMS, **fields})


async def describe_form(
    queries: PageQueries, clearance_id: str, listed: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """Return a form with its hazards in words, who registered it, what it waits for, and its verbs."""
    view, past = await asyncio.gather(
        queries.show(GetClearance, clearance_id), queries.show_found(Clearance.aggregate.history, clearance_id, limit=1)
    )
    first = past["items"][0] if past and past["items"] else None
    return {
        **(listed or {}),
        **view,
        "hazards": [describe_hazards(one) for one in view["declarations"]],
        "risk_look": FINAL_HAZARDS.get(view["risk_band"] or "", "plain"),
        "registered_at": view["created_at"],
        "registered_by_name": first["principal_name"] if first else None,
        "registered_known": first is not None,
        "next_step": NEXT_STEPS.get(ClearanceStatus(view["status"])),
        "verbs": [with_next_step(one, view) for one in verbs_of_people(Clearance.aggregate, view, queries)],
        **validity_of(view, queries.now),
    }


def with_next_step(button: VerbButton, form: Shown) -> VerbButton:
    """Return the verb of a review step with the number of the next one."""
    if button.operation is not AppendClearanceReviewStep.operation:
        return button
    return replace(button, href=f"{button.href}&step_index={len(form['review_steps'])}")


def describe_hazards(declaration: Shown) -> dict[str, Any]:
    """Return a declaration with each rating in the words of its scheme."""
    return {**declaration, "ratings": [describe_rating(one) for one in declaration["classifications"]]}


def describe_rating(rating: Shown) -> str:
    """Return a rating in the words of its scheme."""
    match rating["kind"]:
        case "NFPA704":
            special = f", {rating['special']}" if rating.get("special") else ""
            return "NFPA 704 " + ", ".join(f"{name} {rating[name]}" for name in NFPA) + special
        case "RiskBand":
            return f"risk band {rating['band']}"
        case "GHS":
            codes = ", ".join(rating.get("statement_codes", ()))
            return f"{rating['code']} ({codes})" if codes else f"{rating['code']}"
        case _:
            severity = f", {rating['severity_label']}" if rating.get("severity_label") else ""
            return f"{rating['scheme']} {rating['code']}{severity}"


def validity_of(form: Mapping[str, object], now: datetime) -> dict[str, Any]:
    """Return whether a form in force counts now, and whether it ends soon."""
    begins, ends = instant_of(form["valid_from"]), instant_of(form["valid_until"])
    active = form["status"] == ClearanceStatus.ACTIVE
    return {
        "not_yet": active and begins is not None and begins > now,
        "over": active and ends is not None and ends <= now,
        "ends_soon": active and ends is not None and now < ends <= now + ENDS_SOON,
    }


@safety.region("force", asks=[ListClearances], every=30.0)
async def load_force(queries: PageQueries) -> Context:
    """Load the forms in force, those first that end first."""
    active, month = ClearanceStatus.ACTIVE, queries.now + timedelta(days=30)
    newest = await forms_of_status(queries, active, limit=50)
    ending = await forms_of_status(queries, active, due_by=month, limit=50) if newest["next_cursor"] else newest
    items = {item["clearance_id"]: item for item in (*ending["items"], *newest["items"])}
    shown = [
        {**item, **validity_of(item, queries.now), "verbs": verbs_of_people(Clearance.aggregate, item, queries)}
        for item in items.values()
    ]
    shown.sort(key=lambda item: (item["valid_until"] is None, item["valid_until"] or "", item["title"]))
    return {"forms": shown, "more": newest["next_cursor"]}


@safety.region("drafts", asks=[ListClearances])
async def load_drafts(queries: PageQueries) -> Context:
    listed = await forms_of_status(queries, ClearanceStatus.DEFINED, limit=20)
    drafts = [{**item, "verbs": verbs_of_people(Clearance.aggregate, item, queries)} for item in listed["items"]]
    return {"drafts": drafts, "more": listed["next_cursor"], "creations": creations_of(Clearance.aggregate, queries)}


@form.title_from
async def name_form(queries: PageQueries) -> str:
    """Return the title of the form."""
    return (await queries.ask(GetClearance, queries.id("clearance_id"))).title


@form.region("form", asks=[GetClearance], every=30.0)
async def load_form(queries: PageQueries) -> Context:
    return {"form": await describe_form(queries, str(queries.id("clearance_id"))), "four_eyes": queries.rules.four_eyes}
