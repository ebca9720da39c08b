"""Find: one search over the names of runs, samples, devices, datasets, plans and recipes, and the titles of pages."""

import asyncio
from dataclasses import dataclass

from baton.console.display import href_of
from baton.console.page import PAGES, Context, page
from baton.console.page_queries import PageQueries
from baton.domain.data.dataset import ListDatasets
from baton.domain.equipment.asset_views import ListAssets
from baton.domain.queue.views import ListQueues
from baton.domain.recipe.plan import ListPlans
from baton.domain.recipe.recipe import ListRecipes
from baton.domain.run.run import ListRuns
from baton.domain.shared.listing import NamedListQuery
from baton.domain.subject.subject import ListSubjects

SHOWN, LONGEST = 6, 200

find = page("/find", "Find", "Runs, samples, devices, datasets and pages, by their names.", template="find.html")


@dataclass(frozen=True)
class FoundKind:
    """The things of one kind that are called like it, and where the others are."""

    title: str
    items: tuple[tuple[str, str, str], ...]  # name, address and state of each
    more_href: str | None = None


KINDS: dict[str, tuple[str, type[NamedListQuery]]] = {
    "Runs": ("Run", ListRuns),
    "Samples": ("Subject", ListSubjects),
    "Devices": ("Asset", ListAssets),
    "Datasets": ("Dataset", ListDatasets),
    "Plans": ("Plan", ListPlans),
    "Recipes": ("Recipe", ListRecipes),
    "Queues": ("Queue", ListQueues),
}


@find.region("found", asks=[], watches=tuple(name for name, _ in KINDS.values()))
async def load_found(queries: PageQueries) -> Context:
    text = queries.query.get("q", "").strip()[:LONGEST]
    pages = [one for ones in PAGES.menu().values() for one in ones if text.lower() in one.title.lower()]
    found = [FoundKind("Pages", tuple((one.title, one.path, one.doc) for one in pages))] if pages else []
    if text:
        kinds = [(title, name, query) for title, (name, query) in KINDS.items() if queries.may(query)]
        found += await asyncio.gather(*(find_kind(queries, title, name, query, text) for title, name, query in kinds))
    return {"text": text, "kinds": [one for one in found if one.items]}


async def find_kind(queries: PageQueries, title: str, name: str, query: type[NamedListQuery], text: str) -> FoundKind:
    """Return the newest things of a kind whose name has this text in it."""
    answer = await queries.show(query, q=text, limit=SHOWN, order="desc")
    aggregate = query.operation.aggregate
    assert aggregate is not None, "lists of named things are about them"
    items = tuple(
        (one["name"] or "", href_of(name, one[aggregate.id_name]), str(one.get(aggregate.axis) or ""))
        for one in answer["items"]
    )
    return FoundKind(title, items, f"/console{aggregate.path}" if answer["next_cursor"] else None)
