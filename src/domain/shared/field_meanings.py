"""Meanings of fields: the sentence that every surface shows beside a field of an input or an answer."""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from baton.domain.registry import REGISTRY
from baton.domain.shared.json_schema import Schema, map_levels
from baton.domain.shared.meanings import agents, common, data, equipment, federation, people, readiness, recipes, work

TOPICS = (common, people, equipment, readiness, recipes, work, data, agents, federation)
MEANINGS: dict[str, str] = {name: meaning for topic in TOPICS for name, meaning in topic.MEANINGS.items()}
"""Of fields that many models have, by their name; of a field that a model has from another one, and where it means something
else, by `Model.field`; `List*.field` is a filter of lists. The meaning of any other field is written below it."""
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
    """Return the meaning of a field: what is written below it, in the class of the model or in one that it is derived from,
    or else the meaning of its name; None where nothing is known. The id of a record, and the time and the actor of a verb,
    are described by their names."""
    owners = [*(["List*."] if model and model.startswith("List") else []), ""]
    known = [MEANINGS[key] for owner in owners if (key := owner + field) in MEANINGS]
    if model is not None:
        known = [text for text in (MEANINGS.get(f"{model}.{field}"), written_meaning(model, field)) if text] + known
    if known:
        return known[0]
    if (aggregate := next((one for one in REGISTRY.aggregates.values() if one.id_name == field), None)) is not None:
        return f"The id of the {aggregate.label}."
    match re.split("_(at|by|by_name)$", field)[:2]:
        case [verb, ending]:
            return ENDINGS[ending].format(verb.replace("_", " "))
        case _:
            return None


@dataclass(frozen=True)
class FieldTexts:
    """What is written below the fields of a class, and the names of the classes that it is derived from."""

    bases: tuple[str, ...]
    texts: Mapping[str, str]


CLASS = re.compile(r"^class (\w+)(?:\(([^\n]*)\))?:\n((?:[ )#][^\n]*\n|\n(?=\n* ))*)", re.M)
FIELD = re.compile(r'^    (\w+): [^\n]*\n(?:(?:     |    [])}])[^\n]*\n)*    """(.+?)"""\n', re.M | re.S)
DERIVED = re.compile("(View|Item|Summary)$")  # The ends of the names of forms that show a state.


@cache
def _texts_in(file: str) -> Mapping[str, FieldTexts]:
    """Return what is written below the fields of the classes of a module. It is cut, not parsed: processes do this."""
    with open(file, encoding="utf-8") as text:
        found = CLASS.findall(text.read())
    return {
        name: FieldTexts(
            tuple(re.findall(r"\w+", bases)), {field: " ".join(text.split()) for field, text in FIELD.findall(body)}
        )
        for name, bases, body in found
    }


@cache
def _texts_of(count: int) -> Mapping[str, FieldTexts]:
    """Return what is written in the modules that are loaded, of which there are so many."""
    named = tuple(sys.modules.items())  # Other threads import meanwhile.
    loaded = [module for name, module in named if name.startswith("baton.")]
    files = [file for module in loaded if (file := getattr(module, "__file__", None) or "").endswith(".py")]
    return {name: texts for file in files for name, texts in _texts_in(file).items()}


def written_meaning(model: str, field: str) -> str | None:
    """Return what is written below a field in the class of a model, or in the first that it is derived from."""
    known = _texts_of(len(sys.modules))
    stem = DERIVED.sub("", model)
    pending, seen = [model, *((f"{stem}Summary", stem) if stem != model else ())], set[str]()
    while pending:
        name = pending.pop(0)
        if name in seen or name not in known:
            continue
        seen.add(name)
        if field in known[name].texts:
            return known[name].texts[field]
        pending = [*known[name].bases, *pending]
    return None


def _describe_property(name: str, schema: object, model: str | None) -> Any:
    if not isinstance(schema, dict) or "description" in schema:
        return schema
    options = [option for key in ("anyOf", "oneOf") for option in schema.get(key, ())]
    own = next((option["description"] for option in options if "description" in option), None)
    meaning = own or meaning_of(name, model)
    return schema if meaning is None else {**schema, "description": meaning}
