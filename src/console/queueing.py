"""Queueing: what was typed into the form of a launch becomes an item of a queue, or what an item that waits is to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baton.client.exchanges import CallScript, ClientSession
from baton.client.queue_items import RowTargets, plan_rows, recipe_rows
from baton.console.display import href_of
from baton.console.forms import Option
from baton.console.in_process import entry_of
from baton.console.launch import Launchable, PlanLaunch, RecipeLaunch
from baton.console.launch_form import PARAMETERS, GivenLaunch
from baton.console.page_queries import PageQueries, Shown
from baton.domain.queue.items import AHEAD
from baton.domain.queue.queue import ACTIVE, HELD, AddQueueItems, EditQueueItem
from baton.domain.queue.views import GetQueue, ListQueues
from baton.domain.start.run_start import RunRequest
from baton.domain.target.targets import COUNT

Row = Shown
QUEUE, ITEM = "queue", "item"  # the parameters of an address that name a queue, and an item that is changed
CHOSEN = "_queue"
MOST_QUEUES = 20
LONGEST_STEM = 180  # of a name that is numbered
CHOOSE = "There are several queues; choose the one that it is added to."
GONE = "The item does not wait any more, so that what it does cannot be changed; look at the queue, and add it again."


@dataclass(frozen=True)
class Queueing:
    """The queues that a launch can be added to, and the address that keeps the chosen one and the item that it changes."""

    options: tuple[Option, ...]
    chosen: str
    item_id: str | None
    kept: Mapping[str, str]

    @property
    def label(self) -> str:
        return "Add to the queue" if self.item_id is None else "Change the item"


async def live_queues(queries: PageQueries, **filters: Any) -> list[Row]:
    """Return the queues that are not retired, oldest first; none to those who may not list them."""
    pages = [await queries.show_if_permitted(ListQueues, status=one, limit=MOST_QUEUES, **filters) for one in (ACTIVE, HELD)]
    found = [one for page in pages if page is not None for one in page["items"]]
    return sorted(found, key=lambda one: str(one["created_at"]))


async def load_queueing(queries: PageQueries) -> Queueing | None:
    """Return how a launch is added to a queue; None where there is none, or the person may not."""
    item_id = queries.query.get(ITEM) or None
    if not queries.may(AddQueueItems.operation if item_id is None else EditQueueItem.operation):
        return None
    options = tuple(Option(one["queue_id"], one["name"]) for one in await live_queues(queries))
    chosen = queries.query.get(QUEUE) or (options[0].value if len(options) == 1 else "")
    kept = {name: value for name in (QUEUE, ITEM) if (value := queries.query.get(name))}
    return Queueing(options, chosen, item_id, kept) if options else None


async def load_item(queries: PageQueries) -> Row | None:
    """Return the item that the address names, while it waits; None where it names none."""
    queue_id, item_id = queries.query.get(QUEUE), queries.query.get(ITEM)
    if not queue_id or not item_id:
        return None
    return find_waiting(await queries.show_found(GetQueue, queue_id, include=None), item_id)


def find_waiting(queue: Row | None, item_id: str) -> Row | None:
    """Return an item of a queue that waits, or None."""
    items: Sequence[Row] = [] if queue is None else queue["items"]
    return next((one for one in items if one["item_id"] == item_id and one["status"] in AHEAD), None)


def typed_values(target: Row, defaults: Row) -> dict[str, object]:
    """Return the values of a form that would make this target; the defaults are those of its plan."""
    if target["kind"] == "ConductPlan":
        options = {name: target[name] for name in RunRequest.model_fields if target[name]}
        return {**options, PARAMETERS: {**defaults, **target["override_parameters"]}}
    asked = {"kind": target["procedure_kind"], **{name: target[name] for name in ("name", "target_asset_ids")}}
    return {**asked, PARAMETERS: target["bindings"]}


def queue_launch(
    session: ClientSession, launch: Launchable, given: GivenLaunch, queue_id: str, title: str, item: Row | None
) -> CallScript[str]:
    """Add a launch to a queue, or have an item do it; return the address of the queue."""
    name = title or f"{launch.shape.name[:LONGEST_STEM]}, {COUNT}"
    rows = yield from row_targets(session, launch, given)
    target = {**rows.target, **target_options(launch, given), "name": name}
    if item is None:
        added = {"queue_id": queue_id, "items": [{"title": title or launch.shape.name, "target": target}]}
        yield from session.call(entry_of(AddQueueItems.operation), added)
    else:
        target = with_arrangement(target, item["target"])
        changed = {"queue_id": queue_id, "item_id": item["item_id"], "target": target}
        yield from session.call(entry_of(EditQueueItem.operation), changed)
    return href_of("Queue", queue_id)


def row_targets(session: ClientSession, launch: Launchable, given: GivenLaunch) -> CallScript[RowTargets]:
    """Return the target of a launch without what was typed."""
    match launch:
        case PlanLaunch():
            return (yield from plan_rows(session, launch.plan["plan_id"], list(given.phases) or None))
        case RecipeLaunch():
            assets = given.options.get("target_asset_ids", ())
            return (yield from recipe_rows(session, launch.recipe["recipe_id"], assets))
    raise TypeError(f"{launch} cannot be queued")


def target_options(launch: Launchable, given: GivenLaunch) -> dict[str, Any]:
    """Return what was typed as the members of a target."""
    if isinstance(launch, PlanLaunch):
        options = {name: value for name, value in given.options.items() if name in RunRequest.model_fields}
        return {**options, "override_parameters": launch.overrides(given.parameters)}
    kind = {"procedure_kind": given.options["kind"]} if "kind" in given.options else {}
    return {**kind, "bindings": dict(given.parameters)}


def with_arrangement(target: dict[str, Any], before: Row) -> dict[str, Any]:
    """Return a target that is conducted as an earlier one was, as far as both have the same recipes: no form shows that."""
    if target["kind"] != before["kind"]:
        return target
    if target["kind"] == "ConductRecipe":
        return {**target, "conduct": before["conduct"]}
    known = {one["recipe_id"]: one for one in before["phases"]}
    return {**target, "phases": [known.get(str(one["recipe_id"]), one) for one in target["phases"]]}
