"""The rows of a queue: what an item does in a line, where it can be moved, what is known ahead, and the buttons it has."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from baton.console.display import href_of
from baton.console.forms import FLAG, plain_text
from baton.console.judgement import ClosedGate, closed_gate
from baton.console.page_queries import PageQueries, Shown
from baton.console.queueing import ITEM, QUEUE
from baton.console.verbs import form_href
from baton.domain.queue.queue import AddQueueItems, EditQueueItem, MoveQueueItem, RemoveQueueItem

Row = Shown
MOST_PARAMETERS = 6  # in a line
LONGEST_VALUE = 40


@dataclass(frozen=True)
class Move:
    """A button that moves an item; without an address the item is there already."""

    label: str
    sign: str
    href: str | None


@dataclass(frozen=True)
class SeenGate:
    """A closed gate of an item, whether the item waits for it, and whether one before it has the same."""

    gate: ClosedGate
    may_pass: bool
    is_repeated: bool


@dataclass(frozen=True)
class ItemVerbs:
    """The addresses of what can be done with an item that waits; None where the person may not."""

    moved: str | None
    edited: str | None
    paused: str | None
    confirmed: str | None  # None also where nothing is to be confirmed.
    retargeted: str | None
    duplicated: str | None
    removed: str | None


def moves_of(queue_id: str, ids: Sequence[str], index: int) -> tuple[Move, ...]:
    """Return the moves of the item at a place among those that wait."""
    first, last = index == 0, index == len(ids) - 1
    below = ids[index + 2] if index + 2 < len(ids) else None
    return (
        Move("to the front", "⤒", None if first else move_href(queue_id, ids[index], ids[0])),
        Move("up", "↑", None if first else move_href(queue_id, ids[index], ids[index - 1])),
        Move("down", "↓", None if last else move_href(queue_id, ids[index], below)),
        Move("to the end", "⤓", None if last else move_href(queue_id, ids[index], None)),
    )


def move_href(queue_id: str, item_id: str, before: str | None) -> str:
    """Return the address that moves an item before another one, or to the end."""
    return form_href(MoveQueueItem.operation, queue_id, item_id=item_id, before_item_id=before)


def changed_digest(forecast: Row | None) -> str | None:
    """Return what confirms the present versions of what an item names, where these are others than when it was added."""
    gates = [] if forecast is None else forecast["closed_gates"]
    return next((one["facts"]["confirmed_digest"] for one in gates if one["reason"] == "target_changed"), None)


def verbs_on(
    queue_id: str, item: Row, typed: Mapping[str, str], queries: PageQueries, changed: str | None = None
) -> ItemVerbs:
    """Return what the person may do with an item that waits; what it is now stands in the form that changes it."""
    about = {"item_id": item["item_id"]}
    edits, adds = queries.may(EditQueueItem.operation), queries.may(AddQueueItems.operation)
    flag = {f"pause_after.{FLAG}": "1", **({} if item["pause_after"] else {"pause_after": "on"})}
    confirm = form_href(EditQueueItem.operation, queue_id, **about, confirmed_digest=changed)
    remove = form_href(RemoveQueueItem.operation, queue_id, **about)
    return ItemVerbs(
        moved=form_href(MoveQueueItem.operation, queue_id, **about) if queries.may(MoveQueueItem.operation) else None,
        edited=form_href(EditQueueItem.operation, queue_id, **about, **typed) if edits else None,
        paused=form_href(EditQueueItem.operation, queue_id, **about, **flag) if edits else None,
        confirmed=confirm if edits and changed else None,
        retargeted=target_href(queue_id, item) if edits else None,
        duplicated=f"/console/queues/{queue_id}/duplicate?{urlencode(about)}" if adds else None,
        removed=remove if queries.may(RemoveQueueItem.operation) else None,
    )


def target_href(queue_id: str, item: Row) -> str:
    """Return the address of the form of a launch that changes what an item does."""
    target, kept = item["target"], urlencode({QUEUE: queue_id, ITEM: item["item_id"]})
    kind = "plan" if target["kind"] == "ConductPlan" else "recipe"
    return f"/console/start/{kind}s/{target[f'{kind}_id']}?{kept}"


def parameters_line(target: Row) -> str:
    """Return the parameters that a target gives, in a line."""
    return values_line(target["override_parameters"] if target["kind"] == "ConductPlan" else target["bindings"])


def values_line(given: Row) -> str:
    """Return values by their names, in a line."""
    parts = [f"{name} {short_text(plain_text(value))}" for name, value in list(given.items())[:MOST_PARAMETERS]]
    more = [f"{len(given) - MOST_PARAMETERS} more"] if len(given) > MOST_PARAMETERS else []
    return ", ".join((*parts, *more))


def short_text(text: str) -> str:
    """Return a text that fits into a line."""
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def outcome_of(item: Row) -> Mapping[str, str] | None:
    """Return the run or procedure that an item has become, as a link."""
    for kind in ("Run", "Procedure"):
        if id := item[f"{kind.lower()}_id"]:
            return {"kind": kind.lower(), "href": href_of(kind, id)}
    return None


async def gates_of(forecast: Row, queries: PageQueries, seen: set[str]) -> list[SeenGate]:
    """Return the gates that are closed to an item now, with links to what opens them; those seen before are known."""
    closed = forecast["closed_gates"]
    gates = await asyncio.gather(*(closed_gate(one, queries) for one in closed))
    found = [SeenGate(gate, one["may_pass"], gate.sentence in seen) for gate, one in zip(gates, closed, strict=True)]
    seen.update(gate.sentence for gate in gates)
    return found
