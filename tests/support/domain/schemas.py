"""Readings of JSON schemas that several tests need."""

from collections.abc import Iterator
from typing import Any


def schema_levels(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a schema and every schema below it, root first."""
    yield schema
    for inner in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])):
        yield from schema_levels(inner)
