"""Workers that observe a permitted hutch: one goes on when another is killed, and none leaves a permit behind."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import psycopg

from tests.support.forked_commands import forked_command
from tests.support.stack import DEADLINE, clean_environment, eventually

SETTINGS = {
    "CONTROL_ROUTES": '[{"prefix": "PSS:", "substrate": "in_memory", "simulated": true}]',
    "MONITORED_ENCLOSURES": json.dumps({"Imaging hutch B": "PSS:B"}),
    "SIMULATED_SIGNALS": '{"PSS:B": 1}',
    "TEMPORAL_ADDRESS": "127.0.0.1:1",
}
"""The plant of workers that no Temporal answers."""


@contextmanager
def running_worker(database_url: str, log: Path) -> Iterator[ForkServerProcess]:
    environment = clean_environment(DATABASE_URL=database_url, **SETTINGS)
    with forked_command(("worker",), environment, log.with_suffix(".out"), log) as process:
        yield process


def recorded_permits(database_url: str) -> list[str]:
    """Every permit recorded, oldest first."""
    query = "SELECT payload ->> 'to_status' FROM events WHERE event_type = 'EnclosurePermitObserved' ORDER BY position"
    with psycopg.connect(database_url) as connection:
        return [row[0] for row in connection.execute(query)]


def last_contact(database_url: str) -> Any:
    """When the hutch was last observed."""
    with psycopg.connect(database_url) as connection:
        return connection.execute("SELECT contacted_at FROM enclosure_contact").fetchone()


def test_another_worker_goes_on_when_the_observing_one_is_killed_and_records_when_it_stops(
    database_url: str, tmp_path: Path
) -> None:
    first_log, second_log = tmp_path / "first.log", tmp_path / "second.log"
    with running_worker(database_url, first_log) as leader:
        eventually(lambda: recorded_permits(database_url) == ["Permitted"], what=first_log.read_text)
        with running_worker(database_url, second_log) as other:
            leader.kill()
            leader.join()
            last = last_contact(database_url)
            eventually(lambda: last_contact(database_url) > last, what=second_log.read_text)
            assert recorded_permits(database_url) == ["Permitted"]
            other.terminate()
            other.join(DEADLINE)
            assert other.exitcode == 0, second_log.read_text()
    assert recorded_permits(database_url) == ["Permitted", "Unknown"]
