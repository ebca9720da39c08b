"""Where the time of a beamline went: the last day as a strip and the last week as bars, on the page of its root asset."""

from datetime import datetime, timedelta
from typing import Any

from baton.api.http import Request, Response
from baton.console.display import href_of
from baton.console.exports import document_response
from baton.console.page import Context, handles
from baton.console.page_queries import PageQueries
from baton.console.pages.asset import asset, load_view
from baton.console.sessions import ConsoleSession
from baton.console.shell import ConsoleShell
from baton.console.time_pictures import time_bars, time_strip, told_states
from baton.domain.kernel import Document
from baton.domain.views.beam_time import BeamTime, GetBeamTime, TimeFormat, TimeGrouping

DAY, WEEK = timedelta(days=1), timedelta(days=7)
MINUTE = 60.0  # the interval in which the region is loaded again: time goes on without events


@asset.region("time", asks=[GetBeamTime], every=MINUTE)
async def load_time(queries: PageQueries) -> Context:
    """Load where the time of a beamline went; an asset that is a part of one has none of its own."""
    if (await load_view(queries))["parent_id"] is not None:
        return {"day": None}
    day = await load_range(queries, DAY)
    week = await load_range(queries, WEEK, by=TimeGrouping.DAY, time_zone=queries.zone.key)
    label = f"Where the time of {day.name} went in the last day"
    return {
        "day": day,
        "week": week,
        "strip": time_strip(day.stretches or (), day.since, day.until, queries.zone, label),
        "bars": time_bars(week.groups, f"Where the time of {day.name} went in the last week, by day"),
        "states": told_states(day.states),
        "href": href_of("Asset", day.asset_id),
    }


async def load_range(queries: PageQueries, length: timedelta, **asked: object) -> BeamTime:
    """Return where the time of a range that ends now went."""
    told = await queries.ask(GetBeamTime, queries.id("asset_id"), **range_of(queries, length), **asked)
    assert isinstance(told, BeamTime), "a table comes only where it is asked for"
    return told


def range_of(queries: PageQueries, length: timedelta) -> dict[str, datetime]:
    """Return the range of this length that ends now."""
    return {"since": queries.now - length, "until": queries.now}


@handles("GET", "/assets/{asset_id}/beam-time.csv")
async def serve_beam_time(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
    """Answer with the last week of a beamline as a table for spreadsheets."""
    queries = console.queries_of(request, session)
    asked: dict[str, Any] = {**range_of(queries, WEEK), "format": TimeFormat.CSV}
    table = await queries.ask(GetBeamTime, queries.id("asset_id"), **asked)
    assert isinstance(table, Document), "this form is a file"
    return document_response(table)
