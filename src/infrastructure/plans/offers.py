"""What executors say of their plans, as offers with a JSON Schema that the service can judge parameters by."""

import re
from collections.abc import Mapping
from typing import Any

from baton.domain.recipe.offered_plans import OfferedPlan
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.schema import KEYWORDS, Schema
from baton.domain.step.plan_steps import parse_touches

JSON_TYPES = {"null", "boolean", "integer", "number", "string", "array", "object"}
PYTHON_TYPES = {"int": "integer", "float": "number", "str": "string", "bool": "boolean"}
SEQUENCE = re.compile(r"^(?:typing\.)?(?:List|list|Sequence|Iterable|collections\.abc\.\w+)\[(?P<item>.+)\]$")
CHOICES = ("devices", "plans", "enums")  # the parts of an annotation of queueserver that list what may be chosen
ALWAYS = ("title", "description", "type", "enum")
TYPE_SPECIFIC = {
    "string": {"pattern", "minLength", "maxLength"},
    "array": {"items", "minItems", "maxItems"},
    "object": {"properties", "required", "additionalProperties", "unevaluatedProperties"},
    "integer": {"minimum", "maximum"},
    "number": {"minimum", "maximum"},
}


def offered_plan(description: str | None, schema: Schema, source: object) -> OfferedPlan:
    """Return the offer of a plan; its digest covers everything that the executor says about it."""
    touches, words = parse_touches(description)
    return OfferedPlan(
        digest=content_hash(source),
        description=None if description is None else description[:2000],
        parameters_schema=schema,
        touches=touches,
        gated="gated" in words,
        checkpoints="checkpoints=false" not in words,
    )


def schema_of_blueapi(served: object) -> Schema:
    """Return the schema that blueapi serves as one that values are judged by: a property whose type is no JSON type is a
    choice of names, and whatever has another form than the service judges by accepts anything."""
    if not isinstance(served, Mapping):
        return {}
    level = {key: value for key, value in served.items() if key in KEYWORDS}
    if isinstance(kind := level.get("type"), str) and kind not in JSON_TYPES:
        names = level.get("enum")
        return {"type": "string", "enum": [str(name) for name in names]} if isinstance(names, list) and names else {}
    if any(key in served for key in ("anyOf", "oneOf", "allOf", "$ref")):
        return {}
    level = {
        key: value for key, value in level.items() if key in ("title", "description", "type", "enum") or _fits(key, kind)
    }
    if isinstance(properties := level.get("properties"), Mapping):
        level["properties"] = {str(name): schema_of_blueapi(one) for name, one in properties.items()}
    if "items" in level:
        level["items"] = schema_of_blueapi(level["items"])
    if not isinstance(level.get("additionalProperties", False), bool):
        del level["additionalProperties"]
    return level


def _fits(keyword: str, kind: object) -> bool:
    return any(keyword in TYPE_SPECIFIC.get(one, ()) for one in (kind if isinstance(kind, list) else [str(kind)]))


def schema_of_queueserver(plan: Mapping[str, Any]) -> Schema:
    """Return the schema of the parameters that queueserver lists with annotations and defaults as texts."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    closed = True
    for parameter in plan.get("parameters", ()):
        kind = str(parameter.get("kind", {}).get("name", ""))
        if kind.startswith("VAR_"):
            closed = closed and kind != "VAR_KEYWORD"
            continue
        annotation = parameter.get("annotation") or {}
        level = _parameter_schema(str(annotation.get("type", "")), _choices(annotation))
        for keyword, name in (("minimum", "min"), ("maximum", "max")):
            if level.get("type") in ("integer", "number") and (limit := _number(parameter.get(name))) is not None:
                level[keyword] = limit
        if isinstance(described := parameter.get("description"), str):
            level["description"] = described[:500]
        properties[str(parameter["name"])] = level
        if "default" not in parameter:
            required.append(str(parameter["name"]))
    schema: Schema = {"type": "object", "properties": properties}
    return schema | ({"required": required} if required else {}) | ({"additionalProperties": False} if closed else {})


def _choices(annotation: Mapping[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for part in CHOICES:
        for name, listed in (annotation.get(part) or {}).items():
            found.setdefault(str(name), []).extend(map(str, listed))
    return found


def _parameter_schema(text: str, choices: Mapping[str, list[str]]) -> Schema:
    """Return the schema of an annotation; one that is not known accepts any JSON."""
    if text in PYTHON_TYPES:
        return {"type": PYTHON_TYPES[text]}
    if choices.get(text):
        return {"type": "string", "enum": choices[text]}
    if (listed := SEQUENCE.match(text)) is not None:
        item = _parameter_schema(listed["item"], choices)
        return {"type": "array", "items": item} if item else {"type": "array"}
    return {}


def _number(text: object) -> float | None:
    try:
        return float(str(text))
    except ValueError:
        return None
