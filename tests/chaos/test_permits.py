"""Processes killed while a hutch is permitted: what nobody observes any more is never taken for a permit."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.stack import DEADLINE, Stack, baton, clean_environment, eventually, running_stack

HUTCH = "Imaging hutch B"
WATCHED = {
    "CONTROL_ROUTES": '[{"prefix": "PSS:", "substrate": "in_memory", "simulated": true}]',
    "MONITORED_ENCLOSURES": json.dumps({HUTCH: "PSS:B"}),
}
PERMITTED = {**WATCHED, "SIMULATED_SIGNALS": '{"PSS:B": 1}'}
NO_TEMPORAL = "127.0.0.1:1"


@contextmanager
def worker(database_url: str, log: Path, **environment: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A worker process that no Temporal answers."""
    settings = clean_environment(DATABASE_URL=database_url, TEMPORAL_ADDRESS=NO_TEMPORAL, **environment)
    with (
        log.open("ab") as said,
        subprocess.Popen([sys.executable, "-m", "baton.cli", "worker"], env=settings, stderr=said) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def permits(database_url: str) -> list[str]:
    """Every permit recorded, oldest first."""
    query = "SELECT payload ->> 'to_status' FROM events WHERE event_type = 'EnclosurePermitObserved' ORDER BY position"
    with psycopg.connect(database_url) as connection:
        return [row[0] for row in connection.execute(query)]


def contact(database_url: str) -> Any:
    """When the hutch was last observed."""
    with psycopg.connect(database_url) as connection:
        return connection.execute("SELECT contacted_at FROM enclosure_contact").fetchone()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "worker.log"


def test_a_worker_observes_without_temporal_and_says_when_it_stops(database_url: str, log: Path) -> None:
    with worker(database_url, log, **PERMITTED) as process:
        eventually(lambda: permits(database_url) == ["Permitted"], what=log.read_text)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0
    assert permits(database_url) == ["Permitted", "Unknown"]


def test_another_worker_goes_on_when_the_one_that_observes_is_killed(database_url: str, log: Path) -> None:
    with worker(database_url, log, **PERMITTED) as leader:
        eventually(lambda: permits(database_url) == ["Permitted"], what=log.read_text)
        with worker(database_url, log, **PERMITTED):
            leader.kill()
            leader.wait()
            last = contact(database_url)
            eventually(lambda: contact(database_url) > last, what=log.read_text)
            assert permits(database_url) == ["Permitted"]


def test_a_worker_that_finds_the_signal_gone_records_so(database_url: str, log: Path) -> None:
    with worker(database_url, log, **PERMITTED) as process:
        eventually(lambda: permits(database_url) == ["Permitted"], what=log.read_text)
        process.kill()
    assert permits(database_url) == ["Permitted"]
    with worker(database_url, log, **WATCHED):
        eventually(lambda: permits(database_url) == ["Permitted", "Unknown"], what=log.read_text)


@pytest.mark.timeout(300)
def test_a_service_killed_and_started_again_is_ready_only_when_the_lost_permit_is_unknown(tmp_path: Path) -> None:
    with running_stack(tmp_path, **PERMITTED) as stack:
        id = hutch(stack)["enclosure_id"]
        assert stack.client.get(f"/enclosures/{id}").json()["permit_status"] == "Permitted"
        examined = baton("doctor", "--only=monitors", f"--data-dir={stack.directory}", **PERMITTED)
        assert examined.stdout.startswith("ok"), examined
        kill_everybody(stack)
    with running_stack(tmp_path, **WATCHED) as stack:
        shown = stack.client.get(f"/enclosures/{id}").json()
        assert (shown["permit_status"], shown["lifecycle"]) == ("Unknown", "Active")
        history = stack.client.get(f"/enclosures/{id}/history").json()["items"]
        assert [event["payload"].get("to_status") for event in history] == [None, "Permitted", "Unknown"]


def hutch(stack: Stack) -> dict[str, Any]:
    """The hutch, as soon as the list shows it."""

    def listed() -> dict[str, Any] | None:
        items = stack.client.get("/enclosures").json()["items"]
        return next((item for item in items if item["name"] == HUTCH), None)

    return eventually(listed, what=stack.said)  # type: ignore[return-value]


def kill_everybody(stack: Stack) -> None:
    """Kill every process of a stack at one moment, so that none can say goodbye or start another."""
    stack.process.send_signal(signal.SIGSTOP)
    children = stack.children()
    for child in children:
        child.suspend()
    for child in children:
        child.kill()
    stack.process.kill()
    stack.process.wait()
