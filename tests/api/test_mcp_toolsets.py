"""Toolsets: what a client is shown by default and on request, in few bytes."""

import json

from baton.api.mcp.slim_schemas import found_schema, listed_schema, slim_schema
from baton.api.mcp.tools import arguments_schema, tool_of
from baton.api.mcp.toolsets import HALTING, TOOLSETS
from baton.application.settings import McpToolset
from baton.domain.contexts import REGISTRY
from tests.support.api.mcp_clients import FRAME, agent, send_frame, tool_result
from tests.support.service import Api, running_api
from tests.support.tables import for_each

FINDERS = {"search_operations", "call_operation"}
OPERATIONS = [operation for operation in REGISTRY if operation.mcp]
MOST_TOOLS, MOST_BYTES = 40, 45_000
STARTING = ("launch", "start_", "conduct_", "resume_", "trigger_", "advise_")


@for_each("toolset", TOOLSETS)
def test_the_tools_of_a_set_exist(toolset: McpToolset) -> None:
    assert TOOLSETS[toolset] <= {operation.name for operation in OPERATIONS}


@for_each("toolset", TOOLSETS)
def test_what_can_start_something_can_halt_it(toolset: McpToolset) -> None:
    names = TOOLSETS[toolset]
    starts = [name for name in names if name.startswith(STARTING) and REGISTRY.operations[name].kind == "command"]
    assert set(HALTING) <= names or not starts, f"{toolset} has {starts} and cannot halt them"
    commands = {name for name in names if REGISTRY.operations[name].kind == "command"}
    assert set(HALTING) <= names or commands == {"hold_everything"}
    assert "hold_everything" in names
    assert "add_queue_items" not in names or "hold_queue" in names


async def test_the_tools_of_an_operator_are_listed_by_default_in_few_bytes(api: Api) -> None:
    answer = await send_frame(api, "tools/list")
    tools = answer.json()["result"]["tools"]
    assert {tool["name"] for tool in tools} == TOOLSETS[McpToolset.OPERATOR] | FINDERS
    assert len(tools) <= MOST_TOOLS
    assert len(answer.content) <= MOST_BYTES
    assert not [tool["name"] for tool in tools if "outputSchema" in tool]


async def test_a_client_chooses_its_set_by_the_address(api: Api) -> None:
    every = {operation.name for operation in OPERATIONS}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    for toolset in McpToolset:
        answer = await api.request("POST", f"/mcp?toolset={toolset}", json=frame, headers=FRAME)
        tools = {tool["name"] for tool in answer.json()["result"]["tools"]}
        assert tools == TOOLSETS.get(toolset, every) | FINDERS
        print(f"{toolset}: {len(tools)} tools, {len(answer.content):,} bytes")
    refused = await api.request("POST", "/mcp?toolset=essential", json={})
    assert (refused.status_code, refused.json()["code"]) == (422, "RequestValidationError")
    assert "operator, steering, auditor, engineer or all" in refused.json()["detail"]


async def test_a_set_limits_what_is_listed_and_not_what_is_called(database_url: str) -> None:
    async with running_api(database_url, mcp_toolset="auditor") as api, agent(api) as client:
        assert "define_zone" not in {tool.name for tool in (await client.list_tools()).tools}
        zone = await tool_result(client, "define_zone", name="Hall")
        found = (await tool_result(client, "search_operations", words="get zone", limit=1))["operations"]
        assert (await tool_result(client, "call_operation", name=found[0]["name"], arguments=zone))["name"] == "Hall"


def test_a_slim_schema_keeps_what_a_caller_can_use() -> None:
    full = {
        "title": "Move",
        "type": "object",
        "properties": {
            "title": {"title": "Title", "type": "string", "minLength": 1, "maxLength": 200},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "description": "What else."},
            "parent": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "Null takes it away."},
            "place": {"$ref": "#/$defs/Place"},
            "tree": {"$ref": "#/$defs/Tree"},
        },
        "required": ["title"],
        "$defs": {
            "Place": {"title": "Place", "type": "string", "enum": ["in", "out"]},
            "Tree": {"type": "object", "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}},
        },
    }
    assert slim_schema(full) == {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "note": {"type": "string", "description": "What else."},
            "parent": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "Null takes it away."},
            "place": {"enum": ["in", "out"]},
            "tree": {"$ref": "#/$defs/Tree"},
        },
        "required": ["title"],
        "additionalProperties": False,
        "$defs": {"Tree": {"type": "object", "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}},
    }


def test_a_long_argument_is_listed_by_its_kind_and_searched_with_its_form() -> None:
    operation = REGISTRY.operations["conduct_procedure"]
    listed, whole = tool_of(operation.input).input_schema, arguments_schema(operation)
    assert listed == listed_schema(whole)
    assert listed["properties"].keys() == whole["properties"].keys()
    assert listed["properties"]["steps"]["description"].endswith("search_operations with input_schemas.")
    assert "setpoint" in json.dumps(whole["properties"]["steps"])


def test_a_part_is_found_by_its_name_however_deep_and_the_form_of_a_command_by_the_commands() -> None:
    for operation in ("launch", "conduct_run"):
        whole = arguments_schema(REGISTRY.operations[operation])
        for part in ("conduct_until_advised", "ConductUntilAdvisedArrangement"):
            shown = found_schema(whole, part)
            assert shown["properties"]["command"]["const"] == "conduct_until_advised", (operation, part)
            assert {"objective", "space", "decide"} <= shown["properties"].keys()
        assert "objective_capture_name" in found_schema(whole, "objective_capture_name")["properties"]
    assert found_schema(whole, "nonsense") == found_schema(whole, None)


def test_a_reserved_key_is_explained_where_a_form_has_it() -> None:
    forms = found_schema(arguments_schema(REGISTRY.operations["conduct_procedure"]), None)["forms"]
    assert forms["SteeringRef"].startswith("{__steering__: string} = The coordinate")
    part = found_schema(arguments_schema(REGISTRY.operations["define_recipe"]), "SteeringRef")
    assert "search's axis" in part["properties"]["__steering__"]["description"], (
        "where a form is one of many, it is found by name"
    )


def test_a_search_shows_less_than_four_kilobytes_of_a_schema_and_every_form_by_its_name() -> None:
    for operation in (one for one in REGISTRY if one.mcp):
        whole = arguments_schema(operation)
        shown = found_schema(whole, None)
        assert shown["properties"].keys() == whole["properties"].keys()
        unnamed = {*whole.get("$defs", ())} - {
            *shown.get("forms", ()),
            *shown.get("further_forms", ()),
            *shown.get("$defs", ()),
        }
        assert not unnamed, operation.name
        for part in (None, *whole["properties"], *whole.get("$defs", ())):
            assert len(json.dumps(found_schema(whole, part), separators=(",", ":"))) < 4096, (operation.name, part)
    steps = found_schema(arguments_schema(REGISTRY.operations["define_recipe"]), None)
    assert "RecipeCheckStep" in steps["properties"]["steps"]["form"]
    assert steps["forms"]["RecipeCaptureStep"] == '{kind: "capture", address: string, capture_name: string, unit?: string}'
