"""Agents as they come to the service: the SDK's own client over a real socket."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ImageContent, ResourceContents

from baton.api.mcp.sentences import DATA_BEGINS, DATA_ENDS
from baton.domain.contexts import REGISTRY
from tests.support.service import Api

MCP = "00000000-0000-0000-0000-000000000022"
OPEN = {operation.name for operation in REGISTRY if operation.open}
FRAME = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@asynccontextmanager
async def agent(api: Api, mode: str = "auto", toolset: str = "", ask: Any = None, **headers: str) -> AsyncIterator[Client]:
    """A client connected to `/mcp` as the principal of `api`, with this toolset; it asks its person by `ask`, if at all."""
    address = f"{api.base_url}/mcp" + (f"?toolset={toolset}" if toolset else "")
    async with (
        httpx2.AsyncClient(headers={**api.headers, **headers}, timeout=30, verify=False) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode, elicitation_callback=ask) as client,
    ):
        yield client


async def tool_result(client: Client, tool: str, **arguments: Any) -> Any:
    """What a tool that must succeed answers; its text says the same, after a sentence."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    assert json_of(result) == result.structured_content
    return result.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The error body of a tool that must refuse."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, text_of(result)
    assert result.structured_content is None
    assert sentence_of(result).startswith("Refused: ")
    return dict(json_of(result))


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert content.type == "text"
    return content.text


def sentence_of(result: CallToolResult) -> str:
    """The sentence that an answer begins with."""
    return text_of(result).split("\n", 1)[0]


def json_of(result: CallToolResult) -> Any:
    """The JSON that follows the sentence of an answer."""
    _, begins, *data = text_of(result).split("\n")
    if not data:
        return json.loads(begins)  # an empty answer has nothing to mark
    text, ends = data
    assert (begins, ends) == (DATA_BEGINS, DATA_ENDS)
    return json.loads(text)


def document_of(result: CallToolResult) -> ResourceContents | ImageContent:
    """The file that a tool answered, after a sentence."""
    sentence, content, ends = result.content
    assert (sentence.type, ends.type) == ("text", "text")
    assert (sentence.text.split("\n")[1], ends.text) == (DATA_BEGINS, DATA_ENDS)
    if content.type == "image":
        return content
    assert content.type == "resource"
    return content.resource


async def send_frame(api: Api, method: str, params: dict[str, Any] | None = None, **headers: str) -> Any:
    """The HTTP answer to one bare frame, without any handshake before it."""
    frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await api.request("POST", "/mcp", content=json.dumps(frame), headers={**FRAME, **named})


async def call_tool_once(api: Api, tool: str, **arguments: Any) -> CallToolResult:
    """What a tool answers to one bare frame: for tests that call many, since a handshake costs more than a call."""
    answer = await send_frame(api, "tools/call", {"name": tool, "arguments": arguments})
    return CallToolResult.model_validate(answer.json()["result"])
