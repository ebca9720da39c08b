"""Where a stack that came up is found: before anything of it was killed, it is ready and says so."""

from tests.support.stack import Stack, eventually


def test_up_serves_and_says_where(stack: Stack) -> None:
    url = stack.address("url")
    assert stack.client.get("/health").json() == {"status": "ok"}
    ready = {"status": "ready", "actuation": "inert"}
    eventually(lambda: stack.client.get("/readyz").json() == ready, what=stack.output)
    for line in (f"API          {url}", f"API docs     {url}/docs", f"MCP          {url}/mcp", "Temporal UI  http://"):
        assert line in stack.output()
    assert (stack.directory / "stack.json").stat().st_mode & 0o077 == 0
