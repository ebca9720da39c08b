"""The life of `baton up`: it comes up whole, goes down in order, leaves nobody behind and finds everything again."""

import signal
import socket
from pathlib import Path

from tests.support.stack import Stack, alive, eventually, running_stack


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def newest_position(stack: Stack) -> int:
    answer = stack.client.post("/actors", json={"name": "Probe"})
    return int(answer.headers["X-Baton-Position"])


def test_up_serves_and_says_where(stack: Stack) -> None:
    url = stack.place("url")
    assert stack.client.get("/health").json() == {"status": "ok"}
    ready = {"status": "ready", "actuation": "inert"}
    eventually(lambda: stack.client.get("/readyz").json() == ready, what=stack.said)
    for line in (f"API          {url}", f"API docs     {url}/docs", f"MCP          {url}/mcp", "Temporal UI  http://"):
        assert line in stack.said()
    assert (stack.directory / "stack.json").stat().st_mode & 0o077 == 0


def test_what_was_done_is_there_after_a_kill_and_numbers_go_on_until_it_is_stopped(tmp_path: Path) -> None:
    with running_stack(tmp_path) as stack:
        mira = stack.create("/actors", {"name": "Mira Okafor"})
        before, children, ports = newest_position(stack), stack.children(), stack.ports
        stack.process.kill()
        stack.process.wait()
    with running_stack(tmp_path, ports) as stack:
        assert stack.ports == ports
        assert stack.client.get(f"/actors/{mira}").json()["name"] == "Mira Okafor"
        assert [child for child in children if alive(child)] == [], "a killed parent takes everybody with it"
        assert newest_position(stack) > before
        listed = stack.client.get("/actors", params={"min_position": before}).json()["items"]
        assert mira in [actor["actor_id"] for actor in listed]
        assert stack.end(signal.SIGTERM) == []
        assert stack.process.returncode == 0
        assert stack.said().splitlines()[-1] == "stopping"
        assert [port for port in ports if not is_free(port)] == []
        assert not (tmp_path / "stack.json").exists()
