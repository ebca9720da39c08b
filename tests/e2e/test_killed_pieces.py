"""A process of a running stack killed: it is started again, and the service goes on. The API has a test of its own."""

import pytest

from tests.support.stack import Stack, eventually


@pytest.mark.parametrize("name", ["worker", "projector", "temporal", "postgres"])
def test_a_killed_piece_is_started_again_and_the_service_goes_on(stack: Stack, name: str) -> None:
    stack.kill(name)

    def acknowledged_position() -> str | None:
        answer = stack.client.post("/actors", json={"name": f"Registered after the {name} was killed"})
        return answer.headers.get("X-Baton-Position") if answer.status_code == 201 else None

    position = eventually(acknowledged_position, what=stack.output)

    def is_listed() -> bool:
        answer = stack.client.get("/actors", params={"min_position": position, "order": "desc", "limit": 1})
        return answer.status_code == 200 and answer.json()["items"][0]["name"].endswith(f"the {name} was killed")

    eventually(is_listed, what=stack.output)
    assert stack.process.poll() is None
