"""Data: the newest datasets, copies that nobody has checked or that are wrong, and editions; one dataset with its copies,
its lineage as a picture and a list, and where it can be cited; one edition with its members and its manifest."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any
from uuid import UUID

from baton.api.http import Request, Response
from baton.console.display import GOOD, LOOK, PLAIN, SIGNS, STOP, href_of, words_of
from baton.console.exports import document_response, serve_export
from baton.console.live import mark_of
from baton.console.page import Context, MenuGroup, handles, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.sessions import ConsoleSession
from baton.console.shell import ConsoleShell
from baton.console.verbs import VerbButton, form_href, verb_button, verbs_of
from baton.domain.contexts import REGISTRY
from baton.domain.data.attestation import ListAttestations
from baton.domain.data.catalogue import ListCatalogueEntries
from baton.domain.data.dataset import Dataset, DatasetIntent, DatasetStatus, GetDataset, ListDatasets
from baton.domain.data.distribution import Distribution, ListDistributions
from baton.domain.data.edition import Edition, GetEdition, GetEditionManifest, ListEditions
from baton.domain.data.exports import GetDatasetDatacite, GetEditionDatacite
from baton.domain.data.preview import DatasetPreviewUnavailableError, GetDatasetPreview
from baton.domain.data.provenance import GetDatasetProv, GetDatasetProvenance, GetDatasetProvenancePicture
from baton.domain.kernel import Document, Query
from baton.domain.shared.refusals import Refusal

INTENDED = {"promote_dataset": "Trial", "demote_dataset": "Production"}
"""The intent that each verb takes a dataset from."""
EDITION_LABELS = {"add_dataset_to_edition": "Add a dataset", "remove_dataset_from_edition": "Remove a dataset"}
OUTCOME_LOOKS = {"Match": GOOD, "Mismatch": STOP, "Unreachable": LOOK}
SHOWN, FEW = 50, 10
CHECKS = (
    ("Stale", STOP, "wrong bytes", "marked_stale_at"),
    ("Registered", LOOK, "never checked", "no_time"),
    ("Verified", GOOD, "right", "verified_at"),
)  # The states of copies, the worst first: how they look, in words, and since when.
DRAWN = {"limit": 150, "max_depth": 8}
"""How much of a lineage is drawn and listed."""
PREVIEW_CACHING = b"private, max-age=60"
PICTURE_POLICY = b"default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'self'"

data = page(
    "/data", "Data", "Datasets, the state of their copies, and editions.", template="data.html", menu=MenuGroup.RECORD
)
dataset = page(
    "/datasets/{dataset_id}",
    "Dataset",
    "One dataset: its origin, its copies and where it is cited.",
    template="dataset.html",
    under=data,
)
edition = page(
    "/editions/{edition_id}",
    "Edition",
    "One edition: its members, its manifest and its verbs.",
    template="edition.html",
    under=data,
)


@data.loads(asks=[])
async def load_filters(queries: PageQueries) -> Context:
    return {
        "statuses": [one.value for one in DatasetStatus],
        "intents": [one.value for one in DatasetIntent],
        "creations": [
            creation_button(name, queries) for name in ("register_dataset", "ingest_scan", "attest_distributions")
        ],
    }


def creation_button(name: str, queries: PageQueries) -> VerbButton:
    """Return the button of a command about no single dataset."""
    operation = REGISTRY.operations[name]
    return replace(verb_button(operation, queries, None, None), label=LABELS.get(name) or words_of(name))


LABELS = {"attest_distributions": "Check copies"}  # What stands on buttons whose verb says too little here.


@data.region("datasets", asks=[ListDatasets], watches=("Run", "Distribution"))
async def load_datasets(queries: PageQueries) -> Context:
    given = {name: queries.query.get(name) or None for name in ("q", "status", "intent", "producing_run_id", "subject_id")}
    answer = await queries.show(ListDatasets, **given, limit=SHOWN, order="desc", cursor=queries.query.get("cursor") or None)
    return await datasets_context(queries, answer, is_filtered=any(given.values()))


async def datasets_context(queries: PageQueries, answer: Shown, *, is_filtered: bool) -> Context:
    """Return what a list of datasets shows: them by their runs, with what is known of their copies."""
    items = answer["items"]
    return {
        "groups": [(id, list(group)) for id, group in groupby(items, lambda one: one["producing_run_id"])],
        "checks": await load_checks(queries, [one["dataset_id"] for one in items]),
        "next_cursor": answer["next_cursor"],
        "is_filtered": is_filtered,
        "may_see_previews": queries.may(GetDatasetPreview),
        **check_context(queries),
    }


async def load_checks(queries: PageQueries, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what is known of the copies of each dataset together; nothing to those who may not see copies."""
    if not ids or not queries.may(ListDistributions):
        return {}
    listed = await queries.show(ListDistributions, dataset_ids=ids, limit=100, order="desc")
    copies: dict[str, list[Shown]] = {id: [] for id in ids}
    for copy in listed["items"]:
        copies[copy["dataset_id"]].append(copy)
    return {id: checked_copies(found) for id, found in copies.items() if found or listed["next_cursor"] is None}


def checked_copies(copies: Sequence[Shown]) -> dict[str, Any]:
    """Return what is known of all copies of a dataset: the worst of them, and the one to check."""
    kept = [copy for copy in copies if copy["status"] != "Discarded"]
    for status, look, words, at in CHECKS:
        if found := [copy for copy in kept if copy["status"] == status]:
            return {"look": look, "sign": SIGNS[look], "words": words, "at": found[0].get(at), "latest": found[0]}
    return {"look": LOOK, "sign": SIGNS[LOOK], "words": "no copy", "at": None, "latest": None}


def check_context(queries: PageQueries) -> Context:
    """Return what a template needs to have copies checked."""
    attest = REGISTRY.operations["record_attestation"]
    return {"attest": attest if queries.may(attest) else None, "attest_href": attest_href}


@data.region("copies", asks=[ListDistributions], watches=("Attestation",))
async def load_copies(queries: PageQueries) -> Context:
    stale, unchecked = await asyncio.gather(
        queries.show(ListDistributions, status="Stale", limit=FEW, order="desc"),
        queries.show(ListDistributions, status="Registered", limit=FEW, order="desc"),
    )
    return {
        "stale": stale["items"],
        "more_stale": stale["next_cursor"] is not None,
        "unchecked": unchecked["items"],
        "more_unchecked": unchecked["next_cursor"] is not None,
        **check_context(queries),
    }


def attest_href(copy: Mapping[str, object]) -> str:
    """Return the address of the form that has one copy checked."""
    ids = {"dataset_id": copy["dataset_id"], "distribution_id": copy["distribution_id"]}
    return form_href(REGISTRY.operations["record_attestation"], None, **ids)


@data.region("editions", asks=[ListEditions])
async def load_editions(queries: PageQueries) -> Context:
    answer = await queries.show(ListEditions, limit=FEW, order="desc")
    return {"items": answer["items"], "more": answer["next_cursor"] is not None}


async def load_dataset(queries: PageQueries) -> Shown:
    """Return the dataset that a page is about."""
    return await queries.show(GetDataset, queries.id("dataset_id"))


@dataset.title_from
async def name_dataset(queries: PageQueries) -> str:
    return (await queries.ask(GetDataset, queries.id("dataset_id"))).name or "Dataset"


@dataset.region("head", asks=[GetDataset])
async def load_head(queries: PageQueries) -> Context:
    view = await load_dataset(queries)
    return {"view": view, "verbs": dataset_verbs(view, queries), "href": href_of("Dataset", view["dataset_id"])}


@dataset.region("facts", asks=[GetDataset], watches=("Run", "Subject"))
async def load_facts(queries: PageQueries) -> Context:
    return {"view": await load_dataset(queries), "may_see_preview": queries.may(GetDatasetPreview)}


def dataset_verbs(view: Mapping[str, object], queries: PageQueries) -> list[VerbButton]:
    """Return the verbs of a dataset; one that its intent or its identifier closes says so."""
    buttons = [
        replace(one, why_not=one.why_not or closed_by(one.name, view)) for one in verbs_of(Dataset.aggregate, view, queries)
    ]
    return sorted(buttons, key=lambda button: button.why_not is not None)


def closed_by(verb: str, view: Mapping[str, object]) -> str | None:
    """Return why the state of a dataset besides its status closes a verb."""
    if (intent := INTENDED.get(verb)) is not None and view["intent"] != intent:
        return f"The dataset is {words_of(view['intent'])}; this is possible only from {intent}."
    if verb in ("mint_dataset_external_id", "assign_dataset_external_id") and view["external_id"] is not None:
        return "The dataset has an external identifier already; it keeps that one."
    return None


@dataset.region("copies", asks=[GetDataset, ListDistributions], watches=("Attestation",))
async def load_dataset_copies(queries: PageQueries) -> Context:
    view = await load_dataset(queries)
    id = view["dataset_id"]
    listed, checks = await asyncio.gather(
        queries.show(ListDistributions, dataset_id=id, limit=SHOWN),
        queries.show_if_permitted(ListAttestations, dataset_id=id, limit=100, order="desc"),
    )
    latest: dict[str, Mapping[str, object]] = {}
    for check in (checks or {"items": []})["items"]:
        latest.setdefault(check["distribution_id"], check)
    return {
        "copies": [copy_row(copy, latest.get(copy["distribution_id"]), queries) for copy in listed["items"]],
        "more": listed["next_cursor"] is not None,
        "register": replace(
            creation_button("register_distribution", queries),
            label="Register a copy",
            href=form_href(REGISTRY.operations["register_distribution"], None, **copied_content(view)),
        ),
        "may_see_checks": checks is not None,
    }


def copied_content(view: Shown) -> dict[str, Any]:
    """Return what a copy of a dataset has in common with it, as a form is filled in with it."""
    return {
        "dataset_id": view["dataset_id"],
        "byte_size": view["byte_size"],
        "checksum.algorithm": view["checksum"]["algorithm"],
        "checksum.value": view["checksum"]["value"],
        "encoding.media_type": view["encoding"]["media_type"],
    }


def copy_row(copy: Shown, check: Shown | None, queries: PageQueries) -> dict[str, Any]:
    """Return a copy with its last check and its verbs."""
    attest = REGISTRY.operations["record_attestation"]
    may_check = queries.may(attest)
    closed = [] if may_check else [replace(verb_button(attest, queries, None, None), label="Check its bytes")]
    outcome = None if check is None else check["outcome"]
    look = OUTCOME_LOOKS.get(outcome or "", PLAIN)
    return {
        **copy,
        "check": check,
        "look": look,
        "sign": SIGNS[look],
        "check_href": attest_href(copy) if may_check else None,
        "verbs": [*closed, *verbs_of(Distribution.aggregate, copy, queries)],
    }


@dataclass(frozen=True)
class LineageEntry:
    """One thing of a lineage: what it is called, what it is, and where its page is."""

    kind: str
    label: str
    href: str | None
    states: tuple[str, ...]


SECTIONS = {
    "Made from": ("dataset", "acquisition"),
    "Made by": ("run", "procedure", "asset"),
    "As planned in": ("plan", "practice", "method", "recipe"),
    "Of and with": ("subject", "calibration_revision", "caution", "decision"),
    "Became": ("dataset", "edition"),
}  # The parts of the list, with the kinds of things in each.


@dataset.region("lineage", asks=[GetDataset, GetDatasetProvenance], watches=("Run", "Edition", "Distribution"))
async def load_lineage(queries: PageQueries) -> Context:
    id = str(queries.id("dataset_id"))
    graph = await queries.show(GetDatasetProvenance, id, **DRAWN)
    after = later_ids(id, graph["edges"])
    sections = {
        title: [
            lineage_node(node)
            for node in graph["nodes"]
            if node.kind in kinds and str(node.id) != id and is_in(title, str(node.id) in after, node.kind)
        ]
        for title, kinds in SECTIONS.items()
    }
    return {
        "sections": {title: nodes for title, nodes in sections.items() if nodes},
        "truncated": graph["truncated"],
        "may_see_picture": queries.may(GetDatasetProvenancePicture),
        "picture": f"{href_of('Dataset', id)}/lineage.svg?v={mark_of(repr(graph))}",
        "count": len(graph["nodes"]),
    }


def is_in(title: str, came_later: bool, kind: str) -> bool:
    """Return whether a thing belongs to a part of the list; what has no direction belongs to each that names its kind."""
    return came_later == (title == "Became") or kind not in ("dataset", "edition")


def later_ids(id: str, edges: Iterable[Mapping[str, object]]) -> frozenset[str]:
    """Return what came of a dataset, directly or not."""
    results: dict[str, list[str]] = {}
    for edge in edges:
        if edge["relation"] in ("wasDerivedFrom", "hadMember"):
            results.setdefault(str(edge["to"]), []).append(str(edge["from"]))
    found, waiting = set[str](), [id]
    while waiting:
        for one in results.get(waiting.pop(), ()):
            if one not in found:
                found.add(one)
                waiting.append(one)
    return frozenset(found)


def lineage_node(node: Any) -> LineageEntry:
    """Return a thing of a lineage as the list shows it; of what the person may not see, its kind."""
    kind, details = str(node.kind), node.details
    name, id = "".join(part.title() for part in kind.split("_")), node.id
    if kind == "calibration_revision":
        name, id = "Calibration", details.get("calibration_id")
    href = href_of(name, id) if id is not None and name in REGISTRY.aggregates else None
    intent = details.get("intent")
    states = [intent, node.status if intent is None or str(node.status) != "Registered" else None]
    label = words_of(node.label) if kind == "calibration_revision" and node.label else node.label
    return LineageEntry(
        words_of(kind), str(label or f"{words_of(kind)} {str(node.id)[-8:]}"), href, tuple(str(one) for one in states if one)
    )


@dataset.region("citing", asks=[GetDataset], watches=("Edition",))
async def load_citing(queries: PageQueries) -> Context:
    view = await load_dataset(queries)
    catalogues, refused = await load_catalogues(queries, view["dataset_id"])
    return {
        "view": view,
        "entries": catalogues,
        "entry_looks": {"Entered": GOOD, "Pending": LOOK, "Refused": STOP},
        "signs": SIGNS,
        "no_catalogue": refused,
        "exports": [one for one in DATASET_EXPORTS if queries.may(one.query)],
        "href": href_of("Dataset", view["dataset_id"]),
    }


async def load_catalogues(queries: PageQueries, dataset_id: str) -> tuple[Sequence[Mapping[str, object]], str | None]:
    """Return how far each catalogue has come with a dataset, or why there is none."""
    if not queries.may(ListCatalogueEntries):
        return [], "How far catalogues have come takes the permission ListCatalogueEntries."
    try:
        return (await queries.show(ListCatalogueEntries, dataset_id=dataset_id, limit=FEW))["items"], None
    except Refusal as refusal:
        if refusal.status != 409:
            raise
        return [], refusal.detail


async def load_edition(queries: PageQueries) -> Shown:
    """Return the edition that a page is about."""
    return await queries.show(GetEdition, queries.id("edition_id"))


@edition.title_from
async def name_edition(queries: PageQueries) -> str:
    return (await queries.ask(GetEdition, queries.id("edition_id"))).title or "Edition"


@edition.region("edition", asks=[GetEdition], watches=("Dataset",))
async def load_whole_edition(queries: PageQueries) -> Context:
    view = await load_edition(queries)
    names = {one["id"]: one["name"] for one in view.get("datasets", ())}
    ids = view["dataset_ids"][:SHOWN]
    found = await asyncio.gather(*(queries.show_found(GetDataset, id) for id in ids[:FEW]))
    known = {one["dataset_id"]: one for one in found if one is not None}
    return {
        "view": view,
        "members": [{"id": id, "name": names.get(id), "whole": known.get(id)} for id in ids],
        "left_out": len(view["dataset_ids"]) - len(ids),
        "verbs": [
            replace(one, label=EDITION_LABELS.get(one.name, one.label)) for one in verbs_of(Edition.aggregate, view, queries)
        ],
        "exports": [one for one in EDITION_EXPORTS if queries.may(one.query)] if view["content_hash"] else [],
        "href": href_of("Edition", view["edition_id"]),
    }


@dataclass(frozen=True)
class Export:
    """A file about a thing that a person may take along."""

    name: str
    label: str
    query: type[Query]


DATASET_EXPORTS = (
    Export("datacite.json", "DataCite record", GetDatasetDatacite),
    Export("prov.json", "PROV record of its lineage", GetDatasetProv),
)
EDITION_EXPORTS = (
    Export("manifest.json", "Manifest", GetEditionManifest),
    Export("datacite.json", "DataCite record", GetEditionDatacite),
)


serve_export("/datasets/{dataset_id}/lineage.svg", "dataset_id", GetDatasetProvenancePicture, PICTURE_POLICY, **DRAWN)
for one in DATASET_EXPORTS:
    serve_export(f"/datasets/{{dataset_id}}/{one.name}", "dataset_id", one.query)
for one in EDITION_EXPORTS:
    serve_export(f"/editions/{{edition_id}}/{one.name}", "edition_id", one.query)


@handles("GET", "/datasets/{dataset_id}/preview.png")
async def serve_preview(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
    """Answer with the picture of a dataset, or with a card that says why there is none."""
    queries = console.queries_of(request, session)
    return await load_picture(console, queries, queries.id("dataset_id"))


async def load_picture(console: ConsoleShell, queries: PageQueries, dataset_id: UUID) -> Response:
    """Return the picture of a dataset as a file, or a card that says why there is none."""
    try:
        picture = await queries.ask(GetDatasetPreview, dataset_id)
    except DatasetPreviewUnavailableError as refusal:
        card = console.templates.render("dataset/no_picture.svg", {"why": refusal.detail})
        picture = Document("image/svg+xml", card.encode())
    return document_response(picture, PICTURE_POLICY, PREVIEW_CACHING)
