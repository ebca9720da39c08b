"""The provenance of a dataset as PROV-JSON (W3C member submission of 24 April 2013), for readers of that form."""

import json
from collections import defaultdict
from datetime import datetime
from typing import Any
from uuid import UUID

from baton.domain.data.provenance_graph import (
    ACTIVITIES,
    AGENTS,
    ProvenanceGraph,
    ProvenanceKind,
    ProvenanceNode,
    ProvenanceRelation,
)
from baton.domain.kernel import instant
from baton.domain.shared.deployment import Deployment

Kind, Relation = ProvenanceKind, ProvenanceRelation
TYPES = {**dict.fromkeys((Kind.PLAN, Kind.PRACTICE, Kind.METHOD, Kind.RECIPE), "prov:Plan"), Kind.EDITION: "prov:Collection"}
ENDS = {
    Relation.WAS_DERIVED_FROM: ("generatedEntity", "usedEntity"),
    Relation.WAS_REVISION_OF: ("generatedEntity", "usedEntity"),
    Relation.WAS_GENERATED_BY: ("entity", "activity"),
    Relation.USED: ("activity", "entity"),
    Relation.WAS_INFORMED_BY: ("informed", "informant"),
    Relation.WAS_ASSOCIATED_WITH: ("activity", "agent"),
    Relation.WAS_ATTRIBUTED_TO: ("entity", "agent"),
    Relation.WAS_INFLUENCED_BY: ("influencee", "influencer"),
    Relation.HAD_MEMBER: ("collection", "entity"),
    Relation.SPECIALIZATION_OF: ("specificEntity", "generalEntity"),
}
"""The names of what a relation leads from and to. A revision is a derivation of a type, a plan belongs to an association."""


def prov_json(graph: ProvenanceGraph, deployment: Deployment) -> bytes:
    """Return a provenance as a PROV-JSON document; the identifiers of its things are their addresses."""
    names = {node.id: f"{node.kind}:{node.id}" for node in graph.nodes}
    document: dict[str, dict[str, Any]] = {"prefix": _prefixes(deployment), **_elements(graph, names)}
    for relation, found in _relations(graph, names).items():
        document[relation] = {f"_:{relation}{number}": record for number, record in enumerate(found, 1)}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _prefixes(deployment: Deployment) -> dict[str, str]:
    base = deployment.base_url.rstrip("/") or f"urn:baton:{deployment.self_facility_code}"
    joint = "/" if deployment.base_url else ":"
    own = {kind.value: f"{base}{joint}{kind.replace('_', '-')}s{joint}" for kind in Kind}
    return {**own, "baton": "urn:baton:terms:"}


def _elements(graph: ProvenanceGraph, names: dict[UUID, str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, object]] = {}
    for node in graph.nodes:
        section = "activity" if node.kind in ACTIVITIES else "agent" if node.kind in AGENTS else "entity"
        found.setdefault(section, {})[names[node.id]] = _attributes(node)
    return found


def _attributes(node: ProvenanceNode) -> dict[str, Any]:
    attributes: dict[str, object] = {}
    if node.label is not None:
        attributes["prov:label"] = node.label
    if node.kind in TYPES:
        attributes["prov:type"] = {"$": TYPES[node.kind], "type": "prov:QUALIFIED_NAME"}
    if node.at is not None and node.kind in ACTIVITIES:
        attributes["prov:startTime"] = instant(node.at)
    others = {"status": node.status, "at": None if node.kind in ACTIVITIES else node.at, **node.details}
    return attributes | {f"baton:{name}": _value(value) for name, value in others.items() if value is not None}


def _value(value: object) -> Any:
    match value:
        case datetime():
            return {"$": instant(value), "type": "xsd:dateTime"}
        case {"algorithm": algorithm, "value": digest}:
            return f"{algorithm}:{digest}"
        case bool() | int() | float():
            return value
    return str(value)


def _relations(graph: ProvenanceGraph, names: dict[UUID, str]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    plans = {names[edge.source]: names[edge.target] for edge in graph.edges if edge.relation is Relation.HAD_PLAN}
    for source, relation, target in graph.edges:
        if relation is Relation.HAD_PLAN:
            continue
        later, earlier = ENDS[relation]
        record: dict[str, Any] = {f"prov:{later}": names[source], f"prov:{earlier}": names[target]}
        if relation is Relation.WAS_REVISION_OF:
            record["prov:type"] = {"$": "prov:Revision", "type": "prov:QUALIFIED_NAME"}
            relation = Relation.WAS_DERIVED_FROM
        if relation is Relation.WAS_ASSOCIATED_WITH and names[source] in plans:
            record["prov:plan"] = plans[names[source]]
        found[relation].append(record)
    associated = {record["prov:activity"] for record in found[Relation.WAS_ASSOCIATED_WITH]}
    alone = [
        {"prov:activity": activity, "prov:plan": plan} for activity, plan in plans.items() if activity not in associated
    ]
    found[Relation.WAS_ASSOCIATED_WITH] += alone
    return {relation: records for relation, records in found.items() if records}
