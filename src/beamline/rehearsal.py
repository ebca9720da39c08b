"""The rehearsal of a plan: the service judges every command in its order, on what those before it would leave, and records
nothing. A command that would be refused is an obstacle in the plan, with the line of the file."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from itertools import islice
from typing import Any
from uuid import uuid4

from pydantic_core import to_jsonable_python

from baton.beamline.application import PlanApplication, changes_of, prepared_sorter
from baton.beamline.changes import ChangePlan, ThingChange
from baton.beamline.kinds.kind import Update
from baton.beamline.record import BeamlineRecord, Key
from baton.client import Baton
from baton.client.refusals import Forbidden, Refusal
from baton.domain.views.rehearsal import MOST_COMMANDS


@dataclass(frozen=True)
class RehearsedUpdate:
    """A command of a plan, with the request by which it is rehearsed."""

    change: ThingChange
    update: Update
    request: dict[str, Any]


def rehearsed_plan(client: Baton, plan: ChangePlan, record: BeamlineRecord) -> ChangePlan:
    """Return a plan of which what would be refused is an obstacle, and not a command any more."""
    updates = list(islice(rehearsed_updates(PlanApplication(client, plan, record)), MOST_COMMANDS))
    if not updates:
        return plan
    try:
        answer = client.call("rehearse_commands", commands=[one.request for one in updates])
    except Forbidden as refusal:
        return replace(plan, remarks=(*plan.remarks, f"The commands were not rehearsed: {refusal.detail}"))
    refused: dict[Key, str] = {}
    for one, outcome in zip(updates, answer.outcomes, strict=True):
        key = (one.change.section, one.change.key)
        if outcome.code is None or key in refused or not refused.keys().isdisjoint(one.change.needs):
            continue
        refused[key] = f"{one.change.place_of(one.update)}{one.update.operation} would be refused: {outcome.detail}"
    return replace(plan, changes=tuple(with_refusal(one, refused) for one in plan.changes), refused=len(refused))


def with_refusal(change: ThingChange, refused: dict[Key, str]) -> ThingChange:
    """Return a change with what refuses it as an obstacle, where something does."""
    sentence = refused.get((change.section, change.key))
    return change if sentence is None else replace(change, obstacles=(*change.obstacles, sentence))


def rehearsed_updates(application: PlanApplication) -> Iterator[RehearsedUpdate]:
    """Yield the commands of a plan in an order in which each finds what it needs, under made-up ids where that is new."""
    changes = changes_of(application.plan)
    for key in in_order(prepared_sorter(application.plan)):
        change = changes[key]
        for place, update in enumerate(change.updates):
            own: dict[str, Any] = {"operation": update.operation}
            if change.creates and place == 0:
                application.ids[key] = own["new_id"] = uuid4()
            else:
                own["target_id"] = application.ids[key]
            try:
                arguments = {name: application.resolve_argument(value) for name, value in update.arguments.items()}
            except (KeyError, Refusal):
                break  # It needs what cannot be made, or the hash of an assembly that is not made yet.
            yield RehearsedUpdate(change, update, to_jsonable_python({**own, "arguments": arguments}))


def in_order(sorter: "TopologicalSorter[Key]") -> Iterator[Key]:
    """Yield things one by one, each behind what it needs."""
    while sorter.is_active():
        ready = sorter.get_ready()
        yield from ready
        sorter.done(*ready)
