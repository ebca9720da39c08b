"""MCP: every operation of the registry as a tool for software agents, over streamable HTTP and stdio."""
