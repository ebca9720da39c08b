"""Operating a running stack with the commands beside it."""

import threading
from uuid import uuid4

import psycopg

from tests.support.stack import Stack, eventually, run_baton


def test_the_doctor_sees_a_stopped_projector(stack: Stack) -> None:
    projector = stack.piece("projector")
    projector.suspend()
    try:
        stack.create("/actors", {"name": "Unseen"})
        ran = eventually(
            lambda: (
                (found := run_baton("doctor", "--only=projections", f"--data-dir={stack.directory}")).stdout[:2] != "ok"
                and found
            )
        )
        assert ran
        assert "The projections are 1 events behind by" in ran.stdout
    finally:
        projector.resume()


def test_the_catalog_is_loaded_into_the_running_stack_and_left_alone_the_second_time(stack: Stack) -> None:
    once, again = (run_baton("catalog", "load", f"--data-dir={stack.directory}") for _ in "12")
    assert (once.returncode, again.returncode) == (0, 0), (once, again)
    assert again.stdout.endswith(": 0 defined, 27 found and left alone.\n")
    assert len(stack.client.get("/families", params={"limit": 100}).json()["items"]) >= 20


def test_projections_are_rebuilt_while_the_service_writes_and_lists(stack: Stack) -> None:
    named: set[str] = set()
    stopping = threading.Event()
    lists: list[int] = []

    def work() -> None:
        while not stopping.is_set():
            name = f"Rebuilt {uuid4()}"
            if stack.client.post("/actors", json={"name": name}).status_code == 201:
                named.add(name)
            lists.append(stack.client.get("/actors", params={"limit": 1}).status_code)

    working = threading.Thread(target=work)
    working.start()
    try:
        ran = run_baton("projections", "rebuild", "proj_access_actor_summary", f"--data-dir={stack.directory}")
    finally:
        stopping.set()
        working.join()
    assert ran.returncode == 0, ran
    assert ran.stdout.startswith("proj_access_actor_summary: ")
    assert set(lists) == {200}
    with psycopg.connect(stack.address("database_url")) as connection:
        eventually(
            lambda: (
                connection.execute("SELECT count(*) FROM proj_access_actor_summary").fetchone()
                == connection.execute("SELECT count(*) FROM events WHERE event_type = 'ActorRegistered'").fetchone()
            )
        )
