"""Runs: the newest first, day by day; how each ended and why, by whom and how long it took, and how far a live one is."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from baton.api.http import Request, Response
from baton.console.actions import MOST_OPTIONS
from baton.console.display import instant_of, reason_text
from baton.console.exports import document_response
from baton.console.page import Context, MenuGroup, handles, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.pages.data import PICTURE_POLICY, load_picture
from baton.console.point_plots import csv_line
from baton.console.sessions import ConsoleSession
from baton.console.shell import ConsoleShell
from baton.console.stretch import last_night, today
from baton.domain.conduct.run_conduct import GetRunConduct
from baton.domain.conduct.views import GetProcedureConduct
from baton.domain.data.dataset import ListDatasets
from baton.domain.data.preview import GetDatasetPreview
from baton.domain.kernel import Document
from baton.domain.run.run import HELD, LIVE, ListRuns, RunStatus
from baton.domain.run.run_views import GetRun
from baton.domain.views.event_log import ListEvents
from baton.domain.views.my_access import GetMyAccess

SHOWN, MOST_FOLLOWED = 50, 6
FILTERS = ("q", "status", "plan_id", "subject_id", "campaign_id", "launch_id", "witnessed")
IN_FORM = ("q", "status", "witnessed", "order")
STRETCHES = {"today": today, "night": last_night}
STARTED = ("RunStarted", "RunWitnessed")
NO_PICTURE = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 96 72"/>'

runs = page(
    "/runs",
    "Runs",
    "Every run, day by day: by whom, how long, how it ended and why; those that are on with their progress.",
    template="runs.html",
    menu=MenuGroup.RECORD,
)


@dataclass(frozen=True)
class QuickFilter:
    """A filter that one press sets or takes away."""

    label: str
    href: str
    is_set: bool


@runs.loads(asks=[])
async def load_filters(queries: PageQueries) -> Context:
    me = await queries.ask(GetMyAccess)
    wanted = [("Today", {"span": "today"}), ("Last night", {"span": "night"}), ("Aborted", {"status": "Aborted"})]
    if queries.may(ListEvents):
        wanted.insert(2, ("Mine", {"by": str(me.principal_id)}))
    return {
        "quick": [quick_filter(label, asked, queries.query) for label, asked in wanted],
        "statuses": [one.value for one in RunStatus],
        "csv_href": f"/console/runs.csv?{urlencode(given_filters(queries.query))}",
        "kept": [(name, value) for name, value in given_filters(queries.query).items() if name not in IN_FORM],
        "oldest_first": queries.query.get("order") == "asc",
    }


def quick_filter(label: str, asked: Mapping[str, str], query: Mapping[str, str]) -> QuickFilter:
    """Return a filter as a link to the list with it, or without it where it is set."""
    kept, is_set = given_filters(query), all(query.get(name) == value for name, value in asked.items())
    without = {name: value for name, value in kept.items() if name not in asked}
    return QuickFilter(label, address(without if is_set else {**kept, **asked}), is_set)


def given_filters(query: Mapping[str, str]) -> dict[str, str]:
    """Return the filters of an address."""
    names = (*FILTERS, "span", "by", "created_from", "created_to", "order")
    return {name: value for name in names if (value := query.get(name))}


def address(query: Mapping[str, str]) -> str:
    """Return the address of the list with these filters."""
    return f"/console/runs?{urlencode(query)}" if query else "/console/runs"


async def load_runs(queries: PageQueries, cursor: str | None, limit: int = SHOWN) -> Shown:
    """Return a page of the runs that an address asks for; those of one person are found by what that person did."""
    given: dict[str, Any] = {name: queries.query.get(name) or None for name in (*FILTERS, "created_from", "created_to")}
    if (stretch := STRETCHES.get(queries.query.get("span", ""))) is not None:
        within = stretch(queries.now, queries.zone)
        given |= {"created_from": within.begins, "created_to": within.ends}
    paged: dict[str, Any] = {"limit": limit, "order": queries.query.get("order") or "desc"}
    if not (who := queries.query.get("by")):
        return await queries.show(ListRuns, **given, **paged, cursor=cursor)
    among = {"principal_id": who, "since": given["created_from"], "until": given["created_to"]}
    begun = await queries.show(ListEvents, **among, event_type=STARTED, payloads=False, **paged, cursor=cursor, include=None)
    ids = [one["stream_id"] for one in begun["items"]]
    found = await queries.show(ListRuns, **given, **paged, run_id=ids) if ids else {"items": []}
    return {"items": found["items"], "next_cursor": begun["next_cursor"]}


@runs.region("rows", asks=[ListRuns], watches=("Procedure",), every=5.0)
async def load_rows(queries: PageQueries) -> Context:
    answer = await load_runs(queries, queries.query.get("cursor") or None)
    return await rows_context(queries, answer, is_filtered=bool(given_filters(queries.query)))


async def rows_context(queries: PageQueries, answer: Shown, *, is_filtered: bool) -> Context:
    """Return what a list of runs shows: them by their days, with how far those are that are on."""
    rows = [row_of(item) for item in answer["items"]]
    live = [row["run_id"] for row in rows if row["status"] in LIVE and not row["lost"]][:MOST_FOLLOWED]
    followed = await asyncio.gather(*(load_progress(queries, id) for id in live))
    days = groupby(rows, lambda row: row["begins"].astimezone(queries.zone).date())
    return {
        "days": [(day_title(day, queries.now, queries.zone), list(items)) for day, items in days],
        "followed": {id: one for id, one in zip(live, followed, strict=True) if one is not None},
        "next_cursor": answer["next_cursor"],
        "is_filtered": is_filtered,
        "may_see_previews": queries.may(GetRun, ListDatasets, GetDatasetPreview),
        "now": queries.now,
    }


def row_of(item: Shown) -> dict[str, Any]:
    """Return a run as the list shows it: with how long it took, and why it is held or ended."""
    begins, ends = instant_of(item["created_at"]), instant_of(item["ended_at"])
    assert begins is not None, "every run was started"
    why = item["last_hold_reason"] if item["status"] == HELD else item["end_reason"]
    return {**item, "begins": begins, "ends": ends, "why": reason_text(why or "").rstrip(".")}


async def load_progress(queries: PageQueries, run_id: str) -> Shown | None:
    """Return how far the phase of a run is that is conducted now; None where there is none, or the person may not see it."""
    conducted = await queries.show_found(GetRunConduct, run_id, include=None)
    current_id = None if conducted is None else conducted["current_procedure_id"]
    current = None if current_id is None else await queries.show_found(GetProcedureConduct, current_id, include=None)
    if conducted is None or current is None or not current["step_count"]:
        return None
    number = min((current["step_index"] or 0) + 1, current["step_count"])
    return {"number": number, "count": current["step_count"], "estimate": conducted["estimate"]}


def day_title(day: date, now: datetime, zone: ZoneInfo) -> str:
    """Return what a day is called."""
    here = now.astimezone(zone).date()
    written = f"{day:%A %d %B}" if day.year == here.year else f"{day:%A %d %B %Y}"
    names = {here: "Today", here - timedelta(days=1): "Yesterday"}
    return f"{names[day]}, {written}" if day in names else written


@handles("GET", "/runs.csv")
async def serve_table(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
    """Answer with the runs that the list shows, all pages of it, as a table for spreadsheets."""
    queries = console.queries_of(request, session)
    queries.require([ListRuns.operation])
    first = await load_runs(queries, None, MOST_OPTIONS)
    response = document_response(Document("text/csv; charset=utf-8", HEADING.encode()))
    response.stream = table_lines(first, queries)
    return response


HEADING = csv_line(
    ["run", "name", "status", "plan", "sample", "started", "ended", "seconds", "started by", "ended by", "why"]
)


async def table_lines(first: Shown, queries: PageQueries) -> AsyncGenerator[bytes, None]:
    """Yield the heading of a table, and every run page by page."""
    yield HEADING.encode()
    answer: Shown | None = first
    while answer is not None:
        yield "".join(table_line(row_of(item)) for item in answer["items"]).encode()
        cursor = answer["next_cursor"]
        answer = None if cursor is None else await load_runs(queries, cursor, MOST_OPTIONS)


def table_line(row: Shown) -> str:
    """Return a run as a line of a table."""
    took = None if row["ends"] is None else (row["ends"] - row["begins"]) / timedelta(seconds=1)
    names = [(row.get(name) or {}).get("name") for name in ("plan", "subject")]
    times, who = (row["begins"], row["ends"], took), (row["started_by_name"], row["ended_by_name"])
    return csv_line([row["run_id"], row["name"], row["status"], *names, *times, *who, row["why"]])


@handles("GET", "/runs/{run_id}/preview.png")
async def serve_preview(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
    """Answer with the picture of the last dataset of a run, or with an empty one."""
    queries = console.queries_of(request, session)
    run_id = (await queries.ask(GetRun, queries.id("run_id"))).id
    queries.require([GetDatasetPreview.operation])
    found = await queries.ask(ListDatasets, producing_run_id=run_id, limit=1, order="desc", include=None)
    if not found.items:
        return document_response(Document("image/svg+xml", NO_PICTURE), PICTURE_POLICY)
    return await load_picture(console, queries, found.items[0].dataset_id)
