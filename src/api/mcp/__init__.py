"""MCP: every operation of the registry as a tool for software agents, over streamable HTTP and stdio."""

from baton.api.mcp.transports import McpEndpoint, serve_stdio

__all__ = ["McpEndpoint", "serve_stdio"]
