"""Real parts for every test that wants them: one PostgreSQL for each worker, one database for each test."""

import gc
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.support.forked_workers import ForkedRun
from tests.support.waiting import until

if TYPE_CHECKING:  # what only a worker needs is imported by the fixtures, since the process that hands out tests has none
    from baton.cli.embedded.postgres import EmbeddedPostgres
    from baton.cli.embedded.temporal import EmbeddedTemporal
    from tests.support.infrastructure.epics_servers import ChannelAccessPorts
    from tests.support.service import Api
    from tests.support.workflows.conduct_service import ConductService

EXAMPLES = int(os.environ.get("PROPERTY_EXAMPLES", "15"))
"""How many examples of each property are tried, where the property does not say."""
settings.register_profile("baton", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=EXAMPLES)
settings.load_profile("baton")

MEMORY = Path("/dev/shm")
ROOM = 4 * 2**30
"""How much memory must be free for tests to write there: every test that ends well takes its files away."""
SERVERS = {"postgres", "temporal", "temporal_machine", "bare_temporal", "aioca", "caproto", "p4p", "ProcessBench"}
SERVERS |= {"channel_access_ports", "pva_server_of_all"}
SERVER_ROOMS = ("e2e", "chaos", "demo", "interop")
LONGEST_FIRST = ("e2e", "console", "api", "workflows", "chaos", "cli", "infrastructure", "documents", "demo", "application")

gc.disable()


def write_to_memory() -> None:
    """Give the tests a directory in memory where there is room, unless one is chosen: a database is copied in a tenth of
    the time there, and hundreds are."""
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < ROOM or os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        return
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def forget_settings() -> None:
    """Take the service's settings out of the environment: tests begin with none, whatever the shell has."""
    example = Path(__file__).parent.parent / "baton.env.example"
    for name in re.findall(r"^#?([A-Z][A-Z0-9_]+)=", example.read_text(), re.MULTILINE):
        os.environ.pop(name, None)


def keep_bytecode() -> None:
    """Compile every module once, also where nothing may be written beside it: a third of each process's start is that."""
    if sys.dont_write_bytecode:
        directory = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
        sys.dont_write_bytecode, sys.pycache_prefix = False, directory
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = directory


forget_settings()
write_to_memory()
keep_bytecode()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="Run the tests marked `soak` too, which `make soak` does.")
    parser.addoption("--workers", type=int, default=0, help="Fork so many processes that share the tests.")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no rooms that are all about servers where their tests are not asked for."""
    return True if config.option.markexpr.startswith("not server") and collection_path.name in SERVER_ROOMS else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs a server, leave out what is for a soak, and begin with what takes long, so that no long test begins
    last."""
    if not config.getoption("soak"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("soak")])
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
    for item in items:
        if needs_server(item):
            item.add_marker("server")
    items.sort(key=place_in_line)


def needs_server(item: pytest.Item) -> bool:
    """Tell whether a test works with PostgreSQL, Temporal, an EPICS server or processes of its own.

    A contract that both adapters keep names the server among its parameters, and asks for the fixture while it runs.
    """
    fixtures = {*getattr(item, "fixturenames", ()), *item.name.partition("[")[2].rstrip("]").split("-")}
    return item.nodeid.split("/")[1] in SERVER_ROOMS or not SERVERS.isdisjoint(fixtures)


def scope(item: pytest.Item) -> str:
    """Return whose tests share services, and so are for one worker: a module's; all end-to-end tests share a stack."""
    return "e2e" if item.nodeid.startswith("tests/e2e/") else item.nodeid.partition("::")[0]


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests by workers, where some are asked for."""
    workers: int = session.config.getoption("workers")
    if not workers or session.config.option.collectonly or session.testsfailed:
        return None
    if commands := sys.modules.get("tests.support.forked_commands"):  # which some of these tests use
        commands.share_server()
    ForkedRun(session, scope).run(workers)
    return True


def place_in_line(item: pytest.Item) -> int:
    room = item.nodeid.split("/")[1]
    return LONGEST_FIRST.index(room) if room in LONGEST_FIRST else len(LONGEST_FIRST)


def pytest_collection_finish() -> None:
    """Let what was loaded and collected be, which is a great deal: the tests themselves leave little garbage."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
    gc.enable()


ONE_PARTITION = {f"matching.numTaskqueue{way}Partitions": "1" for way in ("Read", "Write")}
"""Settings of a workflow engine that hands each task directly to its worker: one worker polls here, and a step takes two
thirds of the time."""
UNSAFE_BUT_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "128MB"}


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator["EmbeddedPostgres"]:
    """A real server, without waiting for the disk; durability has tests of its own."""
    from baton.cli.embedded.postgres import EmbeddedPostgres

    directory: Path = tmp_path_factory.mktemp("postgres")
    with EmbeddedPostgres(directory, settings=UNSAFE_BUT_FAST) as server:
        yield server


@pytest.fixture(scope="session")
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator["EmbeddedTemporal"]:
    """A real workflow engine without its pages; tests of one process share it, since every workflow has an id of its own."""
    from baton.cli.embedded.temporal import EmbeddedTemporal
    from baton.cli.up import SEARCH_ATTRIBUTES

    directory: Path = tmp_path_factory.mktemp("temporal")
    with EmbeddedTemporal(directory, headless=True, search_attributes=SEARCH_ATTRIBUTES, settings=ONE_PARTITION) as server:
        yield server


@pytest.fixture(scope="session")
def baton_program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The command line as a program that a shell or a client may start."""
    from tests.support.forked_commands import forking_program

    program: Path = tmp_path_factory.mktemp("bin") / "baton"
    with forking_program(program):
        yield program


@pytest.fixture(scope="session")
def template(postgres: "EmbeddedPostgres") -> str:
    """The name of a migrated database that tests are copied from."""
    import psycopg

    from baton.infrastructure.postgres.migrate import migrate
    from tests.support.databases import with_database

    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE template_baton")
    migrate(with_database(postgres.url, "template_baton"))
    return "template_baton"


@pytest.fixture
def database_url(postgres: "EmbeddedPostgres", template: str) -> Iterator[str]:
    """A fresh, migrated database."""
    from tests.support.databases import fresh_database

    with fresh_database(postgres, template) as url:
        yield url


@pytest.fixture
async def api(database_url: str) -> AsyncIterator["Api"]:
    """The service on a real socket, permissive, with its projector."""
    from tests.support.service import running_api

    async with running_api(database_url) as api:
        yield api


@pytest.fixture(scope="module")
async def conduct_service(
    postgres: "EmbeddedPostgres", template: str, temporal: "EmbeddedTemporal"
) -> AsyncIterator["ConductService"]:
    """A worker on a simulated plant and the service on a real socket beside it, on one record, for a module's tests."""
    from tests.support.databases import fresh_database
    from tests.support.workflows.conduct_service import open_conduct_service

    with fresh_database(postgres, template) as url:
        async with open_conduct_service(url, temporal.address) as conduct_service:
            yield conduct_service


@pytest.fixture(scope="session")
def channel_access_ports() -> Iterator["ChannelAccessPorts"]:
    """Where Channel Access servers are looked for.

    The compiled client reads this once in a process, so it is the same for all tests.
    """
    from tests.support.infrastructure.epics_servers import ChannelAccessPorts, free_ports

    *ports, repeater = free_ports(4)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("EPICS_CA_ADDR_LIST", " ".join(f"127.0.0.1:{port}" for port in ports))
        environment.setenv("EPICS_CA_AUTO_ADDR_LIST", "NO")
        environment.setenv("EPICS_CA_REPEATER_PORT", str(repeater))
        environment.setenv("EPICS_CA_CONN_TMO", "30")
        yield ChannelAccessPorts(*ports)


@pytest.fixture
def eventually() -> Callable[..., object]:
    """Waits for a condition with a deadline; a sleep is no condition."""
    return until
