"""The embedded servers as real processes: they keep their data, leave no process behind and say why they cannot start."""

import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from tempfile import mkdtemp
from uuid import uuid4

import httpx
import psutil  # type: ignore[import-untyped]
import psycopg
import pytest
from temporalio.api.common.v1 import TimeSkippingConfig, WorkflowType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, StartWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

from baton.cli.embedded import temporal as temporal_server
from baton.cli.embedded.postgres import WHEEL, EmbeddedPostgres
from baton.cli.embedded.process import OwnedDirectory, StartError, retry_start, wait_until
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.infrastructure.postgres.migrate import migrate
from baton.infrastructure.postgres.schema_version import has_current_form
from tests.support.forked_commands import FORKS
from tests.support.stack import is_alive

pytestmark = pytest.mark.server
AS_ROOT = os.geteuid() == 0
DEADLINE = 60.0
NOBODY = 65534


@dataclass
class Owner:
    """Another process that owns both servers."""

    process: ForkServerProcess
    messages: Connection
    url: str
    address: str
    servers: list[psutil.Process]


def own_servers(directory: Path, messages: Connection) -> None:
    """Own both servers until Ctrl-C, and report then whether they serve."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for its background jobs
    postgres, temporal = EmbeddedPostgres(directory / "postgres"), EmbeddedTemporal(directory / "temporal", headless=True)
    with postgres, temporal:
        try:
            messages.send((postgres.url, temporal.address))
            signal.pause()
        except KeyboardInterrupt:
            messages.send((query_value(postgres.url, "SELECT 'still serving'"), temporal.running))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One initialised directory for all tests that start and stop PostgreSQL on it."""
    directory = tmp_path_factory.mktemp("pg")
    with EmbeddedPostgres(directory) as postgres:
        execute(postgres, "CREATE TABLE note (text text)")
    return directory


@pytest.fixture
def owner(tmp_path: Path, directory: Path) -> Iterator[Owner]:
    shutil.copytree(directory, tmp_path / "postgres")
    messages, sender = FORKS.Pipe()
    process = FORKS.Process(target=own_servers, args=(tmp_path, sender))
    process.start()
    sender.close()
    try:
        assert messages.poll(DEADLINE)
        url, address = messages.recv()
        yield Owner(process, messages, url, address, psutil.Process(process.pid).children(recursive=True))
    finally:
        process.kill()
        process.join()


@pytest.fixture(scope="module")
def server(directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    """A running PostgreSQL for the tests that only look at one."""
    with EmbeddedPostgres(shutil.copytree(directory, tmp_path_factory.mktemp("server") / "postgres")) as postgres:
        yield postgres


@pytest.fixture
def used_port() -> Iterator[int]:
    """A port that another program listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def execute(postgres: EmbeddedPostgres, statement: str) -> None:
    with psycopg.connect(postgres.url) as connection:
        connection.execute(statement)


def query_value(url: str, query: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
    assert row
    return row[0]


def are_gone(processes: list[psutil.Process]) -> bool:
    return not any(is_alive(process) for process in processes)


def file_stats(directory: Path) -> dict[str, tuple[int, int, int]]:
    return {
        str(path): (path.stat().st_mode, path.stat().st_uid, path.stat().st_mtime_ns)
        for path in (directory, *directory.rglob("*"))
    }


def test_a_new_directory_becomes_a_server_even_where_an_initialisation_was_killed(tmp_path: Path) -> None:
    (tmp_path / "below" / "postgres" / "data.new" / "base").mkdir(parents=True)  # of an initialisation that was killed
    (tmp_path / "below" / "postgres" / "data.new" / "PG_VERSION").write_text("18\n")
    with EmbeddedPostgres(tmp_path / "below" / "postgres") as postgres:
        assert query_value(postgres.url, "SELECT current_database()") == "baton"
        assert query_value(postgres.url, "SHOW fsync") == "on"
        process = psutil.Process(postgres.pid)
        processes = [process, *process.children(recursive=True)]
        assert process in psutil.Process().children()
    assert are_gone(processes)
    assert not postgres.running
    assert not (tmp_path / "below" / "postgres" / "data.new").exists()


def test_a_restart_loses_no_row(directory: Path) -> None:
    with EmbeddedPostgres(directory) as postgres:
        execute(postgres, "INSERT INTO note VALUES ('first')")
    with EmbeddedPostgres(directory) as postgres:
        assert query_value(postgres.url, "SELECT array_agg(text) FROM note") == ["first"]


def test_a_killed_server_recovers_what_was_committed(directory: Path) -> None:
    postgres = EmbeddedPostgres(directory).start()
    execute(postgres, "CREATE TABLE survivor AS SELECT generate_series(1, 1000)")
    assert postgres.pid
    os.kill(postgres.pid, signal.SIGKILL)
    assert wait_until(lambda: not postgres.running, DEADLINE)
    postgres.stop()
    with postgres:
        assert query_value(postgres.url, "SELECT count(*) FROM survivor") == 1000


def test_by_default_nobody_reaches_postgres_over_the_network_or_without_its_password(server: EmbeddedPostgres) -> None:
    assert query_value(server.url, "SHOW listen_addresses") == ""
    assert stat.S_IMODE(server.data.stat().st_mode) == 0o700
    assert stat.S_IMODE((server.data.parent / "password").stat().st_mode) == 0o600
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(server.url, password="guessed")


def test_data_of_a_version_that_knew_the_superuser_alone_get_an_owner_and_a_login_for_the_service(
    tmp_path: Path, directory: Path
) -> None:
    with EmbeddedPostgres(shutil.copytree(directory, tmp_path / "postgres")) as postgres:
        execute(postgres, "REASSIGN OWNED BY baton_owner TO baton")
        execute(postgres, "DROP ROLE baton_owner")
        execute(postgres, "ALTER ROLE baton_runtime NOLOGIN")
        migrate(postgres.url)
    for secret in (tmp_path / "postgres").glob("*.pgpass"):
        secret.unlink()
    with EmbeddedPostgres(tmp_path / "postgres") as postgres:
        owned = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relowner = 'baton'::regrole"
        assert query_value(postgres.url, owned) == 0
        assert has_current_form(postgres.runtime_url)
        migrate(postgres.owner_url)
        assert query_value(postgres.runtime_url, "SELECT count(*) FROM events") == 0


def test_a_directory_that_others_could_enter_is_closed_to_them(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    owned = OwnedDirectory(tmp_path, "Baton")
    owned.acquire(())
    owned.release()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    tmp_path.chmod(0o1777)
    with pytest.raises(StartError, match="is shared with other users; choose a data directory below it"):
        owned.acquire(())


def test_on_a_port_postgres_asks_for_its_password(directory: Path) -> None:
    with EmbeddedPostgres(directory, port=0) as postgres:
        assert "@127.0.0.1:" in postgres.url
        assert query_value(postgres.url, "SELECT inet_server_addr()::text") == "127.0.0.1/32"
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(postgres.url, password="guessed")


def test_data_too_deep_for_a_socket_are_served_on_a_port(tmp_path: Path, directory: Path) -> None:
    with EmbeddedPostgres(shutil.copytree(directory, tmp_path / ("deep" * 20))) as postgres:
        assert "@127.0.0.1:" in postgres.url
        assert query_value(postgres.url, "SELECT 1") == 1


@pytest.mark.parametrize(
    "make_server",
    [
        lambda directory, port: EmbeddedPostgres(directory, port=port),
        lambda directory, port: EmbeddedTemporal(directory, port=port),
        lambda directory, port: EmbeddedTemporal(directory, ui_port=port),
    ],
    ids=["postgres", "temporal", "temporal ui"],
)
def test_a_port_in_use_is_said_in_one_sentence(
    directory: Path, used_port: int, make_server: Callable[[Path, int], EmbeddedPostgres | EmbeddedTemporal]
) -> None:
    with pytest.raises(StartError, match=rf"^Port {used_port} on 127.0.0.1 is in use, so .*; stop .*\.$"):
        make_server(directory, used_port).start()


@pytest.mark.parametrize("below", [".", "data"])
def test_data_of_another_major_version_are_refused_and_not_touched(tmp_path: Path, below: str) -> None:
    (tmp_path / below).mkdir(exist_ok=True)
    (tmp_path / below / "PG_VERSION").write_text("16\n")
    before = file_stats(tmp_path)
    with pytest.raises(StartError, match=r"^.* was written by PostgreSQL 16 and this is PostgreSQL 18; .*\.$"):
        EmbeddedPostgres(tmp_path).start()
    assert file_stats(tmp_path) == before


def test_files_that_are_no_cluster_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.txt").write_text("three years of work")
    with pytest.raises(StartError, match="has files in it"):
        EmbeddedPostgres(tmp_path).start()
    assert (tmp_path / "data" / "thesis.txt").read_text() == "three years of work"


def test_a_directory_has_one_owner_at_a_time(server: EmbeddedPostgres) -> None:
    directory = server.data.parent
    with pytest.raises(StartError, match=rf"^{directory} is in use by process {os.getpid()}, .*\.$"):
        EmbeddedPostgres(directory).start()
    assert query_value(server.url, "SELECT 1") == 1


@pytest.mark.parametrize("name", ["postmaster.pid", ".s.PGSQL.5432.lock"])
def test_a_pid_file_whose_number_went_to_another_program_stops_nobody(directory: Path, name: str) -> None:
    same_user = (directory / "data").stat().st_uid if AS_ROOT else None
    with subprocess.Popen(["sleep", "60"], cwd="/", user=same_user) as other:
        (directory / "data" / name).write_text(f"{other.pid}\n/somewhere\n")
        try:
            with EmbeddedPostgres(directory) as postgres:
                assert query_value(postgres.url, "SELECT 1") == 1
        finally:
            other.kill()


def test_a_server_that_dies_while_starting_shows_the_end_of_its_log(directory: Path) -> None:
    with pytest.raises(StartError, match=r"ended while it was starting.*\n(.|\n)*FATAL.*shared_buffers") as refused:
        EmbeddedPostgres(directory, settings={"shared_buffers": "plenty"}).start()
    assert "\n" not in refused.value.sentence
    with EmbeddedPostgres(directory) as postgres:
        assert query_value(postgres.url, "SELECT 1") == 1
    assert "shared_buffers" in (directory / "postgres.log").read_text()


def test_a_server_outlives_the_thread_that_started_it(directory: Path) -> None:
    postgres = EmbeddedPostgres(directory)
    starter = threading.Thread(target=postgres.start)
    starter.start()
    starter.join()
    with_its_thread = wait_until(lambda: not postgres.running, 0.5)
    postgres.stop()
    assert not with_its_thread


@pytest.mark.skipif(not AS_ROOT, reason="only root has to change the user")
def test_root_runs_postgres_as_a_user_of_its_own_below_a_directory_only_root_can_enter(
    tmp_path: Path, directory: Path
) -> None:
    (tmp_path / "closed").mkdir(mode=0o700)
    with EmbeddedPostgres(shutil.copytree(directory, tmp_path / "closed" / "postgres")) as postgres:
        server = psutil.Process(postgres.pid)
        assert 0 not in (*server.uids(), *server.gids())
        assert server.username() == "baton-postgres"
    assert stat.S_IMODE((tmp_path / "closed").stat().st_mode) == 0o700


@pytest.mark.skipif(not AS_ROOT, reason="only root has to change the user")
def test_processes_that_start_at_once_on_a_bare_machine_make_one_user() -> None:
    name = f"baton-test-{os.getpid()}"
    script = (
        f"import sys; from baton.cli.embedded import postgres; postgres.SYSTEM_USER = {name!r}\n"
        "print('ready', flush=True); sys.stdin.read(); print(postgres.system_user().uid, flush=True)"
    )
    command = [sys.executable, "-c", script]
    starting = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    try:
        assert [process.stdout.readline() for process in starting] == ["ready\n"] * 4
        for process in starting:
            process.stdin.close()
        found = {int(process.stdout.read()) for process in starting}
        assert found == {pwd.getpwnam(name).pw_uid}
    finally:
        for process in starting:
            process.kill()
            process.wait()
        subprocess.run(["userdel", name], check=True)


@pytest.mark.skipif(not AS_ROOT, reason="only root has to change the user")
def test_binaries_that_only_root_can_reach_are_copied_and_nothing_is_opened(tmp_path: Path, directory: Path) -> None:
    spec = find_spec(WHEEL)
    assert spec
    assert spec.submodule_search_locations
    wheel = Path(spec.submodule_search_locations[0])
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    for package in (wheel, wheel.with_name(f"{wheel.name}.libs")):
        shutil.copytree(package, closed / package.name, symlinks=True, ignore=shutil.ignore_patterns("pginstall", "include"))
    script = (
        "import sys; from pathlib import Path; from baton.cli.embedded import postgres\n"
        "postgres.REACHABLE_BINARIES = Path(sys.argv[2])\n"
        "with postgres.EmbeddedPostgres(sys.argv[1]) as server: print(server.running)"
    )
    reachable = Path(mkdtemp())
    reachable.chmod(0o755)
    try:
        ran = subprocess.run(
            [sys.executable, "-c", script, str(directory), str(reachable / "cache")],
            env={**os.environ, "PYTHONPATH": str(closed)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.stdout, ran.stderr) == ("True\n", "")
        assert list(reachable.glob("cache/*/*/*/bin/postgres"))
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    finally:
        shutil.rmtree(reachable)


@pytest.mark.skipif(not AS_ROOT, reason="somebody who is not root is an ordinary user in every other test")
def test_an_ordinary_user_starts_postgres_as_well() -> None:
    script = (
        "import os, sys; from baton.cli.embedded.postgres import EmbeddedPostgres; import psycopg, psutil\n"
        f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "with EmbeddedPostgres(sys.argv[1]) as server, psycopg.connect(server.url) as connection:\n"
        "    print(psutil.Process(server.pid).uids().real, connection.execute('SELECT 1').fetchone()[0])"
    )
    directory = Path(mkdtemp(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))  # that of `tmp_path` is closed to others
    os.chown(directory, NOBODY, NOBODY)
    try:
        ran = subprocess.run([sys.executable, "-c", script, str(directory)], capture_output=True, text=True, check=False)
        assert (ran.stdout, ran.stderr) == (f"{NOBODY} 1\n", "")
        with EmbeddedPostgres(directory) as postgres:
            assert psutil.Process(postgres.pid).uids().real == NOBODY
    finally:
        shutil.rmtree(directory)


def test_a_killed_owner_leaves_no_process_behind(owner: Owner) -> None:
    assert {server.name() for server in owner.servers} == {"postgres", "temporal"}
    owner.process.kill()
    assert wait_until(lambda: are_gone(owner.servers), DEADLINE), [running for running in owner.servers if is_alive(running)]


async def test_a_directory_is_refused_while_its_owner_lives_and_taken_over_whole_once_he_is_killed(
    owner: Owner, tmp_path: Path
) -> None:
    with psycopg.connect(owner.url) as connection:
        connection.execute("CREATE TABLE question AS SELECT 42 AS answer")
    client = await Client.connect(owner.address)
    await client.start_workflow("Wait", id="survivor", task_queue="nobody-listens")
    for server in (EmbeddedPostgres(tmp_path / "postgres"), EmbeddedTemporal(tmp_path / "temporal")):
        with pytest.raises(StartError, match=rf"is in use by process {owner.process.pid}, which is still running"):
            server.start()
    owner.process.kill()
    with EmbeddedPostgres(tmp_path / "postgres") as postgres:
        assert query_value(postgres.url, "SELECT answer FROM question") == 42
    with EmbeddedTemporal(tmp_path / "temporal", headless=True) as temporal:
        client = await Client.connect(temporal.address)
        assert (await client.get_workflow_handle("survivor").describe()).status == WorkflowExecutionStatus.RUNNING


def test_an_orphan_that_does_not_listen_is_killed(owner: Owner, tmp_path: Path) -> None:
    [temporal] = [server for server in owner.servers if server.name() == "temporal"]
    temporal.suspend()
    owner.process.kill()
    owner.process.join()
    owned = OwnedDirectory(tmp_path / "temporal", "Temporal")
    owned.acquire(((signal.SIGTERM, 0.2), (signal.SIGKILL, DEADLINE)))
    owned.release()
    assert are_gone([temporal])


def test_ctrl_c_reaches_the_owner_alone(owner: Owner) -> None:
    os.killpg(owner.process.pid, signal.SIGINT)
    assert owner.messages.poll(DEADLINE)
    assert owner.messages.recv() == ("still serving", True)
    owner.process.join(DEADLINE)
    assert are_gone(owner.servers)


async def test_temporal_is_healthy_shows_its_pages_and_has_its_settings(tmp_path: Path) -> None:
    skipping = {"frontend.WorkflowTimeSkippingEnabled": "true"}
    with EmbeddedTemporal(tmp_path, retention=timedelta(days=3), settings=skipping) as temporal:
        client = await Client.connect(temporal.address)
        await client.workflow_service.start_workflow_execution(
            StartWorkflowExecutionRequest(
                namespace="default",
                workflow_id="skips",
                workflow_type=WorkflowType(name="Wait"),
                task_queue=TaskQueue(name="nobody-listens"),
                request_id=str(uuid4()),
                time_skipping_config=TimeSkippingConfig(enabled=True),
            )
        )
        described = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
        assert described.config.workflow_execution_retention_ttl.ToTimedelta() == timedelta(days=3)
        assert temporal.ui_url
        async with httpx.AsyncClient() as browser:
            assert (await browser.get(temporal.ui_url)).status_code == 200
    assert not temporal.running


async def test_a_waiting_workflow_is_still_there_after_a_restart_with_a_new_search_attribute(tmp_path: Path) -> None:
    run = SearchAttributeKey.for_keyword("BatonRun")
    asset = SearchAttributeKey.for_keyword("BatonAsset")
    with EmbeddedTemporal(tmp_path, headless=True, search_attributes={"BatonRun": "Keyword"}) as temporal:
        assert temporal.ui_url is None
        client = await Client.connect(temporal.address)
        marks = TypedSearchAttributes([SearchAttributePair(run, "run-1")])
        await client.start_workflow("Wait", id="waiting", task_queue="nobody-listens", search_attributes=marks)
    both = {"BatonRun": "Keyword", "BatonAsset": "Keyword"}
    with EmbeddedTemporal(tmp_path, headless=True, search_attributes=both) as temporal:
        client = await Client.connect(temporal.address)
        handle = client.get_workflow_handle("waiting")
        await handle.signal("go")
        described = await handle.describe()
        assert described.status == WorkflowExecutionStatus.RUNNING
        assert described.typed_search_attributes[run] == "run-1"
        marks = TypedSearchAttributes([SearchAttributePair(asset, "hexapod")])
        await client.start_workflow("Wait", id="newcomer", task_queue="nobody-listens", search_attributes=marks)


def test_a_server_that_lost_its_port_is_started_again_however_much_it_says_afterwards() -> None:
    tries = []

    def start() -> None:
        tries.append(1)
        if len(tries) == 1:
            said = "listen tcp 127.0.0.1:43083: bind: address already in use\n" + "panic: and so on\n" * 1000
            raise StartError("It ended while it was starting.", output=said)

    retry_start(start)
    assert len(tries) == 2


LOSES_A_PORT = """#!{python}
import os, socket, sys
if not os.path.exists("lost"):
    open("lost", "w").close()
    open(sys.argv[sys.argv.index("--db-filename") + 1], "w").write("half a schema")
    listener = socket.create_server(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])))
    listener.accept()
    sys.exit("{said}")
os.execv("{real}", sys.argv)
"""


@pytest.mark.parametrize("said", ["listen tcp 127.0.0.1:43083: bind: address already in use", "panic: nil pointer"])
def test_temporal_that_loses_an_inner_port_when_its_own_answers_is_started_again(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "temporal"
    program.write_text(LOSES_A_PORT.format(python=sys.executable, said=said, real=temporal_server._executable()))
    program.chmod(0o700)
    monkeypatch.setattr(temporal_server, "_executable", lambda: str(program))
    with EmbeddedTemporal(tmp_path / "data", headless=True) as temporal:
        assert temporal.running
        assert said in temporal.log.read_text()


def test_a_long_output_is_shown_from_its_beginning_and_to_its_end() -> None:
    shown = str(StartError("It ended.", output="panic: why\n" + "a frame\n" * 10_000 + "the last frame"))
    assert "panic: why" in shown
    assert "the last frame" in shown
    assert len(shown) < 4000


def test_a_wrong_setting_of_temporal_is_shown_from_its_log(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"Temporal ended while it was starting.*\n(.|\n)*Mystery"):
        EmbeddedTemporal(tmp_path, search_attributes={"BatonRun": "Mystery"}).start()
