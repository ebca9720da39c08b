"""Equipment: the tree of assets below each beamline with both axes of each, what warns about it, who uses it and where it
stands; as a table and as a picture."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from baton.console.display import href_of, shown_status
from baton.console.page import Context, MenuGroup, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.signal_readings import read_lately
from baton.console.signal_rows import SignalRow, signal_addresses, signal_row
from baton.console.tree_picture import TreeAsset, TreePicture, tree_picture
from baton.domain.caution.caution import ListCautions
from baton.domain.conduct.control_signals import MAX_READ, ReadSignals
from baton.domain.conduct.procedure_views import GetProcedure
from baton.domain.contexts import REGISTRY
from baton.domain.equipment.asset_reading import ReadAssets
from baton.domain.equipment.asset_tree import GetAssetTree
from baton.domain.equipment.asset_views import GetAsset, ListAssets
from baton.domain.kernel import Query
from baton.domain.procedure.procedure import ListProcedures
from baton.domain.recipe.plan import GetPlan
from baton.domain.run.run import ListRuns

MOST_ROWS = 100  # of one list, and so of the assets that are shown as a whole tree
MOST_BEAMLINES = 20
MOST_CAUTIONS = 300
MOST_LIVE = 20
VALUES_SECONDS = 15.0  # between two readings of a whole tree; an identifier that is no signal takes as long as a reading may
RETIRED = "Decommissioned"
ATTENTION = ({"condition": "Faulted"}, {"condition": "Degraded"}, {"lifecycle": "Maintenance"})
"""What needs a look, the gravest first."""
RELATED = ("Family", "Model", "Mount", "Frame", "Assembly", "Fixture", "Calibration", "Enclosure")

equipment = page(
    "/equipment",
    "Equipment",
    "The assets below each beamline: both axes, cautions, who uses them and where they stand.",
    template="equipment.html",
    menu=MenuGroup.RECORD,
)


@dataclass(frozen=True)
class LiveClaim:
    """Live work that uses an asset."""

    kind: str
    id: str
    name: str
    status: str


@dataclass(frozen=True)
class TreeRow:
    """One asset of a tree, how deep it stands, and what is known about it besides."""

    item: Shown
    depth: int
    cautions: int
    claims: tuple[LiveClaim, ...]

    @property
    def id(self) -> str:
        return str(self.item["asset_id"])

    @property
    def needs_attention(self) -> bool:
        """Whether it needs a look."""
        return bool(self.item["condition"] != "Nominal" or self.item["lifecycle"] == "Maintenance")


@dataclass(frozen=True)
class TreeBranch:
    """A part of the tree that is shown together: its rows from the top, and where the rest of it is."""

    rows: tuple[TreeRow, ...]
    picture: TreePicture
    is_whole: bool  # Whether everything below is shown; otherwise the next level only.
    next_cursor: str | None

    @property
    def root(self) -> TreeRow:
        return self.rows[0]


@dataclass(frozen=True)
class Surroundings:
    """What is known about assets besides themselves: the cautions in effect and the live work, by asset."""

    cautions: Mapping[str, int]
    claims: Mapping[str, Sequence[LiveClaim]]

    def row(self, item: Shown, depth: int) -> TreeRow:
        """Return an asset as the tree shows it."""
        id = item["asset_id"]
        return TreeRow(item, depth, self.cautions.get(id, 0), tuple(self.claims.get(id, ())))


async def load_surroundings(queries: PageQueries) -> Surroundings:
    """Return the cautions and the live work, as far as the person may see them."""
    cautions, claims = await asyncio.gather(count_cautions(queries), load_claims(queries))
    return Surroundings(cautions, claims)


async def count_cautions(queries: PageQueries) -> Counter[str]:
    """Return how many cautions are in effect on each asset itself."""
    found: Counter[str] = Counter()
    cursor = None
    for _ in range(MOST_CAUTIONS // MOST_ROWS if queries.may(ListCautions) else 0):
        answer = await queries.show(ListCautions, target_kind="Asset", in_effect=True, limit=MOST_ROWS, cursor=cursor)
        found.update(item["target"]["id"] for item in answer["items"])
        if (cursor := answer["next_cursor"]) is None:
            break
    return found


async def load_claims(queries: PageQueries) -> dict[str, list[LiveClaim]]:
    """Return the live work by the assets it uses: a run those of its plan, a procedure its targets and what it writes."""
    statuses = ("Running", "Held")
    runs = [queries.show_if_permitted(ListRuns, status=status, limit=MOST_LIVE, order="desc") for status in statuses]
    conducts = [
        queries.show_if_permitted(ListProcedures, status=status, limit=MOST_LIVE, order="desc") for status in statuses
    ]
    answers = await asyncio.gather(*runs, *conducts)
    live_runs, live_procedures = items_of(answers[:2]), items_of(answers[2:])
    plans = await find_each(queries, GetPlan, (one["plan_id"] for one in live_runs))
    procedures = await find_each(queries, GetProcedure, (one["procedure_id"] for one in live_procedures))
    claims: dict[str, list[LiveClaim]] = defaultdict(list)
    for run in live_runs:
        for asset_id in plans.get(run["plan_id"], {}).get("asset_ids", ()):
            claims[asset_id].append(LiveClaim("Run", run["run_id"], run["name"], shown_status(run)))
    for one in live_procedures:
        whole = procedures.get(one["procedure_id"], {})
        for asset_id in sorted({*one["target_asset_ids"], *whole.get("judged_asset_ids", ())}):
            claims[asset_id].append(LiveClaim("Procedure", one["procedure_id"], one["name"], shown_status(one)))
    return claims


def items_of(answers: Iterable[Shown | None]) -> list[Shown]:
    """Return the items of lists, where the person may read them."""
    return [item for answer in answers if answer is not None for item in answer["items"]]


async def find_each(queries: PageQueries, query: type[Query], ids: Iterable[str]) -> dict[str, Shown]:
    """Return the things with these ids that the person may see."""
    wanted = list(dict.fromkeys(ids))
    found = await asyncio.gather(*(queries.show_found(query, id) for id in wanted))
    return {id: one for id, one in zip(wanted, found, strict=True) if one is not None}


async def load_branches(queries: PageQueries, around: Surroundings) -> list[TreeBranch]:
    """Return the trees below the roots, or below the asset that the address names. Where there are too many assets for one
    list, each tree is shown to its next level, and the rest of it is a link away."""
    everything = await queries.show(ListAssets, limit=MOST_ROWS)
    at, retired = queries.query.get("at"), bool(queries.query.get("retired"))
    if everything["next_cursor"] is None:
        items = [one for one in everything["items"] if retired or one["lifecycle"] != RETIRED]
        return [branch_of(rows_below(root, items, around), None, True) for root in roots_among(items, at)]
    if at:
        root = await queries.show(GetAsset, at)
        return [await load_level(queries, root, around, MOST_ROWS)]
    roots = (await queries.show(ListAssets, root=True, limit=MOST_BEAMLINES))["items"]
    roots = [one for one in roots if retired or one["lifecycle"] != RETIRED]
    size = max(MOST_ROWS // max(len(roots), 1), 5)
    return list(await asyncio.gather(*(load_level(queries, root, around, size) for root in roots)))


async def load_level(queries: PageQueries, root: Mapping[str, object], around: Surroundings, size: int) -> TreeBranch:
    """Return an asset with what is right below it."""
    cursor = queries.query.get("cursor") if queries.query.get("at") else None
    page = await queries.show(ListAssets, parent_id=root["asset_id"], limit=size, cursor=cursor)
    below = [one for one in page["items"] if queries.query.get("retired") or one["lifecycle"] != RETIRED]
    rows = (around.row(root, 0), *(around.row(one, 1) for one in below))
    return branch_of(rows, page["next_cursor"], False)


def roots_among(items: Sequence[Mapping[str, object]], at: str | None) -> list[Mapping[str, object]]:
    """Return the assets that are part of none of these, or the one that is asked for."""
    known = {one["asset_id"] for one in items}
    if at in known:
        return [one for one in items if one["asset_id"] == at]
    return [one for one in items if one["parent_id"] not in known]


def rows_below(root: Shown, items: Sequence[Shown], around: Surroundings) -> tuple[TreeRow, ...]:
    """Return an asset and everything below it, each branch after its top."""
    children: dict[str | None, list[Shown]] = defaultdict(list)
    for one in items:
        children[one["parent_id"]].append(one)
    rows: list[TreeRow] = []
    waiting = [(root, 0)]
    while waiting:
        item, depth = waiting.pop()
        rows.append(around.row(item, depth))
        waiting += [(one, depth + 1) for one in reversed(children[item["asset_id"]])]
    return tuple(rows)


def branch_of(rows: tuple[TreeRow, ...], next_cursor: str | None, is_whole: bool) -> TreeBranch:
    """Return a part of the tree with its picture."""
    root = rows[0]
    label = f"{root.item['name']} and what is below it, as a picture"
    picture = tree_picture([picture_asset(row) for row in rows], label, f"/console/equipment?at={root.id}")
    return TreeBranch(rows, picture, is_whole, next_cursor)


def picture_asset(row: TreeRow) -> TreeAsset:
    """Return an asset as the picture shows it."""
    item = row.item
    return TreeAsset(
        row.id,
        item["parent_id"],
        item["name"],
        item["lifecycle"],
        item["condition"],
        href_of("Asset", row.id),
        in_use=bool(row.claims),
        cautions=row.cautions,
    )


async def load_attention(queries: PageQueries, branches: Sequence[TreeBranch]) -> list[Mapping[str, object]]:
    """Return the assets that need a look: of the part of the tree that is shown, or of all where only its top is."""
    if queries.query.get("at") or all(branch.is_whole for branch in branches):
        return [row.item for branch in branches for row in branch.rows if row.needs_attention]
    answers = await asyncio.gather(*(queries.show(ListAssets, limit=8, order="desc", **state) for state in ATTENTION))
    found = {one["asset_id"]: one for one in items_of(answers) if one["lifecycle"] != RETIRED}
    return list(found.values())


async def load_values(queries: PageQueries, rows: Sequence[TreeRow]) -> dict[str, SignalRow | None]:
    """Return what was last read of the first signal of each asset, None where that is yet to come; nothing of assets without
    one, nor to those who may not read signals."""
    if not rows or not queries.may(ReadAssets, ReadSignals):
        return {}
    wholes = await queries.show(ReadAssets, asset_ids=[row.id for row in rows])
    own = {str(one["asset_id"]): address for one in wholes["items"] for address in signal_addresses(one, "")[:1]}
    addresses = tuple(sorted(set(own.values())))[:MAX_READ]
    latest = read_lately(queries, addresses, VALUES_SECONDS) if addresses else None
    known = {} if latest is None else {one["address"]: signal_row(one) for one in latest.signals}
    return {id: known.get(address) for id, address in own.items() if address in addresses}


@equipment.region("tree", asks=[ListAssets], watches=("Asset", "Caution", "Run", "Procedure"), every=5.0)
async def load_tree(queries: PageQueries) -> Context:
    around = await load_surroundings(queries)
    branches = await load_branches(queries, around)
    values = await load_values(queries, [row for branch in branches for row in branch.rows])
    above = []
    if branches and branches[0].root.item["parent_id"] and queries.may(GetAssetTree):
        above = await load_ancestors(queries, branches[0].root.id)
    return {
        "branches": branches,
        "values": values,
        "above": above,
        "attention": await load_attention(queries, branches),
        "related": [REGISTRY.aggregates[name] for name in RELATED],
        "kept": kept_query(queries),
    }


async def load_ancestors(queries: PageQueries, id: str) -> list[Mapping[str, object]]:
    """Return the assets that one is part of, the outermost first."""
    tree = await queries.show(GetAssetTree, id, direction="ancestors")
    return list(reversed(tree["nodes"][1:]))


def kept_query(queries: PageQueries) -> str:
    """Return the parameters of the address that links to other parts of the tree keep."""
    kept = {name: queries.query[name] for name in ("retired",) if queries.query.get(name)}
    return urlencode(kept)
