"""Tools as they are derived from the registry, and the search that finds them."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp_types import ToolAnnotations

from baton.api.mcp.search import Index
from baton.api.mcp.server import CALL, SEARCH
from baton.api.mcp.tools import tool_of
from baton.domain.contexts import REGISTRY
from baton.domain.registry import Operation
from tests.support.api.openapi_document import document
from tests.support.tables import for_each

OPERATIONS = [operation for operation in REGISTRY if operation.mcp]
OWN = {tool.name: tool for tool in (SEARCH, CALL)}
"""The tools that stand for no operation."""


@for_each("name", [*OWN, *(operation.name for operation in OPERATIONS)])
def test_schemas_are_valid_and_need_nothing_from_outside(name: str) -> None:
    tool = OWN.get(name) or tool_of(REGISTRY.operations[name].input)
    for schema in (tool.input_schema, tool.output_schema or {"type": "object"}):
        for part in ({**schema, "$defs": {}}, *schema.get("$defs", {}).values()):
            check_schema(json.dumps(part))
        assert schema["type"] == "object"
        definitions = {f"#/$defs/{name}" for name in schema.get("$defs", ())}
        assert set(references(schema)) <= definitions
    assert tool.input_schema["additionalProperties"] is False


@cache
def check_schema(text: str) -> None:
    """Check a schema once, since tools share many of their definitions."""
    Draft202012Validator.check_schema(json.loads(text))


@for_each("operation", OPERATIONS)
def test_arguments_are_the_path_ids_and_the_fields_of_rest(operation: Operation) -> None:
    entry = document()["paths"][operation.path][operation.method.lower()]
    parameters = {p["name"]: p["required"] for p in entry["parameters"] if p["in"] in ("path", "query")}
    body = entry.get("requestBody", {"content": {"application/json": {"schema": {"properties": {}}}}})
    form = body["content"]["application/json"]["schema"]
    required = {name for name, needed in parameters.items() if needed} | set(form.get("required", ()))
    schema = tool_of(operation.input).input_schema
    key = {"idempotency_key"} if operation.kind == "command" else set()
    assert set(schema["properties"]) == set(parameters) | set(form["properties"]) | key
    assert set(schema.get("required", ())) == required


def test_hints_say_what_a_tool_may_change() -> None:
    assert hints("list_zones") == (True, False, True, False)
    assert hints("define_zone") == (False, False, False, False)
    assert hints("deactivate_actor") == (False, True, False, False)
    assert hints("forget_actor") == (False, True, True, False)
    assert flags(SEARCH.annotations) == (True, False, True, False)
    assert flags(CALL.annotations) == (False, True, False, False)


def test_titles_can_be_read() -> None:
    tool = tool_of(REGISTRY.operations["record_visit_arrival"].input)
    assert tool.title == "Record visit arrival"
    assert tool.description is not None
    assert "Allowed from: Planned." in tool.description


def test_long_work_may_answer_with_its_result_or_its_ids() -> None:
    work = next(operation for operation in OPERATIONS if operation.accepted is not None)
    schema = tool_of(work.input).output_schema
    assert schema is not None
    forms = {option["$ref"].rpartition("/")[2] for option in schema["anyOf"]}
    assert forms == {work.returns.__name__, work.accepted.__name__}


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("hold visit", "hold_visit"),
        ("hold_visit", "hold_visit"),
        ("Visits", "get_visit"),
        ("check in presence", "check_in_visit"),
        ("VisitCannotHoldError", "hold_visit"),
        ("erase everything personal", "forget_actor"),
        ("who am I", "get_my_access"),
    ],
)
def test_words_find_operations(words: str, first: str) -> None:
    assert Index.of(OPERATIONS).rank(words, OPERATIONS)[0].name == first


def test_an_operation_is_found_by_the_causes_of_its_refusals() -> None:
    found = Index.of(OPERATIONS).rank("already_bound", OPERATIONS)
    assert "bind_actor_subject" in [operation.name for operation in found[:3]]


def test_what_is_not_asked_for_among_is_not_found() -> None:
    visits = [operation for operation in OPERATIONS if operation.name == "hold_visit"]
    assert Index.of(OPERATIONS).rank("visit", visits) == visits
    assert Index.of(OPERATIONS).rank("xylophone", OPERATIONS) == []


def hints(name: str) -> tuple[bool | None, ...]:
    return flags(tool_of(REGISTRY.operations[name].input).annotations)


def flags(annotations: ToolAnnotations | None) -> tuple[bool | None, ...]:
    assert annotations is not None
    return (
        annotations.read_only_hint,
        annotations.destructive_hint,
        annotations.idempotent_hint,
        annotations.open_world_hint,
    )


def references(schema: Any) -> Iterator[str]:
    """Every reference in a schema, however deep."""
    match schema:
        case {"$ref": str(reference)}:
            yield reference
        case dict():
            for part in schema.values():
                yield from references(part)
        case list():
            for part in schema:
                yield from references(part)
