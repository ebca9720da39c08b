"""A process of a running stack killed: it is started again, and the service goes on. The API has a test of its own."""

import pytest

from tests.support.stack import Stack, eventually


@pytest.mark.parametrize("name", ["worker", "projector", "temporal", "postgres", "loader"])
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
    assert stack.process.is_alive()


def test_what_forks_the_pieces_has_nothing_that_a_fork_could_break(stack: Stack) -> None:
    loader = stack.piece("loader")
    assert loader.num_threads() == 1
    assert not loader.net_connections("tcp")
    assert {child.name() for child in loader.children()} == {"baton api", "baton worker", "baton projector"}
    assert [" ".join(child.cmdline()).split()[:2] for child in loader.children()] == [
        child.name().split() for child in loader.children()
    ]


def test_a_piece_that_is_killed_is_back_for_less_than_a_second_of_processor_time(stack: Stack) -> None:
    api = stack.kill("api")
    eventually(lambda: stack.client.get("/readyz").status_code == 200, what=stack.output)
    spent = api.cpu_times()
    assert spent.user + spent.system < 1, spent
