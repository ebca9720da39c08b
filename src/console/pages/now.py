"""Now: for each beamline, whether work is permitted, what supplies it, what warns, and what is live."""

import asyncio
from collections.abc import Sequence

from baton.console.display import GOOD, LIVE, LOOK, PLAIN, STOP, look_of
from baton.console.page import SECOND, Context, MenuGroup, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.pages.queue import queue_tiles
from baton.console.pages.waiting import SHARED, wrong_first
from baton.console.path_stations import ASKED, load_path
from baton.console.step_window import StepLine, step_line
from baton.console.supply_needs import needed_supplies
from baton.console.watched import load_picture, load_watched
from baton.domain.conduct.control_signals import ReadSignals
from baton.domain.conduct.step_list import ListProcedureSteps
from baton.domain.data.preview import GetDatasetPreview
from baton.domain.equipment.asset import AssetLifecycle
from baton.domain.equipment.asset_views import AssetSummary, ListAssets
from baton.domain.subject.subject import GetSubject
from baton.domain.views.beamline_now import GetBeamlineNow
from baton.domain.views.waiting import ListWaiting

MOST_BEAMLINES, MOST_PATHS = 20, 3
MOST_DETAILED = 4  # pieces of live work whose latest steps are shown
SHOWN_STEPS = 4
MOST_WAITING, SHOWN_WAITING = 100, 8
GRAVITY = (STOP, LOOK, PLAIN, LIVE, GOOD)
"""How states look, the gravest first."""
WATCHED = ("Run", "Procedure", "Enclosure", "Supply", "Clearance", "Caution", "Asset")

now = page("", "Now", "What the beamlines are doing, and what they wait for.", template="now.html", menu=MenuGroup.WORK)


async def load_beamlines(queries: PageQueries) -> Sequence[Shown]:
    """Return what is going on at each beamline, or at the one that the address names."""
    if chosen := queries.query.get("beamline"):
        return [await queries.show(GetBeamlineNow, chosen)]
    roots = await root_assets(queries)
    return await asyncio.gather(*(queries.show(GetBeamlineNow, one.asset_id) for one in roots))


async def root_assets(queries: PageQueries) -> Sequence[AssetSummary]:
    """Return the assets that are part of no other, oldest first."""
    page = await queries.ask(ListAssets, root=True, limit=MOST_BEAMLINES)
    return [one for one in page.items if one.lifecycle != AssetLifecycle.DECOMMISSIONED]


@now.region("beamlines", asks=[GetBeamlineNow, ListAssets], watches=WATCHED, every=SECOND)
async def load_now(queries: PageQueries) -> Context:
    beamlines = await load_beamlines(queries)
    conducts = [one for beamline in beamlines for one in beamline["conducts"] if one["step"]][:MOST_DETAILED]
    runs = [one for beamline in beamlines for one in beamline["runs"] if one["subject_id"]][:MOST_DETAILED]
    lines, names = await asyncio.gather(load_latest_steps(queries, conducts), load_subjects(queries, runs))
    shown = [worst_first(lost_first(one), await needed_supplies(queries, one["asset_id"])) for one in beamlines]
    return {"beamlines": shown, "latest_steps": lines, "subjects": names}


def lost_first(beamline: Shown) -> Shown:
    """Return a beamline with the runs first that nobody conducts, or a phase of them."""
    ids = {one["run_id"] for one in beamline["lost"]}
    return {**beamline, "runs": sorted(beamline["runs"], key=lambda run: not run["lost"] and run["run_id"] not in ids)}


def worst_first(beamline: Shown, needed: frozenset[str] | None) -> Shown:
    """Return a beamline with the supplies that its plans need, the worst first; with all of them where it has no plan."""
    supplies = [one for one in beamline["supplies"] if needed is None or one["kind"] in needed]
    permits = sorted(beamline["permits"], key=lambda one: GRAVITY.index(look_of(one["permit_status"])))
    supplies.sort(key=lambda one: GRAVITY.index(look_of(one["status"])))
    return {**beamline, "permits": permits, "supplies": supplies, "others": len(beamline["supplies"]) - len(supplies)}


async def load_latest_steps(queries: PageQueries, conducts: Sequence[Shown]) -> dict[str, list[StepLine]]:
    """Return the current step of each conduct and those before it, the latest first, as far as the person may see them."""
    if not queries.may(ListProcedureSteps):
        return {}
    answers = await asyncio.gather(*(load_steps_until(queries, one["procedure_id"], one["step"]) for one in conducts))
    lines = ([step_line(item, over=False) for item in reversed(answer["items"])] for answer in answers)
    return {one["procedure_id"]: found for one, found in zip(conducts, lines, strict=True)}


async def load_steps_until(queries: PageQueries, procedure_id: str, step: Shown) -> Shown:
    """Return a page of the steps of a conduct that ends with the one it is at."""
    first, limit = max(0, step["number"] - SHOWN_STEPS), min(step["number"], SHOWN_STEPS)
    return await queries.show(ListProcedureSteps, procedure_id, closing=step["closing"], first_index=first, limit=limit)


async def load_subjects(queries: PageQueries, runs: Sequence[Shown]) -> dict[str, str]:
    """Return the names of what is measured, as far as the person may see them."""
    ids = list(dict.fromkeys(one["subject_id"] for one in runs))
    found = await asyncio.gather(*(queries.show_found(GetSubject, id) for id in ids))
    return {id: view["name"] for id, view in zip(ids, found, strict=True) if view is not None}


@now.region("path", asks=[], watches=WATCHED, every=5.0)
async def load_paths(queries: PageQueries) -> Context:
    """Load a picture of the beam path of each beamline that is shown."""
    return {"paths": [path for id in (await shown_ids(queries))[:MOST_PATHS] if (path := await load_path(queries, id))]}


@now.region("watched", asks=[], watches=("Asset",), every=2.0)
async def load_watched_signals(queries: PageQueries) -> Context:
    """Load what people watch at the beamlines that are shown."""
    ids = await shown_ids(queries)
    found = await asyncio.gather(*(load_watched(queries, id) for id in ids))
    watched = [one for one in found if one.is_any]
    return {
        "watched": watched,
        "several": len(ids) > 1,
        "may_read": queries.may(ReadSignals),
        "nothing": not watched and ids,
    }


@now.region("pictures", asks=[], watches=("Asset", "Acquisition", "Dataset"))
async def load_pictures(queries: PageQueries) -> Context:
    """Load the latest picture of each camera that is watched."""
    found = await asyncio.gather(*(load_picture(queries, id) for id in await shown_ids(queries)))
    return {"pictures": [one for one in found if one is not None], "may_see": queries.may(GetDatasetPreview)}


async def shown_ids(queries: PageQueries) -> list[str]:
    """Return the root assets of the beamlines that are shown; none to those who may not see them."""
    if not queries.may(*ASKED):
        return []
    if chosen := queries.query.get("beamline"):
        return [str((await queries.show(GetBeamlineNow, chosen))["asset_id"])]
    return [str(one.asset_id) for one in await root_assets(queries)]


@now.region("waiting", asks=[ListWaiting], watches=(*WATCHED, "Queue", "Distribution"), every=10.0)
async def load_waiting(queries: PageQueries) -> Context:
    page = await queries.show(ListWaiting, kind=SHARED, asset_id=queries.query.get("beamline"), limit=MOST_WAITING)
    items = wrong_first(page["items"])
    return {"items": items[:SHOWN_WAITING], "count": len(items), "more": page["next_cursor"] is not None}


@now.region("queues", asks=[], watches=["Queue"])
async def load_queues(queries: PageQueries) -> Context:
    """Load the queues of the beamlines that are shown, as far as the person may see them."""
    return {"queues": await queue_tiles(queries, asset_id=queries.query.get("beamline") or None)}
