"""Every declared operation is offered over REST and MCP by the service as it runs; `docs/coverage.md` names the others."""

import json
import re
from pathlib import Path
from typing import Any

from baton.api.service_paths import SERVICE_PATHS
from tests.support.api.mcp_clients import agent
from tests.support.service import Api

DECLARED: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "operations.json").read_text())
FINDERS = {"search_operations", "call_operation"}


def shape(path: str) -> str:
    """A path without the names of its placeholders."""
    return re.sub(r"\{[^}]+\}", "{}", path).rstrip("/")


async def test_every_declared_operation_has_its_route(api: Api) -> None:
    document = (await api.get("/openapi.json")).json()
    offered = {
        (method.upper(), shape(path)): entry
        for path, methods in document["paths"].items()
        for method, entry in methods.items()
        if path not in SERVICE_PATHS
    }
    declared = {(row["method"], shape(row["path"])): row for row in DECLARED}
    assert offered.keys() == declared.keys()
    for route, row in declared.items():
        entry = offered[route]
        assert (entry["operationId"], entry["x-command-name"]) == (row["name"], row["command_name"])
        assert entry["tags"] == [row["context"]]


async def test_every_declared_operation_has_its_tool(api: Api) -> None:
    async with agent(api, toolset="all") as client:
        listed = (await client.list_tools()).tools
    assert {tool.name for tool in listed} == {row["name"] for row in DECLARED if row["mcp"]} | FINDERS
    kinds = {row["name"]: row["kind"] for row in DECLARED}
    for tool in listed:
        if tool.name in kinds:
            assert tool.annotations is not None
            assert bool(tool.annotations.read_only_hint) == (kinds[tool.name] == "query"), tool.name


async def test_every_route_of_the_document_is_served(api: Api) -> None:
    """A route that exists refuses nonsense as malformed or answers it; it never says that nothing is there."""
    for row in DECLARED:
        if row["name"] != "stream_events":
            path = re.sub(r"\{[^}]+\}", "nonsense", row["path"])
            response = await api.request(row["method"], path, params={"nonsense": 1})
            assert response.status_code == 422, row["name"]
