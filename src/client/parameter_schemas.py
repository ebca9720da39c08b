"""Declared schemas as a caller judges values by them, before anything is sent. They say little, so that little is needed:
types, choices, limits, lengths, items, and which keys there are. Patterns are left to the service, whose engine matches
them without backtracking."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Schema = Mapping[str, Any]
Path = tuple[str, ...]
LONGEST_LIMIT = 200
CLOSING = ("additionalProperties", "unevaluatedProperties")
SENTENCES = {
    "type": "must be of type {limit}; correct the value",
    "enum": "must be one of {limit}; choose one of them",
    "minimum": "must be at least {limit}; correct the value",
    "maximum": "must be at most {limit}; correct the value",
    "minLength": "must have at least {limit} characters; correct the value",
    "maxLength": "must have at most {limit} characters; correct the value",
    "minItems": "must have at least {limit} items; correct the value",
    "maxItems": "must have at most {limit} items; correct the value",
    "required": "is required; give it too",
    **dict.fromkeys(CLOSING, "is not declared; drop it or declare it in the schema"),
}


class ValueFault(NamedTuple):
    """One way in which values break their schema: where, by which keyword, and what has to be so, without its subject."""

    place: Path
    keyword: str
    sentence: str

    @property
    def path(self) -> str:
        return ".".join(self.place) or "$"


def types_of(level: Schema) -> frozenset[str]:
    """Return the types one level of a schema admits; none means any."""
    declared = level.get("type")
    return frozenset(declared if isinstance(declared, list) else [declared] if declared else [])


def is_closed(level: Schema) -> bool:
    """Return whether one level of a schema admits no keys but those it declares."""
    return any(level.get(keyword) is False for keyword in CLOSING)


def merge_patch(target: object, patch: object) -> Any:
    """Return the target after an RFC 7396 merge patch: a value replaces, null deletes, objects merge recursively."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def value_faults(level: Schema, value: object, place: Path = ()) -> Iterator[ValueFault]:
    """Yield everything by which a value breaks a level of a schema, each key that is missing or undeclared by itself."""
    for keyword, limit in sorted(level.items()):
        if keyword == "properties" and isinstance(value, Mapping):
            for name in (name for name in sorted(limit) if name in value):
                yield from value_faults(limit[name], value[name], (*place, name))
        elif keyword == "items" and isinstance(value, list | tuple):
            for number, one in enumerate(value):
                yield from value_faults(limit, one, (*place, str(number)))
        elif keyword == "required" and isinstance(value, Mapping):
            yield from (fault((*place, name), keyword) for name in limit if name not in value)
        elif keyword in CLOSING and limit is False and isinstance(value, Mapping):
            unknown = sorted(value.keys() - level.get("properties", {}).keys())
            yield from (fault((*place, name), keyword) for name in unknown)
        elif keyword in SENTENCES and keyword not in (*CLOSING, "required") and not holds(keyword, limit, value):
            unit = level.get("unit", {}).get("code", "") if keyword in ("minimum", "maximum") else ""
            yield fault(place, keyword, f"{json.dumps(limit, ensure_ascii=False, sort_keys=True)} {unit}".strip())


def fault(place: Path, keyword: str, limit: str = "") -> ValueFault:
    """Return one fault with its sentence."""
    shown = limit if len(limit) <= LONGEST_LIMIT else f"{limit[: LONGEST_LIMIT - 1]}…"
    return ValueFault(place, keyword, SENTENCES[keyword].format(limit=shown))


def holds(keyword: str, limit: Any, value: Any) -> bool:
    """Return whether a value is within what a keyword asks for; what it is not about always is."""
    match keyword:
        case "type":
            return any(is_of_type(name, value) for name in (limit if isinstance(limit, list) else [limit]))
        case "enum":
            return any(is_same(one, value) for one in limit)
        case "minimum" | "maximum":
            return not is_number(value) or (value >= limit if keyword == "minimum" else value <= limit)
        case "minLength" | "maxLength":
            return not isinstance(value, str) or (len(value) >= limit if keyword == "minLength" else len(value) <= limit)
        case _:
            is_array = isinstance(value, list | tuple)
            return not is_array or (len(value) >= limit if keyword == "minItems" else len(value) <= limit)


def is_number(value: object) -> bool:
    """Return whether a value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_of_type(name: str, value: Any) -> bool:
    """Return whether a value is of a type of JSON; an integer may be written with zeros behind its point."""
    match name:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return is_number(value) and float(value).is_integer()
        case "number":
            return is_number(value)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list | tuple)
        case _:
            return isinstance(value, Mapping)


def is_same(one: object, other: object) -> bool:
    """Return whether two values are the same JSON; true is not 1."""
    if isinstance(one, list) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    return one == other and isinstance(one, bool) == isinstance(other, bool)
