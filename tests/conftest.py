"""Real parts for every test that wants them: one PostgreSQL for each worker, one database for each test."""

import gc
import itertools
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import HealthCheck, settings

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.cli.up import SEARCH_ATTRIBUTES
from baton.infrastructure.postgres.migrate import migrate
from tests.running import Api, running_api
from tests.waiting import until

if TYPE_CHECKING:
    from tests.workflows.theatre import Theatre

EXAMPLES = int(os.environ.get("PROPERTY_EXAMPLES", "40"))
"""How many examples of each property are tried, where the property does not say."""
settings.register_profile("baton", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=EXAMPLES)
settings.load_profile("baton")

MEMORY = Path("/dev/shm")
ROOM = 4 * 2**30
"""How much memory must be free for tests to write there: every test that ends well takes its files away."""
LONGEST_FIRST = ("e2e", "chaos", "workflows", "cli", "infrastructure", "api", "application")

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
    """Begin with what takes long, so that nobody waits at the end for a long test that began last."""
    items.sort(key=place_in_line)


def place_in_line(item: pytest.Item) -> int:
    room = item.nodeid.split("/")[1]
    return LONGEST_FIRST.index(room) if room in LONGEST_FIRST else len(LONGEST_FIRST)


def pytest_collection_finish() -> None:
    """Let what was loaded and collected be, which is a great deal: the tests themselves leave little garbage."""
    gc.freeze()
    gc.enable()


UNSAFE_BUT_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "128MB"}
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    """A real server, without waiting for the disk; durability has tests of its own."""
    directory: Path = tmp_path_factory.mktemp("postgres")
    with EmbeddedPostgres(directory, settings=UNSAFE_BUT_FAST) as server:
        yield server


@pytest.fixture(scope="session")
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedTemporal]:
    """A real workflow engine without its pages; tests of one process share it, since every workflow has an id of its own."""
    directory: Path = tmp_path_factory.mktemp("temporal")
    with EmbeddedTemporal(directory, headless=True, search_attributes=SEARCH_ATTRIBUTES) as server:
        yield server


@pytest.fixture(scope="session")
def template(postgres: EmbeddedPostgres) -> str:
    """The name of a migrated database that tests are copied from."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE template_baton")
    migrate(with_database(postgres.url, "template_baton"))
    return "template_baton"


@pytest.fixture
def database_url(postgres: EmbeddedPostgres, template: str) -> Iterator[str]:
    """A fresh, migrated database."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        yield with_database(postgres.url, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def api(database_url: str) -> AsyncIterator[Api]:
    """The service on a real socket, permissive, with its projector."""
    async with running_api(database_url) as api:
        yield api


@pytest.fixture(scope="module")
async def theatre(postgres: EmbeddedPostgres, template: str, temporal: EmbeddedTemporal) -> AsyncIterator["Theatre"]:
    """A worker on a simulated plant and the service on a real socket beside it, on one record, for a module's tests."""
    from tests.api.serving import shared_database
    from tests.workflows.theatre import opened_theatre

    with shared_database(postgres, template) as url:
        async with opened_theatre(url, temporal.address) as theatre:
            yield theatre


@pytest.fixture
def eventually() -> Callable[..., object]:
    """Waits for a condition with a deadline; a sleep is no condition."""
    return until


def with_database(url: str, name: str) -> str:
    """The same server, another database."""
    base, _, query = url.partition("?")
    return base.rsplit("/", 1)[0] + f"/{name}" + (f"?{query}" if query else "")
