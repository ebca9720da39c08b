"""Waiting for a person: everything that nobody but a person can take on, each with the verbs that do."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from baton.console.conduct_verbs import LOOKED_AT
from baton.console.display import LOOK, SIGNS, STOP, words_of
from baton.console.page import Context, MenuGroup, frame_region, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.verbs import VerbButton, form_href, verb_button
from baton.domain.contexts import REGISTRY
from baton.domain.registry import Operation
from baton.domain.run.logbooks import AppendRunLogbookEntries
from baton.domain.views.waiting import ListWaiting, WaitingKind

SHARED = tuple(kind for kind in WaitingKind if kind is not WaitingKind.PROPOSAL)
"""The kinds that wait for everybody; proposals wait for those who may approve them."""
SENTENCES = {
    WaitingKind.LOST_CONDUCT: "Nobody conducts it any more; look at the equipment, then take it up, or abort it.",
    WaitingKind.HELD_RUN: "A run is held; it continues when somebody resumes it.",
    WaitingKind.HELD_PROCEDURE: "A procedure is held; it continues when somebody resumes it.",
    WaitingKind.UNKNOWN_OUTCOME: "A step may or may not have been done; look at the hardware and say which.",
    WaitingKind.SILENT_PLAN: "Nothing was heard of a Bluesky plan for two minutes; look at its executor.",
    WaitingKind.CLOSING_FAILED: "What should have led to a safe state was not done; look at the equipment and say so.",
    WaitingKind.FAILED_RUN: "A run failed; write a note about it, or say that you have looked at it.",
    WaitingKind.WITNESSED_PAST_GATE: "A run elsewhere began past a closed gate; write a note about it.",
    WaitingKind.HELD_QUEUE: "A queue is held; it starts nothing until somebody resumes it.",
    WaitingKind.BLOCKED_QUEUE_ITEM: "A queue waits for a gate that somebody must open.",
    WaitingKind.WRONG_COPY: "A copy has other bytes than it should have; check it again, or discard it.",
    WaitingKind.SUPPLY_RECOVERING: "A supply is coming back; somebody must declare it good.",
    WaitingKind.CLEARANCE_IN_REVIEW: "A clearance is on its way into force.",
    WaitingKind.CAUTION_PROPOSAL: "An agent proposes a caution.",
    WaitingKind.REFUSED_FIRING: "A schedule fired and was refused.",
}
WRONG = frozenset(
    {
        WaitingKind.LOST_CONDUCT,
        WaitingKind.UNKNOWN_OUTCOME,
        WaitingKind.SILENT_PLAN,
        WaitingKind.CLOSING_FAILED,
        WaitingKind.FAILED_RUN,
        WaitingKind.BLOCKED_QUEUE_ITEM,
        WaitingKind.WRONG_COPY,
        WaitingKind.REFUSED_FIRING,
    }
)
"""The kinds in which something went otherwise than it should; they are shown red and first."""

waiting = page(
    "/waiting",
    "Waiting",
    "Everything that waits for a person, with the verbs that resolve it.",
    template="waiting.html",
    menu=MenuGroup.WORK,
)


WATCHED = ("Run", "Procedure", "Supply", "Clearance", "Decision", "Schedule", "Caution", "Queue", "Distribution")
COUNTED = 20  # more are not counted


@frame_region("attention", watches=WATCHED, every=20.0)
async def load_attention(queries: PageQueries) -> Context:
    return await count_waiting(queries, SHARED)


async def count_waiting(queries: PageQueries, kinds: tuple[WaitingKind, ...], *, permitted: bool = False) -> Context:
    """Return how much of these kinds waits, as far as it is counted."""
    page = await load_first_waiting(queries, kinds, permitted=permitted)
    return {"count": 0 if page is None else len(page["items"]), "more": page is not None and page["next_cursor"] is not None}


async def load_first_waiting(
    queries: PageQueries, kinds: tuple[WaitingKind, ...], *, permitted: bool = False
) -> Shown | None:
    """Return the first things of these kinds that wait; None where the person may not see them."""
    return await queries.show_if_permitted(ListWaiting, kind=kinds, permitted=permitted, limit=COUNTED)


@waiting.region("items", asks=[ListWaiting], watches=WATCHED, every=10.0)
async def load_items(queries: PageQueries) -> Context:
    kind = queries.query.get("kind")
    wanted = (WaitingKind(kind),) if kind in SHARED else SHARED
    page = await queries.show(
        ListWaiting, kind=wanted, cursor=queries.query.get("cursor"), asset_id=queries.query.get("beamline") or None
    )
    items = [
        {**item, "sentence": SENTENCES[item["kind"]], "buttons": resolving_verbs(item, queries)}
        for item in wrong_first(page["items"])
    ]
    kinds = [(one.value, words_of(one.value)) for one in SHARED]
    return {"items": items, "next_cursor": page["next_cursor"], "kinds": kinds, "kind": kind}


def wrong_first(items: Iterable[Mapping[str, object]]) -> list[dict[str, Any]]:
    """Return things that wait with how they look; what went wrong comes first, each in the order it came."""
    looks = [(item, STOP if item["kind"] in WRONG else LOOK) for item in items]
    shown = [{**item, "look": look, "sign": SIGNS[look]} for item, look in looks]
    return sorted(shown, key=lambda item: item["look"] != STOP)


def resolving_verbs(item: Shown, queries: PageQueries) -> list[VerbButton]:
    """Return the buttons of the commands that resolve something that waits, filled in as far as is known."""
    found = [(REGISTRY.operations[one["name"]], one["arguments"]) for one in item["commands"]]
    return [filled_button(operation, arguments, queries) for operation, arguments in found if operation.kind == "command"]


def filled_button(operation: Operation, arguments: Shown, queries: PageQueries) -> VerbButton:
    """Return the button of a command whose form is filled in with arguments; those that are lists are chosen there."""
    fields = {name: value for name, value in arguments.items() if not isinstance(value, list)}
    if operation is AppendRunLogbookEntries.operation:
        fields["entries._count"] = 1
    button = verb_button(operation, queries, None, None)
    return replace(button, label=LABELS.get(operation.name, button.label), href=form_href(operation, **fields))


LABELS = {
    "acknowledge_run": LOOKED_AT,
    "acknowledge_procedure": LOOKED_AT,
    "append_run_logbook_entries": "Write a note",
    "record_attestation": "Check again",
}  # What stands on buttons whose verb says too little here.
