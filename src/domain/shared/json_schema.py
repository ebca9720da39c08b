"""JSON schemas as plain data: the one walk over all levels of a schema, and the definitions that a schema refers to."""

from collections.abc import Callable, Mapping
from typing import Any

Schema = dict[str, Any]
DEFINITIONS, COMPONENTS = "#/$defs/", "#/components/schemas/"
NAMED_SCHEMAS = frozenset({"properties", "$defs"})  # Keys of a schema with schemas by names, which are no keywords.
VALUES = frozenset({"const", "default", "enum", "example", "examples"})  # Keys of a schema with values instead of schemas.


def map_levels(schema: Any, change: Callable[[Schema], Any]) -> Any:
    """Return a schema, or a document that holds some, with the change made to every level of it, the innermost first."""
    match schema:
        case dict():
            return change({key: _map_part(key, part, change) for key, part in schema.items()})
        case list():
            return [map_levels(part, change) for part in schema]
        case _:
            return schema


def _map_part(key: str, part: Any, change: Callable[[Schema], Any]) -> Any:
    if key in NAMED_SCHEMAS and isinstance(part, dict):
        return {name: map_levels(member, change) for name, member in part.items()}
    return part if key in VALUES else map_levels(part, change)


def is_reference(part: Any) -> bool:
    """Return whether a part of a schema refers to a definition."""
    return isinstance(part, str) and part.startswith((DEFINITIONS, COMPONENTS))


def name_in(reference: str) -> str:
    """Return the name of the definition that a reference leads to."""
    return reference.rpartition("/")[2]


def references(schema: Any) -> list[str]:
    """Return the names of the definitions that a schema refers to, each as often as it does."""
    found: list[str] = []

    def collect(level: Schema) -> Schema:
        found.extend(name_in(part) for part in level.values() if is_reference(part))
        return level

    map_levels(schema, collect)
    return found


def reachable(roots: Any, definitions: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return the definitions that something refers to, by itself or through others, in the order of their names."""
    found: set[str] = set()
    pending = set(references(roots))
    while pending:
        found |= pending
        pending = {name for one in pending for name in references(definitions[one])} - found
    return {name: definitions[name] for name in sorted(found)}
