"""Tools as they are derived from the registry."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from mcp_types import ToolAnnotations

from baton.api.mcp.toolbox import CALL, SEARCH
from baton.api.mcp.tools import arguments_schema, tool_of
from baton.domain.contexts import REGISTRY
from baton.domain.registry import Operation
from tests.support.api.openapi_document import document
from tests.support.tables import for_each

OPERATIONS = [operation for operation in REGISTRY if operation.mcp]
OWN = {tool.name: tool for tool in (SEARCH, CALL)}
"""The tools that stand for no operation."""


@pytest.mark.slow
@for_each("name", [*OWN, *(operation.name for operation in OPERATIONS)])
def test_schemas_are_valid_and_need_nothing_from_outside(name: str) -> None:
    tool = OWN.get(name) or tool_of(REGISTRY.operations[name].input)
    operation = REGISTRY.operations.get(name)
    whole = tool.input_schema if operation is None else arguments_schema(operation)
    for schema in (tool.input_schema, whole):
        jsonschema_rs.Draft202012Validator(schema)  # refuses what is no schema
        assert schema["type"] == "object"
        assert set(references(schema)) == {f"#/$defs/{name}" for name in schema.get("$defs", ())}
    assert operation is None or whole["additionalProperties"] is False
    assert tool.output_schema is None


@for_each("operation", OPERATIONS)
def test_arguments_are_the_path_ids_and_the_fields_of_rest(operation: Operation) -> None:
    entry = document()["paths"][operation.path][operation.method.lower()]
    given = [component_of(parameter) for parameter in entry["parameters"]]
    parameters = {p["name"]: p["required"] for p in given if p["in"] in ("path", "query")}
    body = entry.get("requestBody", {"content": {"application/json": {"schema": {"properties": {}}}}})
    form = component_of(body["content"]["application/json"]["schema"])
    required = {name for name, needed in parameters.items() if needed} | set(form.get("required", ()))
    schema = tool_of(operation.input).input_schema
    own = {"idempotency_key", "dry_run"} if operation.kind == "command" else set()
    assert set(schema["properties"]) == set(parameters) | set(form["properties"]) | own
    assert set(schema.get("required", ())) == required


def test_hints_say_what_a_tool_may_change() -> None:
    assert hints("list_zones") == (True, True, False, False)
    assert hints("define_zone") == (False, False, False, False)
    assert hints("deactivate_actor") == (False, True, False, False)
    assert hints("forget_actor") == (False, True, True, False)
    assert flags(SEARCH.annotations) == (True, True, False, False)
    assert flags(CALL.annotations) == (False, True, False, False)


def test_a_description_says_from_which_states_and_ends_with_an_example() -> None:
    tool = tool_of(REGISTRY.operations["record_visit_arrival"].input)
    assert tool.description is not None
    assert "Allowed from: Planned." in tool.description
    for operation in OPERATIONS:
        text = tool_of(operation.input).description or ""
        assert json.loads(text.rpartition("Example: ")[2]) == operation.example, operation.name


@for_each(
    ("name", "said"),
    [
        ("define_practice", "by its id of list_facilities"),
        ("version_method", "define another method"),
        ("define_method", "no later version changes them"),
    ],
)
def test_a_tool_says_where_its_values_come_from_and_what_stays(name: str, said: str) -> None:
    assert said in tool_of(REGISTRY.operations[name].input).model_dump_json()


def component_of(part: dict[str, Any]) -> Any:
    """A part of the OpenAPI document, or the component that stands for it."""
    if "$ref" not in part:
        return part
    component: Any = document()
    for name in part["$ref"].removeprefix("#/").split("/"):
        component = component[name]
    return component


def hints(name: str) -> tuple[bool | None, ...]:
    return flags(tool_of(REGISTRY.operations[name].input).annotations)


def flags(annotations: ToolAnnotations | None) -> tuple[bool | None, ...]:
    """Whether a tool reads only, destroys, may be repeated, and reaches beyond the service; what is not said is assumed as
    the protocol does."""
    assert annotations is not None
    said = (
        (annotations.read_only_hint, False),
        (annotations.destructive_hint, True),
        (annotations.idempotent_hint, False),
        (annotations.open_world_hint, True),
    )
    return tuple(assumed if hint is None else hint for hint, assumed in said)


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
