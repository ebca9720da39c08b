"""The provenance of a dataset: what it was derived from, what was derived from it, and the runs, plans, calibrations,
decisions and people behind all of that, as a graph in the terms of PROV. It is read from projections with as many statements
for ten thousand datasets as for one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import ConfigDict, Field

from baton.domain.access.actor import NOT_SIGNED_IN, SYSTEM_NAME, names_of
from baton.domain.calibration.calibration import REVISIONS, Calibration, ComputedSource, MeasuredSource, Revision
from baton.domain.data.acquisition import ListAcquisitions
from baton.domain.data.dataset import Dataset, DatasetSummary, ListDatasets, dataset
from baton.domain.data.distribution import ListDistributions
from baton.domain.data.edition import ListEditions
from baton.domain.data.lineage import LineageDirection, LineagePort
from baton.domain.data.prov_json import prov_json
from baton.domain.data.provenance_graph import (
    ProvenanceEdge,
    ProvenanceGraph,
    ProvenanceKind,
    ProvenanceNode,
    ProvenanceRelation,
)
from baton.domain.data.provenance_picture import provenance_picture
from baton.domain.decision.decision import ListDecisions
from baton.domain.equipment.asset_views import ListAssets
from baton.domain.kernel import NIL, Call, Document, Event, LogPosition, Query, Value
from baton.domain.procedure.procedure import ListProcedures, ProcedureRecipeExpanded
from baton.domain.recipe.method import ListMethods
from baton.domain.recipe.plan import ListPlans
from baton.domain.recipe.practice import ListPractices
from baton.domain.recipe.recipe import ListRecipes
from baton.domain.run import run as runs
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.listing import ListQuery
from baton.domain.shared.reads import Reads, ask, find_all, members_by_key, permitted_commands, run_in_thread
from baton.domain.subject.subject import ListSubjects

DEFAULT_LIMIT, MAX_LIMIT = 1000, 20_000  # Datasets of one answer.
MAX_RELATED = 20_000  # Rows of any other kind that one answer looks at.
DECIDED = (
    *(runs.RunStarted, runs.RunHeld, runs.RunResumed, runs.RunAdjusted),
    *(runs.RunStopped, runs.RunAborted, runs.RunTruncated),
)  # What may name the decision that caused it.

DATASET_COLUMNS = [name for name in DatasetSummary.model_fields if name not in ("uri", "derived_from")]
ACQUISITION_COLUMNS = ["acquisition_id", "dataset_id", "producing_asset_id", "producing_run_id", "captured_at", "status"]

Kind, Relation = ProvenanceKind, ProvenanceRelation
Row = Mapping[str, Any]
NOTHING: Mapping[str, Any] = {}


class ProvenanceDirection(StrEnum):
    ANCESTORS = "ancestors"  # What the dataset was derived from.
    DESCENDANTS = "descendants"  # What was derived from it.
    BOTH = "both"


DIRECTIONS = {
    ProvenanceDirection.ANCESTORS: [LineageDirection.ANCESTORS],
    ProvenanceDirection.DESCENDANTS: [LineageDirection.DESCENDANTS],
    ProvenanceDirection.BOTH: [LineageDirection.ANCESTORS, LineageDirection.DESCENDANTS],
}


class ProvenanceEdgeView(Value):
    """A relation from what came later to what it came from."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)

    source: Annotated[UUID, Field(alias="from")]
    target: Annotated[UUID, Field(alias="to")]
    relation: ProvenanceRelation
    """How the two belong together, in the terms of PROV."""


class DatasetProvenance(Value):
    """Where a dataset comes from and what became of it; `truncated` where there is more than was asked for."""

    dataset_id: UUID
    nodes: tuple[ProvenanceNode, ...]
    edges: tuple[ProvenanceEdgeView, ...]
    """The relations between the nodes."""
    truncated: bool
    """Whether there is more than is shown."""


class ProvenanceQuery(Query):
    """What is asked about the provenance of a dataset."""

    reads_projections: ClassVar[bool] = True
    of_one_moment: ClassVar[bool] = True

    direction: ProvenanceDirection = ProvenanceDirection.BOTH
    max_depth: Annotated[int, Field(ge=0, le=1000, description="The largest number of derivations away.")] = 20
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT, description="The largest number of datasets.")] = DEFAULT_LIMIT
    copies: Annotated[bool, Field(description="Whether copies are shown.")] = False
    min_position: LogPosition | None = None


@dataset.query(get="/{dataset_id}/provenance", returns=DatasetProvenance)
class GetDatasetProvenance(ProvenanceQuery):
    """Everything a dataset was made from and everything made from it, as a graph.

    The runs, plans, calibrations, decisions and people behind that are in it too.
    """

    def answer(self, dataset: Dataset, call: Call) -> Reads[dict[str, Any]]:
        graph = yield from provenance_of(dataset, self)
        edges = [{"from": source, "to": target, "relation": relation} for source, relation, target in graph.edges]
        return {**graph._asdict(), "nodes": (yield from with_actor_names(graph.nodes)), "edges": edges}


def with_actor_names(nodes: Sequence[ProvenanceNode]) -> Reads[tuple[ProvenanceNode, ...]]:
    """Return nodes with the names of people, agents and services as labels, where the caller may read actors; the export
    and the picture, which leave the service, have ids alone."""
    if "GetActor" not in (yield from permitted_commands()):
        return tuple(nodes)
    wanted = [node.id for node in nodes if node.kind is Kind.ACTOR and node.label is None]
    names = {id: name for (id, _), name in (yield from names_of((id, None) for id in wanted)).items()}
    return tuple(replace(node, label=names.get(node.id, node.label)) for node in nodes)


@dataset.query(get="/{dataset_id}/provenance.svg", media_types=["image/svg+xml"])
class GetDatasetProvenancePicture(ProvenanceQuery):
    """The provenance of a dataset as a picture; many nodes of one kind and generation are drawn as one."""

    def answer(self, dataset: Dataset, call: Call) -> Reads[Document]:
        graph = yield from provenance_of(dataset, self)
        return Document("image/svg+xml", (yield from run_in_thread(provenance_picture, graph)).encode())


@dataset.query(get="/{dataset_id}/prov", media_types=["application/json"])
class GetDatasetProv(ProvenanceQuery):
    """The provenance of a dataset as PROV-JSON, for readers of that form."""

    def answer(self, dataset: Dataset, call: Call) -> Reads[Document]:
        graph = yield from provenance_of(dataset, self)
        deployment = yield from ask(DeploymentPort.deployment)
        return Document("application/json", (yield from run_in_thread(prov_json, graph, deployment)))


class GraphBuilder:
    """Collects the nodes and edges of a provenance in the order they come."""

    def __init__(self, permitted: frozenset[str]) -> None:
        names = {kind: kind.title().replace("_", "").removesuffix("Revision") for kind in Kind}
        self._shown_kinds = {kind for kind, name in names.items() if f"Get{name}" in permitted}
        self.nodes: dict[UUID, ProvenanceNode] = {}
        self.edges: list[ProvenanceEdge] = []
        self.truncated = False

    def add(
        self,
        kind: ProvenanceKind,
        id: UUID,
        label: str | None = None,
        status: str | None = None,
        at: datetime | None = None,
        details: Mapping[str, object] = NOTHING,
    ) -> None:
        """Add a node, with what the caller may know of it."""
        shown = (label, status, at, details) if kind in self._shown_kinds else (None, None, None, NOTHING)
        self.nodes[id] = ProvenanceNode(id, kind, *shown)

    def link(self, source: UUID, relation: ProvenanceRelation, target: UUID | None) -> None:
        """Add an edge, where there is something at its end."""
        if target is not None:
            self.edges.append(ProvenanceEdge(source, relation, target))

    def change(self, id: UUID, **details: object) -> None:
        """Add details to a node that shows any."""
        if (node := self.nodes[id]).details:
            self.nodes[id] = replace(node, details={**node.details, **details})

    def add_actor(self, source: UUID, relation: ProvenanceRelation, actor_id: UUID | None) -> None:
        """Add a person, agent or service by its id, as the one behind a node."""
        if actor_id is not None:
            if actor_id not in self.nodes:
                label = f"{SYSTEM_NAME}, or {NOT_SIGNED_IN}" if actor_id == NIL else None
                self.nodes[actor_id] = ProvenanceNode(actor_id, Kind.ACTOR, label)
            self.link(source, relation, actor_id)

    def rows(
        self, listed: type[ListQuery], column: str, values: Iterable[UUID | None], columns: Sequence[str] = ()
    ) -> Reads[Sequence[Row]]:
        """Return the rows of a projection whose column is or holds one of these values, with these columns or all."""
        wanted = [value for value in dict.fromkeys(values) if value is not None]
        if not wanted:
            return ()
        found = yield from ask(LineagePort.summary_rows, listed.summary, columns, column, wanted, MAX_RELATED + 1)
        self.truncated |= len(found) > MAX_RELATED
        return found[:MAX_RELATED]

    def add_rows(
        self,
        kind: ProvenanceKind,
        listed: type[ListQuery],
        ids: Iterable[UUID | None],
        *details: str,
        label: str = "name",
        status: str = "status",
    ) -> Reads[Sequence[Row]]:
        """Add the things with these ids as their rows show them, one that has no row yet by its id."""
        wanted = [id for id in ids if id is not None]
        id_column = next(iter(listed.summary.model_fields))
        found = yield from self.rows(listed, id_column, wanted)
        for row in found:
            shown = (row[label], row.get(status), row[listed.summary.time])
            self.add(kind, row[id_column], *shown, {name: row[name] for name in details})
        for id in wanted:
            if id not in self.nodes:
                self.add(kind, id)
        return found

    def graph(self, dataset_id: UUID) -> ProvenanceGraph:
        """Return what was collected; edges to what is no part of it are left out."""
        edges = (edge for edge in self.edges if edge.target in self.nodes)
        return ProvenanceGraph(dataset_id, tuple(self.nodes.values()), tuple(edges), self.truncated)


def provenance_of(dataset: Dataset, asked: ProvenanceQuery) -> Reads[ProvenanceGraph]:
    """Return the provenance of a dataset, as far as it is asked for."""
    builder = GraphBuilder((yield from permitted_commands()))
    datasets = yield from _add_datasets(builder, dataset, asked)
    if asked.copies:
        yield from _add_copies(builder, datasets)
    acquisitions = yield from _add_acquisitions(builder, datasets)
    procedures = yield from _add_procedures(builder, {row["producing_procedure_id"] for row in datasets.values()})
    run_ids = {row["producing_run_id"] for row in (*datasets.values(), *acquisitions)}
    found = yield from _add_runs(builder, run_ids | {row["parent_run_id"] for row in procedures})
    yield from _add_subjects(builder, [*datasets.values(), *found])
    used = {id for row in datasets.values() for id in row["used_calibration_ids"]}
    yield from _add_revisions(builder, used | {id for row in found for id in row["pinned_calibration_ids"]})
    yield from _add_editions(builder, datasets)
    return builder.graph(dataset.id)


def _add_datasets(builder: GraphBuilder, dataset: Dataset, asked: ProvenanceQuery) -> Reads[dict[UUID, Row]]:
    """Add the datasets of the lineage with who registered them, and return their rows by id."""
    parents: dict[UUID, Sequence[UUID]] = {dataset.id: sorted(dataset.derived_from)}
    for direction in DIRECTIONS[asked.direction]:
        limit = asked.limit - len(parents) + 1
        lineage = yield from ask(LineagePort.dataset_lineage, [dataset.id], direction, asked.max_depth, limit)
        builder.truncated |= lineage.truncated
        parents |= {node.dataset_id: node.derived_from for node in lineage.nodes}
    listed = yield from builder.rows(ListDatasets, "dataset_id", parents, DATASET_COLUMNS)
    own = {dataset.id: DatasetSummary.of(dataset).model_dump()}  # The projection may be behind.
    datasets: dict[UUID, Row] = own | {row["dataset_id"]: row for row in listed} | own
    registered_by = yield from ask(LineagePort.stream_recorders, Dataset, list(parents))
    for id, row in datasets.items():
        details = {"intent": row["intent"], "checksum": row["checksum"], "actuation_kind": row["producing_actuation_kind"]}
        builder.add(Kind.DATASET, id, row["name"], row["status"], row["created_at"], details)
        builder.edges += [ProvenanceEdge(id, Relation.WAS_DERIVED_FROM, parent_id) for parent_id in parents[id]]
        builder.link(id, Relation.WAS_GENERATED_BY, row["producing_run_id"])
        builder.link(id, Relation.WAS_GENERATED_BY, row["producing_procedure_id"])
        builder.link(id, Relation.WAS_INFLUENCED_BY, row["subject_id"])
        for revision_id in row["used_calibration_ids"]:
            builder.link(id, Relation.WAS_INFLUENCED_BY, revision_id)
        builder.add_actor(id, Relation.WAS_ATTRIBUTED_TO, registered_by.get(id))
    return datasets


def _add_copies(builder: GraphBuilder, dataset_ids: Iterable[UUID]) -> Reads[None]:
    for row in (yield from builder.rows(ListDistributions, "dataset_id", dataset_ids)):
        id, details = row["distribution_id"], {name: row[name] for name in ("supply_id", "access_protocol", "verified_at")}
        builder.add(Kind.DISTRIBUTION, id, None, row["status"], row["registered_at"], details)
        builder.link(id, Relation.SPECIALIZATION_OF, row["dataset_id"])


def _add_acquisitions(builder: GraphBuilder, dataset_ids: Iterable[UUID]) -> Reads[Sequence[Row]]:
    """Add what captured the datasets, and return the rows of the acquisitions."""
    rows = yield from builder.rows(ListAcquisitions, "dataset_id", dataset_ids, ACQUISITION_COLUMNS)
    for row in rows:
        id = row["acquisition_id"]
        builder.add(Kind.ACQUISITION, id, None, row["status"], row["captured_at"])
        builder.link(row["dataset_id"], Relation.WAS_GENERATED_BY, id)
        builder.link(id, Relation.WAS_ASSOCIATED_WITH, row["producing_asset_id"])
        builder.link(id, Relation.WAS_INFORMED_BY, row["producing_run_id"])
    asset_ids = {row["producing_asset_id"] for row in rows}
    yield from builder.add_rows(Kind.ASSET, ListAssets, asset_ids, "external_id", status="lifecycle")
    return rows


def _add_procedures(builder: GraphBuilder, ids: Iterable[UUID | None]) -> Reads[Sequence[Row]]:
    """Add procedures with the recipes they were expanded from, in the version of then, and return their rows."""
    rows = yield from builder.add_rows(Kind.PROCEDURE, ListProcedures, ids, "kind")
    for row in rows:
        builder.link(row["procedure_id"], Relation.WAS_INFORMED_BY, row["parent_run_id"])
        builder.link(row["procedure_id"], Relation.HAD_PLAN, row["recipe_id"])
    expanded = [row["procedure_id"] for row in rows if row["recipe_id"] is not None]
    for event in (yield from _events(expanded, (ProcedureRecipeExpanded,), "recipe_id")):
        builder.change(event.stream_id, recipe_version=event.recipe_version)
    yield from builder.add_rows(Kind.RECIPE, ListRecipes, {row["recipe_id"] for row in rows}, "version_tag")
    return rows


def _add_runs(builder: GraphBuilder, ids: Iterable[UUID | None]) -> Reads[Sequence[Row]]:
    """Add runs with their plans and what was decided and cautioned about them, and return their rows."""
    rows = yield from builder.add_rows(Kind.RUN, runs.ListRuns, ids, "plan_id", "raid", "campaign_id", "adjustment_count")
    run_ids = [row["run_id"] for row in rows]
    started_by = yield from ask(LineagePort.stream_recorders, runs.Run, run_ids)
    for row in rows:
        id = row["run_id"]
        builder.link(id, Relation.HAD_PLAN, row["plan_id"])
        builder.link(id, Relation.USED, row["subject_id"])
        for revision_id in row["pinned_calibration_ids"]:
            builder.link(id, Relation.USED, revision_id)
        builder.add_actor(id, Relation.WAS_ASSOCIATED_WITH, started_by.get(id))
        if row["witnessed"]:
            builder.change(id, witnessed=True)  # its account is that of a witness, not of this service
    yield from _add_plans(builder, {row["plan_id"] for row in rows})
    yield from _add_decisions_and_cautions(builder, run_ids)
    return rows


def _add_plans(builder: GraphBuilder, ids: Iterable[UUID]) -> Reads[None]:
    plans = yield from builder.add_rows(Kind.PLAN, ListPlans, ids, "version_tag")
    for plan in plans:
        builder.link(plan["plan_id"], Relation.WAS_DERIVED_FROM, plan["practice_id"])
    practice_ids = {plan["practice_id"] for plan in plans}
    practices = yield from builder.add_rows(Kind.PRACTICE, ListPractices, practice_ids, "version_tag")
    for practice in practices:
        builder.link(practice["practice_id"], Relation.WAS_DERIVED_FROM, practice["method_id"])
    method_ids = {row["method_id"] for row in (*plans, *practices)}
    yield from builder.add_rows(Kind.METHOD, ListMethods, method_ids, "version_tag")


def _add_decisions_and_cautions(builder: GraphBuilder, run_ids: Sequence[UUID]) -> Reads[None]:
    """Add the decisions that began or changed the runs, and the cautions that were acknowledged at their start."""
    events = yield from _events(run_ids, DECIDED, "decided_by_decision_id", "acknowledged_cautions")
    for run_id, decision_id in dict.fromkeys((event.stream_id, event.decided_by_decision_id) for event in events):
        builder.link(run_id, Relation.WAS_INFLUENCED_BY, decision_id)
    for event in events:
        for caution in getattr(event, "acknowledged_cautions", ()):
            details = {"severity": caution.severity, "category": caution.category, "target_id": caution.target_id}
            builder.add(Kind.CAUTION, caution.caution_id, caution.text_excerpt, details=details)
            builder.link(event.stream_id, Relation.USED, caution.caution_id)
    ids = {event.decided_by_decision_id for event in events}
    columns = ("context", "rule", "confidence_band")
    for row in (yield from builder.add_rows(Kind.DECISION, ListDecisions, ids, *columns, label="choice")):
        builder.add_actor(row["decision_id"], Relation.WAS_ATTRIBUTED_TO, row["decided_by"])


def _add_subjects(builder: GraphBuilder, rows: Iterable[Row]) -> Reads[None]:
    ids = {row["subject_id"] for row in rows}
    yield from builder.add_rows(Kind.SUBJECT, ListSubjects, ids, "external_id", "external_id_scheme")


def _add_revisions(builder: GraphBuilder, ids: Iterable[UUID]) -> Reads[None]:
    """Add calibration revisions, and the procedures that measured them."""
    wanted = frozenset(ids)
    holders = yield from members_by_key(REVISIONS, *sorted(wanted))
    calibrations = yield from find_all(Calibration, sorted({id for found in holders.values() for id in found}))
    measuring: set[UUID] = set()
    for calibration in calibrations.values():
        for revision in calibration.revisions:
            if revision.revision_id in wanted:
                measuring |= _add_revision(builder, calibration, revision)
    yield from _add_procedures(builder, measuring - builder.nodes.keys())


def _add_revision(builder: GraphBuilder, calibration: Calibration, revision: Revision) -> set[UUID]:
    """Add one revision, and return the procedure that measured it, where one did."""
    id = revision.revision_id
    details: dict[str, object] = {
        "calibration_id": calibration.id,
        "target_id": calibration.target_id,
        "source_kind": revision.source.kind,
    }
    later = {"superseded_by_revision_id": revision.superseded_by_revision_id}
    shown = (calibration.quantity, revision.status, revision.established_at)
    builder.add(Kind.CALIBRATION_REVISION, id, *shown, details | later)
    builder.add_actor(id, Relation.WAS_ATTRIBUTED_TO, revision.established_by)
    builder.link(id, Relation.WAS_REVISION_OF, revision.supersedes_revision_id)
    match revision.source:
        case MeasuredSource(procedure_id=procedure_id):
            builder.link(id, Relation.WAS_GENERATED_BY, procedure_id)
            return {procedure_id}
        case ComputedSource(dataset_id=dataset_id):
            builder.link(id, Relation.WAS_DERIVED_FROM, dataset_id)
    return set()


def _add_editions(builder: GraphBuilder, dataset_ids: Mapping[UUID, Row]) -> Reads[None]:
    """Add the editions that any of the datasets is a member of."""
    for row in (yield from builder.rows(ListEditions, "dataset_ids", dataset_ids)):
        id, details = row["edition_id"], {name: row[name] for name in ("kind", "external_id", "external_id_scheme")}
        builder.add(Kind.EDITION, id, row["title"], row["status"], row["registered_at"], details)
        for dataset_id in row["dataset_ids"]:
            builder.link(id, Relation.HAD_MEMBER, dataset_id)
        for creator_id in row["creator_ids"]:
            builder.add_actor(id, Relation.WAS_ATTRIBUTED_TO, creator_id)


def _events(ids: Sequence[UUID], events: tuple[type[Event], ...], *keys: str) -> Reads[Sequence[Any]]:
    """Return the events of these types on these streams that have something under one of these keys."""
    return (yield from ask(LineagePort.events_of_streams, ids, events, keys)) if ids else ()
