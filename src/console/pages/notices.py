"""Notices: what became of work that a person started, for those who asked their browser to tell them."""

import asyncio
from datetime import timedelta

from baton.console.display import href_of, words_of
from baton.console.page import Context, frame_region
from baton.console.page_queries import PageQueries, Shown
from baton.console.pages.waiting import COUNTED, SHARED
from baton.domain.launch.launch import GetLaunch, LaunchOutcome, LaunchStatus, ListLaunches
from baton.domain.views.waiting import ListWaiting

RECENT = timedelta(hours=24)
MOST_LAUNCHES = 20
BAD_ENDS = frozenset({LaunchOutcome.ABORTED.value, LaunchOutcome.TRUNCATED.value})
WATCHED = ("Launch", "Run", "Procedure", "Queue")


@frame_region("notices", watches=WATCHED, every=20.0, personal=True)
async def load_notices(queries: PageQueries) -> Context:
    """Load what a person would want to hear: what they started failed, or waits for somebody."""
    if not queries.may(ListLaunches, GetLaunch, ListWaiting):
        return {"notices": []}
    since = (queries.now - RECENT).isoformat()
    own = await queries.show(
        ListLaunches, launched_by=queries.caller.principal_id, created_from=since, limit=MOST_LAUNCHES, order="desc"
    )
    live = [one for one in own["items"] if one["status"] == LaunchStatus.BEGUN]
    waiting = await queries.show(ListWaiting, kind=SHARED, permitted=False, limit=COUNTED) if live else {"items": []}
    views = await asyncio.gather(*(queries.show(GetLaunch, one["launch_id"]) for one in live))
    started = {id for view in views for id in (view["run_id"], *view["procedure_ids"]) if id}
    ended = [
        ended_notice(one) for one in own["items"] if one["outcome"] in BAD_ENDS or one["status"] == LaunchStatus.REFUSED
    ]
    held = [waiting_notice(item) for item in waiting["items"] if item["id"] in started]
    return {"notices": [*held, *ended]}


def ended_notice(launch: Shown) -> dict[str, str]:
    """Return the notice of a launch that ended otherwise than it should."""
    word = words_of(launch["outcome"] or launch["status"]).lower()
    href = href_of("Run", launch["run_id"]) if launch["run_id"] else href_of("Launch", launch["launch_id"])
    return {"key": f"{launch['launch_id']}:{word}", "title": f"{launch['name']} was {word}", "text": "", "href": href}


def waiting_notice(item: Shown) -> dict[str, str]:
    """Return the notice of a run or procedure that waits for a person."""
    kind = words_of(item["kind"])
    return {
        "key": f"{item['id']}:{item['kind']}:{item['since']}",
        "title": f"{item['name']}: {kind.lower()}",
        "text": item["why"],
        "href": href_of(item["about"], item["id"]),
    }
