"""JSON Schemas as strict decoding takes them: few keywords, every key required, the rest said in words."""

from collections.abc import Iterator, Mapping
from typing import Any

BOUNDS = (
    *("minLength", "maxLength", "pattern", "format"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minItems", "maxItems", "uniqueItems"),
)
"""What some servers refuse in a strict schema. The model is told of them, and its answer is judged by them."""
FOREIGN = frozenset({"oneOf", "allOf", "not", "if", "then", "else", "patternProperties", "dependentRequired", "prefixItems"})
"""What cannot be said in a strict schema at all."""
JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def can_be_strict(schema: Mapping[str, Any]) -> bool:
    """Whether every object in a schema is closed and requires all of its keys, and nothing foreign is said."""
    return schema.get("type") == "object" and all(map(_is_strict, _levels(schema)))


def strict_form(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with its bounds moved into the descriptions, and a type wherever values are listed."""
    form = {key: value for key, value in schema.items() if key not in BOUNDS and key not in ("$schema", "default")}
    if bounds := [f"{name} {schema[name]}" for name in BOUNDS if name in schema]:
        form["description"] = " ".join([*filter(None, [schema.get("description")]), f"({', '.join(bounds)})"])
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values and "type" not in schema:
        types = list(dict.fromkeys(JSON_TYPES.get(type(value), "object") for value in values))
        form["type"] = types[0] if len(types) == 1 else types
    for named in ("properties", "$defs"):
        if named in schema:
            form[named] = {name: strict_form(inner) for name, inner in schema[named].items()}
    if "items" in schema:
        form["items"] = strict_form(schema["items"])
    if "anyOf" in schema:
        form["anyOf"] = [strict_form(option) for option in schema["anyOf"]]
    return form


def _is_strict(level: Mapping[str, Any]) -> bool:
    if not FOREIGN.isdisjoint(level):
        return False
    if "properties" not in level and level.get("type") != "object":
        return True
    return level.get("additionalProperties") is False and set(level.get("required", ())) == set(level.get("properties", ()))


def _levels(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A schema and every schema in it."""
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *schema.get("$defs", {}).values()]
    for level in [*inner, *([schema["items"]] if "items" in schema else [])]:
        yield from _levels(level)
