"""Wall: one beamline to be read from four metres, on a display that nobody touches."""

import asyncio

from baton.console.page import SECOND, Context, page
from baton.console.page_queries import PageQueries
from baton.console.pages.now import WATCHED, lost_first, now, shown_ids, worst_first
from baton.console.pages.waiting import SHARED
from baton.console.path_stations import ASKED, load_path
from baton.console.supply_needs import needed_supplies
from baton.console.watched import load_picture, load_watched
from baton.domain.conduct.control_signals import ReadSignals
from baton.domain.data.preview import GetDatasetPreview
from baton.domain.views.beamline_now import GetBeamlineNow
from baton.domain.views.waiting import ListWaiting

MOST_WAITING = 50

wall = page("/wall", "Wall", "One beamline, to be read from four metres.", template="wall.html", under=now)


async def wall_id(queries: PageQueries) -> str | None:
    """Return the beamline that the wall shows: the one that the address names, or the first."""
    return next(iter(await shown_ids(queries)), None)


@wall.region("work", asks=ASKED, watches=WATCHED, every=SECOND)
async def load_work(queries: PageQueries) -> Context:
    """Load whether work is permitted, and what runs."""
    if (id := await wall_id(queries)) is None:
        return {"beamline": None}
    beamline = lost_first(await queries.show(GetBeamlineNow, id))
    return {"beamline": worst_first(beamline, await needed_supplies(queries, id))}


@wall.region("path", asks=[], watches=WATCHED, every=5.0)
async def load_wall_path(queries: PageQueries) -> Context:
    id = await wall_id(queries)
    return {"path": None if id is None else await load_path(queries, id)}


@wall.region("signals", asks=[], watches=("Acquisition", "Dataset", "Asset"), every=2.0)
async def load_signals(queries: PageQueries) -> Context:
    """Load what people watch, and the latest picture."""
    if (id := await wall_id(queries)) is None:
        return {"watched": None, "picture": None}
    watched, picture = await asyncio.gather(load_watched(queries, id), load_picture(queries, id))
    may = {"may_read": queries.may(ReadSignals), "may_see": queries.may(GetDatasetPreview)}
    return {"watched": watched, "picture": picture, **may}


@wall.region("waits", asks=[ListWaiting], watches=(*WATCHED, "Queue"), every=10.0)
async def load_waits(queries: PageQueries) -> Context:
    """Load how much waits for a person, and the first of it."""
    listed = await queries.show(ListWaiting, kind=SHARED, asset_id=queries.query.get("beamline") or None, limit=MOST_WAITING)
    return {"items": listed["items"]}
