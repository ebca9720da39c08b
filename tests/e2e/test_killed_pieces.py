"""Any process of a running stack killed at any moment: it is started again, and the service goes on."""

from pathlib import Path

import httpx
import pytest

from tests.support.stack import DEADLINE, Stack, alive, eventually


@pytest.mark.parametrize("name", ["api", "worker", "projector", "temporal", "postgres"])
def test_a_killed_piece_is_started_again_and_the_service_goes_on(stack: Stack, name: str) -> None:
    stack.kill(name)

    def acknowledged() -> str | None:
        answer = stack.client.post("/actors", json={"name": f"Registered after the {name} was killed"})
        return answer.headers.get("X-Baton-Position") if answer.status_code == 201 else None

    position = eventually(acknowledged, what=stack.said)

    def listed() -> bool:
        answer = stack.client.get("/actors", params={"min_position": position, "order": "desc", "limit": 1})
        return answer.status_code == 200 and answer.json()["items"][0]["name"].endswith(f"the {name} was killed")

    eventually(listed, what=stack.said)
    assert stack.process.poll() is None


def test_requests_that_come_while_the_api_is_away_wait_for_it(stack: Stack) -> None:
    api = stack.piece("api")
    api.kill()
    eventually(lambda: not alive(api))
    assert httpx.get(f"{stack.place('url')}/health", timeout=DEADLINE).status_code == 200


def test_pieces_that_are_killed_while_everything_comes_up_are_started_again(tmp_path: Path) -> None:
    stack = Stack(tmp_path, {})
    try:
        for name in ("postgres", "api", "worker"):
            stack.kill(name)
        stack.ready()
        assert stack.client.get("/readyz").status_code == 200
        assert "(killed by SIGKILL" in stack.said()
    finally:
        stack.remove()
