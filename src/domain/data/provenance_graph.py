"""The graph of a provenance: what it is made of, in kinds and relations of closed lists."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from pydantic import Field

from baton.domain.shared.text import FreeText


class ProvenanceKind(StrEnum):
    DATASET = "dataset"
    DISTRIBUTION = "distribution"
    EDITION = "edition"
    SUBJECT = "subject"
    CALIBRATION_REVISION = "calibration_revision"
    CAUTION = "caution"
    DECISION = "decision"
    PLAN = "plan"
    PRACTICE = "practice"
    METHOD = "method"
    RECIPE = "recipe"
    RUN = "run"
    PROCEDURE = "procedure"
    ACQUISITION = "acquisition"
    ASSET = "asset"
    ACTOR = "actor"


ACTIVITIES = frozenset({ProvenanceKind.RUN, ProvenanceKind.PROCEDURE, ProvenanceKind.ACQUISITION})
AGENTS = frozenset({ProvenanceKind.ASSET, ProvenanceKind.ACTOR})
"""Everything that is neither an activity nor an agent is an entity in the terms of PROV."""


class ProvenanceRelation(StrEnum):
    """The terms of PROV; each relation leads from what came later to what it came from."""

    WAS_DERIVED_FROM = "wasDerivedFrom"
    WAS_REVISION_OF = "wasRevisionOf"
    WAS_GENERATED_BY = "wasGeneratedBy"
    USED = "used"
    HAD_PLAN = "hadPlan"
    WAS_INFORMED_BY = "wasInformedBy"
    WAS_ASSOCIATED_WITH = "wasAssociatedWith"
    WAS_ATTRIBUTED_TO = "wasAttributedTo"
    WAS_INFLUENCED_BY = "wasInfluencedBy"
    HAD_MEMBER = "hadMember"
    SPECIALIZATION_OF = "specializationOf"


@dataclass(frozen=True, slots=True)
class ProvenanceNode:
    """One thing of a provenance; of what the caller may not get, id and kind alone."""

    id: UUID
    kind: ProvenanceKind
    label: FreeText | None = None
    status: str | None = None
    at: datetime | None = None  # When it was registered, started, captured, established or decided.
    """When it came to be."""
    details: Annotated[Mapping[str, Any], Field(description="What else its kind has.")] = field(default_factory=dict)
    """What else its kind has."""


class ProvenanceEdge(NamedTuple):
    """A relation from what came later to what it came from."""

    source: UUID
    relation: ProvenanceRelation
    target: UUID


class ProvenanceGraph(NamedTuple):
    """The provenance of one dataset."""

    dataset_id: UUID
    nodes: tuple[ProvenanceNode, ...]
    edges: tuple[ProvenanceEdge, ...]
    truncated: bool
