"""Schemas as models read them: what a schema says that a caller cannot use is left out, because a model pays for every byte
of a listing. Arguments are checked against the full input, whatever the listing says."""

from collections import Counter
from typing import Any

import orjson

from baton.domain.shared.text import PERSONAL_MARK, VISIBLE

Schema = dict[str, Any]
NULL = {"type": "null"}
EMPTY: tuple[Any, ...] = (None, [], {})
LEFT_OUT = frozenset({"title", "discriminator", "unit", "minLength", "maxLength", PERSONAL_MARK})
WIDE = 2**31 - 1  # a bound beyond this one tells nothing
LONGEST_FORM = 6000  # bytes of a schema that is listed whole
LONGEST_PART = 2000  # bytes of an argument that a longer schema shows
ELSEWHERE = "Its form: search_operations with input_schemas."
REFERENCE = "#/$defs/"


def slim_schema(schema: Schema) -> Schema:
    """Return the schema of a tool's arguments without titles, lengths and patterns of texts, null for what may be left out,
    and units, which descriptions name; definitions stand where they are used if that is shorter."""
    definitions: dict[str, Schema] = {name: _slim(part) for name, part in schema.get("$defs", {}).items()}
    root = _slim({name: part for name, part in schema.items() if name != "$defs"})
    while (name := _inlinable(root, definitions)) is not None:
        inlined = definitions.pop(name)
        root = _replace(root, name, inlined)
        definitions = {other: _replace(part, name, inlined) for other, part in definitions.items()}
    form = {**root, "additionalProperties": False}
    return {**form, "$defs": definitions} if definitions else form


def listed_schema(schema: Schema) -> Schema:
    """Return a slim schema as a listing shows it: it does not say that other arguments are refused, which the refusal says,
    and of one that is very long, long arguments are shown by their kind alone."""
    definitions: dict[str, Schema] = schema.get("$defs", {})
    members: dict[str, Schema] = schema["properties"]
    if len(orjson.dumps(schema)) > LONGEST_FORM:
        members = {name: _shorten(part, definitions) for name, part in members.items()}
    rest = {key: part for key, part in schema.items() if key not in ("properties", "$defs", "additionalProperties")}
    used = _used_definitions(members, definitions)
    return {"properties": members, **rest, **({"$defs": used} if used else {})}


def _shorten(member: Schema, definitions: dict[str, Schema]) -> Schema:
    whole = [member, *_used_definitions(member, definitions).values()]
    if sum(len(orjson.dumps(part)) for part in whole) <= LONGEST_PART:
        return member
    kind = {"type": member["type"]} if "type" in member else {}
    return {**kind, "description": f"{member.get('description', '')} {ELSEWHERE}".strip()}


def _used_definitions(schema: object, definitions: dict[str, Schema]) -> dict[str, Schema]:
    """Return the definitions that a schema refers to, by itself or through others."""
    used: dict[str, Schema] = {}
    waiting = _references(schema)
    while waiting:
        if (name := waiting.pop()) not in used:
            used[name] = definitions[name]
            waiting += _references(definitions[name])
    return {name: part for name, part in definitions.items() if name in used}


def _slim(schema: Any) -> Any:
    match schema:
        case {"anyOf": [*options], "default": None} if NULL in options:
            besides = {key: part for key, part in schema.items() if key not in ("anyOf", "default")}
            return _slim(_merge([option for option in options if option != NULL], besides))
        case {"const": _, "type": _} | {"enum": _, "type": _}:
            return _slim({key: part for key, part in schema.items() if key != "type"})
        case dict():
            return {key: _slim_part(key, part) for key, part in schema.items() if not _says_nothing(key, part)}
        case list():
            return [_slim(part) for part in schema]
        case _:
            return schema


def _merge(options: list[Any], rest: Schema) -> Schema:
    """Return what is left of a choice without null."""
    return {**options[0], **rest} if len(options) == 1 else {"anyOf": options, **rest}


def _slim_part(key: str, part: Any) -> Any:
    """Return a part of a schema; members of `properties` are named by the model, whatever they are called."""
    if key == "properties":
        return {name: _slim(member) for name, member in part.items()}
    return part if key in ("enum", "required", "default", "const") else _slim(part)


def _says_nothing(key: str, part: Any) -> bool:
    if key == "pattern":
        return VISIBLE in part  # of every text: it must not be blank
    if key == "additionalProperties":
        return isinstance(part, bool)
    if key in ("minimum", "maximum"):
        return bool(abs(part) >= WIDE)
    return key in LEFT_OUT or (key == "default" and part in EMPTY)


def _inlinable(root: Schema, definitions: dict[str, Schema]) -> str | None:
    """Return the shortest definition that is shorter where it is used, unless it refers to itself; None where none is."""
    uses = Counter(_references([root, *definitions.values()]))
    for name in sorted(definitions, key=lambda name: (len(orjson.dumps(definitions[name])), name)):
        length, reference = len(orjson.dumps(definitions[name])), len(orjson.dumps({"$ref": REFERENCE + name}))
        if name not in _references(definitions[name]) and uses[name] * length <= length + uses[name] * reference + len(name):
            return name
    return None


def _references(schema: object) -> list[str]:
    match schema:
        case {"$ref": str(reference), **rest}:
            return [reference.removeprefix(REFERENCE), *_references(rest)]
        case dict():
            return [name for part in schema.values() for name in _references(part)]
        case list():
            return [name for part in schema for name in _references(part)]
        case _:
            return []


def _replace(schema: object, name: str, definition: Schema) -> Any:
    """Return a schema with a definition in the place of every reference to it; what stands beside the reference wins."""
    match schema:
        case {"$ref": reference, **rest} if reference == REFERENCE + name:
            return {**definition, **rest}
        case dict():
            return {key: _replace(part, name, definition) for key, part in schema.items()}
        case list():
            return [_replace(part, name, definition) for part in schema]
        case _:
            return schema
