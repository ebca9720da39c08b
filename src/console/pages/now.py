"""Now: for each beamline, whether work is permitted, what supplies it, what warns, and what is live."""

import asyncio
from typing import Any

from baton.console.desk import Desk
from baton.console.page import SECOND, Context, MenuGroup, page
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.asset_views import ListAssets
from baton.domain.run.beamline_now import GetBeamlineNow
from baton.domain.run.waiting import ListWaiting

MOST_BEAMLINES = 20
WATCHED = ("Run", "Procedure", "Enclosure", "Supply", "Clearance", "Caution", "Asset")

now = page("", "Now", "What the beamlines are doing, and what they wait for.", template="now.html", menu=MenuGroup.WORK)


async def load_beamlines(desk: Desk) -> list[dict[str, Any]]:
    """Return what is going on at each beamline, or at the one that the address names."""
    if chosen := desk.query.get("beamline"):
        return [await desk.ask(GetBeamlineNow, chosen)]
    roots = await root_assets(desk)
    answers = await asyncio.gather(*(desk.ask(GetBeamlineNow, one["asset_id"]) for one in roots))
    return list(answers)


async def root_assets(desk: Desk) -> list[dict[str, Any]]:
    """Return the assets that are part of no other, oldest first."""
    page = await desk.ask(ListAssets, root=True, limit=MOST_BEAMLINES)
    return [one for one in page["items"] if one["lifecycle"] != "Decommissioned"]


@now.region("beamlines", asks=[GetBeamlineNow, ListAssets], watches=WATCHED, every=SECOND)
async def load_now(desk: Desk) -> Context:
    return {"beamlines": await load_beamlines(desk), "kinds": Asset.aggregate}


@now.region("waiting", asks=[ListWaiting], watches=WATCHED, every=10.0)
async def load_waiting(desk: Desk) -> Context:
    page = await desk.ask(ListWaiting, asset_id=desk.query.get("beamline"), limit=6)
    return {"items": page["items"], "more": page["next_cursor"] is not None}
