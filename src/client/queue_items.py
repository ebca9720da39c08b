"""The calls that make queue items from a table, and that find an item by its title, as
exchanges."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from baton.client.answers import json_value
from baton.client.exchanges import CallScript, ClientSession, is_id
from baton.client.index import OPERATIONS
from baton.client.launching import PLAN, RECIPE, Reference, call, kind_of, load_plan
from baton.client.refusals import AmbiguousNameError, ClientError, UnknownNameError
from baton.client.spreadsheets import SpreadsheetError, Table, place_text
from baton.client.table_items import SUBJECT, RowForm, RowItem, read_items

if TYPE_CHECKING:
    from baton.client.operations import DryRun

ADD = "add_queue_items"
NESTED = (dict, list, tuple)
AHEAD = frozenset({"Waiting", "Blocked"})  # the states of items that have not begun


class TableTargetError(ClientError, TypeError):
    """It is not said what the rows of a table are for: one plan, or one recipe and the assets it is done on."""


class TableRequest(NamedTuple):
    """The items of a table, and the arguments that add them to a queue."""

    items: list[RowItem]
    arguments: dict[str, Any]


class RowTargets(NamedTuple):
    """What rows are for: how they are read, and the target without what a row gives."""

    form: RowForm
    target: dict[str, Any]
    parameters_field: str


def add_from_table(session: ClientSession, queue: Reference, table: Table, **options: Any) -> CallScript[list[UUID]]:
    """Add an item for each row of a table to a queue, all or none, and return their ids; `table_request` has the options."""
    request = yield from table_request(session, queue, table, **options)
    added = yield from session.call(OPERATIONS[ADD], request.arguments)
    return list(added.item_ids)


def try_table(session: ClientSession, queue: Reference, table: Table, **options: Any) -> "CallScript[DryRun]":
    """Return what adding the rows of a table would record."""
    request = yield from table_request(session, queue, table, **options)
    would: DryRun = yield from session.call(OPERATIONS[ADD], request.arguments, dry_run=True)
    return would


def table_request(
    session: ClientSession,
    queue: Reference,
    table: Table,
    *,
    plan: Reference | None = None,
    recipes: Sequence[Reference] | None = None,
    recipe: Reference | None = None,
    assets: Sequence[Reference] = (),
    before: Reference | None = None,
    zone: tzinfo | None = None,
) -> CallScript[TableRequest]:
    """Return the items of a table and what adds them: runs on a plan, whose phases are `recipes` or the only one that fits,
    or procedures of a recipe on assets. Refuse the table with all its faults."""
    queue_id = yield from session.id_of("Queue", queue)
    if plan is not None and recipe is None and not assets:
        rows = yield from plan_rows(session, plan, recipes)
    elif recipe is not None and plan is None and recipes is None:
        rows = yield from recipe_rows(session, recipe, assets)
    else:
        detail = "Say what the rows are for: a plan, with the recipes of its phases, or one recipe with the assets it is on."
        raise TableTargetError(detail)
    items, faults = read_items(table, rows.form, zone)
    subject_ids = yield from subjects_of(session, items, faults)
    if faults:
        raise SpreadsheetError(table.name, faults)
    arguments: dict[str, Any] = {
        "queue_id": queue_id,
        "items": [queue_item(item, rows, subject_ids.get(item.subject or "")) for item in items],
    }
    if before is not None:
        arguments["before_item_id"] = yield from item_id_of(session, queue_id, before)
    return TableRequest(items, arguments)


def plan_rows(session: ClientSession, plan: Reference, chosen: Sequence[Reference] | None) -> CallScript[RowTargets]:
    """Return what rows for runs on a plan are: columns are the parameters of its method."""
    plan_id = yield from session.id_of(PLAN, plan)
    found = yield from load_plan(session, plan_id, chosen)
    view, schema = found.plan, found.method.parameters_schema
    form = RowForm("plan", view.name, schema, defaults=view.default_parameters, has_subject=True)
    common = {"procedure_kind": found.procedure_kind, "target_asset_ids": sorted(view.asset_ids), "bindings": {}}
    phases = [{"recipe_id": recipe_id, "name": name, **common} for recipe_id, name in found.phases]
    return RowTargets(form, {"kind": "ConductPlan", "plan_id": plan_id, "phases": phases}, "override_parameters")


def recipe_rows(session: ClientSession, recipe: Reference, assets: Sequence[Reference]) -> CallScript[RowTargets]:
    """Return what rows for procedures of a recipe are: columns are the parameters of its capability."""
    recipe_id = yield from session.id_of(RECIPE, recipe)
    view = yield from call(session, "get_recipe", recipe_id=recipe_id)
    capability = yield from call(session, "get_capability", capability_id=view.capability_id)
    asset_ids = yield from session.ids_of("Asset", assets)
    needed = frozenset(bindings_in(json_value((view.steps, view.closing_steps))))
    form = RowForm("recipe", view.name, capability.parameters_schema, needed=needed)
    target = {"kind": "ConductRecipe", "recipe_id": recipe_id, "target_asset_ids": asset_ids}
    return RowTargets(form, {**target, "procedure_kind": kind_of(capability.code)}, "bindings")


def bindings_in(value: object) -> Iterator[str]:
    """Yield the names of the parameters that steps refer to, in JSON data."""
    parts = [value]  # not by recursion: there may be very many steps
    while parts:
        match parts.pop():
            case {"__binding__": str() as name}:
                yield name
            case dict() as members:
                parts += (one for one in members.values() if type(one) in NESTED)
            case list() | tuple() as items:
                parts += (one for one in items if type(one) in NESTED)


def queue_item(item: RowItem, rows: RowTargets, subject_id: UUID | None) -> dict[str, object]:
    """Return a row as an item of add_queue_items; what is conducted has the title for its name."""
    target = {**rows.target, "name": item.title, rows.parameters_field: dict(item.parameters)}
    if subject_id is not None:
        target["subject_id"] = subject_id
    return {"title": item.title, "target": target, "not_before": item.not_before, "pause_after": item.pause_after}


def subjects_of(session: ClientSession, items: Sequence[RowItem], faults: list[str]) -> CallScript[Mapping[str, UUID]]:
    """Return the ids of the subjects that rows name; add a fault for each row whose subject is not found."""
    found: dict[str, UUID] = {}
    wrong: dict[str, str] = {}
    for item in items:
        if item.subject is None:
            continue
        if item.subject not in found and item.subject not in wrong:
            try:
                found[item.subject] = yield from session.id_of("Subject", item.subject)
            except (UnknownNameError, AmbiguousNameError) as error:
                wrong[item.subject] = str(error)
        if item.subject in wrong:
            faults.append(f"{place_text(item.row, SUBJECT)}: {wrong[item.subject]}")
    return found


def item_id_of(session: ClientSession, queue: Reference, item: Reference) -> CallScript[UUID]:
    """Return the id of the one item that waits in a queue with this title; an id is its own."""
    if isinstance(item, UUID) or is_id(item):
        return UUID(str(item))
    view = yield from call(session, "get_queue", queue_id=queue)
    titles = {str(one.item_id): one.title for one in view.items if one.status in AHEAD}
    fitting = [id for id, title in titles.items() if title == item]
    if len(fitting) > 1:
        raise AmbiguousNameError("queue item", item, dict.fromkeys(fitting, ""))
    if not fitting:
        like = [title for title in titles.values() if item.lower() in title.lower()]
        raise UnknownNameError("waiting queue item", item, like[:5])
    return UUID(fitting[0])
