"""Meanings of fields: the sentence that every surface shows beside a field of an input or an answer."""

import re
from typing import Any

from baton.domain.registry import REGISTRY
from baton.domain.shared.json_schema import Schema, map_levels
from baton.domain.shared.meanings import agents, common, data, equipment, federation, people, readiness, recipes, work

TOPICS = (common, people, equipment, readiness, recipes, work, data, agents, federation)
MEANINGS: dict[str, str] = {name: meaning for topic in TOPICS for name, meaning in topic.MEANINGS.items()}
"""By the name of a field, or by `Model.field` where the name alone does not say it; `List*.field` is a filter of lists."""
ENDINGS = {
    "at": "When it was {}.",
    "by": "The actor by whom it was {}.",
    "by_name": "What the actor is called by whom it was {}.",
}  # By the end of a field's name, its meaning, with the verb before that end.


def describe(schema: Any) -> Any:
    """Return a JSON schema, or a document that holds some, with a description of every property and parameter that has a
    meaning and no description of its own. The title of a schema is the name of its model."""
    return map_levels(schema, _describe_level)


def _describe_level(level: Schema) -> Schema:
    match level:
        case {"name": str(name), "in": str(), "schema": dict(form)}:
            described = dict(_describe_property(name, form, None))
            meaning = described.pop("description", None) if "description" not in level else None
            return {**level, **({"description": meaning} if meaning else {}), "schema": described}
        case {"properties": dict(properties)}:
            model = level.get("title")
            members = {name: _describe_property(name, form, model) for name, form in properties.items()}
            return {**level, "properties": members}
        case _:
            return level


def meaning_of(field: str, model: str | None = None) -> str | None:
    """Return the meaning of a field, in this model where that has its own; None where nothing is known. The id of a record,
    and the time and the actor of a verb, are described by their names."""
    owners = [f"{model}.", *(["List*."] if model and model.startswith("List") else []), ""]
    if (known := next((MEANINGS[key] for owner in owners if (key := owner + field) in MEANINGS), None)) is not None:
        return known
    if (aggregate := next((one for one in REGISTRY.aggregates.values() if one.id_name == field), None)) is not None:
        return f"The id of the {aggregate.label}."
    match re.split("_(at|by|by_name)$", field)[:2]:
        case [verb, ending]:
            return ENDINGS[ending].format(verb.replace("_", " "))
        case _:
            return None


def _describe_property(name: str, schema: Any, model: str | None) -> Any:
    if not isinstance(schema, dict) or "description" in schema:
        return schema
    options = [option for key in ("anyOf", "oneOf") for option in schema.get(key, ())]
    own = next((option["description"] for option in options if "description" in option), None)
    meaning = own or meaning_of(name, model)
    return schema if meaning is None else {**schema, "description": meaning}
