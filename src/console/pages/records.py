"""Records: pages for any aggregate from its declaration alone. A list with its filters, one thing with its verbs, and its
history with a slider through its versions; the pages made by hand stand in their place where there are any."""

from enum import Enum
from typing import Any, get_args, get_type_hints

from baton.console.display import reason_text, words_of
from baton.console.page import PAGES, ConsolePage, Context, MenuGroup, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.verbs import creations_of, verbs_of
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import Aggregate, Query
from baton.domain.registry import Operation
from baton.domain.shared.listing import ListQuery
from baton.domain.shared.logbooks import LogbookOpened
from baton.domain.shared.naming import name_field, name_member

COMMON = frozenset(ListQuery.model_fields)
"""The fields of every list that are no filters of its own."""
MOST_COLUMNS = 7
SHOWN_EVENTS = 50
NOTHING: tuple[object, ...] = (None, "", [], {})
BOOKKEEPING = frozenset(
    (
        *("RunConductStarted", "RunConducted", "RunLaunched", "DecisionDebriefRequested", "PermitReceiptRecorded"),
        *("ProcedureLaunched", "ProcedureConducted", "ProcedureRecipeExpanded", "ProcedureStepsResolved"),
        "ProcedureSteeringDeclared",
    )
)  # Events that the service needs; others tell people what came of them.

records = page("/records", "Records", "Every kind of thing on record.", template="records.html", menu=MenuGroup.HOUSE)


@records.region("kinds", asks=[])
async def load_kinds(queries: PageQueries) -> Context:
    contexts: dict[str, list[dict[str, object]]] = {}
    for aggregate in REGISTRY.aggregates.values():
        listing = listing_of(aggregate)
        if listing is not None:
            row = {
                "label": words_of(plural_label(aggregate)),
                "href": f"/console{aggregate.path}",
                "may": queries.may(listing),
            }
            contexts.setdefault(aggregate.context, []).append(row)
    return {"contexts": {name: sorted(rows, key=lambda row: row["label"]) for name, rows in sorted(contexts.items())}}


def listing_of(aggregate: Aggregate) -> Operation | None:
    """Return the operation that lists the things of an aggregate."""
    return next((one for one in aggregate.operations if one.path == aggregate.path and one.method == "GET"), None)


def getting_of(aggregate: Aggregate) -> Operation | None:
    """Return the operation that gets one thing of an aggregate."""
    return REGISTRY.operations.get(f"get_{aggregate.label.replace(' ', '_')}")


def history_of(aggregate: Aggregate) -> Operation:
    """Return the operation that reads the events of one thing."""
    return next(one for one in aggregate.operations if one.path == f"{aggregate.path}/{{{aggregate.id_name}}}/history")


def plural_label(aggregate: Aggregate) -> str:
    """Return what the things of an aggregate are called together."""
    return aggregate.path.rsplit("/", 1)[-1].replace("-", " ")


def columns_of(aggregate: Aggregate, items: list[Shown]) -> list[str]:
    """Return the columns of a list that are worth a place: its name, its state, what else is short, and its time."""
    if not items:
        return []
    first, named = items[0], name_field(aggregate)
    skipped = {aggregate.id_name, named, aggregate.axis, "id", "lost"}
    plain = [
        name
        for name in first
        if name not in skipped and not name.endswith(("_id", "_ids", "_hash")) and not isinstance(first[name], dict | list)
    ]
    linked = [name for name in first if isinstance(first[name], dict) and set(first[name]) == {"id", "name"}]
    times = [name for name in plain if name.endswith(("_at", "_since"))]
    others = [name for name in (*linked, *plain) if name not in times and not name.endswith("_by")]
    chosen = [name for name in (aggregate.axis,) if name in first]
    told = [name for name in others if any(item.get(name) not in (None, "", False, 0) for item in items)]
    return [*chosen, *told[: MOST_COLUMNS - len(chosen) - 1], *times[:1]]


def list_page(aggregate: Aggregate, listing: Operation) -> ConsolePage:
    """Declare the page that lists the things of an aggregate."""
    title = words_of(plural_label(aggregate))
    made = page(aggregate.path, title, f"Every {aggregate.label} on record.", template="list.html")
    query: type[Query] = listing.input  # type: ignore[assignment]
    switches = [name for name, info in query.model_fields.items() if bool in get_args(info.annotation)]
    own = [name for name in query.model_fields if name not in COMMON or name in ("name", "q", "created_from", "created_to")]

    async def load_rows(queries: PageQueries) -> Context:
        given = {name: queries.query[name] for name in own if queries.query.get(name)}
        paged: dict[str, Any] = {"limit": 50} if "limit" in query.model_fields else {}
        if "order" in query.model_fields:
            paged["order"] = queries.query.get("order") or "desc"
        answer = await queries.show(query, **given, **paged, cursor=queries.query.get("cursor") or None)
        items = answer["items"]
        return {
            "aggregate": aggregate,
            "items": items,
            "named": name_field(aggregate),
            "columns": columns_of(aggregate, items),
            "next_cursor": answer.get("next_cursor"),
            "filters": {name: queries.query.get(name, "") for name in own},
            "creations": creations_of(aggregate, queries),
            "states": states_of(aggregate),
            "switches": switches,
        }

    made.region("rows", asks=[listing], template="list/rows.html")(load_rows)
    return made


def states_of(aggregate: Aggregate) -> list[str]:
    """Return the states that a thing of an aggregate may be in; none where it has no such axis."""
    declared = get_type_hints(aggregate.state).get(aggregate.axis)
    return [str(one.value) for one in declared] if isinstance(declared, type) and issubclass(declared, Enum) else []


def thing_page(aggregate: Aggregate, getting: Operation, path: str) -> ConsolePage:
    """Declare the page of one thing: everything on record about it, and its verbs."""
    title, query = words_of(aggregate.label), getting.input
    made = page(path, title, f"One {aggregate.label}: what is on record about it, and its verbs.", template="thing.html")
    made.title_from(namer(aggregate, getting))

    async def load_thing(queries: PageQueries) -> Context:
        view = await queries.show(query, queries.id(aggregate.id_name))  # type: ignore[arg-type]
        return {"aggregate": aggregate, "view": view, **thing_context(aggregate, view, queries)}

    made.region("thing", asks=[getting], template="thing/thing.html")(load_thing)
    return made


def namer(aggregate: Aggregate, getting: Operation) -> Any:
    """Return the function that says what a page of this aggregate is about."""

    async def name(queries: PageQueries) -> str:
        view = await queries.show(getting.input, queries.id(aggregate.id_name))  # type: ignore[arg-type]
        return str(view.get(name_field(aggregate) or "") or words_of(aggregate.label))

    return name


def thing_context(aggregate: Aggregate, view: Shown, queries: PageQueries) -> Context:
    """Return what the page of a thing shows besides its fields: its name, state, verbs and history."""
    hidden = {aggregate.id_name, "id", name_field(aggregate), aggregate.axis}
    named = {field for field in view if field.endswith(("_id", "_ids")) and name_member(field) in view}
    named |= {name.removesuffix("_name") for name in view if name.endswith("_by_name") and view[name]}
    shown = {
        label_key(name): (label_key(name), value) for name, value in view.items() if name not in hidden and name not in named
    }
    return {
        "name": view.get(name_field(aggregate) or "") or words_of(aggregate.label),
        "state": view.get(aggregate.axis),
        "fields": list(shown.values()),
        "verbs": verbs_of(aggregate, view, queries),
        "id": view[aggregate.id_name],
        "href": f"/console{aggregate.path}/{view[aggregate.id_name]}",
    }


def label_key(name: str) -> str:
    """Return what tells a field from others: `held_by_name` stands for `held_by`."""
    return name.removesuffix("_name") if name.endswith("_by_name") else name


def history_page(aggregate: Aggregate, getting: Operation) -> ConsolePage:
    """Declare the page of a thing's history: its events, and the state it had after any of them."""
    reading = history_of(aggregate)
    path = f"{aggregate.path}/{{{aggregate.id_name}}}/history"
    made = page(
        path, "History", f"The events of one {aggregate.label}, and its state after any of them.", template="history.html"
    )
    made.title_from(namer(aggregate, getting))

    async def load_events(queries: PageQueries) -> Context:
        id = queries.id(aggregate.id_name)
        answer = await queries.show(reading.input, id, limit=SHOWN_EVENTS, cursor=queries.query.get("cursor"))  # type: ignore[arg-type]
        items = answer["items"]
        chosen = queries.query.get("version", "")
        last = items[-1]["version"] if items else 0
        version = int(chosen) if chosen.isascii() and chosen.isdigit() and len(chosen) < 10 and int(chosen) else last
        past = await queries.show(getting.input, id, as_of_version=version)  # type: ignore[arg-type]
        before = await queries.show(getting.input, id, as_of_version=version - 1) if version > 1 else {}  # type: ignore[arg-type]
        context = thing_context(aggregate, past, queries)
        told = [field for field in context["fields"] if field[1] not in NOTHING]
        changed = [(name, before.get(name), value) for name, value in context["fields"] if before.get(name) != value]
        events = [{**item, "why": why_of(item)} for item in items]
        return {
            "aggregate": aggregate,
            "events": [one for one in events if not is_bookkeeping(one, aggregate)],
            "bookkeeping": [one for one in events if is_bookkeeping(one, aggregate)],
            "next_cursor": answer["next_cursor"],
            "version": version,
            "first": items[0]["version"] if items else 1,
            "last": last,
            "chosen": next((one for one in events if one["version"] == version), None),
            "changed": [one for one in changed if one[1] not in NOTHING or one[2] not in NOTHING],
            "was": before.get(aggregate.axis),
            **context,
            "fields": told,
        }

    made.region("events", asks=[reading, getting], template="history/events.html")(load_events)
    return made


def why_of(event: Shown) -> str:
    """Return why something happened, as far as its event says it."""
    payload = event["payload"]
    return reason_text(next((payload[name] for name in ("reason", "detail") if isinstance(payload.get(name), str)), ""))


def is_bookkeeping(event: Shown, aggregate: Aggregate) -> bool:
    """Return whether an event is there for the service alone: others tell people what came of it."""
    return event["event_type"] in BOOKKEEPING or issubclass(aggregate.events[event["event_type"]], LogbookOpened)


def declare_generic_pages() -> None:
    """Declare a list, a page of one thing and a history for every aggregate that has them and no page of its own."""
    for aggregate in REGISTRY.aggregates.values():
        listing, getting = listing_of(aggregate), getting_of(aggregate)
        if listing is not None and f"/console{aggregate.path}" not in PAGES:
            list_page(aggregate, listing)
        if getting is None:
            continue
        path = f"{aggregate.path}/{{{aggregate.id_name}}}"
        thing_page(aggregate, getting, path if f"/console{path}" not in PAGES else f"{path}/record")
        history_page(aggregate, getting)


declare_generic_pages()
