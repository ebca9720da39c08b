"""MCP over the standard streams of a process: no token, one configured principal."""

import uuid_utils.compat
from mcp.server.stdio import stdio_server

from baton.api.mcp.server import Context, Toolbox, mcp_server
from baton.application.boot_guards import boot_objections
from baton.application.ports import Caller
from baton.application.settings import Settings
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import NIL
from baton.domain.trust.surface import SYSTEM_MCP_STDIO
from baton.infrastructure.runtime import Runtime


async def serve_stdio(settings: Settings) -> None:
    """Answer frames until the client hangs up."""
    if objections := boot_objections(settings, stdio=True):
        raise ValueError(" ".join(objections))
    principal_id = settings.mcp_stdio_principal_id or NIL

    def caller_of(context: Context) -> Caller:
        return Caller(principal_id, SYSTEM_MCP_STDIO, uuid_utils.compat.uuid7())

    async with stdio_server() as (read, write), Runtime(settings) as runtime:
        await runtime.plant_seeds()
        server = mcp_server(Toolbox(REGISTRY, runtime.service, settings.mcp_toolset), caller_of)
        await server.run(read, write, server.create_initialization_options())
