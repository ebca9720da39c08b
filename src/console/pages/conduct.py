"""Conduct: one procedure as it is conducted. Where it is and what it waits for, its steps with what became of each, its
passes with what they measured, and what it left; with the verbs that hold it, take it up, settle a step or abort it."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any
from uuid import UUID

from baton.api.http import Request, Response
from baton.console.conduct_verbs import conduct_verbs, unresolved_step, waits_in_check
from baton.console.exports import document_response
from baton.console.page import SECOND, Context, handles, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.point_plots import MOST_MARKS, csv_heading, csv_points, load_plot
from baton.console.rehearsals import NOT_REHEARSED, load_rehearsal
from baton.console.sessions import ConsoleSession
from baton.console.shell import ConsoleShell
from baton.console.step_window import SHOWN_STEPS, counts_of, pager_of, step_line, strip
from baton.domain.access.actor import GetActor
from baton.domain.conduct.iterations import ListProcedureIterations
from baton.domain.conduct.point_list import ListProcedurePoints, ProcedurePoints
from baton.domain.conduct.procedure_views import GetProcedure
from baton.domain.conduct.progress import ConductPhase
from baton.domain.conduct.steered_conduct import GetProcedureSteering
from baton.domain.conduct.step_list import ListProcedureSteps
from baton.domain.conduct.views import GetProcedureConduct
from baton.domain.kernel import Document
from baton.domain.procedure.procedure import ENDED, HELD

SHOWN_PASSES = 12
SHOWN_ASSETS, SHOWN_ADVISERS = 4, 3
SHOWN_VALUES = 30

conduct = page(
    "/procedures/{procedure_id}",
    "Conduct",
    "One procedure as it is conducted, step by step, with the verbs that hold it, take it up or abort it.",
    template="conduct.html",
    halts="Procedure",
)


@conduct.title_from
async def load_name(queries: PageQueries) -> str:
    return (await queries.ask(GetProcedure, queries.id("procedure_id"))).name


@conduct.region("head", asks=[GetProcedure, GetProcedureConduct], watches=("Run",), every=SECOND)
async def load_head(queries: PageQueries) -> Context:
    id = queries.id("procedure_id")
    view, latest = await queries.show(GetProcedure, id), await queries.show(GetProcedureConduct, id)
    current = await load_current_step(queries, latest)
    return {
        "view": view,
        "conduct": latest,
        "live": is_live(latest),
        "assets": (view.get("target_assets") or [])[:SHOWN_ASSETS],
        "more_assets": max(0, len(view["target_asset_ids"]) - SHOWN_ASSETS),
        "current": None if current is None else step_line(current, over=False),
        "waits": waits_in_check(current),
        "unknown": unresolved_step(view),
        "fault": None if is_live(latest) else failed_step(view),
        "verbs": conduct_verbs(view, latest, current, queries),
        "href": f"/console/procedures/{id}",
    }


def is_live(latest: Mapping[str, object]) -> bool:
    """Return whether a conduct has begun and not ended."""
    return latest["phase"] is not None and latest["phase"] != ConductPhase.ENDED


def failed_step(view: Shown) -> Shown | None:
    """Return the failure of the step at which the latest conduct ended; a hold or an end that was asked for is none."""
    failure: Shown | None = view["failure"]
    return None if failure is None or failure["step_index"] is None else failure


async def load_current_step(queries: PageQueries, latest: Shown) -> Shown | None:
    """Return the step that the live conduct is at; None where it is at none, or the person may not see it."""
    if not is_live(latest) or latest["step_index"] is None or not queries.may(ListProcedureSteps):
        return None
    id, index = latest["procedure_id"], latest["step_index"]
    if latest["phase"] != ConductPhase.CLOSING:
        shown = await queries.show(ListProcedureSteps, id, **window_of(queries.query), limit=SHOWN_STEPS)
        if shown["current_index"] == index and (found := step_in(shown, index)) is not None:
            return found
    closing = latest["phase"] == ConductPhase.CLOSING
    return step_in(await queries.show(ListProcedureSteps, id, closing=closing, first_index=index, limit=1), index)


def step_in(answer: Shown, index: int) -> Shown | None:
    """Return a step of those that were asked for."""
    return next((one for one in answer["items"] if one["step_index"] == index), None)


def window_of(query: Mapping[str, str]) -> dict[str, Any]:
    """Return which steps an address asks for: those `from` a number on, of a `pass`."""
    given = {name: query.get(name, "") for name in ("from", "pass")}
    first, index = (int(text) if text.isdecimal() and 0 < len(text) < 10 else None for text in given.values())
    return {"first_index": None if first is None else max(0, first - 1), "iteration_index": index or None}


@conduct.region("rehearsal", asks=[GetProcedure, GetProcedureConduct], template="rehearsal.html", personal=True)
async def load_held_rehearsal(queries: PageQueries) -> Context:
    """Load what is left of a held procedure as it would be walked, as far as the person may ask that."""
    id = queries.id("procedure_id")
    view, latest = await queries.show(GetProcedure, id), await queries.show(GetProcedureConduct, id)
    held = view["status"] == HELD and not is_live(latest)
    return await load_rehearsal(queries, procedure_id=id) if held else NOT_REHEARSED


@conduct.region("steps", asks=[ListProcedureSteps], watches=("Procedure",), every=SECOND)
async def load_steps(queries: PageQueries) -> Context:
    id, window = queries.id("procedure_id"), window_of(queries.query)
    main = await queries.show(ListProcedureSteps, id, **window, limit=SHOWN_STEPS)
    over = await is_over(queries)
    closing = None
    if main["closing_count"]:
        closing = await queries.show(ListProcedureSteps, id, closing=True, first_index=0, limit=SHOWN_STEPS)
    return {
        "main": step_list(main, main["step_count"], window["first_index"] or 0, over=over),
        "closing": None if closing is None else step_list(closing, main["closing_count"], 0, over=over),
        "iteration_index": main["iteration_index"],
        "follows": window["first_index"] is None,
        "pass_query": f"&pass={window['iteration_index']}" if window["iteration_index"] else "",
        "href": f"/console/procedures/{id}",
    }


async def is_over(queries: PageQueries) -> bool:
    """Return whether nothing more of a procedure will be done, as far as the person may see that."""
    view = await queries.show_found(GetProcedure, queries.id("procedure_id"))
    return view is not None and view["status"] in ENDED


def step_list(answer: Shown, count: int, wanted: int, *, over: bool) -> dict[str, Any]:
    """Return a part of a list of steps as it is shown, with the picture of the whole."""
    items = answer["items"]
    first = items[0]["step_index"] if items else wanted
    counts = counts_of(answer["outline"], over=over)
    label = ", ".join(f"{one['count']} {one['word']}" for one in counts)
    return {
        "lines": [step_line(item, over=over) for item in items],
        "count": count,
        "counts": counts,
        "pager": pager_of(first, len(items), count),
        "strip": strip(answer["outline"], first, len(items), f"All {count} steps: {label}"),
    }


@conduct.region("passes", asks=[ListProcedureIterations, GetProcedureConduct], watches=("Procedure",), every=5.0)
async def load_passes(queries: PageQueries) -> Context:
    id = queries.id("procedure_id")
    found, latest = await queries.show(ListProcedureIterations, id), await queries.show(GetProcedureConduct, id)
    steering = await queries.show_found(GetProcedureSteering, id)
    items = found["items"]
    name = objective_name(latest, steering)
    measured = [(item, reading) for item in items if (reading := measured_in(item, name)) is not None]
    before = queries.query.get("before", "")
    last = min(int(before) if before.isdecimal() and len(before) < 10 else len(items), len(items))
    return {
        "items": list(reversed(items[max(0, last - SHOWN_PASSES) : last])),
        "earlier": last - SHOWN_PASSES if last > SHOWN_PASSES else None,
        "count": len(items),
        "objective": name,
        "objective_value": {item["iteration_index"]: reading for item, reading in measured},
        "steering": steering,
        "best": (latest["result"] or {}).get("best"),
        "advisers": await load_advisers(queries, items),
        "href": f"/console/procedures/{id}",
    }


async def load_advisers(queries: PageQueries, items: Sequence[Shown]) -> dict[str, str]:
    """Return the names of those who advised, as far as the person may see them."""
    ids = list(dict.fromkeys(item["advised_by"] for item in items if item["advised_by"]))[-SHOWN_ADVISERS:]
    found = await asyncio.gather(*(queries.show_found(GetActor, id) for id in ids))
    return {id: actor["name"] for id, actor in zip(ids, found, strict=True) if actor is not None and actor["name"]}


def objective_name(latest: Shown, steering: Shown | None) -> str | None:
    """Return the name of what passes are judged by, where it is known."""
    if latest["measurement"] is not None:
        return str(latest["measurement"]["name"])
    result, evidence = latest["result"] or {}, (steering or {}).get("evidence")
    if (judged := result.get("objective") or result.get("best")) is not None:
        return str(judged["name"])
    return None if evidence is None else evidence["objective"].get("target_measurement_name")


def measured_in(item: Shown, name: str | None) -> Shown | None:
    """Return what a pass measured under a name, where that is a number."""
    found = (one for one in item["measurements"] or () if one["name"] == name and is_number(one["value"]))
    return next(found, None)


def is_number(value: object) -> bool:
    """Return whether a value can be plotted."""
    return isinstance(value, int | float) and not isinstance(value, bool)


@conduct.region("plot", asks=[ListProcedurePoints], watches=("Procedure",), every=SECOND)
async def load_points(queries: PageQueries) -> Context:
    id = queries.id("procedure_id")
    passes = await queries.show_found(ListProcedureIterations, id)
    last = passes["items"][-1] if passes is not None and passes["items"] else None
    ahead = None if last is None else last["advised_next_point"] if last["ended_at"] else last["point"]
    return await load_plot(queries, id, f"/console/procedures/{id}", ahead)


@handles("GET", "/procedures/{procedure_id}/points.csv")
async def serve_points(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
    """Answer with all points as a table for spreadsheets."""
    queries = console.queries_of(request, session)
    id = queries.id("procedure_id")
    plan = await queries.ask(ListProcedurePoints, id, thin=MOST_MARKS)
    response = document_response(Document("text/csv; charset=utf-8", csv_heading(plan).encode()))
    response.stream = point_lines(plan, id, queries)
    return response


async def point_lines(plan: ProcedurePoints, id: UUID, queries: PageQueries) -> AsyncGenerator[bytes, None]:
    """Yield the heading of a table, and every point page by page, in the columns of the heading."""
    yield csv_heading(plan).encode()
    after: int | None = 0
    while after is not None:
        page = await queries.ask(ListProcedurePoints, id, after=after, limit=1000)
        yield csv_points(page, plan).encode()
        after = page.next_after


@conduct.region("outcome", asks=[GetProcedure, GetProcedureConduct], watches=("Procedure",))
async def load_outcome(queries: PageQueries) -> Context:
    id = queries.id("procedure_id")
    view, latest = await queries.show(GetProcedure, id), await queries.show(GetProcedureConduct, id)
    result = latest["result"] or {}
    captures = result.get("captures") or {}
    return {
        "result": latest["result"],
        "captures": list(captures.items())[:SHOWN_VALUES],
        "deviations": (result.get("deviations") or view["deviations"])[:SHOWN_VALUES],
        "closing_failures": result.get("closing_failures") or view["closing_failures"],
        "artifacts": (result.get("artifacts") or [])[:SHOWN_VALUES],
        "writes": list((result.get("substrate_writes") or {}).items())[:SHOWN_VALUES],
        "options": latest["options"],
        "href": f"/console/procedures/{id}",
    }
