"""A client written with release 1 of the Python SDK; it runs in an environment of its own, prints what it saw, and ends.

python mcp_client_1x.py <url> <headers as JSON> <procedure id>
"""

# mypy: ignore-errors
# It is checked by running it: this environment has another release of the SDK.

import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def see(url: str, headers: dict[str, str], procedure_id: str) -> dict[str, Any]:
    """What this client meets: tools, an answer, a refusal, progress, resources and prompts."""
    progress: list[str] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        progress.append(message or "")

    async with streamablehttp_client(url, headers=headers) as (read, write, _), ClientSession(read, write) as session:
        begun = await session.initialize()
        tools = await session.list_tools()
        called = await session.call_tool("search_operations", {"words": "pause the scan", "limit": 1})
        refused = await session.call_tool("get_run", {"run_id": "Load step 1"})
        steps = [{"kind": "setpoint", "address": "a", "value": value} for value in (1, 2, 3)]
        arguments = {"procedure_id": procedure_id, "steps": steps, "wait": 30}
        conducted = await session.call_tool("conduct_procedure", arguments, progress_callback=note)
        templates = await session.list_resource_templates()
        looked = await session.read_resource(f"baton://procedures/{procedure_id}/conduct")
        prompt = await session.get_prompt("explain_refusal", {"code": "RunCannotResumeError"})
    return {
        "server": begun.serverInfo.name,
        "tools": [tool.name for tool in tools.tools],
        "found": called.structuredContent["operations"][0]["name"],
        "refusal": refused.content[0].text if refused.isError else None,
        "conducted": conducted.structuredContent,
        "sentence": conducted.content[0].text.split("\n")[0],
        "progress": progress,
        "templates": [template.uriTemplate for template in templates.resourceTemplates],
        "looked": json.loads(looked.contents[0].text)["status"],
        "prompt": prompt.messages[0].content.text,
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(see(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]))))
