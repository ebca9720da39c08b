"""The tools of the service as one caller may use them: which are listed, how they are found, and how they are called."""

import asyncio
import time
from base64 import b64encode
from collections.abc import Coroutine, Iterable, Mapping
from functools import cache, cached_property
from inspect import getdoc
from typing import Annotated, Any

import mcp_types
import orjson
from mcp.shared.exceptions import MCPError
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel, Field

from baton.api.argument_help import with_help
from baton.api.edge import as_refusal
from baton.api.errors import RequestValidationError, error_body
from baton.api.mcp import sentences, tools
from baton.api.mcp.search import FoundOperation, FoundOperations, Index, SearchOperations
from baton.api.mcp.slim_schemas import found_schema
from baton.api.mcp.toolsets import shows
from baton.api.metrics import observe
from baton.api.rest import answer_json
from baton.api.schemas import model_schema
from baton.application.caller import Caller
from baton.application.ports import CommandResult
from baton.application.service import ProgressListener, Service
from baton.application.settings import McpToolset
from baton.domain.kernel import Command, Document, Query, Value, omittable
from baton.domain.registry import Operation
from baton.domain.shared.refusals import NotFound

LARGEST_PAGE = 64 * 1024  # bytes of a page of a list; a longer one is asked for again with fewer items
SUGGESTIONS = 3
IMAGES = ("image/png",)  # the pictures that models look at
BINARY = ("application/zip",)  # documents that are no text


class UnknownOperationError(NotFound):
    """There is no operation of this name."""


class CallOperation(Value):
    """Call any operation you are permitted, by its name and with the arguments its own tool takes."""

    name: Annotated[str, Field(min_length=1, max_length=200, description="As search_operations names it.")]
    arguments: Annotated[dict[str, Any], Field(description="Those of the operation itself.")] = {}
    idempotency_key: tools.Key = omittable()


SEARCH_HELP = getdoc(SearchOperations) or ""
SEARCH = tools.make_tool("search_operations", SEARCH_HELP, tools.tool_schema(model_schema(SearchOperations)))
CALL_HELP = f'{getdoc(CallOperation)}\n\nExample: {{"name":"list_zones","arguments":{{"limit":10}}}}'
CALL_FORM = tools.tool_schema(model_schema(CallOperation))
CALL = tools.make_tool("call_operation", CALL_HELP, CALL_FORM, changes=True, destructive=True)


class Toolbox:
    """All tools, each made when it is first listed; each listing checks again what the caller may use."""

    def __init__(self, operations: Iterable[Operation], service: Service, toolset: McpToolset) -> None:
        self._service = service
        self._operations = {operation.name: operation for operation in operations if operation.mcp}
        self._toolset = toolset
        self._executing: set[asyncio.Task[CommandResult]] = set()

    @property
    def operations(self) -> Mapping[str, Operation]:
        """Every operation that agents may be permitted, by its name."""
        return self._operations

    @property
    def service(self) -> Service:
        """The service that carries calls out."""
        return self._service

    @cached_property
    def _index(self) -> Index:
        return Index(self._operations.values())

    async def _rank(self, words: str, among: Iterable[Operation]) -> list[Operation]:
        """Return the operations that a text may mean, best first; in a thread, because the first search makes the index."""
        return await asyncio.to_thread(lambda: self._index.rank(words, among))

    async def list_tools(self, caller: Caller, toolset: McpToolset | None = None) -> list[dict[str, Any]]:
        """Return the tools of a set that this caller may use; the first two reach every other one."""
        chosen = toolset or self._toolset
        inputs = [one.input for one in await self._permitted_operations(caller) if shows(chosen, one.name)]
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
                operation, arguments = await self._resolve(name, arguments, caller)
                name, context = operation.name, operation.context
                status, result = await self._execute(operation, arguments, caller, on_progress)
        except Exception as error:
            refusal = as_refusal(error, caller.correlation_id)
            status, result = refusal.status, tool_refusal(error_body(refusal, context, caller.correlation_id), caller)
        observe(name, status, time.perf_counter() - started)
        return result

    async def _permitted_operations(self, caller: Caller) -> list[Operation]:
        authorizer = self._service.authorizer
        permitted = await authorizer.permitted_commands(caller) | (await authorizer.access(caller)).with_approval
        return [op for op in self._operations.values() if op.open or op.command_name in permitted]

    async def _search(self, arguments: Mapping[str, object], caller: Caller) -> CallToolResult:
        search = tools.validate_arguments(SearchOperations, arguments)
        among = [op for op in await self._permitted_operations(caller) if search.kind in (None, op.kind)]
        best = (await self._rank(search.words, among))[: search.limit]
        found = FoundOperations(operations=tuple(self._summary(operation, search) for operation in best))
        said = f"The best match is {best[0].name}: {best[0].summary}" if best else "No operation that you may call matches."
        return tool_answer(said, found.model_dump_json(exclude_unset=True).encode(), caller)

    def _summary(self, operation: Operation, search: SearchOperations) -> FoundOperation:
        known: dict[str, Any] = {name: getattr(operation, name) for name in ("name", "summary", "kind", "context")}
        if operation.example is not None:
            known["example"] = operation.example
        known["needed"], known["optional"] = tools.argument_names(operation.input)
        if search.input_schemas or search.part is not None:
            known["input_schema"] = found_schema(tools.arguments_schema(operation), search.part)
        return FoundOperation(**known)

    async def _resolve(
        self, name: str, arguments: Mapping[str, object], caller: Caller
    ) -> tuple[Operation, Mapping[str, object]]:
        """Return the operation of a call and its own arguments."""
        if name != CALL.name:
            return self._operations[name], arguments
        call = tools.validate_arguments(CallOperation, arguments)
        if call.name not in self._operations:
            best = (await self._rank(call.name, await self._permitted_operations(caller)))[:SUGGESTIONS]
            meant = f"; did you mean {' or '.join(one.name for one in best)}?" if best else "."
            raise UnknownOperationError(f"There is no operation of this name{meant} Find others with {SEARCH.name}.")
        if tools.KEY not in call.model_fields_set:
            return self._operations[call.name], call.arguments
        if tools.KEY in call.arguments:
            tools.refuse_arguments(tools.KEY, msg="Give the idempotency key once", type="repeated")
        return self._operations[call.name], {**call.arguments, tools.KEY: call.idempotency_key}

    async def _execute(
        self, operation: Operation, arguments: Mapping[str, object], caller: Caller, on_progress: ProgressListener | None
    ) -> tuple[int, CallToolResult]:
        try:
            asked = tools.tool_request(operation, arguments)
        except RequestValidationError as error:
            raise await with_help(error, operation, self._service, caller) from None
        if isinstance(asked.input, Query):
            return 200, await self._answer_query(operation, asked.input, asked, caller)
        if asked.dry_run:
            rehearsed = await self._service.dry_run(asked.input, caller, target_id=asked.target_id)
            body = rehearsed.model_dump_json().encode()
            said = sentences.dry_run_sentence(operation, orjson.loads(body))
            return 200, tool_answer(said, body, caller, {"baton/dry_run": True})
        execution = self._service.execute(
            asked.input, caller, target_id=asked.target_id, key=asked.key, on_progress=on_progress
        )
        done = await self._run_to_end(execution)
        facts = {"baton/status": done.status, "baton/position": done.position}
        if done.replayed:
            facts["baton/replayed"] = True
        body = orjson.dumps(done.body or {})
        said = sentences.command_sentence(operation, orjson.loads(body), done.status, replayed=done.replayed)
        return done.status, tool_answer(said, body, caller, facts)

    async def _answer_query(
        self, operation: Operation, query: Query, asked: tools.ToolRequest, caller: Caller
    ) -> CallToolResult:
        """Return what a query answers; a page that is too long is asked for again with fewer items, at least one."""
        while True:
            answer = (await self._service.show(query, caller, target_id=asked.target_id)).shown
            document = answer if isinstance(answer, Document) else None
            body = answer_json(answer) if document is None else document.content
            limit = getattr(query, "limit", 1) if "cursor" in type(query).model_fields else 1
            if len(body) <= LARGEST_PAGE or limit <= 1:
                if document is not None:
                    return document_answer(document, caller)
                return tool_answer(sentences.query_sentence(operation, orjson.loads(body)), body, caller)
            shown = min(limit, max(1, len(orjson.loads(body)["items"] if document is None else body.splitlines())))
            query = query.model_copy(update={"limit": max(1, shown * LARGEST_PAGE // (len(body) + LARGEST_PAGE // 8))})

    async def _run_to_end(self, execution: Coroutine[object, object, CommandResult]) -> CommandResult:
        """Execute a command to its end, even if its caller stops waiting."""
        task = asyncio.create_task(execution)
        self._executing.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: "asyncio.Task[CommandResult]") -> None:
        self._executing.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log what nobody waits for


@cache
def wire_tool(input: type[Command] | type[Query]) -> dict[str, Any]:
    """Return the tool of an operation as JSON data; cached, because listings are frequent."""
    return wire_json(tools.tool_of(input))


def wire_json(part: BaseModel) -> dict[str, Any]:
    """Return a part of the protocol as JSON data."""
    return part.model_dump(by_alias=True, mode="json", exclude_none=True)


def tool_answer(said: str, body: bytes, caller: Caller, facts: Mapping[str, object] | None = None) -> CallToolResult:
    """Return the answer that REST gives, as structure and, after a sentence, as text; REST headers become `_meta`."""
    return CallToolResult(
        content=[TextContent(type="text", text=sentences.with_data(said, body))],
        structured_content=orjson.loads(body),
        _meta={**(facts or {}), "baton/correlation_id": str(caller.correlation_id)},
    )


def document_answer(document: Document, caller: Caller) -> CallToolResult:
    """Return a document as an image or as a resource with its media type, and as a structure too where it is JSON."""
    said = sentences.document_sentence(document.media_type, len(document.content), document.next_cursor)
    return CallToolResult(
        content=[
            TextContent(type="text", text=f"{said}\n{sentences.DATA_BEGINS}"),
            document_content(document, caller),
            TextContent(type="text", text=sentences.DATA_ENDS),
        ],
        structured_content=orjson.loads(document.content) if document.media_type.endswith("json") else None,
        _meta={"baton/correlation_id": str(caller.correlation_id)},
    )


def document_content(document: Document, caller: Caller) -> ContentBlock:
    """Return what a document holds, in the form that the protocol has for its kind."""
    if document.media_type in IMAGES:
        return ImageContent(type="image", data=b64encode(document.content).decode(), mime_type=document.media_type)
    address = f"baton:document/{caller.correlation_id}"
    if document.media_type in BINARY:
        blob = b64encode(document.content).decode()
        return EmbeddedResource(
            type="resource", resource=BlobResourceContents(uri=address, mime_type=document.media_type, blob=blob)
        )
    text = TextResourceContents(uri=address, mime_type=document.media_type, text=document.content.decode())
    return EmbeddedResource(type="resource", resource=text)


def tool_refusal(body: Mapping[str, object], caller: Caller) -> CallToolResult:
    """Return a refusal as text alone: a sentence, and the body that REST gives it."""
    text = TextContent(type="text", text=sentences.with_data(sentences.refusal_sentence(body), orjson.dumps(body)))
    return CallToolResult(content=[text], is_error=True, _meta={"baton/correlation_id": str(caller.correlation_id)})
