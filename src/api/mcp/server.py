"""The MCP server: lists the tools that a caller may use, and calls them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import cache, cached_property
from inspect import getdoc
from typing import Annotated, Any

import mcp_types
import orjson
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, Field

import baton
from baton.api.edge import as_refusal
from baton.api.errors import error_body
from baton.api.mcp import tools
from baton.api.mcp.search import FoundOperation, FoundOperations, Index, SearchOperations
from baton.api.metrics import observe
from baton.api.rest import answer_json
from baton.application.ports import Caller, CommandResult, WorkProgress
from baton.application.service import ProgressListener, Service
from baton.application.settings import McpToolset
from baton.domain.kernel import Command, Document, Query, Value, omittable
from baton.domain.registry import Operation
from baton.domain.shared.refusals import NotFound

INSTRUCTIONS = """\
Baton controls the operations of an experiment facility. Every operation is a tool under its own name; where your list does \
not show the one you need, search_operations finds it and call_operation calls it. Commands take an idempotency_key: repeat \
a call with the same key and it is carried out once. A command answers its log position in _meta as baton/position; give it \
to a list as min_position and the list shows what you did. A refusal says in detail what to do about it, and carries a \
machine-readable code and, where there is one, a reason."""

MIN_INCREMENT = 0.001

Context = ServerRequestContext[Any, Any]


class UnknownOperationError(NotFound):
    """There is no operation of this name."""


class CallOperation(Value):
    """Call any operation you are permitted, by its name and with the arguments its own tool takes."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] = {}
    idempotency_key: tools.Key = omittable()


SEARCH_FORMS = tools.model_schema(SearchOperations), tools.answer_schema(FoundOperations)
SEARCH_HELP = getdoc(SearchOperations) or ""
SEARCH = tools.make_tool("search_operations", SEARCH_HELP, *SEARCH_FORMS, read_only=True, idempotent=True)
CALL = tools.make_tool(
    "call_operation", getdoc(CallOperation) or "", tools.model_schema(CallOperation), None, destructive=True
)


class Toolbox:
    """All tools, each made when it is first listed; each listing checks again what the caller may use."""

    def __init__(self, operations: Iterable[Operation], service: Service, toolset: McpToolset) -> None:
        self._service = service
        self._operations = {operation.name: operation for operation in operations if operation.mcp}
        self._toolset = toolset
        self._executing: set[asyncio.Task[CommandResult]] = set()

    @cached_property
    def _index(self) -> Index:
        return Index.of(self._operations.values())

    async def list_tools(self, caller: Caller) -> list[dict[str, Any]]:
        """Return the tools this caller sees; the first two reach every other one."""
        every = self._toolset is McpToolset.ALL
        inputs = [operation.input for operation in await self._permitted_operations(caller) if operation.essential or every]
        # In a thread, because the first listing makes all tools, which takes as long as hundreds of requests.
        listed = await asyncio.to_thread(lambda: [wire_tool(input) for input in inputs])
        return [wire_json(SEARCH), wire_json(CALL), *listed]

    async def call(
        self, name: str, arguments: Mapping[str, Any], caller: Caller, on_progress: ProgressListener | None = None
    ) -> CallToolResult:
        """Call a tool; a refusal is an answer with the same body as over REST."""
        if name not in self._operations and name not in (SEARCH.name, CALL.name):
            detail = f"Unknown tool: {name[:200]}. Find the one you need with {SEARCH.name}."
            raise MCPError(mcp_types.INVALID_PARAMS, detail)
        started, context = time.perf_counter(), "edge"
        try:
            if name == SEARCH.name:
                status, result = 200, await self._search(arguments, caller)
            else:
                operation, arguments = self._resolve(name, arguments)
                name, context = operation.name, operation.context
                status, result = await self._execute(operation, arguments, caller, on_progress)
        except Exception as error:
            refusal = as_refusal(error, caller.correlation_id)
            status, result = refusal.status, tool_refusal(error_body(refusal, context, caller.correlation_id), caller)
        observe(name, status, time.perf_counter() - started)
        return result

    async def _permitted_operations(self, caller: Caller) -> list[Operation]:
        permitted = await self._service.authorizer.permitted_commands(caller)
        return [op for op in self._operations.values() if op.open or op.command_name in permitted]

    async def _search(self, arguments: Mapping[str, Any], caller: Caller) -> CallToolResult:
        search = tools.validate_arguments(SearchOperations, arguments)
        among = [op for op in await self._permitted_operations(caller) if search.kind in (None, op.kind)]
        best = self._index.rank(search.words, among)[: search.limit]
        found = FoundOperations(operations=tuple(self._summary(operation, search.input_schemas) for operation in best))
        return tool_answer(found.model_dump_json(exclude_unset=True).encode(), caller)

    def _summary(self, operation: Operation, schema: bool) -> FoundOperation:
        known: dict[str, Any] = {name: getattr(operation, name) for name in ("name", "summary", "kind", "context")}
        if schema:
            known["input_schema"] = wire_tool(operation.input)["inputSchema"]
        return FoundOperation(**known)

    def _resolve(self, name: str, arguments: Mapping[str, Any]) -> tuple[Operation, Mapping[str, Any]]:
        """Return the operation of a call and its own arguments."""
        if name != CALL.name:
            return self._operations[name], arguments
        call = tools.validate_arguments(CallOperation, arguments)
        if call.name not in self._operations:
            raise UnknownOperationError(f"There is no operation of this name; find the one you need with {SEARCH.name}.")
        if tools.KEY not in call.model_fields_set:
            return self._operations[call.name], call.arguments
        if tools.KEY in call.arguments:
            tools.refuse_arguments(tools.KEY, msg="Give the idempotency key once", type="repeated")
        return self._operations[call.name], {**call.arguments, tools.KEY: call.idempotency_key}

    async def _execute(
        self, operation: Operation, arguments: Mapping[str, Any], caller: Caller, on_progress: ProgressListener | None
    ) -> tuple[int, CallToolResult]:
        request, target_id, key = tools.tool_request(operation, arguments)
        if isinstance(request, Query):
            answer = await self._service.ask(request, caller, target_id=target_id)
            if isinstance(answer, Document):
                return 200, document_answer(answer, caller)
            return 200, tool_answer(answer_json(answer), caller)
        execution = self._service.execute(request, caller, target_id=target_id, key=key, on_progress=on_progress)
        done = await self._run_to_end(execution)
        facts = {"baton/status": done.status, "baton/position": done.position}
        if done.replayed:
            facts["baton/replayed"] = True
        return done.status, tool_answer(orjson.dumps(done.body or {}), caller, facts)

    async def _run_to_end(self, execution: Coroutine[Any, Any, CommandResult]) -> CommandResult:
        """Execute a command to its end, even if its caller stops waiting."""
        task = asyncio.create_task(execution)
        self._executing.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: "asyncio.Task[CommandResult]") -> None:
        self._executing.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log what nobody waits for


def notifier(report: Callable[[float, float | None, str | None], Awaitable[None]]) -> ProgressListener:
    """Return what notifies one caller of progress; the protocol wants every value above the one before."""
    last = -MIN_INCREMENT

    async def notify(progress: WorkProgress) -> None:
        nonlocal last
        last = max(float(progress.done), last + MIN_INCREMENT)
        await report(round(last, 3), progress.total, progress.message)

    return notify


def mcp_server(toolbox: Toolbox, caller_of: Callable[[Context], Caller]) -> Server[Any]:
    """Return the server of these tools; the transport determines the caller."""

    async def call_tool(context: Context, params: mcp_types.CallToolRequestParams) -> CallToolResult:
        wanted = (context.meta or {}).get("progress_token") is not None
        on_progress = notifier(context.session.report_progress) if wanted else None
        return await toolbox.call(params.name, params.arguments or {}, caller_of(context), on_progress)

    async def list_tools(context: Context, params: mcp_types.PaginatedRequestParams) -> dict[str, Any]:
        """Return all tools on one page, because many clients follow no cursor."""
        if params.cursor is not None:
            raise MCPError(mcp_types.INVALID_PARAMS, "The list of tools is one page; ask for it without a cursor.")
        caller = caller_of(context)
        try:
            return {**wire_json(mcp_types.ListToolsResult(tools=[])), "tools": await toolbox.list_tools(caller)}
        except Exception as error:
            refusal = as_refusal(error, caller.correlation_id)
            body = error_body(refusal, "edge", caller.correlation_id)
            raise MCPError(mcp_types.INTERNAL_ERROR, refusal.detail, body) from error

    server: Server[Any] = Server(
        "baton",
        version=baton.__version__,
        title="Baton",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=lambda name: None,  # no argument is sent as a header too, so none has to be checked
        on_call_tool=call_tool,
    )
    server.add_request_handler("tools/list", mcp_types.PaginatedRequestParams, list_tools)
    return server


@cache
def wire_tool(input: type[Command] | type[Query]) -> dict[str, Any]:
    """Return the tool of an operation as JSON data; cached, because listings are frequent."""
    return wire_json(tools.tool_of(input))


def wire_json(part: BaseModel) -> dict[str, Any]:
    """Return a part of the protocol as JSON data."""
    return part.model_dump(by_alias=True, mode="json", exclude_none=True)


def tool_answer(body: bytes, caller: Caller, facts: Mapping[str, Any] | None = None) -> CallToolResult:
    """Return the answer that REST gives, as structure and as text; REST headers become `_meta`."""
    return CallToolResult(
        content=[TextContent(type="text", text=body.decode())],
        structured_content=orjson.loads(body),
        _meta={**(facts or {}), "baton/correlation_id": str(caller.correlation_id)},
    )


def document_answer(document: Document, caller: Caller) -> CallToolResult:
    """Return a document as a resource with its media type, and as a structure too where it is JSON."""
    resource = mcp_types.TextResourceContents(
        uri=f"baton:document/{caller.correlation_id}", mime_type=document.media_type, text=document.content.decode()
    )
    return CallToolResult(
        content=[mcp_types.EmbeddedResource(type="resource", resource=resource)],
        structured_content=orjson.loads(document.content) if document.media_type.endswith("json") else None,
        _meta={"baton/correlation_id": str(caller.correlation_id)},
    )


def tool_refusal(body: Mapping[str, Any], caller: Caller) -> CallToolResult:
    """Return a refusal as text alone, because some clients check structured errors against the output schema."""
    text = TextContent(type="text", text=orjson.dumps(body).decode())
    return CallToolResult(content=[text], is_error=True, _meta={"baton/correlation_id": str(caller.correlation_id)})
