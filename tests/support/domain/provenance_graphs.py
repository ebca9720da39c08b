"""Provenances as the picture and the export are given them.

`python -m tests.support.domain.provenance_graphs` writes the picture of the example that the documentation shows.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from baton.domain.data.provenance_graph import (
    ProvenanceEdge,
    ProvenanceGraph,
    ProvenanceKind,
    ProvenanceNode,
    ProvenanceRelation,
)
from baton.domain.data.provenance_picture import provenance_picture

PICTURE = Path(__file__).parents[3] / "docs" / "pictures" / "provenance.svg"
Kind, Relation = ProvenanceKind, ProvenanceRelation
NIGHT = datetime(2026, 3, 2, 22, 0, tzinfo=UTC)


def id_of(name: str) -> UUID:
    return uuid5(NAMESPACE_URL, name)


class GraphMaker:
    """Nodes and edges under names."""

    def __init__(self) -> None:
        self.nodes: dict[UUID, ProvenanceNode] = {}
        self.edges: list[ProvenanceEdge] = []

    def add(
        self, kind: ProvenanceKind, name: str, status: str | None = None, *, label: str | None = None, **details: Any
    ) -> None:
        at = NIGHT + timedelta(minutes=len(self.nodes))
        shown = None if kind in (Kind.ACTOR, Kind.ACQUISITION, Kind.DISTRIBUTION) else label or name
        self.nodes[id_of(name)] = ProvenanceNode(id_of(name), kind, shown, status, at, details)

    def dataset(
        self, name: str, *parents: str, intent: str = "Production", status: str = "Registered", **details: Any
    ) -> None:
        self.add(Kind.DATASET, name, status, intent=intent, actuation_kind=details.pop("actuation_kind", None), **details)
        for parent in parents:
            self.link(name, Relation.WAS_DERIVED_FROM, parent)

    def link(self, source: str, relation: ProvenanceRelation, *targets: str) -> None:
        self.edges += [ProvenanceEdge(id_of(source), relation, id_of(target)) for target in targets]

    def graph(self, asked: str, *, truncated: bool = False) -> ProvenanceGraph:
        return ProvenanceGraph(id_of(asked), tuple(self.nodes.values()), tuple(self.edges), truncated)


def example() -> ProvenanceGraph:
    """The volume of an alloy bar: a tomography, its reconstruction, and what was made of that."""
    maker = GraphMaker()
    maker.add(Kind.METHOD, "Absorption tomography", "Versioned", version_tag="3.1")
    maker.add(Kind.PRACTICE, "Tomography, imaging hutch", "Defined")
    maker.add(Kind.PLAN, "Fatigue series, spring", "Defined")
    maker.link("Tomography, imaging hutch", Relation.WAS_DERIVED_FROM, "Absorption tomography")
    maker.link("Fatigue series, spring", Relation.WAS_DERIVED_FROM, "Tomography, imaging hutch")
    maker.add(Kind.PROCEDURE, "Rotation alignment", "Completed")
    maker.add(Kind.CALIBRATION_REVISION, "centre", "Verified", label="rotation_center")
    maker.link("centre", Relation.WAS_GENERATED_BY, "Rotation alignment")
    maker.add(Kind.CAUTION, "Rotation drifts after homing", severity="Caution")
    maker.add(Kind.DECISION, "Repeat load step 3", context="run_repetition")
    maker.add(Kind.SUBJECT, "Alloy bar 7", "Measured")
    maker.add(Kind.ASSET, "Camera 2", "Active")
    maker.add(Kind.ACTOR, "operator")
    maker.add(Kind.RUN, "Load step 3", "Completed")
    maker.link("Load step 3", Relation.HAD_PLAN, "Fatigue series, spring")
    maker.link("Load step 3", Relation.USED, "centre", "Alloy bar 7", "Rotation drifts after homing")
    maker.link("Load step 3", Relation.WAS_INFLUENCED_BY, "Repeat load step 3")
    maker.link("Load step 3", Relation.WAS_ASSOCIATED_WITH, "operator")
    maker.add(Kind.ACQUISITION, "scan", "Recorded")
    maker.link("scan", Relation.WAS_INFORMED_BY, "Load step 3")
    maker.link("scan", Relation.WAS_ASSOCIATED_WITH, "Camera 2")
    maker.dataset("Projections, step 3")
    maker.link("Projections, step 3", Relation.WAS_GENERATED_BY, "scan", "Load step 3")
    maker.dataset("Flat fields", intent="Production")
    maker.dataset("Volume, step 3", "Projections, step 3", "Flat fields")
    maker.dataset("Volume, wrong centre", "Projections, step 3", "Flat fields", intent="Retracted")
    maker.dataset("Crack map", "Volume, step 3", intent="Trial")
    maker.dataset("Strain field", "Volume, step 3", "Crack map", intent="Trial", actuation_kind="Simulated")
    maker.dataset("Crack map, old", "Volume, wrong centre", intent="Trial", status="Discarded")
    maker.add(Kind.EDITION, "Fatigue of an alloy bar", "Published", external_id="10.0000/fatigue-7")
    maker.link("Fatigue of an alloy bar", Relation.HAD_MEMBER, "Volume, step 3", "Crack map")
    maker.add(Kind.DISTRIBUTION, "copy", "Verified", access_protocol="S3")
    maker.link("copy", Relation.SPECIALIZATION_OF, "Volume, step 3")
    for name in ("Projections, step 3", "Volume, step 3"):
        maker.link(name, Relation.WAS_ATTRIBUTED_TO, "operator")
    return maker.graph("Volume, step 3")


def siblings(count: int) -> ProvenanceGraph:
    """One dataset and so many that were derived from it."""
    maker = GraphMaker()
    maker.dataset("parent")
    for number in range(count):
        maker.dataset(f"child {number}", "parent")
    return maker.graph("parent")


if __name__ == "__main__":
    PICTURE.write_text(provenance_picture(example()) + "\n")
