"""The MCP server: which tools a caller sees, and what happens when one is called."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import cache, cached_property
from inspect import getdoc
from typing import Annotated, Any

import orjson
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from pydantic import BaseModel, Field

from baton.api.edge import as_refusal
from baton.api.errors import error_body
from baton.api.mcp.arguments import checked, refuse, requested
from baton.api.mcp.progress import Notifier
from baton.api.mcp.search import FoundOperation, FoundOperations, Index, SearchOperations
from baton.api.mcp.tools import KEY, Key, answer_form, described_tool, form_of, tool_of
from baton.api.metrics import observe
from baton.api.openapi import VERSION
from baton.api.rest import answer_json
from baton.application.ports import Caller, Executed
from baton.application.service import Service, Told
from baton.application.settings import McpToolset
from baton.domain.kernel import Command, Query, Value, omitted
from baton.domain.registry import Operation
from baton.domain.shared.refusals import NotFound

INSTRUCTIONS = """\
Baton controls the operations of an experiment facility. Every operation is a tool under its own name; where your list does \
not show the one you need, search_operations finds it and call_operation calls it. Commands take an idempotency_key: repeat \
a call with the same key and it is carried out once. A command answers its log position in _meta as baton/position; give it \
to a list as min_position and the list shows what you did. A refusal says in detail what to do about it, and carries a \
machine-readable code and, where there is one, a reason."""

Context = ServerRequestContext[Any, Any]


class UnknownOperationError(NotFound):
    """There is no operation of this name."""


class CallOperation(Value):
    """Call any operation you are permitted, by its name and with the arguments its own tool takes."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] = {}
    idempotency_key: Key = omitted()


SEARCH = described_tool(
    "search_operations",
    getdoc(SearchOperations) or "",
    form_of(SearchOperations),
    answer_form(FoundOperations),
    read_only=True,
    idempotent=True,
)
CALL = described_tool("call_operation", getdoc(CallOperation) or "", form_of(CallOperation), None, destructive=True)


class Toolbox:
    """Every tool, made once and when it is first shown; what a caller sees of them is judged anew at each listing."""

    def __init__(self, operations: Iterable[Operation], service: Service, toolset: McpToolset) -> None:
        self._service = service
        self._operations = {operation.name: operation for operation in operations if operation.mcp}
        self._toolset = toolset
        self._executing: set[asyncio.Task[Executed]] = set()

    @cached_property
    def _index(self) -> Index:
        return Index.of(self._operations.values())

    async def listed(self, caller: Caller) -> list[dict[str, Any]]:
        """The tools this caller is shown, the two that reach every other one first."""
        shown = [
            operation.input
            for operation in await self._permitted(caller)
            if operation.essential or self._toolset is McpToolset.ALL
        ]
        # In a thread, because the first listing makes all tools, which takes as long as hundreds of requests.
        tools = await asyncio.to_thread(lambda: [wire_tool(input) for input in shown])
        return [wire_form(SEARCH), wire_form(CALL), *tools]

    async def call(
        self, name: str, arguments: Mapping[str, Any], caller: Caller, told: Told | None = None
    ) -> CallToolResult:
        """Call a tool; a refusal is an answer too, with the body that REST gives it. `told` hears how long work goes."""
        if name not in self._operations and name not in (SEARCH.name, CALL.name):
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {name[:200]}. Find the one you need with {SEARCH.name}.")
        started, context = time.perf_counter(), "edge"
        try:
            if name == SEARCH.name:
                status, result = 200, await self._found(arguments, caller)
            else:
                operation, arguments = self._chosen(name, arguments)
                name, context = operation.name, operation.context
                status, result = await self._carried_out(operation, arguments, caller, told)
        except Exception as error:
            refusal = as_refusal(error, caller.correlation_id)
            status, result = refusal.status, refused(error_body(refusal, context, caller.correlation_id), caller)
        observe(name, status, time.perf_counter() - started)
        return result

    async def _permitted(self, caller: Caller) -> list[Operation]:
        permitted = await self._service.authorizer.permitted(caller)
        return [op for op in self._operations.values() if op.open or op.command_name in permitted]

    async def _found(self, arguments: Mapping[str, Any], caller: Caller) -> CallToolResult:
        search = checked(SearchOperations, arguments)
        among = [op for op in await self._permitted(caller) if search.kind in (None, op.kind)]
        best = self._index.ranked(search.words, among)[: search.limit]
        found = FoundOperations(operations=tuple(self._shown(operation, search.input_schemas) for operation in best))
        return answered(found.model_dump_json(exclude_unset=True).encode(), caller)

    def _shown(self, operation: Operation, schema: bool) -> FoundOperation:
        known: dict[str, Any] = {name: getattr(operation, name) for name in ("name", "summary", "kind", "context")}
        if schema:
            known["input_schema"] = wire_tool(operation.input)["inputSchema"]
        return FoundOperation(**known)

    def _chosen(self, name: str, arguments: Mapping[str, Any]) -> tuple[Operation, Mapping[str, Any]]:
        """The operation a call is for, and its own arguments."""
        if name != CALL.name:
            return self._operations[name], arguments
        call = checked(CallOperation, arguments)
        if call.name not in self._operations:
            raise UnknownOperationError(f"There is no operation of this name; find the one you need with {SEARCH.name}.")
        if KEY not in call.model_fields_set:
            return self._operations[call.name], call.arguments
        if KEY in call.arguments:
            refuse(KEY, msg="Give the idempotency key once", type="repeated")
        return self._operations[call.name], {**call.arguments, KEY: call.idempotency_key}

    async def _carried_out(
        self, operation: Operation, arguments: Mapping[str, Any], caller: Caller, told: Told | None
    ) -> tuple[int, CallToolResult]:
        wanted = requested(operation, arguments)
        if isinstance(wanted.request, Query):
            answer = await self._service.ask(wanted.request, caller, target_id=wanted.target_id)
            return 200, answered(answer_json(answer), caller)
        done = await self._unhindered(
            self._service.execute(wanted.request, caller, target_id=wanted.target_id, key=wanted.key, told=told)
        )
        facts = {"baton/status": done.status, "baton/position": done.position}
        if done.replayed:
            facts["baton/replayed"] = True
        return done.status, answered(orjson.dumps(done.body or {}), caller, facts)

    async def _unhindered(self, execution: Coroutine[Any, Any, Executed]) -> Executed:
        """Carry out a command to its end, whatever becomes of whoever waits for it."""
        task = asyncio.create_task(execution)
        self._executing.add(task)
        task.add_done_callback(self._executed)
        return await asyncio.shield(task)

    def _executed(self, task: "asyncio.Task[Executed]") -> None:
        self._executing.discard(task)
        if not task.cancelled():
            task.exception()  # of one that nobody waits for any more there is nobody to tell


def mcp_server(toolbox: Toolbox, caller_of: Callable[[Context], Caller]) -> Server[Any]:
    """The server over these tools, for callers that the transport establishes."""

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        wanted = (context.meta or {}).get("progress_token") is not None
        told = Notifier(context.session.report_progress) if wanted else None
        return await toolbox.call(params.name, params.arguments or {}, caller_of(context), told)

    async def list_tools(context: Context, params: PaginatedRequestParams) -> dict[str, Any]:
        """One page, since many clients follow no cursor and would miss the rest."""
        if params.cursor is not None:
            raise MCPError(INVALID_PARAMS, "The list of tools is one page; ask for it without a cursor.")
        caller = caller_of(context)
        try:
            return {**wire_form(ListToolsResult(tools=[])), "tools": await toolbox.listed(caller)}
        except Exception as error:
            refusal = as_refusal(error, caller.correlation_id)
            body = error_body(refusal, "edge", caller.correlation_id)
            raise MCPError(INTERNAL_ERROR, refusal.detail, body) from error

    server: Server[Any] = Server(
        "baton",
        version=VERSION,
        title="Baton",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=no_parameter_headers,
        on_call_tool=call_tool,
    )
    server.add_request_handler("tools/list", PaginatedRequestParams, list_tools)
    return server


def no_parameter_headers(name: str) -> None:
    """No argument of a tool travels as a header too, so a call need not list the tools to check any."""


@cache
def wire_tool(input: type[Command] | type[Query]) -> dict[str, Any]:
    """The tool of an operation as it is sent; it is brought into this form once and not for each listing."""
    return wire_form(tool_of(input))


def wire_form(part: BaseModel) -> dict[str, Any]:
    """A part of the protocol as it is sent."""
    return part.model_dump(by_alias=True, mode="json", exclude_none=True)


def answered(body: bytes, caller: Caller, facts: Mapping[str, Any] | None = None) -> CallToolResult:
    """The answer that REST gives, as structure and as text; what REST says in headers is in `_meta`."""
    return CallToolResult(
        content=[TextContent(type="text", text=body.decode())],
        structured_content=orjson.loads(body),
        _meta={**(facts or {}), "baton/correlation_id": str(caller.correlation_id)},
    )


def refused(body: Mapping[str, Any], caller: Caller) -> CallToolResult:
    """A refusal, as text alone: there are clients that hold the structure of an error against the tool's output schema."""
    return CallToolResult(
        content=[TextContent(type="text", text=orjson.dumps(body).decode())],
        is_error=True,
        _meta={"baton/correlation_id": str(caller.correlation_id)},
    )
