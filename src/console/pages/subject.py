"""Sample: where one is mounted, what was measured of it, and the data that came of that."""

from collections.abc import Sequence

from baton.console.display import href_of
from baton.console.page import Context, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.pages.data import datasets_context
from baton.console.pages.runs import rows_context, runs
from baton.console.verbs import VerbButton, verbs_of
from baton.domain.data.dataset import ListDatasets
from baton.domain.equipment.asset_tree import GetAssetTree
from baton.domain.run.run import ListRuns
from baton.domain.subject.subject import MEASURED, MOUNTED, RECEIVED, REMOVED, GetSubject, Subject

SHOWN = 10
FIRST_VERBS = {
    RECEIVED: ("mount_subject",),
    MOUNTED: ("dismount_subject", "measure_subject"),
    MEASURED: ("dismount_subject",),
    REMOVED: ("return_subject", "store_subject"),
}  # What is most likely wanted in each state.

subject = page(
    "/subjects/{subject_id}",
    "Sample",
    "One sample: where it is mounted, its runs and its data.",
    template="subject.html",
    under=runs,
)


async def load_view(queries: PageQueries) -> Shown:
    """Return the sample that the page is about."""
    return await queries.show(GetSubject, queries.id("subject_id"))


@subject.title_from
async def name_subject(queries: PageQueries) -> str:
    return str((await load_view(queries))["name"] or "Sample")


@subject.region("head", asks=[GetSubject], watches=("Asset",))
async def load_head(queries: PageQueries) -> Context:
    view = await load_view(queries)
    buttons = verbs_of(Subject.aggregate, view, queries)
    first = first_verbs(view, buttons)
    return {
        "view": view,
        "place": await load_place(queries, view["mounted_on_asset_id"]),
        "first": first,
        "others": [one for one in buttons if one not in first],
        "href": href_of("Subject", view["subject_id"]),
    }


def first_verbs(view: Shown, buttons: Sequence[VerbButton]) -> list[VerbButton]:
    """Return the buttons that the state of a sample calls for."""
    by_name = {one.name: one for one in buttons}
    return [by_name[name] for name in FIRST_VERBS.get(view["status"], ())]


async def load_place(queries: PageQueries, asset_id: str | None) -> Sequence[Shown]:
    """Return the asset that a sample is on and those it is part of, as far as the person may see them."""
    tree = None if asset_id is None else await queries.show_found(GetAssetTree, asset_id, direction="ancestors")
    return [] if tree is None else list(tree["nodes"])


@subject.region("runs", asks=[GetSubject, ListRuns], watches=("Procedure",), every=5.0, template="runs/rows.html")
async def load_runs(queries: PageQueries) -> Context:
    answer = await queries.show(ListRuns, subject_id=queries.id("subject_id"), limit=SHOWN, order="desc")
    return await rows_context(queries, {**answer, "next_cursor": None}, is_filtered=False)


@subject.region("data", asks=[GetSubject, ListDatasets], watches=("Distribution",), template="data/datasets.html")
async def load_data(queries: PageQueries) -> Context:
    answer = await queries.show(ListDatasets, subject_id=queries.id("subject_id"), limit=SHOWN, order="desc")
    return await datasets_context(queries, {**answer, "next_cursor": None}, is_filtered=False)
