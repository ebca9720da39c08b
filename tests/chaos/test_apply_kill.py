"""`baton apply` is killed again and again, and simply applied again: in the end the record is as if nobody had."""

import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from baton.beamline.commands import DONE, apply_files, diff_files
from baton.beamline.yaml_text import yaml_text
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.client import Baton
from tests.support.api.module_service import running_module_service
from tests.support.databases import fresh_database
from tests.support.forked_commands import forked_command
from tests.support.random_beamlines import random_beamline
from tests.support.seeds import SEED
from tests.support.stack import clean_environment

KILLS = int(os.environ.get("APPLY_KILLS", "2"))
ASSETS = 20


@contextmanager
def service(postgres: EmbeddedPostgres, template: str) -> Iterator[tuple[Baton, str]]:
    """A service with an empty record: its client and its database."""
    with (
        fresh_database(postgres, template) as url,
        running_module_service(url) as running,
        Baton(running.api.base_url) as client,
    ):
        yield client, url


def event_counts(database_url: str) -> Counter[tuple[str, str]]:
    """How often each kind of event is on record."""
    with psycopg.connect(database_url) as connection:
        return Counter(connection.execute("SELECT stream_type, event_type FROM events").fetchall())


def apply_until_event(url: str, database_url: str, file: Path, count: int) -> None:
    """Apply a file in a process of its own, and kill it once this many events are on record."""
    command = ("apply", "-f", str(file), "--url", url)
    output, errors = file.with_suffix(".out"), file.with_suffix(".err")
    with (
        psycopg.connect(database_url, autocommit=True) as connection,
        forked_command(command, clean_environment(), output, errors) as process,
    ):
        while process.is_alive() and connection.execute("SELECT count(*) FROM events").fetchall() < [(count,)]:
            process.join(0.002)
    assert process.exitcode in (0, -9), output.read_text() + errors.read_text()


@pytest.mark.timeout(600)
def test_a_killed_application_is_applied_again_and_does_nothing_twice(
    postgres: EmbeddedPostgres, template: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(SEED)
    file = tmp_path / "beamline.yaml"
    file.write_text(yaml_text(random_beamline(SEED, ASSETS)))
    with service(postgres, template) as (client, url):
        begun = sum(event_counts(url).values())
        assert apply_files(client, [file]) == DONE, (SEED, capsys.readouterr().out[-2000:])
        undisturbed = event_counts(url)
    total = sum(undisturbed.values()) - begun
    with service(postgres, template) as (client, url):
        address = str(client.http.base_url)
        for moment in sorted(chance.randint(1, total) for _ in range(KILLS)):
            apply_until_event(address, url, file, begun + moment)
        assert diff_files(client, [file]) in (0, 2)
        assert apply_files(client, [file]) == DONE, (SEED, capsys.readouterr().out[-2000:])
        assert event_counts(url) == undisturbed, SEED
        assert diff_files(client, [file]) == DONE, (SEED, capsys.readouterr().out[-2000:])
