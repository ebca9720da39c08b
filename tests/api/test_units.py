"""Every duration, cost and count that a surface shows says what it is counted in."""

import re
from collections.abc import Iterator
from typing import Any

from baton.api.mcp.tools import tool_of
from baton.domain.contexts import REGISTRY
from tests.support.api.openapi_document import document
from tests.support.tables import for_each

DURATION = re.compile(r"(^|_)(wait|every|window|jitter|age|wall_clock\w*|latency|timeout|duration|silence|ttl|seconds)$")
COST = re.compile(r"(^|_)cost(_|$)")
COUNT = re.compile(r"(^|_)(count|tokens|cap|limit|depth|restarts|samples|iterations|size|remaining|failures)$")
UNIT = re.compile(r"\b(seconds|milliseconds|US dollars|bytes|number of)\b", re.IGNORECASE)
UNITLESS = {"residual_tolerance_limit": "it is in the unit of what the solver solves for"}
"""The names that look like a quantity and say no unit, and why."""


def numbers_in(form: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every numeric property and parameter of a document, with its name."""
    match form:
        case {"name": str(name), "in": str(), "schema": dict(schema)}:
            yield name, {**schema, "description": form.get("description", "")}
        case {"properties": dict(properties)}:
            yield from properties.items()
    parts = form.values() if isinstance(form, dict) else form if isinstance(form, list) else ()
    for part in parts:
        yield from numbers_in(part)


def options(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())]


def undeclared_units(form: Any) -> set[str]:
    """The quantities of a document that say no unit."""
    quantities = {
        (name, " ".join(part.get("description", "") for part in options(schema)))
        for name, schema in numbers_in(form)
        if isinstance(schema, dict)
        and any(part.get("type") in ("integer", "number") for part in options(schema))
        and any(kind.search(name) for kind in (DURATION, COST, COUNT))
    }
    assert quantities, "the walk finds some"
    return {name for name, described in quantities if not UNIT.search(described)} - UNITLESS.keys()


def test_the_openapi_document_says_the_unit_of_every_quantity() -> None:
    assert undeclared_units(document()) == set()


def test_the_tools_say_the_unit_of_every_quantity() -> None:
    tools = [tool_of(operation.input) for operation in REGISTRY if operation.mcp]
    assert undeclared_units([tool.input_schema for tool in tools]) == set()


@for_each(
    ("name", "unit"),
    [("observation_age", "seconds"), ("cost", "US dollars"), ("duration", "milliseconds"), ("every", "seconds")],
)
def test_the_unit_is_the_one_that_is_meant(name: str, unit: str) -> None:
    schemas = {str(schema) for found, schema in numbers_in(document()) if found == name and "number" in str(schema)}
    schemas |= {str(schema) for found, schema in numbers_in(document()) if found == name and "integer" in str(schema)}
    assert schemas
    assert all(unit in schema for schema in schemas)
