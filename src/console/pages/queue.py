"""Queue: what is conducted next at a beamline, in order, with what is known ahead of each item; items are added, moved,
changed and removed here, one by one or from a spreadsheet."""

import asyncio
import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import StringIO
from typing import Any

from baton.api.http import Request, Response
from baton.api.schemas import input_schema
from baton.client.exchanges import CallScript, ClientSession
from baton.client.queue_items import table_request
from baton.client.refusals import ClientError, ProposedError
from baton.client.spreadsheets import MOST_BYTES, MOST_ROWS, SpreadsheetError, is_placed
from baton.client.table_items import NOT_BEFORE, PAUSE_AFTER, SUBJECT, TITLE, RowItem
from baton.console.actions import BACK, FROM_CONSOLE, lead_to, lead_to_proposal, options_of, safe_path, typed_in
from baton.console.display import href_of, is_uuid
from baton.console.forms import FormReader, plain_text
from baton.console.in_process import REFUSALS, InProcessClient, entry_of
from baton.console.launch_context import last_phases
from baton.console.launch_form import PHASE
from baton.console.page import SECOND, Context, Loader, MenuGroup, handles, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.pages.start import GATED
from baton.console.queue_rows import changed_digest, gates_of, moves_of, outcome_of, parameters_line, values_line, verbs_on
from baton.console.queueing import GONE, find_waiting, live_queues
from baton.console.rehearsals import coming_time, load_rehearsal
from baton.console.rendering import PAGE_HEADERS, html_response
from baton.console.sessions import ConsoleSession
from baton.console.shell import ConsoleShell
from baton.console.uploads import UploadedFile, read_file_form
from baton.console.verbs import verb_button
from baton.domain.contexts import REGISTRY
from baton.domain.queue.items import AHEAD, RUNNING
from baton.domain.queue.queue import (
    AddQueueItems,
    EditQueueItem,
    MoveQueueItem,
    OpenQueue,
    QueueItemNotFoundError,
    RemoveQueueItem,
)
from baton.domain.queue.views import GetQueue, ListQueueItems, ListQueues, QueueItemView
from baton.domain.recipe.capability import GetCapability
from baton.domain.recipe.method import GetMethod
from baton.domain.recipe.plan import GetPlan
from baton.domain.recipe.recipe import GetRecipe
from baton.domain.registry import Operation
from baton.domain.views.beamline_now import GetBeamlineNow
from baton.domain.views.conduct_rehearsal import Rehearse

Row = Shown
SHOWN_ITEMS = 50
PHASES = 4  # that the rows of a spreadsheet can have
STEERING = ("hold_queue", "resume_queue", "retire_queue")
WATCHED = (*GATED, "Run", "Procedure")
WHAT, ASSETS, ADD = "what", "assets", "_add"
SHOWN_ROWS = 100  # of a spreadsheet, before it is added
NONE_CHOSEN = "No item that waits is chosen; choose one or several first."

queue_menu = page("/queue", "Queue", "What is conducted next at each beamline.", template="queue.html", menu=MenuGroup.WORK)
queue_page = page(
    "/queues/{queue_id}",
    "Queue",
    "A queue: its items in order, and what is known ahead of them.",
    template="queue.html",
    under=queue_menu,
)


async def shown_queue_id(queries: PageQueries) -> str | None:
    """Return the queue that a page is about: that of its address, or the only one."""
    if "queue_id" in queries.path:
        return str(queries.id("queue_id"))
    live = await live_queues(queries)
    return str(live[0]["queue_id"]) if len(live) == 1 else None


NO_QUEUE: Context = {"queue": None}


def region(name: str, **options: Any) -> Callable[[Loader], Loader]:
    """Declare a region of both pages."""

    def declare(load: Loader) -> Loader:
        queue_menu.region(name, asks=[ListQueues, GetQueue], **options)(load)
        return queue_page.region(name, asks=[GetQueue], **options)(load)

    return declare


async def load_choice(queries: PageQueries) -> Context:
    """Load the queues to choose from; where there is none, what opens one."""
    button = verb_button(OpenQueue.operation, queries, None, None)
    return {"queues": await queue_tiles(queries), "opening": button}


async def queue_tiles(queries: PageQueries, **filters: object) -> list[dict[str, object]]:
    """Return the queues that are not retired, each with what runs, what is next, and what keeps it, as far as the person
    may see that."""
    queues = await live_queues(queries, **filters)
    overviews = await asyncio.gather(*(queries.show_if_permitted(GetBeamlineNow, one["asset_id"]) for one in queues))
    return [{**one, **front_of(now and now["queue"])} for one, now in zip(queues, overviews, strict=True)]


def front_of(queue: Row | None) -> dict[str, object]:
    """Return the running item of a queue with what it has become, the next one with what keeps it, and why it is held."""
    if queue is None:
        return {}
    running = queue["running"] and {**queue["running"], "made": outcome_of(queue["running"])}
    return {"running": running, **{name: queue[name] for name in ("next", "closed_gates", "last_status_reason", "hold")}}


@queue_page.title_from
async def name_queue(queries: PageQueries) -> str:
    return (await queries.ask(GetQueue, queries.id("queue_id"))).name


item_page = page(
    "/queues/{queue_id}/items/{item_id}",
    "Rehearsal of an item",
    "An item of a queue as it would be walked, and what its start asks for.",
    template="item.html",
    under=queue_menu,
)


@item_page.title_from
async def name_item(queries: PageQueries) -> str:
    return (await find_item(queries)).title


async def find_item(queries: PageQueries) -> QueueItemView:
    """Return the item that an address names, of those that wait or run; refuse one that has ended."""
    queue, item_id = await queries.ask(GetQueue, queries.id("queue_id")), queries.id("item_id")
    if (found := next((one for one in queue.items if one.item_id == item_id), None)) is None:
        raise QueueItemNotFoundError(GONE)
    return found


@item_page.region("rehearsal", asks=[GetQueue, Rehearse], template="rehearsal.html", watches=WATCHED)
async def load_item_rehearsal(queries: PageQueries) -> Context:
    """Load what an item would come to at the time of day that the address gives, else now."""
    target, at = (await find_item(queries)).target, queries.query.get("at", "")
    return await load_rehearsal(queries, target=target, at=coming_time(at, queries.now, queries.zone))


@region("head", every=15.0, watches=WATCHED)
async def load_head(queries: PageQueries) -> Context:
    """Load the queue that is shown, or those to choose from."""
    if (queue_id := await shown_queue_id(queries)) is None:
        return {**NO_QUEUE, **await load_choice(queries)}
    queue = await queries.show(GetQueue, queue_id)
    steering = [verb_button(REGISTRY.operations[name], queries, queue["status"], queue_id) for name in STEERING]
    waiting = [one for one in queue["items"] if one["status"] in AHEAD]
    adding = verb_button(AddQueueItems.operation, queries, queue["status"], queue_id)
    shown = {"queue": queue, "steering": steering, "adding": adding, "href": href_of("Queue", queue_id)}
    return {**shown, "waiting_count": len(waiting), "is_chosen": "queue_id" in queries.path}


@region("running", every=SECOND, watches=("Run", "Procedure"))
async def load_running(queries: PageQueries) -> Context:
    """Load the item under way, and how far it is."""
    if (queue_id := await shown_queue_id(queries)) is None:
        return NO_QUEUE
    asked = await queries.show_if_permitted(ListQueueItems, queue_id, status=RUNNING, limit=1)
    item = asked["items"][0] if asked and asked["items"] else None
    work: Row | None = None
    if item is not None:
        asset_ids = [one["asset_id"] for one in await live_queues(queries) if one["queue_id"] == queue_id]
        overviews = [await queries.show_if_permitted(GetBeamlineNow, id) for id in asset_ids]
        work = work_of(item, next((one for one in overviews if one), {"runs": [], "conducts": []}))
    return {"queue": queue_id, "item": item, "made": item and outcome_of(item), "work": work}


def work_of(item: Row, now: Row) -> Row | None:
    """Return where the run or procedure of an item is, as the overview of live work has it."""
    field = "procedure_id" if item["run_id"] is None else "run_id"
    conducts, runs = ([one for one in now[name] if one.get(field) == item[field]] for name in ("conducts", "runs"))
    if not conducts and not runs:
        return None
    shown = runs[0] if runs else conducts[0]
    return {"conduct": conducts[0] if conducts else None, "step": shown["step"], "estimate": shown["estimate"]}


@region("items", every=15.0, watches=WATCHED)
async def load_items(queries: PageQueries) -> Context:
    """Load a screenful of the items that wait, with what is known about the first ones."""
    if (queue_id := await shown_queue_id(queries)) is None:
        return NO_QUEUE
    queue = await queries.show(GetQueue, queue_id)
    waiting = [one for one in queue["items"] if one["status"] in AHEAD]
    ids, first = [one["item_id"] for one in waiting], first_shown(queries.query.get("first", ""), len(waiting))
    forecasts = {one["item_id"]: one for one in queue["forecast"]}
    schema = input_schema(EditQueueItem.operation)
    reader = FormReader(schema.get("$defs", {}), queries.zone)
    rows, seen = [], set[str]()
    for index, item in enumerate(waiting[first : first + SHOWN_ITEMS], start=first):
        changed = {name: item[name] for name in ("title", "not_before", "pause_after")}
        typed = {"not_before": "", **reader.type_in(schema, changed)}
        forecast = forecasts.get(item["item_id"])
        rows.append(
            {
                **item,
                "place": index + 1,
                "parameters": parameters_line(item["target"]),
                "moves": moves_of(queue_id, ids, index),
                "verbs": verbs_on(queue_id, item, typed, queries, changed_digest(forecast)),
                "forecast": forecast,
                "gates": await gates_of(forecast, queries, seen) if forecast else [],
            }
        )
    after = first + len(rows)
    ends = [forecasts[id]["expected_end"] for id in ids if id in forecasts]
    all_done_at = ends[-1] if ends and len(ends) == len(ids) and all(ends) else None
    more = {
        "several": may_change(queries),
        "may_rehearse": queries.may(Rehearse),
        "all_done_at": all_done_at,
        "first": first,
        "after": after,
        "count": len(waiting),
        "next_id": ids[after] if after < len(ids) else "",
    }
    return {"queue": queue, "items": rows, "size": SHOWN_ITEMS, **more}


def may_change(queries: PageQueries) -> bool:
    """Return whether the person may move, change and remove items."""
    return queries.may(*(one.operation for one in (MoveQueueItem, EditQueueItem, RemoveQueueItem)))


def first_shown(text: str, count: int) -> int:
    """Return the place of the first item that is shown: what an address says, where there is one."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
    return number if number < count else 0


@region("ended")
async def load_ended(queries: PageQueries) -> Context:
    if (queue_id := await shown_queue_id(queries)) is None:
        return NO_QUEUE
    queue = await queries.show(GetQueue, queue_id)
    return {"queue": queue, "items": [{**one, "made": outcome_of(one)} for one in queue["last_items"]]}


@queue_menu.loads(asks=[ListQueues])
@queue_page.loads(asks=[GetQueue])
async def load_forms(queries: PageQueries) -> Context:
    """Load the form that adds from a spreadsheet, where the person may add to the queue."""
    return await spreadsheet_context(queries, {})


async def spreadsheet_context(queries: PageQueries, typed: Mapping[str, str], **found: object) -> Context:
    """Return what the form shows that adds from a spreadsheet: what its rows can be for, its columns, what was found."""
    queue_id = await shown_queue_id(queries)
    if queue_id is not None:
        await queries.show(GetQueue, queue_id)  # one that is not there has no page
    several = queue_id is not None and may_change(queries)
    if queue_id is None or not queries.may(AddQueueItems.operation):
        return {"sheet": None, "queue_id": queue_id, "several": several}
    plans, recipes, assets = [await options_of(kind, queries) for kind in ("Plan", "Recipe", "Asset")]
    sheet = {"plans": plans, "recipes": recipes, "assets": assets, "phases": PHASES, "typed": typed, "rows": MOST_ROWS}
    columns = await sheet_columns(queries, typed.get(WHAT, ""))
    sheet |= {"bytes": MOST_BYTES, "faults": (), "more": 0, "preview": (), "columns": tuple(columns), **found}
    return {"sheet": sheet, "queue_id": queue_id, "several": several}


async def sheet_columns(queries: PageQueries, what: str) -> dict[str, object]:
    """Return the columns of a spreadsheet for a plan or a recipe, with the values that a row has without them."""
    kind, _, id = what.partition(":")
    if not is_uuid(id):
        return {}
    if kind == "plan" and queries.may(GetPlan, GetMethod) and (plan := await queries.show_found(GetPlan, id)) is not None:
        method = await queries.show(GetMethod, plan["method_id"])
        own, schema, values = [TITLE, SUBJECT], method["parameters_schema"], plan["default_parameters"]
    elif kind == "recipe" and (recipe := await queries.show_found(GetRecipe, id)) is not None:
        capability = await queries.show_found(GetCapability, recipe["capability_id"])
        own, schema, values = [TITLE], (capability or {}).get("parameters_schema"), {}
    else:
        return {}
    parameters = {name: values.get(name, "") for name in (schema or {}).get("properties", {})}
    return {**dict.fromkeys(own, ""), **parameters, NOT_BEFORE: "", PAUSE_AFTER: ""}


@handles("GET", "/queues/{queue_id}/sheet-options")
async def show_sheet_options(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
    """Answer what a spreadsheet for a plan or a recipe has: its columns, and the phases of the last run."""
    queries = await adding_queries(console, request, session)
    what = queries.query.get(WHAT, "")
    kind, _, id = what.partition(":")
    phases = await last_phases(queries, id) if kind == "plan" and is_uuid(id) else []
    typed = {WHAT: what, **{f"{PHASE}.{number}": id for number, id in enumerate(phases[:PHASES])}}
    return html_response(console.templates.render("queue/sheet_options.html", await spreadsheet_context(queries, typed)))


@handles("GET", "/queues/{queue_id}/template.csv")
async def serve_template(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
    """Answer with a spreadsheet to fill in: the columns of a plan or recipe, and a row with its usual values."""
    queries = await adding_queries(console, request, session)
    columns = await sheet_columns(queries, queries.query.get(WHAT, "")) or dict.fromkeys(
        (TITLE, NOT_BEFORE, PAUSE_AFTER), ""
    )
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows((columns, [plain_text(value) for value in columns.values()]))
    headers = [*PAGE_HEADERS, (b"content-disposition", b'attachment; filename="template.csv"')]
    return Response(200, text.getvalue().encode(), headers, content_type=b"text/csv; charset=utf-8")


async def adding_queries(console: ConsoleShell, request: Request, session: ConsoleSession) -> PageQueries:
    """Return the queries of a person who may add to the queue of the address."""
    queries = console.queries_of(request, session)
    queries.require([AddQueueItems.operation, GetQueue.operation])
    await queries.show(GetQueue, queries.id("queue_id"), include=None)
    return queries


@handles("POST", "/queues/{queue_id}/several")
async def change_several(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
    """Move, pause after or remove the items that were chosen, one after the other in their order."""
    queries, typed = console.queries_of(request, session), typed_in(await request.body())
    queue = await queries.show(GetQueue, queries.id("queue_id"), include=None)
    waiting = [str(one["item_id"]) for one in queue["items"] if one["status"] in AHEAD]
    chosen = [id for id in waiting if id in typed.get("item", "").split()]
    client = InProcessClient.of(console.parts.operations, session.caller)
    try:
        for operation, arguments in changes_of(typed, waiting, chosen):
            given = {"queue_id": queue["id"], **arguments}
            await client.carry_out(client.session.call(entry_of(operation), given))
    except ProposedError as error:
        return lead_to_proposal(request, session, error, console.zone, client.session.position)
    except (*REFUSALS, ClientError) as error:
        detail = str(error) if isinstance(error, ClientError) else error.detail
        return html_response(console.templates.render("queue/refused.html", {"detail": detail}), 409)
    to = safe_path(typed.get(BACK)) or href_of("Queue", queue["id"])
    said = f"{len(chosen)} {'item' if len(chosen) == 1 else 'items'} {SAID[typed['do']]}"
    return lead_to(request, session, to, said, client.session.position)


MOVED = {"front": "moved to the front", "end": "moved to the end"}
PAUSED = {"pause": "with a pause behind", "continue": "without a pause"}
SAID = {**MOVED, **PAUSED, "remove": "removed"}


def changes_of(
    typed: Mapping[str, str], waiting: Sequence[str], chosen: Sequence[str]
) -> Iterator[tuple[Operation, dict[str, object]]]:
    """Yield the commands that do with the chosen items what was asked for."""
    if not chosen or typed.get("do") not in SAID:
        raise ClientError(NONE_CHOSEN)
    before = next((id for id in waiting if id not in chosen), None) if typed["do"] == "front" else None
    if typed["do"] == "front" and before is None:
        return
    for id in chosen:
        match typed["do"]:
            case "front" | "end":
                yield MoveQueueItem.operation, {"item_id": id, **({"before_item_id": before} if before else {})}
            case "remove":
                yield RemoveQueueItem.operation, {"item_id": id, "reason": typed.get("reason") or FROM_CONSOLE}
            case pausing:
                yield EditQueueItem.operation, {"item_id": id, "pause_after": pausing == "pause"}


@handles("POST", "/queues/{queue_id}/duplicate")
async def duplicate_item(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
    """Add an item with the same target behind one that waits, conducted as the person who asks for it."""
    queries = console.queries_of(request, session)
    queue = await queries.show(GetQueue, queries.id("queue_id"), include=None)
    typed = typed_in(await request.body())
    client = InProcessClient.of(console.parts.operations, session.caller)
    try:
        added = duplicate(client.session, queue, queries.query.get("item_id", ""))
        await client.carry_out(added)
    except ProposedError as error:
        return lead_to_proposal(request, session, error, console.zone, client.session.position)
    except (*REFUSALS, ClientError) as error:
        if request.header(b"x-fragment") is None and not isinstance(error, ClientError):
            return await console.refusal_page(request, session, error, session.caller)
        detail = str(error) if isinstance(error, ClientError) else error.detail
        return html_response(console.templates.render("queue/refused.html", {"detail": detail}), 409)
    to = safe_path(typed.get(BACK)) or href_of("Queue", queue["id"])
    return lead_to(request, session, to, "Duplicated", client.session.position)


def duplicate(session: ClientSession, queue: Row, item_id: str) -> CallScript[object]:
    """Add an item like one that waits behind it."""
    if (item := find_waiting(queue, item_id)) is None:
        raise ClientError(GONE)
    ids = [one["item_id"] for one in queue["items"] if one["status"] in AHEAD]
    behind = ids[ids.index(item_id) + 1 :]
    same = {name: item[name] for name in ("title", "target", "not_before", "pause_after")}
    before = {"before_item_id": behind[0]} if behind else {}
    return session.call(entry_of(AddQueueItems.operation), {"queue_id": queue["id"], "items": [same], **before})


@handles("POST", "/queues/{queue_id}/spreadsheet")
async def add_spreadsheet(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
    """Add an item for each row of a spreadsheet, or show every fault of it."""
    queries = console.queries_of(request, session)
    queries.require([AddQueueItems.operation, GetQueue.operation])
    form = read_file_form(request.header(b"content-type") or "", await request.body())
    client = InProcessClient.of(console.parts.operations, session.caller)
    try:
        purpose, file = row_purpose(form.typed), chosen_file(form.file)
        if purpose.get("plan") and not purpose["recipes"]:
            purpose["recipes"] = await last_phases(queries, str(purpose["plan"])) or None
        table = await console.parts.host.table_reader.read_table(*file)
        asked = await client.carry_out(
            table_request(client.session, queries.id("queue_id"), table, zone=queries.zone, **purpose)
        )
        if ADD in form.typed:
            await client.carry_out(client.session.call(entry_of(AddQueueItems.operation), asked.arguments))
    except ProposedError as error:
        return lead_to_proposal(request, session, error, console.zone, client.session.position)
    except SpreadsheetError as error:
        named = [fault if is_placed(fault) else f"{error.name} {fault}" for fault in error.faults]
        found: dict[str, object] = {"faults": named, "more": error.more, "name": error.name}
    except ClientError as error:
        found = {"faults": error.sentences}
    except REFUSALS as refusal:
        found = {"faults": (refusal.detail,)}
    else:
        if ADD not in form.typed:
            return await show_rows(console, request, session, queries, form.typed, table.name, asked.items)
        to = safe_path(form.typed.get(BACK)) or href_of("Queue", queries.path["queue_id"])
        count = len(asked.items)
        said = f"{count} {'item' if count == 1 else 'items'} added from {table.name}"
        return lead_to(request, session, to, said, client.session.position)
    return await sheet_response(console, request, session, queries, form.typed, 422, **found)


async def show_rows(
    console: ConsoleShell,
    request: Request,
    session: ConsoleSession,
    queries: PageQueries,
    typed: Mapping[str, str],
    name: str,
    items: Sequence[RowItem],
) -> Response:
    """Return the rows of a spreadsheet as they would be added; nothing is added yet."""
    shown = [{**vars(one), "parameters": values_line(one.parameters)} for one in items[:SHOWN_ROWS]]
    found = {"name": name, "preview": shown, "row_count": len(items), "unshown": len(items) - len(shown)}
    return await sheet_response(console, request, session, queries, typed, 200, **found)


async def sheet_response(
    console: ConsoleShell,
    request: Request,
    session: ConsoleSession,
    queries: PageQueries,
    typed: Mapping[str, str],
    status: int,
    **found: object,
) -> Response:
    """Return what was found in a spreadsheet, below its form."""
    own = await spreadsheet_context(queries, typed, **found)
    if request.header(b"x-fragment") is not None:
        return html_response(console.templates.render("queue/sheet_rows.html", own), status)
    return await console.page_response(request, session, queue_page, queries, own, status)


def chosen_file(file: UploadedFile | None) -> tuple[str, bytes]:
    """Return the name and the content of the file that was sent; refuse a form without one."""
    if file is None:
        raise ClientError("No file was chosen; choose a .csv or .xlsx file, or drop one here.")
    return file.name, file.content


def row_purpose(typed: Mapping[str, str]) -> dict[str, Any]:
    """Return what the rows of a spreadsheet are for, as it was chosen."""
    kind, _, id = typed.get(WHAT, "").partition(":")
    phases = [typed[name] for number in range(PHASES) if typed.get(name := f"{PHASE}.{number}")]
    if kind == "plan":
        return {"plan": id, "recipes": phases or None}
    if kind == "recipe":
        return {"recipe": id, "assets": typed.get(ASSETS, "").split()}
    raise ClientError("Choose the plan or the recipe that the rows are for.")
