"""Which supplies the plans of a beamline need. Plans change rarely, and pages are rendered every second: the answer is kept
for a minute."""

import asyncio
from datetime import datetime
from weakref import WeakKeyDictionary

from baton.console.page_queries import PageQueries
from baton.domain.equipment.asset_tree import GetAssetTree
from baton.domain.recipe.lifecycle import TemplateStatus
from baton.domain.recipe.method import GetMethod
from baton.domain.recipe.plan import GetPlan, ListPlans

ASKED = (ListPlans, GetPlan, GetMethod, GetAssetTree)
KEPT_SECONDS = 60.0
MOST_PLANS = 50
Needs = tuple[datetime, frozenset[str] | None]

KNOWN: "WeakKeyDictionary[asyncio.Event, dict[str, Needs]]" = WeakKeyDictionary()
"""What is known of the beamlines of each service of this process; a service is known by the event that it stops with."""


async def needed_supplies(queries: PageQueries, asset_id: str) -> frozenset[str] | None:
    """Return the kinds of supply that the plans of a beamline need; None where it has no plan, or the person may not see."""
    if not queries.may(*ASKED):
        return None
    known = KNOWN.setdefault(queries.service.stopping, {})
    if asset_id not in known or (queries.now - known[asset_id][0]).total_seconds() > KEPT_SECONDS:
        known[asset_id] = queries.now, await load_needs(queries, asset_id)
    return known[asset_id][1]


async def load_needs(queries: PageQueries, asset_id: str) -> frozenset[str] | None:
    """Return what the newest plans need that are bound to an asset of a beamline."""
    tree = await queries.ask(GetAssetTree, asset_id)
    ids = {node.asset_id for node in tree.nodes}
    listed = await queries.ask(ListPlans, limit=MOST_PLANS, order="desc")
    current = [one for one in listed.items if one.status is not TemplateStatus.DEPRECATED]
    plans = await asyncio.gather(*(queries.ask(GetPlan, one.plan_id) for one in current))
    own = [one for one in plans if one.asset_ids & ids]
    methods = await asyncio.gather(*(queries.ask(GetMethod, id) for id in {one.method_id for one in own}))
    return frozenset(kind for one in methods for kind in one.needed_supplies) if own else None
