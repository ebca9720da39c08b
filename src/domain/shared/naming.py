"""Names: which field people know the things of an aggregate by, which aggregate a field refers to, and which field beside
it takes the name of what it refers to."""

from collections.abc import Collection
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from baton.domain.registry import REGISTRY

if TYPE_CHECKING:
    from baton.domain.kernel import Aggregate

NAMES = ("name", "title", "code")  # The columns of a list that may be what people call a thing, the first there is.
OTHER_REFERENCES = {
    "approver_ids": "Actor",
    "barred_reviewer_ids": "Actor",
    "controller_id": "Asset",
    "creator_ids": "Actor",
    "member_ids": "Actor",
    "peer_facility_id": "Facility",
    "permitted_principal_id": "Actor",
    "permitted_principal_ids": "Actor",
    "principal_id": "Actor",
    "run_as": "Actor",
    "site_id": "Facility",
    "used_calibration_id": "Calibration",
}  # Fields whose name does not end with that of what they refer to.
NO_REFERENCES = frozenset({"prompt_template_id"})  # Fields that only look as if they referred to an aggregate.

HISSING = ("s", "x", "ch", "sh")  # A noun that ends with one of these has -es in the plural.
UNCOUNTED = "presence"

KNOWN_FIELDS = 4096  # Fields that are remembered; what people name parameters is among them.


@cache
def name_field(aggregate: "Aggregate") -> str | None:
    """Return the column of an aggregate's list that holds what people call a thing; None where it has no name."""
    named = (one.input.name_column() for one in aggregate.operations if hasattr(one.input, "name_column"))
    return next(named, None)


@lru_cache(KNOWN_FIELDS)
def referred_aggregate(field: str, owner: "Aggregate | None" = None) -> "Aggregate | None":
    """Return the aggregate that an id field of this name refers to: `parent_run_id` is a run; `parent_id` and `to_parent_id`
    are of the kind of their owner."""
    if field in NO_REFERENCES:
        return None
    if (known := "Actor" if field.endswith("_by") else OTHER_REFERENCES.get(field)) is not None:
        return REGISTRY.aggregates[known]
    single = field.removesuffix("s") if field.endswith("_ids") else field
    if single.endswith("parent_id"):
        return owner
    fitting = [one for one in REGISTRY.aggregates.values() if single == one.id_name or single.endswith(f"_{one.id_name}")]
    return max(fitting, key=lambda one: len(one.id_name), default=None)


@lru_cache(KNOWN_FIELDS)
def name_member(field: str) -> str | None:
    """Return the member that names what a field refers to: `plan` beside `plan_id`, `assets` beside `asset_ids`,
    `decided_by_name` beside `decided_by`, `name` beside `id`; None beside a field that refers to nothing."""
    if field == "id":
        return "name"
    if field.endswith("_by") or field == "run_as":
        return f"{field}_name"
    if field.endswith("_ids"):
        return f"{field.removesuffix('_ids')}s"  # published, `familys` included
    return field.removesuffix("_id") if field.endswith("_id") else None


def plural(noun: str) -> str:
    """Return the plural of a noun, or of the noun that several words end with."""
    if noun.endswith(UNCOUNTED):
        return noun
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}{'es' if noun.endswith(HISSING) else 's'}"


def with_name_members(schema: dict[str, Any], reference: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object with the members that it has where names are asked for, each of which names what a
    field beside it refers to; `reference` is the schema of an id with its name."""
    properties: dict[str, Any] = schema.get("properties", {})
    added: dict[str, Any] = {}
    for field in properties:
        if (member := name_member(field)) is None or not may_be_named(field, properties):
            continue
        form, told = reference, f"What `{field}` refers to, by id and name."
        if member.endswith("name"):
            form, told = {"anyOf": [{"type": "string"}, {"type": "null"}]}, f"What `{field}` is called."
        form = {"type": "array", "items": form} if field.endswith("_ids") else form
        added[member] = {**form, "description": told}
    return {**schema, "properties": {**properties, **added}} if added else schema


def may_be_named(field: str, beside: Collection[str]) -> bool:
    """Return whether a field can refer to things that have names, among the fields beside it, and has none of them there."""
    member = name_member(field)
    if member is None or member in beside or f"{member}_name" in beside:
        return False
    told = "kind" if field == "id" else f"{field.removesuffix('_id')}_kind"
    aggregate = referred_aggregate(field)
    named = aggregate is not None and name_field(aggregate) is not None
    return named or told in beside or field == "stream_id" or field.endswith("parent_id")
