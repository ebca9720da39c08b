"""MCP: every operation of the registry as a tool for software agents, over streamable HTTP and stdio."""

from baton.api.mcp.http import McpEndpoint
from baton.api.mcp.stdio import serve_stdio

__all__ = ["McpEndpoint", "serve_stdio"]
