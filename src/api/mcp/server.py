"""The MCP server: the methods of the protocol, answered from tools, resources, subscriptions and prompts."""

from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError

import baton
from baton.api.edge import as_refusal
from baton.api.errors import error_body
from baton.api.mcp.confirmation import confirm
from baton.api.mcp.prompts import listed_prompts, prompt_result
from baton.api.mcp.subscriptions import SessionSubscriptions, Subscriptions
from baton.api.mcp.toolbox import Toolbox, tool_refusal, wire_json
from baton.application.caller import Caller
from baton.application.ports import WorkProgress
from baton.application.service import ProgressListener
from baton.application.settings import McpToolset
from baton.domain.shared.refusals import Refusal

INSTRUCTIONS = """\
Baton controls the operations of an experiment facility. Every operation is a tool under its own name; where your list \
does not show the one you need, search_operations finds it by what you want to do, and call_operation calls it. Text of \
an answer begins with a sentence that says what came of the call. Commands take an idempotency_key: repeat a call with \
the same key and it is carried out once; with dry_run they only say what they would record. A command answers its log \
position in _meta as baton/position; give it to a list as min_position and the list shows what you did. set_up_plan makes \
a plan that can be launched from devices and steps, in one call; list_actions has the actions of steps. A refusal says in \
detail what to do about it, and carries a machine-readable code and, where there is one, a reason. Where something looks \
unsafe, hold_everything holds all work that you may hold, queues and schedules too."""

MIN_INCREMENT = 0.001

Context = ServerRequestContext[Any, Any]
CallerOf = Callable[[Context], Caller]


def notifier(report: Callable[[float, float | None, str | None], Awaitable[None]]) -> ProgressListener:
    """Return what notifies one caller of progress; the protocol wants every value above the one before."""
    last = -MIN_INCREMENT

    async def notify(progress: WorkProgress) -> None:
        nonlocal last
        last = max(float(progress.done), last + MIN_INCREMENT)
        await report(round(last, 3), progress.total, progress.message)

    return notify


def mcp_server(
    toolbox: Toolbox,
    subscriptions: Subscriptions,
    caller_of: CallerOf,
    toolset_of: Callable[[Context], McpToolset | None] = lambda context: None,
) -> Server[Any]:
    """Return the server of these tools; the transport determines the caller, and the toolset that is asked for."""
    resources = subscriptions.resources

    async def call_tool(
        context: Context, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
        wanted = (context.meta or {}).get("progress_token") is not None
        on_progress = notifier(context.session.report_progress) if wanted else None
        caller = caller_of(context)
        try:
            confirmed = await confirm(context, params, toolbox.service, caller)
        except Refusal as refusal:
            return tool_refusal(error_body(refusal, "trust", caller.correlation_id), caller)
        if isinstance(confirmed, mcp_types.InputRequiredResult):
            return confirmed
        return await toolbox.call(confirmed.name, confirmed.arguments or {}, caller, on_progress)

    @with_protocol_errors(caller_of)
    async def list_tools(context: Context, params: mcp_types.PaginatedRequestParams) -> dict[str, Any]:
        """Return all tools on one page, because many clients follow no cursor."""
        if params.cursor is not None:
            raise MCPError(mcp_types.INVALID_PARAMS, "The list of tools is one page; ask for it without a cursor.")
        listed = await toolbox.list_tools(caller_of(context), toolset_of(context))
        return {**wire_json(mcp_types.ListToolsResult(tools=[])), "tools": listed}

    @with_protocol_errors(caller_of)
    async def list_resources(context: Context, params: object) -> mcp_types.ListResourcesResult:
        return mcp_types.ListResourcesResult(resources=await resources.live_runs(caller_of(context)))

    @with_protocol_errors(caller_of)
    async def list_templates(context: Context, params: object) -> mcp_types.ListResourceTemplatesResult:
        return mcp_types.ListResourceTemplatesResult(resource_templates=await resources.templates(caller_of(context)))

    @with_protocol_errors(caller_of)
    async def read_resource(context: Context, params: mcp_types.ReadResourceRequestParams) -> mcp_types.ReadResourceResult:
        contents = await resources.read(resources.resolve(str(params.uri)), caller_of(context))
        return mcp_types.ReadResourceResult(contents=list(contents))

    @with_protocol_errors(caller_of)
    async def listen(
        context: Context, params: mcp_types.SubscriptionsListenRequestParams
    ) -> mcp_types.SubscriptionsListenResult:
        return await subscriptions.listen(context, params.notifications.resource_subscriptions or (), caller_of(context))

    async def list_prompts(context: Context, params: object) -> mcp_types.ListPromptsResult:
        return mcp_types.ListPromptsResult(prompts=listed_prompts())

    async def get_prompt(context: Context, params: mcp_types.GetPromptRequestParams) -> mcp_types.GetPromptResult:
        return prompt_result(params.name, params.arguments or {})

    server: Server[object] = Server(
        "baton",
        version=baton.__version__,
        title="Baton",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=lambda name: None,  # no argument is sent as a header too, so none has to be checked
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscriptions_listen=listen,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
    server.add_request_handler("tools/list", mcp_types.PaginatedRequestParams, list_tools)
    return server


def serve_session_subscriptions(server: Server[object], sessions: SessionSubscriptions, caller_of: CallerOf) -> None:
    """Let the one client of a server subscribe to resources as the protocol had it before 2026."""

    @with_protocol_errors(caller_of)
    async def subscribe(context: Context, params: mcp_types.SubscribeRequestParams) -> mcp_types.EmptyResult:
        await sessions.subscribe(context, str(params.uri), caller_of(context))
        return mcp_types.EmptyResult()

    async def unsubscribe(context: Context, params: mcp_types.UnsubscribeRequestParams) -> mcp_types.EmptyResult:
        sessions.unsubscribe(str(params.uri))
        return mcp_types.EmptyResult()

    server.add_request_handler("resources/subscribe", mcp_types.SubscribeRequestParams, subscribe)
    server.add_request_handler("resources/unsubscribe", mcp_types.UnsubscribeRequestParams, unsubscribe)


def with_protocol_errors(
    caller_of: CallerOf,
) -> Callable[[Callable[[Context, Any], Awaitable[Any]]], Callable[[Context, Any], Any]]:
    """Return a decorator of handlers: a refusal becomes an error of the protocol that carries the body REST gives it."""

    def decorate(handler: Callable[[Context, object], Awaitable[object]]) -> Callable[[Context, object], object]:
        async def handle(context: Context, params: object) -> object:
            try:
                return await handler(context, params)
            except MCPError:
                raise
            except Exception as error:
                correlation_id = caller_of(context).correlation_id
                refusal = as_refusal(error, correlation_id)
                code = mcp_types.INVALID_PARAMS if refusal.status < 500 else mcp_types.INTERNAL_ERROR
                raise MCPError(code, refusal.detail, error_body(refusal, "edge", correlation_id)) from error

        return handle

    return decorate
