"""The MCP server: which tools a caller sees, and what happens when one is called."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any
from uuid import UUID

import orjson
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    PaginatedRequestParams,
    TextContent,
)
from pydantic import Field

from api.edge import as_refusal
from api.errors import error_body
from api.mcp.arguments import KEY, checked, refuse, requested
from api.mcp.search import FoundOperation, FoundOperations, Index, SearchOperations
from api.mcp.tools import KEY_SCHEMA, answer_form, described_tool, form_of, input_schema, operation_tool
from api.metrics import observe
from api.rest import answer_json
from application.ports import Caller, Executed
from application.service import Service
from application.settings import McpToolset
from domain.kernel import Operation, Value
from domain.shared.refusals import NotFound, Refusal

SEARCH = "search_operations"
CALL = "call_operation"
INSTRUCTIONS = """\
Baton controls the operations of an experiment facility. Every operation is a tool under its own name; where your list does
not show the one you need, search_operations finds it and call_operation calls it. Commands take an idempotency_key: repeat
a call with the same key and it is carried out once. A command answers its log position in `_meta` as `baton/position`; give
it to a list as `min_position` and the list shows what you did. A refusal says in `detail` what to do about it and carries a
machine-readable `code` and, where there is one, `reason`.
"""

Context = ServerRequestContext[Any, Any]
CallerOf = Callable[[Context], Caller]


class UnknownOperationError(NotFound):
    """There is no operation of this name."""


class CallOperation(Value):
    """Call any operation you are permitted, by name and with the arguments its own tool takes."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] = {}
    idempotency_key: str | None = Field(default=None, json_schema_extra=lambda form: form.update(key_form()))


def key_form() -> dict[str, Any]:
    return KEY_SCHEMA


class Toolbox:
    """Every tool, made once; what a caller sees of them is asked anew for each listing."""

    def __init__(self, operations: Iterable[Operation], service: Service, toolset: McpToolset) -> None:
        self._service = service
        self._operations = {operation.name: operation for operation in operations if operation.mcp}
        self._index = Index.of(self._operations.values())
        self._schemas = {name: input_schema(operation) for name, operation in self._operations.items()}
        shown = [op for op in self._operations.values() if op.essential or toolset is McpToolset.ALL]
        self._tools = [(operation, wire_form(operation_tool(operation))) for operation in shown]
        self._finders = [wire_form(tool) for tool in FINDERS]
