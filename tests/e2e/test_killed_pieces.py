"""Any process of a running stack killed at any moment: it is started again, and the service goes on."""

import httpx
import pytest

from tests.support.stack import DEADLINE, Stack, eventually


@pytest.mark.parametrize("name", ["api", "worker", "projector", "temporal", "postgres"])
def test_a_killed_piece_is_started_again_and_the_service_goes_on(stack: Stack, name: str) -> None:
    stack.kill(name)
    if name == "api":
        health = httpx.get(f"{stack.place('url')}/health", timeout=DEADLINE)
        assert health.status_code == 200, "a request that comes while the API is away waits for it"

    def acknowledged() -> str | None:
        answer = stack.client.post("/actors", json={"name": f"Registered after the {name} was killed"})
        return answer.headers.get("X-Baton-Position") if answer.status_code == 201 else None

    position = eventually(acknowledged, what=stack.said)

    def listed() -> bool:
        answer = stack.client.get("/actors", params={"min_position": position, "order": "desc", "limit": 1})
        return answer.status_code == 200 and answer.json()["items"][0]["name"].endswith(f"the {name} was killed")

    eventually(listed, what=stack.said)
    assert stack.process.poll() is None
