"""Waiting for a person: everything that nobody but a person can take on, each with the verbs that do."""

from collections.abc import Mapping
from typing import Any

from baton.console.desk import Desk
from baton.console.display import words_of
from baton.console.page import Context, MenuGroup, frame_region, page
from baton.console.verbs import VerbButton, verb_button
from baton.domain.contexts import REGISTRY
from baton.domain.run.waiting import ListWaiting, WaitingKind

KINDS = {
    WaitingKind.HELD_RUN: "Run",
    WaitingKind.HELD_PROCEDURE: "Procedure",
    WaitingKind.UNKNOWN_OUTCOME: "Procedure",
    WaitingKind.SUPPLY_RECOVERING: "Supply",
    WaitingKind.CLEARANCE_IN_REVIEW: "Clearance",
    WaitingKind.CAUTION_PROPOSAL: "Decision",
    WaitingKind.REFUSED_FIRING: "Schedule",
}  # What each kind of item is about that waits for everybody; proposals wait for those who may approve them.
SHARED = tuple(KINDS)
SENTENCES = {
    WaitingKind.HELD_RUN: "A run is held; it goes on when somebody resumes it.",
    WaitingKind.HELD_PROCEDURE: "A procedure is held; it goes on when somebody resumes it.",
    WaitingKind.UNKNOWN_OUTCOME: "A step may or may not have been done; look at the hardware and say which.",
    WaitingKind.SUPPLY_RECOVERING: "A supply is coming back; somebody must declare it good.",
    WaitingKind.CLEARANCE_IN_REVIEW: "A clearance is on its way into force.",
    WaitingKind.CAUTION_PROPOSAL: "An agent proposes a caution.",
    WaitingKind.REFUSED_FIRING: "A schedule fired and was refused.",
}

waiting = page(
    "/waiting",
    "Waiting",
    "Everything that waits for a person, with the verbs that resolve it.",
    template="waiting.html",
    menu=MenuGroup.WORK,
)


WATCHED = ("Run", "Procedure", "Supply", "Clearance", "Decision", "Schedule", "Caution")
COUNTED = 20  # more are not counted


@frame_region("attention", watches=WATCHED, every=20.0)
async def load_attention(desk: Desk) -> Context:
    return await count_waiting(desk, SHARED)


async def count_waiting(desk: Desk, kinds: tuple[WaitingKind, ...]) -> Context:
    """Return how much of these kinds waits, as far as it is counted."""
    page = await desk.ask_if_permitted(ListWaiting, kind=kinds, limit=COUNTED)
    return {"count": 0 if page is None else len(page["items"]), "more": page is not None and page["next_cursor"] is not None}


@waiting.region("items", asks=[ListWaiting], watches=WATCHED, every=10.0)
async def load_items(desk: Desk) -> Context:
    kind = desk.query.get("kind")
    wanted = (WaitingKind(kind),) if kind in SHARED else SHARED
    page = await desk.ask(
        ListWaiting, kind=wanted, cursor=desk.query.get("cursor"), asset_id=desk.query.get("beamline") or None
    )
    items = [
        {**item, "about": KINDS[item["kind"]], "sentence": SENTENCES[item["kind"]], "buttons": resolving_verbs(item, desk)}
        for item in page["items"]
    ]
    kinds = [(one.value, words_of(one.value)) for one in SHARED]
    return {"items": items, "next_cursor": page["next_cursor"], "kinds": kinds, "kind": kind}


def resolving_verbs(item: Mapping[str, Any], desk: Desk) -> list[VerbButton]:
    """Return the buttons of the commands that resolve something that waits."""
    return [verb_button(REGISTRY.operations[one["name"]], desk, None, item["id"]) for one in item["commands"]]
