"""Schemas as models read them: what a schema says that a caller cannot use is left out, because a model pays for every byte
of a listing. Arguments are checked against the full input, whatever the listing says."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson

from baton.domain.registry import snake_case
from baton.domain.shared.json_schema import DEFINITIONS, Schema, map_levels, reachable, references
from baton.domain.shared.text import PERSONAL_MARK, VISIBLE

NULL = {"type": "null"}
EMPTY: tuple[Any, ...] = (None, [], {})
LEFT_OUT = frozenset(
    {"title", "discriminator", "unit", "minLength", "maxLength", "maxItems", "maxProperties", PERSONAL_MARK}
)
WIDE = 2**31 - 1  # a bound beyond this one tells nothing
LONGEST_FORM = 6000  # bytes of a schema that is listed whole
LONGEST_PART = 2000  # bytes of an argument that a longer schema shows
LONGEST_FOUND = 4000  # bytes of a schema that a search shows
LONGEST_WHOLE = 400  # bytes of an argument that is shown whole in a longer schema that a search shows
ELSEWHERE = "Its form: search_operations with input_schemas."


def slim_schema(schema: Schema) -> Schema:
    """Return the schema of a tool's arguments without titles, lengths and patterns of texts, null for what may be left out,
    and units, which descriptions name; definitions stand where they are used if that is shorter."""
    root: Schema = map_levels(schema, _slim_level)
    definitions: dict[str, Schema] = root.pop("$defs", {})
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
    used = reachable(list(members.values()), definitions)
    return {"properties": members, **rest, **({"$defs": used} if used else {})}


def _shorten(member: Schema, definitions: dict[str, Schema]) -> Schema:
    whole = [member, *reachable(member, definitions).values()]
    if sum(len(orjson.dumps(part)) for part in whole) <= LONGEST_PART:
        return member
    kind = {"type": member["type"]} if "type" in member else {}
    return {**kind, "description": f"{member.get('description', '')} {ELSEWHERE}".strip()}


def found_schema(schema: Schema, part: str | None) -> Schema:
    """Return a slim schema, or one part of it by its name, as a search shows it. Of one that is very long, long members are
    shown by their signatures, in which `?` marks what may be left out; they, and `further_forms`, can be asked for."""
    definitions: dict[str, Schema] = schema.get("$defs", {})
    shown = schema if part is None else find_part(schema, part)
    if part is not None and "properties" not in shown:
        shown = {"properties": {part: shown}}
    rest = {key: value for key, value in shown.items() if key not in ("properties", "$defs")}
    used = reachable(shown, definitions)
    whole = {**rest, "properties": shown["properties"], **({"$defs": used} if used else {})}
    if len(orjson.dumps(whole)) <= LONGEST_FOUND:
        return whole
    members = {name: _abbreviate(member) for name, member in shown["properties"].items()}
    abbreviated = {**rest, "properties": members, "forms": {}, "further_forms": []}
    size = len(orjson.dumps(abbreviated))
    for name, form in reachable(list(shown["properties"].values()), definitions).items():
        signed = f"{signature(form)}{_explanation(form)}"
        size += len(name) + len(orjson.dumps(signed)) + 4
        if size <= LONGEST_FOUND - len(orjson.dumps(list(definitions))):
            abbreviated["forms"][name] = signed
        else:
            abbreviated["further_forms"].append(name)
    return abbreviated


def find_part(schema: Schema, part: str) -> Schema:
    """Return an argument or a form by its name, or the form of a command by the command's, however deep; the schema itself
    where it has none."""
    found = {**schema["properties"], **schema.get("$defs", {})}.get(part)
    command = {"const": snake_case(part).removesuffix("_arrangement")}
    for level in () if found is not None else levels_of(schema):
        members = level.get("properties", {})
        if part in members:
            return dict(members[part])
        if command.items() <= members.get("command", {}).items():
            return level
    return found or schema


def levels_of(part: Any) -> Iterator[Schema]:
    """Yield every object within a schema, those above first."""
    if isinstance(part, dict):
        yield part
    if isinstance(part, dict | list):
        for inner in part.values() if isinstance(part, dict) else part:
            yield from levels_of(inner)


def _explanation(form: Schema) -> str:
    """Return what stands in the place of a form with a reserved key; nothing for any other."""
    reserved = any(key.startswith("__") for key in form.get("properties", ()))
    return f" = {form['description']}" if reserved and "description" in form else ""


def _abbreviate(member: Schema) -> Schema:
    if len(orjson.dumps(member)) <= LONGEST_WHOLE and not any(references(member)):
        return member
    described = {"description": member["description"]} if "description" in member else {}
    return {**described, "form": signature(member)}


def signature(schema: Schema) -> str:
    """Return the form of a value in a line: `{name: string, limit?: integer}`."""
    match schema:
        case {"$ref": str(reference)}:
            return reference.removeprefix(DEFINITIONS)
        case {"const": value}:
            return orjson.dumps(value).decode()
        case {"enum": [*values]}:
            return " | ".join(orjson.dumps(value).decode() for value in values)
        case {"anyOf": [*options]} | {"oneOf": [*options]}:
            return " | ".join(dict.fromkeys(map(signature, options)))
        case {"properties": dict(members)}:
            needed = schema.get("required", ())
            fields = [f"{key}{'' if key in needed else '?'}: {signature(one)}" for key, one in members.items()]
            return f"{{{', '.join(fields)}}}"
        case {"additionalProperties": dict(member)}:
            return f"{{*: {signature(member)}}}"
        case {"items": dict(item)}:
            return f"[{signature(item)}]"
    return str(schema.get("format") or schema.get("type") or "any")


def _slim_level(level: Schema) -> Schema:
    match level:
        case {"anyOf": [*options], "default": None} if NULL in options:
            besides = {key: part for key, part in level.items() if key not in ("anyOf", "default")}
            level = _merge([option for option in options if option != NULL], besides)
    is_listed = "const" in level or "enum" in level
    return {key: part for key, part in level.items() if not (_says_nothing(key, part) or (is_listed and key == "type"))}


def _merge(options: list[Any], rest: Schema) -> Schema:
    """Return what is left of a choice without null."""
    return {**options[0], **rest} if len(options) == 1 else {"anyOf": options, **rest}


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
    uses = Counter(references([root, *definitions.values()]))
    for name in sorted(definitions, key=lambda name: (len(orjson.dumps(definitions[name])), name)):
        length, reference = len(orjson.dumps(definitions[name])), len(orjson.dumps({"$ref": DEFINITIONS + name}))
        if name not in references(definitions[name]) and uses[name] * length <= length + uses[name] * reference + len(name):
            return name
    return None


def _replace(schema: Any, name: str, definition: Schema) -> Any:
    """Return a schema with a definition in the place of every reference to it; what stands beside the reference wins."""

    def put_in(level: Schema) -> Schema:
        if level.get("$ref") != DEFINITIONS + name:
            return level
        return {**definition, **{key: part for key, part in level.items() if key != "$ref"}}

    return map_levels(schema, put_in)
