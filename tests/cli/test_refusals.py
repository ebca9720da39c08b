"""What the processes refuse to start with: one sentence for each fault, exit code 2, and nothing is changed."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from baton.cli.embedded.process import OwnedDirectory
from baton.cli.stack_note import stack_address, write_note
from tests.support.forked_commands import run_command
from tests.support.stack import DEADLINE, clean_environment, run_baton

pytestmark = pytest.mark.server
FREE_PORTS = ("--port=0", "--temporal-port=0", "--temporal-ui-port=0")
NO_DATABASE = "postgresql://nobody@127.0.0.1:1/nothing"
NO_TEMPORAL = "127.0.0.1:1"


@pytest.fixture
def used_port() -> Iterator[str]:
    """A port that another program listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield str(listener.getsockname()[1])


def refusal(ran: "subprocess.CompletedProcess[str]") -> str:
    """Return the one sentence that a command was refused with."""
    assert (ran.returncode, ran.stdout) == (2, ""), ran
    lines = ran.stderr.splitlines()
    assert len(lines) == 1, ran.stderr
    assert lines[0].startswith("baton: ")
    return lines[0].removeprefix("baton: ")


def files_below(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file() and path.suffix != ".lock"}


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("IDENTITY_PROVIDERS", "{garbage", "IDENTITY_PROVIDERS is no valid JSON; correct it or unset it."),
        (
            "IDENTITY_PROVIDERS",
            '[{"issuer": "https://id.example.org", "secrett": "hush"}]',
            "IDENTITY_PROVIDERS[0].secrett cannot be used: There is no such field; correct it.",
        ),
        ("AUTHORIZATION_MODE", "maybe", "AUTHORIZATION_MODE cannot be used: It must be permissive or policy; correct it."),
        ("PUBLIC_BASE_URL", "hush", "PUBLIC_BASE_URL cannot be used: give an absolute http or https URL; correct it."),
    ],
)
def test_a_setting_that_cannot_be_read_is_named_and_its_value_is_not(
    tmp_path: Path, variable: str, value: str, sentence: str
) -> None:
    assert refusal(run_baton("up", f"--data-dir={tmp_path / 'data'}", *FREE_PORTS, **{variable: value})) == sentence
    assert not (tmp_path / "data").exists()


def test_settings_that_must_not_meet_are_refused_by_every_process(tmp_path: Path) -> None:
    environment = clean_environment(REQUIRE_AUTHENTICATED_PRINCIPAL="true", DATABASE_URL=NO_DATABASE)
    command = [sys.executable, "worker.py"]
    commands = (("up", f"--data-dir={tmp_path}", *FREE_PORTS), ("api", "--port=0"), ("projector",), ("mcp",))
    for ran in (
        subprocess.run(command, env=environment, capture_output=True, text=True, timeout=DEADLINE, check=False),
        *(run_command(arguments, environment, DEADLINE) for arguments in commands),
    ):
        assert "would lock everyone out; configure IDENTITY_PROVIDERS." in refusal(ran)


@pytest.mark.parametrize(
    ("option", "purpose"), [("port", "the API"), ("temporal-port", "Temporal"), ("temporal-ui-port", "the Temporal UI")]
)
def test_a_port_in_use_is_said_before_anything_is_started(tmp_path: Path, used_port: str, option: str, purpose: str) -> None:
    ran = run_baton(
        "up",
        f"--data-dir={tmp_path}",
        *(chosen for chosen in FREE_PORTS if not chosen.startswith(f"--{option}=")),
        f"--{option}={used_port}",
    )
    assert refusal(ran) == (
        f"Port {used_port} on 127.0.0.1 is in use, so {purpose} cannot listen there; "
        "stop the program that uses it or choose another port."
    )
    assert not (tmp_path / "postgres").exists()


def test_a_second_up_on_the_same_directory_is_told_who_is_there(tmp_path: Path) -> None:
    owned = OwnedDirectory(tmp_path, "Baton")
    owned.acquire(())
    try:
        assert refusal(run_baton("up", f"--data-dir={tmp_path}", *FREE_PORTS)) == (
            f"{tmp_path} is in use by process {os.getpid()}, which is still running; "
            "stop it first or choose another data directory."
        )
    finally:
        owned.release()


def test_a_directory_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    sentence = refusal(run_baton("up", f"--data-dir={tmp_path / 'file'}", *FREE_PORTS))
    assert sentence == f"Baton cannot keep its data in {tmp_path / 'file'} (File exists); choose another data directory."


def test_data_of_another_postgres_are_refused_and_stay_as_they_are(tmp_path: Path) -> None:
    data = tmp_path / "postgres" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("16\n")
    before = files_below(tmp_path / "postgres")
    ran = run_baton("up", f"--data-dir={tmp_path}", *FREE_PORTS, TEMPORAL_ADDRESS=NO_TEMPORAL)
    assert "was written by PostgreSQL 16 and this is PostgreSQL 18" in refusal(ran)
    assert files_below(tmp_path / "postgres") == before


def test_a_database_of_a_later_baton_is_refused_by_every_process(tmp_path: Path, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    outside = {"DATABASE_URL": database_url, "TEMPORAL_ADDRESS": NO_TEMPORAL}
    for command in (["up", f"--data-dir={tmp_path}", *FREE_PORTS], ["projector"]):
        assert refusal(run_baton(*command, **outside)).startswith("The database was migrated to 9999 by a later Baton")
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == ("9999",)


def test_a_database_that_does_not_answer_is_said() -> None:
    sentence = refusal(run_baton("projector", DATABASE_URL=NO_DATABASE))
    assert sentence.startswith("The database cannot be used: ")
    assert sentence.endswith("Start it, or correct DATABASE_URL.")


def test_pieces_on_their_own_ask_for_their_servers(database_url: str) -> None:
    assert refusal(run_baton("api", "--port=0")).startswith("DATABASE_URL is not set; point it at a PostgreSQL")
    worker = run_baton("worker", DATABASE_URL=database_url)
    assert refusal(worker).startswith("TEMPORAL_ADDRESS is not set; point it at a Temporal server")


def test_the_api_on_its_own_says_that_its_port_is_in_use(database_url: str, used_port: str) -> None:
    assert refusal(run_baton("api", f"--port={used_port}", DATABASE_URL=database_url)).startswith(
        f"Port {used_port} on 127.0.0.1 is in use"
    )


def test_a_log_that_lacks_what_policies_rest_on_is_refused_in_a_sentence(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
        connection.execute(
            "CREATE TRIGGER lose BEFORE INSERT ON events FOR EACH ROW WHEN (NEW.stream_type = 'Conduit') "
            "EXECUTE FUNCTION lose()"
        )
    ran = run_baton("api", "--port=0", DATABASE_URL=database_url, AUTHORIZATION_MODE="policy", APP_ENV="test")
    assert refusal(ran).startswith("The log lacks the System conduit, which policies rest on")


def test_a_rebuild_names_what_there_is_to_rebuild(tmp_path: Path) -> None:
    assert "proj_equipment_family_summary" in refusal(run_baton("projections", "rebuild", "nonsense"))
    assert refusal(run_baton("projections", "rebuild", f"--data-dir={tmp_path}")) == (
        f"No database: DATABASE_URL is not set and no stack runs on {tmp_path}; start one with `baton up`."
    )


def test_a_note_counts_only_while_its_stack_runs(tmp_path: Path) -> None:
    owned = OwnedDirectory(tmp_path, "Baton")
    owned.acquire(())
    write_note(tmp_path, url="http://127.0.0.1:1", temporal_address=None)
    assert stack_address(tmp_path, "url") == "http://127.0.0.1:1"
    assert stack_address(tmp_path, "temporal_address") is None
    (tmp_path / "stack.json").write_text("[]")
    assert stack_address(tmp_path, "url") is None
    write_note(tmp_path, url="http://127.0.0.1:1")
    owned.release()
    assert stack_address(tmp_path, "url") is None
