"""Real parts for every test that wants them: one PostgreSQL for each worker, one database for each test."""

import gc
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.waiting import until

if TYPE_CHECKING:  # what only a worker needs is imported by the fixtures, since the process that hands out tests has none
    from baton.cli.embedded.postgres import EmbeddedPostgres
    from baton.cli.embedded.temporal import EmbeddedTemporal
    from tests.support.service import Api
    from tests.support.workflows.conduct_service import ConductService

EXAMPLES = int(os.environ.get("PROPERTY_EXAMPLES", "40"))
"""How many examples of each property are tried, where the property does not say."""
settings.register_profile("baton", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=EXAMPLES)
settings.load_profile("baton")

MEMORY = Path("/dev/shm")
ROOM = 4 * 2**30
"""How much memory must be free for tests to write there: every test that ends well takes its files away."""
SERVERS = {"postgres", "temporal", "bare_temporal", "channel_access_ports", "pva_server_of_all"}
SERVER_ROOMS = ("e2e", "chaos", "demo", "interop")
LONGEST_FIRST = ("e2e", "console", "api", "workflows", "chaos", "cli", "infrastructure", "documents", "demo", "application")

gc.disable()


def write_to_memory() -> None:
    """Give the tests a directory in memory where there is room, unless one is chosen: a database is copied in a tenth of
    the time there, and hundreds are."""
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < ROOM or os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        return
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def keep_bytecode() -> None:
    """Compile every module once, also where nothing may be written beside it: a third of each process's start is that."""
    if sys.dont_write_bytecode:
        directory = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
        sys.dont_write_bytecode, sys.pycache_prefix = False, directory
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = directory


write_to_memory()
keep_bytecode()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a server, and begin with what takes long, so that no long test begins last."""
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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return one worker more than there are cores, since many tests wait for servers, processes and clocks."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return a scheduler that gives a module to one worker, and so opens the services that its tests share once.

    All end-to-end tests are for one worker: they share a whole stack.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ModuleScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "e2e" if nodeid.startswith("tests/e2e/") else nodeid.partition("::")[0]

    config.option.loadscopereorder = False  # they are in order already, see `place_in_line`
    return ModuleScheduling(config, log)


def place_in_line(item: pytest.Item) -> int:
    room = item.nodeid.split("/")[1]
    return LONGEST_FIRST.index(room) if room in LONGEST_FIRST else len(LONGEST_FIRST)


def pytest_collection_finish() -> None:
    """Let what was loaded and collected be, which is a great deal: the tests themselves leave little garbage."""
    gc.freeze()
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


@pytest.fixture
def eventually() -> Callable[..., object]:
    """Waits for a condition with a deadline; a sleep is no condition."""
    return until
